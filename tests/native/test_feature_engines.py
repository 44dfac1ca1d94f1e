"""Learners on features do the same on both engines, and go from one to the other."""

import numpy as np
import pytest
from feature_learners import BOTH, SEED, TASKS, estimator, native, same
from streams import ESTIMATORS, FORMS, binary, learn, multiclass, regression, scores_of

import onkel
from onkel.kernels import Cauchy, Gaussian, Laplacian

# Engines


def on_both(make, X, y):
    """Scores while learning and in the end, and the state, on both engines."""
    found = []
    for engine in BOTH:
        with onkel.use_engine(engine):
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
        with onkel.use_engine(here):
            model = ESTIMATORS[f"{algorithm}Regressor"](average=True, random_state=SEED)
            learn(model, X[:50], y[:50])
            model.save(tmp_path / "model")
        with onkel.use_engine(there):
            moved = onkel.load(tmp_path / "model")
        assert (model.engine_, moved.engine_) == (here, there)
        same(moved.predict(X), model.predict(X), tolerance)
        same(learn(moved, X[50:], y[50:]), learn(model, X[50:], y[50:]), tolerance)


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
