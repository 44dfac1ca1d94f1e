"""The transcriptions of learners without a budget, checked by themselves on small streams (section 1)."""

import numpy as np
import pytest

import boxes
from boxes import scores, support_size
from boxes.common import direction, margin, mistaken, norm, rival
from boxes.gradients import (
    bogd,
    ilk,
    klms_regression,
    klrsgd,
    norma,
    norma_detector,
    norma_regression,
    ogd,
    ogd_regression,
    pegasos,
)
from boxes.passive_aggressive import pa, pa_regression
from boxes.perceptrons import (
    kernel_perceptron,
    kernel_perceptron_regression,
)
from boxes.small import BUDGET, LOSSES, TASKS, T, equal, stream

REGRESSION_LOSSES = ["squared", "absolute", "epsilon_insensitive", "huber", "quantile"]


def margins(K, F, y):
    return np.array([margin(s, label) for s, label in zip(scores(K, F), y, strict=True)])


def residuals(K, F, y):
    return y - scores(K, F)[:, 0]


# Reading histories


def test_histories_start_at_zero_and_give_the_scores_before_each_update():
    K, y, m = stream("multiclass")
    F = kernel_perceptron(K, y, outputs=m)
    assert F.shape == (T + 1, T, m)
    assert not F[0].any()
    equal(scores(K, F), [K[t] @ F[t] for t in range(T)])


def test_average_of_an_insert_only_learner_weighs_terms_by_their_age():
    K, y, _ = stream("binary")
    F = ogd(K, y, eta=0.3)
    t = np.arange(1, T + 2)[:, None]
    age = np.clip(t - np.arange(1, T + 1), 0, None)
    equal(boxes.averaged(F), F[-1] * (age / t)[:, :, None])
    equal(boxes.averaged_scores(K, F, "live"), boxes.averaged_scores(K, F))


def test_live_average_forgets_what_the_model_removed():
    K, y, _ = stream("binary")
    F = bogd(K, y, budget=BUDGET, eta=0.3, lam=0.01, removal="fifo")
    equal(support_size(boxes.averaged(F, "live")), support_size(F))
    equal(boxes.averaged(F, "live")[-1], boxes.averaged(F)[-1] * (F[-1] != 0))
    assert support_size(boxes.averaged(F))[-1] > BUDGET


# 1.1 Perceptron


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_perceptron_stores_each_mistake_with_unit_coefficients(task, strict):
    K, y, m = stream(task)
    F = kernel_perceptron(K, y, outputs=m, strict_sign_update=strict)
    fired = [mistaken(s, label, strict) for s, label in zip(scores(K, F), y, strict=True)]
    assert support_size(F)[-1] == np.sum(fired)
    assert set(np.unique(F)) == {-1.0, 0.0, 1.0}
    assert np.abs(F[-1].sum(axis=1)).max() <= (1 if m == 1 else 0)


def test_strict_sign_update_differs_at_score_zero_only():
    K, y, _ = stream("binary")
    y[0] = 1.0
    assert support_size(kernel_perceptron(K, y))[1] == 1
    assert support_size(kernel_perceptron(K, y, strict_sign_update=True))[1] == 0
    y[0] = -1.0
    equal(kernel_perceptron(K, y), kernel_perceptron(K, y, strict_sign_update=True), 0)


def test_perceptron_mistake_bound():
    K, _, _ = stream("binary", rounds=300)
    u = np.random.default_rng(1).normal(size=300)
    u = K @ u / np.sqrt(u @ K @ u)
    clear = np.abs(u) > 0.3
    F = kernel_perceptron(K[np.ix_(clear, clear)], np.sign(u[clear]))
    assert clear.sum() > 30
    assert support_size(F)[-1] <= 1 / np.min(np.abs(u[clear])) ** 2


def test_perceptron_regression_steps_outside_the_tube():
    K, y, _ = stream("regression")
    F = kernel_perceptron_regression(K, y, eta=0.2, epsilon=0.1)
    r = residuals(K, F, y)
    equal(F[-1, :, 0], np.where(np.abs(r) > 0.1, 0.2 * np.sign(r), 0.0))


# 1.2 OGD


@pytest.mark.parametrize("task", TASKS)
def test_ogd_is_the_sum_of_its_margin_errors(task):
    K, y, m = stream(task)
    F = ogd(K, y, outputs=m, eta=0.3)
    active = margins(K, F, y) < 1
    steps = [0.3 * direction(s, label) for s, label in zip(scores(K, F), y, strict=True)]
    equal(F[-1], active[:, None] * np.array(steps))


def test_ogd_regret_bound():
    K, y, _ = stream("binary")
    eta = 0.2
    suffered = np.maximum(0, 1 - margins(K, ogd(K, y, eta=eta), y)).sum()
    for seed in range(20):
        u = np.random.default_rng(seed).uniform(0, 0.5, T) * y
        bound = u @ K @ u / (2 * eta) + eta * T / 2
        assert suffered - np.maximum(0, 1 - y * (K @ u)).sum() <= bound


@pytest.mark.parametrize("loss", LOSSES)
def test_classification_steps_descend_the_loss(loss):
    value = {
        "hinge": lambda q: max(0, 1 - q),
        "logistic": lambda q: np.log1p(np.exp(-q)),
        "squared_hinge": lambda q: max(0, 1 - q) ** 2 / 2,
        "exponential": lambda q: np.exp(-q),
    }[loss]
    K, y, _ = stream("binary")
    F = ogd(K, y, eta=0.3, loss=loss)
    for t, q in enumerate(margins(K, F, y)):
        slope = (value(q + 1e-6) - value(q - 1e-6)) / 2e-6
        assert F[t + 1, t, 0] == pytest.approx(-0.3 * slope * y[t], abs=1e-6)


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
def test_regression_steps_descend_the_loss(loss):
    value = {
        "squared": lambda r: r**2 / 2 if abs(r) > 0.1 else 0.0,
        "absolute": abs,
        "epsilon_insensitive": lambda r: max(0, abs(r) - 0.1),
        "huber": lambda r: r**2 / 2 if abs(r) <= 0.5 else 0.5 * (abs(r) - 0.25),
        "quantile": lambda r: max(0.7 * r, -0.3 * r),
    }[loss]
    K, y, _ = stream("regression")
    F = ogd_regression(K, y, eta=0.3, epsilon=0.1, loss=loss, delta=0.5, q=0.7)
    for t, r in enumerate(residuals(K, F, y)):
        slope = (value(r + 1e-6) - value(r - 1e-6)) / 2e-6
        assert F[t + 1, t, 0] == pytest.approx(0.3 * slope, abs=1e-6)


# 1.3 NORMA


@pytest.mark.parametrize("task", TASKS)
def test_norma_terms_decay_geometrically(task):
    K, y, m = stream(task)
    F = norma(K, y, outputs=m, eta=0.3, lam=0.1)
    active = margins(K, F, y) <= 1
    steps = np.array([0.3 * direction(s, label) for s, label in zip(scores(K, F), y, strict=True)])
    equal(F[-1], (active * 0.97 ** (T - 1 - np.arange(T)))[:, None] * steps)


@pytest.mark.parametrize("nu", [None, 0.4])
def test_norma_truncation_bounds_the_age_of_terms(nu):
    K, y, _ = stream("regression")
    for F in [
        norma(K, np.sign(y), eta=0.3, lam=0.1, nu=nu, truncation=20),
        norma_regression(K, y, eta=0.3, lam=0.1, nu=nu, truncation=20),
        norma_detector(K, eta=0.3, lam=0.1, nu=0.4, truncation=20),
    ]:
        age = np.arange(T + 1)[:, None] - np.arange(T)
        assert not F[age > 20].any()
        assert F[age == 20].any()


def test_norma_nu_is_the_fraction_of_errors():
    K, y, _ = stream("regression", rounds=1000)
    F = norma_regression(K, y, eta=0.05, lam=0.05, nu=0.4)
    assert (F[-1] != 0).mean() == pytest.approx(0.4, abs=0.03)
    F = norma(K, np.sign(y), eta=0.05, lam=0.05, nu=0.4)
    assert (F[-1] != 0).mean() == pytest.approx(0.4, abs=0.05)
    F = norma_detector(K, eta=0.05, lam=0.05, nu=0.4)
    assert (F[-1] != 0).mean() == pytest.approx(0.4, abs=0.05)


def test_norma_detector_inserts_nothing_in_the_first_round():
    K, _, _ = stream("binary")
    F = norma_detector(K, eta=0.3, lam=0.1, nu=0.4)
    assert list(support_size(F)[1:3]) == [0, 1]


def test_norma_without_shrink_is_perceptron_regression_or_ogd():
    K, y, _ = stream("regression")
    F = norma_regression(K, y, eta=0.2, lam=0.0, epsilon=0.1)
    equal(F, kernel_perceptron_regression(K, y, eta=0.2, epsilon=0.1))
    F = norma_regression(K, y, eta=0.2, lam=0.0, loss="squared")
    equal(F, ogd_regression(K, y, eta=0.2))
    equal(norma(K, np.sign(y), eta=0.2, lam=0.0), ogd(K, np.sign(y), eta=0.2))


# 1.4 PA


@pytest.mark.parametrize("task", TASKS)
def test_pa_steps_reach_the_margin_they_aim_at(task):
    K, y, m = stream(task, uneven=True)
    for variant, C in [("hard", 1.0), ("I", 0.4), ("II", 0.4)]:
        F = pa(K, y, outputs=m, variant=variant, C=C)
        for t in range(T):
            before, after = K[t] @ F[t], K[t] @ F[t + 1]
            loss = max(0, 1 - margin(before, y[t]))
            left = 1 - y[t] * after[0] if m == 1 else 1 - after[y[t]] + after[rival(before, y[t])]
            k = K[t, t] * (1 if m == 1 else 2)
            wanted = {"hard": 0, "I": max(0, loss - C * k), "II": loss / (2 * C * k + 1)}[variant]
            assert max(0, left) == pytest.approx(wanted, abs=1e-10)


def test_pa_regression_steps_reach_the_tube():
    K, y, _ = stream("regression", uneven=True)
    for variant, C in [("hard", 1.0), ("I", 0.4), ("II", 0.4)]:
        F = pa_regression(K, y, variant=variant, C=C, epsilon=0.1)
        for t in range(T):
            loss = max(0, abs(y[t] - (K[t] @ F[t])[0]) - 0.1)
            left = max(0, abs(y[t] - (K[t] @ F[t + 1])[0]) - 0.1)
            k = K[t, t]
            wanted = {"hard": 0, "I": max(0, loss - C * k), "II": loss / (2 * C * k + 1)}[variant]
            assert left == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("task", TASKS)
def test_pa_with_unlimited_aggressiveness_is_hard(task):
    K, y, m = stream(task, uneven=True)
    hard = pa(K, y, outputs=m, variant="hard")
    equal(pa(K, y, outputs=m, variant="I", C=np.inf), hard, 0)
    equal(pa(K, y, outputs=m, variant="II", C=np.inf), hard, 0)
    equal(scores(K, pa(K, y, outputs=m, variant="II", C=1e12)), scores(K, hard), 1e-8)
    z = stream("regression")[1]
    hard = pa_regression(K, z, variant="hard", epsilon=0.1)
    equal(pa_regression(K, z, variant="I", C=np.inf, epsilon=0.1), hard, 0)
    equal(pa_regression(K, z, variant="II", C=np.inf, epsilon=0.1), hard, 0)


def test_no_closed_form_step_where_the_kernel_vanishes():
    K, y, _ = stream("binary")
    K[7] = K[:, 7] = 0
    assert not pa(K, y, variant="hard")[:, 7].any()
    assert not pa_regression(K, y, variant="II", epsilon=0.1)[:, 7].any()
    F = ilk(K, y, eta=0.3, lam=0.1)
    assert not F[:, 7].any()
    equal(F[8], F[7] / 1.03)


# 1.6 - 1.8 Pegasos, KLR-SGD, KLMS, ILK


@pytest.mark.parametrize("task", TASKS)
def test_pegasos_counts_its_margin_errors(task):
    K, y, m = stream(task)
    F = pegasos(K, y, outputs=m, lam=0.05)
    active = margins(K, F, y) < 1
    steps = np.array([direction(s, label) for s, label in zip(scores(K, F), y, strict=True)])
    for t in range(1, T + 1):
        equal(F[t], (active * (np.arange(T) < t))[:, None] * steps / (0.05 * t))


@pytest.mark.parametrize("task", TASKS)
def test_projections_stay_in_their_ball(task):
    K, y, m = stream(task, uneven=True)
    F = pegasos(K, y, outputs=m, lam=0.05, project=True)
    lengths = [norm(K, f) for f in F]
    assert np.max(lengths) == pytest.approx(1 / np.sqrt(0.05), abs=1e-9)
    F = klrsgd(K, y, outputs=m, eta=0.5, R=2.0)
    lengths = [norm(K, f) for f in F]
    assert np.max(lengths) == pytest.approx(2.0, abs=1e-9)
    assert list(support_size(F)) == list(range(T + 1))


@pytest.mark.parametrize("task", TASKS)
def test_pegasos_is_norma_with_falling_steps(task):
    K, y, m = stream(task)
    eta = 1 / (0.05 * np.arange(1, T + 1))
    equal(norma(K, y, outputs=m, eta=eta, lam=0.05), pegasos(K, y, outputs=m, lam=0.05))


def test_klrsgd_and_klms_are_ogd():
    K, y, m = stream("multiclass")
    equal(klrsgd(K, y, outputs=m, eta=0.5), ogd(K, y, outputs=m, eta=0.5, loss="logistic"), 0)
    z = stream("regression")[1]
    equal(klms_regression(K, z, eta=0.5), ogd_regression(K, z, eta=0.5), 0)


@pytest.mark.parametrize("task", TASKS)
def test_ilk_minimises_its_implicit_objective(task):
    K, y, m = stream(task, rounds=40, uneven=True)
    eta, lam = 0.3, 0.5
    F = ilk(K, y, outputs=m, eta=eta, lam=lam)
    generator = np.random.default_rng(2)

    def objective(f, t):
        before, after = K[t] @ F[t], K[t] @ f
        reached = np.sum(direction(before, y[t]) * after)
        return norm(K, f - F[t]) ** 2 / 2 + eta * (lam * norm(K, f) ** 2 / 2 + max(0, 1 - reached))

    for t in range(40):
        least = objective(F[t + 1], t)
        for size in [1e-3, 1e-2, 1e-1]:
            nearby = F[t + 1] + size * generator.normal(size=F[t].shape)
            along = F[t + 1].copy()
            along[t] += size * generator.choice([-1, 1]) * direction(K[t] @ F[t], y[t])
            assert min(objective(nearby, t), objective(along, t)) >= least
