"""Numbers of all kinds and sizes: what is no number is refused, and what is huge or tiny does no harm."""

import re
from time import perf_counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from refusals import every_kind, refuses, step, trained
from streams import ESTIMATORS, build, learn, on_features, stream_for

import onkel
from onkel.core.errors import Diverged
from onkel.kernels import Cauchy, Gaussian, Laplacian, Linear, Polynomial, Sigmoid

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


def test_named_features_beyond_float32(engine):
    pd = pytest.importorskip("pandas")
    model = onkel.KLMSRegressor()
    model.learn_many(pd.DataFrame({"a": np.ones(3, np.float32)}), np.ones(3))
    refuses(["infinity"], model.learn_one, {"a": 1e300}, 1.0)
    refuses(["infinity"], model.partial_fit, [[1e300]], [1.0])
    assert model.t_ == 3 and np.isfinite(model.support_vectors_).all()


def test_no_step_where_the_kernel_is_not_positive(engine):
    model = onkel.KLRSGDClassifier(R=1e6, eta=0.5, kernel=Sigmoid(0.5, -1.0))
    model.partial_fit([[3.0, 0.0]], [1], classes=[0, 1])
    before = model._learned.engine.state()["update.norm2"]
    model.partial_fit([[0.0, 0.0]], [1])
    assert (model.n_support_, model._learned.engine.state()["update.norm2"]) == (1, before)
