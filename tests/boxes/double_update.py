"""Double updating: DUOL (1.5) and BDUOL (4). Binary only; a_i = g_i y_i with g_i in [0, C]."""

import numpy as np

from boxes.common import history
from boxes.projections import least, nearest

TOLERANCE = 1e-9


def duol(K, y, *, C, rho=0.0):
    """1.5: F and the history of the cache y_i f(x_i), not a number off the support vectors."""
    return bduol(K, y, C=C, rho=rho, budget=None)


def bduol(K, y, *, C, rho=0.0, budget, maintenance="remove", cheap=False, ties=1e-12):
    """4: with a full budget and a positive loss first make room, then, if there is a loss still, step as 1.5.

    Dual ascents that differ by a relative `ties` count as equal.
    """
    F = history(len(y))
    cache = np.full((len(y) + 1, len(y)), np.nan)
    y = np.asarray(y, dtype=float)
    g, S = np.zeros(len(y)), []
    for t in range(len(y)):
        margins = cache[t].copy()
        loss = 1 - y[t] * (K[t] @ (g * y))
        if loss > 0 and len(S) == budget:
            Dg = reduction(K, y, g, margins, S, C, maintenance, cheap, ties)
            margins -= y * (K @ (Dg * y))
            g -= Dg
            S = drop(g, margins, S, 1e-12 * C)
            loss = 1 - y[t] * (K[t] @ (g * y))
        if loss > 0 and K[t, t] > 0:
            S = step(K, y, g, margins, S, t, loss, C, rho)
        cache[t + 1] = margins
        F[t + 1, :, 0] = g * y
    return F, cache


def drop(g, margins, S, floor):
    """Take the support vectors of weight at most floor out of g and margins, and return the others."""
    for i in S:
        if g[i] <= floor:
            g[i], margins[i] = 0, np.nan
    return [i for i in S if g[i] > 0]


def step(K, y, g, margins, S, t, loss, C, rho):
    """1.5: the update of a positive loss, in place but for S; E02: a single step is that of PA-I."""
    margins[t] = 1 - loss
    b = conflict(K, y, margins, S, t)
    if b is not None and y[b] * y[t] * K[b, t] <= -rho:
        g[t], more = double_step(K[t, t], K[b, b], y[b] * y[t] * K[b, t], loss, 1 - margins[b], g[b], C)
        g[b] += more
        margins += y * y[b] * more * K[b]
    else:
        g[t] = min(C, loss / K[t, t])
    margins += y * y[t] * g[t] * K[t]
    return drop(g, margins, [*S, t], 0.0)


def conflict(K, y, margins, S, t):
    """1.5: the support vector below margin 1 in the strongest conflict with x_t, the oldest on ties."""
    candidates = [i for i in S if margins[i] < 1 - TOLERANCE]
    return min(candidates, key=lambda i: y[i] * y[t] * K[i, t]) if candidates else None


def double_step(k_t, k_b, w, l_t, l_b, g, C):
    """1.5: (g_t, dg) of a double update by the four cases, by enumeration where none of them fits."""
    if k_t * C + w * (C - g) - l_t < 0 and k_b * (C - g) + w * C - l_b < 0:
        return C, C - g
    dg = (l_b - w * C) / k_b
    if (w**2 * C - w * l_b - k_t * k_b * C + k_b * l_t) / k_b > 0 and -g <= dg <= C - g:
        return C, dg
    q = (l_t - w * (C - g)) / k_t
    if 0 <= q <= C and l_b - k_b * (C - g) - w * q > 0:
        return q, C - g
    D = k_t * k_b - w**2
    if D / (k_t * k_b) > 1e-12:
        g_t, dg = (k_b * l_t - w * l_b) / D, (k_t * l_b - w * l_t) / D
        if 0 <= g_t <= C and -g <= dg <= C - g:
            return g_t, dg
    return enumerated(k_t, k_b, w, l_t, l_b, g, C)


def gain(k_t, k_b, w, l_t, l_b, g_t, dg):
    """1.5: the dual ascent of a double update."""
    return g_t * l_t + dg * l_b - (k_t * g_t**2 + k_b * dg**2 + 2 * w * g_t * dg) / 2


def enumerated(k_t, k_b, w, l_t, l_b, g, C):
    """1.5: the best of the corners, the edges and the inside of the box."""
    points = [(p, q) for p in (0.0, C) for q in (-g, C - g)]
    points += [(p, np.clip((l_b - w * p) / k_b, -g, C - g)) for p in (0.0, C)]
    points += [(np.clip((l_t - w * q) / k_t, 0.0, C), q) for q in (-g, C - g)]
    D = k_t * k_b - w**2
    if D / (k_t * k_b) > 1e-12:
        p, q = (k_b * l_t - w * l_b) / D, (k_t * l_b - w * l_t) / D
        points += [(p, q)] if 0 <= p <= C and -g <= q <= C - g else []
    return max(points, key=lambda point: gain(k_t, k_b, w, l_t, l_b, *point))


def reduction(K, y, g, margins, S, C, maintenance, cheap=False, ties=1e-12):
    """4: Dg of the candidate of largest dual ascent, the oldest on ties; cheap chooses it as "remove" does."""
    rule = "remove" if cheap else maintenance
    losses = [-ascent(K, y, margins, S, weights_lost(K, y, g, S, j, C, rule)) for j in S]
    return weights_lost(K, y, g, S, S[least(losses, ties)], C, maintenance)


def ascent(K, y, margins, S, Dg):
    """4: DA, what the dual objective gains when the weights become g - Dg."""
    v = Dg[S] * y[S]
    return -Dg[S] @ (1 - margins[S]) - v @ K[np.ix_(S, S)] @ v / 2


def weights_lost(K, y, g, S, j, C, maintenance):
    """4: Dg of giving up support vector j, whose part the others take over within their boxes."""
    Dg = np.zeros(len(y))
    Dg[j] = g[j]
    rest = [i for i in S if i != j]
    if maintenance == "remove" or not rest:
        return Dg
    if maintenance == "nearest":
        rest = [nearest(K, rest, j)]
        beta = K[rest, j] / K[rest, rest] * g[j] * y[j] * y[rest]
    elif maintenance == "approximate":
        beta = np.linalg.lstsq(K[np.ix_(rest, rest)], K[rest, j], rcond=1e-12)[0] * g[j] * y[j] * y[rest]
    else:
        assert maintenance == "project"
        Q = np.outer(y[rest], y[rest]) * K[np.ix_(rest, rest)] + 1e-10 * np.eye(len(rest))
        beta = box_qp(Q, g[j] * y[j] * y[rest] * K[rest, j], -g[rest], C - g[rest])
    Dg[rest] = -np.clip(beta, -g[rest], C - g[rest])
    return Dg


def box_qp(Q, c, lower, upper, normal=None):
    """The x that minimises x'Qx/2 - c'x over lower <= x <= upper and, if given, normal'x = 0; 0 must be feasible.

    A primal active set method: minimise over the free variables, stop at the first bound met, and free the
    variable that violates its sign condition most; with nothing free and a normal, the pair that does.
    """
    n = len(c)
    A = np.zeros((n, 0)) if normal is None else np.reshape(normal, (n, 1)).astype(float)
    x = np.zeros(n)
    free = (lower < 0) & (upper > 0)
    small = 1e-12 * (1 + np.abs(c).max(initial=0.0))
    for _ in range(100 * n + 1000):
        p, multiplier, flat = free_step(Q, c, A, x, free)
        room = np.where(p > 0, upper - x, x - lower)
        moving = free & (p != 0)
        ratios = np.full(n, np.inf)
        ratios[moving] = np.maximum(room[moving], 0.0) / np.abs(p[moving])
        length = ratios.min(initial=np.inf)
        if flat or length < 1:
            hit = ratios <= length
            x = x + length * p
            x[hit] = np.where(p > 0, upper, lower)[hit]
            free &= ~hit
            continue
        x = np.clip(x + p, lower, upper)
        gradient = Q @ x - c
        up, down = ~free & (x < upper), ~free & (x > lower)
        if normal is not None and not free.any():
            pair = violating_pair(gradient, A[:, 0], up, down, small)
            if pair is None:
                return x
            free[pair] = True
            continue
        gradient = gradient + A @ multiplier
        violation = np.maximum(np.where(up, -gradient, 0.0), np.where(down, gradient, 0.0))
        if violation.max(initial=0.0) <= small:
            return x
        free[np.argmax(violation)] = True
    raise RuntimeError("box_qp: no end in sight")


def free_step(Q, c, A, x, free):
    """The step to the minimum over the free variables, the multiplier there, and whether it is a flat descent."""
    m, k = int(free.sum()), A.shape[1]
    p = np.zeros(len(c))
    M = np.zeros((m + k, m + k))
    M[:m, :m] = Q[np.ix_(free, free)]
    M[:m, m:] = A[free]
    M[m:, :m] = A[free].T
    target = np.concatenate([(c - Q @ x)[free], np.zeros(k)])
    if m == 0:
        return p, np.zeros(k), False
    solution = np.linalg.lstsq(M, target, rcond=1e-14)[0]
    residual = target - M @ solution
    flat = bool(np.abs(residual).max() > 1e-8 * (1 + np.abs(target).max()))
    p[free] = (residual if flat else solution)[:m]
    return p, solution[m:], flat


def violating_pair(gradient, normal, up, down, small):
    """Two variables that may move along normal'x = 0 to a smaller objective, or None; normal is +1 or -1."""
    raised = np.where(np.where(normal > 0, up, down), -normal * gradient, -np.inf)
    lowered = np.where(np.where(normal > 0, down, up), -normal * gradient, np.inf)
    i, j = int(np.argmax(raised)), int(np.argmin(lowered))
    return [i, j] if raised[i] - lowered[j] > small else None
