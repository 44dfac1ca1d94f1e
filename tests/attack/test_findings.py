"""What the attacker has found, case by case: each killed the process, hung, or changed a model after a refusal.

All model files here have a right checksum, finite numbers and, unless a case says otherwise, fitting shapes.
"""

from __future__ import annotations

import copy
import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from model_files import forged
from streams import ALL, learn, stream_for

import onkel
from onkel.core.errors import Diverged

ROOM = 64 << 20  # bytes that a refusal may take

COMPLETE = {"budget": 15, "maintenance": "approximate"}
SPAN = [
    ("IncDecRegressor", {}),
    ("SubsetSelectionClassifier", {}),
    ("BDUOLClassifier", COMPLETE),
    ("BPAClassifier", {"budget": 15, "variant": "projecting"}),
    ("KRLSRegressor", {}),
]
FOGD = {"components": 20}
PYTHON_ONLY = ("OM2Classifier", "AdaRakerClassifier")


def last(value: Any) -> Any:
    """A change: the last number of the array becomes `value`."""

    def change(array: Any) -> Any:
        array = array.copy()
        array.reshape(-1)[-1:] = value
        return array

    return change


def every(value: Any) -> Any:
    return lambda array: np.full_like(array, value)


CASES: list[tuple[str, dict[str, Any], str, Any]] = [
    *((name, params, "budget.factor.L", every(0)) for name, params in SPAN),
    *((name, params, "budget.factor.L", lambda L: -L) for name, params in SPAN[:2]),
    ("IncDecRegressor", {}, "budget.factor.W", every(0)),
    ("BDUOLClassifier", COMPLETE, "budget.factor.W", every(0)),
    ("BDUOLClassifier", COMPLETE, "budget.K", every(0)),
    ("BDUOLClassifier", COMPLETE, "budget.K", lambda K: np.triu(K)),
    ("BDUOLClassifier", {"budget": 15}, "budget.nearest", last(-7)),
    ("BDUOLClassifier", {"budget": 15}, "budget.nearest", last(15)),
    ("BPAClassifier", {"budget": 15, "variant": "nearest"}, "budget.nearest", every(-1)),
    ("BPAClassifier", {"budget": 15, "variant": "nearest"}, "budget.nearest", lambda a: np.arange(len(a))),
    ("KRLSRegressor", {}, "budget.factor.slots", every(0)),
    ("KRLSRegressor", {}, "budget.factor.slots", lambda slots: slots.astype(float)),
    ("KRLSRegressor", {}, "budget.factor.removals", every(-1)),
    ("KRLSRegressor", {}, "budget.covariance", lambda C: -C),
    *(("PAClassifier", {}, "scale", every(value)) for value in (0, 1e-320, -1, 1e9)),
    *(("FOGDClassifier", FOGD, "weights.scale", every(value)) for value in (0, 1e-320, -1, 1e9)),
    ("PAClassifier", {"average": True}, "cumulative", every(-1)),
    ("PAClassifier", {}, "basis.coef", last(1e201)),
    ("PAClassifier", {}, "basis.born", last(1e6)),
    ("PAClassifier", {}, "basis.born", last(-1)),
    ("PAClassifier", {"kernel": "linear"}, "basis.x", last(1e200)),
    ("PAClassifier", {}, "t", lambda t: np.array(3.5)),
    ("PAClassifier", {}, "t", every(2**62)),
    ("DUOLClassifier", {}, "basis.limit", every(1e-9)),
    ("DUOLClassifier", {}, "basis.limit", last(1e300)),
    ("TVMClassifier", {"budget": 15}, "basis.positive", every(-1)),
    ("TighterPerceptronClassifier", {"budget": 15, "recent": 5}, "budget.recent.born", last(1e6)),
    ("ForgetronClassifier", {"budget": 15}, "budget.M", every(-1)),
    ("NOGDClassifier", {"budget": 15, "rank": 5}, "budget.transform", lambda M: M[:, :-1]),
    ("RBPClassifier", {"budget": 15}, "budget.random", lambda a: a.astype(float)),
    ("RBPClassifier", {"budget": 15}, "budget.random", lambda a: np.array(-1)),
    ("FOGDClassifier", {**FOGD, "eta": 0.1, "schedule": "adagrad"}, "update.squares", lambda a: -a),
    ("FOGDClassifier", {**FOGD, "eta": 0.1, "schedule": "adagrad"}, "update.squares", lambda a: a[:-1]),
    ("FOGDClassifier", FOGD, "update.squares", every(-1)),
    ("OMKCClassifier", {}, "0.t", every(10**6)),
    ("OMKCClassifier", {}, "hedge.update", lambda a: a.astype(float)),
    ("OMKCClassifier", {}, "hedge.losses", lambda a: a[:-1]),
    ("AutoKernelClassifier", FOGD, "scaling.squares", every(-1)),
    ("AutoKernelClassifier", FOGD, "scaling.first", every(1e200)),
    ("AutoKernelClassifier", FOGD, "scaling.rows", every(-5)),
    ("OM2Classifier", {}, "groups.scale", every(1e-320)),
    ("OM2Classifier", {}, "groups.norm2", every(-1)),
    ("AdaRakerClassifier", FOGD, "t", every(2**53 + 1)),
    ("AdaRakerClassifier", FOGD, "instances.losses", lambda a: a[:, :-1]),
]


def fitted(name: str, params: dict[str, Any], rows: int = 60) -> Any:
    X, y = stream_for(ALL[name], rows)
    model = ALL[name](**params)
    learn(model, X, y)
    return model, X, y


@pytest.mark.parametrize(
    ("name", "params", "field", "change"), CASES, ids=[f"{i}-{case[0]}-{case[2]}" for i, case in enumerate(CASES)]
)
def test_an_array_that_no_stream_leads_to_is_refused(engine, name, params, field, change, tmp_path):
    if engine == "native" and name in PYTHON_ONLY:
        pytest.skip("no twin in C++")
    model, _, _ = fitted(name, params)
    arrays, config = model.state()
    assert arrays[field].size, "the case changes something"
    path = tmp_path / "model"
    path.write_bytes(forged(arrays, json.dumps(config)))
    onkel.load(path)
    path.write_bytes(forged(arrays | {field: change(arrays[field])}, json.dumps(config)))
    with pytest.raises(ValueError, match="does not hold a model this onkel can use") as caught:
        onkel.load(path)
    assert str(path) in str(caught.value)
    assert f"'{field.removeprefix('0.')}'" in str(caught.value) or field in str(caught.value)


def nested(levels: int) -> Any:
    kernel: Any = {"part": "Gaussian", "gamma": 1.0}
    for _ in range(levels):
        kernel = {"part": "Sum", "kernels": [kernel, {"part": "Linear"}]}
    return kernel


CONFIGS: dict[str, Any] = {
    "deep": lambda c: c["params"].update(kernel=nested(200)),
    "very deep": lambda c: c["params"].update(kernel=nested(320)),
    "infinite label": lambda c: c["run"]["classes"].update(labels=[1, float("inf")]),
    "infinite label of integers": lambda c: c["run"]["classes"].update(labels=[-1, float("inf")], dtype="<i8"),
    "no labels": lambda c: c["run"]["classes"].update(labels=[]),
    "long labels": lambda c: c["run"]["classes"].update(labels=["a", "b"], dtype="<U500000000"),
    "dates": lambda c: c["run"]["classes"].update(labels=[1, 2], dtype="M8[s]"),
    "nothing": lambda c: c["run"]["classes"].update(labels=["a", "b"], dtype="V8"),
    "numbers as texts": lambda c: c["run"]["classes"].update(labels=[1, 2], dtype="<U3"),
    "not declared": lambda c: c["run"].update(declared="yes"),
    "components": lambda c: c["run"]["params"].update(components=2_000_000_000),
    "columns": lambda c: c["run"].update(n_features=2_000_000_000),
    "more columns": lambda c: c["run"].update(n_features=2**62),
    "the same name twice": lambda c: c["run"].update(feature_names=["a", "b", "a", "c"]),
    "a huge number": lambda c: c["run"].update(n_features=10**400),
}


@pytest.mark.parametrize("case", CONFIGS)
@pytest.mark.parametrize(("name", "params"), [("PAClassifier", {}), ("FOGDClassifier", FOGD)])
def test_a_config_that_asks_for_the_absurd_is_refused_before_anything_is_made(engine, name, params, case, tmp_path):
    model, _, _ = fitted(name, params, 20)
    arrays, config = model.state()
    config = copy.deepcopy(config)
    CONFIGS[case](config)
    if case == "components" and name == "PAClassifier":
        pytest.skip("has none")
    path = tmp_path / "model"
    path.write_bytes(forged(arrays, json.dumps(config)))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="does not hold a model this onkel can use"):
            onkel.load(path)
        assert tracemalloc.get_traced_memory()[1] < ROOM
    finally:
        tracemalloc.stop()


def test_settings_of_the_next_fit_are_checked_without_drawing_for_them(tmp_path):
    model = onkel.FOGDClassifier(components=2_000_000_000)
    model.save(tmp_path / "model")
    tracemalloc.start()
    assert onkel.load(tmp_path / "model").components == 2_000_000_000
    assert tracemalloc.get_traced_memory()[1] < ROOM
    tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["F8_E4M3", "BF16", "F4", "NONSENSE"])
def test_unknown_types_of_numbers_are_refused(tmp_path, dtype):
    header = {"a": {"dtype": dtype, "shape": [2], "data_offsets": [0, 2]}}
    text = json.dumps(header | {"__metadata__": {"onkel": "1", "config": "{}"}}).encode()
    (tmp_path / "model").write_bytes(len(text).to_bytes(8, "little") + text + b"\0\0")
    with pytest.raises(ValueError, match="model"):
        onkel.load(tmp_path / "model")


UNSOUND = [
    *((name, params, "budget.factor.L", 0.0) for name, params in SPAN),
    ("IncDecRegressor", {}, "budget.factor.W", 0.0),
    ("BDUOLClassifier", COMPLETE, "budget.factor.W", 0.0),
    ("BDUOLClassifier", COMPLETE, "budget.K", 0.0),
    ("BSGDClassifier", {"budget": 15, "maintenance": "merge"}, "basis.coef", 1e308),
    ("BudgetPerceptronClassifier", {"budget": 15}, "basis.score", 1e308),
    ("TVMClassifier", {"budget": 15}, "basis.x", 1e308),
    ("TVMClassifier", {"budget": 15}, "basis.coef", 1e308),
    ("NOGDClassifier", {"budget": 70, "rank": 5, "kernel": "linear"}, "basis.x", 1e300),
]


@pytest.mark.parametrize(("name", "params", "field", "value"), UNSOUND)
def test_no_search_leaves_its_array(engine, name, params, field, value):
    """If all is lost but a state that no check has seen: numbers that are none lead to an error, not elsewhere."""
    model, X, y = fitted(name, params)
    arrays, _ = model.state()
    learner = model._learned.engine
    learner.restore(arrays | {field: np.full_like(arrays[field], value)})
    for _ in range(3):
        with np.errstate(all="ignore"):
            try:
                learner.learn(X, np.asarray(y, dtype=np.float64))
            except (Diverged, ValueError):
                continue
    learner.state()


def unsound(X: Any, part: str, at: int, value: int) -> Any:
    X = X.copy()
    getattr(X, part)[at] = value
    return X


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    ("part", "at", "value"),
    [
        ("indptr", -1, 0),
        ("indptr", -1, -1),
        ("indptr", 1, 10**6),
        ("indptr", 0, 1),
        ("indices", 0, -1),
        ("indices", 0, 10**6),
        ("indices", -1, 2**31 - 1),
    ],
)
@pytest.mark.parametrize("verb", ["learn", "fit", "predict"])
def test_sparse_matrices_whose_parts_do_not_fit(engine, form, part, at, value, verb):
    """SciPy, asked to put them in order, writes outside its arrays."""
    X, y = stream_for(ALL["PAClassifier"], 20, form="sparse")
    model = onkel.PAClassifier().fit(X, y)
    before = model.predict(X)
    wrong = unsound(X.asformat(form), part, at, value)
    with pytest.raises(ValueError, match="do not fit together"):
        getattr(model, verb)(wrong, *([y] if verb != "predict" else []))
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("columns", [-1, 2**31, 2**63, 10**400, 5.0, "5", None, True])
def test_widen_takes_a_number_of_columns(engine, columns):
    X, y = stream_for(ALL["PAClassifier"], 20, form="sparse")
    model = onkel.PAClassifier().fit(X, y)
    with pytest.raises(ValueError, match="columns must be an integer"):
        model.widen(columns)
    assert model.n_features_in_ == X.shape[1]


@pytest.mark.parametrize("name", [b"b", frozenset(), ("a", b"b")])
def test_names_that_no_file_could_hold_are_refused(engine, name):
    """They were learned; then the model could be neither saved nor copied."""
    model = onkel.PAClassifier()
    model.learn_one({"a": 1.0}, 1)
    with pytest.raises(ValueError, match="a feature is named"):
        model.learn_one({"a": 1.0, name: 2.0}, 0)
    assert copy.deepcopy(model).n_features_in_ == 1


@pytest.mark.parametrize("weight", [1e160, 1.7e308])
def test_a_weight_whose_square_overflows(engine, weight):
    """The Python engine raised OverflowError; the native one remembered infinity, and no file of it could be read."""
    X, y = stream_for(ALL["FOGDClassifier"], 20)
    model = onkel.FOGDClassifier(components=20).fit(X, y)
    before = {name: array.tobytes() for name, array in model.state()[0].items()}
    with pytest.raises(Diverged, match="the sum of squared slopes is inf"):
        model.learn(X[:1], -y[:1] if model.decision_function(X[:1])[0] * y[0] > 1 else y[:1], sample_weight=[weight])
    assert {name: array.tobytes() for name, array in model.state()[0].items()} == before


def test_names_of_arrays_stay_in_one_line(tmp_path):
    np.savez(tmp_path / "t.npz", **{"X\n": np.ones((2, 2)), "y": np.ones(2)})
    with pytest.raises(onkel.datasets.DataError, match=r"its arrays are 'X\\n', y") as caught:
        onkel.datasets.readers.read(tmp_path / "t.npz")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("variant", ["I", "II"])
def test_a_weight_so_small_that_its_product_with_C_is_zero(engine, variant):
    X, y = stream_for(ALL["PAClassifier"], 20)
    model = onkel.PAClassifier(variant=variant, C=0.2).fit(X[:-1], y[:-1])
    model.learn(X[-1:], -np.sign(model.decision_function(X[-1:])), sample_weight=[5e-324])
    assert model.t_ == 20 and np.isfinite(model.decision_function(X)).all()
