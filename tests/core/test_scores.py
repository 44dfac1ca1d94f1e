"""Scores become classes and margins by the same rule, for one row and for many."""

import numpy as np
import pytest

from onkel.core.scores import margins, predicted, predicted_one, rival

RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize("classes", [["a"], ["a", "b"], ["a", "b", "c", "d"]], ids=len)
def test_one_row_and_many_predict_the_same_class(classes):
    scores = RANDOM.integers(-1, 2, (60, len(classes) if len(classes) > 2 else 1)).astype(float)  # with ties
    found = predicted(np.array(classes), scores)
    assert found.tolist() == [predicted_one(classes, row) for row in scores.tolist()]
    assert len(set(found.tolist())) == len(classes)


def test_the_first_of_the_best_classes_wins():
    assert predicted(np.array(["a", "b", "c"]), np.array([[1.0, 2.0, 2.0]])).tolist() == ["b"]
    assert predicted(np.array(["a", "b"]), np.array([0.0])).tolist() == ["b"]
    assert rival(np.array([1.0, 2.0, 2.0, 2.0]), 1) == 2
    assert rival(np.array([1.0, 2.0, 2.0, 1.0]), 0) == 1


def test_margins_are_those_of_the_definition():
    S = RANDOM.normal(size=(40, 4))
    y = RANDOM.integers(0, 4, 40)
    for margin, s, label in zip(margins(S, y), S, y, strict=True):
        assert margin == s[label] - max(score for j, score in enumerate(s) if j != label)
    signs = np.where(y > 1, 1.0, -1.0)
    np.testing.assert_array_equal(margins(S[:, :1], signs), signs * S[:, 0])
