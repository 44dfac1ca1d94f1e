"""The transcriptions in `boxes.feature_maps`, checked by themselves: the tests of sections 7 and 9."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import chi

import boxes
from boxes.feature_maps import (
    adagrad,
    dual_sgd,
    fastfood_directions,
    fogd,
    fourier,
    llsvm_features,
    nogd,
    nystrom,
    orthogonal_directions,
    rrf,
    rrf_features,
    smallest,
    sorf_directions,
    switched,
    tangent,
    top_eigen,
    width_slope,
)
from boxes.gradients import bsgd_remove, ogd, ogd_regression, pegasos
from boxes.streams import CLASSIFICATION, gaussian, generator

T, N, D = 60, 4, 12
REGRESSION = ("squared", "absolute", "epsilon_insensitive")
stream = partial(boxes.streams.stream, features=N)


def settings():
    """Every kind of stream with every loss for it: X, y and the keywords that say so."""
    for kind, outputs, losses in (("binary", 1, CLASSIFICATION), ("multiclass", 3, CLASSIFICATION)):
        for loss in losses:
            yield pytest.param(*stream(kind), {"outputs": outputs, "loss": loss}, id=f"{kind}-{loss}")
    for loss in REGRESSION:
        yield pytest.param(*stream("regression"), {"loss": loss, "epsilon": 0.1}, id=f"regression-{loss}")


every_setting = pytest.mark.parametrize(("X", "y", "options"), list(settings()))


def kernel_ogd(K, y, eta, options):
    if options["loss"] in REGRESSION:
        return ogd_regression(K, y, eta=eta, epsilon=options["epsilon"], loss=options["loss"])
    return ogd(K, y, eta=eta, **options)


def exact_features(K):
    """A square map with Z Z^T = K."""
    return nystrom(K, K, None)[0]


def close(actual, expected, tolerance=1e-10):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


# Losses


@pytest.mark.parametrize(("loss", "outputs"), [(loss, m) for loss in CLASSIFICATION for m in (1, 3)])
def test_the_slope_of_a_classification_loss_is_its_derivative(loss, outputs):
    rng = generator()
    for _ in range(30):
        s = 2 * rng.standard_normal(outputs)
        y = rng.choice([-1, 1]) if outputs == 1 else rng.integers(outputs)
        close(tangent(loss, s, y)[1], central(lambda s: tangent(loss, s, y)[0], s), 1e-6)  # noqa: B023


@pytest.mark.parametrize("loss", REGRESSION)
def test_the_slope_of_a_regression_loss_is_its_derivative_outside_the_tube(loss):
    for s in np.linspace(-2, 2, 41):
        s = np.array([s])
        if abs(s[0] - 0.52) > 0.3:
            expected = central(lambda s: tangent(loss, s, 0.52, epsilon=0.3)[0], s)
            close(tangent(loss, s, 0.52, epsilon=0.3)[1], expected, 1e-6)
        elif loss != "absolute":
            assert tangent(loss, s, 0.52, epsilon=0.3)[1] == 0


def central(function, at, h=1e-6):
    """Central differences."""
    unit = h * np.eye(len(at))
    return np.array([(function(at + e) - function(at - e)) / (2 * h) for e in unit])


def test_losses_by_hand():
    assert tangent("hinge", np.array([1.0]), 1) == (0, 0)  # nothing at a margin of exactly one
    value, slope = tangent("squared_hinge", np.array([0.5, 0.0, 0.2]), 2)
    assert value == pytest.approx(1.3**2 / 2) and slope == pytest.approx([1.3, 0, -1.3])
    assert tangent("hinge", np.zeros(3), 0)[1] == pytest.approx([-1, 1, 0])  # the lowest index is the rival
    assert tangent("squared", np.array([0.3]), 0.5, epsilon=0.1)[1] == pytest.approx([-0.2])
    assert tangent("absolute", np.array([0.5]), 0.5) == (0, 0)


# 7.1 Feature maps


def test_fourier_features_have_unit_length_and_the_gram_matrix_of_differences():
    rng = generator()
    X, U = rng.standard_normal((20, N)), rng.standard_normal((D, N))
    Z = fourier(X, U)
    assert Z.shape == (20, 2 * D)
    close(np.linalg.norm(Z, axis=1), 1, 1e-14)
    close(Z @ Z.T, np.cos((X[:, None] - X[None]) @ U.T).mean(axis=2), 1e-14)


def rff(rng, sigma, d, D):
    return rng.standard_normal((D, d)) / sigma


def blocks_of(d, D):
    return -(-D // d)


def orf(rng, sigma, d, D):
    n = blocks_of(d, D)
    return orthogonal_directions(rng.standard_normal((n, d, d)), chi.rvs(d, size=(n, d), random_state=rng), sigma, D)


def padded(d):
    return 1 << (d - 1).bit_length()


def sorf(rng, sigma, d, D):
    p = padded(d)
    return sorf_directions(rng.choice([-1.0, 1.0], size=(blocks_of(p, D), 3, p)), sigma, d, D)


def fastfood(rng, sigma, d, D):
    p = padded(d)
    n = blocks_of(p, D)
    B = rng.choice([-1.0, 1.0], size=(n, p))
    perm = np.array([rng.permutation(p) for _ in range(n)])
    chis = chi.rvs(p, size=(n, p), random_state=rng)
    return fastfood_directions(B, perm, rng.standard_normal((n, p)), chis, sigma, d, D)


@pytest.fixture(scope="module")
def errors():
    """z.z' - k in the setting of 7.1, d = 24, D = 64, k = 0.12: 1500 draws of a map and a pair each."""
    found = {}
    sigma, d, D, k = 1.7, 24, 64, 0.12
    for draw in (rff, orf, sorf, fastfood):
        rng = generator(5)
        found[draw.__name__] = e = np.zeros(1500)
        for i in range(len(e)):
            x, shift = rng.standard_normal((2, d))
            shift *= sigma * np.sqrt(-2 * np.log(k)) / np.linalg.norm(shift)
            z, other = fourier(np.array([x, x + shift]), draw(rng, sigma, d, D))
            e[i] = z @ other - k
    return found


@pytest.mark.parametrize("name", ["rff", "orf", "fastfood"])
def test_unbiased_maps(errors, name):
    e = errors[name]
    assert abs(e.mean()) < 4 * e.std() / np.sqrt(len(e))


def test_the_spread_of_the_maps(errors):
    """7.1: the exact variance of RFF; ORF below it, Fastfood a little above, SORF below but biased."""
    exact = (1 - 0.12**2) / np.sqrt(2 * 64)
    ratio = {name: e.std() / exact for name, e in errors.items()}
    assert ratio["rff"] == pytest.approx(1, abs=0.08)
    assert ratio["orf"] == pytest.approx(0.86, abs=0.08)
    assert ratio["sorf"] == pytest.approx(0.87, abs=0.08)
    assert ratio["fastfood"] == pytest.approx(1.15, abs=0.1)
    assert errors["sorf"].mean() == pytest.approx(-0.02, abs=0.01)


@pytest.mark.parametrize("name", ["rff", "orf", "fastfood"])
@pytest.mark.parametrize("e", [0.1, 0.2, 0.3, 0.35])
def test_the_tail_of_the_maps(errors, name, e):
    assert np.mean(np.abs(errors[name]) >= e) <= 2 * np.exp(-64 * e**2 / 2)


@pytest.mark.parametrize("distance", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("directions", [1, 3])
def test_the_exact_variance_of_fourier_features(distance, directions):
    rng = generator(1)
    k = np.exp(-(distance**2) / (2 * 1.5**2))
    pair = np.array([[0.7, -0.2], [0.7 + 0.6 * distance, -0.2 + 0.8 * distance]])
    estimates = []
    for _ in range(8000):
        z, other = fourier(pair, rff(rng, 1.5, 2, directions))
        estimates.append(z @ other)
    squares = (np.array(estimates) - k) ** 2
    assert abs(squares.mean() - (1 - k**2) ** 2 / (2 * directions)) < 4 * squares.std() / np.sqrt(len(squares))


def test_the_laplacian_kernel_has_cauchy_directions():
    """E24: scale 1/s."""
    rng = generator(2)
    X, sigma = 0.5 * rng.standard_normal((6, 3)), 1.4
    Z = fourier(X, rng.standard_cauchy((40000, 3)) / sigma)
    K = np.exp(-np.abs(X[:, None] - X[None]).sum(2) / sigma)
    close(Z @ Z.T, K, 4 * np.sqrt(0.5 / 40000))


def test_orthogonal_directions_are_orthogonal_within_a_block():
    rng = generator(3)
    chis = chi.rvs(5, size=(3, 5), random_state=rng)
    U = orthogonal_directions(rng.standard_normal((3, 5, 5)), chis, 0.7, 12)
    assert U.shape == (12, 5)
    close(np.linalg.norm(U, axis=1), chis.ravel()[:12] / 0.7, 1e-12)
    for block in (U[:5], U[5:10], U[10:]):
        gram = block @ block.T
        close(gram - np.diag(np.diag(gram)), 0, 1e-12)


def test_the_orthogonal_factor_is_sign_fixed():
    """An upper triangular factor of positive diagonal on the right leaves Q alone; one number keeps its sign."""
    rng = generator(4)
    block, R = rng.standard_normal((5, 5)), np.triu(rng.random((5, 5)) + 0.1)
    args = (np.ones((1, 5)), 1.0, 5)
    close(orthogonal_directions([block @ R], *args), orthogonal_directions([block], *args), 1e-9)
    close(orthogonal_directions([[[-2.0]]], [[3.0]], 2.0, 1), [[-1.5]])


def test_sorf_directions_are_orthogonal_rows_of_equal_length():
    signs = generator(5).choice([-1.0, 1.0], size=(2, 3, 8))
    U = sorf_directions(signs, 0.5, 8, 16)
    for block in (U[:8], U[8:]):
        close(block @ block.T, 8 / 0.25 * np.eye(8), 1e-11)
    close(sorf_directions(signs, 0.5, 5, 11), U[:11, :5], 0)
    x = generator(6).standard_normal(8)
    for block, (d1, d2, d3) in zip((U[:8], U[8:]), signs, strict=True):
        close(block @ x, walsh(d1 * walsh(d2 * walsh(d3 * x))) / 8 / 0.5)


def test_fastfood_rows_have_the_drawn_lengths():
    rng = generator(6)
    B = rng.choice([-1.0, 1.0], size=(2, 8))
    perm = np.array([rng.permutation(8) for _ in range(2)])
    G, chis = rng.standard_normal((2, 8)), chi.rvs(8, size=(2, 8), random_state=rng)
    V = fastfood_directions(B, perm, G, chis, 0.6, 8, 16)
    close(np.linalg.norm(V, axis=1) * 0.6 / chis.ravel(), 1, 1e-12)
    close(fastfood_directions(B, perm, G, chis, 0.6, 5, 11), V[:11, :5], 0)
    x = rng.standard_normal(8)
    for i in range(2):
        product = walsh(G[i] * walsh(B[i] * x)[perm[i]])
        close(V[8 * i : 8 * i + 8] @ x, chis[i] / np.linalg.norm(G[i]) * product / (0.6 * np.sqrt(8)))


def walsh(x):
    """The unnormalised Walsh-Hadamard transform, by halves."""
    if len(x) == 1:
        return x
    upper, lower = np.split(x, 2)
    return np.concatenate([walsh(upper + lower), walsh(upper - lower)])


def test_nystrom_features_give_back_the_gram_matrix_of_the_landmarks():
    X, _ = stream("binary")
    L = X[:15]
    K_LL = gaussian(L, L)
    Z, M = nystrom(K_LL, K_LL, 15)
    close(Z @ Z.T, K_LL)
    close(Z.T @ Z, np.diag(np.linalg.eigvalsh(K_LL)[::-1]))
    close(nystrom(gaussian(X, L), K_LL, 6)[0], gaussian(X, L) @ M[:6].T)


def test_the_eigenvalue_clip():
    X, _ = stream("binary")
    L = X[[0, 1, 2, 3, 1, 2]]
    K = gaussian(L, L)
    Z, M = nystrom(K, K, 6)
    assert M.shape == (4, 6)
    close(Z @ Z.T, K)
    assert nystrom(K, K, 3)[1].shape == (3, 6)
    assert len(top_eigen(np.zeros((3, 3)))[0]) == 0
    assert len(top_eigen(np.diag([1e-10, 1.0, 1.1e-10]))[0]) == 2


@pytest.mark.parametrize("rank", [None, 7])
def test_llsvm_features_are_nystrom_features_up_to_rotation(rank):
    X, _ = stream("binary")
    L = X[:15]
    K_XL, K_LL = gaussian(X, L), gaussian(L, L)
    Z = llsvm_features(K_XL, K_LL, rank)
    other, _ = nystrom(K_XL, K_LL, rank)
    close(Z @ Z.T, other @ other.T, 1e-9)
    root = llsvm_features(K_LL, K_LL)
    close(root, root.T, 1e-9)
    close(root @ root, K_LL, 1e-9)


# 7.2 FOGD and AdaGrad


@every_setting
def test_fogd_is_kernel_ogd_on_an_exact_map(X, y, options):
    K = gaussian(X, X)
    S, A = fogd(exact_features(K), y, eta=0.3, **options)
    F = kernel_ogd(K, y, 0.3, options)
    close(S, boxes.scores(K, F), 1e-8)
    close(A, boxes.averaged_scores(K, F), 1e-8)


def test_fogd_is_kernel_ogd_on_the_explicit_polynomial_map():
    X, y = stream("binary")
    Z = np.einsum("ti,tj->tij", np.c_[X, np.ones(T)], np.c_[X, np.ones(T)]).reshape(T, -1)
    K = (X @ X.T + 1) ** 2
    F = ogd(K, y, eta=0.01)
    close(fogd(Z, y, eta=0.01, loss="hinge")[0], boxes.scores(K, F), 1e-8)


@every_setting
def test_unscaled_fogd_is_scaled_fogd_with_d_times_the_step(X, y, options):
    Z = fourier(X, rff(generator(1), 1.0, N, D))
    for actual, expected in zip(
        fogd(np.sqrt(D) * Z, y, eta=0.02, **options), fogd(Z, y, eta=0.02 * D, **options), strict=True
    ):
        close(actual, expected)


def test_fogd_tends_to_kernel_ogd():
    X, y = stream("binary")
    K = gaussian(X, X)
    expected = boxes.scores(K, ogd(K, y, eta=0.3, loss="logistic"))
    distance = []
    for D in (100, 10000):
        Z = fourier(X, rff(generator(1), 1.0, N, D))
        distance.append(np.abs(fogd(Z, y, eta=0.3, loss="logistic")[0] - expected).max())
    assert distance[1] < 0.03 and distance[1] < distance[0] / 4


def test_fogd_does_not_see_a_shift_or_a_permutation_of_features():
    X, y = stream("multiclass")
    U = rff(generator(1), 1.0, N, D)
    options = {"outputs": 3, "eta": 0.3, "loss": "logistic"}
    expected, _ = fogd(fourier(X, U), y, **options)
    close(fogd(fourier(X + 0.7, U), y, **options)[0], expected)
    close(fogd(fourier(X[:, ::-1], U[:, ::-1]), y, **options)[0], expected)


def two_classes(y):
    return (y + 1) // 2


def difference(scores):
    return scores[:, 1:] - scores[:, :1]


@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_two_classes_are_one_output_with_doubled_step(loss):
    """Section 9; a regularised learner has half of lam as well, so that eta lam stays."""
    X, y = stream("binary")
    rng = generator(1)
    E = rng.standard_normal((N, D))
    K, Z = gaussian(X, X), fourier(X, E.T)
    eta = 0.1
    runs = {
        "fogd": lambda y, m, c: fogd(Z, y, outputs=m, eta=c * eta, loss=loss, lam=0.1 / c),
        "adagrad": lambda y, m, c: adagrad(Z, y, outputs=m, eta=c * eta, loss=loss),
        "nogd": lambda y, m, c: nogd(K, y, outputs=m, budget=20, rank=5, eta=c * eta, loss=loss),
        "dual_sgd": lambda y, m, c: dual_sgd(K, Z, y, outputs=m, budget=9, merge=4, lam=1 / c, loss=loss)[:2],
        "rrf": lambda y, m, c: rrf(
            X, E, y, outputs=m, log_widths=-0.2, eta=c * eta, eta_kernel=0.2, lam=0.1 / c, loss=loss
        )[:2],
    }
    for run in runs.values():
        for actual, expected in zip(run(two_classes(y), 2, 1), run(y, 1, 2), strict=True):
            close(difference(actual), expected)


@every_setting
def test_the_averaged_score_is_the_mean_of_the_scores_of_all_models(X, y, options):
    """The score of example t by the model of round i: the run on the i examples before it, and then t."""
    K, Z = gaussian(X, X), fourier(X, rff(generator(1), 1.0, N, 5))
    learners = {
        "fogd": lambda i: fogd(Z[i], y[i], eta=0.3, lam=0.2, schedule="inverse_sqrt", **options),
        "adagrad": lambda i: adagrad(Z[i], y[i], eta=0.3, **options),
        "nogd": lambda i: nogd(K[np.ix_(i, i)], y[i], budget=5, rank=3, eta=0.3, **options),
        "eager": lambda i: nogd(K[np.ix_(i, i)], y[i], budget=5, rank=3, eta=0.3, switch="eager", **options),
    }
    t = 17
    for learner in learners.values():
        single = [learner([*range(i), t])[0][-1] for i in range(t + 1)]
        close(learner(list(range(t + 1)))[1][-1], np.mean(single, axis=0))


@pytest.mark.parametrize(("schedule", "powers"), [("constant", 0), ("inverse", 1), ("inverse_sqrt", 0.5)])
def test_schedules(schedule, powers):
    X, y = stream("binary")
    K = gaussian(X, X)
    S, _ = fogd(exact_features(K), y, eta=0.5, loss="logistic", schedule=schedule)
    F = ogd(K, y, eta=0.5 / np.arange(1, T + 1) ** powers, loss="logistic")
    close(S, boxes.scores(K, F), 1e-8)


def test_adagrad_by_hand():
    """The first step is eta times the sign of the gradient; a feature that is zero does not move."""
    Z = np.array([[0.5, 0.0, -2.0], [1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    S, A = adagrad(Z, np.array([1, -1, 1]), eta=0.1, loss="hinge")
    w = np.array([0.1, 0, -0.1])
    assert S[1] == pytest.approx(Z[1] @ w)
    w -= 0.1 * np.array([1 / np.sqrt(1.25), 1, 1 / np.sqrt(5)])
    assert S[2] == pytest.approx(w[0]) and A[2] == pytest.approx((0.1 + w[0]) / 3)


# 7.3 NOGD


@pytest.mark.parametrize("rank", [4, 12])
def test_the_switch_of_nogd(rank):
    X, _ = stream("multiclass")
    K = gaussian(X, X)
    K_LL, k_L = K[:12, :12], K[:, :12]
    a = generator(1).standard_normal((12, 3))
    M, w = switched(K_LL, a, rank)
    V = np.linalg.eigh(K_LL)[1][:, -rank:]
    close(k_L @ M.T @ w, k_L @ V @ V.T @ a, 1e-8)
    close(w, np.linalg.pinv(M).T @ a, 1e-8)  # E04
    if rank == 12:
        close(k_L @ M.T @ w, k_L @ a, 1e-8)


@every_setting
@pytest.mark.parametrize("switch", ["lazy", "eager"])
@pytest.mark.parametrize("rank", [4, 12])
def test_nogd_in_the_words_of_the_kernel(X, y, options, switch, rank):
    """After the switch a step adds -eta l' V_k D_k^{-1} V_k^T k_S(x) to the coefficients V_k V_k^T a on S."""
    K = gaussian(X, X)
    budget = 12
    S, A = nogd(K, y, budget=budget, rank=rank, eta=0.3, switch=switch, **options)
    F = kernel_ogd(K, y, 0.3, options)
    full = int(np.argmax(boxes.support_size(F) == budget))  # the model before this example is full
    L = np.flatnonzero(boxes.live(F)[full])
    if switch == "lazy":
        full = int(np.argmax(boxes.support_size(F) > budget)) - 1
    before = full + (switch == "lazy")
    close(S[:before], boxes.scores(K, F)[:before])
    close(A[:before], boxes.averaged_scores(K, F)[:before])
    d, V = np.linalg.eigh(K[np.ix_(L, L)])
    d, V = d[-rank:], V[:, -rank:]
    b = V @ V.T @ F[full][L]
    for t in range(full, T):
        if t >= before:
            close(S[t], K[t, L] @ b, 1e-8)
        slope = tangent(options["loss"], S[t], y[t], epsilon=options.get("epsilon"))[1]
        b -= 0.3 * np.outer(V @ np.diag(1 / d) @ V.T @ K[L, t], slope)


@every_setting
def test_at_full_rank_the_time_of_the_switch_does_not_matter(X, y, options):
    K = gaussian(X, X)
    lazy, eager = (nogd(K, y, budget=12, rank=12, eta=0.3, switch=switch, **options) for switch in ("lazy", "eager"))
    close(lazy[0], eager[0], 1e-8)
    close(lazy[1], eager[1], 1e-8)


def test_nogd_that_never_fills_is_ogd_and_one_that_cannot_grow_is_exact():
    X, y = stream("binary")
    K = gaussian(X, X)
    F = ogd(K, y, eta=0.3)
    close(nogd(K, y, budget=T, rank=T, eta=0.3, loss="hinge")[0], boxes.scores(K, F))
    again = np.tile(np.arange(10), 6)  # after the first ten the span of the landmarks holds everything
    K, y = K[np.ix_(again, again)], y[again]
    F = ogd(K, y, eta=0.3, loss="logistic")
    close(nogd(K, y, budget=10, rank=10, eta=0.3, loss="logistic")[0], boxes.scores(K, F), 1e-8)
    close(nogd(K, y, budget=15, rank=15, eta=0.3, loss="logistic")[1], boxes.averaged_scores(K, F), 1e-8)


def test_the_linear_phase_of_nogd_may_have_its_own_step():
    X, y = stream("binary")
    K = gaussian(X, X)
    S, _ = nogd(K, y, budget=5, rank=3, eta=0.3, eta_linear=0.0, loss="logistic")
    close(S[:6], boxes.scores(K, ogd(K, y, eta=0.3, loss="logistic"))[:6])
    M, w = switched(K[:5, :5], ogd(K, y, eta=0.3, loss="logistic")[5][:5], 3)
    close(S[6:], K[6:, :5] @ M.T @ w)


# 7.4 DualSGD


@pytest.mark.parametrize(("kind", "outputs"), [("binary", 1), ("multiclass", 3)])
def test_dual_sgd_is_pegasos_at_both_ends(kind, outputs):
    X, y = stream(kind)
    K, Z = gaussian(X, X), fourier(X, rff(generator(1), 1.0, N, D))
    options = {"outputs": outputs, "lam": 0.1, "loss": "hinge", "merge": 3}
    for budget, gram in ((T, K), (0, Z @ Z.T)):
        S, A, terms = dual_sgd(K, Z, y, budget=budget, **options)
        F = pegasos(gram, y, outputs=outputs, lam=0.1)
        close(S, boxes.scores(gram, F))
        close(A, boxes.averaged_scores(gram, F))
        assert (terms == (boxes.support_size(F)[1:] if budget else 0)).all()
    linear = fogd(Z, y, outputs=outputs, eta=10, lam=0.1, schedule="inverse", loss="hinge")
    close(linear[0], S)
    close(linear[1], A)


@every_setting
@pytest.mark.parametrize("insert_always", [False, True])
def test_merging_into_an_exact_map_changes_nothing(X, y, options, insert_always):
    K = gaussian(X, X)
    options = options | {"lam": 2.0, "insert_always": insert_always}
    Z = exact_features(K)
    S, A, _ = dual_sgd(K, Z, y, budget=T, merge=1, **options)
    for budget, merge in ((0, 1), (1, 1), (7, 3), (7, 20)):
        merged = dual_sgd(K, Z, y, budget=budget, merge=merge, **options)
        close(merged[0], S, 1e-8)
        close(merged[1], A, 1e-8)
        assert merged[2].max() <= budget
    if options["loss"] in CLASSIFICATION:
        linear = fogd(Z, y, eta=0.5, lam=2.0, schedule="inverse", outputs=options["outputs"], loss=options["loss"])
        close(linear[0], S, 1e-8)
        close(linear[1], A, 1e-8)


@pytest.mark.parametrize(("kind", "outputs"), [("binary", 1), ("multiclass", 3)])
@pytest.mark.parametrize(("budget", "merge"), [(1, 1), (6, 1), (7, 3), (5, 20)])
def test_dual_sgd_in_closed_form(kind, outputs, budget, merge):
    """Hinge: all terms are as large, so the oldest merge; a term of round j is -g_j / (lam (i - 1)) in round i."""
    X, y = stream(kind)
    K, Z = gaussian(X, X), fourier(X, rff(generator(1), 1.0, N, 6))
    S, A, terms = dual_sgd(K, Z, y, outputs=outputs, budget=budget, merge=merge, lam=0.1, loss="hinge")
    g = np.array([tangent("hinge", s, label)[1] for s, label in zip(S, y, strict=True)])
    core = []
    for t in range(T):
        near = np.where(np.isin(np.arange(T), core), K[t], Z @ Z[t])
        close(S[t], -near[:t] @ g[:t] / (0.1 * max(t, 1)))
        models = [-near[:i] @ g[:i] / (0.1 * max(i, 1)) for i in range(t + 1)]
        close(A[t], np.mean(models, axis=0))
        if g[t].any():
            if len(core) == budget:
                core = core[merge:]
            core.append(t)
        assert terms[t] == len(core)
    assert boxes.support_size(pegasos(K, y, outputs=outputs, lam=0.1))[-1] > 2 * budget


def test_merging_costs_less_with_more_features():
    X, y = stream("binary")
    K = gaussian(X, X)
    expected, _, _ = dual_sgd(K, K, y, budget=T, merge=1, lam=1.0, loss="logistic")
    distance = []
    for D in (100, 10000):
        Z = fourier(X, rff(generator(1), 1.0, N, D))
        found, _, _ = dual_sgd(K, Z, y, budget=10, merge=4, lam=1.0, loss="logistic")
        distance.append(np.abs(found - expected).max())
    assert distance[1] < 0.03 and distance[1] < distance[0] / 4


@pytest.mark.parametrize(("kind", "outputs"), [("binary", 1), ("multiclass", 3)])
def test_dual_sgd_by_removal_is_bsgd_by_removal(kind, outputs):
    """With the hinge and a Gaussian kernel both delete the oldest; the average is over the live terms."""
    X, y = stream(kind)
    K = gaussian(X, X)
    S, A, terms = dual_sgd(K, K, y, outputs=outputs, budget=8, merge=5, lam=0.1, loss="hinge", maintenance="remove")
    F = bsgd_remove(K, y, outputs=outputs, budget=8, lam=0.1)
    close(S, boxes.scores(K, F))
    close(A, boxes.averaged_scores(K, F, "live"))
    assert (terms == boxes.support_size(F)[1:]).all()


def test_which_terms_merge():
    a = np.array([[3.0], [-1.0], [2.0], [1 + 1e-12], [-0.5], [1 - 1e-12]])
    assert smallest(a, [0, 1, 2, 3, 4, 5], 3) == [4, 1, 3]
    assert smallest(a, [0, 2, 5], 9) == [5, 2, 0]


def test_terms_of_zero_fill_the_budget_under_insert_always():
    X, y = stream("binary")
    K, Z = gaussian(X, X), fourier(X, rff(generator(1), 1.0, N, D))
    options = {"budget": 7, "merge": 3, "lam": 0.1, "loss": "hinge"}
    _, _, terms = dual_sgd(K, Z, y, insert_always=True, **options)
    assert terms[:10].tolist() == [1, 2, 3, 4, 5, 6, 7, 5, 6, 7]
    assert (np.diff(dual_sgd(K, Z, y, **options)[2]) == 0).any()


# 7.5 RRF


def test_the_slope_in_the_widths_is_a_finite_difference():
    rng = generator(1)
    for _ in range(20):
        x, g = rng.standard_normal((2, N))
        E, w = rng.standard_normal((N, D)), rng.standard_normal(2 * D)
        close(width_slope(x, E, g, w), central(lambda g: w @ rrf_features(x, E, g), g), 1e-6)  # noqa: B023


@every_setting
def test_a_step_of_rrf_descends_the_loss_in_the_widths(X, y, options):
    """w is zero in round one, so the widths rest; in round two it is known."""
    E = generator(1).standard_normal((N, D))
    start = np.array([0.3, -0.4, 0.0, 0.2])
    moves = 0
    for t in range(0, T, 2):
        X2, y2 = X[t : t + 2], y[t : t + 2]
        S, _, G = rrf(X2, E, y2, log_widths=start, eta=0.9, eta_kernel=0.1, **options)
        close(G[1], start, 0)
        w = -0.9 * np.outer(rrf_features(X2[0], E, start), tangent_of(S[0], y2[0], options)[1])
        close(S[1], rrf_features(X2[1], E, start) @ w)
        descent = central(lambda g: tangent_of(rrf_features(X2[1], E, g) @ w, y2[1], options)[0], start)  # noqa: B023
        if tangent_of(S[1], y2[1], options)[1].any():
            close(G[2] - G[1], -0.1 * descent, 1e-6)
            moves += 1
        else:
            close(G[2], G[1], 0)
    assert moves > 5


def tangent_of(s, y, options):
    return tangent(options["loss"], s, y, epsilon=options.get("epsilon", 0.0))


@every_setting
def test_rrf_with_resting_widths_is_fogd(X, y, options):
    E = generator(1).standard_normal((N, D))
    S, A, G = rrf(X, E, y, log_widths=-0.3, eta=0.2, eta_kernel=0.0, lam=0.2, **options)
    assert (G == -0.3).all()
    expected = fogd(fourier(X, np.exp(-0.3) * E.T), y, eta=0.2, lam=0.2, **options)
    close(S, expected[0])
    close(A, expected[1])


@every_setting
def test_unscaled_rrf(X, y, options):
    """The unscaled form with (eta/D, lam D, the same eta_kernel), in complex numbers: f = Re(conj(c) exp(iq))."""
    E = generator(1).standard_normal((N, D))
    outputs = options.get("outputs", 1)
    S, A, G = rrf(X, E, y, log_widths=0.1, eta=0.2, eta_kernel=0.05, lam=0.1, **options)
    g = np.full(N, 0.1)
    c = past = np.zeros((D, outputs), dtype=complex)
    for t in range(T):
        om = np.exp(g)[:, None] * E
        z = np.exp(1j * X[t] @ om)
        past = past + c
        close(S[t], (c.conj().T @ z).real)
        close(A[t], (past.conj().T @ z).real / (t + 1))
        slope = tangent_of(S[t], y[t], options)[1]
        g = g - 0.05 * X[t] * (om @ (1j * z * (c.conj() @ slope)).real)
        c = c - 0.2 / D * (np.outer(z, slope) + 0.1 * D * c)
        close(G[t + 1], g)
    assert np.abs(G[-1] - G[0]).max() > 0.01


def test_rrf_does_not_see_a_permutation_of_features_and_clips():
    X, y = stream("binary")
    E, start = generator(1).standard_normal((N, D)), np.array([0.1, 0.2, 0.3, 0.4])
    options = {"eta": 0.5, "eta_kernel": 0.2, "loss": "logistic"}
    S, _, G = rrf(X, E, y, log_widths=start, **options)
    other, _, H = rrf(X[:, ::-1], E[::-1], y, log_widths=start[::-1], **options)
    close(S, other)
    close(G, H[:, ::-1])
    assert np.abs(G).max() > 0.5
    clipped = rrf(X, E, y, log_widths=start, clip=0.5, **options)[2]
    assert np.abs(clipped).max() == 0.5


def test_the_kernel_of_rrf():
    """exp(-1/2 sum_n exp(2 g_n) (x_n - x'_n)^2), within the tail bound of 7.5."""
    rng = generator(1)
    x, other, g = rng.standard_normal((3, N)) * 0.5
    k = np.exp(-0.5 * np.sum(np.exp(2 * g) * (x - other) ** 2))
    found = []
    for _ in range(2000):
        E = rng.standard_normal((N, 40))
        found.append(rrf_features(x, E, g) @ rrf_features(other, E, g) - k)
    assert abs(np.mean(found)) < 4 * (1 - k**2) / np.sqrt(2 * 40 * 2000)
    for e in (0.1, 0.2, 0.3):
        assert np.mean(np.abs(found) >= e) <= 2 * np.exp(-40 * e**2 / 2)
