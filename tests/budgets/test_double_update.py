"""DUOL and BDUOL: the dual climbs, weights stay in their boxes, and what is carried along is true.

That both are their papers' boxes is in `test_presets`.
"""

import numpy as np
import pytest
from boxes.double_update import box_qp, enumerated, gain
from scipy.optimize import minimize
from streams import BUDGET, ESTIMATORS, KERNELS, binary, learn

import onkel
from onkel.budgets import DoubleUpdate, DualAscent
from onkel.budgets.base import term_diagonals
from onkel.budgets.double_update import Box, double_step
from onkel.core.errors import Diverged
from onkel.core.ties import oldest_of_least
from onkel.hypotheses import Expansion
from onkel.kernels import Gaussian, Linear
from onkel.learners.learner import Learner
from onkel.losses import Hinge, SquaredHinge
from onkel.updates import Defer, PassiveAggressive

MAINTENANCE = ["remove", "nearest", "approximate", "project"]
WAYS = [
    (maintenance, cheap)
    for maintenance in MAINTENANCE
    for cheap in (False, True)
    if (maintenance, cheap) != ("remove", True)
]
TWO = [-1.0, 1.0]


def hard_stream(kind, rounds=160):
    """Examples again and again, also with the other label; or more of them than a kernel has dimensions."""
    X, y = binary(rounds, seed=3)
    if kind == "duplicates":
        again = np.random.default_rng(4).integers(0, 25, rounds)
        X = X[again]
        return X, np.where(np.random.default_rng(5).random(rounds) < 0.2, -1, 1) * y[again], Gaussian(1.0)
    if kind == "dependent":
        return X, y, Linear() + 1
    return X.astype(np.float32), y, Gaussian(1.0)


def terms(model):
    """Rows, coefficients, scores and limits of the terms as they are stored."""
    state = model.state()[0]
    columns = [state["scale"] * state[f"basis.{name}"][:, 0] for name in ("coef", "score", "limit")]
    return state["basis.x"].astype(float), *columns


def dual(K, a):
    return np.abs(a).sum() - a @ K @ a / 2


# The step


def test_a_double_step_is_the_best_there_is():
    generator = np.random.default_rng(0)
    at_bounds = set()
    for trial in range(400):
        k, k_b, loss, loss_b = generator.uniform(0.2, 2, 4)
        C = generator.uniform(0.1, 3)
        g = generator.uniform(0, C)
        w = -np.sqrt(k * k_b) * (1.0 if trial % 8 == 0 else generator.uniform(0, 1))  # 1: the same x
        found = double_step(k, k_b, w, loss, loss_b, C, C - g)
        assert 0 <= found[0] <= C and 0 <= found[1] <= C - g
        best = gain(k, k_b, w, loss, loss_b, *enumerated(k, k_b, w, loss, loss_b, g, C))
        assert gain(k, k_b, w, loss, loss_b, *found) == pytest.approx(best, rel=1e-9)
        at_bounds.add((found[0] == C, found[1] == C - g))
    assert len(at_bounds) == 4


def test_a_double_step_with_two_limits_is_that_of_a_solver():
    generator = np.random.default_rng(1)
    for _ in range(60):
        k, k_b, loss, loss_b, limit, room = generator.uniform(0.2, 2, 6)
        w = -np.sqrt(k * k_b) * generator.uniform(0, 0.95)
        solved = minimize(
            lambda p, problem: -gain(*problem, *p),
            [limit / 2, 0.0],
            args=((k, k_b, w, loss, loss_b),),
            bounds=[(0, limit), (-1, room)],
            options={"ftol": 1e-15, "gtol": 1e-10},
        )
        np.testing.assert_allclose(double_step(k, k_b, w, loss, loss_b, limit, room), solved.x, atol=1e-5)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("kind", ["duplicates", "dependent", "float32"])
@pytest.mark.parametrize("rho", [0.0, 0.3])
def test_duol_climbs_within_its_boxes(kind, rho):
    X, y, kernel = hard_stream(kind, rounds=80)
    weight = np.random.default_rng(2).uniform(0.3, 2, len(X))
    model = onkel.DUOLClassifier(C=0.7, rho=rho, kernel=kernel)
    tolerance = 1e-4 if kind == "float32" else 1e-10
    before, doubles = 0.0, 0
    for i in range(len(X)):
        f = 0.0 if i == 0 else float(model.decision_function(X[[i]])[0])
        learn(model, X[[i]], y[[i]], sample_weight=weight[[i]])
        x, a, score, limit = terms(model)
        K = kernel(x)
        np.testing.assert_allclose(score, K @ a, atol=tolerance)
        assert (np.abs(a) <= limit).all() and (np.abs(a) > 0).all()
        loss, kxx = max(0.0, 1 - y[i] * f), float(kernel(X[[i]].astype(float))[0, 0])
        single = min(0.7 * weight[i], loss / kxx)
        now = dual(K, a)
        assert now >= before + single * loss - single**2 * kxx / 2 - tolerance
        doubles += now > before + single * loss - single**2 * kxx / 2 + 1e-4
        before = now
    np.testing.assert_allclose(sorted(limit), sorted(0.7 * weight[np.isin(np.arange(len(X)) + 1, born(model))]))
    assert doubles > 1


def born(model):
    return model.state()[0]["basis.born"][:, 0]


@pytest.mark.usefixtures("engine")
def test_a_weight_is_a_limit_of_ones_own():
    """With one weight for all it is C; with many, the pair that moved is the best in its own boxes."""
    X, y = binary(120)
    a = learn(onkel.DUOLClassifier(C=0.6), X, y)
    np.testing.assert_allclose(learn(onkel.DUOLClassifier(C=0.3), X, y, sample_weight=np.full(120, 2.0)), a, atol=1e-12)
    weight = np.random.default_rng(7).uniform(0.2, 3, len(X))
    model = onkel.DUOLClassifier(C=0.3, kernel=KERNELS["uneven"])
    learn(model, X[:40], y[:40], sample_weight=weight[:40])
    pairs = 0
    for i in range(40, 120):
        old = terms(model)[1]
        learn(model, X[[i]], y[[i]], sample_weight=weight[[i]])
        _, a, score, limit = terms(model)
        moved = np.flatnonzero(np.append(old, 0.0)[: len(a)] != a)
        if len(a) == len(old) or len(moved) == 1:
            continue
        pairs += 1
        assert len(moved) == 2 and moved[1] == len(a) - 1
        slope = np.sign(a[moved]) * (np.sign(a[moved]) - score[moved])  # of the dual
        full = np.abs(a[moved]) >= limit[moved] * (1 - 1e-12)
        assert (np.abs(slope[~full]) < 1e-9).all() and (slope[full] > -1e-9).all()
    assert pairs > 5


# The budget


def ascending(maintenance, cheap, X, y, kernel, budget=BUDGET, C=0.7):
    """A learner in Python that has learned all but the last example on which it has a loss."""
    learner = Learner(
        Expansion(kernel, DualAscent(budget, C, 0.0, maintenance, cheap)),
        Hinge(),
        Defer(),
        columns=X.shape[1],
        dtype=X.dtype,
    )
    learner.learn(X, y)
    return learner


@pytest.mark.parametrize(("maintenance", "cheap"), WAYS)
@pytest.mark.parametrize("kind", ["plain", "duplicates", "dependent"])
def test_room_is_made_where_the_dual_loses_least(maintenance, cheap, kind):
    """DA is what the dual gains, and no other term would have cost less."""
    X, y, kernel = (*binary(100), KERNELS["uneven"]) if kind == "plain" else hard_stream(kind)
    for rounds in range(60, 100, 8):
        learner = ascending(maintenance, cheap, X[:rounds], y[:rounds], kernel)
        f, memory = learner.f, learner.f.memory
        if f.n < BUDGET:
            continue
        K, box, diagonal = f.matrix(), Box(f), term_diagonals(f)
        before, limit = dual(K, box.a), f.basis["limit"][:, 0].copy()
        ascents = f.budget._ascents(box, diagonal, memory)
        j = oldest_of_least(-ascents, f.born)
        alone = -box.a * box.slack - box.a**2 * diagonal / 2
        if maintenance == "remove" or cheap:
            np.testing.assert_allclose(ascents, alone)
        assert ascents[j] >= ascents.max() - 1e-6
        leaves = f.born[j]
        f.budget._make_room(f, np.zeros(f.n), memory)
        assert f.n < BUDGET and (leaves not in f.born or kind != "plain")
        a = f.scale * f.coef[:, 0]
        assert (np.abs(a) <= limit.max()).all()
        if not cheap:
            assert dual(f.matrix(), a) - before == pytest.approx(ascents[j], abs=1e-5 if kind != "plain" else 1e-6)
        np.testing.assert_allclose(f.scale * f.basis["score"][:, 0], f.matrix() @ a, atol=1e-9)


@pytest.mark.parametrize("kind", ["plain", "duplicates", "dependent"])
def test_the_best_in_the_boxes_is_no_farther_than_what_is_cut_off(kind):
    X, y, kernel = (*binary(100), KERNELS["uneven"]) if kind == "plain" else hard_stream(kind)
    cut = ascending("approximate", False, X[:100], y[:100], kernel).f
    best = DualAscent(BUDGET, 0.7, 0.0, "project")
    K, box = cut.matrix(), Box(cut)
    closer = 0
    for j in range(cut.n):
        v = cut.budget._share(box, j, cut.memory)
        u = best._share(box, j, cut.memory)
        for w in (u, v):
            assert w[j] == box.a[j]
            assert (box.a - w >= box.least - 1e-12).all() and (box.a - w <= box.most + 1e-12).all()
        assert u @ K @ u <= v @ K @ v + 1e-8
        closer += u @ K @ u < v @ K @ v - 1e-4
        others = np.arange(cut.n) != j
        solved = box_qp(
            K[np.ix_(others, others)] + 1e-10 * np.eye(cut.n - 1),
            -box.a[j] * K[others, j],
            *(lim[others] for lim in (box.a - box.most, box.a - box.least)),
        )
        assert np.insert(solved, j, box.a[j]) @ K @ np.insert(solved, j, box.a[j]) == pytest.approx(u @ K @ u, abs=1e-8)
    assert closer > 0


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("maintenance", "cheap"), WAYS)
@pytest.mark.parametrize("kind", ["duplicates", "dependent", "float32"])
def test_what_is_carried_along_is_true(maintenance, cheap, kind):
    X, y, kernel = hard_stream(kind)
    weight = np.random.default_rng(2).uniform(0.3, 2, len(X))
    model = onkel.BDUOLClassifier(budget=9, C=0.7, kernel=kernel, maintenance=maintenance, cheap=cheap)
    tolerance = 2e-5 if kind == "float32" else 1e-10
    for i in range(0, len(X), 4):
        learn(model, X[i : i + 4], y[i : i + 4], sample_weight=weight[i : i + 4])
        x, a, score, limit = terms(model)
        state, K = model.state()[0], kernel(x)
        assert model.n_support_ <= 9
        np.testing.assert_allclose(score, K @ a, atol=tolerance)
        assert (np.abs(a) <= limit).all() and (np.abs(a) > 0).all()
        np.testing.assert_allclose(limit, 0.7 * weight[born(model).astype(int) - 1])
        if maintenance == "nearest":
            distance = np.diag(K) - 2 * K + np.diag(np.full(len(K), np.inf))
            nearest = state["budget.nearest"]
            chosen = distance[np.arange(len(K)), nearest]
            np.testing.assert_allclose(chosen, distance.min(axis=1), atol=1e-9)
            np.testing.assert_allclose(state["budget.affinity"], K[np.arange(len(K)), nearest], atol=1e-12)
        elif maintenance != "remove":
            np.testing.assert_allclose(state["budget.K"], K, atol=1e-12)
            order = state["budget.factor.slots"]
            L = state["budget.factor.L"]
            np.testing.assert_allclose((L @ L.T)[np.argsort(order)][:, np.argsort(order)], K, atol=1e-8)


@pytest.mark.parametrize(("maintenance", "cheap"), WAYS)
@pytest.mark.parametrize("kind", ["duplicates", "dependent", "float32"])
def test_engines_agree_where_terms_depend_on_each_other(maintenance, cheap, kind, tmp_path):
    """Round by round from the same state: a solution of least norm is known to 1e-5 only, and errors grow over rounds.

    Of equals "project" may choose either, so there it is the dual that counts.
    """
    X, y, kernel = hard_stream(kind)
    with onkel.use_engine("python"):
        model = onkel.BDUOLClassifier(budget=12, C=0.7, kernel=kernel, maintenance=maintenance, cheap=cheap)
        learn(model, X[:40], y[:40])
    for i in range(40, 80):
        model.save(tmp_path / "model")
        with onkel.use_engine("native"):
            twin = onkel.load(tmp_path / "model")
        learn(model, X[[i]], y[[i]])
        learn(twin, X[[i]], y[[i]])
        found, wanted = (dual(kernel(terms(m)[0]), terms(m)[1]) for m in (twin, model))
        assert found == pytest.approx(wanted, abs=1e-3 if maintenance == "project" else 1e-5)
        if maintenance != "project":
            np.testing.assert_array_equal(born(twin), born(model))
            np.testing.assert_allclose(terms(twin)[1], terms(model)[1], atol=1e-5)


# Where they are others


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("kernel", KERNELS)
def test_without_conflicts_duol_is_passive_aggressive(kernel):
    X, y = binary()
    duol = learn(onkel.DUOLClassifier(C=0.4, rho=5.0, kernel=KERNELS[kernel]), X, y)
    np.testing.assert_array_equal(duol, learn(onkel.PAClassifier(C=0.4, kernel=KERNELS[kernel]), X, y))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("maintenance", "cheap"), WAYS)
def test_a_budget_never_reached_leaves_duol(maintenance, cheap):
    X, y = binary(120)
    bounded = onkel.BDUOLClassifier(C=0.4, budget=120, maintenance=maintenance, cheap=cheap)
    np.testing.assert_array_equal(learn(bounded, X, y), learn(onkel.DUOLClassifier(C=0.4), X, y))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("maintenance", MAINTENANCE)
def test_no_room_is_made_for_an_example_just_fitted(maintenance, dtype):
    X, y = binary(120)
    X = X.astype(dtype)
    model = onkel.BDUOLClassifier(C=20.0, budget=BUDGET, maintenance=maintenance, kernel=KERNELS["uneven"])
    for i in range(len(X)):
        learn(model, X[[i]], y[[i]])
        after = born(model)
        learn(model, X[[i]], y[[i]])  # its margin is 1, up to rounding
        if len(after) == BUDGET:
            np.testing.assert_array_equal(born(model), after)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("maintenance", MAINTENANCE)
def test_a_budget_of_one_term(maintenance):
    X, y = binary(60)
    model = onkel.BDUOLClassifier(C=0.4, budget=1, maintenance=maintenance)
    assert np.isfinite(learn(model, X, y)).all() and model.n_support_ == 1


# Two classes, one loss


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", ["DUOLClassifier", "BDUOLClassifier"])
def test_a_third_class_is_refused_and_changes_nothing(name):
    X, y = binary(40)
    model = ESTIMATORS[name]()
    for labels in (np.arange(40) % 3, np.arange(40) % 4):
        with pytest.raises(ValueError, match=r"Only binary classification is supported. B?DUOLClassifier .* \[0, 1, 2"):
            model.fit(X, labels)
    with pytest.raises(ValueError, match="two classes, got"):
        model.learn(X, y, classes=[-1, 0, 1])
    assert not model.__sklearn_is_fitted__()
    model.learn(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="two classes, got"):
        model.partial_fit(X, np.full(40, 7.0))
    with pytest.raises(ValueError, match="two classes, got"):
        model.learn_one(X[0], 7.0)
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert not model.__sklearn_tags__().classifier_tags.multi_class
    assert onkel.PAClassifier().__sklearn_tags__().classifier_tags.multi_class


def test_a_frame_with_a_third_class_is_refused_before_it_is_learned():
    pd = pytest.importorskip("pandas")
    X, y = binary(40)
    frame, model = pd.DataFrame(X, columns=list("abcd")), onkel.DUOLClassifier()
    model.learn_many(frame, pd.Series(y))
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="two classes, got"):
        model.learn_many(frame, pd.Series(np.append(y[:-1], 7.0)))
    np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("budget", [DoubleUpdate(), DualAscent(9)])
def test_parts_refuse_what_they_are_not_defined_for(budget):
    with pytest.raises(ValueError, match="needs one output; got 3"):
        Learner(Expansion(Gaussian(1.0), budget), Hinge(), Defer(), outputs=3)
    for loss in (SquaredHinge(), Hinge(2.0)):
        with pytest.raises(ValueError, match=r"needs the loss Hinge\(\); got "):
            Learner(Expansion(Gaussian(1.0), budget), loss, Defer())
    with pytest.raises(ValueError, match=r"needs an update that leaves the step to the budget, Defer\(\); got Pass"):
        Learner(Expansion(Gaussian(1.0), budget), Hinge(), PassiveAggressive())


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", ["DUOLClassifier", "BDUOLClassifier"])
def test_limits_beyond_all_numbers_are_refused_before_anything_changes(name):
    X, y, kernel = hard_stream("duplicates")
    for C, weight, message in (
        (0.5, 1e200, "the step is"),
        (0.5, 1e308, "the step is"),
        (1e100, 1e100, "C times the sa"),
    ):
        model = ESTIMATORS[name](kernel=kernel, C=C)
        learn(model, X, y)
        before = model.decision_function(X)
        with pytest.raises(Diverged, match=message):
            learn(model, X, y, sample_weight=np.full(len(X), weight))
        np.testing.assert_array_equal(model.decision_function(X), before)
    model = ESTIMATORS[name](kernel=kernel)
    learn(model, X, y)
    learn(model, X, y, sample_weight=np.full(len(X), 1e100))
    assert np.isfinite(model.dual_coef_).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0.0}, "BDUOLClassifier.C must be > 0"),
        ({"C": np.inf}, "BDUOLClassifier.C must be a finite number"),
        ({"rho": -0.1}, "BDUOLClassifier.rho must be >= 0"),
        ({"budget": 0}, "BDUOLClassifier.budget must be an integer >= 1"),
        ({"maintenance": "merge"}, "BDUOLClassifier.maintenance must be one of 'remove', 'project'"),
        ({"cheap": 1}, "BDUOLClassifier.cheap must be True or False"),
    ],
)
def test_bad_parameters_are_refused_in_words(params, message):
    with pytest.raises(ValueError, match=message):
        onkel.BDUOLClassifier(**params).fit(*binary(10))
