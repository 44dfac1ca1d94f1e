"""Learners on explicit features: streams, directions and estimators to try them with."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from streams import CLASSES, binary, multiclass, regression

import onkel
from onkel.core.run import Run
from onkel.kernels import Cauchy, Gaussian, Laplacian
from onkel.learners.learner import Learner
from onkel.maps import Fastfood, Fourier, Orthogonal, Reparameterized

native = pytest.mark.skipif(not onkel.native.available(), reason="the native engine is not built")
T, SEED, D = 200, 7, 12
BOTH = ["python", "native"]
TASKS = {"binary": binary, "multiclass": multiclass, "regression": regression}
LOSSES = {
    "binary": ["hinge", "squared_hinge", "logistic", "exponential"],
    "multiclass": ["hinge", "squared_hinge", "logistic", "exponential"],
    "regression": ["squared", "absolute", "epsilon_insensitive"],
}
SPECTRA = [Gaussian(1.0), Laplacian(0.5), Cauchy(0.7)]
SCHEDULES = {"constant": "constant", "1/t": "inverse", "1/sqrt(t)": "inverse_sqrt"}


def same(a, b, tolerance=1e-10):
    b = np.reshape(b, np.shape(a))
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1.0, np.abs(b).max(initial=0)))


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)


def columns(number):
    return np.arange(number, dtype=np.uint64)


def run(number, seed=SEED):
    return Run(1, columns(number), np.dtype(np.float64), False, False, seed)


def drawn(map, number, seed=SEED):
    return map.draw(columns(number), seed)


def directions(map, number, seed=SEED):
    """One direction a row: the projections of the unit vectors."""
    return map.project(np.eye(number), drawn(map, number, seed), map.start(run(number, seed))).T


def outputs_of(task):
    return CLASSES if task == "multiclass" else 1


def estimator(algorithm, task, **params):
    cls = getattr(onkel, f"{algorithm}{'Regressor' if task == 'regression' else 'Classifier'}")
    return cls(**{"random_state": SEED} | params)


EVERY_LOSS = [(task, loss) for task in TASKS for loss in LOSSES[task]]


@cache
def stream(task, form):
    """One more row than is learned from."""
    return TASKS[task](T + 1, form=form)


def learner(hypothesis, loss, update, outputs=1):
    return onkel.native.fastest(Learner(hypothesis, loss, update, outputs=outputs, columns=4, seed=SEED))


RANDOM = {
    "fourier": (onkel.FourierTransformer, Fourier(Gaussian(0.5), 30)),
    "reparameterized": (onkel.ReparameterizedTransformer, Reparameterized(Gaussian(0.5), 30)),
    "orthogonal": (onkel.OrthogonalTransformer, Orthogonal(Gaussian(0.5), 30)),
    "fastfood": (onkel.FastfoodTransformer, Fastfood(Gaussian(0.5), 30)),
}


def transformer(name, **params):
    return RANDOM[name][0](**({"kernel": Gaussian(0.5), "components": 30, "random_state": SEED} | params))
