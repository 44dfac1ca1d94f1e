"""Models of the estimators that are tested, and what is known of them."""

import numpy as np
import pytest
import streams
from streams import EVERY, FORMS, POOLS, on_features, settings, takes_several

from onkel.faces.classifier import Classifier
from onkel.faces.detector import Detector
from onkel.faces.regressor import Regressor
from onkel.kernels import Gaussian, Linear

AVERAGES = [False, True, "all"]
CASES = streams.CASES + streams.POOL_CASES
CLASSIFIERS = [name for name, cls in EVERY.items() if issubclass(cls, Classifier)]
SEVERAL = [name for name in EVERY if takes_several(name)]
BUDGETED = [name for name, cls in EVERY.items() if "budget" in cls().get_params(deep=False)]
BOUNDED = [name for name, cls in EVERY.items() if {"budget", "components"} & cls().get_params(deep=False).keys()]
ROUNDS = 60

IDS = streams.CASE_IDS + streams.POOL_CASE_IDS

every_estimator = pytest.mark.parametrize("name", EVERY)
every_case = pytest.mark.parametrize(("name", "params"), CASES, ids=IDS)
# with two classes, and with several; others have one kind of stream
every_task = pytest.mark.parametrize(
    ("name", "params", "several"),
    [
        pytest.param(name, params, several, id=f"{case}-several" if several else case)
        for case, (name, params) in zip(IDS, CASES, strict=True)
        for several in ([False, True] if takes_several(name) else [False])
    ],
)
every_form = pytest.mark.parametrize("form", FORMS)


def make(name, params=None, **more):
    """An estimator; of a pool, two kernels like the one asked for, and no average."""
    if name in POOLS:
        more.pop("average", None)
        if "kernel" in more:
            more["kernels"] = (Gaussian(0.3), more.pop("kernel"))
    return EVERY[name](**{**(settings(name)[0] if params is None else params), **more})


def most_terms(model):
    """The number of terms a model may have; in pools of landmarks each kernel has its budget."""
    each = len(model.kernels) if is_pool(model) and hasattr(model, "rank") else 1
    return np.inf if model.budget is None else model.budget * each


def is_pool(model):
    return type(model).__name__ in POOLS


def part(y, where):
    return None if y is None else y[where]


def declared(model, y):
    return {"classes": np.unique(y)} if isinstance(model, Classifier) else {}


def step(model, x, y):
    """learn_one, for detectors (no y) too."""
    model.learn_one(x) if y is None else model.learn_one(x, y)


def arrays_of(model):
    return {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in model.state()[0].items()}


def snapshot(model):
    """All that is known about a model, comparable bit by bit."""
    names = ("classes_", "n_features_in_", "feature_names_in_")
    public = {name: repr(getattr(model, name)) for name in names if hasattr(model, name)}
    return arrays_of(model), model.state()[1], public


def assert_same(a, b):
    one, two = a.state()[0], b.state()[0]
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name, strict=True)
    assert a.state()[1]["run"] == b.state()[1]["run"]


def has_terms(model):
    return "basis.coef" in model.state()[0]


def learned(model):
    """What is known of the function: terms and their coefficients, weights of features, or both."""
    found = [model.support_vectors_, model.dual_coef_] if has_terms(model) else []
    found += [model.weights_, model.sizes_] if is_pool(model) else []
    return [*found, model.coef_] if "weights.coef" in model.state()[0] else found


def unbounded(name):
    """A kernel under which rows may be too large, so that they are refused; random features have a bound themselves."""
    return Gaussian(1.0) if on_features(name) else Linear()


def scores_of(model, X):
    """What the model's predictions are made of."""
    face = {Classifier: "decision_function", Regressor: "predict", Detector: "score_samples"}
    return next(getattr(model, name)(X) for kind, name in face.items() if isinstance(model, kind))


def cuts(n, seed=0):
    points = np.sort(np.random.default_rng(seed).integers(0, n, 12))
    return [slice(a, b) for a, b in zip([0, *points], [*points, n], strict=True) if b > a]
