"""The form of the input does not matter: dense, sparse, float32, frames."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from models import (
    ROUNDS,
    arrays_of,
    assert_same,
    cuts,
    declared,
    every_case,
    every_estimator,
    has_terms,
    make,
    part,
    snapshot,
    step,
)
from streams import EVERY as ESTIMATORS
from streams import (
    hypothesis_of,
    learn,
    on_features,
    stream_for,
)

import onkel
from onkel.faces.classifier import Classifier
from onkel.kernels import Gaussian

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
        assert (
            all(row.tobytes() in stored for row in model.support_vectors_)
            or "makes points" in hypothesis_of(name).offers
        )
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
