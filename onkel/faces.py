"""Faces: how people meet a learner, with the verbs of scikit-learn and of river.

`Classifier` predicts one of two or more classes, `Regressor` a number, `Detector` tells the usual from the
novel. All of them `learn(X, ...)` and return the scores made before each update.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from onkel import border
from onkel.estimator import Array, Estimator, OneKernel
from onkel.losses import Logistic
from onkel.state import State, relabel
from onkel.updates import Diverged


def leaves_no_trace(method: Callable[..., Any]) -> Callable[..., Any]:
    """A first call that is refused leaves the model as new; later calls check before they change anything."""

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        started = self._started
        try:
            return method(self, *args, **kwargs)
        except Diverged:
            raise
        except BaseException:
            if not started:
                self._forget()
            raise

    return guarded


_PROBABILITIES = 'use KLRSGDClassifier or OGDClassifier(loss="logistic")'
Examples = tuple[Any, Array, Array | None]  # rows, targets and weights, checked


class Supervised(Estimator):
    """Estimators that learn from examples and targets."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn from the rows in order, once."""
        weights = np.asarray(sample_weight)
        if weights.dtype.kind in "biuf" and not weights.any():
            raise ValueError("Sample weights must contain at least one non-zero number, or nothing is learned")
        return self._become(self._fresh().partial_fit(X, y, sample_weight=sample_weight))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from the rows in order; `classes` declares labels to come (classifiers)."""
        self.learn(X, y, classes=classes, sample_weight=sample_weight)
        return self

    def learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Array:
        """Learn from the rows in order and return the scores made before each update."""
        raise NotImplementedError

    def _ready(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Examples:
        """Check rows and targets, begin if it has not, and give what the engine learns from."""
        raise NotImplementedError

    def _used(self, scores: tuple[Array, Array]) -> Array:
        """Of the scores of the last and the averaged model, those this one goes by; (n,) if there is one output."""
        used = scores[1] if self._learner.average else scores[0]
        return used if used.shape[1] > 1 else used[:, 0]

    def predict_many(self, X: Any) -> Any:
        """Predictions for a frame, as a pandas Series (river)."""
        import pandas as pd

        if not self._started:
            return pd.Series(dtype=object)
        return pd.Series(self.predict(self._by_name(X)), index=getattr(X, "index", None))

    def predict(self, X: Any) -> Array:
        """Predictions for the rows of X."""
        raise NotImplementedError

    def _by_name(self, X: Any) -> Any:
        names = self._known_names()
        return X if names is None else names.select(X)


class ClassifierFace(ClassifierMixin, Supervised):  # type: ignore[misc]
    """The face of learners that predict one of two or more classes."""

    task: ClassVar[str] = "classification"
    river_kind: ClassVar[str] = "MiniBatchClassifier"
    two_classes: ClassVar[bool] = False  # only: a third is refused

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._multiclass
        return tags

    @property
    def _multiclass(self) -> bool:  # as river calls it
        return not self.two_classes

    @leaves_no_trace
    def learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Array:
        """Learn from the rows in order and return the scores made before each update.

        Returns (n,) for two classes, a score >= 0 meaning `classes_[1]`; (n, m) for m >= 3 classes. Without
        `classes` those of the first call are known; later ones join with score 0.
        """
        examples = self._ready(X, y, classes, sample_weight)
        return self._used(self._learner.learn(*examples))

    def _ready(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Examples:
        X = self._rows(X, first=not self._started)
        y = border.as_labels(y, X)
        weight = border.as_weight(sample_weight, X)
        self._refuse_too_large(X)
        if classes is not None or not self._knows(y):
            self._know(y, classes, X, None)
        return X, self._target(y), weight

    def _target(self, y: Array) -> Array:
        """Labels as the engine knows them."""
        if len(self.classes_) <= 2:
            return np.where(y == self.classes_[-1], 1.0, -1.0) if len(self.classes_) == 2 else np.full(len(y), -1.0)
        return np.searchsorted(self.classes_, y).astype(np.float64)

    def _knows(self, y: Array) -> bool:
        """Are all these labels known? (Labels of another type are for `_know` to judge.)"""
        if not self._started or y.dtype.kind != self.classes_.dtype.kind or y.dtype.kind == "O":
            return False
        if len(self.classes_) == 2:
            return bool(((y == self.classes_[0]) | (y == self.classes_[1])).all())
        at = np.searchsorted(self.classes_, y)
        return bool((self.classes_[np.minimum(at, len(self.classes_) - 1)] == y).all())

    def _know(self, y: Array, classes: Any, X: Any, new_names: list[Any] | None) -> None:
        """Settle the classes before learning from y, and begin; refuses labels that were not declared."""
        seen = border.different(y)
        declared = None if classes is None else np.unique(border.checked_labels(classes, "classes"))
        if declared is None and not self._started and seen.dtype.kind == "b":
            declared = np.array([False, True])
        old: Array = self.classes_ if self._started else seen[:0]
        allowed = old if declared is None else _union(old, declared)
        closed = declared is not None or self.__dict__.get("_declared", False)
        new = allowed if closed else _union(allowed, seen)
        unknown = seen[~np.isin(seen, new)]
        if len(unknown) and new.dtype.kind == "b":
            raise ValueError(f"labels must be of one kind: {unknown.tolist()[0]!r} cannot join truth values")
        if len(unknown):
            raise ValueError(
                f"y contains the label {unknown.tolist()[0]!r}, which is not among the declared classes "
                f"{new.tolist()}: pass classes= with every label to come"
            )
        self._refuse_too_many(new)
        outputs = len(new) if len(new) > 2 else 1
        self._begin(outputs, X, new_names)
        if 0 < len(old) < len(new):
            wider = self._make(outputs, self._run)
            wider.restore(relabel(self._learner.state(), old, new))
            self._learner = wider
        self._set_classes(new, closed)

    def _refuse_too_many(self, classes: Array) -> None:
        if self.two_classes and len(classes) > 2:
            raise ValueError(
                f"Only binary classification is supported. {type(self).__name__} is defined for two classes, "
                f"got {classes.tolist()}"
            )

    def _set_classes(self, classes: Array, declared: bool) -> None:
        self.classes_, self._declared = classes, declared
        binary = len(classes) <= 2
        self._targets = {c: 2.0 * i - 1 if binary else float(i) for i, c in enumerate(classes.tolist())}

    def decision_function(self, X: Any, output: str | None = None) -> Array:
        """Scores (n,) or (n, classes); `output` picks the "last" or the "average" model."""
        check_is_fitted(self)
        scores = self._scores(self._rows(X), output)
        return scores if scores.shape[1] > 1 else scores[:, 0]

    def predict(self, X: Any) -> Array:
        """The class of each row; a score of 0 is `classes_[1]`."""
        check_is_fitted(self)
        return self._labels(self._scores(self._rows(X)))

    def _labels(self, scores: Array) -> Array:
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(scores))
        best = np.argmax(scores, axis=1) if scores.shape[1] > 1 else (scores[:, 0] >= 0).astype(int)
        return np.asarray(self.classes_[best])

    def _has_probabilities(self) -> bool:
        recipe = self.__dict__.get("_recipe", self)
        return isinstance(recipe, OneKernel) and isinstance(recipe.parts(*recipe._pool(1))[1], Logistic)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, classes) of a logistic model: 1 / (1 + exp(-f)), or the softmax of the scores."""
        check_is_fitted(self)
        return self._probabilities(self._scores(self._rows(X)))

    def _probabilities(self, scores: Array) -> Array:
        if len(self.classes_) == 1:
            return np.ones((len(scores), 1))
        if scores.shape[1] == 1:
            positive = np.exp(-np.logaddexp(0, -scores[:, 0]))
            return np.column_stack([1 - positive, positive])
        shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))

    # -- river

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn from one example: a dictionary of features, or an array row."""
        try:
            target = self._targets.get(y)
        except (AttributeError, TypeError):  # nothing was learned yet; no label at all
            target = None
        if target is None or not self._learned_as_it_is(x, target, w):
            self._learn_checked(x, y, w)

    @leaves_no_trace
    def _learn_checked(self, x: Any, y: Any, w: float) -> None:
        X, new = self._incoming(x)
        weight = border.as_one_weight(w, X)
        self._refuse_too_large(X)
        label = border.checked_labels([y], "y")
        if not self._started or self._is_news(new) or y not in self._targets:
            self._know(label, None, X, new)
        self._learner.learn(X, np.array([self._targets[y]]), weight)

    def predict_one(self, x: Any) -> Any:
        """The class of one example; None before anything was learned."""
        if not self._started:
            return None
        scores = self._scores_of(x)
        labels = [*self._targets]
        if len(scores) == 1:
            return labels[-1] if scores[0] >= 0 else labels[0]
        return labels[scores.index(max(scores))]

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class (logistic models)."""
        if not self._has_probabilities():
            raise NotImplementedError(f"{type(self).__name__} has no probabilities: {_PROBABILITIES}")
        if not self._started:
            return {}
        probabilities = self._probabilities(self._scores(self._one(x)))[0]
        return dict(zip(self.classes_.tolist(), probabilities.tolist(), strict=True))

    @leaves_no_trace
    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from the rows of a frame as `learn_one` would; new columns and classes join."""
        rows, new = self._named(X)
        labels = border.as_labels(y, rows)
        self._refuse_too_large(rows)
        if self.__dict__.get("_declared") and not self._knows(labels):
            self._know(labels, None, rows, None)  # refuses
        known = self.classes_ if self._started else labels[:0]
        self._refuse_too_many(_union(known, border.different(labels)))
        # a class joins at its first example, so learn up to there first
        joins = [int(i) for i in np.unique(labels, return_index=True)[1] if labels[i] not in known]
        cuts = sorted({0, len(labels), *joins})
        for start, stop in pairwise(cuts):
            self._know(labels[start:stop], None, rows, new)
            new = []
            self._learner.learn(rows[start:stop], self._target(labels[start:stop]), None)

    def predict_proba_many(self, X: Any) -> Any:
        """The probability of each class for a frame, as a pandas DataFrame (logistic models)."""
        import pandas as pd

        if not self._has_probabilities():
            raise NotImplementedError(f"{type(self).__name__} has no probabilities: {_PROBABILITIES}")
        if not self._started:
            return pd.DataFrame()
        probabilities = self._probabilities(self._scores(self._rows(self._by_name(X))))
        return pd.DataFrame(probabilities, columns=self.classes_.tolist(), index=X.index)

    # -- state

    def _run_state(self) -> tuple[State, dict[str, Any] | None]:
        arrays, run = super()._run_state()
        if run is not None:
            run["classes"] = {"dtype": self.classes_.dtype.str, "labels": self.classes_.tolist()}
            run["declared"] = self._declared
        return arrays, run

    def _restore_run(self, arrays: State, run: dict[str, Any] | None, recipe: Estimator) -> None:
        super()._restore_run(arrays, run, recipe)
        if run is not None:
            classes = np.array(run["classes"]["labels"], dtype=np.dtype(run["classes"]["dtype"]))
            outputs = len(classes) if len(classes) > 2 else 1
            if outputs != run["outputs"] or not np.array_equal(np.unique(classes), classes):
                raise ValueError(f"its classes {classes.tolist()} do not fit its outputs")
            self._set_classes(classes, run["declared"])


def _union(old: Array, more: Array) -> Array:
    """Both sets of labels, sorted; of one kind."""
    if len(old) == 0:
        return more
    if old.dtype.kind in "biuf" and more.dtype.kind in "biuf" and np.isin(more, old).all():
        return old  # 1 and 1.0 are one label
    if (old.dtype.kind in "OUS") != (more.dtype.kind in "OUS"):
        raise ValueError(f"labels must be of one kind: {more.tolist()[0]!r} cannot join {old.tolist()}")
    return np.union1d(old, more)


class Classifier(OneKernel, ClassifierFace):
    """Classifiers with one kernel."""


class RegressorFace(RegressorMixin, Supervised):  # type: ignore[misc]
    """The face of learners that predict a number."""

    task: ClassVar[str] = "regression"
    river_kind: ClassVar[str] = "MiniBatchRegressor"
    forgets: ClassVar[bool] = False  # by design: scikit-learn's checks then ask no high score on old rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.forgets
        return tags

    @leaves_no_trace
    def learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Array:
        """Learn from the rows in order and return the predictions (n,) made before each update."""
        examples = self._ready(X, y, classes, sample_weight)
        return self._used(self._learner.learn(*examples))

    def _ready(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Examples:
        if classes is not None:
            raise ValueError(f"classes means nothing to a regressor, got {classes!r}: leave it out")
        X = self._rows(X, first=not self._started)
        y = border.as_target(y, X)
        weight = border.as_weight(sample_weight, X)
        self._refuse_too_large(X)
        self._begin(1, X, None)
        return X, y, weight

    def predict(self, X: Any, output: str | None = None) -> Array:
        """The predicted number of each row; `output` picks the "last" or the "average" model."""
        check_is_fitted(self)
        return self._scores(self._rows(X), output)[:, 0]

    # -- river

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn from one example: a dictionary of features, or an array row."""
        if not (self._started and isinstance(y, (float, int)) and self._learned_as_it_is(x, y, w)):
            self._learn_checked(x, y, w)

    @leaves_no_trace
    def _learn_checked(self, x: Any, y: Any, w: float) -> None:
        X, new = self._incoming(x)
        target = border.as_one_target(y)
        weight = border.as_one_weight(w, X)
        self._refuse_too_large(X)
        self._begin(1, X, new)
        self._learner.learn(X, target, weight)

    def predict_one(self, x: Any) -> float:
        """The predicted number of one example; 0 before anything was learned."""
        if not self._started:
            return 0.0
        return float(self._scores_of(x)[0])

    @leaves_no_trace
    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from the rows of a frame as `learn_one` would; new columns join."""
        rows, new = self._named(X)
        target = border.as_target(y, rows)
        self._refuse_too_large(rows)
        self._begin(1, rows, new)
        self._learner.learn(rows, target, None)


class Regressor(OneKernel, RegressorFace):
    """Regressors with one kernel."""


class Detector(OutlierMixin, OneKernel):  # type: ignore[misc]
    """The face of learners that tell the usual from the novel; they learn from examples alone."""

    task: ClassVar[str] = "novelty detection"
    river_kind: ClassVar[str] = "AnomalyDetector"
    _supervised: ClassVar[bool] = False

    @leaves_no_trace
    def learn(self, X: Any) -> Array:
        """Learn from the rows in order and return the scores f(x) (n,) made before each update."""
        X = self._rows(X, first=not self._started)
        self._refuse_too_large(X)
        self._begin(1, X, None)
        return self._learn(X)

    def _learn(self, X: Any) -> Array:
        last, averaged = self._learner.learn(X, np.ones(X.shape[0]), None)
        scores: Array = averaged if self._learner.average else last
        return scores[:, 0]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then learn from the rows in order, once."""
        return self._become(self._fresh().partial_fit(X))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on learning from the rows in order."""
        self.learn(X)
        return self

    @property
    def offset_(self) -> float:
        """The threshold rho below which an example is novel."""
        check_is_fitted(self)
        return float(self._learner.threshold)

    def score_samples(self, X: Any) -> Array:
        """f(x): the higher, the more usual."""
        check_is_fitted(self)
        return self._scores(self._rows(X))[:, 0]

    def decision_function(self, X: Any) -> Array:
        """f(x) - rho: negative for novel examples."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """+1 for usual, -1 for novel examples."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    # -- river

    def learn_one(self, x: Any) -> None:
        """Learn from one example: a dictionary of features, or an array row."""
        if not (self._started and self._learned_as_it_is(x, 1.0, 1.0)):
            self._learn_checked(x)

    @leaves_no_trace
    def _learn_checked(self, x: Any) -> None:
        X, new = self._incoming(x)
        self._refuse_too_large(X)
        self._begin(1, X, new)
        self._learn(X)

    def score_one(self, x: Any) -> float:
        """rho - f(x): the higher, the more novel; 0 before anything was learned."""
        return self.offset_ - float(self._scores_of(x)[0]) if self._started else 0.0
