"""Generated streams, and every estimator that learns from a stream, with the settings it declares.

The inputs are in generic position: no two rows, margins or kernel values are equal, so that no test depends
on how a tie is broken. `form` is "dense", "float32", "sparse" (CSR, most of it zeros) or "wide" (CSR with
more columns than the library stores densely).
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp

import onkel
from onkel.faces.classifier import Classifier
from onkel.faces.one_kernel import OneKernel
from onkel.faces.pool import Pool
from onkel.kernels import Gaussian, Polynomial

TESTS = Path(__file__).parent  # for the PYTHONPATH of other processes
ROUNDS = 200
COLUMNS = 4
CLASSES = 4
BUDGET = 15
FORMS = ["dense", "float32", "sparse", "wide"]
KERNELS = {
    "gaussian": Gaussian(1.0),
    "uneven": Gaussian(1.0) + 0.05 * Polynomial(2),
}  # k(x, x) is 1, or 1 to 4


def inputs(rounds=ROUNDS, seed=0, form="dense"):
    """Rows; those of the sparse forms hold zeros."""
    generator = np.random.default_rng(seed)
    X = 0.7 * generator.normal(size=(rounds, COLUMNS))
    if form == "dense":
        return X
    if form == "float32":
        return X.astype(np.float32)
    X[generator.random(X.shape) < 0.5] = 0
    X[:, 0] += np.linspace(0.05, 0.15, rounds)  # no row is all zeros, no two rows are equal
    more, share = {"sparse": (12, 0.1), "wide": (1500, 0.004)}[form]
    rest = 0.2 * generator.normal(size=(rounds, more)) * (generator.random((rounds, more)) < share)
    return sp.csr_array(np.hstack([X, rest]))


def signal(X, seed):
    """A noisy function of the rows."""
    x = (X.toarray() if sp.issparse(X) else X)[:, :3].astype(np.float64)
    noise = np.random.default_rng([seed, 1]).normal(size=len(x))
    return np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 1] + 0.3 * noise


def binary(rounds=ROUNDS, seed=0, form="dense"):
    """Labels -1.0 and +1.0."""
    X = inputs(rounds, seed, form)
    return X, np.where(signal(X, seed) > 0, 1.0, -1.0)


def multiclass(rounds=ROUNDS, seed=0, form="dense"):
    """Labels 0, 1, 2, 3, the first of them 0: where all scores are equal, that is no mistake."""
    X = inputs(rounds, seed, form)
    y = np.digitize(signal(X, seed), [-0.6, 0.0, 0.6])
    return X, (y - y[0]) % CLASSES


def regression(rounds=ROUNDS, seed=0, form="dense"):
    """Real targets of size one."""
    X = inputs(rounds, seed, form)
    return X, signal(X, seed)


STREAMS = {"binary": (binary, 1), "several": (multiclass, CLASSES), "regression": (regression, 1)}  # and outputs


def takes_several(name):
    """May there be more than two classes?"""
    return issubclass(ALL[name], Classifier) and not ALL[name].two_classes


def task_of(estimator):
    """The last word in the name of an estimator, class or object: "Classifier", "Regressor" or "Detector"."""
    name = (estimator if isinstance(estimator, type) else type(estimator)).__name__
    return next(task for task in ("Classifier", "Regressor", "Detector") if name.endswith(task))


def stream_for(estimator, rounds=ROUNDS, seed=0, form="dense", several=False):
    """(X, y) for an estimator, class or object; y is None for detectors, has four classes with `several`."""
    task = task_of(estimator)
    if task == "Detector":
        return inputs(rounds, seed, form), None
    if task == "Regressor":
        return regression(rounds, seed, form)
    return (multiclass if several else binary)(rounds, seed, form)


def learn(model, X, y=None, **options):
    """model.learn, for detectors (y is None) too; classifiers are told all classes, however few of them y shows."""
    if task_of(model) == "Classifier":
        options.setdefault("classes", [-1.0, 1.0] if y.dtype.kind == "f" else list(range(CLASSES)))
    return model.learn(X) if y is None else model.learn(X, y, **options)


def scores_of(model, X, **options):
    """f(x) for the rows of X: decision_function, predict or score_samples, by kind of estimator."""
    verb = {"Classifier": "decision_function", "Regressor": "predict", "Detector": "score_samples"}[task_of(model)]
    return getattr(model, verb)(X, **options)


ALL = {name: cls for name, cls in onkel.algorithms.estimators().items() if cls.__module__.startswith("onkel.")}
ESTIMATORS = {name: cls for name, cls in ALL.items() if cls.online and issubclass(cls, OneKernel)}
POOLS = {name: cls for name, cls in ALL.items() if issubclass(cls, Pool)}
EVERY = ESTIMATORS | POOLS


def settings(name):
    """The settings that an estimator declares: together they use every parameter it has."""
    return ALL[name].examples


def build(name, **params):
    """An estimator by name; without settings the first of its list, else exactly those given."""
    return ALL[name](**(params or settings(name)[0]))


def hypothesis_of(name, params=None):
    """What an estimator learns with one Gaussian kernel."""
    return ALL[name](**(settings(name)[0] if params is None else params)).parts(Gaussian(1.0))[0]


def on_features(name, params=None):
    """Are random features part of the model? They belong to names, and to one of the kernels that have a spectrum."""
    return bool(hypothesis_of(name, params).maps)


def kernel_for(name, params):
    """A kernel whose k(x, x) varies, where the model may have one."""
    hypothesis = hypothesis_of(name, params)
    strict = hypothesis.maps or any("gaussian" in part.needs for part in hypothesis.inner)
    return KERNELS["gaussian" if strict else "uneven"]


def names_for(name, columns=COLUMNS):
    """Names of columns under which a model is the one that learns from columns without names."""
    return list(range(columns)) if on_features(name) else [f"x{j}" for j in range(columns)]


CASES = [(name, params) for name in ESTIMATORS for params in settings(name)]
CASE_IDS = [f"{name}-{'-'.join(f'{k}={v}' for k, v in params.items())}" for name, params in CASES]
POOL_CASES = [(name, params) for name in POOLS for params in settings(name)]
POOL_CASE_IDS = [f"{name}-{i}" for name in POOLS for i in range(len(settings(name)))]
