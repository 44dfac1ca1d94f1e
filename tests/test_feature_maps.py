"""Learners on explicit features are their papers' boxes, on both engines; the laws of maps, transformers and LLSVM."""

import copy
import itertools
import math
import pickle
import warnings
from functools import cache, partial
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from boxes.feature_maps import (
    adagrad,
    dual_sgd,
    fastfood_directions,
    fogd,
    llsvm_features,
    nogd,
    rrf,
    sorf_directions,
    tangent,
)
from boxes.feature_maps import fourier as features_of
from scipy import stats
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC, LinearSVR
from streams import CLASSES, ESTIMATORS, FORMS, KERNELS, binary, inputs, learn, multiclass, regression, scores_of

import onkel
from onkel import budgets, losses, updates
from onkel.hypothesis import Dual, Expansion, Features
from onkel.kernels import Cauchy, Gaussian, Laplacian, Linear, Polynomial
from onkel.learner import Learner
from onkel.maps import Fastfood, Fourier, Nystrom, Orthogonal, Reparameterized, keys_of
from onkel.random import uniforms

native = pytest.mark.skipif(not onkel.native.available(), reason="the native engine is not built")

T, SEED, D = 320, 7, 12
BOTH = ["python", "native"]
TASKS = {"binary": binary, "multiclass": multiclass, "regression": regression}
LOSSES = {
    "binary": ["hinge", "squared_hinge", "logistic", "exponential"],
    "multiclass": ["hinge", "squared_hinge", "logistic", "exponential"],
    "regression": ["squared", "absolute", "epsilon_insensitive"],
}
SPECTRA = [Gaussian(1.0), Laplacian(0.5), Cauchy(0.7)]
SCHEDULES = {"constant": "constant", "1/t": "inverse", "1/sqrt(t)": "inverse_sqrt"}


def same(a, b, tolerance=1e-10):
    b = np.reshape(b, np.shape(a))
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1.0, np.abs(b).max(initial=0)))


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)


def columns(number):
    return np.arange(number, dtype=np.uint64)


def drawn(map, number, seed=SEED):
    return map.draw(columns(number), seed)


def directions(map, number, seed=SEED):
    """One direction a row: the projections of the unit vectors."""
    return map.project(np.eye(number), drawn(map, number, seed), map.start(number)).T


def outputs_of(task):
    return CLASSES if task == "multiclass" else 1


def estimator(algorithm, task, **params):
    cls = getattr(onkel, f"{algorithm}{'Regressor' if task == 'regression' else 'Classifier'}")
    return cls(**{"random_state": SEED} | params)


# An estimator is its box

EVERY_LOSS = [(task, loss) for task in TASKS for loss in LOSSES[task]]
ONE_EACH = [("binary", "hinge"), ("multiclass", "logistic"), ("regression", "squared")]


@cache
def stream(task, form):
    """One more row than is learned from."""
    return TASKS[task](T + 1, form=form)


def check(model, stream, box, tolerance=1e-10):
    """The scores of every round and those of the model in the end; where it averages, by both functions.

    A box scores the row T with the model after T rounds; its mean of T + 1 models has one more than `predict`.
    """
    (X, y), (S, A, *_), rounds = stream, box, len(stream[1]) - 1
    same(learn(model, X[:rounds], y[:rounds]), (A if model.average else S)[:rounds], tolerance)
    after = X[[rounds]]
    same(scores_of(model, after, output="last"), S[rounds], tolerance)
    if model.average:
        same(scores_of(model, after), ((rounds + 1) * A[rounds] - S[rounds]) / rounds, tolerance)
    return model


WAYS = [("dense", False), ("sparse", True)]  # form and average


@cache
def fogd_box(task, form, kernel, loss, schedule, eta, epsilon=0.1):
    X, y = stream(task, form)
    Z = features_of(dense(X), drawn(Fourier(kernel, D), X.shape[1])["directions"])
    options = {"outputs": outputs_of(task), "eta": eta, "loss": loss, "epsilon": epsilon}
    return adagrad(Z, y, **options) if schedule == "adagrad" else fogd(Z, y, schedule=SCHEDULES[schedule], **options)


@pytest.mark.parametrize(
    ("task", "loss", "schedule"),
    [(*way, "constant") for way in EVERY_LOSS]
    + [(*way, schedule) for way in ONE_EACH for schedule in ("1/t", "1/sqrt(t)", "adagrad")],
)
def test_fogd_is_its_box(engine, task, loss, schedule):
    kernel = SPECTRA[LOSSES[task].index(loss) % 3]
    eta = {"constant": 0.3, "1/t": 0.8, "1/sqrt(t)": 0.8, "adagrad": 0.1}[schedule]
    params = {"components": D, "kernel": kernel, "loss": loss, "schedule": schedule, "eta": eta}
    for form, average in WAYS:
        box = fogd_box(task, form, kernel, loss, schedule, eta)
        model = check(estimator("FOGD", task, **params, average=average), stream(task, form), box)
        assert model.engine_ == engine
        assert model.coef_.shape == (outputs_of(task), 2 * D) and model.n_support_ == 0


@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
def test_the_tube_of_fogd(engine, loss):
    model = estimator("FOGD", "regression", components=D, kernel=Gaussian(1.0), loss=loss, eta=0.3, epsilon=0.5)
    wide = fogd_box("regression", "dense", Gaussian(1.0), loss, "constant", 0.3, 0.5)
    check(model, stream("regression", "dense"), wide)
    narrow = fogd_box("regression", "dense", Gaussian(1.0), loss, "constant", 0.3)
    assert np.abs(wide[0] - narrow[0]).max() > 0.05


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("map", ["orthogonal", "sorf", "fastfood"])
def test_fogd_on_other_maps_is_its_box(engine, map, task):
    kernel = Gaussian(0.8)
    made = {
        "orthogonal": Orthogonal(kernel, D),
        "sorf": Orthogonal(kernel, D, structured=True),
        "fastfood": Fastfood(kernel, D),
    }[map]
    for form, average in WAYS:
        X, y = stream(task, form)
        Z = features_of(dense(X), directions(made, X.shape[1]))
        box = fogd(Z, y, outputs=outputs_of(task), eta=0.3, loss=LOSSES[task][0])
        check(estimator("FOGD", task, components=D, kernel=kernel, map=map, eta=0.3, average=average), (X, y), box)


def test_the_settings_of_fogd_differ():
    """The boxes above are not all one."""
    schedules = [*SCHEDULES, "adagrad"]
    ways = [(loss, schedule) for loss in LOSSES["binary"] for schedule in schedules]
    found = [fogd_box("binary", "dense", Gaussian(1.0), *way, 0.3)[0] for way in ways]
    for one, two in itertools.combinations(found, 2):
        assert np.abs(one - two).max() > 1e-3


@cache
def nogd_box(task, form, rank, switch, eta, loss):
    X, y = stream(task, form)
    options = {"budget": 15, "rank": rank, "eta": eta, "loss": loss, "switch": switch}
    return nogd(KERNELS["uneven"](dense(X)), y, outputs=outputs_of(task), **options)


@pytest.mark.parametrize(
    ("task", "loss", "rank", "switch", "eta"),
    [(task, loss, 6, "lazy", 0.1) for task, loss in EVERY_LOSS]
    + [(*way, 6, "eager", 0.1) for way in ONE_EACH]
    + [(*way, 15, switch, 0.03) for way in ONE_EACH for switch in ("lazy", "eager")]
    + [(*way, None, "lazy", 0.1) for way in ONE_EACH],
)
def test_nogd_is_its_box(engine, task, loss, rank, switch, eta):
    params = {"budget": 15, "rank": rank, "eta": eta, "loss": loss, "switch": switch, "kernel": KERNELS["uneven"]}
    for form, average in WAYS:
        box = nogd_box(task, form, 3 if rank is None else rank, switch, eta, loss)
        assert check(estimator("NOGD", task, **params, average=average), stream(task, form), box).n_support_ == 15


@pytest.mark.parametrize(
    ("task", "loss", "lam", "clip", "eta_kernel"),
    [(*way, 0.0, 20.0, 0.01) for way in EVERY_LOSS]
    + [(*way, 0.2, 20.0, 0.01) for way in ONE_EACH]
    + [(*way, 0.0, 0.38, 0.05) for way in ONE_EACH],
)
def test_rrf_is_its_box(engine, task, loss, lam, clip, eta_kernel):
    """Learned widths are chaotic: with larger steps rounding grows from round to round, whoever computes."""
    kernel = Gaussian(1.0) if clip < 1 else SPECTRA[LOSSES[task].index(loss) % 3]
    params = {"eta": 0.1, "eta_kernel": eta_kernel, "lam": lam, "loss": loss, "clip": clip}
    params |= {"epsilon": 0.1} if loss == "epsilon_insensitive" else {}  # the squared loss has no tube here
    for form, average in WAYS:
        X, y = stream(task, form)
        E = drawn(Reparameterized(kernel, D), X.shape[1])["directions"].T
        S, A, G = rrf(dense(X), E, y, outputs=outputs_of(task), log_widths=math.log(kernel.frequency), **params)
        model = check(estimator("RRF", task, components=D, kernel=kernel, average=average, **params), (X, y), (S, A))
        same(np.log(model.widths_), G[T])
        assert np.ptp(G[T]) > 1e-3
        assert (np.abs(G).max() == clip) == (clip < 1)


@cache
def dual_box(task, form, loss, budget, merge, lam, maintenance="merge", insert_always=False):
    X, y = stream(task, form)
    Z = features_of(dense(X), drawn(Fourier(Gaussian(1.0), D), X.shape[1])["directions"])
    options = {"budget": budget, "merge": merge, "lam": lam, "maintenance": maintenance, "insert_always": insert_always}
    options |= {"epsilon": 0.1} if task == "regression" else {}
    return dual_sgd(Gaussian(1.0)(dense(X)), Z, y, outputs=outputs_of(task), loss=loss, **options)


@pytest.mark.parametrize(
    ("task", "loss", "params"),
    [(task, loss, {}) for task, loss in EVERY_LOSS]
    + [
        (*way, params)
        for way in ONE_EACH
        for params in [
            {"merge": 1},
            {"merge": 40},
            {"budget": 0},
            {"budget": 1},
            {"maintenance": "remove"},
            {"insert_always": True},
            {"insert_always": True, "budget": 0},
        ]
    ],
    ids=str,
)
def test_dual_sgd_is_its_box(engine, task, loss, params):
    params = {"budget": 15, "merge": 4, "lam": 0.05 if loss == "hinge" else 1.0} | params
    for form, average in WAYS:
        model = estimator("DualSGD", task, components=D, kernel=Gaussian(1.0), loss=loss, average=average, **params)
        box = dual_box(task, form, loss, **params)
        assert check(model, stream(task, form), box).n_support_ == box[2][T - 1] <= params["budget"]


def test_dual_sgd_averages_every_function_it_was(engine):
    """average="all": a term that went over to the features stays a term in the functions it was part of."""
    X, y = binary(80)
    K = Gaussian(1.0)(X)
    Z = features_of(X, drawn(Fourier(Gaussian(1.0), D), 4)["directions"])
    options = {"budget": 5, "merge": 2, "lam": 0.05, "loss": "hinge"}
    model = estimator("DualSGD", "binary", components=D, kernel=Gaussian(1.0), average="all", **options)
    found = learn(model, X, y)
    for t in (3, 20, 50, 79):
        rows = [np.append(np.arange(i), t) for i in range(t + 1)]
        single = [dual_sgd(K[np.ix_(i, i)], Z[i], y[i], **options)[0][-1] for i in rows]
        same(found[t], np.mean(single))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("algorithm", ["FOGD", "NOGD", "RRF", "DualSGD"])
def test_boxes_in_float32(engine, algorithm, task):
    """Features and weights of about 1 are rounded to 6e-8, some hundred times; no score is that near to a kink."""
    X, y = stream(task, "float32")
    exact = X.astype(np.float64)
    kernel, options = Gaussian(1.0), {"outputs": outputs_of(task), "loss": LOSSES[task][0], "eta": 0.3}
    params = {"eta": 0.3, "components": D}
    if algorithm == "FOGD":
        box = fogd(features_of(exact, drawn(Fourier(kernel, D), 4)["directions"]), y, **options)
    elif algorithm == "NOGD":
        params = {"eta": 0.3, "budget": 15, "rank": 6}
        box = nogd(kernel(exact), y, **options, budget=15, rank=6)
    elif algorithm == "RRF":
        options["eta"] = params["eta"] = 0.1
        E = drawn(Reparameterized(kernel, D), 4)["directions"].T
        box = rrf(exact, E, y, **options, log_widths=math.log(2) / 2, eta_kernel=0.01)
    else:
        params = {"components": D, "budget": 15, "merge": 4, "lam": 1.0, "loss": options["loss"]}
        box = dual_box(task, "float32", options["loss"], 15, 4, 1.0)
    check(estimator(algorithm, task, kernel=kernel, **params), (X, y), box, 1e-4)


# DistanceOverGradient


def distance_over_gradient(G, y, loss, *, outputs=1, weight=None, epsilon=0.1):
    """Its docstring on a Gram matrix G; scores and |f| before every round, and the functions as coefficients."""
    a, history = np.zeros((len(y), outputs)), []
    farthest = squares = rounds = 0.0
    S, norms = np.zeros((len(y), outputs)), []
    for t, w in enumerate(np.ones(len(y)) if weight is None else weight):
        S[t] = G[t] @ a
        norms.append(math.sqrt(max(np.sum(a * (G @ a)), 0)))
        history.append(a.copy())
        slope = w * tangent(loss, S[t], y[t], epsilon=epsilon)[1]
        if slope.any():
            farthest = max(farthest, norms[t])
            squares += slope @ slope * G[t, t]
            rounds += (w * G[t, t]) ** 2
            a[t] = -max(farthest / math.sqrt(squares), 1 / math.sqrt(rounds)) * slope
    return S, np.array(norms), history


@pytest.mark.parametrize(("task", "loss"), EVERY_LOSS)
def test_distance_over_gradient_is_its_formula(engine, task, loss):
    X, y = TASKS[task](T)
    weight = np.random.default_rng(3).uniform(0.2, 2.0, T)
    Z = features_of(X, drawn(Fourier(Gaussian(1.0), D), 4)["directions"])
    model = estimator("FOGD", task, components=D, kernel=Gaussian(1.0), loss=loss)
    S, _, history = distance_over_gradient(Z @ Z.T, y, loss, outputs=outputs_of(task), weight=weight)
    same(learn(model, X[:-1], y[:-1], sample_weight=weight[:-1]), S[:-1])
    same(scores_of(model, X[-1:]), S[-1])
    same(model.coef_, (Z.T @ history[-1]).T)
    assert model.state()[0]["update.norm2"] == pytest.approx(np.square(model.coef_).sum(), abs=1e-10)


@pytest.mark.parametrize("task", TASKS)
def test_distance_over_gradient_on_terms(engine, task):
    X, y = TASKS[task](T)
    kernel, loss = KERNELS["uneven"], LOSSES[task][0]
    part = {"hinge": losses.Hinge(), "squared": losses.Squared(0.1)}[loss]
    f = Expansion(kernel, budgets.Unlimited())
    learner = Learner(f, part, updates.DistanceOverGradient(), outputs=outputs_of(task), columns=4)
    learner = onkel.native.engine(learner)
    assert learner.engine == engine
    S, norms, _ = distance_over_gradient(kernel(X), y, loss, outputs=outputs_of(task))
    same(learner.learn(X[:-1], y[:-1].astype(float))[0], S[:-1])
    same(learner.scores(X[-1:]), S[-1])
    assert learner.state()["update.norm2"] == pytest.approx(norms[-1] ** 2, abs=1e-9)


def test_the_first_step_repairs_the_first_example(engine):
    X, y = regression(5)
    model = estimator("FOGD", "regression", components=D, epsilon=0).fit(X[:1], y[:1])
    assert model.predict(X[:1]) == pytest.approx(y[:1], abs=1e-14)
    f = Expansion(KERNELS["uneven"], budgets.Unlimited())
    learner = onkel.native.engine(Learner(f, losses.Squared(), updates.DistanceOverGradient(), columns=4))
    learner.learn(X[:1], y[:1])
    assert learner.scores(X[:1])[0] == pytest.approx(y[:1], abs=1e-14)


@pytest.mark.parametrize("algorithm", ["FOGD", "Expansion"])
def test_no_step_to_choose_means_no_units(engine, algorithm):
    """Targets times 1024 are scores times 1024, to the last bit, and weights times 8 the same scores."""
    X, y = regression(T)

    def run(y, weight):
        if algorithm == "FOGD":
            return estimator("FOGD", "regression", components=D, epsilon=0).learn(X, y, sample_weight=weight)
        f = Expansion(KERNELS["uneven"], budgets.Unlimited())
        learner = Learner(f, losses.Squared(), updates.DistanceOverGradient(), columns=4)
        return onkel.native.engine(learner).learn(X, y, weight)[0]

    weight = np.random.default_rng(3).uniform(0.2, 2.0, T)
    plain = run(y, weight)
    np.testing.assert_array_equal(run(1024 * y, weight), 1024 * plain)
    same(run(y, 8 * weight), plain, 1e-13)
    assert np.abs(run(y, weight**2) - plain).max() > 0.01


def follow(model, X, y):
    """The weights before every round, (rounds, outputs, features)."""
    weights = []
    for i in range(len(y)):
        weights.append(model.coef_ if i else np.zeros((1, 2 * D)))
        learn(model, X[i : i + 1], y[i : i + 1])
    return np.array(weights)


def rivals(Z, y):
    """Weights that fit the labels more or less closely."""
    return [np.zeros(Z.shape[1])] + [
        size * np.linalg.solve(Z.T @ Z + ridge * np.eye(Z.shape[1]), Z.T @ y)
        for ridge in (0.1, 1, 10, 100)
        for size in (0.3, 1, 3)
    ]


def regret(weights, u, Z, y):
    """Hinge losses of the learner less those of u."""
    own = np.einsum("td,td->t", weights[:, 0], Z)
    return np.maximum(0, 1 - y * own).sum() - np.maximum(0, 1 - y * (Z @ u)).sum()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_regret_of_distance_over_gradient(engine, seed):
    """sqrt(n) (D^2 / 2 + max(1, max |w|)), D the largest distance from u; steps are max(1, max |w|) / sqrt(n)."""
    X, y = binary(T, seed)
    Z = features_of(X, drawn(Fourier(Gaussian(1.0), D), 4)["directions"])
    weights = follow(estimator("FOGD", "binary", components=D, kernel=Gaussian(1.0)), X, y)
    n = np.sum(y * np.einsum("td,td->t", weights[:, 0], Z) < 1)
    farthest = np.linalg.norm(weights, axis=(1, 2)).max()
    for u in rivals(Z, y):
        distance = np.linalg.norm(weights[:, 0] - u, axis=1).max()
        assert regret(weights, u, Z, y) <= math.sqrt(n) * (distance**2 / 2 + max(1, farthest))


# AdaGrad


def test_the_default_step_of_adagrad(engine):
    X, y = binary(T)
    given = estimator("FOGD", "binary", components=D, schedule="adagrad", eta=8 / math.sqrt(2 * D))
    np.testing.assert_array_equal(
        learn(estimator("FOGD", "binary", components=D, schedule="adagrad"), X, y), learn(given, X, y)
    )


@pytest.mark.parametrize("eta", [0.03, 0.1, 0.3])
def test_the_regret_of_adagrad(engine, eta):
    """(max_t |w_t - u|_inf^2 / (2 eta) + eta) sum_j |g_1..T,j| (Duchi et al. 2011, theorem 5)."""
    X, y = binary(T)
    Z = features_of(X, drawn(Fourier(Gaussian(1.0), D), 4)["directions"])
    model = estimator("FOGD", "binary", components=D, kernel=Gaussian(1.0), schedule="adagrad", eta=eta)
    weights = follow(model, X, y)
    slopes = -y * (y * np.einsum("td,td->t", weights[:, 0], Z) < 1)
    size = np.linalg.norm(slopes[:, None] * Z, axis=0).sum()
    for u in rivals(Z, y):
        distance = np.abs(weights[:, 0] - u).max()
        assert regret(weights, u, Z, y) <= (distance**2 / (2 * eta) + eta) * size


def test_adagrad_has_no_units(engine):
    """Weights times 8 are the same scores; the first step is eta for every weight."""
    X, y = multiclass(T)
    weight = np.random.default_rng(3).uniform(0.2, 2.0, T)
    one, two = (estimator("FOGD", "multiclass", components=D, schedule="adagrad", eta=0.1) for _ in range(2))
    np.testing.assert_array_equal(learn(one, X, y, sample_weight=8 * weight), learn(two, X, y, sample_weight=weight))
    first = estimator("FOGD", "binary", components=D, schedule="adagrad", eta=0.1)
    learn(first, *binary(1))
    np.testing.assert_allclose(np.abs(first.coef_), 0.1, rtol=1e-14)


# Maps: what is drawn


def splitmix(seed, purpose, key, place):
    """The uniform number of (seed, purpose, key, place), in whole numbers (Steele, Lea, Flood 2014; FNV-1a)."""
    whole, golden = 2**64, 0x9E3779B97F4A7C15

    def mix(z):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % whole
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % whole
        return z ^ (z >> 31)

    name = 0xCBF29CE484222325
    for byte in purpose.encode():
        name = (name ^ byte) * 0x100000001B3 % whole
    stream = mix(mix(seed % whole ^ name) ^ mix((key + golden) % whole))
    return ((mix((stream + (place + 1) * golden) % whole) >> 12) + 0.5) * 2.0**-52


@pytest.mark.parametrize("seed", [0, 7, -1, 2**63, 2**64 - 1])
def test_draws_are_a_function_of_whole_numbers(seed):
    keys = [0, 1, 5, 2**64 - 1, 2**63 + 11]
    found = uniforms(seed, "features", np.array(keys, dtype=np.uint64), 3)
    assert found.tolist() == [[splitmix(seed, "features", key, place) for place in range(3)] for key in keys]
    assert found.min() > 0 and found.max() < 1
    U = Fourier(Gaussian(0.5), 3).draw(np.array(keys, dtype=np.uint64), seed)["directions"]
    same(U.T, [[NormalDist().inv_cdf(u) for u in row] for row in found], 1e-12)
    U = Fourier(Laplacian(2.0), 3).draw(np.array(keys, dtype=np.uint64), seed)["directions"]
    same(U.T, 2 * stats.cauchy.ppf(found), 1e-9)
    U = Fourier(Cauchy(4.0), 3).draw(np.array(keys, dtype=np.uint64), seed)["directions"]
    same(U.T, 2 * stats.laplace.ppf(found), 1e-12)


def test_draws_never_change():
    """Models in files rely on it."""
    keys = keys_of([0, 3, "a"])
    assert keys.tolist() == [0, 3, 12638187200555641996]  # FNV-1a of "a"
    found = uniforms(7, "features", keys, 2)
    golden = [0.9480571444926357, 0.05268763856030867, 0.24362806829325334, 0.34568981885127104]
    assert [*found[0], found[1, 0], found[2, 0]] == golden


def test_keys_are_made_from_names():
    assert keys_of([0, 1, np.int64(2), -1]).tolist() == [0, 1, 2, 2**64 - 1]
    names = ["a", "b", "3", 3, 3.0, ("a", 1), None, ""]
    assert len(set(keys_of(names).tolist())) == len(names)


@pytest.mark.parametrize("map", [Fourier(Gaussian(1.0), 9), Reparameterized(Laplacian(1.0), 9)], ids=str)
def test_draws_belong_to_the_key(map):
    keys = keys_of(["a", "b", 3, "d", 17])
    U = map.draw(keys, SEED)["directions"]
    order = [3, 0, 4, 2, 1]
    np.testing.assert_array_equal(map.draw(keys[order], SEED)["directions"], U[:, order])
    np.testing.assert_array_equal(map.draw(keys[:2], SEED)["directions"], U[:, :2])
    np.testing.assert_array_equal(map.redraw(2, keys, SEED)["directions"], U)
    np.testing.assert_array_equal(map.replace(components=5).draw(keys, SEED)["directions"], U[:5])
    assert map.draw(keys[:0], SEED)["directions"].shape == (9, 0)


def test_draws_of_different_seeds_keys_and_purposes_are_uncorrelated():
    keys = np.array([0, 1, 2, 2**32, 2**63, *keys_of(["a", "b", "x1", "x2"])], dtype=np.uint64)
    purposes = [(0, "features"), (1, "features"), (2**32, "features"), (0, "signs"), (-1, "features")]
    draws = np.concatenate([uniforms(*purpose, keys, 5000) for purpose in purposes])
    correlation = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlation).max() < 5 / math.sqrt(5000)  # of about 1000 pairs
    later = np.corrcoef(draws[:, 1:].ravel(), draws[:, :-1].ravel())[0, 1]
    assert abs(later) < 4.5 / math.sqrt(draws.size)
    for row in draws:
        assert stats.kstest(row, "uniform").pvalue > 1e-5
    across = uniforms(0, "features", np.arange(5000), 1)[:, 0]  # neighbouring columns
    assert stats.kstest(across, "uniform").pvalue > 1e-5
    assert abs(np.corrcoef(across[1:], across[:-1])[0, 1]) < 4.5 / math.sqrt(5000)


@pytest.mark.parametrize("structured", [True, False], ids=["sorf", "fastfood"])
@pytest.mark.parametrize(("d", "components"), [(1, 3), (4, 20), (16, 16), (17, 40), (32, 64)])
def test_structured_directions_are_the_boxes_matrices(structured, d, components):
    kernel = Gaussian(0.7)
    if structured:
        map = Orthogonal(kernel, components, structured=True)
        signs = np.sign(drawn(map, d)["diagonals"])[::-1].transpose(1, 0, 2)  # the last factor comes first
        wanted = sorf_directions(signs, 1 / kernel.frequency, d, components)
    else:
        map = Fastfood(kernel, components)
        found = drawn(map, d)
        (B, G), perm, size = found["diagonals"], found["orders"][1], found["scale"].shape[1]
        chis = found["scale"] * math.sqrt(size) / kernel.frequency * np.linalg.norm(G, axis=1, keepdims=True)
        wanted = fastfood_directions(B, perm, G, chis, 1 / kernel.frequency, d, components)
        assert set(np.unique(B)) == {-1.0, 1.0} and (np.sort(perm, axis=1) == np.arange(size)).all()
    assert wanted.shape == (components, d)
    same(directions(map, d), wanted, 1e-12)
    X = np.random.default_rng(0).normal(size=(7, d))
    same(map.features(X, drawn(map, d), {}), features_of(X, wanted), 1e-12)
    same(map.features(sp.csr_array(X), drawn(map, d), {}), features_of(X, wanted), 1e-12)


def test_fastfood_draws_have_their_distributions():
    found = [drawn(Fastfood(Gaussian(0.5), 32), 32, seed) for seed in range(200)]
    G = np.concatenate([d["diagonals"][1][0] for d in found])
    assert stats.kstest(G, "norm").pvalue > 1e-5
    chis = [d["scale"][0] * math.sqrt(32) * np.linalg.norm(d["diagonals"][1][0]) for d in found]
    assert stats.kstest(np.concatenate(chis), stats.chi(32).cdf).pvalue > 1e-5
    places = np.array([d["orders"][1][0] for d in found])  # where each is sent is uniform
    assert stats.chisquare(np.bincount(places[:, 0], minlength=32)).pvalue > 1e-5
    signs = np.array([d["diagonals"][0][0] for d in found])
    assert np.abs(signs.mean(axis=0)).max() < 4.5 / math.sqrt(200)


def test_orthogonal_directions_are_orthogonal_with_chi_lengths():
    d, lengths, first = 5, [], []
    for seed in range(300):
        U = directions(Orthogonal(Gaussian(0.5), 12), d, seed)
        for block in (U[:5], U[5:10], U[10:]):
            gram = block @ block.T
            same(gram - np.diag(np.diag(gram)), np.zeros_like(gram), 1e-12)
        lengths.append(np.linalg.norm(U, axis=1))
        first.append(U[[0, 5, 11], [0, 1, 2]])
    assert stats.kstest(np.ravel(lengths), stats.chi(d).cdf).pvalue > 1e-5
    assert stats.kstest(np.ravel(first), "norm").pvalue > 1e-5  # a row alone is a Gaussian vector
    assert abs(np.corrcoef(np.array(lengths).T) - np.eye(12)).max() < 4.5 / math.sqrt(300)


def test_directions_drawn_together_know_the_number_of_columns_only():
    for map in (
        Orthogonal(Gaussian(1.0), 9),
        Orthogonal(Gaussian(1.0), 9, structured=True),
        Fastfood(Gaussian(1.0), 9),
    ):
        one, two = map.draw(keys_of("abcd"), SEED), map.draw(columns(4), SEED)
        assert all(np.array_equal(one[name], two[name]) for name in one)
        assert not np.array_equal(directions(map, 4, 1), directions(map, 4, 2))
        with pytest.raises(ValueError, match=f"{type(map).__name__} was drawn for 4 features and cannot take another"):
            map.redraw(4, columns(5), SEED)


# Maps: how well they approximate


EVERY_MAP = [
    *(Fourier(kernel, 40) for kernel in SPECTRA),
    Reparameterized(Gaussian(1.0), 40),
    Orthogonal(Gaussian(1.0), 40),
    Orthogonal(Gaussian(1.0), 40, structured=True),
    Fastfood(Gaussian(1.0), 40),
]


@pytest.mark.parametrize("map", EVERY_MAP, ids=str)
def test_features_have_length_one(map):
    X = inputs(50)
    Z = map.features(X, drawn(map, 4), map.start(4))
    assert Z.shape == (50, 80) == (50, map.size)
    same(np.linalg.norm(Z, axis=1), np.ones(50), 1e-14)
    same(Z @ Z.T, np.cos((X[:, None] - X[None]) @ directions(map, 4).T).mean(axis=2), 1e-12)


@pytest.mark.parametrize("distance", [0.3, 0.9, 2.0])
@pytest.mark.parametrize("kernel", SPECTRA, ids=str)
def test_the_error_of_fourier_features(kernel, distance):
    """Unbiased, variance (1 + k(2 delta) - 2 k(delta)^2) / 2D (Gaussian: (1 - k^2)^2 / 2D), Hoeffding's tail."""
    D, delta = 30, distance * np.array([0.6, -0.48, 0.64])
    x = np.array([[0.3, -0.7, 0.2]])
    k, twice = kernel(x, x + delta)[0, 0], kernel(x, x + 2 * delta)[0, 0]
    map, errors = Fourier(kernel, D), []
    for seed in range(1500):
        z = map.features(np.vstack([x, x + delta]), drawn(map, 3, seed), {})
        errors.append(z[0] @ z[1] - k)
    errors = np.array(errors)
    variance = (1 + twice - 2 * k**2) / (2 * D)
    if isinstance(kernel, Gaussian):
        assert variance == pytest.approx((1 - k**2) ** 2 / (2 * D), rel=1e-12)
    assert abs(errors.mean()) < 4.5 * math.sqrt(variance / len(errors))
    squares = errors**2
    assert abs(squares.mean() - variance) < 4.5 * squares.std() / math.sqrt(len(errors))
    for e in (0.1, 0.2, 0.3, 0.4):
        assert np.mean(np.abs(errors) >= e) <= 2 * math.exp(-D * e**2 / 2)


@pytest.mark.parametrize(
    ("map", "ratio", "bias"),
    [
        (Fourier(Gaussian(1.0), 64), 1.0, 0.0),
        (Orthogonal(Gaussian(1.0), 64), 0.86, 0.0),
        (Orthogonal(Gaussian(1.0), 64, structured=True), 0.87, -0.02),
        (Fastfood(Gaussian(1.0), 64), 1.15, 0.0),
    ],
    ids=str,
)
def test_the_spread_of_the_maps(map, ratio, bias):
    """Section 7.1, d = 24, D = 64, k = 0.12: bias, and deviation in terms of that of Fourier features."""
    d, k, rng = 24, 0.12, np.random.default_rng(5)
    errors = np.zeros(1000)
    for seed in range(len(errors)):
        x, shift = rng.standard_normal((2, d))
        shift *= math.sqrt(-math.log(k)) / np.linalg.norm(shift)
        z = map.features(np.array([x, x + shift]), drawn(map, d, seed), {})
        errors[seed] = z[0] @ z[1] - k
    exact = (1 - k**2) / math.sqrt(2 * 64)
    assert errors.std() / exact == pytest.approx(ratio, abs=0.09)  # 4 of its own deviations
    assert errors.mean() == pytest.approx(bias, abs=4.5 * exact / math.sqrt(len(errors)))
    for e in (0.1, 0.2, 0.3):
        assert np.mean(np.abs(errors) >= e) <= 2 * math.exp(-64 * e**2 / 2)


@pytest.mark.parametrize("structured", [True, False], ids=["sorf", "fastfood"])
def test_structured_maps_in_few_dimensions(structured):
    """Padding to 16 keeps signs from giving too few directions: without it the error stays, however many components."""
    for d in (1, 2, 3):
        x, rng = np.zeros((1, d)), np.random.default_rng(d)
        shift = rng.normal(size=(6, d))
        map = Orthogonal(Gaussian(0.5), 512, structured=True) if structured else Fastfood(Gaussian(0.5), 512)
        wanted = Gaussian(0.5)(x, shift)[0]
        found = [
            map.features(shift, drawn(map, d, seed), {}) @ map.features(x, drawn(map, d, seed), {})[0]
            for seed in range(40)
        ]
        assert np.abs(np.mean(found, axis=0) - wanted).max() < (0.07 if structured else 0.03)
        assert np.std(found, axis=0).max() < 0.1


# Nystrom


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Polynomial(2), Laplacian(0.3)], ids=str)
def test_nystrom_features_reproduce_the_landmarks(kernel):
    X = inputs(40)
    L = X[:15]
    K = kernel(L)
    values, V = np.linalg.eigh(K)
    for rank in (None, 15, 6, 1):
        M = Nystrom(kernel, rank).transform(K)
        Z = K @ M.T
        best = (V[:, -(rank or 15) :] * values[-(rank or 15) :]) @ V[:, -(rank or 15) :].T
        assert len(M) == (rank or 15)
        same(Z @ Z.T, best, 1e-9)  # the best approximation of that rank; K itself at full rank
        same(Z.T @ Z, np.diag(values[::-1][: rank or 15]), 1e-9)
        same(M @ K @ M.T, np.eye(len(M)), 1e-8)


def test_nystrom_on_landmarks_that_depend_on_each_other():
    X = inputs(40)
    L = X[[0, 1, 2, 3, 1, 2]]
    K = Gaussian(0.5)(L)
    for rank, kept in ((None, 4), (6, 4), (3, 3)):
        M = Nystrom(Gaussian(0.5), rank).transform(K)
        assert M.shape == (kept, 6)
        if kept == 4:
            same(K @ M.T @ M @ K, K, 1e-10)
    assert Nystrom().transform(np.zeros((3, 3))).shape == (0, 3)
    tiny = np.diag([1.0, 3e-6, 3e-11])
    assert len(Nystrom().transform(tiny)) == 2
    assert len(Nystrom().transform(tiny, np.float32)) == 1


@pytest.mark.parametrize("landmarks", ["first", "random", "kmeans", "array"])
@pytest.mark.parametrize("form", FORMS)
def test_nystrom_transformer(landmarks, form):
    X = inputs(60, form=form)
    kernel = Gaussian(0.5)
    given = dense(X)[::6] if landmarks == "array" else landmarks
    transformer = onkel.NystromTransformer(kernel=kernel, components=10, landmarks=given).fit(X)
    L = transformer.landmarks_
    assert L.shape == (10, X.shape[1])
    rows = {row.tobytes() for row in dense(X).astype(L.dtype)}
    assert all(row.tobytes() in rows for row in L) == (landmarks != "kmeans")
    if landmarks == "first":
        np.testing.assert_array_equal(L, dense(X)[:10])
    Z, at = transformer.transform(X), transformer.transform(L)
    assert Z.dtype == X.dtype and Z.shape == (60, 10)
    tolerance = 2e-4 if form == "float32" else 1e-9
    same(at @ at.T, kernel(L), tolerance)
    same(at @ Z.T, kernel(L, dense(X)), tolerance)
    same(
        onkel.NystromTransformer(kernel=kernel, components=10, landmarks=given).fit(dense(X)).transform(X) @ at.T,
        Z @ at.T,
        1e-3,
    )
    few = onkel.NystromTransformer(kernel=kernel, components=10, landmarks=given, rank=3).fit(X)
    assert few.transform(X).shape == (60, 3)
    same(few.transform(X) @ few.transform(X).T, Z[:, :3] @ Z[:, :3].T, 1e-4 if form == "float32" else 1e-9)


def test_nystrom_transformer_with_repeated_rows():
    X = np.repeat(inputs(5), 8, axis=0)
    for landmarks in ("first", "random", "kmeans"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Z = onkel.NystromTransformer(kernel=Gaussian(0.5), components=20, landmarks=landmarks).fit_transform(X)
        assert Z.shape[1] <= 5
        if landmarks != "first":
            same(Z @ Z.T, Gaussian(0.5)(X), 1e-9)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"landmarks": "some"}, 'landmarks must be "kmeans", "random", "first" or an array of rows, got \'some\''),
        ({"landmarks": np.ones((3, 5))}, "landmarks have 5 columns, X has 4"),
        ({"rank": 0}, "rank must be an integer >= 1, got 0"),
        ({"components": 0}, "components must be an integer >= 1, got 0"),
        ({"kernel": "rbf"}, "kernel must be an onkel.kernels object or one of"),
    ],
    ids=str,
)
def test_what_the_nystrom_transformer_refuses(params, message):
    with pytest.raises(ValueError, match=message):
        onkel.NystromTransformer(**params).fit(inputs(20))


# Reparameterized


def score_with(X, coef, log_widths, map):
    """f(x) with those weights and widths, from the public pieces."""
    transformer = onkel.ReparameterizedTransformer(
        kernel=map.kernel, components=map.components, random_state=SEED, widths=np.exp(log_widths)
    )
    return transformer.fit_transform(X) @ coef.T


@pytest.mark.parametrize("form", ["dense", "sparse", "wide"])
@pytest.mark.parametrize(
    ("task", "loss"), [("binary", "logistic"), ("multiclass", "logistic"), ("regression", "squared")]
)
@pytest.mark.parametrize("kernel", SPECTRA, ids=str)
def test_widths_descend_the_loss(engine, kernel, task, loss, form):
    """One round moves the log-widths by -eta_kernel times the derivative, found here by differences."""
    X, y = TASKS[task](60, form=form)
    map, eta = Reparameterized(kernel, D), 1e-4
    model = estimator("RRF", task, components=D, kernel=kernel, eta=0.5, eta_kernel=eta, loss=loss)
    learn(model, X[:50], y[:50])
    for t in range(50, 53):
        coef, g, x = model.coef_, np.log(model.widths_), X[[t]]
        moved = np.flatnonzero(dense(x)[0])[:6]
        assert len(moved) > 1

        def loss_at(g):
            return tangent(loss, score_with(x, coef, g, map)[0], y[t])[0]  # noqa: B023

        learn(model, x, y[[t]])
        found = (g - np.log(model.widths_)) / eta
        for j in moved:
            h = 1e-5 * np.eye(len(g))[j]
            assert found[j] == pytest.approx((loss_at(g + h) - loss_at(g - h)) / 2e-5, abs=2e-7)
        assert np.abs(found[moved]).max() > 1e-5
        resting = dense(x)[0] == 0
        assert not found[resting].any()


def test_widths_begin_as_the_kernel_and_stay_without_weights(engine):
    for kernel, start in ((Gaussian(0.7), math.sqrt(1.4)), (Laplacian(0.7), 0.7), (Cauchy(0.7), math.sqrt(0.7))):
        X, y = regression(2)
        model = estimator("RRF", "regression", components=D, kernel=kernel, eta_kernel=10.0).fit(X[:1], y[:1])
        same(model.widths_, np.full(4, start), 1e-15)  # w was 0
        assert np.abs(model.partial_fit(X[1:], y[1:]).widths_ - start).max() > 1e-3
    assert not hasattr(estimator("FOGD", "regression").fit(X, y), "widths_")


# Engines


def on_both(make, X, y):
    """Scores while learning and in the end, and the state, on both engines."""
    found = []
    for engine in BOTH:
        with onkel.engine(engine):
            model = make()
            scores = learn(model, X, y)
        assert model.engine_ == engine
        found.append((scores, scores_of(model, X[:40]), scores_of(model, X[:40], output="last"), model.state()[0]))
    return found


ENGINES = {
    "fourier": ("FOGD", {"components": 20, "eta": 0.3}),
    "laplacian": ("FOGD", {"components": 20, "eta": 0.3, "kernel": Laplacian(0.4)}),
    "cauchy": ("FOGD", {"components": 20, "eta": 0.3, "kernel": Cauchy(0.8)}),
    "no step": ("FOGD", {"components": 20}),
    "adagrad": ("FOGD", {"components": 20, "schedule": "adagrad", "eta": 0.1}),
    "orthogonal": ("FOGD", {"components": 20, "eta": 0.3, "map": "orthogonal"}),
    "sorf": ("FOGD", {"components": 20, "eta": 0.3, "map": "sorf"}),
    "fastfood": ("FOGD", {"components": 20, "eta": 0.3, "map": "fastfood"}),
    "one component": ("FOGD", {"components": 1, "eta": 0.3}),
    "many components": ("FOGD", {"components": 131, "eta": 0.3}),
    "rrf": ("RRF", {"components": 20, "eta": 0.1, "eta_kernel": 0.01}),
    "nogd": ("NOGD", {"budget": 15, "rank": 6, "eta": 0.1}),
    "dual": ("DualSGD", {"budget": 15, "merge": 4, "components": 20, "lam": 0.5}),
}


@native
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", ENGINES)
def test_engines_agree(case, form):
    """float32: see test_boxes_in_float32."""
    algorithm, params = ENGINES[case]
    params = {"kernel": Gaussian(1.0)} | params
    for task in TASKS:
        X, y = TASKS[task](100 if form == "wide" else 200, form=form)
        one, two = on_both(lambda: estimator(algorithm, task, average=True, **params), X, y)  # noqa: B023
        tolerance = 1e-4 if form == "float32" else 1e-10
        for a, b in zip(one[:3], two[:3], strict=True):
            same(a, b, tolerance)
        assert one[3].keys() == two[3].keys()
        for name in one[3]:
            if name != "budget.transform":  # up to signs
                same(one[3][name], two[3][name], tolerance)


@native
@pytest.mark.parametrize("form", ["float32", "wide"])
@pytest.mark.parametrize("algorithm", ["FOGD", "NOGD", "RRF", "DualSGD"])
def test_files_go_from_engine_to_engine(algorithm, form, tmp_path):
    X, y = regression(100, form=form)
    tolerance = 1e-4 if form == "float32" else 1e-10
    for here, there in (BOTH, BOTH[::-1]):
        with onkel.engine(here):
            model = ESTIMATORS[f"{algorithm}Regressor"](average=True, random_state=SEED)
            learn(model, X[:50], y[:50])
            model.save(tmp_path / "model")
        with onkel.engine(there):
            moved = onkel.load(tmp_path / "model")
        assert (model.engine_, moved.engine_) == (here, there)
        same(moved.predict(X), model.predict(X), tolerance)
        same(learn(moved, X[50:], y[50:]), learn(model, X[50:], y[50:]), tolerance)


@pytest.mark.parametrize("map", ["fourier", "orthogonal", "sorf", "fastfood"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_of_an_example_do_not_depend_on_its_block(engine, map, dtype):
    """Bit by bit: the engine computes features of 16 rows at once."""
    X, y = binary(150)
    X = np.hstack([X, 0.3 * X]).astype(dtype)
    whole, single = (estimator("FOGD", "binary", components=21, map=map, eta=0.3) for _ in range(2))
    scores = learn(whole, X, y)
    parts = [learn(single, X[a:b], y[a:b]) for a, b in itertools.pairwise([0, 1, 2, 17, 33, 50, 65, 66, 150])]
    np.testing.assert_array_equal(np.concatenate(parts), scores)
    np.testing.assert_array_equal(whole.coef_, single.coef_)


# Names and columns


def test_names_decide_the_directions(engine):
    """Order means nothing, whole numbers are columns, features may come later."""
    X, y = regression(60)
    X[:20, 3] = 0
    make = partial(estimator, "FOGD", "regression", components=D, kernel=Gaussian(0.5))

    def dictionaries(names, late=False):
        model = make()
        for i, x in enumerate(X):
            model.learn_one({n: v for n, v in zip(names, x, strict=True) if v or not late}, y[i])
        return [model.predict_one(dict(zip(names, x, strict=True))) for x in X]

    plain = make()
    learn(plain, X, y)
    same(dictionaries([0, 1, 2, 3]), plain.predict(X))
    same(dictionaries([0, 1, 2, 3], late=True), plain.predict(X))
    same(dictionaries([np.int64(0), np.uint8(1), 2, 3]), plain.predict(X))
    frame = pd.DataFrame(X, columns=list("wxyz"))
    named, turned = make(), make()
    learn(named, frame, y)
    learn(turned, frame[list("zxwy")], y)
    same(turned.predict(frame[list("zxwy")]), named.predict(frame))
    same(turned.coef_, named.coef_)
    same(dictionaries(list("wxyz"), late=True), named.predict(frame))
    assert np.abs(named.predict(frame) - plain.predict(X)).max() > 0.1


# NOGD


def landmarks_full(X, y, **params):
    """A NOGD model in the round that stored its last landmark, and that round."""
    model = estimator("NOGD", "binary", **params)
    learn(model, X[:1], y[:1])
    t = 1
    while model.n_support_ < params["budget"]:
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        t += 1
    return model, t


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_switch_at_full_rank_leaves_the_function(engine, kernel):
    X, y = binary()
    params = {"budget": 15, "rank": 15, "eta": 0.3, "kernel": KERNELS[kernel]}
    lazy, t = landmarks_full(X, y, switch="lazy", **params)
    eager, _ = landmarks_full(X, y, switch="eager", **params)
    fresh = inputs(50, seed=1)
    same(eager.decision_function(fresh), lazy.decision_function(fresh), 1e-8)
    M = eager.state()[0]["budget.transform"]
    assert M.shape == (15, 15) and lazy.state()[0]["budget.transform"].size == 0
    L = eager.support_vectors_
    same(KERNELS[kernel](L) @ M.T @ M @ KERNELS[kernel](L), KERNELS[kernel](L), 1e-8)
    ogd = onkel.OGDClassifier(eta=0.3, kernel=KERNELS[kernel])
    whole = estimator("NOGD", "binary", **params)
    same(learn(whole, X, y)[:t], learn(ogd, X, y)[:t], 0)
    np.testing.assert_array_equal(whole.support_vectors_, L)


@pytest.mark.parametrize("switch", ["lazy", "eager"])
def test_landmarks_stay(engine, switch):
    X, y = multiclass()
    model = estimator("NOGD", "multiclass", budget=15, rank=4, eta=0.3, switch=switch)
    sizes, stored, coef, moved = [], None, None, 0
    for t in range(T):
        learn(model, X[t : t + 1], y[t : t + 1])
        sizes.append(model.n_support_)
        if sizes[-1] == 15:
            assert stored is None or np.array_equal(stored, model.support_vectors_)
            moved += stored is not None and not np.array_equal(coef, model.dual_coef_)
            stored, coef = model.support_vectors_, model.dual_coef_
    assert sizes == sorted(sizes) and max(sizes) == 15 and moved > 50
    M = model.state()[0]["budget.transform"]
    span = model.kernel_(stored) @ M.T @ M  # f is in the span of the features: coef = M' w
    same(M.T @ (M @ model.kernel_(stored) @ model.dual_coef_.T), model.dual_coef_.T, 1e-9)
    assert M.shape == (4, 15) and np.linalg.matrix_rank(span) == 4


HARD = {
    "duplicates": (np.repeat(inputs(5), 8, axis=0)[np.random.default_rng(0).permutation(40)], Gaussian(0.5), 5),
    "rank 1": (inputs(40)[:, :1] + 3, Linear(), 1),
    "rank 4": (inputs(40), Linear(), 4),
    "rank 15 of a square": (inputs(40), Polynomial(2), 15),
    "one row": (np.ones((40, 3)), Gaussian(0.5), 1),
    "unit matrix": (100 * np.eye(40)[:, :39], Gaussian(0.5), 30),
    "nearly equal": (1e-3 * inputs(40), Gaussian(0.5), None),
    "nearly singular": (inputs(40), Gaussian(0.01), None),
    "scales": (inputs(40) * 10.0 ** np.array([-3, -1, 0, 2]), Linear() + Gaussian(0.5), 30),
    "two blocks": (np.repeat([[0.0], [50.0]], 20, axis=0) + 0.3 * inputs(40), Gaussian(0.5), 30),
    "tiny": (1e-100 * inputs(40), Linear(), 4),
}


@pytest.mark.parametrize("case", HARD)
def test_landmarks_with_a_hard_kernel_matrix(engine, case):
    """The eigenvectors of NumPy and of C++: M K M' = I on the right number of features, M' M the inverse of K there."""
    X, kernel, rank = HARD[case]
    y = np.random.default_rng(1).normal(size=40)
    params = {"budget": 30, "rank": 30, "eta": 1e-3, "epsilon": 0, "kernel": kernel, "switch": "eager"}
    model = estimator("NOGD", "regression", **params)
    scores = learn(model, X, y)
    assert np.isfinite(scores).all()
    M, K = model.state()[0]["budget.transform"], kernel(X[:30])
    values, V = np.linalg.eigh(K)
    kept = values > 1e-10 * values[-1]
    assert len(M) == kept.sum() and rank in (None, len(M))
    exact = (V[:, kept] / np.sqrt(values[kept])).T
    lost = 1e-15 * 30 / (values[kept].min() / values[-1])  # how far rounding of K moves the smallest kept
    same(M @ K @ M.T, np.eye(len(M)), max(1e-10, lost))
    inverse = exact.T @ exact
    assert np.abs(M.T @ M - inverse).max() <= max(1e-10, 10 * lost) * np.abs(inverse).max()
    same(
        scores,
        nogd(kernel(X), y, budget=30, rank=30, eta=1e-3, loss="squared", epsilon=0, switch="eager")[0],
        1e-8 + lost,
    )


def test_landmarks_by_the_hundred(engine):
    """The eigenvectors of a larger matrix."""
    X, y = regression(130)
    model = estimator("NOGD", "regression", budget=100, rank=100, eta=0.1, epsilon=0, kernel=Laplacian(1.0))
    learn(model, X, y)
    M = model.state()[0]["budget.transform"]
    K = Laplacian(1.0)(X[:100])
    same(M @ K @ M.T, np.eye(100), 1e-11)
    same(M.T @ M @ K, np.eye(100), 1e-10)


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
    model = estimator("RRF", task, components=D, eta=0.3, eta_kernel=0, kernel=kernel, **tube)
    same(learn(model, X, y), learn(estimator("FOGD", task, components=D, eta=0.3, kernel=kernel, **tube), X, y), 1e-12)
    same(model.widths_, np.full(4, kernel.frequency), 1e-14)


def learner(hypothesis, loss, update, outputs=1):
    return onkel.native.engine(Learner(hypothesis, loss, update, outputs=outputs, columns=4, seed=SEED))


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


# Transformers

RANDOM = {
    "fourier": (onkel.FourierTransformer, Fourier(Gaussian(0.5), 30)),
    "reparameterized": (onkel.ReparameterizedTransformer, Reparameterized(Gaussian(0.5), 30)),
    "orthogonal": (onkel.OrthogonalTransformer, Orthogonal(Gaussian(0.5), 30)),
    "fastfood": (onkel.FastfoodTransformer, Fastfood(Gaussian(0.5), 30)),
}
every_transformer = pytest.mark.parametrize("name", RANDOM)


def transformer(name, **params):
    return RANDOM[name][0](**({"kernel": Gaussian(0.5), "components": 30, "random_state": SEED} | params))


@every_transformer
def test_transformers_give_the_features_of_the_map(name):
    map = RANDOM[name][1]
    for form in FORMS:
        X = inputs(40, form=form)
        number = X.shape[1]
        Z = transformer(name).fit(X[:3]).transform(X)
        assert Z.dtype == X.dtype and Z.shape == (40, 60)
        same(Z, features_of(dense(X), directions(map, number)), 1e-6 if form == "float32" else 1e-12)
        same(transformer(name).fit_transform(dense(X)), Z, 1e-6 if form == "float32" else 1e-12)
    assert np.abs(transformer(name, random_state=1).fit_transform(X) - Z).max() > 0.1
    assert list(transformer(name).fit(X).get_feature_names_out()[:2]) == [f"{name}transformer{i}" for i in range(2)]


@every_transformer
def test_names_of_columns(name):
    X = inputs(20)
    frame = pd.DataFrame(X, columns=list("abcd"))
    Z = transformer(name).fit_transform(frame)
    turned = transformer(name).fit_transform(frame[list("cadb")])
    together = name in ("orthogonal", "fastfood")  # these know places only
    assert np.allclose(Z, turned, atol=1e-12) != together
    assert np.allclose(Z, transformer(name).fit_transform(X), atol=1e-12) == together


def test_a_model_is_its_features_and_weights(engine):
    """FOGD is FourierTransformer and coef_, RRF is ReparameterizedTransformer at widths_ and coef_."""
    for task in TASKS:
        X, y = TASKS[task](100)
        for average in (False, True):
            model = estimator("FOGD", task, components=30, kernel=Gaussian(0.5), average=average)
            learn(model, X, y)
            same(scores_of(model, X), transformer("fourier").fit_transform(X) @ model.coef_.T)
        model = estimator("RRF", task, components=30, kernel=Gaussian(0.5))
        learn(model, X, y)
        Z = transformer("reparameterized", widths=model.widths_).fit_transform(X)
        same(scores_of(model, X), Z @ model.coef_.T)
    with pytest.raises(AttributeError, match="no explicit features: see dual_coef_"):
        _ = onkel.OGDRegressor().fit(X, y).coef_
    with pytest.raises(AttributeError, match="no terms: see coef_"):
        _ = estimator("FOGD", "regression").fit(X, y).dual_coef_


@every_transformer
def test_values_that_are_no_numbers_are_named(name):
    with pytest.raises(ValueError, match=r"row 1, column 0, too large for a float: scale"):
        transformer(name).fit([[1.0, 2.0], [10**400, 3.0]])
    with pytest.raises(ValueError, match=r"column 'b' of X holds 'x' in row 1"):
        transformer(name).fit(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, "x"]}))


def test_transformers_in_pipelines():
    X = inputs(600)
    y = np.where((X[:, :2] ** 2).sum(axis=1) > 0.7, "out", "in")
    linear = SGDClassifier(random_state=0).fit(X[:400], y[:400]).score(X[400:], y[400:])
    for step in [*(transformer(name) for name in RANDOM), onkel.NystromTransformer(kernel=Gaussian(0.5))]:
        pipeline = make_pipeline(step, SGDClassifier(random_state=0)).fit(X[:400], y[:400])
        assert pipeline.score(X[400:], y[400:]) > max(0.8, linear + 0.1)
        again = pickle.loads(pickle.dumps(pipeline))
        np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))
    step.set_params(kernel__gamma=2.0, components=7)
    assert (step.kernel, step.components) == (Gaussian(2.0), 7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: transformer("fourier", kernel="linear"), "Linear.* has no random features: use Gaussian, Laplacian"),
        (lambda: transformer("fourier", kernel="rbf"), "kernel must be an onkel.kernels object or one of"),
        (lambda: transformer("fourier", components=0), "components must be an integer >= 1, got 0"),
        (lambda: transformer("fourier", components=2.5), "components must be an integer >= 1, got 2.5"),
        (lambda: transformer("orthogonal", kernel="cauchy"), "kernel must be Gaussian"),
        (lambda: transformer("orthogonal", structured=1), "structured must be True or False, got 1"),
        (lambda: transformer("fastfood", kernel="laplacian"), "kernel must be Gaussian"),
        (lambda: transformer("reparameterized", widths=[1.0, 2.0]), "widths must be 4 finite numbers > 0, got"),
        (lambda: transformer("reparameterized", widths=[1.0, 2.0, 0.0, 1.0]), "widths must be 4 finite numbers > 0"),
        (lambda: transformer("reparameterized", widths=[1.0, 2.0, np.inf, 1.0]), "widths must be 4 finite numbers > 0"),
        (lambda: transformer("reparameterized", widths="wide"), "widths|could not convert"),
    ],
)
def test_what_transformers_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make().fit(inputs(5))


@every_transformer
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_too_large_for_features(name, dtype):
    fitted = transformer(name).fit(inputs(5).astype(dtype))
    X = np.full((2, 4), np.finfo(dtype).max / 8, dtype=dtype)
    for rows in (X, sp.csr_array(X), 4 * X):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match="too large for random features: scale it"):
                fitted.transform(rows)
    with pytest.raises(ValueError, match="NaN"):
        fitted.transform(np.full((2, 4), np.nan, dtype=dtype))
    with pytest.raises(ValueError, match="features"):
        fitted.transform(np.ones((2, 5), dtype=dtype))


# LLSVM


@pytest.mark.parametrize("landmarks", ["kmeans", "random"])
@pytest.mark.parametrize("rank", [None, 8])
def test_llsvm_is_a_linear_machine_on_its_features(engine, landmarks, rank):
    """Up to a rotation of them, of which the solver's path in the dual knows nothing."""
    params = {"budget": 20, "rank": rank, "lam": 0.5, "landmarks": landmarks, "kernel": Gaussian(0.5)}
    for task in TASKS:
        X, y = TASKS[task](200)
        model = estimator("LLSVM", task, **params).fit(X, y)
        L = model.support_vectors_
        Z = llsvm_features(Gaussian(0.5)(X, L), Gaussian(0.5)(L), rank)
        options = {"C": 2.0, "fit_intercept": False, "dual": True, "max_iter": 20_000, "random_state": SEED}
        if task == "regression":
            machine = LinearSVR(loss="epsilon_insensitive", epsilon=0.1, **options).fit(Z, y)
            same(model.predict(X), machine.predict(Z), 1e-2)
        else:
            machine = LinearSVC(loss="hinge", **options).fit(Z, y)
            same(model.decision_function(X), machine.decision_function(Z), 1e-2)
            assert np.mean(model.predict(X) == machine.predict(Z)) > 0.99
        assert L.shape == (20, 4) and model.n_support_ == 20 and model.t_ == 200


def test_llsvm_learns(engine):
    X, y = binary(400, seed=1)
    labels = np.where(y > 0, "yes", "no")
    model = estimator("LLSVM", "binary", budget=40, kernel=Gaussian(1.0)).fit(X[:300], labels[:300])
    assert np.mean(model.predict(X[300:]) == labels[300:]) > 0.8
    X, y = multiclass(400, seed=1)
    model = estimator("LLSVM", "multiclass", budget=40, kernel=Gaussian(1.0)).fit(X[:300], y[:300])
    assert np.mean(model.predict(X[300:]) == y[300:]) > 0.45  # of four classes
    X, y = regression(400, seed=1)
    model = estimator("LLSVM", "regression", budget=40, kernel=Gaussian(1.0)).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.4


@pytest.mark.parametrize("form", FORMS)
def test_llsvm_is_a_model_like_others(engine, form, tmp_path):
    for task in TASKS:
        X, y = TASKS[task](120, form=form)
        model = estimator("LLSVM", task, budget=10, kernel=Gaussian(0.5)).fit(X, y)
        other = estimator("LLSVM", task, budget=10, kernel=Gaussian(0.5)).fit(dense(X), y)
        same(scores_of(model, X), scores_of(other, dense(X)), 1e-3)
        model.save(tmp_path / "model")
        for again in (onkel.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            np.testing.assert_array_equal(scores_of(again, X), scores_of(model, X))
        alone = [scores_of(model, X[[i]]) for i in range(5)]
        np.testing.assert_array_equal(np.concatenate(alone), scores_of(model, X)[:5])


@pytest.mark.parametrize("task", TASKS)
def test_llsvm_does_not_go_on_learning(engine, task):
    X, y = TASKS[task](60)
    model = estimator("LLSVM", task, budget=10)
    for _ in range(2):
        for verb in ("learn", "partial_fit", "learn_one", "learn_many"):
            assert not hasattr(model, verb)
            with pytest.raises(AttributeError, match="learns from all rows at once: use fit"):
                getattr(model, verb)
        model.fit(X, y)
    assert type(model).__name__ not in ESTIMATORS and not model.online


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"landmarks": "first"}, r"LLSVMClassifier\.landmarks must be one of 'kmeans', 'random', got 'first'"),
        ({"budget": 0}, r"LLSVMClassifier\.budget must be an integer >= 1, got 0"),
        ({"lam": 0}, r"LLSVMClassifier\.lam must be > 0, got 0"),
        ({"lam": -2.0}, r"LLSVMClassifier\.lam must be > 0, got -2"),
        ({"lam": "much"}, r"LLSVMClassifier\.lam must be > 0, got 'much'"),
        ({"rank": 0}, r"LLSVMClassifier\.rank must be an integer >= 1, got 0"),
        ({"chunk": 0}, r"LLSVMClassifier\.chunk must be an integer >= 1, got 0"),
        ({"kernel": "rbf"}, "kernel must be an onkel.kernels object or one of"),
    ],
    ids=str,
)
def test_parameters_llsvm_refuses(engine, params, message):
    X, y = binary(60)
    model = estimator("LLSVM", "binary", budget=10).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_rows_llsvm_refuses(engine):
    X, y = binary(60)
    model = estimator("LLSVM", "binary", budget=10).fit(X, y)
    before = model.decision_function(X)
    for message, args in {
        "y holds one class only, 1.0: a machine needs two": (X, np.ones(60)),
        "length|inconsistent|60": (X, y[:-1]),
        "NaN": (np.full_like(X, np.nan), y),
        "weight": (X, y, -np.ones(60)),
        "continuous": (X, np.linspace(0, 1, 60)),
    }.items():
        with pytest.raises(ValueError, match=message):
            model.fit(*args)
        np.testing.assert_array_equal(model.decision_function(X), before)


def test_llsvm_takes_weights_and_few_rows(engine):
    X, y = binary(60)
    plain, weighted = (estimator("LLSVM", "binary", budget=10) for _ in range(2))
    plain.fit(X, y, sample_weight=np.ones(60))
    np.testing.assert_array_equal(plain.dual_coef_, weighted.fit(X, y).dual_coef_)
    weighted.fit(X, y, sample_weight=np.where(y > 0, 5.0, 1.0))
    assert weighted.decision_function(X).mean() > plain.decision_function(X).mean() + 0.1
    assert estimator("LLSVM", "binary", budget=100).fit(X[:8], y[:8]).n_support_ <= 8


# Threads


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("algorithm", ["FOGD", "NOGD", "DualSGD", "OGD", "LLSVM"])
def test_threads_do_not_change_a_prediction(algorithm, form):
    X, y = multiclass(4100, form=form)
    model = ESTIMATORS.get(f"{algorithm}Classifier", onkel.LLSVMClassifier)(kernel=Gaussian(1.0)).fit(X[:100], y[:100])
    wanted = model.decision_function(X)
    for jobs in (1, 2, 3, -1, 4, np.int64(2)):
        model.set_params(n_jobs=jobs)
        np.testing.assert_array_equal(model.decision_function(X), wanted)
        np.testing.assert_array_equal(model.decision_function(X[:7]), wanted[:7])
        np.testing.assert_array_equal(model.predict(X), model.classes_[wanted.argmax(axis=1)])


@pytest.mark.parametrize("jobs", [0, 2.0, "2", True, [], 1.5])
def test_numbers_of_threads_that_are_none(engine, jobs):
    X, y = binary(30)
    for cls in (onkel.FOGDClassifier, onkel.RBPClassifier, onkel.LLSVMClassifier):
        with pytest.raises(ValueError, match=rf"{cls.__name__}\.n_jobs must be None or an integer other than 0, got"):
            cls(n_jobs=jobs).fit(X, y)
