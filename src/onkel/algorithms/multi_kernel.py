"""Several kernels at once: one learner for each, weighted by how well it has predicted so far."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from onkel.algorithms.budgeted_gradients import BOGDClassifier, BOGDRegressor
from onkel.algorithms.gradients import NORMAClassifier
from onkel.algorithms.passive_aggressive import PAClassifier, PARegressor
from onkel.algorithms.perceptrons import (
    ForgetronClassifier,
    ForgetronRegressor,
    KernelPerceptronClassifier,
    KernelPerceptronRegressor,
    RBPClassifier,
    RBPRegressor,
)
from onkel.algorithms.projections import BPAClassifier
from onkel.algorithms.sampling import SPAClassifier, SPARegressor
from onkel.core.part import refuse_ignored
from onkel.faces.estimator import Parts, Settings, Variants
from onkel.faces.one_kernel import OneKernel
from onkel.faces.pool import FEW, MIXED, Mean, Pool, Vote
from onkel.kernels import Gaussian, Kernel
from onkel.learners.weighting import ByMistakes, Sampling, Weighting
from onkel.updates import Update

__all__ = [
    "OMKCClassifier",
    "OMKCRegressor",
    "SPAOMKLClassifier",
    "SPAOMKLRegressor",
]

HOI = (
    "Hoi, Jin, Zhao, Yang: Online multiple kernel classification. Machine Learning 90, 2013. "
    "doi:10.1007/s10994-012-5319-2"
)
LU = "Lu, Hoi, Sahoo, Zhao: Budget online multiple kernel learning. arXiv:1511.04813, 2015"


class _Dividing(Pool):
    """Pools whose steps may leave out the division by k(x, x)."""

    divide: bool = True

    def _divided(self, update: Update, kernel: Kernel) -> Update:
        """The update of the component with that kernel, with or without the division."""
        if self.divide is True:
            return update
        if "divide" not in update.get_params():
            raise ValueError(f"divide=False means nothing to {update!r}: leave it out")
        changed = update.replace(divide=self.divide)
        if all(each.unit for each in self._pool(1)):
            refuse_ignored(self, "kernels for which k(x, x) is 1", "divide")
        return update if kernel.unit else changed  # where k(x, x) is 1 both are the same


class _OMKC(_Dividing):
    """The fields of OMKC, and what they stand for."""

    mode: str = "DD"
    component: Any = "perceptron"
    C: float | None = None
    smoothing: float = 0.001
    budget: int | None = None
    shared: bool | None = None
    modes: ClassVar[dict[str, tuple[bool, bool]]] = {}  # are the updates sampled, and is the combination?
    components: ClassVar[dict[str, tuple[type[OneKernel], str | None]]] = {}  # an estimator, and its name for C
    paper: ClassVar[str] = HOI
    cost: ClassVar[str] = "m n d"

    def _words(self) -> dict[str, Any]:
        """Further parameters of a component that is given by name."""
        return {}

    def _component(self) -> tuple[OneKernel, int | None]:
        """The algorithm of each kernel, and the budget they have in common, if any."""
        if isinstance(self.component, OneKernel):
            base, step = self.component, None
            refuse_ignored(self, f"component={base!r}", *self._words())
            if base.average or base.task != self.task:
                raise ValueError(f"component must be for the same task, and with average=False, got {base!r}")
        else:
            kind, step = self._choice("component", **self.components)
            base = kind(**self._words())
        fields = base.get_params(deep=False)
        changes: dict[str, Any] = {}
        if step is not None:
            changes[step] = 0.1 if self.C is None else self.C
        elif self.C is not None:
            raise ValueError(f"C means nothing to the component {self.component!r}, got {self.C!r}: leave it out")
        own, count = fields.get("budget"), len(self._pool(1))
        if self.budget is not None and "budget" not in fields:
            raise ValueError(
                f"budget means nothing to the component {self.component!r}, got {self.budget!r}: leave it out, or use "
                '"rbp", "forgetron", "bogd" or another component on a budget'
            )
        total = self.budget if self.budget is not None else None if own is None else own * count
        shares = self._shares(base)
        if total is not None:
            if not isinstance(total, Integral) or isinstance(total, bool) or total < count:
                raise ValueError(f"budget must be an integer >= {count}, one term for each kernel, got {total!r}")
            changes["budget"] = int(total) if shares else int(total) // count
        return type(base)(**(fields | changes)), changes["budget"] if shares else None

    def _shares(self, base: OneKernel) -> bool:
        """Is there one budget for all kernels?"""
        if self.shared is not None and not isinstance(self.shared, (bool, np.bool_)):
            raise ValueError(f"shared must be None, True or False, got {self.shared!r}")
        f = base.parts(Gaussian(1.0))[0]
        can = "room" in f.offers
        if self.shared and not can:
            raise ValueError(f"shared=True means nothing to the component {self.component!r}: leave it out")
        return can and bool(self._sampled()[0] if self.shared is None else self.shared)

    def _sampled(self) -> tuple[bool, bool]:
        """Are the updates sampled, and is the combination?"""
        update, combination = self._choice("mode", **self.modes)
        return update, combination

    def parts(self, kernel: Kernel) -> Parts:
        hypothesis, loss, update = self._component()[0].parts(kernel)
        return hypothesis, loss, self._divided(update, kernel)

    def _hedge(self) -> dict[str, Any]:
        return super()._hedge() | {"sampling": self._sampling(), "budget": self._component()[1]}

    def _sampling(self) -> Sampling:
        update, combination = self._sampled()
        if not update and not combination:
            refuse_ignored(self, f"mode={self.mode!r}", "smoothing")
        return Sampling(update, "some" if combination else "all", smoothing=self.smoothing)


class OMKCClassifier(_OMKC, Vote):
    """Online multiple kernel classification: a perceptron for each kernel, and a weighted vote.

    th_i <- th_i discount^[component i was wrong], normalised;  score = sum_i th_i sgn(f_i(x)), in -1 .. 1
    Modes: "U" equal weights; "DD" all learn and all vote; "SD" only those drawn with probability
    (1 - smoothing) th_i / max th + smoothing learn and lose weight; "DS" only those drawn vote; "SS" both.
    Several classes (an extension): each component votes for its best class.

    Composition: Hedge of Learner(Expansion(kernel, budget), Mistake(), Perceptron()) and the like for each kernel

    Parameters
    ----------
    mode : "DD", "SD", "DS", "SS" or "U"
    component : "perceptron", "pa" (PA-I), "rbp", "forgetron", "bogd", "bpa" (BPA-S), or an estimator, whose own kernel
        does not matter
    C : aggressiveness of "pa" and "bpa", step of "bogd"; None: 0.1
    discount : gamma, in (0, 1]; not with "U"
    smoothing : delta, between 0 and 1; not with "U" and "DD"
    budget : total number of terms, of components on a budget; None: their own (100) for each kernel
    shared : True: one budget, in which a kernel that finds no room removes a term of its own; False: an equal share for
        each; None: as in the papers, True for "SD" and "SS"
    divide : False: leave out the division by k(x, x) in the steps of "pa" and "bpa", as in the authors' program
    combination : "vote", or "scores": sum_i th_i f_i(x)
    single : "DS" and "SS": one component, drawn with probability th_i, answers
    strict_discount : a score of 0 is no mistake, as in the authors' program with "pa"
    kernels, random_state, n_jobs : see Pool

    References
    ----------
    hoi2013online: Hoi, Jin, Zhao, Yang, Machine Learning 90, 2013. doi:10.1007/s10994-012-5319-2
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015 (budgets)
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithms 17 ("DD") and 18 ("SD")

    Examples
    --------
    >>> from onkel import OMKCClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = OMKCClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    single: bool = False
    strict_discount: bool = False
    modes: ClassVar[dict[str, tuple[bool, bool]]] = {
        "U": (False, False),
        "DD": (False, False),
        "SD": (True, False),
        "DS": (False, True),
        "SS": (True, True),
    }
    components: ClassVar[dict[str, tuple[type[OneKernel], str | None]]] = {
        "perceptron": (KernelPerceptronClassifier, None),
        "pa": (PAClassifier, "C"),
        "rbp": (RBPClassifier, None),
        "forgetron": (ForgetronClassifier, None),
        "bogd": (BOGDClassifier, "eta"),
        "bpa": (BPAClassifier, "C"),
    }
    variants: ClassVar[Variants] = {
        "OMKC-U": {"mode": "U"},
        "OMKC-DD": {"mode": "DD"},
        "OMKC-SD": {"mode": "SD"},
        "OMKC-DS": {"mode": "DS"},
        "OMKC-SS": {"mode": "SS"},
        "DDPA": {"mode": "DD", "component": "pa"},
        "SDPA": {"mode": "SD", "component": "pa"},
    }
    examples: ClassVar[Settings] = (
        {"kernels": MIXED, "discount": 0.7, "component": "rbp", "budget": 40},
        {"kernels": MIXED, "mode": "U"},
        {"kernels": MIXED, "discount": 0.7, "component": "pa", "C": 0.4, "mode": "SS", "divide": False},
        {"kernels": MIXED, "discount": 0.7, "component": "bogd", "mode": "SD", "smoothing": 0.1, "budget": 15},
        {"kernels": MIXED, "discount": 0.7, "component": "forgetron", "budget": 40, "shared": True},
        {
            "kernels": MIXED,
            "discount": 0.7,
            "component": "bpa",
            "mode": "DS",
            "budget": 15,
            "single": True,
            "combination": "scores",
        },
        {
            "kernels": MIXED,
            "discount": 0.7,
            "component": NORMAClassifier(eta=0.3, nu=0.4, truncation=5),
            "strict_discount": True,
        },
    )

    def _weighting(self) -> Weighting:
        if self.mode == "U":
            refuse_ignored(self, 'mode="U"', "discount", "strict_discount")
            return ByMistakes(1.0)
        return ByMistakes(self.discount, self.strict_discount)

    def _sampling(self) -> Sampling:
        sampling = super()._sampling()
        if self.single and sampling.answer == "all":
            raise ValueError(f'single=True means nothing to the mode {self.mode!r}: use "DS" or "SS"')
        return sampling.replace(answer="one") if self.single else sampling


class OMKCRegressor(_OMKC, Mean):
    """Online multiple kernel regression, an extension: a perceptron for each kernel, and a weighted mean.

    th_i <- th_i exp(-eta_weights l(f_i(x) - y)), normalised, with l the loss of the components;
    prediction = sum_i th_i f_i(x)

    Composition: Hedge of Learner(Expansion(kernel, budget), EpsilonInsensitive(epsilon), Perceptron(C)) and the like

    Parameters
    ----------
    mode : "DD", "SD" or "U", as for OMKCClassifier
    component : "perceptron", "pa", "rbp", "forgetron", "bogd", or an estimator
    C : step; aggressiveness of "pa"; None: 0.1
    eta_weights : rate of the weights of kernels, >= 0; not with "U"
    epsilon : half width of the tube of the named components, >= 0
    smoothing, budget, shared, divide : as for OMKCClassifier
    kernels, random_state, n_jobs : see Pool

    References
    ----------
    hoi2013online: Hoi, Jin, Zhao, Yang, Machine Learning 90, 2013. doi:10.1007/s10994-012-5319-2; regression: extension

    Examples
    --------
    >>> from onkel import OMKCRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = OMKCRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.45
    True
    """

    modes: ClassVar[dict[str, tuple[bool, bool]]] = {"U": (False, False), "DD": (False, False), "SD": (True, False)}
    components: ClassVar[dict[str, tuple[type[OneKernel], str | None]]] = {
        "perceptron": (KernelPerceptronRegressor, "eta"),
        "pa": (PARegressor, "C"),
        "rbp": (RBPRegressor, "eta"),
        "forgetron": (ForgetronRegressor, "eta"),
        "bogd": (BOGDRegressor, "eta"),
    }
    forgets: ClassVar[bool] = True
    examples: ClassVar[Settings] = (
        {"kernels": FEW, "component": "rbp", "budget": 40, "shared": True, "C": 0.3, "epsilon": 0.3},
        {"kernels": MIXED, "component": "pa", "mode": "SD", "smoothing": 0.1, "divide": False},
        {"kernels": FEW, "component": "bogd", "mode": "SD", "budget": 15, "eta_weights": 0.2},
        {"kernels": FEW, "mode": "U"},
    )

    def _words(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}

    def _weighting(self) -> Weighting:
        weighting = super()._weighting()
        if self.mode == "U":
            refuse_ignored(self, 'mode="U"', "eta_weights")
            return weighting.replace(eta_weights=0.0)
        return weighting


class _SPAOMKL(_Dividing):
    """The fields of SPA-OMKL, and what they stand for."""

    eta: float = 0.1
    alpha: float = 1.0
    beta: float = 3.0
    smoothing: float = 0.001
    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("SPA-OMKL",)
    cost: ClassVar[str] = "m n d"

    def parts(self, kernel: Kernel) -> Parts:
        hypothesis, loss, update = super().parts(kernel)
        return hypothesis, loss, self._divided(update, kernel)

    def _hedge(self) -> dict[str, Any]:
        return super()._hedge() | {"sampling": Sampling(scale=True, smoothing=self.smoothing)}


class SPAOMKLClassifier(_SPAOMKL, Vote):
    """Sparse passive-aggressive learning with several kernels.

    Each component takes a step with probability rho_i p_i, rho_i = min(alpha, l_i) / beta and
    p_i = (1 - smoothing) th_i / max th + smoothing, of length tau = min(eta / rho_i, l_i / k_i(x, x));
    th_i <- th_i discount^[component i was wrong] in every round. Several classes (an extension): as OMKCClassifier.

    Composition: Hedge of Learner(Expansion(kernel, Unlimited()), Hinge(), SampledPassiveAggressive(eta, alpha, beta))

    Parameters
    ----------
    eta, alpha, beta : as for SPAClassifier
    discount : gamma, in (0, 1]
    smoothing : delta, between 0 and 1
    divide : False: leave out the division by k(x, x), as in the authors' program
    combination : "vote", or "scores": sum_i th_i f_i(x)
    kernels, random_state, n_jobs : see Pool

    References
    ----------
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithm 14

    Examples
    --------
    >>> from onkel import SPAOMKLClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = SPAOMKLClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    member: ClassVar[type[OneKernel]] = SPAClassifier
    examples: ClassVar[Settings] = (
        {"kernels": MIXED, "discount": 0.7, "beta": 2.0, "smoothing": 0.1},
        {"kernels": MIXED, "discount": 0.7, "eta": 1.0, "alpha": 0.5, "divide": False, "combination": "scores"},
    )


class SPAOMKLRegressor(_SPAOMKL, Mean):
    """Sparse passive-aggressive regression with several kernels, an extension.

    As SPAOMKLClassifier, with the loss max(0, |y - f_i(x)| - epsilon), th_i <- th_i exp(-eta_weights l_i), and
    sum_i th_i f_i(x) as the prediction

    Composition: Hedge of Learner(Expansion(kernel, Unlimited()), EpsilonInsensitive(epsilon),
    SampledPassiveAggressive(eta, alpha, beta))

    Parameters
    ----------
    eta, alpha, beta, epsilon : as for SPARegressor
    eta_weights : rate of the weights of kernels, >= 0
    smoothing, divide : as for SPAOMKLClassifier
    kernels, random_state, n_jobs : see Pool

    References
    ----------
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015; regression: extension
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithm 14

    Examples
    --------
    >>> from onkel import SPAOMKLRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = SPAOMKLRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.4
    True
    """

    member: ClassVar[type[OneKernel]] = SPARegressor
    forgets: ClassVar[bool] = True
    examples: ClassVar[Settings] = (
        {"kernels": FEW, "beta": 2.0},
        {"kernels": MIXED, "eta": 0.5, "alpha": 0.5, "smoothing": 0.1, "divide": False},
        {"kernels": FEW, "eta_weights": 0.2, "epsilon": 0.3},
    )
