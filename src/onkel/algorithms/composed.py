"""Composed: estimators of any hypothesis, loss and update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from onkel import native
from onkel.budgets import RemoveOldest
from onkel.core.errors import Refused
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Array, Estimator, Settings
from onkel.faces.regressor import Regressor
from onkel.hypotheses import Expansion, Features, Hypothesis
from onkel.kernels import Gaussian
from onkel.learners.engine import Engine
from onkel.learners.learner import Learner
from onkel.losses import Loss
from onkel.maps import Fourier
from onkel.updates import DistanceOverGradient, Gradient, PassiveAggressive, Update

__all__ = ["ComposedClassifier", "ComposedRegressor"]


class _Composed(Estimator):
    """The fields of a composition."""

    hypothesis: Hypothesis | None = None
    update: Update | None = None
    average: bool | str = False
    cost: ClassVar[str] = "that of its parts"

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Engine:
        hypothesis = Expansion() if self.hypothesis is None else self.hypothesis
        update = Gradient() if self.update is None else self.update
        if not isinstance(hypothesis, Hypothesis):
            raise Refused(type(self).__name__, "hypothesis", "one of onkel.hypotheses", hypothesis)
        if not isinstance(update, Update):
            raise Refused(type(self).__name__, "update", "one of onkel.updates", update)
        parts = (hypothesis.resolve(run["columns"]), self._loss(), update)
        return native.fastest(Learner(*parts, outputs=outputs, average=self.average, keys=keys, **run))


class ComposedClassifier(_Composed, Classifier):
    """A classifier made of the parts you choose.

    f <- shrink f, then the step of the update; terms enter by the rule of the budget

    Composition: Learner(hypothesis, loss, update)

    Parameters
    ----------
    hypothesis : Expansion(kernel, budget), Features(map) or another of onkel.hypotheses; None: Expansion(), which keeps
        every term
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    update : one of onkel.updates; None: Gradient(). What does not go with the other parts is refused with the reason
    average : False; True or "all": score with the average of all models so far (see Learner)
    random_state, n_jobs : see Estimator

    Examples
    --------
    >>> from onkel import ComposedClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = ComposedClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "hinge"
    examples: ClassVar[Settings] = (
        {"hypothesis": Expansion(Gaussian(0.5), RemoveOldest(12)), "update": PassiveAggressive("I", 0.4)},
        {"hypothesis": Features(Fourier(Gaussian(0.5), 20)), "loss": "logistic", "update": DistanceOverGradient()},
    )

    def _is_logistic(self) -> bool:
        return "logistic" in self._loss().offers


class ComposedRegressor(_Composed, Regressor):
    """A regressor made of the parts you choose.

    f <- shrink f, then the step of the update; terms enter by the rule of the budget

    Composition: Learner(hypothesis, loss, update)

    Parameters
    ----------
    hypothesis : Expansion(kernel, budget), Features(map) or another of onkel.hypotheses; None: Expansion(), which keeps
        every term
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    update : one of onkel.updates; None: Gradient(). What does not go with the other parts is refused with the reason
    average : False; True or "all": score with the average of all models so far (see Learner)
    random_state, n_jobs : see Estimator

    Examples
    --------
    >>> from onkel import ComposedRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = ComposedRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.45
    True
    """

    loss: Loss | str = "squared"
    examples: ClassVar[Settings] = (
        {"hypothesis": Expansion(Gaussian(0.5), RemoveOldest(12)), "update": Gradient(0.2, 0.1)},
        {"hypothesis": Features(Fourier(Gaussian(0.5), 20)), "loss": "huber", "update": DistanceOverGradient()},
    )
