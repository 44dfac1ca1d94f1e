"""Kernels: k(x, z) = shape( sum_j pair(x_j, z_j) ).

`pair` compares two features, `shape` turns the sum over features into the kernel value. This module does not know how
rows are stored: the hypothesis passes a kernel the function `totals(pair)`, which computes the sums for all stored
rows, and the kernel returns the row of kernel values. For sparse rows the storage relies on pair(0, 0) = 0.
A `pair` that needs no field is static: kernels that differ only in `shape` then share it, and its sums are computed
once for all of them.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from onkel.core.basis import Pair, Totals
from onkel.core.part import Part, Words, is_number

Array = np.ndarray[Any, np.dtype[Any]]


class Kernel(Part):
    """A positive (semi)definite function of two examples."""

    def pair(self, x: Array, z: Array) -> Array:
        """The contribution of each feature, elementwise."""
        raise NotImplementedError

    def shape(self, total: Array) -> Array:
        """Kernel values from the sums of `pair` over the features."""
        raise NotImplementedError

    def row(self, totals: Totals) -> Array:
        """Kernel values of one example against all stored rows."""
        return self.shape(totals(self.pair))

    def diagonal(self, X: Any) -> Array:
        """k(x, x) for the rows x of an array or a sparse matrix."""

        def sums(pair: Pair) -> Array:
            if not hasattr(X, "indptr"):
                return np.asarray(pair(X, X).sum(axis=1, dtype=np.float64))
            return np.array([pair(X.data[a:b], X.data[a:b]).sum(dtype=np.float64) for a, b in pairwise(X.indptr)])

        return self.row(sums)

    @property
    def offers(self) -> Words:
        return super().offers | (set() if self.unit else {"k(x, x) other than 1"})

    @property
    def unit(self) -> bool:
        """Is k(x, x) = 1 for all x?"""
        return False

    @property
    def bounded(self) -> bool:
        """Is k(x, x) at most a constant for all x?"""
        return True

    def frequencies(self, u: Array) -> Array:
        """Draws from the spectrum of this kernel at gamma = 1, made from uniform numbers u.

        If omega is `frequency` times such a draw, the expectation of cos(<omega, x - z>) is k(x, z).
        """
        raise ValueError(f"{self!r} has no random features: use Gaussian, Laplacian or Cauchy")

    @property
    def frequency(self) -> float:
        """How many times wider the spectrum is than at gamma = 1."""
        raise ValueError(f"{self!r} has no random features: use Gaussian, Laplacian or Cauchy")

    def __call__(self, X: ArrayLike, Z: ArrayLike | None = None) -> Array:
        """The matrix of kernel values between the rows of X and of Z (default: X)."""
        left = np.atleast_2d(np.asarray(X, dtype=np.float64))
        right = left if Z is None else np.atleast_2d(np.asarray(Z, dtype=np.float64))
        if left.shape[1] != right.shape[1]:
            raise ValueError(f"X has {left.shape[1]} columns, Z has {right.shape[1]}: give both the same")
        kernel = self.resolve(left.shape[1])

        def block(some: Array) -> Array:
            return kernel.row(lambda pair: pair(some[:, None], right).sum(axis=-1))

        rows = max(1, 2**16 // max(right.size, 1))  # at a time: intermediate arrays stay small
        return np.concatenate([block(left[start : start + rows]) for start in range(0, max(len(left), 1), rows)])

    def __add__(self, other: Kernel | float) -> Kernel:
        return Sum(_flatten(Sum, self, other))

    def __mul__(self, other: Kernel | float) -> Kernel:
        return Product(_flatten(Product, self, other))

    __radd__ = __add__
    __rmul__ = __mul__


class _Inner(Kernel):
    """Kernels of the inner product <x, z>."""

    @staticmethod
    def pair(x: Array, z: Array) -> Array:
        return x * z

    @property
    def bounded(self) -> bool:
        return False


class Linear(_Inner):
    """k(x, z) = <x, z>.

    Examples
    --------
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def shape(self, total: Array) -> Array:
        return total


class Polynomial(_Inner):
    """k(x, z) = (<x, z> + coef0)^degree.

    Examples
    --------
    >>> Polynomial(degree=2, coef0=1.0)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    degree: int = 3
    coef0: float = 1.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(2, 0.5), cls(3)

    def __post_init__(self) -> None:
        self._integer("degree", 1, 1000)
        self._nonnegative("coef0")
        self._finite("coef0")

    def shape(self, total: Array) -> Array:
        return np.power(total + self.coef0, self.degree)


class _Width(Kernel):
    """Kernels with a parameter `gamma`; "auto" means 1 / number of features."""

    gamma: float | str = "auto"

    def __post_init__(self) -> None:
        if self.gamma != "auto":
            self._require("gamma", is_number(self.gamma) and 0 < float(self.gamma) < np.inf, '> 0, or "auto"')

    def resolve(self, columns: int) -> Self:
        return self.replace(gamma=1.0 / max(columns, 1)) if self.gamma == "auto" else self

    @property
    def width(self) -> float:
        """gamma as a number; call `resolve` first if it is "auto"."""
        return float(self.gamma)


class Sigmoid(_Width):
    """k(x, z) = tanh(gamma <x, z> + coef0); not positive definite for all gamma and coef0.

    Examples
    --------
    >>> Sigmoid(gamma=0.5)([[1.0]], [[2.0]]).round(2)
    array([[0.76]])
    """

    coef0: float = 0.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.3, 0.2),)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._finite("coef0")

    @staticmethod
    def pair(x: Array, z: Array) -> Array:
        return x * z

    def shape(self, total: Array) -> Array:
        return np.tanh(self.width * total + self.coef0)


_FAINT = 64 * np.finfo(np.float64).tiny


def _decayed(exponent: Array) -> Array:
    """exp(-exponent) minus a tiny number, at least 0: no sign of a score depends on subnormal values."""
    return np.maximum(np.exp(-exponent) - _FAINT, 0)


class _Decay(_Width):
    """Kernels exp(-gamma distance). The distance is clipped at 0: with sparse rows it may round below."""

    @property
    def unit(self) -> bool:
        return True

    def shape(self, total: Array) -> Array:
        return _decayed(self.width * np.maximum(total, 0))


class Gaussian(_Decay):
    """k(x, z) = exp(-gamma |x - z|^2); a width sigma corresponds to gamma = 1 / (2 sigma^2).

    Examples
    --------
    >>> Gaussian(gamma=0.5)([[0.0, 0.0], [1.0, 1.0]]).round(2)  # of all pairs of rows
    array([[1.  , 0.37],
           [0.37, 1.  ]])
    """

    traits: ClassVar[tuple[str, ...]] = ("gaussian",)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.7), cls()

    @staticmethod
    def pair(x: Array, z: Array) -> Array:
        return np.asarray(np.square(x - z))

    def frequencies(self, u: Array) -> Array:
        return np.asarray(ndtri(u))

    @property
    def frequency(self) -> float:
        return float(np.sqrt(2 * self.width))


class Laplacian(_Decay):
    """k(x, z) = exp(-gamma |x - z|_1).

    Examples
    --------
    >>> Laplacian(gamma=0.5)([[0.0, 0.0]], [[1.0, -1.0]]).round(2)
    array([[0.37]])
    """

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.4),)

    @staticmethod
    def pair(x: Array, z: Array) -> Array:
        return np.asarray(np.abs(x - z))

    def frequencies(self, u: Array) -> Array:  # Cauchy distributed, independently for each feature
        return np.asarray(np.tan(np.pi * (u - 0.5)))

    @property
    def frequency(self) -> float:
        return self.width


class Cauchy(_Width):
    """k(x, z) = prod_j 1 / (1 + gamma (x_j - z_j)^2).

    Examples
    --------
    >>> Cauchy(gamma=1.0)([[0.0, 0.0]], [[1.0, 2.0]]).round(2)
    array([[0.1]])
    """

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.8),)

    @property
    def unit(self) -> bool:
        return True

    def pair(self, x: Array, z: Array) -> Array:
        return np.asarray(np.log1p(self.width * np.square(x - z)))

    def shape(self, total: Array) -> Array:
        return _decayed(np.maximum(total, 0))

    def frequencies(self, u: Array) -> Array:  # Laplace distributed, independently for each feature
        return np.asarray(-np.sign(u - 0.5) * np.log1p(-2 * np.abs(u - 0.5)))

    @property
    def frequency(self) -> float:
        return float(np.sqrt(self.width))


class Constant(Kernel):
    """k(x, z) = value; `kernel + 1` gives a learner an intercept.

    Examples
    --------
    >>> Linear() + 1
    Sum(kernels=(Linear(), Constant(value=1)))
    """

    value: float = 1.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.5),)

    def __post_init__(self) -> None:
        self._positive("value")
        self._finite("value")

    @staticmethod
    def pair(x: Array, z: Array) -> Array:
        return 0 * (x * z)

    def shape(self, total: Array) -> Array:
        return np.full_like(total, self.value)

    @property
    def unit(self) -> bool:
        return self.value == 1


class _Combination(Kernel):
    """Several kernels whose values are combined."""

    kernels: tuple[Kernel, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", tuple(self.kernels))
        parts = len(self.kernels) > 0 and all(isinstance(k, Kernel) for k in self.kernels)
        self._require("kernels", parts, "a non-empty sequence of kernels")

    @property
    def bounded(self) -> bool:
        return all(k.bounded for k in self.kernels)


class Sum(_Combination):
    """k = k_1 + k_2 + ...

    Examples
    --------
    >>> (Linear() + Gaussian(0.5))([[1.0]])
    array([[2.]])
    """

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls((Constant(0.5), Gaussian(0.7))), cls((Product((Constant(0.2), Polynomial(2))), Laplacian(0.4)))

    def row(self, totals: Totals) -> Array:
        return reduce(np.add, [k.row(totals) for k in self.kernels])


class Product(_Combination):
    """k = k_1 * k_2 * ...

    Examples
    --------
    >>> (0.5 * Gaussian(0.5))([[1.0]])
    array([[0.5]])
    """

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls((Sum((Linear(), Constant())), Cauchy(0.8))), cls((Gaussian(0.2), Laplacian(0.1), Cauchy(0.3)))

    def row(self, totals: Totals) -> Array:
        return reduce(np.multiply, [k.row(totals) for k in self.kernels])

    @property
    def unit(self) -> bool:
        return all(k.unit for k in self.kernels)


def _flatten(kind: type[_Combination], *terms: Kernel | float) -> tuple[Kernel, ...]:
    flat: list[Kernel] = []
    for term in terms:
        if isinstance(term, kind):
            flat += term.kernels
        elif isinstance(term, Kernel):
            flat.append(term)
        else:
            flat.append(Constant(term))
    return tuple(flat)


_NAMED: dict[str, type[Kernel]] = {
    "linear": Linear,
    "polynomial": Polynomial,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "cauchy": Cauchy,
    "sigmoid": Sigmoid,
}


def as_kernel(kernel: Kernel | str) -> Kernel:
    """The kernel itself, or the kernel with this name and default fields."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in _NAMED:
        return _NAMED[kernel]()
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise ValueError(f"kernel must be an object, got the class {kernel.__name__}: call it, {kernel.__name__}()")
    raise ValueError(f"kernel must be an onkel.kernels object or one of {sorted(_NAMED)}, got {kernel!r}")
