"""A model that was stopped goes on as if it had not been; a fresh one begins afresh."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from models import (
    AVERAGES,
    CASES,
    ROUNDS,
    arrays_of,
    assert_same,
    every_case,
    every_estimator,
    every_task,
    is_pool,
    make,
    part,
)
from rings import one_each, twinned
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from streams import EVERY as ESTIMATORS
from streams import (
    FORMS,
    TESTS,
    learn,
    stream_for,
)

import onkel
from onkel.kernels import Gaussian

# -- resume = never stopped

WAYS = {
    "pickle": lambda model, path: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, path: copy.deepcopy(model),
    "copy": lambda model, path: copy.copy(model),
    "save": lambda model, path: (model.save(path), onkel.load(path))[1],
}


@every_task
def test_resume_is_never_stopped(engine, name, params, several, tmp_path):
    half = ROUNDS // 2
    turn = CASES.index((name, params)) + several
    for form in FORMS if engine == "native" else [FORMS[turn % 4]]:
        average = AVERAGES[(turn + FORMS.index(form)) % 3]
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
with onkel.use_engine(sys.argv[2]):
    for path in sorted(folder.glob("*.half")):
        model = onkel.load(path)
        X, y = stream_for(model, rounds)
        learn(model, X[half:], None if y is None else y[half:])
        model.save(path.with_suffix(".done"))
"""


@pytest.mark.parametrize("cases", [one_each(CASES), pytest.param(CASES, marks=pytest.mark.slow)], ids=["some", "all"])
def test_resume_in_a_new_process(engine, cases, tmp_path):
    half = ROUNDS // 2
    never = {}
    for i, (name, params) in enumerate(cases):
        if engine == "native" and not twinned((name, 0)):
            continue
        model = make(name, params, average=AVERAGES[i % 3], random_state=i)
        X, y = stream_for(model, ROUNDS)
        learn(model, X[:half], part(y, slice(half)))
        model.save(tmp_path / f"{i}.half")
        learn(model, X[half:], part(y, slice(half, None)))
        never[i] = model
    environment = os.environ | {"PYTHONPATH": str(TESTS), "ONKEL_ENGINE": engine}
    command = [sys.executable, "-W", "error", "-c", _CONTINUE, str(tmp_path), engine, str(half), str(ROUNDS)]
    subprocess.run(command, env=environment, check=True, timeout=60)
    for i, model in never.items():
        assert_same(onkel.load(tmp_path / f"{i}.done"), model)


@every_case
def test_resume_on_the_other_engine(engine, name, params, tmp_path):
    if not onkel.native.available() or not twinned((name, 0)):
        pytest.skip("there is one engine")
    other = {"python": "native", "native": "python"}[engine]
    X, y = stream_for(ESTIMATORS[name], ROUNDS)
    half = ROUNDS // 2
    never = make(name, params, average=True)
    learn(never, X[:half], part(y, slice(half)))
    never.save(tmp_path / "model")
    with onkel.use_engine(other):
        moved = onkel.load(tmp_path / "model")
    assert moved._learned.engine.kind == other
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
        if y is None or (engine == "native" and not twinned((name, 0))):
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
