"""Learners on explicit features are their papers' boxes, on both engines."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from boxes.feature_maps import (
    adagrad,
    dual_sgd,
    fogd,
    nogd,
    rrf,
)
from boxes.feature_maps import fourier as features_of
from feature_learners import (
    EVERY_LOSS,
    LOSSES,
    SCHEDULES,
    SPECTRA,
    TASKS,
    D,
    T,
    dense,
    directions,
    drawn,
    estimator,
    outputs_of,
    same,
    stream,
)
from streams import KERNELS, binary, learn, scores_of

from onkel.kernels import Gaussian
from onkel.maps import Fastfood, Fourier, Orthogonal, Reparameterized

# An estimator is its box


ONE_EACH = [("binary", "hinge"), ("multiclass", "logistic"), ("regression", "squared")]


def check(model, stream, box, tolerance=1e-10):
    """The scores of every round and those of the model in the end; where it averages, by both functions."""
    (X, y), (S, A, *_), rounds = stream, box, len(stream[1]) - 1
    same(learn(model, X[:rounds], y[:rounds]), (A if model.average else S)[:rounds], tolerance)
    after = X[[rounds]]
    same(scores_of(model, after, output="last"), S[rounds], tolerance)
    if model.average:
        same(scores_of(model, after), A[rounds], tolerance)
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
def dual_box(task, form, loss, budget, lam, merge=0, components=D, maintenance="merge", insert_always=False):
    X, y = stream(task, form)
    Z = features_of(dense(X), drawn(Fourier(Gaussian(1.0), components), X.shape[1])["directions"])
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
    params = {"budget": 15, "lam": 0.05 if loss == "hinge" else 1.0} | params
    if params.get("maintenance") != "remove":
        params = {"merge": 4, "components": D} | params
    for form, average in WAYS:
        model = estimator("DualSGD", task, kernel=Gaussian(1.0), loss=loss, average=average, **params)
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
        box = dual_box(task, "float32", options["loss"], 15, 1.0, 4)
    check(estimator(algorithm, task, kernel=kernel, **params), (X, y), box, 1e-4)
