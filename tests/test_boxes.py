"""The transcriptions in `boxes`, checked by themselves: the tests of their specification on small streams."""

import boxes
import numpy as np
import pytest
from boxes import chooser, scores, support_size
from boxes.common import direction, margin, mistaken, norm, rival
from boxes.gradients import (
    bogd,
    bogd_plus_plus,
    bogd_regression,
    bsgd_remove,
    ilk,
    keep_probabilities,
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
    budget_perceptron,
    forgetron,
    forgetron_regression,
    kernel_perceptron,
    kernel_perceptron_regression,
    largest_shrink,
    psi,
    rbp,
    rbp_regression,
    stoptron,
    stoptron_regression,
    tighter_perceptron,
)

T = 120
BUDGET = 12
ETA = 0.8
TASKS = ["binary", "multiclass"]
LOSSES = ["hinge", "logistic", "squared_hinge", "exponential"]
REGRESSION_LOSSES = ["squared", "absolute", "epsilon_insensitive", "huber", "quantile"]


def stream(task, rounds=T, seed=0, uneven=False):
    """A Gram matrix, noisy labels that depend on the inputs, and the number of outputs.

    The kernel is Gaussian; uneven gives it a diagonal other than 1.
    """
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rounds, 3))
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    if uneven:
        scale = generator.uniform(0.5, 2.0, rounds)
        K = scale[:, None] * K * scale
    z = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.4 * generator.normal(size=rounds)
    if task == "regression":
        return K, z, 1
    if task == "multiclass":
        return K, np.digitize(z, [-0.5, 0.5]), 3
    return K, np.where(z > 0, 1.0, -1.0), 1


def margins(K, F, y):
    return np.array([margin(s, label) for s, label in zip(scores(K, F), y, strict=True)])


def residuals(K, F, y):
    return y - scores(K, F)[:, 0]


def equal(F, G, tolerance=1e-10):
    np.testing.assert_allclose(F, G, rtol=0, atol=tolerance)


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


# 2 Budget perceptrons


def budget_boxes(budget):
    choose = chooser(3)
    return [
        lambda K, y, m: stoptron(K, y, outputs=m, budget=budget),
        lambda K, y, m: budget_perceptron(K, y, outputs=m, budget=budget),
        lambda K, y, m: budget_perceptron(K, y, outputs=m, budget=budget, beta=0.3),
        lambda K, y, m: budget_perceptron(K, y, outputs=m, budget=budget, variant="distil"),
        lambda K, y, m: tighter_perceptron(K, y, outputs=m, budget=budget),
        lambda K, y, m: tighter_perceptron(K, y, outputs=m, budget=budget, recent=0),
        lambda K, y, m: rbp(K, y, outputs=m, budget=budget, choose=choose),
        lambda K, y, m: forgetron(K, y, outputs=m, budget=budget),
        lambda K, y, m: forgetron(K, y, outputs=m, budget=budget, legacy_root=True),
        lambda K, y, m: bogd(K, y, outputs=m, budget=budget, eta=0.3, lam=0.01, choose=choose),
        lambda K, y, m: bogd_plus_plus(K, y, outputs=m, budget=budget, eta=0.3, lam=0.01, choose=choose),
        lambda K, y, m: bsgd_remove(K, y, outputs=m, budget=budget, lam=0.01),
        lambda K, y, m: bsgd_remove(K, y, outputs=m, budget=budget, lam=0.01, removal="oldest"),
        lambda K, y, m: bsgd_remove(K, y, outputs=m, budget=budget, lam=1, removal="random", choose=choose),
    ]


@pytest.mark.parametrize("number", range(14))
@pytest.mark.parametrize("task", TASKS)
def test_support_never_exceeds_the_budget(task, number):
    K, y, m = stream(task, uneven=True)
    assert support_size(budget_boxes(BUDGET)[number](K, y, m)).max() == BUDGET


def test_support_of_regression_never_exceeds_the_budget():
    K, y, _ = stream("regression")
    step = {"eta": 0.2, "epsilon": 0.1, "budget": BUDGET}
    for F in [
        stoptron_regression(K, y, **step),
        rbp_regression(K, y, **step, choose=chooser(3)),
        forgetron_regression(K, y, **step),
        bogd_regression(K, y, **step, lam=0.03),
        bogd_regression(K, y, **step, lam=0.03, removal="uniform", unbiased=True, cap=10, choose=chooser(3)),
    ]:
        assert support_size(F).max() == BUDGET


@pytest.mark.parametrize("task", TASKS)
def test_a_budget_never_reached_changes_nothing(task):
    K, y, m = stream(task, uneven=True)
    expected = kernel_perceptron(K, y, outputs=m)
    equal(stoptron(K, y, outputs=m, budget=T), expected, 0)
    equal(budget_perceptron(K, y, outputs=m, budget=T), expected, 0)
    equal(tighter_perceptron(K, y, outputs=m, budget=T), expected, 0)
    equal(rbp(K, y, outputs=m, budget=T), expected, 0)
    equal(forgetron(K, y, outputs=m, budget=T), expected, 0)
    expected = ogd(K, y, outputs=m, eta=0.3)
    equal(bogd(K, y, outputs=m, budget=T, eta=0.3, lam=0.0), expected, 0)
    equal(bogd_plus_plus(K, y, outputs=m, budget=T, eta=0.3, lam=0.0), expected, 0)
    expected = pegasos(K, y, outputs=m, lam=0.01)
    equal(bsgd_remove(K, y, outputs=m, budget=T, lam=0.01), expected, 0)


def test_a_budget_never_reached_changes_nothing_in_regression():
    K, y, _ = stream("regression")
    expected = kernel_perceptron_regression(K, y, eta=0.2, epsilon=0.1)
    equal(stoptron_regression(K, y, budget=T, eta=0.2, epsilon=0.1), expected, 0)
    equal(rbp_regression(K, y, budget=T, eta=0.2, epsilon=0.1), expected, 0)
    equal(forgetron_regression(K, y, budget=T, eta=0.2, epsilon=0.1), expected, 0)
    expected = ogd_regression(K, y, eta=0.2, epsilon=0.1)
    equal(bogd_regression(K, y, budget=T, eta=0.2, lam=0.0, epsilon=0.1), expected, 0)


@pytest.mark.parametrize("task", TASKS)
def test_budget_perceptrons_follow_the_perceptron_until_they_are_full(task):
    K, y, m = stream(task)
    F = kernel_perceptron(K, y, outputs=m)
    full = int(np.argmax(support_size(F) == BUDGET))
    frozen = stoptron(K, y, outputs=m, budget=BUDGET)
    equal(frozen[: full + 1], F[: full + 1], 0)
    assert (frozen[full:] == frozen[full]).all()
    for G in [
        budget_perceptron(K, y, outputs=m, budget=BUDGET),
        tighter_perceptron(K, y, outputs=m, budget=BUDGET),
        rbp(K, y, outputs=m, budget=BUDGET, choose=chooser(3)),
        forgetron(K, y, outputs=m, budget=BUDGET),
    ]:
        equal(G[: full + 1], F[: full + 1], 0)


def removals(F):
    """(round, removed example) wherever one of the stored terms is gone after the round."""
    for t in range(len(F) - 1):
        for j in np.flatnonzero(boxes.live(F)[t] & ~boxes.live(F)[t + 1]):
            yield t, int(j)


def without(f, j):
    rest = f.copy()
    rest[j] = 0
    return rest


@pytest.mark.parametrize("task", TASKS)
def test_budget_perceptron_removes_the_largest_margin_kept(task):
    K, y, m = stream(task, uneven=True)
    F = budget_perceptron(K, y, outputs=m, budget=BUDGET)
    found = list(removals(F))
    assert len(found) > 5
    for t, j in found:
        kept = {i: margin(K[i] @ without(F[t], i), y[i]) for i in np.flatnonzero(boxes.live(F)[t])}
        assert kept[j] == pytest.approx(max(kept.values()), abs=1e-10)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("beta", [0.0, 0.2])
def test_distilling_leaves_no_margin_above_beta(task, beta):
    K, y, m = stream(task)
    F = budget_perceptron(K, y, outputs=m, budget=BUDGET, beta=beta, variant="distil")
    for f in F:
        stored = np.flatnonzero(f.any(axis=1))
        assert max((margin(K[j] @ without(f, j), y[j]) for j in stored), default=0) <= beta + 1e-10


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("recent", [0, 5, T])
def test_tighter_perceptron_removes_where_it_costs_fewest_errors(task, recent):
    K, y, m = stream(task)
    F = tighter_perceptron(K, y, outputs=m, budget=BUDGET, recent=recent)
    found = list(removals(F))
    assert len(found) > 5
    for t, j in found:
        stored = np.flatnonzero(boxes.live(F)[t])
        seen = np.union1d(np.arange(max(0, t + 1 - recent), t + 1), stored).astype(int)

        def errors(i, t=t, seen=seen):
            s = K[seen] @ without(F[t], i)
            guesses = np.where(s[:, 0] >= 0, 1, -1) if m == 1 else s.argmax(axis=1)
            return np.sum(guesses != y[seen])

        fewest = [i for i in stored if errors(i) == min(errors(i) for i in stored)]
        kept = {i: margin(K[i] @ without(F[t], i), y[i]) for i in fewest}
        assert kept[j] == max(kept.values())


def test_random_removal_is_offered_the_old_support_in_order():
    K, y, _ = stream("binary")
    asked = []

    def choose(ids, p):
        asked.append((ids, p))
        return 2

    F = rbp(K, y, budget=BUDGET, choose=choose)
    assert [ids[2] for ids, p in asked] == [j for t, j in removals(F)]
    full = [t for t in range(T) if support_size(F)[t] == BUDGET]
    assert [t for t, j in removals(F)] == [t for t in full if F[t + 1, t].any()]
    assert all(ids == sorted(ids) and len(ids) == BUDGET and p is None for ids, p in asked)


# 2.5 Forgetron


def shrinks(K, y, F, task):
    """(phi, sigma, mu, updates so far) of every removal, read off the history."""
    updates = 0
    for t in range(len(y)):
        if not F[t + 1, t].any():
            continue
        updates += 1
        stored = np.flatnonzero(boxes.live(F)[t])
        if len(stored) < BUDGET:
            continue
        r = stored[0]
        s = K[t] @ F[t]
        inserted = F[t].copy()
        inserted[t] = ETA * np.sign(y[t] - s) if task == "regression" else direction(s, y[t])
        phi = np.abs(F[t + 1, t]).max() / np.abs(inserted[t]).max()
        equal(F[t + 1], phi * without(inserted, r))
        a, f = inserted[r], K[r] @ inserted
        if task == "binary":
            yield phi, abs(a[0]), y[r] * f[0], updates
        elif task == "multiclass":
            yield phi, abs(a[y[r]]), f[y[r]], updates
        else:
            yield phi, abs(a[0]), abs(f[0]), updates


@pytest.mark.parametrize("task", [*TASKS, "regression"])
def test_self_tuned_forgetron_shrinks_no_more_than_its_allowance_asks(task):
    K, y, m = stream(task)
    if task == "regression":
        F = forgetron_regression(K, y, budget=BUDGET, eta=ETA, epsilon=0.1)
    else:
        F = forgetron(K, y, outputs=m, budget=BUDGET)
    found = list(shrinks(K, y, F, task))
    assert min(phi for phi, *_ in found) < 1
    Q = 0.0
    for phi, sigma, mu, M in found:
        assert 0 < phi <= 1 + 1e-12
        Q += (sigma * phi) ** 2 + 2 * sigma * phi * (1 - phi * mu)
        assert Q <= 15 / 32 * M + 1e-10
        assert phi == pytest.approx(1) or pytest.approx(15 / 32 * M) == Q


def test_older_terms_of_the_forgetron_are_never_larger():
    K, y, _ = stream("binary")
    for variant in ["self-tuned", "basic"]:
        for f in forgetron(K, y, budget=BUDGET, variant=variant):
            assert (np.diff(np.abs(f[f[:, 0] != 0, 0])) >= -1e-12).all()
            assert np.abs(f).max() <= 1


def test_legacy_root_of_the_forgetron_solves_the_same_equation_above_one():
    # A support vector far on the right side of the margin, and an allowance that is almost used up.
    right, legacy = (largest_shrink(0.5, 1.0, 0.9, 2.1, root) for root in [False, True])
    assert 0 < right < 1 < legacy
    for phi in [right, legacy]:
        assert psi(0.5 * phi, phi * 1.0) + 0.9 == pytest.approx(15 / 32 * 2.1)


def test_basic_forgetron_stays_in_its_ball_and_keeps_its_mistake_bound():
    K, y, _ = stream("binary", rounds=400)
    B = 83
    U = np.sqrt((B + 1) / np.log(B + 1)) / 4
    F = forgetron(K, y, budget=B, variant="basic")
    assert support_size(F).max() == B
    updates = sum(F[t + 1, t].any() for t in range(400))
    for t in range(400):
        inserted = F[t].copy()
        inserted[t] = direction(K[t] @ F[t], y[t])
        if F[t + 1, t].any():
            phi = abs(F[t + 1, t, 0])
            assert phi * norm(K, inserted) <= U + 1e-10
            assert phi <= 84 ** (-1 / 168) + 1e-15
    for seed in range(5):
        g = np.random.default_rng(seed).uniform(size=400) * y
        g *= U / np.sqrt(g @ K @ g)
        assert updates <= 2 * U**2 + 4 * np.maximum(0, 1 - y * (K @ g)).sum()


# 3 Budget gradients


@pytest.mark.parametrize("task", TASKS)
def test_bogd_caps_after_a_removal(task):
    K, y, m = stream(task, uneven=True)
    for box in [bogd, bogd_plus_plus]:
        F = box(K, y, outputs=m, budget=BUDGET, eta=0.3, lam=0.01, cap=1.5, choose=chooser(3))
        assert np.abs(F[[t + 1 for t, j in removals(F)]]).max() == pytest.approx(0.45, abs=1e-12)
        free = box(K, y, outputs=m, budget=BUDGET, eta=0.3, lam=0.01, choose=chooser(3))
        assert np.abs(free).max() > 0.45


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("box", [bogd, bogd_plus_plus])
def test_random_removal_of_bogd_is_unbiased(task, box):
    K, y, m = stream(task, uneven=True)
    eta, lam, budget = 0.3, 0.1, 6
    offered = []

    def remember(ids, p):
        offered.append(np.full(len(ids), 1 / len(ids)) if p is None else p)
        return 0

    F = box(K, y, outputs=m, budget=budget, eta=eta, lam=lam, choose=remember)
    t = next(removals(F))[0]
    p = offered[0]
    after = [
        box(K, y, outputs=m, budget=budget, eta=eta, lam=lam, choose=lambda ids, p, r=r: r)[t + 1]
        for r in range(budget)
    ]
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1)
    expected = (1 - eta * lam) * F[t]
    expected[t] = eta * direction(K[t] @ F[t], y[t])
    equal(sum(share * f for share, f in zip(p, after, strict=True)), expected)


def test_keep_probabilities():
    equal(keep_probabilities([2.0, 2.0, 2.0, 2.0]), [0.75] * 4)
    equal(keep_probabilities([1.0, 1.0, 0.0]), [1, 1, 0])
    equal(keep_probabilities([1.0, 0.0, 0.0, 0.0]), [1, 2 / 3, 2 / 3, 2 / 3])
    equal(keep_probabilities([10.0, 1.0, 2.0]), [1, 1 / 3, 2 / 3])
    equal(keep_probabilities([0.0, 0.0]), [0.5, 0.5])
    for seed in range(50):
        weights = np.random.default_rng(seed).exponential(size=9) ** 3
        q = keep_probabilities(weights)
        below = q < 1
        assert q.min() > 0
        assert q.sum() == pytest.approx(8)
        ratio = q[below] / weights[below]
        equal(ratio, ratio[0], 1e-9)
        assert (ratio[0] * weights[~below] >= 1 - 1e-9).all()


@pytest.mark.parametrize("task", TASKS)
def test_bogd_plus_plus_raises_light_survivors_to_one_weight(task):
    K, y, m = stream(task, uneven=True)
    F = bogd_plus_plus(K, y, outputs=m, budget=BUDGET, eta=0.3, lam=0.1, choose=chooser(3))
    t, j = next(removals(F))
    survivors = np.setdiff1d(np.flatnonzero(boxes.live(F)[t]), j)
    shrunk, after = (
        np.linalg.norm(f[survivors], axis=1) * np.sqrt(K[survivors, survivors]) for f in [0.97 * F[t], F[t + 1]]
    )
    equal(after, np.maximum(shrunk, after.min()))
    assert shrunk.min() < after.min() < shrunk.max()


@pytest.mark.parametrize("task", TASKS)
def test_bsgd_removal_is_first_in_first_out_on_an_even_diagonal(task):
    K, y, m = stream(task)
    smallest = bsgd_remove(K, y, outputs=m, budget=BUDGET, lam=0.01)
    equal(smallest, bsgd_remove(K, y, outputs=m, budget=BUDGET, lam=0.01, removal="oldest"), 0)


@pytest.mark.parametrize("task", TASKS)
def test_bsgd_removal_takes_the_smallest(task):
    K, y, m = stream(task, uneven=True)
    F = bsgd_remove(K, y, outputs=m, budget=BUDGET, lam=0.01)
    found = [(t, j) for t, j in removals(F) if F[t + 1, t].any()]
    assert len(found) > 5
    for t, j in found:
        # All coefficients are equally long, so that the diagonal alone decides.
        assert K[j, j] < min(K[i, i] for i in np.flatnonzero(boxes.live(F)[t + 1]))


# Two classes (section 9)


def two_classes():
    """A binary stream twice: as signs and as class indices, class 0 being +1; it starts with class 1."""
    K, y, _ = stream("binary", uneven=True)
    y[0] = -1.0
    return K, y, (y < 0).astype(int)


def doubled(box, **parameters):
    return lambda K, y: 2 * scores(K, box(K, y, **parameters))


def plain(box, **parameters):
    return lambda K, y: scores(K, box(K, y, **parameters))


@pytest.mark.parametrize(
    ("box", "parameters", "binary"),
    [
        (kernel_perceptron, {}, doubled(kernel_perceptron)),
        (stoptron, {"budget": 9}, doubled(stoptron, budget=9)),
        (budget_perceptron, {"budget": 9}, doubled(budget_perceptron, budget=9)),
        (budget_perceptron, {"budget": 9, "beta": 0.4}, doubled(budget_perceptron, budget=9, beta=0.2)),
        (
            budget_perceptron,
            {"budget": 9, "variant": "distil"},
            doubled(budget_perceptron, budget=9, variant="distil"),
        ),
        (tighter_perceptron, {"budget": 9}, doubled(tighter_perceptron, budget=9)),
        (rbp, {"budget": 9, "choose": lambda ids, p: 4}, doubled(rbp, budget=9, choose=lambda ids, p: 4)),
        *[(ogd, {"eta": 0.2, "loss": loss}, plain(ogd, eta=0.4, loss=loss)) for loss in LOSSES],
        (klrsgd, {"eta": 0.2}, plain(klrsgd, eta=0.4)),
        (norma, {"eta": 0.2, "lam": 0.1}, plain(norma, eta=0.4, lam=0.05)),
        (ilk, {"eta": 0.2, "lam": 0.1}, plain(ilk, eta=0.4, lam=0.05)),
        (pegasos, {"lam": 0.1}, plain(pegasos, lam=0.05)),
        (pegasos, {"lam": 0.1, "project": True}, plain(pegasos, lam=0.05, project=True)),
        (pa, {"variant": "hard"}, plain(pa, variant="hard")),
        (pa, {"variant": "I", "C": 0.2}, plain(pa, variant="I", C=0.4)),
        (pa, {"variant": "II", "C": 0.2}, plain(pa, variant="II", C=0.4)),
        (
            bogd,
            {"budget": 9, "eta": 0.2, "lam": 0.1, "cap": 1.2, "choose": lambda ids, p: 4},
            plain(bogd, budget=9, eta=0.4, lam=0.05, cap=1.2, choose=lambda ids, p: 4),
        ),
        (
            bogd_plus_plus,
            {"budget": 9, "eta": 0.2, "lam": 0.1, "choose": lambda ids, p: 4},
            plain(bogd_plus_plus, budget=9, eta=0.4, lam=0.05, choose=lambda ids, p: 4),
        ),
        (bsgd_remove, {"budget": 9, "lam": 0.1}, plain(bsgd_remove, budget=9, lam=0.05)),
    ],
)
def test_two_classes_are_the_binary_learner(box, parameters, binary):
    K, signs, classes = two_classes()
    s = scores(K, box(K, classes, outputs=2, **parameters))
    equal(s.sum(axis=1), 0)
    equal(s[:, :1] - s[:, 1:], binary(K, signs))
