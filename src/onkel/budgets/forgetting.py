"""Forgetting: all terms are shrunk before the oldest is removed, so that the removal does little harm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from onkel.budgets.base import Bounded, norm_bound, own_output
from onkel.core import soundness
from onkel.core.basis import State
from onkel.core.part import Memory, refuse_ignored
from onkel.core.run import Run
from onkel.hypotheses.terms import Terms
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]


class Forget(Bounded):
    """Shrinks f by a factor phi, then removes the oldest term, so that the harm of the removal is bounded (Forgetron).

    "basic": B is the budget. Every update multiplies f by phi = min{(B+1)^(-1/(2(B+1))), U / |f|} with
    U = sqrt((B+1) / ln(B+1)) / 4.
    "self-tuned": only when over budget, f is multiplied by the largest phi in (0, 1] with
    Psi(s phi, phi mu) + Q <= (15/32) M, where Psi(a, b) = a^2 + 2 a (1 - b). Here s is the |coefficient| of the oldest
    term r, mu = y_r f(x_r) after the new term entered (several classes: the score of its class, not its margin), M the
    number of updates, and Q the sum of the Psi of earlier removals.
    `absolute` takes mu = |f(x_r)| (regression). phi solves a quadratic equation; `legacy_root` takes its wrong root, as
    the program released by the authors of lu2017scalable does by mistake.
    """

    traits: ClassVar[tuple[str, ...]] = ("room",)
    per_output: ClassVar[Mapping[str, str]] = {"norm2": "squared length"}
    variant: str = "self-tuned"
    absolute: bool = False
    legacy_root: bool = False

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(8), cls(8, variant="basic"), cls(8, absolute=True), cls(8, legacy_root=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of("variant", "self-tuned", "basic")
        self._boolean("absolute", "legacy_root")
        if self.variant == "basic":
            refuse_ignored(self, 'variant="basic"', "absolute", "legacy_root")

    def start(self, run: Run) -> Memory:
        return {"M": 0.0, "Q": 0.0} if self.variant == "self-tuned" else {"norm2": 0.0}

    def check_state(self, state: State, run: Run) -> None:
        soundness.nonnegative(state, "budget.M", "budget.norm2")

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        if self.variant == "basic":
            self._basic(f, round, coef, memory)
            return
        full = self.full(f, round)
        f.append(round, coef)
        memory["M"] += 1
        if full:
            oldest = int(np.argmin(f.born))
            a, fx = f.scale * f.coef[oldest], f.scores(f.row(f.basis.row(oldest)))
            own = int(own_output(f.coef[oldest : oldest + 1])[0])
            s, mu = abs(a[own]), abs(fx[own]) if self.absolute else math.copysign(1.0, a[own]) * fx[own]
            room = 15 / 32 * memory["M"] - memory["Q"]
            phi = self.factor(s, mu, room)
            memory["Q"] += (s * phi) ** 2 + 2 * s * phi * (1 - phi * mu)
            f.shrink(phi)
            f.remove(oldest)

    def factor(self, s: float, mu: float, room: float) -> float:
        """The largest phi in (0, 1] with A phi^2 + 2 s phi <= room."""
        A = s * s - 2 * s * mu
        if A + 2 * s <= room:
            return 1.0
        if A == 0:
            return room / (2 * s)
        root = math.sqrt(max(4 * s * s + 4 * A * room, 0.0))
        if self.legacy_root and A < 0:
            return (-2 * s - root) / (2 * A)
        return 2 * room / (2 * s + root)

    def _basic(self, f: Terms, round: Round, coef: Array, memory: Memory) -> None:
        over = self.budget + 1
        norm2 = memory["norm2"] + 2 * float(coef @ f.scores(round.k)) + float(coef @ coef) * round.kxx
        full = self.full(f, round)
        f.append(round, coef)
        phi = min(over ** (-1 / (2 * over)), norm_bound(self.budget) / math.sqrt(norm2) if norm2 > 0 else 1.0)
        f.shrink(phi)
        norm2 *= phi**2
        if full:
            oldest = int(np.argmin(f.born))
            k = f.row(f.basis.row(oldest))
            a, fx = f.scale * f.coef[oldest], f.scores(k)
            norm2 += float(a @ a) * k[oldest] - 2 * float(a @ fx)
            f.remove(oldest)
        memory["norm2"] = max(norm2, 0.0)
