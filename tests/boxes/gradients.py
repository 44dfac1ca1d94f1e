"""Gradient descent, unbounded (1.2, 1.3, 1.6 - 1.8) and on a budget (3.1, 3.2, 3.4 by removal)."""

import numpy as np

from boxes.common import curvature, direction, history, margin, norm


def ogd(K, y, *, outputs=1, eta, loss="hinge"):
    """1.2: add -eta l', the loss taken on the margin; eta may be one number per round."""
    F = history(len(y), outputs)
    steps = np.broadcast_to(eta, len(y))
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        f[t] = steps[t] * descent(margin(s, y[t]), loss) * direction(s, y[t])
        F[t + 1] = f
    return F


def descent(q, loss):
    """Minus the derivative of a classification loss at margin q."""
    if loss == "hinge":
        return 1.0 if q < 1 else 0.0
    if loss == "squared_hinge":
        return max(0.0, 1 - q)
    if loss == "logistic":
        return np.exp(-q - np.logaddexp(0, -q))
    assert loss == "exponential"
    return np.exp(-q)


def ogd_regression(K, y, *, eta, epsilon=0.0, loss="squared", delta=1.0, q=0.5):
    """1.2, regression: add -eta l'; E12: "squared" is the half-square, stepped on outside the tube only.

    eta may be one number per round.
    """
    F = history(len(y))
    steps = np.broadcast_to(eta, len(y))
    for t in range(len(y)):
        f = F[t].copy()
        r = y[t] - (K[t] @ f)[0]
        f[t] = steps[t] * residual_descent(r, loss, epsilon, delta, q)
        F[t + 1] = f
    return F


def residual_descent(r, loss, epsilon, delta=1.0, q=0.5):
    """Minus the derivative of a regression loss in the score, at residual r."""
    if loss == "squared":
        return r if abs(r) > epsilon else 0.0
    if loss == "absolute":
        return np.sign(r)
    if loss == "epsilon_insensitive":
        return np.sign(r) if abs(r) > epsilon else 0.0
    if loss == "huber":
        return min(max(r, -delta), delta)
    assert loss == "quantile"
    if r == 0:
        return 0.0
    return q if r > 0 else q - 1


def norma(K, y, *, outputs=1, eta, lam, rho=1.0, nu=None, truncation=None, loss="hinge"):
    """1.3: shrink, then add eta y if the margin before the shrink is at most rho, which nu moves.

    Other losses than the hinge have neither rho nor nu. eta may be one number or one number per round.
    """
    F = history(len(y), outputs)
    steps = np.broadcast_to(eta, len(y))
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        f *= 1 - steps[t] * lam
        margin_error = margin(s, y[t]) <= rho
        if loss != "hinge":
            f[t] = steps[t] * descent(margin(s, y[t]), loss) * direction(s, y[t])
        elif margin_error:
            f[t] = steps[t] * direction(s, y[t])
        if nu is not None:
            rho += -steps[t] * (1 - nu) if margin_error else steps[t] * nu
        forget(f, t, truncation)
        F[t + 1] = f
    return F


def norma_regression(K, y, *, eta, lam, epsilon=0.1, nu=None, truncation=None, loss="epsilon_insensitive", clamp=False):
    """1.3, regression: shrink, then add eta sgn(r) outside the tube or, for "squared", eta r.

    nu moves the width of the tube, which may become negative, as published, but for clamp.
    """
    F = history(len(y))
    for t in range(len(y)):
        f = F[t].copy()
        r = y[t] - (K[t] @ f)[0]
        f *= 1 - eta * lam
        if loss == "squared":
            f[t] = eta * r
        else:
            outside = abs(r) > epsilon
            if outside:
                f[t] = eta * np.sign(r)
            if nu is not None:
                epsilon += eta * (1 - nu) if outside else -eta * nu
                epsilon = max(epsilon, 0.0) if clamp else epsilon
        forget(f, t, truncation)
        F[t + 1] = f
    return F


def norma_detector(K, *, eta, lam, nu, truncation=None):
    """1.3, novelty detection: shrink, then add eta if f < rho; rho starts at 0 and moves by its gradient."""
    F = history(len(K))
    rho = 0.0
    for t in range(len(K)):
        f = F[t].copy()
        novel = (K[t] @ f)[0] < rho
        f *= 1 - eta * lam
        if novel:
            f[t] = eta
        rho += -eta * (1 - nu) if novel else eta * nu
        forget(f, t, truncation)
        F[t + 1] = f
    return F


def forget(f, t, truncation):
    """1.3: the score of round t + 1 uses the terms of the `truncation` rounds before it."""
    if truncation is not None:
        f[: max(0, t + 1 - truncation)] = 0


def pegasos(K, y, *, outputs=1, lam, project=False):
    """1.6: shrink by 1 - 1/t, add y / (lam t) if the margin before the shrink is below 1."""
    F = history(len(y), outputs)
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        f *= 1 - 1 / (t + 1)
        if margin(s, y[t]) < 1:
            f[t] = direction(s, y[t]) / (lam * (t + 1))
        F[t + 1] = projected(K, f, 1 / np.sqrt(lam)) if project else f
    return F


def klrsgd(K, y, *, outputs=1, eta, R=np.inf):
    """1.7: a step on the logit loss in every round, then the projection onto the ball of radius R."""
    F = history(len(y), outputs)
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        f[t] = eta * descent(margin(s, y[t]), "logistic") * direction(s, y[t])
        F[t + 1] = projected(K, f, R)
    return F


def projected(K, f, radius):
    """The nearest function to f in the ball of that radius."""
    length = norm(K, f)
    return f * (radius / length) if length > radius else f


def klms_regression(K, y, *, eta):
    """1.8: add eta r in every round."""
    F = history(len(y))
    for t in range(len(y)):
        f = F[t].copy()
        f[t] = eta * (y[t] - (K[t] @ f)[0])
        F[t + 1] = f
    return F


def ilk(K, y, *, outputs=1, eta, lam):
    """1.8: the implicit step on the regularised hinge loss; the shrink comes every round."""
    F = history(len(y), outputs)
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        if K[t, t] > 0:
            q = (1 + eta * lam - margin(s, y[t])) / curvature(K[t, t], outputs)
            f[t] = min(max(q, 0.0), eta) * direction(s, y[t])
        F[t + 1] = f / (1 + eta * lam)
    return F


def bogd(
    K,
    y,
    *,
    outputs=1,
    budget,
    eta,
    lam,
    removal="uniform",
    unbiased=True,
    cap=None,
    loss="hinge",
    choose=None,
):
    """3.1; the hinge steps below margin 1 (E13); what was run is fifo, biased, uncapped (E14)."""
    F = history(len(y), outputs)
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        f *= 1 - eta * lam
        step = descent(margin(s, y[t]), loss)
        if step > 0:
            full = len(S) == budget
            if full:
                f[S.pop(0 if removal == "fifo" else choose(list(S), None))] = 0
                f *= budget / (budget - 1) if unbiased else 1
            f[t] = eta * step * direction(s, y[t])
            S.append(t)
            if full:
                f = capped(f, eta, cap)
        F[t + 1] = f
    return F


def bogd_regression(
    K,
    y,
    *,
    budget,
    eta,
    lam,
    epsilon,
    removal="fifo",
    unbiased=False,
    cap=None,
    loss="squared",
    choose=None,
):
    """3.1, regression: the step eta r outside the tube, else the shrink only; by default as run (E14)."""
    F = history(len(y))
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        r = y[t] - (K[t] @ f)[0]
        f *= 1 - eta * lam
        step = residual_descent(r, loss, epsilon)
        if step != 0:
            full = len(S) == budget
            if full:
                f[S.pop(0 if removal == "fifo" else choose(list(S), None))] = 0
                f *= budget / (budget - 1) if unbiased else 1
            f[t] = eta * step
            S.append(t)
            if full:
                f = capped(f, eta, cap)
        F[t + 1] = f
    return F


def capped(f, eta, cap):
    """3.1: scale so that no component exceeds eta cap; done after a removal only."""
    return f if cap is None else f * min(1.0, eta * cap / np.abs(f).max())


def bogd_plus_plus(K, y, *, outputs=1, budget, eta, lam, cap=None, loss="hinge", choose=None):
    """3.2: as 3.1, removing a support vector with probability 1 - q_i and dividing survivors by q_i."""
    F = history(len(y), outputs)
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        f *= 1 - eta * lam
        step = descent(margin(s, y[t]), loss)
        if step > 0:
            full = len(S) == budget
            if full:
                q = keep_probabilities([np.linalg.norm(F[t, i]) * np.sqrt(K[i, i]) for i in S])
                position = choose(list(S), 1 - q)
                f[S.pop(position)] = 0
                f[S] /= np.delete(q, position)[:, None]
            f[t] = eta * step * direction(s, y[t])
            S.append(t)
            if full:
                f = capped(f, eta, cap)
        F[t + 1] = f
    return F


def bogd_plus_plus_regression(K, y, *, budget, eta, lam, epsilon, cap=None, loss="squared", choose=None):
    """3.2 on the step of 3.1, regression."""
    F = history(len(y))
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        r = y[t] - (K[t] @ f)[0]
        f *= 1 - eta * lam
        step = residual_descent(r, loss, epsilon)
        if step != 0:
            full = len(S) == budget
            if full:
                q = keep_probabilities([abs(F[t, i, 0]) * np.sqrt(K[i, i]) for i in S])
                position = choose(list(S), 1 - q)
                f[S.pop(position)] = 0
                f[S] /= np.delete(q, position)[:, None]
            f[t] = eta * step
            S.append(t)
            if full:
                f = capped(f, eta, cap)
        F[t + 1] = f
    return F


def keep_probabilities(weights):
    """3.2: q_i = min(1, c w_i) with c such that they sum to n - 1; a rest of zero weights shares equally."""
    weights = np.array(weights)
    q = np.ones(len(weights))
    rest = np.ones(len(weights), dtype=bool)
    while True:
        mass = rest.sum() - 1
        total = weights[rest].sum()
        q[rest] = mass * weights[rest] / total if total > 0 else mass / rest.sum()
        if (q <= 1).all():
            return q
        rest &= q < 1
        q[~rest] = 1


def bsgd_remove(K, y, *, outputs=1, budget, lam, removal="smallest", choose=None):
    """3.4: Pegasos, removing one support vector, perhaps the new one, whenever there are budget + 1.

    E16: the one of smallest abs(a)^2 k by default, the oldest among equals up to a relative 1e-9.
    """
    F = history(len(y), outputs)
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        f *= 1 - 1 / (t + 1)
        if margin(s, y[t]) < 1:
            f[t] = direction(s, y[t]) / (lam * (t + 1))
            S.append(t)
        if len(S) > budget:
            if removal == "random":
                position = choose(list(S), None)
            elif removal == "oldest":
                position = 0
            else:
                sizes = np.array([np.sum(f[i] ** 2) * K[i, i] for i in S])
                position = int(np.argmax(sizes <= sizes.min() * (1 + 1e-9)))
            f[S.pop(position)] = 0
        F[t + 1] = f
    return F
