"""The transcriptions that project keep the tests and identities of their sections: Projectron, BPA."""

import numpy as np
import pytest

from boxes import live, passive_aggressive, perceptrons, scores, support_size
from boxes.common import direction, margin, norm
from boxes.crowded import changed, stream, with_duplicates
from boxes.merging import (
    gaussian,
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

pytestmark = pytest.mark.rounding

BPA = ("simple", "nearest", "projecting", "plain")


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
