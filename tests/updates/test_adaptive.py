"""Steps that adapt: DistanceOverGradient and AdaGrad are their formulas, and keep their bounds."""

import math

import numpy as np
import pytest
from boxes.feature_maps import fourier as features_of
from boxes.feature_maps import (
    tangent,
)
from feature_learners import EVERY_LOSS, LOSSES, TASKS, D, T, drawn, estimator, outputs_of, same
from streams import KERNELS, binary, learn, multiclass, regression, scores_of

import onkel
from onkel import budgets, losses, updates
from onkel.hypotheses import Expansion
from onkel.kernels import Gaussian
from onkel.learners.learner import Learner
from onkel.maps import Fourier

# DistanceOverGradient


def distance_over_gradient(G, y, loss, *, outputs=1, weight=None, epsilon=0.1):
    """Its docstring on a Gram matrix G; scores and |f| before every round, and the functions as coefficients."""
    a, history = np.zeros((len(y), outputs)), []
    farthest = squares = rounds = 0.0
    S, norms = np.zeros((len(y), outputs)), []
    for t, w in enumerate(np.ones(len(y)) if weight is None else weight):
        S[t] = G[t] @ a
        norms.append(math.sqrt(max(np.sum(a * (G @ a)), 0)))
        history.append(a.copy())
        slope = w * tangent(loss, S[t], y[t], epsilon=epsilon)[1]
        if slope.any():
            farthest = max(farthest, norms[t])
            squares += slope @ slope * G[t, t]
            rounds += (w * G[t, t]) ** 2
            a[t] = -max(farthest / math.sqrt(squares), 1 / math.sqrt(rounds)) * slope
    return S, np.array(norms), history


@pytest.mark.parametrize(("task", "loss"), EVERY_LOSS)
def test_distance_over_gradient_is_its_formula(engine, task, loss):
    X, y = TASKS[task](T)
    weight = np.random.default_rng(3).uniform(0.2, 2.0, T)
    Z = features_of(X, drawn(Fourier(Gaussian(1.0), D), 4)["directions"])
    model = estimator("FOGD", task, components=D, kernel=Gaussian(1.0), loss=loss)
    S, _, history = distance_over_gradient(Z @ Z.T, y, loss, outputs=outputs_of(task), weight=weight)
    same(learn(model, X[:-1], y[:-1], sample_weight=weight[:-1]), S[:-1])
    same(scores_of(model, X[-1:]), S[-1])
    same(model.coef_, (Z.T @ history[-1]).T)
    assert model.state()[0]["update.norm2"] == pytest.approx(np.square(model.coef_).sum(), abs=1e-10)


@pytest.mark.parametrize("task", TASKS)
def test_distance_over_gradient_on_terms(engine, task):
    X, y = TASKS[task](T)
    kernel, loss = KERNELS["uneven"], LOSSES[task][0]
    part = {"hinge": losses.Hinge(), "squared": losses.Squared(0.1)}[loss]
    f = Expansion(kernel, budgets.Unlimited())
    learner = Learner(f, part, updates.DistanceOverGradient(), outputs=outputs_of(task), columns=4)
    learner = onkel.native.fastest(learner)
    assert learner.kind == engine
    S, norms, _ = distance_over_gradient(kernel(X), y, loss, outputs=outputs_of(task))
    same(learner.learn(X[:-1], y[:-1].astype(float))[0], S[:-1])
    same(learner.scores(X[-1:]), S[-1])
    assert learner.state()["update.norm2"] == pytest.approx(norms[-1] ** 2, abs=1e-9)


def test_the_first_step_repairs_the_first_example(engine):
    X, y = regression(5)
    model = estimator("FOGD", "regression", components=D, epsilon=0).fit(X[:1], y[:1])
    assert model.predict(X[:1]) == pytest.approx(y[:1], abs=1e-14)
    f = Expansion(KERNELS["uneven"], budgets.Unlimited())
    learner = onkel.native.fastest(Learner(f, losses.Squared(), updates.DistanceOverGradient(), columns=4))
    learner.learn(X[:1], y[:1])
    assert learner.scores(X[:1])[0] == pytest.approx(y[:1], abs=1e-14)


@pytest.mark.parametrize("algorithm", ["FOGD", "Expansion"])
def test_no_step_to_choose_means_no_units(engine, algorithm):
    """Targets times 1024 are scores times 1024, to the last bit, and weights times 8 the same scores."""
    X, y = regression(T)

    def run(y, weight):
        if algorithm == "FOGD":
            return estimator("FOGD", "regression", components=D, epsilon=0).learn(X, y, sample_weight=weight)
        f = Expansion(KERNELS["uneven"], budgets.Unlimited())
        learner = Learner(f, losses.Squared(), updates.DistanceOverGradient(), columns=4)
        return onkel.native.fastest(learner).learn(X, y, weight)[0]

    weight = np.random.default_rng(3).uniform(0.2, 2.0, T)
    plain = run(y, weight)
    np.testing.assert_array_equal(run(1024 * y, weight), 1024 * plain)
    same(run(y, 8 * weight), plain, 1e-13)
    assert np.abs(run(y, weight**2) - plain).max() > 0.01


def follow(model, X, y):
    """The weights before every round, (rounds, outputs, features)."""
    weights = []
    for i in range(len(y)):
        weights.append(model.coef_ if i else np.zeros((1, 2 * D)))
        learn(model, X[i : i + 1], y[i : i + 1])
    return np.array(weights)


def rivals(Z, y):
    """Weights that fit the labels more or less closely."""
    return [np.zeros(Z.shape[1])] + [
        size * np.linalg.solve(Z.T @ Z + ridge * np.eye(Z.shape[1]), Z.T @ y)
        for ridge in (0.1, 1, 10, 100)
        for size in (0.3, 1, 3)
    ]


def regret(weights, u, Z, y):
    """Hinge losses of the learner less those of u."""
    own = np.einsum("td,td->t", weights[:, 0], Z)
    return np.maximum(0, 1 - y * own).sum() - np.maximum(0, 1 - y * (Z @ u)).sum()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_regret_of_distance_over_gradient(engine, seed):
    """sqrt(n) (D^2 / 2 + max(1, max |w|)), D the largest distance from u; steps are max(1, max |w|) / sqrt(n)."""
    X, y = binary(T, seed)
    Z = features_of(X, drawn(Fourier(Gaussian(1.0), D), 4)["directions"])
    weights = follow(estimator("FOGD", "binary", components=D, kernel=Gaussian(1.0)), X, y)
    n = np.sum(y * np.einsum("td,td->t", weights[:, 0], Z) < 1)
    farthest = np.linalg.norm(weights, axis=(1, 2)).max()
    for u in rivals(Z, y):
        distance = np.linalg.norm(weights[:, 0] - u, axis=1).max()
        assert regret(weights, u, Z, y) <= math.sqrt(n) * (distance**2 / 2 + max(1, farthest))


# AdaGrad


def test_the_default_step_of_adagrad(engine):
    X, y = binary(T)
    given = estimator("FOGD", "binary", components=D, schedule="adagrad", eta=8 / math.sqrt(2 * D))
    np.testing.assert_array_equal(
        learn(estimator("FOGD", "binary", components=D, schedule="adagrad"), X, y), learn(given, X, y)
    )


@pytest.mark.parametrize("eta", [0.03, 0.1, 0.3])
def test_the_regret_of_adagrad(engine, eta):
    """(max_t |w_t - u|_inf^2 / (2 eta) + eta) sum_j |g_1..T,j| (Duchi et al. 2011, theorem 5)."""
    X, y = binary(T)
    Z = features_of(X, drawn(Fourier(Gaussian(1.0), D), 4)["directions"])
    model = estimator("FOGD", "binary", components=D, kernel=Gaussian(1.0), schedule="adagrad", eta=eta)
    weights = follow(model, X, y)
    slopes = -y * (y * np.einsum("td,td->t", weights[:, 0], Z) < 1)
    size = np.linalg.norm(slopes[:, None] * Z, axis=0).sum()
    for u in rivals(Z, y):
        distance = np.abs(weights[:, 0] - u).max()
        assert regret(weights, u, Z, y) <= (distance**2 / (2 * eta) + eta) * size


def test_adagrad_has_no_units(engine):
    """Weights times 8 are the same scores; the first step is eta for every weight."""
    X, y = multiclass(T)
    weight = np.random.default_rng(3).uniform(0.2, 2.0, T)
    one, two = (estimator("FOGD", "multiclass", components=D, schedule="adagrad", eta=0.1) for _ in range(2))
    np.testing.assert_array_equal(learn(one, X, y, sample_weight=8 * weight), learn(two, X, y, sample_weight=weight))
    first = estimator("FOGD", "binary", components=D, schedule="adagrad", eta=0.1)
    learn(first, *binary(1))
    np.testing.assert_allclose(np.abs(first.coef_), 0.1, rtol=1e-14)
