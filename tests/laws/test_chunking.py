"""One by one is all at once: what a model learns does not depend on how its rows come."""

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
    cuts,
    declared,
    every_estimator,
    every_form,
    every_task,
    make,
    part,
    scores_of,
    step,
)
from streams import EVERY as ESTIMATORS
from streams import (
    FORMS,
    learn,
    names_for,
    stream_for,
)

from onkel.kernels import Gaussian

# -- one by one = any chunking


@every_task
def test_any_chunking(engine, name, params, several):
    turn = CASES.index((name, params)) + several
    average, form = AVERAGES[turn % 3], FORMS[turn % 4]
    X, y = stream_for(ESTIMATORS[name], ROUNDS, form=form, several=several)
    whole = make(name, params, average=average)
    scores = learn(whole, X, y)
    chunked = make(name, params, average=average)
    kwargs = declared(chunked, y)
    pieces = [
        chunked.learn(X[c], **kwargs) if y is None else chunked.learn(X[c], y[c], **kwargs) for c in cuts(len(scores))
    ]
    np.testing.assert_array_equal(np.concatenate(pieces), scores)
    assert_same(whole, chunked)
    single = make(name, params, average=average)
    for i in range(len(scores)):
        single.partial_fit(X[[i]], part(y, [i]), **kwargs)
    assert_same(whole, single)


@pytest.mark.parametrize("form", ["dense", "float32"])
@pytest.mark.parametrize(("name", "several"), [(name, s) for name in ESTIMATORS for s in {False, name in SEVERAL}])
def test_learn_one_on_rows_is_learn(engine, name, several, form):
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


@every_form
@every_estimator
def test_predictions_do_not_depend_on_their_company(engine, name, form):
    X, y = stream_for(ESTIMATORS[name], 60, form=form)
    model = make(name, average=True)
    learn(model, X, y)
    one_by_one = np.concatenate([scores_of(model, X[[i]]) for i in range(60)])
    np.testing.assert_array_equal(scores_of(model, X), one_by_one)


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
