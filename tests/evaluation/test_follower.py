"""The follower: a learner along a stream, with its scale, new classes, columns and checkpoints."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import onkel
from onkel.evaluation.follower import Follower
from onkel.evaluation.scale import RunningScale

# -- the follower

MAKERS = [onkel.FOGDClassifier, onkel.RBPClassifier, onkel.NOGDClassifier, onkel.RRFClassifier, onkel.PAClassifier]


@pytest.mark.parametrize("make", MAKERS)
def test_blocks_and_stops_never_matter(make: Any, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 4)) * [1, 1e4, 1, 1e-3] + 5
    y = np.array(["a", "b", "c"])[(X[:, 0] > 5).astype(int) + (X[:, 2] > 6)]
    y[:7] = "b"  # the first class to be seen is not the first of all
    once = Follower(make(), RunningScale())
    whole = once.learn(X, y)
    file, said = tmp_path / "model", []
    Follower(make(), RunningScale()).save(file)
    cuts = [0, 1, 2, 7, 8, 9, 100, 101, 299, 300]
    for a, b in pairwise(cuts):
        follower = Follower.load(file)
        said += follower.learn(X[a:b], y[a:b])
        follower.save(file)
    again = Follower.load(file)
    assert said == whole
    assert (
        (again.seen, again.total) == (once.seen, once.total) == (300, sum(p != t for p, t in zip(said, y, strict=True)))
    )
    for name, array in once.model.state()[0].items():
        np.testing.assert_array_equal(array, again.model.state()[0][name])
    assert again.predict(X) == once.predict(X)


def test_the_running_scale_is_that_of_the_rows_before() -> None:
    X = np.random.default_rng(1).normal(size=(50, 3)) * [1, 1e6, 0] + [0, 1e7, 4]
    X[30, 0] = 1e9
    scaled, follows = RunningScale().learn(X), RunningScale()
    for i in range(2, 50):
        away = (X[i] - X[:i].mean(axis=0))[:2] / X[:i].std(axis=0)[:2]
        limit = np.sqrt(i)  # the most that is possible among i + 1 rows
        np.testing.assert_allclose(scaled[i, :2], np.clip(away, -limit, limit), rtol=1e-6, atol=1e-9)
    assert scaled[30, 0] == np.sqrt(30)
    assert not scaled[:2].any()
    assert not scaled[:, 2].any()
    for i in range(50):
        before = follows.apply(X[i : i + 1]) if i else scaled[:1]
        np.testing.assert_array_equal(before, follows.learn(X[i : i + 1]))
    scale = RunningScale()
    scale.learn(X)
    np.testing.assert_allclose(scale.apply(X)[:, :2].std(axis=0), 1)
    with pytest.raises(ValueError, match="X has 2 features, but the examples before had 3"):
        scale.apply(X[:, :2])


@pytest.mark.parametrize("cls", [onkel.PAClassifier, onkel.KLMSRegressor])
def test_what_learning_says_is_what_predicting_said_just_before(cls: Any) -> None:
    X = np.random.default_rng(2).normal(size=(60, 3)) * [1, 1e4, 1] + [5, 0, 0]
    y = X[:, 0] - 5 + X[:, 2] ** 2
    if cls is onkel.PAClassifier:
        y = np.where(y > 1, 1, 0)

    def fresh() -> Follower:
        return Follower(cls(), RunningScale(), RunningScale() if cls is onkel.KLMSRegressor else None)

    whole, single = fresh().learn(X, y), fresh()
    single.learn(X[:1], y[:1])
    for i in range(1, 60):
        assert single.predict(X[i : i + 3])[0] == whole[i]
        assert single.learn(X[i : i + 1], y[i : i + 1]) == [whole[i]]


def test_a_new_class_is_predicted_before_it_joins() -> None:
    follower = Follower(onkel.PAClassifier())
    said = follower.learn(np.eye(3)[[0, 0, 1, 1, 2]], np.array(["x", "x", "y", "y", "z"]))
    assert said[:3] == [None, "x", "x"]
    assert said[4] != "z"
    assert follower.classes.tolist() == ["x", "y", "z"]
    assert follower.total >= 3


def test_columns_may_come_later(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    dense = (generator.random((80, 9)) < 0.3) * 1.0
    dense[:40, 5:] = 0
    y = np.where(dense[:, 0] > 0, 1, -1)
    kernel = onkel.kernels.Gaussian(0.2)
    narrow, wide = Follower(onkel.PAClassifier(kernel=kernel)), Follower(onkel.PAClassifier(kernel=kernel))
    X = scipy.sparse.csr_matrix(dense)
    wide.learn(X, y)
    narrow.learn(X[:40, :5], y[:40])
    narrow.save(tmp_path / "model")
    narrow = Follower.load(tmp_path / "model")
    narrow.learn(X[40:], y[40:])
    narrow.save(tmp_path / "model")
    narrow = Follower.load(tmp_path / "model")
    assert narrow.model.n_features_in_ == 9
    assert narrow.total == wide.total
    np.testing.assert_allclose(narrow.scores(X), wide.scores(X))
    np.testing.assert_allclose(
        narrow.scores(X[:, :4]), wide.scores(scipy.sparse.csr_matrix(dense * (np.arange(9) < 4)))
    )
    with pytest.raises(ValueError, match="by name"):
        onkel.PAClassifier().partial_fit(__import__("pandas").DataFrame({"a": [1.0]}), ["x"]).widen(3)


def test_a_curve_of_many_points_is_thinned() -> None:
    follower = Follower(onkel.PARegressor())
    for i in range(450):
        follower.learn(np.array([[i / 450]]), np.array([0.5]))
    trace = follower.trace
    assert len(trace.seen) <= 200
    assert trace.seen[-1] == 450
    assert (np.diff(trace.seen) > 0).all()
    assert trace.rmse[-1] == pytest.approx(follower.error)
