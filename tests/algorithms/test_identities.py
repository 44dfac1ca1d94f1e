"""What must be equal to what (ALGORITHMS.md section 9), and what each algorithm promises (sections 1 to 3).

Library against library, or against a number one can compute by hand; the boxes play no part here.
"""

import math

import numpy as np
import pandas as pd
import pytest
from streams import (
    CASE_IDS,
    CASES,
    ESTIMATORS,
    KERNELS,
    binary,
    build,
    hypothesis_of,
    inputs,
    kernel_for,
    learn,
    multiclass,
    on_features,
    regression,
    scores_of,
    stream_for,
)

import onkel
from onkel import budgets, losses, updates
from onkel.hypotheses import Expansion
from onkel.kernels import Gaussian, Linear, Polynomial
from onkel.learners.learner import Learner

pytestmark = pytest.mark.usefixtures("engine")

T = 200
MANY = 400  # a budget that is never reached
UNEVEN = KERNELS["uneven"]


def same(a, b, tolerance=1e-10):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1.0, np.abs(b).max()))


def run(name, several=False, kernel=UNEVEN, **params):
    """The scores of an estimator on its stream."""
    model = ESTIMATORS[name](**params, kernel=kernel)
    return learn(model, *stream_for(model, several=several))


def coefficients(model, X):
    """The coefficients by row of X, of shape (rows, outputs)."""
    table = np.zeros((len(X), len(model.dual_coef_)))
    for row, coef in zip(model.support_vectors_, model.dual_coef_.T, strict=True):
        table[(row == X).all(axis=1)] = coef
    return table


def rival_of(s, y):
    """The best class other than y."""
    return max((r for r in range(len(s)) if r != y), key=lambda r: s[r])


def margin(model, x, y):
    s = scores_of(model, x[None])[0]
    return y * s if np.isscalar(s) else s[y] - s[rival_of(s, y)]


def norm(model):
    K = model.kernel_(model.support_vectors_)
    return math.sqrt(np.sum(model.dual_coef_ @ K * model.dual_coef_))


# One algorithm is another


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "name", ["Stoptron", "BudgetPerceptron", "TighterPerceptron", "RBP", "Forgetron", "Projectron"]
)
def test_a_budget_never_reached_leaves_the_perceptron(name, several):
    same(run(f"{name}Classifier", several, budget=MANY), run("KernelPerceptronClassifier", several))


@pytest.mark.parametrize("name", ["Stoptron", "RBP", "Forgetron", "Projectron"])
def test_a_budget_never_reached_leaves_perceptron_regression(name):
    same(run(f"{name}Regressor", budget=MANY, eta=0.3), run("KernelPerceptronRegressor", eta=0.3))


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", ["BOGD", "BOGDPlusPlus"])
def test_a_budget_never_reached_leaves_gradient_descent(name, several):
    same(run(f"{name}Classifier", several, budget=MANY, eta=0.3, lam=0), run("OGDClassifier", several, eta=0.3))
    bounded = run(f"{name}Regressor", budget=MANY, eta=0.3, lam=0, cap=None)
    same(bounded, run("OGDRegressor", eta=0.3))


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(
    "how", [*({"removal": removal} for removal in ("smallest", "random", "oldest")), {"maintenance": "project"}]
)
def test_a_budget_never_reached_leaves_pegasos(how, several):
    bounded = run("BSGDClassifier", several, budget=MANY, lam=0.05, **how)
    same(bounded, run("PegasosClassifier", several, lam=0.05))


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("variant", ["simple", "nearest", "projecting", "plain"])
def test_a_budget_never_reached_leaves_passive_aggressive_steps(variant, several):
    bounded = run("BPAClassifier", several, budget=MANY, C=0.3, variant=variant)
    same(bounded, run("PAClassifier", several, C=0.3))


@pytest.mark.parametrize("several", [False, True])
def test_unlimited_aggressiveness_is_hard(several):
    hard = run("PAClassifier", several, variant="hard")
    same(run("PAClassifier", several, variant="I", C=math.inf), hard)
    same(run("PAClassifier", several, variant="II", C=math.inf), hard)
    same(run("PAClassifier", several, variant="II", C=1e12), hard, 1e-8)
    hard = run("PARegressor", variant="hard")
    same(run("PARegressor", variant="I", C=math.inf), hard)
    same(run("PARegressor", variant="II", C=1e12), hard, 1e-8)


class FallingGradient(updates.Gradient):
    """NORMA with eta_t = eta / t and eta lam = 1, which `Gradient` refuses for its constant step."""

    def __post_init__(self):
        pass


@pytest.mark.parametrize("several", [False, True])
def test_pegasos_is_norma_with_falling_steps(several):
    X, y = (multiclass if several else binary)()
    update = FallingGradient(eta=20.0, lam=0.05, schedule="1/t")
    norma = Learner(
        Expansion(UNEVEN, budgets.Unlimited()),
        losses.Hinge(closed=True),
        update,
        outputs=4 if several else 1,
        columns=X.shape[1],
    )
    same(norma.learn(X, y.astype(float))[0].squeeze(), run("PegasosClassifier", several, lam=0.05))


@pytest.mark.parametrize("several", [False, True])
def test_gradient_learners_without_their_extras_are_one(several):
    ogd = run("OGDClassifier", several, eta=0.3)
    same(run("NORMAClassifier", several, eta=0.3, lam=0), ogd)
    same(run("NORMAClassifier", several, eta=0.3, lam=0, truncation=MANY), ogd)
    logistic = run("OGDClassifier", several, eta=0.3, loss="logistic")
    same(run("KLRSGDClassifier", several, eta=0.3), logistic)
    same(run("KLRSGDClassifier", several, eta=0.3, R=1e6), logistic)
    same(run("NORMAClassifier", several, eta=0.3, lam=0, loss="logistic"), logistic)


@pytest.mark.parametrize("several", [False, True])
def test_implicit_steps_without_regulariser_are_passive_aggressive(several):
    same(run("ILKClassifier", several, eta=0.4, lam=0), run("PAClassifier", several, variant="I", C=0.4))


def test_regressors_without_their_extras_are_one():
    perceptron = run("KernelPerceptronRegressor", eta=0.3, epsilon=0.2)
    same(run("NORMARegressor", eta=0.3, lam=0, epsilon=0.2), perceptron)
    same(run("OGDRegressor", eta=0.3, loss="epsilon_insensitive", epsilon=0.2), perceptron)
    klms = run("KLMSRegressor", eta=0.2)
    same(run("OGDRegressor", eta=0.2, epsilon=0), klms)
    same(run("NORMARegressor", eta=0.2, lam=0, loss="squared"), klms)
    absolute = run("OGDRegressor", eta=0.2, loss="absolute")
    same(run("OGDRegressor", eta=0.2, loss="epsilon_insensitive", epsilon=0), absolute)
    same(run("OGDRegressor", eta=0.4, loss="quantile"), absolute)
    same(run("OGDRegressor", eta=0.2, loss=losses.Huber(1e6)), klms)


def test_bsgd_forgets_the_oldest_where_the_diagonal_is_constant():
    def gap(kernel):
        ways = [run("BSGDClassifier", budget=15, lam=0.05, removal=r, kernel=kernel) for r in ("smallest", "oldest")]
        return np.abs(ways[0] - ways[1]).max()

    assert gap(Gaussian(1.0)) < 1e-10
    assert gap(UNEVEN) > 0.1


@pytest.mark.parametrize("several", [False, True])
def test_truncation_forgets_the_oldest_where_every_round_makes_a_term(several):
    truncated = run("NORMAClassifier", several, eta=0.3, lam=0.1, rho=100.0, truncation=15)  # rho out of reach
    X, y = (multiclass if several else binary)()
    fifo = Learner(
        Expansion(UNEVEN, budgets.RemoveOldest(15)),
        losses.Hinge(100.0),
        updates.Gradient(0.3, 0.1),
        outputs=4 if several else 1,
        columns=X.shape[1],
    )
    same(fifo.learn(X, y.astype(float))[0].squeeze(), truncated)


# Two classes as several


def two_ways(loss, update, budget=None, halved=None, seed=0):
    """f_1 - f_0 of a learner with two outputs, and f of its twin with one output and the update `halved`."""
    X, y = binary()
    X, y = X[np.argmax(y > 0) :], y[np.argmax(y > 0) :]  # at f = 0 a first -1 moves the binary learner only
    budget = budget or budgets.Unlimited()
    run = {"columns": X.shape[1], "seed": seed}
    two = onkel.native.fastest(Learner(Expansion(UNEVEN, budget), loss, update, outputs=2, **run))
    one = onkel.native.fastest(Learner(Expansion(UNEVEN, budget), loss, halved or update, **run))
    f = two.learn(X, (y > 0).astype(float))[0]
    return f[:, 1] - f[:, 0], one.learn(X, y.astype(float))[0][:, 0]


@pytest.mark.parametrize(
    "budget",
    [
        budgets.Unlimited(),
        budgets.Stop(15),
        budgets.RemoveRandom(15),
        budgets.RemoveOldest(15),
        budgets.RemoveByMargin(15),
        budgets.RemoveByMargin(15, distil=True),
        budgets.RemoveByEvaluation(15),
        budgets.Forget(15),
    ],
    ids=str,
)
def test_two_class_perceptrons_double_their_scores(budget):
    two, one = two_ways(losses.Mistake(), updates.Perceptron(), budget)
    same(two, 2 * one)


PA = updates.PassiveAggressive


@pytest.mark.parametrize(
    ("loss", "two", "one"),
    [
        (losses.Hinge(), updates.Gradient(0.2), updates.Gradient(0.4)),
        (losses.SquaredHinge(), updates.Gradient(0.1), updates.Gradient(0.2)),
        (losses.Exponential(), updates.Gradient(0.05), updates.Gradient(0.1)),
        (losses.Logistic(), updates.Gradient(0.2, schedule="1/t"), updates.Gradient(0.4, schedule="1/t")),
        (losses.Logistic(), updates.Gradient(0.2, radius=2.0), updates.Gradient(0.4, radius=math.sqrt(8))),
        (losses.Hinge(closed=True), updates.Gradient(0.2, 0.1), updates.Gradient(0.4, 0.05)),
        (losses.Hinge(), PA("hard"), PA("hard")),
        (losses.Hinge(), PA("I", 0.4), PA("I", 0.8)),
        (losses.Hinge(), PA("II", 0.4), PA("II", 0.8)),
        (losses.Hinge(), updates.Implicit(0.2, 0.1), updates.Implicit(0.4, 0.05)),
        (losses.Hinge(), updates.Pegasos(0.1), updates.Pegasos(0.05)),
    ],
    ids=str,
)
def test_two_classes_with_two_scores_are_one_score_with_twice_the_step(loss, two, one):
    same(*two_ways(loss, two, halved=one))


@pytest.mark.parametrize("budget", [budgets.RemoveOldest(15), budgets.RemoveWeighted(15)], ids=str)
def test_two_class_bounded_gradients_take_twice_the_step(budget):
    same(*two_ways(losses.Hinge(), updates.Gradient(0.2, 0.1), budget, updates.Gradient(0.4, 0.05)))


# Invariance


@pytest.mark.parametrize(("name", "params"), CASES, ids=CASE_IDS)
def test_gaussian_scores_ignore_origin_order_and_units_of_the_features(name, params):
    """Random features turn with the origin, which steps along the gradient in all weights at once do not see.

    A rate for each weight does, and so do learned widths. Their directions belong to names, or where they are drawn
    together to places.
    """
    X, y = stream_for(ESTIMATORS[name], rounds=150)
    frame = pd.DataFrame(X, columns=list("abcd")) if on_features(name, params) else pd.DataFrame(X)

    def scores(rows, gamma=0.7, unit=1):
        model = build(name, **params, kernel=Gaussian(gamma))
        lengths = {key: unit * value for key, value in model.get_params().items() if key in ("radius", "distance")}
        return learn(model.set_params(**lengths), rows, y)

    wanted = scores(frame)
    hypothesis, _, update = build(name, **params).parts(Gaussian(0.7))
    if "explicit" not in update.needs and "adapts" not in hypothesis.offers:
        same(scores(frame + np.array([1.0, -2.0, 0.5, 3.0])), wanted, 1e-9)
    if all(map.grows for map in hypothesis.maps):
        same(scores(frame.iloc[:, [2, 0, 3, 1]]), wanted, 1e-9)
    if "clip" not in params:
        same(scores(2 * frame, 0.7 / 4, 2), wanted, 1e-9)


@pytest.mark.parametrize(
    ("name", "params"),
    [case for case in CASES if case[0].endswith("Classifier") and "strict_sign_update" not in case[1]],
)
def test_exchanging_two_classes_negates_the_scores(name, params):
    X, y = binary(200)
    models = [build(name, **params, kernel=kernel_for(name, params)) for _ in range(2)]
    scores = [learn(model, X, label) for model, label in zip(models, (y, -y), strict=True)]
    same(scores[0], -scores[1], max(1e-10, 10 * getattr(models[0], "precision", 0.0)))


@pytest.mark.parametrize("name", ["KernelPerceptronClassifier", "StoptronClassifier", "TighterPerceptronClassifier"])
def test_perceptron_scores_are_in_units_of_the_kernel(name):
    same(run(name, kernel=3 * UNEVEN), 3 * run(name, kernel=UNEVEN))


def test_hard_steps_do_not_feel_the_units_of_the_kernel():
    same(run("PAClassifier", variant="hard", kernel=3 * UNEVEN), run("PAClassifier", variant="hard"))
    same(run("PAClassifier", C=0.2, kernel=3 * UNEVEN), run("PAClassifier", C=0.6))


def monomials(X, coef0):
    """Features whose inner product is (x z + coef0)^2."""
    X = np.column_stack([X, np.full(len(X), math.sqrt(coef0))])
    return (X[:, :, None] * X[:, None]).reshape(len(X), -1)


@pytest.mark.parametrize(
    ("name", "params"),
    [case for case in CASES if kernel_for(*case) is UNEVEN and "input distances" not in hypothesis_of(*case).offers],
)
def test_polynomial_kernel_is_its_feature_map(name, params):
    X, y = stream_for(ESTIMATORS[name], rounds=150)
    X = 0.5 * X
    wanted = learn(build(name, **params, kernel=Linear()), monomials(X, 0.8), y)
    same(learn(build(name, **params, kernel=Polynomial(2, 0.8)), X, y), wanted, 1e-8)


def test_adding_one_to_the_kernel_is_a_constant_feature():
    X, y = binary()
    wanted = learn(build("PAClassifier", kernel=Linear()), np.column_stack([X, np.ones(T)]), y)
    same(learn(build("PAClassifier", kernel=Linear() + 1), X, y), wanted)


# Promises: unbounded learners


@pytest.mark.parametrize(
    ("name", "params", "terms"),
    [
        ("OGDClassifier", {"eta": 0.5}, 2),
        ("BOGDClassifier", {"eta": 0.5, "lam": 0}, 2),
        ("PAClassifier", {"C": 0.5}, 2),
        ("ILKClassifier", {"eta": 0.5, "lam": 0}, 2),
        ("NORMAClassifier", {"eta": 0.5, "lam": 0}, 3),  # y f(x) <= rho
        ("NORMAClassifier", {"eta": 0.5, "lam": 0, "rho": 0.0}, 1),
        ("PegasosClassifier", {"lam": 1.0}, 2),  # scores 0, 1, 1/2
        ("BudgetPerceptronClassifier", {"beta": 1.0}, 2),
        ("KernelPerceptronRegressor", {"eta": 0.5, "epsilon": 0.5}, 1),
        ("OGDRegressor", {"eta": 0.5, "epsilon": 0.5}, 1),
        ("PARegressor", {"C": 0.5, "epsilon": 0.5}, 1),
        ("NORMADetector", {"eta": 0.5, "lam": 0, "nu": 0.5}, 1),  # rho is 0, 1/4, 0 and f 0, 0, 1/2
    ],
)
def test_steps_exactly_at_the_border(name, params, terms):
    model = build(name, **params, kernel=Linear())
    learn(model, np.ones((3, 1)), None if "Detector" in name else np.ones(3))  # scores 0, 1/2 and 1, mostly
    assert model.n_support_ == terms


@pytest.mark.parametrize("several", [False, True])
def test_perceptron_stores_each_mistake_with_unit_coefficients(several):
    X, y = (multiclass if several else binary)()
    model = build("KernelPerceptronClassifier", kernel=UNEVEN)
    s = learn(model, X, y)
    wrong = s.argmax(axis=1) != y if several else y * s <= 0
    assert model.n_support_ == wrong.sum() > 50
    assert set(np.unique(np.abs(model.dual_coef_))) <= {0.0, 1.0}
    assert (np.abs(model.dual_coef_).sum(axis=0) == (2 if several else 1)).all()


def separable(rounds, gap, seed=2):
    """Rows labelled by a function u of norm 1, at least `gap` away from its zero; and the least margin."""
    X = inputs(rounds, seed)
    u = np.random.default_rng(seed).normal(size=len(X))
    K = UNEVEN(X)
    f = K @ u / math.sqrt(u @ K @ u)
    clear = np.abs(f) > gap
    return X[clear], np.where(f[clear] > 0, 1, -1), np.abs(f[clear]).min()


def test_perceptron_mistake_bound():
    X, y, margin = separable(600, 0.4)
    model = build("KernelPerceptronClassifier", kernel=UNEVEN)
    model.fit(X, y)
    radius = np.diag(UNEVEN(X)).max()
    assert len(X) > radius / margin**2
    assert model.n_support_ <= radius / margin**2


def test_ogd_is_the_sum_of_its_margin_errors():
    X, y = binary()
    model = build("OGDClassifier", eta=0.3, kernel=UNEVEN)
    s = learn(model, X, y)
    same(coefficients(model, X)[:, 0], 0.3 * y * (y * s < 1))


@pytest.mark.parametrize("eta", [0.05, 0.2, 0.8])
def test_ogd_regret_bound(eta):
    X, y = binary()
    K = UNEVEN(X)
    suffered = np.maximum(0, 1 - y * run("OGDClassifier", eta=eta)).sum()
    rivals = [np.linalg.solve(K + ridge * np.eye(T), y) for ridge in (0.01, 0.1, 1, 10)]
    for u in [np.zeros(T), *rivals]:
        bound = u @ K @ u / (2 * eta) + eta * np.trace(K) / 2
        assert suffered - np.maximum(0, 1 - y * (K @ u)).sum() <= bound


@pytest.mark.parametrize("name", ["NORMAClassifier", "NORMARegressor", "NORMADetector"])
@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_norma_nu_is_the_fraction_of_errors(name, nu):
    model = build(name, eta=0.05, lam=0.05, nu=nu, kernel=Gaussian(1.0))
    learn(model, *stream_for(model, rounds=2000))
    assert model.n_support_ / 2000 == pytest.approx(nu, abs=0.03)


def test_norma_truncation_error_is_bounded():
    # a margin out of reach: every round has the same step with and without truncation
    tau, eta, lam = 20, 0.3, 0.1
    full = run("NORMAClassifier", kernel=Gaussian(1.0), eta=eta, lam=lam, rho=100.0)
    cut = run("NORMAClassifier", kernel=Gaussian(1.0), eta=eta, lam=lam, rho=100.0, truncation=tau)
    error = np.abs(full - cut)
    assert (error[: tau + 1] < 1e-12).all()
    assert 0.01 < error.max() <= (1 - eta * lam) ** tau / lam


def test_norma_truncation_bounds_the_age_of_terms():
    X, y = binary()
    model = build("NORMAClassifier", eta=0.3, lam=0.1, truncation=20, kernel=UNEVEN)
    ages = set()
    for t in range(T):
        learn(model, X[t : t + 1], y[t : t + 1])
        ages |= set(t + 1 - model._learned.engine.state()["basis.born"][:, 0])
    assert ages == set(range(20))  # the next round scores with terms of ages 1 to 20


AFTER = [  # loss left after a step of a loss l with k = |slope|^2 k(x, x)
    ("hard", 1.0, lambda loss, k: 0.0),
    ("I", 0.3, lambda loss, k: max(0.0, loss - 0.3 * k)),
    ("II", 0.3, lambda loss, k: loss / (0.6 * k + 1)),
]


@pytest.mark.parametrize("task", [binary, multiclass, regression])
@pytest.mark.parametrize(("variant", "C", "left"), AFTER)
def test_passive_aggressive_steps_reach_what_they_aim_at(task, variant, C, left):
    X, y = task(150)
    k = np.diag(UNEVEN(X))
    name = "PARegressor" if task is regression else "PAClassifier"
    model = build(name, variant=variant, C=C, kernel=UNEVEN)
    repaired = 0
    for t in range(150):
        before = learn(model, X[t : t + 1], y[t : t + 1])[0]
        after = scores_of(model, X[t : t + 1])[0]
        if task is regression:
            suffered, remains = (max(0.0, abs(y[t] - s) - 0.1) for s in (before, after))
        elif task is binary:
            suffered, remains = (max(0.0, 1 - y[t] * s) for s in (before, after))
        else:
            rival = rival_of(before, y[t])
            suffered, remains = (max(0.0, 1 - s[y[t]] + s[rival]) for s in (before, after))
        assert remains == pytest.approx(left(suffered, k[t] * (2 if task is multiclass else 1)), abs=1e-10)
        repaired += suffered > 0
    assert repaired > 50


def test_implicit_steps_end_at_the_margin_or_are_as_long_as_allowed():
    X, y = binary(320)
    eta, lam = 0.3, 0.1
    k = np.diag(UNEVEN(X))
    model = build("ILKClassifier", eta=eta, lam=lam, kernel=UNEVEN)
    kinds = np.zeros(3, int)
    for t in range(len(y)):
        before = y[t] * learn(model, X[t : t + 1], y[t : t + 1])[0]
        after = y[t] * scores_of(model, X[t : t + 1])[0]
        reached = [before / (1 + eta * lam), 1.0, (before + eta * k[t]) / (1 + eta * lam)]
        kind = int(np.argmin(np.abs(np.array(reached) - after)))
        assert after == pytest.approx(sorted(reached)[1], abs=1e-10)
        kinds[kind] += 1
    assert (kinds > 3).all()


def test_pegasos_counts_its_margin_errors():
    X, y = binary()
    model = build("PegasosClassifier", lam=0.05, kernel=UNEVEN)
    s = learn(model, X, y)
    same(coefficients(model, X)[:, 0], y * (y * s < 1) / (0.05 * T))


@pytest.mark.parametrize("task", [binary, multiclass])
@pytest.mark.parametrize(
    ("name", "params", "radius"),
    [
        ("PegasosClassifier", {"lam": 0.05, "project": True}, 20**0.5),
        ("KLRSGDClassifier", {"eta": 0.5, "R": 2.0}, 2.0),
    ],
)
def test_projections_stay_in_their_ball(name, params, radius, task):
    X, y = task()
    model = build(name, **params, kernel=UNEVEN)
    lengths = []
    for start in range(0, T, 4):
        learn(model, X[start : start + 4], y[start : start + 4])
        lengths.append(norm(model))
    assert max(lengths) == pytest.approx(radius, abs=1e-9)
    assert model.n_support_ == T or name == "PegasosClassifier"


# Promises: budget perceptrons


@pytest.mark.parametrize("several", [False, True])
def test_stoptron_is_the_perceptron_until_it_is_full_and_then_frozen(several):
    X, y = (multiclass if several else binary)()
    free, stopped = build("KernelPerceptronClassifier"), build("StoptronClassifier", budget=15)
    s = learn(free, X, y)
    wrong = s.argmax(axis=1) != y if several else y * s <= 0
    full = int(np.flatnonzero(wrong)[14]) + 1
    found = learn(stopped, X, y)
    same(found[:full], s[:full])
    again = build("StoptronClassifier", budget=15)
    learn(again, X[:full], y[:full])
    same(found[full:], scores_of(again, X[full:]))
    assert np.array_equal(again.dual_coef_, stopped.dual_coef_)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.2])
def test_distilling_leaves_no_margin_above_beta(several, beta):
    X, y = (multiclass if several else binary)()
    model = build("BudgetPerceptronClassifier", budget=15, beta=beta, variant="distil", kernel=UNEVEN)
    for start in range(0, T, 8):
        learn(model, X[start : start + 8], y[start : start + 8])
        coef, rows = model.dual_coef_.T, model.support_vectors_
        K = UNEVEN(rows)
        without = K @ coef - coef * np.diag(K)[:, None]
        if several:
            own = coef.argmax(axis=1)
            others = np.where(np.arange(4) == own[:, None], -np.inf, without)
            margins = without[np.arange(len(own)), own] - others.max(axis=1)
        else:
            margins = np.sign(coef[:, 0]) * without[:, 0]
        assert margins.max() <= beta + 1e-10


def removals(model, X, y, order="born"):
    """Ranks, by age (0 the oldest) or by coefficient (0 the smallest), of the terms a full model removes."""
    old, ranks = {}, []
    for t in range(len(X)):
        learn(model, X[t : t + 1], y[t : t + 1])
        state = model._learned.engine.state()
        new = dict(zip(state["basis.born"][:, 0], np.abs(state[f"basis.{order}"][:, 0]), strict=True))
        gone = [rank for rank, born in enumerate(sorted(old, key=old.get)) if born not in new]
        assert len(gone) <= 1
        ranks += gone
        old = new
    return ranks


def chi_square(ranks, cells):
    counts = np.bincount(ranks, minlength=cells)
    wanted = len(ranks) / cells
    return float(np.sum((counts - wanted) ** 2) / wanted)


CRITICAL = 27.9  # chi-square with 9 degrees of freedom: exceeded once in a thousand


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("RBPClassifier", {"budget": 10}),
        ("RBPRegressor", {"budget": 10, "epsilon": 0.01}),
        ("BOGDClassifier", {"budget": 10, "eta": 0.1, "unbiased": False}),
        ("BSGDClassifier", {"budget": 10, "removal": "random"}),
    ],
)
def test_random_removal_is_uniform(name, params, engine):
    rounds = 1500 if engine == "python" else 4000
    model = build(name, **params, kernel=Gaussian(5.0))
    X, y = stream_for(model, rounds=rounds)
    ranks = removals(model, X, np.random.default_rng(4).permutation(y))
    assert len(ranks) > rounds / 4
    assert 0.5 < chi_square(ranks, 10) < CRITICAL
    assert np.corrcoef(ranks[1:], ranks[:-1])[0, 1] == pytest.approx(0, abs=4 / math.sqrt(len(ranks)))


def test_weighted_removal_prefers_small_terms(engine):
    rounds = 1500 if engine == "python" else 4000
    model = build("BOGDPlusPlusClassifier", budget=10, eta=0.1, lam=0.5, kernel=Gaussian(5.0))
    X, y = binary(rounds)
    ranks = removals(model, X, np.random.default_rng(4).permutation(y), order="coef")
    assert chi_square(ranks, 10) > 4 * CRITICAL
    assert np.mean(ranks) < 3


@pytest.mark.parametrize("task", [binary, multiclass, regression])
def test_self_tuned_forgetron_keeps_its_allowance(task):
    X, y = task()
    if task is regression:
        model = build("ForgetronRegressor", budget=15, eta=0.8, kernel=UNEVEN)
    else:
        model = build("ForgetronClassifier", budget=15, kernel=UNEVEN)
    tight = 0
    for t in range(T):
        learn(model, X[t : t + 1], y[t : t + 1])
        state = model._learned.engine.state()
        Q, allowance = float(state["budget.Q"]), 15 / 32 * float(state["budget.M"])
        assert allowance + 1e-10 >= Q
        tight += pytest.approx(allowance, abs=1e-10) == Q and Q > 0
        sizes = np.abs(model.dual_coef_).max(axis=0)
        assert (np.diff(sizes) >= -1e-12).all()  # none is larger than a newer one
        assert sizes.max(initial=0) <= (0.8 if task is regression else 1) + 1e-12
    assert tight > 0
    assert float(state["budget.M"]) > 15


def test_basic_forgetron_stays_in_its_ball_of_theory():
    X, y = binary()
    model = build("ForgetronClassifier", budget=15, variant="basic", kernel=UNEVEN)
    U = math.sqrt(16 / math.log(16)) / 4
    for t in range(T):
        s = learn(model, X[t : t + 1], y[t : t + 1])
        if y[t] * s[0] <= 0 and model.n_support_ < 15:
            assert norm(model) <= U + 1e-10
            assert norm(model) ** 2 == pytest.approx(float(model._learned.engine.state()["budget.norm2"]), abs=1e-10)
    assert norm(model) ** 2 == pytest.approx(float(model._learned.engine.state()["budget.norm2"]), abs=1e-9)
    assert np.abs(model.dual_coef_).max() <= 16 ** (-1 / 32)


@pytest.mark.parametrize("variant", ["self-tuned", "basic"])
def test_forgetron_mistake_bound(variant):
    X, y = binary(1200, seed=5)
    B = 83
    model = build("ForgetronClassifier", budget=B, variant=variant, kernel=Gaussian(0.3))
    s = learn(model, X, y)
    mistakes = np.sum(y * s <= 0)
    K = Gaussian(0.3)(X)
    U = math.sqrt((B + 1) / math.log(B + 1)) / 4
    bounds = []
    for ridge in (1, 10, 100, 1000):
        g = np.linalg.solve(K + ridge * np.eye(len(X)), y)
        g *= U / math.sqrt(g @ K @ g)
        bounds.append(2 * U**2 + 4 * np.maximum(0, 1 - y * (K @ g)).sum())
    assert B < mistakes <= min(bounds)


# Promises: bounded gradients


@pytest.mark.parametrize("task", [binary, multiclass])
@pytest.mark.parametrize("name", ["BOGDClassifier", "BOGDPlusPlusClassifier"])
def test_cap_bounds_the_coefficients_after_a_removal(name, task):
    X, y = task()
    largest = []
    for cap in (1.5, None):
        model = build(name, budget=15, eta=0.3, lam=0.01, cap=cap, kernel=UNEVEN)
        sizes = []
        for t in range(T):
            learn(model, X[t : t + 1], y[t : t + 1])
            sizes.append(np.abs(model.dual_coef_).max(initial=0))
        largest.append(max(sizes))
    assert largest[0] == pytest.approx(0.45, abs=1e-12)
    assert largest[1] > 0.5


@pytest.mark.parametrize("task", [binary, multiclass])
@pytest.mark.parametrize("name", ["BOGDClassifier", "BOGDPlusPlusClassifier"])
def test_random_removal_keeps_the_expected_function(name, task, engine):
    eta, lam, budget = 0.3, 0.2, 5
    draws = 400 if engine == "python" else 4000
    X, y = task()
    make = {"budget": budget, "eta": eta, "lam": lam, "kernel": UNEVEN}
    model = build(name, **make)
    learn(model, X[:20], y[:20])
    t = next(t for t in range(20, T) if margin(model, X[t], y[t]) < 1)
    assert model.n_support_ == budget
    s = scores_of(model, X[t : t + 1])[0]
    wanted = (1 - eta * lam) * coefficients(model, X)
    wanted[t] = eta * (y[t] if task is binary else np.eye(4)[y[t]] - np.eye(4)[rival_of(s, y[t])])
    before, tables = model._learned.engine.state(), []
    for seed in np.random.default_rng(6).integers(2**63, size=draws, dtype=np.uint64):
        model._learned.engine.restore(before | {"budget.random": np.array(seed)})
        learn(model, X[t : t + 1], y[t : t + 1])
        tables.append(coefficients(model, X[: t + 1]))
    spread = np.std(tables, axis=0) / math.sqrt(draws)
    assert spread[:t].max() > 0
    assert (np.abs(np.mean(tables, axis=0) - wanted[: t + 1]) <= 4.5 * spread + 1e-12).all()
