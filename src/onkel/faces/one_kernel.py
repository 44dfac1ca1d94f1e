"""OneKernel: algorithms that are one learner with one kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onkel import native
from onkel.faces.estimator import Array, Estimator, Parts
from onkel.kernels import Gaussian, Kernel, as_kernel
from onkel.learners.engine import Engine
from onkel.learners.learner import Learner


class OneKernel(Estimator):
    """Algorithms with one kernel.

    Parameters
    ----------
    kernel : an object of onkel.kernels, or its name
    average : True: score with the average of all models so far, restricted to the terms still stored; "all": with the
        removed terms, too; False: with the last model. Which models these are, see Learner
    random_state, n_jobs : see Estimator
    """

    kernel: Kernel | str = "gaussian"
    average: bool | str = False

    def parts(self, kernel: Kernel) -> Parts:
        """Hypothesis, loss and update of this algorithm."""
        raise NotImplementedError

    def _engine(self, run: Mapping[str, Any], outputs: int, keys: Array) -> Engine:
        parts = self.parts(self._resolved(run["columns"]))
        return native.fastest(Learner(*parts, outputs=outputs, average=self.average, keys=keys, **run))

    def _resolved(self, columns: int) -> Kernel:
        return as_kernel(self.kernel).resolve(columns)

    def _is_logistic(self) -> bool:
        return "logistic" in self.parts(Gaussian(1.0))[1].offers

    @property
    def kernel_(self) -> Kernel:
        """The kernel with "auto" resolved."""
        learned = self._fitted()
        kernel: Kernel = learned.recipe._resolved(learned.run["columns"])
        return kernel
