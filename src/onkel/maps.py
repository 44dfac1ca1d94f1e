"""Maps: explicit features z(x) of a kernel, such that <z(x), z(x')> approximates k(x, x').

Random Fourier features are z(x) = [cos q, sin q] / sqrt(D) with D projections q = <omega, x>, where the omega are drawn
from the spectrum of the kernel; |z(x)| = 1. `draw(keys, seed)` returns the random numbers of a run. For `Fourier` and
`Reparameterized` they depend on the seed, the key of the feature and the component only; the key is made from the name
of the feature, or is its column. So features may appear later, in any order, and all machines draw the same numbers.
For `Orthogonal` and `Fastfood` they depend on the seed and the number of columns, which the first call fixes.

A map that learns has a memory, made by `start(run)` and changed by `adapt`. `Nystrom` is not random: its features
come from landmarks.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv, ndtri

from onkel.core.basis import Row
from onkel.core.errors import TooLarge
from onkel.core.outputs import KINDS, refuse_unknown_kinds
from onkel.core.part import Memory, Part
from onkel.core.random import hash_text, uniforms
from onkel.core.run import Run
from onkel.kernels import Cauchy, Gaussian, Kernel, Laplacian, Linear

Array = np.ndarray[Any, np.dtype[Any]]
Drawn = dict[str, Array]

_WORTH_KEEPING = 1 << 20  # largest number of draws that is cached (8 MB)
LEAST = {"float64": 1e-10, "float32": 1e-5}  # smallest eigenvalue that is kept, relative to the largest


def keys_of(names: Iterable[Any]) -> Array:
    """A key for each feature name; an integer is its own key, so column 3 is the feature with the integer name 3."""

    def key(name: Any) -> int:
        try:
            return int(name) % 2**64 if isinstance(name, Integral) else hash_text(str(name))
        except UnicodeEncodeError:
            raise ValueError(f"the feature name {name!r} is not valid Unicode: rename it") from None

    return np.fromiter(map(key, names), dtype=np.uint64)


class Map(Part):
    """Explicit features of a kernel.

    A map that offers "adapts" learns: the features of an example change from round to round.
    """

    kernel: Kernel = Gaussian()
    components: int = 100
    grows: ClassVar[bool] = True  # may features appear after the first call?
    # Are the numbers of a column drawn from its key alone, and is the last axis of each array that of the columns? Then
    # only new columns are drawn when features appear, else all columns are.
    by_column: ClassVar[bool] = False
    per_output: ClassVar[Mapping[str, str]] = {}  # entries of the memory that depend on the outputs, and their kind

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_unknown_kinds(cls, "per_output", KINDS)
        if "draw" in vars(cls) and "by_column" not in vars(cls):
            cls.by_column = False  # what holds for another `draw` need not hold for this one

    def __post_init__(self) -> None:
        self._require("kernel", isinstance(self.kernel, Kernel), "a kernel")
        self._integer("components", 1)

    @property
    def size(self) -> int:
        """Number of features."""
        return 2 * self.components

    def draw(self, keys: Array, seed: int) -> Drawn:
        """The random numbers of a run whose columns have these keys."""
        raise NotImplementedError

    def numbers(self, columns: int) -> float:
        """About how many numbers are drawn for so many columns."""
        return float(self.components) * max(columns, 1)

    def memory(self, columns: int) -> float:
        """About how many bytes it takes to draw them: there are four copies of each number for a moment."""
        return 32 * self.numbers(columns)

    def draw_more(self, columns: int, keys: Array, seed: int) -> Drawn:
        """The random numbers that a run with `columns` columns needs to go on with columns of these keys.

        They are those of the new columns if the map draws `by_column`, else those of all columns.
        """
        if not self.grows:
            raise ValueError(
                f"{type(self).__name__} was drawn for {columns} features and cannot take another: name all of them in "
                'the first example, or use the map "fourier", where features may appear later'
            )
        return self.draw(keys[columns:] if self.by_column else keys, seed)

    def start(self, run: Run) -> Memory:
        """The initial memory of a map that learns: numbers, arrays, `Random` streams and tables by name."""
        return {}

    def widths(self, memory: Memory) -> Array:
        """The factor by which the map has learned to scale each column."""
        raise TypeError(f"{self!r} learns no widths")

    def stretches(self, seed: int) -> Hashable:
        """A key that is equal for maps whose directions differ only by the factor `frequency` of the kernel.

        Such maps share the draw `spectrum`, so their projections are computed only once. None: the map shares no draw.
        """
        return None

    def spectrum(self, keys: Array, seed: int) -> Array:
        """The draw that maps with the same `stretches` share."""
        raise NotImplementedError

    def twin_fields(self, run: Any, draws: Mapping[Any, Any]) -> dict[str, Any]:
        drawn = draws[self]
        arrays = {name: np.ascontiguousarray(array, np.float64) for name, array in drawn.items()}
        return arrays | {"reach": self.reach(drawn, run.dtype)}

    def project(self, X: Any, drawn: Drawn, memory: Memory) -> Array:
        """The projections q of the rows of an array or a CSR matrix."""
        raise NotImplementedError

    def features(self, X: Any, drawn: Drawn, memory: Memory) -> Array:
        """z(x) for the rows x of an array or a CSR matrix."""
        q = self.project(X, drawn, memory)
        return np.concatenate([np.cos(q), np.sin(q)], axis=1) / math.sqrt(self.components)

    def length2(self, z: Array) -> float:
        """|z|^2; 1 for features that are a sine and a cosine for each component."""
        return 1.0

    def reach(self, drawn: Drawn, dtype: Any) -> float:
        """The upper limit of |x_1| + |x_2| + ... up to which projections do not overflow."""
        largest = max((float(np.abs(numbers).max(initial=0)) for numbers in drawn.values()), default=0.0)
        return float(np.finfo(dtype).max) / (1e6 * max(1.0, largest))

    def adapt(self, x: Row, z: Array, dz: Array, drawn: Drawn, memory: Memory) -> None:
        """Learn from an example; dz is the gradient of the loss with respect to its features z."""


def refuse_overflow(lengths: ArrayLike, reach: float) -> None:
    """Raise TooLarge for the first row whose projections would overflow; `lengths` are |x_1| + |x_2| + ... of rows."""
    inside = np.less(lengths, reach)
    if not inside.all():
        row = int(np.argmin(inside))
        raise TooLarge("|x_1| + |x_2| + ... =", float(np.ravel(lengths)[row]), "for random features", row)


@lru_cache(maxsize=4)
def _spectrum(kernel: Kernel, seed: int, components: int, keys: bytes) -> Array:
    """A cache of recent draws: runs that differ only in the kernel's width or in the step share them."""
    drawn = kernel.frequencies(uniforms(seed, "features", np.frombuffer(keys, np.uint64), components)).T
    drawn.flags.writeable = False
    return drawn


class Fourier(Map):
    """Random Fourier features of a Gaussian, Laplacian or Cauchy kernel (Rahimi, Recht 2007).

    Examples
    --------
    >>> Fourier(Gaussian(0.5), components=100).size  # a cosine and a sine for each component
    200
    >>> from onkel import ComposedClassifier, Features
    >>> model = ComposedClassifier(hypothesis=Features(Fourier(Gaussian(0.5), components=100)))
    """

    by_column: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(Gaussian(1.0), 6), cls(Laplacian(0.4), 6), cls(Cauchy(0.8), 6)

    def draw(self, keys: Array, seed: int) -> Drawn:
        return {"directions": self.kernel.frequency * self.spectrum(keys, seed)}

    def stretches(self, seed: int) -> Hashable:
        return type(self.kernel), self.components, seed

    def spectrum(self, keys: Array, seed: int) -> Array:
        draw = _spectrum if len(keys) * self.components <= _WORTH_KEEPING else _spectrum.__wrapped__
        return draw(type(self.kernel)(), seed, self.components, np.asarray(keys, np.uint64).tobytes())

    def project(self, X: Any, drawn: Drawn, memory: Memory) -> Array:
        return np.asarray(X @ drawn["directions"].T)


class Reparameterized(Fourier):
    """Fourier features whose widths are learned, one for each feature of the input (RRF).

    omega_nj = exp(g_j) e_nj, where e is drawn once, for the kernel at gamma = 1, and g starts at the width of `kernel`.
    Each step is g <- g - eta dl/dg, clipped to -clip .. clip, with
    dl/dg_j = exp(g_j) x_j sum_n e_nj (dz_sin,n cos q_n - dz_cos,n sin q_n) / sqrt(D). An entry of dl/dg that is not a
    number counts as 0.

    Examples
    --------
    >>> from onkel import ComposedClassifier, Features
    >>> model = ComposedClassifier(hypothesis=Features(Reparameterized(Gaussian(0.5), eta=0.01)))
    """

    eta: float = 0.0
    clip: float = 20.0
    traits: ClassVar[tuple[str, ...]] = ("adapts",)
    by_column: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(Gaussian(1.0), 6, 0.02), cls(Laplacian(0.4), 6, 0.02, 1.2)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._nonnegative("eta")
        self._finite("eta")
        self._positive("clip")
        self._require("clip", self.clip <= 50, "<= 50")

    def draw(self, keys: Array, seed: int) -> Drawn:
        return {"directions": self.spectrum(keys, seed)}

    def stretches(self, seed: int) -> Hashable:
        return None

    def twin_fields(self, run: Any, draws: Mapping[Any, Any]) -> dict[str, Any]:
        own = {"start": self.first_log_width, "eta": float(self.eta), "clip": float(self.clip)}
        return super().twin_fields(run, draws) | own

    @property
    def first_log_width(self) -> float:
        """g at the start."""
        return float(np.clip(math.log(self.kernel.frequency), -self.clip, self.clip))

    def start(self, run: Run) -> Memory:
        return {"log_widths": np.full(run.columns, self.first_log_width)}

    def reach(self, drawn: Drawn, dtype: Any) -> float:
        return super().reach(drawn, dtype) / math.exp(self.clip)

    def widths(self, memory: Memory) -> Array:
        return np.asarray(np.exp(memory["log_widths"]))

    def project(self, X: Any, drawn: Drawn, memory: Memory) -> Array:
        return np.asarray(X @ (np.exp(memory["log_widths"])[:, None] * drawn["directions"].T))

    def adapt(self, x: Row, z: Array, dz: Array, drawn: Drawn, memory: Memory) -> None:
        if self.eta == 0:
            return
        (cos, sin), (dcos, dsin) = np.split(z, 2), np.split(dz, 2)
        g, at = memory["log_widths"], slice(None) if x.index is None else x.index
        slope = np.exp(g[at]) * x.values * (drawn["directions"][:, at].T @ (dsin * cos - dcos * sin))
        g[at] = np.clip(g[at] - self.eta * np.where(np.isnan(slope), 0, slope), -self.clip, self.clip)


class Rotated(Map):
    """Maps whose directions are drawn together; only for Gaussian kernels and a fixed number of columns."""

    grows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("kernel", "gaussian" in self.kernel.offers, "Gaussian: these directions come in all rotations")

    def blocks(self, columns: int) -> tuple[int, int]:
        """Number and size of the blocks of a structured matrix; x is padded with zeros to that size, a power of 2.

        The size is at least 16: random signs give too few different directions in few dimensions.
        """
        size = max(16, 1 << max(columns - 1, 0).bit_length())
        return -(-self.components // size), size

    def numbers(self, columns: int) -> float:
        blocks, size = self.blocks(columns)
        return 6.0 * blocks * size

    def twin_fields(self, run: Any, draws: Mapping[Any, Any]) -> dict[str, Any]:
        fields = super().twin_fields(run, draws)
        return fields if "directions" in fields else fields | {"components": self.components, "columns": run.columns}

    def project(self, X: Any, drawn: Drawn, memory: Memory) -> Array:
        """X times the directions; for a structured matrix permute, multiply and transform, stage by stage."""
        if "directions" in drawn:
            return np.asarray(X @ drawn["directions"].T)
        blocks, size = drawn["scale"].shape
        v = np.zeros((X.shape[0], blocks, size))
        v[:, :, : X.shape[1]] = (X.toarray() if hasattr(X, "toarray") else X)[:, None]
        for order, diagonal in zip(drawn["orders"], drawn["diagonals"], strict=True):
            v = hadamard(np.take_along_axis(v, order[None], axis=2) * diagonal)
        return np.asarray((v * drawn["scale"]).reshape(len(v), -1)[:, : self.components])


class Orthogonal(Rotated):
    """Orthogonal random features (Yu et al. 2016): orthogonal directions with the lengths of Gaussian vectors.

    With `structured` (SORF) the directions are sqrt(d) H D_1 H D_2 H D_3 with Hadamard matrices H and random signs D_i.
    They cost log d each but are slightly biased.

    Examples
    --------
    >>> from onkel import ComposedClassifier, Features
    >>> model = ComposedClassifier(hypothesis=Features(Orthogonal(Gaussian(0.5), components=100)))
    """

    structured: bool = False

    def numbers(self, columns: int) -> float:
        return super().numbers(columns) if self.structured else Map.numbers(self, columns)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(Gaussian(1.0), 6), cls(Gaussian(1.0), 20, structured=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._boolean("structured")

    def draw(self, keys: Array, seed: int) -> Drawn:
        d = len(keys)
        if self.structured:
            blocks, size = self.blocks(d)
            signs = np.where(uniforms(seed, "features", np.arange(3 * blocks), size) < 0.5, -1.0, 1.0)
            diagonals = signs.reshape(3, blocks, size) / math.sqrt(size)
            scale = np.full((blocks, size), self.kernel.frequency * math.sqrt(size))
            return {"orders": np.broadcast_to(np.arange(size), diagonals.shape), "diagonals": diagonals, "scale": scale}
        rows = []
        for block in range(-(-self.components // max(d, 1))):
            count = min(d, self.components - block * d)
            Q, R = np.linalg.qr(ndtri(uniforms(seed, f"features {block}", np.arange(d), count)))
            chi = np.sqrt(2 * gammaincinv(d / 2, uniforms(seed, f"lengths {block}", np.arange(count), 1)))
            rows.append(chi * (Q * np.sign(np.diag(R))).T)
        return {"directions": self.kernel.frequency * np.concatenate(rows)}


class Fastfood(Rotated):
    """Directions S H G P H B / sqrt(d), which cost log d each (Le, Sarlos, Smola 2013).

    H is a Hadamard matrix, B random signs, P a permutation, G Gaussian numbers; S gives the directions the lengths of
    Gaussian vectors.

    Examples
    --------
    >>> from onkel import ComposedClassifier, Features
    >>> model = ComposedClassifier(hypothesis=Features(Fastfood(Gaussian(0.5), components=100)))
    """

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(Gaussian(1.0), 20),)

    def draw(self, keys: Array, seed: int) -> Drawn:
        blocks, size = self.blocks(len(keys))
        at = np.arange(blocks)
        signs = np.where(uniforms(seed, "signs", at, size) < 0.5, -1.0, 1.0)
        order = np.argsort(uniforms(seed, "order", at, size), axis=1)
        gaussian = ndtri(uniforms(seed, "features", at, size))
        chi = np.sqrt(2 * gammaincinv(size / 2, uniforms(seed, "lengths", at, size)))
        lengths = chi / np.linalg.norm(gaussian, axis=1, keepdims=True)
        return {
            "orders": np.stack([np.broadcast_to(np.arange(size), order.shape), order]),
            "diagonals": np.stack([signs, gaussian]),
            "scale": self.kernel.frequency / math.sqrt(size) * lengths,
        }


def hadamard(v: Array) -> Array:
    """The unnormalised Walsh-Hadamard transform along the last axis, whose length must be a power of 2."""
    half = 1
    while half < v.shape[-1]:
        pairs = v.reshape(*v.shape[:-1], -1, 2, half)
        a, b = pairs[..., 0, :], pairs[..., 1, :]
        v = np.stack([a + b, a - b], axis=-2).reshape(v.shape)
        half *= 2
    return v


class Nystrom(Part):
    """Features of any kernel from landmarks: z(x) = D^-1/2 V' k(x), with K = V D V' the landmarks' kernel matrix.

    The `rank` largest eigenvalues are kept (None: all) if they exceed 1e-10 times the largest. For examples in float32
    the limit is 1e-5, as smaller eigenvalues are lost in the rounding of their kernel values.

    Examples
    --------
    >>> Nystrom(Linear()).transform(np.array([[4.0]]))  # of one landmark with k(x, x) = 4
    array([[0.5]])
    """

    kernel: Kernel = Gaussian()
    rank: int | None = None

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(Linear(), 4)

    def __post_init__(self) -> None:
        self._require("kernel", isinstance(self.kernel, Kernel), "a kernel")
        if self.rank is not None:
            self._integer("rank", 1)

    def transform(self, K: Array, dtype: Any = np.float64) -> Array:
        """The matrix D^-1/2 V' for landmarks with the kernel matrix K; `dtype` is that of the examples to come."""
        values, vectors = np.linalg.eigh((K + K.T) / 2)
        kept = np.arange(len(K))[::-1][: self.rank]
        kept = kept[values[kept] > LEAST[np.dtype(dtype).name] * max(values[-1], 0)]
        return np.asarray(vectors[:, kept].T / np.sqrt(values[kept])[:, None])
