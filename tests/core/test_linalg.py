"""A kernel matrix kept factored while terms come and go: its solutions against numpy's, on streams that make it
nearly singular. The factor in C++ is met through the learners that use it, in `test_projections`."""

import numpy as np
import pytest
from scipy.linalg import cho_solve

from onkel.core.linalg import DEPENDENT, RIDGE, Factor

pytestmark = pytest.mark.rounding

EPSILON = np.finfo(float).eps


def gaussian(A, B, gamma):
    return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def walk(rounds, step, d=2, seed=0):
    """A random walk: every input is near the last one."""
    return np.cumsum(step * np.random.default_rng(seed).normal(size=(rounds, d)), axis=0)


STREAMS = {
    "apart": (np.random.default_rng(1).normal(size=(400, 4)), 1.0),
    "walk": (walk(400, 0.1), 0.5),
    "slow walk": (walk(400, 0.02), 0.1),
    "duplicates": (np.random.default_rng(2).normal(size=(40, 2))[np.random.default_rng(3).integers(40, size=400)], 9.0),
    "float32": (walk(400, 0.05).astype(np.float32).astype(float), 0.3),
    "large k(x, x)": (1e4 * np.random.default_rng(1).normal(size=(400, 40)), None),
}


class Stored:
    """A factor, and the rows it stands for by slot."""

    def __init__(self, gamma, inverse=False):
        self.factor, self.rows, self.gamma = Factor(inverse), [], gamma

    def kernel(self, A, B):
        return A @ B.T if self.gamma is None else gaussian(A, B, self.gamma)

    def row(self, x):
        return self.kernel(np.reshape(self.rows, (-1, len(x))), x[None])[:, 0]

    def matrix(self):
        return self.kernel(np.array(self.rows), np.array(self.rows))

    def length2(self, x):
        return float(self.kernel(x[None], x[None])[0, 0])

    def append(self, x):
        self.factor.append(self.row(x), self.length2(x))
        self.rows.append(x)

    def remove(self, slot):
        self.factor.remove(slot)
        last = self.rows.pop()
        if slot < len(self.rows):
            self.rows[slot] = last
        self.factor.refresh(self.matrix)

    def follow(self, X, most=30, seed=5):
        """Take every row that does not depend on those stored, dropping one at random when full."""
        generator = np.random.default_rng(seed)
        for x in X:
            d, distance2 = self.factor.project(self.row(x), self.length2(x))
            yield x, d, distance2
            if distance2 > 0:
                self.append(x)
                if len(self.rows) > most:
                    self.remove(int(generator.integers(len(self.rows))))


def promised(n):
    """How far the factor of n terms may be from that of K: L L' - K in norm, relative to the largest k(x, x)."""
    return RIDGE + 2 * n * EPSILON


def direct(K, k):
    """Two solutions of K d = k without a factor; where K is nearly singular they are far apart."""
    return np.linalg.lstsq(K, k, rcond=1e-15)[0], np.linalg.solve(K + RIDGE * np.diag(K.diagonal()), k)


def distance2_at(d, K, k, kxx):
    """q(d) = kxx - 2 k'd + d'Kd, by how much it may be misjudged, and the length of the residual Kd - k."""
    d, K, k = (np.asarray(a, dtype=np.longdouble) for a in (d, K, k))
    rounding = float(np.finfo(np.longdouble).eps) * K.diagonal().max() * len(d) * (1 + np.abs(d).sum()) ** 2
    return float(kxx - 2 * k @ d + d @ K @ d), float(rounding), float(np.linalg.norm(np.float64(K @ d - k)))


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("name", STREAMS)
def test_projections_solve_their_equations(name, inverse):
    """What the factor tells of an example holds for a matrix as near to K as promised.

    Its squared distance is z'(L L')z with z = (1, -d), the least there is: that of d to |z|^2 times the promise, and
    not larger than that of any other d by more. Below DEPENDENT it counts as 0.
    """
    X, gamma = STREAMS[name]
    stored = Stored(gamma, inverse)
    for x, d, distance2 in stored.follow(X):
        if not stored.rows:
            assert distance2 == stored.length2(x)
            continue
        K, k, kxx = stored.matrix(), stored.row(x), stored.length2(x)
        size = max(kxx, K.diagonal().max())
        error = 2 * promised(len(k)) * size  # the factor's, and that of the solve
        found, rounding, residual = distance2_at(d, K, k, kxx)
        assert residual <= error * np.sqrt(1 + d @ d)
        assert abs(distance2 - found) <= DEPENDENT * kxx + error * (1 + d @ d) + rounding
        assert distance2 == 0 or distance2 > DEPENDENT * kxx
        for other in direct(K, k):
            found, rounding, _ = distance2_at(other, K, k, kxx)
            assert distance2 <= found + error * (1 + other @ other) + rounding


def test_nothing_that_depends_on_the_terms_is_appended():
    X, gamma = STREAMS["duplicates"]
    stored = Stored(gamma)
    for _ in stored.follow(X, most=50):
        pass
    assert len(stored.rows) == len(np.unique(X, axis=0)) == 40
    for x in X[:50]:
        d, distance2 = stored.factor.project(stored.row(x), 1.0)
        assert distance2 == 0
        own = np.array([np.array_equal(x, row) for row in stored.rows])
        np.testing.assert_allclose(d, own, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["apart", "duplicates", "large k(x, x)"])
def test_the_diagonal_is_that_of_the_inverse(name):
    X, gamma = STREAMS[name]
    stored = Stored(gamma, inverse=True)
    for _ in stored.follow(X, most=20):
        if stored.rows:
            wanted = np.linalg.inv(stored.matrix()).diagonal()
            np.testing.assert_allclose(stored.factor.diagonal(), wanted, rtol=1e-7)


@pytest.mark.parametrize("name", ["walk", "slow walk", "float32"])
def test_the_diagonal_tells_distances_where_the_matrix_is_nearly_singular(name):
    """1 / P_ii, the squared distance of a term to the others, against direct solves, as far as either can tell.

    Let L L' = K + E, and z = (1, -d) with the factor's coefficients d of the term on the others. Then
    1 / P_ii = z'(K + E)z, to the accuracy of L^-1, which is that of a triangular solve: n epsilon cond(L). A direct
    solve has another d' with a residual r' = Kd' - k, and q(d) - q(d') = (d - d')'(r + r') holds exactly. As
    |r| <= |E||z|, the two differ by no more than |E||z|^2 + |d - d'|(|E||z| + |r'|). On a slow walk |z| is a hundred
    and more, d and d' have few digits in common, and many distances are as small as this bound.
    """
    X, gamma = STREAMS[name]
    stored = Stored(gamma, inverse=True)
    telling = []
    for number, _ in enumerate(stored.follow(X)):
        if number % 20 or len(stored.rows) < 2:
            continue
        K, L, slots = stored.matrix(), stored.factor.L, stored.factor.slots
        n, off = len(K), L.astype(np.longdouble) @ L.T - K[np.ix_(slots, slots)]
        error, inverse_error = np.linalg.norm(np.float64(off), 2), n * EPSILON * np.linalg.cond(L)
        assert error <= promised(n)
        assert np.linalg.norm(stored.factor.W @ L - np.eye(n), 2) <= 2 * inverse_error
        for i, found in enumerate(1 / stored.factor.diagonal()):
            others = np.delete(np.arange(n), i)
            column = np.zeros(n)
            column[slots] = cho_solve((L, True), (slots == i).astype(float))
            d = -column[others] / column[i]
            length = np.sqrt(1 + d @ d)
            bounds = []
            for other in direct(K[np.ix_(others, others)], K[others, i]):
                wanted, rounding, residual = distance2_at(other, K[np.ix_(others, others)], K[others, i], 1.0)
                bound = error * length**2 + np.linalg.norm(d - other) * (error * length + residual)
                bounds.append(bound + 4 * inverse_error * found + rounding)
                assert abs(found - wanted) <= bounds[-1]
            telling.append(min(bounds) < found / 2)
    assert np.mean(telling) > 0.1 or np.finfo(np.longdouble).eps == EPSILON


@pytest.mark.parametrize("inverse", [False, True])
def test_factor_and_inverse_stay_triangular_and_true(inverse):
    X, gamma = STREAMS["apart"]
    stored = Stored(gamma, inverse)
    for number, _ in enumerate(stored.follow(X, most=12)):
        L, slots = stored.factor.L, stored.factor.slots
        assert sorted(slots) == list(range(len(stored.rows)))
        assert np.array_equal(L, np.tril(L)) and (L.diagonal() > 0).all()
        if number > 0:
            np.testing.assert_allclose(L @ L.T, stored.matrix()[np.ix_(slots, slots)], rtol=0, atol=1e-11)
        if inverse and number > 0:
            np.testing.assert_allclose(stored.factor.W @ L, np.eye(len(L)), rtol=0, atol=1e-9)


def test_it_is_computed_afresh_after_many_removals():
    X, gamma = STREAMS["apart"]
    stored = Stored(gamma, inverse=True)
    asked = []
    fresh = stored.factor.refresh
    stored.factor.refresh = lambda matrix: fresh(lambda: asked.append(len(asked)) or matrix())
    most_removals = 0
    for _ in stored.follow(X, most=12):
        most_removals = max(most_removals, stored.factor.removals)
    assert len(asked) == 3 and most_removals == 100  # 388 removals


def test_a_matrix_at_the_edge_of_dependence_is_not_computed_afresh():
    factor = Factor(inverse=True)
    factor.append(np.zeros(0), 1.0)
    factor.append(np.array([0.5]), 1.0)
    before = factor.L.copy()
    factor.removals = 1000
    factor.refresh(lambda: np.array([[1.0, 2.0], [2.0, 1.0]]))  # no kernel matrix: not positive
    assert np.array_equal(factor.L, before) and factor.removals == 0


@pytest.mark.parametrize("inverse", [False, True])
def test_a_restored_factor_goes_on_bit_by_bit(inverse):
    X, gamma = STREAMS["walk"]
    one = Stored(gamma, inverse)
    for _ in one.follow(X[:200]):
        pass
    two = Stored(gamma, inverse)
    two.rows = list(one.rows)
    two.factor.restore(one.factor.state("budget.factor"), "budget.factor")
    assert set(one.factor.state("a")) == {"a.L", "a.slots", "a.removals"} | ({"a.W"} if inverse else set())
    for a, b in zip(one.follow(X[200:]), two.follow(X[200:]), strict=True):
        assert np.array_equal(a[1], b[1]) and a[2] == b[2]
    for a, b in zip(one.factor.state("").values(), two.factor.state("").values(), strict=True):
        assert np.array_equal(a, b)


def test_a_state_that_does_not_fit_is_refused():
    stored = Stored(1.0, inverse=True)
    for _ in stored.follow(STREAMS["apart"][0][:9]):
        pass
    sound = stored.factor.state("f")
    for name, value in (
        ("f.L", sound["f.L"][:-1]),
        ("f.W", sound["f.W"][:, :-1]),
        ("f.slots", sound["f.slots"] * 0),
        ("f.slots", sound["f.slots"][:-1]),
        ("f.slots", sound["f.slots"] + 1),
        ("f.slots", sound["f.slots"].astype(np.float64)),
        ("f.L", sound["f.L"] * 0),
        ("f.W", -sound["f.W"]),
        ("f.removals", np.array(-1)),
    ):
        with pytest.raises(ValueError, match=f"'{name}'"):
            Factor(inverse=True).check_state(sound | {name: value}, "f", 9)
    Factor(inverse=True).check_state(sound, "f", 9)
