"""The pools in `boxes.multi_kernel`, checked by themselves: features, group sparsity, Raker (8.5 to 8.7)."""

import numpy as np
import pytest

import boxes
from boxes.common import margin, norm
from boxes.feature_maps import fogd, nogd, nystrom, tangent
from boxes.gradients import ogd
from boxes.multi_kernel import (
    adaraker,
    fogd_omkl,
    nogd_omkl,
    om2,
    om2_weights,
    proximal_mkl,
    raker,
    shrinks,
)
from boxes.problems import M, T, both, close, every, fourier_pool, pool
from boxes.streams import generator

# 8.5 FOGD-OMKL, NOGD-OMKL


@every
def test_the_components_of_fogd_omkl_and_nogd_omkl(kind):
    """Section 9: every component, and so the only one, is the single learner."""
    Ks, y, outputs = pool(kind)
    Zs, _ = fourier_pool(kind)
    loss = "squared" if kind == "regression" else "hinge"
    weighing = {"combination": "scores", "eta_w": 0.1 if kind == "regression" else None}
    common = {"outputs": outputs, "eta": 0.8, "loss": loss}
    landmarks = {"budget": 18, "rank": 6}
    many, few = fogd_omkl(Zs, y, **common, **weighing), fogd_omkl(Zs[:1], y, **common, **weighing)
    for i, Z in enumerate(Zs):
        close(many.P[:, i].reshape(T, outputs), fogd(Z, y, **common)[0])
    close(few.S.reshape(T, outputs), fogd(Zs[0], y, **common)[0])
    many, few = (nogd_omkl(pair, y, **landmarks, **common, **weighing) for pair in (Ks, Ks[:1]))
    for i, K in enumerate(Ks):
        close(many.P[:, i].reshape(T, outputs), nogd(K, y, **landmarks, **common)[0])
    close(few.S.reshape(T, outputs), nogd(Ks[0], y, **landmarks, **common)[0])
    assert (many.sizes <= 18).all() and (np.diff(many.sizes, axis=0) >= 0).all() and (many.sizes[-1] == 18).all()
    assert len({int(np.argmax(column == 18)) for column in many.sizes.T}) > 1  # E27: each switches by itself


# 8.6 Group sparsity


@both
@pytest.mark.parametrize("m", [1, 2, 4])
def test_om2_with_explicit_features(kind, m):
    """F from the blocks th_j themselves, whose norms follow the recursion of 8.6."""
    Ks, y, outputs = pool(kind)
    Ks = Ks[:m]
    run = om2(Ks, y, outputs)
    maps = [nystrom(K, K, None)[0] for K in Ks]
    th = [np.zeros((Z.shape[1], outputs)) for Z in maps]
    n2, q, started = np.zeros(m), max(2, 2 * np.log(m)), False
    S, P = run.S.reshape(T, outputs), run.P.reshape(T, m, outputs)
    for t in range(T):
        lengths = np.array([np.linalg.norm(one) for one in th])
        h = np.array([Z[t] @ one for Z, one in zip(maps, th, strict=True)])
        close(P[t], h, 1e-6)
        om = om2_weights(lengths, q)
        close(S[t], om @ h, 1e-6)
        close(run.W[t], om, 1e-6)
        edge = margin(S[t], y[t])
        a = run.F[0, -1, t]
        if edge <= 1:
            eta = min(1, 1 - edge / m ** (2 / q))
            assert started or eta == 1
            started = True
            way = np.sign(a)
            assert way @ S[t] == pytest.approx(edge)
            close(np.abs(a).max(), eta)
            n2 += 2 * eta * h @ way + eta**2 * (way @ way) * np.array([K[t, t] for K in Ks])
            for Z, one in zip(maps, th, strict=True):
                one += np.outer(Z[t], a)
        else:
            assert not a.any()
        close(np.sqrt(np.clip(n2, 0, None)), [np.linalg.norm(one) for one in th], 1e-6)


@pytest.mark.parametrize("m", [1, 2, 3, 8])
def test_the_weights_of_om2_are_a_gradient(m):
    """8.6: om_j th_j is that of ||th||_{2,q}^2 / (2q)."""
    q, rng = max(2, 2 * np.log(m)), generator(m)
    th = rng.standard_normal((m, 3)) * rng.random((m, 1))

    def half(th):
        return np.sum(np.linalg.norm(th, axis=1) ** q) ** (2 / q) / (2 * q)

    gradient = np.zeros_like(th)
    for at in np.ndindex(th.shape):
        e = np.zeros_like(th)
        e[at] = 1e-6
        gradient[at] = (half(th + e) - half(th - e)) / 2e-6
    close(om2_weights(np.linalg.norm(th, axis=1), q)[:, None] * th, gradient, 1e-8)
    close(om2_weights(np.zeros(m), q), 0)


@pytest.mark.parametrize("c", [0.0, 0.01, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("seed", range(6))
def test_the_proximal_step_is_optimal(c, seed):
    """8.6: x - b + c sum x = 0 where x > 0 and >= 0 elsewhere, and the same for the group lasso."""
    rng = generator(seed)
    b = rng.random(6) ** 3 * (rng.random(6) > 0.2)
    x = b * shrinks(b, c, "squared")
    slack = x - b + c * x.sum()
    close(slack[x > 0], 0, 1e-12)
    assert (slack >= -1e-12).all() and (x >= 0).all()
    x = b * shrinks(b, c, "group")
    close(x, np.maximum(0, b - c), 1e-12)


@every
@pytest.mark.parametrize("penalty", ["squared", "group"])
def test_proximal_mkl(kind, penalty):
    Ks, y, outputs = pool(kind)
    loss = "squared" if kind == "regression" else "hinge"
    lam = 0.5
    run = proximal_mkl(Ks, y, outputs=outputs, eta=0.5, lam=lam, penalty=penalty, loss=loss)
    S, P = run.S.reshape(T, outputs), run.P.reshape(T, M, outputs)
    close(S, P.sum(axis=1))
    dead = 0
    for t in range(T):
        step = 0.5 / np.sqrt(t + 1)
        g = run.F[:, t].copy()
        g[:, t] -= step * tangent(loss, S[t], y[t])[1]
        b = np.array([norm(K, one) for K, one in zip(Ks, g, strict=True)])
        x = run.W[t + 1]
        slack = x - b + step * lam * (x.sum() if penalty == "squared" else 1.0)
        close(slack[x > 0], 0, 1e-10)
        assert (slack[b > 0] >= -1e-10).all()
        assert (run.sizes[t + 1][x == 0] == 0).all() and not run.F[x == 0, t + 1].any()
        dead += (x == 0).sum()
        keep = np.divide(x, b, out=np.zeros(M), where=b > 0)
        close(run.F[:, t + 1], keep[:, None, None] * g)
    assert dead > 0


@both
def test_proximal_mkl_without_a_penalty_is_gradient_descent_on_the_sum(kind):
    Ks, y, outputs = pool(kind)
    expected = boxes.scores(
        Ks.sum(axis=0), ogd(Ks.sum(axis=0), y, outputs=outputs, eta=0.5 / np.sqrt(np.arange(1, T + 1)))
    )
    for penalty in ("squared", "group"):
        run = proximal_mkl(Ks, y, outputs=outputs, eta=0.5, lam=0.0, penalty=penalty)
        close(run.S.reshape(T, outputs), expected)


def test_one_kernel_of_proximal_mkl_shrinks_by_the_squared_norm():
    Ks, y, _ = pool("binary")
    run = proximal_mkl(Ks[:1], y, eta=0.5, lam=0.3)
    for t in range(T):
        expected = run.F[0, t].copy()
        expected[t] = (0.5 / np.sqrt(t + 1)) * (y[t] if y[t] * run.S[t] < 1 else 0)
        close(run.F[0, t + 1], expected / (1 + 0.3 * 0.5 / np.sqrt(t + 1)))


def test_the_ball_of_proximal_mkl():
    Ks, y, _ = pool("binary")
    free, held = (proximal_mkl(Ks, y, eta=0.5, lam=0.01, R=R) for R in (np.inf, 0.8))
    assert np.linalg.norm(free.W[-1]) > 0.9 and (np.linalg.norm(held.W, axis=1) <= 0.8 + 1e-12).all()


# 8.7 Raker, AdaRaker


@every
def test_raker_is_regularised_fogd_under_exponential_weights(kind):
    Zs, y = fourier_pool(kind)
    outputs = 3 if kind == "multiclass" else 1
    options = {"outputs": outputs, "loss": "squared" if kind == "regression" else "logistic", "epsilon": 0.0}
    run = raker(Zs, y, eta=0.3, lam=0.02, **options)
    P = run.P.reshape(T, M, outputs)
    total = np.zeros(M)
    for t in range(T):
        w = np.exp(-0.3 * total)
        close(run.W[t], w / w.sum())
        close(run.S[t], (w @ P[t] / w.sum()) if outputs > 1 else (w @ P[t] / w.sum())[0])
        total += [tangent(options["loss"], s, y[t])[0] for s in P[t]]
    for i, Z in enumerate(Zs):
        close(P[:, i], fogd(Z, y, eta=0.3, lam=0.04, **options)[0])
    same = fogd_omkl(Zs, y, eta=0.3, combination="scores", eta_w=0.3, **options)
    close(raker(Zs, y, eta=0.3, **options).S, same.S, 0)
    close(raker(Zs[:1], y, eta=0.3, **options).S.reshape(T, outputs), fogd(Zs[0], y, eta=0.3, **options)[0])


@every
def test_one_kernel_and_one_instance_of_adaraker_is_fogd(kind):
    """8.7: instance 5 lives from round 32 and restarts in round 64, after the stream."""
    Zs, y = fourier_pool(kind)
    outputs = 3 if kind == "multiclass" else 1
    options = {"outputs": outputs, "loss": "squared" if kind == "regression" else "hinge", "epsilon": 0.0}
    run, _, _ = adaraker(Zs[:1], y, eta=2.0, instances=[5], **options)
    S = run.S.reshape(T, outputs)
    assert not S[:31].any()
    close(S[31:], fogd(Zs[0][31:], y[31:], eta=2.0 / np.sqrt(32), **options)[0])


def test_every_instance_of_adaraker_is_a_raker_between_its_restarts():
    Zs, y = fourier_pool("regression")
    eta, lam = 0.9, 0.01
    run, inner_W, inner_P = adaraker(Zs, y, eta=eta, lam=lam)
    assert run.P.shape == (T, 6) and inner_P.shape == inner_W.shape == (T, 6, M)
    for j in range(6):
        step = min(0.5, eta / np.sqrt(2**j))
        for start in range(2**j, T + 1, 2**j):
            rounds = slice(start - 1, min(start - 1 + 2**j, T))
            part = raker([Z[rounds] for Z in Zs], y[rounds], eta=step, lam=lam)
            close(run.P[rounds, j], part.S)
            close(inner_W[rounds, j], part.W[:-1])
            close(inner_P[rounds, j], part.P)
    close(run.P[:, 0], 0)  # restarts in every round


def test_the_instance_weights_of_adaraker():
    Zs, y = fourier_pool("regression")
    eta = 0.9
    run, _, _ = adaraker(Zs, y, eta=eta)
    steps = np.minimum(0.5, eta / np.sqrt(2.0 ** np.arange(6)))
    h = np.zeros(6)
    for t in range(1, T + 1):
        for j in range(6):
            if t % 2**j == 0:
                h[j] = steps[j]
        assert (h > 0).sum() == int(np.log2(t)) + 1
        close(run.W[t - 1], h / h.sum())
        close(run.S[t - 1], h @ run.P[t - 1] / h.sum())
        regret = (y[t - 1] - run.P[t - 1]) ** 2 / 2 - (y[t - 1] - run.S[t - 1]) ** 2 / 2
        h *= np.exp(-steps * regret)
    close(run.W[-1], h / h.sum())
