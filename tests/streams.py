"""Generated streams, and every estimator that learns from a stream, with the settings worth testing.

The inputs are in generic position: no two rows, margins or kernel values are equal, so that no test depends
on how a tie is broken. `form` is "dense", "float32", "sparse" (CSR, most of it zeros) or "wide" (CSR with
more columns than the library stores densely).
"""

import numpy as np
import scipy.sparse as sp

import onkel
from onkel.estimator import OneKernel
from onkel.faces import ClassifierFace
from onkel.hypothesis import Dual, Features
from onkel.kernels import Cauchy, Gaussian, Polynomial
from onkel.losses import Huber, Quantile, Squared
from onkel.pool import Pool

ROUNDS = 320
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
    X[:, 0] += 0.1  # no row is all zeros, no two rows are equal
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
    return issubclass(EVERY[name], ClassifierFace) and not EVERY[name].two_classes


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


ESTIMATORS = {
    name: cls for name, cls in onkel.algorithms.estimators().items() if cls.online and issubclass(cls, OneKernel)
}
POOLS = {name: cls for name, cls in onkel.algorithms.estimators().items() if issubclass(cls, Pool)}
EVERY = ESTIMATORS | POOLS
PYTHON_ONLY = {name for name in POOLS if name.startswith(("AdaRaker", "OM2", "ProximalMKL"))}  # no twin in C++

_BUDGET = {"budget": BUDGET}
_STEP = {"eta": 0.3, "epsilon": 0.2}
_LOSSES = [{"eta": 0.1, "loss": loss} for loss in ("hinge", "squared_hinge", "logistic", "exponential")]
_RESIDUAL_LOSSES = [
    {"eta": 0.3, "loss": loss} for loss in ("squared", "absolute", "epsilon_insensitive", "huber", "quantile")
]
_SCHEDULES = [{"eta": 0.8, "schedule": schedule} for schedule in ("1/t", "1/sqrt(t)")]
_PA = [{"variant": "hard"}, {"variant": "I", "C": 0.4}, {"variant": "II", "C": 0.4}]
_DUAL = {"budget": BUDGET, "merge": 4, "components": 20, "lam": 0.05}
_FOGD = {"components": 20, "eta": 0.5}
_NOGD = {"budget": BUDGET, "rank": 6, "eta": 0.3}
_RRF = {"components": 20, "eta": 0.3, "eta_kernel": 0.02}
_BOGD = {"budget": BUDGET, "eta": 0.3, "lam": 0.01}
_TVM = {"budget": BUDGET, "C": 10.0, "admit": 1.05, "drop": 1.1, "precision": 1e-11}
_BDUOL = {"budget": BUDGET, "C": 0.4}
_FSGD = {"eta": 0.3, "lam": 0.1}
_POLK = [
    {**_FSGD, "error": 0.1},
    {**_FSGD, "error": 0.1, "compression": "multiple"},
    {**_FSGD, "error": 0.1, "compression": "multiple", "put_back": "largest"},
    {**_FSGD, "compression": "dissimilarity", "threshold": 4.0},
    {**_FSGD, "schedule": "1/sqrt(t)"},
    {"eta": 0.3, "lam": 0.0, "schedule": "1/t", "error": 20.0},
]

# Estimator -> settings that together use every option it has.
SETTINGS = {
    "BDUOLClassifier": [
        *({**_BDUOL, "maintenance": m} for m in ("remove", "nearest", "approximate")),
        *({**_BDUOL, "maintenance": m, "cheap": True} for m in ("nearest", "approximate")),
        {**_BDUOL, "rho": 0.2, "maintenance": "project", "cheap": True},
        {**_BDUOL, "budget": 6, "maintenance": "project"},
    ],
    "BOGDClassifier": [
        _BOGD,
        {**_BOGD, "cap": 1.5},
        {**_BOGD, "unbiased": False},
        {**_BOGD, "removal": "fifo"},
        {**_BOGD, "removal": "fifo", "unbiased": False},
        {**_BOGD, "loss": "logistic"},
    ],
    "BOGDPlusPlusClassifier": [_BOGD, {**_BOGD, "cap": 1.5}, {**_BOGD, "loss": "logistic"}],
    "BOGDPlusPlusRegressor": [
        {**_BOGD, "cap": 1.0},
        {**_BOGD, "cap": None, "epsilon": 0.3, "loss": "epsilon_insensitive"},
    ],
    "BOGDRegressor": [
        _BOGD,
        {**_BOGD, "epsilon": 0.3, "lam": 0.1},
        {**_BOGD, "removal": "uniform", "unbiased": True, "cap": 1.0},
        {**_BOGD, "loss": "absolute"},
    ],
    "BPAClassifier": [{**_BUDGET, "C": 0.4, "variant": v} for v in ("simple", "nearest", "projecting", "plain")],
    "BSGDClassifier": [
        *({**_BUDGET, "lam": 0.05, "removal": r} for r in ("smallest", "random", "oldest")),
        {**_BUDGET, "lam": 0.05, "maintenance": "project"},
        {**_BUDGET, "lam": 0.05, "maintenance": "merge"},
        {**_BUDGET, "lam": 0.1, "maintenance": "merge", "search": "table"},
    ],
    "BudgetPerceptronClassifier": [
        _BUDGET,
        {**_BUDGET, "beta": 0.3},
        {**_BUDGET, "variant": "distil"},
        {**_BUDGET, "variant": "distil", "beta": 0.3},
    ],
    "DUOLClassifier": [{"C": 0.4}, {"C": 2.0, "rho": 0.2}],
    "DualSGDClassifier": [
        _DUAL,
        {**_DUAL, "loss": "logistic"},
        {**_DUAL, "maintenance": "remove"},
        {**_DUAL, "insert_always": True},
        {**_DUAL, "budget": 0},
    ],
    "DualSGDRegressor": [
        {**_DUAL, "lam": 0.5},
        {**_DUAL, "lam": 0.5, "loss": "squared", "epsilon": 0.2, "insert_always": True},
    ],
    "FOGDClassifier": [
        _FOGD,
        {"components": 20},
        {"components": 20, "eta_unscaled": 0.02, "schedule": "1/sqrt(t)"},
        {**_FOGD, "loss": "logistic", "schedule": "1/t"},
        {**_FOGD, "schedule": "adagrad"},
        {**_FOGD, "map": "orthogonal"},
        {**_FOGD, "map": "sorf"},
        {**_FOGD, "map": "fastfood"},
    ],
    "FOGDRegressor": [
        {**_FOGD, "epsilon": 0.2},
        {"components": 20},
        {**_FOGD, "loss": "absolute", "schedule": "adagrad"},
        {"components": 20, "eta_unscaled": 0.02, "loss": "huber", "map": "fastfood"},
    ],
    "FSGDClassifier": [_FSGD, {**_FSGD, "loss": "logistic"}, {"eta": 0.8, "schedule": "1/sqrt(t)"}],
    "FSGDRegressor": [_FSGD, {**_FSGD, "loss": "epsilon_insensitive"}, {"eta": 0.8, "schedule": "1/t"}],
    "ForgetronClassifier": [_BUDGET, {**_BUDGET, "legacy_root": True}, {**_BUDGET, "variant": "basic"}],
    "ForgetronRegressor": [
        {**_BUDGET, "eta": 0.8, "epsilon": 0.2},
        {**_BUDGET, "eta": 0.8, "epsilon": 0.2, "legacy_root": True},
        {**_BUDGET, **_STEP, "variant": "basic"},
    ],
    "ILKClassifier": [{"eta": 0.3, "lam": 0.1}, {"eta": 2.0, "lam": 0.0}],
    "IncDecClassifier": [
        {**_FSGD, "insert_error": 0.1, "remove_error": 0.05},
        {**_FSGD, "insert_error": 0.05, "remove_error": 0.1, "loss": "logistic"},
    ],
    "IncDecRegressor": [
        {**_FSGD, "insert_error": 0.2, "remove_error": 0.05},
        {**_FSGD, "insert_error": 0.05, "remove_error": 0.2, "loss": "huber"},
    ],
    "KLMSRegressor": [{"eta": 0.15}],
    "KLRSGDClassifier": [{"eta": 0.5}, {"eta": 0.5, "R": 2.0}],
    "KNLMSRegressor": [
        {"eta": 0.3},
        {"eta": 0.3, "coherence": 0.2, "ridge": 0.1},
    ],
    "KRLSRegressor": [{"nu": 0.1, **_BUDGET}, {"nu": 0.1}, {"nu": 0.5}],
    "KernelPerceptronClassifier": [{}, {"strict_sign_update": True}],
    "KernelPerceptronRegressor": [_STEP],
    "NORMAClassifier": [
        {"eta": 0.3, "lam": 0.1},
        {"eta": 0.3, "lam": 0.1, "rho": 0.5, "nu": 0.4},
        {"eta": 0.3, "lam": 0.1, "rho": 0.5, "truncation": 20},
        {"eta": 0.3, "lam": 0.1, "nu": 0.4, "truncation": 20},
        {"eta": 0.3, "lam": 0.1, "loss": "logistic"},
    ],
    "NORMADetector": [
        {"eta": 0.3, "lam": 0.1, "nu": 0.4},
        {"eta": 0.3, "lam": 0.1, "nu": 0.4, "truncation": 20},
    ],
    "NORMARegressor": [
        {"eta": 0.15, "lam": 0.1},
        {"eta": 0.15, "lam": 0.1, "epsilon": 0.3, "nu": 0.4},
        {"eta": 0.15, "lam": 0.1, "epsilon": 0.3, "nu": 0.9, "clamp": True},
        {"eta": 0.15, "lam": 0.1, "truncation": 20},
        {"eta": 0.15, "lam": 0.1, "nu": 0.4, "truncation": 20},
        {"eta": 0.15, "lam": 0.1, "loss": "squared"},
    ],
    "NOGDClassifier": [
        _NOGD,
        {**_NOGD, "switch": "eager"},
        {**_NOGD, "rank": BUDGET, "eta": 0.1},
        {**_NOGD, "rank": None, "loss": "logistic"},
    ],
    "NOGDRegressor": [_NOGD, {**_NOGD, "epsilon": 0.2, "switch": "eager", "loss": "epsilon_insensitive"}],
    "OGDClassifier": [*_LOSSES, *_SCHEDULES],
    "OGDRegressor": [
        *_RESIDUAL_LOSSES,
        {"eta": 0.3, "loss": Huber(0.3)},
        {"eta": 0.3, "loss": Quantile(0.7)},
        {"eta": 0.3, "epsilon": 0.4},
        *_SCHEDULES,
    ],
    "OSKLClassifier": [
        {"eta": 0.3, "G": 1.5},
        {"eta": 0.4, "G": 1.5, "R": 2.0},
        {"eta": 0.02, "G": 30.0, "loss": "exponential"},
    ],
    "OSKLRegressor": [
        {"eta": 0.15, "G": 6.0, "epsilon": 0.2},
        {"eta": 0.1, "G": 6.0, "R": 2.0, "loss": Squared(0.2)},
    ],
    "PAClassifier": _PA,
    "PARegressor": [*_PA, {"variant": "I", "C": 0.4, "epsilon": 0.3}],
    "POLKClassifier": [*_POLK, {**_FSGD, "loss": "logistic"}],
    "POLKRegressor": [*_POLK, {**_FSGD, "loss": "absolute"}],
    "PegasosClassifier": [{"lam": 0.05}, {"lam": 0.05, "project": True}],
    "ProjectronClassifier": [
        _BUDGET,
        {"tolerance": 0.6},
        {"tolerance": 0.4, "squared": True},
        {**_BUDGET, "tolerance": 0.5, "strict_sign_update": True},
    ],
    "ProjectronPlusPlusClassifier": [
        _BUDGET,
        {**_BUDGET, "U": 0.2},
        {"budget": None, "tolerance": 0.6, "rule": "jmlr"},
        {"budget": 40, "tolerance": 0.4, "squared": True, "strict_sign_update": True},
    ],
    "ProjectronRegressor": [
        {**_BUDGET, **_STEP},
        {**_STEP, "tolerance": 0.6},
        {**_STEP, "budget": 40, "tolerance": 0.2, "squared": True},
    ],
    "PlattRANRegressor": [
        {"eta": 0.3},
        {"eta": 0.05, "distance": 0.8, "surprise": 0.3, "rejected": "lms"},
    ],
    "QKLMSRegressor": [{"eta": 0.3}, {"eta": 0.1, "radius": 0.8}],
    "RBPClassifier": [_BUDGET, {**_BUDGET, "strict_sign_update": True}],
    "RBPRegressor": [{**_BUDGET, **_STEP}],
    "RRFClassifier": [
        _RRF,
        {**_RRF, "loss": "logistic", "lam": 0.1},
        {**_RRF, "eta_kernel": 0.0},
        {**_RRF, "eta_kernel": 0.5, "clip": 0.6},
    ],
    "RRFRegressor": [
        _RRF,
        {**_RRF, "loss": "absolute", "lam": 0.1, "clip": 0.6},
        {**_RRF, "loss": "epsilon_insensitive", "epsilon": 0.2},
    ],
    "SPAClassifier": [{"eta": 0.3, "beta": 2.0}, {"eta": 1.0, "alpha": 0.5, "beta": 0.5}],
    "SPARegressor": [{"eta": 0.3, "alpha": 0.8, "beta": 2.0, "epsilon": 0.2}],
    "SparseKLRClassifier": [
        {"eta": 0.6},
        {"eta": 0.6, "R": 2.0},
        {"eta": 0.6, "variant": "auxiliary", "c": 1.5},
        {"eta": 0.6, "variant": "tight"},
    ],
    "StoptronClassifier": [_BUDGET, {**_BUDGET, "strict_sign_update": True}],
    "StoptronRegressor": [{**_BUDGET, **_STEP}],
    "SubsetSelectionClassifier": [
        {**_FSGD, "error": 0.1},
        {**_FSGD, "error": 0.1, "candidates": 9, "loss": "logistic"},
    ],
    "SubsetSelectionRegressor": [
        {**_FSGD, "error": 0.2},
        {**_FSGD, "error": 0.2, "candidates": 9, "loss": "absolute"},
    ],
    "TVMClassifier": [{**_BUDGET, "C": 2.0}, _TVM, {**_TVM, "bias": False}, {**_TVM, "C": 30.0, "by_margin": True}],
    "TighterPerceptronClassifier": [
        _BUDGET,
        {**_BUDGET, "beta": 0.3},
        {**_BUDGET, "recent": 0},
        {**_BUDGET, "recent": 40},
    ],
}


# Pools: three kernels, so that votes have no ties; the first of OMKC's is on a budget.
_WIDTHS = {"kernels": (Gaussian(0.2), Gaussian(1.0), Gaussian(3.0))}
_MIXED = {"kernels": (Gaussian(0.2), Gaussian(1.0), Polynomial(2, 0.5)), "discount": 0.7}
_GROUPS = {"kernels": (Gaussian(0.3), "gaussian", Polynomial(2, 0.0), Cauchy(0.5), 0.01 * Gaussian(2.0)), "eta": 0.2}
POOL_SETTINGS = {
    "AdaRakerClassifier": [{**_WIDTHS, **_FOGD, "lam": 0.1}, {**_WIDTHS, "eta_weights": 2.0, "loss": "hinge"}],
    "AdaRakerRegressor": [{**_WIDTHS, **_FOGD, "lam": 0.1}, {**_WIDTHS, "shared_draws": True, "loss": "huber"}],
    "FOGDOMKLClassifier": [
        {**_WIDTHS, **_FOGD, "discount": 0.7},
        {**_WIDTHS, **_FOGD, "shared_draws": True, "combination": "scores", "loss": "logistic"},
    ],
    "FOGDOMKLRegressor": [{**_WIDTHS, **_FOGD}, {**_WIDTHS, **_FOGD, "shared_draws": True, "loss": "absolute"}],
    "NOGDOMKLClassifier": [{**_MIXED, **_NOGD}, {**_WIDTHS, **_NOGD, "switch": "eager", "combination": "scores"}],
    "NOGDOMKLRegressor": [{**_WIDTHS, **_NOGD}],
    "OM2Classifier": [{"kernels": _GROUPS["kernels"]}, {"kernels": _GROUPS["kernels"], "normalize": True}],
    "OMKCClassifier": [
        {**_MIXED, "component": "rbp", "budget": BUDGET},
        {**_MIXED, "mode": "U"},
        {**_MIXED, "component": "pa", "mode": "SS", "divide": False},
        {**_MIXED, "component": "bogd", "mode": "SD", "budget": BUDGET},
        {**_MIXED, "component": "forgetron", "mode": "DD", "budget": BUDGET, "shared": True},
        {**_MIXED, "component": "bpa", "mode": "DS", "budget": BUDGET, "single": True, "combination": "scores"},
        {**_MIXED, "component": onkel.NORMAClassifier(eta=0.3, nu=0.4, truncation=5), "strict_discount": True},
    ],
    "OMKCRegressor": [
        {**_WIDTHS, "component": "rbp", "budget": BUDGET},
        {**_WIDTHS, "component": "pa", "mode": "SD", "smoothing": 0.1},
        {**_WIDTHS, "component": "bogd", "mode": "SD", "budget": BUDGET},
    ],
    "ProximalMKLClassifier": [
        {**_GROUPS, "lam": 5.0},
        {**_GROUPS, "lam": 0.2, "penalty": "group", "normalize": True, "loss": "logistic"},
    ],
    "ProximalMKLRegressor": [{**_GROUPS, "lam": 5.0}, {**_GROUPS, "lam": 0.6, "penalty": "group", "loss": "absolute"}],
    "RakerClassifier": [{**_WIDTHS, **_FOGD, "lam": 0.1}],
    "RakerRegressor": [{**_WIDTHS, **_FOGD, "lam": 0.1}, {**_WIDTHS, **_FOGD, "shared_draws": True}],
    "SPAOMKLClassifier": [{**_MIXED, "beta": 2.0}, {**_MIXED, "eta": 1.0, "divide": False, "combination": "scores"}],
    "SPAOMKLRegressor": [{**_WIDTHS, "beta": 2.0}],
}


def settings(name):
    """The settings of an estimator; of one not listed, its defaults on a small budget or with few kernels."""
    listed = SETTINGS | POOL_SETTINGS
    if name in listed:
        return listed[name]
    fields = EVERY[name]().get_params(deep=False)
    return [({"budget": BUDGET} if "budget" in fields else {}) | (_WIDTHS if "kernels" in fields else {})]


def build(name, **params):
    """An estimator by name; without settings the first of its list, else exactly those given."""
    return EVERY[name](**(params or settings(name)[0]))


def on_features(name, params=None):
    """Are random features part of the model? They belong to names, and to one of the kernels that have a spectrum."""
    recipe = EVERY[name](**(settings(name)[0] if params is None else params))
    return hasattr(recipe, "parts") and isinstance(recipe.parts(Gaussian(1.0))[0], (Features, Dual))


def kernel_for(name, params):
    """A kernel whose k(x, x) varies, where the model may have one."""
    gaussian = on_features(name, params) or params.get("maintenance") == "merge"
    return KERNELS["gaussian" if gaussian else "uneven"]


def names_for(name, columns=COLUMNS):
    """Names of columns under which a model is the one that learns from columns without names."""
    return list(range(columns)) if on_features(name) else [f"x{j}" for j in range(columns)]


CASES = [(name, params) for name in ESTIMATORS for params in settings(name)]
CASE_IDS = [f"{name}-{'-'.join(f'{k}={v}' for k, v in params.items())}" for name, params in CASES]
POOL_CASES = [(name, params) for name in POOLS for params in settings(name)]
POOL_CASE_IDS = [f"{name}-{i}" for name in POOLS for i in range(len(settings(name)))]
