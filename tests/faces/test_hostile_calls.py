"""Calls in the wrong order, and calls that fail."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from refusals import every_estimator, refuses
from sklearn.exceptions import NotFittedError
from streams import ESTIMATORS, build, learn, stream_for

import onkel
from onkel.faces.classifier import Classifier
from onkel.faces.detector import Detector

# -- order of calls


@every_estimator
def test_predicting_before_learning(engine, name):
    X, _ = stream_for(ESTIMATORS[name], 5)
    model = build(name)
    calls = ["predict", "decision_function", "score_samples", "predict_proba"]
    for call in (getattr(model, c) for c in calls if hasattr(model, c)):
        with pytest.raises(NotFittedError):
            call(X)
    for attribute in ("support_vectors_", "dual_coef_", "coef_", "widths_", "n_support_", "t_", "kernel_"):
        with pytest.raises((NotFittedError, AttributeError)):
            getattr(model, attribute)
    for x in (X[0], {"a": 1.0}):
        if isinstance(model, Detector):
            assert model.score_one(x) == 0
        else:
            assert model.predict_one(x) == (None if isinstance(model, Classifier) else 0)
    if not isinstance(model, Detector):
        assert len(model.predict_many(pd.DataFrame(X))) in (0, 5)


@every_estimator
def test_fit_after_a_failed_fit(engine, name):
    X, y = stream_for(ESTIMATORS[name], 20)
    bad = X.copy()
    bad[1, 1] = np.nan
    model, fresh = build(name), build(name)
    for _ in range(2):
        with pytest.raises(ValueError, match="NaN"):
            model.fit(bad, y)
        model.fit(X, y)
    fresh.fit(X, y)
    np.testing.assert_array_equal(model.predict(X), fresh.predict(X))
    model.fit(np.hstack([X, X]), y)  # another width is another model
    assert model.n_features_in_ == 8


def test_concurrent_prediction_while_others_learn(engine):
    X, y = stream_for(ESTIMATORS["ForgetronClassifier"], 200)
    models = [build("ForgetronClassifier") for _ in range(4)]
    single = build("ForgetronClassifier")
    learn(single, X, y)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda m: learn(m, X, y), models))
        answers = list(pool.map(lambda _: single.decision_function(X), range(20)))
    for model in models:
        np.testing.assert_array_equal(model.decision_function(X), answers[0])
    assert all(np.array_equal(a, answers[0]) for a in answers)


def test_a_refused_first_call_leaves_the_model_as_new(engine):
    pd = pytest.importorskip("pandas")
    model = onkel.RBPClassifier()
    for refused in (
        lambda: model.partial_fit(pd.DataFrame({"a": [1.0, np.nan]}), [0, 1]),
        lambda: model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), [None, 1]),
        lambda: model.learn_one({"a": 1.0}, (1, 2)),
        lambda: model.learn_one({"a": "x"}, 1),
        lambda: model.learn_many(np.eye(2), [0, 1]),
    ):
        refuses([], refused)
        assert vars(model).keys() == vars(onkel.RBPClassifier()).keys()


def test_a_refused_frame_is_not_learned_in_part(engine):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    model = onkel.RBPClassifier().partial_fit(frame, [0, 1, 0], classes=[0, 1])
    refuses(["label 2"], model.learn_many, frame, [0, 1, 2])
    assert model.t_ == 3 and model.classes_.tolist() == [0, 1]


def test_probabilities_are_those_of_the_run(engine):
    X, y = stream_for(ESTIMATORS["OGDClassifier"], 20)
    hinge, logistic = onkel.OGDClassifier().fit(X, y), onkel.OGDClassifier(loss="logistic").fit(X, y)
    assert not hasattr(hinge.set_params(loss="logistic"), "predict_proba")
    assert hasattr(logistic.set_params(loss="hinge"), "predict_proba")


def test_who_has_probabilities_is_named():
    for call in ("predict_proba_one", "predict_proba_many"):
        with pytest.raises(NotImplementedError, match="KLRSGDClassifier or OGDClassifier"):
            getattr(onkel.PAClassifier(), call)({})
