"""Errors carry facts; both engines raise them with the same facts, and so with the same sentence."""

import copy
import pickle

import numpy as np
import pytest

import onkel
from onkel.core.errors import Diverged, NotFinite, TooLarge, WrongWidth
from onkel.kernels import Linear

X = np.eye(3)
ERRORS = WrongWidth(2, 3), NotFinite(np.inf, 1), TooLarge("k(x, x) =", np.inf, "for it"), Diverged("f is", [1, 1e200])


def regressor(**settings):
    model = onkel.KernelPerceptronRegressor(kernel=Linear(), **settings)
    return model.partial_fit(X, np.arange(3.0))


def test_a_single_row(engine):
    model = regressor()
    with pytest.raises(WrongWidth, match=r"^X has 2 features, but the model expects 3$") as caught:
        model.learn_one(np.ones(2), 1.0)
    assert (caught.value.got, caught.value.wanted) == (2, 3)
    with pytest.raises(NotFinite, match=r"^x contains infinity in column 1 \(-inf\): .* finite numbers") as caught:
        model.predict_one(np.array([1.0, -np.inf, 1.0]))
    assert (caught.value.value, caught.value.column, caught.value.row) == (-np.inf, 1, None)
    with pytest.raises(NotFinite, match=r"^X contains infinity in row 2, column 0 \(inf\): ") as caught:
        model.predict(np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [np.inf, 1.0, 1.0]]))
    assert (caught.value.row, caught.value.column) == (2, 0)


def test_numbers_that_overflow(engine):
    model = regressor(eta=1e149)
    with pytest.raises(TooLarge, match=r"^row 1: k\(x, x\) = inf is too large for the kernel: use ") as caught:
        model.partial_fit(np.array([[1.0, 1.0, 1.0], [1e200, 1.0, 1.0]]), np.zeros(2))
    assert (caught.value.value, caught.value.use, caught.value.row) == (np.inf, "for the kernel", 1)
    with pytest.raises(Diverged, match=r"^row 0: the score is 1e\+157: the model diverges; ") as caught:
        model.partial_fit(np.array([[0.0, 0.0, 1e8]]), np.zeros(1))
    assert caught.value.value == pytest.approx(1e157)
    assert caught.value.row == 0


def test_features_that_overflow(engine):
    model = onkel.FOGDRegressor(components=4).partial_fit(X, np.arange(3.0))
    with pytest.raises(TooLarge, match=r"^row 2: \|x_1\| \+ .* = 2e\+303 is too large for random features: ") as caught:
        model.partial_fit(np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 1.0], [1e303, 0.0, -1e303]]), np.zeros(3))
    assert caught.value.value == pytest.approx(2e303)


def test_errors_are_copied_with_their_facts():
    for error in ERRORS:
        for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert (type(twin), str(twin), vars(twin)) == (type(error), str(error), vars(error))
    told = Diverged("f is", [1.0, -1e200, np.inf]).at(7)
    assert (told.row, told.value) == (7, -1e200)
