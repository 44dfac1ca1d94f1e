"""Streams on which the boxes are tried by themselves."""

import numpy as np

CLASSIFICATION = ("hinge", "logistic", "squared_hinge", "exponential")


def generator(seed=0):
    return np.random.default_rng(seed)


def gaussian(X, Y=None, sigma=1.0):
    return np.exp(-((X[:, None] - (X if Y is None else Y)[None]) ** 2).sum(2) / (2 * sigma**2))


def stream(kind, seed=0, rounds=60, features=3):
    """Inputs and labels: "binary", "multiclass" (three classes) or "regression"."""
    rng = generator(seed)
    X = rng.standard_normal((rounds, features))
    signal = X[:, 0] * X[:, 1] + 0.5 * np.sin(2 * X[:, 2 % features]) + 0.3 * rng.standard_normal(rounds)
    if kind == "regression":
        return X, signal
    if kind == "binary":
        return X, np.where(signal > 0, 1, -1)
    return X, np.digitize(signal, [-0.4, 0.4])
