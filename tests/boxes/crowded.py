"""Streams whose kernel matrices are hard: few dimensions, rows that come twice."""

import numpy as np

from boxes.merging import (
    gaussian,
)

GAMMA = 0.3


def stream(seed=0, rounds=90, classes=None, d=2):
    """Inputs, noisy labels and the Gaussian Gram matrix."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rounds, d))
    X[:, 0] *= 2
    z = X[:, 0] + np.sin(3 * X[:, 1]) + 0.5 * rng.normal(size=rounds)
    y = np.where(z > 0, 1, -1) if classes is None else np.digitize(z, np.linspace(-1, 1, classes - 1))
    return X, y, gaussian(X, X, GAMMA)


def with_duplicates(seed=1, rounds=60):
    """A stream of few distinct inputs, each with both labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))[rng.integers(12, size=rounds)]
    return X, np.where(X[:, 0] + rng.normal(size=rounds) > 0, 1, -1), gaussian(X, X, GAMMA)


def changed(F):
    """The rounds that updated."""
    return [t for t in range(len(F) - 1) if not np.array_equal(F[t], F[t + 1])]
