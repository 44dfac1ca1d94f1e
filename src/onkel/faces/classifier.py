"""Classifier: the base class of estimators that predict one of two or more classes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from onkel.core import optional
from onkel.core.outputs import cuts
from onkel.core.scores import predicted, predicted_one, probabilities
from onkel.faces import border, labels
from onkel.faces.estimator import Array, Estimator
from onkel.faces.labels import Labels
from onkel.faces.learned import Learned

_PROBABILITIES = 'use KLRSGDClassifier or OGDClassifier(loss="logistic")'


class Classifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """Estimators that predict a class."""

    task: ClassVar[str] = "classification"
    river_kind: ClassVar[str] = "MiniBatchClassifier"
    two_classes: ClassVar[bool] = False  # if True, a third class raises ValueError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._multiclass
        return tags

    @property
    def _multiclass(self) -> bool:  # its name in river
        return not self.two_classes

    # -- learning

    def learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Array:
        """Learn from the rows in order and return the scores made before each update.

        Returns shape (n,) for two classes, where a score >= 0 means `classes_[1]`; (n, m) for m >= 3 classes. `classes`
        declares all labels to come. Without it the model begins with the labels of the first call, and a class that
        appears in a later call is added with score 0 (the second of all leaves the score as it is, up to sign). While
        one class is known, scores below 0 speak for it.
        """
        return self._learn(*self._ready(X, y, classes, sample_weight))

    def _targets(self, X: Any, y: Any, classes: Any) -> tuple[Array, Labels]:
        y = labels.as_labels(y, X)
        known = None if self._learned is None else self._learned.labels
        if known is not None and classes is None:
            target = known.known(y)
            if target is not None:
                return target, known
        known = self._joined(y, classes)
        return known.target(y), known

    @property
    def _labels(self) -> Labels | None:
        return None if self._learned is None else self._learned.labels

    def _joined(self, y: Array, classes: Any = None) -> Labels:
        """The known classes, `classes` and those of y; ValueError if they are of two kinds, undeclared or too many."""
        known = self._labels.joined(y, classes) if self._labels else Labels.first(y, classes)
        if self.two_classes and len(known) > 2:
            raise ValueError(
                f"Only binary classification is supported. {type(self).__name__} is defined for two classes, "
                f"got {known.classes.tolist()}"
            )
        return known

    # -- predicting

    @property
    def classes_(self) -> Array:
        """The classes known, sorted."""
        return np.asarray(self._seen("classes_", None if self._labels is None else self._labels.classes))

    def decision_function(self, X: Any, output: str | None = None) -> Array:
        """Scores of the rows, of shape (n,) or (n, classes).

        They are those of the "last" or the "average" model (`output`; None: the average if there is one).
        """
        scores = self._answers(X, output)[1]
        return scores if scores.shape[1] > 1 else scores[:, 0]

    def predict(self, X: Any) -> Array:
        """The class of each row; with two classes, a score of 0 predicts `classes_[1]`."""
        return predicted(*self._answers(X))

    def _answers(self, X: Any, output: str | None = None) -> tuple[Array, Array]:
        """The classes and their scores; asked again if a class joins in another thread in the meantime."""
        while True:
            labels, scores = self._labels, self._scores(X, output)
            if labels is self._labels and labels is not None and labels.outputs == scores.shape[1]:
                return labels.classes, scores

    def _has_probabilities(self) -> bool:
        recipe = self._learned.recipe if self._learned else self
        return recipe._is_logistic()

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, classes) of a logistic model: 1 / (1 + exp(-f)), or the softmax of the scores."""
        return self._probabilities(self._scores(X))

    def _probabilities(self, scores: Array) -> Array:
        return np.ones((len(scores), 1)) if len(self.classes_) == 1 else probabilities(scores)

    # -- river

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn from one example: a dictionary of features, or an array row."""
        learned = self._learned
        try:
            labels = learned.labels  # type: ignore[union-attr]
            target = labels.ranks[labels.places[y]]  # type: ignore[union-attr]
        except (AttributeError, TypeError, LookupError):  # nothing was learned yet, or y is not a known label
            return self._learn_checked(x, y, w)
        if not learned.learn_as_it_is(x, target, w):  # type: ignore[union-attr]
            self._learn_checked(x, y, w)

    def _learn_checked(self, x: Any, y: Any, w: float) -> None:
        X, new = self._example(x)
        weight = border.as_one_weight(w, X)
        label = labels.checked([y], "y")
        known = self._labels
        if known is None or known.find(y) is None:
            known = self._joined(label)
        target = known.find(y)
        assert target is not None
        with self._joining(X, new, known) as learned:
            if learned is not self._learned or not learned.learn_as_it_is(x, target, w):
                self._learn(learned, X, np.array([target]), weight)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from the rows of a frame as `learn_one` would; new columns and classes are added."""
        rows, new = self._named(X)
        y = labels.as_labels(y, rows)
        self._joined(y)  # labels that do not fit raise an error before anything is learned
        known = self._labels.classes if self._labels else y[:0]
        for start, stop in pairwise(cuts(y, known)):
            now = self._joined(y[start:stop])
            with self._joining(rows, new, now) as learned:
                self._learn(learned, rows[start:stop], now.target(y[start:stop]), None)
            new = []

    def predict_one(self, x: Any) -> Any:
        """The class of one example; None before anything was learned."""
        learned: Learned | None = self._learned
        if learned is None:
            return None
        while True:
            labels: Any = learned.labels
            names, scores = labels.names or labels.listed(), learned.score_one(x)
            if len(names) < 3 or (len(names) == len(scores) and labels is learned.labels):
                return predicted_one(names, scores)

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class (logistic models)."""
        self._refuse_without_probabilities()
        if self._learned is None:
            return {}
        probabilities = self._probabilities(np.array([self._learned.score_one(x)]))[0]
        return dict(zip(self.classes_.tolist(), probabilities.tolist(), strict=True))

    def predict_many(self, X: Any) -> Any:
        """Predictions for a frame, as a pandas Series."""
        return self._series(X)

    def predict_proba_many(self, X: Any) -> Any:
        """The probability of each class for a frame, as a pandas DataFrame (logistic models)."""
        pd = optional.load("pandas", "predict_proba_many")
        self._refuse_without_probabilities()
        if self._learned is None:
            return pd.DataFrame()
        found = self._probabilities(self._scores(self._by_name(X)))
        return pd.DataFrame(found, columns=self.classes_.tolist(), index=X.index)

    def _refuse_without_probabilities(self) -> None:
        if not self._has_probabilities():
            raise NotImplementedError(f"{type(self).__name__} has no probabilities: {_PROBABILITIES}")
