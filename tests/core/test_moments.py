"""Moments are those of NumPy, in any blocks."""

from itertools import pairwise

import numpy as np
import pytest

from onkel.core.moments import Moments

X = np.random.default_rng(0).normal(size=(80, 3)) * [1, 1e6, 0] + [1e8, 1e7, 4]
COUNTED = np.random.default_rng(1).random(80) < 0.6


@pytest.mark.parametrize("counted", [np.ones(80, dtype=bool), COUNTED])
def test_mean_and_deviation_after_each_row_are_those_of_the_rows_counted(counted):
    moments = Moments(3)
    differences, sums = moments.add(X, counted)
    for i in range(81):
        kept = X[:i][counted[:i]] if counted[:i].any() else np.full((1, 3), moments.first)
        np.testing.assert_allclose(moments.first + sums.mean[i], kept.mean(axis=0), rtol=1e-13)
        np.testing.assert_allclose(sums.deviation[i], kept.std(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(differences, X - X[np.argmax(counted)])
    assert moments.count == counted.sum()


@pytest.mark.parametrize("cuts", [[0, 1, 80], [0, 7, 8, 40, 80], list(range(81))])
def test_blocks_do_not_matter_to_the_last_bit(cuts):
    whole, parts = Moments(3), Moments(3)
    _, sums = whole.add(X, COUNTED)
    deviations = [parts.add(X[a:b], COUNTED[a:b])[1].deviation[1:] for a, b in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(deviations), sums.deviation[1:])
    for name in ("count", "first", "sums", "squares"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_rows_given_by_their_columns_add_up_to_the_same():
    rows = np.where(np.random.default_rng(2).random((40, 5)) < 0.3, 2.0, 0.0)
    rows[0] = 0
    dense, sparse = Moments(5), Moments(3)
    dense.add(rows)
    sparse.widen(5)
    for row in rows:
        columns = np.flatnonzero(row)
        sparse.add_some(columns, row[columns])
    np.testing.assert_array_equal(sparse.now.deviation, dense.now.deviation)
    again = Moments.of(dense.count, dense.first, dense.sums, dense.squares)
    np.testing.assert_array_equal(again.now.mean, dense.now.mean)
