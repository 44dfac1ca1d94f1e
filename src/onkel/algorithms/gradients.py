"""Gradient learners: steps against the slope of a loss, with or without forgetting."""

from __future__ import annotations

import math
from typing import ClassVar

from onkel.budgets import (
    Truncate,
    Unlimited,
)
from onkel.core.errors import Refused
from onkel.core.part import refuse_ignored
from onkel.faces.classifier import Classifier
from onkel.faces.detector import Detector
from onkel.faces.estimator import Parts, Settings, Variants
from onkel.faces.one_kernel import OneKernel
from onkel.faces.regressor import Regressor
from onkel.hypotheses import Expansion
from onkel.kernels import Kernel
from onkel.losses import Hinge, Huber, Logistic, Loss, Quantile, Squared, as_loss
from onkel.updates import AdaptiveThreshold, Gradient, Implicit, Pegasos, Update

__all__ = [
    "ILKClassifier",
    "KLMSRegressor",
    "KLRSGDClassifier",
    "NORMAClassifier",
    "NORMADetector",
    "NORMARegressor",
    "OGDClassifier",
    "OGDRegressor",
    "PegasosClassifier",
]

KIVINEN = (
    "Kivinen, Smola, Williamson: Online learning with kernels. "
    "IEEE Transactions on Signal Processing 52, 2004. doi:10.1109/TSP.2004.830991"
)
LIU = (
    "Liu, Pokharel, Principe: The kernel least-mean-square algorithm. "
    "IEEE Transactions on Signal Processing 56, 2008. doi:10.1109/TSP.2007.907881"
)
CHENG = "Cheng, Vishwanathan, Schuurmans, Wang, Caelli: Implicit online learning with kernels. NIPS 19, 2006"
SHALEV = (
    "Shalev-Shwartz, Singer, Srebro, Cotter: Pegasos: primal estimated sub-gradient solver for SVM. "
    "Mathematical Programming 127, 2011. doi:10.1007/s10107-010-0420-4"
)
ZHANG2013 = "Zhang, Yi, Jin, Lin, He: Online kernel learning with a near optimal sparsity bound. ICML, 2013"


class _OGD(OneKernel):
    """The fields of OGD, and what they stand for."""

    eta: float = 0.1
    schedule: str = "constant"
    paper: ClassVar[str] = KIVINEN
    cost: ClassVar[str] = "n d"

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Unlimited()), self._loss(), Gradient(self.eta, schedule=self.schedule)


class OGDClassifier(_OGD, Classifier):
    """Online gradient descent in the kernel's function space.

    f <- f - eta_t l'(f(x)) k(x, .), with no term where the loss has no slope

    Composition: Learner(Expansion(kernel, Unlimited()), loss, Gradient(eta, schedule=schedule))

    Parameters
    ----------
    eta : step, > 0
    schedule : eta_t is "constant", "1/t" or "1/sqrt(t)" times eta
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    kivinen2004online: Kivinen, Smola, Williamson, IEEE TSP 52, 2004 (without regulariser). doi:10.1109/TSP.2004.830991
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithm 5

    Examples
    --------
    >>> from onkel import OGDClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = OGDClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "hinge"
    aliases: ClassVar[tuple[str, ...]] = ("kernel OGD",)
    examples: ClassVar[Settings] = (
        {"eta": 0.1, "loss": "hinge"},
        {"eta": 0.1, "loss": "squared_hinge"},
        {"eta": 0.1, "loss": "logistic"},
        {"eta": 0.1, "loss": "exponential"},
        {"eta": 0.8, "schedule": "1/t"},
        {"eta": 0.8, "schedule": "1/sqrt(t)"},
    )


class OGDRegressor(_OGD, Regressor):
    """Online gradient descent for regression.

    f <- f - eta_t l'(f(x) - y) k(x, .); the squared loss is (f(x) - y)^2 / 2 outside the tube |f(x) - y| <= epsilon

    Composition: Learner(Expansion(kernel, Unlimited()), loss, Gradient(eta, schedule=schedule))

    Parameters
    ----------
    eta : step, > 0
    schedule : eta_t is "constant", "1/t" or "1/sqrt(t)" times eta
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    epsilon : half width of the tube of "squared" and "epsilon_insensitive", >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    kivinen2004online: Kivinen, Smola, Williamson, IEEE TSP 52, 2004. doi:10.1109/TSP.2004.830991

    Examples
    --------
    >>> from onkel import OGDRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = OGDRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.5
    True
    """

    eta: float = 0.2
    loss: Loss | str = "squared"
    epsilon: float = 0.1
    examples: ClassVar[Settings] = (
        {"eta": 0.3, "loss": "squared"},
        {"eta": 0.3, "loss": "absolute"},
        {"eta": 0.3, "loss": "epsilon_insensitive"},
        {"eta": 0.3, "loss": "huber"},
        {"eta": 0.3, "loss": "quantile"},
        {"eta": 0.3, "loss": Huber(0.3)},
        {"eta": 0.3, "loss": Quantile(0.7)},
        {"eta": 0.3, "epsilon": 0.4},
        {"eta": 0.8, "schedule": "1/t"},
        {"eta": 0.8, "schedule": "1/sqrt(t)"},
    )


class _NORMA(OneKernel):
    """The fields of NORMA, and what they stand for."""

    eta: float = 0.1
    lam: float = 0.01
    truncation: int | None = None
    paper: ClassVar[str] = KIVINEN
    cost: ClassVar[str] = "n d"

    def _expansion(self, kernel: Kernel) -> Expansion:
        return Expansion(kernel, Unlimited() if self.truncation is None else Truncate(self.truncation))


class NORMAClassifier(_NORMA, Classifier):
    """NORMA: gradient descent on a regularised loss, so that coefficients of old examples shrink.

    f <- (1 - eta lam) f;  if y f(x) <= rho:  f <- f + eta y k(x, .)
    With nu: rho falls by eta (1 - nu) on a margin error and rises by eta nu otherwise.

    Composition: Learner(Expansion(kernel, Unlimited() or Truncate(truncation)), Hinge(rho, closed=True),
    Gradient(eta, lam) or AdaptiveThreshold(eta, lam, nu, rho))

    Parameters
    ----------
    eta, lam : step and regularisation, eta lam < 1
    rho : margin (its start, with nu)
    nu : wanted fraction of margin errors, in (0, 1); None: fixed margin
    truncation : tau, number of rounds a term lives; None: for ever
    loss : "hinge", or another classification loss; rho and nu are for losses with a margin
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    kivinen2004online: Kivinen, Smola, Williamson, IEEE TSP 52, 2004. doi:10.1109/TSP.2004.830991

    Examples
    --------
    >>> from onkel import NORMAClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = NORMAClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    rho: float = 1.0
    nu: float | None = None
    loss: Loss | str = "hinge"
    variants: ClassVar[Variants] = {"nu-NORMA": {"nu": 0.1}}
    examples: ClassVar[Settings] = (
        {"eta": 0.3, "lam": 0.1},
        {"eta": 0.3, "lam": 0.1, "rho": 0.5, "nu": 0.4},
        {"eta": 0.3, "lam": 0.1, "rho": 0.5, "truncation": 20},
        {"eta": 0.3, "lam": 0.1, "nu": 0.4, "truncation": 20},
        {"eta": 0.3, "lam": 0.1, "loss": "logistic"},
    )

    def parts(self, kernel: Kernel) -> Parts:
        loss = as_loss(self.loss, self.task, margin=self.rho, closed=True)
        update: Update = Gradient(self.eta, self.lam)
        if self.nu is not None:
            update = AdaptiveThreshold(self.eta, self.lam, self.nu, start_at=self.rho)
        elif self.loss not in ("hinge", "squared_hinge"):
            refuse_ignored(self, f"loss={self.loss!r} and nu=None", "rho")
        return self._expansion(kernel), loss, update


class NORMARegressor(_NORMA, Regressor):
    """NORMA regression, with a tube that adapts to a fraction nu of examples outside it.

    f <- (1 - eta lam) f;  if |y - f(x)| > epsilon:  f <- f + eta sgn(y - f(x)) k(x, .)
    With nu: epsilon grows by eta (1 - nu) outside the tube and falls by eta nu inside.
    Squared loss: f <- f + eta (y - f(x)) k(x, .)

    Composition: Learner(Expansion(kernel, Unlimited() or Truncate(truncation)), EpsilonInsensitive(epsilon),
    Gradient(eta, lam) or AdaptiveThreshold(eta, lam, nu, epsilon, margin=False))

    Parameters
    ----------
    eta, lam : step and regularisation, eta lam < 1
    epsilon : half width of the tube (its start, with nu); the squared loss has none
    nu : wanted fraction of examples outside the tube, in (0, 1); None: fixed tube
    clamp : keep an adaptive tube from becoming negative (published: it may)
    truncation : tau, number of rounds a term lives; None: for ever
    loss : "epsilon_insensitive", "squared" or another regression loss
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    kivinen2004online: Kivinen, Smola, Williamson, IEEE TSP 52, 2004. doi:10.1109/TSP.2004.830991

    Examples
    --------
    >>> from onkel import NORMARegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = NORMARegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.45
    True
    """

    eta: float = 0.2
    epsilon: float = 0.1
    nu: float | None = None
    clamp: bool = False
    loss: Loss | str = "epsilon_insensitive"
    variants: ClassVar[Variants] = {"nu-NORMA": {"nu": 0.1}}
    examples: ClassVar[Settings] = (
        {"eta": 0.15, "lam": 0.1},
        {"eta": 0.15, "lam": 0.1, "epsilon": 0.3, "nu": 0.4},
        {"eta": 0.15, "lam": 0.1, "epsilon": 0.3, "nu": 0.9, "clamp": True},
        {"eta": 0.15, "lam": 0.1, "truncation": 20},
        {"eta": 0.15, "lam": 0.1, "nu": 0.4, "truncation": 20},
        {"eta": 0.15, "lam": 0.1, "loss": "squared"},
    )

    def parts(self, kernel: Kernel) -> Parts:
        if self.nu is not None and self.loss == "squared":
            raise Refused(type(self).__name__, "nu", "None with the squared loss, which has no tube", self.nu)
        epsilon = None if self.loss == "squared" else self.epsilon
        loss = as_loss(self.loss, self.task, epsilon=epsilon)
        update: Update = Gradient(self.eta, self.lam)
        if self.nu is not None:
            update = AdaptiveThreshold(self.eta, self.lam, self.nu, self.epsilon, margin=False, clamp=self.clamp)
        else:
            refuse_ignored(self, "nu=None", "clamp")
            if self.loss != "epsilon_insensitive":
                refuse_ignored(self, f"loss={self.loss!r} and nu=None", "epsilon")
        return self._expansion(kernel), loss, update


class NORMADetector(_NORMA, Detector):
    """NORMA for novelty detection: f is large where examples are usual, and a fraction nu lies below rho.

    f <- (1 - eta lam) f;  if f(x) < rho:  f <- f + eta k(x, .) and rho falls by eta (1 - nu), else rho rises by eta nu

    Composition: Learner(Expansion(kernel, Unlimited() or Truncate(truncation)), Hinge(),
    AdaptiveThreshold(eta, lam, nu, 0))

    Parameters
    ----------
    eta, lam : step and regularisation, eta lam < 1
    nu : wanted fraction of novel examples, in (0, 1)
    truncation : tau, number of rounds a term lives; None: for ever
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    kivinen2004online: Kivinen, Smola, Williamson, IEEE TSP 52, 2004. doi:10.1109/TSP.2004.830991

    Examples
    --------
    >>> from onkel import NORMADetector, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = NORMADetector(nu=0.1).fit(stream.X)
    >>> model.predict(stream.X[:3])
    array([-1,  1,  1])
    """

    nu: float = 0.1
    variants: ClassVar[Variants] = {"NORMA novelty detection": {}}
    examples: ClassVar[Settings] = (
        {"eta": 0.3, "lam": 0.1, "nu": 0.4},
        {"eta": 0.3, "lam": 0.1, "nu": 0.4, "truncation": 20},
    )

    def parts(self, kernel: Kernel) -> Parts:
        update = AdaptiveThreshold(self.eta, self.lam, self.nu, start_at=0.0)
        return self._expansion(kernel), Hinge(), update


class PegasosClassifier(OneKernel, Classifier):
    """Pegasos: stochastic gradient descent on the SVM objective with steps 1 / (lam t).

    f <- (1 - 1/t) f;  if y f(x) < 1:  f <- f + y / (lam t) k(x, .);  with project: f <- f min(1, 1 / (sqrt(lam) |f|))

    Composition: Learner(Expansion(kernel, Unlimited()), Hinge(), Pegasos(lam, project))

    Parameters
    ----------
    lam : regularisation, > 0
    project : keep |f| <= 1 / sqrt(lam)
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    shalev2011pegasos: Shalev-Shwartz et al., Mathematical Programming 127, 2011. doi:10.1007/s10107-010-0420-4

    Examples
    --------
    >>> from onkel import PegasosClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = PegasosClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    lam: float = 0.01
    project: bool = False
    paper: ClassVar[str] = SHALEV
    aliases: ClassVar[tuple[str, ...]] = ("kernel Pegasos",)
    cost: ClassVar[str] = "n d"
    examples: ClassVar[Settings] = ({"lam": 0.05}, {"lam": 0.05, "project": True})

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Unlimited()), Hinge(), Pegasos(self.lam, self.project)


class KLRSGDClassifier(OneKernel, Classifier):
    """Kernel logistic regression by stochastic gradient descent: every example becomes a term.

    f <- project onto |f| <= R of  f + eta y / (1 + exp(y f(x))) k(x, .)

    Composition: Learner(Expansion(kernel, Unlimited()), Logistic(), Gradient(eta, radius=R))

    Parameters
    ----------
    eta : step, > 0
    R : radius of the ball in which f is kept
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    zhang2013online: Zhang et al., ICML, 2013, section 5.1 ("Baseline"). Several classes: extension

    Examples
    --------
    >>> from onkel import KLRSGDClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = KLRSGDClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.85
    True
    """

    eta: float = 0.1
    R: float = math.inf
    paper: ClassVar[str] = ZHANG2013
    aliases: ClassVar[tuple[str, ...]] = ("KLR-SGD", "Baseline", "non-conservative KLR")
    cost: ClassVar[str] = "n d"
    examples: ClassVar[Settings] = ({"eta": 0.5}, {"eta": 0.5, "R": 2.0})

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Unlimited()), Logistic(), Gradient(self.eta, radius=self.R)


class KLMSRegressor(OneKernel, Regressor):
    """Kernel least mean squares: every example becomes a term.

    f <- f + eta (y - f(x)) k(x, .)

    Composition: Learner(Expansion(kernel, Unlimited()), Squared(), Gradient(eta))

    Parameters
    ----------
    eta : step, > 0; stable for eta < 2 / k(x, x)
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    liu2008kernel: Liu, Pokharel, Principe, IEEE TSP 56, 2008. doi:10.1109/TSP.2007.907881

    Examples
    --------
    >>> from onkel import KLMSRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = KLMSRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.5
    True
    """

    eta: float = 0.2
    paper: ClassVar[str] = LIU
    cost: ClassVar[str] = "n d"
    examples: ClassVar[Settings] = ({"eta": 0.15},)

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Unlimited()), Squared(), Gradient(self.eta)


class ILKClassifier(OneKernel, Classifier):
    """Implicit online learning with kernels: the step solves its own small optimisation problem.

    f <- (f + q y k(x, .)) / (1 + eta lam),  q = clip((1 + eta lam - y f(x)) / k(x, x), 0, eta)

    Composition: Learner(Expansion(kernel, Unlimited()), Hinge(), Implicit(eta, lam))

    Parameters
    ----------
    eta, lam : step, > 0, and regularisation, >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    cheng2006implicit: Cheng et al., NIPS 19, 2006. Several classes: extension

    Examples
    --------
    >>> from onkel import ILKClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = ILKClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    eta: float = 0.1
    lam: float = 0.01
    paper: ClassVar[str] = CHENG
    aliases: ClassVar[tuple[str, ...]] = ("implicit online learning with kernels",)
    cost: ClassVar[str] = "n d"
    examples: ClassVar[Settings] = ({"eta": 0.3, "lam": 0.1}, {"eta": 2.0, "lam": 0.0})

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Unlimited()), Hinge(), Implicit(self.eta, self.lam)
