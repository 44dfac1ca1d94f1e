"""Learners whose terms need not be examples: BSGD by merging and TVM, against their boxes and by their own laws."""

from functools import cache

import numpy as np
import parts
import pytest
import scipy.sparse as sp
from boxes import gradients
from boxes import merging as box
from boxes import scores as box_scores
from streams import BUDGET, CLASSES, FORMS, binary, build, hypothesis_of, learn, multiclass, settings

import onkel
from onkel.budgets import Budget, Merge, TwinVectors, merging
from onkel.core.errors import Diverged
from onkel.hypotheses import Expansion
from onkel.kernels import Gaussian, Laplacian, Polynomial
from onkel.learners.learner import Learner
from onkel.losses import EpsilonInsensitive, Hinge, Logistic, Squared
from onkel.updates import Defer, Gradient, PassiveAggressive, Pegasos, Perceptron

GAMMA = 0.25
KERNEL = Gaussian(GAMMA)
# of their settings, those that merge
NUMBERS = {
    name: [i for i, params in enumerate(settings(name)) if isinstance(hypothesis_of(name, params).budget, budget)]
    for name, budget in {"BSGDClassifier": Merge, "TVMClassifier": TwinVectors}.items()
}
HYPOTHESES = [
    Expansion(KERNEL, budget) for budget in parts.examples(Budget) if type(budget).__module__ == "onkel.budgets.merging"
]
CASES = [
    *(("BSGDClassifier", number, several) for number in NUMBERS["BSGDClassifier"] for several in (False, True)),
    *(("TVMClassifier", number, False) for number in NUMBERS["TVMClassifier"]),
]
native = pytest.mark.skipif(not onkel.native.available(), reason="there is one engine")
every_case = pytest.mark.parametrize(("name", "number", "several"), CASES)


def stream(several=False, rounds=200, form="dense"):
    return (multiclass if several else binary)(rounds, form=form)


def params_of(name, number):
    """Settings that merge, to the last digit."""
    return {**settings(name)[number], **({"precision": 1e-12} if name == "TVMClassifier" else {})}


def made(name, number, **more):
    return build(name, **params_of(name, number), kernel=KERNEL, **more)


@cache
def expected(name, number, several):
    """Scores of the box before each round, and (points, coefficients, b) before each round and at the end."""
    X, y = stream(several)
    if name == "BSGDClassifier":
        lam = params_of(name, number)["lam"]
        scores, states = box.bsgd_merge(X, y, gamma=GAMMA, outputs=4 if several else 1, budget=BUDGET, lam=lam)
        return scores, [(points, a, 0.0) for points, a in states]
    options = {"admit": 1.5, "drop": 2.0, **params_of(name, number)}
    options["margin_rule"] = options.pop("by_margin", False)
    del options["precision"]
    scores, states = box.tvm(X, y, gamma=GAMMA, **options)
    return scores, [(s.points, s.weights[:, :1] - s.weights[:, 1:], s.b) for s in states]


def same(actual, wanted, tolerance=1e-10):
    wanted = np.reshape(wanted, np.shape(actual))
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=tolerance * np.abs(wanted).max(initial=1.0))


def function(state, A):
    """f of the rows of A."""
    points, a, b = state
    return box.gaussian(A, points, GAMMA) @ a + b


@every_case
def test_estimator_is_its_box(engine, name, number, several):
    X, y = stream(several)
    scores, states = expected(name, number, several)
    model = made(name, number)
    same(learn(model, X, y), scores)
    assert model.engine_ == engine and model.t_ == len(X)
    points, a, _ = states[-1]
    assert model.n_support_ == len(points)
    same(model.support_vectors_, points)
    same(model.dual_coef_.T, a, 1e-8)  # twins close to each other share what is theirs in many ways
    fresh = stream(rounds=20)[0] + 0.1
    same(model.decision_function(fresh), function(states[-1], fresh))


@pytest.mark.parametrize("average", [True, "all"])
@every_case
def test_averaged_estimator_is_the_mean_of_its_box(engine, name, number, several, average):
    X, y = stream(several)
    _, states = expected(name, number, several)
    rounds = len(X) if engine == "native" or name == "BSGDClassifier" else 100
    found = learn(made(name, number, average=average), X[:rounds], y[:rounds])
    for t in range(0, rounds, 7):
        alive = {point.tobytes() for point in states[t][0]}
        total = 0.0
        for points, a, b in states[: t + 1]:
            lives = np.array([average == "all" or point.tobytes() in alive for point in points], dtype=bool)
            total = total + function((points[lives], a[lives], b), X[t : t + 1])[0]
        same(found[t], total / (t + 1))


@native
@every_case
def test_precision_of_the_search_or_the_solver_matters_little_and_engines_agree_on_it(name, number, several):
    X, y = stream(several)
    if name == "TVMClassifier":
        loose = {"precision": 1e-3}
    else:
        loose = {"search": "table" if params_of(name, number).get("search", "exact") == "exact" else "exact"}
    models = {}
    for engine in ("python", "native"):
        with onkel.use_engine(engine):
            models[engine] = made(name, number).set_params(**loose)
            learn(models[engine], X, y)
    for attribute in ("support_vectors_", "dual_coef_"):
        same(getattr(models["native"], attribute), getattr(models["python"], attribute), 1e-9)
    fresh = stream(rounds=20)[0] + 0.1
    apart = 1e-9 if name == "BSGDClassifier" else 0.2
    same(models["native"].decision_function(fresh), function(expected(name, number, several)[1][-1], fresh), apart)


@native
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["BSGDClassifier", "TVMClassifier"])
def test_chunking_where_examples_are_looked_at_ahead(name, form):
    """Budgets so large that kernel rows are computed for several examples at once, before rows are made."""
    X, y = stream(rounds=700, form=form)
    params = {"maintenance": "merge", "search": "table"} if name == "BSGDClassifier" else {}
    whole, single = (build(name, **params, budget=100, kernel=KERNEL, average=True) for _ in range(2))
    scores = learn(whole, X, y)
    np.testing.assert_array_equal(np.concatenate([learn(single, X[[i]], y[[i]]) for i in range(len(y))]), scores)
    assert whole.n_support_ == 100
    stored = whole.support_vectors_
    rows = {row.tobytes() for row in (X.toarray() if sp.issparse(X) else X)}
    stored = stored.toarray() if sp.issparse(stored) else stored
    assert sum(row.tobytes() not in rows for row in stored) > 10  # many were made
    a, b = whole.state()[0], single.state()[0]
    for key in a:
        np.testing.assert_array_equal(a[key], b[key], err_msg=key)


@native
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hypothesis", HYPOTHESES, ids=lambda hypothesis: str(hypothesis.budget))
def test_twins_agree(hypothesis, form):
    own = "own step" in hypothesis.offers
    updates = [Defer()] if own else [Pegasos(0.1), Gradient(0.3, 0.5), PassiveAggressive("I", 0.4), Perceptron()]
    for several in (False,) if own else (False, True):
        X, y = stream(several, 60, form)
        for loss in (Hinge(),) if own else (Hinge(), Logistic()):
            for update in updates if isinstance(loss, Hinge) else updates[:2]:
                options = {"outputs": CLASSES if several else 1, "average": "all", "columns": X.shape[1]}
                options |= {"dtype": X.dtype, "sparse": sp.issparse(X)}
                learners = [Learner(hypothesis, loss, update, **options) for _ in range(2)]
                with onkel.use_engine("native"):
                    twin = onkel.native.fastest(learners[1])
                tolerance = 1e-4 if form == "float32" else 1e-9
                same(twin.learn(X, y.astype(float)), learners[0].learn(X, y.astype(float)), tolerance)
                a, b = twin.state(), learners[0].state()
                assert {k: v.shape for k, v in a.items()} == {k: v.shape for k, v in b.items()}
                for key in a if form != "float32" else ():
                    same(a[key], b[key], 1e-8)


@pytest.mark.usefixtures("engine")
def test_merging_by_regression_losses_keeps_the_budget():
    X = stream(rounds=200)[0]
    for loss in (Squared(), EpsilonInsensitive(0.1)):
        learner = Learner(Expansion(KERNEL, Merge(10)), loss, Gradient(0.2), columns=X.shape[1])
        scores, _ = onkel.native.fastest(learner).learn(X, X[:, 0])
        assert np.abs(scores[100:, 0] - X[100:, 0]).mean() < np.abs(X[100:, 0]).mean() / 2


# Merging


def pairs(size=300, outputs=1, seed=0):
    """Coefficients with |a_m| <= |a_n| and a_m . a_n > 0, and gamma |x_m - x_n|^2."""
    generator = np.random.default_rng(seed)
    a_m, a_n = generator.normal(size=(2, size, outputs))
    a_n[np.sum(a_m * a_n, axis=1) < 0] *= -1
    swap = np.linalg.norm(a_m, axis=1) > np.linalg.norm(a_n, axis=1)
    a_m[swap], a_n[swap] = a_n[swap].copy(), a_m[swap].copy()
    a_n[::9] = a_m[::9]  # equal coefficients are the commonest
    return a_m, a_n, np.exp(generator.uniform(np.log(1e-3), np.log(40), size))


def products(a_m, a_n):
    return (np.sum(a_m**2, axis=-1), np.sum(a_n**2, axis=-1), np.sum(a_m * a_n, axis=-1))


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_share_is_the_best_of_a_grid(outputs):
    for a_m, a_n, distance in zip(*pairs(outputs=outputs), strict=True):
        h = float(merging.best_share(*products(a_m, a_n), distance, steps=44))
        wd = float(merging.degradation(*products(a_m, a_n), distance, steps=44))
        _, on_grid = box.best_merge_on_grid(a_m, a_n, distance)
        assert 0 <= h <= 0.5
        assert box.degradation(a_m, a_n, distance, h) <= on_grid + 1e-12
        assert wd == pytest.approx(box.degradation(a_m, a_n, distance, h), abs=1e-12)
        assert h == pytest.approx(box.best_merge(a_m, a_n, distance), abs=1e-10)
        # never worse than removing m, and never a gain
        assert 0 <= wd <= a_m @ a_m + 1e-12


@pytest.mark.parametrize("steps", [20, 44])
def test_the_search_is_as_good_as_golden_section(steps):
    for outputs in (1, 3):
        for a_m, a_n, distance in zip(*pairs(outputs=outputs), strict=True):
            golden = box.degradation(a_m, a_n, distance, box.golden_section(a_m, a_n, distance))
            found = float(merging.degradation(*products(a_m, a_n), distance, steps=steps))
            assert found <= golden + 1e-12
            assert found == pytest.approx(golden, abs=1e-6 * (a_n @ a_n))


def test_the_table_is_close_everywhere():
    generator = np.random.default_rng(0)
    mu, kappa = generator.uniform(0, 0.5, 200_000), generator.uniform(0, 1, 200_000)
    mu[::4] = 0.5
    mu[1::4] = 0.5 - generator.exponential(1e-3, len(mu[1::4]))
    kappa[::8] = generator.uniform(0, 0.01, len(kappa[::8]))
    exact = merging.degradation(mu**2, (1 - mu) ** 2, mu * (1 - mu), merging.distance_of(kappa), steps=30)
    error = np.abs(merging.looked_up(mu, kappa) - exact)
    assert error.max() < 1e-3
    assert error[mu < 0.499].max() < 1e-4
    assert error[::4].max() < 1e-4  # equal coefficients are nodes
    assert merging.table().min() >= 0 and merging.looked_up(np.array([0.3, 0.5]), np.ones(2)).max() == 0


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("several", [False, True])
def test_merging_changes_f_by_its_degradation_and_no_other_pair_is_better(several):
    X, y = stream(several, 120)
    model = build("BSGDClassifier", budget=BUDGET, lam=0.05, maintenance="merge", kernel=KERNEL)
    learn(model, X[:60], y[:60])
    merged = 0
    for t in range(60, 120):
        before = model.state()[0]
        shrink = 1 - 1 / (t + 1)
        points, a = before["basis.x"], before["basis.coef"] * before["scale"] * shrink
        s = np.atleast_1d(learn(model, X[t : t + 1], y[t : t + 1])[0])
        if gradients.margin(s, y[t]) >= 1:
            continue
        points = np.vstack([points, X[t]])
        a = np.vstack([a, gradients.direction(s, y[t]) / (0.05 * (t + 1))])
        after = model.state()[0]
        both = np.vstack([points, after["basis.x"]])
        change = np.vstack([a, -after["basis.coef"] * after["scale"]])
        moved = np.einsum("io,ij,jo", change, box.gaussian(both, both, GAMMA), change)
        m = int(np.argmin((a**2).sum(axis=1)))
        candidates = [
            box.best_merge_on_grid(a[m], a[n], GAMMA * np.sum((points[m] - points[n]) ** 2), 0.0, 0.5)[1]
            for n in range(len(a))
            if n != m and a[m] @ a[n] > 0
        ]
        assert moved == pytest.approx(min(candidates), abs=1e-6)
        assert moved <= a[m] @ a[m] + 1e-9
        merged += 1
    assert merged > 10


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("search", ["exact", "table"])
def test_without_a_partner_the_smallest_leaves(search):
    model = onkel.BSGDClassifier(budget=1, lam=1.0, maintenance="merge", search=search, kernel=KERNEL)
    X, y = np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([1.0, -1.0])
    learn(model, X, y)
    np.testing.assert_array_equal(model.support_vectors_, X[1:])  # of +1/2 and -1/2 the older
    np.testing.assert_allclose(model.dual_coef_, [[-0.5]])


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("search", ["exact", "table"])
def test_duplicates_add_up(search):
    """Rows that are all the same are one term, with nothing lost."""
    X, y = np.repeat([[0.3, -0.2]], 40, axis=0), np.repeat([1.0], 40)
    merged = onkel.BSGDClassifier(budget=1, lam=0.23, maintenance="merge", search=search, kernel=KERNEL)
    plain = onkel.PegasosClassifier(lam=0.23, kernel=KERNEL)
    same(learn(merged, X, y), learn(plain, X, y))
    np.testing.assert_array_equal(merged.support_vectors_, X[:1])


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("search", ["exact", "table"])
def test_a_stream_of_few_points_keeps_the_budget(search):
    """Full of ties: equal rows, equal distances, equal coefficients."""
    generator = np.random.default_rng(0)
    X = generator.integers(0, 2, size=(300, 4)).astype(float)
    y = np.where(X.sum(axis=1) + generator.normal(size=300) > 2, 1.0, -1.0)
    found = []
    for engine in ["python", "native"] if onkel.native.available() else ["python"]:
        with onkel.use_engine(engine):
            model = onkel.BSGDClassifier(budget=6, lam=0.05, maintenance="merge", search=search, kernel=KERNEL)
            found.append(learn(model, X, y))
            assert model.n_support_ <= 6
    same(found[-1], found[0], 1e-8)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("several", [False, True])
def test_a_large_budget_is_pegasos(several):
    X, y = stream(several)
    model = onkel.BSGDClassifier(budget=400, lam=0.05, maintenance="merge", kernel=KERNEL)
    F = gradients.pegasos(KERNEL(X), y, lam=0.05, **({"outputs": 4} if several else {}))
    same(learn(model, X, y), box_scores(KERNEL(X), F))


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Gaussian(1.0) + 1, Polynomial(2)])
def test_other_kernels_are_refused(kernel):
    X, y = stream(rounds=20)
    with pytest.raises(ValueError, match=r"BSGDClassifier: Merge\(.*\) needs a Gaussian kernel.*; got "):
        onkel.BSGDClassifier(maintenance="merge", kernel=kernel).fit(X, y)
    with pytest.raises(ValueError, match=r"BSGDClassifier\.search must be one of 'exact', 'table', got 'quick'"):
        onkel.BSGDClassifier(maintenance="merge", search="quick").fit(X, y)


# Twin vectors


def twins(model):
    """(points, counts, weights, b) of a model, as the box has them; weights follow from v at the optimum."""
    state = model.state()[0]
    counts = np.hstack([state["basis.positive"], state["basis.negative"]])
    v, C = state["basis.coef"][:, 0] * state["scale"], model.C
    positive = np.minimum(C * counts[:, 0], C * counts[:, 1] + v)
    return state["basis.x"], counts, np.stack([positive, positive - v], axis=1), float(model.intercept_[0])


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("precision", [1e-3, 1e-9])
@pytest.mark.parametrize(("name", "number"), [("TVMClassifier", number) for number in NUMBERS["TVMClassifier"]])
def test_every_round_ends_at_the_optimum_and_no_example_is_lost(name, number, precision):
    X, y = stream(rounds=150)
    model = made(name, number).set_params(precision=precision)
    learn(model, X[:1], y[:1])
    for t in range(1, len(X)):
        learn(model, X[t : t + 1], y[t : t + 1])
        points, counts, weights, b = twins(model)
        violation = box.kkt_violation(KERNEL(points), weights, counts, model.C, b, tolerance=1e-9 * model.C)
        assert violation <= precision + 1e-11
        assert (weights >= -1e-9).all() and (weights <= model.C * counts + 1e-9).all()
        assert len(points) <= BUDGET
        if model.bias:
            assert weights[:, 0].sum() == pytest.approx(weights[:, 1].sum(), abs=1e-9 * model.C * len(X))
    options = {name: getattr(model, name) for name in ("budget", "C", "admit", "drop", "bias")}
    last = box.tvm(X, y, gamma=GAMMA, margin_rule=model.by_margin, **options)[1][-1]
    if precision < 1e-6:
        assert counts.sum() == last.accepted - last.dropped
        assert number == 0 or last.dropped > 0


@pytest.mark.usefixtures("engine")
def test_one_label_gives_zero():
    X, y = stream(rounds=60)
    model = build("TVMClassifier", budget=8, kernel=KERNEL)
    assert not learn(model, X[y > 0], y[y > 0]).any()
    assert model.n_support_ == 8 and model.intercept_[0] == 0
    state = model.state()[0]
    assert state["basis.positive"].sum() == (y > 0).sum() and not state["basis.negative"].any()
    learn(model, X[y < 0], y[y < 0])
    assert model.decision_function(X).any()


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("average", [False, True])
def test_f_is_its_terms_and_the_intercept(average):
    X, y = stream()
    for bias in (True, False):
        model = build("TVMClassifier", budget=BUDGET, bias=bias, average=average, kernel=KERNEL)
        learn(model, X, y)
        f = KERNEL(X, model.support_vectors_) @ model.dual_coef_[0] + model.intercept_[0]
        same(model.decision_function(X), f)
        assert (model.intercept_[0] != 0) == bias == ("bias" in model.state()[0])
    other = build("RBPClassifier", average=average)
    learn(other, X, y)
    assert not {"bias", "bias_sum"} & other.state()[0].keys()


@pytest.mark.usefixtures("engine")
def test_a_sample_weight_is_a_count():
    X, y = stream(rounds=12)
    weight = np.random.default_rng(0).uniform(0.5, 3.0, 12)
    model = build("TVMClassifier", budget=20, C=0.7, precision=1e-10, kernel=KERNEL, admit=10.0, drop=10.0)
    learn(model, X, y, sample_weight=weight)
    counts = np.stack([weight * (y > 0), weight * (y < 0)], axis=1)
    weights, b = box.weighted_svm(KERNEL(X), counts, 0.7, True)
    same(model.decision_function(X), KERNEL(X) @ (weights[:, 0] - weights[:, 1]) + b, 1e-8)


@pytest.mark.usefixtures("engine")
def test_a_weight_out_of_range_leaves_no_point():
    X, y = stream(rounds=20)
    model = build("TVMClassifier", C=100.0, kernel=KERNEL)
    learn(model, X, y)
    before = model.decision_function(X)
    with pytest.raises(Diverged, match="row 0: C times the sample weight is 1e\\+151"):
        learn(model, X[:1] + 0.1, y[:1], sample_weight=[1e149])
    np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.usefixtures("engine")
def test_twins_with_ties():
    """Few different points: equal rows, equal distances, both labels at one point."""
    generator = np.random.default_rng(0)
    X = generator.integers(0, 2, size=(150, 4)).astype(float)
    y = np.where(X.sum(axis=1) + generator.normal(size=150) > 2, 1.0, -1.0)
    model = build("TVMClassifier", budget=7, precision=1e-11, kernel=KERNEL)
    wanted, states = box.tvm(X, y, gamma=GAMMA, budget=7, C=1.0, admit=1.5, drop=2.0)
    same(learn(model, X, y), wanted[:, 0], 1e-8)
    same(model.support_vectors_, states[-1].points)


@pytest.mark.usefixtures("engine")
def test_the_rule_by_margin_cannot_lock():
    """Two points whose labels change: with admit < 1 the published rule never looks at them again."""
    X, y = np.tile([[-1.0], [1.0]], (20, 1)), np.tile([-1.0, 1.0], 20)
    y[6:] *= -1
    for by_margin in (False, True):
        model = build("TVMClassifier", budget=5, C=9.0, admit=0.7, drop=2.0, by_margin=by_margin, kernel=KERNEL)
        learn(model, X, y)
        assert (model.predict(X[:2]) == y[-2:]).all() == by_margin
    # and a boundary that turns
    generator = np.random.default_rng(0)
    X, angle = generator.normal(size=(400, 2)), np.linspace(0, 1.5 * np.pi, 400)
    y = np.where(X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) > 0, 1.0, -1.0)
    mistakes = []
    for by_margin in (False, True):
        model = build("TVMClassifier", budget=20, C=10.0, admit=0.7, by_margin=by_margin, kernel=Gaussian(0.5))
        mistakes.append(np.sum((learn(model, X, y) >= 0) != (y > 0)))
    assert mistakes[1] < 0.8 * mistakes[0]


@pytest.mark.usefixtures("engine")
def test_two_classes_only():
    X, y = stream(True, 40)
    with pytest.raises(ValueError, match=r"Only binary classification is supported\. TVMClassifier"):
        onkel.TVMClassifier().fit(X, y)
    with pytest.raises(ValueError, match="needs one output; got 3"):
        Learner(Expansion(KERNEL, TwinVectors()), Hinge(), Defer(), outputs=3)
    with pytest.raises(ValueError, match=r"needs the loss Hinge\(\); got Squared"):
        Learner(Expansion(KERNEL, TwinVectors()), Squared(), Defer())
    with pytest.raises(ValueError, match=r"needs an update that leaves the step to the budget, Defer\(\); got Percep"):
        Learner(Expansion(KERNEL, TwinVectors()), Hinge(), Perceptron())
    with pytest.raises(ValueError, match=r"TVMClassifier\.drop must be >= admit = 1\.5, got 1\.2"):
        onkel.TVMClassifier(drop=1.2).fit(X, y > 0)
