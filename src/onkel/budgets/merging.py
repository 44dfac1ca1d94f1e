"""Budgets that merge two terms into a point between them, which need not be an example (BSGD by merging, TVM)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from onkel.budgets.base import Bounded
from onkel.budgets.svm import weighted_svm
from onkel.core import soundness
from onkel.core.basis import State, between
from onkel.core.errors import Diverged, sane
from onkel.core.outputs import Joining
from onkel.core.part import Memory, Words
from onkel.core.run import Run
from onkel.core.ties import oldest_of_least
from onkel.hypotheses.terms import Terms
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]

GRID = 400  # nodes of the `table` of weight degradations, in each direction
LATER = 0.5  # `born` of a merged point is its round plus this: it is younger than the example of that round


class Merge(Bounded):
    """Over budget, the smallest term and the best partner for it are merged into a point between them (BSGD).

    Let a_i be the coefficients, and m the term with the least |a_m|, which may be the new one. A partner n must
    have a_m . a_n > 0 (with one output: the same sign); if there is none, m is removed. The point is
    z = h x_m + (1 - h) x_n with the coefficient a_z = a_m k(x_m, z) + a_n k(x_n, z), where h in [0, 1] makes |a_z|
    largest. The partner with the least weight degradation
    WD = |a_m|^2 + |a_n|^2 + 2 k(x_m, x_n) a_m . a_n - |a_z|^2 is chosen. k must be a `Gaussian`.

    `search` finds every WD by solving for h ("exact"), or by interpolation in a table of 400 x 400 ("table"), which is
    accurate to 1e-4 (|a_m| + |a_n|)^2 and much faster. With several outputs the search is always exact. The h of the
    chosen pair is exact in both cases.
    """

    search: str = "exact"
    traits: ClassVar[tuple[str, ...]] = ("makes points",)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(8), cls(8, "table")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of("search", "exact", "table")

    @property
    def needs(self) -> Words:
        return super().needs | {"gaussian"}

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        f.append(round, coef)
        if f.n > self.budget:
            self._merge(f, round.t)

    def _merge(self, f: Terms, t: int) -> None:
        size = np.square(f.coef).sum(axis=1)
        m = oldest_of_least(size, f.born)
        along = f.coef @ f.coef[m]
        others = np.delete(np.arange(f.n), m)
        others = others[along[others] > 0]
        if len(others) == 0:
            f.remove(m)
            return
        kappa = f.row(f.basis.row(m))[others]
        if self.search == "table" and f.run.outputs == 1:
            both = f.coef[m, 0] + f.coef[others, 0]
            harm = both**2 * looked_up(f.coef[m, 0] / both, kappa)
        else:
            harm = degradation(size[m], size[others], along[others], distance_of(kappa), steps=20)
        best = oldest_of_least(harm, f.born[others], size[m] + size[others] + 2 * along[others])
        n, distance = int(others[best]), distance_of(kappa[best])
        h = 0.0 if distance == 0 else float(best_share(size[m], size[n], along[n], distance, steps=44))
        on_m, on_n = np.exp(-distance * (1 - h) ** 2), np.exp(-distance * h**2)
        merge_pair(f, m, n, h, t, f.scale * (f.coef[m] * on_m + f.coef[n] * on_n))


def merge_pair(f: Terms, m: int, n: int, share: float, t: int, coef: Array, **named: Any) -> None:
    """Replace terms m and n by one at x_n + share * (x_m - x_n), with coefficients `coef` and columns `named`."""
    z = between(f.basis.row(m), f.basis.row(n), share)
    for slot in sorted((m, n), reverse=True):
        f.remove(slot)
    f.enter(z, t + LATER, coef, **named)


def distance_of(kappa: Any) -> Array:
    """gamma |x_m - x_n|^2, from kappa = k(x_m, x_n)."""
    return np.asarray(-np.log(np.clip(kappa, np.finfo(float).tiny, 1.0)))


def best_share(mm: Any, nn: Any, mn: Any, distance: Any, steps: int) -> Array:
    """The h with the largest |a_z|, to within 2^-steps / 4; mm = |a_m|^2 <= nn = |a_n|^2, mn = a_m . a_n > 0.

    It is at most 1/2, as z is nearer to the larger term. With r = k(x_m, z) / k(x_n, z), the derivative of |a_z|^2 by h
    is proportional to (1 - h) mm r^2 + (1 - 2 h) mn r - h nn. It changes its sign exactly once in [0, 1/2], so
    bisection finds h, with one exponential per step (golden section search would take two).
    """
    h, width = np.full(np.broadcast(nn, distance).shape, 0.25), 0.125
    for _ in range(steps):
        r = np.exp(-distance * (1 - 2 * h))
        rises = (1 - h) * mm * r * r + (1 - 2 * h) * mn * r > h * nn
        h = np.where(rises, h + width, h - width)
        width /= 2
    return h


def degradation(mm: Any, nn: Any, mn: Any, distance: Any, steps: int) -> Array:
    """WD: the squared RKHS norm of the change of f by merging."""
    h = best_share(mm, nn, mn, distance, steps)
    u, v = np.exp(-distance * (1 - h) ** 2), np.exp(-distance * h**2)
    change = mm + nn + 2 * np.exp(-distance) * mn - (mm * u * u + nn * v * v + 2 * mn * u * v)
    return np.asarray(np.maximum(change, 0))


@cache
def table() -> Array:
    """WD for a_m + a_n = 1, on a grid of a_m in [0, 1/2] and kappa = k(x_m, x_n) in [0, 1].

    a_m = 1/2 (equal coefficients), the most usual case, is on the grid.
    """
    mu, kappa = np.linspace(0, 0.5, GRID)[:, None], np.linspace(0, 1, GRID)[None]
    return degradation(mu**2, (1 - mu) ** 2, mu * (1 - mu), distance_of(kappa), steps=30)


def looked_up(mu: Array, kappa: Array) -> Array:
    """WD from the table, by bilinear interpolation."""
    x, y = np.clip(2 * mu, 0, 1) * (GRID - 1), np.clip(kappa, 0, 1) * (GRID - 1)
    i, j = np.minimum(x.astype(int), GRID - 2), np.minimum(y.astype(int), GRID - 2)
    x, y, wd = x - i, y - j, table()
    return np.asarray(
        (1 - x) * ((1 - y) * wd[i, j] + y * wd[i, j + 1]) + x * ((1 - y) * wd[i + 1, j] + y * wd[i + 1, j + 1])
    )


class TwinVectors(Bounded):
    """The terms are points that stand for examples of both labels (twin vectors), and f is the SVM on them (TVM).

    Each point x_i counts the examples it stands for, by label: s+_i and s-_i are sums of sample weights. An example
    with |f(x)| <= admit (`by_margin`: y f(x) <= admit) becomes a point. Over budget, the point with the largest
    |f(x_i)| is removed if this exceeds `drop`; otherwise the two nearest points are replaced by their mean, weighted by
    counts. Then f is set to the minimiser of
    |f|^2 / 2 + C sum_i (s+_i max(0, 1 - f(x_i)) + s-_i max(0, 1 + f(x_i))). The KKT conditions hold to `precision`, or
    to rounding if that is larger. With `bias`, f has an intercept. The update must be `Defer`.

    Choose 1 < admit <= drop, as support vectors have |f| = 1. With admit < 1 and not `by_margin`, there may come a
    time after which no point is admitted.
    """

    C: float = 1.0
    admit: float = 1.5
    drop: float = 2.0
    bias: bool = True
    precision: float = 1e-3
    by_margin: bool = False
    traits: ClassVar[tuple[str, ...]] = ("own step", "input distances", "makes points")
    columns: ClassVar[Mapping[str, str]] = {"positive": "weight", "negative": "weight"}  # counts by label

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(8, 2.0),
            cls(8, 10.0, 1.05, 1.1, False, 1e-9),
            cls(8, 30.0, 1.05, 1.1, precision=1e-9, by_margin=True),
            cls(8, 0.5, 0.5, 0.8),
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive("C", "admit", "drop", "precision")
        self._finite("C", "precision")
        self._require("drop", self.drop >= self.admit, f">= admit = {self.admit:g}")
        self._boolean("bias", "by_margin")

    @property
    def needs(self) -> Words:
        return super().needs | {"leaves the step", "one output", "unit hinge"}

    @property
    def offers(self) -> Words:
        return super().offers | ({"intercept"} if self.bias else set())

    def relabel(self, columns: State, memory: State, joining: Joining) -> tuple[State, State]:
        if joining.swaps:
            columns = {"positive": columns["negative"], "negative": columns["positive"]}
        return super().relabel(columns, memory, joining)

    def check_state(self, state: State, run: Run) -> None:
        soundness.nonnegative(state, *(f"basis.{name}" for name in self.columns))
        count = state["basis.positive"] + state["basis.negative"]
        soundness.require("basis.positive", count > 0, "a weight > 0, or 'basis.negative' must be")

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        s = float(round.s[0])
        if (round.y * s if self.by_margin else abs(s)) > self.admit or round.kxx <= 0:
            return
        if not sane(self.C * round.weight):
            raise Diverged("C times the sample weight is", self.C * round.weight)
        full = f.n == self.budget
        heights = np.abs(np.append(f.scale * (f.matrix() @ f.coef[:, 0]) + f.bias[0], s)) if full else np.zeros(0)
        count = round.weight / f.scale
        f.append(round, np.zeros(1), positive=count * (round.y > 0), negative=count * (round.y <= 0))
        if full:
            far = oldest_of_least(-heights, f.born)
            if heights[far] > self.drop:
                f.remove(far)
            else:
                self._merge(f, round.t)
        positive, negative = (self.C * f.scale * f.basis[name][:, 0] for name in self.columns)
        v, b = weighted_svm(f.matrix(), -negative, positive, f.scale * f.coef[:, 0], self.bias, self.precision)
        f.change(v[:, None] / f.scale)
        f.bias[:] = b

    def _merge(self, f: Terms, t: int) -> None:
        i, j = nearest_pair(f)
        count = f.basis["positive"] + f.basis["negative"]
        sums = {name: f.basis[name][i] + f.basis[name][j] for name in self.columns}
        share = float(count[i, 0] / (count[i, 0] + count[j, 0]))
        merge_pair(f, i, j, share, t, f.scale * (f.coef[i] + f.coef[j]), **sums)


def nearest_pair(f: Terms) -> tuple[int, int]:
    """The two terms with the least distance in the space of inputs; of pairs equal up to rounding, the oldest."""
    order = np.argsort(f.born)
    squares = np.array([f.basis.totals(f.basis.row(i))(lambda x, z: np.square(x - z)) for i in order])[:, order]
    older, younger = np.triu_indices(f.n, 1)
    values = squares[older, younger]
    best = oldest_of_least(values, np.arange(len(values)))
    return int(order[older[best]]), int(order[younger[best]])
