"""Passive-aggressive learners: the smallest step that brings the loss of the current example to zero."""

from __future__ import annotations

from typing import ClassVar

from onkel.budgets import Unlimited
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Parts, Settings, Variants
from onkel.faces.one_kernel import OneKernel
from onkel.faces.regressor import Regressor
from onkel.hypotheses import Expansion
from onkel.kernels import Kernel
from onkel.losses import EpsilonInsensitive, Hinge, Loss
from onkel.updates import PassiveAggressive

__all__ = [
    "PAClassifier",
    "PARegressor",
]

CRAMMER = "Crammer, Dekel, Keshet, Shalev-Shwartz, Singer: Online passive-aggressive algorithms. JMLR 7, 2006"


class _PassiveAggressive(OneKernel):
    """The least step that brings the loss to zero, limited by C."""

    variant: str = "I"
    C: float = 1.0
    paper: ClassVar[str] = CRAMMER
    variants: ClassVar[Variants] = {"PA-I": {"variant": "I"}, "PA-II": {"variant": "II"}}
    cost: ClassVar[str] = "n d"
    examples: ClassVar[Settings] = ({"variant": "hard"}, {"variant": "I", "C": 0.4}, {"variant": "II", "C": 0.4})

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Unlimited()), self._loss(), PassiveAggressive(self.variant, self.C)


class PAClassifier(_PassiveAggressive, Classifier):
    """Passive-aggressive classification: PA, PA-I and PA-II.

    l = max(0, 1 - y f(x));  f <- f + tau y k(x, .)
    tau = l / k(x, x) ("hard"),  min(C, l / k(x, x)) ("I"),  l / (k(x, x) + 1/(2C)) ("II")
    Several classes: the margin is f_y - f_s against the best rival s; y gets tau, s gets -tau, and 2 k(x, x) divides.

    Composition: Learner(Expansion(kernel, Unlimited()), Hinge(), PassiveAggressive(variant, C))

    Parameters
    ----------
    variant : "hard", "I" or "II"
    C : aggressiveness, > 0; not with "hard"
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    crammer2006online: Crammer et al., JMLR 7, 2006

    Examples
    --------
    >>> from onkel import PAClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = PAClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    aliases: ClassVar[tuple[str, ...]] = ("Passive-Aggressive",)

    def _loss(self) -> Loss:
        return Hinge()


class PARegressor(_PassiveAggressive, Regressor):
    """Passive-aggressive regression: PA, PA-I and PA-II with the epsilon-insensitive loss.

    l = max(0, |y - f(x)| - epsilon);  f <- f + tau sgn(y - f(x)) k(x, .), tau as in PAClassifier

    Composition: Learner(Expansion(kernel, Unlimited()), EpsilonInsensitive(epsilon), PassiveAggressive(variant, C))

    Parameters
    ----------
    variant : "hard", "I" or "II"
    C : aggressiveness, > 0; not with "hard"
    epsilon : half width of the tube, >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    crammer2006online: Crammer et al., JMLR 7, 2006

    Examples
    --------
    >>> from onkel import PARegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = PARegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.5
    True
    """

    epsilon: float = 0.1
    examples: ClassVar[Settings] = (*_PassiveAggressive.examples, {"variant": "I", "C": 0.4, "epsilon": 0.3})

    def _loss(self) -> Loss:
        return EpsilonInsensitive(self.epsilon)
