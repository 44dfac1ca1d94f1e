"""The weighted support vector machine that `TwinVectors` (TVM) solves in every round."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from onkel.core.errors import Diverged, sane

Array = np.ndarray[Any, np.dtype[Any]]

LAPS = 1000  # most iterations in a round; hard problems take about 50
EPSILON = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)
SETTLED = 1e-13  # a weight within this times the largest of a bound or corner (see `WeightedSvm`) is set to it
BALANCED = 1e-12  # sums whose relative difference is less are equal except for rounding


def weighted_svm(K: Array, low: Array, high: Array, v: Array, bias: bool, precision: float) -> tuple[Array, float]:
    """Returns the v in [low, high] that minimises v'Kv / 2 + sum_i |v_i - low_i - high_i|, and the intercept b.

    With `bias`, the v_i must also sum to 0; without `bias`, b is 0.
    This is the dual of the SVM with v_i = alpha+_i - alpha-_i, 0 <= alpha+_i <= high_i and 0 <= alpha-_i <= -low_i.
    The dual maximises sum_i (alpha+_i + alpha-_i) - v'Kv / 2. For a given v_i the largest
    alpha+_i + alpha-_i is high_i - low_i - |v_i - low_i - high_i|. The argument v is the starting point. SMO steps and
    Newton steps on the free weights take turns until no KKT condition is violated by more than `precision`, or than
    rounding if that is larger.
    """
    if bias and not (low.any() and high.any()):  # one label only
        return np.zeros(len(v)), 0.0
    v = np.clip(v, low, high)
    rise, fall = v[v > 0].sum(), -v[v < 0].sum()
    if bias and abs(rise - fall) > BALANCED * max(rise, fall):  # a point was removed: make the sums equal
        v = v * np.where(v > 0, fall, rise) / max(rise, fall)
    svm = WeightedSvm(K, low, high, v, bias, precision)
    for _ in range(LAPS):
        svm.take_steps()
        if svm.is_solved():
            break
        svm.solve_free()
    if not sane(svm.F):
        raise Diverged("the score of a term is", svm.F)
    return svm.v, svm.constant() if bias else 0.0


class WeightedSvm:
    """The current weights v and F = Kv. The objective has a kink at the corner low_i + high_i of each weight."""

    def __init__(self, K: Array, low: Array, high: Array, v: Array, bias: bool, precision: float) -> None:
        self.K, self.low, self.high, self.bias, self.precision = K, low, high, bias, precision
        self.corner = low + high
        self.diagonal = np.diag(K)
        self.v, self.F = v, K @ v
        self.size = float(np.abs(v).max())  # the largest |v_i| so far

    def take_steps(self) -> None:
        """SMO steps, each on one weight or, with a bias, on a pair chosen by its gain; at most len(v) steps."""
        floor = max(1e-12 * self.diagonal.max(), TINY)
        for _ in self.v:
            up, down = self._kkt_bounds()
            if not self._violation(up, down) > self._tolerance():
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
        """Newton steps on the free weights, until none is needed; a weight that meets a bound or corner stays there."""
        for _ in range(len(self.v) + 1):  # every turn but the last fixes a weight
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
        return not self._violation(*self._kkt_bounds()) > self._tolerance()

    def constant(self) -> float:
        """b: the midpoint of the minimisers of the loss sum_i high_i max(0, 1 - F_i - b) - low_i max(0, 1 + F_i + b).

        As b grows, the slope of this loss starts at -sum_i high_i and increases by high_i at 1 - F_i and by -low_i at
        -1 - F_i. So b is a weighted median of these numbers, and rounding changes b no more than these numbers. The
        usual rule, which computes b from the weights that are not at a bound, would depend on their last digits.
        """
        at, rises = np.concatenate([1 - self.F, -1 - self.F]), np.concatenate([self.high, -self.low])
        order = np.argsort(at)
        slope, nothing = np.cumsum(rises[order]) - self.high.sum(), BALANCED * self.high.sum()
        return float(at[order[np.argmax(slope >= -nothing)]] + at[order[np.argmax(slope > nothing)]]) / 2

    def _kkt_bounds(self) -> tuple[Array, Array]:
        """The bounds of the KKT conditions: v_i should increase if b < up_i, and decrease if b > down_i."""
        up = np.where(self.v < self.high, np.where(self.v < self.corner, 1.0, -1.0) - self.F, -math.inf)
        down = np.where(self.v > self.low, np.where(self.v > self.corner, -1.0, 1.0) - self.F, math.inf)
        return up, down

    def _violation(self, up: Array, down: Array) -> float:
        """The largest violation of a KKT condition."""
        most, least = float(up.max()), float(down.min())
        return most - least if self.bias else max(most, -least)

    def _tolerance(self) -> float:
        """The violation that counts as none: `precision`, or the rounding of F if that is larger."""
        return max(self.precision, len(self.v) * EPSILON * float(self.diagonal.max() * np.abs(self.v).sum()))

    def _ends(self, i: Array, change: Array) -> Array:
        """The next corner or bound of these weights in the direction of the change."""
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
        """The Newton step of the free weights with the others fixed, and how fast the objective falls along it.

        The matrix may be singular; then the step may be long, and is stopped at a corner or bound.
        """
        K, pull = self.K[np.ix_(free, free)], np.where(self.v < self.corner, 1.0, -1.0)[free] - self.F[free]
        ridge = max(len(free) * EPSILON * K.trace(), TINY)
        if not self.bias:
            change = solve(K, pull, ridge)
            return change, float(pull @ change)
        # The last free weight changes by minus the sum of the other changes, so that sum_i v_i stays 0.
        K, pull = K[:-1, :-1] - K[-1, :-1] - K[:-1, -1:] + K[-1, -1], pull[:-1] - pull[-1]
        change = solve(K, pull, ridge)
        return np.append(change, -change.sum()), float(pull @ change)


def solve(K: Array, y: Array, ridge: float) -> Array:
    """(K + ridge)^-1 y; the ridge (jitter, of the size of rounding) is enlarged if the Cholesky factorisation fails."""
    while ridge < math.inf:
        try:
            return np.asarray(cho_solve((np.linalg.cholesky(K + ridge * np.eye(len(K))), True), y))
        except np.linalg.LinAlgError:
            ridge *= 10
    return np.zeros(len(y))


def first_of_largest(values: Array, slack: float) -> int:
    """The index of the largest value; the first of several that are equal up to rounding."""
    return int(np.argmax(values >= values.max() - slack))
