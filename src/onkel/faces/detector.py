"""Detector: the base class of estimators for novelty detection, which learn from examples without labels."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin

from onkel.faces.estimator import Array, Estimator


class Detector(OutlierMixin, Estimator):  # type: ignore[misc]
    """Estimators for novelty detection."""

    task: ClassVar[str] = "novelty detection"
    river_kind: ClassVar[str] = "AnomalyDetector"
    _supervised: ClassVar[bool] = False

    def learn(self, X: Any) -> Array:  # type: ignore[override]
        """Learn from the rows in order and return the scores f(x) (n,) made before each update."""
        return self._learn(*self._ready(X, None, None, None))

    def _targets(self, X: Any, y: Any, classes: Any) -> tuple[Array, None]:
        return np.ones(X.shape[0]), None

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Forget everything, then learn from the rows in order, once."""
        return self._fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Continue to learn from the rows in order."""
        self.learn(X)
        return self

    @property
    def offset_(self) -> float:
        """The threshold rho below which an example is novel."""
        return self._fitted().engine.threshold

    def score_samples(self, X: Any) -> Array:
        """f(x), higher for inliers."""
        return self._scores(X)[:, 0]

    def decision_function(self, X: Any) -> Array:
        """f(x) - rho: negative for novel examples."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """+1 for inliers, -1 for novel examples."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    # -- river

    def learn_one(self, x: Any) -> None:
        """Learn from one example: a dictionary of features, or an array row."""
        learned = self._learned
        if learned is None or not learned.learn_as_it_is(x, 1.0, 1.0):
            X, new = self._example(x)
            with self._joining(X, new, None) as learned:
                self._learn(learned, X, np.ones(1), None)

    def score_one(self, x: Any) -> float:
        """rho - f(x), higher for novel examples; 0 before anything was learned."""
        return 0.0 if self._learned is None else self.offset_ - float(self._learned.score_one(x)[0])
