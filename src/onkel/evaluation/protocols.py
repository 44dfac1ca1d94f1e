"""One interface to the learners of onkel, scikit-learn and river.

`learn` predicts and then learns each example in turn, `ask` only predicts, and `teach` only learns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse
import sklearn.base
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from onkel.core.scores import predicted, probabilities
from onkel.datasets.stream import Task

Array = NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Answers:
    """The predictions of a learner for some examples.

    Parameters
    ----------
    predicted : labels, or numbers.
    scores : (n,) for two classes (the larger, the more likely the second), (n, m) for more; None if it gives none. For
        onkel, 0 or more predicts the second class. For river, and for scikit-learn without `decision_function`, they
        are probabilities.
    probabilities : (n, m); None if it gives none.
    """

    predicted: Array
    scores: Array | None = None
    probabilities: Array | None = None

    @staticmethod
    def concatenated(parts: Sequence[Answers]) -> Answers:
        """Several answers as one."""
        scores, probabilities = [part.scores for part in parts], [part.probabilities for part in parts]
        return Answers(
            np.concatenate([part.predicted for part in parts]), _concatenated(scores), _concatenated(probabilities)
        )


def _concatenated(parts: Sequence[Array | None]) -> Array | None:
    given = [part for part in parts if part is not None]
    return np.concatenate(given) if len(given) == len(parts) else None


class Protocol:
    """A learner, with the same methods whichever library it is from.

    Parameters
    ----------
    model : it continues from what it has learned, and is changed.
    classes : all labels, sorted; None: it predicts numbers.
    detailed : whether scores and probabilities are wanted, where a further call is needed to get them.
    """

    def __init__(self, model: Any, classes: Array | None, detailed: bool = False) -> None:
        self.model, self.classes, self.detailed = model, classes, detailed

    def ask(self, X: Any) -> Answers:
        """Predictions for the rows; before anything was learned, those of score 0."""
        raise NotImplementedError

    def teach(self, X: Any, y: Array) -> None:
        """Learn from the rows in order."""
        raise NotImplementedError

    def learn(self, X: Any, y: Array) -> Answers:
        """Predict, then learn, each row in turn."""
        return self.delayed(X, y, range(len(y)), 0)

    def delayed(self, X: Any, y: Array, rows: range, delay: int) -> Answers:
        """Predict each of the rows of X in turn, and after each learn from the one `delay` rows before."""
        said = []
        for i in rows:
            said.append(self.ask(X[i : i + 1]))
            if i >= delay:
                self.teach(X[i - delay : i - delay + 1], y[i - delay : i - delay + 1])
        return Answers.concatenated(said)

    def untaught(self, n: int) -> Answers:
        """The predictions of a learner that has learned nothing: those of score 0."""
        if self.classes is None:
            return Answers(np.zeros(n))
        m = len(self.classes)
        scores = np.zeros(n) if m == 2 else np.zeros((n, m))
        return Answers(predicted(self.classes, scores), scores, np.full((n, m), 1 / m))


class ByScores(Protocol):
    """onkel: `learn` returns the scores made before each update."""

    def __init__(self, model: Any, classes: Array | None, detailed: bool = False) -> None:
        super().__init__(model, classes, detailed)
        self.declared = {} if classes is None else {"classes": classes}

    def ask(self, X: Any) -> Answers:
        try:
            if self.classes is None:
                return self.answers(self.model.predict(X))
            return self.answers(self.model.decision_function(X))
        except NotFittedError:
            return self.untaught(X.shape[0])

    def teach(self, X: Any, y: Array) -> None:
        self.model.learn(X, y, **self.declared)

    def learn(self, X: Any, y: Array) -> Answers:
        return self.answers(self.model.learn(X, y, **self.declared))

    def answers(self, scores: Any) -> Answers:
        """The predictions that follow from scores."""
        scores = np.asarray(scores, dtype=np.float64)
        if self.classes is None:
            return Answers(scores)
        probable = hasattr(self.model, "predict_proba")
        return Answers(predicted(self.model.classes_, scores), scores, probabilities(scores) if probable else None)


class RowByRow(Protocol):
    """scikit-learn: one example per call; a batch would be predicted before any of it is learned."""

    def ask(self, X: Any) -> Answers:
        try:
            predicted = np.asarray(self.model.predict(X))
        except NotFittedError:
            return self.untaught(X.shape[0])
        scores = probabilities = None
        if self.detailed and hasattr(self.model, "predict_proba"):
            probabilities = np.asarray(self.model.predict_proba(X))
            scores = probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities
        if self.detailed and hasattr(self.model, "decision_function"):
            scores = np.asarray(self.model.decision_function(X))
        return Answers(predicted, scores, probabilities)

    def teach(self, X: Any, y: Array) -> None:
        self.model.partial_fit(X, y, **({} if self.classes is None else {"classes": self.classes}))


class DictByDict(Protocol):
    """river: one dict per example, keyed by column; absent entries of a sparse row stay absent."""

    def ask(self, X: Any) -> Answers:
        return Answers.concatenated([self._one(row) for row in _dicts(X)])

    def teach(self, X: Any, y: Array) -> None:
        for row, target in zip(_dicts(X), y.tolist(), strict=True):
            self.model.learn_one(row, target)

    def _one(self, row: dict[int, float]) -> Answers:
        answer = self.model.predict_one(row)
        if answer is None:
            return self.untaught(1)
        if self.classes is None or not self.detailed or not hasattr(self.model, "predict_proba_one"):
            return Answers(np.array([answer]))
        said = self.model.predict_proba_one(row)
        probabilities = np.array([[said.get(label, 0.0) for label in self.classes.tolist()]])
        return Answers(
            np.array([answer]), probabilities[:, 1] if len(self.classes) == 2 else probabilities, probabilities
        )


def protocol(model: Any, classes: Array | None, detailed: bool = False) -> Protocol:
    """The protocol of this learner; the arguments are those of `Protocol`."""
    if hasattr(model, "learn"):
        return ByScores(model, classes, detailed)
    if hasattr(model, "partial_fit") and hasattr(model, "predict"):
        return RowByRow(model, classes, detailed)
    if hasattr(model, "learn_one") and hasattr(model, "predict_one"):
        return DictByDict(model, classes, detailed)
    raise TypeError(f"{type(model).__name__} has none of learn, partial_fit with predict, learn_one with predict_one")


def task_of(model: Any) -> Task:
    """The task of the model: "classification" or "regression"."""
    if hasattr(model, "__sklearn_tags__"):
        if sklearn.base.is_classifier(model):
            return "classification"
        if sklearn.base.is_regressor(model):
            return "regression"
    raise ValueError(f"{type(model).__name__} does not say its task; pass task='classification' or 'regression'")


def _dicts(X: Any) -> Iterator[dict[int, float]]:
    if scipy.sparse.issparse(X):
        for i in range(X.shape[0]):
            here = slice(X.indptr[i], X.indptr[i + 1])
            yield dict(zip(X.indices[here].tolist(), X.data[here].tolist(), strict=True))
    else:
        for values in X.tolist():
            yield dict(enumerate(values))
