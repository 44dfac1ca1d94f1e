"""Several kernels at once: one learner for each, and weights that find out which of them is right."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from onkel.algorithms.gradients import BOGDClassifier, BOGDRegressor
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
from onkel.estimator import OneKernel, Parts, Variants
from onkel.hypothesis import Expansion
from onkel.kernels import Gaussian, Kernel
from onkel.pool import Mean, Pool, Vote
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


class _OMKC(Pool):
    """The fields of OMKC, and what they stand for."""

    mode: str = "DD"
    component: Any = "perceptron"
    C: float | None = None
    smoothing: float = 0.001
    budget: int | None = None
    shared: bool | None = None
    divide: bool = True
    words: ClassVar[dict[str, str]] = {"Gradient.eta": "C", "Perceptron.eta": "C"}
    modes: ClassVar[dict[str, tuple[bool, bool]]] = {}  # are updates, are combinations sampled?
    components: ClassVar[dict[str, tuple[type[OneKernel], str | None]]] = {}  # and what they call C
    paper: ClassVar[str] = HOI
    cost: ClassVar[str] = "m n d"

    def _words(self) -> dict[str, Any]:
        """What else is said of a component that is named."""
        return {}

    def _component(self) -> tuple[OneKernel, int | None]:
        """The algorithm of each kernel, and the budget they have in common, if any."""
        if isinstance(self.component, OneKernel):
            base, step = self.component, None
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
        can = isinstance(f, Expansion) and f.budget.shares
        if self.shared and not can:
            raise ValueError(f"shared=True means nothing to the component {self.component!r}: leave it out")
        return can and bool(self._sampled()[0] if self.shared is None else self.shared)

    def _sampled(self) -> tuple[bool, bool]:
        """Are updates, and are combinations sampled?"""
        update, combination = self._choice("mode", **self.modes)
        return update, combination

    def parts(self, kernel: Kernel) -> Parts:
        hypothesis, loss, update = self._component()[0].parts(kernel)
        return hypothesis, loss, _divided(update, self.divide)

    def _hedge(self) -> dict[str, Any]:
        update, combination = self._sampled()
        words = {"sample_update": update, "sample_combination": combination, "smoothing": self.smoothing}
        return super()._hedge() | words | {"budget": self._component()[1]}


def _divided(update: Update, divide: bool) -> Update:
    """The update with or without the division by k(x, x)."""
    if divide is True:
        return update
    if "divide" not in update.get_params():
        raise ValueError(f"divide=False means nothing to {update!r}: leave it out")
    return update.replace(divide=divide)


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
    discount : gamma, in (0, 1]
    smoothing : delta, between 0 and 1; means nothing to "U" and "DD"
    budget : total number of terms, of components on a budget; None: their own (100) for each kernel
    shared : True: one budget, in which a kernel that finds no room removes a term of its own; False: an equal share for
        each; None: as in the papers, True for "SD" and "SS"
    divide : False leaves out the division by k(x, x) in the steps of "pa" and "bpa", as in the released program
    combination : "vote", or "scores": sum_i th_i f_i(x)
    single : "DS" and "SS": one component, drawn with probability th_i, answers
    strict_discount : a score of 0 is no mistake, as in the released program with "pa"
    kernels, random_state, n_jobs : see Pool

    References
    ----------
    hoi2013online: Hoi, Jin, Zhao, Yang, Machine Learning 90, 2013. doi:10.1007/s10994-012-5319-2
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015 (budgets)
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

    def _hedge(self) -> dict[str, Any]:
        words = super()._hedge() | {"single": self.single, "strict": self.strict_discount}
        if self.single and not words["sample_combination"]:
            raise ValueError(f'single=True means nothing to the mode {self.mode!r}: use "DS" or "SS"')
        return words | ({"discount": 1.0} if self.mode == "U" else {})


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
    eta_weights : rate of the weights of kernels, >= 0
    epsilon : half width of the tube of the named components, >= 0
    smoothing, budget, shared, divide : as for OMKCClassifier
    kernels, random_state, n_jobs : see Pool

    References
    ----------
    hoi2013online: Hoi, Jin, Zhao, Yang, Machine Learning 90, 2013. doi:10.1007/s10994-012-5319-2; regression: extension
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

    def _words(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}

    def _hedge(self) -> dict[str, Any]:
        return super()._hedge() | ({"eta_weights": 0.0} if self.mode == "U" else {})


class _SPAOMKL(Pool):
    """The fields of SPA-OMKL, and what they stand for."""

    eta: float = 0.1
    alpha: float = 1.0
    beta: float = 3.0
    smoothing: float = 0.001
    divide: bool = True
    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("SPA-OMKL",)
    cost: ClassVar[str] = "m n d"

    def parts(self, kernel: Kernel) -> Parts:
        hypothesis, loss, update = super().parts(kernel)
        return hypothesis, loss, _divided(update, self.divide)

    def _hedge(self) -> dict[str, Any]:
        return super()._hedge() | {"scale_chance": True, "smoothing": self.smoothing}


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
    divide : False leaves out the division by k(x, x), as in the released program
    combination : "vote", or "scores": sum_i th_i f_i(x)
    kernels, random_state, n_jobs : see Pool

    References
    ----------
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015
    """

    member: ClassVar[type[OneKernel]] = SPAClassifier


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
    """

    member: ClassVar[type[OneKernel]] = SPARegressor
    forgets: ClassVar[bool] = True
