"""Losses: values and slopes by hand, against their derivatives, and against each other."""

from math import log

import numpy as np
import parts
import pytest

from onkel.losses import (
    Absolute,
    EpsilonInsensitive,
    Exponential,
    Hinge,
    Huber,
    Logistic,
    MarginLoss,
    Mistake,
    Quantile,
    ResidualLoss,
    Squared,
    SquaredHinge,
    as_loss,
)

MARGIN_LOSSES = parts.examples(MarginLoss)
RESIDUAL_LOSSES = parts.examples(ResidualLoss)


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
