"""The passive-aggressive learners (1.4)."""

import numpy as np

from boxes.common import curvature, direction, history, margin


def pa(K, y, *, outputs=1, variant="I", C=1.0):
    """1.4: on a positive hinge loss the step of length tau ("hard" is PA, "I" PA-I, "II" PA-II)."""
    F = history(len(y), outputs)
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        loss = max(0.0, 1 - margin(s, y[t]))
        if loss > 0 and K[t, t] > 0:
            f[t] = step_length(loss, curvature(K[t, t], outputs), variant, C) * direction(s, y[t])
        F[t + 1] = f
    return F


def pa_regression(K, y, *, variant="I", C=1.0, epsilon):
    """1.4, regression: outside the tube the step tau sgn(r)."""
    F = history(len(y))
    for t in range(len(y)):
        f = F[t].copy()
        r = y[t] - (K[t] @ f)[0]
        loss = max(0.0, abs(r) - epsilon)
        if loss > 0 and K[t, t] > 0:
            f[t] = step_length(loss, K[t, t], variant, C) * np.sign(r)
        F[t + 1] = f
    return F


def step_length(loss, k, variant, C):
    """1.4: tau."""
    if variant == "hard":
        return loss / k
    if variant == "I":
        return min(C, loss / k)
    return loss / (k + 1 / (2 * C))
