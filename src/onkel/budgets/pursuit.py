"""Budgets of dictionary learners: which examples become terms, and which terms are removed (compression).

The error of removing terms is the RKHS norm by which f changes when it is projected on the remaining terms; the cost is
its square. With K the kernel matrix of the terms, the cost of term i alone is |coef_i|^2 / K^-1[i, i]; the cost of a
set Q of terms is coef_Q' (K^-1[Q, Q])^-1 coef_Q. Budgets that keep a `Factor` never store an example x for which
k(x, .) is in the span of the terms, as the terms express its step exactly.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np

from onkel.budgets.base import term_diagonals
from onkel.budgets.projection import append_or_project, remove_and_project
from onkel.core import soundness
from onkel.core.basis import State
from onkel.core.errors import Diverged, sane
from onkel.core.linalg import Factor, triangular
from onkel.core.part import Memory, Words, is_number
from onkel.core.random import Random
from onkel.core.run import Run
from onkel.core.ties import oldest_of_least
from onkel.hypotheses.terms import Budget, Terms
from onkel.updates.base import SCHEDULES, Round, slowdown2

Array = np.ndarray[Any, np.dtype[Any]]


def costs(f: Terms, factor: Factor) -> Array:
    """The cost of removing each term alone."""
    return np.asarray(f.scale**2 * np.square(f.coef).sum(axis=1) / factor.diagonal())


def joint_costs(f: Terms, factor: Factor, slots: Array) -> Array:
    """The costs of removing the first, the first two, ... of these terms together."""
    if len(slots) == 0:
        return np.zeros(0)
    R = np.asarray(np.linalg.qr(factor.inverse_columns(slots), mode="r"))  # K^-1[Q, Q] = R' R
    z = triangular(R, f.scale * f.coef[slots], transposed=True)
    return np.asarray(np.cumsum(np.square(z).sum(axis=1)))


def remove_together(f: Terms, factor: Factor, slots: Array) -> None:
    """Remove these terms and project them on the others. One by one gives the same, as projections are nested."""
    for i in sorted(slots, reverse=True):  # the last term takes the place of a removed one
        remove_and_project(f, int(i), factor)


def pursue(f: Terms, factor: Factor, allowed: float) -> None:
    """Destructive matching pursuit (KOMP): remove the cheapest term while the costs so far sum to at most `allowed`."""
    spent = 0.0
    while f.n:
        cost = costs(f, factor)
        cheapest = oldest_of_least(cost, f.born)
        spent += cost[cheapest]
        if spent > allowed:
            return
        remove_and_project(f, cheapest, factor)


def ranked(values: Array, born: Array, count: int) -> Array:
    """The indices of the `count` least values in ascending order; the oldest first among equals."""
    left = values.astype(np.float64)
    order = np.zeros(count, dtype=np.int64)
    for n in range(count):
        order[n] = oldest_of_least(left, born)
        left[order[n]] = np.inf
    return order


class Compress(Budget):
    """A new term enters unless it is in the span of the others. Then terms are removed, with an error of at most error
    * (eta_t / eta_1)^2 per round.

    eta_t, the step size of round t, is constant or proportional to 1 / t or 1 / sqrt(t), as `schedule` says.
    """

    error: float = 0.01
    schedule: str = "constant"

    def __post_init__(self) -> None:
        self._nonnegative("error")
        self._finite("error")
        self._one_of("schedule", *SCHEDULES)

    def start(self, run: Run) -> Memory:
        return {"factor": Factor(inverse=True)}

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is not None:
            append_or_project(f, round, coef, memory["factor"])
        error = self.error / slowdown2(self.schedule, round.t)
        self.compress(f, memory, error * error)

    def compress(self, f: Terms, memory: Memory, allowed: float) -> None:
        """Remove terms at a cost of at most `allowed`, a squared error."""
        raise NotImplementedError


class Pursue(Compress):
    """The cheapest term is removed, repeatedly (POLK: kernel orthogonal matching pursuit)."""

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.1), cls(20.0, "1/t")

    def compress(self, f: Terms, memory: Memory, allowed: float) -> None:
        pursue(f, memory["factor"], allowed)


class PursueTogether(Compress):
    """Terms whose own cost is allowed are removed; some of them are put back if their joint cost is not allowed.

    The terms to put back are drawn at random, or taken in the order of their own cost, the largest first ("largest").
    """

    put_back: str = "random"

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.1), cls(0.4, put_back="largest"), cls(20.0, "1/t")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of("put_back", "random", "largest")

    def start(self, run: Run) -> Memory:
        memory = super().start(run)
        return memory | {"random": Random(run.seed, "put back")} if self.put_back == "random" else memory

    def compress(self, f: Terms, memory: Memory, allowed: float) -> None:
        factor, cost = memory["factor"], costs(f, memory["factor"])
        cheap = np.flatnonzero(cost < allowed)
        cheap = cheap[np.argsort(f.born[cheap])]
        joint = joint_costs(f, factor, cheap)
        if len(cheap) > 1 and joint[-1] > allowed:
            if self.put_back == "largest":
                order = ranked(-cost[cheap], f.born[cheap], len(cheap))
            else:
                left = list(range(len(cheap)))
                order = np.array([left.pop(memory["random"].below(len(left))) for _ in cheap])
            cheap = cheap[order[::-1]]  # reversed: what would be put back last is removed first
            joint = joint_costs(f, factor, cheap)
            cheap = cheap[: max(1, int(np.searchsorted(joint, allowed, side="right")))]
        remove_together(f, factor, cheap)


class SelectSubset(Compress):
    """The `candidates` cheapest terms are removed if their joint cost is allowed; if not, half of them, and so on."""

    candidates: int = 4

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.1), cls(0.3, candidates=1), cls(20.0, "1/t")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._integer("candidates", 1)

    def compress(self, f: Terms, memory: Memory, allowed: float) -> None:
        count = min(self.candidates, f.n)
        cheapest = ranked(costs(f, memory["factor"]), f.born, count)
        joint = joint_costs(f, memory["factor"], cheapest)
        while count and joint[count - 1] > allowed:
            count //= 2
        remove_together(f, memory["factor"], cheapest[:count])


class InsertRemove(Budget):
    """A step farther than `insert_error` from its projection becomes a term; otherwise its projection is added.

    Then terms are removed as by `Pursue(remove_error)`.
    """

    insert_error: float = 0.01
    remove_error: float = 0.01

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.2, 0.05), cls(0.05, 0.2)

    def __post_init__(self) -> None:
        self._nonnegative("insert_error", "remove_error")
        self._finite("insert_error", "remove_error")

    def start(self, run: Run) -> Memory:
        return {"factor": Factor(inverse=True)}

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        factor: Factor = memory["factor"]
        if coef is not None:
            d, distance2 = factor.project(round.k, round.kxx)
            if float(coef @ coef) * distance2 > self.insert_error * self.insert_error:
                factor.append(round.k, round.kxx)
                f.append(round, coef)
            else:
                f.add(d, coef)
        pursue(f, factor, self.remove_error * self.remove_error)


def cosines(f: Terms, round: Round) -> Array:
    """k(x_i, x) / sqrt(k(x_i, x_i) k(x, x)) of the terms."""
    return np.asarray(round.k / np.sqrt(term_diagonals(f) * round.kxx))


class Dissimilarity(Budget):
    """A step becomes a term if the cosine of its example with every term is < 1 / threshold, else it is projected.

    The cosine is k(x_i, x) / sqrt(k(x_i, x_i) k(x, x)). (The report by Pradhan and Kumar, "Efficient online sparse
    kernel learning", states the rule as 1 / cosine > threshold.)
    """

    threshold: float = 2.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(4.0),)

    def __post_init__(self) -> None:
        self._require("threshold", is_number(self.threshold) and self.threshold >= 1, ">= 1")
        self._finite("threshold")

    def start(self, run: Run) -> Memory:
        return {"factor": Factor()}

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        if (cosines(f, round) < 1 / self.threshold).all():
            append_or_project(f, round, coef, memory["factor"])
        else:
            f.add(memory["factor"].project(round.k, round.kxx)[0], coef)


def distances(f: Terms, round: Round) -> Array:
    """|x_i - x| of the terms, in the space of inputs."""
    return np.sqrt(f.basis.totals(round.x)(lambda x, z: np.square(x - z))) if f.n else np.zeros(0)


class Quantise(Budget):
    """The step is added to the nearest term if that is within `radius`; else it becomes a new term (QKLMS)."""

    radius: float = 0.5
    traits: ClassVar[tuple[str, ...]] = ("input distances",)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.8)

    def __post_init__(self) -> None:
        self._nonnegative("radius")
        self._finite("radius")

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        away = distances(f, round)
        if away.min(initial=np.inf) <= self.radius:
            f.add(np.arange(f.n) == oldest_of_least(away, f.born), coef)
        else:
            f.append(round, coef)


class Novelty(Budget):
    """A step becomes a term if its example is farther than `distance` from all terms and |slope| >= `surprise` (RAN).

    RAN is Platt's resource-allocating network. For the squared loss, |slope| is the size of the residual. Other steps
    are not taken ("discard"), or taken along the kernel row: coef_i <- coef_i + coef k(x_i, x) ("lms").
    """

    distance: float = 0.5
    surprise: float = 0.1
    rejected: str = "discard"
    traits: ClassVar[tuple[str, ...]] = ("input distances",)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.8, 0.3, "lms"), cls(0.2, 1.2)

    def __post_init__(self) -> None:
        self._nonnegative("distance", "surprise")
        self._finite("distance", "surprise")
        self._one_of("rejected", "discard", "lms")

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        far = distances(f, round).min(initial=np.inf) > self.distance
        if far and np.linalg.norm(round.slope) >= self.surprise:
            f.append(round, coef)
        elif self.rejected == "lms":
            f.add(round.k, coef)


def divided(f: Terms, coef: Array | None, by: float) -> Array:
    """coef / by, zeros for None; raises Diverged if this leaves the range of numbers."""
    if coef is None:
        return np.zeros(f.run.outputs)
    with np.errstate(divide="ignore"):
        step = coef / by
    if not sane(step):
        raise Diverged("the step is", step)
    return np.asarray(step)


class Coherence(Budget):
    """An example becomes a term if |cosine| with every stored example is at most `coherence` (KNLMS).

    In every round, all coefficients move by coef k / (ridge + |k|^2), where k is the kernel row of the example on all
    terms, the new one included. An example may become a term even if the step is 0.
    """

    coherence: float = 0.5
    ridge: float = 0.01

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.2, 0.1)

    def __post_init__(self) -> None:
        self._positive("coherence")
        self._require("coherence", self.coherence <= 1, "<= 1")
        self._nonnegative("ridge")
        self._finite("ridge")

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if round.kxx <= 0:
            return
        new = bool((np.abs(cosines(f, round)) <= self.coherence).all())
        own = round.kxx if new else 0.0
        step = divided(f, coef, self.ridge + float(round.k @ round.k) + own * own)
        f.add(round.k, step)
        if new:
            f.append(round, own * step)


class AlmostLinearDependence(Budget):
    """An example becomes a term if its squared distance to the span of the terms exceeds `nu` (KRLS).

    The coefficients are the least-squares solution with every example replaced by its projection. Let a = K^-1 k(x), C
    the inverse of the sum of a a' over the earlier examples, and coef the residual y - f(x) times the sample weight
    (from Defer()). A new term gets the coefficient coef / distance^2, and the others move by -a times that. Without a
    new term, all move by K^-1 C a coef / (1 + a' C a). Examples with residual 0 change C, too, and may become
    terms. Once there are `budget` terms, no further term is added, and every example is replaced by its projection.
    """

    nu: float = 0.01
    budget: int | None = None
    traits: ClassVar[tuple[str, ...]] = ("own step",)

    @property
    def needs(self) -> Words:
        return super().needs | {"leaves the step", "squared"}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.1, 8), cls(0.5)

    def __post_init__(self) -> None:
        self._nonnegative("nu")
        self._finite("nu")
        if self.budget is not None:
            self._integer("budget", least=1)

    def start(self, run: Run) -> Memory:
        return {"factor": Factor(), "covariance": np.zeros((0, 0))}

    def check_state(self, state: State, run: Run) -> None:
        n = len(state["basis.born"])
        C = soundness.shaped(state, "budget.covariance", (n, n))
        soundness.require("budget.covariance", np.diag(C) >= 0, "a matrix with a diagonal >= 0")

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if round.kxx <= 0:
            return
        factor, C = memory["factor"], memory["covariance"]
        a, distance2 = factor.project(round.k, round.kxx)
        if distance2 > (self.nu if f.n else 0) and f.n != self.budget:
            step = divided(f, coef, distance2)
            f.add(-a, step)
            f.append(round, step)
            factor.append(round.k, round.kxx)
            memory["covariance"] = np.pad(C, (0, 1))
            memory["covariance"][-1, -1] = 1.0
        else:
            Ca = C @ a
            total = 1 + float(a @ Ca)
            f.add(factor.project(Ca, 0.0)[0], divided(f, coef, total))
            q = Ca / math.sqrt(total)
            memory["covariance"] = C - np.outer(q, q)
