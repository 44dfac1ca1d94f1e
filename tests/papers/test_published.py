"""Published numbers, from the papers' own data and row orders; needs the data folder."""

import math
from functools import partial

import numpy as np
import pytest

import onkel
from onkel import datasets
from onkel.kernels import Gaussian

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("data_folder")]
KERNEL = Gaussian(1 / 128)  # the papers' sigma = 8


def data(name, orders=None):
    """Rows, labels and row orders: the stored ones, or so many random ones."""
    stream = datasets.load(name)
    X, y = stream.X.astype(np.float64), stream.y.astype(np.float64)
    if name == "w7a":  # as the paper, its training part
        X, y = X[: stream.n_train], y[: stream.n_train]
    if orders is None:
        return X, y, stream.orders
    return X, y, [np.random.default_rng(seed).permutation(len(y)) for seed in range(orders)]


def mistake_rates(make, name="german_raw", orders=None):
    """Percentage of mistakes over the row orders of a data set: mean and deviation."""
    X, y, orders = data(name, orders)
    rates = [mistakes(make(seed), X[order], y[order]) for seed, order in enumerate(orders)]
    return np.mean(rates), np.std(rates, ddof=1)


def mistakes(model, X, y):
    classes = np.unique(y)
    scores = model.learn(X, y, classes=classes)
    best = scores.argmax(axis=1) if scores.ndim == 2 else (scores >= 0).astype(int)
    return 100 * np.mean(classes[best] != y)


def scaled(values):
    """Each column to 0 .. 1."""
    return (values - values.min(axis=0)) / (values.max(axis=0) - values.min(axis=0))


def squared_losses(make):
    """Mean squared error over the 20 stored orders of housing, features and target scaled to [0, 1]."""
    X, y, orders = data("housing")
    X, y = scaled(X), scaled(y)
    return np.mean([np.mean((make(seed).learn(X[o], y[o]) - y[o]) ** 2) for seed, o in enumerate(orders)])


@pytest.mark.parametrize(
    ("make", "published", "digits"),
    [
        (lambda seed: onkel.KernelPerceptronClassifier(kernel=KERNEL), 35.35, 2),
        (lambda seed: onkel.KernelPerceptronClassifier(kernel=KERNEL, strict_sign_update=True), 35.22, 2),
        (lambda seed: onkel.ForgetronClassifier(kernel=KERNEL, budget=100), 38.1, 1),
        (lambda seed: onkel.ForgetronClassifier(kernel=KERNEL, budget=100, legacy_root=True), 38.2, 1),
        (lambda seed: onkel.OGDClassifier(kernel=KERNEL, eta=0.02), 29.54, 2),
        (lambda seed: onkel.NOGDClassifier(kernel=KERNEL, eta=0.2, budget=100, rank=20), 30.40, 2),
        (lambda seed: onkel.ProjectronClassifier(kernel=KERNEL, budget=100), 35.66, 2),
        (lambda seed: onkel.ProjectronClassifier(kernel=KERNEL, budget=100, strict_sign_update=True), 35.62, 2),
        (lambda seed: onkel.ProjectronPlusPlusClassifier(kernel=KERNEL, budget=100), 35.24, 2),
        (lambda seed: onkel.ProjectronPlusPlusClassifier(kernel=KERNEL, strict_sign_update=True), 35.13, 2),
        (lambda seed: onkel.BPAClassifier(kernel=KERNEL, budget=100, C=1.0), 33.89, 2),
    ],
    ids=[
        *("Perceptron", "Perceptron-strict", "Forgetron", "Forgetron-legacy", "OGD", "NOGD"),
        *("Projectron", "Projectron-strict", "Projectron++", "Projectron++-strict", "BPA-S"),
    ],
)
def test_german(make, published, digits):
    mean, _ = mistake_rates(make)
    assert abs(mean - published) <= 10**-digits / 2 + 1e-9  # the printed digit (35.345 is printed as 35.35)


@pytest.mark.parametrize(
    ("make", "published", "deviation"),
    [
        (lambda seed: onkel.RBPClassifier(kernel=KERNEL, budget=100, random_state=seed), 37.5, 1.1),
        (
            lambda seed: onkel.BOGDClassifier(kernel=KERNEL, budget=100, eta=0.2, lam=1e-6, cap=10, random_state=seed),
            31.6,
            1.5,
        ),
    ],
    ids=["RBP", "BOGD"],
)
def test_german_with_random_removal(make, published, deviation):
    mean, _ = mistake_rates(make)
    assert abs(mean - published) <= deviation


@pytest.mark.parametrize(
    ("make", "name", "published", "away"),
    [
        (lambda seed: onkel.BPAClassifier(kernel=KERNEL, budget=200), "satimage", 27.95, 0.1),
        (lambda seed: onkel.BPAClassifier(kernel=KERNEL, budget=100), "spambase", 30.8, 0.5),
        (lambda seed: onkel.ProjectronClassifier(kernel=KERNEL, budget=100), "spambase", 30.8, 0.5),
    ],
    ids=["BPA-S-satimage", "BPA-S-spambase", "Projectron-spambase"],
)
def test_budgets_that_project(make, name, published, away):
    mean, _ = mistake_rates(make, name)
    assert abs(mean - published) <= away


@pytest.mark.parametrize(("name", "published"), [("Projectron", 5.38), ("ProjectronPlusPlus", 4.79)])
def test_duplicates_do_no_harm(name, published):
    """Published with deviations of 1.15 and 1.87, from runs that went wrong: many rows of w7a are the same."""
    make = partial(getattr(onkel, f"{name}Classifier"), kernel=KERNEL, budget=100)
    mean, deviation = mistake_rates(lambda seed: make(), "w7a", 20)
    assert mean < published and deviation < 0.15


@pytest.mark.parametrize(("name", "dtype"), [("Projectron", np.float64), ("ProjectronPlusPlus", np.float32)])
def test_projections_stay_right(name, dtype):
    """Over and over the same rows, nearly all of which depend on the terms; for longer: make bench, `health`."""
    X, y, _ = data("a9a", 0)
    X, y = X[:32_561].astype(dtype), y[:32_561]  # its training part
    make = partial(getattr(onkel, f"{name}Classifier"), kernel=Gaussian(0.01))
    few, model = make(budget=100), make(budget=1350)
    assert mistakes(model, X, y) <= mistakes(few, X, y) + 0.3
    assert np.isfinite(model.learn(X[:8000], y[:8000])).all()
    before, wrong = model.dual_coef_.copy(), np.flatnonzero(y * model.decision_function(X) <= 0)[:1]
    model.learn(X[wrong], y[wrong])
    d = y[wrong] * (model.dual_coef_ - before)[0]
    terms = model.support_vectors_
    K, k = model.kernel_(terms), model.kernel_(terms, X[wrong].toarray())[:, 0]
    assert np.abs(K @ d - k).max() < 1e-6 * np.abs(k).max()


@pytest.mark.parametrize(
    ("make", "published"),
    [
        (lambda seed: onkel.OGDRegressor(kernel=KERNEL, eta=0.3, epsilon=0.1), 0.04017),
        (lambda seed: onkel.KernelPerceptronRegressor(kernel=KERNEL, eta=0.1, epsilon=0.1), 0.04018),
        (lambda seed: onkel.NORMARegressor(kernel=KERNEL, eta=0.03, lam=0.03, nu=0.4, epsilon=0.1), 0.04329),
        (lambda seed: onkel.ForgetronRegressor(kernel=KERNEL, budget=20, eta=0.1, epsilon=0.1), 0.05848),
        (lambda seed: onkel.BOGDRegressor(kernel=KERNEL, budget=20, eta=0.3, lam=0.03, epsilon=0.1), 0.05270),
        (lambda seed: onkel.NOGDRegressor(kernel=KERNEL, budget=30, rank=6, eta=0.3, epsilon=0.1), 0.04063),
    ],
    ids=["OGD", "Perceptron", "NORMA", "Forgetron", "BOGD", "NOGD"],
)
def test_housing(make, published):
    assert abs(squared_losses(make) - published) <= 0.5e-5 + 1e-9


def test_satimage():
    make = lambda seed: onkel.NOGDClassifier(kernel=KERNEL, eta=0.5, budget=200, rank=40)  # noqa: E731
    assert 23.6 <= round(mistake_rates(make, "satimage")[0], 1) <= 23.7  # published 23.7, re-run 23.6


@pytest.mark.parametrize(
    ("name", "orders", "published", "deviation"),
    [
        ("german_raw", None, 29.9, 0.7),
        ("spambase", None, 26.9, 1.0),
        ("a9a", 5, 17.4, 0.1),
        ("w7a", 5, 2.75, 0.03),
        ("ijcnn1", 5, 9.06, 0.05),
    ],
)
def test_fogd(name, orders, published, deviation):
    """Within one of the published deviations, or better."""
    make = partial(onkel.FOGDClassifier, kernel=KERNEL, components=400, eta_unscaled=0.002)
    assert mistake_rates(lambda seed: make(random_state=seed), name, orders)[0] <= published + deviation


def test_learned_widths():
    make = partial(onkel.RRFClassifier, kernel=Gaussian(0.5), components=100, eta=1.0, eta_kernel=0.01)
    assert mistake_rates(lambda seed: make(random_state=seed), "ijcnn1", 4)[0] <= 3.68
    X, y, orders = data("casp", 4)
    X, y = scaled(X), scaled(y)
    make = partial(onkel.RRFRegressor, kernel=Gaussian(math.exp(2.8) / 2), components=100, eta=0.1, eta_kernel=0.01)
    errors = [make(random_state=seed).learn(X[o], y[o]) - y[o] for seed, o in enumerate(orders)]
    assert np.mean([math.sqrt(np.mean(e**2)) for e in errors]) <= 0.241


def test_fogd_with_a_narrower_kernel():
    """In the order of the file, where neighbouring rows are alike."""
    X, y, _ = data("ijcnn1", 0)
    make = partial(onkel.FOGDClassifier, kernel=Gaussian(2.0), components=400, eta=1.6)
    assert np.mean([mistakes(make(random_state=seed), X, y) for seed in range(5)]) <= 3.6


def test_the_average_of_sampled_steps():
    """Table 3.3, a9a: 84.88 ± 0.10 with 2,079 terms; the last model alone varies by points."""
    X, y, _ = data("a9a", 0)
    known, new = slice(0, 32_561), slice(32_561, None)  # the official parts
    accuracy: dict[str, list[float]] = {"average": [], "last": []}
    sizes = []
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(32_561)
        model = onkel.SPAClassifier(kernel=Gaussian(2.0**-5), eta=0.1, beta=5, random_state=seed)
        model.fit(X[known][order], y[known][order])
        sizes.append(model.n_support_)
        for output, found in accuracy.items():
            found.append(100 * np.mean((model.decision_function(X[new], output=output) >= 0) == (y[new] > 0)))
    assert np.mean(accuracy["average"]) >= 84.8 and np.mean(sizes) == pytest.approx(2079, rel=0.03)
    assert 2 * np.std(accuracy["average"]) < np.std(accuracy["last"])


@pytest.mark.parametrize(("name", "at_most"), [("ijcnn1", 3.2), ("magic04", 14.9)])
def test_nothing_to_choose(name, at_most):
    """As in docs/auto_kernel.md; there the best kernel in hindsight has 2.92 and 14.48."""
    X, y, (order,) = data(name, 1)
    rows = order[:50_000]
    assert mistakes(onkel.AutoKernelClassifier(), X[rows], y[rows]) <= at_most
