"""Pool: what algorithms with several kernels share, and how they combine what the kernels answer.

The weights of a `Vote` follow mistakes, those of a `Mean` follow losses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from onkel import native
from onkel.estimator import Array, Estimator, OneKernel, Parts
from onkel.faces import ClassifierFace, RegressorFace
from onkel.hedge import Hedge, seeds
from onkel.kernels import Gaussian, Kernel, Polynomial, as_kernel
from onkel.learner import Learner
from onkel.losses import Squared

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

    def _hedge(self) -> dict[str, Any]:
        """How the components are combined."""
        raise NotImplementedError

    def _seeds(self, seed: int, count: int) -> list[int]:
        """The seed of each component."""
        return seeds(seed, count)

    def _combined(self, recipes: list[Parts], run: Mapping[str, Any], outputs: int, keys: Array) -> Hedge:
        """One learner of components with these recipes."""
        # double whatever the rows are: small widths underflow in float32, and a component that is 0 learns nothing
        fine = {**run, "dtype": "float64"}
        learners = [
            Learner(*parts, outputs=outputs, keys=keys, **(fine | {"seed": seed}))
            for parts, seed in zip(recipes, self._seeds(run["seed"], len(recipes)), strict=True)
        ]
        jobs = effective_n_jobs(self.n_jobs)
        return Hedge(learners, seed=run["seed"], dtype=run["dtype"], jobs=jobs, **self._hedge())


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
    member: ClassVar[type[OneKernel]]  # the algorithm of each kernel; it shares the fields of the same names

    def _pool(self, columns: int) -> tuple[Kernel, ...]:
        kernels = self.default if self.kernels is None else tuple(self.kernels)
        if not kernels:
            raise ValueError("kernels must not be empty")
        return tuple(as_kernel(kernel).resolve(columns) for kernel in kernels)

    def parts(self, kernel: Kernel) -> Parts:
        """The recipe of the component with that kernel."""
        params = self.get_params(deep=False)
        shared = params.keys() & self.member._get_param_names()
        return self.member(**{name: params[name] for name in shared}).parts(kernel)

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Any:
        recipes = [self.parts(kernel) for kernel in self._pool(run["columns"])]
        return native.engine(self._combined(recipes, run, outputs, keys))

    @property
    def sizes_(self) -> Array:
        """The number of terms of each kernel."""
        check_is_fitted(self)
        return np.asarray(self._learner.sizes)


class Vote(Pool, ClassifierFace):
    """Weights that follow mistakes."""

    discount: float = 0.99
    combination: str = "vote"

    def _hedge(self) -> dict[str, Any]:
        return {"discount": self.discount, "vote": self._choice("combination", vote=True, scores=False)}


class Mean(Pool, RegressorFace):
    """Weights that follow the loss of the components."""

    eta_weights: float = 1.0
    epsilon: float = 0.1

    def _hedge(self) -> dict[str, Any]:
        loss = self.parts(Gaussian(1.0))[1]
        loss = Squared() if isinstance(loss, Squared) else loss  # a tube spares steps; the loss is r^2 / 2 all the same
        return {"loss": loss, "eta_weights": self.eta_weights, "vote": False}
