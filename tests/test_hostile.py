"""What people hand in by mistake: refused with a sentence, or handled; never a crash, a hang or a warning."""

import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from streams import ESTIMATORS, build, learn, on_features, stream_for

import onkel
from onkel.budgets import Bounded, Stop
from onkel.faces import Classifier, Detector, Regressor
from onkel.hypothesis import Expansion
from onkel.kernels import Cauchy, Gaussian, Kernel, Laplacian, Linear, Polynomial, Sigmoid
from onkel.learner import Diverged, Learner
from onkel.losses import MarginLoss, Mistake
from onkel.part import Part
from onkel.updates import Perceptron

# one estimator of each kind
KINDS = ["ForgetronClassifier", "KLMSRegressor", "NORMADetector"]
every_kind = pytest.mark.parametrize("name", KINDS)
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def step(model, x, y):
    model.learn_one(x) if isinstance(model, Detector) else model.learn_one(x, y)


def refuses(words, call, *args, **kwargs):
    """The call raises a ValueError or TypeError whose sentence has all the words."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call(*args, **kwargs)
    for word in words:
        assert re.search(word, str(caught.value)), f"{word!r} is not in: {caught.value}"


def trained(name, rounds=30, form="dense"):
    X, y = stream_for(ESTIMATORS[name], rounds, form=form)
    model = build(name)
    learn(model, X, y)
    return model, X, y


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


# -- labels


def test_labels_that_numpy_would_cut_are_refused(engine):
    model = onkel.PAClassifier()
    model.learn_one({"a": 1.0}, "yes")
    refuses(["NUL", "'no.x00'"], model.learn_one, {"a": 1.0}, "no\0")
    assert model.classes_.tolist() == ["yes"]


@pytest.mark.parametrize("name", [n for n, c in ESTIMATORS.items() if issubclass(c, Classifier)])
def test_labels_that_cannot_be_are_refused(engine, name):
    X, y = stream_for(ESTIMATORS[name], 6)
    wrong = {
        "none": [None] * 6,
        "some none": ["a", "b", None, "a", "b", "a"],
        "mixed": np.array(["a", 1, "b", 2, "a", 1], dtype=object),
        "mixed list": ["a", 1, "b", 2, "a", 1],  # of which NumPy makes texts
        "texts and truth": ["a", True, "a", False, "a", True],
        "a missing text": ["a", "b", float("nan"), "a", "b", "a"],
        "integers that NumPy rounds": [2**63 + 5, 2**63 + 6, -1, -1, -1, -1],
        "masked": np.ma.masked_array([0, 1, 0, 1, 9, 9], mask=[0, 0, 0, 0, 1, 1]),
        "bool and int": np.array([True, 1, False, 2, True, 1], dtype=object),
        "continuous": np.linspace(0, 1, 6),
        "complex": np.ones(6, complex),
        "dates": np.array(["2020-01-01"] * 6, dtype="M8[D]"),
        "tuples": [(1, 2)] * 6,
        "objects": [object() for _ in range(6)],
        "missing": pd.Series([1, 2, None, 1, 2, 1], dtype="Int64"),
        "nan strings": pd.Series(["a", np.nan, "b", "a", "b", "a"]),
    }
    model = build(name)
    for kind, labels in wrong.items():
        with pytest.raises((ValueError, TypeError)):
            model.fit(X, labels)
        assert not model.__sklearn_is_fitted__(), kind
    for classes in ([], [None], [1, "a"], [0.5, 1.5], [np.nan, 1.0], "ab", 3):
        refuses([], model.learn, X, y, classes=classes)
    refuses(["declared", "2", "classes="], model.learn, X, np.arange(6), classes=[0, 1])
    model.learn(X, y, classes=[-1, 1])
    refuses(["label"], model.learn, X, ["a"] * 6)
    refuses(["label"], model.learn_one, X[0], "a")
    refuses([], model.learn_one, X[0], [1])
    refuses(["continuous"], model.learn_one, X[0], 0.5)


def test_labels_of_another_kind_do_not_join(engine):
    X = np.eye(4)
    for first, later in (
        (["a", "b"] * 2, [1, 2] * 2),
        ([0, 1] * 2, ["a", "b"] * 2),
        ([b"a", b"b"] * 2, ["a", "b"] * 2),
    ):
        model = build("ForgetronClassifier")
        try:
            model.partial_fit(X, np.array(first))
        except ValueError:  # bytes may be refused at once
            continue
        refuses(["label"], model.partial_fit, X, np.array(later))
        refuses(["label"], model.learn_one, X[0], later[0])
        assert model.classes_.tolist() == first[:2]


@pytest.mark.parametrize("name", [n for n, c in ESTIMATORS.items() if issubclass(c, Regressor)])
def test_targets_that_are_no_numbers_are_refused(engine, name):
    X = np.eye(4)
    for bad in (
        ["a", "b", "c", "d"],
        [None] * 4,
        np.ones(4, complex),
        np.array(["2020"] * 4, "M8[Y]"),
        [10**400] * 4,
    ):
        refuses(["y|Complex"], build(name).fit, X, bad)
        model = build(name).fit(X, np.ones(4))
        refuses([], model.learn_one, X[0], bad[0])
    refuses(["classes"], build(name).learn, X, np.ones(4), classes=[0, 1])


@every_estimator
def test_weights(engine, name):
    model, X, y = trained(name)
    if y is None:
        return
    for bad in (-1.0, np.full(30, -1e-9), np.full(30, np.nan), [10**400] * 30, np.where(np.arange(30) == 9, -1.0, 1.0)):
        refuses(["weight"], learn, model, X, y, sample_weight=bad)
    refuses(["sample_weight", "nan in row 0"], model.fit, X, y, sample_weight=[None] * len(y))
    refuses(["weight"], model.learn_one, X[0], y[0], -1.0)
    refuses([], model.learn_one, X[0], y[0], "heavy")
    refuses([], model.learn_one, X[0], y[0], None)
    t = model.t_
    learn(model, X, y, sample_weight=np.where(np.arange(30) < 20, 0.0, 1.0))
    assert model.t_ == t + 10
    model.learn_one(X[0], y[0], 0.0)
    assert model.t_ == t + 10
    learn(model, X[:3], y[:3], sample_weight=np.zeros(3))  # rounds that are all skipped
    assert model.t_ == t + 10
    fresh = build(name)
    fresh.learn_one(X[0], y[0], 0.0)
    assert fresh.t_ == 0
    learn(model, X, y, sample_weight=2)  # a number for all


# -- kinds of numbers


@every_kind
def test_numbers_of_all_kinds(engine, name):
    X, y = stream_for(ESTIMATORS[name], 20)
    X = np.round(4 * X)
    plain = build(name)
    scores = learn(plain, X, y)
    kinds = ["i1", "i4", "i8", ">i4", "f2", ">f8", "f16", object]
    for rows in [X.astype(kind) for kind in kinds] + [X.tolist(), pd.DataFrame(X).astype("Int64")]:
        model = build(name)
        np.testing.assert_array_equal(learn(model, rows, y), scores)
        np.testing.assert_array_equal(model.predict(rows), plain.predict(X))
    for rows in (X > 0, (X > 0).astype(np.uint8), sp.csr_array(X > 0), sp.csr_array(X.astype(np.int8))):
        learn(build(name), rows, y)


@every_kind
def test_rows_that_are_no_numbers_are_refused(engine, name):
    y = stream_for(ESTIMATORS[name], 4)[1]
    for rows in (
        np.full((4, 2), "a"),
        np.full((4, 2), "a", dtype=object),
        np.array([[1, None]] * 4, dtype=object),
        np.ones((4, 2), complex),
        sp.csr_array(np.ones((4, 2), complex)),
        np.full((4, 2), np.datetime64("2020-01-01")),
        np.full((4, 2), np.timedelta64(3, "s")),
        pd.DataFrame({"a": ["x"] * 4, "b": [1.0] * 4}),
        pd.DataFrame({"a": pd.to_datetime(["2020"] * 4), "b": [1.0] * 4}),
        pd.DataFrame({"a": pd.to_datetime(["2020"] * 3 + [None])}),
        pd.DataFrame({"a": pd.to_timedelta(["3s"] * 4)}),
        pl.DataFrame({"a": pd.to_datetime(["2020"] * 4)}),
        [[{}, 1.0]] * 4,
    ):
        refuses([], learn, build(name), rows, y)


@every_kind
def test_tables_are_refused_with_what_is_wrong(engine, name):
    y = stream_for(ESTIMATORS[name], 2)[1]
    for rows, words in (
        ([{"a": 1.0}] * 2, ["dictionaries", "learn_one"]),
        ((row for row in np.ones((2, 2))), ["iterator", "array"]),
        (pd.DataFrame({"a": [1.0, 2.0], "b": [3, "x"]}), ["column 'b'", "'x' in row 1", "encode"]),
        (pd.DataFrame({"a": ["1.5", "2"], "b": [3, "x"]}), ["column 'b'", "'x' in row 1"]),
        (pl.DataFrame({"a": [1.0, 2.0], "b": ["u", "x"]}), ["column 'b'", "'u' in row 0", "encode"]),
        (pd.DataFrame(np.ones((2, 3)), columns=["a", "b", "a"]), ["2 columns 'a'"]),
        ([[1.0, 2.0], [3.0, 10**400]], ["1000", "row 1, column 1", "too large", "scale"]),
        (np.array([[1.0, 10**5000], [3.0, 4.0]], object), ["thousands of digits", "row 0, column 1"]),
        (pd.DataFrame({"a": [1.0, 10**400]}), ["column 'a'", "1000", "row 1"]),
    ):
        refuses(words, learn, build(name), rows, y)
        if isinstance(rows, pd.DataFrame) and y is not None:
            refuses(words, build(name).learn_many, rows, pd.Series(y))


def test_a_missing_target_is_named_with_its_row(engine):
    refuses(["<NA>", "row 1"], onkel.KLMSRegressor().fit, np.ones((3, 2)), pd.Series([1.0, pd.NA, 2.0]))


@every_kind
def test_masked_values_are_not_read(engine, name):
    X, y = stream_for(ESTIMATORS[name], 20)
    learn(build(name), np.ma.masked_array(X), y)  # nothing is masked
    mask = np.zeros(X.shape, bool)
    mask[3, 1] = True
    refuses(["mask|NaN"], learn, build(name), np.ma.masked_array(X, mask), y)


KERNELS = [Gaussian(1.0), Laplacian(1.0), Cauchy(1.0), Sigmoid(1.0, 0.0), Linear(), Polynomial(2)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("form", ["dense", "float32", "sparse", "wide"])
@pytest.mark.parametrize("size", [1e300, 1e154, 1e39, 1e-310, 5e-324, 0.0])
def test_huge_and_tiny_values(engine, kernel, form, size):
    """Learned from with finite scores, or refused as too large; predictions never warn."""
    if form == "float32":
        size = min(size, 1e38)
    X, y = stream_for(ESTIMATORS["KernelPerceptronClassifier"], 20)
    X = np.hstack([size * X, np.zeros((20, 2000))]) if form == "wide" else size * X
    rows = sp.csr_array(X) if form in ("sparse", "wide") else X.astype(np.float32) if form == "float32" else X
    model = onkel.KernelPerceptronClassifier(kernel=kernel)
    try:
        scores = learn(model, rows, y)
    except (ValueError, Diverged) as error:
        assert isinstance(kernel, (Linear, Polynomial, Sigmoid))
        assert re.search(r"row \d+: ", str(error))  # noqa: PT017
        return
    assert np.isfinite(scores).all()
    assert np.isfinite(model.decision_function(rows)).all()
    learn(model, np.ones(X.shape), y)
    assert np.isfinite(model.decision_function(rows)).all()
    assert np.isfinite(model.decision_function(np.ones(X.shape))).all()


@pytest.mark.parametrize("form", ["dense", "float32", "sparse", "wide"])
@pytest.mark.parametrize("size", [2e307, 1e305, 1e154, 1e39, 1e-310, 5e-324, 0.0])
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if on_features(name)])
def test_huge_and_tiny_values_of_random_features(engine, name, form, size):
    """Learned from and predicted with finite scores, or refused as too large: from the first call and later."""
    X, y = stream_for(ESTIMATORS[name], 20, form=form)
    rows = X.copy()
    (rows.data if sp.issparse(rows) else rows)[:] *= min(size, 1e38) if form == "float32" else size

    def finite_or_refused(call, *args):
        try:
            result = call(*args)
        except ValueError as error:
            assert re.search("too large", str(error))  # noqa: PT017
        else:
            assert result is None or np.isfinite(np.asarray(result, dtype=float)).all()

    first = build(name)
    finite_or_refused(learn, first, rows, y)
    model = build(name)
    learn(model, X, y)
    before = {k: v.tobytes() for k, v in model.state()[0].items()}
    score = getattr(model, "decision_function", model.predict)
    for call in (model.predict, score):
        finite_or_refused(call, rows)
    if form in ("dense", "float32"):
        finite_or_refused(model.predict_one, rows[0])
        finite_or_refused(score, np.full_like(X[:2], np.finfo(X.dtype).max))
    assert {k: v.tobytes() for k, v in model.state()[0].items()} == before
    finite_or_refused(learn, model, rows, y)
    if form in ("dense", "float32"):
        finite_or_refused(model.learn_one, rows[0], y[0])
    assert all(np.isfinite(a).all() for a in model.state()[0].values())
    assert np.isfinite(np.asarray(model.predict(X), dtype=float)).all()


@every_kind
def test_values_beyond_float32_are_refused_by_a_float32_model(engine, name):
    model, X, y = trained(name, form="float32")
    wrong = X.astype(np.float64)
    wrong[5, 1] = 1e300
    refuses(["row 5", "column 1"], learn, model, wrong, y)
    refuses(["row 5", "column 1"], model.predict, wrong)
    refuses(["column 1"], step, model, wrong[5], None if y is None else y[0])


def test_a_huge_chunk_is_quick():
    if not onkel.native.available():
        pytest.skip("the native engine is not built")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 10)).astype(np.float32)
    y = X[:, 0] * X[:, 1] > 0
    begin = perf_counter()
    model = onkel.ForgetronClassifier(budget=50).fit(X, y)
    model.predict(X)
    assert perf_counter() - begin < 5
    assert model.t_ == 100_000


# -- sparse matrices


def test_odd_but_sound_sparse_matrices(engine):
    X, y = stream_for(ESTIMATORS["ForgetronClassifier"], 40, form="sparse")
    for width in (X.shape[1], 2000):
        good = sp.csr_array((X.data, X.indices, X.indptr), shape=(40, width))
        plain = build("ForgetronClassifier", budget=5)
        scores = learn(plain, good, y)
        wide = sp.csr_array((good.data, good.indices.astype(np.int64), good.indptr.astype(np.int64)), shape=good.shape)
        unsorted = sp.csr_array((good.data.copy(), good.indices.copy(), good.indptr), shape=good.shape)
        for a, b in zip(good.indptr[:-1], good.indptr[1:], strict=True):
            unsorted.data[a:b] = unsorted.data[a:b][::-1].copy()
            unsorted.indices[a:b] = unsorted.indices[a:b][::-1].copy()
        unsorted.has_sorted_indices = False
        dup = sp.csr_array((np.repeat(good.data / 2, 2), np.repeat(good.indices, 2), 2 * good.indptr), shape=good.shape)
        coo = good.tocoo()
        zeros = sp.csr_array(
            sp.coo_array(
                (
                    np.append(coo.data, [0.0] * 40),
                    (np.append(coo.row, np.arange(40)), np.append(coo.col, np.full(40, 3))),
                ),
                shape=good.shape,
            )
        )
        for odd in (wide, unsorted, dup, zeros):
            before = (odd.data.copy(), odd.indices.copy(), odd.indptr.copy())
            model = build("ForgetronClassifier", budget=5)
            np.testing.assert_allclose(learn(model, odd, y), scores, atol=1e-12)
            np.testing.assert_allclose(model.decision_function(odd), plain.decision_function(good), atol=1e-12)
            for a, b in zip(before, (odd.data, odd.indices, odd.indptr), strict=True):
                np.testing.assert_array_equal(a, b)
    empty = sp.csr_array((5, 4))
    model.partial_fit(sp.csr_array((5, 2000)), y[:5])
    build("ForgetronClassifier").partial_fit(empty, y[:5])


_EMPTY = """
import itertools, sys, numpy as np, scipy.sparse as sp, onkel
from streams import ESTIMATORS, build, learn, scores_of, stream_for
for name, width in itertools.product(ESTIMATORS, ("sparse", "wide")):
    X, y = stream_for(ESTIMATORS[name], 40, form=width)
    rows = X.tolil()
    rows[::3] = 0
    rows, found = rows.tocsr(), []
    for form in (sp.csr_array(rows), rows.toarray()):
        with onkel.engine(sys.argv[1]):
            model = build(name)
            found.append((learn(model, form, y), scores_of(model, form)))
    for a, b in zip(*found):
        assert np.isfinite(a).all() and np.isfinite(b).all(), name
        if ESTIMATORS[name].__module__.endswith("feature_maps"):  # no ties to break between equal rows
            np.testing.assert_allclose(a, b, atol=1e-10, err_msg=name)
"""


def test_sparse_rows_without_entries(engine):
    """Stored, scored and merged as rows of zeros; a crash would take this process along."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", _EMPTY, engine]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}{done.stderr[-500:]}"


_UNSOUND = """
import sys, numpy as np, scipy.sparse as sp, onkel
rng, y, wrong = np.random.default_rng(0), np.arange(10) % 2, []
values = rng.normal(size=(10, 4))
for width in (4, 2000):
    good = sp.csr_array(np.hstack([values, np.zeros((10, width - 4))]))
    cases = [("indices", 3, v) for v in (-1, width, 2**30)] + [("indptr", 5, v) for v in (-1, 2, 10**6)]
    for where, at, value in cases:
        bad = good.copy()
        getattr(bad, where)[at] = value
        with onkel.engine(sys.argv[1]):
            model = onkel.ForgetronClassifier(budget=5).partial_fit(good, y)
        fresh = onkel.ForgetronClassifier(budget=5)
        for name, call in (("fit", fresh.fit), ("learn", model.learn), ("predict", model.predict)):
            try:
                call(bad) if name == "predict" else call(bad, y)
                wrong.append((width, where, value, name, "accepted"))
            except ValueError:
                pass
            except Exception as error:
                wrong.append((width, where, value, name, repr(error)))
print(*wrong, sep="\\n")
sys.exit(len(wrong) > 0)
"""


def test_unsound_sparse_matrices_are_refused(engine):
    """Indices and starts that point outside: a ValueError, not a crash and not a silent answer."""
    done = subprocess.run([sys.executable, "-c", _UNSOUND, engine], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}{done.stderr[-500:]}"


# -- parameters


ABSURD = [
    -1,
    0,
    -0.5,
    np.nan,
    np.inf,
    -np.inf,
    "nonsense",
    None,
    True,
    10**30,
    10**400,
    1e308,
    5e-324,
    [],
    {},
    object(),
    b"x",
    1j,
]
FIELDS = [
    (name, field)
    for name, cls in ESTIMATORS.items()
    for field in cls().get_params(deep=False)
    if field != "random_state"
]


def with_field(name, field, value):
    """A model with that value; of two fields that exclude each other the other one is not set."""
    return build(name).set_params(**({"eta": None} if field == "eta_unscaled" else {}), **{field: value})


def wants(message, name, field):
    """Does the sentence say what is wrong, what was wanted and what was given?"""
    return re.search(r"(must be|must hold|must) .*(got|: )", message) or re.search(r"needs .*got", message)


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_absurd_parameters(engine, name, field):
    """Refused at the first call with a sentence that names the field, or they work."""
    X, y = stream_for(ESTIMATORS[name], 25)
    unclear = []
    for value in ABSURD:
        model = with_field(name, field, value)
        try:
            learn(model, X, y)
            model.predict(X)
            pickle.loads(pickle.dumps(model))
        except Diverged:
            pass
        except (ValueError, TypeError) as error:
            if not wants(str(error), name, field):
                unclear.append(f"{value!r}: {type(error).__name__}: {str(error)[:150]}")
    assert not unclear, "\n".join(unclear)


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_refusals_name_the_parameter(name, field):
    """`Class.field`, with the field as the user wrote it."""
    X, y = stream_for(ESTIMATORS[name], 5)
    unnamed = []
    for value in (-1, np.nan, "nonsense", [], 1j):
        model = with_field(name, field, value)
        try:
            learn(model, X, y)
        except (ValueError, TypeError) as error:
            if not re.search(rf"\b{field}\b", str(error)):
                unnamed.append(f"{value!r}: {str(error)[:150]}")
    assert not unnamed, "\n".join(unnamed)


@pytest.mark.parametrize("seed", ["nonsense", -1.5, [1], object(), np.nan, True])
def test_absurd_seeds(engine, seed):
    X, y = stream_for(ESTIMATORS["RBPClassifier"], 5)
    model = onkel.RBPClassifier(random_state=seed)
    if seed is True:
        return
    refuses(["random_state|seed"], learn, model, X, y)


def test_unknown_parameters():
    model = onkel.RBPClassifier()
    refuses(["bugdet"], onkel.RBPClassifier, bugdet=3)
    refuses(["bugdet"], model.set_params, bugdet=3)
    refuses(["sigma", "gamma"], model.set_params, kernel__sigma=3)
    refuses(["loss"], model.set_params, loss__margin=3)
    refuses([], onkel.RBPClassifier, 3)
    refuses([r"Gaussian\.gamma must be > 0", r"got -1\.0"], Gaussian, gamma=-1.0)


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (lambda v: Gaussian(v), [0, -1, np.nan, np.inf, None, "wide", True, [], np.ones(2), 1j]),
        (lambda v: Laplacian(v), [0, -1, np.nan, np.inf, None, "wide", True]),
        (lambda v: Polynomial(v), [0, -1, 1.5, np.nan, None, "two", True, 10**9, 10**30]),
        (lambda v: Polynomial(2, v), [-1, np.nan, np.inf, None, "x", True]),
        (lambda v: Sigmoid(1.0, v), [np.nan, np.inf, None, "x", True]),
        (lambda v: Linear() + v, [np.nan, np.inf, None, "x", 0, -1]),
        (lambda v: Linear() * v, [np.nan, np.inf, None, "x", 0, -1]),
    ],
)
def test_absurd_kernels(make, values):
    for value in values:
        with pytest.raises((ValueError, TypeError)):
            make(value)


# -- order of calls


@every_estimator
def test_predicting_before_learning(engine, name):
    X, _ = stream_for(ESTIMATORS[name], 5)
    model = build(name)
    calls = ["predict", "decision_function", "score_samples", "predict_proba"]
    for call in (getattr(model, c) for c in calls if hasattr(model, c)):
        with pytest.raises(NotFittedError):
            call(X)
    for attribute in ("support_vectors_", "dual_coef_", "coef_", "widths_", "n_support_", "t_", "kernel_"):
        with pytest.raises((NotFittedError, AttributeError)):
            getattr(model, attribute)
    for x in (X[0], {"a": 1.0}):
        if isinstance(model, Detector):
            assert model.score_one(x) == 0
        else:
            assert model.predict_one(x) == (None if isinstance(model, Classifier) else 0)
    if not isinstance(model, Detector):
        assert len(model.predict_many(pd.DataFrame(X))) in (0, 5)


@every_estimator
def test_fit_after_a_failed_fit(engine, name):
    X, y = stream_for(ESTIMATORS[name], 20)
    bad = X.copy()
    bad[1, 1] = np.nan
    model, fresh = build(name), build(name)
    for _ in range(2):
        with pytest.raises(ValueError, match="NaN"):
            model.fit(bad, y)
        model.fit(X, y)
    fresh.fit(X, y)
    np.testing.assert_array_equal(model.predict(X), fresh.predict(X))
    model.fit(np.hstack([X, X]), y)  # another width is another model
    assert model.n_features_in_ == 8


def test_concurrent_prediction_while_others_learn(engine):
    X, y = stream_for(ESTIMATORS["ForgetronClassifier"], 200)
    models = [build("ForgetronClassifier") for _ in range(4)]
    single = build("ForgetronClassifier")
    learn(single, X, y)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda m: learn(m, X, y), models))
        answers = list(pool.map(lambda _: single.decision_function(X), range(20)))
    for model in models:
        np.testing.assert_array_equal(model.decision_function(X), answers[0])
    assert all(np.array_equal(a, answers[0]) for a in answers)


# -- parts of one's own


class MyStop(Bounded):
    """Stop, by somebody else."""

    def insert(self, f, round, coef, memory):
        if coef is not None and f.n < self.budget:
            f.append(round, coef)


class MyGaussian(Kernel):
    """exp(-|x - z|^2), by somebody else."""

    def pair(self, x, z):
        return (x - z) ** 2

    def shape(self, total):
        return np.exp(-np.maximum(total, 0))


class MyStoptronClassifier(Classifier):
    """An algorithm of one's own, with a budget of one's own."""

    budget: int = 15

    def parts(self, kernel):
        return Expansion(kernel, MyStop(self.budget)), Mistake(), Perceptron()


def test_own_parts_run_on_the_python_engine():
    X, y = stream_for(ESTIMATORS["StoptronClassifier"], 100)
    twin = onkel.StoptronClassifier(budget=15, kernel=Gaussian(1.0))
    scores = learn(twin, X, y)
    mine = [
        MyStoptronClassifier(kernel=Gaussian(1.0)),
        MyStoptronClassifier(kernel=MyGaussian()),
        onkel.StoptronClassifier(budget=15, kernel=MyGaussian()),
        onkel.StoptronClassifier(budget=15, kernel=1.0 * MyGaussian()),
    ]
    for model in mine:
        np.testing.assert_allclose(learn(model, X, y), scores, atol=1e-10)
        assert model._learner.engine == "python"
        assert model.n_support_ == 15
        copied = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copied.decision_function(X), model.decision_function(X))
    assert twin._learner.engine == ("native" if onkel.native.available() else "python")


def test_the_name_of_a_part_is_taken_once():
    """Files and twins know parts by name: one of one's own that is called like ours is refused."""
    with pytest.raises(TypeError, match=r"Stop in onkel\.budgets: choose another name"):
        type("Stop", (Bounded,), {"insert": lambda self, f, round, coef, memory: None})
    assert onkel.part.Part.known["Stop"] is Stop


def test_native_alone_refuses_own_parts():
    if not onkel.native.available():
        pytest.skip("the native engine is not built")
    X, y = stream_for(ESTIMATORS["StoptronClassifier"], 10)
    with onkel.engine("native"):
        refuses(["MyStop", "C\\+\\+"], learn, MyStoptronClassifier(), X, y)
    refuses(
        ["engine", "gpu"],
        onkel.engine("gpu").__enter__,
    )


def test_learners_can_be_used_directly(engine):
    X, y = stream_for(ESTIMATORS["StoptronClassifier"], 50)
    learner = onkel.native.engine(Learner(Expansion(Gaussian(1.0), Stop(5)), Mistake(), Perceptron(), columns=4))
    last, averaged = learner.learn(X, y.astype(float))
    assert last.shape == averaged.shape == (50, 1) and learner.n == 5


# -- what cancels, what a refused call leaves, what grows


@pytest.mark.parametrize("form", ["dense", "sparse", "wide", "float32", "float32 sparse"])
@pytest.mark.parametrize("size", [1.0, 2024.25, 1e9, 1e15])
def test_large_features_do_not_cancel(engine, form, size):
    """Two rows that share a large value, as a time stamp, are as far apart as their other values."""
    rows = np.array([[size, 1.0, 0, 0, 0, 0, 0, 0], [size, 0, 1.0, 0, 0, 0, 0, 0]])
    rows = rows.astype(np.float32) if "float32" in form else rows
    if form == "wide":
        rows = np.hstack([rows, np.zeros((2, 2000))])
    if form in ("sparse", "wide", "float32 sparse"):
        rows = sp.csr_array(rows)
    model = onkel.KLMSRegressor(kernel=Gaussian(1.0), eta=1.0).fit(rows[:1], [1.0])
    np.testing.assert_allclose(model.predict(rows), [1.0, np.exp(-2.0)], rtol=1e-6)


def test_a_refused_first_call_leaves_the_model_as_new(engine):
    pd = pytest.importorskip("pandas")
    model = onkel.RBPClassifier()
    for refused in (
        lambda: model.partial_fit(pd.DataFrame({"a": [1.0, np.nan]}), [0, 1]),
        lambda: model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), [None, 1]),
        lambda: model.learn_one({"a": 1.0}, (1, 2)),
        lambda: model.learn_one({"a": "x"}, 1),
        lambda: model.learn_many(np.eye(2), [0, 1]),
    ):
        refuses([], refused)
        assert vars(model).keys() == vars(onkel.RBPClassifier()).keys()


def test_a_refused_frame_is_not_learned_in_part(engine):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    model = onkel.RBPClassifier().partial_fit(frame, [0, 1, 0], classes=[0, 1])
    refuses(["label 2"], model.learn_many, frame, [0, 1, 2])
    assert model.t_ == 3 and model.classes_.tolist() == [0, 1]


def test_named_features_beyond_float32(engine):
    pd = pytest.importorskip("pandas")
    model = onkel.KLMSRegressor()
    model.learn_many(pd.DataFrame({"a": np.ones(3, np.float32)}), np.ones(3))
    refuses(["infinity"], model.learn_one, {"a": 1e300}, 1.0)
    refuses(["infinity"], model.partial_fit, [[1e300]], [1.0])
    assert model.t_ == 3 and np.isfinite(model.support_vectors_).all()


def test_probabilities_are_those_of_the_run(engine):
    X, y = stream_for(ESTIMATORS["OGDClassifier"], 20)
    hinge, logistic = onkel.OGDClassifier().fit(X, y), onkel.OGDClassifier(loss="logistic").fit(X, y)
    assert not hasattr(hinge.set_params(loss="logistic"), "predict_proba")
    assert hasattr(logistic.set_params(loss="hinge"), "predict_proba")


def test_no_step_where_the_kernel_is_not_positive(engine):
    model = onkel.KLRSGDClassifier(R=1e6, eta=0.5, kernel=Sigmoid(0.5, -1.0))
    model.partial_fit([[3.0, 0.0]], [1], classes=[0, 1])
    before = model._learner.state()["update.norm2"]
    model.partial_fit([[0.0, 0.0]], [1])
    assert (model.n_support_, model._learner.state()["update.norm2"]) == (1, before)


def test_one_label_of_two_types_is_one_label(engine):
    model = onkel.RBPClassifier().partial_fit([[0.0], [1.0]], [0, 1]).partial_fit([[1.0]], [1.0])
    assert model.classes_.dtype.kind == "i"


def test_the_squared_loss_of_norma_has_no_tube_to_adapt():
    refuses(
        [r"NORMARegressor\.nu must be None"], onkel.NORMARegressor(loss="squared", nu=0.5).fit, np.eye(3), np.ones(3)
    )


# -- messages name what the reader can mend


def test_labels_of_another_kind_are_named_with_their_row():
    X = np.eye(3)
    refuses(["y contains nan in row 1"], onkel.PAClassifier().fit, X, np.array(["a", np.nan, "b"], dtype=object))
    refuses(["y contains None in row 2"], onkel.PAClassifier().fit, X, pd.Series(["a", "b", None], dtype=object))
    for labels in (["a", "b", pd.NA], [1, 2, pd.NA], [pd.NA] * 3, [True, False, pd.NA], [pd.NaT] * 3):
        row = 2 if isinstance(labels[0], (str, int)) else 0
        refuses([f"y contains {labels[2]} in row {row}"], onkel.PAClassifier().fit, X, pd.Series(labels, dtype=object))
    for kind, labels in {"Int64": [1, 2, None], "string": ["a", "b", None], "boolean": [True, False, None]}.items():
        refuses(["y contains (<NA>|NaN.*) in row 2"], onkel.PAClassifier().fit, X, pd.Series(labels, dtype=kind))
    refuses(["of one kind", "3 in row 2"], onkel.PAClassifier().fit, X, np.array(["a", "b", 3], dtype=object))
    model = onkel.PAClassifier()
    model.learn_one({"a": 1.0}, True)
    for label in ("new", 2):
        refuses(["of one kind", f"{label!r} cannot join truth values"], model.learn_one, {"a": 1.0}, label)


def test_a_kernel_that_is_none_is_told_by_the_estimator():
    X, y = np.eye(2), [0, 1]
    refuses(["^PAClassifier: kernel must be", "'gausian'"], onkel.PAClassifier(kernel="gausian").fit, X, y)
    refuses(["^OMKCClassifier: kernel must be"], onkel.OMKCClassifier(kernels=["gausian"]).fit, X, y)


def test_who_has_probabilities_is_named():
    for call in ("predict_proba_one", "predict_proba_many"):
        with pytest.raises(NotImplementedError, match="KLRSGDClassifier or OGDClassifier"):
            getattr(onkel.PAClassifier(), call)({})


def test_a_loss_without_derivative_is_told_what_to_return(monkeypatch):
    monkeypatch.setattr(Part, "known", dict(Part.known))

    class Half(MarginLoss):
        """Forgets its derivative."""

        def of_margin(self, q):
            return max(0.0, -q)

    model = onkel.OGDClassifier(loss=Half())
    refuses(["Half.of_margin must return two numbers, value and derivative, got 0.0"], model.fit, np.eye(2), [0, 1])
