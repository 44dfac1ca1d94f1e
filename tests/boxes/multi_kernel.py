"""Learning with several kernels (section 8).

The kernels are Gram matrices Ks, of shape (m, rounds, rounds), or features Zs, one matrix per kernel. Weights are
kept as logarithms and normalised once per round (E26). `epsilon` makes a kernel learner a regression, which needs
`eta_w`, the rate of the exponential weights, and combination="scores".
"""

from typing import NamedTuple

import numpy as np

from boxes.common import curvature, direction, margin, mistaken, norm
from boxes.feature_maps import fogd, nogd, step_size, tangent
from boxes.gradients import capped, descent, residual_descent
from boxes.perceptrons import largest_shrink, psi
from boxes.projections import make_room
from boxes.sampling import hinged


class Run(NamedTuple):
    """What a learner with m components did; arrays over outputs lose that axis when there is one."""

    S: np.ndarray  # the combined score of every example by the model before it, (rounds, outputs)
    W: np.ndarray  # the weights before every round and after the last, (rounds + 1, m)
    P: np.ndarray  # the score of every component before the round, (rounds, m, outputs)
    sizes: np.ndarray  # the support vectors (Fourier: features) of every component, (rounds + 1, m)
    F: np.ndarray = None  # the coefficients of every component, (m, rounds + 1, rounds, outputs)


def flat(A):
    """A without its last axis if that has length one."""
    return A[..., 0] if A.shape[-1] == 1 else A


def weights(v):
    """The normalised weights of the logarithms v, or of every row of them."""
    e = np.exp(v - v.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def combined(th, s, combination):
    """8.1: the sum of the votes, sgn(0) = +1 and argmax to the lowest index, or of the scores s, (m, outputs)."""
    if combination == "scores":
        return th @ s
    assert combination == "vote"
    if s.shape[1] == 1:
        return th @ np.where(s >= 0, 1.0, -1.0)
    return th @ np.eye(s.shape[1])[np.argmax(s, axis=1)]


def costs(s, y, discount, eta_w, loss, epsilon):
    """8.1, 8.7: what a round takes from the log-weights, on mistakes (E09: y f <= 0) or, with eta_w, by the loss."""
    if eta_w is None:
        return -np.log(discount) * np.array([mistaken(one, y) for one in s], dtype=float)
    return eta_w * np.array([tangent(loss, one, y, epsilon=epsilon)[0] for one in s])


def hedge(P, y, *, discount=0.99, combination="vote", eta_w=None, loss="squared", epsilon=0.0):
    """8.1: S and W for components with scores P, of shape (rounds, m) or (rounds, m, outputs)."""
    P = P[:, :, None] if P.ndim == 2 else P
    V = np.zeros((len(y) + 1, P.shape[1]))
    for t in range(len(y)):
        V[t + 1] = V[t] - costs(P[t], y[t], discount, eta_w, loss, epsilon)
    W = weights(V)
    return flat(np.array([combined(th, s, combination) for th, s in zip(W[:-1], P, strict=True)])), W


def chances(v, smoothing):
    """8.2: p_i = (1 - dl) th_i / max_j th_j + dl."""
    return (1 - smoothing) * np.exp(v - v.max()) + smoothing


def omkc(
    Ks,
    y,
    *,
    outputs=1,
    mode="DD",
    component="perceptron",
    discount=0.99,
    smoothing=0.001,
    uniforms_update=None,
    uniforms_combine=None,
    combination="vote",
    budget=None,
    shared=None,
    choose=None,
    eta_w=None,
    loss="squared",
    epsilon=None,
    **options,
):
    """8.2 with the components "perceptron" and "pa", 8.3 with "rbp", "forgetron", "bogd" and "bpa".

    A budget is floor(budget / m) per kernel or, if shared (None: under a sampled update), one of them all. choose
    may be one hook per kernel. The options are those of `Component`.
    """
    m, rounds = len(Ks), len(y)
    shared = mode[0] == "S" if shared is None else shared
    hooks = choose if isinstance(choose, list | tuple) else [choose] * m
    pool = [Component(K, y, outputs, component, epsilon, hook, **options) for K, hook in zip(Ks, hooks, strict=True)]
    S, P, sizes, V, F = empty(m, rounds, outputs)
    for t in range(rounds):
        v = V[t]
        P[t] = [c.score(t) for c in pool]
        th, p, touched = weights(v), chances(v, smoothing), np.ones(m, dtype=bool)
        if mode in ("DS", "SS"):
            drawn = uniforms_combine[t] < p
            th = th * (drawn if drawn.any() else np.arange(m) == np.argmax(v))
        if mode in ("SD", "SS"):
            touched = uniforms_update[t] < p
        S[t] = combined(th, P[t], combination)
        for i in np.flatnonzero(touched):
            count, limit = (sum(len(c.S) for c in pool), budget) if shared else (len(pool[i].S), (budget or 0) // m)
            pool[i].update(t, full=budget is not None and count >= limit)
        V[t + 1] = v if mode == "U" else v - touched * costs(P[t], y[t], discount, eta_w, loss, epsilon)
        F[:, t + 1] = [c.f for c in pool]
        sizes[t + 1] = [len(c.S) for c in pool]
    return Run(flat(S), weights(V), flat(P), sizes, F)


def empty(m, rounds, outputs):
    """Room for S, P, the sizes, the log-weights and F."""
    S, P = np.zeros((rounds, outputs)), np.zeros((rounds, m, outputs))
    sizes, V = np.zeros((rounds + 1, m), dtype=int), np.zeros((rounds + 1, m))
    return S, P, sizes, V, np.zeros((m, rounds + 1, rounds, outputs))


class Component:
    """The learner of one kernel: its coefficients f, its support vectors S by age, Forgetron's M and Q."""

    def __init__(
        self,
        K,
        y,
        outputs,
        kind,
        epsilon,
        choose,
        C=1.0,
        eta=1.0,
        lam=0.0,
        removal="uniform",
        unbiased=True,
        cap=None,
        ties=1e-12,
        divide=True,
    ):
        self.K, self.y, self.outputs, self.kind, self.epsilon, self.choose = K, y, outputs, kind, epsilon, choose
        self.C, self.eta, self.lam, self.removal, self.unbiased, self.cap = C, eta, lam, removal, unbiased, cap
        self.ties, self.divide = ties, divide
        self.f, self.S, self.M, self.Q = np.zeros((len(y), outputs)), [], 0, 0.0

    def score(self, t):
        return self.K[t] @ self.f

    def step(self, t):
        """What the component would insert (1.1, 1.4, 3.1), zero if it would not; E32: divide is the one by k_tt."""
        s, y, k = self.score(t), self.y[t], self.K[t, t]
        if self.kind in ("pa", "bpa"):
            loss, way = hinged(s, y, self.epsilon)
            if k == 0:
                return 0 * way
            return min(self.C, loss / curvature(k if self.divide else 1.0, self.outputs)) * way
        if self.epsilon is not None:
            slope = residual_descent(y - s[0], "squared", self.epsilon)
            return self.eta * np.array([slope if self.kind == "bogd" else np.sign(slope)])
        if self.kind == "bogd":
            return self.eta * descent(margin(s, y), "hinge") * direction(s, y)
        assert self.kind in ("perceptron", "rbp", "forgetron")
        return mistaken(s, y) * direction(s, y)

    def update(self, t, full):
        """8.3: one round; if full an insertion makes room among the own support vectors, without any it is skipped."""
        step = self.step(t)
        if self.kind == "bogd":
            self.f *= 1 - self.eta * self.lam
        if not step.any() or (full and not self.S):
            return
        self.M += 1
        n = len(self.S)
        if full and self.kind == "rbp":
            self.f[self.S.pop(self.choose(list(self.S), None))] = 0
        if full and self.kind == "bogd":
            self.f[self.S.pop(0 if self.removal == "fifo" else self.choose(list(self.S), None))] = 0
            self.f *= n / (n - 1) if self.unbiased and n > 1 else 1
        if full and self.kind == "bpa":
            make_room(self.K, self.y, self.f, self.S, t, step, self.C, "simple", self.ties)
        self.f[t] += step
        self.S.append(t)
        if full and self.kind == "bogd":
            self.f = capped(self.f, self.eta, self.cap)
        if full and self.kind == "forgetron":
            self.forget_the_oldest()

    def forget_the_oldest(self):
        """2.5, self-tuned: the shrink, then the removal."""
        r = self.S.pop(0)
        at = int(self.y[r]) if self.outputs > 1 else 0
        sigma, value = abs(self.f[r, at]), self.score(r)[at]
        if self.epsilon is not None:
            mu = abs(value)
        else:
            mu = value if self.outputs > 1 else self.y[r] * value
        phi = largest_shrink(sigma, mu, self.Q, self.M, False)
        self.f *= phi
        self.Q += psi(sigma * phi, phi * mu)
        self.f[r] = 0


def spa_omkl(
    Ks,
    y,
    *,
    outputs=1,
    eta=0.1,
    alpha=1.0,
    beta=3.0,
    discount=0.99,
    smoothing=0.001,
    uniforms,
    combination="vote",
    divide=True,
    eta_w=None,
    loss="squared",
    epsilon=None,
):
    """8.4: SPA per kernel, sampled with rho_i p_i but its step only by rho_i; the weights move in every round."""
    m, rounds = len(Ks), len(y)
    S, P, sizes, V, F = empty(m, rounds, outputs)
    for t in range(rounds):
        F[:, t + 1] = F[:, t]
        P[t] = [K[t] @ f for K, f in zip(Ks, F[:, t], strict=True)]
        S[t] = combined(weights(V[t]), P[t], combination)
        p = chances(V[t], smoothing)
        for i, K in enumerate(Ks):
            value, way = hinged(P[t, i], y[t], epsilon)
            rho = min(alpha, value) / beta
            if uniforms[t][i] < rho * p[i] and K[t, t] > 0:
                F[i, t + 1, t] = min(eta / rho, value / curvature(K[t, t] if divide else 1.0, outputs)) * way
        V[t + 1] = V[t] - costs(P[t], y[t], discount, eta_w, loss, epsilon)
        sizes[t + 1] = (F[:, t + 1] != 0).any(axis=2).sum(axis=1)
    return Run(flat(S), weights(V), flat(P), sizes, F)


def fogd_omkl(
    Zs, y, *, outputs=1, eta, loss="hinge", epsilon=0.1, discount=0.99, combination="vote", eta_w=None, lam=0.0
):
    """8.5: FOGD per kernel, Hedge in every round."""
    options = {"outputs": outputs, "eta": eta, "loss": loss, "epsilon": epsilon, "lam": lam}
    P = np.stack([fogd(Z, y, **options)[0] for Z in Zs], axis=1)
    sizes = np.tile([Z.shape[1] for Z in Zs], (len(y) + 1, 1))
    return hedged(P, y, sizes, discount, combination, eta_w, loss, epsilon)


def nogd_omkl(
    Ks,
    y,
    *,
    outputs=1,
    budget,
    rank,
    eta,
    loss="hinge",
    epsilon=0.1,
    switch="lazy",
    eta_linear=None,
    discount=0.99,
    combination="vote",
    eta_w=None,
):
    """8.5: NOGD per kernel, each with its own landmarks and its own switch (E27), Hedge in every round."""
    options = {"budget": budget, "rank": rank, "eta": eta, "switch": switch, "eta_linear": eta_linear}
    P = np.stack([nogd(K, y, outputs=outputs, loss=loss, epsilon=epsilon, **options)[0] for K in Ks], axis=1)
    stepped = [[tangent(loss, s, y[t], epsilon=epsilon)[1].any() for s in P[t]] for t in range(len(y))]
    sizes = np.vstack([np.zeros((1, len(Ks)), dtype=int), np.minimum(budget, np.cumsum(stepped, axis=0))])
    return hedged(P, y, sizes, discount, combination, eta_w, loss, epsilon)


def hedged(P, y, sizes, discount, combination, eta_w, loss, epsilon):
    """The run of components that do not depend on their weights."""
    options = {"discount": discount, "combination": combination, "eta_w": eta_w, "loss": loss, "epsilon": epsilon}
    return Run(*hedge(P, y, **options), flat(P), sizes)


def om2(Ks, y, outputs=1):
    """8.6, OM-2: W holds om_j, P the scores of the dual blocks, which share their coefficients."""
    m, rounds = len(Ks), len(y)
    S, P, sizes, W, F = empty(m, rounds, outputs)
    a = np.zeros((rounds, outputs))
    q = max(2.0, 2 * np.log(m))
    for t in range(rounds):
        P[t] = [K[t] @ a for K in Ks]
        S[t] = W[t] @ P[t]
        if margin(S[t], y[t]) <= 1:
            a[t] = min(1.0, 1 - margin(S[t], y[t]) / m ** (2 / q)) * direction(S[t], y[t])
        W[t + 1] = om2_weights([norm(K, a) for K in Ks], q)
        F[:, t + 1] = a
        sizes[t + 1] = (a != 0).any(axis=1).sum()
    return Run(flat(S), W, flat(P), sizes, F)


def om2_weights(lengths, q):
    """8.6: om_j = (1/q) (||th_j|| / ||th||_{2,q})^(q - 2), zero where th is."""
    b = np.array(lengths)
    if not b.any():
        return np.zeros(len(b))
    b = b / b.max()
    return (b / np.sum(b**q) ** (1 / q)) ** (q - 2) / q


def proximal_mkl(Ks, y, *, outputs=1, eta, lam, penalty="squared", loss="hinge", epsilon=0.0, R=np.inf):
    """8.6: a gradient step on F = sum_j f_j for every f_j, then the proximal step, in every round; W holds ||f_j||.

    The penalty is "squared", lam/2 (sum_j ||f_j||)^2, or "group", lam sum_j ||f_j|| (FOBOS). R is the radius of
    a ball for the norm of all f_j together; eta_t = eta / sqrt(t).
    """
    m, rounds = len(Ks), len(y)
    S, P, sizes, W, F = empty(m, rounds, outputs)
    for t in range(rounds):
        f = F[:, t].copy()
        P[t] = [K[t] @ one for K, one in zip(Ks, f, strict=True)]
        S[t] = P[t].sum(axis=0)
        step = step_size(eta, t + 1, "inverse_sqrt")
        f[:, t] = -step * tangent(loss, S[t], y[t], epsilon=epsilon)[1]
        b = np.array([norm(K, one) for K, one in zip(Ks, f, strict=True)])
        f *= shrinks(b, step * lam, penalty)[:, None, None]
        f = f * in_ball(Ks, f, R)
        F[:, t + 1] = f
        W[t + 1] = [norm(K, one) for K, one in zip(Ks, f, strict=True)]
        sizes[t + 1] = (f != 0).any(axis=2).sum(axis=1)
    return Run(flat(S), W, flat(P), sizes, F)


def shrinks(b, c, penalty):
    """8.6: the factor of every f_j, of norms b, by the proximal step of c/2 (sum b)^2 or of c sum b."""
    if penalty == "group":
        th = c
    else:
        assert penalty == "squared"
        down = np.sort(b)[::-1]
        ths = [c / (1 + r * c) * down[:r].sum() for r in range(1, len(b) + 1)]
        th = max([(r, th) for r, th in enumerate(ths) if down[r] > th], default=(0, 0.0))[1]
    return np.maximum(0.0, 1 - np.divide(th, b, out=np.full(len(b), np.inf), where=b > 0))


def in_ball(Ks, f, R):
    """The factor that brings all f_j together into the ball of radius R."""
    length = np.sqrt(sum(norm(K, one) ** 2 for K, one in zip(Ks, f, strict=True)))
    return R / length if length > R else 1.0


def raker(Zs, y, *, outputs=1, eta, lam=0.0, loss="squared", epsilon=0.0, eta_w=None):
    """8.7: FOGD with lam ||th||^2 per kernel, exponential weights by its loss, real-valued combination."""
    options = {"outputs": outputs, "eta": eta, "lam": 2 * lam, "loss": loss, "epsilon": epsilon}
    return fogd_omkl(Zs, y, combination="scores", eta_w=eta if eta_w is None else eta_w, **options)


def adaraker(Zs, y, *, outputs=1, eta, lam=0.0, loss="squared", epsilon=0.0, instances=None):
    """8.7: a run whose components are the instances, and the weights and scores of the kernels in each of them.

    Instance j (of those named, None: all) lives from round 2^j and restarts when 2^j divides the round. Before its
    life its weight and score are 0. W[t] has the restarts of round t; the last row those of no round.
    """
    rounds, m = len(y), len(Zs)
    js = list(range(int(np.log2(rounds)) + 1)) if instances is None else list(instances)
    rates = [min(0.5, eta / np.sqrt(2**j)) for j in js]
    S, P, sizes, V, _ = empty(len(js), rounds, outputs)
    V[:] = -np.inf
    inner_W, inner_P = np.zeros((rounds, len(js), m)), np.zeros((rounds, len(js), m, outputs))
    ws, vs = [None] * len(js), [None] * len(js)
    sizes[:] = sum(Z.shape[1] for Z in Zs)
    for t in range(rounds):
        for n, j in enumerate(js):
            if (t + 1) % 2**j == 0:
                ws[n], vs[n] = [np.zeros((Z.shape[1], outputs)) for Z in Zs], np.zeros(m)
                V[t, n] = np.log(rates[n])
        alive = [n for n in range(len(js)) if ws[n] is not None]
        if not alive:
            continue
        for n in alive:
            inner_W[t, n] = weights(vs[n])
            inner_P[t, n] = [Z[t] @ w for Z, w in zip(Zs, ws[n], strict=True)]
            P[t, n] = inner_W[t, n] @ inner_P[t, n]
        S[t] = weights(V[t, alive]) @ P[t, alive]
        ensemble = tangent(loss, S[t], y[t], epsilon=epsilon)[0]
        for n in alive:
            rate = rates[n]
            V[t + 1, n] = V[t, n] - rate * (tangent(loss, P[t, n], y[t], epsilon=epsilon)[0] - ensemble)
            for i, Z in enumerate(Zs):
                value, slope = tangent(loss, inner_P[t, n, i], y[t], epsilon=epsilon)
                vs[n][i] -= rate * value
                ws[n][i] = ws[n][i] - rate * (np.outer(Z[t], slope) + 2 * lam * ws[n][i])
    born = np.isfinite(V).any(axis=1)
    W = np.zeros_like(V)
    W[born] = weights(V[born])
    return Run(flat(S), W, flat(P), sizes), inner_W, flat(inner_P)
