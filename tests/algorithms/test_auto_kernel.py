"""AutoKernel: scaling as rows come, invariance to units, bounded size, and close to the best of what is inside."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from streams import binary, inputs, multiclass, signal

import onkel
from onkel.core.scores import decided
from onkel.learners.learner import Learner
from onkel.learners.scaled import Scaled
from onkel.native import fastest

SMALL = {"components": 40, "budget": 20}
UNITS = np.array([1e-3, 1.0, 64.0, 1e5])
AUTO = [onkel.AutoKernelClassifier, onkel.AutoKernelRegressor]


class Spy:
    """A learner that keeps what it is shown, and says 0."""

    outputs, kind, t, n, dtype = 1, "python", 0, 0, np.dtype("float64")

    def __init__(self):
        self.rows, self.targets, self.asked = [], [], None

    def learn(self, X, y, weight=None):
        self.rows.append(X.toarray() if sp.issparse(X) else X)
        self.targets.append(y)
        return (np.zeros((len(y), 1)),) * 2

    def scores(self, X):
        self.asked = X.toarray() if sp.issparse(X) else X
        return np.zeros((X.shape[0], 1))


def shown(X, y, weight=None, cuts=(), target=False):
    """What the inner learner sees of a stream given in pieces, and the predictions."""
    spy = Spy()
    scaled = Scaled(spy, columns=X.shape[1], target=target, dtype="float64")
    pieces = np.split(np.arange(X.shape[0]), cuts)
    scores = [scaled.learn(X[i], y[i], None if weight is None else weight[i])[0] for i in pieces]
    return np.vstack(spy.rows), np.concatenate(spy.targets), np.concatenate(scores)[:, 0], scaled


def by_definition(X):
    """z of the module's docstring, one row after the other."""
    Z = np.zeros(X.shape)
    for t in range(1, len(X)):
        past, limit = X[:t] - X[0], np.sqrt(2 * (t + 1))
        varied = (past != 0).any(axis=0)
        away = (X[t] - X[0])[varied] / past.std(axis=0)[varied]
        Z[t, varied] = np.clip(away, -limit, limit) / np.sqrt(2 * max(varied.sum(), 1))
    return Z


def task(cls, rounds=300, form="dense"):
    X = inputs(rounds, form=form)
    return (X, signal(X, 0)) if cls is onkel.AutoKernelRegressor else binary(rounds, form=form)


# -- scaling


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_scaling_is_its_definition(form):
    X, y = binary(60, form=form)
    Z = shown(X, y)[0]
    dense = X.toarray() if sp.issparse(X) else X
    np.testing.assert_allclose(Z, by_definition(dense), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_scaling_does_not_depend_on_chunks(form, monkeypatch):
    X, y = binary(90, form=form)
    whole = shown(X, y, target=True)
    for cuts in ([1, 2, 3, 50], list(range(1, 90))):
        for a, b in zip(whole[:3], shown(X, y, cuts=cuts, target=True)[:3], strict=True):
            assert np.array_equal(a, b)
    monkeypatch.setattr("onkel.learners.scaled.BLOCK", 40)
    assert np.array_equal(whole[0], shown(X, y)[0])


def test_scaled_rows_are_at_a_mean_squared_distance_of_one():
    generator = np.random.default_rng(3)
    X = generator.normal(size=(3000, 7)) * 10.0 ** np.arange(-3, 4) + 50.0
    X[:, 2] = 4.0  # never varies
    Z = shown(X, X[:, 0])[0][1000:]
    i, j = generator.integers(len(Z), size=(2, 20000))
    assert np.mean(((Z[i] - Z[j]) ** 2).sum(axis=1)) == pytest.approx(1.0, rel=0.03)
    assert not Z[:, 2].any()


def test_rows_without_weight_leave_no_trace():
    X, y = binary(60)
    weight = np.ones(60)
    weight[[0, 1, 7, 30, 59]] = 0
    counted = weight > 0
    with_them, without = shown(X, y, weight, target=True), shown(X[counted], y[counted], target=True)
    assert np.array_equal(with_them[0][counted], without[0])
    assert np.array_equal(with_them[2][counted], without[2])
    for name, array in with_them[3].__dict__.items():
        if isinstance(array, np.ndarray):
            assert np.array_equal(array, getattr(without[3], name))


def test_targets_come_back_in_their_units():
    X, y = inputs(200), 1e4 + 250 * signal(inputs(200), 0)
    _, t, predicted, scaled = shown(X, y, target=True)
    mean = np.array([y[:i].mean() if i else 0.0 for i in range(200)])
    np.testing.assert_allclose(predicted, mean, rtol=1e-12)  # the spy says 0: the mean so far
    assert t[:50].std() == pytest.approx(1.0, abs=0.2)
    assert scaled.scores(X[:3])[0, 0] == pytest.approx(y.mean())


def test_what_never_varied_is_not_asked_about():
    X = np.column_stack([np.arange(20.0), np.full(20, 7.0)])
    scaled = shown(X, X[:, 0])[3]
    scaled.scores(np.array([[3.0, 1e9]]))
    assert scaled.learner.asked[0, 1] == 0 and scaled.learner.asked[0, 0] > 0


# -- the estimators


@pytest.mark.parametrize("cls", AUTO)
def test_units_and_origin_of_features_do_not_matter(engine, cls):
    rounds = 250 if engine == "native" else 80
    X, y = task(cls, rounds)
    plain = cls(**SMALL).learn(X, y)
    np.testing.assert_allclose(cls(**SMALL).learn(X * UNITS, y), plain, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(cls(**SMALL).learn(X + UNITS, y), plain, rtol=1e-4, atol=1e-4)


def test_units_of_the_target_do_not_matter():
    X, y = task(onkel.AutoKernelRegressor, 250)
    plain = onkel.AutoKernelRegressor(**SMALL).learn(X, y)
    far = onkel.AutoKernelRegressor(**SMALL).learn(X, 1000 * y - 500)
    np.testing.assert_allclose(far[1:], 1000 * plain[1:] - 500, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("form", ["dense", "float32", "sparse"])
@pytest.mark.parametrize("cls", AUTO)
def test_laws(engine, cls, form, tmp_path):
    rounds = 200 if engine == "native" else 60
    X, y = task(cls, rounds, form)
    model, pieces = cls(**SMALL), cls(**SMALL)
    whole = model.learn(X, y)
    cuts = [slice(0, 2), slice(2, 50), slice(50, None)]
    parts = [pieces.learn(X[cuts[0]], y[cuts[0]])]
    pieces.save(tmp_path / "model.onkel")
    for again in (onkel.load(tmp_path / "model.onkel"), pickle.loads(pickle.dumps(pieces))):
        assert np.array_equal(whole, np.concatenate([*parts, *(again.learn(X[c], y[c]) for c in cuts[1:])]))
        assert np.array_equal(model.predict(X), again.predict(X))
    if form == "sparse":
        np.testing.assert_allclose(cls(**SMALL).learn(X.toarray(), y), whole, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("cls", AUTO)
def test_memory_is_bounded(cls):
    X, y = task(cls, 3000)
    model, sizes = cls(**SMALL), []
    for start in range(0, 3000, 1000):
        model.learn(X[start : start + 1000], y[start : start + 1000])
        sizes.append(sum(a.nbytes for a in model.state()[0].values()))
    assert sizes[0] == sizes[1] == sizes[2]
    assert model.n_support_ <= 3 * SMALL["budget"]
    assert model.weights_.sum() == pytest.approx(1.0) and len(model.weights_) == len(model.kernels_)


def alone(model, X, y, outputs):
    """The answers of each component, run by itself on the same rows in the same units."""
    keys = np.arange(X.shape[1], dtype=np.uint64)
    run = {"columns": X.shape[1], "dtype": "float64", "sparse": False}
    from onkel.learners.pool import seeds

    recipes = model.compositions(X.shape[1])
    for parts, seed in zip(recipes, seeds(0, len(recipes)), strict=True):
        learner = fastest(Learner(*parts, outputs=outputs, keys=keys, seed=seed, **run))
        yield Scaled(learner, columns=X.shape[1], target=model.target, dtype="float64").learn(X, y)[0]


def test_close_to_the_best_component():
    X, y = binary(3000, seed=5)
    model = onkel.AutoKernelClassifier(components=200, budget=200)
    said = decided(model.learn(X * UNITS, y))
    wrong = np.mean(model.classes_[said] != y)
    singles = [np.mean((scores[:, 0] >= 0) != (y > 0)) for scores in alone(model, X * UNITS, y, 1)]
    assert wrong <= 1.1 * min(singles) < np.mean(singles)

    X, y = multiclass(3000, seed=5)
    model = onkel.AutoKernelClassifier(components=200, budget=200)
    said = decided(model.learn(X, y))
    wrong = np.mean(model.classes_[said] != y)
    singles = [np.mean(scores.argmax(axis=1) != y) for scores in alone(model, X, y.astype(float), 4)]
    assert wrong <= 1.1 * min(singles)

    X, y = task(onkel.AutoKernelRegressor, 3000)
    model = onkel.AutoKernelRegressor(components=200, budget=100)
    error = np.mean((model.learn(X, y) - y) ** 2)
    singles = [np.mean((scores[:, 0] - y) ** 2) for scores in alone(model, X, y, 1)]
    assert error <= 1.1 * min(singles)


def test_what_cannot_be_scaled_is_refused():
    X, y = binary(20)
    model = onkel.AutoKernelClassifier(**SMALL).fit(X, y)
    before = model.decision_function(X)
    huge = X.copy()
    huge[3, 1] = 1e200
    with pytest.raises(ValueError, match="too large to be scaled"):
        model.partial_fit(huge, y)
    with pytest.raises(ValueError, match="too large to be scaled"):
        model.learn_one(huge[3], y[3])
    with pytest.raises(ValueError, match="X has 3 features"):
        model.learn_one(X[0, :3], y[0])
    assert np.array_equal(before, model.decision_function(X))
    with pytest.raises(ValueError, match="too large to be scaled"):
        onkel.AutoKernelClassifier(**SMALL).learn_one(huge[3], y[3])
    goals = onkel.AutoKernelRegressor(**SMALL).fit(X, X[:, 0])
    before = goals.predict(X)
    with pytest.raises(ValueError, match="a target of 1e\\+160 is too large to be scaled"):
        goals.learn_one(X[0], 1e160)
    assert np.array_equal(before, goals.predict(X))
    for wrong, word in (({"discount": 0.0}, "discount"), ({"components": 0}, "components"), ({"budget": 0}, "budget")):
        with pytest.raises(ValueError, match=word):
            onkel.AutoKernelClassifier(**wrong).fit(X, y)
