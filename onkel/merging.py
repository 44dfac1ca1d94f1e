"""Budgets whose terms need not be examples: two become one between them (BSGD by merging, TVM)."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onkel.basis import between
from onkel.budgets import Bounded, oldest_of_least
from onkel.kernels import Gaussian, Kernel
from onkel.losses import Loss, MarginLoss
from onkel.updates import Diverged, Memory, Round, beyond, sane

if TYPE_CHECKING:
    from onkel.hypothesis import Expansion

Array = np.ndarray[Any, np.dtype[Any]]

GRID = 400  # nodes of the table, in each direction
STEPS = 100_000  # most steps of the solver in one round; reached where `precision` is below rounding
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

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of("search", "exact", "table")

    def check(self, kernel: Kernel, loss: Loss, outputs: int) -> None:
        if not isinstance(kernel, Gaussian):
            raise ValueError(f"Merge needs a Gaussian kernel, which is known between two examples; got {kernel!r}")

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        f.append(round, coef)
        if f.n > self.budget:
            self._merge(f, round.t)

    def _merge(self, f: Expansion, t: int) -> None:
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
        join(f, m, n, h, t, f.scale * (f.coef[m] * on_m + f.coef[n] * on_n))


def join(f: Expansion, m: int, n: int, share: float, t: int, coef: Array, **named: Any) -> None:
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
    conditions, with a constant added if `bias`. What the update offers is not used.

    Take 1 < admit <= drop: support vectors sit at |f| = 1. Below 1 the rule on |f| may lock f for ever.
    """

    C: float = 1.0
    admit: float = 1.5
    drop: float = 2.0
    bias: bool = True
    precision: float = 1e-3
    by_margin: bool = False
    columns: ClassVar[tuple[str, ...]] = ("positive", "negative")  # counts by label

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive("C", "admit", "drop", "precision")
        self._finite("C", "precision")
        self._require("drop", self.drop >= self.admit, f">= admit = {self.admit:g}")
        self._boolean("bias", "by_margin")

    @property
    def intercept(self) -> bool:
        return bool(self.bias)

    def check(self, kernel: Kernel, loss: Loss, outputs: int) -> None:
        if outputs > 1 or not isinstance(loss, MarginLoss):
            raise ValueError(f"{self!r} is defined for two classes, got {outputs} outputs and {loss!r}")

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
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

    def _merge(self, f: Expansion, t: int) -> None:
        i, j = nearest_pair(f)
        count = f.basis["positive"] + f.basis["negative"]
        sums = {name: f.basis[name][i] + f.basis[name][j] for name in self.columns}
        share = float(count[i, 0] / (count[i, 0] + count[j, 0]))
        join(f, i, j, share, t, f.scale * (f.coef[i] + f.coef[j]), **sums)


def nearest_pair(f: Expansion) -> tuple[int, int]:
    """The two terms that are nearest to each other as examples; of those equal up to rounding, the oldest."""
    order = np.argsort(f.born)
    squares = np.array([f.basis.totals(f.basis.row(i))(lambda x, z: np.square(x - z)) for i in order])[:, order]
    older, younger = np.triu_indices(f.n, 1)
    values = squares[older, younger]
    best = int(np.argmax(values <= values.min() + 1e-12 * values.max()))
    return int(order[older[best]]), int(order[younger[best]])


def weighted_svm(K: Array, low: Array, high: Array, v: Array, bias: bool, precision: float) -> tuple[Array, float]:
    """The v in [low, high] of least v'Kv / 2 + sum_i |v_i - low_i - high_i|, with a bias among those of sum 0; and b.

    This is the dual of the SVM: v_i = alpha+_i - alpha-_i with 0 <= alpha+_i <= high_i and 0 <= alpha-_i <= -low_i, of
    which sum_i (alpha+_i + alpha-_i) is to be large; for a given v_i it is largest where one of them is at its top.
    Steps go along one variable, or a pair of them with a bias, those that promise most, until no condition is missed by
    more than `precision`. They begin at v.
    """
    if bias and not (low.any() and high.any()):  # one label only
        return np.zeros(len(v)), 0.0
    rise, fall = v[v > 0].sum(), -v[v < 0].sum()
    if bias and rise != fall:  # a twin has left
        v = v * np.where(v > 0, fall, rise) / max(rise, fall)
    corner = low + high
    ends = np.array([low, corner, high])
    v = np.array([settled(v[i], ends[:, i]) for i in range(len(v))])
    F, diagonal, floor = K @ v, np.diag(K), 1e-12 * np.diag(K).max()

    def to_next(i: int, up: bool) -> float:
        """Where v_i next meets a corner or a bound."""
        if up:
            return float(corner[i] if v[i] < corner[i] else high[i])
        return float(corner[i] if v[i] > corner[i] else low[i])

    for _ in range(STEPS):
        # v_i wants to rise if b < up_i, to fall if b > down_i
        up = np.where(v < high, np.where(v < corner, 1.0, -1.0) - F, -math.inf)
        down = np.where(v > low, np.where(v > corner, -1.0, 1.0) - F, math.inf)
        b = (up.max() + down.min()) / 2 if bias else 0.0
        if (up.max() - down.min() if bias else max(up.max(), -down.min())) <= precision:
            break
        if bias:
            i = first_of_largest(up, 1e-6 * precision)
            curvature = np.maximum(diagonal[i] + diagonal - 2 * K[i], floor)
            pull = np.maximum(up[i] - down, 0.0)
            gain = pull**2 / curvature
            j = first_of_largest(gain, 1e-9 * gain.max())
            moves = [(i, True), (j, False)]
        else:
            curvature, pull = np.maximum(diagonal, floor), np.maximum(np.maximum(up, -down), 0.0)
            gain = pull**2 / curvature
            j = first_of_largest(gain, 1e-9 * gain.max())
            moves = [(j, bool(up[j] > 0))]
        step = min(pull[j] / curvature[j], *(abs(to_next(k, rises) - v[k]) for k, rises in moves))
        for k, rises in moves:
            change = step if rises else -step
            v[k] = settled(v[k] + change, ends[:, k])
            F += change * K[k]
    return v, float(b)


def settled(value: float, ends: Array) -> float:
    """The value, or the bound or corner it cannot be told from: b depends on who is at one."""
    near = np.abs(ends - value) <= 1e-12 * (ends[2] - ends[0])
    return float(ends[np.argmax(near)] if near.any() else value)


def first_of_largest(values: Array, slack: float) -> int:
    """Where the largest value is; of those equal up to rounding the first."""
    return int(np.argmax(values >= values.max() - slack))
