"""Labels, targets and weights that people hand in by mistake."""

import numpy as np
import pandas as pd
import pytest
from refusals import every_estimator, refuses, trained
from streams import ESTIMATORS, build, learn, stream_for

import onkel
from onkel.faces.classifier import Classifier
from onkel.faces.regressor import Regressor

# -- labels


def test_labels_that_numpy_would_cut_are_refused(engine):
    model = onkel.PAClassifier()
    model.learn_one({"a": 1.0}, "yes")
    refuses(["NUL", "'no.x00'"], model.learn_one, {"a": 1.0}, "no\0")
    refuses(["NUL", "'no.x00'"], onkel.RBPClassifier().fit, [[1.0], [2.0]], ["yes", "no\0"])
    assert model.classes_.tolist() == ["yes"]


@pytest.mark.parametrize("name", [n for n, c in ESTIMATORS.items() if issubclass(c, Classifier)])
def test_labels_that_cannot_be_are_refused(engine, name):
    X, y = stream_for(ESTIMATORS[name], 6)
    wrong = {
        "none": [None] * 6,
        "some none": ["a", "b", None, "a", "b", "a"],
        "mixed": np.array(["a", 1, "b", 2, "a", 1], dtype=object),
        "mixed list": ["a", 1, "b", 2, "a", 1],  # of which NumPy makes texts
        "texts and truth": ["a", True, "a", False, "a", True],
        "a missing text": ["a", "b", float("nan"), "a", "b", "a"],
        "integers that NumPy rounds": [2**63 + 5, 2**63 + 6, -1, -1, -1, -1],
        "masked": np.ma.masked_array([0, 1, 0, 1, 9, 9], mask=[0, 0, 0, 0, 1, 1]),
        "bool and int": np.array([True, 1, False, 2, True, 1], dtype=object),
        "continuous": np.linspace(0, 1, 6),
        "complex": np.ones(6, complex),
        "dates": np.array(["2020-01-01"] * 6, dtype="M8[D]"),
        "tuples": [(1, 2)] * 6,
        "objects": [object() for _ in range(6)],
        "missing": pd.Series([1, 2, None, 1, 2, 1], dtype="Int64"),
        "nan strings": pd.Series(["a", np.nan, "b", "a", "b", "a"]),
    }
    model = build(name)
    for kind, labels in wrong.items():
        with pytest.raises((ValueError, TypeError)):
            model.fit(X, labels)
        assert not model.__sklearn_is_fitted__(), kind
    for classes in ([], [None], [1, "a"], [0.5, 1.5], [np.nan, 1.0], "ab", 3):
        refuses([], model.learn, X, y, classes=classes)
    refuses(["declared", "2", "classes="], model.learn, X, np.arange(6), classes=[0, 1])
    model.learn(X, y, classes=[-1, 1])
    refuses(["label"], model.learn, X, ["a"] * 6)
    refuses(["label"], model.learn_one, X[0], "a")
    refuses([], model.learn_one, X[0], [1])
    refuses(["continuous"], model.learn_one, X[0], 0.5)


def test_labels_of_another_kind_do_not_join(engine):
    X = np.eye(4)
    for first, later in (
        (["a", "b"] * 2, [1, 2] * 2),
        ([0, 1] * 2, ["a", "b"] * 2),
        ([b"a", b"b"] * 2, ["a", "b"] * 2),
    ):
        model = build("ForgetronClassifier")
        try:
            model.partial_fit(X, np.array(first))
        except ValueError:  # bytes may be refused at once
            continue
        refuses(["label"], model.partial_fit, X, np.array(later))
        refuses(["label"], model.learn_one, X[0], later[0])
        assert model.classes_.tolist() == first[:2]


@pytest.mark.parametrize("name", [n for n, c in ESTIMATORS.items() if issubclass(c, Regressor)])
def test_targets_that_are_no_numbers_are_refused(engine, name):
    X = np.eye(4)
    for bad in (
        ["a", "b", "c", "d"],
        [None] * 4,
        np.ones(4, complex),
        np.array(["2020"] * 4, "M8[Y]"),
        [10**400] * 4,
    ):
        refuses(["y|Complex"], build(name).fit, X, bad)
        model = build(name).fit(X, np.ones(4))
        refuses([], model.learn_one, X[0], bad[0])
    refuses(["classes"], build(name).learn, X, np.ones(4), classes=[0, 1])


@every_estimator
def test_weights(engine, name):
    model, X, y = trained(name)
    if y is None:
        return
    for bad in (-1.0, np.full(30, -1e-9), np.full(30, np.nan), [10**400] * 30, np.where(np.arange(30) == 9, -1.0, 1.0)):
        refuses(["weight"], learn, model, X, y, sample_weight=bad)
    refuses(["sample_weight", "nan in row 0"], model.fit, X, y, sample_weight=[None] * len(y))
    refuses(["weight"], model.learn_one, X[0], y[0], -1.0)
    refuses([], model.learn_one, X[0], y[0], "heavy")
    refuses([], model.learn_one, X[0], y[0], None)
    t = model.t_
    learn(model, X, y, sample_weight=np.where(np.arange(30) < 20, 0.0, 1.0))
    assert model.t_ == t + 10
    model.learn_one(X[0], y[0], 0.0)
    assert model.t_ == t + 10
    learn(model, X[:3], y[:3], sample_weight=np.zeros(3))  # rounds that are all skipped
    assert model.t_ == t + 10
    fresh = build(name)
    fresh.learn_one(X[0], y[0], 0.0)
    assert fresh.t_ == 0
    learn(model, X, y, sample_weight=2)  # a number for all


def test_a_missing_target_is_named_with_its_row(engine):
    refuses(["<NA>", "row 1"], onkel.KLMSRegressor().fit, np.ones((3, 2)), pd.Series([1.0, pd.NA, 2.0]))


def test_one_label_of_two_types_is_one_label(engine):
    model = onkel.RBPClassifier().partial_fit([[0.0], [1.0]], [0, 1]).partial_fit([[1.0]], [1.0])
    assert model.classes_.dtype.kind == "i"


# -- messages name what the reader can mend


def test_labels_of_another_kind_are_named_with_their_row():
    X = np.eye(3)
    refuses(["y contains nan in row 1"], onkel.PAClassifier().fit, X, np.array(["a", np.nan, "b"], dtype=object))
    refuses(["y contains None in row 2"], onkel.PAClassifier().fit, X, pd.Series(["a", "b", None], dtype=object))
    for labels in (["a", "b", pd.NA], [1, 2, pd.NA], [pd.NA] * 3, [True, False, pd.NA], [pd.NaT] * 3):
        row = 2 if isinstance(labels[0], (str, int)) else 0
        refuses([f"y contains {labels[2]} in row {row}"], onkel.PAClassifier().fit, X, pd.Series(labels, dtype=object))
    for kind, labels in {"Int64": [1, 2, None], "string": ["a", "b", None], "boolean": [True, False, None]}.items():
        refuses(["y contains (<NA>|NaN.*) in row 2"], onkel.PAClassifier().fit, X, pd.Series(labels, dtype=kind))
    refuses(["of one kind", "3 in row 2"], onkel.PAClassifier().fit, X, np.array(["a", "b", 3], dtype=object))
    model = onkel.PAClassifier()
    model.learn_one({"a": 1.0}, True)
    for label in ("new", 2):
        refuses(["of one kind", f"{label!r} cannot be added to boolean labels"], model.learn_one, {"a": 1.0}, label)
