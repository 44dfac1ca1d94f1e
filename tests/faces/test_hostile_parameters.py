"""Absurd parameters are refused with a sentence that names them."""

import pickle
import re

import numpy as np
import pytest
from refusals import refuses
from streams import ESTIMATORS, build, learn, stream_for

import onkel
from onkel.core.errors import Diverged
from onkel.kernels import Gaussian, Laplacian, Linear, Polynomial, Sigmoid

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
    X, y = stream_for(ESTIMATORS[name], 10)
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


def test_the_squared_loss_of_norma_has_no_tube_to_adapt():
    refuses(
        [r"NORMARegressor\.nu must be None"], onkel.NORMARegressor(loss="squared", nu=0.5).fit, np.eye(3), np.ones(3)
    )


def test_a_kernel_that_is_none_is_told_by_the_estimator():
    X, y = np.eye(2), [0, 1]
    refuses(["^PAClassifier: kernel must be", "'gausian'"], onkel.PAClassifier(kernel="gausian").fit, X, y)
    refuses(["^OMKCClassifier: kernel must be"], onkel.OMKCClassifier(kernels=["gausian"]).fit, X, y)
