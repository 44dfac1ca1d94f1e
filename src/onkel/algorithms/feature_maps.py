"""Learners on explicit features: random Fourier features, with learned widths or stored terms, and Nyström features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, cast

from onkel.budgets import Landmarks, ReplaceSmallest, Stop
from onkel.core.errors import Refused
from onkel.core.part import is_number, refuse_ignored
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Array, Parts, Settings, Variants
from onkel.faces.one_kernel import OneKernel
from onkel.faces.regressor import Regressor
from onkel.hypotheses import Dual, Expansion, Features, Hypothesis
from onkel.kernels import Kernel
from onkel.losses import Loss, Squared
from onkel.maps import Fastfood, Fourier, Map, Orthogonal, Reparameterized
from onkel.updates import AdaGrad, DistanceOverGradient, Gradient, Pegasos, Update

__all__ = [
    "DualSGDClassifier",
    "DualSGDRegressor",
    "FOGDClassifier",
    "FOGDRegressor",
    "NOGDClassifier",
    "NOGDRegressor",
    "RRFClassifier",
    "RRFRegressor",
]

LU = "Lu, Hoi, Wang, Zhao, Liu: Large scale online kernel learning. JMLR 17(47), 2016"
NGUYEN = (
    "Nguyen, Le, Bui, Phung: Large-scale online kernel learning with random feature reparameterization. "
    "IJCAI, 2017. doi:10.24963/ijcai.2017/354"
)
LE = "Le, Nguyen, Nguyen, Phung: Dual space gradient descent for online learning. NIPS 29, 2016"


class _FOGD(OneKernel):
    """The fields of FOGD, and what they stand for."""

    components: int = 400
    eta: float | None = None
    eta_unscaled: float | None = None
    schedule: str = "constant"
    map: str = "fourier"
    paper: ClassVar[str] = LU
    cost: ClassVar[str] = "D d"

    def _features(self, kernel: Kernel) -> Features:
        kinds: dict[str, Map] = self._choice(
            "map",
            fourier=lambda: Fourier(kernel, self.components),
            orthogonal=lambda: Orthogonal(kernel, self.components),
            sorf=lambda: Orthogonal(kernel, self.components, structured=True),
            fastfood=lambda: Fastfood(kernel, self.components),
        )
        return Features(kinds())  # type: ignore[operator]

    def _update(self) -> Update:
        eta = self.eta
        if self.eta_unscaled is not None:
            if eta is not None:
                raise ValueError(f"eta is {eta!r} and eta_unscaled {self.eta_unscaled!r}: give one of them")
            if not is_number(self.eta_unscaled) or not 0 < self.eta_unscaled < math.inf:
                raise Refused(type(self).__name__, "eta_unscaled", "> 0", self.eta_unscaled)
            eta = self.eta_unscaled * self.components
        if self.schedule == "adagrad":
            return AdaGrad(8 / math.sqrt(2 * self.components) if eta is None else eta)
        if eta is not None:
            return Gradient(eta, schedule=self.schedule)
        if self.schedule != "constant":
            raise ValueError(f"the schedule {self.schedule!r} needs a step: set eta")
        return DistanceOverGradient()

    def parts(self, kernel: Kernel) -> Parts:
        return self._features(kernel), self._loss(), self._update()


class FOGDClassifier(_FOGD, Classifier):
    """Fourier online gradient descent: linear in random features of the kernel, at constant cost and memory.

    z(x) = [cos q, sin q] / sqrt(components);  w <- w - eta_t l'(<w, z(x)>) z(x)

    Composition: Learner(Features(Fourier(kernel, components)), loss, DistanceOverGradient() or Gradient(eta) or
    AdaGrad(eta))

    Parameters
    ----------
    components : D, number of random directions; each gives a cosine and a sine
    eta : step, > 0; None: chosen from the data, see DistanceOverGradient (for "adagrad": 8 / sqrt(2 components))
    eta_unscaled : the paper's step, for features without 1 / sqrt(components); eta = eta_unscaled * components
    schedule : eta_t is "constant", "1/t" or "1/sqrt(t)" times eta; "adagrad": a step size for each weight
    map : "fourier" (for Gaussian, Laplacian and Cauchy kernels; new columns may appear later), "orthogonal", "sorf" or
        "fastfood" (for Gaussian kernels; the columns are fixed by the first call)
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    lu2016large: Lu, Hoi, Wang, Zhao, Liu, JMLR 17(47), 2016
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithms 8 and 10

    Examples
    --------
    >>> from onkel import FOGDClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = FOGDClassifier(components=100).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "hinge"
    aliases: ClassVar[tuple[str, ...]] = ("MFOGD", "Fourier OGD")
    variants: ClassVar[Variants] = {
        "RKS": {"map": "fourier"},
        "ORF": {"map": "orthogonal"},
        "SORF": {"map": "sorf"},
        "Fastfood": {"map": "fastfood"},
    }
    examples: ClassVar[Settings] = (
        {"components": 20, "eta": 0.5},
        {"components": 20},
        {"components": 20, "eta_unscaled": 0.02, "schedule": "1/sqrt(t)"},
        {"components": 20, "eta": 0.5, "loss": "logistic", "schedule": "1/t"},
        {"components": 20, "eta": 0.5, "schedule": "adagrad"},
        {"components": 20, "eta": 0.5, "map": "orthogonal"},
        {"components": 20, "eta": 0.5, "map": "sorf"},
        {"components": 20, "eta": 0.5, "map": "fastfood"},
    )


class FOGDRegressor(_FOGD, Regressor):
    """Fourier online gradient descent for regression.

    w <- w - eta_t l'(<w, z(x)> - y) z(x); the squared loss is r^2 / 2 outside the tube |r| <= epsilon

    Composition: Learner(Features(Fourier(kernel, components)), loss, DistanceOverGradient() or Gradient(eta) or
    AdaGrad(eta))

    Parameters
    ----------
    components, eta, eta_unscaled, schedule, map : as for FOGDClassifier
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    epsilon : half width of the tube of "squared" and "epsilon_insensitive", >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    lu2016large: Lu, Hoi, Wang, Zhao, Liu, JMLR 17(47), 2016
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithm 12

    Examples
    --------
    >>> from onkel import FOGDRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = FOGDRegressor(components=100).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.5
    True
    """

    loss: Loss | str = "squared"
    epsilon: float = 0.1
    variants: ClassVar[Variants] = {"FOGD-R": {}}
    examples: ClassVar[Settings] = (
        {"components": 20, "eta": 0.5, "epsilon": 0.2},
        {"components": 20},
        {"components": 20, "eta": 0.5, "loss": "absolute", "schedule": "adagrad"},
        {"components": 20, "eta_unscaled": 0.02, "loss": "huber", "map": "fastfood"},
    )


class _NOGD(OneKernel):
    """The fields of NOGD, and what they stand for."""

    budget: int = 100
    rank: int | None = None
    eta: float = 0.2
    switch: str = "lazy"
    paper: ClassVar[str] = LU
    cost: ClassVar[str] = "B d (+ B k)"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"rank": 100}  # river's streams are not scaled: K is a unit matrix, and all its eigenvalues are equal

    def parts(self, kernel: Kernel) -> Parts:
        Stop(self.budget)  # raises an error if the budget is not valid
        rank = max(1, self.budget // 5) if self.rank is None else self.rank
        return Expansion(kernel, Landmarks(self.budget, rank, self.switch)), self._loss(), Gradient(self.eta)


class NOGDClassifier(_NOGD, Classifier):
    """Nyström online gradient descent: an expansion whose terms become the landmarks of a Nyström map.

    OGD until f has `budget` terms; then, with K = V D V' their kernel matrix and its `rank` largest eigenvalues,
    z(x) = D^-1/2 V' k(x), w = D^1/2 V' coef, and w <- w - eta l'(<w, z(x)>) z(x)

    Composition: Learner(Expansion(kernel, Landmarks(budget, rank, switch)), loss, Gradient(eta))

    Parameters
    ----------
    budget : B, number of landmarks
    rank : k, number of features, at most the budget; None: a fifth of it
    eta : step, > 0
    switch : when f becomes linear in features: with B terms ("eager"), or when one more would be added ("lazy")
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    lu2016large: Lu, Hoi, Wang, Zhao, Liu, JMLR 17(47), 2016
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithms 9 and 11

    Examples
    --------
    >>> from onkel import NOGDClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = NOGDClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.85, model.n_support_ <= 50
    (True, True)
    """

    loss: Loss | str = "hinge"
    aliases: ClassVar[tuple[str, ...]] = ("MNOGD", "Nystrom OGD")
    examples: ClassVar[Settings] = (
        {"budget": 15, "rank": 6, "eta": 0.3},
        {"budget": 15, "rank": 6, "eta": 0.3, "switch": "eager"},
        {"budget": 15, "rank": 15, "eta": 0.1},
        {"budget": 15, "rank": None, "eta": 0.3, "loss": "logistic"},
    )


class NOGDRegressor(_NOGD, Regressor):
    """Nyström online gradient descent for regression.

    As NOGDClassifier, with steps -eta l'(f(x) - y); the squared loss is r^2 / 2 outside the tube |r| <= epsilon

    Composition: Learner(Expansion(kernel, Landmarks(budget, rank, switch)), loss, Gradient(eta))

    Parameters
    ----------
    budget, rank, eta, switch : as for NOGDClassifier
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    epsilon : half width of the tube of "squared" and "epsilon_insensitive", >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    lu2016large: Lu, Hoi, Wang, Zhao, Liu, JMLR 17(47), 2016
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithm 13

    Examples
    --------
    >>> from onkel import NOGDRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = NOGDRegressor(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.4, model.n_support_ <= 50
    (True, True)
    """

    loss: Loss | str = "squared"
    epsilon: float = 0.1
    variants: ClassVar[Variants] = {"NOGD-R": {}}
    examples: ClassVar[Settings] = (
        {"budget": 15, "rank": 6, "eta": 0.3},
        {"budget": 15, "rank": 6, "eta": 0.3, "epsilon": 0.2, "switch": "eager", "loss": "epsilon_insensitive"},
    )


class _RRF(OneKernel):
    """The fields of RRF, and what they stand for."""

    components: int = 100
    eta: float = 1.0
    eta_kernel: float = 0.01
    lam: float = 0.0
    clip: float = 20.0
    paper: ClassVar[str] = NGUYEN
    cost: ClassVar[str] = "D d"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"eta_kernel": 0.0}  # river's streams are not scaled: there, learned widths are chaotic

    def parts(self, kernel: Kernel) -> Parts:
        features = Features(Reparameterized(kernel, self.components, self.eta_kernel, self.clip))
        return features, self._loss(), Gradient(self.eta, self.lam)

    @property
    def widths_(self) -> Array:
        """exp(g), the factor by which each input feature is multiplied (0: the feature is ignored)."""
        engine = self._fitted().engine
        return cast(Features, engine.hypothesis).widths(engine.state())


class RRFClassifier(_RRF, Classifier):
    """Reparameterized random features: the kernel's width is learned for each feature, along with the weights.

    q = sum_j exp(g_j) e_j x_j with e drawn once;  z(x) = [cos q, sin q] / sqrt(components)
    w <- (1 - eta lam) w - eta l' z(x);  g <- g - eta_kernel l' df/dg, both at the old w and g

    Composition: Learner(Features(Reparameterized(kernel, components, eta_kernel, clip)), loss, Gradient(eta, lam))

    Parameters
    ----------
    components : D, number of random directions
    eta : step of the weights, > 0 (the paper's, for features without 1 / sqrt(components), is eta / components)
    eta_kernel : step of the log-widths g, >= 0; 0: the widths stay, as in FOGD
    lam : regularisation of the weights, eta lam < 1
    clip : g stays within -clip .. clip
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    kernel : its gamma gives the widths to start from, sqrt(2 gamma) for the Gaussian
    average, random_state, n_jobs : see OneKernel

    References
    ----------
    nguyen2017large: Nguyen, Le, Bui, Phung, IJCAI, 2017, algorithm 1, equation (9). doi:10.24963/ijcai.2017/354

    Examples
    --------
    >>> from onkel import RRFClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = RRFClassifier(components=100).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "hinge"
    variants: ClassVar[Variants] = {"RRF-Hinge": {"loss": "hinge"}, "RRF-Logit": {"loss": "logistic"}}
    examples: ClassVar[Settings] = (
        {"components": 20, "eta": 0.3, "eta_kernel": 0.02},
        {"components": 20, "eta": 0.3, "eta_kernel": 0.02, "loss": "logistic", "lam": 0.1},
        {"components": 20, "eta": 0.3, "eta_kernel": 0.0},
        {"components": 20, "eta": 0.3, "eta_kernel": 0.5, "clip": 0.6},
    )


class RRFRegressor(_RRF, Regressor):
    """Reparameterized random features for regression.

    As RRFClassifier, with l' = l'(f(x) - y); the squared loss r^2 / 2 has no tube

    Composition: Learner(Features(Reparameterized(kernel, components, eta_kernel, clip)), loss, Gradient(eta, lam))

    Parameters
    ----------
    components, eta, eta_kernel, lam, clip : as for RRFClassifier
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    epsilon : half width of the tube of "epsilon_insensitive", >= 0
    kernel : its gamma gives the widths to start from, sqrt(2 gamma) for the Gaussian
    average, random_state, n_jobs : see OneKernel

    References
    ----------
    nguyen2017large: Nguyen, Le, Bui, Phung, IJCAI, 2017, algorithm 1, equation (9). doi:10.24963/ijcai.2017/354

    Examples
    --------
    >>> from onkel import RRFRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = RRFRegressor(components=100).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.45
    True
    """

    eta: float = 0.1
    loss: Loss | str = "squared"
    epsilon: float = 0.1
    variants: ClassVar[Variants] = {
        "RRF-l1": {"loss": "absolute"},
        "RRF-l2": {"loss": "squared"},
        "RRF-eps": {"loss": "epsilon_insensitive"},
    }
    examples: ClassVar[Settings] = (
        {"components": 20, "eta": 0.3, "eta_kernel": 0.02},
        {"components": 20, "eta": 0.3, "eta_kernel": 0.02, "loss": "absolute", "lam": 0.1, "clip": 0.6},
        {"components": 20, "eta": 0.3, "eta_kernel": 0.02, "loss": "epsilon_insensitive", "epsilon": 0.2},
    )

    def _loss(self) -> Loss:
        if self.loss != "squared":
            return super()._loss()
        refuse_ignored(self, 'loss="squared"', "epsilon")
        return Squared()


class _DualSGD(OneKernel):
    """The fields of DualSGD, and what they stand for."""

    budget: int = 100
    merge: int = 20
    components: int = 200
    lam: float = 0.001
    maintenance: str = "merge"
    insert_always: bool = False
    paper: ClassVar[str] = LE
    cost: ClassVar[str] = "(B + D) d"

    def _hypothesis(self, kernel: Kernel) -> Hypothesis:
        makers = self._choice(
            "maintenance",
            merge=lambda: Dual(kernel, Fourier(kernel, self.components), self.budget, self.merge, self.insert_always),
            remove=lambda: Expansion(kernel, ReplaceSmallest(self.budget)),
        )
        if self.maintenance == "remove":
            refuse_ignored(self, 'maintenance="remove"', "merge", "components", "insert_always")
        made: Hypothesis = makers()
        return made

    def parts(self, kernel: Kernel) -> Parts:
        return self._hypothesis(kernel), self._loss(), Pegasos(self.lam)


class DualSGDClassifier(_DualSGD, Classifier):
    """Dual space gradient descent: few terms in the kernel's space, and all that came before in random features.

    f(x) = sum_i a_i k(x_i, x) + <v, z(x)>;  f <- (1 - 1/t) f;  a new term has a = -l' / (lam t)
    When there are `budget` terms, the `merge` smallest are first moved into the features: v <- v + sum_i a_i z(x_i)

    Composition: Learner(Dual(kernel, Fourier(kernel, components), budget, merge), loss, Pegasos(lam)), or with
    maintenance "remove" Learner(Expansion(kernel, ReplaceSmallest(budget)), loss, Pegasos(lam))

    Parameters
    ----------
    budget : B, number of terms; 0: random features alone
    merge : k, number of terms that are moved at once
    components : D, number of random directions
    lam : regularisation, > 0
    maintenance : "merge", or "remove": drop the smallest term (then leave merge, components and insert_always unset)
    insert_always : also insert a term (of coefficient 0) where the loss has no slope, as the authors' program does
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    le2016dual: Le, Nguyen, Nguyen, Phung, NIPS 29, 2016, algorithm 1

    Examples
    --------
    >>> from onkel import DualSGDClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = DualSGDClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9, model.n_support_ <= 50
    (True, True)
    """

    loss: Loss | str = "hinge"
    variants: ClassVar[Variants] = {"DualSGD-Hinge": {"loss": "hinge"}, "DualSGD-Logit": {"loss": "logistic"}}
    examples: ClassVar[Settings] = (
        {"budget": 15, "merge": 4, "components": 20, "lam": 0.05},
        {"budget": 15, "merge": 4, "components": 20, "lam": 0.05, "loss": "logistic"},
        {"budget": 15, "lam": 0.05, "maintenance": "remove"},
        {"budget": 15, "merge": 4, "components": 20, "lam": 0.05, "insert_always": True},
        {"budget": 0, "merge": 4, "components": 20, "lam": 0.05},
    )


class DualSGDRegressor(_DualSGD, Regressor):
    """Dual space gradient descent for regression.

    As DualSGDClassifier, with l' = l'(f(x) - y)

    Composition: Learner(Dual(kernel, Fourier(kernel, components), budget, merge), loss, Pegasos(lam)), or with
    maintenance "remove" Learner(Expansion(kernel, ReplaceSmallest(budget)), loss, Pegasos(lam))

    Parameters
    ----------
    budget, merge, components, lam, maintenance, insert_always : as for DualSGDClassifier
    loss : "epsilon_insensitive", "absolute", "squared", "huber", "quantile" or an object
    epsilon : half width of the tube of "epsilon_insensitive" and "squared", >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    le2016dual: Le, Nguyen, Nguyen, Phung, NIPS 29, 2016, algorithm 1

    Examples
    --------
    >>> from onkel import DualSGDRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = DualSGDRegressor(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.4, model.n_support_ <= 50
    (True, True)
    """

    lam: float = 0.01
    loss: Loss | str = "epsilon_insensitive"
    epsilon: float = 0.1
    variants: ClassVar[Variants] = {"DualSGD-eps": {"loss": "epsilon_insensitive"}, "DualSGD-l1": {"loss": "absolute"}}
    examples: ClassVar[Settings] = (
        {"budget": 15, "merge": 4, "components": 20, "lam": 0.5},
        {
            "budget": 15,
            "merge": 4,
            "components": 20,
            "lam": 0.5,
            "loss": "squared",
            "epsilon": 0.2,
            "insert_always": True,
        },
        {"budget": 15, "lam": 0.5, "maintenance": "remove"},
    )
