"""How scores become class indices and probabilities.

Scores have the shape (..., outputs): one output for two classes, else one for each class. A single score of 0 or more
predicts the second class; if several scores are the largest, the first of them wins. `Classifier.predict_one` repeats
this rule for speed: change both together.
"""

from __future__ import annotations

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
