"""Predictions change nothing, inputs are neither changed nor kept, and the seed alone decides."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from models import (
    ROUNDS,
    assert_same,
    every_case,
    every_estimator,
    every_form,
    is_pool,
    learned,
    make,
    part,
    scores_of,
    snapshot,
    step,
)
from streams import EVERY as ESTIMATORS
from streams import (
    FORMS,
    learn,
    on_features,
    stream_for,
)

import onkel

# -- prediction is pure; inputs are never changed, and never kept


def predictions(model, X):
    names = ["predict", "decision_function", "score_samples", "predict_proba"]
    found = [getattr(model, name)(X) for name in names if hasattr(model, name)]
    ones = [getattr(model, name) for name in ("predict_one", "score_one") if hasattr(model, name)]
    if not sp.issparse(X):
        found += [one(x) for one in ones for x in X[:3]]
    return found


@every_form
@every_estimator
def test_prediction_is_pure(engine, name, form):
    X, y = stream_for(ESTIMATORS[name], ROUNDS, form=form)
    model = make(name, average="all")
    learn(model, X, y)
    before = snapshot(model)
    first = predictions(model, X)
    assert all(np.array_equal(a, b) for a, b in zip(first, predictions(model, X), strict=True))
    _ = learned(model), model.n_support_, repr(model), model.t_
    _ = model.kernels_ if is_pool(model) else model.kernel_
    assert snapshot(model) == before


def test_concurrent_prediction(engine):
    for name in ("BOGDClassifier", "ForgetronRegressor"):
        for form in FORMS:
            X, y = stream_for(ESTIMATORS[name], ROUNDS, form=form)
            model = make(name, average="all")
            learn(model, X, y)
            expected = scores_of(model, X)
            with ThreadPoolExecutor(4) as pool:
                for got in pool.map(scores_of, [model] * 20, [X] * 20):
                    np.testing.assert_array_equal(got, expected)


@every_form
@every_estimator
def test_inputs_are_neither_changed_nor_kept(engine, name, form):
    X, y = stream_for(ESTIMATORS[name], ROUNDS, form=form)
    data = X.data if sp.issparse(X) else X
    targets, weight = None if y is None else y.copy(), np.ones(ROUNDS)
    original = data.copy()
    model, other = make(name, average="all"), make(name, average="all")
    more = {} if y is None else {"sample_weight": weight}
    learn(model, X, y, **more)
    learn(other, X.copy(), targets, **more)
    predictions(model, X)
    np.testing.assert_array_equal(data, original)
    assert y is None or np.array_equal(y, targets)
    data[:] = 1e6  # what was learned is a copy
    if sp.issparse(X):
        X.indices[:] = 0
    weight[:] = -1
    assert_same(model, other)


@every_estimator
def test_results_are_the_callers_own(engine, name):
    X, y = stream_for(ESTIMATORS[name], ROUNDS)
    model = make(name, average="all")
    learn(model, X, y)
    before = snapshot(model)
    for result in (*learned(model), model.predict(X), *model.state()[0].values()):
        if result.ndim and result.flags.writeable:
            result[...] = 3
    assert snapshot(model) == before


@every_estimator
def test_layout_does_not_matter(engine, name):
    X, y = stream_for(ESTIMATORS[name], ROUNDS)
    plain = make(name)
    learn(plain, X, y)
    frozen = X.copy()
    frozen.flags.writeable = False
    padded = np.zeros((ROUNDS, 9))[:, ::2][:, :4]
    padded[:] = X
    backwards = np.ascontiguousarray(X[::-1])[::-1]
    targets = None if y is None else y.copy()
    if y is not None:
        targets.flags.writeable = False
        spaced = np.repeat(y, 2)[::2]
    for form in (
        frozen,
        np.asfortranarray(X),
        padded,
        backwards,
        X.tolist(),
        X.astype(">f8"),
    ):
        model = make(name)
        learn(model, form, targets if form is frozen else None if y is None else spaced)
        assert_same(model, plain)
        np.testing.assert_array_equal(model.predict(form), plain.predict(X))
    for row in (padded[0], backwards[1], frozen[0]):
        one, two = copy.deepcopy(plain), copy.deepcopy(plain)
        step(one, row, part(y, 0))
        step(two, row.copy(), part(y, 0))
        assert_same(one, two)


# -- same seed, same trace


@every_case
def test_the_seed_decides(engine, name, params):
    X, y = stream_for(ESTIMATORS[name], 80)
    traces = {}
    for seed in (1, 2, 3, np.int64(1)):
        traces.setdefault(int(seed), []).append(learn(make(name, params, random_state=seed), X, y))
    assert all(np.array_equal(traces[1][0], trace) for trace in traces[1])
    model = make(name, params)
    learn(model, X, y)
    random = any(key.endswith("random") for key in model.state()[0]) or on_features(name, params)
    random |= "S" in params.get("mode", "")
    assert (len({t[0].tobytes() for t in traces.values()}) == 3) == random


def test_seeds_of_all_kinds(engine):
    X, y = stream_for(ESTIMATORS["RBPClassifier"], 150)
    for seed in (None, -1, 2**40, 2**63, np.random.RandomState(3), np.uint64(5)):
        model = make("RBPClassifier", random_state=seed)
        learn(model, X[:80], y[:80])
        twin = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(learn(twin, X[80:], y[80:]), learn(model, X[80:], y[80:]))


def test_a_model_with_a_generator_can_be_saved(engine, tmp_path):
    X, y = stream_for(ESTIMATORS["RBPClassifier"], 80)
    model = make("RBPClassifier", random_state=np.random.RandomState(3)).fit(X, y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(onkel.load(tmp_path / "model").predict(X), model.predict(X))
