"""The plain C++ twin (plain.cpp), compiled here and called through ctypes."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent


class Counts(ctypes.Structure):
    """What a run came to; `evaluations` are those of the kernel."""

    mistakes: int
    steps: int
    terms: int
    evaluations: int
    _fields_ = [(name, ctypes.c_int64) for name in ("mistakes", "steps", "terms", "evaluations")]


class Plain:
    """Online gradient descent with the hinge loss and a Gaussian kernel: plain.cpp, compiled with `flags`."""

    def __init__(self, folder: Path, flags: str) -> None:
        compiler = shlex.split(os.environ.get("CXX", "c++"))
        if shutil.which(compiler[0]) is None:
            raise SystemExit(f"the plain twin needs a C++ compiler, and {compiler[0]!r} is not there: set $CXX")
        library = folder / f"plain{flags.replace(' ', '')}.so"
        command = [*compiler, "-std=c++20", *flags.split(), "-shared", "-fPIC", f"-I{HERE.parent / 'src'}"]
        try:
            subprocess.run([*command, "-o", str(library), str(HERE / "plain.cpp")], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"the plain twin does not compile: {error}") from None
        self._run = ctypes.CDLL(str(library)).plain_ogd
        self._run.restype = None

    def __call__(self, X: Any, y: Any, *, eta: float, gamma: float, budget: int = 0, seed: int = 0) -> Counts:
        """Learn from the rows of X in turn; a budget of 0 has no limit."""
        arrays = (X, None, None)
        if sp.issparse(X):
            index, starts = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
            arrays = (X.data, index, starts)
        assert arrays[0].flags.c_contiguous and arrays[0].dtype in (np.float32, np.float64)
        targets = np.ascontiguousarray(y, np.float64)
        counts = Counts()
        self._run(
            ctypes.c_int(arrays[0].dtype == np.float32),
            *(None if array is None else ctypes.c_void_p(array.ctypes.data) for array in arrays),
            *map(ctypes.c_size_t, X.shape),
            ctypes.c_void_p(targets.ctypes.data),
            ctypes.c_double(eta),
            ctypes.c_double(gamma),
            ctypes.c_size_t(budget),
            ctypes.c_uint64(seed),
            ctypes.byref(counts),
        )
        return counts
