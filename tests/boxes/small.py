"""A small stream for each task."""

import numpy as np

T = 120
BUDGET = 12
TASKS = ["binary", "multiclass"]
LOSSES = ["hinge", "logistic", "squared_hinge", "exponential"]


def stream(task, rounds=T, seed=0, uneven=False):
    """A Gram matrix, noisy labels that depend on the inputs, and the number of outputs.

    The kernel is Gaussian; uneven gives it a diagonal other than 1.
    """
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rounds, 3))
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    if uneven:
        scale = generator.uniform(0.5, 2.0, rounds)
        K = scale[:, None] * K * scale
    z = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.4 * generator.normal(size=rounds)
    if task == "regression":
        return K, z, 1
    if task == "multiclass":
        return K, np.digitize(z, [-0.5, 0.5]), 3
    return K, np.where(z > 0, 1.0, -1.0), 1


def equal(F, G, tolerance=1e-10):
    np.testing.assert_allclose(F, G, rtol=0, atol=tolerance)
