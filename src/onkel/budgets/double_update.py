"""Double updates: the dual is maximised over the new term and the old term it conflicts with most.

Let f = sum_i a_i k(x_i, .) with a_i = g_i y_i. If 0 <= g_i <= limit_i (C times the weight of the example), the g_i are
a feasible point of the SVM's dual, and the dual objective is sum_i g_i - |f|^2 / 2. The box of term i is the interval
between 0 and y_i limit_i, in which a_i must stay. If v is subtracted from the coefficients, the dual objective changes
by gain(v) = -sum_i v_i (y_i - f(x_i)) - |sum_i v_i k(x_i, .)|^2 / 2. With each term i, f(x_i) (column `score`) and
limit_i (column `limit`) are stored, both divided by scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from onkel.budgets.base import Bounded, removed, term_diagonals
from onkel.budgets.projection import append_neighbour, check_neighbours, remove_neighbour
from onkel.core import soundness
from onkel.core.basis import State
from onkel.core.errors import LIMIT, Diverged, sane
from onkel.core.linalg import Factor
from onkel.core.part import Memory, Words, refuse_ignored
from onkel.core.run import Run
from onkel.core.ties import oldest_of_least
from onkel.hypotheses.terms import Budget, Terms
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]

# Added to the diagonal of K, relative to it, so that a singular K gives the solution of minimum norm. It is larger than
# the one of core.linalg, which only lets factorisations succeed.
SOLUTION_RIDGE = 1e-10


class Boxed(Budget):
    """Budgets that keep the dual variable of each term between 0 and its limit."""

    traits: ClassVar[tuple[str, ...]] = ("own step",)
    columns: ClassVar[Mapping[str, str]] = {"score": "scores", "limit": "weight"}

    @property
    def needs(self) -> Words:
        return super().needs | {"leaves the step", "one output", "unit hinge"}

    def check_state(self, state: State, run: Run) -> None:
        soundness.nonnegative(state, "basis.limit")
        coef, limit = np.abs(state["basis.coef"]), state["basis.limit"]
        soundness.require("basis.limit", limit < LIMIT, f"below {LIMIT:g}")
        soundness.require("basis.limit", coef <= limit * (1 + 1e-9), "at least |basis.coef|")

    def _refuse_bad_steps(self) -> None:
        """Raise an error if C or rho is out of range."""
        self._positive("C")
        self._finite("C")
        self._nonnegative("rho")


class DoubleUpdate(Boxed):
    """The dual is maximised over the new term and the old term it conflicts with most (DUOL).

    The old term is the b with the least w = y_b y k(x_b, x) of all terms with a margin y_b f(x_b) below 1. If there is
    none, or w > -rho, only the new term is added, with g = min(limit, loss / k(x, x)).
    """

    C: float = 1.0
    rho: float = 0.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.4), cls(2.0, 0.2)

    def __post_init__(self) -> None:
        self._refuse_bad_steps()

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is not None:
            climb(f, round, round.k, limit_of(round, self.C), self.rho)


def limit_of(round: Round, C: float) -> float:
    """The upper bound C * weight of the new term's dual variable.

    It must be finite: the variables of two equal examples with opposite labels grow to the bound.
    """
    limit = C * round.weight
    if not sane(limit):
        raise Diverged("C times the sample weight is", limit)
    return limit


def climb(f: Terms, round: Round, k: Array, limit: float, rho: float) -> bool:
    """Do the update of `DoubleUpdate` if the loss is positive, with kernel row k. Returns whether a term was added."""
    y, s = round.y, float(f.scores(k)[0])
    loss = 1 - y * s
    if loss <= 0:
        return False
    g = min(limit, loss / round.kxx)
    w = np.sign(f.coef[:, 0]) * y * k
    b = in_conflict(f, w)
    if b is not None and w[b] <= -rho:
        k_b, y_b, box = f.row(f.basis.row(b)), np.sign(f.coef[b, 0]), Box(f)
        g, more = double_step(round.kxx, k_b[b], w[b], loss, 1 - y_b * box.s[b], limit, box.room[b])
        step = np.zeros(f.n)
        step[b] = more * y_b
        move(f, step, step[b] * k_b)
        s += step[b] * k[b]
    f.basis["score"][:, 0] += g * y * k / f.scale
    score = (s + g * y * round.kxx) / f.scale
    f.append(round, np.array([g * y]), score=score, limit=limit / f.scale)
    return True


def rounding(f: Terms) -> float:
    """Where an old term is chosen, or one is removed, losses up to this count as zero.

    Many margins are 1 except for rounding, which must not decide. Whether there is a step at all depends on the loss
    itself (`climb`).
    """
    return 1e-5 if f.run.dtype == np.float32 else 1e-9


def in_conflict(f: Terms, w: Array) -> int | None:
    """The term with the least w among those with a margin below 1; the oldest among equals."""
    margins = np.sign(f.coef[:, 0]) * f.scale * f.basis["score"][:, 0]
    below = margins < 1 - rounding(f)
    return oldest_of_least(np.where(below, w, np.inf), f.born) if below.any() else None


def double_step(
    k: float, k_b: float, w: float, loss: float, loss_b: float, limit: float, room: float
) -> tuple[float, float]:
    """The best weight g <= limit of the new term and increase q <= room of term b, for w <= 0 and positive losses.

    They maximise g loss + q loss_b - (k g^2 + k_b q^2 + 2 w g q) / 2. As w <= 0, a larger g makes a larger q better and
    vice versa, so only the upper bounds can be active: the maximum is inside, or on the better of two edges.
    """
    determinant = k * k_b - w * w
    if determinant > 1e-12 * k * k_b:
        g, q = (k_b * loss - w * loss_b) / determinant, (k * loss_b - w * loss) / determinant
        if g <= limit and q <= room:
            return g, q
    edges = (limit, min((loss_b - w * limit) / k_b, room)), (min((loss - w * room) / k, limit), room)
    return max(edges, key=lambda e: e[0] * (loss - k * e[0] / 2 - w * e[1]) + e[1] * (loss_b - k_b * e[1] / 2))


class Box:
    """The coefficients, scores and bounds of all terms, multiplied by `scale`."""

    def __init__(self, f: Terms) -> None:
        self.a, self.s, limit = (f.scale * column[:, 0] for column in (f.coef, f.basis["score"], f.basis["limit"]))
        y = np.sign(self.a)
        self.slack = y - self.s
        self.room = np.maximum(limit - np.abs(self.a), 0.0)
        self.least, self.most = np.minimum(0, y * limit), np.maximum(0, y * limit)

    def clip(self, v: Array, j: int) -> Array:
        """The nearest v for which the coefficients a - v stay in their boxes and that of term j becomes 0."""
        v = np.clip(v, self.a - self.most, self.a - self.least)
        v[j] = self.a[j]
        return v


def move(f: Terms, step: Array, change: Array) -> None:
    """Move the coefficients by `step`, which changes f at the terms by `change`; clip them to their boxes."""
    box = Box(f)
    f.change(np.clip(box.a + step, box.least, box.most)[:, None] / f.scale)
    f.basis["score"][:, 0] += change / f.scale


class DualAscent(Bounded, Boxed):
    """`DoubleUpdate` on a budget: when full, a term is removed first, and the loss is computed again (BDUOL).

    The term whose removal has the largest gain is removed. It is projected on others, as far as their boxes allow: on
    none (`maintenance` "remove"); on the term nearest in feature space ("nearest"); on all terms, with coefficients
    clipped to the boxes ("approximate"); or on all terms, at the least distance within the boxes ("project"). The gain
    includes the projection, unless `cheap`. Terms whose coefficient becomes 0 are removed, too.
    """

    C: float = 1.0
    rho: float = 0.0
    maintenance: str = "nearest"
    cheap: bool = False

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(8, 0.4, 0.2, "remove"),
            cls(8, 0.4),
            cls(8, 0.4, 0.0, "approximate", True),
            cls(8, 0.4, 0.0, "project"),
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refuse_bad_steps()
        self._one_of("maintenance", "remove", "project", "approximate", "nearest")
        self._boolean("cheap")
        if self.maintenance == "remove":
            refuse_ignored(self, 'maintenance="remove"', "cheap")

    def start(self, run: Run) -> Memory:
        if self.maintenance == "remove":
            return {}
        if self.maintenance == "nearest":
            # For each slot: the slot of the nearest other term (-1: there is none), and the kernel value of the two.
            return {"nearest": np.zeros(0, np.int64), "affinity": np.zeros(0)}
        return {"K": np.zeros((0, 0)), "factor": Factor(inverse=not self.cheap, dependent=0.0)}

    def check_state(self, state: State, run: Run) -> None:
        super().check_state(state, run)
        n = len(state["basis.born"])
        if self.maintenance == "nearest":
            check_neighbours(state, n)
        elif self.maintenance != "remove":
            K = soundness.shaped(state, "budget.K", (n, n))
            soundness.require("budget.K", np.diag(K) > 0, "a matrix with a positive diagonal")
            soundness.require("budget.K", np.isclose(K, K.T, rtol=1e-6, atol=0), "symmetric")

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None or (
            f.n == self.budget and round.loss <= rounding(f)
        ):  # no term is removed for a loss that is only rounding
            return
        k, limit = round.k, limit_of(round, self.C)
        if f.n == self.budget:
            k = self._make_room(f, k, memory)
        if climb(f, round, k, limit, self.rho):
            self._admit(f, k, round.kxx, memory)

    def _make_room(self, f: Terms, k: Array, memory: Memory) -> Array:
        """Remove a term; returns the kernel row k of the remaining terms."""
        box, diagonal = Box(f), term_diagonals(f)
        # each slack y - f(x) is a difference, f(x) a sum over all terms
        sizes = np.abs(box.a) * (2 + np.abs(box.slack).max()) + box.a**2 * diagonal
        j = oldest_of_least(-self._ascents(box, diagonal, memory), f.born, sizes)
        if "K" in memory:
            v = self._share(box, j, memory)
            change = memory["K"] @ v
        else:
            v = np.zeros(f.n)
            v[j] = box.a[j]
            nearest, part = self._to_nearest(box, diagonal, memory)
            if part[j] != 0:
                v[nearest[j]] = -part[j]
            change = sum((v[i] * f.row(f.basis.row(int(i))) for i in np.flatnonzero(v)), np.zeros(f.n))
        move(f, -v, -change)
        for i in reversed(range(f.n)):
            if abs(f.coef[i, 0]) <= 1e-12 * f.basis["limit"][i, 0]:
                f.remove(i)
                k = removed(k, i)
                self._dismiss(f, i, memory)
        return k

    def _ascents(self, box: Box, diagonal: Array, memory: Memory) -> Array:
        """The gain of removing each term; with `cheap`, of removing it without projection."""
        removal = -box.a * box.slack - box.a**2 * diagonal / 2
        if self.cheap or self.maintenance == "remove":
            return np.asarray(removal)
        if self.maintenance == "nearest":
            i, part = self._to_nearest(box, diagonal, memory)
            return np.asarray(removal + part * (box.slack[i] + box.a * memory["affinity"] - part * diagonal[i] / 2))
        P = memory["factor"].inverse()
        V = np.array([self._share(box, j, memory, P[j]) for j in range(len(P))])
        return np.asarray(-V @ box.slack - ((V @ memory["K"]) * V).sum(axis=1) / 2)

    def _to_nearest(self, box: Box, diagonal: Array, memory: Memory) -> tuple[Array, Array]:
        """For every term its nearest other term, and what that one's coefficient gains if the term is removed."""
        if self.maintenance == "remove":
            return np.zeros(len(box.a), np.int64), np.zeros(len(box.a))
        i = memory["nearest"]
        part = box.a * memory["affinity"] / diagonal[i]
        return i, np.where(i < 0, 0.0, np.clip(part, box.least[i] - box.a[i], box.most[i] - box.a[i]))

    def _share(self, box: Box, j: int, memory: Memory, row: Array | None = None) -> Array:
        """The v that removes term j and projects it on the others. If row j of K^-1 is given, v is less accurate."""
        K, factor = memory["K"], memory["factor"]
        v = box.clip(box.a[j] * (residual(factor, K, j) if row is None else row / row[j]), j)
        if self.maintenance == "approximate":
            return v
        least, most = box.a - box.most, box.a - box.least
        least[j] = most[j] = box.a[j]
        return smallest_in_box(K + SOLUTION_RIDGE * np.diag(np.diag(K)), v, least, most)

    # -- the memory of kernel values and neighbours

    def _admit(self, f: Terms, k: Array, kxx: float, memory: Memory) -> None:
        """Update the memory after a term was added."""
        if "nearest" in memory:
            append_neighbour(f, np.append(k, kxx), memory)
        elif "K" in memory:
            K = memory["K"]
            memory["K"] = np.block([[K, k[:, None]], [k[None], np.array([[kxx]])]])
            memory["factor"].append(k, kxx * (1 + SOLUTION_RIDGE))

    def _dismiss(self, f: Terms, slot: int, memory: Memory) -> None:
        """Update the memory after a term was removed and the last one took its slot."""
        if "nearest" in memory:
            remove_neighbour(f, slot, memory)
        elif "K" in memory:
            order = removed(np.arange(f.n + 1), slot)
            K = memory["K"] = memory["K"][np.ix_(order, order)]
            memory["factor"].remove(slot)
            memory["factor"].refresh(lambda: K + SOLUTION_RIDGE * np.diag(np.diag(K)))


def residual(factor: Factor, K: Array, j: int) -> Array:
    """Coefficients of k(x_j, .) minus its projection on the other terms: v_j = 1, and K v is 0 at all other terms.

    Solved with the ridge, then improved by two steps of iterative refinement with K itself. In the direction of an
    eigenvalue l of K, each step leaves a share r / (l + r) of the ridge's bias, if r is the ridge: nearly nothing where
    l is far above 1e-10, half of it near 1e-10, and nearly all where K is singular.
    """
    unit = np.zeros(len(K))
    unit[j] = 1
    p, _ = factor.project(unit, 0.0)
    v = p / p[j]
    for _ in range(2):
        wrong = K @ v
        wrong[j] = 0
        q, _ = factor.project(wrong, 0.0)
        v -= q - p * (q[j] / p[j])
    return np.asarray(v)


def smallest_in_box(K: Array, v: Array, least: Array, most: Array) -> Array:
    """The v between its bounds with the least v'Kv, by an active-set method that starts at a feasible v.

    Each step goes to the minimum over the free entries, or to the first bound on the way. At a minimum, the entry at a
    bound with the steepest descent is freed.
    """
    v, free = v.copy(), (least < v) & (v < most)
    enough = 1e-14 * K.diagonal().max() * max(np.abs(least).max(), np.abs(most).max())
    for _ in range(100 + 10 * len(v)):  # ends sooner, except for kernels that are not positive definite
        step = np.zeros(len(v))
        step[free] = np.linalg.solve(K[np.ix_(free, free)], -(K @ v)[free])
        room = np.where(step > 0, most - v, v - least)
        lengths = np.divide(room, np.abs(step), out=np.full(len(v), np.inf), where=step != 0)
        first = int(np.argmin(lengths))
        if lengths[first] < 1:
            v += lengths[first] * step
            v[first] = most[first] if step[first] > 0 else least[first]
            free[first] = False
            continue
        v = np.clip(v + step, least, most)
        slope = K @ v
        wish = np.where(v < most, -slope, -np.inf)
        wish = np.maximum(wish, np.where(v > least, slope, -np.inf))
        wish[free] = 0
        first = int(np.argmax(wish))
        if wish[first] <= enough:
            break
        free[first] = True
    return v
