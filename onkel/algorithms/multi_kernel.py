"""Several kernels at once: one learner for each, and weights that find out which of them is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from onkel import native
from onkel.budgets import Budget, Forget, Landmarks, RemoveRandom, Unlimited
from onkel.estimator import Array, Estimator, Parts
from onkel.faces import ClassifierFace, RegressorFace
from onkel.hedge import Hedge, seeds
from onkel.hypothesis import Expansion, Features
from onkel.kernels import Gaussian, Kernel, Polynomial, as_kernel
from onkel.learner import Learner
from onkel.losses import Hinge, Loss, Mistake, as_loss
from onkel.maps import Fourier
from onkel.restarts import Restarts
from onkel.sampling import SampledPassiveAggressive
from onkel.updates import Gradient, PassiveAggressive, Perceptron

__all__ = [
    "AdaRakerClassifier",
    "AdaRakerRegressor",
    "FOGDOMKLClassifier",
    "NOGDOMKLClassifier",
    "OMKCClassifier",
    "RakerClassifier",
    "RakerRegressor",
    "SPAOMKLClassifier",
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


class Pool(Estimator):
    """Algorithms with several kernels.

    Parameters
    ----------
    kernels : a list of kernels; None: the pool of the papers, thirteen Gaussians (and three polynomials)
    random_state, n_jobs : see Estimator
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

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Any:
        kernels = self._pool(run["columns"])
        # double whatever the rows are: small widths underflow in float32, and a component that is 0 learns nothing
        fine = {**run, "dtype": "float64"}
        learners = [
            native.engine(Learner(*self.parts(kernel), outputs=outputs, keys=keys, **(fine | {"seed": seed})))
            for kernel, seed in zip(kernels, seeds(run["seed"], len(kernels)), strict=True)
        ]
        return Hedge(learners, seed=run["seed"], dtype=run["dtype"], **self._hedge())

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


class OMKCClassifier(Pool, ClassifierFace):
    """Online multiple kernel classification: a perceptron for each kernel, and a weighted vote.

    th_i <- th_i discount^[component i was wrong], normalised;  score = sum_i th_i sgn(f_i(x)), in -1 .. 1
    Modes: "U" equal weights; "DD" all learn and all vote; "SD" only those drawn with probability
    (1 - smoothing) th_i / max th + smoothing learn and lose weight; "DS" only those drawn vote; "SS" both.
    Several classes (an extension): each component votes for its best class.

    Composition: Hedge of Learner(Expansion(kernel, budget), Mistake(), Perceptron()) and the like for each kernel

    Parameters
    ----------
    mode : "DD", "SD", "DS", "SS" or "U"
    component : "perceptron", "pa" (PA-I with C), "rbp", "forgetron" or "bogd"
    C : aggressiveness of "pa"; step of "bogd"
    discount : gamma, in (0, 1]
    smoothing : delta, between 0 and 1
    budget : total number of terms, for bounded components: each gets an equal share
    kernels, random_state, n_jobs : see Pool

    References
    ----------
    hoi2013online: Hoi, Jin, Zhao, Yang, Machine Learning 90, 2013. doi:10.1007/s10994-012-5319-2
    """

    mode: str = "DD"
    component: str = "perceptron"
    C: float = 0.1
    discount: float = 0.99
    smoothing: float = 0.001
    budget: int = 1600
    paper: ClassVar[str] = HOI
    aliases: ClassVar[tuple[str, ...]] = ("OMKC", "OMKC-U", "OMKC-DD", "OMKC-SD", "OMKC-DS", "OMKC-SS", "DDPA", "SDPA")
    cost: ClassVar[str] = "m n d"

    def parts(self, kernel: Kernel) -> Parts:
        if self.component == "pa":
            return Expansion(kernel, Unlimited()), Hinge(), PassiveAggressive("I", self.C)
        share = max(1, self.budget // max(1, len(self._pool(1))))
        makers: dict[str, Any] = {
            "perceptron": Unlimited,
            "rbp": lambda: RemoveRandom(share),
            "forgetron": lambda: Forget(share),
            "bogd": lambda: RemoveRandom(max(share, 2), unbiased=True),
        }
        budget: Budget = self._choice("component", **makers, pa=None)()
        if self.component == "bogd":
            return Expansion(kernel, budget), Hinge(), Gradient(self.C)
        return Expansion(kernel, budget), Mistake(), Perceptron()

    def _hedge(self) -> dict[str, Any]:
        update, combination = self._choice(
            "mode", U=(False, False), DD=(False, False), SD=(True, False), DS=(False, True), SS=(True, True)
        )
        discount = 1.0 if self.mode == "U" else self.discount
        return {
            "discount": discount,
            "smoothing": self.smoothing,
            "sample_update": update,
            "sample_combination": combination,
        }


class SPAOMKLClassifier(Pool, ClassifierFace):
    """Sparse passive-aggressive learning with several kernels.

    Each component takes a step with probability rho_i p_i, rho_i = min(alpha, l_i) / beta and
    p_i = (1 - smoothing) th_i / max th + smoothing, of length tau = min(eta / rho_i, l_i / k_i(x, x));
    th_i <- th_i discount^[component i was wrong] in every round

    Composition: Hedge of Learner(Expansion(kernel, Unlimited()), Hinge(), SampledPassiveAggressive(eta, alpha, beta))

    Parameters
    ----------
    eta, alpha, beta : as for SPAClassifier
    discount : gamma, in (0, 1]
    smoothing : delta, between 0 and 1
    kernels, random_state, n_jobs : see Pool

    References
    ----------
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015
    """

    eta: float = 0.1
    alpha: float = 1.0
    beta: float = 3.0
    discount: float = 0.99
    smoothing: float = 0.001
    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("SPA-OMKL",)
    cost: ClassVar[str] = "m n d"

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Unlimited()), Hinge(), SampledPassiveAggressive(self.eta, self.alpha, self.beta)

    def _hedge(self) -> dict[str, Any]:
        always = {"sample_update": True, "discount_always": True}
        return always | {"discount": self.discount, "smoothing": self.smoothing}


class FOGDOMKLClassifier(Pool, ClassifierFace):
    """Fourier online gradient descent with several kernels, and a weighted vote.

    Each kernel has random features and weights of its own;  th_i <- th_i discount^[component i was wrong]

    Composition: Hedge of Learner(Features(Fourier(kernel, components)), loss, Gradient(eta))

    Parameters
    ----------
    components : D, number of random directions for each kernel
    eta : step, > 0
    discount : gamma, in (0, 1]
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    random_state, n_jobs : see Estimator

    References
    ----------
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015
    """

    components: int = 100
    eta: float = 0.2
    discount: float = 0.99
    loss: Loss | str = "hinge"
    default: ClassVar[tuple[Kernel, ...]] = GAUSSIANS
    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("FOGD-OMKL",)
    cost: ClassVar[str] = "m D d"

    def parts(self, kernel: Kernel) -> Parts:
        features = Features(Fourier(kernel, self.components))
        return features, as_loss(self.loss, "classification"), Gradient(self.eta)

    def _hedge(self) -> dict[str, Any]:
        return {"discount": self.discount}


class NOGDOMKLClassifier(Pool, ClassifierFace):
    """Nyström online gradient descent with several kernels, and a weighted vote.

    Each kernel has landmarks of its own and switches when it has `budget` of them;
    th_i <- th_i discount^[component i was wrong]

    Composition: Hedge of Learner(Expansion(kernel, Landmarks(budget, rank)), loss, Gradient(eta))

    Parameters
    ----------
    budget : B, number of landmarks for each kernel
    rank : k, number of features; None: a fifth of the budget
    eta : step, > 0
    discount : gamma, in (0, 1]
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    kernels, random_state, n_jobs : see Pool

    References
    ----------
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015
    """

    budget: int = 100
    rank: int | None = None
    eta: float = 0.2
    discount: float = 0.99
    loss: Loss | str = "hinge"
    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("NOGD-OMKL",)
    cost: ClassVar[str] = "m B d"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"rank": 100}  # as NOGD: a cut through equal eigenvalues is arbitrary

    def parts(self, kernel: Kernel) -> Parts:
        rank = max(1, self.budget // 5) if self.rank is None else self.rank
        expansion = Expansion(kernel, Landmarks(self.budget, rank))
        return expansion, as_loss(self.loss, "classification"), Gradient(self.eta)

    def _hedge(self) -> dict[str, Any]:
        return {"discount": self.discount}


class _Raker(Pool):
    """The fields of Raker, and what they stand for."""

    components: int = 50
    eta: float = 0.5
    eta_weights: float | None = None
    lam: float = 0.0
    default: ClassVar[tuple[Kernel, ...]] = GAUSSIANS

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
    loss : "logistic", "hinge", "squared_hinge", "exponential" or an object
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    random_state, n_jobs : see Estimator

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
    components, eta, eta_weights, lam : as for RakerClassifier
    loss : "squared", "absolute", "huber", "quantile" or an object
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    random_state, n_jobs : see Estimator

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
        return Restarts(
            maps,
            seeds(run["seed"], len(maps)),
            self._loss(),
            eta=self.eta,
            eta_weights=self.eta if self.eta_weights is None else self.eta_weights,
            lam=self.lam,
            outputs=outputs,
            keys=keys,
            dtype=run["dtype"],
        )


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
    components, eta, eta_weights, lam : as for AdaRakerClassifier
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
