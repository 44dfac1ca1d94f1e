"""The transcriptions of budget perceptrons and gradients, checked by themselves (sections 2 and 3)."""

import numpy as np
import pytest

import boxes
from boxes import chooser, support_size
from boxes.common import direction, margin, norm
from boxes.gradients import (
    bogd,
    bogd_plus_plus,
    bogd_regression,
    bsgd_remove,
    keep_probabilities,
    ogd,
    ogd_regression,
    pegasos,
)
from boxes.perceptrons import (
    budget_perceptron,
    forgetron,
    forgetron_regression,
    kernel_perceptron,
    kernel_perceptron_regression,
    largest_shrink,
    psi,
    rbp,
    rbp_regression,
    stoptron,
    stoptron_regression,
    tighter_perceptron,
)
from boxes.small import BUDGET, TASKS, T, equal, stream

pytestmark = pytest.mark.rounding

ETA = 0.8


# 2 Budget perceptrons


def budget_boxes(budget):
    choose = chooser(3)
    return [
        lambda K, y, m: stoptron(K, y, outputs=m, budget=budget),
        lambda K, y, m: budget_perceptron(K, y, outputs=m, budget=budget),
        lambda K, y, m: budget_perceptron(K, y, outputs=m, budget=budget, beta=0.3),
        lambda K, y, m: budget_perceptron(K, y, outputs=m, budget=budget, variant="distil"),
        lambda K, y, m: tighter_perceptron(K, y, outputs=m, budget=budget),
        lambda K, y, m: tighter_perceptron(K, y, outputs=m, budget=budget, recent=0),
        lambda K, y, m: rbp(K, y, outputs=m, budget=budget, choose=choose),
        lambda K, y, m: forgetron(K, y, outputs=m, budget=budget),
        lambda K, y, m: forgetron(K, y, outputs=m, budget=budget, legacy_root=True),
        lambda K, y, m: bogd(K, y, outputs=m, budget=budget, eta=0.3, lam=0.01, choose=choose),
        lambda K, y, m: bogd_plus_plus(K, y, outputs=m, budget=budget, eta=0.3, lam=0.01, choose=choose),
        lambda K, y, m: bsgd_remove(K, y, outputs=m, budget=budget, lam=0.01),
        lambda K, y, m: bsgd_remove(K, y, outputs=m, budget=budget, lam=0.01, removal="oldest"),
        lambda K, y, m: bsgd_remove(K, y, outputs=m, budget=budget, lam=1, removal="random", choose=choose),
    ]


@pytest.mark.parametrize("number", range(14))
@pytest.mark.parametrize("task", TASKS)
def test_support_never_exceeds_the_budget(task, number):
    K, y, m = stream(task, uneven=True)
    assert support_size(budget_boxes(BUDGET)[number](K, y, m)).max() == BUDGET


def test_support_of_regression_never_exceeds_the_budget():
    K, y, _ = stream("regression")
    step = {"eta": 0.2, "epsilon": 0.1, "budget": BUDGET}
    for F in [
        stoptron_regression(K, y, **step),
        rbp_regression(K, y, **step, choose=chooser(3)),
        forgetron_regression(K, y, **step),
        bogd_regression(K, y, **step, lam=0.03),
        bogd_regression(K, y, **step, lam=0.03, removal="uniform", unbiased=True, cap=10, choose=chooser(3)),
    ]:
        assert support_size(F).max() == BUDGET


@pytest.mark.parametrize("task", TASKS)
def test_a_budget_never_reached_changes_nothing(task):
    K, y, m = stream(task, uneven=True)
    expected = kernel_perceptron(K, y, outputs=m)
    equal(stoptron(K, y, outputs=m, budget=T), expected, 0)
    equal(budget_perceptron(K, y, outputs=m, budget=T), expected, 0)
    equal(tighter_perceptron(K, y, outputs=m, budget=T), expected, 0)
    equal(rbp(K, y, outputs=m, budget=T), expected, 0)
    equal(forgetron(K, y, outputs=m, budget=T), expected, 0)
    expected = ogd(K, y, outputs=m, eta=0.3)
    equal(bogd(K, y, outputs=m, budget=T, eta=0.3, lam=0.0), expected, 0)
    equal(bogd_plus_plus(K, y, outputs=m, budget=T, eta=0.3, lam=0.0), expected, 0)
    expected = pegasos(K, y, outputs=m, lam=0.01)
    equal(bsgd_remove(K, y, outputs=m, budget=T, lam=0.01), expected, 0)


def test_a_budget_never_reached_changes_nothing_in_regression():
    K, y, _ = stream("regression")
    expected = kernel_perceptron_regression(K, y, eta=0.2, epsilon=0.1)
    equal(stoptron_regression(K, y, budget=T, eta=0.2, epsilon=0.1), expected, 0)
    equal(rbp_regression(K, y, budget=T, eta=0.2, epsilon=0.1), expected, 0)
    equal(forgetron_regression(K, y, budget=T, eta=0.2, epsilon=0.1), expected, 0)
    expected = ogd_regression(K, y, eta=0.2, epsilon=0.1)
    equal(bogd_regression(K, y, budget=T, eta=0.2, lam=0.0, epsilon=0.1), expected, 0)


@pytest.mark.parametrize("task", TASKS)
def test_budget_perceptrons_follow_the_perceptron_until_they_are_full(task):
    K, y, m = stream(task)
    F = kernel_perceptron(K, y, outputs=m)
    full = int(np.argmax(support_size(F) == BUDGET))
    frozen = stoptron(K, y, outputs=m, budget=BUDGET)
    equal(frozen[: full + 1], F[: full + 1], 0)
    assert (frozen[full:] == frozen[full]).all()
    for G in [
        budget_perceptron(K, y, outputs=m, budget=BUDGET),
        tighter_perceptron(K, y, outputs=m, budget=BUDGET),
        rbp(K, y, outputs=m, budget=BUDGET, choose=chooser(3)),
        forgetron(K, y, outputs=m, budget=BUDGET),
    ]:
        equal(G[: full + 1], F[: full + 1], 0)


def removals(F):
    """(round, removed example) wherever one of the stored terms is gone after the round."""
    for t in range(len(F) - 1):
        for j in np.flatnonzero(boxes.live(F)[t] & ~boxes.live(F)[t + 1]):
            yield t, int(j)


def without(f, j):
    rest = f.copy()
    rest[j] = 0
    return rest


@pytest.mark.parametrize("task", TASKS)
def test_budget_perceptron_removes_the_largest_margin_kept(task):
    K, y, m = stream(task, uneven=True)
    F = budget_perceptron(K, y, outputs=m, budget=BUDGET)
    found = list(removals(F))
    assert len(found) > 5
    for t, j in found:
        kept = {i: margin(K[i] @ without(F[t], i), y[i]) for i in np.flatnonzero(boxes.live(F)[t])}
        assert kept[j] == pytest.approx(max(kept.values()), abs=1e-10)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("beta", [0.0, 0.2])
def test_distilling_leaves_no_margin_above_beta(task, beta):
    K, y, m = stream(task)
    F = budget_perceptron(K, y, outputs=m, budget=BUDGET, beta=beta, variant="distil")
    for f in F:
        stored = np.flatnonzero(f.any(axis=1))
        assert max((margin(K[j] @ without(f, j), y[j]) for j in stored), default=0) <= beta + 1e-10


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("recent", [0, 5, T])
def test_tighter_perceptron_removes_where_it_costs_fewest_errors(task, recent):
    K, y, m = stream(task)
    F = tighter_perceptron(K, y, outputs=m, budget=BUDGET, recent=recent)
    found = list(removals(F))
    assert len(found) > 5
    for t, j in found:
        stored = np.flatnonzero(boxes.live(F)[t])
        seen = np.union1d(np.arange(max(0, t + 1 - recent), t + 1), stored).astype(int)

        def errors(i, t=t, seen=seen):
            s = K[seen] @ without(F[t], i)
            guesses = np.where(s[:, 0] >= 0, 1, -1) if m == 1 else s.argmax(axis=1)
            return np.sum(guesses != y[seen])

        fewest = [i for i in stored if errors(i) == min(errors(i) for i in stored)]
        kept = {i: margin(K[i] @ without(F[t], i), y[i]) for i in fewest}
        assert kept[j] == max(kept.values())


def test_random_removal_is_offered_the_old_support_in_order():
    K, y, _ = stream("binary")
    asked = []

    def choose(ids, p):
        asked.append((ids, p))
        return 2

    F = rbp(K, y, budget=BUDGET, choose=choose)
    assert [ids[2] for ids, p in asked] == [j for t, j in removals(F)]
    full = [t for t in range(T) if support_size(F)[t] == BUDGET]
    assert [t for t, j in removals(F)] == [t for t in full if F[t + 1, t].any()]
    assert all(ids == sorted(ids) and len(ids) == BUDGET and p is None for ids, p in asked)


# 2.5 Forgetron


def shrinks(K, y, F, task):
    """(phi, sigma, mu, updates so far) of every removal, read off the history."""
    updates = 0
    for t in range(len(y)):
        if not F[t + 1, t].any():
            continue
        updates += 1
        stored = np.flatnonzero(boxes.live(F)[t])
        if len(stored) < BUDGET:
            continue
        r = stored[0]
        s = K[t] @ F[t]
        inserted = F[t].copy()
        inserted[t] = ETA * np.sign(y[t] - s) if task == "regression" else direction(s, y[t])
        phi = np.abs(F[t + 1, t]).max() / np.abs(inserted[t]).max()
        equal(F[t + 1], phi * without(inserted, r))
        a, f = inserted[r], K[r] @ inserted
        if task == "binary":
            yield phi, abs(a[0]), y[r] * f[0], updates
        elif task == "multiclass":
            yield phi, abs(a[y[r]]), f[y[r]], updates
        else:
            yield phi, abs(a[0]), abs(f[0]), updates


@pytest.mark.parametrize("task", [*TASKS, "regression"])
def test_self_tuned_forgetron_shrinks_no_more_than_its_allowance_asks(task):
    K, y, m = stream(task)
    if task == "regression":
        F = forgetron_regression(K, y, budget=BUDGET, eta=ETA, epsilon=0.1)
    else:
        F = forgetron(K, y, outputs=m, budget=BUDGET)
    found = list(shrinks(K, y, F, task))
    assert min(phi for phi, *_ in found) < 1
    Q = 0.0
    for phi, sigma, mu, M in found:
        assert 0 < phi <= 1 + 1e-12
        Q += (sigma * phi) ** 2 + 2 * sigma * phi * (1 - phi * mu)
        assert Q <= 15 / 32 * M + 1e-10
        assert phi == pytest.approx(1) or pytest.approx(15 / 32 * M) == Q


def test_older_terms_of_the_forgetron_are_never_larger():
    K, y, _ = stream("binary")
    for variant in ["self-tuned", "basic"]:
        for f in forgetron(K, y, budget=BUDGET, variant=variant):
            assert (np.diff(np.abs(f[f[:, 0] != 0, 0])) >= -1e-12).all()
            assert np.abs(f).max() <= 1


def test_legacy_root_of_the_forgetron_solves_the_same_equation_above_one():
    # A support vector far on the right side of the margin, and an allowance that is almost used up.
    right, legacy = (largest_shrink(0.5, 1.0, 0.9, 2.1, root) for root in [False, True])
    assert 0 < right < 1 < legacy
    for phi in [right, legacy]:
        assert psi(0.5 * phi, phi * 1.0) + 0.9 == pytest.approx(15 / 32 * 2.1)


def test_basic_forgetron_stays_in_its_ball_and_keeps_its_mistake_bound():
    K, y, _ = stream("binary", rounds=400)
    B = 83
    U = np.sqrt((B + 1) / np.log(B + 1)) / 4
    F = forgetron(K, y, budget=B, variant="basic")
    assert support_size(F).max() == B
    updates = sum(F[t + 1, t].any() for t in range(400))
    for t in range(400):
        inserted = F[t].copy()
        inserted[t] = direction(K[t] @ F[t], y[t])
        if F[t + 1, t].any():
            phi = abs(F[t + 1, t, 0])
            assert phi * norm(K, inserted) <= U + 1e-10
            assert phi <= 84 ** (-1 / 168) + 1e-15
    for seed in range(5):
        g = np.random.default_rng(seed).uniform(size=400) * y
        g *= U / np.sqrt(g @ K @ g)
        assert updates <= 2 * U**2 + 4 * np.maximum(0, 1 - y * (K @ g)).sum()


# 3 Budget gradients


@pytest.mark.parametrize("task", TASKS)
def test_bogd_caps_after_a_removal(task):
    K, y, m = stream(task, uneven=True)
    for box in [bogd, bogd_plus_plus]:
        F = box(K, y, outputs=m, budget=BUDGET, eta=0.3, lam=0.01, cap=1.5, choose=chooser(3))
        assert np.abs(F[[t + 1 for t, j in removals(F)]]).max() == pytest.approx(0.45, abs=1e-12)
        free = box(K, y, outputs=m, budget=BUDGET, eta=0.3, lam=0.01, choose=chooser(3))
        assert np.abs(free).max() > 0.45


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("box", [bogd, bogd_plus_plus])
def test_random_removal_of_bogd_is_unbiased(task, box):
    K, y, m = stream(task, uneven=True)
    eta, lam, budget = 0.3, 0.1, 6
    offered = []

    def remember(ids, p):
        offered.append(np.full(len(ids), 1 / len(ids)) if p is None else p)
        return 0

    F = box(K, y, outputs=m, budget=budget, eta=eta, lam=lam, choose=remember)
    t = next(removals(F))[0]
    p = offered[0]
    after = [
        box(K, y, outputs=m, budget=budget, eta=eta, lam=lam, choose=lambda ids, p, r=r: r)[t + 1]
        for r in range(budget)
    ]
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1)
    expected = (1 - eta * lam) * F[t]
    expected[t] = eta * direction(K[t] @ F[t], y[t])
    equal(sum(share * f for share, f in zip(p, after, strict=True)), expected)


def test_keep_probabilities():
    equal(keep_probabilities([2.0, 2.0, 2.0, 2.0]), [0.75] * 4)
    equal(keep_probabilities([1.0, 1.0, 0.0]), [1, 1, 0])
    equal(keep_probabilities([1.0, 0.0, 0.0, 0.0]), [1, 2 / 3, 2 / 3, 2 / 3])
    equal(keep_probabilities([10.0, 1.0, 2.0]), [1, 1 / 3, 2 / 3])
    equal(keep_probabilities([0.0, 0.0]), [0.5, 0.5])
    for seed in range(50):
        weights = np.random.default_rng(seed).exponential(size=9) ** 3
        q = keep_probabilities(weights)
        below = q < 1
        assert q.min() > 0
        assert q.sum() == pytest.approx(8)
        ratio = q[below] / weights[below]
        equal(ratio, ratio[0], 1e-9)
        assert (ratio[0] * weights[~below] >= 1 - 1e-9).all()


@pytest.mark.parametrize("task", TASKS)
def test_bogd_plus_plus_raises_light_survivors_to_one_weight(task):
    K, y, m = stream(task, uneven=True)
    F = bogd_plus_plus(K, y, outputs=m, budget=BUDGET, eta=0.3, lam=0.1, choose=chooser(3))
    t, j = next(removals(F))
    survivors = np.setdiff1d(np.flatnonzero(boxes.live(F)[t]), j)
    shrunk, after = (
        np.linalg.norm(f[survivors], axis=1) * np.sqrt(K[survivors, survivors]) for f in [0.97 * F[t], F[t + 1]]
    )
    equal(after, np.maximum(shrunk, after.min()))
    assert shrunk.min() < after.min() < shrunk.max()


@pytest.mark.parametrize("task", TASKS)
def test_bsgd_removal_is_first_in_first_out_on_an_even_diagonal(task):
    K, y, m = stream(task)
    smallest = bsgd_remove(K, y, outputs=m, budget=BUDGET, lam=0.01)
    equal(smallest, bsgd_remove(K, y, outputs=m, budget=BUDGET, lam=0.01, removal="oldest"), 0)


@pytest.mark.parametrize("task", TASKS)
def test_bsgd_removal_takes_the_smallest(task):
    K, y, m = stream(task, uneven=True)
    F = bsgd_remove(K, y, outputs=m, budget=BUDGET, lam=0.01)
    found = [(t, j) for t, j in removals(F) if F[t + 1, t].any()]
    assert len(found) > 5
    for t, j in found:
        # All coefficients are equally long, so that the diagonal alone decides.
        assert K[j, j] < min(K[i, i] for i in np.flatnonzero(boxes.live(F)[t + 1]))
