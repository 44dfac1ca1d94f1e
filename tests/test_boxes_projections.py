"""The transcriptions that project, merge and update twice keep the tests and identities of their sections."""

import itertools

import numpy as np
import pytest
from boxes import double_update, gradients, live, passive_aggressive, perceptrons, scores, support_size
from boxes.common import direction, margin, norm
from boxes.double_update import (
    ascent,
    bduol,
    box_qp,
    double_step,
    duol,
    enumerated,
    gain,
    weights_lost,
)
from boxes.merging import (
    best_merge,
    best_merge_on_grid,
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
    bpa,
    bsgd_project,
    nearest,
    onto,
    projectron,
    projectron_plus_plus,
    projectron_regression,
    re_expressed,
)
from scipy.optimize import lsq_linear, minimize

GAMMA = 0.3
BPA = ("simple", "nearest", "projecting", "plain")
UPKEEP = ("remove", "project", "approximate", "nearest")


def stream(seed=0, rounds=90, classes=None, d=2):
    """Inputs, noisy labels and the Gaussian Gram matrix."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rounds, d))
    X[:, 0] *= 2
    z = X[:, 0] + np.sin(3 * X[:, 1]) + 0.5 * rng.normal(size=rounds)
    y = np.where(z > 0, 1, -1) if classes is None else np.digitize(z, np.linspace(-1, 1, classes - 1))
    return X, y, gaussian(X, X, GAMMA)


def with_duplicates(seed=1, rounds=60):
    """A stream of few distinct inputs, each with both labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))[rng.integers(12, size=rounds)]
    return X, np.where(X[:, 0] + rng.normal(size=rounds) > 0, 1, -1), gaussian(X, X, GAMMA)


def changed(F):
    """The rounds that updated."""
    return [t for t in range(len(F) - 1) if not np.array_equal(F[t], F[t + 1])]


# Projectron (2.6)


@pytest.mark.parametrize("classes", [None, 4])
def test_projectron_without_tolerance_or_with_room_is_the_perceptron(classes):
    _, y, K = stream(classes=classes)
    outputs = classes or 1
    F = perceptrons.kernel_perceptron(K, y, outputs=outputs)
    assert np.array_equal(projectron(K, y, outputs=outputs), F)
    assert np.array_equal(projectron(K, y, outputs=outputs, budget=len(y)), F)
    strict = perceptrons.kernel_perceptron(K, y, outputs=outputs, strict_sign_update=True)
    assert np.array_equal(projectron(K, y, outputs=outputs, strict_sign_update=True), strict)
    jmlr = projectron_plus_plus(K, y, outputs=outputs, rule="jmlr")
    assert np.array_equal(jmlr, F)


def test_projectron_regression_with_room_is_the_perceptron():
    X, _, K = stream()
    y = np.sin(X[:, 0])
    F = perceptrons.kernel_perceptron_regression(K, y, eta=0.3, epsilon=0.1)
    assert np.array_equal(projectron_regression(K, y, budget=len(y), eta=0.3, epsilon=0.1), F)
    F = projectron_regression(K, y, budget=8, eta=0.3, epsilon=0.1)
    assert support_size(F).max() == 8
    rounds = [t for t in changed(F) if F[t + 1, t, 0] == 0]
    assert rounds
    for t in rounds:
        step = 0.3 * np.sign(y[t] - K[t] @ F[t, :, 0])
        _, delta2 = onto(K, list(np.flatnonzero(live(F)[t])), t)
        assert K[t] @ (F[t + 1] - F[t])[:, 0] == pytest.approx(step * (1 - delta2), abs=1e-10)


def test_residual_is_one_over_the_corner_of_the_extended_inverse():
    _, _, K = stream()
    for t in range(1, 20):
        S = list(range(t))
        d, delta2 = onto(K, S, t)
        P = np.linalg.inv(K[: t + 1, : t + 1])
        assert delta2 == pytest.approx(1 / P[t, t], rel=1e-8)
        assert d == pytest.approx(-P[:t, t] / P[t, t], abs=1e-8)
        g = np.append(d, -1.0)
        assert g @ K[: t + 1, : t + 1] @ g == pytest.approx(delta2, abs=1e-10)


@pytest.mark.parametrize(
    "options",
    [{"budget": 7}, {"tolerance": 0.6}, {"tolerance": 0.4, "squared": True}, {"budget": 20, "tolerance": 0.5}],
)
@pytest.mark.parametrize("classes", [None, 3])
def test_projected_mistake_moves_the_score_by_p2_within_the_span(classes, options):
    _, y, K = stream(classes=classes)
    F = projectron(K, y, outputs=classes or 1, **options)
    assert support_size(F).max() <= options.get("budget", len(y))
    projected = 0
    for t in changed(F):
        S = list(np.flatnonzero(live(F)[t]))
        if not S:
            continue
        _, delta2 = onto(K, S, t)
        near = (delta2 if options.get("squared") else np.sqrt(delta2)) <= options.get("tolerance", 0.0)
        project = near or len(S) == options.get("budget")
        assert live(F)[t + 1, t] != project
        if project:
            projected += 1
            assert np.array_equal(live(F)[t + 1], live(F)[t])
            step = direction(K[t] @ F[t], y[t])
            assert K[t] @ (F[t + 1] - F[t]) == pytest.approx(step * (K[t, t] - delta2), abs=1e-9)
    assert projected > 3


def test_projectron_stays_small_on_a_compact_set():
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(600, 1))
    y = np.where(np.sin(40 * x[:, 0]) > 0, 1, -1)
    K = gaussian(x, x, 4.0)
    size = support_size(projectron(K, y, tolerance=0.1))
    assert size[-1] == size[300] <= 8
    assert support_size(perceptrons.kernel_perceptron(K, y))[-1] > 100


def test_projectron_projects_duplicates():
    _, y, K = with_duplicates()
    F = projectron(K, y)
    assert support_size(F).max() <= 12
    assert scores(K, F) == pytest.approx(scores(K, perceptrons.kernel_perceptron(K, y)), abs=1e-9)


@pytest.mark.parametrize("classes", [None, 3])
@pytest.mark.parametrize(
    "options",
    [
        {"rule": "icml", "budget": 30},
        {"rule": "icml", "U": 2.0, "tolerance": 0.3},
        {"rule": "jmlr", "tolerance": 0.7, "budget": 12},
    ],
)
def test_projectron_plus_plus_margin_steps(classes, options):
    _, y, K = stream(rounds=150, classes=classes)
    F = projectron_plus_plus(K, y, outputs=classes or 1, **options)
    U = options.get("U") or np.sqrt(31 / np.log(31)) / 4
    steps = skipped = 0
    for t in range(len(y)):
        s = K[t] @ F[t]
        loss = 1 - margin(s, y[t])
        if not 0 < loss < 1:
            continue
        _, delta2 = onto(K, list(np.flatnonzero(live(F)[t])), t)
        p2 = 1 - delta2
        if options["rule"] == "icml":
            wanted = min(loss / p2, 1)
            wanted *= 2 * loss - wanted * p2 - 2 * U * np.sqrt(delta2) >= 0
        else:
            left = loss - np.sqrt(delta2) / options["tolerance"]
            wanted = max(0, min(loss / p2, 2 * left / p2, 1))
        steps, skipped = steps + (wanted > 0), skipped + (wanted == 0)
        assert K[t] @ (F[t + 1] - F[t]) == pytest.approx(wanted * p2 * direction(s, y[t]), abs=1e-9)
    assert steps > 3
    assert skipped > 3


def test_the_two_rules_share_their_bound():
    """2.6: with U = 1/eta both stop at 2 l - tau p2 - 2 U sqrt(delta2) = 0."""
    _, y, K = stream(rounds=150)
    eta = 0.6
    F = projectron_plus_plus(K, y, rule="jmlr", tolerance=eta)
    for t in changed(F):
        loss = 1 - margin(K[t] @ F[t], y[t])
        if 0 < loss < 1:
            _, delta2 = onto(K, list(np.flatnonzero(live(F)[t])), t)
            change = margin(K[t] @ F[t + 1], y[t]) - margin(K[t] @ F[t], y[t])
            assert 2 * loss - change - 2 * np.sqrt(delta2) / eta >= -1e-9


# BPA (3.3)


@pytest.mark.parametrize("variant", BPA)
@pytest.mark.parametrize("classes", [None, 3])
def test_bpa_with_room_is_pa(classes, variant):
    _, y, K = stream(classes=classes)
    F = passive_aggressive.pa(K, y, outputs=classes or 1, C=0.7)
    assert np.array_equal(bpa(K, y, outputs=classes or 1, budget=len(y), C=0.7, variant=variant), F)


@pytest.mark.parametrize("variant", ["simple", "nearest", "projecting"])
@pytest.mark.parametrize("classes", [None, 3])
def test_bpa_step_is_exact_on_the_example_and_as_long_as_its_score(classes, variant):
    _, y, K = stream(classes=classes)
    outputs = classes or 1
    F = bpa(K, y, outputs=outputs, budget=8, C=0.7, variant=variant)
    assert support_size(F).max() == 8
    replaced = 0
    for t in changed(F):
        s = K[t] @ F[t]
        k = 1 if classes is None else 2
        tau = min(0.7, (1 - margin(s, y[t])) / k)
        assert K[t] @ F[t + 1] == pytest.approx(s + tau * direction(s, y[t]), abs=1e-10)
        gone = np.flatnonzero(live(F)[t] & ~live(F)[t + 1])
        if len(gone):
            replaced += 1
            S = list(np.flatnonzero(live(F)[t]))
            costs = [np.sum(F[t, r] ** 2) * re_expressed(K, S, r, t, variant)[2] for r in S]
            assert S[int(np.argmin(costs))] == gone[0]
            assert norm(K, F[t + 1] - F[t]) ** 2 == pytest.approx(min(costs) + k * tau**2, abs=1e-10)
            for r in S:
                residuals = [re_expressed(K, S, r, t, v)[2] for v in ("projecting", "nearest", "simple")]
                assert residuals[0] <= residuals[1] + 1e-12 <= residuals[2] + 2e-12
    assert replaced > 10


def test_bpa_closed_form_minimises_its_objective():
    """3.3: the new model is the best of |f - f_t|^2/2 + C l over its span, for the r that was chosen."""
    _, y, K = stream()
    F = bpa(K, y, budget=6, C=0.3, variant="projecting")
    rng = np.random.default_rng(0)
    for t in changed(F)[10:40]:
        V = np.flatnonzero(live(F)[t + 1])
        best = bpa_objective(K, y, F, t, F[t + 1])
        for _ in range(20):
            other = F[t + 1].copy()
            other[V] += 1e-3 * rng.normal(size=(len(V), 1))
            assert bpa_objective(K, y, F, t, other) >= best


def bpa_objective(K, y, F, t, f, C=0.3):
    """3.3: what the step from F[t] minimises."""
    return norm(K, f - F[t]) ** 2 / 2 + C * max(0.0, 1 - margin(K[t] @ f, y[t]))


@pytest.mark.parametrize("classes", [None, 3])
def test_plain_bpa_takes_the_best_removal(classes):
    _, y, K = stream(classes=classes)
    F = bpa(K, y, outputs=classes or 1, budget=8, C=0.7, variant="plain")
    for t in changed(F):
        S = list(np.flatnonzero(live(F)[t]))
        if len(S) < 8:
            continue
        s = K[t] @ F[t]
        tau = min(0.7, (1 - margin(s, y[t])) / (1 if classes is None else 2))
        models = []
        for r in S:
            models.append(F[t].copy())
            models[-1][r] = 0
            models[-1][t] = tau * direction(s, y[t])
        costs = [norm(K, f - F[t]) ** 2 / 2 + 0.7 * max(0, 1 - margin(K[t] @ f, y[t])) for f in models]
        oldest = next(f for f, cost in zip(models, costs, strict=True) if cost <= min(costs) + 1e-12)
        assert F[t + 1] == pytest.approx(oldest, abs=1e-12)


def test_projecting_bpa_spreads_duplicates():
    _, y, K = with_duplicates()
    F = bpa(K, y, budget=60, C=0.5, variant="projecting")
    assert support_size(F).max() <= 12
    assert scores(K, F) == pytest.approx(scores(K, passive_aggressive.pa(K, y, C=0.5)), abs=1e-9)
    for variant in BPA:
        assert np.isfinite(bpa(K, y, budget=5, C=0.5, variant=variant)).all()


def test_nearest_is_nearest_in_feature_space():
    X, _, _ = stream()
    phi = np.column_stack([X, X[:, 0] * X[:, 1]])
    K = phi @ phi.T
    for r in range(5, 20):
        rest = list(range(r))
        distances = np.sum((phi[:r] - phi[r]) ** 2, axis=1)
        assert nearest(K, rest, r) == np.argmin(distances)
    assert nearest(np.ones((4, 4)), [1, 2, 3], 0) == 1


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
    low, high = offsets(K[np.ix_(keep, keep)], weights, counts[keep], small)
    assert b == pytest.approx((low + high) / 2)


# DUOL (1.5) and BDUOL (4)


def dual(K, f, y):
    """4: D = sum g - |f|^2/2."""
    return float(np.sum(f[:, 0] * y) - norm(K, f) ** 2 / 2)


def keeps_its_laws(K, y, F, cache, C):
    """The weights are in their box and the cache is y_i f(x_i) of the support vectors."""
    for f, margins in zip(F, cache, strict=True):
        g = f[:, 0] * y
        assert (g >= 0).all()
        assert (g <= C * (1 + 1e-12)).all()
        assert np.array_equal(np.isnan(margins), g == 0)
        assert margins[g > 0] == pytest.approx((y * (K @ f)[:, 0])[g > 0], abs=1e-10)


def test_four_cases_are_the_box_qp():
    rng = np.random.default_rng(8)
    for _ in range(400):
        k_t, k_b = rng.uniform(0.3, 2, size=2)
        w = -np.sqrt(k_t * k_b) * rng.choice([0.0, rng.uniform(), 0.999, 1.0])
        l_t, l_b = rng.uniform(0, 2.5, size=2)
        C = 10 ** rng.uniform(-1.5, 1)
        g = C * rng.choice([rng.uniform(), 1.0])
        ours, best = double_step(k_t, k_b, w, l_t, l_b, g, C), enumerated(k_t, k_b, w, l_t, l_b, g, C)
        reached = gain(k_t, k_b, w, l_t, l_b, *ours)
        assert ours == pytest.approx(best, abs=1e-6)
        assert reached >= gain(k_t, k_b, w, l_t, l_b, *best) - 1e-12
        Q = np.array([[k_t, w], [w, k_b]])
        solved = box_qp(Q, np.array([l_t, l_b]), np.array([0, -g]), np.array([C, C - g]))
        assert ours == pytest.approx(tuple(solved), abs=1e-6)
        single = min(C, l_t / k_t)
        assert reached >= gain(k_t, k_b, w, l_t, l_b, single, 0.0) - 1e-12


def test_four_cases_are_exhaustive(monkeypatch):
    """1.5: for w <= 0 and positive losses one of them fits, without the enumeration."""
    monkeypatch.setattr(double_update, "enumerated", None)
    rng = np.random.default_rng(9)
    for _ in range(2000):
        k_t, k_b = rng.uniform(0.3, 2, size=2)
        C = 10 ** rng.uniform(-1.5, 1)
        w = -np.sqrt(k_t * k_b) * rng.uniform(0, 0.999)
        double_step(k_t, k_b, w, *rng.uniform(0.001, 2.5, size=2), C * min(1, rng.uniform(0, 1.3)), C)


@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("rho", [0.0, 0.2])
def test_duol_ascends_within_the_box(duplicates, C, rho):
    _, y, K = with_duplicates() if duplicates else stream()
    F, cache = duol(K, y, C=C, rho=rho)
    keeps_its_laws(K, y, F, cache, C)
    for t in range(len(y)):
        loss = 1 - y[t] * (K[t] @ F[t])[0]
        single = min(C, max(0, loss))
        assert dual(K, F[t + 1], y) - dual(K, F[t], y) >= single * max(0, loss) - single**2 / 2 - 1e-10
    if C > 0.1:
        assert sum((F[t, :t] != F[t + 1, :t]).any() for t in changed(F)) > 2


def test_duol_without_conflicts_is_pa():
    _, y, K = stream()
    F, _ = duol(K, y, C=0.6, rho=1.0)
    assert np.allclose(F, passive_aggressive.pa(K, y, C=0.6), rtol=0, atol=1e-15)


@pytest.mark.parametrize("maintenance", UPKEEP)
def test_bduol_with_room_is_duol(maintenance):
    _, y, K = stream()
    for ours, theirs in zip(bduol(K, y, C=1.0, budget=len(y), maintenance=maintenance), duol(K, y, C=1.0), strict=True):
        assert np.array_equal(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("cheap", [False, True])
@pytest.mark.parametrize("maintenance", UPKEEP)
@pytest.mark.parametrize("duplicates", [False, True])
def test_bduol_keeps_box_cache_and_budget(duplicates, maintenance, cheap):
    _, y, K = with_duplicates(rounds=50) if duplicates else stream(rounds=70)
    F, cache = bduol(K, y, C=0.8, budget=7, maintenance=maintenance, cheap=cheap)
    keeps_its_laws(K, y, F, cache, 0.8)
    assert support_size(F).max() == 7
    for t in range(len(y)):
        assert y[t] * (K[t] @ F[t])[0] < 1 or np.array_equal(F[t], F[t + 1])


@pytest.mark.parametrize("duplicates", [False, True])
def test_bduol_ascent_is_the_change_of_the_dual(duplicates):
    _, y, K = with_duplicates() if duplicates else stream()
    C = 0.8
    F, cache = duol(K, y, C=C)
    for t in (6, 12, 20):
        S = list(np.flatnonzero(live(F)[t]))
        g = F[t, :, 0] * y
        for j in S:
            lengths = {}
            for rule in UPKEEP:
                Dg = weights_lost(K, y, g, S, j, C, rule)
                assert (g - Dg >= -1e-12).all()
                assert (g - Dg <= C + 1e-12).all()
                assert g[j] == Dg[j]
                after = F[t] - (Dg * y)[:, None]
                assert ascent(K, y, cache[t], S, Dg) == pytest.approx(dual(K, after, y) - dual(K, F[t], y), abs=1e-10)
                lengths[rule] = norm(K, (Dg * y)[:, None])
            assert lengths["project"] <= min(lengths.values()) + 1e-7
            if not duplicates:
                rest = [i for i in S if i != j]
                L = np.linalg.cholesky(K[np.ix_(rest, rest)])
                target = np.linalg.solve(L, g[j] * y[j] * K[rest, j])
                bounds = (-g[rest], C - g[rest] + 1e-14)
                beta = lsq_linear(L.T * y[rest], target, bounds, method="bvls", tol=1e-14).x
                Dg = weights_lost(K, y, g, S, j, C, "project")
                assert -Dg[rest] == pytest.approx(beta, abs=1e-6)
                P = np.linalg.inv(K[np.ix_(S, S)])
                position = S.index(j)
                free = -g[j] * y[j] * y[S] * P[:, position] / P[position, position]
                wanted = np.clip(np.delete(free, position), -g[rest], C - g[rest])
                Dg = weights_lost(K, y, g, S, j, C, "approximate")
                assert -Dg[rest] == pytest.approx(wanted, abs=1e-6)


def test_bduol_makes_room_by_the_largest_ascent():
    _, y, K = stream(rounds=70)
    for maintenance in UPKEEP:
        F, cache = bduol(K, y, C=0.8, budget=7, maintenance=maintenance)
        for t in changed(F):
            S = list(np.flatnonzero(live(F)[t]))
            gone = [i for i in S if F[t + 1, i, 0] == 0]
            if len(S) == 7:
                g = F[t, :, 0] * y
                best = max(S, key=lambda j: ascent(K, y, cache[t], S, weights_lost(K, y, g, S, j, 0.8, maintenance)))
                assert best in gone


@pytest.mark.parametrize("maintenance", ["project", "approximate"])
def test_bduol_takes_the_split_of_least_norm(maintenance):
    """4: equal support vectors share, as their boxes allow."""
    x = np.array([[0.0], [0.0], [1.0], [1.2], [0.0]])
    K, y = gaussian(x, x, GAMMA), np.array([1.0, 1, 1, -1, -1])
    g = np.array([0.5, 0.5, 0.4, 0.3, 0.5])
    Dg = weights_lost(K, y, g, [0, 1, 2, 3, 4], 2, 2.0, maintenance)
    assert Dg[0] == pytest.approx(Dg[1], abs=1e-5)
    assert Dg[0] == pytest.approx(-Dg[4], abs=1e-5)
    assert abs(Dg[0]) > 0.01


# Several outputs


@pytest.mark.parametrize("name", ["projectron", *BPA, "bsgd_project"])
def test_two_classes_are_the_binary_learner(name):
    """9: on f^1 - f^2, given a first label of the second class."""
    _, y, K = stream()
    y[0] = -1
    classes = np.where(y > 0, 0, 1)
    if name == "projectron":
        one, two = projectron(K, y, budget=8), projectron(K, classes, outputs=2, budget=8)
        factor = 2
    elif name == "bsgd_project":
        one, two = bsgd_project(K, y, budget=8, lam=0.1), bsgd_project(K, classes, outputs=2, budget=8, lam=0.2)
        factor = 1
    else:
        one = bpa(K, y, budget=8, C=1.0, variant=name)
        two = bpa(K, classes, outputs=2, budget=8, C=0.5, variant=name)
        factor = 1
    assert two[:, :, 0] - two[:, :, 1] == pytest.approx(factor * one[:, :, 0], abs=1e-8)


def test_two_classes_merge_as_one():
    X, y, _ = stream()
    y[0] = -1
    one, _ = bsgd_merge(X, y, gamma=GAMMA, budget=8, lam=0.1)
    two, _ = bsgd_merge(X, np.where(y > 0, 0, 1), gamma=GAMMA, outputs=2, budget=8, lam=0.2)
    assert two[:, 0] - two[:, 1] == pytest.approx(one[:, 0], abs=1e-8)
