"""Learners whose stored points are not rows of the stream: BSGD by merging (3.4) and TVM (3.5).

They take the inputs X and the gamma of a Gaussian kernel, and return the scores before each update and the
history of states: entry t is the state before example t, the last one the final state.
"""

from typing import NamedTuple

import numpy as np

from boxes.common import direction, margin
from boxes.double_update import box_qp


def gaussian(A, B, gamma):
    """exp(-gamma |a - b|^2) for all pairs of rows."""
    return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def bsgd_merge(X, y, *, gamma, outputs=1, budget, lam):
    """3.4: Pegasos; with one support vector too many the smallest is merged with another; without one, removed.

    A state is (points, coefficients). The pair is chosen at golden section's h, the merged point has the exact h.
    """
    points, a = np.zeros((0, X.shape[1])), np.zeros((0, outputs))
    scores, states = np.zeros((len(y), outputs)), [(points, a)]
    for t in range(len(y)):
        s = scores[t] = gaussian(X[t : t + 1], points, gamma)[0] @ a
        a = a * (1 - 1 / (t + 1))
        if margin(s, y[t]) < 1:
            points = np.vstack([points, X[t]])
            a = np.vstack([a, direction(s, y[t]) / (lam * (t + 1))])
        if len(a) > budget:
            points, a = with_one_less(points, a, gamma)
        states.append((points, a))
    return scores, states


def with_one_less(points, a, gamma):
    """3.4: the expansion after one merge, or one removal where no other coefficient has the same sign."""
    sizes = (a**2).sum(axis=1)
    m = int(np.argmax(sizes <= sizes.min() * (1 + 1e-9)))
    distances = gamma * ((points - points[m]) ** 2).sum(axis=1)
    same = [n for n in range(len(a)) if n != m and a[m] @ a[n] > 0]
    if not same:
        return np.delete(points, m, axis=0), np.delete(a, m, axis=0)
    n = min(same, key=lambda n: degradation(a[m], a[n], distances[n], golden_section(a[m], a[n], distances[n])))
    h = best_merge(a[m], a[n], distances[n])
    z = h * points[m] + (1 - h) * points[n]
    a_z = merged(a[m], a[n], distances[n], h)
    return np.vstack([np.delete(points, [m, n], axis=0), z]), np.vstack([np.delete(a, [m, n], axis=0), a_z])


def merged(a_m, a_n, distance, h):
    """3.4: a_z at z = h x_m + (1 - h) x_n; distance is gamma |x_m - x_n|^2, minus the logarithm of kappa."""
    return a_m * np.exp(-distance * (1 - h) ** 2) + a_n * np.exp(-distance * h**2)


def degradation(a_m, a_n, distance, h):
    """3.4: WD, the squared distance of the pair to its merger at h."""
    whole = a_m @ a_m + a_n @ a_n + 2 * np.exp(-distance) * (a_m @ a_n)
    return max(0.0, whole - np.sum(merged(a_m, a_n, distance, h) ** 2))


def golden_section(a_m, a_n, distance, tolerance=1e-4):
    """3.4: h in [0, 1/2] of the largest |a_z|, for |a_m| <= |a_n| of the same sign."""
    if distance == 0:
        return 0.0

    def value(h):
        return np.sum(merged(a_m, a_n, distance, h) ** 2)

    ratio = (np.sqrt(5) - 1) / 2
    low, high = 0.0, 0.5
    while high - low > tolerance:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if value(left) >= value(right):
            high = right
        else:
            low = left
    return (low + high) / 2


def best_merge(a_m, a_n, distance):
    """3.4: golden section's h polished to 1e-10 and beyond, as the zero of the slope of |a_z|^2 next to it."""
    if distance == 0:
        return 0.0

    def slope(h):
        on_m, on_n = np.exp(-distance * (1 - h) ** 2), np.exp(-distance * h**2)
        return merged(a_m, a_n, distance, h) @ ((1 - h) * on_m * a_m - h * on_n * a_n)

    h, width = golden_section(a_m, a_n, distance), 1e-4
    low, high = max(0.0, h - width), min(0.5, h + width)
    while low > 0 and slope(low) <= 0:
        width *= 2
        low = max(0.0, h - width)
    while high < 0.5 and slope(high) >= 0:
        width *= 2
        high = min(0.5, h + width)
    while high - low > 1e-13:
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return (low + high) / 2


def best_merge_on_grid(a_m, a_n, distance, low=0.0, high=1.0, size=10001):
    """(h, WD) of the best h of a grid; for tests."""
    grid = np.linspace(low, high, size)[:, None]
    sizes = np.sum(merged(a_m, a_n, distance, grid) ** 2, axis=1)
    h = grid[int(np.argmax(sizes)), 0]
    return h, degradation(a_m, a_n, distance, h)


class Twins(NamedTuple):
    """3.5: the state of TVM. Columns of counts and weights: the positive label, the negative one."""

    points: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    b: float
    accepted: int
    dropped: int

    def scores(self, A, gamma):
        """f of every row of A."""
        return gaussian(A, self.points, gamma) @ (self.weights[:, 0] - self.weights[:, 1]) + self.b


def tvm(X, y, *, gamma, budget, C, admit, drop, bias=True, margin_rule=False, spare_new=False):
    """3.5: hold the examples near the boundary as twins, drop or merge one too many, solve the SVM again.

    margin_rule admits on y f <= admit instead of abs(f) <= admit (X). spare_new never drops the new twin, which
    matters under margin_rule only.
    """
    state = Twins(np.zeros((0, X.shape[1])), np.zeros((0, 2), dtype=int), np.zeros((0, 2)), 0.0, 0, 0)
    scores, states = np.zeros((len(y), 1)), [state]
    for t in range(len(y)):
        s = scores[t, 0] = state.scores(X[t : t + 1], gamma)[0]
        if (y[t] * s if margin_rule else abs(s)) <= admit:
            points = np.vstack([state.points, X[t]])
            counts = np.vstack([state.counts, [y[t] > 0, y[t] < 0]])
            dropped = state.dropped
            if len(points) > budget:
                heights = np.abs(state.scores(points, gamma))
                heights[-1] = 0 if spare_new else abs(s)
                if heights.max() > drop:
                    far = int(np.argmax(heights))
                    dropped += int(counts[far].sum())
                    points, counts = np.delete(points, far, axis=0), np.delete(counts, far, axis=0)
                else:
                    points, counts = twins_merged(points, counts)
            weights, b = weighted_svm(gaussian(points, points, gamma), counts, C, bias)
            state = Twins(points, counts, weights, b, state.accepted + 1, dropped)
        states.append(state)
    return scores, states


def twins_merged(points, counts):
    """3.5: the nearest pair, the oldest on ties, becomes its weighted mean, placed last."""
    pairs = [(i, j) for i in range(len(points)) for j in range(i + 1, len(points))]
    i, j = min(pairs, key=lambda pair: np.sum((points[pair[0]] - points[pair[1]]) ** 2))
    n_i, n_j = counts[i].sum(), counts[j].sum()
    x = (n_i * points[i] + n_j * points[j]) / (n_i + n_j)
    both = counts[i] + counts[j]
    return np.vstack([np.delete(points, [i, j], axis=0), x]), np.vstack([np.delete(counts, [i, j], axis=0), both])


def weighted_svm(K, counts, C, bias):
    """3.5: the weights in [0, C counts] that maximise the dual, and b: 0 while there is one label only."""
    n = len(K)
    labels = np.repeat([1.0, -1.0], n)
    upper = C * counts.T.ravel().astype(float)
    Q = np.outer(labels, labels) * np.tile(K, (2, 2))
    x = box_qp(Q, np.ones(2 * n), np.zeros(2 * n), upper, labels if bias else None)
    weights = x.reshape(2, n).T
    b = best_offset(K @ (weights[:, 0] - weights[:, 1]), counts) if bias and (counts.sum(axis=0) > 0).all() else 0.0
    return weights, b


def best_offset(f, counts):
    """3.5: the middle of all b of least loss, a line between those where an example has f + b = y.

    A weight strictly inside its box leaves one such b. Which weights are inside is not asked: where all are at their
    bounds, or meet them by chance, rounding would answer.
    """
    at = np.concatenate([(1 - f)[counts[:, 0] > 0], (-1 - f)[counts[:, 1] > 0]])
    losses = np.maximum(1 - f - at[:, None], 0) @ counts[:, 0] + np.maximum(1 + f + at[:, None], 0) @ counts[:, 1]
    best = at[losses <= losses.min() + 1e-12 * counts.sum() * (1 + np.abs(f).max())]
    return (best.min() + best.max()) / 2


def offsets(K, weights, counts, C, tolerance):
    """3.5: the largest lower and the smallest upper bound that the KKT conditions put on b; for tests.

    Weights strictly inside their boxes, by more than the tolerance, bound it from both sides.
    """
    target = np.array([1.0, -1.0]) - (K @ (weights[:, 0] - weights[:, 1]))[:, None]
    held = counts > 0
    positive = np.array([True, False])
    below, above = weights < C * counts - tolerance, weights > tolerance
    lower, upper = held & np.where(positive, below, above), held & np.where(positive, above, below)
    return target[lower].max(initial=-np.inf), target[upper].min(initial=np.inf)


def kkt_violation(K, weights, counts, C, b, tolerance=1e-9):
    """3.5: by how much the worst held example misses its KKT condition; for tests."""
    f = K @ (weights[:, 0] - weights[:, 1]) + b
    worst = 0.0
    for column, label in enumerate((1, -1)):
        for i in range(len(K)):
            weight, top, loss = weights[i, column], C * counts[i, column], 1 - label * f[i]
            if top > 0:
                worst = max(worst, loss if weight < top - tolerance else 0.0, -loss if weight > tolerance else 0.0)
    return worst
