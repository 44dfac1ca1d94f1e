"""What must be equal to what, of learners on features."""

import numpy as np
import pytest
from feature_learners import SPECTRA, TASKS, D, T, estimator, learner, outputs_of, same
from streams import KERNELS, binary, learn

import onkel
from onkel import budgets, losses, updates
from onkel.hypotheses import Dual, Expansion, Features
from onkel.kernels import Gaussian
from onkel.maps import Fastfood, Fourier, Reparameterized

# Identities (section 9)


def test_fogd_is_gradient_descent_for_many_components(engine):
    X, y = binary(100)
    wanted = learn(onkel.OGDClassifier(eta=0.3, loss="logistic", kernel=Gaussian(1.0)), X, y)
    distances = []
    for components in (100, 8000):
        model = estimator("FOGD", "binary", components=components, eta=0.3, loss="logistic", kernel=Gaussian(1.0))
        distances.append(np.abs(learn(model, X, y) - wanted).max())
    assert distances[1] < 0.1 and distances[1] < distances[0] / 4


@pytest.mark.parametrize("task", TASKS)
def test_unscaled_steps(engine, task):
    X, y = TASKS[task]()
    one = estimator("FOGD", task, components=D, eta_unscaled=0.25 / 8)
    two = estimator("FOGD", task, components=D, eta=0.25 * D / 8)
    np.testing.assert_array_equal(learn(one, X, y), learn(two, X, y))


@pytest.mark.parametrize("kernel", SPECTRA, ids=str)
@pytest.mark.parametrize("task", TASKS)
def test_resting_widths_are_fogd(engine, task, kernel):
    X, y = TASKS[task]()
    tube = {"epsilon": 0} if task == "regression" else {}  # the squared loss of RRF has none
    model = estimator("RRF", task, components=D, eta=0.3, eta_kernel=0, kernel=kernel)
    same(learn(model, X, y), learn(estimator("FOGD", task, components=D, eta=0.3, kernel=kernel, **tube), X, y), 1e-12)
    same(model.widths_, np.full(4, kernel.frequency), 1e-14)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_dual_sgd_is_pegasos_at_both_ends(engine, task):
    X, y = TASKS[task]()
    params = {"components": D, "lam": 0.05, "kernel": Gaussian(1.0)}
    wanted = learn(onkel.PegasosClassifier(lam=0.05, kernel=Gaussian(1.0)), X, y)
    model = estimator("DualSGD", task, budget=T, **params)
    same(learn(model, X, y), wanted)
    assert not model.coef_.any()
    model = estimator("DualSGD", task, budget=0, **params)
    outputs = outputs_of(task)
    linear = learner(Features(Fourier(Gaussian(1.0), D)), losses.Hinge(), updates.Pegasos(0.05), outputs)
    same(learn(model, X, y), linear.learn(X, y.astype(float))[0])
    assert model.n_support_ == 0 and model.support_vectors_.shape == (0, 4)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_dual_sgd_by_removal_is_bsgd(engine, task):
    X, y = TASKS[task]()
    model = estimator("DualSGD", task, budget=15, lam=0.05, maintenance="remove", kernel=Gaussian(1.0))
    same(learn(model, X, y), learn(onkel.BSGDClassifier(budget=15, lam=0.05, kernel=Gaussian(1.0)), X, y))


def test_merging_costs_less_with_more_components(engine):
    X, y = binary()
    wanted = learn(onkel.PegasosClassifier(lam=0.5, kernel=Gaussian(1.0)), X, y)
    distances = []
    for components in (50, 5000):
        model = estimator("DualSGD", "binary", budget=15, merge=4, components=components, lam=0.5, kernel=Gaussian(1.0))
        distances.append(np.abs(learn(model, X, y) - wanted).mean())
    assert distances[1] < distances[0] / 4


@pytest.mark.parametrize("task", TASKS)
def test_a_budget_of_landmarks_never_reached_leaves_gradient_descent(engine, task):
    X, y = TASKS[task]()
    kernel = KERNELS["uneven"]
    ogd = onkel.OGDRegressor if task == "regression" else onkel.OGDClassifier
    same(
        learn(estimator("NOGD", task, budget=T, eta=0.2, kernel=kernel), X, y), learn(ogd(eta=0.2, kernel=kernel), X, y)
    )


def test_landmarks_that_span_the_stream_lose_nothing(engine):
    X, y = binary(60)
    X, y = np.tile(X[:10], (6, 1)), y
    kernel = KERNELS["uneven"]
    wanted = learn(onkel.OGDClassifier(eta=0.2, loss="logistic", kernel=kernel, average=True), X, y)
    for budget in (10, 15):  # the larger one is full of duplicates
        model = estimator("NOGD", "binary", budget=budget, rank=budget, eta=0.2, loss="logistic", kernel=kernel)
        same(learn(model.set_params(average=True), X, y), wanted, 1e-8)


@pytest.mark.parametrize("loss", [losses.Hinge(), losses.Logistic(), losses.SquaredHinge()], ids=str)
@pytest.mark.parametrize(
    ("hypothesis", "two", "one"),
    [
        (lambda: Features(Fourier(Gaussian(1.0), D)), updates.Gradient(0.1, 0.2), updates.Gradient(0.2, 0.1)),
        (lambda: Features(Fastfood(Gaussian(1.0), D)), updates.Gradient(0.1), updates.Gradient(0.2)),
        (lambda: Features(Fourier(Gaussian(1.0), D)), updates.AdaGrad(0.1), updates.AdaGrad(0.2)),
        (lambda: Features(Reparameterized(Gaussian(1.0), D, 0.02)), updates.Gradient(0.05), updates.Gradient(0.1)),
        (lambda: Expansion(Gaussian(1.0), budgets.Landmarks(15, 6)), updates.Gradient(0.1), updates.Gradient(0.2)),
        (lambda: Dual(Gaussian(1.0), Fourier(Gaussian(1.0), D), 15, 4), updates.Pegasos(1.0), updates.Pegasos(0.5)),
    ],
    ids=["fourier", "fastfood", "adagrad", "rrf", "nogd", "dual"],
)
def test_two_classes_with_two_scores_are_one_score_with_twice_the_step(engine, hypothesis, two, one, loss):
    X, y = binary()
    s = learner(hypothesis(), loss, two, outputs=2).learn(X, (y > 0).astype(float))[0]
    same(s[:, 1] - s[:, 0], learner(hypothesis(), loss, one).learn(X, y)[0][:, 0], 1e-9)
