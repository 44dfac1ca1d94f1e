"""The transcriptions in `boxes.sampling` and `boxes.multi_kernel`, checked by themselves: sections 5, 8 and 9."""

import boxes
import numpy as np
import pytest
from boxes.common import counts_as_error, curvature, margin, mistaken, norm
from boxes.feature_maps import fogd, fourier, nogd, nystrom, tangent
from boxes.gradients import bogd, bogd_regression, descent, klrsgd, ogd
from boxes.multi_kernel import (
    Component,
    adaraker,
    chances,
    fogd_omkl,
    hedge,
    nogd_omkl,
    om2,
    om2_weights,
    omkc,
    proximal_mkl,
    raker,
    shrinks,
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
from boxes.projections import bpa
from boxes.sampling import hinged, klr_probability, oskl, spa, spa_regression, sparse_klr
from boxes.streams import gaussian, generator, stream

T, N, M = 60, 3, 4
WIDTHS = (0.3, 0.8, 2.0, 5.0)
SURE = np.log(1e6)  # ln(1/p) of a bound that fails with probability p


def problem(kind, seed=0, rounds=T):
    """One Gram matrix, the labels and the number of outputs."""
    X, y = stream(kind, seed, rounds)
    return gaussian(X), y, 3 if kind == "multiclass" else 1


def pool(kind, seed=0, rounds=T):
    """M Gram matrices, one of them with other diagonals than one, the labels and the number of outputs."""
    X, y = stream(kind, seed, rounds)
    Ks = np.array([gaussian(X, sigma=sigma) for sigma in WIDTHS])
    Ks[1] = (X @ X.T / 2 + 0.5) ** 2
    return Ks, y, 3 if kind == "multiclass" else 1


def fourier_pool(kind, seed=0, rounds=T, D=8):
    X, y = stream(kind, seed, rounds)
    rng = generator(seed + 100)
    return [fourier(X, rng.standard_normal((D + i, N)) / sigma) for i, sigma in enumerate(WIDTHS)], y


def uniforms(shape, seed=0):
    return generator(1000 + seed).random(shape)


def close(actual, expected, tolerance=1e-10):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def grid(count=4000):
    return (np.arange(count) + 0.5) / count


def over_the_last_uniform(run, rounds, seed=0, count=1000):
    """The exact mean over the uniform number of the last round of F[-1], and F."""
    u = uniforms(rounds, seed)
    F = run(u)
    mean = 0.0
    for last in grid(count):
        u[-1] = last
        mean = mean + run(u)[-1] / count
    return mean, F


both = pytest.mark.parametrize("kind", ["binary", "multiclass"])
every = pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])


# 5.1 SPA


def run_spa(kind, K, y, outputs, u, eta=0.3, alpha=1.0, beta=3.0):
    if kind == "regression":
        return spa_regression(K, y, eta=eta, alpha=alpha, beta=beta, epsilon=0.1, uniforms=u)
    return spa(K, y, outputs=outputs, eta=eta, alpha=alpha, beta=beta, uniforms=u)


def losses(kind, K, F, y):
    return np.array(
        [hinged(s, y[t], 0.1 if kind == "regression" else None)[0] for t, s in enumerate(boxes.scores(K, F))]
    )


@every
def test_spa_inserts_as_often_as_its_losses_say(kind):
    K, y, outputs = problem(kind)
    n, alpha, beta = 40, 1.0, 3.0
    sizes, expected = [], []
    for seed in range(n):
        u = uniforms(T, seed)
        F = run_spa(kind, K, y, outputs, u, alpha=alpha, beta=beta)
        rho = np.minimum(alpha, losses(kind, K, F, y)) / beta
        assert ((rho >= 0) & (rho <= 1)).all()
        assert (boxes.live(F)[-1] == (u < rho)).all()
        assert not boxes.live(F)[-1][rho == 0].any()
        sizes.append(boxes.support_size(F)[-1])
        expected.append(rho.sum())
        assert sizes[-1] <= alpha * T / beta + np.sqrt(T * SURE / 2)
    assert np.mean(sizes) <= alpha * T / beta + np.sqrt(T * SURE / (2 * n))
    assert abs(np.mean(sizes) - np.mean(expected)) <= np.sqrt(T * 2 * SURE / n)


@every
@pytest.mark.parametrize("eta", [0.05, 0.5, 5.0])
def test_the_expected_step_of_spa_is_that_of_the_whole_loss(kind, eta):
    K, y, outputs = problem(kind, rounds=12)
    mean, F = over_the_last_uniform(lambda u: run_spa(kind, K, y, outputs, u, eta=eta), 12)
    s = K[-1] @ F[-2]
    loss, way = hinged(s, y[-1], 0.1 if kind == "regression" else None)
    rho = min(1.0, loss) / 3
    close(mean[-1], min(eta, rho * loss / curvature(K[-1, -1], outputs)) * way, 2e-3 * (1 + eta) / min(1, rho))
    close(mean[:-1], F[-2][:-1])


@every
@pytest.mark.parametrize("eta", [0.1, 1.0])
def test_spa_is_pa_in_the_limit(kind, eta):
    """Section 9, E19: alpha = beta -> 0; exact where every loss is 0 or above alpha."""
    K, y, outputs = problem(kind)
    F = run_spa(kind, K, y, outputs, uniforms(T), eta=eta, alpha=1e-12, beta=1e-12)
    found = losses(kind, K, F, y)
    assert ((found == 0) | (found > 1e-12)).all()
    close(F, pa_regression(K, y, C=eta, epsilon=0.1) if kind == "regression" else pa(K, y, outputs=outputs, C=eta))


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_a_short_step_of_spa_leaves_no_loss_and_a_long_one_is_cut(kind):
    K, y, outputs = problem(kind)
    eta = 0.15
    F = run_spa(kind, K, y, outputs, uniforms(T), eta=eta)
    before, cut = losses(kind, K, F, y), []
    for t in np.flatnonzero(boxes.live(F)[-1]):
        limit = eta / (min(1.0, before[t]) / 3)
        after = hinged(K[t] @ F[t + 1], y[t], 0.1 if kind == "regression" else None)[0]
        close(after, max(0.0, before[t] - limit))
        close(abs(F[-1, t, 0]), min(limit, before[t]))
        cut.append(limit < before[t])
    assert 0 < sum(cut) < len(cut)


def test_the_averaged_coefficients_of_spa():
    K, y, _ = problem("binary")
    F = spa(K, y, eta=0.3, alpha=1.0, beta=3.0, uniforms=uniforms(T))
    for t in (1, 7, T):
        inserted = np.arange(1, T + 1)  # in which round, counted from one
        close(boxes.averaged(F)[t - 1][:, 0], F[-1, :, 0] * np.clip(t - inserted, 0, None) / t)


def test_spa_skips_an_example_without_length():
    K, y, _ = problem("binary", rounds=5)
    K[2] = K[:, 2] = 0
    F = spa(K, y, eta=0.3, alpha=1.0, beta=1.0, uniforms=np.zeros(5))
    assert not F[:, 2].any() and F[-1].any()


@pytest.mark.parametrize("learner", ["spa", "oskl", "auxiliary"])
def test_two_classes_are_one_output(learner):
    """Section 9; the ball holds both outputs, so R is smaller by the root of two."""
    K, y, _ = problem("binary")
    classes, u = (y < 0).astype(int), uniforms(T)
    if learner == "spa":
        one = spa(K, y, eta=0.4, alpha=1.0, beta=2.0, uniforms=u)
        two = spa(K, classes, outputs=2, eta=0.2, alpha=1.0, beta=2.0, uniforms=u)
    elif learner == "oskl":
        one = oskl(K, y, eta=0.4, G=1.5, R=1.6, uniforms=u)
        two = oskl(K, classes, outputs=2, eta=0.2, G=1.5, R=1.6 / np.sqrt(2), uniforms=u)
    else:
        one = sparse_klr(K, y, variant="auxiliary", eta=0.8, R=1.6, uniforms=u)
        two = sparse_klr(K, classes, outputs=2, variant="auxiliary", eta=0.4, R=1.6 / np.sqrt(2), uniforms=u)
    close(two[:, :, 0] - two[:, :, 1], one[:, :, 0])
    assert 0 < boxes.support_size(one)[-1] < T


# 5.2 OSKL


def run_oskl(kind, K, y, outputs, u, eta=0.3, G=None, R=np.inf):
    if kind == "regression":
        return oskl(K, y, eta=eta, G=8.0 if G is None else G, R=R, loss="squared", epsilon=0.1, uniforms=u)
    return oskl(K, y, outputs=outputs, eta=eta, G=1.5 if G is None else G, R=R, uniforms=u)


def slopes(kind, K, F, y):
    loss = "squared" if kind == "regression" else "logistic"
    return np.array([tangent(loss, s, y[t], epsilon=0.1)[1] for t, s in enumerate(boxes.scores(K, F))])


@every
@pytest.mark.parametrize("R", [0.7, 2.0, np.inf])
def test_oskl_inserts_as_often_as_its_slopes_say_and_stays_in_the_ball(kind, R):
    K, y, outputs = problem(kind)
    n, G = 30, 8.0 if kind == "regression" else 1.5
    total = 0.0
    for seed in range(n):
        u = uniforms(T, seed)
        F = run_oskl(kind, K, y, outputs, u, R=R)
        p = np.abs(slopes(kind, K, F, y)).max(axis=1) / G
        assert ((p >= 0) & (p <= 1)).all()
        assert (boxes.live(F)[-1] == (u < p)).all()
        assert all(norm(K, f) <= R * (1 + 1e-12) for f in F)
        total += (u < p).sum() - p.sum()
        if kind != "regression":
            assert (u < p).sum() <= T / G + np.sqrt(T * SURE / 2)  # G_1 = 1
    assert abs(total / n) <= np.sqrt(2 * T * SURE / n)


@every
def test_the_expected_step_of_oskl_is_the_gradient_step(kind):
    K, y, outputs = problem(kind, seed=3, rounds=12)
    mean, F = over_the_last_uniform(lambda u: run_oskl(kind, K, y, outputs, u), 12)
    close(mean[-1], -0.3 * slopes(kind, K, F, y)[-1], 4e-3)
    close(mean[:-1], F[-2][:-1])


def test_the_first_round_of_oskl_inserts_with_probability_one_half():
    inserted = [oskl(np.ones((1, 1)), [1], eta=0.9, G=1.0, uniforms=[u])[-1, 0, 0] for u in grid(1000)]
    assert np.mean(np.array(inserted) > 0) == 0.5
    close(max(inserted), 0.9)


def test_oskl_is_as_sparse_as_its_losses():
    """5.2: sum Z <= 3L/(2G) sum l + c; Freedman's inequality gives c = (1 + 2/3) ln(1/p)."""
    K, y, _ = problem("binary", rounds=150)
    for seed in range(10):
        F = oskl(K, y, eta=0.9 / 4, G=4.0, uniforms=uniforms(150, seed))
        total = sum(tangent("logistic", s, y[t])[0] for t, s in enumerate(boxes.scores(K, F)))
        assert boxes.support_size(F)[-1] <= 3 / (2 * 4) * total + 5 / 3 * SURE


@both
@pytest.mark.parametrize("R", [1.0, np.inf])
def test_oskl_with_every_step_taken_and_g_in_place_of_the_bound_is_klrsgd(kind, R):
    K, y, outputs = problem(kind)
    expected = klrsgd(K, y, outputs=outputs, eta=0.5, R=R)
    g = np.abs(slopes(kind, K, expected, y)).max(axis=1)
    close(oskl(K, y, outputs=outputs, eta=0.5, G=g, R=R, uniforms=np.zeros(T)), expected, 1e-12)


@every
def test_the_length_of_oskl_follows_its_recursion(kind):
    K, y, outputs = problem(kind)
    eta, G, R = 0.3, 8.0 if kind == "regression" else 1.5, 1.5
    F = run_oskl(kind, K, y, outputs, uniforms(T), eta=eta, R=R)
    g, s, n2 = slopes(kind, K, F, y), boxes.scores(K, F), 0.0
    for t in range(T):
        if boxes.live(F)[-1, t]:
            way = -np.sign(g[t])
            n2 += 2 * eta * G * (way @ s[t]) + eta**2 * G**2 * (way @ way) * K[t, t]
        n2 = min(n2, R**2)
        close(n2, norm(K, F[t + 1]) ** 2)
    assert n2 > 0


def test_oskl_on_the_exponential_loss_needs_the_bound_of_its_ball():
    K, y, _ = problem("binary")
    F = oskl(K, y, eta=0.2, G=np.exp(0.8), R=0.8, loss="exponential", uniforms=uniforms(T))
    p = np.exp(-y * boxes.scores(K, F)[:, 0]) / np.exp(0.8)
    assert (boxes.live(F)[-1] == (uniforms(T) < p)).all()
    with pytest.raises(AssertionError):
        oskl(K, y, eta=0.2, G=0.9, R=0.8, loss="exponential", uniforms=uniforms(T))


# 5.3, 5.4 Sparse KLR

ETAS = (0.01, 0.5, 1.0, 1.9)
MARGINS = np.linspace(-30, 30, 241)


@pytest.mark.parametrize("eta", ETAS)
def test_the_probabilities_of_sparse_klr(eta):
    tight, at_margin = (np.array([klr_probability(q, v, eta) for q in MARGINS]) for v in ("tight", "margin"))
    p = 1 / (1 + np.exp(-MARGINS))
    miss, loss = 1 / (1 + np.exp(MARGINS)), np.logaddexp(0, -MARGINS)
    close(at_margin * (miss - eta / 2 * miss**2), (1 - eta / 2) * miss, 1e-12)
    for c in (0.5, 2.0, 7.0):
        auxiliary = np.array([klr_probability(q, "auxiliary", eta, c) for q in MARGINS])
        close(auxiliary, c * miss / (c * miss + p), 1e-12)
        assert ((auxiliary > 0) & (auxiliary <= 1)).all()
        assert (auxiliary * (loss - eta / 2 * miss**2) >= 0).all()  # h, which is at most the whole
    assert ((tight > 0) & (tight <= at_margin + 1e-12) & (at_margin <= 1)).all()
    close(tight * (loss - eta / 2 * miss**2), (1 - eta / 2) * miss, 1e-12)
    assert tight[-1] == pytest.approx(1 - eta / 2, abs=1e-6) and tight[0] < 0.05
    assert np.isfinite(
        [klr_probability(q, v, eta) for q in (-700, 700) for v in ("auxiliary", "margin", "tight")]
    ).all()


@both
@pytest.mark.parametrize("variant", ["margin", "auxiliary", "tight"])
def test_sparse_klr_with_every_step_taken_is_klrsgd(kind, variant):
    K, y, outputs = problem(kind)
    F = sparse_klr(K, y, outputs=outputs, variant=variant, eta=0.7, R=1.4, uniforms=np.zeros(T))
    close(F, klrsgd(K, y, outputs=outputs, eta=0.7, R=1.4), 0)


@pytest.mark.parametrize("variant", ["margin", "auxiliary", "tight"])
@pytest.mark.parametrize("R", [1.5, np.inf])
def test_the_guarantee_of_sparse_klr(variant, R):
    """5.4, by path: sum Z (l - eta/2 l'^2) <= sum Z l(f*) + ||f*||^2 / (2 eta); its mean is that of h."""
    K, y, _ = problem("binary")
    eta, gap = 1.0, 0.0
    rival = klrsgd(K, y, eta=0.5, R=1.5)[-1]
    best = np.logaddexp(0, -y * (K @ rival)[:, 0])
    for seed in range(20):
        u = uniforms(T, seed)
        F = sparse_klr(K, y, variant=variant, eta=eta, R=R, uniforms=u)
        q = y * boxes.scores(K, F)[:, 0]
        p = np.array([klr_probability(one, variant, eta) for one in q])
        assert (boxes.live(F)[-1] == (u < p)).all()
        assert all(norm(K, f) <= R * (1 + 1e-12) for f in F)
        progress = np.logaddexp(0, -q) - eta / 2 * np.array([descent(one, "logistic") for one in q]) ** 2
        assert (u < p) @ progress <= (u < p) @ best + norm(K, rival) ** 2 / (2 * eta) + 1e-12
        gap += ((u < p) - p) @ progress
    assert abs(gap) <= 4 * np.sqrt(20 * T)


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
