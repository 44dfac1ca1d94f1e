"""Small real streams that come with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onkel.datasets.stream import Stream, standardise


def load(name: str) -> Stream:
    """The stream of that name, one of `NAMES`."""
    import sklearn.datasets  # slow to import

    return _MAKERS[name](sklearn.datasets)


def _digits(source: Any) -> Stream:
    X, y = source.load_digits(return_X_y=True)
    return Stream("digits", X / 16.0, y, "classification", "handwritten digits, 8 x 8 pixels in [0, 1], 10 classes")


def _breast_cancer(source: Any) -> Stream:
    X, y = source.load_breast_cancer(return_X_y=True)
    label = np.where(y == 0, "malignant", "benign")
    about = "30 standardised measurements of cell nuclei, benign or malignant"
    return Stream("breast_cancer", standardise(X), label, "classification", about)


def _iris(source: Any) -> Stream:
    data = source.load_iris()
    about = "4 standardised measurements of flowers of 3 kinds"
    return Stream("iris", standardise(data.data), data.target_names[data.target], "classification", about)


def _wine(source: Any) -> Stream:
    X, y = source.load_wine(return_X_y=True)
    return Stream("wine", standardise(X), y, "classification", "13 standardised measurements of wine from 3 growers")


def _diabetes(source: Any) -> Stream:
    X, y = source.load_diabetes(return_X_y=True, scaled=False)
    about = "progress of the disease within a year from 10 measurements; all standardised"
    return Stream("diabetes", standardise(X), standardise(y), "regression", about)


_MAKERS: dict[str, Callable[[Any], Stream]] = {
    "breast_cancer": _breast_cancer,
    "digits": _digits,
    "iris": _iris,
    "wine": _wine,
    "diabetes": _diabetes,
}
NAMES: tuple[str, ...] = tuple(_MAKERS)
