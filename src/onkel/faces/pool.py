"""Pool: base classes of algorithms with several kernels, one component per kernel.

The weights of the components depend on their mistakes (`Vote`, classifiers) or on their losses (`Mean`, regressors).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs

from onkel import native
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Array, Estimator, Parts
from onkel.faces.one_kernel import OneKernel
from onkel.faces.regressor import Regressor
from onkel.kernels import Gaussian, Kernel, Polynomial, as_kernel
from onkel.learners.hedge import Hedge
from onkel.learners.learner import Learner
from onkel.learners.pool import seeds
from onkel.learners.weighting import ByLoss, ByMistakes, Weighting
from onkel.losses import Squared

# The pool of Lu's thesis (lu2017scalable): sigma = 2^-6 .. 2^6, and three polynomials
GAUSSIANS: tuple[Kernel, ...] = tuple(Gaussian(0.5 * 4.0**-i) for i in range(-6, 7))
POOL: tuple[Kernel, ...] = (*(Polynomial(p, 0.0) for p in (1, 2, 3)), *GAUSSIANS)

# Pools for `examples`, of three kernels, so that a vote has no ties
FEW: tuple[Kernel, ...] = (Gaussian(0.2), Gaussian(1.0), Gaussian(3.0))
MIXED: tuple[Kernel, ...] = (Gaussian(0.2), Gaussian(1.0), Polynomial(2, 0.5))


class Weighted(Estimator):
    """Algorithms that weight several kernels."""

    @property
    def kernels_(self) -> tuple[Kernel, ...]:
        """The kernels with "auto" resolved."""
        learned = self._fitted()
        kernels: tuple[Kernel, ...] = learned.recipe._pool(learned.run["columns"])
        return kernels

    @property
    def weights_(self) -> Array:
        """The weight of each kernel; they sum to 1."""
        return np.asarray(self._fitted().engine.weights)

    def _weighting(self) -> Weighting:
        """How the components are weighted."""
        raise NotImplementedError

    def _hedge(self) -> dict[str, Any]:
        """The arguments of `Hedge` that say how components are weighted, drawn and combined; see `PoolEngine`."""
        return {"weighting": self._weighting()}

    def _seeds(self, seed: int, count: int) -> list[int]:
        """The seed of each component."""
        return seeds(seed, count)

    def _combined(self, compositions: list[Parts], run: Mapping[str, Any], outputs: int, keys: Array) -> Hedge:
        """A pool of learners with these parts."""
        # always float64: small widths underflow in float32, and a component whose kernel is 0 learns nothing
        fine = {**run, "dtype": "float64"}
        learners = [
            Learner(*parts, outputs=outputs, keys=keys, **(fine | {"seed": seed}))
            for parts, seed in zip(compositions, self._seeds(run["seed"], len(compositions)), strict=True)
        ]
        jobs = effective_n_jobs(self.n_jobs)
        return Hedge(learners, seed=run["seed"], dtype=run["dtype"], jobs=jobs, **self._hedge())


class Pool(Weighted):
    """Algorithms with several kernels.

    Parameters
    ----------
    kernels : a list of kernels; None: `default` of the class, thirteen Gaussians with or without three polynomials
    n_jobs : threads for scoring many rows, and for learning if the components do not depend on each other
    random_state : see Estimator
    """

    kernels: Any = None
    default: ClassVar[tuple[Kernel, ...]] = POOL
    member: ClassVar[type[OneKernel]]  # the algorithm of each component; fields of the same name are passed on to it

    def _pool(self, columns: int) -> tuple[Kernel, ...]:
        kernels = self.default if self.kernels is None else tuple(self.kernels)
        if not kernels:
            raise ValueError("kernels must not be empty")
        return tuple(as_kernel(kernel).resolve(columns) for kernel in kernels)

    def parts(self, kernel: Kernel) -> Parts:
        """Hypothesis, loss and update of the component with this kernel."""
        params = self.get_params(deep=False)
        shared = params.keys() & self.member._get_param_names()
        return self.member(**{name: params[name] for name in shared}).parts(kernel)

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Any:
        compositions = [self.parts(kernel) for kernel in self._pool(run["columns"])]
        return native.fastest(self._combined(compositions, run, outputs, keys))

    @property
    def sizes_(self) -> Array:
        """The number of terms of each kernel."""
        return np.asarray(self._fitted().engine.sizes)


class Vote(Pool, Classifier):
    """Classifiers whose weights depend on the mistakes of the components."""

    discount: float = 0.99
    combination: str = "vote"

    def _weighting(self) -> Weighting:
        return ByMistakes(self.discount)

    def _hedge(self) -> dict[str, Any]:
        return super()._hedge() | {"vote": self._choice("combination", vote=True, scores=False)}


class Mean(Pool, Regressor):
    """Regressors whose weights depend on the losses of the components."""

    eta_weights: float = 1.0
    epsilon: float = 0.1

    def _weighting(self) -> Weighting:
        loss = self.parts(Gaussian(1.0))[1]
        # the tube (epsilon) of a squared loss is only for the steps; the weights follow from r^2 / 2, without it
        return ByLoss(Squared() if "squared" in loss.offers else loss, self.eta_weights)

    def _hedge(self) -> dict[str, Any]:
        return super()._hedge() | {"vote": False}
