"""Group sparsity: one function for each kernel, and a penalty under which few of the functions differ from zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import numpy as np

from onkel import native
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Array, Parts, Settings
from onkel.faces.pool import GAUSSIANS, Pool
from onkel.faces.regressor import Regressor
from onkel.hypotheses import GroupedExpansion
from onkel.hypotheses.grouped import DualNorm, DualStep, Proximal
from onkel.kernels import Cauchy, Gaussian, Kernel, Polynomial
from onkel.learners.learner import Learner
from onkel.losses import Hinge, Loss
from onkel.updates import Gradient

__all__ = ["OM2Classifier", "ProximalMKLClassifier", "ProximalMKLRegressor"]

JIE = (
    "Jie, Orabona, Fornoni, Caputo, Cesa-Bianchi: OM-2: An online multi-class multi-kernel learning algorithm. "
    "CVPR Workshops, 2010. doi:10.1109/CVPRW.2010.5543766"
)
MARTINS = (
    "Martins, Figueiredo, Aguiar, Smith, Xing: Online multiple kernel learning for structured prediction. "
    "arXiv:1010.2770, 2010"
)


_EXAMPLE = (Gaussian(0.3), "gaussian", Polynomial(2, 0.0), Cauchy(0.5), 0.01 * Gaussian(2.0))


class Grouped(Pool):
    """Algorithms whose kernels share a table of examples.

    `dual_coef_` has a coefficient for each output, kernel and term: (outputs, kernels, terms).

    Parameters
    ----------
    normalize : use k(x, z) / sqrt(k(x, x) k(z, z)) of each kernel, so that large values are no advantage
    kernels, random_state, n_jobs : see Pool
    """

    normalize: bool = False

    def parts(self, *kernels: Kernel) -> Parts:
        """Hypothesis, loss and update for these kernels."""
        raise NotImplementedError

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Any:
        return native.fastest(Learner(*self.parts(*self._pool(run["columns"])), outputs=outputs, keys=keys, **run))

    @property
    def weights_(self) -> Array:
        """The weight of each kernel in the score."""
        return np.asarray(self._groups().kernel_weights(self._fitted().engine.state()))

    @property
    def sizes_(self) -> Array:
        """The number of terms in which each kernel has a share."""
        return np.asarray(np.count_nonzero(self._groups().shares(self._fitted().engine.state()), axis=0))

    def _groups(self) -> GroupedExpansion:
        return cast(GroupedExpansion, self._fitted().engine.hypothesis)


class OM2Classifier(Grouped, Classifier):
    """OM-2: online multi-class multi-kernel learning with a p-norm over the kernels.

    score = sum_j om_j th_j(x),  om_j = (|th_j| / |th|_q)^(q - 2) / q,  q = max(2, 2 ln m);
    if the margin is at most 1:  th_j <- th_j + min(1, 1 - margin / m^(2 / q)) (e_y - e_rival) k_j(x, .) for all j
    Two classes (an extension): one output, and y for e_y - e_rival. The step is meant for kernels with k_j(x, x) <= 1;
    `normalize` makes polynomials such kernels. With a sample weight v, the step is min(v, ...) instead of min(1, ...).

    Composition: Learner(GroupedExpansion(kernels, DualNorm(), normalize), Hinge(closed=True), DualStep(m^(2/q)))

    Parameters
    ----------
    normalize, kernels, random_state, n_jobs : see Grouped

    References
    ----------
    jie2010om2: Jie, Orabona, Fornoni, Caputo, Cesa-Bianchi, CVPR Workshops, 2010. doi:10.1109/CVPRW.2010.5543766

    Examples
    --------
    >>> from onkel import OM2Classifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = OM2Classifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    paper: ClassVar[str] = JIE
    aliases: ClassVar[tuple[str, ...]] = ("OM-2",)
    cost: ClassVar[str] = "n (d + m)"
    examples: ClassVar[Settings] = ({"kernels": _EXAMPLE}, {"kernels": _EXAMPLE, "normalize": True})

    def parts(self, *kernels: Kernel) -> Parts:
        m = len(kernels)
        return (
            GroupedExpansion(kernels, DualNorm(), self.normalize),
            Hinge(closed=True),
            DualStep(m ** (2 / DualNorm.order(m))),
        )


class _ProximalMKL(Grouped):
    """The fields of online proximal MKL, and what they stand for."""

    eta: float = 1.0
    lam: float = 0.001
    penalty: str = "squared"
    paper: ClassVar[str] = MARTINS
    aliases: ClassVar[tuple[str, ...]] = ("online proximal MKL", "FOBOS group lasso")
    cost: ClassVar[str] = "n (d + m)"

    def parts(self, *kernels: Kernel) -> Parts:
        squared = self._choice("penalty", squared=True, group=False)
        groups = GroupedExpansion(kernels, Proximal(self.eta, self.lam, squared), self.normalize)
        return groups, self._loss(), Gradient(self.eta, schedule="1/sqrt(t)")

    @property
    def weights_(self) -> Array:
        """|f_j| of each kernel; 0 where the penalty has set f_j to zero."""
        return np.asarray(self._groups().lengths(self._fitted().engine.state()))


class ProximalMKLClassifier(_ProximalMKL, Classifier):
    """Online proximal multiple kernel learning: a gradient step for all kernels, then a proximal step.

    score = sum_j f_j(x);  f_j <- f_j - eta_t l'(score) k_j(x, .) for all j, then in every round
    f_j <- max(0, 1 - c / |f_j|) f_j,  eta_t = eta / sqrt(t)
    "group" (FOBOS with the group lasso): c = eta_t lam, for the penalty lam sum_j |f_j|; "squared": c is
    eta_t lam / (1 + r eta_t lam) times the sum of the r greatest |f_j|, for the penalty lam/2 (sum_j |f_j|)^2

    Composition: Learner(GroupedExpansion(kernels, Proximal(eta, lam, squared), normalize), loss,
    Gradient(eta, schedule="1/sqrt(t)"))

    Parameters
    ----------
    eta : step of the first round, > 0
    lam : strength of the penalty, >= 0
    penalty : "squared" or "group"
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    normalize, kernels, random_state, n_jobs : see Grouped

    References
    ----------
    martins2010online: Martins, Figueiredo, Aguiar, Smith, Xing, arXiv:1010.2770, 2010

    Examples
    --------
    >>> from onkel import ProximalMKLClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = ProximalMKLClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "hinge"
    examples: ClassVar[Settings] = (
        {"kernels": _EXAMPLE, "eta": 0.2, "lam": 5.0},
        {"kernels": _EXAMPLE, "eta": 0.2, "lam": 0.2, "penalty": "group", "normalize": True, "loss": "logistic"},
    )


class ProximalMKLRegressor(_ProximalMKL, Regressor):
    """Online proximal multiple kernel learning for regression; scale the target to order one.

    As ProximalMKLClassifier, with l'(score - y)

    Composition: Learner(GroupedExpansion(kernels, Proximal(eta, lam, squared), normalize), loss,
    Gradient(eta, schedule="1/sqrt(t)"))

    Parameters
    ----------
    eta : step of the first round, > 0; the squared loss needs eta_t sum_j k_j(x, x) < 2 before long
    lam, penalty : as for ProximalMKLClassifier
    loss : "squared", "absolute", "huber", "quantile" or an object
    kernels : None: thirteen Gaussians, sigma from 2^-6 to 2^6
    normalize, random_state, n_jobs : see Grouped

    References
    ----------
    martins2010online: Martins, Figueiredo, Aguiar, Smith, Xing, arXiv:1010.2770, 2010

    Examples
    --------
    >>> from onkel import ProximalMKLRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = ProximalMKLRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.5
    True
    """

    eta: float = 0.2
    loss: Loss | str = "squared"
    default: ClassVar[tuple[Kernel, ...]] = GAUSSIANS  # for polynomials, the right step depends on the rows
    examples: ClassVar[Settings] = (
        {"kernels": _EXAMPLE, "eta": 0.2, "lam": 5.0},
        {"kernels": _EXAMPLE, "eta": 0.1, "lam": 0.6, "penalty": "group", "normalize": True, "loss": "absolute"},
    )
