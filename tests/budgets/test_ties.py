"""Which term leaves, where terms nearly coincide: the costs are computed again in long double.

Inputs move slowly, by steps from 1e-8 to 0.1, so that costs are differences of nearly equal numbers.
"""

import numpy as np
import pytest

import onkel
from onkel.core.errors import Diverged
from onkel.core.ties import oldest_of_least
from onkel.kernels import Gaussian

KERNEL, BUDGET, ROUNDS = Gaussian(1.0), 8, 60
ROUNDING = 3e-14  # of the operands of a difference: three times what the rule allows
STEPS = 10.0 ** np.arange(-8, 0)
Exact = np.longdouble


def walk(step, seed):
    generator = np.random.default_rng([seed, int(-np.log10(step))])
    X = np.cumsum(generator.normal(size=(ROUNDS, 2)) * step, axis=0)
    return X, np.repeat(generator.choice([-1.0, 1.0], size=ROUNDS // 2), 2)


def gram(X):
    X = X.astype(Exact)
    return np.exp(-np.square(X[:, None] - X[None]).sum(axis=2))


def inverse(K):
    """By elimination, since LAPACK has no long double."""
    n = len(K)
    both = np.hstack([K, np.eye(n, dtype=Exact)])
    for i in range(n):
        pivot = i + int(np.argmax(np.abs(both[i:, i])))
        both[[i, pivot]] = both[[pivot, i]]
        both[i] /= both[i, i]
        for j in set(range(n)) - {i}:
            both[j] -= both[j, i] * both[i]
    return both[:, n:]


def simple(K, a):
    """The cost of projecting each term on the new one, which is last; and the size of its operands."""
    return a**2 * (1 - K[-1, :-1] ** 2), a**2


def projecting(K, a):
    return a**2 / np.diag(inverse(K))[:-1], a**2


def nearest(K, a):
    """On the new term and on the nearest of the others."""
    cost, size = np.zeros_like(a), np.zeros_like(a)
    new, old = K[-1, :-1], K[:-1, :-1] - 2 * np.eye(len(a))
    for r, n in enumerate(np.argmax(old, axis=1)):
        u, w, determinant = new[r], Exact(0), 1 - new[n] ** 2
        if determinant > 1e-10:
            u, w = (new[r] - new[n] * old[r, n]) / determinant, (old[r, n] - new[n] * new[r]) / determinant
        cost[r] = a[r] ** 2 * (1 - u * (2 * new[r] - u) - w * (2 * old[r, n] - w - 2 * u * new[n]))
        size[r] = a[r] ** 2 * (1 + abs(u) + abs(w)) ** 2
    return cost, size


def ascent(K, a):
    """What BDUOL loses by removing a term."""
    f = K[:-1, :-1] @ a
    return a * (np.sign(a) - f) + a**2 / 2, np.abs(a) * (1 + np.abs(f).max()) + a**2


def margin(K, a):
    """The leave-one-out margin, negative."""
    f = K[:-1, :-1] @ a
    return -np.sign(a) * (f - a), np.abs(a).max() + np.abs(f)


CASES = [
    *((onkel.BPAClassifier, {"variant": v.__name__}, v) for v in (simple, nearest, projecting)),
    (onkel.BDUOLClassifier, {"maintenance": "remove"}, ascent),
    (onkel.BudgetPerceptronClassifier, {}, margin),
]


@pytest.mark.skipif(np.finfo(Exact).eps > 1e-18, reason="long double is double here")
@pytest.mark.parametrize(("cls", "params", "costs"), CASES, ids=[case[2].__name__ for case in CASES])
def test_the_term_of_the_least_cost_leaves(engine, cls, params, costs):
    removals = 0
    for seed, step in enumerate(STEPS):
        X, y = walk(step, seed)
        for C in (0.01, 1.0) if "C" in cls().get_params() else (None,):
            model = cls(kernel=KERNEL, budget=BUDGET, **params, **({} if C is None else {"C": C}))
            for i in range(ROUNDS):
                before = (model.support_vectors_, model.dual_coef_[0]) if i else (X[:0], np.zeros(0))
                model.partial_fit(X[[i]], y[[i]], classes=[-1.0, 1.0])
                rows = {row.tobytes() for row in model.support_vectors_}
                gone = [r for r, row in enumerate(before[0]) if row.tobytes() not in rows]
                if len(before[0]) < BUDGET or len(gone) != 1:
                    continue
                cost, size = costs(gram(np.vstack([before[0], X[[i]]])), before[1].astype(Exact))
                best, removals = int(np.argmin(cost)), removals + 1
                allowed = max(1.001e-9 * abs(cost[best]), ROUNDING * (size[best] + size[gone[0]]), 1e-290)
                assert cost[gone[0]] - cost[best] <= allowed, (step, C, i)
    assert removals > 50


def test_values_are_wrong_by_the_rounding_of_their_own_operands():
    born = np.array([1, 2, 3])
    for values, sizes, chosen in (
        ([8e-12, 2e-16, 1.0], [0.01, 0.01, 1.0], 1),  # costs that differ by a factor of 40,000
        ([8e-12, 2e-16, 1.0], [0.01, 0.01, 1e3], 1),  # the third has large operands, and is not near the least
        ([1e-16, 0.0, 1.0], [0.1, 0.1, 0.1], 0),
        ([1e-16, 0.0, 1.0], [0.1, 1e-9, 0.1], 0),
        ([1e-16, 0.0, 1.0], [1e-9, 1e-9, 0.1], 1),
        ([1.0 + 1e-10, 1.0, 2.0], [0.0, 0.0, 0.0], 0),
        ([np.nan, 2.0, 1.0], [1.0, 1.0, 1.0], 2),
    ):
        assert oldest_of_least(np.array(values), born, np.array(sizes)) == chosen
    with pytest.raises(Diverged):
        oldest_of_least(np.full(3, np.nan), born)
