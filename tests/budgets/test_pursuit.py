"""Dictionary learners (ALGORITHMS.md section 6): they are their boxes, and keep what their papers promise.

The boxes of `boxes.pursuit` compute every factor anew from the kernel matrix. Where one leaves a choice to chance it
is told what the library draws (`PutBack`).
"""

import inspect
from functools import cache

import numpy as np
import parts
import pytest
import scipy.sparse as sp
from box_checks import Expected, is_its_box, is_the_mean_of_its_box, same
from boxes import averaged, averaged_scores, pursuit, scores
from streams import ESTIMATORS, KERNELS, build, learn, scores_of, settings, stream_for

import onkel
from onkel.budgets import (
    AlmostLinearDependence,
    Budget,
    Coherence,
    Dissimilarity,
    InsertRemove,
    Novelty,
    Pursue,
    PursueTogether,
    Quantise,
    SelectSubset,
)
from onkel.core.errors import Diverged
from onkel.core.random import Random
from onkel.hypotheses import Expansion
from onkel.kernels import Gaussian, Linear, Polynomial, Sigmoid
from onkel.learners.learner import Learner
from onkel.losses import Hinge, Logistic, Squared
from onkel.updates import Defer, Gradient, Pegasos

SEED = 7
UNEVEN = KERNELS["uneven"]
BOXES = {
    "FSGD": pursuit.fsgd,
    "POLK": pursuit.polk,
    "IncDec": pursuit.inc_dec,
    "SubsetSelection": pursuit.subset_selection,
    "QKLMS": pursuit.qklms,
    "KNLMS": pursuit.knlms,
    "PlattRAN": pursuit.platt_ran,
    "KRLS": pursuit.krls,
}
NAMES = [name for name, cls in ESTIMATORS.items() if cls.__module__ == "onkel.algorithms.pursuit"]
TASKS = [
    pytest.param(name, number, several, id=f"{name}-{number}-{'several' if several else 'one'}")
    for name in NAMES
    for number in range(len(settings(name)))
    for several in ([False, True] if name.endswith("Classifier") else [False])
]


class PutBack:
    """A `choose` for the box that puts back what the library does: it draws the whole order when it must put back."""

    def __init__(self, seed):
        self.random, self.left, self.order = Random(seed, "put back"), None, []

    def __call__(self, ids):
        if ids != self.left:  # another round, as those that were left have gone
            left = list(ids)
            self.order = [left.pop(self.random.below(len(left))) for _ in ids]
        back = self.order.pop(0)
        self.left = [i for i in ids if i != back]
        return ids.index(back)


def box_of(name, params, X, K, y, outputs=1):
    """The history of the box with an estimator's parameters."""
    box = BOXES[name.removesuffix("Classifier").removesuffix("Regressor")]
    options = ESTIMATORS[name](**params).get_params(deep=False)
    if options.get("error", 0) is None:
        options["error"] = options["eta"] ** (1.5 if options["schedule"] == "constant" else 2)
    options |= {"choose": PutBack(SEED), "X": X, "outputs": outputs}
    known = inspect.signature(box).parameters
    found = box(K, y=y, **{key: value for key, value in options.items() if key in known})
    return found[0] if isinstance(found, tuple) else found


@cache
def expected(name, number, kernel, several):
    """The stream of an estimator, and what the box makes of it with the estimator's settings of that number."""
    X, y = stream_for(ESTIMATORS[name], several=several)
    K = KERNELS[kernel](X)
    F = box_of(name, settings(name)[number], X, K, y, outputs=4 if several else 1)
    means = averaged_scores(K, F, "live"), averaged_scores(K, F, "all")
    return X, y, Expected(scores(K, F), F[-1].copy(), averaged(F)[-1].copy(), *means)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("name", "number", "several"), TASKS)
def test_estimator_is_its_box(name, number, several, kernel, engine):
    model = build(name, **settings(name)[number], kernel=KERNELS[kernel], random_state=SEED)
    is_its_box(model, *expected(name, number, kernel, several), KERNELS[kernel])
    assert model._learned.engine.kind == engine


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("average", [True, "all"])
@pytest.mark.parametrize(("name", "number", "several"), TASKS)
def test_averaged_estimator_is_the_mean_of_its_box(name, number, several, average):
    model = build(name, **settings(name)[number], kernel=UNEVEN, random_state=SEED, average=average)
    is_the_mean_of_its_box(model, *expected(name, number, "uneven", several), UNEVEN)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("FSGD")])
def test_settings_leave_something_out_and_something_in(name):
    X, y = stream_for(ESTIMATORS[name])
    for params in settings(name):
        model = build(name, **params, kernel=UNEVEN)
        learn(model, X, y)
        assert 3 < model.n_support_ < 300, params


# Sample weights


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("name", "number", "several"), TASKS)
def test_weight_zero_leaves_the_row_out(name, number, several):
    X, y = stream_for(ESTIMATORS[name], several=several)
    weight = (np.random.default_rng(3).random(len(X)) < 0.5).astype(float)
    kept, K = weight > 0, UNEVEN(X)
    outputs = 4 if several else 1
    F = box_of(name, settings(name)[number], X[kept], K[np.ix_(kept, kept)], y[kept], outputs)
    before = F[np.cumsum(kept) - kept]  # the model each row meets, those left out too
    model = build(name, **settings(name)[number], kernel=UNEVEN, random_state=SEED)
    same(learn(model, X, y, sample_weight=weight), np.einsum("ti,tio->to", K[:, kept], before))
    assert model.t_ == kept.sum()


@pytest.mark.usefixtures("engine")
def test_weights_multiply_the_step():
    """Of a gradient: written out for POLK and KRLS, and for those that only choose where it goes."""
    X, y = stream_for(onkel.POLKRegressor, 150)
    K, weight = UNEVEN(X), np.random.default_rng(3).uniform(0.2, 1.5, len(X))
    f, D, wanted = np.zeros((len(X), 1)), [], np.zeros(len(X))
    for t in range(len(X)):
        wanted[t] = K[t] @ f[:, 0]
        f *= 1 - 0.3 * 0.1
        pursuit.append_or_project(K, f, D, t, np.array([0.3 * weight[t] * (y[t] - wanted[t])]))
        pursuit.komp(K, f, D, 0.1)
    model = onkel.POLKRegressor(eta=0.3, lam=0.1, error=0.1, kernel=UNEVEN)
    same(model.learn(X, y, sample_weight=weight), wanted)
    for name, params in (("QKLMS", {"radius": 0.0}), ("PlattRAN", {"distance": 0.0, "surprise": 0.0})):
        model, plain = (ESTIMATORS[f"{n}Regressor"](eta=0.2, kernel=UNEVEN) for n in (name, "KLMS"))
        model.set_params(**params)
        same(model.learn(X, y, sample_weight=weight), plain.learn(X, y, sample_weight=weight))


# What is promised of compression


def function(model):
    """Stored rows and coefficients of the last model."""
    return model.support_vectors_.copy(), model.dual_coef_.T.copy()


def distance2(kernel, a, b):
    """|a - b|^2 of two functions, from the kernel matrix of all their rows."""
    rows, coef = np.vstack([a[0], b[0]]), np.vstack([a[1], -b[1]])
    return float(np.sum(coef * (kernel(rows) @ coef)))


COMPRESSED = {
    "komp": ("POLK", {"error": 0.1}, 0.1),
    "multiple": ("POLK", {"error": 0.1, "compression": "multiple"}, 0.1),
    "largest": ("POLK", {"error": 0.1, "compression": "multiple", "put_back": "largest"}, 0.1),
    "diminishing": ("POLK", {"error": 3.0, "schedule": "1/sqrt(t)"}, 3.0),
    "default": ("POLK", {}, 0.3**1.5),
    "inc_dec": ("IncDec", {"insert_error": 0.1, "remove_error": 0.05}, np.hypot(0.1, 0.05)),
    "subset": ("SubsetSelection", {"error": 0.1, "candidates": 6}, 0.1),
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("task", ["Classifier", "Several", "Regressor"])
@pytest.mark.parametrize("case", COMPRESSED)
def test_f_changes_by_no_more_than_the_error(case, task):
    """|f - f~| <= error in every round, f~ being the gradient step; and the model grows by one at most."""
    name, params, error = COMPRESSED[case]
    cls = ESTIMATORS[f"{name}{'Regressor' if task == 'Regressor' else 'Classifier'}"]
    model = cls(eta=0.3, lam=0.1, kernel=UNEVEN, random_state=1, **params)
    X, y = stream_for(cls, 120, several=task == "Several")
    learn(model, X[:2], y[:2])
    removed, spent = 0, []
    for t in range(2, len(X)):
        rate = 0.3 / np.sqrt(t + 1) if case == "diminishing" else 0.3
        rows, coef = function(model)
        s = learn(model, X[[t]], y[[t]])[0]
        slope = (Squared() if task == "Regressor" else Hinge())(y[t], np.atleast_1d(s))[1]
        stepped = np.vstack([rows, X[[t]]]), np.vstack([(1 - 0.1 * rate) * coef, -rate * slope])
        spent.append(distance2(UNEVEN, stepped, function(model)))
        assert spent[-1] <= (error * (rate / 0.3) ** 2) ** 2 + 1e-12
        assert model.n_support_ <= len(rows) + 1
        removed += model.n_support_ < len(rows) + 1
    assert removed > 10 and max(spent) > (0.05 * error) ** 2


@pytest.mark.usefixtures("engine")
def test_pursuit_stops_when_the_next_removal_would_cost_too_much():
    X, y = stream_for(onkel.POLKRegressor, 150)
    model = onkel.POLKRegressor(eta=0.3, lam=0.1, error=0.1, kernel=UNEVEN)
    learn(model, X, y)
    rows, coef = function(model)
    costs = coef[:, 0] ** 2 / np.linalg.inv(UNEVEN(rows)).diagonal()
    assert costs.min() > 0 and model.n_support_ > 5
    before = model.n_support_
    learn(model, X[:1], scores_of(model, X[:1]))  # no residual: only the shrink, which may make room
    assert model.n_support_ <= before


def test_model_order_is_bounded():
    """Constant steps on a bounded set: it stops growing."""
    for name, params in (
        ("POLKRegressor", {"compression": "komp"}),
        ("POLKRegressor", {"compression": "multiple"}),
        ("POLKRegressor", {"compression": "dissimilarity"}),
        ("IncDecRegressor", {}),
        ("SubsetSelectionRegressor", {}),
        ("KRLSRegressor", {}),
        ("KNLMSRegressor", {}),
        ("QKLMSRegressor", {}),
        ("PlattRANRegressor", {"rejected": "lms", "eta": 0.1}),
    ):
        model = ESTIMATORS[name](kernel=Gaussian(1.0), **params)
        X = np.random.default_rng(0).uniform(-1, 1, size=(4000, 2))
        y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.2 * np.random.default_rng(1).normal(size=len(X))
        sizes = []
        for start in range(0, 4000, 500):
            learn(model, X[start : start + 500], y[start : start + 500])
            sizes.append(model.n_support_)
        assert 3 < max(sizes[4:]) <= max(sizes[:4]) + 3 < 100, (name, sizes)
        assert np.mean((model.predict(X) - np.sin(3 * X[:, 0]) * X[:, 1]) ** 2) < 0.05, name


# One is another


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("several", [False, True])
def test_without_an_error_nothing_is_compressed(several):
    X, y = stream_for(onkel.POLKClassifier, several=several)
    how = {"eta": 0.3, "lam": 0.1, "loss": "logistic", "kernel": Gaussian(1.0)}
    plain = onkel.FSGDClassifier(**how)
    wanted = learn(plain, X, y)
    for model in (
        onkel.POLKClassifier(**how, error=0.0),
        onkel.POLKClassifier(**how, error=0.0, compression="multiple"),
        onkel.POLKClassifier(**how, compression="dissimilarity", threshold=1.0),
        onkel.IncDecClassifier(**how, insert_error=0.0, remove_error=0.0),
        onkel.SubsetSelectionClassifier(**how, error=0.0),
    ):
        same(learn(model, X, y), wanted)
        assert model.n_support_ == plain.n_support_
    a, b = onkel.POLKClassifier(**how, error=0.1), onkel.IncDecClassifier(**how, insert_error=0.0, remove_error=0.1)
    np.testing.assert_array_equal(learn(a, X, y), learn(b, X, y))


@pytest.mark.usefixtures("engine")
def test_least_mean_squares_without_a_criterion():
    X, y = stream_for(onkel.KLMSRegressor)
    wanted = onkel.KLMSRegressor(eta=0.2).learn(X, y)
    for model in (
        onkel.QKLMSRegressor(eta=0.2, radius=0.0),
        onkel.PlattRANRegressor(eta=0.2, distance=0.0, surprise=0.0),
        onkel.FSGDRegressor(eta=0.2, lam=0.0),
    ):
        np.testing.assert_array_equal(model.learn(X, y), wanted)
    model = onkel.KNLMSRegressor(coherence=1.0)
    learn(model, X, y)
    assert model.n_support_ == len(X)


# Admission


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("coherence", [0.2, 0.5, 0.9])
def test_the_dictionary_is_coherent(coherence):
    X, y = stream_for(onkel.KNLMSRegressor)
    rows = {}
    for model in (
        onkel.KNLMSRegressor(coherence=coherence, kernel=UNEVEN),
        onkel.POLKRegressor(compression="dissimilarity", threshold=1 / coherence, kernel=UNEVEN),
    ):
        learn(model, X, y)
        K = UNEVEN(model.support_vectors_)
        cosine = K / np.sqrt(np.outer(K.diagonal(), K.diagonal()))
        assert (cosine[~np.eye(len(K), dtype=bool)] <= coherence).all()
        away = UNEVEN(X, model.support_vectors_) / np.sqrt(np.outer(UNEVEN(X).diagonal(), K.diagonal()))
        assert (away.max(axis=1) > coherence).all() and len(K) < len(X)  # nobody else could have joined
        rows[type(model)] = model.support_vectors_
    first, second = rows.values()
    assert np.array_equal(first, second)


@pytest.mark.usefixtures("engine")
def test_a_step_of_knlms_without_ridge_fits_the_example():
    X, y = stream_for(onkel.KNLMSRegressor, 60)
    model = onkel.KNLMSRegressor(eta=1.0, ridge=0.0, kernel=UNEVEN)
    for x, target in zip(X, y, strict=True):
        model.learn_one(x, target)
        assert model.predict_one(x) == pytest.approx(target, abs=1e-10)


@pytest.mark.usefixtures("engine")
def test_examples_without_a_residual_join_all_the_same():
    """The criteria of KNLMS and KRLS do not ask for one, and KRLS counts it."""
    X = stream_for(onkel.KRLSRegressor, 30)[0]
    y = np.zeros(30)
    y[20:] = 1.0
    for model, box in (
        (onkel.KNLMSRegressor(eta=0.3, kernel=UNEVEN), {"eta": 0.3, "coherence": 0.5, "ridge": 0.01}),
        (onkel.KRLSRegressor(nu=0.3, kernel=UNEVEN), {"nu": 0.3}),
    ):
        name = type(model).__name__
        F = BOXES[name.removesuffix("Regressor")](UNEVEN(X), y, **box)
        same(learn(model, X, y), scores(UNEVEN(X), F)[:, 0])


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("form", ["dense", "float32", "sparse", "wide"])
def test_quantisation_keeps_terms_apart(form):
    X, y = stream_for(onkel.QKLMSRegressor, 200, form=form)
    model = onkel.QKLMSRegressor(radius=0.6, kernel=Linear() + Gaussian(1.0))
    learn(model, X, y)
    rows = model.support_vectors_
    rows = (rows.toarray() if sp.issparse(rows) else rows).astype(np.float64)
    all_rows = (X.toarray() if sp.issparse(X) else X).astype(np.float64)
    between = np.linalg.norm(rows[:, None] - rows, axis=2) + 9 * np.eye(len(rows))
    assert between.min() > 0.6
    assert (np.linalg.norm(all_rows[:, None] - rows, axis=2).min(axis=1) <= 0.6).all()
    model = onkel.QKLMSRegressor(radius=0.0, kernel=Linear() + Gaussian(1.0))
    learn(model, X, y)
    learn(model, X, y)  # every row a second time, found again however it is stored
    assert model.n_support_ == len(np.unique(all_rows, axis=0))


@pytest.mark.usefixtures("engine")
def test_at_the_edges_of_distance_and_surprise():
    X, y = np.array([[0.0], [1.0], [2.5]]), np.array([1.0, 2.0, 3.0])
    model = onkel.QKLMSRegressor(radius=1.0, kernel=Gaussian(1.0))
    learn(model, X, y)
    assert model.support_vectors_[:, 0].tolist() == [0.0, 2.5]
    model = onkel.PlattRANRegressor(distance=1.0, surprise=3.0, kernel=Linear() + 1e-12)
    learn(model, X[[1, 0, 2]], np.array([3.0, 9.0, 9.0]))  # as surprising as can be; too near; neither
    assert model.support_vectors_[:, 0].tolist() == [1.0, 2.5]


# Recursive least squares


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("nu", [0.05, 0.3])
def test_krls_is_least_squares_on_projected_features(nu):
    X, y = stream_for(onkel.KRLSRegressor, 200)
    model = onkel.KRLSRegressor(nu=nu, kernel=UNEVEN)
    learn(model, X, y)
    rows, coef = function(model)
    D = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in rows]
    K, A = UNEVEN(X), np.zeros((len(X), len(D)))
    for t in range(len(X)):
        S = [i for i in D if i < t]
        a = np.linalg.solve(K[np.ix_(S, S)], K[S, t])
        assert (not S or K[t, t] - K[S, t] @ a > nu) == (t in D)
        A[t, : len(S)] = a
        if t in D:
            A[t] = np.arange(len(D)) == D.index(t)
    wanted = np.linalg.lstsq(A @ K[np.ix_(D, D)], y, rcond=None)[0]
    same(coef[:, 0], wanted, 1e-8)


@pytest.mark.usefixtures("engine")
def test_krls_without_tolerance_interpolates():
    X, y = stream_for(onkel.KRLSRegressor, 60)
    model = onkel.KRLSRegressor(nu=0.0, kernel=Gaussian(1.0))
    learn(model, X, y)
    assert model.n_support_ == 60
    np.testing.assert_allclose(model.predict(X), y, atol=1e-7)
    linear = onkel.KRLSRegressor(nu=0.0, kernel=Polynomial(2))  # 15 features: the rest is dependent
    learn(linear, *stream_for(onkel.KRLSRegressor, 200))
    X, y = stream_for(onkel.KRLSRegressor, 200)
    assert linear.n_support_ == 15
    features = np.column_stack([np.ones(200), X, *(X[:, i] * X[:, j] for i in range(4) for j in range(i, 4))])
    fit = features @ np.linalg.lstsq(features, y, rcond=None)[0]
    np.testing.assert_allclose(linear.predict(X), fit, atol=1e-6)


# Hard cases


HYPOTHESES = [
    Expansion(UNEVEN, budget) for budget in parts.examples(Budget) if type(budget).__module__ == "onkel.budgets.pursuit"
]


def without_ties(s, y):
    """The number of rounds before the best two rivals are equal up to rounding, which then decides."""
    if s.shape[1] == 1:
        return len(s)
    rivals = np.sort(np.where(np.arange(s.shape[1]) == y[:, None], -np.inf, s))
    ties = (rivals[:, -1] - rivals[:, -2] < 1e-9) & (rivals[:, -1] != 0)  # at 0 nothing is rounded
    return int(np.argmax(ties)) if ties.any() else len(s)


@pytest.mark.skipif(not onkel.native.available(), reason="the native engine is not built")
@pytest.mark.parametrize("form", ["dense", "float32", "sparse", "wide"])
@pytest.mark.parametrize("hypothesis", HYPOTHESES, ids=lambda hypothesis: str(hypothesis.budget))
def test_twins_agree(hypothesis, form):
    """In state and scores, with every kind of loss; duplicates are in the stream."""
    outputs_of = {Squared(): 1, Hinge(): 1, Logistic(): 4}
    own = "own step" in hypothesis.offers
    for loss, outputs in [(Squared(), 1)] if own else outputs_of.items():
        name = "KLMSRegressor" if loss == Squared() else "OGDClassifier"
        X, y = stream_for(ESTIMATORS[name], 70, 3, form, outputs > 1)
        again = np.random.default_rng(0).permutation(np.r_[np.arange(70), np.arange(30)])
        X, y = X[again], y[again].astype(float)
        for update in (Defer(),) if own else (Gradient(0.3, 0.1), Gradient(0.3, 0.1, "1/sqrt(t)"), Pegasos(0.3)):
            options = {"outputs": outputs, "average": "all", "seed": 5, "columns": X.shape[1], "dtype": X.dtype}
            options["sparse"] = sp.issparse(X)
            rehearsal, python, other = (Learner(hypothesis, loss, update, **options) for _ in range(3))
            rounds = without_ties(rehearsal.learn(X, y)[0], y)
            assert rounds > 40
            with onkel.use_engine("native"):
                twin = onkel.native.fastest(other)
            assert twin.kind == "native"
            wanted = python.learn(X[:rounds], y[:rounds])
            tolerance = 2e-4 if form == "float32" else 1e-9
            same(twin.learn(X[:rounds], y[:rounds]), wanted, tolerance)
            a, b = twin.state(), python.state()
            assert {k: (v.dtype, v.shape) for k, v in a.items()} == {k: (v.dtype, v.shape) for k, v in b.items()}
            for key in a:
                if a[key].size and not key.startswith("budget.factor") and not key.endswith("random"):
                    same(a[key], b[key], tolerance)
            assert a.get("budget.random") == b.get("budget.random")


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", NAMES)
def test_duplicates_are_stored_once(name):
    """Where the criterion is one of dependence or distance; FSGD keeps all."""
    X, y = stream_for(ESTIMATORS[name], 20)
    rows = np.tile(np.arange(20), 15)
    model = build(name, kernel=UNEVEN)
    assert np.isfinite(learn(model, X[rows], y[rows])).all()
    assert model.n_support_ <= 20 or name.startswith("FSGD")


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_nearly_float64(name, engine):
    X, y = stream_for(ESTIMATORS[name], 200, form="float32")
    for number, params in enumerate(settings(name)):
        single, double = (build(name, **params, kernel=UNEVEN, random_state=SEED) for _ in range(2))
        a, b = learn(single, X, y), learn(double, X.astype(np.float64), y)
        same(a, b, 1e-3 if name == "KRLSRegressor" else 1e-4)
        assert single.n_support_ == double.n_support_, number


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", NAMES)
def test_slowly_moving_inputs(name):
    """A kernel matrix that is singular to rounding, round after round."""
    t = np.arange(600)
    X = np.column_stack([np.sin(t / 200), np.cos(t / 200)])
    y = np.sin(t / 50) if name.endswith("Regressor") else np.where(np.sin(t / 50) > 0, 1.0, -1.0)
    model = ESTIMATORS[name](kernel=Gaussian(0.5))
    assert np.abs(learn(model, X, y)).max() < 5
    assert np.isfinite(scores_of(model, X)).all()


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", NAMES)
def test_no_term_where_the_kernel_vanishes_or_is_negative(name):
    X, y = stream_for(ESTIMATORS[name], 40)
    X[7] = 0
    for kernel in (Linear(), Sigmoid(0.5, -1.0)):
        model = build(name, kernel=kernel)
        learn(model, X, y)
        assert model.t_ == 40
        assert all(kernel(row)[0, 0] > 0 for row in model.support_vectors_)


@pytest.mark.usefixtures("engine")
def test_steps_out_of_range_are_refused():
    for name in ("KNLMSRegressor", "KRLSRegressor"):
        params = {"ridge": 0.0} if name.startswith("KNLMS") else {}
        model = ESTIMATORS[name](kernel=Linear(), **params)
        with pytest.raises(Diverged, match="row 0: the step is"):
            learn(model, np.array([[1e-120], [1.0]]), np.array([1.0, 2.0]))
        assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pursue(-1.0), r"Pursue\.error must be >= 0, got -1.0"),
        (lambda: Pursue(0.1, "t"), r"Pursue\.schedule must be one of 'constant', '1/t', '1/sqrt\(t\)', got 't'"),
        (lambda: PursueTogether(put_back="all"), r"PursueTogether\.put_back must be one of 'random', 'largest'"),
        (lambda: SelectSubset(candidates=0), r"SelectSubset\.candidates must be an integer >= 1, got 0"),
        (lambda: InsertRemove(0.1, np.inf), r"InsertRemove\.remove_error must be a finite number, got inf"),
        (lambda: Dissimilarity(0.9), r"Dissimilarity\.threshold must be >= 1, got 0.9"),
        (lambda: Quantise(-0.1), r"Quantise\.radius must be >= 0, got -0.1"),
        (lambda: Novelty(rejected="keep"), r"Novelty\.rejected must be one of 'discard', 'lms', got 'keep'"),
        (lambda: Coherence(1.5), r"Coherence\.coherence must be <= 1, got 1.5"),
        (lambda: AlmostLinearDependence(np.nan), r"AlmostLinearDependence\.nu must be >= 0, got nan"),
        (lambda: onkel.POLKClassifier(compression="none").fit([[0.0], [1.0]], [0, 1]), r"compression must be one of"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()
