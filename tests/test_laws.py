"""The laws that every estimator keeps on every engine (docs/architecture.md, "Laws")."""

import contextlib
import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from streams import (
    BUDGET,
    CLASSES,
    FORMS,
    POOL_CASE_IDS,
    POOL_CASES,
    POOLS,
    PYTHON_ONLY,
    build,
    inputs,
    learn,
    names_for,
    on_features,
    settings,
    stream_for,
    takes_several,
)
from streams import CASE_IDS as SINGLE_IDS
from streams import CASES as SINGLE_CASES
from streams import EVERY as ESTIMATORS

import onkel
from onkel.faces import ClassifierFace as Classifier
from onkel.faces import Detector
from onkel.faces import RegressorFace as Regressor
from onkel.kernels import Gaussian, Linear
from onkel.learner import Diverged

AVERAGES = [False, True, "all"]
CASES = SINGLE_CASES + POOL_CASES
CLASSIFIERS = [name for name, cls in ESTIMATORS.items() if issubclass(cls, Classifier)]
SEVERAL = [name for name in ESTIMATORS if takes_several(name)]
BUDGETED = [name for name, cls in ESTIMATORS.items() if "budget" in cls().get_params(deep=False)]
BOUNDED = [name for name, cls in ESTIMATORS.items() if {"budget", "components"} & cls().get_params(deep=False).keys()]
ROUNDS = 60

every_case = pytest.mark.parametrize(("name", "params"), CASES, ids=SINGLE_IDS + POOL_CASE_IDS)
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def make(name, params=None, **more):
    """An estimator; of a pool, two kernels like the one asked for, and no average."""
    if name in POOLS:
        more.pop("average", None)
        if "kernel" in more:
            more["kernels"] = (Gaussian(0.3), more.pop("kernel"))
    return ESTIMATORS[name](**{**(settings(name)[0] if params is None else params), **more})


def most_terms(model):
    """The number of terms a model may have; in pools of landmarks each kernel has its budget."""
    each = len(model.kernels) if is_pool(model) and hasattr(model, "rank") else 1
    return np.inf if model.budget is None else model.budget * each


def is_pool(model):
    return type(model).__name__ in POOLS


def variants(name):
    """Is the classifier given several classes? Others have one kind of stream."""
    return [False, True] if name in SEVERAL else [False]


def part(y, where):
    return None if y is None else y[where]


def declared(model, y):
    return {"classes": np.unique(y)} if isinstance(model, Classifier) else {}


def step(model, x, y):
    """learn_one, for detectors (no y) too."""
    model.learn_one(x) if y is None else model.learn_one(x, y)


def arrays_of(model):
    return {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in model.state()[0].items()}


def snapshot(model):
    """All that is known about a model, comparable bit by bit."""
    public = {name: repr(value) for name, value in vars(model).items() if name.endswith("_")}
    return arrays_of(model), model.state()[1], public


def assert_same(a, b):
    one, two = a.state()[0], b.state()[0]
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name, strict=True)
    assert a.state()[1]["run"] == b.state()[1]["run"]


def has_terms(model):
    return "basis.coef" in model.state()[0]


def learned(model):
    """What is known of the function: terms and their coefficients, weights of features, or both."""
    found = [model.support_vectors_, model.dual_coef_] if has_terms(model) else []
    found += [model.weights_, model.sizes_] if is_pool(model) else []
    return [*found, model.coef_] if "weights.coef" in model.state()[0] else found


def unbounded(name):
    """A kernel under which rows may be too large, so that they are refused; random features have a bound themselves."""
    return Gaussian(1.0) if on_features(name) else Linear()


def scores_of(model, X):
    """What the model's predictions are made of."""
    face = {Classifier: "decision_function", Regressor: "predict", Detector: "score_samples"}
    return next(getattr(model, name)(X) for kind, name in face.items() if isinstance(model, kind))


def cuts(n, seed=0):
    points = np.sort(np.random.default_rng(seed).integers(0, n, 12))
    return [slice(a, b) for a, b in zip([0, *points], [*points, n], strict=True) if b > a]


# -- one by one = any chunking


@every_case
def test_any_chunking(engine, name, params):
    for i, several in enumerate(variants(name)):
        average = AVERAGES[(CASES.index((name, params)) + i) % 3]
        form = FORMS[(CASES.index((name, params)) + i) % 4]
        X, y = stream_for(ESTIMATORS[name], ROUNDS, form=form, several=several)
        whole = make(name, params, average=average)
        scores = learn(whole, X, y)
        chunked = make(name, params, average=average)
        kwargs = declared(chunked, y)
        pieces = [
            chunked.learn(X[c], **kwargs) if y is None else chunked.learn(X[c], y[c], **kwargs)
            for c in cuts(len(scores))
        ]
        np.testing.assert_array_equal(np.concatenate(pieces), scores)
        assert_same(whole, chunked)
        single = make(name, params, average=average)
        for i in range(len(scores)):
            single.partial_fit(X[[i]], part(y, [i]), **kwargs)
        assert_same(whole, single)


@every_estimator
def test_learn_one_on_rows_is_learn(engine, name):
    for several in variants(name):
        for form in ("dense", "float32"):
            X, y = stream_for(ESTIMATORS[name], ROUNDS, form=form, several=several)
            whole, single = make(name, average=True), make(name, average=True)
            learn(whole, X, y)
            learn(single, X[:10], part(y, slice(10)))
            for i in range(10, len(X)):
                step(single, X[i], part(y, i))
            assert_same(whole, single)


@every_estimator
def test_learn_one_on_dictionaries_is_learn_one_on_rows(engine, name):
    names = names_for(name)
    X, y = stream_for(ESTIMATORS[name], ROUNDS)
    rows, dicts, shuffled = make(name), make(name), make(name)
    for i, x in enumerate(X):
        named = dict(zip(names, x.tolist(), strict=True))
        step(rows, x, part(y, i))
        step(dicts, named, part(y, i))
        step(shuffled, named if i == 0 else dict(reversed(named.items())), part(y, i))
    assert_same(dicts, shuffled)
    np.testing.assert_allclose(scores_of(dicts, X), scores_of(rows, X), atol=1e-10)
    read = "score_one" if y is None else "predict_one"
    named = dict(zip(names, X[0].tolist(), strict=True))
    assert getattr(dicts, read)(named) == pytest.approx(getattr(rows, read)(X[0]))
    assert getattr(dicts, read)(dict(reversed(named.items()))) == getattr(dicts, read)(named)


@pytest.mark.parametrize("form", ["sparse", "wide"])
@every_estimator
def test_dictionaries_are_sparse_rows(engine, name, form):
    """Bitwise: the same CSR rows, with names."""
    X, y = stream_for(ESTIMATORS[name], 60, form=form)
    rows, dicts = make(name, kernel=Gaussian(0.5)), make(name, kernel=Gaussian(0.5))
    names = names_for(name, X.shape[1])
    first = dict.fromkeys(names, 0.0) | {names[j]: v for j, v in zip(X[[0]].indices, X[[0]].data, strict=True)}
    for i in range(60):
        x = X[[i]]
        named = {names[j]: float(v) for j, v in zip(x.indices, x.data, strict=True)}
        rows.partial_fit(x, part(y, [i]))
        step(dicts, named if i else first, part(y, i))
    np.testing.assert_array_equal(scores_of(dicts, X), scores_of(rows, X))


@every_estimator
def test_predictions_do_not_depend_on_their_company(engine, name):
    for form in FORMS:
        X, y = stream_for(ESTIMATORS[name], 60, form=form)
        model = make(name, average=True)
        learn(model, X, y)
        one_by_one = np.concatenate([scores_of(model, X[[i]]) for i in range(60)])
        np.testing.assert_array_equal(scores_of(model, X), one_by_one)


# -- resume = never stopped


WAYS = {
    "pickle": lambda model, path: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, path: copy.deepcopy(model),
    "copy": lambda model, path: copy.copy(model),
    "save": lambda model, path: (model.save(path), onkel.load(path))[1],
}


@every_case
def test_resume_is_never_stopped(engine, name, params, tmp_path):
    half = ROUNDS // 2
    case = CASES.index((name, params))
    for i, several in enumerate(variants(name)):
        for form in FORMS if engine == "native" else [FORMS[(i + case) % 4]]:
            average = AVERAGES[(i + case + FORMS.index(form)) % 3]
            X, y = stream_for(ESTIMATORS[name], ROUNDS, form=form, several=several)
            never = make(name, params, average=average, random_state=7)
            learn(never, X[:half], part(y, slice(half)))
            resumed = {way: go(never, tmp_path / "model") for way, go in WAYS.items()}
            scores = learn(never, X[half:], part(y, slice(half, None)))
            for way, model in resumed.items():
                assert type(model) is type(never)
                np.testing.assert_array_equal(learn(model, X[half:], part(y, slice(half, None))), scores, err_msg=way)
                assert_same(model, never)


_CONTINUE = """
import sys, pathlib, onkel
from streams import CASES, ESTIMATORS, learn, stream_for
folder, half, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])
with onkel.engine(sys.argv[2]):
    for path in sorted(folder.glob("*.half")):
        model = onkel.load(path)
        X, y = stream_for(model, rounds)
        learn(model, X[half:], None if y is None else y[half:])
        model.save(path.with_suffix(".done"))
"""


def test_resume_in_a_new_process(engine, tmp_path):
    half = ROUNDS // 2
    never = {}
    for i, (name, params) in enumerate(CASES):
        if engine == "native" and name in PYTHON_ONLY:
            continue
        model = make(name, params, average=AVERAGES[i % 3], random_state=i)
        X, y = stream_for(model, ROUNDS)
        learn(model, X[:half], part(y, slice(half)))
        model.save(tmp_path / f"{i}.half")
        learn(model, X[half:], part(y, slice(half, None)))
        never[i] = model
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent), "ONKEL_ENGINE": engine}
    command = [sys.executable, "-W", "error", "-c", _CONTINUE, str(tmp_path), engine, str(half), str(ROUNDS)]
    subprocess.run(command, env=environment, check=True, timeout=60)
    for i, model in never.items():
        assert_same(onkel.load(tmp_path / f"{i}.done"), model)


@every_case
def test_resume_on_the_other_engine(engine, name, params, tmp_path):
    if not onkel.native.available() or name in PYTHON_ONLY:
        pytest.skip("there is one engine")
    other = {"python": "native", "native": "python"}[engine]
    X, y = stream_for(ESTIMATORS[name], ROUNDS)
    half = ROUNDS // 2
    never = make(name, params, average=True)
    learn(never, X[:half], part(y, slice(half)))
    never.save(tmp_path / "model")
    with onkel.engine(other):
        moved = onkel.load(tmp_path / "model")
    assert moved._learner.engine == other
    scores = learn(never, X[half:], part(y, slice(half, None)))
    np.testing.assert_allclose(learn(moved, X[half:], part(y, slice(half, None))), scores, rtol=1e-7, atol=1e-9)
    a, b = arrays_of(never), arrays_of(moved)
    assert {k: v[:2] for k, v in a.items()} == {k: v[:2] for k, v in b.items()}  # one format: names, types, shapes
    if "budget.random" in a:
        assert a["budget.random"] == b["budget.random"]


def test_resume_when_nothing_was_kept(engine, tmp_path):
    """A model that started and has no terms yet."""
    for name in ESTIMATORS:
        X, y = stream_for(ESTIMATORS[name], ROUNDS)
        if y is None or (engine == "native" and name in PYTHON_ONLY):
            continue
        never = make(name, average="all")
        learn(never, X[:5], y[:5], sample_weight=np.zeros(5))
        assert never.n_support_ == 0 and never.t_ == 0
        resumed = [go(never, tmp_path / "model") for go in WAYS.values()]
        learn(never, X, y)
        for model in resumed:
            learn(model, X, y)
            assert_same(model, never)


@every_estimator
def test_changed_parameters_wait_for_the_next_fit_or_hold_at_once(engine, name, tmp_path):
    """What set_params means in mid-stream must not depend on whether the model was copied in between."""
    X, y = stream_for(ESTIMATORS[name], ROUNDS)
    model = make(name, kernel=Gaussian(1.0))
    learn(model, X[:40], part(y, slice(40)))
    model.set_params(**({"kernels": (Gaussian(5.0),)} if is_pool(model) else {"kernel__gamma": 5.0}))
    copied = copy.deepcopy(model)
    np.testing.assert_array_equal(
        learn(copied, X[40:], part(y, slice(40, None))), learn(model, X[40:], part(y, slice(40, None)))
    )
    assert_same(copied, model)


@every_estimator
def test_clone_starts_afresh(engine, name):
    X, y = stream_for(ESTIMATORS[name], ROUNDS)
    model = make(name)
    scores = learn(model, X, y)
    for fresh in (clone(model), model.clone()):
        assert str(fresh.get_params()) == str(model.get_params())
        with pytest.raises(NotFittedError):
            fresh.predict(X)
        np.testing.assert_array_equal(learn(fresh, X, y), scores)
    kept = model.clone(include_attributes=True)
    assert_same(kept, model)


@every_estimator
def test_fit_starts_afresh(engine, name):
    X, y = stream_for(ESTIMATORS[name], ROUNDS)
    model, once = make(name), make(name)
    model.fit(X[::-1], part(y, slice(None, None, -1)))
    model.fit(X, y)
    once.fit(X, y)
    assert_same(model, once)


# -- bounded is bounded


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(("name", "params"), [c for c in CASES if c[0] in BUDGETED])
def test_budget_holds_in_every_round(engine, name, params, average):
    for several in variants(name):
        X, y = stream_for(ESTIMATORS[name], 70, several=several)
        model = make(name, params, average=average)
        learn(model, X[:10], part(y, slice(10)))
        for i in range(10, len(X)):
            model.partial_fit(X[[i]], part(y, [i]))
            assert model.n_support_ <= most_terms(model)
        if not is_pool(model):
            assert model.n_support_ == len(model.dual_coef_.T) == len(model.support_vectors_)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", BOUNDED)
def test_memory_is_flat(engine, name, average):
    rounds = 8000 if engine == "native" else 240
    X, y = stream_for(ESTIMATORS[name], rounds)
    model = make(name, average=average)
    sizes = []
    for start in range(0, rounds, rounds // 4):
        chunk = slice(start, start + rounds // 4)
        learn(model, X[chunk], part(y, chunk))
        sizes.append(sum(a.nbytes for a in model.state()[0].values()))
        assert len(pickle.dumps(model)) < sizes[-1] + 8192
    full = (len(X[0]) + 6) * 8 * (2 * BUDGET + 1) + 200  # rows, coef, base, born, score; recent examples
    full += 2 * 8 * BUDGET**2  # the factor of a kernel matrix and its inverse
    assert max(sizes) <= full * (len(model.kernels) if is_pool(model) else 1)


def test_truncation_is_bounded(engine):
    for name in ("NORMAClassifier", "NORMARegressor", "NORMADetector"):
        X, y = stream_for(ESTIMATORS[name], 100)
        model = make(name, {"truncation": 20, "eta": 0.3, "lam": 0.1})
        for i in range(0, 100, 2):
            learn(model, X[i : i + 2], part(y, slice(i, i + 2)))
            assert model.n_support_ <= 20


def test_a_lone_term_begins_afresh(engine):
    X, y = stream_for(ESTIMATORS["BOGDClassifier"], ROUNDS)
    model = onkel.BOGDClassifier(budget=1, eta=4.0, lam=0.025, unbiased=False)
    stepped = y * model.learn(X, y) < 1
    assert 1 < stepped.sum() < ROUNDS
    rounds_since = np.argmax(stepped[::-1])  # in each of them the term shrinks by 1 - eta lam
    assert model.state()[0]["scale"] == pytest.approx(0.9**rounds_since, rel=1e-12)


# -- prediction is pure; inputs are never changed, and never kept


def predictions(model, X):
    names = ["predict", "decision_function", "score_samples", "predict_proba"]
    found = [getattr(model, name)(X) for name in names if hasattr(model, name)]
    ones = [getattr(model, name) for name in ("predict_one", "score_one") if hasattr(model, name)]
    if not sp.issparse(X):
        found += [one(x) for one in ones for x in X[:3]]
    return found


@every_estimator
def test_prediction_is_pure(engine, name):
    for form in FORMS:
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


@every_estimator
def test_inputs_are_neither_changed_nor_kept(engine, name):
    for form in FORMS:
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


# -- failed calls leave the model unchanged


def failures(model, X, y):
    """Calls that must fail, on a model that has learned from X, y."""
    bad, short = X.copy(), X[:, :-1]
    bad[3, 1] = np.nan
    wild = X.copy()
    wild[-1] = 1e305
    calls = [
        lambda: learn(model, bad, y),
        lambda: learn(model, short, y),
        lambda: learn(model, X[0], y),
        lambda: learn(model, X[:0], part(y, slice(0))),
        lambda: learn(model, wild, y),
        lambda: learn(model, X.astype(complex) + 1j, y),
        lambda: learn(model, np.full(X.shape, "a"), y),
        lambda: step(model, bad[3], part(y, 3)),
        lambda: step(model, short[0], part(y, 0)),
        lambda: step(model, {"a": 1.0}, part(y, 0)),
        lambda: step(model, wild[-1], part(y, 0)),
        lambda: model.predict(bad),
        lambda: model.predict(short),
        lambda: model.fit(bad, y),
        lambda: model.partial_fit(short, y),
    ]
    if y is not None:
        weight = np.ones(len(y))
        weight[2] = -1
        calls += [
            lambda: learn(model, X, y[:-1]),
            lambda: learn(model, X, y, sample_weight=weight),
            lambda: learn(model, X, y, sample_weight=weight[1:]),
            lambda: learn(model, X, y, sample_weight=np.full(len(y), np.nan)),
            lambda: model.learn(X, np.full(len(y), None)),
            lambda: model.learn(X, np.where(np.arange(len(y)) == 5, np.nan, y)),
            lambda: model.learn_one(X[0], y[0], -1.0),
            lambda: model.learn_one(X[0], y[0], np.nan),
            lambda: model.learn_one(X[0], None),
            lambda: model.learn_one(X[0], np.nan),
            lambda: model.fit(X, y[:-1]),
        ]
    if isinstance(model, Classifier):
        calls += [
            lambda: model.learn(X, np.full(len(y), 77)),  # not declared
            lambda: model.learn(X, np.full(len(y), "a")),
            lambda: model.learn(X, y, classes=["a", "b"]),
            lambda: model.learn_one(X[0], 77),
            lambda: model.learn_one(X[0], "a"),
            lambda: model.learn(wild, np.full(len(y), 77), classes=[77]),
            lambda: model.decision_function(X, output="median"),
        ]
    return calls


@every_estimator
def test_failed_calls_leave_the_model_unchanged(engine, name):
    X, y = stream_for(ESTIMATORS[name], 40)
    model = make(name, kernel=unbounded(name))
    learn(model, X, y)
    before = snapshot(model)
    for i, call in enumerate(failures(model, X, y)):
        with pytest.raises((ValueError, TypeError)):
            call()
        assert snapshot(model) == before, f"call {i} left a trace"
    learn(model, X, y)


@every_estimator
def test_failed_first_calls_leave_nothing_behind(engine, name):
    X, y = stream_for(ESTIMATORS[name], 40)
    model = make(name, kernel=unbounded(name))
    for i, call in enumerate(failures(model, X, y)):
        if i == 1 or i in (7, 8, 9):  # good first calls: fewer columns, or one row with a name
            continue
        try:
            call()
        except (ValueError, TypeError):
            with pytest.raises(NotFittedError):
                model.predict(X)
            assert not model._started, f"call {i} began a model"
        else:
            model = make(name, kernel=unbounded(name))
    wide = np.hstack([X, X])
    learn(model, wide, y)
    fresh = make(name, kernel=unbounded(name))
    learn(fresh, wide, y)
    assert_same(model, fresh)
    assert vars(model).keys() == vars(fresh).keys()


@every_estimator
def test_failed_dictionaries_leave_the_model_unchanged(engine, name):
    X, y = stream_for(ESTIMATORS[name], 20)
    model = make(name)
    for i in range(20):
        step(model, dict(zip("abcd", X[i], strict=True)), part(y, i))
    before = snapshot(model)
    calls = [
        lambda: step(model, {"a": 1.0, "new": np.nan}, part(y, 0)),
        lambda: step(model, {"new": "red"}, part(y, 0)),
        lambda: step(model, {"new": None}, part(y, 0)),
    ]
    if y is not None:
        calls += [
            lambda: model.learn_one({"new": 1.0}, None),
            lambda: model.learn_one({"new": 1.0}, np.nan),
            lambda: model.learn_one({"new": 1.0}, y[0], -1.0),
            lambda: model.learn_many(pd.DataFrame({"new": [1.0]}), pd.Series([None])),
        ]
    for i, call in enumerate(calls):
        with pytest.raises((ValueError, TypeError)):
            call()
        assert snapshot(model) == before, f"call {i} left a trace"


@every_estimator
def test_a_failed_first_dictionary_is_forgotten(engine, name):
    X, y = stream_for(ESTIMATORS[name], 20)
    if y is None:
        return
    model, fresh = make(name), make(name)
    with pytest.raises(ValueError, match=r"\by\b"):
        model.learn_one({"p": 1.0, "q": 2.0}, None)
    for m in (model, fresh):
        learn(m, X, y)
    assert model.n_features_in_ == 4
    assert_same(model, fresh)


@pytest.mark.parametrize("name", [n for n in ESTIMATORS if issubclass(ESTIMATORS[n], Regressor)])
def test_divergence_keeps_what_was_known(engine, name):
    """The round that left the numbers' range is not learned, and what was known still predicts."""
    X, y = stream_for(ESTIMATORS[name], 300)
    steps = {k: 1e200 for k in ("eta", "C") if k in make(name).get_params(deep=False)}
    if "lam" in make(name).get_params(deep=False):
        steps["lam"] = 0.0 if "eta" in steps else 1e-200  # Pegasos steps by 1 / lam
    model = make(name).set_params(**steps)
    with contextlib.suppress(Diverged):
        learn(model, X, 1e150 * y)
    assert np.isfinite(model.predict(X)).all()
    assert all(np.isfinite(a).all() for a in model.state()[0].values())


def test_divergence_names_the_row(engine):
    X, y = stream_for(ESTIMATORS["KLMSRegressor"], 300)
    model = onkel.KLMSRegressor(eta=1e6)
    with pytest.raises(Diverged, match=r"row \d+"):
        learn(model, X, y)
    t = model.t_
    assert 0 < t < 300
    assert np.isfinite(model.predict(X)).all()
    one = onkel.KLMSRegressor(eta=1e6)
    one.learn_one(X[0], y[0])
    for i in range(1, t):
        one.learn_one(X[i], y[i])
    with pytest.raises(Diverged):
        one.learn_one(X[t], y[t])
    assert_same(one, model)
    model.fit(X, np.zeros(300))  # and it begins again
    assert model.t_ == 300


# -- forms of input


@every_case
def test_dense_is_sparse(engine, name, params):
    X, y = stream_for(ESTIMATORS[name], ROUNDS, form="sparse")
    wide, _ = stream_for(ESTIMATORS[name], ROUNDS, form="wide")
    for rows in (X, wide) if engine == "native" else (X,):
        dense, sparse = make(name, params, average=True), make(name, params, average=True)
        a, b = learn(dense, rows.toarray(), y), learn(sparse, rows, y)
        np.testing.assert_allclose(a, b, atol=1e-10)
        if has_terms(sparse):
            assert sp.issparse(sparse.support_vectors_) == (rows is wide)
        np.testing.assert_allclose(dense.predict(rows), sparse.predict(rows.toarray()), atol=1e-10)
        for other in (rows.tocsc(), rows.tocoo(), sp.csr_matrix(rows)):
            model = make(name, params, average=True)
            learn(model, other, y)
            assert_same(model, sparse)


@every_estimator
def test_dense_and_sparse_rows_may_alternate(engine, name):
    X, y = stream_for(ESTIMATORS[name], ROUNDS, form="wide")
    plain, mixed, began_dense = make(name), make(name), make(name)
    a, b, c = [], [], []
    for i, chunk in enumerate(cuts(ROUNDS)):
        rows, targets = X[chunk], part(y, chunk)
        kwargs = {} if not isinstance(plain, Classifier) else {"classes": [-1, 1]}
        a.append(learn(plain, rows, targets, **kwargs))
        b.append(learn(mixed, rows.toarray() if i % 2 else rows, targets, **kwargs))
        c.append(learn(began_dense, rows if i % 2 else rows.toarray(), targets, **kwargs))
    np.testing.assert_allclose(np.concatenate(b), np.concatenate(a), atol=1e-10)
    np.testing.assert_allclose(np.concatenate(c), np.concatenate(a), atol=1e-10)


@every_estimator
def test_float32_is_kept(engine, name, tmp_path):
    X, y = stream_for(ESTIMATORS[name], ROUNDS, form="float32")
    model = make(name)
    learn(model, X, y)
    if has_terms(model):
        assert model.support_vectors_.dtype == model.state()[0]["basis.x"].dtype == np.float32
        stored = {row.tobytes() for row in X}
        assert all(row.tobytes() in stored for row in model.support_vectors_) or name == "TVMClassifier"
    double = X.astype(np.float64)
    learn(model, double, y)  # joins in float32
    assert model.state()[1]["run"]["dtype"] == "float32"
    np.testing.assert_array_equal(model.predict(double), model.predict(X))
    model.save(tmp_path / "model")
    loaded = onkel.load(tmp_path / "model")
    assert_same(loaded, model)
    sparse = make(name)
    learn(sparse, sp.csr_array(np.hstack([X, np.zeros((ROUNDS, 2000), np.float32)])), y)
    for stored in (m.support_vectors_ for m in (model, loaded, sparse) if has_terms(m)):
        assert stored.dtype == np.float32


def test_float64_is_not_float32(engine):
    X, y = stream_for(ESTIMATORS["KLMSRegressor"], ROUNDS)
    model = onkel.KLMSRegressor().fit(X, y)
    assert model.support_vectors_.dtype == np.float64
    np.testing.assert_array_equal(model.support_vectors_, X)


@every_estimator
def test_a_million_columns(engine, name):
    rng = np.random.default_rng(0)
    n, width = 30 if engine == "native" else 6, 1_000_000
    X = sp.random_array((n, width), density=2e-5, format="csr", rng=rng)
    y = stream_for(ESTIMATORS[name], n)[1]
    few = {"components": 2} if on_features(name) else {}  # directions are drawn for every column
    model = make(name, kernel=Gaussian(0.1), average=True, **few)
    learn(model, X, y)
    if has_terms(model):
        assert sp.issparse(model.support_vectors_) and model.support_vectors_.shape[1] == width
    arrays = model.state()[0]
    widths = arrays.pop("map.log_widths", None)
    assert widths is None or len(widths) == width  # these are learned for each column
    assert sum(a.nbytes for a in arrays.values()) < 1e5
    assert len(model.predict(X)) == n


@every_estimator
def test_frames_are_arrays(engine, name):
    """Names mean something to random features only; there a frame is the same model in any order of its columns."""
    X, y = stream_for(ESTIMATORS[name], ROUNDS)
    names = ["a", "b", "c", "d"]
    plain, model = make(name), make(name)
    scores = learn(plain, X, y)
    np.testing.assert_array_equal(learn(model, pd.DataFrame(X), y), scores)  # columns without names
    if on_features(name):
        turned, plain = make(name), make(name)
        named = learn(plain, pd.DataFrame(X, columns=names), y)
        assert np.abs(named - scores).max() > 0.01
        np.testing.assert_allclose(learn(turned, pd.DataFrame(X, columns=names)[names[::-1]], y), named, atol=1e-10)
        scores = named
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = make(name)
        series = None if y is None else pd.Series(y) if isinstance(frame, pd.DataFrame) else pl.Series(y)
        got = model.learn(frame) if y is None else model.learn(frame, series, **declared(model, y))
        np.testing.assert_array_equal(got, scores)
        assert list(model.feature_names_in_) == names
        np.testing.assert_array_equal(model.predict(frame), plain.predict(frame if on_features(name) else X))
        assert arrays_of(model) == arrays_of(plain)
        step(model, dict(zip(names, X[0], strict=True)), part(y, 0))  # and goes on with dictionaries
        assert model.n_features_in_ == 4


@every_estimator
def test_frames_of_other_columns_are_refused(engine, name):
    X, y = stream_for(ESTIMATORS[name], ROUNDS)
    model = make(name)
    frame = pd.DataFrame(X, columns=list("abcd"))
    learn(model, frame, y)
    before = snapshot(model)
    for wrong in (frame[["a", "b", "c"]], frame.rename(columns={"d": "e"}), frame[list("dcba")]):
        with pytest.raises(ValueError, match="feature"):
            learn(model, wrong, y)
        assert snapshot(model) == before


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


@every_case
def test_carried_numbers_survive_new_classes(engine, name, params):
    """Norms and scores that parts carry along are those of the function, whichever way classes joined."""
    if name not in SEVERAL:
        return
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


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_learn_many_is_learn_one(engine, name):
    X, y = stream_for(ESTIMATORS[name], 60, several=name in SEVERAL)
    frame = pd.DataFrame(X, columns=list("abcd"))
    many, one = make(name), make(name)
    many.learn_many(frame[:25], pd.Series(y[:25]))
    many.learn_many(frame[25:], pd.Series(y[25:]))
    for i, x in enumerate(frame.to_dict("records")):
        one.learn_one(x, int(y[i]))
    np.testing.assert_allclose(many.decision_function(X), one.decision_function(X), atol=1e-10)


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


def test_metadata_requests_survive(engine):
    """What scikit-learn keeps on an estimator is not ours to forget."""
    from sklearn import config_context

    X, y = stream_for(ESTIMATORS["RBPClassifier"], 40)
    with config_context(enable_metadata_routing=True):
        model = make("RBPClassifier").set_fit_request(sample_weight=True)
        requests = repr(model.get_metadata_routing())
        assert repr(clone(model).get_metadata_routing()) == requests
        model.fit(X, y)
        assert repr(model.get_metadata_routing()) == requests
        assert repr(pickle.loads(pickle.dumps(model)).get_metadata_routing()) == requests
