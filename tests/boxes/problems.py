"""Streams, pools and coins to try the transcriptions with."""

import numpy as np
import pytest

from boxes.feature_maps import fourier
from boxes.sampling import spa, spa_regression
from boxes.streams import gaussian, generator, stream

T, N, M = 60, 3, 4
WIDTHS = (0.3, 0.8, 2.0, 5.0)
SURE = np.log(1e6)  # ln(1/p) of a bound that fails with probability p


def problem(kind, seed=0, rounds=T):
    """One Gram matrix, the labels and the number of outputs."""
    X, y = stream(kind, seed, rounds)
    return gaussian(X), y, 3 if kind == "multiclass" else 1


def pool(kind, seed=0, rounds=T):
    """M Gram matrices, one of them with other diagonals than one, the labels and the number of outputs."""
    X, y = stream(kind, seed, rounds)
    Ks = np.array([gaussian(X, sigma=sigma) for sigma in WIDTHS])
    Ks[1] = (X @ X.T / 2 + 0.5) ** 2
    return Ks, y, 3 if kind == "multiclass" else 1


def fourier_pool(kind, seed=0, rounds=T, D=8):
    X, y = stream(kind, seed, rounds)
    rng = generator(seed + 100)
    return [fourier(X, rng.standard_normal((D + i, N)) / sigma) for i, sigma in enumerate(WIDTHS)], y


def uniforms(shape, seed=0):
    return generator(1000 + seed).random(shape)


def close(actual, expected, tolerance=1e-10):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


both = pytest.mark.parametrize("kind", ["binary", "multiclass"])
every = pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])


def run_spa(kind, K, y, outputs, u, eta=0.3, alpha=1.0, beta=3.0):
    if kind == "regression":
        return spa_regression(K, y, eta=eta, alpha=alpha, beta=beta, epsilon=0.1, uniforms=u)
    return spa(K, y, outputs=outputs, eta=eta, alpha=alpha, beta=beta, uniforms=u)
