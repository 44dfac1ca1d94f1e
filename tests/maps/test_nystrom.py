"""Nystrom features, and what NOGD makes of landmarks."""

import warnings

import numpy as np
import pytest
from boxes.feature_maps import (
    nogd,
)
from feature_learners import T, dense, estimator, same
from streams import FORMS, KERNELS, binary, inputs, learn, multiclass, regression

import onkel
from onkel.kernels import Gaussian, Laplacian, Linear, Polynomial
from onkel.maps import Nystrom

# Nystrom


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Polynomial(2), Laplacian(0.3)], ids=str)
def test_nystrom_features_reproduce_the_landmarks(kernel):
    X = inputs(40)
    L = X[:15]
    K = kernel(L)
    values, V = np.linalg.eigh(K)
    for rank in (None, 15, 6, 1):
        M = Nystrom(kernel, rank).transform(K)
        Z = K @ M.T
        best = (V[:, -(rank or 15) :] * values[-(rank or 15) :]) @ V[:, -(rank or 15) :].T
        assert len(M) == (rank or 15)
        same(Z @ Z.T, best, 1e-9)  # the best approximation of that rank; K itself at full rank
        same(Z.T @ Z, np.diag(values[::-1][: rank or 15]), 1e-9)
        same(M @ K @ M.T, np.eye(len(M)), 1e-8)


def test_nystrom_on_landmarks_that_depend_on_each_other():
    X = inputs(40)
    L = X[[0, 1, 2, 3, 1, 2]]
    K = Gaussian(0.5)(L)
    for rank, kept in ((None, 4), (6, 4), (3, 3)):
        M = Nystrom(Gaussian(0.5), rank).transform(K)
        assert M.shape == (kept, 6)
        if kept == 4:
            same(K @ M.T @ M @ K, K, 1e-10)
    assert Nystrom().transform(np.zeros((3, 3))).shape == (0, 3)
    tiny = np.diag([1.0, 3e-6, 3e-11])
    assert len(Nystrom().transform(tiny)) == 2
    assert len(Nystrom().transform(tiny, np.float32)) == 1


@pytest.mark.parametrize("landmarks", ["first", "random", "kmeans", "array"])
@pytest.mark.parametrize("form", FORMS)
def test_nystrom_transformer(landmarks, form):
    X = inputs(60, form=form)
    kernel = Gaussian(0.5)
    given = dense(X)[::6] if landmarks == "array" else landmarks
    transformer = onkel.NystromTransformer(kernel=kernel, components=10, landmarks=given).fit(X)
    L = transformer.landmarks_
    assert L.shape == (10, X.shape[1])
    rows = {row.tobytes() for row in dense(X).astype(L.dtype)}
    assert all(row.tobytes() in rows for row in L) == (landmarks != "kmeans")
    if landmarks == "first":
        np.testing.assert_array_equal(L, dense(X)[:10])
    Z, at = transformer.transform(X), transformer.transform(L)
    assert Z.dtype == X.dtype and Z.shape == (60, 10)
    tolerance = 2e-4 if form == "float32" else 1e-9
    same(at @ at.T, kernel(L), tolerance)
    same(at @ Z.T, kernel(L, dense(X)), tolerance)
    same(
        onkel.NystromTransformer(kernel=kernel, components=10, landmarks=given).fit(dense(X)).transform(X) @ at.T,
        Z @ at.T,
        1e-3,
    )
    few = onkel.NystromTransformer(kernel=kernel, components=10, landmarks=given, rank=3).fit(X)
    assert few.transform(X).shape == (60, 3)
    same(few.transform(X) @ few.transform(X).T, Z[:, :3] @ Z[:, :3].T, 1e-4 if form == "float32" else 1e-9)


def test_nystrom_transformer_with_repeated_rows():
    X = np.repeat(inputs(5), 8, axis=0)
    for landmarks in ("first", "random", "kmeans"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Z = onkel.NystromTransformer(kernel=Gaussian(0.5), components=20, landmarks=landmarks).fit_transform(X)
        assert Z.shape[1] <= 5
        if landmarks != "first":
            same(Z @ Z.T, Gaussian(0.5)(X), 1e-9)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"landmarks": "some"}, 'landmarks must be "kmeans", "random", "first" or an array of rows, got \'some\''),
        ({"landmarks": np.ones((3, 5))}, "landmarks have 5 columns, X has 4"),
        ({"rank": 0}, "rank must be an integer >= 1, got 0"),
        ({"components": 0}, "components must be an integer >= 1, got 0"),
        ({"kernel": "rbf"}, "kernel must be an onkel.kernels object or one of"),
    ],
    ids=str,
)
def test_what_the_nystrom_transformer_refuses(params, message):
    with pytest.raises(ValueError, match=message):
        onkel.NystromTransformer(**params).fit(inputs(20))


# NOGD


def landmarks_full(X, y, **params):
    """A NOGD model in the round that stored its last landmark, and that round."""
    model = estimator("NOGD", "binary", **params)
    learn(model, X[:1], y[:1])
    t = 1
    while model.n_support_ < params["budget"]:
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        t += 1
    return model, t


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_switch_at_full_rank_leaves_the_function(engine, kernel):
    X, y = binary()
    params = {"budget": 15, "rank": 15, "eta": 0.3, "kernel": KERNELS[kernel]}
    lazy, t = landmarks_full(X, y, switch="lazy", **params)
    eager, _ = landmarks_full(X, y, switch="eager", **params)
    fresh = inputs(50, seed=1)
    same(eager.decision_function(fresh), lazy.decision_function(fresh), 1e-8)
    M = eager.state()[0]["budget.transform"]
    assert M.shape == (15, 15) and lazy.state()[0]["budget.transform"].size == 0
    L = eager.support_vectors_
    same(KERNELS[kernel](L) @ M.T @ M @ KERNELS[kernel](L), KERNELS[kernel](L), 1e-8)
    ogd = onkel.OGDClassifier(eta=0.3, kernel=KERNELS[kernel])
    whole = estimator("NOGD", "binary", **params)
    same(learn(whole, X, y)[:t], learn(ogd, X, y)[:t], 0)
    np.testing.assert_array_equal(whole.support_vectors_, L)


@pytest.mark.parametrize("switch", ["lazy", "eager"])
def test_landmarks_stay(engine, switch):
    X, y = multiclass()
    model = estimator("NOGD", "multiclass", budget=15, rank=4, eta=0.3, switch=switch)
    sizes, stored, coef, moved = [], None, None, 0
    for t in range(T):
        learn(model, X[t : t + 1], y[t : t + 1])
        sizes.append(model.n_support_)
        if sizes[-1] == 15:
            assert stored is None or np.array_equal(stored, model.support_vectors_)
            moved += stored is not None and not np.array_equal(coef, model.dual_coef_)
            stored, coef = model.support_vectors_, model.dual_coef_
    assert sizes == sorted(sizes) and max(sizes) == 15 and moved > 50
    M = model.state()[0]["budget.transform"]
    span = model.kernel_(stored) @ M.T @ M  # f is in the span of the features: coef = M' w
    same(M.T @ (M @ model.kernel_(stored) @ model.dual_coef_.T), model.dual_coef_.T, 1e-9)
    assert M.shape == (4, 15) and np.linalg.matrix_rank(span) == 4


HARD = {
    "duplicates": (np.repeat(inputs(5), 8, axis=0)[np.random.default_rng(0).permutation(40)], Gaussian(0.5), 5),
    "rank 1": (inputs(40)[:, :1] + 3, Linear(), 1),
    "rank 4": (inputs(40), Linear(), 4),
    "rank 15 of a square": (inputs(40), Polynomial(2), 15),
    "one row": (np.ones((40, 3)), Gaussian(0.5), 1),
    "unit matrix": (100 * np.eye(40)[:, :39], Gaussian(0.5), 30),
    "nearly equal": (1e-3 * inputs(40), Gaussian(0.5), None),
    "nearly singular": (inputs(40), Gaussian(0.01), None),
    "scales": (inputs(40) * 10.0 ** np.array([-3, -1, 0, 2]), Linear() + Gaussian(0.5), 30),
    "two blocks": (np.repeat([[0.0], [50.0]], 20, axis=0) + 0.3 * inputs(40), Gaussian(0.5), 30),
    "tiny": (1e-100 * inputs(40), Linear(), 4),
}


@pytest.mark.parametrize("case", HARD)
def test_landmarks_with_a_hard_kernel_matrix(engine, case):
    """The eigenvectors of NumPy and of C++: M K M' = I on the right number of features, M' M the inverse of K there."""
    X, kernel, rank = HARD[case]
    y = np.random.default_rng(1).normal(size=40)
    params = {"budget": 30, "rank": 30, "eta": 1e-3, "epsilon": 0, "kernel": kernel, "switch": "eager"}
    model = estimator("NOGD", "regression", **params)
    scores = learn(model, X, y)
    assert np.isfinite(scores).all()
    M, K = model.state()[0]["budget.transform"], kernel(X[:30])
    values, V = np.linalg.eigh(K)
    kept = values > 1e-10 * values[-1]
    assert len(M) == kept.sum() and rank in (None, len(M))
    exact = (V[:, kept] / np.sqrt(values[kept])).T
    lost = 1e-15 * 30 / (values[kept].min() / values[-1])  # how far rounding of K moves the smallest kept
    same(M @ K @ M.T, np.eye(len(M)), max(1e-10, lost))
    inverse = exact.T @ exact
    assert np.abs(M.T @ M - inverse).max() <= max(1e-10, 10 * lost) * np.abs(inverse).max()
    same(
        scores,
        nogd(kernel(X), y, budget=30, rank=30, eta=1e-3, loss="squared", epsilon=0, switch="eager")[0],
        1e-8 + lost,
    )


def test_landmarks_by_the_hundred(engine):
    """The eigenvectors of a larger matrix."""
    X, y = regression(130)
    model = estimator("NOGD", "regression", budget=100, rank=100, eta=0.1, epsilon=0, kernel=Laplacian(1.0))
    learn(model, X, y)
    M = model.state()[0]["budget.transform"]
    K = Laplacian(1.0)(X[:100])
    same(M @ K @ M.T, np.eye(100), 1e-11)
    same(M.T @ M @ K, np.eye(100), 1e-10)
