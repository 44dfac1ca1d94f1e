"""Several kernels on features: random features or landmarks of each kernel, at constant cost and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from onkel import native
from onkel.algorithms.feature_maps import FOGDClassifier, FOGDRegressor, NOGDClassifier, NOGDRegressor
from onkel.algorithms.multi_kernel import LU
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Array, Parts, Settings
from onkel.faces.one_kernel import OneKernel
from onkel.faces.pool import FEW, GAUSSIANS, MIXED, Mean, Pool, Vote
from onkel.faces.regressor import Regressor
from onkel.hypotheses import Features
from onkel.kernels import Kernel
from onkel.learners.restarts import Restarts
from onkel.learners.weighting import ByLoss, Weighting
from onkel.losses import Loss
from onkel.maps import Fourier
from onkel.updates import Gradient

__all__ = [
    "AdaRakerClassifier",
    "AdaRakerRegressor",
    "FOGDOMKLClassifier",
    "FOGDOMKLRegressor",
    "NOGDOMKLClassifier",
    "NOGDOMKLRegressor",
    "RakerClassifier",
    "RakerRegressor",
]

SHEN = (
    "Shen, Chen, Giannakis: Random feature-based online multi-kernel learning in environments with unknown dynamics. "
    "JMLR 20, 2019"
)


class _Fourier(Pool):
    """The fields of pools of random features."""

    components: int = 100
    shared_draws: bool = False
    default: ClassVar[tuple[Kernel, ...]] = GAUSSIANS

    def _seeds(self, seed: int, count: int) -> list[int]:
        """The seed of each kernel's random directions; with one seed for all, they differ only by a factor."""
        if not isinstance(self.shared_draws, (bool, np.bool_)):
            raise ValueError(f"shared_draws must be True or False, got {self.shared_draws!r}")
        if self.shared_draws and len({type(kernel) for kernel in self._pool(1)}) > 1:
            raise ValueError("shared_draws=True needs kernels of one kind, that differ in their width")
        return [seed] * count if self.shared_draws else super()._seeds(seed, count)


class _FOGDOMKL(_Fourier):
    """The fields of FOGD-OMKL."""

    eta: float | None = 0.2
    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("FOGD-OMKL",)
    cost: ClassVar[str] = "m D d"


class FOGDOMKLClassifier(_FOGDOMKL, Vote):
    """Fourier online gradient descent with several kernels, and a weighted vote.

    Each kernel has its own random features and weights;  th_i <- th_i discount^[component i was wrong]
    Several classes (an extension): as OMKCClassifier.

    Composition: Hedge of Learner(Features(Fourier(kernel, components)), loss, Gradient(eta))

    Parameters
    ----------
    components : D, number of random directions for each kernel
    eta : step, > 0; None: chosen from the data, as for FOGDClassifier
    shared_draws : True: the directions of all kernels are the same draw, times a factor for their width; cheaper
    discount : gamma, in (0, 1]
    combination : "vote", or "scores": sum_i th_i f_i(x)
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    random_state, n_jobs : see Pool

    References
    ----------
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithm 15

    Examples
    --------
    >>> from onkel import FOGDOMKLClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = FOGDOMKLClassifier(components=100).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "hinge"
    member: ClassVar[type[OneKernel]] = FOGDClassifier
    examples: ClassVar[Settings] = (
        {"kernels": FEW, "components": 20, "eta": 0.5, "discount": 0.7},
        {
            "kernels": FEW,
            "components": 20,
            "eta": 0.5,
            "shared_draws": True,
            "combination": "scores",
            "loss": "logistic",
        },
    )


class FOGDOMKLRegressor(_FOGDOMKL, Mean):
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
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithm 15

    Examples
    --------
    >>> from onkel import FOGDOMKLRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = FOGDOMKLRegressor(components=100).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.45
    True
    """

    loss: Loss | str = "squared"
    member: ClassVar[type[OneKernel]] = FOGDRegressor
    examples: ClassVar[Settings] = (
        {"kernels": FEW, "components": 20, "eta": 0.5, "epsilon": 0.3},
        {"kernels": FEW, "components": 20, "shared_draws": True, "loss": "absolute", "eta_weights": 0.2},
    )


class _NOGDOMKL(Pool):
    """The fields of NOGD-OMKL."""

    budget: int = 100
    rank: int | None = None
    eta: float = 0.2
    switch: str = "lazy"
    paper: ClassVar[str] = LU
    aliases: ClassVar[tuple[str, ...]] = ("NOGD-OMKL",)
    cost: ClassVar[str] = "m B d"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield from cls.member._unit_test_params()


class NOGDOMKLClassifier(_NOGDOMKL, Vote):
    """Nyström online gradient descent with several kernels, and a weighted vote.

    Each kernel has its own landmarks; it is linear in their features once it has `budget` of them;
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
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithm 16

    Examples
    --------
    >>> from onkel import NOGDOMKLClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = NOGDOMKLClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "hinge"
    member: ClassVar[type[OneKernel]] = NOGDClassifier
    examples: ClassVar[Settings] = (
        {"kernels": MIXED, "discount": 0.7, "budget": 15, "rank": 6, "eta": 0.3},
        {"kernels": FEW, "budget": 15, "switch": "eager", "combination": "scores", "loss": "logistic"},
    )


class NOGDOMKLRegressor(_NOGDOMKL, Mean):
    """Nyström online gradient descent for regression with several kernels, an extension.

    As NOGDOMKLClassifier, with th_i <- th_i exp(-eta_weights l(f_i(x) - y)), and sum_i th_i f_i(x) as the prediction

    Composition: Hedge of Learner(Expansion(kernel, Landmarks(budget, rank, switch)), loss, Gradient(eta))

    Parameters
    ----------
    budget, rank, eta, switch : as for NOGDOMKLClassifier
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    epsilon : half width of the tube of "squared" and "epsilon_insensitive", >= 0
    eta_weights : rate of the weights of kernels, >= 0
    kernels : None: thirteen Gaussians; the squared loss diverges if eta k(x, x) > 2, which is common with polynomials
    random_state, n_jobs : see Pool

    References
    ----------
    lu2015budget: Lu, Hoi, Sahoo, Zhao, arXiv:1511.04813, 2015; regression: extension
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithm 16

    Examples
    --------
    >>> from onkel import NOGDOMKLRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = NOGDOMKLRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.45
    True
    """

    loss: Loss | str = "squared"
    default: ClassVar[tuple[Kernel, ...]] = GAUSSIANS
    member: ClassVar[type[OneKernel]] = NOGDRegressor
    examples: ClassVar[Settings] = (
        {"kernels": FEW, "budget": 15, "rank": 6, "eta": 0.3, "epsilon": 0.3},
        {"kernels": FEW, "budget": 15, "switch": "eager", "loss": "absolute", "eta_weights": 0.2},
    )


class _Raker(_Fourier):
    """The fields of Raker, and what they stand for."""

    components: int = 50
    eta: float = 0.5
    eta_weights: float | None = None
    lam: float = 0.0
    paper: ClassVar[str] = SHEN
    cost: ClassVar[str] = "m D d"

    @property
    def _rate(self) -> float:
        """The rate of the weights of kernels."""
        return self.eta if self.eta_weights is None else self.eta_weights

    def parts(self, kernel: Kernel) -> Parts:
        return Features(Fourier(kernel, self.components)), self._loss(), Gradient(self.eta, 2 * self.lam)

    def _weighting(self) -> Weighting:
        return ByLoss(self._loss(), self._rate)

    def _hedge(self) -> dict[str, Any]:
        return super()._hedge() | {"vote": False}


class RakerClassifier(_Raker, Classifier):
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
    shared_draws : True: the directions of all kernels are the same draw, times a factor for their width; cheaper
    loss : "logistic", "hinge", "squared_hinge", "exponential" or an object
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    random_state, n_jobs : see Pool

    References
    ----------
    shen2019random: Shen, Chen, Giannakis, JMLR 20, 2019, algorithm 1

    Examples
    --------
    >>> from onkel import RakerClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = RakerClassifier(components=100).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "logistic"
    examples: ClassVar[Settings] = (
        {"kernels": FEW, "components": 20, "eta": 0.5, "lam": 0.1},
        {"kernels": FEW, "components": 20, "eta": 0.2, "eta_weights": 2.0, "shared_draws": True, "loss": "hinge"},
    )


class RakerRegressor(_Raker, Regressor):
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

    Examples
    --------
    >>> from onkel import RakerRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = RakerRegressor(components=100).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.5
    True
    """

    loss: Loss | str = "squared"
    examples: ClassVar[Settings] = (
        {"kernels": FEW, "components": 20, "eta": 0.5, "lam": 0.1},
        {"kernels": FEW, "components": 20, "eta": 0.2, "eta_weights": 2.0, "shared_draws": True, "loss": "huber"},
    )


class _AdaRaker(_Raker):
    """Several Rakers, which restart at different times."""

    eta: float = 10.0
    paper: ClassVar[str] = SHEN
    cost: ClassVar[str] = "m D (d + log t)"

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Any:
        maps = [Fourier(kernel, self.components) for kernel in self._pool(run["columns"])]
        restarts = Restarts(
            maps,
            self._seeds(run["seed"], len(maps)),
            self._loss(),
            eta=self.eta,
            eta_weights=self._rate,
            lam=self.lam,
            outputs=outputs,
            keys=keys,
            dtype=run["dtype"],
        )
        return native.fastest(restarts)


class AdaRakerClassifier(_AdaRaker, RakerClassifier):
    """AdaRaker: a combination of Rakers that restart every 1, 2, 4, ... rounds, for streams that change.

    Instance j is a Raker with steps eta_j = min(1/2, eta / sqrt(2^j)) that restarts in each round divisible by 2^j;
    h_j <- h_j exp(-eta_j (l(score of j) - l(score))), and h_j = eta_j at a restart;
    score = sum_j h_j (score of j) / sum_j h_j

    Composition: Restarts(Fourier(kernel, components) for each kernel, loss, eta, eta_weights, lam)

    Parameters
    ----------
    components : D, number of random directions for each kernel, which the instances share
    eta : step of the weights of features, > 0; that of instance j is min(1/2, eta / sqrt(2^j))
    eta_weights : rate of the weights of kernels, > 0, divided in instance j as eta is; None: eta
    lam : regularisation, >= 0
    shared_draws : True: the directions of all kernels are the same draw, times a factor for their width
    loss : "logistic", "hinge", "squared_hinge", "exponential" or an object
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    random_state, n_jobs : see Estimator

    References
    ----------
    shen2019random: Shen, Chen, Giannakis, JMLR 20, 2019, algorithm 2

    Examples
    --------
    >>> from onkel import AdaRakerClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = AdaRakerClassifier(components=100).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.75
    True
    """

    examples: ClassVar[Settings] = (
        {"kernels": FEW, "components": 20, "eta": 0.5, "lam": 0.1},
        {"kernels": FEW, "eta_weights": 2.0, "shared_draws": True, "loss": "hinge"},
    )


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

    Examples
    --------
    >>> from onkel import AdaRakerRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = AdaRakerRegressor(components=100).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.4
    True
    """

    forgets: ClassVar[bool] = True
    examples: ClassVar[Settings] = (
        {"kernels": FEW, "components": 20, "eta": 0.5, "lam": 0.1},
        {"kernels": FEW, "eta_weights": 2.0, "shared_draws": True, "loss": "huber"},
    )
