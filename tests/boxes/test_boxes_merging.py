"""The transcriptions that merge, BSGD and TVM, keep the tests of their sections."""

import itertools

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize

from boxes import gradients, live, scores, support_size
from boxes.common import direction, margin, norm
from boxes.crowded import GAMMA, changed, stream, with_duplicates
from boxes.double_update import (
    box_qp,
)
from boxes.merging import (
    best_merge,
    best_merge_on_grid,
    best_offset,
    bsgd_merge,
    degradation,
    gaussian,
    golden_section,
    kkt_violation,
    merged,
    offsets,
    tvm,
    weighted_svm,
    with_one_less,
)
from boxes.projections import (
    bsgd_project,
)

pytestmark = pytest.mark.rounding

# BSGD by projection and by merging (3.4)


@pytest.mark.parametrize("classes", [None, 3])
def test_bsgd_with_room_is_pegasos(classes):
    X, y, K = stream(classes=classes, d=3)
    outputs = classes or 1
    F = gradients.pegasos(K, y, outputs=outputs, lam=0.1)
    assert np.array_equal(bsgd_project(K, y, outputs=outputs, budget=len(y), lam=0.1), F)
    ours, states = bsgd_merge(X, y, gamma=GAMMA, outputs=outputs, budget=len(y), lam=0.1)
    assert ours == pytest.approx(scores(K, F), abs=1e-10)
    assert len(states[-1][0]) == support_size(F)[-1]


@pytest.mark.parametrize("classes", [None, 3])
def test_bsgd_projection_keeps_the_scores_of_those_kept(classes):
    _, y, K = stream(classes=classes)
    F = bsgd_project(K, y, outputs=classes or 1, budget=8, lam=0.1)
    assert support_size(F).max() == 8
    for t in changed(F)[1:]:
        s = K[t] @ F[t]
        f = F[t] * (1 - 1 / (t + 1))
        if margin(s, y[t]) < 1:
            f[t] = direction(s, y[t]) / (0.1 * (t + 1))
        sizes = np.sum(f**2, axis=1)[np.any(f != 0, axis=1)]
        S = np.flatnonzero(live(F)[t + 1])
        assert K[S] @ F[t + 1] == pytest.approx(K[S] @ f, abs=1e-8)
        if len(sizes) == 9:
            gone = np.setdiff1d(np.flatnonzero(np.any(f != 0, axis=1)), S)
            assert np.sum(f[gone] ** 2) == pytest.approx(sizes.min(), rel=1e-8)


def test_bsgd_projects_duplicates():
    _, y, K = with_duplicates()
    F = bsgd_project(K, y, budget=60, lam=0.1)
    assert support_size(F).max() <= 12
    assert scores(K, F) == pytest.approx(scores(K, gradients.pegasos(K, y, lam=0.1)), abs=1e-8)


def coefficient_pairs(seed, outputs, count):
    """Pairs of the same sign, the first not the larger, and their distances, small and large."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        a_m, a_n = sorted(rng.normal(size=(2, outputs)), key=np.linalg.norm)
        a_n = a_n if a_m @ a_n > 0 else -a_n
        yield a_m, a_n, 10 ** rng.uniform(-2, 1.3)


def test_merge_is_the_best_of_a_fine_grid():
    for a_m, a_n, distance in itertools.chain(coefficient_pairs(0, 1, 60), [(np.ones(1), np.ones(1), 1.9)]):
        h, cost = best_merge_on_grid(a_m, a_n, distance, size=2001)
        ours = best_merge(a_m, a_n, distance)
        assert 0 <= ours <= 0.5
        assert degradation(a_m, a_n, distance, ours) <= cost + 1e-12
        assert degradation(a_m, a_n, distance, ours) >= cost - 1e-5 * (a_m @ a_m + a_n @ a_n)
        assert min(abs(h - ours), abs(1 - h - ours)) <= 1e-3
        assert abs(golden_section(a_m, a_n, distance) - ours) <= 1e-3
        assert degradation(a_m, a_n, distance, ours) <= a_m @ a_m + 1e-12
        left, right = (merged(a_m, a_n, distance, ours + step)[0] ** 2 for step in (-1e-6, 1e-6))
        assert (right - left) / 2e-6 == pytest.approx(0, abs=1e-5)


def test_vector_merge_is_stationary_and_beats_removal():
    for a_m, a_n, distance in coefficient_pairs(1, 3, 60):
        _, cost = best_merge_on_grid(a_m, a_n, distance, size=1001)
        ours = degradation(a_m, a_n, distance, best_merge(a_m, a_n, distance))
        assert ours <= cost + 1e-12
        assert ours <= a_m @ a_m + 1e-12


def test_equal_coefficients_merge_in_the_middle_up_to_e2():
    one = np.ones(1)
    for distance in (0.01, 0.5, 1.0, 1.9):
        assert best_merge(one, one, distance) == pytest.approx(0.5, abs=1e-9)
    assert best_merge(one, one, 2.5) < 0.4
    assert best_merge(one, one, 1e5) == pytest.approx(0, abs=1e-9)
    assert degradation(one, one, 1e5, best_merge(one, one, 1e5)) == pytest.approx(1)


@pytest.mark.parametrize("classes", [None, 3])
def test_bsgd_merge_replaces_the_cheapest_pair(classes):
    X, y, _ = stream(classes=classes, rounds=70)
    S, states = bsgd_merge(X, y, gamma=GAMMA, outputs=classes or 1, budget=7, lam=0.1)
    assert max(len(a) for _, a in states) == 7
    merges = 0
    for t in range(len(y)):
        (points, a), (after, a_after) = states[t], states[t + 1]
        s = gaussian(X[t : t + 1], points, GAMMA)[0] @ a
        assert S[t] == pytest.approx(s, abs=1e-12)
        if len(a) < 7 or margin(s, y[t]) >= 1:
            continue
        points = np.vstack([points, X[t]])
        a = np.vstack([a * (1 - 1 / (t + 1)), direction(s, y[t]) / (0.1 * (t + 1))])
        sizes = np.sum(a**2, axis=1)
        m = int(np.flatnonzero(sizes <= sizes.min() * (1 + 1e-9))[0])
        costs = {}
        for n in range(8):
            if n != m and a[m] @ a[n] > 0:
                distance = GAMMA * np.sum((points[m] - points[n]) ** 2)
                costs[n] = best_merge_on_grid(a[m], a[n], distance, 0, 0.5, 501)[1]
        if not costs:
            assert np.allclose(after, np.delete(points, m, axis=0))
            continue
        merges += 1
        n = min(costs, key=costs.get)
        assert np.allclose(after[:-1], np.delete(points, [m, n], axis=0))
        assert np.allclose(a_after[:-1], np.delete(a, [m, n], axis=0))
        h = (after[-1] - points[n]) @ (points[m] - points[n]) / np.sum((points[m] - points[n]) ** 2)
        assert 0 <= h <= 0.5 + 1e-12
        assert after[-1] == pytest.approx(h * points[m] + (1 - h) * points[n])
        both, c = np.vstack([points, after]), np.vstack([a, -a_after])
        assert norm(gaussian(both, both, GAMMA), c) ** 2 == pytest.approx(costs[n], abs=1e-4 * sizes[m])
    assert merges > 10


def test_merging_duplicates_costs_nothing():
    points = np.array([[0.0, 1], [2, 0], [0, 1.01], [0, 1], [0, 1]])
    a = np.array([[1.0], [2], [5], [-3], [2]])
    after, a_after = with_one_less(points, a, GAMMA)
    assert np.array_equal(after, points[[1, 2, 3, 0]])
    assert np.array_equal(a_after, [[2], [5], [-3], [3]])
    after, a_after = with_one_less(points[:2], a[:2] * [[1], [-1]], GAMMA)
    assert np.array_equal(after, points[1:2])
    assert np.array_equal(a_after, [[-2]])


# TVM (3.5)


def test_qp_is_that_of_scipy():
    rng = np.random.default_rng(5)
    for case in range(40):
        n = int(rng.integers(2, 9))
        B = rng.normal(size=(n + 2, n))
        Q, c = B.T @ B, 2 * rng.normal(size=n)
        lower, upper = -rng.uniform(0, 1, size=n), rng.uniform(0, 1, size=n)
        lower[rng.random(n) < 0.3] = 0
        normal = None if case % 2 else np.where(rng.random(n) < 0.5, 1.0, -1.0)
        x = box_qp(Q, c, lower, upper, normal)
        assert (x >= lower).all()
        assert (x <= upper).all()
        L = np.linalg.cholesky(Q)
        if normal is None:
            other = lsq_linear(L.T, np.linalg.solve(L, c), (lower, upper + 1e-300), method="bvls", tol=1e-14).x
            assert x == pytest.approx(other, abs=1e-8)
        else:
            assert normal @ x == pytest.approx(0, abs=1e-12)
            constraint = {"type": "eq", "fun": lambda x, normal=normal: normal @ x}
            other = minimize(
                lambda x, Q=Q, c=c: x @ Q @ x / 2 - c @ x,
                np.zeros(n),
                jac=lambda x, Q=Q, c=c: Q @ x - c,
                bounds=list(zip(lower, upper, strict=True)),
                constraints=[constraint],
                method="SLSQP",
                options={"ftol": 1e-15, "maxiter": 500},
            ).x
            assert x @ Q @ x / 2 - c @ x <= other @ Q @ other / 2 - c @ other + 1e-10
            assert x == pytest.approx(other, abs=1e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.2, 1.0, 10.0])
@pytest.mark.parametrize("duplicates", [False, True])
def test_tvm_holds_a_solved_svm_and_counts_its_examples(duplicates, C, bias):
    X, y, _ = with_duplicates() if duplicates else stream(rounds=100)
    S, states = tvm(X, y, gamma=GAMMA, budget=9, C=C, admit=1.2, drop=1.4, bias=bias, margin_rule=not bias)
    for t, state in enumerate(states):
        assert len(state.points) <= 9
        assert state.counts.sum() == state.accepted - state.dropped
        assert (state.weights >= 0).all()
        assert (state.weights <= C * state.counts).all()
        K = gaussian(state.points, state.points, GAMMA)
        if t and bias and (state.counts.sum(axis=0) == 0).any():
            assert not state.weights.any()
            assert state.b == 0
        else:
            assert kkt_violation(K, state.weights, state.counts, C, state.b) <= 1e-9
        if bias:
            assert state.weights[:, 0].sum() == pytest.approx(state.weights[:, 1].sum(), abs=1e-10)
        else:
            assert state.b == 0
        if t < len(y):
            f = state.scores(X[t : t + 1], GAMMA)[0]
            assert S[t, 0] == f
            admitted = (abs(f) if bias else y[t] * f) <= 1.2
            assert states[t + 1].accepted - state.accepted == admitted
    assert states[-1].accepted > 12


def test_tvm_drops_the_farthest_and_merges_the_nearest():
    X, y, _ = stream(rounds=150)
    _, states = tvm(X, y, gamma=GAMMA, budget=8, C=2.0, admit=1.02, drop=1.05)
    dropped = merges = 0
    for t in range(len(y)):
        old, new = states[t], states[t + 1]
        if new.accepted == old.accepted or len(old.points) < 8:
            continue
        points = np.vstack([old.points, X[t]])
        heights = np.abs(old.scores(points, GAMMA))
        if heights.max() > 1.05:
            dropped += 1
            assert np.array_equal(new.points, np.delete(points, np.argmax(heights), axis=0))
            continue
        merges += 1
        distances = np.sum((points[:, None] - points[None]) ** 2, axis=2) + 1e9 * np.tri(9)
        i, j = np.unravel_index(np.argmin(distances), distances.shape)
        counts = np.append(old.counts.sum(axis=1), 1)
        mean = (counts[i] * points[i] + counts[j] * points[j]) / (counts[i] + counts[j])
        assert new.points[-1] == pytest.approx(mean)
        assert np.array_equal(new.points[:-1], np.delete(points, [i, j], axis=0))
    assert dropped > 3
    assert merges > 3


def test_tvm_bias_is_the_middle_where_every_weight_is_at_its_bound():
    _, y, K = stream(rounds=12)
    counts = np.column_stack([y > 0, y < 0]).astype(int)
    small = 0.01
    keep = np.r_[np.flatnonzero(y > 0)[:4], np.flatnonzero(y < 0)[:4]]
    weights, b = weighted_svm(K[np.ix_(keep, keep)], counts[keep], small, bias=True)
    assert weights == pytest.approx(small * counts[keep], rel=1e-12)
    low, high = offsets(K[np.ix_(keep, keep)], weights, counts[keep], small, 1e-9 * small)
    assert high > low + 0.1
    assert b == pytest.approx((low + high) / 2)


def test_tvm_bias_keeps_the_conditions_and_moves_no_further_than_f():
    rng = np.random.default_rng(0)
    pinned = 0
    for _ in range(60):
        n, C = int(rng.integers(2, 12)), 10 ** rng.uniform(-2, 2)
        X = rng.normal(size=(n, 2))
        K, counts = gaussian(X, X, 1.0), rng.integers(0, 3, size=(n, 2))
        counts[0] = [1, 1]
        weights, b = weighted_svm(K, counts, C, bias=True)
        low, high = offsets(K, weights, counts, C, 1e-9 * C)
        assert low - 1e-9 <= high + 1e-9
        assert b == pytest.approx((low + high) / 2, abs=1e-9)
        pinned += high < low + 1e-9
        f, noise = K @ (weights[:, 0] - weights[:, 1]), 1e-6 * rng.normal(size=n)
        assert abs(best_offset(f + noise, counts) - b) <= np.abs(noise).max() + 1e-11
    assert 10 < pinned < 50


def test_two_classes_merge_as_one():
    X, y, _ = stream()
    y[0] = -1
    one, _ = bsgd_merge(X, y, gamma=GAMMA, budget=8, lam=0.1)
    two, _ = bsgd_merge(X, np.where(y > 0, 0, 1), gamma=GAMMA, outputs=2, budget=8, lam=0.2)
    assert two[:, 0] - two[:, 1] == pytest.approx(one[:, 0], abs=1e-8)
