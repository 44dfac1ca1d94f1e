"""Batch baselines: fitted to all rows at once, to compare online learners with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from onkel.budgets import Stop
from onkel.core.basis import State
from onkel.core.errors import Refused
from onkel.core.part import is_number, refuse_ignored
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Array, Examples, Parts, Settings
from onkel.faces.one_kernel import OneKernel
from onkel.faces.regressor import Regressor
from onkel.faces.transformers import means_of, some_of
from onkel.hypotheses import Expansion, Stored
from onkel.kernels import Kernel
from onkel.losses import EpsilonInsensitive, Hinge, Loss
from onkel.maps import Nystrom
from onkel.updates import PassiveAggressive

__all__ = ["LLSVMClassifier", "LLSVMRegressor"]

ZHANG = (
    "Zhang, Lan, Wang, Moerchen: Scaling up kernel SVM on limited resources: a low-rank linearization approach. "
    "AISTATS, 2012"
)


class _LLSVM(OneKernel):
    """The fields of LLSVM, which learns from all rows at once: `fit` starts afresh, and nothing continues."""

    budget: int = 100
    rank: int | None = None
    lam: float = 1.0
    landmarks: str = "kmeans"
    chunk: int = 50_000
    examples: ClassVar[Settings] = (
        {"budget": 15},
        {"budget": 20, "rank": 10, "lam": 0.1, "landmarks": "random"},
        {"budget": 15, "chunk": 60},
    )
    paper: ClassVar[str] = ZHANG
    cost: ClassVar[str] = "batch"
    online: ClassVar[bool] = False
    river_kind: ClassVar[str] = ""

    def _no_stream(self) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} learns from all rows at once: use fit")

    learn = partial_fit = learn_one = learn_many = property(_no_stream)

    def parts(self, kernel: Kernel) -> Parts:
        if not is_number(self.lam) or not 0 < self.lam < math.inf:
            raise Refused(type(self).__name__, "lam", "> 0", self.lam)
        refuse_ignored(self, "a fit to all rows at once", "average")
        Nystrom(rank=self.rank)
        if not isinstance(self.chunk, Integral) or isinstance(self.chunk, bool) or self.chunk < 1:
            raise Refused(type(self).__name__, "chunk", "an integer >= 1", self.chunk)
        return Expansion(kernel, Stop(self.budget)), self._loss(), PassiveAggressive(C=1 / self.lam)

    def _machine(self) -> Any:
        """The linear machine."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to all rows."""
        fresh = self._fresh()
        learned, X, target, weight = fresh._ready(X, y, None, sample_weight)
        learned.restore(fresh._solution(learned.run, X, target, weight))
        self._learned = learned
        return self

    def _solution(self, run: Mapping[str, Any], X: Any, target: Array, weight: Array | None) -> State:
        """Landmarks, their Nyström features, and a linear machine on them, as the state of an expansion."""
        Z = self._landmarks(X, run["seed"])
        kernel = self._resolved(run["columns"])
        transform = Nystrom(kernel, self.rank).transform(kernel(Z))
        features = np.empty((X.shape[0], len(transform)))
        for start in range(0, len(features), 1000):
            rows = X[start : start + 1000]
            features[start : start + 1000] = (
                kernel(rows.toarray() if hasattr(rows, "toarray") else rows, Z) @ transform.T
            )
        seed = run["seed"] % 2**32
        svm = self._machine()
        svm.set_params(C=1 / self.lam, fit_intercept=False, dual=True, max_iter=20_000, random_state=seed)
        svm.fit(features, target, weight)
        coef = (np.atleast_2d(svm.coef_) @ transform).T
        return Expansion.state_of(Stored(Z.astype(X.dtype), coef, np.arange(1.0, len(Z) + 1)), X.shape[0])

    def _landmarks(self, X: Any, seed: int) -> Array:
        chooser = self._choice("landmarks", kmeans=means_of, random=some_of)
        return np.asarray(chooser(X[: self.chunk] if chooser is means_of else X, self.budget, seed))


class LLSVMClassifier(_LLSVM, Classifier):
    """Low-rank linearised SVM, the batch baseline: a linear machine on Nyström features, fitted to all rows at once.

    z(x) = K_ZZ^-1/2 k_Z(x) for landmarks Z;  min_w |w|^2 / 2 + (1/lam) sum_i max(0, 1 - y_i <w, z(x_i)>)
    Several classes: one against the rest. There is `fit` only; the solver is LIBLINEAR's.

    Composition: no learning loop; the result is Expansion(kernel, Stop(budget)) on the landmarks

    Parameters
    ----------
    budget : B, number of landmarks
    rank : number of features; None: all
    lam : regularisation, > 0
    landmarks : "kmeans" (of the first `chunk` rows) or "random" (rows)
    chunk : number of rows the means are taken from
    kernel, random_state, n_jobs : see OneKernel

    References
    ----------
    zhang2012scaling: Zhang, Lan, Wang, Moerchen, AISTATS, 2012

    Examples
    --------
    >>> from onkel import LLSVMClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = LLSVMClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9, model.n_support_ <= 50
    (True, True)
    """

    def _loss(self) -> Loss:
        return Hinge()

    def _machine(self) -> Any:
        from sklearn.svm import LinearSVC  # slow to import

        return LinearSVC(loss="hinge")

    def _ready(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Examples:
        examples = super()._ready(X, y, classes, sample_weight)
        if np.all(examples[2] == examples[2][0]):
            raise ValueError(f"y holds one class only, {np.asarray(y).ravel()[0].item()!r}: a machine needs two")
        return examples


class LLSVMRegressor(_LLSVM, Regressor):
    """Low-rank linearised support vector regression, the batch baseline: fitted to all rows at once.

    z(x) = K_ZZ^-1/2 k_Z(x) for landmarks Z;  min_w |w|^2 / 2 + (1/lam) sum_i max(0, |y_i - <w, z(x_i)>| - epsilon)

    Composition: no learning loop; the result is Expansion(kernel, Stop(budget)) on the landmarks

    Parameters
    ----------
    budget, rank, lam, landmarks, chunk : as for LLSVMClassifier
    epsilon : half width of the tube, >= 0
    kernel, random_state, n_jobs : see OneKernel

    References
    ----------
    zhang2012scaling: Zhang, Lan, Wang, Moerchen, AISTATS, 2012

    Examples
    --------
    >>> from onkel import LLSVMRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = LLSVMRegressor(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.5, model.n_support_ <= 50
    (True, True)
    """

    epsilon: float = 0.1
    examples: ClassVar[Settings] = (*_LLSVM.examples, {"budget": 15, "epsilon": 0.3})

    def _loss(self) -> Loss:
        return EpsilonInsensitive(self.epsilon)

    def _machine(self) -> Any:
        from sklearn.svm import LinearSVR  # slow to import

        return LinearSVR(epsilon=self.epsilon, loss="epsilon_insensitive")
