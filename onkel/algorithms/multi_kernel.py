"""Several kernels at once: one learner for each, and weights that find out which of them is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from onkel import native
from onkel.algorithms.feature_maps import FOGDClassifier, FOGDRegressor, NOGDClassifier, NOGDRegressor
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
from onkel.estimator import Array, Estimator, OneKernel, Parts
from onkel.faces import ClassifierFace, RegressorFace
from onkel.hedge import Hedge, seeds
from onkel.hypothesis import Expansion, Features
from onkel.kernels import Gaussian, Kernel, Polynomial, as_kernel
from onkel.learner import Learner
from onkel.losses import Loss, Squared, as_loss
from onkel.maps import Fourier
from onkel.restarts import Restarts
from onkel.updates import Gradient, Update

__all__ = [
    "AdaRakerClassifier",
    "AdaRakerRegressor",
    "FOGDOMKLClassifier",
    "FOGDOMKLRegressor",
    "NOGDOMKLClassifier",
    "NOGDOMKLRegressor",
    "OMKCClassifier",
    "OMKCRegressor",
    "RakerClassifier",
    "RakerRegressor",
    "SPAOMKLClassifier",
    "SPAOMKLRegressor",
]

HOI = (
    "Hoi, Jin, Zhao, Yang: Online multiple kernel classification. Machine Learning 90, 2013. "
    "doi:10.1007/s10994-012-5319-2"
)
LU = "Lu, Hoi, Sahoo, Zhao: Budget online multiple kernel learning. arXiv:1511.04813, 2015"
SHEN = (
    "Shen, Chen, Giannakis: Random feature-based online multi-kernel learning in environments with unknown dynamics. "
    "JMLR 20, 2019"
)

# The pool of the thesis: sigma = 2^-6 .. 2^6, and three polynomials
GAUSSIANS: tuple[Kernel, ...] = tuple(Gaussian(0.5 * 4.0**-i) for i in range(-6, 7))
POOL: tuple[Kernel, ...] = (*(Polynomial(p, 0.0) for p in (1, 2, 3)), *GAUSSIANS)


class Weighted(Estimator):
    """Algorithms that weigh several kernels."""

    @property
    def kernels_(self) -> tuple[Kernel, ...]:
        """The kernels with "auto" resolved."""
        check_is_fitted(self)
        return self._recipe._pool(self._run["columns"])

    @property
    def weights_(self) -> Array:
        """The weight of each kernel; they sum to 1."""
        check_is_fitted(self)
        return np.asarray(self._learner.weights)


class Pool(Weighted):
    """Algorithms with several kernels.

    Parameters
    ----------
    kernels : a list of kernels; None: the pool of the papers, thirteen Gaussians (and three polynomials)
    n_jobs : threads that score many rows, and on which kernels learn side by side where none depends on another
    random_state : see Estimator
    """

    kernels: Any = None
    default: ClassVar[tuple[Kernel, ...]] = POOL

    def _pool(self, columns: int) -> tuple[Kernel, ...]:
        kernels = self.default if self.kernels is None else tuple(self.kernels)
        if not kernels:
            raise ValueError("kernels must not be empty")
        return tuple(as_kernel(kernel).resolve(columns) for kernel in kernels)

    def parts(self, kernel: Kernel) -> Parts:
        """The recipe of the component with that kernel."""
        raise NotImplementedError

    def _hedge(self) -> dict[str, Any]:
        """How the components are combined."""
        raise NotImplementedError

    def _seeds(self, seed: int, count: int) -> list[int]:
        """The seed of each component."""
        return seeds(seed, count)

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Any:
        kernels = self._pool(run["columns"])
        # double whatever the rows are: small widths underflow in float32, and a component that is 0 learns nothing
        fine = {**run, "dtype": "float64"}
        learners = [
            Learner(*self.parts(kernel), outputs=outputs, keys=keys, **(fine | {"seed": seed}))
            for kernel, seed in zip(kernels, self._seeds(run["seed"], len(kernels)), strict=True)
        ]
        jobs = effective_n_jobs(self.n_jobs)
        return native.engine(Hedge(learners, seed=run["seed"], dtype=run["dtype"], jobs=jobs, **self._hedge()))

    @property
    def sizes_(self) -> Array:
        """The number of terms of each kernel."""
        check_is_fitted(self)
        return np.asarray(self._learner.sizes)


class _Vote(Pool, ClassifierFace):
    """Weights that follow mistakes."""

    discount: float = 0.99
    combination: str = "vote"

    def _hedge(self) -> dict[str, Any]:
        return {"discount": self.discount, "vote": self._choice("combination", vote=True, scores=False)}


class _Mean(Pool, RegressorFace):
    """Weights that follow the loss of the components."""

    eta_weights: float = 1.0
    epsilon: float = 0.1

    def _hedge(self) -> dict[str, Any]:
        loss = self.parts(Gaussian(1.0))[1]
        loss = Squared() if isinstance(loss, Squared) else loss  # a tube spares steps; the loss is r^2 / 2 all the same
        return {"loss": loss, "eta_weights": self.eta_weights, "vote": False}


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

    def _words(self) -> dict[str, Any]:
        """What else is said of a component that is named."""
        return {}

    def _component(self) -> tuple[OneKernel, int | None]:
        """The algorithm of each kernel, and the budget they have in common, if any."""
        if isinstance(self.component, OneKernel):
            base, step = self.component, None
            task = ClassifierFace if isinstance(self, ClassifierFace) else RegressorFace
            if base.average or not isinstance(base, task):
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


class OMKCClassifier(_OMKC, _Vote):
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
    paper: ClassVar[str] = HOI
    aliases: ClassVar[tuple[str, ...]] = ("OMKC", "OMKC-U", "OMKC-DD", "OMKC-SD", "OMKC-DS", "OMKC-SS", "DDPA", "SDPA")
    cost: ClassVar[str] = "m n d"

    def _hedge(self) -> dict[str, Any]:
        words = super()._hedge() | {"single": self.single, "strict": self.strict_discount}
        if self.single and not words["sample_combination"]:
            raise ValueError(f'single=True means nothing to the mode {self.mode!r}: use "DS" or "SS"')
        return words | ({"discount": 1.0} if self.mode == "U" else {})


class OMKCRegressor(_OMKC, _Mean):
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
    paper: ClassVar[str] = HOI
    aliases: ClassVar[tuple[str, ...]] = ("OMKC",)
    cost: ClassVar[str] = "m n d"
    forgets: ClassVar[bool] = True

    def _words(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}

    def _hedge(self) -> dict[str, Any]:
        return super()._hedge() | ({"eta_weights": 0.0} if self.mode == "U" else {})


class _SPA(Pool):
    """The fields of SPA-OMKL, and what they stand for."""

    eta: float = 0.1
    alpha: float = 1.0
    beta: float = 3.0
    smoothing: float = 0.001
    divide: bool = True

    def _single(self) -> OneKernel:
        """The algorithm of each kernel."""
        raise NotImplementedError

    def parts(self, kernel: Kernel) -> Parts:
        hypothesis, loss, update = self._single().parts(kernel)
        return hypothesis, loss, _divided(update, self.divide)

    def _hedge(self) -> dict[str, Any]:
        return super()._hedge() | {"scale_chance": True, "smoothing": self.smoothing}


class SPAOMKLClassifier(_SPA, _Vote):
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

    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("SPA-OMKL",)
    cost: ClassVar[str] = "m n d"

    def _single(self) -> OneKernel:
        return SPAClassifier(eta=self.eta, alpha=self.alpha, beta=self.beta)


class SPAOMKLRegressor(_SPA, _Mean):
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

    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("SPA-OMKL",)
    cost: ClassVar[str] = "m n d"
    forgets: ClassVar[bool] = True

    def _single(self) -> OneKernel:
        return SPARegressor(eta=self.eta, alpha=self.alpha, beta=self.beta, epsilon=self.epsilon)


class _Fourier(Pool):
    """The fields of pools of random features."""

    components: int = 100
    shared_draws: bool = False
    default: ClassVar[tuple[Kernel, ...]] = GAUSSIANS

    def _seeds(self, seed: int, count: int) -> list[int]:
        """Directions are a draw that belongs to the seed, stretched by the kernel: a common seed is a common draw."""
        if not isinstance(self.shared_draws, (bool, np.bool_)):
            raise ValueError(f"shared_draws must be True or False, got {self.shared_draws!r}")
        if self.shared_draws and len({type(kernel) for kernel in self._pool(1)}) > 1:
            raise ValueError("shared_draws=True needs kernels of one kind, that differ in their width")
        return [seed] * count if self.shared_draws else super()._seeds(seed, count)


class FOGDOMKLClassifier(_Fourier, _Vote):
    """Fourier online gradient descent with several kernels, and a weighted vote.

    Each kernel has random features and weights of its own;  th_i <- th_i discount^[component i was wrong]
    Several classes (an extension): as OMKCClassifier.

    Composition: Hedge of Learner(Features(Fourier(kernel, components)), loss, Gradient(eta))

    Parameters
    ----------
    components : D, number of random directions for each kernel
    eta : step, > 0; None: nothing to choose, as for FOGDClassifier
    shared_draws : True: the directions of all kernels are one draw, stretched by their widths, which is cheaper
    discount : gamma, in (0, 1]
    combination : "vote", or "scores": sum_i th_i f_i(x)
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    random_state, n_jobs : see Pool

    References
    ----------
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015
    """

    eta: float | None = 0.2
    loss: Loss | str = "hinge"
    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("FOGD-OMKL",)
    cost: ClassVar[str] = "m D d"

    def parts(self, kernel: Kernel) -> Parts:
        return FOGDClassifier(components=self.components, eta=self.eta, loss=self.loss).parts(kernel)


class FOGDOMKLRegressor(_Fourier, _Mean):
    """Fourier online gradient descent for regression with several kernels, an extension.

    As FOGDOMKLClassifier, with th_i <- th_i exp(-eta_weights l(f_i(x) - y)), and sum_i th_i f_i(x) as the prediction;
    the squared loss is r^2 / 2, steps are taken outside the tube |r| <= epsilon

    Composition: Hedge of Learner(Features(Fourier(kernel, components)), loss, Gradient(eta))

    Parameters
    ----------
    components, eta, shared_draws : as for FOGDOMKLClassifier
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    epsilon : half width of the tube of "squared" and "epsilon_insensitive", >= 0
    eta_weights : rate of the weights of kernels, >= 0
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    random_state, n_jobs : see Pool

    References
    ----------
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015; regression: extension
    """

    eta: float | None = 0.2
    loss: Loss | str = "squared"
    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("FOGD-OMKL",)
    cost: ClassVar[str] = "m D d"

    def parts(self, kernel: Kernel) -> Parts:
        single = FOGDRegressor(components=self.components, eta=self.eta, loss=self.loss, epsilon=self.epsilon)
        return single.parts(kernel)


class _Nystrom(Pool):
    """The fields of NOGD-OMKL."""

    budget: int = 100
    rank: int | None = None
    eta: float = 0.2
    switch: str = "lazy"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"rank": 100}  # as NOGD: a cut through equal eigenvalues is arbitrary

    def _landmarks(self) -> dict[str, Any]:
        return {"budget": self.budget, "rank": self.rank, "eta": self.eta, "switch": self.switch}


class NOGDOMKLClassifier(_Nystrom, _Vote):
    """Nyström online gradient descent with several kernels, and a weighted vote.

    Each kernel has landmarks of its own and switches when it has `budget` of them;
    th_i <- th_i discount^[component i was wrong]. Several classes (an extension): as OMKCClassifier.

    Composition: Hedge of Learner(Expansion(kernel, Landmarks(budget, rank, switch)), loss, Gradient(eta))

    Parameters
    ----------
    budget : B, number of landmarks for each kernel
    rank : k, number of features; None: a fifth of the budget
    eta : step, > 0
    switch : "lazy" or "eager", as for NOGDClassifier
    discount : gamma, in (0, 1]
    combination : "vote", or "scores": sum_i th_i f_i(x)
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    kernels, random_state, n_jobs : see Pool

    References
    ----------
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015
    """

    loss: Loss | str = "hinge"
    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("NOGD-OMKL",)
    cost: ClassVar[str] = "m B d"

    def parts(self, kernel: Kernel) -> Parts:
        return NOGDClassifier(loss=self.loss, **self._landmarks()).parts(kernel)


class NOGDOMKLRegressor(_Nystrom, _Mean):
    """Nyström online gradient descent for regression with several kernels, an extension.

    As NOGDOMKLClassifier, with th_i <- th_i exp(-eta_weights l(f_i(x) - y)), and sum_i th_i f_i(x) as the prediction

    Composition: Hedge of Learner(Expansion(kernel, Landmarks(budget, rank, switch)), loss, Gradient(eta))

    Parameters
    ----------
    budget, rank, eta, switch : as for NOGDOMKLClassifier
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    epsilon : half width of the tube of "squared" and "epsilon_insensitive", >= 0
    eta_weights : rate of the weights of kernels, >= 0
    kernels : None: thirteen Gaussians; steps of the squared loss diverge where eta k(x, x) > 2, as for polynomials soon
    random_state, n_jobs : see Pool

    References
    ----------
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015; regression: extension
    """

    loss: Loss | str = "squared"
    default: ClassVar[tuple[Kernel, ...]] = GAUSSIANS
    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("NOGD-OMKL",)
    cost: ClassVar[str] = "m B d"

    def parts(self, kernel: Kernel) -> Parts:
        return NOGDRegressor(loss=self.loss, epsilon=self.epsilon, **self._landmarks()).parts(kernel)


class _Raker(_Fourier):
    """The fields of Raker, and what they stand for."""

    components: int = 50
    eta: float = 0.5
    eta_weights: float | None = None
    lam: float = 0.0

    def _loss(self) -> Loss:
        raise NotImplementedError

    def parts(self, kernel: Kernel) -> Parts:
        return Features(Fourier(kernel, self.components)), self._loss(), Gradient(self.eta, 2 * self.lam)

    def _hedge(self) -> dict[str, Any]:
        rate = self.eta if self.eta_weights is None else self.eta_weights
        return {"loss": self._loss(), "eta_weights": rate, "vote": False}


class RakerClassifier(_Raker, ClassifierFace):
    """Raker: random features of several kernels, combined by scores; weights follow the loss.

    w_i <- w_i - eta (l'(f_i(x)) z_i(x) + 2 lam w_i);  th_i <- th_i exp(-eta_weights l(f_i(x))), normalised;
    score = sum_i th_i f_i(x)

    Composition: Hedge of Learner(Features(Fourier(kernel, components)), loss, Gradient(eta, 2 lam))

    Parameters
    ----------
    components : D, number of random directions for each kernel
    eta : step of the weights of features, > 0
    eta_weights : rate of the weights of kernels, > 0; None: eta
    lam : regularisation, >= 0
    shared_draws : True: the directions of all kernels are one draw, stretched by their widths, which is cheaper
    loss : "logistic", "hinge", "squared_hinge", "exponential" or an object
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    random_state, n_jobs : see Pool

    References
    ----------
    shen2019random: Shen, Chen, Giannakis, JMLR 20, 2019, algorithm 1
    """

    loss: Loss | str = "logistic"
    paper: ClassVar[str] = SHEN
    aliases: ClassVar[tuple[str, ...]] = ("Raker",)
    cost: ClassVar[str] = "m D d"

    def _loss(self) -> Loss:
        return as_loss(self.loss, "classification")


class RakerRegressor(_Raker, RegressorFace):
    """Raker for regression; scale the target to order one.

    As RakerClassifier, with l(f_i(x) - y)

    Composition: Hedge of Learner(Features(Fourier(kernel, components)), loss, Gradient(eta, 2 lam))

    Parameters
    ----------
    components, eta, eta_weights, lam, shared_draws : as for RakerClassifier
    loss : "squared", "absolute", "huber", "quantile" or an object
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    random_state, n_jobs : see Pool

    References
    ----------
    shen2019random: Shen, Chen, Giannakis, JMLR 20, 2019, algorithm 1
    """

    loss: Loss | str = "squared"
    paper: ClassVar[str] = SHEN
    aliases: ClassVar[tuple[str, ...]] = ("Raker",)
    cost: ClassVar[str] = "m D d"

    def _loss(self) -> Loss:
        return as_loss(self.loss, "regression")


class _AdaRaker(_Raker):
    """Raker in instances that restart."""

    eta: float = 10.0

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Any:
        maps = [Fourier(kernel, self.components) for kernel in self._pool(run["columns"])]
        restarts = Restarts(
            maps,
            self._seeds(run["seed"], len(maps)),
            self._loss(),
            eta=self.eta,
            eta_weights=self.eta if self.eta_weights is None else self.eta_weights,
            lam=self.lam,
            outputs=outputs,
            keys=keys,
            dtype=run["dtype"],
        )
        return native.engine(restarts)


class AdaRakerClassifier(_AdaRaker, RakerClassifier):
    """AdaRaker: Rakers that began 1, 2, 4, ... rounds ago, for streams that change.

    Instance j is a Raker with steps eta_j = min(1/2, eta / sqrt(2^j)) that begins anew in each round 2^j divides;
    h_j <- h_j exp(-eta_j (l(score of j) - l(score))), and h_j = eta_j at a restart;
    score = sum_j h_j (score of j) / sum_j h_j

    Composition: Restarts(Fourier(kernel, components) for each kernel, loss, eta, eta_weights, lam)

    Parameters
    ----------
    components : D, number of random directions for each kernel, which the instances share
    eta : step of the weights of features, > 0; that of instance j is min(1/2, eta / sqrt(2^j))
    eta_weights : rate of the weights of kernels, > 0, made smaller as eta is; None: eta
    lam : regularisation, >= 0
    shared_draws : True: the directions of all kernels are one draw, stretched by their widths
    loss : "logistic", "hinge", "squared_hinge", "exponential" or an object
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    random_state, n_jobs : see Estimator

    References
    ----------
    shen2019random: Shen, Chen, Giannakis, JMLR 20, 2019, algorithm 2
    """

    paper: ClassVar[str] = SHEN
    aliases: ClassVar[tuple[str, ...]] = ("AdaRaker",)
    cost: ClassVar[str] = "m D (d + log t)"


class AdaRakerRegressor(_AdaRaker, RakerRegressor):
    """AdaRaker for regression; scale the target to order one.

    As AdaRakerClassifier, with l(score - y)

    Composition: Restarts(Fourier(kernel, components) for each kernel, loss, eta, eta_weights, lam)

    Parameters
    ----------
    components, eta, eta_weights, lam, shared_draws : as for AdaRakerClassifier
    loss : "squared", "absolute", "huber", "quantile" or an object
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    random_state, n_jobs : see Estimator

    References
    ----------
    shen2019random: Shen, Chen, Giannakis, JMLR 20, 2019, algorithm 2
    """

    paper: ClassVar[str] = SHEN
    aliases: ClassVar[tuple[str, ...]] = ("AdaRaker",)
    cost: ClassVar[str] = "m D (d + log t)"
    forgets: ClassVar[bool] = True
