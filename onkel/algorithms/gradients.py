"""Gradient learners: steps against the slope of a loss, with or without forgetting, and their budgets."""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar

from onkel.budgets import (
    Budget,
    RemoveOldest,
    RemoveRandom,
    RemoveSmallest,
    RemoveWeighted,
    Truncate,
    Unlimited,
)
from onkel.estimator import OneKernel, Parts, Variants
from onkel.faces import Classifier, Detector, Regressor
from onkel.hypothesis import Expansion
from onkel.kernels import Kernel
from onkel.losses import Hinge, Logistic, Loss, Squared, as_loss
from onkel.merging import Merge
from onkel.part import is_number
from onkel.projections import ProjectSmallest
from onkel.updates import AdaptiveThreshold, Gradient, Implicit, Pegasos, Update

__all__ = [
    "BOGDClassifier",
    "BOGDPlusPlusClassifier",
    "BOGDPlusPlusRegressor",
    "BOGDRegressor",
    "BSGDClassifier",
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
ZHAO = (
    "Zhao, Wang, Wu, Jin, Hoi: Fast bounded online gradient descent algorithms for scalable kernel-based "
    "online learning. ICML, 2012"
)
WANG = (
    "Wang, Crammer, Vucetic: Breaking the curse of kernelization: budgeted stochastic gradient descent for "
    "large-scale SVM training. JMLR 13, 2012"
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
    kernel, average, random_state : see Estimator

    References
    ----------
    kivinen2004online: Kivinen, Smola, Williamson, IEEE TSP 52, 2004 (without regulariser). doi:10.1109/TSP.2004.830991
    """

    loss: Loss | str = "hinge"
    aliases: ClassVar[tuple[str, ...]] = ("kernel OGD",)


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
    kernel, average, random_state : see Estimator

    References
    ----------
    kivinen2004online: Kivinen, Smola, Williamson, IEEE TSP 52, 2004. doi:10.1109/TSP.2004.830991
    """

    eta: float = 0.2
    loss: Loss | str = "squared"
    epsilon: float = 0.1


class _NORMA(OneKernel):
    """The fields of NORMA, and what they stand for."""

    eta: float = 0.1
    lam: float = 0.01
    truncation: int | None = None
    words: ClassVar[dict[str, str]] = {"Truncate.rounds": "truncation"}
    paper: ClassVar[str] = KIVINEN
    cost: ClassVar[str] = "n d"

    def _expansion(self, kernel: Kernel) -> Expansion:
        return Expansion(kernel, Unlimited() if self.truncation is None else Truncate(self.truncation))


class NORMAClassifier(_NORMA, Classifier):
    """NORMA: gradient descent on a regularised loss, so that old examples fade.

    f <- (1 - eta lam) f;  if y f(x) <= rho:  f <- f + eta y k(x, .)
    With nu: rho falls by eta (1 - nu) on a margin error and rises by eta nu otherwise.

    Composition: Learner(Expansion(kernel, Unlimited() or Truncate(truncation)), Hinge(rho, closed=True),
    Gradient(eta, lam) or AdaptiveThreshold(eta, lam, nu, rho))

    Parameters
    ----------
    eta, lam : step and regularisation, eta lam < 1
    rho : margin (its start, with nu)
    nu : aimed fraction of margin errors, in (0, 1); None: fixed margin
    truncation : tau, number of rounds a term lives; None: for ever
    loss : "hinge", or another classification loss; rho and nu concern losses with a margin
    kernel, average, random_state : see Estimator

    References
    ----------
    kivinen2004online: Kivinen, Smola, Williamson, IEEE TSP 52, 2004. doi:10.1109/TSP.2004.830991
    """

    rho: float = 1.0
    nu: float | None = None
    loss: Loss | str = "hinge"
    words: ClassVar[dict[str, str]] = _NORMA.words | {"Hinge.margin": "rho", "AdaptiveThreshold.start_at": "rho"}
    variants: ClassVar[Variants] = {"nu-NORMA": {"nu": 0.1}}

    def parts(self, kernel: Kernel) -> Parts:
        loss = as_loss(self.loss, self.task, margin=self.rho, closed=True)
        update: Update = Gradient(self.eta, self.lam)
        if self.nu is not None:
            update = AdaptiveThreshold(self.eta, self.lam, self.nu, start_at=self.rho)
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
    nu : aimed fraction of examples outside the tube, in (0, 1); None: fixed tube
    clamp : keep an adaptive tube from becoming negative (published: it may)
    truncation : tau, number of rounds a term lives; None: for ever
    loss : "epsilon_insensitive", "squared" or another regression loss
    kernel, average, random_state : see Estimator

    References
    ----------
    kivinen2004online: Kivinen, Smola, Williamson, IEEE TSP 52, 2004. doi:10.1109/TSP.2004.830991
    """

    eta: float = 0.2
    epsilon: float = 0.1
    nu: float | None = None
    clamp: bool = False
    loss: Loss | str = "epsilon_insensitive"
    words: ClassVar[dict[str, str]] = _NORMA.words | {"AdaptiveThreshold.start_at": "epsilon"}
    variants: ClassVar[Variants] = {"nu-NORMA": {"nu": 0.1}}

    def parts(self, kernel: Kernel) -> Parts:
        if self.nu is not None and self.loss == "squared":
            raise ValueError(
                f"AdaptiveThreshold.nu must be None with the squared loss, which has no tube, got {self.nu}"
            )
        epsilon = None if self.loss == "squared" else self.epsilon
        loss = as_loss(self.loss, self.task, epsilon=epsilon)
        update: Update = Gradient(self.eta, self.lam)
        if self.nu is not None:
            update = AdaptiveThreshold(self.eta, self.lam, self.nu, self.epsilon, margin=False, clamp=self.clamp)
        return self._expansion(kernel), loss, update


class NORMADetector(_NORMA, Detector):
    """NORMA for novelty detection: f is large where examples are usual, and a fraction nu lies below rho.

    f <- (1 - eta lam) f;  if f(x) < rho:  f <- f + eta k(x, .) and rho falls by eta (1 - nu), else rho rises by eta nu

    Composition: Learner(Expansion(kernel, Unlimited() or Truncate(truncation)), Hinge(),
    AdaptiveThreshold(eta, lam, nu, 0))

    Parameters
    ----------
    eta, lam : step and regularisation, eta lam < 1
    nu : aimed fraction of novel examples, in (0, 1)
    truncation : tau, number of rounds a term lives; None: for ever
    kernel, average, random_state : see Estimator

    References
    ----------
    kivinen2004online: Kivinen, Smola, Williamson, IEEE TSP 52, 2004. doi:10.1109/TSP.2004.830991
    """

    nu: float = 0.1
    variants: ClassVar[Variants] = {"NORMA novelty detection": {}}

    def parts(self, kernel: Kernel) -> Parts:
        update = AdaptiveThreshold(self.eta, self.lam, self.nu, start_at=0.0)
        return self._expansion(kernel), Hinge(), update


class PegasosClassifier(Classifier):
    """Pegasos: stochastic gradient descent on the SVM objective with steps 1 / (lam t).

    f <- (1 - 1/t) f;  if y f(x) < 1:  f <- f + y / (lam t) k(x, .);  with project: f <- f min(1, 1 / (sqrt(lam) |f|))

    Composition: Learner(Expansion(kernel, Unlimited()), Hinge(), Pegasos(lam, project))

    Parameters
    ----------
    lam : regularisation, > 0
    project : keep |f| <= 1 / sqrt(lam)
    kernel, average, random_state : see Estimator

    References
    ----------
    shalev2011pegasos: Shalev-Shwartz et al., Mathematical Programming 127, 2011. doi:10.1007/s10107-010-0420-4
    """

    lam: float = 0.01
    project: bool = False
    paper: ClassVar[str] = SHALEV
    aliases: ClassVar[tuple[str, ...]] = ("kernel Pegasos",)
    cost: ClassVar[str] = "n d"

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Unlimited()), Hinge(), Pegasos(self.lam, self.project)


class KLRSGDClassifier(Classifier):
    """Kernel logistic regression by stochastic gradient descent: every example becomes a term.

    f <- project onto |f| <= R of  f + eta y / (1 + exp(y f(x))) k(x, .)

    Composition: Learner(Expansion(kernel, Unlimited()), Logistic(), Gradient(eta, radius=R))

    Parameters
    ----------
    eta : step, > 0
    R : radius of the ball f is kept in
    kernel, average, random_state : see Estimator

    References
    ----------
    zhang2013online: Zhang et al., ICML, 2013 ("Baseline"). Several classes: extension
    """

    eta: float = 0.1
    R: float = math.inf
    words: ClassVar[dict[str, str]] = {"Gradient.radius": "R"}
    paper: ClassVar[str] = ZHANG2013
    aliases: ClassVar[tuple[str, ...]] = ("KLR-SGD", "Baseline", "non-conservative KLR")
    cost: ClassVar[str] = "n d"

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Unlimited()), Logistic(), Gradient(self.eta, radius=self.R)


class KLMSRegressor(Regressor):
    """Kernel least mean squares: every example becomes a term.

    f <- f + eta (y - f(x)) k(x, .)

    Composition: Learner(Expansion(kernel, Unlimited()), Squared(), Gradient(eta))

    Parameters
    ----------
    eta : step, > 0; stable for eta < 2 / k(x, x)
    kernel, average, random_state : see Estimator

    References
    ----------
    liu2008kernel: Liu, Pokharel, Principe, IEEE TSP 56, 2008. doi:10.1109/TSP.2007.907881
    """

    eta: float = 0.2
    paper: ClassVar[str] = LIU
    cost: ClassVar[str] = "n d"

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Unlimited()), Squared(), Gradient(self.eta)


class ILKClassifier(Classifier):
    """Implicit online learning with kernels: the step solves its own small optimisation problem.

    f <- (f + q y k(x, .)) / (1 + eta lam),  q = clip((1 + eta lam - y f(x)) / k(x, x), 0, eta)

    Composition: Learner(Expansion(kernel, Unlimited()), Hinge(), Implicit(eta, lam))

    Parameters
    ----------
    eta, lam : step, > 0, and regularisation, >= 0
    kernel, average, random_state : see Estimator

    References
    ----------
    cheng2006implicit: Cheng et al., NIPS 19, 2006. Several classes: extension
    """

    eta: float = 0.1
    lam: float = 0.01
    paper: ClassVar[str] = CHENG
    aliases: ClassVar[tuple[str, ...]] = ("implicit online learning with kernels",)
    cost: ClassVar[str] = "n d"

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Unlimited()), Hinge(), Implicit(self.eta, self.lam)


class _Bounded(OneKernel):
    """The fields of BOGD and BOGD++, and what they stand for."""

    budget: int = 100
    eta: float = 0.1
    lam: float = 0.001
    cap: float | None = None
    paper: ClassVar[str] = ZHAO
    cost: ClassVar[str] = "B d"

    def _budget(self, cap: float | None) -> Budget:
        """Which term leaves; no coefficient exceeds `cap`."""
        raise NotImplementedError

    def parts(self, kernel: Kernel) -> Parts:
        loss, update = self._loss(), Gradient(self.eta, self.lam)
        # from units of the step; what is no number is for the part to refuse
        cap = self.eta * self.cap if self.cap is not None and is_number(self.cap) else self.cap
        return Expansion(kernel, self._budget(cap)), loss, update


class _BOGD(_Bounded):
    removal: str = "uniform"
    unbiased: bool = True
    variants: ClassVar[Variants] = {"bogd_lu": {"removal": "fifo", "unbiased": False}}

    def _budget(self, cap: float | None) -> Budget:
        kind = self._choice("removal", uniform=RemoveRandom, fifo=RemoveOldest)
        budget: Budget = kind(self.budget, self.unbiased, cap)
        return budget


class BOGDClassifier(_BOGD, Classifier):
    """Bounded online gradient descent: when full, a term leaves and the others make up for it.

    f <- (1 - eta lam) f - eta l'(f(x)) k(x, .); when full, a term drawn uniformly leaves, the rest is multiplied
    by B / (B - 1), and f is scaled so that no coefficient exceeds eta cap

    Composition: Learner(Expansion(kernel, RemoveRandom(budget, unbiased, eta * cap)), loss, Gradient(eta, lam))

    Parameters
    ----------
    budget : B, largest number of terms
    eta, lam : step and regularisation, eta lam < 1
    removal : "uniform" or "fifo" (the oldest); "fifo" with unbiased=False is what lu2016large ran (`bogd_lu`)
    unbiased : multiply the survivors by B / (B - 1); needs B >= 2
    cap : gamma, bound on coefficients in units of eta; None: none
    loss : "hinge" or another classification loss
    kernel, average, random_state : see Estimator

    References
    ----------
    zhao2012fast: Zhao, Wang, Wu, Jin, Hoi, ICML, 2012
    """

    loss: Loss | str = "hinge"


class BOGDRegressor(_BOGD, Regressor):
    """Bounded online gradient descent for regression, by default in the stable form: the oldest leaves, no rescaling.

    f <- (1 - eta lam) f + eta (y - f(x)) k(x, .) outside the tube, and only shrinks inside

    Composition: Learner(Expansion(kernel, RemoveOldest(budget)), Squared(epsilon), Gradient(eta, lam))

    Parameters
    ----------
    budget, eta, lam, removal, unbiased, cap : see BOGDClassifier; "uniform" with unbiased=True is unstable here
    loss : "squared" or another regression loss
    epsilon : half width of the tube, >= 0
    kernel, average, random_state : see Estimator

    References
    ----------
    lu2016large: Lu, Hoi, Wang, Zhao, Liu, JMLR 17, 2016 (as run there)
    """

    eta: float = 0.2
    removal: str = "fifo"
    unbiased: bool = False
    loss: Loss | str = "squared"
    epsilon: float = 0.1
    forgets: ClassVar[bool] = True


class _BOGDPlusPlus(_Bounded):
    aliases: ClassVar[tuple[str, ...]] = ("BOGD++",)

    def _budget(self, cap: float | None) -> Budget:
        return RemoveWeighted(self.budget, cap)


class BOGDPlusPlusClassifier(_BOGDPlusPlus, Classifier):
    """BOGD++: bounded online gradient descent whose random removal prefers small terms and stays unbiased.

    when full, term i stays with probability q_i = min(1, s |a_i| sqrt(k_ii)), sum q_i = B - 1;
    survivors are divided by q_i

    Composition: Learner(Expansion(kernel, RemoveWeighted(budget, eta * cap)), loss, Gradient(eta, lam))

    Parameters
    ----------
    budget : B, largest number of terms, >= 2
    eta, lam : step and regularisation, eta lam < 1
    cap : gamma, bound on coefficients in units of eta; None: none
    loss : "hinge" or another classification loss
    kernel, average, random_state : see Estimator

    References
    ----------
    zhao2012fast: Zhao, Wang, Wu, Jin, Hoi, ICML, 2012. Several classes: extension
    """

    loss: Loss | str = "hinge"


class BOGDPlusPlusRegressor(_BOGDPlusPlus, Regressor):
    """BOGD++ for regression (an extension; its random rescaling is less stable than BOGDRegressor's default).

    Composition: Learner(Expansion(kernel, RemoveWeighted(budget, eta * cap)), Squared(epsilon), Gradient(eta, lam))

    Parameters
    ----------
    budget, eta, lam, cap : see BOGDPlusPlusClassifier
    loss : "squared" or another regression loss
    epsilon : half width of the tube, >= 0
    kernel, average, random_state : see Estimator

    References
    ----------
    zhao2012fast: Zhao, Wang, Wu, Jin, Hoi, ICML, 2012; regression: extension
    """

    eta: float = 0.2
    cap: float | None = 10.0
    loss: Loss | str = "squared"
    epsilon: float = 0.1
    forgets: ClassVar[bool] = True


class BSGDClassifier(Classifier):
    """Budgeted stochastic gradient descent: Pegasos on a budget.

    f <- (1 - 1/t) f;  if y f(x) < 1:  f <- f + y / (lam t) k(x, .);  over budget, the smallest term leaves

    Composition: Learner(Expansion(kernel, RemoveSmallest(budget), ProjectSmallest(budget) or Merge(budget, search)),
    Hinge(), Pegasos(lam))

    Parameters
    ----------
    budget : B, largest number of terms
    lam : regularisation, > 0
    maintenance : "remove"; "project": what the others can express of the smallest term stays; "merge": it becomes one
        with another term (Gaussian kernels only)
    removal : which term "remove" takes: "smallest" (of |a|^2 k(x, x), oldest among equals), "random" or "oldest"
    search : how "merge" finds the other term: "exact", or by a "table" (one output), which is much faster
    kernel, average, random_state : see Estimator

    References
    ----------
    wang2012breaking: Wang, Crammer, Vucetic, JMLR 13, 2012
    glasmachers2018speeding: Glasmachers, Qaadan, ICPRAM, 2018 (the table)
    """

    budget: int = 100
    lam: float = 0.01
    maintenance: str = "remove"
    removal: str = "smallest"
    search: str = "exact"
    paper: ClassVar[str] = WANG
    variants: ClassVar[Variants] = {
        "BSGD-R": {"maintenance": "remove"},
        "BSGD-P": {"maintenance": "project"},
        "BSGD-M": {"maintenance": "merge"},
    }
    cost: ClassVar[str] = "B d"

    def parts(self, kernel: Kernel) -> Parts:
        removal = self._choice("removal", smallest=RemoveSmallest, random=RemoveRandom, oldest=RemoveOldest)
        merge = partial(Merge, search=self._choice("search", exact="exact", table="table"))
        kind = self._choice("maintenance", remove=removal, project=ProjectSmallest, merge=merge)
        return Expansion(kernel, kind(self.budget)), Hinge(), Pegasos(self.lam)
