"""Learners that project onto their support vectors: Projectron (2.6), BPA (3.3), BSGD by projection (3.4).

Every projection is solved afresh from K; no inverse is carried from one round to the next.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from boxes.common import counts_as_error, curvature, direction, history, margin, mistaken

DEPENDENT = 1e-10


def onto(K, S, t):
    """Section 0: the coefficients d on S of the projection of x_t, and delta2, its squared distance to the span.

    delta2 is exactly 0 where x_t counts as dependent on S.
    """
    d = solved(K[np.ix_(S, S)], K[S, t])
    delta2 = K[t, t] - K[S, t] @ d
    return d, delta2 if delta2 > DEPENDENT * K[t, t] else 0.0


def solved(A, b):
    """The solution of A x = b, A positive definite, or of least norm where rounding takes that from A."""
    try:
        return cho_solve(cho_factor(A), b)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(A, b, rcond=None)[0]


def projectron(K, y, *, outputs=1, budget=None, tolerance=0.0, squared=False, strict_sign_update=False):
    """2.6: on a mistake add the step, or project it if x_t is near the span of S or the budget is full.

    E11: squared compares delta2 itself to the tolerance.
    """
    F = history(len(y), outputs)
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        if mistaken(s, y[t], strict_sign_update):
            add_or_project(K, f, S, t, direction(s, y[t]), budget, tolerance, squared)
        F[t + 1] = f
    return F


def projectron_regression(K, y, *, budget=None, tolerance=0.0, eta, epsilon):
    """2.6, regression: outside the tube the step eta sgn(r), added or projected."""
    F = history(len(y))
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        r = y[t] - (K[t] @ f)[0]
        if abs(r) > epsilon:
            add_or_project(K, f, S, t, np.array([eta * np.sign(r)]), budget, tolerance)
        F[t + 1] = f
    return F


def add_or_project(K, f, S, t, step, budget, tolerance, squared=False):
    """2.6: the update of a mistake, in place; a dependent x_t (delta2 = 0) is always projected."""
    d, delta2 = onto(K, S, t)
    near = S and (delta2 if squared else np.sqrt(delta2)) <= tolerance
    if near or delta2 == 0 or len(S) == budget:
        f[S] += np.outer(d, step)
    else:
        f[t] = step
        S.append(t)


def projectron_plus_plus(K, y, *, outputs=1, budget=None, tolerance=0.0, rule="icml", U=None, strict_sign_update=False):
    """2.6: as the Projectron, and a projected step of length tau on a margin error on the correct side.

    "icml" needs U or a budget, "jmlr" a tolerance. Several classes use p2 for both rows, as run.
    """
    if rule == "icml" and U is None:
        U = np.sqrt((budget + 1) / np.log(budget + 1)) / 4
    F = history(len(y), outputs)
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        loss = 1 - margin(s, y[t])
        if mistaken(s, y[t], strict_sign_update):
            add_or_project(K, f, S, t, direction(s, y[t]), budget, tolerance)
        elif 0 < loss < 1 and not counts_as_error(s, y[t]):
            d, delta2 = onto(K, S, t)
            tau = margin_step(loss, delta2, K[t, t] - delta2, rule, tolerance, U)
            f[S] += tau * np.outer(d, direction(s, y[t]))
        F[t + 1] = f
    return F


def margin_step(loss, delta2, p2, rule, tolerance, U):
    """2.6: tau of a margin error, 0 where the rule skips it."""
    if p2 <= 0:
        return 0.0
    if rule == "icml":
        tau = min(loss / p2, 1.0)
        return tau if 2 * loss - tau * p2 - 2 * U * np.sqrt(delta2) >= 0 else 0.0
    assert rule == "jmlr"
    if tolerance == 0 and delta2 > 0:
        return 0.0
    left = loss - (np.sqrt(delta2) / tolerance if delta2 > 0 else 0.0)
    return min(loss / p2, 2 * left / p2, 1.0) if left > 0 else 0.0


def bpa(K, y, *, outputs=1, budget, C, variant="simple", ties=1e-12):
    """3.3: PA-I; once full the support vector that is cheapest to re-express on V gives its place to x_t.

    V is x_t ("simple"), x_t and the nearest to the one removed ("nearest") or everything else ("projecting",
    where a dependent x_t is spread over S instead). "plain" (E15) removes without re-expressing. Costs that
    differ by a relative `ties` are equal: at tau = C those of "plain" do not depend on k_rt.
    """
    F = history(len(y), outputs)
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        loss = max(0.0, 1 - margin(s, y[t]))
        if loss > 0 and K[t, t] > 0:
            tau = min(C, loss / curvature(K[t, t], outputs))
            step = tau * direction(s, y[t])
            d, delta2 = onto(K, S, t) if variant == "projecting" else (None, K[t, t])
            if delta2 == 0:
                f[S] += np.outer(d, step)
            else:
                if len(S) == budget:
                    make_room(K, y, f, S, t, step, C, variant, ties)
                f[t] += step
                S.append(t)
        F[t + 1] = f
    return F


def make_room(K, y, f, S, t, step, C, variant, ties):
    """3.3: remove the cheapest support vector, the oldest among equals, in place."""
    if variant == "plain":
        r = S[least([plain_objective(K, y, f, r, t, step, C) for r in S], ties)]
    else:
        ways = [re_expressed(K, S, r, t, variant) for r in S]
        position = least([np.sum(f[r] ** 2) * way[2] for r, way in zip(S, ways, strict=True)], ties)
        r, (V, u, _) = S[position], ways[position]
        f[V] += np.outer(u, f[r])
    f[r] = 0
    S.remove(r)


def least(costs, ties):
    """The position of the least cost, the first of those that are equal up to a relative `ties`."""
    costs = np.array(costs)
    return int(np.argmax(costs <= costs.min() + ties * abs(costs.min())))


def re_expressed(K, S, r, t, variant):
    """3.3: V, the coefficients of x_r on V, and the squared residual."""
    V = [t]
    rest = [i for i in S if i != r]
    if variant == "projecting":
        V = [*rest, t]
    elif variant == "nearest" and rest:
        n = nearest(K, rest, r)
        if K[t, t] * K[n, n] - K[t, n] ** 2 > DEPENDENT * K[t, t] * K[n, n]:
            V = [n, t]
    u = solved(K[np.ix_(V, V)], K[V, r])
    return V, u, max(0.0, K[r, r] - K[V, r] @ u)


def nearest(K, rest, r):
    """The nearest of `rest` to x_r in feature space, the oldest on ties."""
    return rest[int(np.argmin([K[i, i] - 2 * K[i, r] for i in rest]))]


def plain_objective(K, y, f, r, t, step, C):
    """3.3, E15: half the squared length of the step to f^r plus C times the loss there."""
    length = np.sum(f[r] ** 2) * K[r, r] + np.sum(step**2) * K[t, t] - 2 * (step @ f[r]) * K[r, t]
    s = K[t] @ f + step * K[t, t] - f[r] * K[r, t]
    return length / 2 + C * max(0.0, 1 - margin(s, y[t]))


def bsgd_project(K, y, *, outputs=1, budget, lam):
    """3.4: Pegasos; one support vector too many, perhaps the new one, is projected onto the others.

    E16: the one of smallest abs(a)^2 k, the oldest among equals up to a relative 1e-9. The step of a dependent
    x_t is projected at once.
    """
    F = history(len(y), outputs)
    S = []
    for t in range(len(y)):
        f = F[t].copy()
        s = K[t] @ f
        f *= 1 - 1 / (t + 1)
        if margin(s, y[t]) < 1:
            step = direction(s, y[t]) / (lam * (t + 1))
            d, delta2 = onto(K, S, t)
            if delta2 == 0:
                f[S] += np.outer(d, step)
            else:
                f[t] = step
                S.append(t)
        if len(S) > budget:
            p = S.pop(least([np.sum(f[i] ** 2) * K[i, i] for i in S], 1e-9))
            f[S] += np.outer(solved(K[np.ix_(S, S)], K[S, p]), f[p])
            f[p] = 0
        F[t + 1] = f
    return F
