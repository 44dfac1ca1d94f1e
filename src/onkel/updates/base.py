"""Updates: how much to shrink f, and how far to move against the gradient of the loss.

`step(round, memory)` is called every round and returns (shrink, coef). The hypothesis becomes shrink * f. Then `coef`
(one coefficient per output; None: no term) is offered to the budget as a new term; with explicit features, the weights
move by coef * z(x). An update that moves each weight separately returns all moves, of shape (features, outputs).

`start(run)` returns the initial memory, which the update keeps between rounds. An entry named `threshold` replaces the
margin or epsilon of the loss in the next round (`Loss.at`). Entries that depend on the outputs
are named in `per_output`, with their kind (see `core.outputs`).
A sample weight multiplies the slope. Where an update or budget limits the step, it multiplies the limit (C; eta in
`Implicit` and `SampledPassiveAggressive`); in `SampledGradient`, the probability of a step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onkel.core import soundness
from onkel.core.basis import State
from onkel.core.errors import Diverged, sane
from onkel.core.outputs import KINDS, refuse_unknown_kinds
from onkel.core.part import Memory, Part, Words
from onkel.core.run import Run

Array = np.ndarray[Any, np.dtype[np.float64]]
Step = tuple[float, Array | None]


@dataclass(slots=True)
class Round:
    """All that is known about the current example."""

    x: Any  # the row
    y: float  # target: -1 or +1, class index, or real
    t: int  # number of the round, from 1
    k: Array  # k(x_i, x) for the stored terms, or the features z(x)
    kxx: float  # k(x, x), or |z(x)|^2
    s: Array  # scores before the update, one per output
    loss: float  # l(y, s)
    slope: Array  # dl/ds
    weight: float = 1.0
    chance: float = 1.0  # a factor set by a pool of learners: multiplies the probability of a sampled step
    room: float = math.inf  # set by a pool with a shared budget: how many more terms may be added


class Update(Part):
    """How far to move, and how much to shrink f."""

    per_output: ClassVar[Mapping[str, str]] = {}  # entries of the memory that depend on the outputs, and their kind

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_unknown_kinds(cls, "per_output", KINDS)

    @property
    def allowed_slope(self) -> float:
        """What the `largest_slope` of the loss may be, if it has one."""
        return math.inf

    def start(self, run: Run) -> Memory:
        """The initial memory: floats, arrays and `Random` streams by name."""
        return {}

    def check_state(self, state: State) -> None:
        """Raise ValueError if its memory in the state is not what this update relies on; shapes were checked before."""

    def step(self, round: Round, memory: Memory) -> Step:
        """The factor on f and the coefficients of the new term."""
        raise NotImplementedError


class Projected(Update):
    """Updates that keep |f| within a radius, if there is one.

    They update |f|^2 from their own steps, which is right only if the budget does nothing but append terms.
    """

    per_output: ClassVar[Mapping[str, str]] = {"norm2": "squared length"}

    @property
    def bound(self) -> float:
        """The radius; infinity means no radius, and |f| is not tracked."""
        raise NotImplementedError

    @property
    def needs(self) -> Words:
        return super().needs | ({"append-only"} if self.bound < math.inf else set())

    def start(self, run: Run) -> Memory:
        return {"norm2": 0.0} if self.bound < math.inf else {}

    def check_state(self, state: State) -> None:
        soundness.nonnegative(state, "update.norm2")

    def projected(self, shrink: float, coef: Array | None, round: Round, memory: Memory) -> Step:
        """The step scaled so that the new |f| is at most the radius."""
        if self.bound == math.inf:
            return shrink, coef
        norm2, most = shrink**2 * memory["norm2"], self.bound * self.bound
        if coef is not None:
            norm2 += 2 * shrink * float(coef @ round.s) + float(coef @ coef) * round.kxx
        memory["norm2"] = min(max(norm2, 0.0), most)
        if norm2 <= most:
            return shrink, coef
        factor = self.bound / math.sqrt(norm2)
        return shrink * factor, None if coef is None else coef * factor


SCHEDULES = ("constant", "1/t", "1/sqrt(t)")


def slowdown2(schedule: str, t: int) -> float:
    """(eta / eta_t)^2: the squared factor by which a schedule has reduced the step size in round t."""
    return {"constant": 1.0, "1/t": float(t) ** 2, "1/sqrt(t)": float(t)}[schedule]


def along(slope: Array, rate: float) -> Array | None:
    """The coefficients -rate * slope of a new term; None if they are all 0.

    Raises Diverged if they leave the range of numbers. Call it before the memory changes, so that a failed round has
    changed nothing.
    """
    coef = -rate * slope
    if not sane(coef):
        raise Diverged("the step is", coef)
    return coef if coef.any() else None


def curvature(round: Round, divide: bool = True) -> float:
    """|slope|^2 k(x, x), the squared RKHS norm of the gradient; without `divide` k(x, x) counts as 1."""
    return float(round.slope @ round.slope) * (round.kxx if divide else 1.0)
