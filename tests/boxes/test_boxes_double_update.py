"""The transcriptions of DUOL and BDUOL keep the laws of their dual."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from boxes import double_update, live, passive_aggressive, support_size
from boxes.common import norm
from boxes.crowded import GAMMA, changed, stream, with_duplicates
from boxes.double_update import (
    ascent,
    bduol,
    box_qp,
    double_step,
    duol,
    enumerated,
    gain,
    weights_lost,
)
from boxes.merging import (
    gaussian,
)

pytestmark = pytest.mark.rounding

UPKEEP = ("remove", "project", "approximate", "nearest")


# DUOL (1.5) and BDUOL (4)


def dual(K, f, y):
    """4: D = sum g - |f|^2/2."""
    return float(np.sum(f[:, 0] * y) - norm(K, f) ** 2 / 2)


def keeps_its_laws(K, y, F, cache, C):
    """The weights are in their box and the cache is y_i f(x_i) of the support vectors."""
    for f, margins in zip(F, cache, strict=True):
        g = f[:, 0] * y
        assert (g >= 0).all()
        assert (g <= C * (1 + 1e-12)).all()
        assert np.array_equal(np.isnan(margins), g == 0)
        assert margins[g > 0] == pytest.approx((y * (K @ f)[:, 0])[g > 0], abs=1e-10)


def test_four_cases_are_the_box_qp():
    rng = np.random.default_rng(8)
    for _ in range(400):
        k_t, k_b = rng.uniform(0.3, 2, size=2)
        w = -np.sqrt(k_t * k_b) * rng.choice([0.0, rng.uniform(), 0.999, 1.0])
        l_t, l_b = rng.uniform(0, 2.5, size=2)
        C = 10 ** rng.uniform(-1.5, 1)
        g = C * rng.choice([rng.uniform(), 1.0])
        ours, best = double_step(k_t, k_b, w, l_t, l_b, g, C), enumerated(k_t, k_b, w, l_t, l_b, g, C)
        reached = gain(k_t, k_b, w, l_t, l_b, *ours)
        assert ours == pytest.approx(best, abs=1e-6)
        assert reached >= gain(k_t, k_b, w, l_t, l_b, *best) - 1e-12
        Q = np.array([[k_t, w], [w, k_b]])
        solved = box_qp(Q, np.array([l_t, l_b]), np.array([0, -g]), np.array([C, C - g]))
        assert ours == pytest.approx(tuple(solved), abs=1e-6)
        single = min(C, l_t / k_t)
        assert reached >= gain(k_t, k_b, w, l_t, l_b, single, 0.0) - 1e-12


def test_four_cases_are_exhaustive(monkeypatch):
    """1.5: for w <= 0 and positive losses one of them fits, without the enumeration."""
    monkeypatch.setattr(double_update, "enumerated", None)
    rng = np.random.default_rng(9)
    for _ in range(2000):
        k_t, k_b = rng.uniform(0.3, 2, size=2)
        C = 10 ** rng.uniform(-1.5, 1)
        w = -np.sqrt(k_t * k_b) * rng.uniform(0, 0.999)
        double_step(k_t, k_b, w, *rng.uniform(0.001, 2.5, size=2), C * min(1, rng.uniform(0, 1.3)), C)


@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("rho", [0.0, 0.2])
def test_duol_ascends_within_the_box(duplicates, C, rho):
    _, y, K = with_duplicates() if duplicates else stream()
    F, cache = duol(K, y, C=C, rho=rho)
    keeps_its_laws(K, y, F, cache, C)
    for t in range(len(y)):
        loss = 1 - y[t] * (K[t] @ F[t])[0]
        single = min(C, max(0, loss))
        assert dual(K, F[t + 1], y) - dual(K, F[t], y) >= single * max(0, loss) - single**2 / 2 - 1e-10
    if C > 0.1:
        assert sum((F[t, :t] != F[t + 1, :t]).any() for t in changed(F)) > 2


def test_duol_without_conflicts_is_pa():
    _, y, K = stream()
    F, _ = duol(K, y, C=0.6, rho=1.0)
    assert np.allclose(F, passive_aggressive.pa(K, y, C=0.6), rtol=0, atol=1e-15)


@pytest.mark.parametrize("maintenance", UPKEEP)
def test_bduol_with_room_is_duol(maintenance):
    _, y, K = stream()
    for ours, theirs in zip(bduol(K, y, C=1.0, budget=len(y), maintenance=maintenance), duol(K, y, C=1.0), strict=True):
        assert np.array_equal(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("cheap", [False, True])
@pytest.mark.parametrize("maintenance", UPKEEP)
@pytest.mark.parametrize("duplicates", [False, True])
def test_bduol_keeps_box_cache_and_budget(duplicates, maintenance, cheap):
    _, y, K = with_duplicates(rounds=50) if duplicates else stream(rounds=70)
    F, cache = bduol(K, y, C=0.8, budget=7, maintenance=maintenance, cheap=cheap)
    keeps_its_laws(K, y, F, cache, 0.8)
    assert support_size(F).max() == 7
    for t in range(len(y)):
        assert y[t] * (K[t] @ F[t])[0] < 1 or np.array_equal(F[t], F[t + 1])


@pytest.mark.parametrize("duplicates", [False, True])
def test_bduol_ascent_is_the_change_of_the_dual(duplicates):
    _, y, K = with_duplicates() if duplicates else stream()
    C = 0.8
    F, cache = duol(K, y, C=C)
    for t in (6, 12, 20):
        S = list(np.flatnonzero(live(F)[t]))
        g = F[t, :, 0] * y
        for j in S:
            lengths = {}
            for rule in UPKEEP:
                Dg = weights_lost(K, y, g, S, j, C, rule)
                assert (g - Dg >= -1e-12).all()
                assert (g - Dg <= C + 1e-12).all()
                assert g[j] == Dg[j]
                after = F[t] - (Dg * y)[:, None]
                assert ascent(K, y, cache[t], S, Dg) == pytest.approx(dual(K, after, y) - dual(K, F[t], y), abs=1e-10)
                lengths[rule] = norm(K, (Dg * y)[:, None])
            assert lengths["project"] <= min(lengths.values()) + 1e-7
            if not duplicates:
                rest = [i for i in S if i != j]
                L = np.linalg.cholesky(K[np.ix_(rest, rest)])
                target = np.linalg.solve(L, g[j] * y[j] * K[rest, j])
                bounds = (-g[rest], C - g[rest] + 1e-14)
                beta = lsq_linear(L.T * y[rest], target, bounds, method="bvls", tol=1e-14).x
                Dg = weights_lost(K, y, g, S, j, C, "project")
                assert -Dg[rest] == pytest.approx(beta, abs=1e-6)
                P = np.linalg.inv(K[np.ix_(S, S)])
                position = S.index(j)
                free = -g[j] * y[j] * y[S] * P[:, position] / P[position, position]
                wanted = np.clip(np.delete(free, position), -g[rest], C - g[rest])
                Dg = weights_lost(K, y, g, S, j, C, "approximate")
                assert -Dg[rest] == pytest.approx(wanted, abs=1e-6)


def test_bduol_makes_room_by_the_largest_ascent():
    _, y, K = stream(rounds=70)
    for maintenance in UPKEEP:
        F, cache = bduol(K, y, C=0.8, budget=7, maintenance=maintenance)
        for t in changed(F):
            S = list(np.flatnonzero(live(F)[t]))
            gone = [i for i in S if F[t + 1, i, 0] == 0]
            if len(S) == 7:
                g = F[t, :, 0] * y
                best = max(S, key=lambda j: ascent(K, y, cache[t], S, weights_lost(K, y, g, S, j, 0.8, maintenance)))
                assert best in gone


@pytest.mark.parametrize("maintenance", ["project", "approximate"])
def test_bduol_takes_the_split_of_least_norm(maintenance):
    """4: equal support vectors share, as their boxes allow."""
    x = np.array([[0.0], [0.0], [1.0], [1.2], [0.0]])
    K, y = gaussian(x, x, GAMMA), np.array([1.0, 1, 1, -1, -1])
    g = np.array([0.5, 0.5, 0.4, 0.3, 0.5])
    Dg = weights_lost(K, y, g, [0, 1, 2, 3, 4], 2, 2.0, maintenance)
    assert Dg[0] == pytest.approx(Dg[1], abs=1e-5)
    assert Dg[0] == pytest.approx(-Dg[4], abs=1e-5)
    assert abs(Dg[0]) > 0.01
