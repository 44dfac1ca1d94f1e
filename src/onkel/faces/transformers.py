"""Transformers: the maps alone, as steps of a scikit-learn pipeline.

`fit` looks at the columns (Nyström: at the rows). `transform` returns features z(x), so that <z(x), z(x')> is close to
k(x, x').
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self, dataclass_transform

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from onkel.core.limits import refuse_memory
from onkel.core.part import Memory
from onkel.core.run import Run
from onkel.faces import border
from onkel.kernels import Kernel, as_kernel
from onkel.maps import Drawn, Fastfood, Fourier, Map, Nystrom, Orthogonal, Reparameterized, keys_of, refuse_overflow

__all__ = [
    "FastfoodTransformer",
    "FourierTransformer",
    "NystromTransformer",
    "OrthogonalTransformer",
    "ReparameterizedTransformer",
]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass_transform(kw_only_default=True, eq_default=False)
@dataclass(kw_only=True, eq=False, repr=False)
class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The base class of all transformers.

    Parameters
    ----------
    kernel : an object of onkel.kernels, or its name
    components : number of random directions (Nyström: of landmarks)
    random_state : seed of the random choices (None: another one each time)
    """

    kernel: Kernel | str = "gaussian"
    components: int = 100
    random_state: Any = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(kw_only=True, eq=False, repr=False)(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `kernel__gamma` and the like replace the kernel by a copy with this field changed."""
        nested = {name: value for name, value in params.items() if name.startswith("kernel__")}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        if nested:
            fields = {name.removeprefix("kernel__"): value for name, value in nested.items()}
            self.kernel = as_kernel(self.kernel).replace(**fields)
        return self

    def _rows(self, X: Any, first: bool) -> Any:
        border.refuse_strange(X, "X")
        form = {"accept_sparse": border.SPARSE, "dtype": [np.float64, np.float32], "ensure_all_finite": False}
        with border.naming_columns(X):
            X = validate_data(self, X, reset=first, **form)
        return border.settle(X)

    def _seed(self) -> int:
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
            seed = check_random_state(seed).randint(2**31)
        return int(seed)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fix the features for the columns of X."""
        raise NotImplementedError

    def transform(self, X: Any) -> Array:
        """The features of the rows of X."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Random(Transformer):
    """The base class of transformers with random Fourier features."""

    def _map(self, kernel: Kernel) -> Map:
        raise NotImplementedError

    def _memory(self, map: Map, run: Run) -> Memory:
        return map.start(run)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the directions for the columns of X; they depend on the column names, if there are any."""
        X = self._rows(X, first=True)
        names = getattr(self, "feature_names_in_", None)
        keys = np.arange(X.shape[1], dtype=np.uint64) if names is None else keys_of(names)
        self.map_ = self._map(as_kernel(self.kernel).resolve(X.shape[1]))
        run = Run(1, keys, X.dtype, sp.issparse(X), False, self._seed())
        refuse_memory(self.map_.memory(len(keys)))
        self._drawn: Drawn = self.map_.draw(keys, run.seed)
        self._learned = self._memory(self.map_, run)
        self._n_features_out = self.map_.size
        return self

    def transform(self, X: Any) -> Array:
        """z(x) = [cos q, sin q] / sqrt(components) for the rows x of X, q being their projections on the directions."""
        check_is_fitted(self)
        X = self._rows(X, first=False)
        with np.errstate(over="ignore"):
            lengths = abs(X).sum(axis=1)
        refuse_overflow(lengths, self.map_.reach(self._drawn, X.dtype))
        return self.map_.features(X, self._drawn, self._learned).astype(X.dtype, copy=False)


class FourierTransformer(_Random):
    """Random Fourier features of a Gaussian, Laplacian or Cauchy kernel.

    For a given kernel, entry j of direction i depends only on random_state, i, and the name (or else the index) of
    column j.

    Parameters
    ----------
    kernel, components, random_state : see Transformer

    Examples
    --------
    >>> import numpy as np
    >>> from onkel import FourierTransformer
    >>> from onkel.kernels import Gaussian
    >>> Z = FourierTransformer(kernel=Gaussian(1.0), components=4000).fit_transform([[0.0, 1.0], [0.5, 1.0]])
    >>> round(float(Z[0] @ Z[1]), 1), round(float(np.exp(-0.25)), 1)
    (0.8, 0.8)
    """

    def _map(self, kernel: Kernel) -> Map:
        return Fourier(kernel, self.components)


class ReparameterizedTransformer(_Random):
    """Random Fourier features with a width for each column, as RRF learns them.

    Parameters
    ----------
    widths : one number > 0 for each column, as `widths_` of an RRF model; None: those of the kernel
    kernel, components, random_state : see Transformer

    Examples
    --------
    >>> from onkel import ReparameterizedTransformer
    >>> features = ReparameterizedTransformer(kernel="gaussian", components=50, widths=[1.0, 1e-9])
    >>> Z = features.fit_transform([[0.5, 1.0], [0.5, 7.0]])
    >>> bool(abs(Z[0] - Z[1]).max() < 1e-6)  # the second column hardly counts
    True
    """

    widths: Any = None

    def _map(self, kernel: Kernel) -> Map:
        return Reparameterized(kernel, self.components)

    def _memory(self, map: Map, run: Run) -> Memory:
        memory = map.start(run)
        if self.widths is not None:
            widths = np.asarray(self.widths, dtype=np.float64)
            if widths.shape != (self.n_features_in_,) or not (np.isfinite(widths) & (widths > 0)).all():
                raise ValueError(f"widths must be {self.n_features_in_} finite numbers > 0, got {self.widths!r}")
            memory["log_widths"] = np.log(widths)
        return memory


class OrthogonalTransformer(_Random):
    """Orthogonal random features of a Gaussian kernel, for a fixed number of columns.

    Parameters
    ----------
    structured : use Hadamard matrices (SORF), which cost log d per feature
    kernel, components, random_state : see Transformer

    Examples
    --------
    >>> from onkel import OrthogonalTransformer
    >>> from onkel.kernels import Gaussian
    >>> Z = OrthogonalTransformer(kernel=Gaussian(1.0), components=2000).fit_transform([[0.0, 1.0], [0.5, 1.0]])
    >>> round(float(Z[0] @ Z[1]), 1), Gaussian(1.0)([[0.0, 1.0]], [[0.5, 1.0]]).round(1)
    (0.8, array([[0.8]]))
    """

    structured: bool = False

    def _map(self, kernel: Kernel) -> Map:
        return Orthogonal(kernel, self.components, self.structured)


class FastfoodTransformer(_Random):
    """Fastfood features of a Gaussian kernel, for a fixed number of columns; they cost log d per feature.

    Parameters
    ----------
    kernel, components, random_state : see Transformer

    Examples
    --------
    >>> from onkel import FastfoodTransformer
    >>> from onkel.kernels import Gaussian
    >>> Z = FastfoodTransformer(kernel=Gaussian(1.0), components=2000).fit_transform([[0.0, 1.0], [0.5, 1.0]])
    >>> round(float(Z[0] @ Z[1]), 1), Gaussian(1.0)([[0.0, 1.0]], [[0.5, 1.0]]).round(1)
    (0.8, array([[0.8]]))
    """

    def _map(self, kernel: Kernel) -> Map:
        return Fastfood(kernel, self.components)


class NystromTransformer(Transformer):
    """Nyström features of any kernel: z(x) = D^-1/2 V' k(x), where V D V' is the kernel matrix of the landmarks.

    k(x) holds the kernel values of x and each landmark.

    Parameters
    ----------
    landmarks : "kmeans" (means of the rows), "random" (some of the rows), "first" (the first rows), or an array of rows
    rank : number of features, those of the largest eigenvalues; None: all with eigenvalues that are not negligible
    kernel, components, random_state : see Transformer

    Examples
    --------
    >>> from onkel import NystromTransformer
    >>> from onkel.kernels import Polynomial
    >>> X = [[0.0, 1.0], [0.5, 1.0], [2.0, -1.0]]
    >>> Z = NystromTransformer(kernel=Polynomial(2), landmarks="first").fit_transform(X)
    >>> bool(abs(Z @ Z.T - Polynomial(2)(X)).max() < 1e-9)  # exact, as all rows are landmarks
    True
    """

    landmarks: Any = "kmeans"
    rank: int | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks (see `landmarks`) and compute D^-1/2 V' from their kernel matrix."""
        X = self._rows(X, first=True)
        kernel = as_kernel(self.kernel).resolve(X.shape[1])
        self.map_ = Nystrom(kernel, self.rank)
        number: Any = self.components
        if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
            raise ValueError(f"NystromTransformer.components must be an integer >= 1, got {number!r}")
        self.landmarks_ = self._choose(X)
        self._transform = self.map_.transform(kernel(self.landmarks_), X.dtype)
        self._n_features_out = len(self._transform)
        return self

    def _choose(self, X: Any) -> Array:
        if not isinstance(self.landmarks, str):
            given = border.as_rows(self.landmarks)
            if given.shape[1] != X.shape[1]:
                raise ValueError(f"landmarks have {given.shape[1]} columns, X has {X.shape[1]}: give them the same")
            return _dense(given)
        if self.landmarks == "kmeans":
            return means_of(X, self.components, self._seed())
        if self.landmarks == "random":
            return some_of(X, self.components, self._seed())
        if self.landmarks == "first":
            return _dense(X[: self.components])
        raise ValueError(f'landmarks must be "kmeans", "random", "first" or an array of rows, got {self.landmarks!r}')

    def transform(self, X: Any) -> Array:
        """z(x) for the rows x of X."""
        check_is_fitted(self)
        X = self._rows(X, first=False)
        k = self.map_.kernel(_dense(X), self.landmarks_)
        return np.asarray(k @ self._transform.T).astype(X.dtype, copy=False)


def means_of(X: Any, count: int, seed: int) -> Array:
    """Landmarks: `count` means of k-means (at most ten iterations), fewer if X has fewer distinct rows."""
    from sklearn.cluster import KMeans  # slow to import

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        means = KMeans(min(count, X.shape[0]), max_iter=10, n_init=1, random_state=seed % 2**32).fit(X)
    return np.unique(means.cluster_centers_, axis=0)


def some_of(X: Any, count: int, seed: int) -> Array:
    """Landmarks: `count` randomly chosen rows, in their order."""
    chosen = np.random.default_rng(seed % 2**63).choice(X.shape[0], min(count, X.shape[0]), replace=False)
    return _dense(X[np.sort(chosen)])


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X)
