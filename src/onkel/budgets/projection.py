"""Budgets that project a new or a removed term on the span of the terms that stay.

`Project`, `ProjectSmallest` and `Refit(variant="projecting")` keep a factorisation of the kernel matrix in their memory
(`linalg.Factor`). They never store an example x for which k(x, .) is in the span of the terms (a duplicate, say), as
the terms express its step exactly.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np

from onkel.budgets.base import Bounded, norm_bound, removed, smallest_term, term_diagonals
from onkel.core import soundness
from onkel.core.basis import State
from onkel.core.linalg import DEPENDENT, Factor
from onkel.core.part import Memory, Words, refuse_ignored
from onkel.core.run import Run
from onkel.core.ties import oldest_of_least
from onkel.hypotheses.terms import Budget, Terms
from onkel.losses import Hinge, Mistake
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]
FAR = 1e-9  # kernel values up to this, relative to k(x, x), count as zero in the search for neighbours


def append_or_project(f: Terms, round: Round, coef: Array, factor: Factor) -> bool:
    """Add a new term, or if it is in the span of the terms, project it on them. Returns whether a term was added."""
    d, distance2 = factor.project(round.k, round.kxx)
    if distance2 == 0:
        f.add(d, coef)
        return False
    factor.append(round.k, round.kxx)
    f.append(round, coef)
    return True


def remove_and_project(f: Terms, i: int, factor: Factor) -> None:
    """Remove term i, and add its projection on the other terms."""
    x, a = f.basis.row(i), f.scale * f.coef[i]
    f.remove(i)
    factor.remove(i)
    factor.refresh(f.matrix)
    f.add(factor.project(f.row(x), f.diagonal(x))[0], a)


class Project(Budget):
    """A step is projected on the span of the terms if it is near the span, or if the budget is full (Projectron).

    Let d = K^-1 k(x) be the coefficients of the projection of k(x, .), and delta its distance to the span. The step
    coef * k(x, .) is replaced by coef * sum_i d_i k(x_i, .) if delta <= tolerance (`squared`: delta^2 <= tolerance, as
    in the authors' own library) or if there are `budget` terms (None: no limit). Otherwise it becomes a new term.

    A `rule` adds margin steps (Projectron++). It needs the loss `Hinge()` and the update `Perceptron()`, because tau is
    the length of a margin step, which multiplies a step of length 1. If the prediction is right but the loss l is in
    (0, 1), the projected step is multiplied by tau. Let p = k(x, x) - delta^2.
    "icml": tau = min(l / p, 1) if 2 l - tau p - 2 U delta >= 0, else 0. U bounds the norm of the competitor.
    "jmlr": tau = min(l / p, 2 (l - delta / tolerance) / p, 1) if l > delta / tolerance, else 0.
    With `strict_sign` a score of 0 counts as a right prediction if y = +1 (two classes).
    """

    budget: int | None = None
    tolerance: float = 0.0
    squared: bool = False
    rule: str | None = None
    U: float | None = None
    strict_sign: bool = False

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(),
            cls(8, 0.4),
            cls(20, 0.4, squared=True),
            cls(20, 0.4, squared=True, rule="icml", U=0.3),
            cls(None, 0.7, rule="jmlr", strict_sign=True),
        )

    def __post_init__(self) -> None:
        if self.budget is not None:
            self._integer("budget", 1)
        self._nonnegative("tolerance")
        self._finite("tolerance")
        self._boolean("squared", "strict_sign")
        self._one_of("rule", None, "icml", "jmlr")
        if self.rule != "icml":
            refuse_ignored(self, f"rule={self.rule!r}", "U")
        if self.rule is None:
            refuse_ignored(self, "rule=None", "strict_sign")
        if self.U is not None:
            self._nonnegative("U")
            self._finite("U")
        self._require("U", self.rule != "icml" or self.reach is not None, 'given for the rule "icml" without a budget')

    @property
    def needs(self) -> Words:
        return super().needs | ({"unit hinge", "unit step"} if self.rule is not None else set())

    @property
    def reach(self) -> float | None:
        """U as given, or that of the Forgetron for the budget."""
        return self.U if self.U is not None or self.budget is None else norm_bound(self.budget)

    def start(self, run: Run) -> Memory:
        return {"factor": Factor()}

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        factor: Factor = memory["factor"]
        d, distance2 = factor.project(round.k, round.kxx)
        if self.rule is not None and not Mistake(strict_sign=self.strict_sign)(round.y, round.s)[0]:
            f.add(d, coef * self._margin_step(round, distance2))
        elif f.n > 0 and (distance2 == 0 or self._near(distance2) or f.n == self.budget):
            f.add(d, coef)
        else:
            factor.append(round.k, round.kxx)
            f.append(round, coef)

    def _near(self, distance2: float) -> bool:
        return (distance2 if self.squared else math.sqrt(distance2)) <= self.tolerance

    def _margin_step(self, round: Round, distance2: float) -> float:
        """The factor tau of a margin step; 0 for no step."""
        loss, p, delta = round.loss, round.kxx - distance2, math.sqrt(distance2)
        if p <= 0 or loss >= 1:
            return 0.0
        if self.rule == "icml":
            tau = min(loss / p, 1.0)
            assert self.reach is not None
            return tau if 2 * loss - tau * p - 2 * self.reach * delta >= 0 else 0.0
        if delta > 0 and self.tolerance == 0:
            return 0.0
        spare = loss - (delta / self.tolerance if delta > 0 else 0.0)
        return min(loss / p, 2 * spare / p, 1.0) if spare > 0 else 0.0


class ProjectSmallest(Bounded):
    """Over budget, the term with the least |coef|^2 k(x, x), perhaps the new one, is projected on the others (BSGD)."""

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(8),)

    def start(self, run: Run) -> Memory:
        return {"factor": Factor()}

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is not None and append_or_project(f, round, coef, memory["factor"]) and f.n > self.budget:
            remove_and_project(f, smallest_term(f), memory["factor"])


class Refit(Bounded):
    """When full, the new term replaces an old term r, of which only a projection on other terms is kept (BPA).

    Term r is projected on the new term ("simple"), on the new term and the stored term nearest to r ("nearest"), or on
    all others ("projecting"). The r whose projection changes f least is replaced, that is, the one with the least
    |coef_r|^2 |residual_r|^2, where residual_r is k(x_r, .) minus its projection; the oldest among equals.

    "plain" removes a term without projection: the r with the least |f^r - f|^2 / 2 + C l(f^r). Here f has all old
    terms but not the new one, f^r has the new one but not r, and l is the hinge loss of the example. A sample weight
    multiplies C.
    """

    traits: ClassVar[tuple[str, ...]] = ("room",)
    variant: str = "simple"
    C: float = 1.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(8), cls(8, "nearest"), cls(8, "projecting"), cls(8, "plain", 0.4), cls(1, "nearest")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of("variant", "simple", "nearest", "projecting", "plain")
        self._positive("C")
        self._require("C", self.variant != "plain" or math.isfinite(self.C), 'finite for the variant "plain"')
        if self.variant != "plain":
            refuse_ignored(self, f"variant={self.variant!r}", "C")

    def start(self, run: Run) -> Memory:
        if self.variant == "projecting":
            return {"factor": Factor(inverse=True)}
        if self.variant == "nearest":
            # For each slot: the slot of the nearest other term (-1: there is none), and the kernel value of the two.
            return {"nearest": np.zeros(0, dtype=np.int64), "affinity": np.zeros(0)}
        return {}

    def check_state(self, state: State, run: Run) -> None:
        if self.variant == "nearest":
            check_neighbours(state, len(state["basis.born"]))

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        if self.variant == "projecting":
            full = self.full(f, round)
            if append_or_project(f, round, coef, memory["factor"]) and full:
                residual = 1 / memory["factor"].diagonal()
                remove_and_project(f, self._cheapest(f, residual[:-1]), memory["factor"])
            return
        full = self.full(f, round)
        f.append(round, coef)
        k = np.append(round.k, round.kxx)
        leaves = self._redistribute(f, round, k, memory) if full else None
        if self.variant == "nearest":
            append_neighbour(f, k, memory)
        if leaves is not None:
            f.remove(leaves)
            if self.variant == "nearest":
                remove_neighbour(f, leaves, memory)

    @staticmethod
    def _cheapest(f: Terms, residual: Array) -> int:
        """The term to remove, given the squared residuals of all terms except the new one."""
        size2 = (f.coef[:-1] ** 2).sum(axis=1)
        return oldest_of_least(size2 * residual, f.born, size2 * term_diagonals(f)[:-1])

    def _redistribute(self, f: Terms, round: Round, k: Array, memory: Memory) -> int:
        """Choose a term to remove, add its projection to the others (not for "plain"), and return its slot.

        `k` is the kernel row of the new example, itself included.
        """
        if self.variant == "plain":
            return self._dispensable(f, round, k)
        old, (k, kxx) = np.arange(f.n - 1), (k[:-1], k[-1])
        diagonal = term_diagonals(f)[:-1]
        nearest = memory.get("nearest", old * 0 - 1)
        knn, kn, own = diagonal[nearest], k[nearest], memory.get("affinity", k * 0)
        determinant = kxx * knn - kn**2
        pair = (nearest >= 0) & (determinant > DEPENDENT * kxx * knn)
        determinant[~pair] = 1.0
        on_new = np.where(pair, (knn * k - kn * own) / determinant, k / kxx)
        on_nearest = np.where(pair, (kxx * own - kn * k) / determinant, 0.0)
        # |k(x_r, .) - its projection|^2 as a square: then errors of the two shares, which may be large, hardly matter
        residual = (
            diagonal - on_new * (2 * k - on_new * kxx) - on_nearest * (2 * own - on_nearest * knn - 2 * on_new * kn)
        )
        r = self._cheapest(f, np.maximum(residual, 0.0))
        step = np.zeros(f.n)
        step[nearest[r]] = on_nearest[r]
        step[-1] = on_new[r]
        f.add(step, f.scale * f.coef[r])
        return r

    def _dispensable(self, f: Terms, round: Round, k: Array) -> int:
        a, s, C = f.scale * f.coef, f.scores(k), self.C * round.weight
        new, diagonal = a[-1], term_diagonals(f)
        length2 = (a**2).sum(axis=1) * diagonal + new @ new * k[-1] - 2 * (a @ new) * k
        without = s - a * k[:, None]
        loss = np.array([Hinge()(round.y, scores)[0] for scores in without])
        operands = (a**2).sum(axis=1) * diagonal + new @ new * k[-1]
        operands += np.where(loss > 0, C * (1 + np.abs(without).max(axis=1)), 0)
        return oldest_of_least((length2 / 2 + C * loss)[:-1], f.born, operands[:-1])


def check_neighbours(state: State, n: int) -> None:
    """Raise ValueError if the neighbours in the state are not those of n terms."""
    nearest = soundness.whole(state, "budget.nearest", (n,))
    soundness.shaped(state, "budget.affinity", (n,))
    another = (nearest >= 0) & (nearest < n) & (nearest != np.arange(n)) if n > 1 else nearest == -1
    soundness.require("budget.nearest", another, f"for each of {n} terms another one (-1: there is none)")


def append_neighbour(f: Terms, k: Array, memory: Memory) -> None:
    """Find the term nearest to the newest term, whose row is `k`, and the terms to which the newest is now nearest."""
    near, diagonal = memory["nearest"], term_diagonals(f)
    k = zero_if_negligible(k, diagonal)
    theirs = np.where(near >= 0, diagonal[near] - 2 * memory["affinity"], np.inf)
    closer = diagonal[-1] - 2 * k[:-1] < theirs
    memory["nearest"] = np.append(np.where(closer, f.n - 1, near), -1)
    memory["affinity"] = np.append(np.where(closer, k[:-1], memory["affinity"]), 0.0)
    find_nearest(f, f.n - 1, k, memory)


def remove_neighbour(f: Terms, i: int, memory: Memory) -> None:
    """After term i was removed, find another nearest term for each term that it was nearest to."""
    near = removed(memory["nearest"], i)
    orphans = np.flatnonzero(near == i).tolist()
    near[near == f.n] = i
    memory["nearest"], memory["affinity"] = near, removed(memory["affinity"], i)
    diagonal = term_diagonals(f)
    equal = bool(f.n and diagonal.min() == diagonal.max())
    oldest = int(np.argmin(f.born)) if f.n else -1
    for j in orphans:
        if equal and memory["affinity"][j] == 0 and j != oldest:
            memory["nearest"][j] = oldest  # all others are equally far
        else:
            find_nearest(f, j, zero_if_negligible(f.row(f.basis.row(j)), diagonal), memory)


def zero_if_negligible(k: Array, diagonal: Array) -> Array:
    """The kernel values, with negligible ones set to 0, so that all far terms are equally far."""
    return np.where(np.abs(k) < FAR * diagonal, 0.0, k)


def find_nearest(f: Terms, i: int, k: Array, memory: Memory) -> None:
    """Find the term nearest to term i, whose row is `k`, in feature space; the oldest among equals."""
    diagonal = term_diagonals(f)
    distance2 = diagonal - 2 * k + diagonal[i]
    distance2[i] = np.inf
    j = oldest_of_least(distance2, f.born, diagonal + diagonal[i]) if f.n > 1 else -1
    memory["nearest"][i], memory["affinity"][i] = j, k[j] if j >= 0 else 0.0
