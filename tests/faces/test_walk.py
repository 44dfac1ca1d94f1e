"""How many functions a call runs through."""

import sys
from pathlib import Path

import numpy as np
import pytest

import onkel

HOME = str(Path(onkel.__file__).parent)
X = np.random.default_rng(0).normal(size=(10, 3))


@pytest.mark.skipif(not onkel.native.available(), reason="the native engine is not built")
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (onkel.RBPClassifier(), np.arange(10) % 2),
        (onkel.RBPClassifier(), np.array(["a", "b"] * 5)),
        (onkel.RBPRegressor(), X[:, 0]),
    ],
    ids=["integers", "texts", "numbers"],
)
def test_a_second_partial_fit_takes_few_calls(model, y):
    with onkel.use_engine("auto"):
        model.partial_fit(X, y)
    calls = []

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            calls.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        model.partial_fit(X, y)
    finally:
        sys.setprofile(None)
    assert len(calls) <= 14, calls
