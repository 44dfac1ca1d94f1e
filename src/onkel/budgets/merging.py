"""Budgets whose terms need not be examples: two become one between them (BSGD by merging, TVM)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from onkel.budgets.base import Bounded
from onkel.budgets.svm import weighted_svm
from onkel.core.basis import State, between
from onkel.core.errors import Diverged, beyond, sane
from onkel.core.outputs import Joining
from onkel.core.part import Memory, Words
from onkel.core.ties import oldest_of_least
from onkel.hypotheses.terms import Terms
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]

GRID = 400  # nodes of the table, in each direction
LATER = 0.5  # a made row is born after the example of its round


class Merge(Bounded):
    """Over budget, the smallest term and the one that suits it best become one term between them (BSGD).

    Of all terms, the new one included, m is that of least |a|. For any other n of the same sign (several outputs:
    a_m . a_n > 0) let z = h x_m + (1 - h) x_n with the h of the largest |a_z|, a_z = a_m k(x_m, z) + a_n k(x_n, z).
    The n of the least degradation WD = |a_m|^2 + |a_n|^2 + 2 k(x_m, x_n) a_m . a_n - |a_z|^2 is taken, and the pair
    replaced by a_z k(z, .). Where there is no such n, m leaves. k must be a `Gaussian`.

    `search` finds every WD by solving for h ("exact"), or by interpolation in a table of 400 x 400 ("table"), good to
    1e-4 (|a_m| + |a_n|)^2 and much faster. The table is for one output; several are always searched exactly. The h of
    the pair taken is exact either way.
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
        best = oldest_of_least(harm, f.born[others], size[m])
        n, distance = int(others[best]), distance_of(kappa[best])
        h = 0.0 if distance == 0 else float(best_share(size[m], size[n], along[n], distance, steps=44))
        on_m, on_n = np.exp(-distance * (1 - h) ** 2), np.exp(-distance * h**2)
        merge_pair(f, m, n, h, t, f.scale * (f.coef[m] * on_m + f.coef[n] * on_n))


def merge_pair(f: Terms, m: int, n: int, share: float, t: int, coef: Array, **named: Any) -> None:
    """Terms m and n become one with these values, at x_n + share * (x_m - x_n)."""
    z = between(f.basis.row(m), f.basis.row(n), share)
    for slot in sorted((m, n), reverse=True):
        f.remove(slot)
    f.enter(z, t + LATER, coef, **named)


def distance_of(kappa: Any) -> Array:
    """gamma |x_m - x_n|^2."""
    return np.asarray(-np.log(np.clip(kappa, np.finfo(float).tiny, 1.0)))


def best_share(mm: Any, nn: Any, mn: Any, distance: Any, steps: int) -> Array:
    """The h in [0, 1/2] of the largest |a_z|, to 2^-steps / 4; mm = |a_m|^2 <= nn = |a_n|^2, mn = a_m . a_n > 0.

    The slope of |a_z|^2 changes its sign there and nowhere else in [0, 1/2], so halving the interval finds it (with one
    exponential a step, where golden section takes two). With r = k(x_m, z) / k(x_n, z) the slope is proportional to
    (1 - h) mm r^2 + (1 - 2 h) mn r - h nn.
    """
    h, width = np.full(np.broadcast(nn, distance).shape, 0.25), 0.125
    for _ in range(steps):
        r = np.exp(-distance * (1 - 2 * h))
        rises = (1 - h) * mm * r * r + (1 - 2 * h) * mn * r > h * nn
        h = np.where(rises, h + width, h - width)
        width /= 2
    return h


def degradation(mm: Any, nn: Any, mn: Any, distance: Any, steps: int) -> Array:
    """WD: by how much, squared, merging changes f."""
    h = best_share(mm, nn, mn, distance, steps)
    u, v = np.exp(-distance * (1 - h) ** 2), np.exp(-distance * h**2)
    change = mm + nn + 2 * np.exp(-distance) * mn - (mm * u * u + nn * v * v + 2 * mn * u * v)
    return np.asarray(np.maximum(change, 0))


@cache
def table() -> Array:
    """WD at a_m + a_n = 1, by a_m in [0, 1/2] and kappa in [0, 1]; equal coefficients, the usual case, are a border."""
    mu, kappa = np.linspace(0, 0.5, GRID)[:, None], np.linspace(0, 1, GRID)[None]
    return degradation(mu**2, (1 - mu) ** 2, mu * (1 - mu), distance_of(kappa), steps=30)


def looked_up(mu: Array, kappa: Array) -> Array:
    """The same between the nodes, bilinearly."""
    x, y = np.clip(2 * mu, 0, 1) * (GRID - 1), np.clip(kappa, 0, 1) * (GRID - 1)
    i, j = np.minimum(x.astype(int), GRID - 2), np.minimum(y.astype(int), GRID - 2)
    x, y, wd = x - i, y - j, table()
    return np.asarray(
        (1 - x) * ((1 - y) * wd[i, j] + y * wd[i, j + 1]) + x * ((1 - y) * wd[i + 1, j] + y * wd[i + 1, j + 1])
    )


class TwinVectors(Bounded):
    """The terms are twins, points that stand for examples of both labels, and f is the SVM on them (TVM).

    A twin counts the examples it stands for, by label (s+ and s-, sums of sample weights). An example with
    |f(x)| <= admit (`by_margin`: y f(x) <= admit) becomes a twin. If that is one too many, the twin of the largest |f|
    is dropped if that exceeds `drop`, else the nearest pair becomes its mean, weighted by counts. Then f minimises
    |f|^2 / 2 + C sum_i (s+_i max(0, 1 - f(x_i)) + s-_i max(0, 1 + f(x_i))), to `precision` in its optimality
    conditions (to rounding where that is more), with a constant added if `bias`. The update must leave the step to it.

    Take 1 < admit <= drop: support vectors sit at |f| = 1. Below 1 the rule on |f| may lock f for ever.
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
        return super().needs | {"leaves the step", "two classes", "unit hinge"}

    @property
    def offers(self) -> Words:
        return super().offers | ({"intercept"} if self.bias else set())

    def relabel(self, columns: State, memory: State, joining: Joining) -> tuple[State, State]:
        if joining.swaps:
            columns = {"positive": columns["negative"], "negative": columns["positive"]}
        return super().relabel(columns, memory, joining)

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        s = float(round.s[0])
        if (round.y * s if self.by_margin else abs(s)) > self.admit or round.kxx <= 0:
            return
        if not sane(self.C * round.weight):
            raise Diverged(beyond("C times the sample weight is", self.C * round.weight))
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
    """The two terms that are nearest to each other as examples; of those equal up to rounding, the oldest."""
    order = np.argsort(f.born)
    squares = np.array([f.basis.totals(f.basis.row(i))(lambda x, z: np.square(x - z)) for i in order])[:, order]
    older, younger = np.triu_indices(f.n, 1)
    values = squares[older, younger]
    best = int(np.argmax(values <= values.min() + 1e-12 * values.max()))
    return int(order[older[best]]), int(order[younger[best]])
