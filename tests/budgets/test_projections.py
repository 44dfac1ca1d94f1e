"""Budgets that project keep their promises (ALGORITHMS.md 2.6, 3.3, 3.4), above all where the kernel matrix of the
terms is nearly singular: what is stored after a round is then compared with a direct solve from what was before it.
That they are their papers' boxes on generic streams is in `test_presets`."""

import numpy as np
import pytest
from boxes import projections as boxes
from boxes import scores as scores_of_box
from streams import KERNELS, binary, inputs, learn, multiclass

import onkel
from onkel.kernels import Gaussian, Polynomial

pytestmark = pytest.mark.usefixtures("engine")

UNEVEN = KERNELS["uneven"]
VARIANTS = ("simple", "nearest", "projecting", "plain")


def walk(rounds=150, step=0.03):
    """Inputs that move slowly, with labels that change on the way: neighbours are nearly dependent."""
    generator = np.random.default_rng(0)
    X = np.cumsum(step * generator.normal(size=(rounds, 2)), axis=0)
    return X, np.where(np.sin(6 * X[:, 0]) + 0.5 * generator.normal(size=rounds) > 0, 1.0, -1.0)


def duplicates(rounds=150):
    """Few distinct inputs, each with both labels."""
    generator = np.random.default_rng(1)
    X = generator.normal(size=(25, 2))[generator.integers(25, size=rounds)]
    return X, np.where(X[:, 0] + generator.normal(size=rounds) > 0, 1.0, -1.0)


def function(model):
    """The rows and coefficients of a model, in double."""
    if not hasattr(model, "support_vectors_"):
        return np.zeros((0, 2)), np.zeros(0)
    return model.support_vectors_.astype(float), model.dual_coef_[0]


def projectron(t, s, y, kxx):
    return 1.0, y * (y * s <= 0)


def bpa(t, s, y, kxx):
    return 1.0, y * min(0.5, max(0.0, 1 - y * s) / kxx)


def bsgd(t, s, y, kxx):
    return 1 - 1 / t, y * (y * s < 1) / (0.05 * t)


# An estimator, and what its update offers: a factor on f and the coefficient of x
OFFERS = {
    "Projectron": (lambda: onkel.ProjectronClassifier(budget=20), projectron),
    "Projectron-tolerance": (lambda: onkel.ProjectronClassifier(tolerance=1e-3), projectron),
    "BPA": (lambda: onkel.BPAClassifier(budget=20, variant="projecting", C=0.5), bpa),
    "BSGD": (lambda: onkel.BSGDClassifier(budget=20, maintenance="project", lam=0.05), bsgd),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [Gaussian(0.1), Gaussian(0.5) + 0.1 * Polynomial(2)], ids=["narrow", "uneven"])
@pytest.mark.parametrize("stream", [walk, duplicates])
@pytest.mark.parametrize("name", OFFERS)
def test_what_is_stored_is_the_projection_of_what_was_offered(name, stream, kernel, dtype):
    make, offer = OFFERS[name]
    X, y = stream()
    X = X.astype(dtype)
    model = make().set_params(kernel=kernel)
    projected = 0
    for t in range(len(X)):
        rows, coef = function(model)
        s = learn(model, X[[t]], y[[t]])[0]
        x = X[[t]].astype(float)
        shrink, step = offer(t + 1, s, y[t], kernel(x)[0, 0])
        offered, a = np.vstack([rows, x]), np.append(shrink * coef, step)
        kept, found = function(model)
        K = kernel(kept)
        wanted = np.linalg.lstsq(K, kernel(kept, offered) @ a, rcond=1e-15)[0]
        k = kernel(X[:: len(X) // 40].astype(float), kept)
        size = max(1.0, np.abs(a).max(), np.abs(found).max(initial=0))
        np.testing.assert_allclose(k @ found, k @ wanted, rtol=0, atol=1e-8 * size)
        projected += len(kept) <= len(rows) and step != 0
        assert len(np.unique(kept, axis=0)) == len(kept) <= (model.budget or len(X))
    assert projected > 10


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("variant", VARIANTS[:3])
def test_passive_aggressive_refits_are_the_cheapest(variant, several):
    """3.3: f(x_t) moves as without a budget, and by no more than the residual of the term that left."""
    X, y = (multiclass if several else binary)(200)
    K = UNEVEN(X)
    model = onkel.BPAClassifier(budget=12, variant=variant, C=0.4, kernel=UNEVEN)
    f, left = table(model, X), 0
    for t in range(len(X)):
        s = np.atleast_1d(learn(model, X[[t]], y[[t]])[0])
        before, f = f, table(model, X)
        step = passive_aggressive_step(s, y[t], K[t, t])
        if not step.any():
            assert np.array_equal(f, before)
            continue
        np.testing.assert_allclose(K[t] @ f, s + step * K[t, t], rtol=0, atol=1e-10)
        S = np.flatnonzero(before.any(axis=1))
        gone = [i for i in S if not f[i].any()]
        moved2 = np.einsum("io,ij,jo->", f - before, K, f - before)
        cost = 0.0
        if len(S) == 12:
            (r,) = gone
            residuals = {v: np.array([residual(K, S, i, t, v) for i in S]) for v in VARIANTS[:3]}
            assert (residuals["projecting"] <= residuals["nearest"] + 1e-12).all()
            assert (residuals["nearest"] <= residuals["simple"] + 1e-12).all()
            costs = (before[S] ** 2).sum(axis=1) * residuals[variant]
            cost = costs[list(S).index(r)]
            assert cost == costs.min()
            left += 1
        assert moved2 == pytest.approx(cost + (step @ step) * K[t, t], abs=1e-10)
    assert left > 50


def table(model, X):
    """The coefficients by row of X, of shape (rows, outputs)."""
    coef = np.zeros((len(X), len(model.dual_coef_) if hasattr(model, "dual_coef_") else 1))
    if hasattr(model, "dual_coef_"):
        for row, a in zip(model.support_vectors_, model.dual_coef_.T, strict=True):
            coef[(row == X).all(axis=1)] = a
    return coef


def passive_aggressive_step(s, y, kxx, C=0.4):
    """What PA-I adds to the coefficients of x, one number per output."""
    direction = np.zeros(len(s))
    if len(s) == 1:
        margin, direction[0] = y * s[0], y
    else:
        rival = max((o for o in range(len(s)) if o != y), key=lambda o: s[o])
        margin, direction[y], direction[rival] = s[y] - s[rival], 1.0, -1.0
    return direction * min(C, max(0.0, 1 - margin) / (kxx * (direction @ direction)))


def residual(K, S, r, t, variant):
    """The squared distance of term r to the span of what it is handed over to."""
    rest = [i for i in S if i != r]
    V = {
        "simple": [t],
        "nearest": [t, min(rest, key=lambda i: K[i, i] - 2 * K[i, r])],
        "projecting": [t, *rest],
    }[variant]
    return K[r, r] - K[V, r] @ np.linalg.solve(K[np.ix_(V, V)], K[V, r])


@pytest.mark.parametrize("several", [False, True])
def test_plain_refits_weigh_the_loss_by_the_sample_weight(several):
    X, y = (multiclass if several else binary)(200)
    weight = np.random.default_rng(3).uniform(0.2, 2.0, len(X))
    K = UNEVEN(X)
    model = onkel.BPAClassifier(budget=12, variant="plain", C=0.4, kernel=UNEVEN)
    f, left = table(model, X), 0
    for t in range(len(X)):
        s = np.atleast_1d(learn(model, X[[t]], y[[t]], sample_weight=weight[[t]])[0])
        before, f = f, table(model, X)
        step = passive_aggressive_step(s, y[t], K[t, t], 0.4 * weight[t])
        S = np.flatnonzero(before.any(axis=1))
        if not step.any() or len(S) < 12:
            continue
        (r,) = (i for i in S if not f[i].any())
        objective = {}
        for i in S:
            without = s + step * K[t, t] - before[i] * K[i, t]
            length2 = (before[i] @ before[i]) * K[i, i] + (step @ step) * K[t, t] - 2 * (step @ before[i]) * K[i, t]
            if several:
                margin = without[y[t]] - np.delete(without, y[t]).max()
            else:
                margin = y[t] * without[0]
            objective[i] = length2 / 2 + 0.4 * weight[t] * max(0.0, 1 - margin)
        assert objective[r] <= min(objective.values()) * (1 + 1e-9)
        np.testing.assert_allclose(f[t], step, rtol=0, atol=1e-12)
        left += 1
    assert left > 50


@pytest.mark.parametrize("variant", VARIANTS)
def test_sample_weights_multiply_C(variant):
    X, y = binary()
    weight = np.random.default_rng(3).uniform(0.2, 2.0, len(X))
    bounded = onkel.BPAClassifier(budget=400, variant=variant, C=0.4, kernel=UNEVEN)
    free = onkel.PAClassifier(variant="I", C=0.4, kernel=UNEVEN)
    found, wanted = (model.learn(X, y, sample_weight=weight) for model in (bounded, free))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", ["dense", "float32", "sparse", "wide", "duplicates", "one term", "two terms"])
def test_neighbours_are_the_nearest(form):
    budget = {"one term": 1, "two terms": 2}.get(form, 15)
    if form == "duplicates":
        X, y = duplicates()
    else:
        X, y = binary(150, form=form if "term" not in form else "dense")
    model = onkel.BPAClassifier(budget=budget, variant="nearest", kernel=UNEVEN, C=0.3)
    for start in range(0, len(y), 8):
        learn(model, X[start : start + 8], y[start : start + 8])
        arrays = model.state()[0]
        K = UNEVEN(stored(arrays, X.shape[1]))
        n = len(K)
        assert arrays["budget.nearest"].shape == arrays["budget.affinity"].shape == (n,)
        if n == 1:
            assert arrays["budget.nearest"] == -1
            continue
        distance = K.diagonal() - 2 * K + np.diag(np.full(n, np.inf))
        nearest = arrays["budget.nearest"]
        own = distance[np.arange(n), nearest]
        np.testing.assert_allclose(own, distance.min(axis=1), rtol=0, atol=1e-9)
        np.testing.assert_allclose(arrays["budget.affinity"], K[np.arange(n), nearest], rtol=1e-12)


def stored(arrays, columns):
    """The rows of a state in the order of its slots, in double."""
    if "basis.x" in arrays:
        return arrays["basis.x"].astype(float)
    rows = np.zeros((len(arrays["basis.indptr"]) - 1, columns))
    for i in range(len(rows)):
        part = slice(*arrays["basis.indptr"][i : i + 2])
        rows[i, arrays["basis.indices"][part]] = arrays["basis.data"][part]
    return rows


@pytest.mark.parametrize("form", ["dense", "float32", "sparse"])
def test_the_factor_is_that_of_the_terms_however_many_have_left(form):
    X, y = binary(500, form=form)
    model = onkel.BPAClassifier(budget=15, variant="projecting", kernel=UNEVEN, C=0.3)
    begun, before = 0, 0
    for start in range(0, len(y), 10):
        learn(model, X[start : start + 10], y[start : start + 10])
        arrays = model.state()[0]
        L, W, slots, removals = (arrays[f"budget.factor.{name}"] for name in ("L", "W", "slots", "removals"))
        K = UNEVEN(stored(arrays, X.shape[1]))[np.ix_(slots, slots)]
        np.testing.assert_allclose(L @ L.T, K, rtol=0, atol=1e-12 * K.max())
        np.testing.assert_allclose(W @ L, np.eye(len(L)), rtol=0, atol=1e-9)
        begun += removals < before
        before = removals
    assert begun > 1  # it was computed afresh more than once


DUPLICATED = {
    "Projectron": (onkel.ProjectronClassifier, boxes.projectron, {"budget": 12}),
    "Projectron++": (
        onkel.ProjectronPlusPlusClassifier,
        boxes.projectron_plus_plus,
        {"budget": None, "tolerance": 0.3, "rule": "jmlr"},
    ),
    "Projectron++-exact": (
        onkel.ProjectronPlusPlusClassifier,
        boxes.projectron_plus_plus,
        {"budget": None, "tolerance": 0.0, "rule": "jmlr"},
    ),
    "BSGD": (onkel.BSGDClassifier, boxes.bsgd_project, {"budget": 12, "lam": 0.05}),
} | {
    f"BPA-{variant}": (onkel.BPAClassifier, boxes.bpa, {"budget": 12, "C": 0.4, "variant": variant})
    for variant in VARIANTS
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", DUPLICATED)
def test_duplicates_are_handled_as_in_the_box(name, dtype):
    kind, box, params = DUPLICATED[name]
    X, y = duplicates()
    X, kernel = X.astype(dtype), Gaussian(1.0)
    K = kernel(X.astype(float))
    more = {"maintenance": "project"} if name == "BSGD" else {}
    model = kind(**params, **more, kernel=kernel)
    wanted = scores_of_box(K, box(K, y, **params))[:, 0]
    np.testing.assert_allclose(learn(model, X, y), wanted, rtol=0, atol=1e-8 if dtype == np.float64 else 2e-4)
    assert model.budget is None or model.n_support_ <= model.budget


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["Projectron", "ProjectronPlusPlus"])
def test_many_terms_among_near_duplicates(name, dtype):
    """Copies that differ in the last digits of single precision: no budget is too large for them."""
    generator = np.random.default_rng(2)
    X = generator.normal(size=(150, 3))[generator.integers(150, size=1500)]
    y = np.where(np.sin(3 * X[:, 0]) + X[:, 1] + 0.7 * generator.normal(size=len(X)) > 0, 1.0, -1.0)
    X = (X * (1 + 1e-7 * generator.normal(size=X.shape))).astype(dtype)
    few, many = (getattr(onkel, f"{name}Classifier")(budget=B, kernel=Gaussian(1.0)) for B in (30, 400))
    errors = [np.mean((learn(model, X, y) >= 0) != (y > 0)) for model in (few, many)]
    assert errors[1] <= errors[0] + 0.02
    assert 100 <= many.n_support_ <= 150  # copies are no terms of their own
    rows, before = function(many)
    wrong = np.flatnonzero(y * many.decision_function(X) <= 0)[:1]
    learn(many, X[wrong], y[wrong])
    K, k = Gaussian(1.0)(rows), Gaussian(1.0)(rows, X[wrong].astype(float))[:, 0]
    assert np.abs(K @ (y[wrong] * (function(many)[1] - before)) - k).max() <= 1e-9


@pytest.mark.parametrize("several", [False, True])
def test_projectron_without_tolerance_is_the_perceptron(several):
    X, y = (multiclass if several else binary)()
    wanted = learn(onkel.KernelPerceptronClassifier(kernel=UNEVEN), X, y)
    for model in (
        onkel.ProjectronClassifier(kernel=UNEVEN),
        onkel.ProjectronPlusPlusClassifier(kernel=UNEVEN, budget=None, rule="jmlr"),
    ):
        np.testing.assert_allclose(learn(model, X, y), wanted, rtol=0, atol=1e-10)


def test_a_tolerance_bounds_the_number_of_terms(engine):
    """On a compact set a continuous kernel has so many functions apart from each other and no more."""
    rounds = 4000 if engine == "native" else 800
    X = np.tanh(inputs(rounds))[:, :2]
    y = np.random.default_rng(0).choice([-1.0, 1.0], rounds)  # half of the rounds are mistakes
    model = onkel.ProjectronClassifier(tolerance=0.3, kernel=Gaussian(1.0))
    learn(model, X[: rounds // 2], y[: rounds // 2])
    half = model.n_support_
    learn(model, X[rounds // 2 :], y[rounds // 2 :])
    assert 5 < half <= model.n_support_ < 20


def test_memory_of_other_terms_is_refused(engine, tmp_path):
    X, y = binary(60)
    for variant in ("projecting", "nearest") if engine == "native" else ("projecting",):
        model = onkel.BPAClassifier(budget=5, variant=variant).fit(X, y)
        other = onkel.BPAClassifier(budget=4, variant=variant).fit(X, y)
        arrays, config = model.state()
        mixed = arrays | {name: array for name, array in other.state()[0].items() if name.startswith("budget.")}
        onkel.core.state.write(tmp_path / "mixed", mixed, config)
        with pytest.raises(ValueError, match="mixed"):
            onkel.load(tmp_path / "mixed")
