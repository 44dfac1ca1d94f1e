"""OM-2 and online proximal MKL are their boxes, and keep what section 8.6 promises."""

import numpy as np
import pytest
from boxes.multi_kernel import om2, om2_weights, proximal_mkl
from streams import STREAMS, binary, multiclass, regression

import onkel
from onkel.algorithms import find
from onkel.core.basis import Basis
from onkel.hypotheses.grouped import DualNorm, Proximal
from onkel.kernels import Cauchy, Gaussian, Laplacian, Linear, Polynomial

KERNELS = (Gaussian(0.1), Gaussian(1.0), Polynomial(2, 0.0), Laplacian(0.7), Cauchy(2.0), 0.01 * Gaussian(0.5))
every = pytest.mark.parametrize("kind", STREAMS)
both = pytest.mark.parametrize("kind", ["binary", "several"])


def matrices(X, kernels=KERNELS):
    return np.array([kernel(X) for kernel in kernels])


def follow(model, X, y, run, chunk=20):
    """Learn in chunks and hold the model to the box after each: scores, weights, terms and coefficients."""
    options = {} if isinstance(model, onkel.ProximalMKLRegressor) else {"classes": np.unique(y)}
    weighted = run.W if isinstance(model, onkel.OM2Classifier) else np.ones_like(run.W)
    for start in range(0, len(y), chunk):
        rows = slice(start, start + chunk)
        np.testing.assert_allclose(model.learn(X[rows], y[rows], **options), run.S[rows], rtol=0, atol=1e-10)
        t = min(start + chunk, len(y))
        np.testing.assert_allclose(model.weights_, run.W[t], rtol=0, atol=1e-10)
        coef = weighted[t][:, None, None] * run.F[:, t]  # (kernels, rounds, outputs)
        kept = run.F[:, t].any(axis=(0, 2))
        assert model.n_support_ == kept.sum()
        np.testing.assert_array_equal(model.support_vectors_, X[kept])
        np.testing.assert_array_equal(model.sizes_, run.sizes[t])
        np.testing.assert_allclose(model.dual_coef_, coef[:, kept].transpose(2, 0, 1), rtol=0, atol=1e-10)


@both
@pytest.mark.parametrize("m", [1, 2, 3, 6])
def test_om2_is_its_box(kind, m):
    stream, outputs = STREAMS[kind]
    X, y = stream()
    assert len(y) >= 200
    follow(onkel.OM2Classifier(kernels=KERNELS[:m]), X, y, om2(matrices(X, KERNELS[:m]), y, outputs))


@both
def test_normalized_kernels(kind):
    """k(x, z) / sqrt(k(x, x) k(z, z)); 0 where k(x, x) is."""
    stream, outputs = STREAMS[kind]
    X, y = stream()
    X[10::30] = 0.0
    Ks = matrices(X)
    lengths = np.sqrt(np.diagonal(Ks, axis1=1, axis2=2))
    both = lengths[:, :, None] * lengths[:, None]
    Ks = np.divide(Ks, both, out=np.zeros_like(Ks), where=both > 0)
    follow(onkel.OM2Classifier(kernels=KERNELS, normalize=True), X, y, om2(Ks, y, outputs))
    run = proximal_mkl(Ks, y, outputs=outputs, eta=0.2, lam=0.3)
    follow(onkel.ProximalMKLClassifier(kernels=KERNELS, eta=0.2, lam=0.3, normalize=True), X, y, run)


@every
@pytest.mark.parametrize(("penalty", "lam"), [("squared", 0.0), ("squared", 0.4), ("squared", 5.0), ("group", 0.6)])
def test_proximal_mkl_is_its_box(kind, penalty, lam):
    stream, outputs = STREAMS[kind]
    X, y = stream()
    make, loss = (
        (onkel.ProximalMKLRegressor, "squared") if kind == "regression" else (onkel.ProximalMKLClassifier, "hinge")
    )
    run = proximal_mkl(matrices(X), y, outputs=outputs, eta=0.2, lam=lam, penalty=penalty, loss=loss)
    assert lam in (0.0, 0.4) or (run.W[40:] == 0).any()  # kernels are switched off
    follow(make(kernels=KERNELS, eta=0.2, lam=lam, penalty=penalty), X, y, run)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_other_losses(loss):
    X, y = binary()
    run = proximal_mkl(matrices(X), y, eta=0.2, lam=0.2, loss=loss)
    follow(onkel.ProximalMKLClassifier(kernels=KERNELS, eta=0.2, lam=0.2, loss=loss), X, y, run)
    X, y = regression()
    run = proximal_mkl(matrices(X), y, eta=0.2, lam=0.2, loss="absolute")
    follow(onkel.ProximalMKLRegressor(kernels=KERNELS, eta=0.2, lam=0.2, loss="absolute"), X, y, run)


@pytest.mark.parametrize("m", [1, 2, 3, 8])
def test_the_weights_of_om2(m):
    """Those of the box, which is tested to have a gradient there."""
    lengths = np.random.default_rng(m).random(m)
    weights = DualNorm().weights(lengths)
    np.testing.assert_allclose(weights, om2_weights(lengths, max(2, 2 * np.log(m))))
    assert not DualNorm().weights(np.zeros(m)).any()
    np.testing.assert_allclose(DualNorm().weights(1e200 * lengths), weights)


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_the_proximal_step_is_optimal(squared, seed):
    """Of sum_j (x_j - b_j)^2 / 2 + c/2 (sum x)^2 (or c sum x) the slope is 0 where x > 0, and >= 0 elsewhere."""
    generator = np.random.default_rng(seed)
    b = generator.random(7) ** 3 * (generator.random(7) > 0.2)
    for lam in (0.0, 0.03, 0.5, 4.0, 100.0):
        x = b * Proximal(eta=0.8, lam=lam, squared=squared).factors(b, 4)
        slope = x - b + lam * 0.8 / 2 * (x.sum() if squared else 1.0)
        np.testing.assert_allclose(slope[x > 0], 0, atol=1e-12)
        assert (slope[b > 0] >= -1e-12).all() and (x >= 0).all()


@pytest.mark.parametrize("penalty", ["squared", "group"])
def test_a_kernel_that_is_switched_off_has_exactly_no_coefficients(penalty):
    X, y = binary(600)
    model = onkel.ProximalMKLClassifier(kernels=KERNELS, eta=0.2, lam=5.0 if penalty == "squared" else 1.0)
    model.set_params(penalty=penalty)
    history = []
    for start in range(0, 600, 5):
        model.partial_fit(X[start : start + 5], y[start : start + 5], classes=[-1.0, 1.0])
        on = model.weights_ > 0
        assert not model.dual_coef_[:, ~on].any() and model.dual_coef_[:, on].any(axis=(0, 2)).all()
        assert model.dual_coef_.any(axis=(0, 1)).all()  # a term that no kernel needs has left
        history.append(on)
    came_back = np.diff(np.array(history).astype(int), axis=0) > 0
    assert came_back.any() and not all(on.all() for on in history[1:])


def test_a_penalty_too_strong_leaves_nothing():
    X, y = binary(50)
    model = onkel.ProximalMKLClassifier(kernels=KERNELS, eta=0.1, lam=100.0, penalty="group").fit(X, y)
    assert model.n_support_ == 0 and not model.weights_.any() and not model.decision_function(X).any()


def lengths_of(model):
    """|f_j| from the terms themselves; of OM-2 those of the dual functions, whose coefficients are common."""
    f = model._learned.engine.f
    coef = (
        np.ones((len(f.kernels), 1, 1)) * f.coef
        if isinstance(model, onkel.OM2Classifier)
        else ((f.scales * f.shares).T[:, :, None] * f.coef)
    )
    return np.sqrt([np.sum(a * (kernel(f.basis.matrix()) @ a)) for kernel, a in zip(f.kernels, coef, strict=True)])


@pytest.mark.parametrize(
    "model",
    [onkel.OM2Classifier(), onkel.ProximalMKLClassifier(eta=0.3, lam=0.05, loss="logistic")],
    ids=lambda model: type(model).__name__,
)
def test_lengths_are_carried_along_and_computed_anew_at_times(model):
    X, y = multiclass(1100)
    model = model.clone({"kernels": KERNELS[:3]})
    model.learn(X[:1020], y[:1020])
    np.testing.assert_allclose(model._learned.engine.f.lengths, lengths_of(model), rtol=1e-10)
    model._learned.engine.f.norm2 *= 1 + 1e-5
    model.learn(X[1020:1023], y[1020:1023])
    assert np.abs(model._learned.engine.f.lengths / lengths_of(model) - 1).min() > 1e-6
    model.learn(X[1023:1024], y[1023:1024])
    np.testing.assert_allclose(model._learned.engine.f.lengths, lengths_of(model), rtol=1e-12)
    model.learn(X[1024:], y[1024:])
    np.testing.assert_allclose(model._learned.engine.f.lengths, lengths_of(model), rtol=1e-10)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, (1, 2), 0], [2, (0, 1, 3)], [(0, 1), (2, 3)]])
def test_lengths_survive_new_classes(order):
    X, y = multiclass(80)
    for model in (onkel.OM2Classifier(kernels=KERNELS), onkel.ProximalMKLClassifier(kernels=KERNELS, normalize=True)):
        known = []
        for joins in order:
            known += np.atleast_1d(joins).tolist()
            model.partial_fit(X[np.isin(y, known)], y[np.isin(y, known)])
            if not model.normalize:
                np.testing.assert_allclose(model._learned.engine.f.lengths, lengths_of(model), atol=1e-10)
        before = model._learned.engine.f.lengths
        model._learned.engine.f._measure()
        np.testing.assert_allclose(model._learned.engine.f.lengths, before, atol=1e-10)


def test_one_pass_of_sums_serves_all_kernels_that_compare_features_alike(monkeypatch):
    passes = []
    totals = Basis.totals

    def counted(self, x):
        sums = totals(self, x)
        return lambda pair: passes.append(pair) or sums(pair)

    monkeypatch.setattr(Basis, "totals", counted)
    kernels = [*(Gaussian(g) for g in (0.1, 1.0, 10.0)), Linear(), Polynomial(2), Polynomial(3, 0.0), Cauchy(1.0)]
    X, y = binary(40)
    model = onkel.OM2Classifier(kernels=[*kernels, Cauchy(2.0), Gaussian(0.5) + 0.1 * Polynomial(2) + 1])
    model.fit(X, y)
    passes.clear()
    model.predict(X[:1])
    assert len(passes) == len(set(passes)) == 5  # products, squared differences, no comparison, one for each Cauchy


# -- sample weights


def test_a_weight_limits_the_step_of_om2():
    """By hand: where f = 0 the step is min(weight, 1)."""
    X, y = binary(2)
    for weight, step in ((0.25, 0.25), (1.0, 1.0), (3.0, 1.0)):
        model = onkel.OM2Classifier(kernels=KERNELS[:1])
        model.learn(X[:1], y[:1], classes=[-1.0, 1.0], sample_weight=[weight])
        np.testing.assert_allclose(model._learned.engine.f.coef, step * y[0])
    first = onkel.OM2Classifier(kernels=KERNELS[:1]).fit(X[:1], np.array([1.0]))
    assert first.weights_.tolist() == [0.5]  # one kernel: q = 2


def test_a_weight_multiplies_the_step_of_proximal_mkl():
    X, y = binary(100)
    weighted = onkel.ProximalMKLClassifier(kernels=KERNELS, eta=0.2, lam=0.0)
    heavy = onkel.ProximalMKLClassifier(kernels=KERNELS, eta=0.6, lam=0.0)
    np.testing.assert_allclose(weighted.learn(X, y, sample_weight=np.full(100, 3.0)), heavy.learn(X, y), atol=1e-12)


# -- words


def test_names():
    assert find("OM-2").name == "OM2"
    assert find("online proximal mkl").name == find("FOBOS group lasso").name == "ProximalMKL"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"eta": 0.0}, r"ProximalMKLClassifier\.eta must be > 0, got 0\.0"),
        ({"lam": -1.0}, r"ProximalMKLClassifier\.lam must be >= 0, got -1\.0"),
        ({"penalty": "lasso"}, r"penalty must be one of 'squared', 'group', got 'lasso'"),
        ({"loss": "squared"}, "loss must be a classification loss"),
        ({"kernels": []}, "kernels must not be empty"),
        ({"normalize": "yes"}, r"ProximalMKLClassifier\.normalize must be True or False, got 'yes'"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    X, y = binary(5)
    with pytest.raises(ValueError, match=message):
        onkel.ProximalMKLClassifier(**params).fit(X, y)
