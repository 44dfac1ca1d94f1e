"""Widths that are learned descend the loss."""

import math

import numpy as np
import pytest
from boxes.feature_maps import (
    tangent,
)
from feature_learners import SEED, SPECTRA, TASKS, D, dense, estimator, same
from streams import learn, regression

import onkel
from onkel.kernels import Cauchy, Gaussian, Laplacian
from onkel.maps import Reparameterized

# Reparameterized


def score_with(X, coef, log_widths, map):
    """f(x) with those weights and widths, from the public pieces."""
    transformer = onkel.ReparameterizedTransformer(
        kernel=map.kernel, components=map.components, random_state=SEED, widths=np.exp(log_widths)
    )
    return transformer.fit_transform(X) @ coef.T


@pytest.mark.parametrize("form", ["dense", "sparse", "wide"])
@pytest.mark.parametrize(
    ("task", "loss"), [("binary", "logistic"), ("multiclass", "logistic"), ("regression", "squared")]
)
@pytest.mark.parametrize("kernel", SPECTRA, ids=str)
def test_widths_descend_the_loss(engine, kernel, task, loss, form):
    """One round moves the log-widths by -eta_kernel times the derivative, found here by differences."""
    X, y = TASKS[task](60, form=form)
    map, eta = Reparameterized(kernel, D), 1e-4
    model = estimator("RRF", task, components=D, kernel=kernel, eta=0.5, eta_kernel=eta, loss=loss)
    learn(model, X[:50], y[:50])
    for t in range(50, 53):
        coef, g, x = model.coef_, np.log(model.widths_), X[[t]]
        moved = np.flatnonzero(dense(x)[0])[:6]
        assert len(moved) > 1

        def loss_at(g):
            return tangent(loss, score_with(x, coef, g, map)[0], y[t])[0]  # noqa: B023

        learn(model, x, y[[t]])
        found = (g - np.log(model.widths_)) / eta
        for j in moved:
            h = 1e-5 * np.eye(len(g))[j]
            assert found[j] == pytest.approx((loss_at(g + h) - loss_at(g - h)) / 2e-5, abs=2e-7)
        assert np.abs(found[moved]).max() > 1e-5
        resting = dense(x)[0] == 0
        assert not found[resting].any()


def test_widths_begin_as_the_kernel_and_stay_without_weights(engine):
    for kernel, start in ((Gaussian(0.7), math.sqrt(1.4)), (Laplacian(0.7), 0.7), (Cauchy(0.7), math.sqrt(0.7))):
        X, y = regression(2)
        model = estimator("RRF", "regression", components=D, kernel=kernel, eta_kernel=10.0).fit(X[:1], y[:1])
        same(model.widths_, np.full(4, start), 1e-15)  # w was 0
        assert np.abs(model.partial_fit(X[1:], y[1:]).widths_ - start).max() > 1e-3
    assert not hasattr(estimator("FOGD", "regression").fit(X, y), "widths_")
