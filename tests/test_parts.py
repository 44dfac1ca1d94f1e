"""The parts one by one: losses, kernels, updates, budgets, random numbers; and their C++ twins."""

import dataclasses
import itertools
import json
import math
from functools import partial
from math import exp, log, sqrt, tanh

import numpy as np
import pytest
import scipy.sparse as sp
from streams import binary, build, learn, multiclass, regression, scores_of, stream_for

import onkel
from onkel import budgets, kernels, losses, maps, projections, updates
from onkel.budgets import (
    Forget,
    Landmarks,
    RemoveByEvaluation,
    RemoveByMargin,
    RemoveOldest,
    RemoveRandom,
    RemoveSmallest,
    RemoveWeighted,
    ReplaceSmallest,
    Stop,
    Truncate,
    Unlimited,
    keep_probabilities,
    oldest_of_least,
    pick,
)
from onkel.hypothesis import Dual, Expansion, Features
from onkel.kernels import (
    Cauchy,
    Constant,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Product,
    Sigmoid,
    Sum,
    as_kernel,
)
from onkel.learner import Diverged, Learner
from onkel.losses import (
    Absolute,
    EpsilonInsensitive,
    Exponential,
    Hinge,
    Huber,
    Logistic,
    Mistake,
    Quantile,
    Squared,
    SquaredHinge,
    as_loss,
)
from onkel.maps import Fastfood, Fourier, Nystrom, Orthogonal, Reparameterized
from onkel.part import Part
from onkel.projections import Project, ProjectSmallest, Refit
from onkel.random import Random
from onkel.updates import (
    AdaGrad,
    AdaptiveThreshold,
    DistanceOverGradient,
    Gradient,
    Implicit,
    PassiveAggressive,
    Pegasos,
    Perceptron,
)

native = pytest.mark.skipif(not onkel.native.available(), reason="the native engine is not built")


def same(a, b, tolerance=1e-10):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1.0, np.abs(b).max(initial=0)))


# Losses

MARGIN_LOSSES = [
    Mistake(),
    Mistake(0.3),
    Mistake(strict_sign=True),
    Hinge(),
    Hinge(0.4),
    Hinge(closed=True),
    SquaredHinge(),
    SquaredHinge(0.4),
    Logistic(),
    Exponential(),
]
RESIDUAL_LOSSES = [
    Squared(),
    Squared(0.3),
    Absolute(),
    EpsilonInsensitive(),
    EpsilonInsensitive(0.3),
    Huber(),
    Huber(0.4),
    Quantile(),
    Quantile(0.3),
]


@pytest.mark.parametrize(
    ("loss", "y", "s", "value", "slope"),
    [
        (Mistake(), 1, [0.0], 1, [-1]),
        (Mistake(), -1, [0.0], 1, [1]),
        (Mistake(), 1, [0.1], 0, [0]),
        (Mistake(), -1, [0.1], 1, [1]),
        (Mistake(0.5), 1, [0.5], 1, [-1]),
        (Mistake(0.5), 1, [0.6], 0, [0]),
        (Mistake(strict_sign=True), 1, [0.0], 0, [0]),
        (Mistake(strict_sign=True), -1, [0.0], 1, [1]),
        (Mistake(strict_sign=True), 1, [-0.1], 1, [-1]),
        (Mistake(), 0, [0.0, 0.0, 0.0], 0, [0, 0, 0]),
        (Mistake(), 1, [0.0, 0.0, 0.0], 1, [1, -1, 0]),
        (Mistake(), 2, [0.5, 0.7, 0.6], 1, [0, 1, -1]),
        (Mistake(0.5), 1, [0.5, 0.7, 0.6], 1, [0, -1, 1]),
        (Mistake(0.5), 0, [0.0, 0.0, 0.0], 1, [-1, 1, 0]),
        (Hinge(), 1, [0.25], 0.75, [-1]),
        (Hinge(), -1, [0.25], 1.25, [1]),
        (Hinge(), 1, [1.0], 0, [0]),
        (Hinge(closed=True), 1, [1.0], 0, [-1]),
        (Hinge(0.5), 1, [0.25], 0.25, [-1]),
        (Hinge(), 1, [0.5, 0.75, 0.0], 0.75, [1, -1, 0]),
        (Hinge(), 1, [0.5, 2.0, 0.0], 0, [0, 0, 0]),
        (SquaredHinge(), 1, [0.5], 0.125, [-0.5]),
        (SquaredHinge(), -1, [0.5], 1.125, [1.5]),
        (SquaredHinge(), 1, [2.0], 0, [0]),
        (SquaredHinge(2.0), 1, [1.0], 0.5, [-1]),
        (Logistic(), 1, [0.0], log(2), [-0.5]),
        (Logistic(), -1, [log(3)], log(4), [0.75]),
        (Logistic(), 1, [1000.0], 0, [0]),
        (Logistic(), 1, [-1000.0], 1000, [-1]),
        (Logistic(), 2, [0.0, log(3), 0.0], log(4), [0, 0.75, -0.75]),
        (Exponential(), 1, [log(2)], 0.5, [-0.5]),
        (Exponential(), -1, [log(2)], 2, [2]),
        (Squared(), 1.0, [3.0], 2, [2]),
        (Squared(0.5), 1.0, [1.5], 0, [0]),
        (Squared(0.5), 1.0, [0.0], 0.5, [-1]),
        (Absolute(), 1.0, [-1.0], 2, [-1]),
        (Absolute(), 1.0, [1.0], 0, [0]),
        (EpsilonInsensitive(0.5), 1.0, [2.0], 0.5, [1]),
        (EpsilonInsensitive(0.5), 1.0, [0.5], 0, [0]),
        (Huber(0.5), 1.0, [1.25], 0.03125, [0.25]),
        (Huber(0.5), 1.0, [-1.0], 0.875, [-0.5]),
        (Quantile(0.25), 1.0, [3.0], 1.5, [0.75]),
        (Quantile(0.25), 1.0, [-1.0], 0.5, [-0.25]),
        (Quantile(0.25), 1.0, [1.0], 0, [0]),
    ],
    ids=str,
)
def test_loss_by_hand(loss, y, s, value, slope):
    found = loss(y, np.array(s))
    assert found[0] == pytest.approx(value, abs=1e-15)
    np.testing.assert_allclose(found[1], slope, atol=1e-15)


@pytest.mark.parametrize("loss", [loss for loss in MARGIN_LOSSES if not isinstance(loss, Mistake)], ids=str)
@pytest.mark.parametrize("outputs", [1, 4])
def test_slope_is_the_derivative_of_the_loss(loss, outputs):
    generator = np.random.default_rng(0)
    for _ in range(200):
        s = 2 * generator.normal(size=outputs)
        y = generator.choice([-1.0, 1.0]) if outputs == 1 else generator.integers(outputs)
        check_derivative(loss, y, s)


@pytest.mark.parametrize("loss", RESIDUAL_LOSSES, ids=str)
def test_slope_is_the_derivative_of_the_regression_loss(loss):
    generator = np.random.default_rng(0)
    for _ in range(200):
        check_derivative(loss, generator.normal(), generator.normal(size=1))


def check_derivative(loss, y, s, h=1e-6):
    slope = loss(y, s)[1]
    for i in range(len(s)):
        ahead, behind = (s + sign * h * np.eye(len(s))[i] for sign in (1, -1))
        kink = np.abs(loss(y, ahead)[1] - loss(y, behind)[1]).max() > 1e-4
        if not kink:
            assert slope[i] == pytest.approx((loss(y, ahead)[0] - loss(y, behind)[0]) / (2 * h), abs=1e-5)


@pytest.mark.parametrize("outputs", [1, 3])
def test_losses_of_many_scores_are_those_of_each(outputs):
    S = np.random.default_rng(0).normal(size=(40, outputs))
    S[5] = S[6]
    S[7] = 0.0
    for loss in (*MARGIN_LOSSES, *(RESIDUAL_LOSSES if outputs == 1 else [])):
        for y in (-1.0, 1.0) if outputs == 1 else (0.0, 1.0, 2.0):
            values, slopes = loss.each(y, S)
            for s, value, slope in zip(S, values, slopes, strict=True):
                expected = loss(y, s)
                assert value == expected[0]
                np.testing.assert_array_equal(slope, expected[1])


@pytest.mark.parametrize("loss", MARGIN_LOSSES, ids=str)
def test_several_classes_play_against_the_best_rival(loss):
    generator = np.random.default_rng(1)
    for _ in range(300):
        s = generator.integers(-3, 4, size=4) / 2  # many ties
        y = int(generator.integers(4))
        rival = min((r for r in range(4) if r != y), key=lambda r: (-s[r], r))
        value, slope = loss(y, s)
        if isinstance(loss, Mistake):
            wrong = int(np.argmax(s)) != y or (loss.margin > 0 and s[y] - s[rival] <= loss.margin)
            wanted, derivative = float(wrong), -float(wrong)
        else:
            wanted, (derivative,) = loss(1.0, np.array([s[y] - s[rival]]))
        assert value == wanted
        assert np.array_equal(slope, derivative * (np.eye(4)[y] - np.eye(4)[rival]))


@pytest.mark.parametrize(
    ("loss", "moved"),
    [
        (Hinge(1.0, closed=True), Hinge(-0.5, closed=True)),
        (SquaredHinge(), SquaredHinge(-0.5)),
        (Logistic(), Logistic()),
        (Absolute(), Absolute()),
    ],
    ids=str,
)
def test_a_threshold_can_be_moved(loss, moved):
    assert loss.at(None) is loss
    assert loss.at(-0.5) == moved
    assert EpsilonInsensitive(0.3).at(-0.5)(1.0, np.array([1.0])) == (0.5, np.array([0.0]))


@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "logistic", "exponential"])
def test_classification_losses_by_name(name):
    kind = {"hinge": Hinge, "squared_hinge": SquaredHinge, "logistic": Logistic, "exponential": Exponential}[name]
    assert as_loss(name, "classification", margin=None, epsilon=3.0) == kind()
    assert as_loss(kind(), "classification", margin=0.5) == kind()
    with pytest.raises(ValueError, match="loss must be a regression loss"):
        as_loss(name, "regression")


@pytest.mark.parametrize("name", ["squared", "absolute", "epsilon_insensitive", "huber", "quantile"])
def test_regression_losses_by_name(name):
    loss = as_loss(name, "regression", epsilon=0.25)
    assert getattr(loss, "epsilon", 0.25) == 0.25
    with pytest.raises(ValueError, match=r"loss must be a classification loss .*hinge"):
        as_loss(name, "classification")


# Kernels

X2 = ((1.0, -2.0), (0.5, 1.0))  # x z = -1.5, |x - z|^2 = 9.25, |x - z|_1 = 3.5


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        (Linear(), -1.5),
        (Polynomial(), -0.125),
        (Polynomial(2, 0.0), 2.25),
        (Polynomial(1, 3.0), 1.5),
        (Gaussian(0.1), exp(-0.925)),
        (Gaussian(), exp(-4.625)),
        (Laplacian(0.1), exp(-0.35)),
        (Laplacian("auto"), exp(-1.75)),
        (Cauchy(0.1), 1 / (1.025 * 1.9)),
        (Cauchy(), 1 / (1.125 * 5.5)),
        (Sigmoid(0.1, 0.5), tanh(0.35)),
        (Sigmoid(), tanh(-0.75)),
        (Constant(3.0), 3.0),
        (Linear() + 1, -0.5),
        (1 + Linear(), -0.5),
        (2 * Linear(), -3.0),
        (Linear() * Gaussian(0.1) + 0.5 * Constant(4.0), -1.5 * exp(-0.925) + 2),
        ((Linear() + 1) * (Linear() + 1), 0.25),
        (Gaussian() + Gaussian(0.1), exp(-4.625) + exp(-0.925)),
    ],
    ids=str,
)
def test_kernel_by_hand(kernel, value):
    assert kernel(*X2) == pytest.approx(np.array([[value]]), rel=1e-14)
    assert kernel([X2[0]], [X2[1], X2[1]]) == pytest.approx(np.array([[value, value]]), rel=1e-14)


KERNELS = [
    Linear(),
    Polynomial(2, 0.5),
    Polynomial(3),
    Gaussian(0.7),
    Gaussian(),
    Laplacian(0.4),
    Cauchy(0.8),
    Sigmoid(0.3, 0.2),
    Constant(0.5) + Gaussian(0.7),
    0.2 * Polynomial(2) + Laplacian(0.4),
    (Linear() + 1) * Cauchy(0.8),
    Gaussian(0.2) * Laplacian(0.1) * Cauchy(0.3),
]
DEFINITE = [kernel for kernel in KERNELS if not isinstance(kernel, Sigmoid)]


@pytest.mark.parametrize("kernel", DEFINITE, ids=str)
def test_gram_matrices_are_positive_semidefinite(kernel):
    X = binary(60)[0]
    K = kernel(X)
    assert np.array_equal(K, K.T)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-12 * values[-1]


def test_the_sigmoid_is_not_positive_semidefinite():
    assert np.linalg.eigvalsh(Sigmoid(1.0, -1.0)(binary(60)[0]))[0] < -1


def test_kernels_add_and_multiply_value_by_value():
    X, Z = binary(20)[0], binary(15, seed=1)[0]
    a, b, c = Gaussian(0.7), Polynomial(2), Laplacian(0.4)
    same((a + b + c)(X, Z), a(X, Z) + b(X, Z) + c(X, Z))
    same((a * b * c)(X, Z), a(X, Z) * b(X, Z) * c(X, Z))
    same((a * (b + 2))(X, Z), a(X, Z) * (b(X, Z) + 2))
    assert a + b + c == Sum((a, b, c)) == a + (b + c)
    assert a * b * c == Product((a, b, c)) == a * (b * c)
    assert a + b * c == Sum((a, Product((b, c))))
    assert a + 1 == Sum((a, Constant(1)))


def test_auto_is_one_over_the_number_of_features():
    nested = Gaussian() + 0.5 * (Linear() + Laplacian())
    assert nested.resolve(4) == Gaussian(0.25) + 0.5 * (Linear() + Laplacian(0.25))
    model = build("PAClassifier", kernel=nested)
    scores = learn(model, *binary())
    assert model.kernel_ == nested.resolve(4)
    assert model.kernel is nested
    same(scores, learn(build("PAClassifier", kernel=nested.resolve(4)), *binary()), 0)


def test_kernels_by_name():
    for name in ["linear", "polynomial", "gaussian", "laplacian", "cauchy", "sigmoid"]:
        assert type(as_kernel(name)).__name__ == name.capitalize()
        assert as_kernel(as_kernel(name)) == as_kernel(name)
    with pytest.raises(ValueError, match=r"kernel must be an onkel.kernels object or one of .*gaussian.*, got 'rbf'"):
        as_kernel("rbf")


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", ["KernelPerceptronClassifier", "OGDClassifier", "PAClassifier", "ILKClassifier"])
def test_no_step_where_the_kernel_vanishes_or_is_negative(name):
    X, y = binary(40)
    X[7] = 0
    model = build(name, kernel=Linear())
    learn(model, X, y)
    assert model.t_ == 40
    assert 0 < model.n_support_ == (model.support_vectors_ != 0).any(axis=1).sum()
    model = build(name, kernel=Sigmoid(0.5, -1.0))
    learn(model, X, y)
    rows = model.support_vectors_
    assert 0 < len(rows) < 30
    assert (Sigmoid(0.5, -1.0)(rows).diagonal() > 0).all()


# Updates and budgets, what the presets do not show


def test_schedules():
    assert [Gradient(0.6).rate(t) for t in (1, 4)] == [0.6, 0.6]
    assert [Gradient(0.6, schedule="1/t").rate(t) for t in (1, 4)] == [0.6, 0.15]
    assert [Gradient(0.6, schedule="1/sqrt(t)").rate(t) for t in (1, 4)] == [0.6, 0.3]


def test_keep_probabilities_fill_up_to_one():
    same(keep_probabilities(np.array([2.0, 2.0, 2.0, 2.0]), 3), [0.75] * 4)
    same(keep_probabilities(np.array([1.0, 1.0, 0.0]), 2), [1, 1, 0])
    same(keep_probabilities(np.array([1.0, 0.0, 0.0, 0.0]), 3), [1, 2 / 3, 2 / 3, 2 / 3])
    same(keep_probabilities(np.array([10.0, 1.0, 2.0]), 2), [1, 1 / 3, 2 / 3])
    same(keep_probabilities(np.zeros(2), 1), [0.5, 0.5])
    for seed in range(50):
        weights = np.random.default_rng(seed).exponential(size=9) ** 3
        q = keep_probabilities(weights, 8)
        assert q.min() > 0 and q.max() <= 1
        assert q.sum() == pytest.approx(8)
        s = q[q < 1] / weights[q < 1]
        assert np.ptp(s) <= 1e-9 * s[0]
        assert (s[0] * weights[q == 1] >= 1 - 1e-9).all()


def test_pick_takes_the_first_that_exceeds():
    p = np.array([0.0, 0.5, 0.0, 0.25, 0.25])
    assert [pick(p, u) for u in (0.0, 0.4999, 0.5, 0.7499, 0.75, 1 - 2**-53)] == [1, 1, 3, 3, 4, 4]
    assert pick(4 * p, 0.6) == 3


def test_the_oldest_among_equals_leaves():
    values = np.array([3.0, 1.0 + 1e-12, 1.0, 2.0])
    assert oldest_of_least(values, np.array([1, 2, 3, 4])) == 1
    assert oldest_of_least(values, np.array([1, 5, 3, 4])) == 2
    assert oldest_of_least(np.array([1e-12, 0.0, 1.0]), np.array([1, 2, 3])) == 1
    assert oldest_of_least(np.array([1e-12, 0.0, 1.0]), np.array([1, 2, 3]), size=1.0) == 0


def test_the_forgetron_factor_by_hand():
    assert Forget().factor(1.0, 1.0, 1.0) == 1.0  # A = -1: phi^2 - 2 phi + 1 >= 0 everywhere
    assert Forget().factor(1.0, 0.5, 1.0) == 0.5  # A = 0
    assert Forget().factor(1.0, 0.0, 1.25) == 0.5  # A = 1: 1/4 + 1
    assert Forget().factor(1.0, 1.0, 0.75) == 0.5  # A = -1: -1/4 + 1
    assert Forget(legacy_root=True).factor(1.0, 1.0, 0.75) == 1.5  # E10: the other root
    assert Forget(legacy_root=True).factor(1.0, 0.0, 1.25) == 0.5


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    "budget",
    [
        *(RemoveByMargin(size, distil=distil) for size in (1, 6) for distil in (False, True)),
        *map(RemoveByEvaluation, (1, 6)),
    ],
    ids=str,
)
@pytest.mark.parametrize("update", [Perceptron(), Gradient(0.5, 1.0), Pegasos(0.05)], ids=str)
def test_the_column_of_scores_is_the_function_at_the_terms(budget, update):
    X, y = binary(80)
    learner = onkel.native.engine(Learner(Expansion(Gaussian(1.0), budget), Hinge(), update, columns=4))
    for t in range(80):
        learner.learn(X[t : t + 1], y[t : t + 1])
        state = learner.state()
        same(state["basis.score"] * state["scale"], learner.scores(state["basis.x"]))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("labels", "leaves"), [([1.0, -1.0, 1.0], 0), ([-1.0, 1.0, -1.0], 1)])
def test_a_score_of_zero_counts_as_the_positive_class(labels, leaves):
    # without its own term each stored row scores 0: an error on the negative one, which must therefore stay
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.75]])
    model = build("TighterPerceptronClassifier", budget=2, recent=0, kernel=Linear())
    learn(model, X, np.array(labels))
    assert np.array_equal(model.support_vectors_, np.delete(X, leaves, axis=0))


# Random numbers


def test_random_numbers_are_splitmix64():
    stream = Random(0, "removal")
    stream.state = 1234567
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [stream.uniform() for _ in published] == [(number >> 11) * 2.0**-53 for number in published]


def test_random_streams_are_uniform_and_apart():
    streams = [Random(0, "removal"), Random(1, "removal"), Random(0, "sampling"), Random(-1, "removal")]
    draws = np.array([[stream.uniform() for _ in range(4000)] for stream in streams])
    assert ((draws >= 0) & (draws < 1)).all()
    assert np.abs(draws.mean(axis=1) - 0.5).max() < 4 * sqrt(1 / 12 / 4000)
    assert np.abs(np.corrcoef(draws) - np.eye(4)).max() < 4 / sqrt(4000)
    stream = Random(3, "removal")
    counts = np.bincount([stream.below(6) for _ in range(6000)], minlength=6)
    assert len(counts) == 6 and np.abs(counts - 1000).max() < 150


# Twins: every part in C++ does what it does in Python

BUDGETS = [
    Unlimited(),
    Truncate(12),
    Stop(8),
    RemoveRandom(8),
    RemoveRandom(8, unbiased=True, cap=0.5),
    RemoveOldest(8),
    RemoveOldest(8, unbiased=True, cap=0.5),
    ReplaceSmallest(8),
    RemoveWeighted(8),
    RemoveWeighted(8, cap=0.5),
    RemoveSmallest(8),
    RemoveByMargin(8),
    RemoveByMargin(8, beta=0.2, distil=True),
    RemoveByEvaluation(8),
    RemoveByEvaluation(8, recent=0),
    RemoveByEvaluation(8, recent=20),
    Forget(8),
    Forget(8, variant="basic"),
    Forget(8, absolute=True),
    Forget(8, legacy_root=True),
    Landmarks(8, 3),
    Landmarks(8, 8, "eager"),
    Project(),
    Project(8, 0.4),
    Project(20, 0.4, squared=True, rule="icml", U=0.3),
    Project(None, 0.7, rule="jmlr", strict_sign=True),
    ProjectSmallest(8),
    *(Refit(8, variant) for variant in ("simple", "nearest", "projecting", "plain")),
    Refit(1, "nearest"),
]
UPDATES = [
    Perceptron(),
    Perceptron(0.3),
    Gradient(0.2),
    Gradient(0.2, 0.3, "1/t"),
    Gradient(0.2, 0.3, "1/sqrt(t)"),
    Gradient(0.3, 0.1, radius=0.7),
    DistanceOverGradient(),
    AdaGrad(0.2),
    Pegasos(0.2),
    Pegasos(0.2, project=True),
    PassiveAggressive("hard"),
    PassiveAggressive("I", 0.2),
    PassiveAggressive("II", 0.2),
    Implicit(0.3, 0.2),
    AdaptiveThreshold(0.2, 0.1, 0.3),
    AdaptiveThreshold(0.2, 0.1, 0.6, start_at=0.2, margin=False),
    AdaptiveThreshold(0.2, 0.1, 0.9, start_at=0.2, margin=False, clamp=True),
]
MAPS = [
    Fourier(Gaussian(1.0), 6),
    Fourier(Laplacian(0.4), 6),
    Fourier(Cauchy(0.8), 6),
    Reparameterized(Gaussian(1.0), 6, 0.02),
    Reparameterized(Laplacian(0.4), 6, 0.02, 1.2),
    Orthogonal(Gaussian(1.0), 6),
    Orthogonal(Gaussian(1.0), 20, structured=True),
    Fastfood(Gaussian(1.0), 20),
]


def around(part, kernel=None):
    """A hypothesis made with that budget or map."""
    return Features(part) if isinstance(part, maps.Map) else Expansion(kernel or Gaussian(1.0), part)


HYPOTHESES = {str(part): partial(around, part) for part in [*BUDGETS, *MAPS]} | {
    f"Dual-{budget}-{merge}-{always}": partial(Dual, Gaussian(1.0), MAPS[0], budget, merge, always)
    for budget, merge, always in [(8, 3, False), (8, 20, False), (8, 3, True), (0, 3, False)]
}


def fits(loss, update, hypothesis):
    """Whether the three may be composed."""
    try:
        Learner(hypothesis, loss, update)
    except ValueError:
        return False
    return True


def both(loss, update, hypothesis, X, **options):
    """The learner in Python and its twin, before they begin."""
    options |= {"columns": X.shape[1], "dtype": X.dtype, "sparse": sp.issparse(X)}
    make = [Learner(hypothesis(), loss, update, **options) for _ in range(2)]
    with onkel.engine("native"):
        twin = onkel.native.engine(make[1])
    assert twin.engine == "native"
    return make[0], twin


def same_state(a, b, tolerance=1e-10):
    assert set(a) == set(b)
    for name in a:
        assert a[name].shape == b[name].shape, name
        if name.endswith("random"):
            assert a[name] == b[name]
        elif name == "budget.transform":  # M, of which scores see M' M only
            same(a[name].T @ a[name], b[name].T @ b[name], tolerance)
        else:
            same(a[name], b[name], tolerance)


@native
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_twins_agree_on_every_composition(hypothesis):
    hypothesis = HYPOTHESES[hypothesis]
    streams = [(RESIDUAL_LOSSES, regression(45), 1), (MARGIN_LOSSES, binary(45), 1), (MARGIN_LOSSES, multiclass(45), 4)]
    tried = 0
    for kinds, (X, y), outputs in streams:
        for loss, update in itertools.product(kinds, UPDATES):
            if not fits(loss, update, hypothesis()):
                continue
            python, twin = both(loss, update, hypothesis, X, outputs=outputs, average="all", seed=5)
            try:
                wanted = python.learn(X, y.astype(float))
            except Diverged:
                with pytest.raises(Diverged):
                    twin.learn(X, y.astype(float))
                continue
            found = twin.learn(X, y.astype(float))
            size = np.abs(wanted).max()
            np.testing.assert_allclose(
                found, wanted, rtol=0, atol=1e-10 * max(1, size), err_msg=f"{loss}, {update}, {outputs} outputs"
            )
            same_state(twin.state(), python.state())
            tried += 1
    assert tried > 200


@native
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", ["dense", "sparse", "wide"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_twins_agree_on_every_kernel_and_storage(kernel, form, dtype):
    X, y = multiclass(150, form=form)
    X, kernel = X.astype(dtype), kernel.resolve(X.shape[1])
    tolerance = 1e-10 if dtype is np.float64 else 2e-5
    for budget in [Unlimited(), RemoveOldest(20)]:
        hypothesis = partial(around, budget, kernel)
        python, twin = both(Logistic(), Gradient(0.05, 0.01), hypothesis, X, outputs=4, average=True)
        same(twin.learn(X, y.astype(float)), python.learn(X, y.astype(float)), tolerance)
        same(twin.scores(X[:40]), python.scores(X[:40]), tolerance)
        same(twin.scores(X[:40], average=False), python.scores(X[:40], average=False), tolerance)
        same_state(twin.state(), python.state(), tolerance)


@native
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", ["dense", "sparse", "wide"])
@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(0.4), Cauchy(0.8), 0.2 * Polynomial(2) + 1], ids=str)
def test_long_expansions_add_up(kernel, form, dtype):
    X, y = binary(2500, form=form)
    model = build("OGDClassifier", eta=0.01, loss="logistic", kernel=kernel)
    scores = learn(model, X.astype(dtype), y)
    dense = X.astype(dtype).toarray() if sp.issparse(X) else X.astype(dtype)
    some = np.arange(0, 2500, 50)
    K = kernel(dense[some], dense) * (np.arange(2500) < some[:, None])
    same(scores[some], K @ model.dual_coef_[0], 1e-10 if dtype is np.float64 else 2e-5)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("form", ["sparse", "wide"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_sparse_rows_are_dense_rows_with_zeros(kernel, form):
    X, y = binary(150, form=form)
    for name in ["PAClassifier", "ForgetronClassifier", "TighterPerceptronClassifier"]:
        models = [build(name, kernel=kernel) for _ in range(2)]
        found, wanted = learn(models[0], X, y), learn(models[1], X.toarray(), y)
        same(found, wanted)
        same(models[0].dual_coef_, models[1].dual_coef_)
        same(scores_of(models[0], X), scores_of(models[1], X.toarray()))
        stored = models[0].support_vectors_
        stored = stored.toarray() if sp.issparse(stored) else stored
        assert np.array_equal(stored, models[1].support_vectors_)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_engines_use_the_kernel_they_are_given(kernel):
    X, y = binary(60)
    model = build("OGDClassifier", eta=0.1, loss="logistic", kernel=kernel)
    learn(model, X, y)
    fresh = stream_for(model, rounds=30, seed=1)[0]
    same(scores_of(model, fresh), kernel(fresh, X) @ model.dual_coef_[0])


@pytest.mark.usefixtures("engine")
def test_float32_rows_stay_float32():
    X, y = binary(form="float32")
    model, exact = (
        build("OGDClassifier", eta=0.1, loss="logistic"),
        build("OGDClassifier", eta=0.1, loss="logistic"),
    )
    scores = learn(model, X, y)
    assert scores.dtype == np.float64
    assert model.support_vectors_.dtype == np.float32
    same(scores, learn(exact, X.astype(np.float64), y), 1e-4)


class Exponent(Kernel):
    """exp(<x, z>), a kernel that has no twin."""

    def pair(self, x, z):
        return x * z

    def shape(self, total):
        return np.exp(total)


@native
@pytest.mark.parametrize("kernel", [Exponent(), Gaussian(1.0) + Exponent()], ids=str)
def test_a_part_without_a_twin_runs_in_python(kernel):
    X, y = binary(60)
    model = build("OGDClassifier", eta=0.1, loss="logistic", kernel=kernel)
    learn(model, X, y)
    assert model._learner.engine == "python"
    same(scores_of(model, X), kernel(X) @ model.dual_coef_[0])
    with onkel.engine("native"), pytest.raises(ValueError, match="have no C\\+\\+ twin"):
        learn(build("OGDClassifier", kernel=kernel), X, y)


# Parts as values

PARTS = [*MARGIN_LOSSES, *RESIDUAL_LOSSES, *KERNELS, *UPDATES, *BUDGETS, *MAPS, Nystrom(), Nystrom(Linear(), 4)]


def test_every_part_of_the_library_is_tried_here():
    bases = {cls for part in Part.known.values() for cls in part.__mro__[1:]}
    known = {cls for cls in Part.known.values() if cls.__module__.startswith("onkel.") and cls not in bases}
    tried = {type(part) for part in PARTS}
    tried |= {type(inner) for kernel in KERNELS for inner in getattr(kernel, "kernels", ())}
    families = {m.__name__ for m in (budgets, kernels, losses, maps, projections, updates)}
    ours = {cls for cls in known if cls.__module__ in families}
    assert ours - tried == set()


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_parts_are_values(part):
    families = (budgets, kernels, losses, maps, projections, updates)
    names = {name: value for family in families for name, value in vars(family).items()} | {"inf": math.inf}
    again = eval(repr(part), names)
    assert again == part
    assert hash(again) == hash(part)
    assert Part.from_config(json.loads(json.dumps(part.config()))) == part
    assert part.replace() == part
    assert type(part)(**part.get_params(deep=False)) == part
    for field in dataclasses.fields(part):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, field.name, getattr(part, field.name))


def test_different_parts_differ():
    for a, b in itertools.combinations(PARTS, 2):
        assert a != b, (a, b)


def test_parts_are_changed_by_replacing():
    assert Gaussian(0.5).replace(gamma=2.0) == Gaussian(2.0)
    assert Gradient(0.1, 0.2).replace(lam=0) == Gradient(0.1, 0)
    assert Gaussian(0.5).get_params() == {"gamma": 0.5}
    with pytest.raises(ValueError, match=r"Gaussian has no field 'sigma'; it has \['gamma'\]"):
        Gaussian().replace(sigma=1.0)
    with pytest.raises(ValueError, match=r"Gaussian\.gamma must be > 0"):
        Gaussian().replace(gamma=-1.0)
    model = build("PAClassifier", kernel=Gaussian(0.5))
    before = model.kernel
    model.set_params(kernel__gamma=2.0)
    assert (before, model.kernel) == (Gaussian(0.5), Gaussian(2.0))


def test_config_is_plain_data():
    assert Gaussian(0.5).config() == {"part": "Gaussian", "gamma": 0.5}
    assert PassiveAggressive("I", math.inf).config()["C"] == {"number": "inf"}
    assert Part.from_config(PassiveAggressive("I", math.inf).config()) == PassiveAggressive("I", math.inf)
    numbers = Gradient(np.float32(0.5), np.int64(1)).config()
    assert [type(numbers[name]) for name in ("eta", "lam")] == [float, int]
    with pytest.raises(ValueError, match="unknown part 'Nothing'"):
        Part.from_config({"part": "Nothing"})


# What is refused

number = r"Gaussian\.gamma must be > 0, or \"auto\", got "
REFUSED = [
    (lambda: Gaussian(-1.0), number + "-1.0"),
    (lambda: Gaussian(0), number + "0"),
    (lambda: Gaussian(math.inf), number + "inf"),
    (lambda: Gaussian(math.nan), number + "nan"),
    (lambda: Gaussian("wide"), number + "'wide'"),
    (lambda: Gaussian(None), number + "None"),
    (lambda: Gaussian(True), number + "True"),
    (lambda: Laplacian(-1.0), r"Laplacian\.gamma must be > 0"),
    (lambda: Cauchy(-1.0), r"Cauchy\.gamma must be > 0"),
    (lambda: Sigmoid(0.1, math.inf), r"Sigmoid\.coef0 must be a finite number, got inf"),
    (lambda: Polynomial(0), r"Polynomial\.degree must be an integer >= 1, got 0"),
    (lambda: Polynomial(1.5), r"Polynomial\.degree must be an integer >= 1, got 1.5"),
    (lambda: Polynomial(2, -1.0), r"Polynomial\.coef0 must be >= 0, got -1.0"),
    (lambda: Constant(0.0), r"Constant\.value must be > 0, got 0.0"),
    (lambda: Gaussian() + -1, r"Constant\.value must be > 0, got -1"),
    (lambda: 0 * Gaussian(), r"Constant\.value must be > 0, got 0"),
    (lambda: Sum(()), r"Sum\.kernels must be a non-empty sequence of kernels, got \(\)"),
    (lambda: Product(("gaussian",)), r"Product\.kernels must be a non-empty sequence of kernels"),
    (lambda: Mistake(-1), r"Mistake\.margin must be >= 0, got -1"),
    (lambda: Mistake(1.0, True), r"Mistake\.strict_sign must be False when margin > 0"),
    (lambda: Hinge(math.nan), r"Hinge\.margin must be a finite number, got nan"),
    (lambda: SquaredHinge(math.inf), r"SquaredHinge\.margin must be a finite number"),
    (lambda: Squared(-0.1), r"Squared\.epsilon must be >= 0, got -0.1"),
    (lambda: EpsilonInsensitive("0.1"), r"EpsilonInsensitive\.epsilon must be >= 0, got '0.1'"),
    (lambda: Huber(0), r"Huber\.delta must be > 0, got 0"),
    (lambda: Quantile(0.0), r"Quantile\.quantile must be > 0, got 0.0"),
    (lambda: Quantile(1.0), r"Quantile\.quantile must be between 0 and 1, got 1.0"),
    (lambda: Perceptron(0), r"Perceptron\.eta must be > 0, got 0"),
    (lambda: Perceptron(math.inf), r"Perceptron\.eta must be a finite number, got inf"),
    (lambda: Gradient(-0.1), r"Gradient\.eta must be > 0, got -0.1"),
    (lambda: Gradient(0.5, -1), r"Gradient\.lam must be >= 0, got -1"),
    (lambda: Gradient(0.5, 2.0), r"Gradient\.lam must be < 1 / eta = 2, got 2.0"),
    (lambda: Gradient(schedule="t"), r"Gradient\.schedule must be one of 'constant', '1/t', '1/sqrt\(t\)', got 't'"),
    (lambda: Gradient(radius=0), r"Gradient\.radius must be > 0, got 0"),
    (lambda: Pegasos(0), r"Pegasos\.lam must be > 0, got 0"),
    (lambda: PassiveAggressive("III"), r"PassiveAggressive\.variant must be one of 'hard', 'I', 'II', got 'III'"),
    (lambda: PassiveAggressive(C=0), r"PassiveAggressive\.C must be > 0, got 0"),
    (lambda: PassiveAggressive(C=math.nan), r"PassiveAggressive\.C must be > 0, got nan"),
    (lambda: Implicit(0), r"Implicit\.eta must be > 0, got 0"),
    (lambda: Implicit(1, -1), r"Implicit\.lam must be >= 0, got -1"),
    (lambda: AdaptiveThreshold(nu=0), r"AdaptiveThreshold\.nu must be > 0, got 0"),
    (lambda: AdaptiveThreshold(nu=1), r"AdaptiveThreshold\.nu must be between 0 and 1, got 1"),
    (lambda: AdaptiveThreshold(start_at=math.inf), r"AdaptiveThreshold\.start_at must be a finite number"),
    (lambda: AdaptiveThreshold(0.5, 2.0), r"AdaptiveThreshold\.lam must be < 1 / eta"),
    (lambda: Truncate(0), r"Truncate\.rounds must be an integer >= 1, got 0"),
    (lambda: Stop(0), r"Stop\.budget must be an integer >= 1, got 0"),
    (lambda: Stop(2.0), r"Stop\.budget must be an integer >= 1, got 2.0"),
    (lambda: RemoveRandom(1, unbiased=True), r"RemoveRandom\.budget must be an integer >= 2, got 1"),
    (lambda: RemoveOldest(5, cap=0), r"RemoveOldest\.cap must be > 0, got 0"),
    (lambda: RemoveWeighted(1), r"RemoveWeighted\.budget must be an integer >= 2, got 1"),
    (lambda: RemoveWeighted(5, cap=-1), r"RemoveWeighted\.cap must be > 0, got -1"),
    (lambda: RemoveSmallest("5"), r"RemoveSmallest\.budget must be an integer >= 1, got '5'"),
    (lambda: RemoveByMargin(5, beta=-1), r"RemoveByMargin\.beta must be >= 0, got -1"),
    (lambda: RemoveByEvaluation(5, recent=-1), r"RemoveByEvaluation\.recent must be an integer >= 0, got -1"),
    (lambda: Forget(5, "other"), r"Forget\.variant must be one of 'self-tuned', 'basic', got 'other'"),
    (lambda: Landmarks(5, 6), r"Landmarks\.rank must be <= 5, got 6"),
    (lambda: Landmarks(5, 0), r"Landmarks\.rank must be an integer >= 1, got 0"),
    (lambda: Landmarks(5, 2, "now"), r"Landmarks\.switch must be one of 'lazy', 'eager', got 'now'"),
    (lambda: Project(0), r"Project\.budget must be an integer >= 1, got 0"),
    (lambda: Project(5, -1), r"Project\.tolerance must be >= 0, got -1"),
    (lambda: Project(5, math.inf), r"Project\.tolerance must be a finite number, got inf"),
    (lambda: Project(5, squared=2), r"Project\.squared must be True or False, got 2"),
    (lambda: Project(5, rule="other"), r"Project\.rule must be one of None, 'icml', 'jmlr', got 'other'"),
    (lambda: Project(5, rule="icml", U=-1), r"Project\.U must be >= 0, got -1"),
    (lambda: Project(rule="icml"), r'Project\.U must be given for the rule "icml" without a budget, got None'),
    (lambda: ProjectSmallest(0), r"ProjectSmallest\.budget must be an integer >= 1, got 0"),
    (lambda: Refit(5, "none"), r"Refit\.variant must be one of 'simple', 'nearest', 'projecting', 'plain', got 'none'"),
    (lambda: Refit(5, C=0), r"Refit\.C must be > 0, got 0"),
    (lambda: Refit(5, "plain", math.inf), r'Refit\.C must be finite for the variant "plain", got inf'),
    (lambda: AdaGrad(0), r"AdaGrad\.eta must be > 0, got 0"),
    (lambda: Fourier("gaussian"), r"Fourier\.kernel must be a kernel, got 'gaussian'"),
    (lambda: Fourier(components=0), r"Fourier\.components must be an integer >= 1, got 0"),
    (lambda: Reparameterized(eta=-1), r"Reparameterized\.eta must be >= 0, got -1"),
    (lambda: Reparameterized(clip=0), r"Reparameterized\.clip must be > 0, got 0"),
    (lambda: Reparameterized(clip=51), r"Reparameterized\.clip must be <= 50, got 51"),
    (lambda: Orthogonal(Laplacian(1.0)), r"Orthogonal\.kernel must be Gaussian.*got Laplacian"),
    (lambda: Orthogonal(structured=1), r"Orthogonal\.structured must be True or False, got 1"),
    (lambda: Fastfood(Cauchy(1.0)), r"Fastfood\.kernel must be Gaussian.*got Cauchy"),
    (lambda: Nystrom(rank=0), r"Nystrom\.rank must be an integer >= 1, got 0"),
    (lambda: Dual(Gaussian(), MAPS[0], -1), r"Dual\.budget must be an integer >= 0 .*got -1"),
    (lambda: Dual(Gaussian(), MAPS[0], 5, 0), r"Dual\.merge must be an integer >= 1 .*got 0"),
    (lambda: learner(Hinge(), AdaGrad()), r"AdaGrad.* moves each weight by itself and needs explicit features"),
    (lambda: learner(Hinge(), DistanceOverGradient(), Stop(5)), r"DistanceOverGradient.* needs a budget that only app"),
    (lambda: fitted("FOGDClassifier", kernel="linear"), r"Linear.* no random features: use Gaussian, Laplacian or C"),
    (lambda: fitted("FOGDClassifier", map="rff"), r"FOGDClassifier\.map must be one of 'fourier', 'orthogonal', 'so"),
    (lambda: fitted("FOGDClassifier", map="sorf", kernel="cauchy"), r"FOGDClassifier\.kernel must be Gaussian"),
    (lambda: fitted("FOGDClassifier", eta=1.0, eta_unscaled=1.0), r"\beta\b.*eta_unscaled"),
    (lambda: fitted("FOGDClassifier", schedule="1/t"), r"1/t.* eta"),
    (lambda: fitted("FOGDClassifier", eta=1.0, schedule="t"), r"FOGDClassifier\.schedule must be one of"),
    (lambda: fitted("NOGDClassifier", budget=5, rank=6), r"NOGDClassifier\.rank must be <= 5, got 6"),
    (lambda: fitted("RRFClassifier", eta_kernel=-1), r"RRFClassifier\.eta_kernel must be >= 0, got -1"),
    (
        lambda: fitted("DualSGDClassifier", maintenance="new"),
        r"maintenance must be one of 'merge', 'remove', got",
    ),
    (lambda: fitted("DualSGDClassifier", maintenance="remove", insert_always=True), r"insert_always"),
    (lambda: learner(Logistic(), PassiveAggressive()), r"PassiveAggressive needs a piecewise linear loss, .*Logistic"),
    (lambda: learner(SquaredHinge(), Implicit()), r"Implicit is derived for the Hinge, got SquaredHinge"),
    (lambda: learner(Logistic(), AdaptiveThreshold()), r"AdaptiveThreshold needs a loss with a margin or a tube"),
    (lambda: learner(Hinge(), Pegasos(project=True), Stop(5)), r"Pegasos.* needs a budget that only appends, got Stop"),
    (lambda: learner(Hinge(), Gradient(radius=1.0), RemoveOldest(5)), r"Gradient.* needs a budget that only appends"),
    (lambda: learner(Hinge(), Gradient(), average="live"), r'average must be False, True or "all", got \'live\''),
    (lambda: fitted("PAClassifier", variant="III"), r"variant must be one of 'hard', 'I', 'II', got 'III'"),
    (lambda: fitted("BOGDClassifier", removal="new"), r"BOGDClassifier\.removal must be one of 'uniform', 'fifo', got"),
    (lambda: fitted("BOGDClassifier", budget=1), r"budget must be an integer >= 2, got 1"),
    (lambda: fitted("BPAClassifier", variant="new"), r"BPAClassifier\.variant must be one of 'simple', 'nearest'"),
    (lambda: fitted("ProjectronPlusPlusClassifier", rule="new"), r"\.rule must be one of 'icml', 'jmlr', got 'new'"),
    (lambda: fitted("ProjectronPlusPlusClassifier", budget=None), r"ProjectronPlusPlusClassifier\.U must be given"),
    (lambda: fitted("BSGDClassifier", removal="new"), r"BSGDClassifier\.removal must be one of 'smallest'"),
    (lambda: fitted("BSGDClassifier", maintenance="new"), r"BSGDClassifier\.maintenance must be one of 'remove'"),
    (lambda: fitted("BudgetPerceptronClassifier", variant="new"), r"variant must be one of 'plain', 'distil'"),
    (lambda: fitted("ForgetronClassifier", variant="new"), r"variant must be one of 'self-tuned', 'basic'"),
    (lambda: fitted("NORMAClassifier", loss="logistic", nu=0.4), r"AdaptiveThreshold needs a loss with a margin"),
    (lambda: fitted("OGDClassifier", loss=Squared()), r"loss must be a classification loss .*got Squared"),
    (lambda: fitted("OGDRegressor", loss="hinge"), r"loss must be a regression loss .*got 'hinge'|.*got Hinge"),
    (lambda: fitted("OGDClassifier", kernel="rbf"), r"kernel must be an onkel.kernels object or one of"),
    (lambda: fitted("OGDClassifier", average="live"), r'average must be False, True or "all", got \'live\''),
    (lambda: fitted("KLRSGDClassifier", R=-1.0), r"KLRSGDClassifier\.R must be > 0, got -1.0"),
]


def learner(loss, update, budget=None, **options):
    return Learner(Expansion(Linear(), budget or Unlimited()), loss, update, **options)


def fitted(name, **params):
    model = build(name, **params)
    return learn(model, *stream_for(model, rounds=5))


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_absurd_values_are_refused_with_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
