"""Attributes: what an estimator has learned, under the names that scikit-learn uses."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from onkel.faces.learned import Learned

Array = np.ndarray[Any, np.dtype[Any]]


class Attributes:
    """The learned attributes of an estimator; reading them raises an error before it has learned."""

    _learned: Learned | None = None

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # two models must not share what they learn

    def __sklearn_is_fitted__(self) -> bool:
        return self._learned is not None

    def _fitted(self) -> Learned:
        if self._learned is None:
            name = type(self).__name__
            raise NotFittedError(f"this {name} has learned nothing yet: call fit, learn or learn_one first")
        return self._learned

    def _seen(self, name: str, value: Any) -> Any:
        """The value of the attribute `name`; if it is None, AttributeError is raised, as in scikit-learn."""
        if value is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return value

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return int(self._seen("n_features_in_", None if self._learned is None else self._learned.columns.count))

    @property
    def feature_names_in_(self) -> Array:
        """Column names of the frame given to the first `fit`, `partial_fit` or `learn`.

        Does not exist once new names may be added (`learn_one` with a dictionary, `learn_many`).
        """
        names = self._seen("feature_names_in_", None if self._learned is None else self._learned.columns.fixed)
        return np.array(names, dtype=object)

    @property
    def t_(self) -> int:
        """Number of examples learned from."""
        return self._fitted().engine.t

    @property
    def n_support_(self) -> int:
        """Number of terms; with `average="all"` also the removed ones that the average still uses."""
        engine = self._fitted().engine
        terms = engine.terms() if engine.average == "all" else None
        return engine.n if terms is None else len(terms.born)

    @property
    def support_vectors_(self) -> Any:
        """The stored examples (terms, features), in the order in which they entered."""
        return self._terms()[0]

    @property
    def dual_coef_(self) -> Array:
        """Coefficients (outputs, terms) of the function that `predict` uses.

        With a coefficient for each kernel (OM2, ProximalMKL) the shape is (outputs, kernels, terms).
        """
        return self._terms()[1].T

    @property
    def coef_(self) -> Array:
        """Weights (outputs, features) of the explicit features of the function that `predict` uses."""
        weights = self._fitted().engine.feature_weights()
        if weights is None:
            raise AttributeError(f"{type(self).__name__} has no explicit features: see dual_coef_")
        return np.asarray(weights.T)

    @property
    def engine_(self) -> str:
        """The engine of the model: "native" or "python"."""
        return self._fitted().engine.kind

    def _terms(self) -> tuple[Any, Array]:
        terms = self._fitted().engine.terms()
        if terms is None:
            raise AttributeError(f"{type(self).__name__} has no terms: see coef_")
        order = np.argsort(terms.born, kind="stable")
        return terms.x[order], terms.coef[order]
