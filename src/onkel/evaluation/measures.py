"""Measures of predictions beyond mistakes and squared errors: `MEASURES` has them by name.

Each is updated with the predictions of a block and returns its value over all predictions so far. It is NaN if the
measure is not for this task, or if the learner does not give the scores or probabilities it needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onkel.core.scores import margins
from onkel.evaluation.protocols import Answers

Array = NDArray[Any]


class Measure:
    """A number that is computed from all predictions so far."""

    def add(self, answers: Answers, y: Array, classes: Array | None) -> float:
        """Add predictions and their true targets; returns the value over all predictions so far."""
        raise NotImplementedError


class PerExample(Measure):
    """A measure that is the mean of one value per example."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, answers: Answers, y: Array, classes: Array | None) -> float:
        values = self.values(answers, y, classes)
        self.total += float("nan") if values is None else float(values.sum())
        self.count += len(y)
        return self.total / self.count

    def values(self, answers: Answers, y: Array, classes: Array | None) -> Array | None:
        """One value per example; None if there is none."""
        raise NotImplementedError


class AbsoluteError(PerExample):
    """The mean distance from the target (regression)."""

    def values(self, answers: Answers, y: Array, classes: Array | None) -> Array | None:
        return None if classes is not None else np.abs(answers.predicted - y)


class LogLoss(PerExample):
    """The mean of -log p, p being the probability that was given to the true class, at least 1e-15."""

    def values(self, answers: Answers, y: Array, classes: Array | None) -> Array | None:
        if answers.probabilities is None or classes is None:
            return None
        given = answers.probabilities[np.arange(len(y)), np.searchsorted(classes, y)]
        return np.asarray(-np.log(np.clip(given, 1e-15, 1.0)))


class HingeLoss(PerExample):
    """The mean of max(0, 1 - margin); with several classes the margin is the true score minus the largest other one.

    The scores of river learners, and of scikit-learn learners without `decision_function`, are probabilities. Their
    margin never exceeds 1, so their hinge loss cannot be compared with that of other learners.
    """

    def values(self, answers: Answers, y: Array, classes: Array | None) -> Array | None:
        if answers.scores is None or classes is None:
            return None
        scores, true = answers.scores, np.searchsorted(classes, y)
        margin = margins(scores[:, None], 2.0 * true - 1.0) if scores.ndim == 1 else margins(scores, true)
        return np.asarray(np.maximum(0.0, 1.0 - margin))


class AUC(Measure):
    """The share of pairs of a positive and a negative example that the scores put in the right order.

    Ties count half. All scores so far are kept sorted, so that each new score is compared by binary search.
    """

    def __init__(self) -> None:
        self.above, self.below = np.zeros(0), np.zeros(0)  # scores of the second and of the first class, sorted
        self.ordered = 0.0

    def add(self, answers: Answers, y: Array, classes: Array | None) -> float:
        if answers.scores is None or answers.scores.ndim != 1 or classes is None:
            return float("nan")
        second = y == classes[1]
        above, below = np.sort(answers.scores[second]), np.sort(answers.scores[~second])
        self.ordered += _ordered(above, self.below) + _ordered(self.above, below) + _ordered(above, below)
        self.above = np.insert(self.above, np.searchsorted(self.above, above), above)
        self.below = np.insert(self.below, np.searchsorted(self.below, below), below)
        pairs = len(self.above) * len(self.below)
        return self.ordered / pairs if pairs else float("nan")


def _ordered(above: Array, below: Array) -> float:
    """The number of pairs with above > below, ties counting half; both arrays are sorted."""
    few, many = (above, below) if len(above) <= len(below) else (below, above)
    least, most = np.searchsorted(many, few), np.searchsorted(many, few, side="right")
    less = float((least + most).sum()) / 2
    return less if few is above else len(above) * len(below) - less


MEASURES: dict[str, type[Measure]] = {
    "auc": AUC,
    "log_loss": LogLoss,
    "hinge_loss": HingeLoss,
    "absolute_error": AbsoluteError,
}
