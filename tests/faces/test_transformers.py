"""The maps alone, as scikit-learn transformers."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from boxes.feature_maps import fourier as features_of
from feature_learners import RANDOM, TASKS, dense, directions, estimator, same, transformer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from streams import FORMS, inputs, learn, scores_of

import onkel
from onkel.kernels import Gaussian

# Transformers


every_transformer = pytest.mark.parametrize("name", RANDOM)


@every_transformer
def test_transformers_give_the_features_of_the_map(name):
    map = RANDOM[name][1]
    for form in FORMS:
        X = inputs(40, form=form)
        number = X.shape[1]
        Z = transformer(name).fit(X[:3]).transform(X)
        assert Z.dtype == X.dtype and Z.shape == (40, 60)
        same(Z, features_of(dense(X), directions(map, number)), 1e-6 if form == "float32" else 1e-12)
        same(transformer(name).fit_transform(dense(X)), Z, 1e-6 if form == "float32" else 1e-12)
    assert np.abs(transformer(name, random_state=1).fit_transform(X) - Z).max() > 0.1
    assert list(transformer(name).fit(X).get_feature_names_out()[:2]) == [f"{name}transformer{i}" for i in range(2)]


@every_transformer
def test_names_of_columns(name):
    X = inputs(20)
    frame = pd.DataFrame(X, columns=list("abcd"))
    Z = transformer(name).fit_transform(frame)
    turned = transformer(name).fit_transform(frame[list("cadb")])
    together = name in ("orthogonal", "fastfood")  # these know places only
    assert np.allclose(Z, turned, atol=1e-12) != together
    assert np.allclose(Z, transformer(name).fit_transform(X), atol=1e-12) == together


def test_a_model_is_its_features_and_weights(engine):
    """FOGD is FourierTransformer and coef_, RRF is ReparameterizedTransformer at widths_ and coef_."""
    for task in TASKS:
        X, y = TASKS[task](100)
        for average in (False, True):
            model = estimator("FOGD", task, components=30, kernel=Gaussian(0.5), average=average)
            learn(model, X, y)
            same(scores_of(model, X), transformer("fourier").fit_transform(X) @ model.coef_.T)
        model = estimator("RRF", task, components=30, kernel=Gaussian(0.5))
        learn(model, X, y)
        Z = transformer("reparameterized", widths=model.widths_).fit_transform(X)
        same(scores_of(model, X), Z @ model.coef_.T)
    with pytest.raises(AttributeError, match="no explicit features: see dual_coef_"):
        _ = onkel.OGDRegressor().fit(X, y).coef_
    with pytest.raises(AttributeError, match="no terms: see coef_"):
        _ = estimator("FOGD", "regression").fit(X, y).dual_coef_


@every_transformer
def test_values_that_are_no_numbers_are_named(name):
    with pytest.raises(ValueError, match=r"row 1, column 0, too large for a float: scale"):
        transformer(name).fit([[1.0, 2.0], [10**400, 3.0]])
    with pytest.raises(ValueError, match=r"column 'b' of X holds 'x' in row 1"):
        transformer(name).fit(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, "x"]}))


def test_transformers_in_pipelines():
    X = inputs(600)
    y = np.where((X[:, :2] ** 2).sum(axis=1) > 0.7, "out", "in")
    linear = SGDClassifier(random_state=0).fit(X[:400], y[:400]).score(X[400:], y[400:])
    for step in [*(transformer(name) for name in RANDOM), onkel.NystromTransformer(kernel=Gaussian(0.5))]:
        pipeline = make_pipeline(step, SGDClassifier(random_state=0)).fit(X[:400], y[:400])
        assert pipeline.score(X[400:], y[400:]) > max(0.8, linear + 0.1)
        again = pickle.loads(pickle.dumps(pipeline))
        np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))
    step.set_params(kernel__gamma=2.0, components=7)
    assert (step.kernel, step.components) == (Gaussian(2.0), 7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: transformer("fourier", kernel="linear"), "Linear.* has no random features: use Gaussian, Laplacian"),
        (lambda: transformer("fourier", kernel="rbf"), "kernel must be an onkel.kernels object or one of"),
        (lambda: transformer("fourier", components=0), "components must be an integer >= 1, got 0"),
        (lambda: transformer("fourier", components=2.5), "components must be an integer >= 1, got 2.5"),
        (lambda: transformer("orthogonal", kernel="cauchy"), "kernel must be Gaussian"),
        (lambda: transformer("orthogonal", structured=1), "structured must be True or False, got 1"),
        (lambda: transformer("fastfood", kernel="laplacian"), "kernel must be Gaussian"),
        (lambda: transformer("reparameterized", widths=[1.0, 2.0]), "widths must be 4 finite numbers > 0, got"),
        (lambda: transformer("reparameterized", widths=[1.0, 2.0, 0.0, 1.0]), "widths must be 4 finite numbers > 0"),
        (lambda: transformer("reparameterized", widths=[1.0, 2.0, np.inf, 1.0]), "widths must be 4 finite numbers > 0"),
        (lambda: transformer("reparameterized", widths="wide"), "widths|could not convert"),
    ],
)
def test_what_transformers_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make().fit(inputs(5))


@every_transformer
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_too_large_for_features(name, dtype):
    fitted = transformer(name).fit(inputs(5).astype(dtype))
    X = np.full((2, 4), np.finfo(dtype).max / 8, dtype=dtype)
    for rows in (X, sp.csr_array(X), 4 * X):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match="too large for random features"):
                fitted.transform(rows)
    with pytest.raises(ValueError, match="NaN"):
        fitted.transform(np.full((2, 4), np.nan, dtype=dtype))
    with pytest.raises(ValueError, match="features"):
        fitted.transform(np.ones((2, 5), dtype=dtype))
