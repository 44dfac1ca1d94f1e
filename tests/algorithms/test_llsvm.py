"""LLSVM is a linear machine on its features, and a model like others."""

import copy
import pickle

import numpy as np
import pytest
from boxes.feature_maps import (
    llsvm_features,
)
from feature_learners import SEED, TASKS, dense, estimator, same
from sklearn.svm import LinearSVC, LinearSVR
from streams import ESTIMATORS, FORMS, binary, multiclass, regression, scores_of

import onkel
from onkel.kernels import Gaussian

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
