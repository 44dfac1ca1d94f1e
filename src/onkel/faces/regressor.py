"""Regressor: the base class of estimators that predict a number."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import RegressorMixin

from onkel.faces import border
from onkel.faces.estimator import Array, Estimator


class Regressor(RegressorMixin, Estimator):  # type: ignore[misc]
    """Estimators that predict a number."""

    task: ClassVar[str] = "regression"
    river_kind: ClassVar[str] = "MiniBatchRegressor"
    forgets: ClassVar[bool] = False  # by design; scikit-learn's checks then do not require a high score on old rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.forgets
        return tags

    def learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Array:
        """Learn from the rows in order and return the predictions (n,) made before each update."""
        return self._learn(*self._ready(X, y, classes, sample_weight))

    def _targets(self, X: Any, y: Any, classes: Any) -> tuple[Array, None]:
        if classes is not None:
            raise ValueError(f"a regressor has no classes, got classes={classes!r}: leave it out")
        return border.as_target(y, X), None

    def predict(self, X: Any, output: str | None = None) -> Array:
        """Predictions (n,) of the "last" or the "average" model (`output`; None: the average if there is one)."""
        return self._scores(X, output)[:, 0]

    # -- river

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn from one example: a dictionary of features, or an array row."""
        learned = self._learned
        if learned is None or not isinstance(y, (float, int)) or not learned.learn_as_it_is(x, y, w):
            self._learn_checked(x, y, w)

    def _learn_checked(self, x: Any, y: Any, w: float) -> None:
        X, new = self._example(x)
        target = border.as_one_target(y)
        weight = border.as_one_weight(w, X)
        with self._joining(X, new, None) as learned:
            if learned is not self._learned or not learned.learn_as_it_is(x, float(target[0]), w):
                self._learn(learned, X, target, weight)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from the rows of a frame as `learn_one` would; new columns are added."""
        rows, new = self._named(X)
        target = border.as_target(y, rows)
        with self._joining(rows, new, None) as learned:
            self._learn(learned, rows, target, None)

    def predict_one(self, x: Any) -> float:
        """The predicted number of one example; 0 before anything was learned."""
        return 0.0 if self._learned is None else float(self._learned.score_one(x)[0])

    def predict_many(self, X: Any) -> Any:
        """Predictions for a frame, as a pandas Series."""
        return self._series(X)
