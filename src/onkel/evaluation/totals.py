"""Mistakes or squared errors of predictions, their totals along a stream, and the mistake rate or RMSE of a total."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onkel.datasets.stream import Task

Array = NDArray[Any]


def errors(predicted: Array, y: Array, task: Task) -> Array:
    """Which predictions are mistakes; or the squared errors."""
    if task == "classification":
        return np.asarray(predicted != y)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.square(predicted - y))


def error_of(total: Any, count: Any, task: Task) -> Any:
    """Mistakes per example, or the root mean squared error; 0 if `count` is 0. Both arguments may be arrays."""
    mean = total / np.maximum(count, 1)
    return mean if task == "classification" else np.sqrt(mean)


def trivial(y: ArrayLike, task: Task) -> float:
    """The error of a baseline without features: it predicts the most frequent class so far (the first prediction is
    wrong), or the mean of the targets so far (at first 0). A learner that does no better has learned nothing.

    Examples
    --------
    >>> from onkel.evaluation.totals import trivial
    >>> trivial(["a", "a", "b", "b", "b", "b"], "classification")
    0.6666666666666666
    """
    y = np.asarray(y)
    if task == "regression":
        means = np.cumsum(y[:-1]) / np.arange(1, len(y))
        return float(np.sqrt(np.mean(np.square(y - [0.0, *means]))))
    counts: Counter[Any] = Counter()
    said, mistakes = None, 0
    for label in y.tolist():
        mistakes += label != said
        counts[label] += 1
        if counts[label] > counts[said]:
            said = label
    return mistakes / len(y)


def accumulated(total: float, errors: Array) -> float:
    """The total after further errors, added one by one in the order of the stream, so that it always rounds alike."""
    if errors.dtype == bool:
        return total + np.count_nonzero(errors)
    for error in errors.tolist():
        total += error
    return total if math.isfinite(total) else math.inf
