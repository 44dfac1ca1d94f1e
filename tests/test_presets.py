"""Every estimator is its paper's box: the scores of each round and the final model, on both engines.

The boxes of `boxes` know nothing of the library. Both see the same stream; only where a box leaves a choice
to chance is it told which term the library removes (`Slots`). Learners on features are in `test_feature_maps`,
dictionary learners in `test_pursuit`.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from boxes import (
    averaged,
    averaged_scores,
    double_update,
    gradients,
    passive_aggressive,
    perceptrons,
    projections,
    sampling,
    scores,
)
from boxes.common import margin, mistaken
from streams import ESTIMATORS, KERNELS, SETTINGS, build, kernel_for, learn, scores_of, stream_for, takes_several

from onkel.losses import Huber, Quantile, Squared
from onkel.random import Random

SEED = 7

BOXES = {
    "BDUOLClassifier": lambda K, y, **options: double_update.bduol(K, y, **options)[0],
    "BOGDClassifier": gradients.bogd,
    "BOGDPlusPlusClassifier": gradients.bogd_plus_plus,
    "BOGDPlusPlusRegressor": gradients.bogd_plus_plus_regression,
    "BOGDRegressor": gradients.bogd_regression,
    "BPAClassifier": projections.bpa,
    "BSGDClassifier": gradients.bsgd_remove,
    "BudgetPerceptronClassifier": perceptrons.budget_perceptron,
    "DUOLClassifier": lambda K, y, **options: double_update.duol(K, y, **options)[0],
    "ForgetronClassifier": perceptrons.forgetron,
    "ForgetronRegressor": perceptrons.forgetron_regression,
    "ILKClassifier": gradients.ilk,
    "KLMSRegressor": gradients.klms_regression,
    "KLRSGDClassifier": gradients.klrsgd,
    "KernelPerceptronClassifier": perceptrons.kernel_perceptron,
    "KernelPerceptronRegressor": perceptrons.kernel_perceptron_regression,
    "NORMAClassifier": gradients.norma,
    "NORMADetector": gradients.norma_detector,
    "NORMARegressor": gradients.norma_regression,
    "OGDClassifier": gradients.ogd,
    "OGDRegressor": gradients.ogd_regression,
    "PAClassifier": passive_aggressive.pa,
    "PARegressor": passive_aggressive.pa_regression,
    "PegasosClassifier": gradients.pegasos,
    "ProjectronClassifier": projections.projectron,
    "ProjectronPlusPlusClassifier": projections.projectron_plus_plus,
    "ProjectronRegressor": projections.projectron_regression,
    "RBPClassifier": perceptrons.rbp,
    "RBPRegressor": perceptrons.rbp_regression,
    "OSKLClassifier": sampling.oskl,
    "OSKLRegressor": sampling.oskl,
    "SPAClassifier": sampling.spa,
    "SPARegressor": sampling.spa_regression,
    "SparseKLRClassifier": sampling.sparse_klr,
    "StoptronClassifier": perceptrons.stoptron,
    "StoptronRegressor": perceptrons.stoptron_regression,
    "TighterPerceptronClassifier": perceptrons.tighter_perceptron,
}
TUBE = {"epsilon": 0.1}  # of the regressors whose boxes have no default
TASKS = [
    pytest.param(name, number, several, id=f"{name}-{number}-{'several' if several else 'one'}")
    for name in BOXES
    for number in range(len(SETTINGS[name]))
    if SETTINGS[name][number].get("maintenance") != "merge"  # see test_merging
    for several in ([False, True] if takes_several(name) else [False])
]


class Slots:
    """A `choose` for the boxes that removes what the library removes.

    The library keeps terms in slots: a new one takes the next slot, and the last one moves into a slot that
    is emptied. A uniform removal empties slot int(u n), a weighted one that at which the running sum of
    probabilities exceeds u.
    """

    def __init__(self, seed, spare_new=False):
        self.random, self.slots, self.spare_new = Random(seed, "removal"), [], spare_new

    def __call__(self, ids, p):
        offered = ids[:-1] if self.spare_new else ids
        self.slots += [i for i in offered if i not in self.slots]
        u = self.random.uniform()
        if p is None:
            slot = int(u * len(self.slots))
        else:
            running = np.cumsum([p[ids.index(i)] for i in self.slots])
            slot = int(np.argmax(running > u * running[-1]))
        leaves, last = self.slots[slot], self.slots.pop()
        if slot < len(self.slots):
            self.slots[slot] = last
        return ids.index(leaves)


def box_of(name, params, K, y, outputs):
    """The history of the box with an estimator's parameters."""
    box, options = BOXES[name], dict(params)
    if name.startswith("BSGD") and options.pop("maintenance", "remove") == "project":
        box = projections.bsgd_project
    elif name.startswith(("RBP", "BOGD", "BSGD")):
        options["choose"] = Slots(SEED, spare_new=name.startswith("BSGD"))
    if box is not projections.projectron and options.pop("squared", False):
        options["tolerance"] **= 0.5  # these boxes compare distances only
    if isinstance(options.get("loss"), Huber):
        options |= {"loss": "huber", "delta": options["loss"].delta}
    elif isinstance(options.get("loss"), Quantile):
        options |= {"loss": "quantile", "q": options["loss"].quantile}
    if schedule := options.pop("schedule", None):
        t = np.arange(1, len(y) + 1)
        options["eta"] /= t if schedule == "1/t" else np.sqrt(t)
    if name.startswith(("SPA", "OSKL", "SparseKLR")):
        draw = Random(SEED, "sampling")
        options["uniforms"] = np.array([draw.uniform() for _ in y])
    if name.startswith("OSKL"):
        if isinstance(options.get("loss"), Squared):
            options |= {"loss": "squared", "epsilon": options["loss"].epsilon}
        options.setdefault("loss", "squared" if name.endswith("Regressor") else "logistic")
    if name.startswith("SPA"):
        options = {"alpha": 1.0} | options
    if name in ("OGDRegressor", "PARegressor", "BOGDRegressor", "BOGDPlusPlusRegressor"):
        options = TUBE | options
    if outputs > 1:
        options["outputs"] = outputs
    return box(K, **options) if y is None else box(K, y, **options)


class Expected(NamedTuple):
    """What a box makes of a stream."""

    scores: Any  # before each round, (rounds, outputs)
    final: Any  # coefficients of f_(T+1) by example, (rounds, outputs)
    mean: Any  # and of the mean of f_1 .. f_T
    live_scores: Any  # of the mean of the models so far, over the terms that still live
    all_scores: Any  # the same over all terms


@cache
def expected(name, number, kernel, several):
    """The stream of an estimator, and what the box makes of it with the estimator's settings of that number."""
    X, y = stream_for(ESTIMATORS[name], several=several)
    K = KERNELS[kernel](X)
    F = box_of(name, SETTINGS[name][number], K, y, outputs=4 if several else 1)
    means = averaged_scores(K, F, "live"), averaged_scores(K, F, "all")
    return X, y, Expected(scores(K, F), F[-1].copy(), averaged(F)[-2].copy(), *means)


def same(actual, wanted, tolerance=1e-10):
    wanted = np.reshape(wanted, np.shape(actual))
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=tolerance * max(1.0, np.abs(wanted).max()))


def coefficients(model, X):
    """The coefficients of a model by example, of shape (rounds, outputs); its terms must be rows of X."""
    assert model.n_support_ == len(model.support_vectors_) == model.dual_coef_.shape[1]
    found = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in model.support_vectors_]
    assert found == sorted(found)
    table = np.zeros((len(X), len(model.dual_coef_)))
    table[found] = model.dual_coef_.T
    return table, found


def is_its_box(model, X, y, wanted, kernel):
    """A fresh model makes of the stream what the box does."""
    same(learn(model, X, y), wanted.scores)
    table, found = coefficients(model, X)
    same(table, wanted.final)
    assert found == list(np.flatnonzero(wanted.final.any(axis=1)))
    fresh = stream_for(model, rounds=20, seed=1)[0]
    same(scores_of(model, fresh), kernel(fresh, X) @ wanted.final)
    assert model.t_ == len(X)


def is_the_mean_of_its_box(model, X, y, wanted, kernel):
    """So does one that averages."""
    same(learn(model, X, y), wanted.all_scores if model.average == "all" else wanted.live_scores)
    table, found = coefficients(model, X)
    mean = wanted.mean
    if model.average is True:  # of the terms that outlived the last round
        mean = np.where(wanted.final.any(axis=1, keepdims=True), mean, 0.0)
        assert found == list(np.flatnonzero(wanted.final.any(axis=1)))
    same(table, mean)
    fresh = stream_for(model, rounds=20, seed=1)[0]
    K = kernel(fresh, X)
    same(scores_of(model, fresh), K @ mean)
    if y is not None:
        same(scores_of(model, fresh, output="last"), K @ wanted.final)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("name", "number", "several"), TASKS)
def test_estimator_is_its_box(name, number, several, kernel, engine):
    model = build(name, **SETTINGS[name][number], kernel=KERNELS[kernel], random_state=SEED, average=False)
    is_its_box(model, *expected(name, number, kernel, several), KERNELS[kernel])
    assert model._learner.engine == engine


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("average", [True, "all"])
@pytest.mark.parametrize(("name", "number", "several"), TASKS)
def test_averaged_estimator_is_the_mean_of_its_box(name, number, several, average):
    model = build(name, **SETTINGS[name][number], kernel=KERNELS["uneven"], random_state=SEED, average=average)
    is_the_mean_of_its_box(model, *expected(name, number, "uneven", several), KERNELS["uneven"])


# The settings do what they are for


def test_every_estimator_has_a_box_and_settings():
    modules = ("feature_maps", "merging", "pursuit")  # have tests of their own
    elsewhere = {name for name, cls in ESTIMATORS.items() if cls.__module__.endswith(modules)}
    assert set(BOXES) | elsewhere == set(ESTIMATORS) == set(SETTINGS)
    assert not set(BOXES) & elsewhere


@pytest.mark.parametrize("name", ESTIMATORS)
def test_settings_use_every_parameter(name):
    defaults = ESTIMATORS[name]().get_params(deep=False)
    for parameter in set(defaults) - {"kernel", "average", "random_state", "n_jobs", "maintenance"}:
        assert any(params.get(parameter, defaults[parameter]) != defaults[parameter] for params in SETTINGS[name])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_two_settings_give_the_same_scores(name):
    found = []
    for params in SETTINGS[name]:
        model = build(name, **params, kernel=kernel_for(name, params), random_state=SEED)
        found.append(learn(model, *stream_for(model)))
    for i in range(len(found)):
        for j in range(i):
            assert np.abs(found[i] - found[j]).max() > 1e-3, (SETTINGS[name][i], SETTINGS[name][j])


@pytest.mark.parametrize("name", [name for name in BOXES if name.startswith(("RBP", "BOGD", "BSGD"))])
def test_seeds_matter_to_random_removal_only(name):
    for params in SETTINGS[name]:
        models = [build(name, **params, random_state=seed) for seed in (1, 2)]
        different = [learn(model, *stream_for(model)) for model in models]
        removal = params.get("removal", models[0].get_params().get("removal", "random"))
        assert (np.ptp(different, axis=0).max() > 0) == (removal in ("uniform", "random"))


# Sample weights


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("name", "number", "several"), [task for task in TASKS if "Detector" not in task.id])
def test_weight_zero_leaves_the_row_out(name, number, several):
    X, y = stream_for(ESTIMATORS[name], several=several)
    weight = (np.random.default_rng(3).random(len(X)) < 0.7).astype(float)
    kept = weight > 0
    K = KERNELS["uneven"](X)
    F = box_of(name, SETTINGS[name][number], K[np.ix_(kept, kept)], y[kept], outputs=4 if several else 1)
    before = F[np.cumsum(kept) - kept]  # the model each row meets, those left out too
    model = build(name, **SETTINGS[name][number], kernel=KERNELS["uneven"], random_state=SEED, average=False)
    same(learn(model, X, y, sample_weight=weight), np.einsum("ti,tio->to", K[:, kept], before))
    assert model.t_ == kept.sum()


def weighted(K, y, weight, rule):
    """Scores of a learner with `rule(t, s, y, k_tt, weight)` for the factor on f and the new coefficient."""
    f, found = np.zeros(len(y)), np.zeros(len(y))
    for t in range(len(y)):
        found[t] = K[t] @ f
        shrink, step = rule(t + 1, found[t], y[t], K[t, t], weight[t])
        f *= shrink
        f[t] = step
    return found


def pa_step(variant):
    def rule(t, s, y, k, w):
        loss, C = max(0, 1 - y * s), 0.4 * w
        tau = {"hard": loss / k, "I": min(C, loss / k), "II": loss / (k + 1 / (2 * C))}[variant]
        return 1, tau * y

    return rule


WEIGHTED = {
    "KernelPerceptronClassifier": ({}, lambda t, s, y, k, w: (1, w * y * (y * s <= 0))),
    "OGDClassifier": ({"eta": 0.3}, lambda t, s, y, k, w: (1, 0.3 * w * y * (y * s < 1))),
    "NORMAClassifier": ({"eta": 0.3, "lam": 0.1}, lambda t, s, y, k, w: (0.97, 0.3 * w * y * (y * s <= 1))),
    "PegasosClassifier": ({"lam": 0.1}, lambda t, s, y, k, w: (1 - 1 / t, w * y * (y * s < 1) / (0.1 * t))),
    "KLRSGDClassifier": ({"eta": 0.3}, lambda t, s, y, k, w: (1, 0.3 * w * y / (1 + np.exp(y * s)))),
    "ILKClassifier": (
        {"eta": 0.3, "lam": 0.5},
        lambda t, s, y, k, w: (1 / 1.15, y * np.clip((1.15 - y * s) / k, 0, 0.3 * w) / 1.15),
    ),
    "PAClassifier-hard": ({"variant": "hard", "C": 0.4}, pa_step("hard")),
    "PAClassifier-I": ({"variant": "I", "C": 0.4}, pa_step("I")),
    "PAClassifier-II": ({"variant": "II", "C": 0.4}, pa_step("II")),
    "KLMSRegressor": ({"eta": 0.2}, lambda t, s, y, k, w: (1, 0.2 * w * (y - s))),
}


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("case", WEIGHTED)
def test_weights_multiply_the_slope(case):
    name, (params, rule) = case.partition("-")[0], WEIGHTED[case]
    X, y = stream_for(ESTIMATORS[name])
    weight = np.random.default_rng(3).uniform(0.2, 2.0, len(X))
    model = ESTIMATORS[name](**params, kernel=KERNELS["uneven"])
    same(model.learn(X, y, sample_weight=weight), weighted(KERNELS["uneven"](X), y, weight, rule))


@pytest.mark.usefixtures("engine")
def test_weights_move_an_adaptive_threshold():
    X, y = stream_for(ESTIMATORS["NORMAClassifier"])
    weight = np.random.default_rng(3).uniform(0.2, 2.0, len(X))
    rho = 1.0

    def rule(t, s, y, k, w):
        nonlocal rho
        error = y * s <= rho
        rho += 0.3 * w * (0.4 - error)
        return 0.97, 0.3 * w * y * error

    model = ESTIMATORS["NORMAClassifier"](eta=0.3, lam=0.1, nu=0.4, kernel=KERNELS["uneven"])
    same(model.learn(X, y, sample_weight=weight), weighted(KERNELS["uneven"](X), y, weight, rule))


# Where a box and a preset could agree by accident


def test_streams_are_in_general_position():
    for kernel in KERNELS.values():
        X, y = stream_for(ESTIMATORS["PAClassifier"])
        K = kernel(X)
        assert len(np.unique(K[np.triu_indices(len(K), 1)])) == len(K) * (len(K) - 1) // 2
        s = scores(K, passive_aggressive.pa(K, y))
        assert len(np.unique(s)) == len(s)
    assert np.ptp(np.diag(KERNELS["uneven"](X))) > 1
    assert any(mistaken(v, label) for v, label in zip(s, y, strict=True))
    assert any(0 < margin(v, label) < 1 for v, label in zip(s, y, strict=True))
