"""The pools in `boxes.multi_kernel`, checked by themselves: Hedge, OMKC and SPA-OMKL (8.1 to 8.4)."""

import numpy as np
import pytest

import boxes
from boxes.common import counts_as_error, margin, mistaken
from boxes.gradients import bogd, bogd_regression
from boxes.multi_kernel import (
    Component,
    chances,
    fogd_omkl,
    hedge,
    nogd_omkl,
    omkc,
    spa_omkl,
)
from boxes.passive_aggressive import pa, pa_regression
from boxes.perceptrons import (
    forgetron,
    forgetron_regression,
    kernel_perceptron,
    kernel_perceptron_regression,
    rbp,
    rbp_regression,
)
from boxes.problems import SURE, M, T, both, close, every, fourier_pool, pool, problem, run_spa, uniforms
from boxes.projections import bpa
from boxes.streams import generator

# 8.1 Hedge


def assert_hedged(run, y, discount, vote=True):
    """8.1: the weights of the mistakes and, for every component, the bound on the mistakes of the vote."""
    m = run.W.shape[1]
    P = run.P[:, :, None] if run.P.ndim == 2 else run.P
    S = run.S[:, None] if run.S.ndim == 1 else run.S
    wrong = np.array([[mistaken(s, label) for s in row] for row, label in zip(P, y, strict=True)])
    expected = discount ** np.vstack([np.zeros(m), np.cumsum(wrong, axis=0)])
    close(run.W, expected / expected.sum(axis=1, keepdims=True))
    close(run.W.sum(axis=1), 1, 1e-12)
    errors = sum(counts_as_error(s, label) for s, label in zip(S, y, strict=True))
    if vote:
        assert (np.abs(S) <= 1 + 1e-12).all()
        assert (errors <= 2 * (np.log(m) + np.log(1 / discount) * wrong.sum(axis=0)) / (1 - discount)).all()


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_of_hedge_on_any_scores(discount, seed):
    rng = generator(seed)
    y = rng.choice([-1, 1], size=80)
    P = rng.standard_normal((80, 6)) + np.array([2, 0, 0, 0.5, -1, -3]) * y[:, None]
    P[rng.random(P.shape) < 0.1] = 0
    S, W = hedge(P, y, discount=discount)
    assert_hedged(boxes.multi_kernel.Run(S, W, P, None), y, discount)
    classes, Q = rng.integers(3, size=80), rng.standard_normal((80, 6, 3))
    S, W = hedge(Q, classes, discount=discount)
    assert_hedged(boxes.multi_kernel.Run(S, W, Q, None), classes, discount)


def test_hedge_by_hand():
    S, W = hedge(np.array([[0.0, -3.0], [2.0, 0.5]]), [1, 1], discount=0.5)
    close(S, [0, 1 * 0.5 + 1 * 0.5])  # sgn(0) = +1 votes, and yet it is a mistake (E09)
    close(W, [[0.5, 0.5]] * 3)
    S, W = hedge(np.array([[1.0, -3.0], [2.0, 0.5]]), [1, 1], discount=0.5, combination="scores")
    close(W, [[0.5, 0.5], [2 / 3, 1 / 3], [2 / 3, 1 / 3]])
    close(S, [-1, 1.5])
    S, W = hedge(np.array([[1.0, -1.0]]), [1.0], combination="scores", eta_w=0.3)
    close(W[1, 1] / W[1, 0], np.exp(-0.3 * 2))  # the half-square of a residual of two
    S, _ = hedge(np.array([[[0, 0, 0], [0, 1, 2], [5, 6, 1]]]), [0], discount=0.5)
    close(S, [[1 / 3, 1 / 3, 1 / 3]])


@both
def test_the_bound_of_hedge_on_every_learner_with_components_of_its_own(kind):
    Ks, y, outputs = pool(kind)
    Zs, _ = fourier_pool(kind)
    runs = [
        omkc(Ks, y, outputs=outputs),
        omkc(Ks, y, outputs=outputs, component="pa", C=0.1),
        omkc(Ks, y, outputs=outputs, component="rbp", budget=20, choose=boxes.chooser(0)),
        spa_omkl(Ks, y, outputs=outputs, uniforms=uniforms((T, M))),
        fogd_omkl(Zs, y, outputs=outputs, eta=0.5),
        nogd_omkl(Ks, y, outputs=outputs, budget=10, rank=4, eta=0.2),
    ]
    for run in runs:
        assert_hedged(run, y, 0.99)
        assert run.W.shape == (T + 1, M) and run.sizes.shape == (T + 1, M)
        assert run.P.shape == ((T, M) if outputs == 1 else (T, M, outputs))
        assert run.S.shape == ((T,) if outputs == 1 else (T, outputs))


# 8.2 OMKC, 8.3 on a budget

BOUNDED = {
    "rbp": {},
    "forgetron": {},
    "bogd": {"eta": 0.3, "lam": 0.1, "cap": 3.0},
    "bpa": {"C": 0.5},
}


every_component = pytest.mark.parametrize("component", ["perceptron", "pa", *BOUNDED])


def single(component, kind, K, y, outputs, budget, choose=None, C=0.5):
    """The same learner with one kernel."""
    if kind == "regression":
        return {
            "perceptron": lambda: kernel_perceptron_regression(K, y, eta=0.2, epsilon=0.1),
            "pa": lambda: pa_regression(K, y, C=C, epsilon=0.1),
            "rbp": lambda: rbp_regression(K, y, budget=budget, eta=0.2, epsilon=0.1, choose=choose),
            "forgetron": lambda: forgetron_regression(K, y, budget=budget, eta=0.2, epsilon=0.1),
            "bogd": lambda: bogd_regression(
                K,
                y,
                budget=budget,
                eta=0.2,
                lam=0.1,
                epsilon=0.1,
                removal="uniform",
                unbiased=True,
                cap=3,
                choose=choose,
            ),
        }[component]()
    return {
        "perceptron": lambda: kernel_perceptron(K, y, outputs=outputs),
        "pa": lambda: pa(K, y, outputs=outputs, C=C),
        "rbp": lambda: rbp(K, y, outputs=outputs, budget=budget, choose=choose),
        "forgetron": lambda: forgetron(K, y, outputs=outputs, budget=budget),
        "bogd": lambda: bogd(K, y, outputs=outputs, budget=budget, choose=choose, **BOUNDED["bogd"]),
        "bpa": lambda: bpa(K, y, outputs=outputs, budget=budget, C=C),
    }[component]()


def options_of(component, kind, budget):
    options = {"budget": budget if component in BOUNDED else None}
    if kind == "regression":
        options |= {"epsilon": 0.1, "eta_w": 0.1, "combination": "scores", "eta": 0.2}
        return options | ({"lam": 0.1, "cap": 3.0} if component == "bogd" else {"C": 0.5})
    return options | BOUNDED.get(component, {}) | ({"C": 0.5} if component == "pa" else {})


@every
@every_component
def test_the_components_of_dd_are_the_single_kernel_learners_on_their_share(kind, component):
    if (component, kind) == ("bpa", "regression"):
        pytest.skip("3.3 has no regression")
    Ks, y, outputs = pool(kind)
    hooks = [boxes.chooser(i) for i in range(M)]
    run = omkc(Ks, y, outputs=outputs, component=component, choose=hooks, **options_of(component, kind, 4 * 6 + 3))
    for i, K in enumerate(Ks):
        F = single(component, kind, K, y, outputs, 6, boxes.chooser(i))
        close(run.F[i], F)
        close(run.sizes[:, i], boxes.support_size(F))
        close(run.P[:, i].reshape(T, outputs), boxes.scores(K, F))


@every
@every_component
def test_one_kernel_is_that_learner(kind, component):
    """Section 9; p = 1 with one kernel, so all modes agree, and shared is not shared with anyone."""
    if (component, kind) == ("bpa", "regression"):
        pytest.skip("3.3 has no regression")
    Ks, y, outputs = pool(kind)
    K = Ks[:1]
    F = single(component, kind, K[0], y, outputs, 7, boxes.chooser(0))
    options = options_of(component, kind, 7) | {"combination": "scores"}
    for mode in ("U", "DD", "SD", "DS", "SS"):
        u, w = uniforms((T, 1)), uniforms((T, 1), 1)
        choose = boxes.chooser(0)
        run = omkc(
            K,
            y,
            outputs=outputs,
            mode=mode,
            component=component,
            uniforms_update=u,
            uniforms_combine=w,
            choose=choose,
            **options,
        )
        close(run.F[0], F)
        close(run.S.reshape(T, outputs), boxes.scores(K[0], F))


def test_one_kernel_votes_with_its_sign():
    Ks, y, _ = pool("binary")
    run = omkc(Ks[2:3], y)
    close(run.S, np.where(run.P[:, 0] >= 0, 1, -1))


@both
def test_every_perceptron_holds_its_mistakes(kind):
    Ks, y, outputs = pool(kind)
    run = omkc(Ks, y, outputs=outputs)
    P = run.P.reshape(T, M, outputs)
    for i in range(M):
        assert run.sizes[-1, i] == sum(mistaken(P[t, i], y[t]) for t in range(T))
        assert set(np.unique(run.F[i])) <= {-1, 0, 1}


@every
@every_component
def test_u_and_dd_have_the_same_components(kind, component):
    if (component, kind) == ("bpa", "regression"):
        pytest.skip("3.3 has no regression")
    Ks, y, outputs = pool(kind)
    options = options_of(component, kind, 24) | {"outputs": outputs, "component": component}
    u, dd = (omkc(Ks, y, mode=mode, choose=boxes.chooser(0), **options) for mode in ("U", "DD"))
    close(u.F, dd.F, 0)
    close(u.sizes, dd.sizes, 0)
    close(u.W, 1 / M)
    assert np.ptp(dd.W[-1]) > 1e-3


@both
@every_component
def test_without_sampling_sd_is_dd(kind, component):
    """8.2, 8.3: dl = 1 and a budget per kernel."""
    Ks, y, outputs = pool(kind)
    options = options_of(component, kind, 24) | {"outputs": outputs, "component": component, "smoothing": 1.0}
    draws = {"uniforms_update": uniforms((T, M)), "uniforms_combine": uniforms((T, M), 1), "shared": False}
    dd, sd, ds, ss = (
        omkc(Ks, y, mode=mode, choose=boxes.chooser(0), **draws, **options) for mode in ("DD", "SD", "DS", "SS")
    )
    for other in (sd, ds, ss):
        for name in ("S", "W", "P", "sizes", "F"):
            close(getattr(other, name), getattr(dd, name), 0)


@every
@every_component
def test_sd_leaves_alone_what_it_did_not_draw(kind, component):
    if (component, kind) == ("bpa", "regression"):
        pytest.skip("3.3 has no regression")
    Ks, y, outputs = pool(kind)
    u = uniforms((T, M))
    options = options_of(component, kind, 10) | {"outputs": outputs, "component": component, "smoothing": 0.1}
    run = omkc(Ks, y, mode="SD", discount=0.8, uniforms_update=u, choose=boxes.chooser(0), **options | {"eta_w": None})
    if kind == "regression":
        run = omkc(Ks, y, mode="SD", uniforms_update=u, choose=boxes.chooser(0), **options | {"eta_w": 2.0})
    p = 0.9 * run.W[:-1] / run.W[:-1].max(axis=1, keepdims=True) + 0.1
    drawn = u < p
    assert 0.2 < drawn.mean() < 0.99
    logs = np.log(run.W)
    for t in range(T):
        idle = ~drawn[t]
        close(run.F[idle, t + 1], run.F[idle, t], 0)
        close(np.ptp((logs[t + 1] - logs[t])[idle]) if idle.any() else 0, 0)
    close(run.W.sum(axis=1), 1, 1e-12)
    if component in BOUNDED:
        assert (run.sizes.sum(axis=1) <= 10).all() and run.sizes[-1].sum() == 10
    close(run.sizes.T, [boxes.support_size(F) for F in run.F])


@both
@pytest.mark.parametrize("component", list(BOUNDED))
def test_the_shared_budget(kind, component):
    """8.3: once full a kernel pays with its own support vectors, so counts stay; without any it waits."""
    Ks, y, outputs = pool(kind)
    options = options_of(component, kind, 6) | {"outputs": outputs, "component": component}
    run = omkc(Ks, y, mode="SD", uniforms_update=np.zeros((T, M)), choose=boxes.chooser(0), **options)
    total = run.sizes.sum(axis=1)
    full = int(np.argmax(total == 6))
    assert (total <= 6).all() and (np.diff(total) >= 0).all() and total[-1] == 6
    assert (run.sizes[full:] == run.sizes[full]).all()
    close(run.sizes.T, [boxes.support_size(F) for F in run.F])
    inserted = boxes.live(run.F.transpose(1, 2, 0, 3).reshape(T + 1, T, -1))[-1]
    assert inserted[full:].any()  # still learning


@pytest.mark.parametrize("component", list(BOUNDED))
def test_a_kernel_without_support_vectors_waits_for_room_that_never_comes(component):
    Ks, y, _ = pool("binary")
    run = omkc(
        Ks[[0, 2]], y, mode="SD", uniforms_update=np.zeros((T, 2)), choose=boxes.chooser(0), component=component,
        **options_of(component, "binary", 1),
    )  # fmt: skip
    assert (run.sizes[1:, 0] == 1).all() and not run.sizes[:, 1].any()
    assert not run.F[1].any()
    run = omkc(Ks, y, component=component, choose=boxes.chooser(0), **options_of(component, "binary", 3))
    assert not run.sizes.any()  # floor(3 / 4) each


def test_a_kernel_that_removes_its_only_support_vector_does_not_scale():
    Ks, y, _ = pool("binary")
    options = {"component": "bogd", "eta": 0.3, "lam": 0.1, "budget": 4}
    run = omkc(Ks, y, choose=boxes.chooser(0), **options)
    same = omkc(Ks, y, choose=boxes.chooser(0), unbiased=False, **options)
    close(run.F, same.F, 0)
    assert (run.sizes[-1] == 1).all()


def test_the_removal_of_bogd_with_a_shared_budget_is_unbiased():
    """8.3: with the component's own count in the factor the mean over the one removed keeps the function."""
    K, y, _ = problem("binary", rounds=9)
    for n in (2, 3, 8):
        mean = np.zeros((9, 1))
        for r in range(n):
            c = Component(K, y, 1, "bogd", None, lambda ids, p, r=r: r, eta=0.3, lam=0.1)
            c.S, c.f[:n] = list(range(n)), np.arange(1.0, n + 1)[:, None] / 20
            before = c.f.copy()
            c.update(8, full=True)
            mean += c.f / n
        close(mean[:8], 0.97 * before[:8])


def test_a_skipped_insertion_does_not_count_for_the_forgetron():
    K, y, _ = problem("binary", rounds=4)
    c = Component(K, y, 1, "forgetron", None, None)
    c.update(0, full=True)
    assert (c.M, c.S, c.f.any()) == (0, [], False)
    c.update(1, full=False)
    assert (c.M, c.S) == (1, [1])


def test_the_self_tuned_shrink_keeps_its_account_with_a_shared_budget():
    Ks, y, _ = pool("binary", rounds=120)
    parts = [Component(K, y, 1, "forgetron", None, None) for K in Ks]
    for t in range(120):
        for c in parts:
            c.update(t, full=sum(len(other.S) for other in parts) >= 10)
            assert c.Q <= 15 / 32 * c.M + 1e-9
            sigma = np.abs(c.f[c.S, 0])
            assert (np.diff(sigma) >= -1e-12).all() and (sigma <= 1).all()


@both
def test_the_sampled_combination(kind):
    Ks, y, outputs = pool(kind)
    u = uniforms((T, M))
    dd = omkc(Ks, y, outputs=outputs, discount=0.8)
    ds = omkc(Ks, y, outputs=outputs, discount=0.8, mode="DS", smoothing=0.2, uniforms_combine=u)
    for name in ("W", "P", "sizes", "F"):
        close(getattr(ds, name), getattr(dd, name), 0)
    P = ds.P.reshape(T, M, outputs)
    votes = np.where(P[:, :, :1] >= 0, 1, -1) if outputs == 1 else np.eye(outputs)[np.argmax(P, axis=2)]
    drawn = u < 0.8 * dd.W[:-1] / dd.W[:-1].max(axis=1, keepdims=True) + 0.2
    close(ds.S.reshape(T, outputs), np.einsum("tm,tm,tmo->to", drawn, dd.W[:-1], votes))
    ss = omkc(Ks, y, outputs=outputs, mode="SS", smoothing=0.2, uniforms_update=uniforms((T, M), 2), uniforms_combine=u)
    sd = omkc(Ks, y, outputs=outputs, mode="SD", smoothing=0.2, uniforms_update=uniforms((T, M), 2))
    close(ss.F, sd.F, 0)
    assert np.abs(ss.S - sd.S).max() > 0.01


def test_the_heaviest_kernel_is_always_drawn():
    v = np.log([0.2, 0.5, 0.3])
    for smoothing in (0.0, 0.001, 0.3, 1.0):
        p = chances(v, smoothing)
        assert p[1] == 1 and (p >= smoothing).all() and (p <= 1).all()


def test_binary_pools_are_pools_of_two_classes():
    """Section 9: the Perceptron, doubled, if the first label is the second class."""
    Ks, y, _ = pool("binary")
    y[0] = -1
    one = omkc(Ks, y, discount=0.9)
    two = omkc(Ks, (y < 0).astype(int), outputs=2, discount=0.9)
    close(two.P[:, :, 0] - two.P[:, :, 1], 2 * one.P)
    close(two.W, one.W)
    close(two.S[:, 0] - two.S[:, 1], one.S)


def test_the_division_by_the_diagonal():
    """E32: no difference for kernels with k(x, x) = 1, and tau = min(C, l) without it."""
    Ks, y, _ = pool("binary")
    unit, other = Ks[[0, 2, 3]], Ks[1:2]
    close(omkc(unit, y, component="pa", C=0.1, divide=False).F, omkc(unit, y, component="pa", C=0.1).F, 0)
    u = uniforms((T, 3))
    close(spa_omkl(unit, y, uniforms=u, divide=False).F, spa_omkl(unit, y, uniforms=u).F, 0)
    run = omkc(other, y, component="pa", C=0.1, divide=False)
    close(np.abs(run.F[0, -1, :, 0]), np.clip(1 - y * run.P[:, 0], 0, 0.1))


# 8.4 SPA-OMKL


@every
def test_one_kernel_of_spa_omkl_is_spa(kind):
    K, y, outputs = problem(kind)
    u = uniforms(T)
    options = {"epsilon": 0.1, "eta_w": 0.1} if kind == "regression" else {}
    run = spa_omkl(K[None], y, outputs=outputs, eta=0.3, beta=2.0, uniforms=u[:, None], combination="scores", **options)
    F = run_spa(kind, K, y, outputs, u, beta=2.0)
    close(run.F[0], F, 0)
    close(run.S.reshape(T, outputs), boxes.scores(K, F))


@both
def test_spa_omkl_samples_with_both_and_steps_with_one(kind):
    Ks, y, outputs = pool(kind)
    n, sizes = 10, np.zeros(M)
    for seed in range(n):
        u = uniforms((T, M), seed)
        run = spa_omkl(Ks, y, outputs=outputs, uniforms=u, discount=0.8, smoothing=0.05)
        P = run.P.reshape(T, M, outputs)
        found = np.array([[max(0.0, 1 - margin(s, y[t])) for s in P[t]] for t in range(T)])
        rho = np.minimum(1, found) / 3
        p = 0.95 * run.W[:-1] / run.W[:-1].max(axis=1, keepdims=True) + 0.05
        live = (run.F[:, -1] != 0).any(axis=2).T
        assert (live == (u < rho * p)).all()
        k = np.array([K.diagonal() for K in Ks]).T * (2 if outputs > 1 else 1)
        tau = np.minimum(0.1 / rho[live], (found / k)[live])
        close(np.abs(run.F[:, -1]).max(axis=2).T[live], tau)
        sizes += run.sizes[-1] / n
    assert (sizes <= T / 3 + np.sqrt(T * SURE / (2 * n))).all()
