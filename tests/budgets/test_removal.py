"""Budgets that remove terms: what the presets do not show."""

import numpy as np
import pytest
from box_checks import same
from streams import binary, build, learn

import onkel
from onkel.budgets import Forget, RemoveByEvaluation, RemoveByMargin
from onkel.budgets.removal import keep_probabilities
from onkel.core.ties import oldest_of_least
from onkel.hypotheses import Expansion
from onkel.kernels import Gaussian, Linear
from onkel.learners.learner import Learner
from onkel.losses import Hinge
from onkel.updates import Gradient, Pegasos, Perceptron


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


def test_the_oldest_among_equals_leaves():
    values = np.array([3.0, 1.0 + 1e-12, 1.0, 2.0])
    assert oldest_of_least(values, np.array([1, 2, 3, 4])) == 1
    assert oldest_of_least(values, np.array([1, 5, 3, 4])) == 2
    assert oldest_of_least(np.array([1e-12, 0.0, 1.0]), np.array([1, 2, 3])) == 1
    assert oldest_of_least(np.array([1e-12, 0.0, 1.0]), np.array([1, 2, 3]), 1.0) == 1
    assert oldest_of_least(np.array([1e-15, 0.0, 1.0]), np.array([1, 2, 3]), 1.0) == 0


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
    learner = onkel.native.fastest(Learner(Expansion(Gaussian(1.0), budget), Hinge(), update, columns=4))
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
