"""The transcriptions in `boxes.pursuit`, checked by themselves: the tests of sections 6 and 9."""

from itertools import pairwise

import numpy as np
import pytest

from boxes import live, scores, streams, support_size
from boxes.common import norm
from boxes.gradients import klms_regression, norma, norma_regression, ogd, ogd_regression, pegasos
from boxes.pursuit import (
    REGRESSION,
    by_size,
    fsgd,
    inc_dec,
    joint_error,
    knlms,
    komp,
    komp_multiple,
    krls,
    platt_ran,
    polk,
    push,
    qklms,
    rates,
    remove,
    single_errors,
    subset_selection,
)
from boxes.streams import CLASSIFICATION, generator

pytestmark = pytest.mark.rounding

T = 60
SCHEDULES = ("constant", "1/t", "1/sqrt(t)")


def gram(X, gamma=1.0):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(2))


def stream(kind, seed=0, rounds=T, features=2):
    """Inputs, their Gram matrix and labels."""
    X, y = streams.stream(kind, seed, rounds, features)
    return X, gram(X), y


def settings():
    """Every kind of stream with every loss for it: K, y and the keywords that say so."""
    for kind, outputs, losses in (
        ("binary", 1, CLASSIFICATION),
        ("multiclass", 3, CLASSIFICATION),
        ("regression", 1, REGRESSION),
    ):
        for loss in losses:
            yield pytest.param(*stream(kind)[1:], {"outputs": outputs, "loss": loss}, id=f"{kind}-{loss}")


every_loss = pytest.mark.parametrize(("K", "y", "how"), list(settings()))


def drops(seed=0):
    rng = generator(seed)
    return lambda candidates: int(rng.integers(len(candidates)))


def subsets(seed=0):
    rng = generator(seed)
    return lambda ids, size: list(rng.choice(len(ids), size, replace=False))


def distances2(K, y, F, *, eta, lam, loss, outputs=1, schedule="constant"):
    """||f - ftilde||^2 of every round, from the Gram matrix; ftilde is the FSGD step on the model before."""
    found = []
    for t, rate in enumerate(rates(len(y), eta, schedule)):
        f = (1 - rate * lam) * F[t]
        f[t] = rate * push(K[t] @ F[t], y[t], loss)
        found.append(norm(K, F[t + 1] - f) ** 2)
    return np.array(found)


def grows_by_one_at_most(F):
    return (np.diff(support_size(F)) <= 1).all()


def dictionary(seed, size=8, outputs=1):
    """A Gram matrix, random coefficients on part of it, and the list of that part."""
    rng = generator(seed)
    K = gram(rng.standard_normal((size + 4, 2)), 0.5)
    D = sorted(rng.choice(size + 4, size, replace=False).tolist())
    f = np.zeros((size + 4, outputs))
    f[D] = rng.standard_normal((size, outputs))
    return K, f, D


def best_without(K, f, D, Q):
    """The nearest function to f on D less Q, and its squared distance, by least squares on a root of K."""
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    rest = [j for j in D if j not in Q]
    best = np.zeros_like(f)
    best[rest] = np.linalg.lstsq(root[rest].T, root.T @ f, rcond=None)[0]
    return best, norm(K, f - best) ** 2


# 6.1


@every_loss
def test_fsgd_without_shrink_is_ogd(K, y, how):
    if how["loss"] in REGRESSION:
        epsilon = 0.0 if how["loss"] == "squared" else 0.1
        expected = ogd_regression(K, y, eta=0.3, loss=how["loss"], epsilon=epsilon)
    else:
        expected = ogd(K, y, eta=0.3, **how)
    np.testing.assert_array_equal(fsgd(K, y, eta=0.3, lam=0.0, **how), expected)


def test_fsgd_is_norma_klms_and_pegasos():
    _, K, y = stream("binary")
    expected = norma(K, y, eta=0.3, lam=0.1)
    np.testing.assert_allclose(fsgd(K, y, eta=0.3, lam=0.1, loss="hinge"), expected, atol=1e-12)
    expected = pegasos(K, y, lam=0.1)
    np.testing.assert_allclose(fsgd(K, y, eta=10, lam=0.1, loss="hinge", schedule="1/t"), expected, atol=1e-12)
    expected = norma(K, y, eta=0.3 / np.sqrt(np.arange(1, T + 1)), lam=0.1, loss="logistic")
    found = fsgd(K, y, eta=0.3, lam=0.1, loss="logistic", schedule="1/sqrt(t)")
    np.testing.assert_allclose(found, expected, atol=1e-12)
    _, K, y = stream("regression")
    expected = norma_regression(K, y, eta=0.3, lam=0.1, loss="squared")
    np.testing.assert_allclose(fsgd(K, y, eta=0.3, lam=0.1, loss="squared"), expected, atol=1e-12)
    np.testing.assert_array_equal(fsgd(K, y, eta=0.3, lam=0, loss="squared"), klms_regression(K, y, eta=0.3))


def test_fsgd_shrinks_where_nothing_is_inserted():
    _, K, y = stream("regression")
    F = fsgd(K, y, eta=0.3, lam=0.1, loss="epsilon_insensitive", epsilon=0.5)
    idle = [t for t in range(1, T) if F[t + 1, t, 0] == 0]
    assert idle and not F[-1, idle].any()
    for t in idle:
        np.testing.assert_allclose(F[t + 1], 0.97 * F[t], atol=1e-15)


def test_losses_push_downhill():
    def loss(name, s, y):
        if name in REGRESSION:
            r = abs(y - s[0])
            return {
                "squared": r**2 / 2,
                "absolute": r,
                "epsilon_insensitive": max(0, r - 0.1),
                "huber": r**2 / 2 if r <= 1 else r - 0.5,
            }[name]
        q = y * s[0] if len(s) == 1 else s[y] - np.delete(s, y).max()
        return {
            "hinge": max(0, 1 - q),
            "logistic": np.log1p(np.exp(-q)),
            "squared_hinge": max(0, 1 - q) ** 2 / 2,
            "exponential": np.exp(-q),
        }[name]

    rng = generator()
    for name, outputs in [(name, 1) for name in REGRESSION + CLASSIFICATION] + [(name, 3) for name in CLASSIFICATION]:
        for _ in range(10):
            s = 2 * rng.standard_normal(outputs)
            y = 0.3 if name in REGRESSION else int(rng.choice([-1, 1] if outputs == 1 else 3))
            h = 1e-6 * np.eye(outputs)
            slope = [(loss(name, s + step, y) - loss(name, s - step, y)) / 2e-6 for step in h]
            np.testing.assert_allclose(push(s, y, name), -np.array(slope), atol=1e-6)


# 6.2 - 6.4, 6.5


COMPRESSORS = {
    "komp": lambda K, y, error, **how: polk(K, y, error=error, **how),
    "multiple": lambda K, y, error, **how: polk(K, y, error=error, compression="multiple", choose=drops(), **how),
    "largest": lambda K, y, error, **how: polk(K, y, error=error, compression="multiple", put_back="largest", **how),
    "subset": lambda K, y, error, **how: subset_selection(K, y, error=error, candidates=5, **how),
    "random": lambda K, y, error, **how: subset_selection(
        K, y, error=error, candidates=5, select="random", choose=subsets(), **how
    ),
    "inc_dec": lambda K, y, error, **how: inc_dec(K, y, insert_error=0.8 * error, remove_error=0.6 * error, **how),
}
every_compressor = pytest.mark.parametrize("compress", list(COMPRESSORS.values()), ids=list(COMPRESSORS))


@every_loss
@every_compressor
def test_guarantee(compress, K, y, how):
    how = {**how, "eta": 0.3, "lam": 0.1}
    for schedule, error in (("constant", 0.1), ("1/sqrt(t)", 0.5)):
        F, e2 = compress(K, y, error, schedule=schedule, **how)
        np.testing.assert_allclose(e2, distances2(K, y, F, schedule=schedule, **how), atol=1e-9)
        budget = error * (rates(T, 0.3, schedule) / 0.3) ** 2
        assert (e2 <= budget**2 + 1e-12).all()
        assert (e2 > 0).any()
        assert grows_by_one_at_most(F)
        assert support_size(F)[-1] < support_size(fsgd(K, y, schedule=schedule, **how))[-1]


@every_loss
@every_compressor
def test_no_error_is_fsgd(compress, K, y, how):
    F, e2 = compress(K, y, 0.0, eta=0.3, lam=0.1, **how)
    np.testing.assert_allclose(F, fsgd(K, y, eta=0.3, lam=0.1, **how), atol=1e-12)
    assert not e2.any()


@every_compressor
def test_duplicates_are_projected(compress):
    X, _, y = stream("binary")
    K = gram(X[np.arange(T) % 20])
    F, _ = compress(K, y, 0.0, eta=0.3, lam=0.1, loss="logistic")
    assert support_size(F)[-1] == 20
    expected = scores(K, fsgd(K, y, eta=0.3, lam=0.1, loss="logistic"))
    np.testing.assert_allclose(scores(K, F), expected, atol=1e-10)
    F, e2 = compress(K, y, 0.1, eta=0.3, lam=0.1, loss="logistic")
    np.testing.assert_allclose(e2, distances2(K, y, F, eta=0.3, lam=0.1, loss="logistic"), atol=1e-9)


@every_compressor
def test_an_unlimited_budget_keeps_nothing(compress):
    _, K, y = stream("regression", rounds=10)
    F, e2 = compress(K, y, 1e6, eta=0.3, lam=0.1, loss="squared")
    assert not F.any()
    np.testing.assert_allclose(e2, (0.3 * y) ** 2)


@every_compressor
def test_nothing_happens_at_a_point_without_length(compress):
    X, _, y = stream("regression", rounds=10)
    X[[0, 4]] = 0
    F, _ = compress(X @ X.T, y, 0.0, eta=0.1, lam=0.0, loss="squared")
    assert not F[1].any()
    np.testing.assert_array_equal(F[5], F[4])
    expected = scores(X @ X.T, fsgd(X @ X.T, y, eta=0.1, lam=0.0, loss="squared"))
    np.testing.assert_allclose(scores(X @ X.T, F), expected, atol=1e-10)
    assert support_size(F)[-1] == 2


@every_compressor
def test_two_classes_are_one_output(compress):
    _, K, y = stream("binary")
    two, e2_two = compress(K, (y < 0).astype(int), 0.1, eta=0.2, lam=0.1, loss="logistic", outputs=2)
    one, e2_one = compress(K, y, 0.1 * np.sqrt(2), eta=0.4, lam=0.05, loss="logistic")
    np.testing.assert_allclose(two[:, :, :1] - two[:, :, 1:], one, atol=1e-10)
    np.testing.assert_allclose(2 * e2_two, e2_one, atol=1e-10)


@pytest.mark.parametrize("compression", ["komp", "multiple"])
def test_model_order_is_bounded(compression):
    X = generator().uniform(-1, 1, (300, 1))
    y = np.sin(3 * X[:, 0])
    how = {"eta": 0.3, "lam": 0.1, "loss": "squared", "error": 0.1, "compression": compression}
    size = support_size(polk(gram(X), y, put_back="largest", **how)[0])
    assert size[150:].max() <= size[:150].max() < 20


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_errors_of_removal(seed, outputs):
    K, f, D = dictionary(seed, outputs=outputs)
    single = single_errors(K, f, D)
    for j, error in zip(D, single, strict=True):
        np.testing.assert_allclose([error, joint_error(K, f, D, [j])], best_without(K, f, D, [j])[1], rtol=1e-6)
    for Q in ([D[1], D[5]], [D[7], D[0], D[3]], list(D)):
        best, error = best_without(K, f, D, Q)
        np.testing.assert_allclose(joint_error(K, f, D, Q), error, rtol=1e-6)
        P = np.linalg.inv(K[np.ix_(D, D)])
        at = [D.index(j) for j in Q]
        np.testing.assert_allclose(np.trace(f[Q].T @ np.linalg.inv(P[np.ix_(at, at)]) @ f[Q]), error, rtol=1e-5)
        g, rest = f.copy(), list(D)
        remove(K, g, rest, Q)
        assert rest == [j for j in D if j not in Q]
        np.testing.assert_allclose(g, best, atol=1e-6)
    assert by_size(single, D) == [D[j] for j in np.argsort(single)]


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_komp_solves_anew_each_time(seed, outputs):
    """Successive projections are nested: the same as the best fit of ftilde without all that were removed."""
    K, f, D = dictionary(seed, outputs=outputs)
    budget = 0.5 * norm(K, f)
    gone, e2 = [], 0.0
    while True:
        error, j = min((best_without(K, f, D, [*gone, j])[1], j) for j in D if j not in gone)
        if error > budget**2:
            break
        gone, e2 = [*gone, j], error
    assert len(gone) > 1
    g, rest = f.copy(), list(D)
    np.testing.assert_allclose(komp(K, g, rest, budget), e2, rtol=1e-6)
    assert rest == [j for j in D if j not in gone]
    np.testing.assert_allclose(g, best_without(K, f, D, gone)[0], atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_one_candidate_is_one_step_of_komp(seed):
    K, f, D = dictionary(seed)
    single = np.sort(single_errors(K, f, D))
    expected, rest = f.copy(), list(D)
    remove(K, expected, rest, [by_size(single_errors(K, f, D), D)[0]])
    for budget in (np.sqrt(single[0]) * (1 + 1e-6), np.sqrt((single[0] + single[1]) / 2)):
        g, left = f.copy(), list(D)
        assert komp_multiple(K, g, left, budget) == pytest.approx(single[0])
        assert left == rest
        np.testing.assert_array_equal(g, expected)
    budget = np.sqrt(single[0]) * (1 + 1e-6)
    g, left = f.copy(), list(D)
    assert komp(K, g, left, budget) == pytest.approx(single[0])
    assert left == rest
    g, left = f.copy(), list(D)
    assert komp_multiple(K, g, left, np.sqrt(single[0]) * (1 - 1e-6)) == 0
    assert left == D


def test_rounds_that_remove_one_agree():
    """Up to the first round in which KOMP removes two, all the rules are one."""
    _, K, y = stream("binary")
    how = {"eta": 0.3, "lam": 0.01, "loss": "logistic", "error": 0.05}
    F, e2 = polk(K, y, **how)
    removed = 1 - np.diff(support_size(F))
    first = int(np.argmax(removed > 1))
    assert removed[first] > 1 and removed[:first].sum() > 5
    for G, g2 in (
        polk(K, y, compression="multiple", put_back="largest", **how),
        subset_selection(K, y, candidates=1, **how),
    ):
        np.testing.assert_allclose(G[: first + 1], F[: first + 1], atol=1e-10)
        np.testing.assert_allclose(g2[:first], e2[:first], atol=1e-10)


def test_put_back():
    K, f, D = dictionary(3, outputs=2)
    single = single_errors(K, f, D)
    budget = np.sqrt(np.sort(single)[5])
    asked = []
    for position in (0, -1):

        def choose(candidates, position=position):
            asked.append(candidates)
            return position

        g, rest = f.copy(), list(D)
        e2 = komp_multiple(K, g, rest, budget, choose=choose)
        assert e2 == pytest.approx(norm(K, f - g) ** 2) and e2 <= budget**2
        Q = [j for j in D if j not in rest]
        assert asked[0] == [j for j, error in zip(D, single, strict=True) if error < budget**2]
        assert asked[-1] == ([asked[-1][0], *Q] if position == 0 else [*Q, asked[-1][-1]])
        assert all(joint_error(K, f, D, candidates) > budget**2 for candidates in asked)
        asked.clear()
    g, rest = f.copy(), list(D)
    e2 = komp_multiple(K, g, rest, budget, put_back="largest")
    ordered = [j for j in by_size(single, D) if single[D.index(j)] < budget**2]
    n = max(n for n in range(1, len(ordered) + 1) if joint_error(K, f, D, ordered[:n]) <= budget**2)
    assert sorted(ordered[:n]) == [j for j in D if j not in rest]


def test_ties_go_to_the_oldest():
    K = np.eye(5) + 0.3 * (1 - np.eye(5))
    f = np.array([1.0, -1, 1, -1, 1])[:, None]
    assert by_size(single_errors(K, f, list(range(5))), list(range(5))) == list(range(5))
    g, D = np.array([1.0, 1, 0, 0, 0])[:, None], [0, 1]
    komp(K, g, D, 0.96)
    assert D == [1]
    g, D = np.array([1.0, 1, 0, 0, 0])[:, None], [0, 1]
    komp_multiple(K, g, D, 0.96, put_back="largest")
    assert D == [0]


def test_a_new_point_goes_at_once_iff_its_distance_is_small():
    _, K, y = stream("regression")
    how = {"eta": 0.3, "lam": 0.0, "loss": "squared"}
    F, _ = polk(K, y, error=0.15, **how)
    gone = 0
    for t in range(1, T):
        D = list(np.flatnonzero(live(F)[t]))
        g = 0.3 * push(K[t] @ F[t], y[t], "squared")
        apart = K[t, t] - K[t, D] @ np.linalg.solve(K[np.ix_(D, D)], K[D, t])
        f = F[t].copy()
        f[t] = g
        if by_size(single_errors(K, f, [*D, t]), [*D, t])[0] == t:
            small = abs(g[0]) * np.sqrt(apart) <= 0.15
            assert (F[t + 1, t, 0] == 0) == small
            gone += small
    assert gone > 5


@every_loss
def test_dissimilarity(K, y, how):
    how = {**how, "eta": 0.3, "lam": 0.1}
    F, e2 = polk(K, y, compression="dissimilarity", threshold=2.0, **how)
    np.testing.assert_allclose(e2, distances2(K, y, F, **how), atol=1e-9)
    assert (e2 > 0).any()
    assert grows_by_one_at_most(F)
    assert (live(F)[1:] >= live(F)[:-1]).all()
    D = np.flatnonzero(live(F)[-1])
    assert (K[np.ix_(D, D)] - np.eye(len(D)) < 0.5).all()
    F, e2 = polk(K, y, compression="dissimilarity", threshold=1.0, **how)
    np.testing.assert_allclose(F, fsgd(K, y, **how), atol=1e-12)
    assert not e2.any()


@pytest.mark.parametrize("threshold", [1.1, 2.0, 20.0])
def test_dissimilarity_admits_as_coherence_does(threshold):
    _, K, y = stream("regression")
    F, _ = polk(K, y, eta=0.3, lam=0.1, loss="squared", compression="dissimilarity", threshold=threshold)
    G = knlms(K, y, eta=0.3, coherence=1 / threshold, ridge=0.1)
    np.testing.assert_array_equal(live(F), live(G))


def test_diminishing_budget():
    _, K, y = stream("regression")
    for schedule in SCHEDULES:
        F, e2 = polk(K, y, eta=0.5, lam=0.1, loss="squared", schedule=schedule, error=0.5)
        t = np.arange(1, T + 1)
        power = {"constant": 0, "1/t": 2, "1/sqrt(t)": 1}[schedule]
        assert (np.sqrt(e2) <= 0.5 / t**power + 1e-12).all()
        steps = {"eta": 0.5, "lam": 0.1, "loss": "squared", "schedule": schedule}
        np.testing.assert_allclose(e2, distances2(K, y, F, **steps), atol=1e-9)


@every_loss
def test_incremental_decremental(K, y, how):
    how = {**how, "eta": 0.3, "lam": 0.1}
    expected, e2 = polk(K, y, error=0.1, **how)
    F, found = inc_dec(K, y, insert_error=0.0, remove_error=0.1, **how)
    np.testing.assert_allclose(F, expected, atol=1e-12)
    np.testing.assert_allclose(found, e2, atol=1e-12)
    F, found = inc_dec(K, y, insert_error=0.15, remove_error=0.0, **how)
    assert (live(F)[1:] >= live(F)[:-1]).all()
    np.testing.assert_allclose(found, distances2(K, y, F, **how), atol=1e-9)
    assert (found <= 0.15**2).all() and (found > 0).any()
    for t in range(T):
        if F[t + 1, t].any():
            D = list(np.flatnonzero(live(F)[t]))
            apart = K[t, t] - K[t, D] @ np.linalg.solve(K[np.ix_(D, D)], K[D, t])
            assert (F[t + 1, t] @ F[t + 1, t]) * apart > 0.15**2


def test_subset_halves():
    """The set that goes is the first of the r, r // 2, ... cheapest that fits."""
    _, K, y = stream("multiclass")
    how = {"outputs": 3, "eta": 0.3, "lam": 0.1, "loss": "logistic"}
    F, _ = subset_selection(K, y, error=0.2, candidates=4, **how)
    counts = set()
    for t in range(T):
        f = 0.97 * F[t]
        f[t] = 0.3 * push(K[t] @ F[t], y[t], "logistic")
        D = list(np.flatnonzero(f.any(axis=1)))
        size = min(4, len(D))
        ordered = by_size(single_errors(K, f, D), D)
        while size and best_without(K, f, D, ordered[:size])[1] > 0.2**2:
            size //= 2
        assert list(np.flatnonzero(F[t + 1].any(axis=1))) == sorted(ordered[size:])
        np.testing.assert_allclose(F[t + 1], best_without(K, f, D, ordered[:size])[0], atol=1e-6)
        counts.add(size)
    assert len(counts) > 2


def test_subset_choices():
    _, K, y = stream("regression")
    asked = []

    def choose(ids, size):
        asked.append((ids, size))
        return list(range(size))

    subset_selection(K, y, eta=0.3, lam=0.1, loss="squared", error=0.0, candidates=4, select="random", choose=choose)
    assert [size for _, size in asked[:9]] == [1, 2, 1, 3, 1, 4, 2, 1, 4]
    for (ids, size), (half, halved) in pairwise(asked):
        if halved < size:
            assert half == ids[:size]


# 6.5


def test_qklms():
    X, K, y = stream("regression")
    expected = klms_regression(K, y, eta=0.3)
    np.testing.assert_array_equal(qklms(K, X, y, eta=0.3, radius=0.0), expected)
    one = qklms(K, X, y, eta=0.3, radius=100.0)
    assert live(one)[1:, 0].all() and support_size(one)[-1] == 1
    F = qklms(K, X, y, eta=0.3, radius=0.5)
    D = np.flatnonzero(live(F)[-1])
    between = np.linalg.norm(X[D][:, None] - X[D][None], axis=2)
    assert (between[~np.eye(len(D), dtype=bool)] > 0.5).all() and 1 < len(D) < T
    added = F[1:].sum(axis=(1, 2)) - F[:-1].sum(axis=(1, 2))
    np.testing.assert_allclose(added, 0.3 * (y - scores(K, F)[:, 0]), atol=1e-12)
    for t in range(1, T):
        moved = np.flatnonzero((F[t + 1] - F[t]).any(axis=1))
        D = np.flatnonzero(live(F)[t])
        near = D[np.linalg.norm(X[D] - X[t], axis=1).argmin()]
        assert moved == [near if np.linalg.norm(X[near] - X[t]) <= 0.5 else t]


def test_qklms_radius_zero_merges_duplicates():
    X, _, y = stream("regression")
    X = X[np.arange(T) % 20]
    K = gram(X)
    F = qklms(K, X, y, eta=0.3, radius=0.0)
    assert support_size(F)[-1] == 20
    np.testing.assert_allclose(scores(K, F), scores(K, klms_regression(K, y, eta=0.3)), atol=1e-10)


def test_qklms_at_the_radius():
    X = np.array([[0.0], [1.0], [2.5]])
    F = qklms(gram(X), X, np.array([1.0, 2.0, 3.0]), eta=0.5, radius=1.0)
    assert live(F)[-1].tolist() == [True, False, True]


@pytest.mark.parametrize("rejected", ["discard", "lms"])
def test_platt(rejected):
    X, K, y = stream("regression")
    expected = klms_regression(K, y, eta=0.3)
    found = platt_ran(K, X, y, eta=0.3, distance=0.0, surprise=0.0, rejected=rejected)
    np.testing.assert_array_equal(found, expected)
    F = platt_ran(K, X, y, eta=0.1, distance=0.4, surprise=0.2, rejected=rejected)
    r = y - scores(K, F)[:, 0]
    kinds = set()
    for t in range(T):
        D = np.flatnonzero(live(F)[t])
        far = (np.linalg.norm(X[D] - X[t], axis=1) > 0.4).all()
        expected = F[t].copy()
        if far and abs(r[t]) >= 0.2:
            expected[t] = 0.1 * r[t]
        elif rejected == "lms":
            expected[D, 0] += 0.1 * r[t] * K[t, D]
        np.testing.assert_allclose(F[t + 1], expected, atol=1e-14)
        kinds.add((bool(far), bool(abs(r[t]) >= 0.2)))
    assert len(kinds) == 4


@pytest.mark.parametrize("coherence", [0.2, 0.5, 0.9])
def test_knlms_coherence(coherence):
    _, K, y = stream("regression")
    F = knlms(4 * K, y, eta=0.3, coherence=coherence, ridge=0.1)
    D = np.flatnonzero(live(F)[-1])
    rest = np.flatnonzero(~live(F)[-1])
    assert (K[np.ix_(D, D)] - np.eye(len(D)) <= coherence).all()
    assert all(K[t, D[t > D]].max() > coherence for t in rest) and len(rest)


def test_knlms_step():
    """With eta = 1 and no ridge the example is fitted exactly, by the least change of weights."""
    _, K, y = stream("regression")
    F = knlms(K, y, eta=1.0, coherence=0.5, ridge=0.0)
    np.testing.assert_allclose([K[t] @ F[t + 1, :, 0] for t in range(T)], y, atol=1e-12)
    for t in range(T):
        D = np.flatnonzero(live(F)[t + 1])
        least = np.linalg.lstsq(K[[t]][:, D], y[[t]] - K[[t]] @ F[t, :, 0], rcond=None)[0]
        np.testing.assert_allclose(F[t + 1, D, 0] - F[t, D, 0], least, atol=1e-10)
    F = knlms(K, y, eta=0.5, coherence=1.0, ridge=0.1)
    np.testing.assert_array_equal(support_size(F), np.arange(T + 1))


def test_krls_without_tolerance_interpolates():
    _, K, y = stream("regression", rounds=30, features=4)
    F = krls(K, y, nu=0.0)
    np.testing.assert_array_equal(support_size(F), np.arange(31))
    for t in range(1, 31):
        np.testing.assert_allclose(K[:t] @ F[t, :, 0], y[:t], atol=1e-8)
        np.testing.assert_allclose(F[t, :t, 0], np.linalg.solve(K[:t, :t], y[:t]), atol=1e-7)


def test_krls_without_tolerance_is_least_squares_on_dependent_data():
    X, _, y = stream("regression")
    for K in (X @ X.T, gram(X[np.arange(T) % 20], 2.0), (1 + X @ X.T) ** 2):
        F = krls(K, y, nu=0.0)
        values, vectors = np.linalg.eigh(K)
        root = vectors * np.sqrt(np.where(values > 1e-9, values, 0))
        for t in (5, 25, T):
            fit = root @ np.linalg.lstsq(root[:t], y[:t], rcond=1e-9)[0]
            np.testing.assert_allclose(K[:t] @ F[t, :, 0], fit[:t], atol=1e-5)


@pytest.mark.parametrize("nu", [0.01, 0.1, 0.5])
def test_krls_is_batch_least_squares_on_projected_features(nu):
    _, K, y = stream("regression")
    F = krls(K, y, nu=nu)
    D = np.flatnonzero(live(F)[-1])
    assert 1 < len(D) < T
    A = np.zeros((T, len(D)))
    for t in range(T):
        S = D[t > D]
        a = np.linalg.solve(K[np.ix_(S, S)], K[S, t])
        assert (K[t, t] - K[t, S] @ a > nu) == (t in D)
        A[t, : len(S)] = a
        if t in D:
            A[t] = t == D
        S = D[t >= D]
        features = A[: t + 1, : len(S)] @ K[np.ix_(S, S)]
        expected = np.linalg.lstsq(features, y[: t + 1], rcond=None)[0]
        np.testing.assert_allclose(F[t + 1, S, 0], expected, atol=1e-8)


@pytest.mark.parametrize("nu", [0.01, 0.1])
def test_krls_by_recursion(nu):
    _, K, y = stream("regression")
    F = krls(K, y, nu=nu)
    D, Kinv, Pm, al = [0], np.array([[1 / K[0, 0]]]), np.ones((1, 1)), np.array([y[0] / K[0, 0]])
    for t in range(1, T):
        np.testing.assert_allclose(F[t, D, 0], al, atol=1e-8)
        k = K[D, t]
        a = Kinv @ k
        delta, e = K[t, t] - k @ a, y[t] - k @ al
        if delta > nu:
            D.append(t)
            b = np.append(a, -1)
            Kinv = np.pad(Kinv, (0, 1)) + np.outer(b, b) / delta
            Pm = np.pad(Pm, (0, 1))
            Pm[-1, -1] = 1
            al = np.append(al - a * e / delta, e / delta)
        else:
            q = Pm @ a / (1 + a @ Pm @ a)
            Pm = Pm - np.outer(q, a @ Pm)
            al = al + Kinv @ q * e


def test_krls_keeps_the_first_whatever_nu_is():
    _, K, y = stream("regression", rounds=5)
    F = krls(K, y, nu=10.0)
    assert live(F)[1:, 0].all() and support_size(F)[-1] == 1
    np.testing.assert_allclose(F[-1, 0, 0], (K[0] @ y) / (K[0] @ K[0]))
