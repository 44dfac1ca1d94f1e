"""Functional approximation (section 7): the feature maps of 7.1 and the learners that are linear in them.

These learners have no coefficient per example, so they return scores instead of the history F: S, of shape
(rounds, outputs), by the model before every example and A by the averaged model (section 0).
"""

import numpy as np
from scipy.linalg import hadamard

from boxes.common import direction, margin
from boxes.gradients import descent, residual_descent

REGRESSION = ("squared", "absolute", "epsilon_insensitive")


def tangent(name, s, y, *, epsilon=0.0):
    """The loss at the scores s and its derivative in them (section 0).

    E12: "squared" is the half-square, flat inside the tube as far as its derivative is concerned.
    """
    if name in REGRESSION:
        r = y - s[0]
        value = {"squared": r**2 / 2, "absolute": abs(r), "epsilon_insensitive": max(0.0, abs(r) - epsilon)}[name]
        return value, np.array([-residual_descent(r, name, epsilon)])
    q = margin(s, y)
    value = {
        "hinge": max(0.0, 1 - q),
        "squared_hinge": max(0.0, 1 - q) ** 2 / 2,
        "logistic": np.logaddexp(0, -q),
        "exponential": np.exp(-q),
    }[name]
    return value, -descent(q, name) * direction(s, y)


def step_size(eta, t, schedule):
    """The step size of round t = 1, 2, ..."""
    return eta / {"constant": 1.0, "inverse": t, "inverse_sqrt": np.sqrt(t)}[schedule]


def fourier(X, U):
    """7.1: [cos, sin] of the directions U, one per row, scaled to unit length (E03)."""
    Q = X @ U.T
    return np.hstack([np.cos(Q), np.sin(Q)]) / np.sqrt(len(U))


def orthogonal_directions(blocks_gaussian, chis, sigma, D):
    """7.1, ORF: W = (1/s) diag(chi) Q per block, Q the orthogonal factor whose R has a positive diagonal."""
    W = []
    for gaussian, chi in zip(blocks_gaussian, chis, strict=True):
        Q, R = np.linalg.qr(gaussian)
        W.append(np.diag(chi) @ Q @ np.diag(np.sign(np.diag(R))) / sigma)
    return np.vstack(W)[:D]


def sorf_directions(signs, sigma, d, D):
    """7.1, SORF: (sqrt(d')/s) H D1 H D2 H D3 per block, H normalised, the padded columns cut."""
    W = []
    for d1, d2, d3 in signs:
        padded = len(d1)
        H = hadamard(padded) / np.sqrt(padded)
        W.append(np.sqrt(padded) / sigma * H @ np.diag(d1) @ H @ np.diag(d2) @ H @ np.diag(d3))
    return np.vstack(W)[:D, :d]


def fastfood_directions(B, perm, G, chis, sigma, d, D):
    """7.1, Fastfood: (1/(s sqrt(d'))) S H G Pi H B per block, (Pi u)_i = u[perm[i]], the padded columns cut."""
    V = []
    for b, p, g, chi in zip(B, perm, G, chis, strict=True):
        padded = len(b)
        H = hadamard(padded)
        Pi = np.eye(padded)[p]
        S = np.diag(chi) / np.linalg.norm(g)
        V.append(S @ H @ np.diag(g) @ Pi @ H @ np.diag(b) / (sigma * np.sqrt(padded)))
    return np.vstack(V)[:D, :d]


def top_eigen(K_LL, rank=None):
    """7.1: the rank largest eigenvalues, in descending order, and their vectors, less those below 1e-10 d_1."""
    d, V = np.linalg.eigh((K_LL + K_LL.T) / 2)
    d, V = d[::-1][:rank], V[:, ::-1][:, :rank]
    keep = d > 1e-10 * d[0]
    return d[keep], V[:, keep]


def nystrom(K_XL, K_LL, rank):
    """7.1: the features M k_L(x) and M = D_k^{-1/2} V_k^T."""
    d, V = top_eigen(K_LL, rank)
    M = np.diag(1 / np.sqrt(d)) @ V.T
    return K_XL @ M.T, M


def llsvm_features(K_XL, K_LL, rank=None):
    """7.6: K_XL K_LL^{-1/2}, the symmetric inverse root."""
    d, V = top_eigen(K_LL, rank)
    return K_XL @ V @ np.diag(1 / np.sqrt(d)) @ V.T


def fogd(Z, y, *, outputs=1, eta, loss, epsilon=0.1, lam=0.0, schedule="constant"):
    """7.2: w <- (1 - eta_t lam) w - eta_t l' z."""
    S, A = np.zeros((2, len(y), outputs))
    w = np.zeros((Z.shape[1], outputs))
    past = np.zeros_like(w)
    for t, z in enumerate(Z):
        past += w
        S[t] = z @ w
        A[t] = z @ past / (t + 1)
        step = step_size(eta, t + 1, schedule)
        _, slope = tangent(loss, S[t], y[t], epsilon=epsilon)
        w = (1 - step * lam) * w - step * np.outer(z, slope)
    return S, A


def adagrad(Z, y, *, outputs=1, eta, loss, epsilon=0.1, delta=0.0):
    """Diagonal AdaGrad: w_j <- w_j - eta g_j / (delta + sqrt(sum of the g_j^2 up to now)), no step on 0/0."""
    S, A = np.zeros((2, len(y), outputs))
    w = np.zeros((Z.shape[1], outputs))
    past, squares = np.zeros_like(w), np.zeros_like(w)
    for t, z in enumerate(Z):
        past += w
        S[t] = z @ w
        A[t] = z @ past / (t + 1)
        g = np.outer(z, tangent(loss, S[t], y[t], epsilon=epsilon)[1])
        squares += g**2
        w = w - eta * np.divide(g, delta + np.sqrt(squares), out=np.zeros_like(g), where=squares > 0)
    return S, A


def nogd(K, y, *, outputs=1, budget, rank, eta, loss, epsilon=0.1, switch="lazy", eta_linear=None):
    """7.3: kernel OGD, then, budget support vectors later, OGD on their Nystrom features (step eta_linear).

    A is the mean of the functions, so the expansions before the switch stay what they were.
    """
    S, A = np.zeros((2, len(y), outputs))
    eta_linear = eta if eta_linear is None else eta_linear
    L, M, w = [], None, None
    a = np.zeros((len(y), outputs))
    past_a, past_w = np.zeros_like(a), 0.0
    for t in range(len(y)):
        if M is None:
            past_a += a
            S[t] = K[t] @ a
            A[t] = K[t] @ past_a / (t + 1)
        else:
            z = M @ K[L, t]
            past_w = past_w + w
            S[t] = z @ w
            A[t] = (K[t] @ past_a + z @ past_w) / (t + 1)
        _, slope = tangent(loss, S[t], y[t], epsilon=epsilon)
        if not slope.any():
            continue
        if M is None and len(L) == budget:
            M, w = switched(K[np.ix_(L, L)], a[L], rank)
        if M is not None:
            w = w - eta_linear * np.outer(M @ K[L, t], slope)
            continue
        a[t] = -eta * slope
        L.append(t)
        if switch == "eager" and len(L) == budget:
            M, w = switched(K[np.ix_(L, L)], a[L], rank)
    return S, A


def switched(K_LL, a, rank):
    """7.3, E04: M = D_k^{-1/2} V_k^T and w = D_k^{1/2} V_k^T a."""
    d, V = top_eigen(K_LL, rank)
    return np.diag(1 / np.sqrt(d)) @ V.T, np.diag(np.sqrt(d)) @ V.T @ a


def dual_sgd(
    K,
    Z,
    y,
    *,
    outputs=1,
    budget,
    merge,
    lam,
    loss,
    epsilon=0.0,
    maintenance="merge",
    insert_always=False,
):
    """7.4; returns S, A and the number of kernel terms after every round.

    A is the mean of (a, v): a merged term takes its past along, into the past of v, a removed one loses it.
    """
    S, A = np.zeros((2, len(y), outputs))
    terms = np.zeros(len(y), dtype=int)
    core = []
    a, past_a = np.zeros((2, len(y), outputs))
    v, past_v = np.zeros((2, Z.shape[1], outputs))
    for t in range(len(y)):
        past_a += a
        past_v += v
        S[t] = K[t] @ a + Z[t] @ v
        A[t] = (K[t] @ past_a + Z[t] @ past_v) / (t + 1)
        _, slope = tangent(loss, S[t], y[t], epsilon=epsilon)
        a *= 1 - 1 / (t + 1)
        v *= 1 - 1 / (t + 1)
        new = -slope / (lam * (t + 1))
        if slope.any() or insert_always:
            if budget == 0:
                v += np.outer(Z[t], new)
            else:
                if len(core) == budget:
                    for i in smallest(a, core, merge if maintenance == "merge" else 1):
                        if maintenance == "merge":
                            v += np.outer(Z[i], a[i])
                            past_v += np.outer(Z[i], past_a[i])
                        a[i] = past_a[i] = 0
                        core.remove(i)
                a[t] = new
                core.append(t)
        terms[t] = len(core)
    return S, A, terms


def smallest(a, core, count):
    """7.4: the count terms of smallest abs(a), the older first among equals up to a relative 1e-9 (as E16)."""
    left, chosen = list(core), []
    while left and len(chosen) < count:
        sizes = np.linalg.norm(a[left], axis=1)
        chosen.append(left.pop(int(np.argmax(sizes <= sizes.min() * (1 + 1e-9)))))
    return chosen


def rrf(X, E, y, *, outputs=1, log_widths, eta, eta_kernel, lam=0.0, loss, epsilon=0.0, clip=20.0):
    """7.5; returns S, A and G, the history of the log-widths, of shape (rounds + 1, features).

    Both steps use the old w and the old widths (E07). A has the mean weights in the map of the round.
    """
    S, A = np.zeros((2, len(y), outputs))
    G = np.zeros((len(y) + 1, X.shape[1]))
    G[0] = np.clip(log_widths, -clip, clip)
    w = np.zeros((2 * E.shape[1], outputs))
    past = np.zeros_like(w)
    for t, x in enumerate(X):
        g = G[t]
        z = rrf_features(x, E, g)
        past += w
        S[t] = z @ w
        A[t] = z @ past / (t + 1)
        _, slope = tangent(loss, S[t], y[t], epsilon=epsilon)
        G[t + 1] = np.clip(g - eta_kernel * width_slope(x, E, g, w @ slope), -clip, clip)
        w = w - eta * (np.outer(z, slope) + lam * w)
    return S, A, G


def rrf_features(x, E, g):
    """7.5: z(x) in the directions om_nd = exp(g_n) e_nd."""
    q = (np.exp(g)[:, None] * E).T @ x
    return np.concatenate([np.cos(q), np.sin(q)]) / np.sqrt(len(q))


def width_slope(x, E, g, w):
    """7.5: the derivative of w.z(x) in g, for one vector w = [wc; ws]."""
    om = np.exp(g)[:, None] * E
    q = om.T @ x
    wc, ws = np.split(w, 2)
    v = (ws * np.cos(q) - wc * np.sin(q)) / np.sqrt(len(q))
    return x * (om @ v)
