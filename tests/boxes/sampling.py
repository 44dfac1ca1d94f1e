"""Learners that insert at random and never remove (section 5): SPA, OSKL, sparse KLR.

`uniforms[t]` is the one uniform number of round t: Z = [u < probability], one is spent even where that is 0.
"""

import numpy as np

from boxes.common import curvature, direction, history, margin
from boxes.gradients import descent, projected, residual_descent


def spa(K, y, *, outputs=1, eta, alpha, beta, uniforms):
    """5.1: with probability min(alpha, l) / beta the passive-aggressive step, of length eta / rho at most."""
    return sparse_passive_aggressive(K, y, outputs, eta, alpha, beta, uniforms, None)


def spa_regression(K, y, *, eta, alpha, beta, epsilon, uniforms):
    """5.1, regression: the loss is the distance to the tube, the step tau sgn(r)."""
    return sparse_passive_aggressive(K, y, 1, eta, alpha, beta, uniforms, epsilon)


def sparse_passive_aggressive(K, y, outputs, eta, alpha, beta, uniforms, epsilon):
    """5.1; an example with k_tt = 0 is skipped, as in 1.4."""
    F = history(len(y), outputs)
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        loss, way = hinged(s, y[t], epsilon)
        rho = min(alpha, loss) / beta
        if uniforms[t] < rho and K[t, t] > 0:
            f[t] = min(eta / rho, loss / curvature(K[t, t], outputs)) * way
        F[t + 1] = f
    return F


def hinged(s, y, epsilon=None):
    """The loss of 1.4 and what a step of length one adds; epsilon makes it a regression."""
    if epsilon is None:
        return max(0.0, 1 - margin(s, y)), direction(s, y)
    return max(0.0, abs(y - s[0]) - epsilon), np.sign(y - s)


def oskl(K, y, *, outputs=1, eta, G, R=np.inf, loss="logistic", epsilon=0.0, uniforms):
    """5.2: with probability abs(g) / G a step of length eta G, then the projection onto the ball of radius R.

    The loss is "logistic" or "exponential", on the margin, or "squared", the half-square of a regression with a
    tube (E12, E39). G may be one number per round.
    """
    F = history(len(y), outputs)
    bounds = np.broadcast_to(G, len(y))
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        if loss == "squared":
            g, way = abs(residual_descent(y[t] - s[0], loss, epsilon)), np.sign(y[t] - s)
        else:
            g, way = descent(margin(s, y[t]), loss), direction(s, y[t])
        assert g <= bounds[t] * (1 + 1e-9), "a probability above one: G is too small"
        if uniforms[t] < g / bounds[t]:
            f[t] = eta * bounds[t] * way
            f = projected(K, f, R)
        F[t + 1] = f
    return F


def sparse_klr(K, y, *, outputs=1, variant="margin", eta, R=np.inf, c=2.0, uniforms):
    """5.3, 5.4: with a probability that depends on the margin the plain step of KLR-SGD (1.7), not divided by it."""
    F = history(len(y), outputs)
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        q = margin(s, y[t])
        if uniforms[t] < klr_probability(q, variant, eta, c):
            f[t] = eta * descent(q, "logistic") * direction(s, y[t])
            f = projected(K, f, R)
        F[t + 1] = f
    return F


def klr_probability(q, variant, eta, c=2.0):
    """5.3, 5.4: Pr(Z = 1) at margin q; "auxiliary" (E20) does not depend on eta, the others only on p and eta."""
    if variant == "auxiliary":
        return np.exp(-np.logaddexp(0, q - np.log(c)))
    p, miss = np.exp(-np.logaddexp(0, -q)), descent(q, "logistic")
    if variant == "margin":
        return (2 - eta) / (2 - eta + eta * p)
    assert variant == "tight"
    return (1 - eta / 2) * miss / (np.logaddexp(0, -q) - eta / 2 * miss**2)
