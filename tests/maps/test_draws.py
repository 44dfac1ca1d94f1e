"""Maps: what is drawn, and how well it approximates the kernel."""

import itertools
import math
from functools import partial
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from boxes.feature_maps import (
    fastfood_directions,
    sorf_directions,
)
from boxes.feature_maps import fourier as features_of
from feature_learners import SEED, SPECTRA, D, columns, directions, drawn, estimator, run, same
from scipy import stats
from streams import binary, inputs, learn, regression

from onkel.core.random import uniforms
from onkel.kernels import Cauchy, Gaussian, Laplacian
from onkel.maps import Fastfood, Fourier, Orthogonal, Reparameterized, keys_of

# Maps: what is drawn


def splitmix(seed, purpose, key, place):
    """The uniform number of (seed, purpose, key, place), in whole numbers (Steele, Lea, Flood 2014; FNV-1a)."""
    whole, golden = 2**64, 0x9E3779B97F4A7C15

    def mix(z):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % whole
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % whole
        return z ^ (z >> 31)

    name = 0xCBF29CE484222325
    for byte in purpose.encode():
        name = (name ^ byte) * 0x100000001B3 % whole
    stream = mix(mix(seed % whole ^ name) ^ mix((key + golden) % whole))
    return ((mix((stream + (place + 1) * golden) % whole) >> 12) + 0.5) * 2.0**-52


@pytest.mark.parametrize("seed", [0, 7, -1, 2**63, 2**64 - 1])
def test_draws_are_a_function_of_whole_numbers(seed):
    keys = [0, 1, 5, 2**64 - 1, 2**63 + 11]
    found = uniforms(seed, "features", np.array(keys, dtype=np.uint64), 3)
    assert found.tolist() == [[splitmix(seed, "features", key, place) for place in range(3)] for key in keys]
    assert found.min() > 0 and found.max() < 1
    U = Fourier(Gaussian(0.5), 3).draw(np.array(keys, dtype=np.uint64), seed)["directions"]
    same(U.T, [[NormalDist().inv_cdf(u) for u in row] for row in found], 1e-12)
    U = Fourier(Laplacian(2.0), 3).draw(np.array(keys, dtype=np.uint64), seed)["directions"]
    same(U.T, 2 * stats.cauchy.ppf(found), 1e-9)
    U = Fourier(Cauchy(4.0), 3).draw(np.array(keys, dtype=np.uint64), seed)["directions"]
    same(U.T, 2 * stats.laplace.ppf(found), 1e-12)


def test_draws_never_change():
    """Models in files rely on it."""
    keys = keys_of([0, 3, "a"])
    assert keys.tolist() == [0, 3, 12638187200555641996]  # FNV-1a of "a"
    found = uniforms(7, "features", keys, 2)
    golden = [0.9480571444926357, 0.05268763856030867, 0.24362806829325334, 0.34568981885127104]
    assert [*found[0], found[1, 0], found[2, 0]] == golden


def test_keys_are_made_from_names():
    assert keys_of([0, 1, np.int64(2), -1]).tolist() == [0, 1, 2, 2**64 - 1]
    names = ["a", "b", "3", 3, 3.0, ("a", 1), None, ""]
    assert len(set(keys_of(names).tolist())) == len(names)


@pytest.mark.parametrize("map", [Fourier(Gaussian(1.0), 9), Reparameterized(Laplacian(1.0), 9)], ids=str)
def test_draws_belong_to_the_key(map):
    keys = keys_of(["a", "b", 3, "d", 17])
    U = map.draw(keys, SEED)["directions"]
    order = [3, 0, 4, 2, 1]
    np.testing.assert_array_equal(map.draw(keys[order], SEED)["directions"], U[:, order])
    np.testing.assert_array_equal(map.draw(keys[:2], SEED)["directions"], U[:, :2])
    np.testing.assert_array_equal(map.draw_more(2, keys, SEED)["directions"], U[:, 2:])
    np.testing.assert_array_equal(map.replace(components=5).draw(keys, SEED)["directions"], U[:5])
    assert map.draw(keys[:0], SEED)["directions"].shape == (9, 0)


def test_draws_of_different_seeds_keys_and_purposes_are_uncorrelated():
    keys = np.array([0, 1, 2, 2**32, 2**63, *keys_of(["a", "b", "x1", "x2"])], dtype=np.uint64)
    purposes = [(0, "features"), (1, "features"), (2**32, "features"), (0, "signs"), (-1, "features")]
    draws = np.concatenate([uniforms(*purpose, keys, 5000) for purpose in purposes])
    correlation = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlation).max() < 5 / math.sqrt(5000)  # of about 1000 pairs
    later = np.corrcoef(draws[:, 1:].ravel(), draws[:, :-1].ravel())[0, 1]
    assert abs(later) < 4.5 / math.sqrt(draws.size)
    for row in draws:
        assert stats.kstest(row, "uniform").pvalue > 1e-5
    across = uniforms(0, "features", np.arange(5000), 1)[:, 0]  # neighbouring columns
    assert stats.kstest(across, "uniform").pvalue > 1e-5
    assert abs(np.corrcoef(across[1:], across[:-1])[0, 1]) < 4.5 / math.sqrt(5000)


@pytest.mark.parametrize("structured", [True, False], ids=["sorf", "fastfood"])
@pytest.mark.parametrize(("d", "components"), [(1, 3), (4, 20), (16, 16), (17, 40), (32, 64)])
def test_structured_directions_are_the_boxes_matrices(structured, d, components):
    kernel = Gaussian(0.7)
    if structured:
        map = Orthogonal(kernel, components, structured=True)
        signs = np.sign(drawn(map, d)["diagonals"])[::-1].transpose(1, 0, 2)  # the last factor comes first
        wanted = sorf_directions(signs, 1 / kernel.frequency, d, components)
    else:
        map = Fastfood(kernel, components)
        found = drawn(map, d)
        (B, G), perm, size = found["diagonals"], found["orders"][1], found["scale"].shape[1]
        chis = found["scale"] * math.sqrt(size) / kernel.frequency * np.linalg.norm(G, axis=1, keepdims=True)
        wanted = fastfood_directions(B, perm, G, chis, 1 / kernel.frequency, d, components)
        assert set(np.unique(B)) == {-1.0, 1.0} and (np.sort(perm, axis=1) == np.arange(size)).all()
    assert wanted.shape == (components, d)
    same(directions(map, d), wanted, 1e-12)
    X = np.random.default_rng(0).normal(size=(7, d))
    same(map.features(X, drawn(map, d), {}), features_of(X, wanted), 1e-12)
    same(map.features(sp.csr_array(X), drawn(map, d), {}), features_of(X, wanted), 1e-12)


def test_fastfood_draws_have_their_distributions():
    found = [drawn(Fastfood(Gaussian(0.5), 32), 32, seed) for seed in range(200)]
    G = np.concatenate([d["diagonals"][1][0] for d in found])
    assert stats.kstest(G, "norm").pvalue > 1e-5
    chis = [d["scale"][0] * math.sqrt(32) * np.linalg.norm(d["diagonals"][1][0]) for d in found]
    assert stats.kstest(np.concatenate(chis), stats.chi(32).cdf).pvalue > 1e-5
    places = np.array([d["orders"][1][0] for d in found])  # where each is sent is uniform
    assert stats.chisquare(np.bincount(places[:, 0], minlength=32)).pvalue > 1e-5
    signs = np.array([d["diagonals"][0][0] for d in found])
    assert np.abs(signs.mean(axis=0)).max() < 4.5 / math.sqrt(200)


def test_orthogonal_directions_are_orthogonal_with_chi_lengths():
    d, lengths, first = 5, [], []
    for seed in range(300):
        U = directions(Orthogonal(Gaussian(0.5), 12), d, seed)
        for block in (U[:5], U[5:10], U[10:]):
            gram = block @ block.T
            same(gram - np.diag(np.diag(gram)), np.zeros_like(gram), 1e-12)
        lengths.append(np.linalg.norm(U, axis=1))
        first.append(U[[0, 5, 11], [0, 1, 2]])
    assert stats.kstest(np.ravel(lengths), stats.chi(d).cdf).pvalue > 1e-5
    assert stats.kstest(np.ravel(first), "norm").pvalue > 1e-5  # a row alone is a Gaussian vector
    assert abs(np.corrcoef(np.array(lengths).T) - np.eye(12)).max() < 4.5 / math.sqrt(300)


def test_directions_drawn_together_know_the_number_of_columns_only():
    for map in (
        Orthogonal(Gaussian(1.0), 9),
        Orthogonal(Gaussian(1.0), 9, structured=True),
        Fastfood(Gaussian(1.0), 9),
    ):
        one, two = map.draw(keys_of("abcd"), SEED), map.draw(columns(4), SEED)
        assert all(np.array_equal(one[name], two[name]) for name in one)
        assert not np.array_equal(directions(map, 4, 1), directions(map, 4, 2))
        with pytest.raises(ValueError, match=f"{type(map).__name__} was drawn for 4 features and cannot take another"):
            map.draw_more(4, columns(5), SEED)


# Maps: how well they approximate

EVERY_MAP = [
    *(Fourier(kernel, 40) for kernel in SPECTRA),
    Reparameterized(Gaussian(1.0), 40),
    Orthogonal(Gaussian(1.0), 40),
    Orthogonal(Gaussian(1.0), 40, structured=True),
    Fastfood(Gaussian(1.0), 40),
]


@pytest.mark.parametrize("map", EVERY_MAP, ids=str)
def test_features_have_length_one(map):
    X = inputs(50)
    Z = map.features(X, drawn(map, 4), map.start(run(4)))
    assert Z.shape == (50, 80) == (50, map.size)
    same(np.linalg.norm(Z, axis=1), np.ones(50), 1e-14)
    same(Z @ Z.T, np.cos((X[:, None] - X[None]) @ directions(map, 4).T).mean(axis=2), 1e-12)


@pytest.mark.parametrize("distance", [0.3, 0.9, 2.0])
@pytest.mark.parametrize("kernel", SPECTRA, ids=str)
def test_the_error_of_fourier_features(kernel, distance):
    """Unbiased, variance (1 + k(2 delta) - 2 k(delta)^2) / 2D (Gaussian: (1 - k^2)^2 / 2D), Hoeffding's tail."""
    D, delta = 30, distance * np.array([0.6, -0.48, 0.64])
    x = np.array([[0.3, -0.7, 0.2]])
    k, twice = kernel(x, x + delta)[0, 0], kernel(x, x + 2 * delta)[0, 0]
    map, errors = Fourier(kernel, D), []
    for seed in range(1500):
        z = map.features(np.vstack([x, x + delta]), drawn(map, 3, seed), {})
        errors.append(z[0] @ z[1] - k)
    errors = np.array(errors)
    variance = (1 + twice - 2 * k**2) / (2 * D)
    if isinstance(kernel, Gaussian):
        assert variance == pytest.approx((1 - k**2) ** 2 / (2 * D), rel=1e-12)
    assert abs(errors.mean()) < 4.5 * math.sqrt(variance / len(errors))
    squares = errors**2
    assert abs(squares.mean() - variance) < 4.5 * squares.std() / math.sqrt(len(errors))
    for e in (0.1, 0.2, 0.3, 0.4):
        assert np.mean(np.abs(errors) >= e) <= 2 * math.exp(-D * e**2 / 2)


@pytest.mark.parametrize(
    ("map", "ratio", "bias"),
    [
        (Fourier(Gaussian(1.0), 64), 1.0, 0.0),
        (Orthogonal(Gaussian(1.0), 64), 0.86, 0.0),
        (Orthogonal(Gaussian(1.0), 64, structured=True), 0.87, -0.02),
        (Fastfood(Gaussian(1.0), 64), 1.15, 0.0),
    ],
    ids=str,
)
def test_the_spread_of_the_maps(map, ratio, bias):
    """Section 7.1, d = 24, D = 64, k = 0.12: bias, and deviation in terms of that of Fourier features."""
    d, k, rng = 24, 0.12, np.random.default_rng(5)
    errors = np.zeros(1000)
    for seed in range(len(errors)):
        x, shift = rng.standard_normal((2, d))
        shift *= math.sqrt(-math.log(k)) / np.linalg.norm(shift)
        z = map.features(np.array([x, x + shift]), drawn(map, d, seed), {})
        errors[seed] = z[0] @ z[1] - k
    exact = (1 - k**2) / math.sqrt(2 * 64)
    assert errors.std() / exact == pytest.approx(ratio, abs=0.09)  # 4 of its own deviations
    assert errors.mean() == pytest.approx(bias, abs=4.5 * exact / math.sqrt(len(errors)))
    for e in (0.1, 0.2, 0.3):
        assert np.mean(np.abs(errors) >= e) <= 2 * math.exp(-64 * e**2 / 2)


@pytest.mark.parametrize("structured", [True, False], ids=["sorf", "fastfood"])
def test_structured_maps_in_few_dimensions(structured):
    """Padding to 16 keeps signs from giving too few directions: without it the error stays, however many components."""
    for d in (1, 2, 3):
        x, rng = np.zeros((1, d)), np.random.default_rng(d)
        shift = rng.normal(size=(6, d))
        map = Orthogonal(Gaussian(0.5), 512, structured=True) if structured else Fastfood(Gaussian(0.5), 512)
        wanted = Gaussian(0.5)(x, shift)[0]
        found = [
            map.features(shift, drawn(map, d, seed), {}) @ map.features(x, drawn(map, d, seed), {})[0]
            for seed in range(40)
        ]
        assert np.abs(np.mean(found, axis=0) - wanted).max() < (0.07 if structured else 0.03)
        assert np.std(found, axis=0).max() < 0.1


@pytest.mark.parametrize("map", ["fourier", "orthogonal", "sorf", "fastfood"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_of_an_example_do_not_depend_on_its_block(engine, map, dtype):
    """Bit by bit: the engine computes features of 16 rows at once."""
    X, y = binary(150)
    X = np.hstack([X, 0.3 * X]).astype(dtype)
    whole, single = (estimator("FOGD", "binary", components=21, map=map, eta=0.3) for _ in range(2))
    scores = learn(whole, X, y)
    parts = [learn(single, X[a:b], y[a:b]) for a, b in itertools.pairwise([0, 1, 2, 17, 33, 50, 65, 66, 150])]
    np.testing.assert_array_equal(np.concatenate(parts), scores)
    np.testing.assert_array_equal(whole.coef_, single.coef_)


# Names and columns


def test_names_decide_the_directions(engine):
    """Order means nothing, whole numbers are columns, features may come later."""
    X, y = regression(60)
    X[:20, 3] = 0
    make = partial(estimator, "FOGD", "regression", components=D, kernel=Gaussian(0.5))

    def dictionaries(names, late=False):
        model = make()
        for i, x in enumerate(X):
            model.learn_one({n: v for n, v in zip(names, x, strict=True) if v or not late}, y[i])
        return [model.predict_one(dict(zip(names, x, strict=True))) for x in X]

    plain = make()
    learn(plain, X, y)
    same(dictionaries([0, 1, 2, 3]), plain.predict(X))
    same(dictionaries([0, 1, 2, 3], late=True), plain.predict(X))
    same(dictionaries([np.int64(0), np.uint8(1), 2, 3]), plain.predict(X))
    frame = pd.DataFrame(X, columns=list("wxyz"))
    named, turned = make(), make()
    learn(named, frame, y)
    learn(turned, frame[list("zxwy")], y)
    same(turned.predict(frame[list("zxwy")]), named.predict(frame))
    same(turned.coef_, named.coef_)
    same(dictionaries(list("wxyz"), late=True), named.predict(frame))
    assert np.abs(named.predict(frame) - plain.predict(X)).max() > 0.1
