"""Examples that come one at a time: a prediction before each, rows of arrays and dictionaries."""

import pickle
import threading
import time
from collections import UserDict
from itertools import product

import numpy as np
import pandas as pd
import pytest
from streams import CASE_IDS, CASES, build, hypothesis_of, stream_for, task_of

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
    grows = form == "dictionary" and all(map.grows for map in hypothesis_of(name, params).maps)

    def example(i):
        if form == "array":
            return X[i]
        return named(X[i]) | ({"new": 0.3} if grows and i > 50 else {})

    plain, asked = build(name, **params), build(name, **params)
    for i in range(ROUNDS):
        verbs(plain, y)[1](example(i), i)
        predict, learn = verbs(asked, y)
        for at in {0: [], 1: [i], 2: [i, i - 3], 3: [i - 3, i]}[i % 4]:
            assert predict(example(at)) == predict(example(at))
        if i % 10 == 5:
            with pytest.raises(ValueError, match=r"NaN|nan"):
                predict(example(i) | {"x1": np.nan} if form == "dictionary" else X[i] * np.nan)
        if i in (33, 62):
            asked = pickle.loads(pickle.dumps(asked))
            learn = verbs(asked, y)[1]
        learn(example(i), i)
    assert_same_state(plain, asked)


@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_weights_after_a_prediction(weight):
    X, y = stream_for(onkel.RBPClassifier)
    plain, asked = onkel.RBPClassifier(budget=9), onkel.RBPClassifier(budget=9)
    for x, label in zip(X, y, strict=True):
        asked.predict_one(x)
        for model in (plain, asked):
            model.learn_one(x, label.item(), weight)
            model.learn_one(-x, label.item())
    assert_same_state(plain, asked)


THREADED = [
    *("PAClassifier", "KLMSRegressor", "BOGDClassifier", "FOGDClassifier", "OMKCClassifier", "FOGDOMKLClassifier"),
    *("AutoKernelRegressor", "OM2Classifier", "AdaRakerRegressor"),  # in Python, at least in part
]
IN_PYTHON = ["PAClassifier", "FOGDClassifier"]


@pytest.mark.parametrize(("name", "engine"), [*product(THREADED, ["auto"]), *product(IN_PYTHON, ["python"])])
def test_threads_take_turns(name, engine):
    """Predictions may come too early or too late, but nothing breaks, and the model learns as if nobody had asked."""
    with onkel.use_engine(engine):
        _ask_while_it_learns(name)


def _ask_while_it_learns(name):
    X = np.random.default_rng(0).normal(size=(700, 6))
    y = X[:, 0] * X[:, 1] if name.endswith("Regressor") else np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    plain, asked = (getattr(onkel, name)().partial_fit(X[:200], y[:200]) for _ in range(2))
    enough, failed = threading.Event(), []

    def ask(question):
        try:
            while not enough.is_set():
                question()
        except Exception as error:  # seen by the test, not by the thread alone
            failed.append(error)

    questions = [lambda: asked.predict(X[:300]), lambda: asked.predict_one(X[7]), asked.state]
    threads = [threading.Thread(target=ask, args=[question]) for question in questions]
    for thread in threads:
        thread.start()
    try:
        for i in range(200, 700, 50):
            for model in (plain, asked):
                model.learn(X[i : i + 40], y[i : i + 40])
                for j in range(i + 40, i + 50):
                    model.learn_one(X[j], y[j].item())
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert failed == []
    assert_same_state(plain, asked)


@pytest.mark.parametrize("engine", ["auto", "python"])
@pytest.mark.parametrize("name", ["BOGDClassifier", "OMKCClassifier", "AutoKernelRegressor", "AdaRakerClassifier"])
def test_a_second_thread_that_learns_is_refused(name, engine):
    X = np.random.default_rng(0).normal(size=(20_000, 6))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    with onkel.use_engine(engine):
        model = getattr(onkel, name)().partial_fit(X[:200], y[:200])
    refused: set[str] = set()
    deadline = time.monotonic() + 60

    def learn(rows):
        try:
            while not refused and time.monotonic() < deadline:
                model.learn(X[rows], y[rows])
        except RuntimeError as error:
            refused.add(str(error))

    thread = threading.Thread(target=learn, args=[slice(2000)])
    thread.start()
    learn(slice(7, 8))
    thread.join()
    assert refused == {"the model is learning in another thread: wait for it"}


@pytest.mark.parametrize("engine", ENGINES)
def test_no_other_thread_learns_between_the_blocks_of_a_call(engine, monkeypatch):
    X, y = stream_for(onkel.OGDClassifier)
    with onkel.use_engine(engine):
        alone, model = (onkel.BOGDClassifier(budget=10).partial_fit(X, y) for _ in range(2))
    wanted = alone.learn(X, y)
    tries = [
        lambda: model.learn(X[:1], y[:1]),
        lambda: model.learn_one(X[0], y[0]),
        lambda: model.learn(X, y),
        lambda: model.learn(X[:1], [7.0]),
        lambda: model.widen(9),
    ]
    refused = []

    def attempt():
        for verb in tries:
            with pytest.raises(onkel.core.errors.Busy, match="another thread"):
                verb()
            refused.append(verb)

    learned, blocks = model._learned, []

    def block(*args):
        blocks.append(args)
        type(learned)._learn(learned, *args)
        if len(blocks) == 1:
            other = threading.Thread(target=attempt)
            other.start()
            other.join()

    monkeypatch.setattr(learned, "_block", 16)
    monkeypatch.setattr(learned, "_learn", block)
    np.testing.assert_array_equal(model.learn(X, y), wanted)
    assert len(blocks) > 1
    assert refused == tries
    assert model.t_ == alone.t_


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("average", [False, True])
def test_a_prediction_is_that_of_the_whole_table(engine, average):
    X, y = stream_for(onkel.OGDClassifier)
    with onkel.use_engine(engine):
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
    with onkel.use_engine(engine):
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
        (1e39, "infinity|finite|too large"),
        ("warm", "feature 'x1' is 'warm', not a number"),
        (None, "feature 'x1' is None, not a number"),
        ([1.0], "not a number"),
    ],
    ids=["NaN", "infinity", "huge", "large", "text", "None", "list"],
)
def test_bad_values_are_refused_by_name(engine, dtype, value, said):
    X, y = stream_for(onkel.RBPClassifier, rounds=30)
    with onkel.use_engine(engine):
        model = onkel.RBPClassifier(kernel=Gaussian(1.0), budget=5)
        model.learn_many(pd.DataFrame(X.astype(dtype), columns=list(named(X[0]))), pd.Series(y))
        before = model.state()[0]
        assert before["basis.x"].dtype == dtype
        bad = named(X[0]) | {"x1": value}
        if value == 1e39 and dtype == np.float64:
            assert model.predict_one(bad) in (-1.0, 1.0)
            return
        for call in (lambda: model.learn_one(bad, 1.0), lambda: model.predict_one(bad)):
            with pytest.raises(ValueError, match=said.replace("[", r"\[")):
                call()
    for name, tensor in model.state()[0].items():
        np.testing.assert_array_equal(tensor, before[name])


@pytest.mark.parametrize("target", [10**400, float("nan"), float("inf"), "high", None])
@pytest.mark.parametrize("example", [{"a": 1.0}, np.ones(1)], ids=["dictionary", "array"])
def test_bad_targets_are_refused(example, target):
    model = onkel.OGDRegressor()
    model.learn_one(example, 1.0)
    with pytest.raises(ValueError, match="y must be a finite number, got "):
        model.learn_one(example, target)
    assert model.t_ == 1


class Odd(float):
    """A number that says something else when asked."""

    def __float__(self):
        return 42.0


def test_numbers_of_ones_own_make_are_left_to_python():
    ours, theirs = onkel.OGDRegressor(), onkel.OGDRegressor()
    for value in (1.0, Odd(2.0), np.float32(0.1)):
        ours.learn_one({"b": value, "a": 0.5}, 1.0)
        theirs.learn_one(Slow({"b": value, "a": 0.5}), 1.0)
    assert_same_state(ours, theirs)


@pytest.mark.parametrize("label", [[1], {"a": 1}, np.array([1, -1])])
def test_what_is_no_label_is_refused_once_something_was_learned(label):
    X, y = stream_for(onkel.RBPClassifier, rounds=10)
    model = onkel.RBPClassifier().partial_fit(X, y)
    with pytest.raises((TypeError, ValueError), match="label"):
        model.learn_one(X[0], label)
