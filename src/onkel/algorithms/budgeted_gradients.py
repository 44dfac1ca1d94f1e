"""Gradient learners on a budget: when full, a term is removed, projected on others, or merged with another."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from onkel.budgets import (
    Budget,
    Merge,
    ProjectSmallest,
    RemoveOldest,
    RemoveRandom,
    RemoveSmallest,
    RemoveWeighted,
)
from onkel.core.part import is_number, refuse_ignored
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Parts, Settings, Variants
from onkel.faces.one_kernel import OneKernel
from onkel.faces.regressor import Regressor
from onkel.hypotheses import Expansion
from onkel.kernels import Kernel
from onkel.losses import Hinge, Loss
from onkel.updates import Gradient, Pegasos

__all__ = [
    "BOGDClassifier",
    "BOGDPlusPlusClassifier",
    "BOGDPlusPlusRegressor",
    "BOGDRegressor",
    "BSGDClassifier",
]

ZHAO = (
    "Zhao, Wang, Wu, Jin, Hoi: Fast bounded online gradient descent algorithms for scalable kernel-based "
    "online learning. ICML, 2012"
)
WANG = (
    "Wang, Crammer, Vucetic: Breaking the curse of kernelization: budgeted stochastic gradient descent for "
    "large-scale SVM training. JMLR 13, 2012"
)


class _Bounded(OneKernel):
    """The fields of BOGD and BOGD++, and what they stand for."""

    budget: int = 100
    eta: float = 0.1
    lam: float = 0.001
    cap: float | None = None
    paper: ClassVar[str] = ZHAO
    cost: ClassVar[str] = "B d"

    def _budget(self, cap: float | None) -> Budget:
        """The budget: which term is removed; no coefficient exceeds `cap`."""
        raise NotImplementedError

    def parts(self, kernel: Kernel) -> Parts:
        loss, update = self._loss(), Gradient(self.eta, self.lam)
        # `cap` is in units of eta; if it is not a number, the part raises the error
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
    """Bounded online gradient descent: when full, a random term is removed and the others are scaled up.

    f <- (1 - eta lam) f - eta l'(f(x)) k(x, .); when full, a term drawn uniformly is removed, the rest is multiplied
    by B / (B - 1), and f is scaled so that no coefficient exceeds eta cap

    Composition: Learner(Expansion(kernel, RemoveRandom(budget, unbiased, eta * cap)), loss, Gradient(eta, lam))

    Parameters
    ----------
    budget : B, largest number of terms
    eta, lam : step and regularisation, eta lam < 1
    removal : "uniform" or "fifo" (the oldest); "fifo" with unbiased=False is what lu2016large ran (`bogd_lu`)
    unbiased : multiply the other terms by B / (B - 1); needs B >= 2
    cap : gamma, bound on coefficients in units of eta; None: none
    loss : "hinge" or another classification loss
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    zhao2012fast: Zhao, Wang, Wu, Jin, Hoi, ICML, 2012

    Examples
    --------
    >>> from onkel import BOGDClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = BOGDClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9, model.n_support_ <= 50
    (True, True)
    """

    loss: Loss | str = "hinge"
    examples: ClassVar[Settings] = (
        {"budget": 15, "eta": 0.3, "lam": 0.01},
        {"budget": 15, "eta": 0.3, "lam": 0.01, "cap": 1.5},
        {"budget": 15, "eta": 0.3, "lam": 0.01, "unbiased": False},
        {"budget": 15, "eta": 0.3, "lam": 0.01, "removal": "fifo"},
        {"budget": 15, "eta": 0.3, "lam": 0.01, "removal": "fifo", "unbiased": False},
        {"budget": 15, "eta": 0.3, "lam": 0.01, "loss": "logistic"},
    )


class BOGDRegressor(_BOGD, Regressor):
    """Bounded online gradient descent for regression; by default the oldest term is removed and nothing is rescaled.

    f <- (1 - eta lam) f + eta (y - f(x)) k(x, .) outside the tube, and only shrinks inside

    Composition: Learner(Expansion(kernel, RemoveOldest(budget)), Squared(epsilon), Gradient(eta, lam))

    Parameters
    ----------
    budget, eta, lam, removal, unbiased, cap : see BOGDClassifier; "uniform" with unbiased=True is unstable here
    loss : "squared" or another regression loss
    epsilon : half width of the tube, >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    lu2016large: Lu, Hoi, Wang, Zhao, Liu, JMLR 17, 2016 (as run there)

    Examples
    --------
    >>> from onkel import BOGDRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = BOGDRegressor(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.3, model.n_support_ <= 50
    (True, True)
    """

    eta: float = 0.2
    removal: str = "fifo"
    unbiased: bool = False
    loss: Loss | str = "squared"
    epsilon: float = 0.1
    forgets: ClassVar[bool] = True
    examples: ClassVar[Settings] = (
        {"budget": 15, "eta": 0.3, "lam": 0.01},
        {"budget": 15, "eta": 0.3, "lam": 0.1, "epsilon": 0.3},
        {"budget": 15, "eta": 0.3, "lam": 0.01, "removal": "uniform", "unbiased": True, "cap": 1.0},
        {"budget": 15, "eta": 0.3, "lam": 0.01, "loss": "absolute"},
    )


class _BOGDPlusPlus(_Bounded):
    aliases: ClassVar[tuple[str, ...]] = ("BOGD++",)

    def _budget(self, cap: float | None) -> Budget:
        return RemoveWeighted(self.budget, cap)


class BOGDPlusPlusClassifier(_BOGDPlusPlus, Classifier):
    """BOGD++: bounded online gradient descent whose random removal prefers small terms and stays unbiased.

    when full, term i stays with probability q_i = min(1, s |a_i| sqrt(k_ii)), sum q_i = B - 1;
    the terms that stay are divided by q_i

    Composition: Learner(Expansion(kernel, RemoveWeighted(budget, eta * cap)), loss, Gradient(eta, lam))

    Parameters
    ----------
    budget : B, largest number of terms, >= 2
    eta, lam : step and regularisation, eta lam < 1
    cap : gamma, bound on coefficients in units of eta; None: none
    loss : "hinge" or another classification loss
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    zhao2012fast: Zhao, Wang, Wu, Jin, Hoi, ICML, 2012. Several classes: extension

    Examples
    --------
    >>> from onkel import BOGDPlusPlusClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = BOGDPlusPlusClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9, model.n_support_ <= 50
    (True, True)
    """

    loss: Loss | str = "hinge"
    examples: ClassVar[Settings] = (
        {"budget": 15, "eta": 0.3, "lam": 0.01},
        {"budget": 15, "eta": 0.3, "lam": 0.01, "cap": 1.5},
        {"budget": 15, "eta": 0.3, "lam": 0.01, "loss": "logistic"},
    )


class BOGDPlusPlusRegressor(_BOGDPlusPlus, Regressor):
    """BOGD++ for regression (an extension; its random rescaling is less stable than BOGDRegressor's default).

    Composition: Learner(Expansion(kernel, RemoveWeighted(budget, eta * cap)), Squared(epsilon), Gradient(eta, lam))

    Parameters
    ----------
    budget, eta, lam, cap : see BOGDPlusPlusClassifier
    loss : "squared" or another regression loss
    epsilon : half width of the tube, >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    zhao2012fast: Zhao, Wang, Wu, Jin, Hoi, ICML, 2012; regression: extension

    Examples
    --------
    >>> from onkel import BOGDPlusPlusRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = BOGDPlusPlusRegressor(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > -0.05, model.n_support_ <= 50
    (True, True)
    """

    eta: float = 0.2
    cap: float | None = 10.0
    loss: Loss | str = "squared"
    epsilon: float = 0.1
    forgets: ClassVar[bool] = True
    examples: ClassVar[Settings] = (
        {"budget": 15, "eta": 0.3, "lam": 0.01, "cap": 1.0},
        {"budget": 15, "eta": 0.3, "lam": 0.01, "cap": None, "epsilon": 0.3, "loss": "epsilon_insensitive"},
    )


class BSGDClassifier(OneKernel, Classifier):
    """Budgeted stochastic gradient descent: Pegasos on a budget.

    f <- (1 - 1/t) f;  if y f(x) < 1:  f <- f + y / (lam t) k(x, .);  over budget, the smallest term is removed

    Composition: Learner(Expansion(kernel, RemoveSmallest(budget), ProjectSmallest(budget) or Merge(budget, search)),
    Hinge(), Pegasos(lam))

    Parameters
    ----------
    budget : B, largest number of terms
    lam : regularisation, > 0
    maintenance : "remove"; "project": the smallest term is projected on the others; "merge": it is merged with another
        term (Gaussian kernels only)
    removal : which term "remove" removes: "smallest" (of |a|^2 k(x, x), oldest among equals), "random" or "oldest"
    search : how "merge" finds the other term: "exact", or by a "table" (one output), which is much faster
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    wang2012breaking: Wang, Crammer, Vucetic, JMLR 13, 2012
    glasmachers2018speeding: Glasmachers, Qaadan, ICPRAM, 2018 (the table)

    Examples
    --------
    >>> from onkel import BSGDClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = BSGDClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.8, model.n_support_ <= 50
    (True, True)
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
    examples: ClassVar[Settings] = (
        {"budget": 15, "lam": 0.05, "removal": "smallest"},
        {"budget": 15, "lam": 0.05, "removal": "random"},
        {"budget": 15, "lam": 0.05, "removal": "oldest"},
        {"budget": 15, "lam": 0.05, "maintenance": "project"},
        {"budget": 15, "lam": 0.05, "maintenance": "merge"},
        {"budget": 15, "lam": 0.1, "maintenance": "merge", "search": "table"},
    )

    def parts(self, kernel: Kernel) -> Parts:
        removal = self._choice("removal", smallest=RemoveSmallest, random=RemoveRandom, oldest=RemoveOldest)
        merge = partial(Merge, search=self._choice("search", exact="exact", table="table"))
        kind = self._choice("maintenance", remove=removal, project=ProjectSmallest, merge=merge)
        for name, maintenance in (("removal", "remove"), ("search", "merge")):
            if self.maintenance != maintenance:
                refuse_ignored(self, f"maintenance={self.maintenance!r}", name)
        return Expansion(kernel, kind(self.budget)), Hinge(), Pegasos(self.lam)
