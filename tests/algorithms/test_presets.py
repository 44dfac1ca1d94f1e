"""Every estimator is its paper's box: the scores of each round and the final model, on both engines.

The boxes of `boxes` know nothing of the library. Both see the same stream; only where a box leaves a choice
to chance is it told which term the library removes (`Slots`). Learners on features are in `test_feature_maps`,
dictionary learners in `test_pursuit`.
"""

import inspect
import re
from functools import cache, partial

import numpy as np
import pytest
from box_checks import Expected, Slots, is_its_box, is_the_mean_of_its_box, same
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
from streams import ESTIMATORS, KERNELS, build, kernel_for, learn, settings, stream_for, takes_several

from onkel.core.part import Part
from onkel.core.random import Random

SEED = 7


def bsgd(K, y, *, choose, maintenance="remove", **options):
    """The new term is there before one leaves, and is not drawn itself."""
    choose.spare_new = True
    if maintenance == "project":
        return projections.bsgd_project(K, y, **options)
    return gradients.bsgd_remove(K, y, choose=choose, **options)


BOXES = {
    "BDUOLClassifier": lambda K, y, **options: double_update.bduol(K, y, **options)[0],
    "BOGDClassifier": gradients.bogd,
    "BOGDPlusPlusClassifier": gradients.bogd_plus_plus,
    "BOGDPlusPlusRegressor": partial(gradients.bogd_plus_plus_regression, epsilon=0.1),
    "BOGDRegressor": partial(gradients.bogd_regression, epsilon=0.1),
    "BPAClassifier": projections.bpa,
    "BSGDClassifier": bsgd,
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
    "NORMADetector": lambda K, y, **options: gradients.norma_detector(K, **options),
    "NORMARegressor": gradients.norma_regression,
    "OGDClassifier": gradients.ogd,
    "OGDRegressor": partial(gradients.ogd_regression, epsilon=0.1),
    "PAClassifier": passive_aggressive.pa,
    "PARegressor": partial(passive_aggressive.pa_regression, epsilon=0.1),
    "PegasosClassifier": gradients.pegasos,
    "ProjectronClassifier": projections.projectron,
    "ProjectronPlusPlusClassifier": projections.projectron_plus_plus,
    "ProjectronRegressor": projections.projectron_regression,
    "RBPClassifier": perceptrons.rbp,
    "RBPRegressor": perceptrons.rbp_regression,
    "OSKLClassifier": sampling.oskl,
    "OSKLRegressor": partial(sampling.oskl, loss="squared"),
    "SPAClassifier": partial(sampling.spa, alpha=1.0),
    "SPARegressor": partial(sampling.spa_regression, alpha=1.0),
    "SparseKLRClassifier": sampling.sparse_klr,
    "StoptronClassifier": perceptrons.stoptron,
    "StoptronRegressor": perceptrons.stoptron_regression,
    "TighterPerceptronClassifier": perceptrons.tighter_perceptron,
}
TASKS = [
    pytest.param(name, number, several, id=f"{name}-{number}-{'several' if several else 'one'}")
    for name in BOXES
    for number, params in enumerate(settings(name))
    if kernel_for(name, params) is KERNELS["uneven"]  # merging needs Gaussians: see test_merging
    for several in ([False, True] if takes_several(name) else [False])
]


def box_of(name, params, K, y, outputs):
    """The history of the box with an estimator's settings, in the words of the box."""
    box, options = BOXES[name], dict(params)
    known = inspect.signature(box).parameters
    if isinstance(options.get("loss"), Part):
        options |= worded(options["loss"])
    if "squared" not in known and options.pop("squared", False):
        options["tolerance"] **= 0.5  # the box compares distances only
    if schedule := options.pop("schedule", None):
        t = np.arange(1, len(K) + 1)
        options["eta"] /= t if schedule == "1/t" else np.sqrt(t)
    if "choose" in known:
        options["choose"] = Slots(SEED)
    if "uniforms" in known:
        draw = Random(SEED, "sampling")
        options["uniforms"] = np.array([draw.uniform() for _ in K])
    return box(K, y, **options, **({"outputs": outputs} if outputs > 1 else {}))


def worded(loss):
    """A loss as the boxes name it: {"loss": "huber", "delta": 0.3}."""
    word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(loss).__name__).lower()
    return {"loss": word} | {{"quantile": "q"}.get(k, k): value for k, value in loss.get_params(deep=False).items()}


@cache
def expected(name, number, kernel, several):
    """The stream of an estimator, and what the box makes of it with the estimator's settings of that number."""
    X, y = stream_for(ESTIMATORS[name], several=several)
    K = KERNELS[kernel](X)
    F = box_of(name, settings(name)[number], K, y, outputs=4 if several else 1)
    means = averaged_scores(K, F, "live"), averaged_scores(K, F, "all")
    return X, y, Expected(scores(K, F), F[-1].copy(), averaged(F)[-1].copy(), *means)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("name", "number", "several"), TASKS)
def test_estimator_is_its_box(name, number, several, kernel, engine):
    model = build(name, **settings(name)[number], kernel=KERNELS[kernel], random_state=SEED, average=False)
    is_its_box(model, *expected(name, number, kernel, several), KERNELS[kernel])
    assert model._learned.engine.kind == engine


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("average", [True, "all"])
@pytest.mark.parametrize(("name", "number", "several"), TASKS)
def test_averaged_estimator_is_the_mean_of_its_box(name, number, several, average):
    model = build(name, **settings(name)[number], kernel=KERNELS["uneven"], random_state=SEED, average=average)
    is_the_mean_of_its_box(model, *expected(name, number, "uneven", several), KERNELS["uneven"])


# The settings do what they are for


def test_every_estimator_has_a_box_and_settings():
    modules = ("feature_maps", "merging", "pursuit")  # have tests of their own
    elsewhere = {name for name, cls in ESTIMATORS.items() if cls.__module__.endswith(modules)}
    assert set(BOXES) | elsewhere == set(ESTIMATORS)
    assert not set(BOXES) & elsewhere


@pytest.mark.parametrize("name", ESTIMATORS)
def test_settings_use_every_parameter(name):
    defaults = ESTIMATORS[name]().get_params(deep=False)
    for parameter in set(defaults) - {"kernel", "average", "random_state", "n_jobs", "maintenance"}:
        assert any(params.get(parameter, defaults[parameter]) != defaults[parameter] for params in settings(name))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_two_settings_give_the_same_scores(name):
    found = []
    for params in settings(name):
        model = build(name, **params, kernel=kernel_for(name, params), random_state=SEED)
        found.append(learn(model, *stream_for(model, 320)))
    for i in range(len(found)):
        for j in range(i):
            assert np.abs(found[i] - found[j]).max() > 1e-3, (settings(name)[i], settings(name)[j])


# Sample weights


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("name", "number", "several"), [task for task in TASKS if "Detector" not in task.id])
def test_weight_zero_leaves_the_row_out(name, number, several):
    X, y = stream_for(ESTIMATORS[name], several=several)
    weight = (np.random.default_rng(3).random(len(X)) < 0.7).astype(float)
    kept = weight > 0
    K = KERNELS["uneven"](X)
    F = box_of(name, settings(name)[number], K[np.ix_(kept, kept)], y[kept], outputs=4 if several else 1)
    before = F[np.cumsum(kept) - kept]  # the model each row meets, those left out too
    model = build(name, **settings(name)[number], kernel=KERNELS["uneven"], random_state=SEED, average=False)
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
    "PAClassifier-hard": ({"variant": "hard"}, pa_step("hard")),
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
