"""The SVM of twin vectors: its conditions are met where the kernel matrix is nearly singular, and b is the middle."""

import numpy as np
import pytest
from boxes import merging as box

import onkel
from onkel.budgets.svm import WeightedSvm, weighted_svm
from onkel.kernels import Gaussian, Linear, Polynomial, Sigmoid

pytestmark = pytest.mark.rounding

EPSILON = np.finfo(float).eps


def slow_walk(seed, n, step):
    generator = np.random.default_rng(seed)
    return np.cumsum(step * generator.normal(size=(n, 2)), axis=0)


def missed(f, v, low, high):
    """By how much the worst condition is: y f >= 1 for a weight below its top, y f <= 1 for one above 0."""
    positive = np.minimum(high, v - low)
    worst = 0.0
    for weight, top, loss in ((positive, high, 1 - f), (positive - v, -low, 1 + f)):
        inside = 1e-12 * np.abs(v).max()
        worst = max(worst, np.max(loss[(top > 0) & (weight < top - inside)], initial=0))
        worst = max(worst, np.max(-loss[(top > 0) & (weight > inside)], initial=0))
    return worst


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("C", [10.0, 1e3, 1e6])
@pytest.mark.parametrize("precision", [1e-3, 1e-9])
def test_every_precision_is_reached(precision, C, bias):
    """All rows are twins of their own, on a walk so slow that their matrix has no inverse."""
    for seed in range(4):
        X = slow_walk(seed, 30, 0.1)
        y = np.repeat(np.random.default_rng(seed).choice([-1, 1], size=10), 3)
        model = onkel.TVMClassifier(
            kernel=Gaussian(0.1), C=C, budget=40, admit=1e9, drop=1e9, bias=bias, precision=precision
        )
        model.fit(X, y)
        np.testing.assert_array_equal(model.support_vectors_, X)
        v = model.dual_coef_[0]
        low, high = -C * (y < 0), C * (y > 0)
        assert (low <= v).all() and (v <= high).all()
        assert abs(v.sum()) <= 1e-11 * np.abs(v).sum() or not bias
        rounding = len(v) * EPSILON * np.abs(v).sum()
        assert missed(model.decision_function(X), v, low, high) <= max(precision, rounding) + rounding


def problems(count, kernels, size=30, steps=(1e-3, 0.1, 1.0)):
    """K, bounds with both labels, and a start within them; points that repeat, lie near each other or far apart."""
    for seed in range(count):
        generator = np.random.default_rng(seed)
        n = int(generator.integers(2, size))
        X = slow_walk(seed, n, generator.choice(steps))
        X = X[generator.integers(n, size=n)] if seed % 4 == 0 else X
        counts = generator.integers(0, 3, size=(n, 2)).astype(float)
        counts[0] = counts[0] + [1, 1]
        C = 10.0 ** generator.integers(-2, 7)
        yield kernels[seed % len(kernels)](X), -C * counts[:, 1], C * counts[:, 0]


@pytest.mark.parametrize("bias", [False, True])
def test_hard_problems_are_solved(bias):
    """Those without a least value, too: a sigmoid's matrix has negative eigenvalues."""
    kernels = [Gaussian(1.0), Gaussian(0.01), Linear(), Polynomial(3), Sigmoid(1.0, 0.5)]
    for K, low, high in problems(200, kernels):
        v, b = weighted_svm(K, low, high, np.zeros(len(K)), bias, 1e-9)
        svm = WeightedSvm(K, low, high, v, bias, 1e-9)
        assert svm.is_solved()
        rounding = len(v) * EPSILON * K.diagonal().max() * np.abs(v).sum()
        assert missed(K @ v + b, v, low, high) <= max(1e-9, rounding) + rounding
        assert not bias or abs(v.sum()) <= 1e-11 * np.abs(v).sum()


@pytest.mark.parametrize("bias", [False, True])
def test_the_optimum_is_that_of_the_box_from_wherever_it_begins(bias):
    for seed, (K, low, high) in enumerate(problems(60, [Gaussian(1.0)], 12, [1.0])):
        C = max(high.max(), -low.min())
        weights, wanted = box.weighted_svm(K, np.stack([high, -low], axis=1) / C, C, bias)
        f = K @ (weights[:, 0] - weights[:, 1]) + wanted
        start = np.random.default_rng(seed).uniform(low, high)
        for begin in (np.zeros(len(K)), start, low, high):
            v, b = weighted_svm(K, low, high, begin, bias, 1e-10)
            np.testing.assert_allclose(K @ v + b, f, rtol=0, atol=1e-7 * max(1.0, 1e-3 * C))


def test_b_is_the_middle_of_what_rounding_cannot_tip():
    """It is that of the box, and moves no further than f, whether weights are free or all at their bounds."""
    generator = np.random.default_rng(0)
    for K, low, high in problems(200, [Gaussian(1.0)]):
        v, b = weighted_svm(K, low, high, np.zeros(len(K)), True, 1e-10)
        svm = WeightedSvm(K, low, high, v, True, 1e-10)
        counts = np.stack([high, -low], axis=1) / max(high.max(), -low.min())
        agree = max(1e-10, len(v) * EPSILON * np.abs(v).sum())  # what free weights say of b
        assert b == pytest.approx(box.best_offset(svm.F, counts), abs=2 * agree)
        noise = 10.0 ** generator.uniform(-15, -1) * generator.normal(size=len(K))
        svm.F = svm.F + noise
        assert abs(svm.constant() - b) <= np.abs(noise).max() + 4 * EPSILON * (1 + np.abs(svm.F).max())


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("weight", [1.0, 0.1])
def test_b_is_the_middle_where_all_weights_are_at_their_bounds(weight):
    """Three examples of weight 0.1 against one of 0.3 are balanced, though 0.1 + 0.1 + 0.1 is more than 0.3."""
    X, y = np.array([[-3.0], [-2.8], [-2.5], [3.0]]), np.array([-1, -1, -1, 1])
    model = onkel.TVMClassifier(kernel=Gaussian(1.0), C=0.01, budget=4, admit=9.0, drop=9.0, precision=1e-10)
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]):
        weights = weight * np.array([1.0, 1.0, 1.0, 3.0])
        model.fit(X[order], y[order], sample_weight=weights[order])
        np.testing.assert_allclose(model.dual_coef_[0], 0.01 * (y * weight * [1, 1, 1, 3])[order], rtol=1e-12)
        f = model.decision_function(X) - model.intercept_[0]
        middle = ((1 - f[3]) + (-1 - f[:3]).max()) / 2
        assert model.intercept_[0] == pytest.approx(middle, abs=1e-12)
        assert abs(middle) < 0.1
