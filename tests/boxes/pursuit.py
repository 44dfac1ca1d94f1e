"""Functional gradient descent and dictionary compression (6.1 - 6.5).

The dictionary D is a list of rounds, the oldest first. Nothing is kept from round to round but D and the
coefficients: every factor and every solution is computed from K_DD anew. Boxes that compress return (F, e2),
where e2[t] is the squared distance of the model after round t from what the gradient step had made of it.
"""

import numpy as np

from boxes.common import direction, history, margin
from boxes.gradients import descent, residual_descent

REGRESSION = ("squared", "absolute", "epsilon_insensitive", "huber")


def fsgd(K, y, *, outputs=1, eta, lam, loss, schedule="constant", epsilon=0.1, delta=1.0):
    """6.1: shrink, then append -eta l' at the score before the shrink.

    epsilon is the tube of "epsilon_insensitive" ("squared" has none), delta the knee of "huber".
    """
    F = history(len(y), outputs)
    for t, rate in enumerate(rates(len(y), eta, schedule)):
        f = (1 - rate * lam) * F[t]
        f[t] = rate * push(K[t] @ F[t], y[t], loss, epsilon, delta)
        F[t + 1] = f
    return F


def rates(rounds, eta, schedule):
    """The step size of every round."""
    t = np.arange(1, rounds + 1)
    return eta / {"constant": np.ones(rounds), "1/t": t, "1/sqrt(t)": np.sqrt(t)}[schedule]


def push(s, y, loss, epsilon=0.1, delta=1.0):
    """-l', one number per output."""
    if loss in REGRESSION:
        return np.array([residual_descent(y - s[0], loss, 0.0 if loss == "squared" else epsilon, delta)])
    return descent(margin(s, y), loss) * direction(s, y)


def polk(
    K,
    y,
    *,
    outputs=1,
    eta,
    lam,
    loss,
    compression="komp",
    error=0.0,
    threshold=None,
    put_back="random",
    choose=None,
    schedule="constant",
    epsilon=0.1,
    delta=1.0,
):
    """6.2, 6.3 ("multiple"), 6.4 ("dissimilarity", with threshold instead of error); returns (F, e2).

    The budget of a round is error (eta_t / eta_1)^2. choose(candidates), for put_back="random": the position
    in the list of rounds of the one to keep. A point that depends on D is projected in all three.
    """
    F, e2, D = history(len(y), outputs), np.zeros(len(y)), []
    for t, rate in enumerate(rates(len(y), eta, schedule)):
        f = (1 - rate * lam) * F[t]
        g = rate * push(K[t] @ F[t], y[t], loss, epsilon, delta)
        budget = error * (rate / eta) ** 2
        if compression == "dissimilarity":
            if g.any() and not dependent(K, D, t) and similarity(K, D, t) < 1 / threshold:
                append(f, D, t, g)
            elif g.any():
                e2[t] = project(K, f, D, t, g)
        else:
            if g.any():
                append_or_project(K, f, D, t, g)
            if compression == "komp":
                e2[t] = komp(K, f, D, budget)
            else:
                e2[t] = komp_multiple(K, f, D, budget, put_back, choose)
        F[t + 1] = f
    return F, e2


def komp(K, f, D, budget):
    """6.2: remove the element of least error, the oldest among equals, while the error stays within budget."""
    e2 = 0.0
    while D:
        errors = single_errors(K, f, D)
        j = lowest(errors)
        if e2 + errors[j] > budget**2:
            break
        e2 += errors[j]
        remove(K, f, D, [D[j]])
    return e2


def komp_multiple(K, f, D, budget, put_back="random", choose=None):
    """6.3: all that are below budget alone, less as many as it takes for them to be so together; one pass."""
    errors = single_errors(K, f, D)
    Q = [D[j] for j in np.flatnonzero(errors < budget**2)]
    errors = list(errors[errors < budget**2])
    while len(Q) > 1 and joint_error(K, f, D, Q) > budget**2:
        kept = lowest(-np.array(errors)) if put_back == "largest" else choose(list(Q))
        del Q[kept], errors[kept]
    e2 = joint_error(K, f, D, Q)
    remove(K, f, D, Q)
    return e2


def inc_dec(
    K,
    y,
    *,
    outputs=1,
    eta,
    lam,
    loss,
    insert_error,
    remove_error,
    schedule="constant",
    epsilon=0.1,
    delta=1.0,
):
    """6.5, incremental/decremental: insert if projection costs more than insert_error, then KOMP; returns (F, e2).

    e2 includes the projection, which the KOMP pass is not charged. Both budgets follow the schedule.
    """
    F, e2, D = history(len(y), outputs), np.zeros(len(y)), []
    for t, rate in enumerate(rates(len(y), eta, schedule)):
        f = (1 - rate * lam) * F[t]
        g = rate * push(K[t] @ F[t], y[t], loss, epsilon, delta)
        shrunk = (rate / eta) ** 2
        if not dependent(K, D, t) and g @ g * distance2(K, D, t) > (insert_error * shrunk) ** 2:
            append(f, D, t, g)
        elif g.any():
            e2[t] = project(K, f, D, t, g)
        e2[t] += komp(K, f, D, remove_error * shrunk)
        F[t + 1] = f
    return F, e2


def subset_selection(
    K,
    y,
    *,
    outputs=1,
    eta,
    lam,
    loss,
    error,
    candidates,
    select="smallest",
    choose=None,
    schedule="constant",
    epsilon=0.1,
    delta=1.0,
):
    """6.5, subset selection: remove `candidates` elements together, or half as many, ...; returns (F, e2).

    choose(ids, size), for select="random": the positions in the list of rounds ids of those to remove, first
    out of D, then of every half out of the one before. The budget follows the schedule.
    """
    F, e2, D = history(len(y), outputs), np.zeros(len(y)), []
    for t, rate in enumerate(rates(len(y), eta, schedule)):
        f = (1 - rate * lam) * F[t]
        g = rate * push(K[t] @ F[t], y[t], loss, epsilon, delta)
        budget = error * (rate / eta) ** 2
        if g.any():
            append_or_project(K, f, D, t, g)
        Q = list(D) if select == "random" else by_size(single_errors(K, f, D), D)
        size = min(candidates, len(D))
        while size > 0:
            Q = [Q[j] for j in choose(list(Q), size)] if select == "random" else Q[:size]
            squared = joint_error(K, f, D, Q)
            if squared <= budget**2:
                e2[t] = squared
                remove(K, f, D, Q)
                break
            size //= 2
        F[t + 1] = f
    return F, e2


def append(f, D, t, g):
    """A new element of the dictionary."""
    f[t] = g
    D.append(t)


def append_or_project(K, f, D, t, g):
    """6.2: a point that depends on the dictionary is not appended; its projection costs nothing."""
    if dependent(K, D, t):
        project(K, f, D, t, g)
    else:
        append(f, D, t, g)


def project(K, f, D, t, g):
    """Add g k(x_t, .), projected onto the span of D; returns the squared error."""
    f[D] += np.outer(np.linalg.solve(K[np.ix_(D, D)], K[D, t]), g)
    return g @ g * distance2(K, D, t)


def distance2(K, D, t):
    """The squared distance of k(x_t, .) from the span of D, delta in section 0."""
    u = np.linalg.solve(np.linalg.cholesky(K[np.ix_(D, D)]), K[D, t])
    return max(0.0, K[t, t] - u @ u)


def dependent(K, D, t):
    """Section 0: delta <= 1e-10 k_tt, so also wherever k_tt = 0."""
    return distance2(K, D, t) <= 1e-10 * K[t, t]


def similarity(K, D, t):
    """The largest normalised kernel value of x_t with an element of D; k_tt > 0."""
    return max((K[j, t] / np.sqrt(K[j, j] * K[t, t]) for j in D), default=-np.inf)


def single_errors(K, f, D):
    """abs(w_j)^2 / P_jj: the squared error of removing j alone. P_jj is a squared column of L^-1."""
    factor = np.linalg.inv(np.linalg.cholesky(K[np.ix_(D, D)]))
    return (f[D] ** 2).sum(axis=1) / (factor**2).sum(axis=0)


def joint_error(K, f, D, Q):
    """tr(w_Q' (P_QQ)^-1 w_Q): of removing all of Q. Where Q comes last, its block of L is a root of (P_QQ)^-1."""
    order = [j for j in D if j not in Q] + Q
    n = len(order) - len(Q)
    return np.sum((np.linalg.cholesky(K[np.ix_(order, order)])[n:, n:].T @ f[Q]) ** 2)


def remove(K, f, D, Q):
    """Take Q out of D and give its part of the function, projected, to the rest."""
    D[:] = [j for j in D if j not in Q]
    f[D] += np.linalg.solve(K[np.ix_(D, D)], K[np.ix_(D, Q)]) @ f[Q]
    f[Q] = 0


def lowest(values):
    """The position of the smallest, the oldest among equals up to a relative 1e-9."""
    return int(np.argmax(values <= values.min() + 1e-9 * abs(values.min())))


def by_size(values, D):
    """D in the order of values, the oldest first among equals as in `lowest`."""
    values, D, ordered = np.array(values), list(D), []
    while D:
        j = lowest(values)
        ordered.append(D.pop(j))
        values = np.delete(values, j)
    return ordered


def qklms(K, X, y, *, eta, radius):
    """6.5, quantisation: eta r goes to the nearest element if within radius, itself included, else to a new one."""
    F, D = history(len(y)), []
    for t in range(len(y)):
        f = F[t].copy()
        r = y[t] - (K[t] @ f)[0]
        away = np.linalg.norm(X[D] - X[t], axis=1)
        if D and away.min() <= radius:
            f[D[lowest(away)]] += eta * r
        else:
            append(f, D, t, eta * r)
        F[t + 1] = f
    return F


def platt_ran(K, X, y, *, eta, distance, surprise, rejected="discard"):
    """6.5, Platt novelty: append eta r if far and surprising; else nothing or, "lms", w += eta r k_t."""
    F, D = history(len(y)), []
    for t in range(len(y)):
        f = F[t].copy()
        r = y[t] - (K[t] @ f)[0]
        away = np.linalg.norm(X[D] - X[t], axis=1)
        if away.min(initial=np.inf) > distance and abs(r) >= surprise:
            append(f, D, t, eta * r)
        elif rejected == "lms":
            f[D, 0] += eta * r * K[D, t]
        F[t + 1] = f
    return F


def knlms(K, y, *, eta, coherence, ridge):
    """6.5, coherence: admit with weight 0, then a normalised step on all weights, admitted or not.

    Where k_tt = 0 nothing is admitted, and where all of k is 0 there is no step.
    """
    F, D = history(len(y)), []
    for t in range(len(y)):
        f = F[t].copy()
        if K[t, t] > 0 and all(abs(K[j, t]) / np.sqrt(K[j, j] * K[t, t]) <= coherence for j in D):
            D.append(t)
        k = K[D, t]
        if k.any():
            f[D, 0] += eta / (ridge + k @ k) * (y[t] - k @ f[D, 0]) * k
        F[t + 1] = f
    return F


def krls(K, y, *, nu, budget=None):
    """6.5, ALD: Pm is (A' A)^-1, where row i of A is the projection of x_i onto the dictionary of its round.

    (X) With `budget` examples in the dictionary it is closed.
    """
    F, D, A = history(len(y)), [], np.zeros((0, 0))
    for t in range(len(y)):
        f = F[t].copy()
        k_DD, k = K[np.ix_(D, D)], K[D, t]
        a = np.linalg.solve(k_DD, k)
        residue = distance2(K, D, t)
        e = y[t] - k @ f[D, 0]
        if not dependent(K, D, t) and (residue > nu or not D) and len(D) != budget:
            f[D, 0] -= a * e / residue
            append(f, D, t, e / residue)
            A = np.block([[A, np.zeros((len(A), 1))], [np.zeros((1, A.shape[1])), np.ones((1, 1))]])
        elif D:
            Pm = np.linalg.inv(A.T @ A)
            f[D, 0] += np.linalg.solve(k_DD, Pm @ a / (1 + a @ Pm @ a)) * e
            A = np.vstack([A, a])
        F[t + 1] = f
    return F
