"""Test-then-train runs against naive loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from scripted import NearestMean, ScriptedClassifier, ScriptedRegressor
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import hinge_loss, log_loss, mean_absolute_error, roc_auc_score

import onkel
from onkel import datasets
from onkel.evaluation.prequential import evaluate
from onkel.evaluation.protocols import protocol
from onkel.evaluation.totals import trivial
from onkel.evaluation.traces import Trace


def naive_mistakes(model: Any, X: Any, y: Any) -> list[int]:
    """Cumulative mistakes, one example at a time, in plain Python."""
    classes, wrong, curve = sorted(set(y.tolist())), 0, []
    for i in range(len(y)):
        score = np.asarray(model.learn(X[i : i + 1], y[i : i + 1], classes=classes))[0]
        if np.ndim(score) == 0:
            guess = classes[1] if score >= 0 else classes[0]
        else:
            guess = classes[max(range(len(classes)), key=lambda k: (score[k], -k))]
        wrong += guess != y[i]
        curve.append(wrong)
    return curve


@pytest.mark.parametrize("name", ["digits", "breast_cancer"])
def test_mistakes_are_those_of_a_naive_loop(name: str) -> None:
    stream = datasets.load(name)
    X, y = stream.X[:300], stream.y[:300]
    trace = evaluate(NearestMean(), X, y, checkpoints=range(1, 301))
    assert trace.mistakes.tolist() == naive_mistakes(NearestMean(), X, y)
    assert 0 < trace.mistakes[-1] < 150


@pytest.mark.parametrize("checkpoints", [1, 2, 7, 300, [5, 9, 120]])
def test_checkpoints_do_not_change_what_is_learned(checkpoints: Any) -> None:
    stream = datasets.load("digits")
    X, y = stream.X[:300], stream.y[:300]
    every = evaluate(NearestMean(), X, y, checkpoints=300)
    trace = evaluate(NearestMean(), X, y, checkpoints=checkpoints)
    np.testing.assert_array_equal(trace.total, every.total[trace.seen - 1])


def test_regression_totals_do_not_depend_on_checkpoints_to_the_last_bit() -> None:
    random = np.random.default_rng(0)
    X, y, scores = np.zeros((1000, 1)), random.normal(size=1000), random.normal(size=1000)
    totals = {float(evaluate(ScriptedRegressor(scores), X, y, checkpoints=k).total[-1]) for k in (1, 3, 17, 1000)}
    assert len(totals) == 1


def test_score_zero_predicts_the_second_class() -> None:
    y = np.array(["a", "b", "b", "a"])
    trace = evaluate(ScriptedClassifier([0, 0, -0.5, -0.5]), np.zeros((4, 1)), y, checkpoints=4)
    assert trace.mistakes.tolist() == [1, 1, 2, 2]
    np.testing.assert_array_equal(trace.error, [1, 0.5, 2 / 3, 0.5])


def test_ties_between_several_classes_go_to_the_first() -> None:
    scores = [[0, 0, 0], [0, 2, 2], [1, 0, 3]]
    trace = evaluate(ScriptedClassifier(scores), np.zeros((3, 1)), np.array([5, 7, 9]), checkpoints=3)
    assert trace.mistakes.tolist() == [0, 0, 0]
    trace = evaluate(ScriptedClassifier(scores), np.zeros((3, 1)), np.array([9, 9, 5]), classes=[5, 7, 9])
    assert trace.mistakes[-1] == 3


def test_declared_classes_reach_the_learner_before_the_first_example() -> None:
    model = ScriptedClassifier(np.zeros((2, 3)))
    evaluate(model, np.zeros((2, 1)), np.array([1, 1]), classes=[3, 1, 2])
    assert model.classes_.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"two classes or more, got \[1\]; declare them"):
        evaluate(ScriptedClassifier([0, 0]), np.zeros((2, 1)), np.array([1, 1]))


def test_regression_curves() -> None:
    y = np.array([1, 2, 3])
    trace = evaluate(ScriptedRegressor([0.0, 0.0, 3.5]), np.zeros((3, 1)), y, checkpoints=3)
    np.testing.assert_allclose(trace.mse, [1, 2.5, 5.25 / 3])
    np.testing.assert_allclose(trace.rmse, np.sqrt([1, 2.5, 1.75]))
    np.testing.assert_array_equal(trace.error, trace.rmse)
    with pytest.raises(AttributeError, match="no mistakes"):
        _ = trace.mistakes


def test_classification_has_no_squared_error() -> None:
    trace = evaluate(ScriptedClassifier([0.0, 0.0]), np.zeros((2, 1)), np.array([0, 1]))
    with pytest.raises(AttributeError, match="no squared error"):
        _ = trace.rmse


def test_size_and_seconds_at_checkpoints() -> None:
    model = ScriptedRegressor(np.zeros(10))
    trace = evaluate(model, np.zeros((10, 1)), np.ones(10), checkpoints=[2, 5])
    assert trace.seen.tolist() == [2, 5, 10]
    assert trace.size is not None and trace.size.tolist() == [4, 10, 20]
    assert (np.diff(trace.seconds) > 0).all()
    assert trace.microseconds == pytest.approx(1e6 * trace.seconds[-1] / 10)


def test_checkpoints_are_spread_evenly() -> None:
    trace = evaluate(ScriptedRegressor(np.zeros(100)), np.zeros((100, 1)), np.ones(100), checkpoints=4)
    assert trace.seen.tolist() == [25, 50, 75, 100]
    trace = evaluate(ScriptedRegressor(np.zeros(3)), np.zeros((3, 1)), np.ones(3), checkpoints=50)
    assert trace.seen.tolist() == [1, 2, 3]


@pytest.mark.parametrize("checkpoints", [0, -1, [0, 2], [5]])
def test_senseless_checkpoints_are_refused(checkpoints: Any) -> None:
    with pytest.raises(ValueError, match="checkpoints must"):
        evaluate(ScriptedRegressor(np.zeros(3)), np.zeros((3, 1)), np.ones(3), checkpoints=checkpoints)


def test_an_empty_stream_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        evaluate(ScriptedRegressor(), np.zeros((0, 1)), np.zeros(0))


def test_progress_sees_the_trace_grow() -> None:
    grown: list[Trace] = []
    trace = evaluate(ScriptedRegressor(np.zeros(9)), np.zeros((9, 1)), np.ones(9), checkpoints=3, progress=grown.append)
    assert [part.seen.tolist() for part in grown] == [[3], [3, 6], [3, 6, 9]]
    np.testing.assert_array_equal(grown[-1].total, trace.total)


@pytest.mark.parametrize("kind", [ScriptedRegressor, ScriptedClassifier])
def test_a_learner_that_diverges_has_infinite_error_from_then_on(kind: Callable[..., Any]) -> None:
    model = kind(np.zeros(10), diverges_at=5)
    trace = evaluate(model, np.zeros((10, 1)), np.arange(10) % 2, checkpoints=5)
    assert trace.error.tolist()[:2] == [trace.error[0], trace.error[1]]
    assert np.isfinite(trace.error).tolist() == [True, True, False, False, False]
    assert model.t_ == 6  # it is not asked again
    assert trace.microseconds == pytest.approx(1e6 * trace.seconds[-1] / 6)


def test_a_prediction_that_is_not_finite_counts_as_divergence() -> None:
    trace = evaluate(ScriptedRegressor([1.0, 1e200, np.nan]), np.zeros((3, 1)), np.ones(3), checkpoints=3)
    assert trace.error.tolist() == [0.0, math.inf, math.inf]
    trace = evaluate(ScriptedClassifier([1.0, 1.0]), np.zeros((2, 1)), np.array([0, 1]))
    assert trace.mistakes.tolist() == [1, 1]
    with pytest.raises(FloatingPointError, match="diverged"):
        _ = evaluate(ScriptedClassifier([1.0], 0), np.zeros((1, 1)), np.array([0]), classes=[0, 1]).mistakes


# -- other libraries


def test_scikit_learn_classifier_example_by_example() -> None:
    stream = datasets.load("breast_cancer")
    X, y = stream.X[:150], stream.y[:150]
    trace = evaluate(SGDClassifier(random_state=0), X, y, checkpoints=3)
    model, wrong = (
        SGDClassifier(random_state=0),
        int(y[0] != "malignant"),
    )  # knowing nothing it says classes[1]
    model.partial_fit(X[:1], y[:1], classes=["benign", "malignant"])
    for i in range(1, 150):
        wrong += int(model.predict(X[i : i + 1])[0] != y[i])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert trace.mistakes[-1] == wrong
    assert trace.size is None


def test_scikit_learn_regressor_starts_from_zero() -> None:
    stream = datasets.load("diabetes")
    trace = evaluate(SGDRegressor(), stream.X[:1], stream.y[:1])
    assert trace.mse[-1] == pytest.approx(stream.y[0] ** 2)


@pytest.mark.parametrize("sparse", [False, True])
def test_river_classifier(sparse: bool) -> None:
    river = pytest.importorskip("river.linear_model")
    stream = datasets.load("breast_cancer")
    X, y = np.maximum(stream.X[:120], 0), stream.y[:120] == "malignant"
    rows = scipy.sparse.csr_matrix(X) if sparse else X
    trace = evaluate(river.LogisticRegression(), rows, y, task="classification", checkpoints=2)
    model, wrong = river.LogisticRegression(), 0
    for x, label in zip(X, y.tolist(), strict=True):
        features = {j: float(v) for j, v in enumerate(x) if v or not sparse}
        wrong += model.predict_one(features) != label
        model.learn_one(features, label)
    assert trace.mistakes[-1] == wrong
    assert 0 < wrong < 60


def test_river_without_an_answer_says_what_score_zero_says() -> None:
    tree = pytest.importorskip("river.tree")
    trace = evaluate(
        tree.HoeffdingTreeClassifier(),
        np.zeros((1, 1)),
        np.array(["b"]),
        classes=["a", "b"],
        task="classification",
    )
    assert trace.mistakes[-1] == 0


def test_models_that_cannot_be_asked_are_refused() -> None:
    with pytest.raises(TypeError, match="object has none of learn, partial_fit"):
        evaluate(object(), np.zeros((1, 1)), np.ones(1), task="regression")
    with pytest.raises(ValueError, match="does not say its task"):
        evaluate(object(), np.zeros((1, 1)), np.ones(1))


# -- windows, delays, further measures, held-out examples


def test_windows_are_what_the_totals_grew_by() -> None:
    y = np.array(["a", "b", "b", "a"])
    trace = evaluate(ScriptedClassifier([0, 0, -0.5, -0.5]), np.zeros((4, 1)), y, checkpoints=[1, 3])
    np.testing.assert_array_equal(trace.windowed, [1, 0.5, 0])
    trace = evaluate(ScriptedRegressor([0.0, 0.0, 3.5]), np.zeros((3, 1)), np.array([1, 2, 3]), checkpoints=[2])
    np.testing.assert_allclose(trace.windowed, [np.sqrt(2.5), 0.5])
    lost = evaluate(ScriptedRegressor(np.zeros(4), diverges_at=2), np.zeros((4, 1)), np.ones(4), checkpoints=4)
    np.testing.assert_array_equal(lost.windowed, [1, 1, np.inf, np.inf])


def delayed_mistakes(predict: Callable[[int], Any], learn: Callable[[int], Any], y: Any, delay: int) -> int:
    """A queue of labels that are still out, in plain Python."""
    wrong, out = 0, []
    for i in range(len(y)):
        wrong += predict(i) != y[i]
        out.append(i)
        if len(out) > delay:
            learn(out.pop(0))
    for i in out:
        learn(i)
    return wrong


@pytest.mark.parametrize("delay", [0, 1, 7, 500])
@pytest.mark.parametrize("checkpoints", [1, 13])
def test_labels_that_arrive_late(delay: int, checkpoints: int) -> None:
    stream = datasets.load("breast_cancer")
    X, y = stream.X[:120], stream.y[:120]
    model, naive = onkel.PAClassifier(), onkel.PAClassifier()
    trace = evaluate(model, X, y, delay=delay, checkpoints=checkpoints)

    def predict(i: int) -> Any:
        return naive.predict(X[i : i + 1])[0] if hasattr(naive, "classes_") else "malignant"  # the second class

    def learn(i: int) -> None:
        naive.learn(X[i : i + 1], y[i : i + 1], classes=np.unique(y))

    assert trace.mistakes[-1] == delayed_mistakes(predict, learn, y, delay)
    assert trace.size is not None
    assert model.t_ == naive.t_ == 120
    np.testing.assert_array_equal(model.dual_coef_, naive.dual_coef_)


def test_late_labels_for_scikit_learn_and_river() -> None:
    linear = pytest.importorskip("river.linear_model")
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] > 0
    model = SGDClassifier()

    def predict(i: int) -> Any:
        return model.predict(X[i : i + 1])[0] if hasattr(model, "coef_") else True

    wrong = delayed_mistakes(
        predict, lambda i: model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[False, True]), y, 5
    )
    assert evaluate(SGDClassifier(), X, y, delay=5).mistakes[-1] == wrong
    other, dicts = linear.Perceptron(), [dict(enumerate(row)) for row in X.tolist()]
    wrong = delayed_mistakes(
        lambda i: other.predict_one(dicts[i]), lambda i: other.learn_one(dicts[i], bool(y[i])), y, 5
    )
    assert evaluate(linear.Perceptron(), X, y, delay=5, task="classification").mistakes[-1] == wrong
    with pytest.raises(ValueError, match="delay must be >= 0, got -1"):
        evaluate(SGDClassifier(), X, y, delay=-1)


@pytest.mark.parametrize("checkpoints", [1, 9])
def test_measures_are_those_of_scikit_learn(checkpoints: int) -> None:
    stream = datasets.load("breast_cancer")
    scores = onkel.KLRSGDClassifier().learn(stream.X, stream.y, classes=stream.classes)
    names = ["auc", "log_loss", "hinge_loss", "absolute_error"]
    trace = evaluate(onkel.KLRSGDClassifier(), stream.X, stream.y, checkpoints=checkpoints, measures=names)
    second = stream.y == "malignant"
    for mark, seen in enumerate(trace.seen):
        if len(np.unique(second[:seen])) == 2:
            assert trace.measures["auc"][mark] == pytest.approx(roc_auc_score(second[:seen], scores[:seen]), abs=1e-12)
    p = 1 / (1 + np.exp(-scores))
    assert trace.measures["log_loss"][-1] == pytest.approx(log_loss(second, p), rel=1e-9)
    assert trace.measures["hinge_loss"][-1] == pytest.approx(hinge_loss(second, scores), rel=1e-9)
    assert np.isnan(trace.measures["absolute_error"]).all()


def test_the_area_counts_ties_half() -> None:
    scores = np.random.default_rng(3).integers(-2, 3, size=300).astype(float)
    y = np.random.default_rng(4).choice(["a", "b"], size=300)
    trace = evaluate(ScriptedClassifier(scores), np.zeros((300, 1)), y, checkpoints=11, measures=["auc"])
    assert trace.measures["auc"][-1] == pytest.approx(roc_auc_score(y == "b", scores), abs=1e-12)


def test_measures_of_several_classes_and_of_numbers() -> None:
    stream = datasets.load("digits")
    X, y = stream.X[:200], stream.y[:200]
    scores = onkel.KLRSGDClassifier().learn(X, y, classes=np.arange(10))
    names = ["auc", "log_loss", "hinge_loss"]
    trace = evaluate(onkel.KLRSGDClassifier(), X, y, measures=names, checkpoints=7)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert trace.measures["log_loss"][-1] == pytest.approx(log_loss(y, e / e.sum(axis=1, keepdims=True)), rel=1e-9)
    assert trace.measures["hinge_loss"][-1] == pytest.approx(hinge_loss(y, scores), rel=1e-9)
    assert np.isnan(trace.measures["auc"]).all()
    diabetes = datasets.load("diabetes")
    trace = evaluate(onkel.OGDRegressor(), diabetes.X, diabetes.y, measures=["absolute_error"])
    predicted = onkel.OGDRegressor().learn(diabetes.X, diabetes.y)
    expected = mean_absolute_error(diabetes.y, predicted)
    assert trace.measures["absolute_error"][-1] == pytest.approx(expected, rel=1e-9)


def test_measures_of_other_libraries() -> None:
    linear = pytest.importorskip("river.linear_model")
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] > 0
    for model, task in ((SGDClassifier(loss="log_loss"), None), (linear.LogisticRegression(), "classification")):
        trace = evaluate(model, X, y, task=task, measures=["auc", "log_loss"], checkpoints=3)  # type: ignore[arg-type]
        assert 0.8 < trace.measures["auc"][-1] <= 1
        assert trace.measures["log_loss"][-1] < np.log(2) + 1
    hinge = evaluate(SGDClassifier(loss="hinge"), X, y, measures=["auc", "log_loss"])
    assert np.isfinite(hinge.measures["auc"][-1])
    assert np.isnan(hinge.measures["log_loss"][-1])
    with pytest.raises(ValueError, match="no measure 'accuracy'; there are auc"):
        evaluate(SGDClassifier(), X, y, measures=["accuracy"])


def test_the_finished_learner_is_tested_on_held_out_examples() -> None:
    stream = datasets.load("breast_cancer")
    learned, held = stream.split(0.25, seed=3)
    assert len(held) == 142
    assert len(learned) + len(held) == len(stream)
    trace = evaluate(onkel.PAClassifier(), learned.X, learned.y, test=(held.X, held.y))
    model = onkel.PAClassifier().partial_fit(learned.X, learned.y)
    assert trace.held_out == pytest.approx(1 - model.score(held.X, held.y))
    diabetes = datasets.load("diabetes")
    learned, held = diabetes.split()
    regressor = evaluate(onkel.OGDRegressor(), learned.X, learned.y, test=(held.X, held.y))
    predicted = onkel.OGDRegressor().fit(learned.X, learned.y).predict(held.X)
    assert regressor.held_out == pytest.approx(np.sqrt(np.mean((predicted - held.y) ** 2)))
    lost = evaluate(ScriptedClassifier(np.zeros(9), 3), np.zeros((9, 1)), np.arange(9) % 2, test=(held.X, held.y))
    assert lost.held_out == math.inf


def test_the_size_in_bytes_is_that_of_the_state() -> None:
    stream = datasets.load("breast_cancer")
    trace = evaluate(onkel.PAClassifier(), stream.X, stream.y)
    model = onkel.PAClassifier().partial_fit(stream.X, stream.y)
    held = sum(array.nbytes for array in model.state()[0].values())
    assert trace.bytes is not None
    assert held < trace.bytes < held + 10_000
    assert evaluate(Unwritable([0.0]), np.zeros((1, 1)), np.ones(1), task="regression").bytes is None


class Unwritable(ScriptedRegressor):
    def __reduce__(self) -> Any:
        raise TypeError("no")


def test_the_trivial_answer() -> None:
    y = np.random.default_rng(0).normal(3.0, 2.0, size=50)
    said = [0.0] + [y[:i].mean() for i in range(1, 50)]
    assert trivial(y, "regression") == pytest.approx(math.sqrt(np.mean((y - said) ** 2)))
    assert trivial(list("abbaaab"), "classification") == 6 / 7  # says -, a, a, b, b, a, a
    assert trivial([1.0], "regression") == 1.0


def test_a_single_class_is_predicted_before_anything_is_learned() -> None:
    said = protocol(onkel.RBPClassifier(), np.array(["a"])).ask(np.zeros((3, 2)))
    assert said.predicted.tolist() == ["a"] * 3
