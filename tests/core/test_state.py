"""Model files: readable by others, whole or refused, the same model on every reading."""

import copy
import json
import os
import pathlib
import pickle
import stat
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from streams import ESTIMATORS, build, learn, stream_for

import onkel
from onkel.core import state as state_module
from onkel.core.state import FORMAT, read, write
from onkel.kernels import Gaussian, Kernel, Linear, Polynomial

FILES = Path(__file__).parent / "files"


def forgetron(rounds=60, **params):
    X, y = stream_for(ESTIMATORS["ForgetronClassifier"], rounds)
    return onkel.ForgetronClassifier(budget=5, average="all", **params).fit(X, y), X


def assert_same(a, b):
    (one, config), (two, other) = a.state(), b.state()
    assert config == other
    assert {k: (v.dtype, v.shape, v.tobytes()) for k, v in one.items()} == {
        k: (v.dtype, v.shape, v.tobytes()) for k, v in two.items()
    }


# -- the file


def test_the_file_is_a_safetensors_file(engine, tmp_path):
    model, _ = forgetron()
    model.save(tmp_path / "model.any name")
    arrays = safetensors.numpy.load_file(tmp_path / "model.any name")
    assert arrays.keys() == model.state()[0].keys()
    for name, array in model.state()[0].items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)
    with safetensors.safe_open(tmp_path / "model.any name", framework="np") as file:
        metadata = file.metadata()
    assert metadata["onkel"] == str(FORMAT) == "1"
    config = json.loads(metadata["config"])
    assert config["algorithm"] == "ForgetronClassifier"
    assert config["params"]["budget"] == 5


@pytest.mark.parametrize("name", ESTIMATORS)
def test_unfitted_models_are_models(engine, name, tmp_path):
    model = build(name)
    model.save(tmp_path / "model")
    loaded = onkel.load(tmp_path / "model")
    assert type(loaded) is type(model) and str(loaded.get_params()) == str(model.get_params())
    assert not loaded.__sklearn_is_fitted__()
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert str(other.get_params()) == str(model.get_params())
    X, y = stream_for(model, 30)
    np.testing.assert_array_equal(learn(loaded, X, y), learn(model, X, y))


@pytest.mark.parametrize(
    "kernel",
    [
        "laplacian",
        Gaussian("auto"),
        Gaussian(0.3) + 1,
        Gaussian(2) * Linear() + 0.5 * Polynomial(2, 0.5),
        onkel.kernels.Sigmoid(0.1, -0.5),
    ],
)
def test_kernels_are_plain_data(engine, kernel, tmp_path):
    model, X = forgetron(kernel=kernel)
    model.save(tmp_path / "model")
    loaded = onkel.load(tmp_path / "model")
    assert loaded.kernel == kernel and loaded.kernel_ == model.kernel_
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_numpy_and_infinite_parameters(engine, tmp_path):
    X, y = stream_for(ESTIMATORS["KLRSGDClassifier"], 30)
    model = onkel.KLRSGDClassifier(eta=np.float32(0.5), R=np.inf, random_state=np.int32(3), average=np.bool_(True))
    model.fit(X, y).save(tmp_path / "model")
    loaded = onkel.load(tmp_path / "model")
    assert np.inf == loaded.R and loaded.eta == 0.5 and loaded.average is True
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


LABELS = {
    "int": np.array([3, 8, 5]),
    "int8": np.array([3, 8, 5], np.int8),
    "uint64": np.array([3, 2**63 + 1, 5], np.uint64),
    "big": np.array([2**62, 2**62 + 1, 5]),
    "float": np.array([3.0, 8.0, 5.0]),
    "str": np.array(["b", "a", "straße, ☃"]),
    "bool": np.array([True, False]),
    "object": np.array(["b", "a", "c"], dtype=object),
    "bytes": np.array([b"b", b"a", b"c"]),
    "string": np.array(["b", "a", "c"], dtype=np.dtypes.StringDType()),
    "negative": np.array([-1, 1]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back(engine, kind, tmp_path):
    """What can be learned can be saved; what cannot is refused at the border."""
    X, _ = stream_for(ESTIMATORS["ForgetronClassifier"], 60)
    y = LABELS[kind][np.arange(60) % len(LABELS[kind])]
    model = onkel.ForgetronClassifier(budget=5)
    try:
        model.partial_fit(X, y)
    except ValueError as error:
        assert kind in ("bytes", "string")
        assert "label" in str(error)  # noqa: PT017
        return
    model.save(tmp_path / "model")
    loaded = onkel.load(tmp_path / "model")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist() == sorted(LABELS[kind].tolist())
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    for m in (loaded, model):
        m.partial_fit(X, y)
        m.learn_one(X[0], y[0])
    assert_same(loaded, model)


def test_feature_names_come_back(engine, tmp_path):
    import pandas as pd

    X, y = stream_for(ESTIMATORS["ForgetronClassifier"], 30)
    frame = pd.DataFrame(X, columns=["a", "b", "straße", "d e"])
    model = onkel.ForgetronClassifier(budget=5).partial_fit(frame, y)
    model.save(tmp_path / "model")
    loaded = onkel.load(tmp_path / "model")
    assert list(loaded.feature_names_in_) == list(frame.columns)
    loaded.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("names", [["a", "b"], [0, 1], [("x", 0), ("x", 1)], ["ä", ""], [1.5, 2.5], [None, "a"]])
def test_names_of_any_kind_come_back(engine, names, tmp_path):
    model = onkel.ForgetronClassifier(budget=5)
    rng = np.random.default_rng(0)
    for i in range(20):
        model.learn_one(dict(zip(names, rng.normal(size=2).tolist(), strict=True)), i % 2)
    model.save(tmp_path / "model")
    loaded = onkel.load(tmp_path / "model")
    for m in (loaded, model):
        for i in range(20):
            m.learn_one({names[1]: float(i), names[0]: 1.0, "new": 0.5}, i % 2)
    assert_same(loaded, model)
    assert loaded.predict_one({names[0]: 1.0}) == model.predict_one({names[0]: 1.0})


def test_a_file_of_format_1():
    """Files of every format ever released are read for ever."""
    expected = json.loads((FILES / "format1.json").read_text())
    X = np.array(expected["X"])
    for engine in ("python", "native") if onkel.native.available() else ("python",):
        with onkel.use_engine(engine):
            model = onkel.load(FILES / "format1.onkel")
        assert type(model) is onkel.ForgetronClassifier and model.average is True and model.budget == 5
        assert model.classes_.tolist() == expected["classes"]
        assert model.t_ == expected["t"] and model.n_support_ == expected["n_support"]
        np.testing.assert_allclose(model.decision_function(X), expected["average"], rtol=1e-12)
        np.testing.assert_allclose(model.decision_function(X, output="last"), expected["last"], rtol=1e-12)
        assert model.predict(X).tolist() == expected["predict"]
        np.testing.assert_allclose(model.learn(X, expected["y"]), expected["learn"], rtol=1e-10)


# -- saving


def test_saving_is_atomic(tmp_path, monkeypatch):
    old, X = forgetron()
    new, _ = forgetron(40)
    path = tmp_path / "model"
    old.save(path)
    for module, name in ((safetensors.numpy, "save"), (os, "replace"), (pathlib.Path, "open")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
            with pytest.raises(OSError, match="disk full"):
                new.save(path)
        assert os.listdir(tmp_path) == ["model"]
        assert_same(onkel.load(path), old)
    new.save(path)
    assert_same(onkel.load(path), new)
    np.testing.assert_array_equal(onkel.load(path).predict(X), new.predict(X))


def test_a_model_that_cannot_be_written_leaves_the_old_file(tmp_path):
    old, _ = forgetron()
    old.save(tmp_path / "model")
    odd = onkel.ForgetronClassifier(random_state=object())
    with pytest.raises(TypeError, match="cannot store"):
        odd.save(tmp_path / "model")
    assert_same(onkel.load(tmp_path / "model"), old)
    assert os.listdir(tmp_path) == ["model"]


def test_a_file_has_the_usual_rights(tmp_path):
    """Others may read a model where they may read any new file."""
    model, _ = forgetron()
    model.save(tmp_path / "model")
    (tmp_path / "other").write_bytes(b"")
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_paths_of_all_kinds(tmp_path, monkeypatch):
    model, _ = forgetron()
    monkeypatch.chdir(tmp_path)
    for path in ("model", tmp_path / "model", str(tmp_path / "ü ☃"), Path("sub/../model"), "x" * 240):
        (tmp_path / "sub").mkdir(exist_ok=True)
        model.save(path)
        assert_same(onkel.load(path), model)
    with pytest.raises(OSError, match="nowhere"):
        model.save(tmp_path / "nowhere" / "model")
    with pytest.raises(OSError, match="sub"):
        model.save(tmp_path / "sub")
    with pytest.raises(FileNotFoundError, match="missing"):
        onkel.load(tmp_path / "missing")
    with pytest.raises((ValueError, OSError), match="sub"):
        onkel.load(tmp_path / "sub")


# -- damaged files


def damaged(path, data):
    """Read a damaged file: a ValueError with a sentence that names the file, never anything else."""
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"model.*: |model .*; ") as caught:
        onkel.load(path)
    assert len(str(caught.value)) > 40


def test_truncated_files_are_refused(tmp_path):
    model, _ = forgetron()
    path = tmp_path / "model"
    model.save(path)
    whole = path.read_bytes()
    for length in {*range(0, 64), *range(64, len(whole), 37), *range(len(whole) - 20, len(whole))}:
        damaged(path, whole[:length])
    damaged(path, whole + b"\0")
    damaged(path, b"")
    damaged(path, b"hello, this is not a model at all; it is a text")
    damaged(path, np.random.default_rng(0).bytes(5000))


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_flipped_bytes_are_refused(tmp_path, flip):
    model, _ = forgetron()
    path = tmp_path / "model"
    model.save(path)
    whole = path.read_bytes()
    for at in {*range(0, 400), *range(400, len(whole), 11)}:
        data = bytearray(whole)
        data[at] ^= flip
        path.write_bytes(data)
        try:
            loaded = onkel.load(path)
        except ValueError as error:
            assert "model" in str(error), at  # noqa: PT017
        else:  # a blank of the header's padding may change
            assert_same(loaded, model)


# -- forged files: whole, with a right checksum, but wrong


def forged(path, arrays, config):
    write(path, arrays, config)
    with pytest.raises(ValueError, match=r"\w+") as caught:
        onkel.load(path)
    assert str(path) in str(caught.value), "the sentence names the file"


@pytest.fixture
def parts(engine):
    model, _ = forgetron()
    arrays, config = model.state()
    return {k: v.copy() for k, v in arrays.items()}, copy.deepcopy(config)


def test_missing_arrays_are_refused(parts, tmp_path):
    arrays, config = parts
    for name in arrays:
        forged(tmp_path / "model", {k: v for k, v in arrays.items() if k != name}, config)
    forged(tmp_path / "model", {}, config)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[:-1] if a.ndim else a[None],  # a row too few, or a scalar with an axis
        lambda a: np.concatenate([a, a]) if a.ndim else np.stack([a, a]),
        lambda a: a.reshape(-1) if a.ndim else a.reshape(1, 1),
        lambda a: np.hstack([a, a]) if a.ndim == 2 else a[None, None],
        lambda a: a[:, :0] if a.ndim == 2 else a.reshape(-1)[:0],
        lambda a: a.astype(np.complex64),
        lambda a: a.astype(bool),
    ],
    ids=["short", "long", "flat", "wide", "empty", "complex", "bool"],
)
def test_arrays_of_the_wrong_form_are_refused(parts, tmp_path, change):
    arrays, config = parts
    for name in arrays:
        forged(tmp_path / "model", arrays | {name: change(arrays[name])}, config)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(parts, tmp_path, value):
    arrays, config = parts
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            forged(tmp_path / "model", arrays | {name: np.full_like(array, value)}, config)


def test_negative_rounds_are_refused(parts, tmp_path):
    arrays, config = parts
    forged(tmp_path / "model", arrays | {"t": np.array(-5)}, config)


def test_more_terms_than_the_budget_are_refused(parts, tmp_path):
    arrays, config = parts
    config["run"]["params"]["budget"] = 3
    forged(tmp_path / "model", arrays, config)


RUNS = {
    "columns": ["abc", -1, None, 1.5],
    "n_features": ["abc", -1, None, 3],
    "dtype": ["float16", "object", "foo", 5],
    "outputs": ["abc", -1, 0, 2, 7, None],
    "seed": ["abc", None, 1.5],
    "classes": [
        None,
        [],
        {"dtype": "<i8", "labels": [1, -1]},
        {"dtype": "<i8", "labels": [1, 1]},
        {"dtype": "<i8", "labels": [1, 2, 3]},
        {"dtype": "<i8", "labels": ["a", "b"]},
        {"dtype": "foo", "labels": [-1, 1]},
        {"dtype": "<f8", "labels": [None, 1.0]},
    ],
}


@pytest.mark.parametrize(("key", "value"), [(k, v) for k, values in RUNS.items() for v in values])
def test_runs_that_do_not_fit_are_refused(parts, tmp_path, key, value):
    arrays, config = parts
    config["run"][key] = value
    forged(tmp_path / "model", arrays, config)


@pytest.mark.parametrize("key", ["columns", "n_features", "dtype", "outputs", "seed", "sparse", "classes"])
def test_runs_that_lack_something_are_refused(parts, tmp_path, key):
    arrays, config = parts
    del config["run"][key]
    forged(tmp_path / "model", arrays, config)


def test_configs_that_say_nothing_are_refused(parts, tmp_path):
    arrays, config = parts
    wrong = [
        {},
        [],
        None,
        "hello",
        config | {"algorithm": "Foo"},
        config | {"algorithm": None},
        config | {"algorithm": ["a"]},
        config | {"algorithm": "Estimator"},
        config | {"params": None},
        config | {"params": {"no_such": 1}},
        config | {"params": {"kernel": {"part": "Foo"}}},
        config | {"params": {"kernel": {"part": "Gaussian", "gamma": -1.0}}},
        config | {"params": {"kernel": {"part": "Hinge"}}},
        config | {"params": {"kernel": {"part": ["x"]}}},
        config | {"params": {"kernel": {"number": "abc"}}},
        config | {"params": {"kernel": {}}},
        config | {"params": {"budget": -1}},
        config | {"params": {"average": "sometimes"}},
        config | {"run": []},
        config | {"run": "x"},
        {k: v for k, v in config.items() if k != "run"},
        {k: v for k, v in config.items() if k != "params"},
    ]
    for one in wrong:
        forged(tmp_path / "model", arrays, one)


def raw(path, arrays, metadata):
    path.write_bytes(safetensors.numpy.save(arrays, metadata))


def test_metadata_of_others_is_refused(parts, tmp_path):
    arrays, config = parts
    path = tmp_path / "model"
    text = json.dumps(config)
    digest = state_module._digest(arrays, text)
    good = {"onkel": "1", "config": text, "sha256": digest}
    raw(path, arrays, good)
    onkel.load(path)
    for metadata in (None, {}, {"format": "pt"}, {"onkel": "1"}, {"config": text}):
        raw(path, arrays, metadata)
        with pytest.raises(ValueError, match="not an onkel model"):
            onkel.load(path)
    for number in ("2", "0", "-1", "", "1.0", "one"):
        raw(path, arrays, good | {"onkel": number})
        with pytest.raises(ValueError, match="format"):
            onkel.load(path)
    raw(path, arrays, good | {"onkel": "2"})
    with pytest.raises(ValueError, match=r"format 2.*update onkel"):
        onkel.load(path)
    for wrong in ("", "0" * 64, digest[:-1], digest.upper()):
        raw(path, arrays, good | {"sha256": wrong})
        with pytest.raises(ValueError, match="checksum"):
            onkel.load(path)
    for broken in ("", "{", "nonsense", "[" * 100_000):
        raw(path, arrays, good | {"config": broken, "sha256": state_module._digest(arrays, broken)})
        with pytest.raises(ValueError, match="model"):
            onkel.load(path)


def test_a_file_of_unknown_parts_says_what_to_import(tmp_path):
    class Curious(Kernel):
        """A kernel that the reader of the file does not know."""

        def pair(self, x, z):
            return x * z

        def shape(self, total):
            return total

    model, X = forgetron(kernel=Curious())
    assert model._learned.engine.kind == "python"
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(onkel.load(tmp_path / "model").predict(X), model.predict(X))
    del onkel.core.part.Part.known["Curious"]
    with pytest.raises(ValueError, match=r"Curious.*import"):
        onkel.load(tmp_path / "model")


def test_a_folder_that_is_not_there_is_told_by_the_name_that_was_given(tmp_path):
    model, _ = forgetron()
    with pytest.raises(FileNotFoundError) as caught:
        model.save(tmp_path / "nowhere" / "model")
    assert caught.value.filename == str(tmp_path / "nowhere" / "model")
    assert "None" not in str(caught.value)
    with pytest.raises(IsADirectoryError, match="name a file, this is a folder"):
        model.save(tmp_path)


def test_reading_executes_nothing(tmp_path):
    """A pickle is not a model, whatever its name."""
    (tmp_path / "model").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match="not an onkel model"):
        read(tmp_path / "model")
