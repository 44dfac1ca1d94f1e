"""Every part of the library, in one composition for each of its examples, on the Python engine that defines it.

What estimators guarantee (`tests/laws`) holds for each part by itself, also for one that no algorithm uses.
"""

from itertools import product

import numpy as np
import parts
import pytest
import scipy.sparse as sp
from streams import binary, regression

import onkel
from onkel import budgets, hypotheses, kernels, losses, maps, updates
from onkel.budgets import Bounded, Budget, Stop, Unlimited
from onkel.core.ties import oldest_of_least
from onkel.hypotheses import Expansion, Features, Hypothesis
from onkel.kernels import Gaussian, Kernel
from onkel.learners.learner import Learner
from onkel.losses import Loss
from onkel.maps import Fourier, Map
from onkel.updates import Gradient, Update

ROUNDS = 60
PLAIN = [Expansion(Gaussian(1.0), Stop(8)), Expansion(Gaussian(1.0), Unlimited()), Features(Fourier(Gaussian(1.0), 6))]
STEPS = [Gradient(0.3), *parts.examples(Update)]


def composition(of_hypotheses, of_losses, of_updates):
    """The first of them that go together."""
    return next(three for three in product(of_hypotheses, of_losses, of_updates) if parts.composes(*three))


LOSSES = parts.examples(Loss)
COMPOSED = {kernel: ([Expansion(kernel, Stop(8))], LOSSES, STEPS) for kernel in parts.examples(Kernel)}
COMPOSED |= {loss: (PLAIN, [loss], STEPS) for loss in LOSSES}
COMPOSED |= {update: ([*PLAIN, *parts.hypotheses()], LOSSES, [update]) for update in parts.examples(Update)}
COMPOSED |= {hypothesis: ([hypothesis], LOSSES, STEPS) for hypothesis in parts.hypotheses()}
COMPOSED = {str(part): composition(*several) for part, several in COMPOSED.items()}
every_part = pytest.mark.parametrize("three", COMPOSED.values(), ids=COMPOSED)
every_budget = pytest.mark.parametrize("budget", parts.examples(Budget), ids=str)


def stream(three, form="dense"):
    X, y = (regression if three[1].task == "regression" else binary)(ROUNDS, form="sparse")
    return (X if form == "sparse" else X.toarray()), y


def learner(three, X, **options):
    options = {"average": "average" in three[0].offers, "seed": 3, "sparse": sp.issparse(X)} | options
    return Learner(*three, columns=X.shape[1], **options)


def same(a, b):
    one, two = a.state(), b.state()
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name, strict=True)


@every_part
def test_any_chunking(three):
    X, y = stream(three)
    whole, single = learner(three, X), learner(three, X)
    scores = whole.learn(X, y)
    found = [single.learn(X[[i]], y[[i]]) for i in range(ROUNDS)]
    np.testing.assert_array_equal(np.concatenate(found, axis=1), scores)
    same(whole, single)


@every_part
def test_a_restored_learner_goes_on_as_the_first(three):
    X, y = stream(three)
    never, resumed = learner(three, X), learner(three, X)
    never.learn(X[:30], y[:30])
    resumed.restore(never.state())
    np.testing.assert_array_equal(resumed.learn(X[30:], y[30:]), never.learn(X[30:], y[30:]))
    same(resumed, never)


@every_part
def test_sparse_rows_are_dense_rows(three):
    dense, y = stream(three)
    sparse, _ = stream(three, "sparse")
    wide = sp.csr_array((sparse.data, sparse.indices, sparse.indptr), shape=(ROUNDS, 1500))
    scores = learner(three, dense).learn(dense, y)
    size = max(1.0, np.abs(scores).max())
    np.testing.assert_allclose(learner(three, sparse).learn(sparse, y), scores, rtol=0, atol=1e-9 * size)
    if not three[0].maps and "auto" not in str(three):  # features of more columns are others
        np.testing.assert_allclose(learner(three, wide).learn(wide, y), scores, rtol=0, atol=1e-9 * size)


@every_part
def test_a_row_of_weight_zero_is_left_out(three):
    X, y = stream(three)
    once, twice = learner(three, X), learner(three, X)
    once.learn(X, y)
    twice.learn(np.repeat(X, 2, axis=0), np.repeat(y, 2), np.tile([1.0, 0.0], ROUNDS))
    same(once, twice)


class Farthest(Bounded):
    """When full, the term whose kernel value is least is replaced; with `ties` the oldest of several."""

    ties: bool = True

    def insert(self, f, round, coef, memory):
        if coef is not None:
            if f.n == self.budget:
                f.remove(oldest_of_least(round.k, f.born) if self.ties else int(np.argmin(round.k)))
            f.append(round, coef)


def distance_if_features_change_places(budget):
    """Between scores on a stream of repeated rows, in which many kernel values are equal in exact arithmetic."""
    rng = np.random.default_rng(0)
    X = 0.3 * rng.integers(-2, 3, size=(200, 3))
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    three = composition([Expansion(Gaussian(1.0), budget)], LOSSES, STEPS)
    target = y if three[1].task == "classification" else X[:, 0] + 0.5 * y
    there, back = (learner(three, Z).learn(Z, target)[0] for Z in (X, X[:, ::-1].copy()))
    return np.abs(back - there).max() / max(1.0, np.abs(there).max())


@every_budget
def test_rounding_does_not_choose_among_equal_terms(budget):
    """A matrix of equal rows is inverted with a ridge of 1e-10 or more, so scores are exact to 2e-16 / 1e-10."""
    assert distance_if_features_change_places(budget) < 1e-5


def test_a_budget_that_lets_rounding_choose_is_noticed():
    assert distance_if_features_change_places(Farthest(8)) < 1e-12
    assert distance_if_features_change_places(Farthest(8, ties=False)) > 0.01


HOMES = {Kernel: kernels, Loss: losses, Update: updates, Budget: budgets, Map: maps, Hypothesis: hypotheses}


@pytest.mark.parametrize("kind", HOMES, ids=lambda kind: kind.__name__)
def test_every_part_is_found_in_the_package_of_its_kind(kind):
    """As a user would write it: onkel.budgets.Stop. A part for one hypothesis alone may stand beside that."""
    homes = (HOMES[kind], hypotheses)
    lost = [cls.__name__ for cls in parts.kinds(kind) if not any(hasattr(home, cls.__name__) for home in homes)]
    assert lost == []


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_largest_slope_is_as_the_loss_says(loss):
    scores = np.linspace(-30, 30, 20001)
    slopes = np.abs(loss.each(1.0, scores[:, None])[1])
    assert slopes.max() <= loss.largest_slope
    grows = slopes.max() > 1.001 * slopes[np.abs(scores) <= 20].max()
    assert grows == np.isinf(loss.largest_slope), "state the largest slope where there is one"
    if not grows:
        assert slopes.max() == pytest.approx(loss.largest_slope, abs=1e-9)


@pytest.mark.parametrize("cls", parts.kinds(Bounded), ids=lambda cls: cls.__name__)
def test_every_budget_refuses_a_number_that_cannot_be(cls):
    with pytest.raises(ValueError, match=r"budget must be .*, got -3"):
        cls(budget=-3)


@pytest.mark.parametrize("cls", parts.kinds(Loss), ids=lambda cls: cls.__name__)
def test_every_loss_has_a_name(cls):
    if cls is not losses.Mistake:  # that of perceptrons alone
        name = "".join("_" * (i > 0 and c.isupper()) + c.lower() for i, c in enumerate(cls.__name__))
        assert losses._NAMED.get(name) is cls, f"enter {name!r}: {cls.__name__} in _NAMED"
        assert losses.as_loss(name, cls.task) == cls()


def test_a_learner_says_how_many_features_it_was_made_for():
    X, y = binary(10)
    made = onkel.Learner(Expansion(Gaussian(1.0)), losses.Hinge(), Gradient(0.1))
    for call in (lambda: made.learn(X, y), lambda: made.scores(X)):
        with pytest.raises(ValueError, match="X has 4 features, but this learner was made with columns=0"):
            call()
