"""Rows that people hand in by mistake: refused with a sentence, or handled; never a crash, a hang or a warning."""

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from refusals import KINDS, every_estimator, every_kind, refuses, step, trained
from streams import ESTIMATORS, build, learn, on_features, stream_for

# -- NaN and infinity


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@every_estimator
def test_numbers_that_are_none_are_refused_where_they_are(engine, name, bad):
    word = "NaN" if np.isnan(bad) else "inf"
    for started in (False, True):
        model, X, y = trained(name)
        if not started:
            model = build(name)
        wrong = X.copy()
        wrong[7, 2] = bad
        sparse = sp.csr_array(wrong)
        for rows in (wrong, wrong.astype(np.float32), sparse, sparse.tocsc(), pd.DataFrame(wrong)):
            refuses([word, "row 7", "column 2"], learn, model, rows, y)
        if started:
            for rows in (wrong, sparse):
                refuses([word, "row 7", "column 2"], model.predict, rows)
            one = model.score_one if y is None else model.predict_one
            refuses(["NaN|inf", "column 2"], one, wrong[7])
        refuses(["NaN|inf", "column 2"], step, model, wrong[7], 1)
        if y is not None:
            targets = np.asarray(y, dtype=float).copy()
            targets[4] = bad
            refuses(["y", "NaN|inf", "row 4|4"], model.learn, X, targets)
            refuses(["y|label"], model.learn_one, X[0], bad)
            refuses(["weight"], model.learn_one, X[0], y[0], bad)
            weights = np.ones(len(y))
            weights[3] = bad
            refuses(["weight", "row 3|3"], learn, model, X, y, sample_weight=weights)


@every_estimator
def test_dictionaries_with_bad_values(engine, name):
    model, y = build(name), stream_for(ESTIMATORS[name], 4)[1]
    label = None if y is None else y[0]
    for bad in (np.nan, np.inf, None, "red", 1j, [1.0], np.array([1.0, 2.0]), pd.NaT, np.datetime64("2020")):
        refuses(["'the bad one'"], step, model, {"a": 1.0, "the bad one": bad}, label)
        assert not model.__sklearn_is_fitted__()
    for good in (1, True, np.float32(1), np.int8(1), np.bool_(True), 10**20):
        step(model, {"a": 1.0, "good": good}, label)
    read = model.score_one if y is None else model.predict_one
    refuses(["'a'"], read, {"a": np.nan})
    read({})
    read({"never seen": 1.0})


@pytest.mark.parametrize("name", [*KINDS, *(name for name in ESTIMATORS if on_features(name))])
def test_dictionaries_without_features(engine, name):
    model, y = build(name), stream_for(ESTIMATORS[name], 4)[1]
    for x in ({}, {"a": 1.0}, {}, {"b": 2.0, "a": 1.0}):
        step(model, x, None if y is None else y[0])
    pickle.loads(pickle.dumps(model))


@every_kind
def test_arrays_and_names_do_not_mix_silently(engine, name):
    model, _, y = trained(name)
    label = None if y is None else y[0]
    refuses(["unnamed columns"], step, model, {"a": 1.0}, label)
    read = model.score_one if y is None else model.predict_one
    refuses(["unnamed columns"], read, {"a": 1.0})
    named = build(name)
    step(named, {"a": 1.0, "b": 2.0}, label)
    refuses(["3 features", "2"], step, named, np.ones(3), label)
    refuses(["3 features", "2"], named.predict, np.ones((2, 3)))
    step(named, np.ones(2, np.float32), label)
    named.predict(np.ones((2, 2), np.float32))
    named.predict(sp.csr_array(np.ones((2, 2), np.float32)))


@every_kind
def test_float32_frames_then_dictionaries(engine, name):
    X, y = stream_for(ESTIMATORS[name], 20)
    model = build(name)
    learn(model, pd.DataFrame(X.astype(np.float32), columns=list("abcd")), y)
    step(model, {"a": 0.5, "e": 1.5}, None if y is None else y[0])
    assert model.support_vectors_.dtype == np.float32 and model.support_vectors_.shape[1] == 5
    model.predict(np.ones((2, 5)))
    model.predict(sp.csr_array(np.ones((2, 5))))


# -- shapes


@every_estimator
def test_wrong_shapes_are_refused(engine, name):
    for started in (False, True):
        model, X, y = trained(name)
        if not started:
            model = build(name)
        for rows in (X[0], X[None], np.float64(3), X[:0], X[:, :0], [], [[]], None, "text", object()):
            refuses([], learn, model, rows, y)
            refuses([], model.fit, rows, y)
            if started:
                refuses([], model.predict, rows)
        refuses([], learn, model, sp.csr_array((0, 4)), y)
        refuses([], learn, model, [[1.0, 2.0], [3.0]], None if y is None else y[:2])
        if y is not None:
            for targets in (y[:-1], y[:0], np.stack([y, y], 1), None, 3, [[1], [2, 3]]):
                refuses([], model.learn, X, targets)
            for weight in (np.ones(3), np.ones((len(y), 2)), "heavy", [[1.0]]):
                refuses([], learn, model, X, y, sample_weight=weight)
        if started:
            for rows in (X[:, :3], np.hstack([X, X]), sp.csr_array(X[:, :3])):
                refuses(["features"], learn, model, rows, y)
                refuses(["features"], model.predict, rows)


@every_kind
def test_wrong_single_rows_are_refused(engine, name):
    model, X, y = trained(name)
    label = None if y is None else y[0]
    read = model.score_one if y is None else model.predict_one
    for x in (X[0][:3], np.zeros(0), np.float64(3), np.zeros((2, 4)), "text", None, [1.0, 2.0]):
        refuses([], step, model, x, label)
        refuses([], read, x)
    odd = np.array(["a", "b", "c", "d"])
    for x in (odd, odd.astype(object), np.zeros(4, complex), np.zeros(4, "M8[s]"), np.array([None] * 4)):
        refuses(["(?i)number|numeric|float|complex|convert|string|None"], step, model, x, label)
        refuses(["(?i)number|numeric|float|complex|convert|string|None"], read, x)
    t = model.t_
    for x in (
        X[0].tolist(),
        tuple(X[0]),
        X[0].astype(np.float16),
        np.ones(4, int),
        np.ones(4, bool),
        X[0][::-1],
    ):
        step(model, x, label)
        read(x)
    assert model.t_ == t + 6


@every_kind
def test_single_examples_are_refused_with_what_is_wrong(engine, name):
    model, X, y = build(name), *stream_for(ESTIMATORS[name], 3)
    label = None if y is None else y[0]
    for x, words in (
        (None, ["dictionary or a row", "None"]),
        ("text", ["dictionary or a row", "'text'"]),
        (["1.5", "2"], ["dictionary or a row", "'1.5'"]),
        ([[1.0], [1.0, 2.0]], ["dictionary or a row"]),
        ([1.0, Decimal("1.5")], ["feature 1", "Decimal", "not a number"]),
        ([1.0, 10**400], ["infinity", "column 1"]),
        (X[:2], ["one example", r"\(2, 4\)"]),
        (pl.DataFrame(X[:1]), ["one example", "learn_many"]),
        (pd.DataFrame(X[:1], index=["a"]), ["one example", "learn_many"]),
        (np.ma.masked_array([1.0, 99.0], [False, True]), ["masked"]),
        (pd.Series([1.0, 2.0, 3.0], index=["a", "b", "a"]), ["2 values of 'a'"]),
        (pd.Series([], dtype=float), ["0 feature"]),
        (pd.DataFrame(X[:1]), ["one example", "learn_many"]),
        ({"a": 10**400}, ["feature 'a'", "1000", "too large", "scale"]),
        ({"a": Decimal("1.5")}, ["feature 'a'", "not a number"]),
        ({"a": np.timedelta64(3, "s")}, ["feature 'a'", "not a number"]),
        ({"\ud800": 1.0}, ["Unicode", "rename"]),
    ):
        refuses(words, step, model, x, label)
    for row in (X[0].tolist(), X[0].astype(object), np.array([True, 2, 0.5, np.float32(1)], dtype=object)):
        step(model, row, label)
    assert model.t_ == 3


@every_kind
def test_a_row_of_a_frame_is_read_by_its_names(engine, name):
    X, y = stream_for(ESTIMATORS[name], 20)
    frame = pd.DataFrame(X, columns=list("abcd"))
    by_rows, by_frame = build(name), build(name)
    for i in range(20):
        label = None if y is None else y[i]
        step(by_frame, frame.iloc[i][list("dbca")] if i else frame.iloc[i], label)
        step(by_rows, dict(zip("abcd", X[i].tolist(), strict=True)), label)
    read = (lambda m, x: m.score_one(x)) if y is None else (lambda m, x: m.predict_one(x))
    for i in range(20):
        assert read(by_frame, frame.iloc[i][::-1]) == read(by_rows, frame.iloc[i].to_dict())
    if y is not None:
        by_rows.learn_many(frame.rename(columns=dict(zip("abcd", range(4), strict=True))), pd.Series(y))
        assert by_rows.predict_one(pd.Series(X[0])[::-1]) == by_rows.predict_one(dict(enumerate(X[0].tolist())))
    unnamed, _, _ = trained(name)
    assert read(unnamed, pd.Series(X[0])) == read(unnamed, X[0])
    refuses(["unnamed columns"], read, unnamed, frame.iloc[0])
