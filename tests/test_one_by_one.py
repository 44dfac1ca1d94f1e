"""Examples that come one at a time: a prediction before each, rows of arrays and dictionaries."""

from collections import UserDict

import numpy as np
import pytest
from streams import CASE_IDS, CASES, build, stream_for, task_of

import onkel
from onkel.kernels import Gaussian

ENGINES = ["python", *(["native"] if onkel.native.available() else [])]
ROUNDS = 80


class Slow(UserDict):
    """A mapping, but no dictionary: Python reads it, name by name."""


def named(x):
    return {f"x{j}": value for j, value in enumerate(x.tolist())}


def verbs(model, y):
    """What predicts one example, and what learns from number i."""
    if task_of(model) == "Detector":
        return model.score_one, lambda x, i: model.learn_one(x)
    return model.predict_one, lambda x, i: model.learn_one(x, y[i].item())


def assert_same_state(one, other):
    tensors, text = one.state()
    others, other_text = other.state()
    assert text == other_text
    assert tensors.keys() == others.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor, others[name], err_msg=name)


@pytest.mark.parametrize("form", ["array", "dictionary"])
@pytest.mark.parametrize(("name", "params"), CASES, ids=CASE_IDS)
def test_predictions_in_between_change_nothing(name, params, form):
    """Whatever is kept of an example that was predicted: learning from it, or from another one, is as ever."""
    X, y = stream_for(build(name, **params), rounds=ROUNDS)
    shape = named if form == "dictionary" else np.array
    plain, asked = build(name, **params), build(name, **params)
    predict, _ = verbs(asked, y)
    for i in range(ROUNDS):
        verbs(plain, y)[1](shape(X[i]), i)
        told = []
        for at in {0: [], 1: [i], 2: [i, i - 3], 3: [i - 3, i, i]}[i % 4]:
            told.append((at, predict(shape(X[at]))))
        if i % 4 and i > 10:
            at, before = told[-1]
            assert predict(shape(X[at])) == before
        verbs(asked, y)[1](shape(X[i]), i)
    assert_same_state(plain, asked)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("average", [False, True])
def test_a_prediction_is_that_of_the_whole_table(engine, average):
    X, y = stream_for(onkel.OGDClassifier)
    with onkel.engine(engine):
        model = onkel.OGDRegressor(average=average).partial_fit(X, y)
        np.testing.assert_array_equal([model.predict_one(x) for x in X], model.predict(X))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", [onkel.OGDClassifier, onkel.FOGDClassifier, onkel.RBPClassifier])
def test_dictionaries_are_read_alike_whoever_reads_them(engine, make):
    """In any order, with names to come, values of many types, and some left out."""
    random = np.random.default_rng(0)
    X, y = stream_for(make)
    rows = []
    for i, x in enumerate(X[:120]):
        row = named(x) | {"often": bool(i % 3), "count": i % 5, "late": 0.5} | {7: np.float64(i % 2)}
        if i < 40:
            del row["late"]
        if i % 7 == 0:
            row["rare"] = np.float32(0.25)
        keys = random.permutation(np.array(list(row), dtype=object))
        rows.append({key: row[key] for key in keys if i % 4 or key != "x1"})
    with onkel.engine(engine):
        fast, slow = make(), make()
        for row, label in zip(rows, y, strict=False):
            assert fast.predict_one(row) == slow.predict_one(Slow(row))
            fast.learn_one(row, label.item())
            slow.learn_one(Slow(row), label.item())
        unknown = rows[5] | {"never": 3.0}
        assert fast.predict_one(unknown) == fast.predict_one(rows[5])
    assert_same_state(fast, slow)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "feature 'x1' is nan"),
        (float("-inf"), "feature 'x1' is -inf"),
        (10**400, "too large for a floating point number"),
        ("warm", "feature 'x1' is 'warm', not a number"),
        (None, "feature 'x1' is None, not a number"),
        ([1.0], "not a number"),
    ],
    ids=["NaN", "infinity", "huge", "text", "None", "list"],
)
def test_bad_values_are_refused_by_name(engine, dtype, value, said):
    X, y = stream_for(onkel.RBPClassifier, rounds=30)
    with onkel.engine(engine):
        model = onkel.RBPClassifier(kernel=Gaussian(1.0), budget=5)
        for x, label in zip(X.astype(dtype), y, strict=True):
            model.learn_one(named(x), label.item())
        before = model.state()[0]
        bad = named(X[0]) | {"x1": value}
        for call in (lambda: model.learn_one(bad, 1.0), lambda: model.predict_one(bad)):
            with pytest.raises(ValueError, match=said.replace("[", r"\[")):
                call()
    for name, tensor in model.state()[0].items():
        np.testing.assert_array_equal(tensor, before[name])


@pytest.mark.parametrize("label", [[1], {"a": 1}, np.array([1, -1])])
def test_what_is_no_label_is_refused_once_something_was_learned(label):
    X, y = stream_for(onkel.RBPClassifier, rounds=10)
    model = onkel.RBPClassifier().partial_fit(X, y)
    with pytest.raises((TypeError, ValueError), match="label"):
        model.learn_one(X[0], label)
