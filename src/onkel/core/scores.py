"""How scores become classes, probabilities and margins.

Scores have the shape (..., outputs): one output for two classes, else one for each class. A single score of 0 or more
predicts the second class; if several scores are the largest, the first of them wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray[Any, np.dtype[Any]]


def decided(scores: ArrayLike) -> Array:
    """The index of the class that each row of scores predicts; in an array (n,) each number is a row."""
    values = np.asarray(scores)
    if values.ndim == 1:
        return np.asarray(values >= 0, dtype=np.intp)
    if values.shape[-1] == 1:
        return np.asarray(values[..., 0] >= 0, dtype=np.intp)
    return np.asarray(values.argmax(axis=-1))


def predicted(classes: Array, scores: ArrayLike) -> Array:
    """The one of `classes` that each row of scores predicts; a single class is always predicted."""
    which = decided(scores)
    return np.asarray(classes[which] if len(classes) > 1 else classes.repeat(len(which)))


def predicted_one(classes: Sequence[Any], scores: list[float]) -> Any:
    """`predicted` for the scores of one example; for so few numbers, NumPy takes longer."""
    if len(scores) == 1:
        return classes[-1] if scores[0] >= 0 else classes[0]
    return classes[scores.index(max(scores))]


def rival(scores: Array, own: Any) -> Any:
    """The best class other than the example's own, the first of several: an index, or one for each row.

    `own` is an index of `scores`: the class, or for several rows the pair (rows, classes).
    """
    others = scores.copy()
    others[own] = -np.inf
    return others.argmax(axis=-1)


def margins(scores: Array, targets: Array) -> Array:
    """The margins of rows of scores (n, outputs).

    y s for one output and targets y of -1 or +1; with several, the score of the class y minus that of its best rival.
    """
    if scores.shape[1] == 1:
        return np.asarray(targets * scores[:, 0])
    rows = np.arange(len(scores))
    own = rows, targets.astype(int)
    return np.asarray(scores[own] - scores[rows, rival(scores, own)])


def probabilities(scores: ArrayLike) -> Array:
    """Logistic probabilities (n, classes): 1 / (1 + exp(-f)) for a single score, the softmax for several."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 1 or values.shape[1] == 1:
        positive = np.exp(-np.logaddexp(0, -values.ravel()))
        return np.column_stack([1 - positive, positive])
    return softmax(values)


def softmax(values: Array) -> Array:
    """exp(values) / sum exp(values) along the last axis."""
    e = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))
