"""The laws (docs/architecture.md, "Laws") for the pools of kernels that have an engine of their own."""

import contextlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from streams import FORMS, learn, scores_of, stream_for
from test_laws import WAYS, assert_same, cuts, failures, snapshot, step

import onkel
from onkel.kernels import Cauchy, Gaussian, Laplacian, Linear, Polynomial
from onkel.updates import Diverged

KERNELS = (Gaussian(0.3), "gaussian", Polynomial(2, 0.0), Cauchy(0.5), 0.01 * Gaussian(2.0))
SPECTRAL = (Gaussian(0.3), "gaussian", Laplacian(0.5))
PROXIMAL = {"kernels": KERNELS, "eta": 0.2}
ADARAKER = {"kernels": SPECTRAL, "components": 7}
SETTINGS = {
    "AdaRakerClassifier": [{**ADARAKER, "eta": 0.8, "lam": 0.1}, {**ADARAKER, "eta_weights": 2.0, "loss": "hinge"}],
    "AdaRakerRegressor": [{**ADARAKER, "eta": 0.8, "lam": 0.1}, {**ADARAKER, "eta_weights": 2.0, "loss": "huber"}],
    "OM2Classifier": [{"kernels": KERNELS}, {"kernels": KERNELS, "normalize": True}],
    "ProximalMKLClassifier": [
        {**PROXIMAL, "lam": 5.0},
        {**PROXIMAL, "lam": 0.6, "penalty": "group", "loss": "logistic"},
    ],
    "ProximalMKLRegressor": [
        {**PROXIMAL, "lam": 5.0},
        {**PROXIMAL, "lam": 0.6, "penalty": "group", "loss": "absolute"},
    ],
}
CASES = [(name, i) for name, settings in SETTINGS.items() for i in range(len(settings))]
CLASSIFIERS = [name for name in SETTINGS if name.endswith("Classifier")]
ROUNDS = 60

every_case = pytest.mark.parametrize(("name", "number"), CASES)
every_estimator = pytest.mark.parametrize("name", SETTINGS)


def make(name, number=0, **more):
    return getattr(onkel, name)(**{**SETTINGS[name][number], **more})


def streams(name, rounds=ROUNDS, form="dense"):
    """Two classes and several, or real targets."""
    for several in (False, True) if name in CLASSIFIERS else (False,):
        yield stream_for(getattr(onkel, name), rounds, form=form, several=several)


def names_for(name):
    """Names of columns under which a model is the one that learns from columns without names."""
    return [0, 1, 2, 3] if name.startswith("AdaRaker") else list("abcd")


# -- one by one = any chunking


@every_case
def test_any_chunking_of_a_pool(name, number):
    for form in FORMS:
        for X, y in streams(name, form=form):
            whole, chunked, single = (make(name, number) for _ in range(3))
            scores = learn(whole, X, y)
            np.testing.assert_array_equal(np.concatenate([learn(chunked, X[c], y[c]) for c in cuts(ROUNDS)]), scores)
            assert_same(whole, chunked)
            for i in range(ROUNDS):
                told = scores_of(single, X[[i]]) if i else None
                score = learn(single, X[[i]], y[[i]])
                assert told is None or (told == score).all()
            assert_same(whole, single)
            np.testing.assert_array_equal(
                scores_of(whole, X), np.concatenate([scores_of(whole, X[[i]]) for i in range(ROUNDS)])
            )


@every_estimator
def test_learn_one_of_a_pool_is_learn(name):
    for form in ("dense", "float32"):
        for X, y in streams(name, form=form):
            whole, single = make(name), make(name)
            learn(whole, X, y)
            learn(single, X[:10], y[:10])
            for i in range(10, ROUNDS):
                step(single, X[i], y[i])
            assert_same(whole, single)
            assert single.predict_one(X[0]) == whole.predict(X[:1])[0]


# -- resume = never stopped


@every_case
def test_a_pool_resumes_as_if_never_stopped(name, number, tmp_path):
    half = ROUNDS // 2
    for form in FORMS:
        for X, y in streams(name, form=form):
            never = make(name, number, random_state=7)
            learn(never, X[:half], y[:half])
            resumed = {way: go(never, tmp_path / "model") for way, go in WAYS.items()}
            scores = learn(never, X[half:], y[half:])
            for way, model in resumed.items():
                np.testing.assert_array_equal(learn(model, X[half:], y[half:]), scores, err_msg=way)
                assert_same(model, never)


_CONTINUE = """
import sys, pathlib, onkel
from streams import learn, stream_for
folder, half, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for path in sorted(folder.glob("*.half")):
    model = onkel.load(path)
    X, y = stream_for(model, rounds)
    learn(model, X[half:], y[half:])
    model.save(path.with_suffix(".done"))
"""


def test_a_pool_resumes_in_a_new_process(tmp_path):
    half = ROUNDS // 2
    never = {}
    for i, (name, number) in enumerate(CASES):
        never[i] = make(name, number, random_state=i)
        X, y = stream_for(never[i], ROUNDS)
        learn(never[i], X[:half], y[:half])
        never[i].save(tmp_path / f"{i}.half")
        learn(never[i], X[half:], y[half:])
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-W", "error", "-c", _CONTINUE, str(tmp_path), str(half), str(ROUNDS)]
    subprocess.run(command, env=environment, check=True, timeout=60)
    for i, model in never.items():
        assert_same(onkel.load(tmp_path / f"{i}.done"), model)


@every_estimator
def test_a_pool_that_has_learned_nothing_resumes(name, tmp_path):
    X, y = stream_for(getattr(onkel, name), ROUNDS)
    never = make(name)
    learn(never, X[:5], y[:5], sample_weight=np.zeros(5))
    assert never.n_support_ == never.t_ == 0
    resumed = [go(never, tmp_path / "model") for go in WAYS.values()]
    learn(never, X, y)
    for model in resumed:
        learn(model, X, y)
        assert_same(model, never)


@every_estimator
def test_files_of_a_pool_that_do_not_fit_are_refused(name, tmp_path):
    X, y = stream_for(getattr(onkel, name), ROUNDS)
    model = make(name)
    learn(model, X, y)
    arrays, config = model.state()
    for key in arrays:
        if arrays[key].ndim:
            onkel.state.write(tmp_path / "model", arrays | {key: arrays[key][:-1]}, config)
            with pytest.raises(ValueError, match="does not hold a model"):
                onkel.load(tmp_path / "model")


@every_estimator
def test_a_pool_starts_afresh(name):
    X, y = stream_for(getattr(onkel, name), ROUNDS)
    model = make(name)
    scores = learn(model, X, y)
    for fresh in (clone(model), model.clone()):
        with pytest.raises(NotFittedError):
            fresh.predict(X)
        np.testing.assert_array_equal(learn(fresh, X, y), scores)
    once = make(name).fit(X, y)
    assert_same(model.fit(X[::-1], y[::-1]).fit(X, y), once)


# -- prediction is pure, input is not kept, the seed decides


@every_estimator
def test_prediction_by_a_pool_is_pure(name):
    for form in FORMS:
        X, y = stream_for(getattr(onkel, name), ROUNDS, form=form)
        model = make(name)
        learn(model, X, y)
        before = snapshot(model)
        first = scores_of(model, X)
        np.testing.assert_array_equal(scores_of(model, X), first)
        results = [model.predict(X), model.weights_, model.kernels_, model.n_support_, model.t_, repr(model), first]
        if not name.startswith("AdaRaker"):
            results += [model.dual_coef_, model.support_vectors_]
        for result in results:
            if isinstance(result, np.ndarray):
                result[...] = 3
        assert snapshot(model) == before


@every_estimator
def test_a_pool_neither_changes_nor_keeps_its_input(name):
    for form in FORMS:
        X, y = stream_for(getattr(onkel, name), ROUNDS, form=form)
        data, weight = X.data if sp.issparse(X) else X, np.ones(ROUNDS)
        original, targets = data.copy(), y.copy()
        model, other = make(name), make(name)
        learn(model, X, y, sample_weight=weight)
        learn(other, X.copy(), y, sample_weight=weight)
        np.testing.assert_array_equal(data, original)
        np.testing.assert_array_equal(y, targets)
        data[:] = 1e6
        weight[:] = -1
        assert_same(model, other)


@every_estimator
def test_the_seed_of_a_pool_decides(name):
    X, y = stream_for(getattr(onkel, name), ROUNDS)
    one, same, other = (learn(make(name, random_state=seed), X, y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any() == name.startswith("AdaRaker")


# -- failed calls leave the model unchanged


@every_estimator
def test_failed_calls_leave_a_pool_unchanged(name):
    X, y = stream_for(getattr(onkel, name), 40)
    model = make(name) if name.startswith("AdaRaker") else make(name, kernels=[Gaussian(1.0), Linear()])
    learn(model, X, y)
    before = snapshot(model)
    calls = failures(model, X, y)
    if name in CLASSIFIERS:
        calls += [
            lambda: model.learn(X, np.full(len(y), 77)),
            lambda: model.learn(X, np.full(len(y), "a")),
            lambda: model.learn_one(X[0], 77),
        ]
    for i, call in enumerate(calls):
        with pytest.raises((ValueError, TypeError)):
            call()
        assert snapshot(model) == before, f"call {i} left a trace"
    fresh = make(name)
    for call in (lambda: fresh.learn(X, y[:-1]), lambda: fresh.learn(X * np.nan, y), lambda: fresh.learn_one({}, None)):
        with pytest.raises((ValueError, TypeError)):
            call()
        assert not fresh._started


@every_case
def test_divergence_keeps_what_a_pool_knew(name, number):
    X, y = stream_for(getattr(onkel, name), 300)
    model = make(name, number)
    if "eta" in model.get_params():
        model.set_params(eta=1e200, lam=0.0)
    with contextlib.suppress(Diverged):
        learn(model, 1e5 * X, 1e150 * y if name.endswith("Regressor") else y, sample_weight=np.full(300, 1e140))
    assert np.isfinite(scores_of(model, X)).all()
    assert all(np.isfinite(a).all() for a in model.state()[0].values())


def test_divergence_of_a_pool_names_the_row():
    X, y = stream_for(onkel.ProximalMKLRegressor, 300)
    model = make("ProximalMKLRegressor", eta=1e4, lam=0.0)
    with pytest.raises(Diverged, match=r"row \d+.*use a smaller step"):
        learn(model, X, y)
    assert 0 < model.t_ < 300
    assert np.isfinite(model.predict(X)).all()
    long = make("ProximalMKLRegressor", eta=1e140, loss="absolute", kernels=[Polynomial(2, 0.0)])
    with pytest.raises(Diverged, match=r"row 0: the squared length of the model is inf"):
        long.learn(1e8 * X, y)
    assert long.n_support_ == 0 and not long.weights_.any()


# -- forms of input, features and classes that join


@every_case
def test_dense_rows_of_a_pool_are_sparse_rows(name, number):
    for form in ("sparse", "wide"):
        for X, y in streams(name, form=form):
            dense, sparse = make(name, number), make(name, number)
            np.testing.assert_allclose(learn(dense, X.toarray(), y), learn(sparse, X, y), atol=1e-10)
            np.testing.assert_allclose(scores_of(dense, X), scores_of(sparse, X.toarray()), atol=1e-10)
            if not name.startswith("AdaRaker"):
                assert sp.issparse(sparse.support_vectors_) == (form == "wide")


@every_estimator
def test_pools_work_in_double_on_rows_of_either_type(name, tmp_path):
    for X, y in streams(name, form="float32"):
        single, double = make(name), make(name)
        np.testing.assert_array_equal(learn(single, X, y), learn(double, X.astype(np.float64), y))
        assert single.state()[1]["run"]["dtype"] == "float32"
        if not name.startswith("AdaRaker"):
            assert single.support_vectors_.dtype == np.float32
        single.save(tmp_path / "model")
        assert_same(onkel.load(tmp_path / "model"), single)


@every_estimator
def test_new_features_of_a_pool_are_zero_before(name):
    names = names_for(name)
    X, y = stream_for(getattr(onkel, name), ROUNDS)
    X[:20, 3] = 0
    X[:10, 2] = 0
    kernels = (Gaussian(0.3), Gaussian(2.0))  # "auto" would go by the first row
    grown, full = make(name, kernels=kernels), make(name, kernels=kernels)
    for i, x in enumerate(X):
        step(full, x, y[i])
        step(grown, {n: v for n, v in zip(names, x, strict=True) if v}, y[i])
    assert grown.n_features_in_ == 4
    np.testing.assert_allclose(scores_of(grown, X), scores_of(full, X), atol=1e-10)
    twin = pickle.loads(pickle.dumps(grown))
    step(twin, {"e": 1.0, names[0]: 2.0}, y[0])
    step(grown, {names[0]: 2.0, "e": 1.0}, y[0])
    assert_same(twin, grown)
    assert_same(pickle.loads(pickle.dumps(grown)), grown)


@every_estimator
def test_learn_many_by_a_pool_is_learn_one(name):
    *_, (X, y) = streams(name)
    frame = pd.DataFrame(X, columns=list("abcd"))
    many, one = make(name), make(name)
    many.learn_many(frame[:25], pd.Series(y[:25]))
    many.learn_many(frame[25:], pd.Series(y[25:]))
    for i, x in enumerate(frame.to_dict("records")):
        one.learn_one(x, y[i].item())
    np.testing.assert_allclose(scores_of(many, X), scores_of(one, X), atol=1e-10)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_third_class_joins_a_pool_with_score_zero(name):
    X, y = stream_for(getattr(onkel, name), 80)
    for third, columns in ((-5, (1, 2, 0)), (0, (0, 2, 1)), (5, (0, 1, 2))):
        model = make(name).partial_fit(X, y)
        f, weights = model.decision_function(X), model.weights_
        model.learn(X[:1], [third], sample_weight=[0.0])
        s = model.decision_function(X)
        np.testing.assert_allclose(s[:, columns[0]], -f / 2, atol=1e-13)
        np.testing.assert_allclose(s[:, columns[1]], f / 2, atol=1e-13)
        assert not s[:, columns[2]].any()
        # |(-f/2, f/2)|^2 = |f|^2 / 2
        halved = np.sqrt(2) if name.startswith("Proximal") else 1.0
        np.testing.assert_allclose(model.weights_ * halved, weights, atol=1e-12)
        model.partial_fit(X, np.where(np.arange(80) % 4, y, third))
        assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_one_class_is_a_beginning_for_a_pool(name):
    X, y = stream_for(getattr(onkel, name), ROUNDS)
    for first, second in ((1, -1), (-1, 1)):
        model = make(name).partial_fit(X[y == first], y[y == first])
        assert model.classes_.tolist() == [first] and (model.predict(X) == first).all()
        f = model.decision_function(X)
        model.learn(X[:1], [second], sample_weight=[0.0])
        np.testing.assert_array_equal(model.decision_function(X), f if first < second else -f)


# -- sample weights


@every_case
def test_a_round_of_weight_zero_is_skipped(name, number):
    for X, y in streams(name):
        weight = (np.arange(ROUNDS) % 3 > 0).astype(float)
        kept = weight > 0
        some, all_of_them = make(name, number), make(name, number)
        scores = learn(some, X, y, sample_weight=weight)
        np.testing.assert_array_equal(scores[kept], learn(all_of_them, X[kept], y[kept]))
        assert_same(some, all_of_them)
        assert some.t_ == kept.sum()
        heavy = make(name, number)
        assert (learn(heavy, X, y, sample_weight=weight / 2)[kept] != scores[kept]).any()
