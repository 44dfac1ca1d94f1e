"""The transcriptions in `boxes.sampling`, checked by themselves: sections 5 and 9."""

import numpy as np
import pytest

import boxes
from boxes.common import curvature, norm
from boxes.feature_maps import tangent
from boxes.gradients import descent, klrsgd
from boxes.passive_aggressive import pa, pa_regression
from boxes.problems import SURE, T, both, close, every, problem, run_spa, uniforms
from boxes.sampling import hinged, klr_probability, oskl, spa, sparse_klr


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


# 5.1 SPA


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
