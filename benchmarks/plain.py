"""The plain C++ twins (plain*.cpp) and the machine's peaks (peaks.cpp), compiled and called here."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent


def build(folder: Path, flags: str, *sources: str) -> Any:
    """The library made of some files."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    if shutil.which(compiler[0]) is None:
        raise SystemExit(f"the plain twins need a C++ compiler, and {compiler[0]!r} is not there: set $CXX")
    library = folder / f"{sources[0]}{flags.replace(' ', '')}.so"
    command = [*compiler, "-std=c++20", *flags.split(), "-shared", "-fPIC", f"-I{HERE.parent / 'cpp'}"]
    try:
        subprocess.run([*command, "-o", str(library), *(str(HERE / source) for source in sources)], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"{sources[0]} does not compile: {error}") from None
    return ctypes.CDLL(str(library))


class Counts(ctypes.Structure):
    """What a run came to; `evaluations` are those of the kernel."""

    mistakes: int
    steps: int
    terms: int
    evaluations: int
    _fields_ = [(name, ctypes.c_int64) for name in ("mistakes", "steps", "terms", "evaluations")]


class Plain:
    """Learners with the hinge loss, compiled with `flags`. Each learns from the rows of X in turn."""

    def __init__(self, folder: Path, flags: str) -> None:
        self._library = build(folder, flags, "plain.cpp", "plain_features.cpp", "plain_merging.cpp")

    def ogd(self, X: Any, y: Any, *, eta: float, gamma: float, budget: int = 0, seed: int = 0) -> Counts:
        """Gradient descent with a Gaussian kernel; a budget of 0 has no limit."""
        return self._run("ogd", X, y, eta, gamma, budget, seed)

    def merging(self, X: Any, y: Any, *, gamma: float, budget: int, spare: bool) -> Counts:
        """Every example becomes a term; over the budget two of them are merged."""
        return self._run("merging", X, y, gamma, budget, int(spare))

    def pool(self, X: Any, y: Any, *, kernels: Any, seeds: Any, eta: float, beta: float) -> Counts:
        """SPA-OMKL, in double, with the discount and smoothing of the papers."""
        gamma, degree = (np.array([getattr(k, name, 0.0) for k in kernels], float) for name in ("gamma", "degree"))
        return self._run("pool", X, y, gamma, len(gamma), degree, np.array(seeds, float), eta, beta, 0.99, 0.001)

    def fourier(self, X: Any, y: Any, *, directions: Any, eta: float) -> Counts:
        """Gradient descent on Fourier features."""
        return self._run("fourier", X, y, directions, len(directions), eta)

    def nystrom(self, X: Any, y: Any, *, landmarks: Any, M: Any, start: Any, eta: float, gamma: float) -> Counts:
        """Gradient descent on the features M k(x), from weights on."""
        return self._run("nystrom", X, y, landmarks, len(landmarks), M, len(M), start, eta, gamma)

    def widths(self, X: Any, y: Any, *, directions: Any, start: float, eta: float, eta_kernel: float) -> Counts:
        """Gradient descent on Fourier features and their log-widths."""
        return self._run("widths", X, y, directions, len(directions), start, eta, eta_kernel)

    def _run(self, name: str, X: Any, y: Any, *settings: Any) -> Counts:
        arrays = (X, None, None)
        if sp.issparse(X):
            index, starts = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
            arrays = (X.data, index, starts)
        dtype = arrays[0].dtype
        assert arrays[0].flags.c_contiguous and dtype in (np.float32, np.float64)
        targets, counts = np.ascontiguousarray(y, np.float64), Counts()
        settings = tuple(np.ascontiguousarray(s, dtype) if isinstance(s, np.ndarray) else s for s in settings)
        self._library[f"plain_{name}"](
            ctypes.c_int(dtype == np.float32),
            *map(_argument, (*arrays, *X.shape, targets)),
            ctypes.byref(counts),
            *map(_argument, settings),
        )
        return counts


class Peaks:
    """The machine at its best; each method does a thing `times` times for `size` numbers of a type."""

    def __init__(self, folder: Path) -> None:
        library = build(folder, "-O3 -march=native", "peaks.cpp")
        self.multiply_add, self.sincos, self.dot, self.axpy, self.reading = (
            partial(self._run, library[f"peak_{name}"]) for name in ("fma", "sincos", "dot", "axpy", "reading")
        )

    @staticmethod
    def _run(function: Any, dtype: Any, size: int, times: int) -> None:
        function(ctypes.c_int(dtype == np.float32), ctypes.c_size_t(size), ctypes.c_size_t(times))


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_double(value) if isinstance(value, float) else None if value is None else ctypes.c_size_t(value)
