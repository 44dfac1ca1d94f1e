"""The support vector machine on weighted points that twin vectors (TVM) solve in every round."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

Array = np.ndarray[Any, np.dtype[Any]]

LAPS = 1000  # bounds the time of a round; hard problems take fifty
EPSILON = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)
SETTLED = 1e-13  # how near to an end a weight stops there, relative to the largest weight of the round
BALANCED = 1e-12  # relative too: sums that differ by less are equal but for rounding


def weighted_svm(K: Array, low: Array, high: Array, v: Array, bias: bool, precision: float) -> tuple[Array, float]:
    """Returns the v in [low, high] that minimises v'Kv / 2 + sum_i |v_i - low_i - high_i|, and the bias b.

    With `bias`, v is subject to sum_i v_i = 0; without, b is 0.
    This is the dual of the SVM: v_i = alpha+_i - alpha-_i with 0 <= alpha+_i <= high_i and 0 <= alpha-_i <= -low_i, of
    which sum_i (alpha+_i + alpha-_i) is to be large; for a given v_i it is largest where one of them is at its top.
    It begins at v. Steps along one or two weights and, where these are slow, exact solutions for all free ones take
    turns until no condition is missed by more than `precision`, or than rounding where that is more.
    """
    if bias and not (low.any() and high.any()):  # one label only
        return np.zeros(len(v)), 0.0
    v = np.clip(v, low, high)
    rise, fall = v[v > 0].sum(), -v[v < 0].sum()
    if bias and abs(rise - fall) > BALANCED * max(rise, fall):  # a twin has left
        v = v * np.where(v > 0, fall, rise) / max(rise, fall)
    svm = WeightedSvm(K, low, high, v, bias, precision)
    for _ in range(LAPS):
        svm.take_steps()
        if svm.is_solved():
            break
        svm.solve_free()
    return svm.v, svm.constant() if bias else 0.0


class WeightedSvm:
    """The weights v on the way to their optimum, and F = Kv."""

    def __init__(self, K: Array, low: Array, high: Array, v: Array, bias: bool, precision: float) -> None:
        self.K, self.low, self.high, self.bias, self.precision = K, low, high, bias, precision
        self.corner = low + high
        self.diagonal = np.diag(K)
        self.v, self.F = v, K @ v
        self.size = float(np.abs(v).max())  # the largest weight there has been

    def take_steps(self) -> None:
        """Those along one weight or a pair of them that promise most; at most as many as there are weights."""
        floor = max(1e-12 * self.diagonal.max(), TINY)
        for _ in self.v:
            up, down = self._wishes()
            if not self._missed(up, down) > self._attainable():
                return
            if self.bias:
                i = first_of_largest(up, 1e-6 * self.precision)
                curvature = np.maximum(self.diagonal[i] + self.diagonal - 2 * self.K[i], floor)
                pull = np.maximum(up[i] - down, 0.0)
            else:
                curvature, pull = np.maximum(self.diagonal, floor), np.maximum(np.maximum(up, -down), 0.0)
            gain = pull**2 / curvature
            j = first_of_largest(gain, 1e-9 * gain.max())
            moved = np.array([i, j] if self.bias else [j])
            sign = np.array([1.0, -1.0] if self.bias else [1.0 if up[j] > 0 else -1.0])
            change = sign * min(pull[j] / curvature[j], self._room(moved, sign).min())
            self._move(moved, change)
            self.F += change @ self.K[moved]

    def solve_free(self) -> None:
        """To the best v in which only weights between their ends have changed; those that meet an end stay there."""
        while True:
            free = np.flatnonzero((self.v > self.low) & (self.v < self.high) & (self.v != self.corner))
            if len(free) <= self.bias:  # with a bias no weight moves alone
                return
            change, gain = self._newton(free)
            if not gain > 0:
                return
            too_far = float((np.abs(change) / self._room(free, change)).max())
            self._move(free, change / max(too_far, 1.0))
            self.F = self.K @ self.v
            if too_far <= 1:
                return

    def is_solved(self) -> bool:
        return not self._missed(*self._wishes()) > self._attainable()

    def constant(self) -> float:
        """b: the middle of all that make the loss sum_i high_i max(0, 1 - F_i - b) - low_i max(0, 1 + F_i + b) least.

        The slope of the loss begins at -sum_i high_i, and grows by high_i at 1 - F_i and by -low_i at -1 - F_i: b is a
        weighted median of these numbers, which rounding moves no further than it moves them. A rule that asks which
        weights are at a bound would hang on their last digits.
        """
        at, rises = np.concatenate([1 - self.F, -1 - self.F]), np.concatenate([self.high, -self.low])
        order = np.argsort(at)
        slope, nothing = np.cumsum(rises[order]) - self.high.sum(), BALANCED * self.high.sum()
        return float(at[order[np.argmax(slope >= -nothing)]] + at[order[np.argmax(slope > nothing)]]) / 2

    def _wishes(self) -> tuple[Array, Array]:
        """v_i wants to rise if b < up_i, to fall if b > down_i."""
        up = np.where(self.v < self.high, np.where(self.v < self.corner, 1.0, -1.0) - self.F, -math.inf)
        down = np.where(self.v > self.low, np.where(self.v > self.corner, -1.0, 1.0) - self.F, math.inf)
        return up, down

    def _missed(self, up: Array, down: Array) -> float:
        """The largest violation of an optimality condition."""
        most, least = float(up.max()), float(down.min())
        return most - least if self.bias else max(most, -least)

    def _attainable(self) -> float:
        return max(self.precision, len(self.v) * EPSILON * float(self.diagonal.max() * np.abs(self.v).sum()))

    def _ends(self, i: Array, change: Array) -> Array:
        """Where these weights next meet a corner or a bound."""
        v, corner = self.v[i], self.corner[i]
        above, below = np.where(v < corner, corner, self.high[i]), np.where(v > corner, corner, self.low[i])
        return np.where(change > 0, above, below)

    def _room(self, i: Array, change: Array) -> Array:
        return np.asarray(np.abs(self._ends(i, change) - self.v[i]))

    def _move(self, i: Array, change: Array) -> None:
        ends, v = self._ends(i, change), self.v[i] + change
        self.size = max(self.size, float(np.abs(v).max()))
        self.v[i] = np.where(np.abs(ends - v) <= SETTLED * self.size, ends, v)

    def _newton(self, free: Array) -> tuple[Array, float]:
        """The step to the optimum of these weights, the others as they are, and by how much f gains at first.

        Their matrix may be singular. Where it is flat the step is long, and an end stops it.
        """
        K, pull = self.K[np.ix_(free, free)], np.where(self.v < self.corner, 1.0, -1.0)[free] - self.F[free]
        ridge = max(len(free) * EPSILON * K.trace(), TINY)
        if not self.bias:
            change = solve(K, pull, ridge)
            return change, float(pull @ change)
        K, pull = K[:-1, :-1] - K[-1, :-1] - K[:-1, -1:] + K[-1, -1], pull[:-1] - pull[-1]  # the last one pays
        change = solve(K, pull, ridge)
        return np.append(change, -change.sum()), float(pull @ change)


def solve(K: Array, y: Array, ridge: float) -> Array:
    """(K + ridge)^-1 y, with a larger ridge where this one, of the size of rounding, leaves K without a factor."""
    while ridge < math.inf:
        try:
            return np.asarray(cho_solve((np.linalg.cholesky(K + ridge * np.eye(len(K))), True), y))
        except np.linalg.LinAlgError:
            ridge *= 10
    return np.zeros(len(y))


def first_of_largest(values: Array, slack: float) -> int:
    """Where the largest value is; of those equal up to rounding the first."""
    return int(np.argmax(values >= values.max() - slack))
