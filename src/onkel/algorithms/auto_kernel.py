"""No tuning: kernels, steps and scales are found while learning.

The components were chosen by experiments (see the manual). No single width is right for all streams; random features
suit wide kernels, and stored examples narrow ones. After a few hundred rounds the weights of the pool prefer the
components that predict best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from onkel import native
from onkel.budgets import AlmostLinearDependence, Refit
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Array, Parts, Settings
from onkel.faces.pool import Weighted
from onkel.faces.regressor import Regressor
from onkel.hypotheses import Expansion, Features
from onkel.kernels import Gaussian, Kernel, Laplacian
from onkel.learners.scaled import Scaled
from onkel.learners.weighting import ByLoss, ByMistakes, Weighting
from onkel.losses import Hinge, Loss, Squared
from onkel.maps import Fourier
from onkel.updates import Defer, DistanceOverGradient, PassiveAggressive

__all__ = ["AutoKernelClassifier", "AutoKernelRegressor"]

CESA = (
    "Cesa-Bianchi, Lugosi: Prediction, learning, and games. Cambridge University Press, 2006. "
    "doi:10.1017/CBO9780511546921"
)


class _AutoKernel(Weighted):
    """The fields of AutoKernel, and what they stand for."""

    components: int = 1000
    budget: int = 1000
    target: ClassVar[bool] = False

    def compositions(self, columns: int) -> list[Parts]:
        """Hypothesis, loss and update of each component, for rows at a mean squared distance of 1."""
        raise NotImplementedError

    def _features(self, columns: int, widths: tuple[float, ...], loss: Loss) -> list[Parts]:
        """Random features of Gaussians, and of the Laplacian of the same reach."""
        kernels = [*map(Gaussian, widths), Laplacian(math.sqrt(2 / max(columns, 1)))]
        return [(Features(Fourier(kernel, self.components)), loss, DistanceOverGradient()) for kernel in kernels]

    def _pool(self, columns: int) -> tuple[Kernel, ...]:
        return tuple(kernel for hypothesis, _, _ in self.compositions(columns) for kernel in hypothesis.kernels)

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Any:
        double = {**run, "dtype": "float64"}  # scaled rows are
        hedge = native.fastest(self._combined(self.compositions(run["columns"]), double, outputs, keys))
        return Scaled(hedge, columns=len(keys), target=self.target, dtype=run["dtype"])


class AutoKernelClassifier(_AutoKernel, Classifier):
    """A classifier without anything to choose, in bounded memory.

    Features are scaled as they come. Components: random features of the Laplacian and of Gaussians with gamma 1/4, 1
    and 4; budgeted passive-aggressive learners with gamma 4, 16 and 64. They vote:
    th_i <- th_i discount^[component i was wrong], normalised; score = sum_i th_i sgn(f_i(x)), or one such sum a class

    Composition: Scaled(Hedge of Learner(Features(Fourier(kernel, components)), Hinge(), DistanceOverGradient()) and
    Learner(Expansion(kernel, Refit(budget, "nearest", 1)), Hinge(), PassiveAggressive("I", 1)))

    Parameters
    ----------
    components : D, number of random directions of each of the first four
    budget : B, number of terms of each of the last three
    discount : in (0, 1]
    random_state, n_jobs : see Estimator

    References
    ----------
    cesabianchi2006prediction: Cesa-Bianchi, Lugosi, 2006, chapter 2. doi:10.1017/CBO9780511546921

    Examples
    --------
    >>> from onkel import AutoKernelClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = AutoKernelClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    discount: float = 0.97
    examples: ClassVar[Settings] = ({"components": 20, "budget": 15}, {"components": 15, "budget": 20, "discount": 0.7})
    paper: ClassVar[str] = CESA
    cost: ClassVar[str] = "D d + B d"

    def compositions(self, columns: int) -> list[Parts]:
        stored: list[Parts] = [
            (Expansion(Gaussian(gamma), Refit(self.budget, "nearest", 1.0)), Hinge(), PassiveAggressive("I", 1.0))
            for gamma in (4.0, 16.0, 64.0)
        ]
        return [*self._features(columns, (0.25, 1.0, 4.0), Hinge()), *stored]

    def _weighting(self) -> Weighting:
        return ByMistakes(self.discount)


class AutoKernelRegressor(_AutoKernel, Regressor):
    """A regressor without anything to choose, in bounded memory.

    Features and target are scaled as they come. Components: random features of the Laplacian and of Gaussians with
    gamma 1, 4; recursive least squares on stored examples with gamma 1/4, 1, 4.
    th_i <- th_i exp(-eta_weights (f_i(x) - y)^2 / 2), normalised; score = sum_i th_i f_i(x)

    Composition: Scaled(Hedge of Learner(Features(Fourier(kernel, components)), Squared(), DistanceOverGradient()) and
    Learner(Expansion(kernel, AlmostLinearDependence(nu, budget)), Squared(), Defer()))

    Parameters
    ----------
    components : D, number of random directions of each of the first three
    budget : B, number of stored examples of each of the last three
    eta_weights : rate of the weights, in units of the target's deviation
    random_state, n_jobs : see Estimator

    References
    ----------
    cesabianchi2006prediction: Cesa-Bianchi, Lugosi, 2006, chapter 2. doi:10.1017/CBO9780511546921

    Examples
    --------
    >>> from onkel import AutoKernelRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = AutoKernelRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.55
    True
    """

    budget: int = 300
    eta_weights: float = 0.05
    examples: ClassVar[Settings] = (
        {"components": 20, "budget": 15},
        {"components": 15, "budget": 20, "eta_weights": 0.2},
    )
    target: ClassVar[bool] = True
    paper: ClassVar[str] = CESA
    cost: ClassVar[str] = "D d + B d + B^2"

    def compositions(self, columns: int) -> list[Parts]:
        stored: list[Parts] = [
            (Expansion(Gaussian(gamma), AlmostLinearDependence(nu, self.budget)), Squared(), Defer())
            for gamma, nu in ((0.25, 0.03), (1.0, 0.03), (4.0, 0.1))
        ]
        return [*self._features(columns, (1.0, 4.0), Squared()), *stored]

    def _weighting(self) -> Weighting:
        return ByLoss(Squared(), self.eta_weights)

    def _hedge(self) -> dict[str, Any]:
        return super()._hedge() | {"vote": False}
