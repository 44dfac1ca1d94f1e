"""The streams of the benchmarks: the real files where they are, look-alikes otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from onkel import datasets

os.environ.setdefault("ONKEL_DATA", str(Path(__file__).resolve().parents[2] / "shared" / "data"))


@dataclass(frozen=True)
class Stream:
    """Shuffled examples with labels -1 and 1, and the parameters to learn them with."""

    name: str
    X: Any
    y: Any
    gamma: float
    eta: float = 0.5

    @property
    def setting(self) -> dict[str, Any]:
        """Step and width of the kernel."""
        return {"eta": self.eta, "gamma": self.gamma}

    def head(self, n: int, dtype: Any = np.float64) -> tuple[Any, Any]:
        """The first n examples (or all there are)."""
        return self.X[:n].astype(dtype), self.y[:n]


def ijcnn1() -> Stream:
    """141,691 x 22, dense, 9.6 % positive."""
    return _stream("ijcnn1", gamma=2.0, generate=_like_ijcnn1)


def a9a() -> Stream:
    """48,842 x 123, sparse with about 14 ones a row, 24 % positive."""
    return _stream("a9a", gamma=0.05, generate=_like_a9a)


def a9a_in_order() -> Stream:
    """The training part of a9a, 32,561 rows, as it lies."""
    stream = _stream("a9a", gamma=0.01, generate=_like_a9a, shuffled=False)
    return Stream(f"{stream.name}, training part in order", *stream.head(32_561), stream.gamma)


def _stream(name: str, gamma: float, generate: Callable[[Any], tuple[Any, Any]], shuffled: bool = True) -> Stream:
    random = np.random.default_rng(0)
    try:
        X, y = labelled(name)
    except datasets.DataError:
        X, y = generate(random)
        return Stream(f"like {name}", X, y, gamma)
    order = random.permutation(len(y)) if shuffled else slice(None)
    return Stream(name, X[order], y[order], gamma)


def labelled(name: str) -> tuple[Any, Any]:
    """Rows as they lie in the file, and their labels, the larger of two as 1 and the other as -1."""
    X, y = table(name)
    return X, np.where(y == y.max(), 1, -1)


def table(name: str) -> tuple[Any, Any]:
    """Rows and targets as they lie in the file."""
    stream = datasets.load(name)
    return stream.X, stream.y


def here(names: Iterable[str]) -> list[str]:
    """Those of the sets that are in the data folder."""
    return [name for name in names if datasets.is_here(name)]


def _like_ijcnn1(random: Any, n: int = 141_691) -> tuple[Any, Any]:
    """Ten columns of which one is 1, two wide ones, ten that are a window over a smooth signal."""
    X = np.zeros((n, 22))
    X[np.arange(n), np.arange(n) % 10] = 1
    X[:, 10:12] = random.normal((-0.25, 0.34), (0.37, 0.21), (n, 2))
    signal = np.convolve(random.normal(0, 0.1, n + 11), np.ones(3), "valid")
    X[:, 12:] = np.lib.stride_tricks.sliding_window_view(signal, 10)[:n]
    score = np.sin(5 * X[:, 10]) + X[:, 11] + 3 * X[:, 12] * X[:, 16] + 2 * X[:, :3].sum(axis=1) * X[:, 14]
    y = np.where(score + random.normal(0, 0.1, n) > np.quantile(score, 0.9), 1, -1)
    order = random.permutation(n)
    return X[order].astype(np.float32), y[order]


def _like_a9a(random: Any, n: int = 48_842, columns: int = 123, groups: int = 14) -> tuple[Any, Any]:
    """Fourteen attributes, each with one of its values set."""
    ends = np.linspace(0, columns, groups + 1).astype(int)
    chosen = np.column_stack(
        [start + (random.power(3, n) * (stop - start)).astype(int) for start, stop in pairwise(ends)]
    )
    weight = random.normal(size=columns)
    score = weight[chosen].sum(axis=1) + weight[chosen[:, 0]] * weight[chosen[:, 1]]
    y = np.where(score + random.normal(0, 1, n) > np.quantile(score, 0.76), 1, -1)
    starts = np.arange(0, n * groups + 1, groups)
    return sp.csr_array((np.ones(n * groups, np.float32), chosen.ravel(), starts), shape=(n, columns)), y
