"""Generated streams: the law is the law, to the Bayes error, whatever is asked of it."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from onkel import datasets
from onkel.datasets import DataError
from onkel.datasets.generated import LAWS, MOVING, REGRESSION, segments


def dense(X):
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("name", LAWS)
def test_shorter_streams_are_beginnings_of_longer_ones(name: str) -> None:
    long, short = datasets.load(name, n=4000, seed=1), datasets.load(name, n=50, seed=1)
    np.testing.assert_array_equal(dense(long.X)[:50], dense(short.X))
    np.testing.assert_array_equal(long.y[:50], short.y)
    other = datasets.load(name, n=50, seed=2)
    assert not np.array_equal(other.y, short.y)
    assert (long.task == "regression") == (name in REGRESSION) and long.ordered == (name in MOVING)
    assert long.description[-1] != "." and "{" not in long.description


@pytest.mark.parametrize("name", [name for name in LAWS if name not in REGRESSION])
def test_the_error_of_one_who_knows_the_law(name: str) -> None:
    """The least error promised is what the likelier label gets wrong, within sampling error."""
    drawn = list(islice(segments(name, seed=3), 4))
    least = np.concatenate([segment.least for segment in drawn])
    assert ((least >= 0) & (least <= 0.5)).all()
    n = len(least)
    stream = datasets.load(name, n=n, seed=3)
    assert stream.bayes == pytest.approx(least.mean())
    random = np.random.default_rng(0)
    law = LAWS[name](random, np.arange(n))  # other draws of the same law: features and the chance of +1
    y = np.where(random.uniform(size=n) < law[1], 1, -1)
    mistakes = np.mean(np.where(law[1] > 0.5, 1, -1) != y)
    rare = np.minimum(law[1], 1 - law[1])
    deviation = np.sqrt(np.sum(rare * (1 - rare))) / n + np.std(rare) / np.sqrt(n)
    assert mistakes == pytest.approx(least.mean(), abs=5 * deviation)


@pytest.mark.parametrize("name", ["gaussians", "checkerboard", "sinc", "friedman"])
def test_what_stands_still_can_be_learned_down_to_the_promised_error(name: str) -> None:
    stream = datasets.load(name, n=12_000)
    train, test = slice(6000), slice(6000, None)
    assert stream.bayes is not None
    if stream.task == "classification":
        model = KNeighborsClassifier(41 if name == "gaussians" else 15).fit(stream.X[train], stream.y[train])
        error = np.mean(model.predict(stream.X[test]) != stream.y[test])
        assert stream.bayes - 0.02 < error < stream.bayes + 0.04
    else:
        model = KNeighborsRegressor(15).fit(stream.X[train], stream.y[train])
        error = np.sqrt(np.mean((model.predict(stream.X[test]) - stream.y[test]) ** 2))
        assert stream.bayes * 0.97 < error < stream.bayes * (1.15 if name == "sinc" else 2.5)  # ten features: far apart


@pytest.mark.parametrize("name", sorted(MOVING - REGRESSION))
def test_what_moves_moves(name: str) -> None:
    """The concept of half a period later contradicts that of the beginning more often than noise does."""
    period = {"drift": 3000, "abrupt": 2000, "gradual": 2000, "rotating": 10_000}[name]

    def chance(t: int):
        return LAWS[name](np.random.default_rng(0), np.full(2000, t))[1] > 0.5

    assert np.mean(chance(0) != chance(period // 2)) > 0.2
    assert np.mean(chance(0) != chance(1)) < 0.01


def test_text_is_sparse_and_of_unit_length() -> None:
    stream = datasets.load("text", n=500, words=5000, length=30)
    assert sp.issparse(stream.X) and stream.X.shape == (500, 5000)
    np.testing.assert_allclose(np.sqrt(stream.X.multiply(stream.X).sum(axis=1)).ravel(), 1)
    assert 15 < stream.X.nnz / 500 < 30
    assert datasets.load("text", contrast=1.0).bayes < datasets.load("text", contrast=0.1).bayes


def test_the_best_that_can_be_done_with_text() -> None:
    stream = datasets.load("text", n=18_000, words=1000)
    model = MultinomialNB(fit_prior=False).fit(stream.X[:9000], stream.y[:9000])  # right but for what it must estimate
    assert stream.bayes is not None
    assert stream.bayes - 0.02 < 1 - model.score(stream.X[9000:], stream.y[9000:]) < stream.bayes + 0.03


def test_settings_are_those_of_the_law() -> None:
    stream = datasets.load("rotating", features=4, noise=0.2)
    assert stream.features == 4 and stream.bayes == pytest.approx(0.2) and "20%" in stream.description
    with pytest.raises(DataError, match="rotating has no setting 'turns'; it has features, period, noise"):
        datasets.load("rotating", turns=2)
    with pytest.raises(DataError, match="n must be > 0, got 0"):
        datasets.load("rotating", n=0)
    with pytest.raises(DataError, match="iris is not generated; it has no setting 'noise'"):
        datasets.load("iris", noise=0.1)
