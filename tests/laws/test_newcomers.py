"""Features and classes that appear in mid-stream."""

import pickle

import numpy as np
import pandas as pd
import pytest
from models import (
    AVERAGES,
    CASES,
    CLASSIFIERS,
    ROUNDS,
    SEVERAL,
    assert_same,
    every_estimator,
    has_terms,
    is_pool,
    make,
    part,
    scores_of,
    snapshot,
    step,
)
from streams import (
    BUDGET,
    CLASSES,
    POOLS,
    build,
    inputs,
    learn,
    names_for,
    stream_for,
)
from streams import EVERY as ESTIMATORS

import onkel
from onkel.faces.classifier import Classifier
from onkel.faces.detector import Detector
from onkel.kernels import Gaussian

# -- features and classes that appear in mid-stream


@every_estimator
def test_new_features_are_zero_before(engine, name):
    """Dictionaries whose keys grow = the full rows with zeros."""
    a, *_, e = names = [*names_for(name), "e"]
    X, y = stream_for(ESTIMATORS[name], 60)
    X[:20, 3] = 0
    X[:10, 2] = 0
    kernel = Gaussian(0.5)
    grown, full = make(name, kernel=kernel), make(name, kernel=kernel)
    for i, x in enumerate(X):
        step(full, x, part(y, i))
        step(grown, {n: v for n, v in zip(names, x, strict=False) if v}, part(y, i))
    assert grown.n_features_in_ == 4
    np.testing.assert_allclose(scores_of(grown, X), scores_of(full, X), atol=1e-10)
    twin = pickle.loads(pickle.dumps(grown))
    assert_same(twin, grown)
    step(twin, {e: 1.0, a: 2.0}, part(y, 0))
    step(grown, {a: 2.0, e: 1.0}, part(y, 0))
    assert_same(twin, grown)


def test_random_features_belong_to_names_or_numbers(engine):
    """A name that is a number is that of the column; any other name is a draw of its own."""
    X, y = stream_for(ESTIMATORS["FOGDRegressor"], 20)
    numbered, same, other = (make("FOGDRegressor") for _ in range(3))
    for i, x in enumerate(X):
        step(numbered, x, y[i])
        step(same, dict(enumerate(x)), y[i])
        step(other, dict(zip("abcd", x, strict=True)), y[i])
    np.testing.assert_allclose(scores_of(same, X), scores_of(numbered, X), atol=1e-10)
    assert np.abs(scores_of(other, X) - scores_of(numbered, X)).max() > 0.01


@pytest.mark.parametrize("map", ["orthogonal", "sorf", "fastfood"])
def test_maps_drawn_for_all_columns_refuse_another(engine, map):
    X, y = stream_for(ESTIMATORS["FOGDRegressor"], 60)
    model, other = (make("FOGDRegressor", {"components": 20, "map": map}) for _ in range(2))
    for i in range(20):
        step(model, dict(zip("abcd", X[i], strict=True)), y[i])
    before = snapshot(model)
    for call in (
        lambda: step(model, {"a": 1.0, "e": 2.0}, y[0]),
        lambda: model.learn_many(pd.DataFrame(X, columns=list("abce")), pd.Series(y)),
    ):
        with pytest.raises(ValueError, match=r'drawn for 4 features .*name all of them in the first .*"fourier"'):
            call()
        assert snapshot(model) == before
    for i in range(20, 60):
        step(model, {n: v for n, v in zip("abcd", X[i], strict=True) if v > 0}, y[i])  # fewer are zeros
    learn(other, np.vstack([X[:20], np.maximum(X[20:], 0)]), y)  # names mean nothing to these
    np.testing.assert_allclose(scores_of(model, X), scores_of(other, X), atol=1e-10)


@every_estimator
def test_many_new_features(engine, name):
    """Past the width at which rows are stored sparsely, and on."""
    rng = np.random.default_rng(0)
    y = stream_for(ESTIMATORS[name], 60)[1]
    grown, whole = make(name, kernel=Gaussian(0.1)), make(name, kernel=Gaussian(0.1))
    rows = [{f"x{j}": rng.normal() for j in rng.integers(0, 30 * (i + 1), 6)} for i in range(60)]
    everything = dict.fromkeys((f"x{j}" for j in range(1800)), 0.0)
    for i, x in enumerate(rows):
        step(grown, x, part(y, i))
        step(whole, x if i else everything | x, part(y, i))
    read = "score_one" if y is None else "predict_one"
    got, want = ([getattr(m, read)(x) for x in rows] for m in (grown, whole))
    if isinstance(grown, Classifier):
        assert np.mean(np.array(got) == np.array(want)) == 1
    else:
        np.testing.assert_allclose(got, want, atol=1e-10)
    # a wider model goes on the same after a copy
    twin = pickle.loads(pickle.dumps(grown))
    step(twin, rows[0], part(y, 0))
    step(grown, rows[0], part(y, 0))
    assert_same(twin, grown)


def score_parts(model, X):
    """Scores of the last and (if any) of the averaged model."""
    outputs = ["last", "average"] if getattr(model, "average", False) else ["last"]
    return [model.decision_function(X, output=output) for output in outputs]


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("name", [name for name in SEVERAL if name not in POOLS])  # see test_multi_kernel
def test_a_third_class_joins_with_score_zero(engine, name, average):
    X, y = stream_for(ESTIMATORS[name], 80)

    def close(a, b):  # bitwise natively; NumPy sums one output and three in different orders
        np.testing.assert_allclose(a, b, rtol=0, atol=0 if engine == "native" else 1e-13)

    for third, columns in ((-5, (1, 2, 0)), (0, (0, 2, 1)), (5, (0, 1, 2))):  # places of -1, +1 and the third
        model = make(name, average=average).partial_fit(X, y)
        before = score_parts(model, X)
        norm = norm_parts(model)
        model.learn(X[:1], [third], sample_weight=[0.0])  # joins, and nothing is learned
        assert model.classes_.tolist() == sorted([-1, 1, third])
        for f, s in zip(before, score_parts(model, X), strict=True):
            assert s.shape == (80, 3)
            close(s[:, columns[0]], -f / 2)
            close(s[:, columns[1]], f / 2)
            np.testing.assert_array_equal(s[:, columns[2]], 0)
        assert norm_parts(model) == pytest.approx(norm / 2)
        model.learn(X[:1], [9], sample_weight=[0.0])  # and a fourth
        for f, s in zip(before, score_parts(model, X), strict=True):
            close(s[:, columns[1]], f / 2)
            np.testing.assert_array_equal(s[:, 3], 0)
        model.partial_fit(X, np.where(np.arange(80) % 4, y, third))
        assert np.isfinite(model.decision_function(X)).all()
        if "budget" in model.get_params() and average != "all":
            assert model.n_support_ <= BUDGET


def norm_parts(model):
    """|f|^2 of the last model, from its terms and weights; checked against the norm the model carries along."""
    if is_pool(model):
        return 0.0
    state, norm = model.state()[0], 0.0
    if "weights.coef" in state:
        norm += float(np.square(state["weights.coef"] * state["weights.scale"]).sum())
    if has_terms(model):
        x, coef = state["basis.x"], state["basis.coef"] * state["scale"]
        norm += float(np.einsum("io,ij,jo", coef, model.kernel_(x), coef)) if len(x) else 0.0
    for key in ("update.norm2", "budget.norm2"):
        if key in state:
            assert float(state[key]) == pytest.approx(norm, abs=1e-9), key
    if "basis.score" in state:
        np.testing.assert_allclose(state["basis.score"], model.kernel_(x) @ state["basis.coef"], atol=1e-9)
    return norm


@pytest.mark.parametrize(("name", "params"), [case for case in CASES if case[0] in SEVERAL])
def test_carried_numbers_survive_new_classes(engine, name, params):
    """Norms and scores that parts carry along are those of the function, whichever way classes joined."""
    X, y = stream_for(ESTIMATORS[name], 60, several=True)
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [0, 3, 1, 2], [0, (1, 2), 3], [2, (0, 1, 3)], [(0, 1), (2, 3)]):
        model = make(name, params)
        known = []
        for joins in order:
            known += np.atleast_1d(joins).tolist()
            seen = np.isin(y, known)
            model.partial_fit(X[seen], y[seen])
            norm_parts(model)
        assert model.classes_.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class_is_a_beginning(engine, name):
    X, y = stream_for(ESTIMATORS[name], 60)
    for first, second in ((1, -1), (-1, 1)):
        model = make(name, average=True)
        model.partial_fit(X[y == first], y[y == first])
        assert model.classes_.tolist() == [first]
        assert (model.predict(X) == first).all()
        f = score_parts(model, X)
        state = pickle.loads(pickle.dumps(model))
        model.learn(X[:1], [second], sample_weight=[0.0])
        sign = 1 if first < second else -1  # the first class alone is the negative one
        for a, b in zip(f, score_parts(model, X), strict=True):
            np.testing.assert_array_equal(b, sign * a)
            assert (sign * b <= 0).all() or (a > 0).any()
        # the scores speak for the class that was there, or say nothing
        assert np.mean(model.predict(X[y == first]) == first) > 0.5 or not score_parts(model, X)[0].any()
        if name not in SEVERAL:
            continue
        # two at once
        state.learn(X[:1], [7], classes=[-1, 1, 7], sample_weight=[0.0])
        column = state.classes_.tolist().index(first)
        others = np.delete(state.decision_function(X), column, axis=1)
        assert state.classes_.tolist() == [-1, 1, 7]
        assert not others.any() or is_pool(state)  # where all is 0, a vote goes to the first class


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_class_known_alone_is_the_first_of_two(engine, name):
    """Without declared classes the scores are, bit by bit, those with a second class declared that comes after it."""
    X, y = stream_for(ESTIMATORS[name], 60)
    y[:20] = 1.0
    alone, declared = make(name), make(name)
    scores = [alone.learn(X[[i]], y[[i]])[0] for i in range(20)]
    np.testing.assert_array_equal(scores, declared.learn(X[:20], np.full(20, "first"), classes=["first", "second"]))
    before = alone.decision_function(X)
    later, sooner = pickle.loads(pickle.dumps(alone)), alone
    later.learn(X[:1], [5], sample_weight=[0.0])
    np.testing.assert_array_equal(later.decision_function(X), before)
    sooner.learn(X[:1], [-1.0], sample_weight=[0.0])
    np.testing.assert_array_equal(sooner.decision_function(X), -before)


@pytest.mark.parametrize("name", SEVERAL)
def test_classes_may_be_declared_piece_by_piece(engine, name):
    X, y = stream_for(ESTIMATORS[name], 60, several=True)
    model = make(name)
    order = np.argsort(y, kind="stable")
    for i in order:
        model.learn(X[[i]], y[[i]], classes=[int(y[i])])
    assert model.classes_.tolist() == list(range(CLASSES))
    with pytest.raises(ValueError, match="not among the declared classes"):
        model.learn(X[:1], [9])


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [10, 20], ["b", "a"], [0, 1]])
def test_labels_of_any_kind(engine, labels, tmp_path):
    X, y = stream_for(ESTIMATORS["ForgetronClassifier"], ROUNDS)
    named = np.array(labels)[(y > 0).astype(int)]
    for given in (
        named,
        named.astype(object),
        named.tolist(),
        pd.Series(named),
        pd.Series(named, dtype="category"),
    ):
        model = build("ForgetronClassifier").fit(X, given)
        assert set(model.predict(X).tolist()) == set(labels)
        assert model.predict_one(X[0]) in labels
        model.save(tmp_path / "model")
        loaded = onkel.load(tmp_path / "model")
        assert loaded.classes_.dtype == model.classes_.dtype
        assert loaded.classes_.tolist() == model.classes_.tolist()
        loaded.learn_one(X[0], labels[0])
        loaded.partial_fit(X, given)


def test_detectors_ignore_y(engine):
    X = inputs(50)
    for name, cls in ESTIMATORS.items():
        if issubclass(cls, Detector):
            a, b = make(name).fit(X), make(name).fit(X, np.ones(50))
            assert_same(a, b)
