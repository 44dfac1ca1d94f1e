"""Calls that fail leave the model as it was."""

import contextlib

import numpy as np
import pandas as pd
import pytest
from models import (
    assert_same,
    every_estimator,
    make,
    part,
    snapshot,
    step,
    unbounded,
)
from sklearn.exceptions import NotFittedError
from streams import EVERY as ESTIMATORS
from streams import (
    learn,
    stream_for,
)

import onkel
from onkel.core.errors import Diverged
from onkel.faces.classifier import Classifier
from onkel.faces.regressor import Regressor

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
            assert not model.__sklearn_is_fitted__(), f"call {i} began a model"
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


def wild(name, **more):
    """A model whose steps are far too large."""
    model = make(name, **more)
    known = model.get_params(deep=False)
    steps = {k: 1e200 for k in ("eta", "C") if k in known}
    if "lam" in known:
        steps["lam"] = 0.0 if "eta" in steps else 1e-200  # Pegasos steps by 1 / lam
    if "variant" in known and "C" in steps:
        steps["variant"] = "I"  # "hard" has no C
    return model.set_params(**steps)


REGRESSORS = pytest.mark.parametrize("name", [n for n in ESTIMATORS if issubclass(ESTIMATORS[n], Regressor)])


@REGRESSORS
def test_divergence_leaves_the_model_of_the_rows_before(engine, name):
    """A target beyond all others diverges, or is learned; either way the model is that of the rows it counts."""
    X, y = stream_for(ESTIMATORS[name], 60)
    for row, target in ((0, 1e200), (17, 1e155), (43, -1e300)):
        huge = y.copy()
        huge[row] = target
        model, fresh = make(name), make(name)
        with contextlib.suppress(Diverged, ValueError):
            learn(model, X, huge)
        if not model.__sklearn_is_fitted__():
            continue
        assert all(np.isfinite(a).all() for a in model.state()[0].values())
        learn(fresh, X[: model.t_], huge[: model.t_])
        assert_same(model, fresh)
        assert np.isfinite(model.predict(X)).all()


@REGRESSORS
def test_divergence_keeps_what_was_known(engine, name):
    """The round that left the numbers' range is not learned, and what was known still predicts."""
    X, y = stream_for(ESTIMATORS[name], 300)
    model = wild(name)
    with contextlib.suppress(Diverged):
        learn(model, X, 1e150 * y)
    if model.__sklearn_is_fitted__():  # it is not where the first row diverged
        assert np.isfinite(model.predict(X)).all()
        assert all(np.isfinite(a).all() for a in model.state()[0].values())


@REGRESSORS
def test_extreme_targets_and_weights_are_learned_or_change_nothing(engine, name):
    X, y = stream_for(ESTIMATORS[name], 40)
    for size in (1e75, 1e100, 1e150, 1e155, 1e200, -1e308):
        model = make(name)
        learn(model, X, y)
        weight = abs(size)
        for call in (
            lambda: model.learn(X[:1], [size]),  # noqa: B023
            lambda: model.learn_one(X[0], size),  # noqa: B023
            lambda: model.learn_one(X[0], 1.0, weight),  # noqa: B023
            lambda: model.learn(X[:1], [1.0], sample_weight=[weight]),  # noqa: B023
        ):
            before, t = snapshot(model), model.t_
            try:
                call()
            except (ValueError, Diverged):
                assert model.t_ == t
                assert snapshot(model) == before
            assert np.isfinite(model.predict(X)).all()
            assert all(np.isfinite(a).all() for a in model.state()[0].values() if a.dtype.kind == "f")


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
