"""Learners that sample: a random draw decides which examples become terms, so that terms are few."""

from __future__ import annotations

import math
from typing import ClassVar

from onkel.algorithms.gradients import ZHANG2013
from onkel.budgets import Unlimited
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Parts, Settings, Variants
from onkel.faces.one_kernel import OneKernel
from onkel.faces.regressor import Regressor
from onkel.hypotheses import Expansion
from onkel.kernels import Kernel
from onkel.losses import EpsilonInsensitive, Hinge, Logistic, Loss, Squared
from onkel.updates import SampledGradient, SampledLogistic, SampledPassiveAggressive

__all__ = [
    "OSKLClassifier",
    "OSKLRegressor",
    "SPAClassifier",
    "SPARegressor",
    "SparseKLRClassifier",
]

LU = "Lu, Zhao, Hoi: Online sparse passive aggressive learning with kernels. SDM, 2016. doi:10.1137/1.9781611974348.76"
ZHANG2012 = (
    "Zhang, Jin, Chen, Lin, He: Efficient online learning for large-scale sparse kernel logistic regression. AAAI, 2012"
)


class _SPA(OneKernel):
    """The fields of SPA, and what they stand for."""

    eta: float = 1.0
    alpha: float = 1.0
    beta: float = 20.0
    average: bool | str = True
    paper: ClassVar[str] = LU
    cost: ClassVar[str] = "n d"

    def parts(self, kernel: Kernel) -> Parts:
        update = SampledPassiveAggressive(self.eta, self.alpha, self.beta)
        return Expansion(kernel, Unlimited()), self._loss(), update


class SPAClassifier(_SPA, Classifier):
    """Sparse passive-aggressive learning: a passive-aggressive step, taken with a probability that grows with the loss.

    l = max(0, 1 - y f(x));  rho = min(alpha, l) / beta;  with probability rho:
    f <- f + tau y k(x, .), tau = min(eta / rho, l / k(x, x))
    The expected number of terms is at most alpha / beta of the rounds. Several classes (an extension): as PAClassifier.

    Composition: Learner(Expansion(kernel, Unlimited()), Hinge(), SampledPassiveAggressive(eta, alpha, beta))

    Parameters
    ----------
    eta : largest step times rho, > 0
    alpha, beta : 0 < alpha <= beta; the larger beta, the fewer terms
    average : True by default: score with the average of the models, which has the same terms
    kernel, random_state, n_jobs : see OneKernel

    References
    ----------
    lu2016online: Lu, Zhao, Hoi, SDM, 2016. doi:10.1137/1.9781611974348.76
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithm 7

    Examples
    --------
    >>> from onkel import SPAClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = SPAClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.85
    True
    """

    variants: ClassVar[Variants] = {"SPA-avg": {"average": True}, "SPA-last": {"average": False}}
    examples: ClassVar[Settings] = ({"eta": 0.3, "beta": 2.0}, {"eta": 1.0, "alpha": 0.5, "beta": 0.5})

    def _loss(self) -> Loss:
        return Hinge()


class SPARegressor(_SPA, Regressor):
    """Sparse passive-aggressive regression, an extension: the loss is max(0, |y - f(x)| - epsilon).

    As SPAClassifier, with steps tau sgn(y - f(x)); alpha should be of the order of a typical loss

    Composition: Learner(Expansion(kernel, Unlimited()), EpsilonInsensitive(epsilon), SampledPassiveAggressive(eta,
    alpha, beta))

    Parameters
    ----------
    eta, alpha, beta, average : as for SPAClassifier
    epsilon : half width of the tube, >= 0
    kernel, random_state, n_jobs : see OneKernel

    References
    ----------
    lu2016online: Lu, Zhao, Hoi, SDM, 2016. doi:10.1137/1.9781611974348.76
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithm 7

    Examples
    --------
    >>> from onkel import SPARegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = SPARegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.35
    True
    """

    beta: float = 5.0
    epsilon: float = 0.1
    forgets: ClassVar[bool] = True  # it learns from only a part of the rows
    examples: ClassVar[Settings] = ({"eta": 0.3, "alpha": 0.8, "beta": 2.0, "epsilon": 0.2},)

    def _loss(self) -> Loss:
        return EpsilonInsensitive(self.epsilon)


class _OSKL(OneKernel):
    """The fields of OSKL, and what they stand for."""

    eta: float = 0.45
    G: float = 2.0
    R: float = math.inf
    average: bool | str = True
    paper: ClassVar[str] = ZHANG2013
    cost: ClassVar[str] = "n d"

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Unlimited()), self._loss(), SampledGradient(self.eta, self.G, self.R)


class OSKLClassifier(_OSKL, Classifier):
    """Online sparse kernel learning: fixed steps, taken with a probability proportional to the slope of the loss.

    g = l'(f(x));  with probability |g| / G:  f <- project[f - eta G sgn(g) k(x, .)] onto |f| <= R

    Composition: Learner(Expansion(kernel, Unlimited()), loss, SampledGradient(eta, G, R))

    Parameters
    ----------
    eta : step, > 0 (published: 0.9 / G)
    G : at least the largest slope (1 for the logistic loss); the larger, the fewer terms and the longer the steps
    R : radius of the ball, > 0
    loss : "logistic", "exponential", "hinge", "squared_hinge" or an object
    average : True by default: score with the average of the models, which has the same terms
    kernel, random_state, n_jobs : see OneKernel

    References
    ----------
    zhang2013online: Zhang, Yi, Jin, Lin, He, ICML, 2013, algorithm 1

    Examples
    --------
    >>> from onkel import OSKLClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = OSKLClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "logistic"
    variants: ClassVar[Variants] = {"OSKL-avg": {"average": True}, "OSKL-last": {"average": False}}
    examples: ClassVar[Settings] = (
        {"eta": 0.3, "G": 1.5},
        {"eta": 0.4, "G": 1.5, "R": 2.0},
        {"eta": 0.02, "G": 30.0, "loss": "exponential"},
    )


class OSKLRegressor(_OSKL, Regressor):
    """Online sparse kernel learning for regression.

    g = l'(f(x) - y);  with probability |g| / G (at most 1):  f <- project[f - eta G sgn(g) k(x, .)] onto |f| <= R
    The squared loss is r^2 / 2 outside the tube |r| <= epsilon; G should be at least the largest |y| + R.

    Composition: Learner(Expansion(kernel, Unlimited()), loss, SampledGradient(eta, G, R))

    Parameters
    ----------
    eta, G, R, average : as for OSKLClassifier
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    epsilon : half width of the tube of "squared" and "epsilon_insensitive", >= 0
    kernel, random_state, n_jobs : see OneKernel

    References
    ----------
    zhang2013online: Zhang, Yi, Jin, Lin, He, ICML, 2013, algorithm 1

    Examples
    --------
    >>> from onkel import OSKLRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = OSKLRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.4
    True
    """

    eta: float = 0.1
    loss: Loss | str = "squared"
    epsilon: float = 0.1
    forgets: ClassVar[bool] = True  # it learns from only a part of the rows
    examples: ClassVar[Settings] = (
        {"eta": 0.15, "G": 6.0, "epsilon": 0.2},
        {"eta": 0.1, "G": 6.0, "R": 2.0, "loss": Squared(0.2)},
    )


class SparseKLRClassifier(OneKernel, Classifier):
    """Sparse kernel logistic regression: steps of logistic regression, which become rare where the model is sure.

    p = 1 / (1 + exp(-y f(x)));  f <- project[f + eta (1 - p) y k(x, .)] onto |f| <= R, with probability
    "margin": (2 - eta) / (2 - eta + eta p);  "auxiliary": c (1 - p) / (c (1 - p) + p);
    "tight": (1 - eta/2) (1 - p) / (-ln p - eta/2 (1 - p)^2)

    Composition: Learner(Expansion(kernel, Unlimited()), Logistic(), SampledLogistic(variant, eta, R, c))

    Parameters
    ----------
    variant : "margin", "auxiliary" (our reconstruction; it agrees with the published sparsity) or "tight"
    eta : step, in (0, 2)
    R : radius of the ball, > 0
    c : of "auxiliary", > 0; the smaller, the fewer terms
    average : True by default: score with the average of the models, which has the same terms
    kernel, random_state, n_jobs : see OneKernel

    References
    ----------
    zhang2012efficient: Zhang, Jin, Chen, Lin, He, AAAI, 2012

    Examples
    --------
    >>> from onkel import SparseKLRClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = SparseKLRClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    variant: str = "margin"
    eta: float = 1.0
    R: float = math.inf
    c: float = 2.0
    average: bool | str = True
    paper: ClassVar[str] = ZHANG2012
    aliases: ClassVar[tuple[str, ...]] = ("Sparse KLR",)
    variants: ClassVar[Variants] = {"Margin": {"variant": "margin"}, "Auxiliary": {"variant": "auxiliary"}}
    cost: ClassVar[str] = "n d"
    examples: ClassVar[Settings] = (
        {"eta": 0.6},
        {"eta": 0.6, "R": 2.0},
        {"eta": 0.6, "variant": "auxiliary", "c": 1.5},
        {"eta": 0.6, "variant": "tight"},
    )

    def parts(self, kernel: Kernel) -> Parts:
        update = SampledLogistic(self.variant, self.eta, self.R, self.c)
        return Expansion(kernel, Unlimited()), Logistic(), update
