"""Model files, changed at random, with a right checksum: loaded, asked for predictions, taught, widened and saved.

Each is refused in one sentence, or it is a model: it answers, learns or says why not, and can be saved.
"""

from __future__ import annotations

import contextlib
import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import scipy.sparse as sp
import streams
from watch import Unexpected

import onkel
from onkel.core import state as files
from onkel.core.errors import Busy
from onkel.faces.classifier import Classifier
from onkel.faces.files import MEMORY

Array = np.ndarray[Any, Any]
ROUNDS = 40
BEGUN = 25  # rows learned before the file is saved
EXTREMES = [0.0, -0.0, -1.0, 1.0, 0.5, 1e-320, 1e-160, 1e-20, 1e20, 1e100, 1e149, 1e160, 1.7e308, -1e149, -1e308]
BAD = [np.nan, np.inf, -np.inf]
WHOLE = [0, -1, 1, 2, 3, 7, 15, 16, 255, 2**31 - 1, 2**31, 2**53, 2**62, 2**63 - 1, -(2**31), -(2**63)]
PLAIN = [None, True, False, 0, 1, -1, 2, 1e-320, 1e308, -1e9, 2_000_000_000, 10**18, 10**400, "", "a", "auto",
         "nan", "1/t", [], {}, [1], {"part": "Gaussian", "gamma": 1.0}, {"number": "inf"}, {"number": "nan"},
         {"part": "x"}, {"algorithm": "PAClassifier", "params": {}}, "\ud800", "float32", "<U9", "<i8", "object",
         [[[[]]]]]  # fmt: skip


class Sample:
    """A model that was saved: its arrays and config, the rows to go on with, and the engine."""

    def __init__(self, name: str, params: dict[str, Any], form: str, several: bool, engine: str) -> None:
        self.engine = engine
        X, y = streams.stream_for(streams.ALL[name], ROUNDS, form=form, several=several)
        with onkel.use_engine(engine):
            model = streams.ALL[name](**params)
            rows = X[:BEGUN]
            if not streams.ALL[name].online:
                model.fit(rows, y[:BEGUN])
            else:
                streams.learn(model, rows, None if y is None else y[:BEGUN])
        self.X, self.y, self.online = X[BEGUN:], None if y is None else y[BEGUN:], streams.ALL[name].online
        self.arrays, self.config = model.state()
        self.text = json.dumps(self.config, sort_keys=True)


def samples() -> list[Any]:
    """What every case chooses from: each estimator, setting, form of rows, and engine."""
    made = []
    for name, cls in streams.ALL.items():
        for number, params in enumerate(cls.examples):
            for several in (False, True) if issubclass(cls, Classifier) and not cls.two_classes else (False,):
                form = streams.FORMS[(len(made) + number) % len(streams.FORMS)]
                average = [{}, {"average": True}, {"average": "all"}][len(made) % 3]
                for engine in ("native", "python") if onkel.native.available() else ("python",):
                    made.append((name, params, average, form, several, engine))
    return made


def make(name: str, params: Any, average: Any, form: str, several: bool, engine: str) -> Sample:
    """The sample; without an average or in a dense form if the estimator does not take these."""
    for more, shape in ((average, form), ({}, form), ({}, "dense")):
        try:
            return Sample(name, {**params, **more}, shape, several, "auto" if engine == "native" else engine)
        except (ValueError, TypeError):
            continue
    raise RuntimeError(f"no sample of {name}")


class ModelFiles:
    """The target of the attack."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.samples = [make(*one) for one in samples()]
        self.folder = Path(tempfile.mkdtemp(prefix="onkel-attack-"))

    def __call__(self, case: int) -> str:
        rng = np.random.default_rng([self.seed, case])
        sample = self.samples[rng.integers(len(self.samples))]
        arrays, text = changed(sample, rng)
        if asks_for_much(text):
            return "skipped"
        path = self.folder / "model"
        path.write_bytes(forged(arrays, text))
        with onkel.use_engine(sample.engine):
            return tried(path, sample, rng)


def asks_for_much(text: str) -> bool:
    """Does a config ask for random numbers that the machine has room for, but that take seconds to draw?

    Such a model may be what it says: nothing else in the file depends on the number of features.
    """
    try:
        run = json.loads(text)["run"]
        size = run["n_features"] * max(run["params"].get("components", 1), 1)
        return bool(2**20 < size < MEMORY // 8)
    except Exception:
        return False


def forged(arrays: dict[str, Array], text: str) -> bytes:
    """A file with these arrays and this config, and a right checksum."""
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata = {"onkel": str(files.FORMAT), "config": text, "sha256": files._digest(arrays, text)}
    return safetensors.numpy.save(arrays, metadata)


def changed(sample: Sample, rng: Any) -> tuple[dict[str, Array], str]:
    """Arrays and config after one to three changes, most of them to numbers."""
    arrays, text = dict(sample.arrays), sample.text
    for _ in range(rng.integers(1, 4)):
        if rng.random() < 0.75:
            name = str(rng.choice(list(arrays))) if arrays else ""
            if name:
                change_array(arrays, name, rng)
        else:
            with contextlib.suppress(RecursionError, OverflowError):  # too deep or too large to be changed again
                text = changed_text(text, rng)
    return {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in arrays.items()}, text


def change_array(arrays: dict[str, Array], name: str, rng: Any) -> None:
    """Change some numbers, bits, the shape, the type or the name of an array, or drop it."""
    array, kind = arrays[name].copy(), rng.random()
    flat = array.reshape(-1)
    some = rng.random(flat.shape) < rng.choice([0.05, 0.5, 1.1])
    if kind < 0.45 and flat.size:
        if array.dtype.kind not in "iu":
            pool = EXTREMES if rng.random() < 0.97 else BAD
            with np.errstate(all="ignore"):
                flat[some] = np.array(rng.choice(pool)).astype(array.dtype)
        else:
            limits = np.iinfo(array.dtype)
            flat[some] = np.clip(int(rng.choice(WHOLE)), limits.min, limits.max)
    elif kind < 0.6 and flat.size:
        with np.errstate(all="ignore"):
            flat[some] = (flat[some] * rng.choice([-1, 0.999, 1.001, 10.0, 1e-9, 1e30])).astype(array.dtype)
    elif kind < 0.72 and flat.size:
        data = flat.view(np.uint8)
        for at in rng.integers(len(data), size=rng.integers(1, 5)):
            data[at] ^= np.uint8(1 << rng.integers(8))
    elif kind < 0.76 and flat.size:
        rng.shuffle(flat)
    elif kind < 0.88:
        array = other_shape(array, rng)
    elif kind < 0.92:
        with np.errstate(all="ignore"):
            array = array.astype(rng.choice(["f4", "f8", "f2", "i8", "u8", "i4", "u1", "?"]))
    elif kind < 0.95:
        del arrays[name]
        return
    elif kind < 0.97:
        other = str(rng.choice(list(arrays)))
        arrays[other] = array
        return
    else:
        arrays[str(rng.choice(["x", "t", f"{name}.x", "basis.x", "0.t", "weights.coef", ""]))] = array
        return
    arrays[name] = array


def other_shape(array: Array, rng: Any) -> Array:
    """The array cut, repeated, transposed, flattened or emptied."""
    choice = rng.integers(7)
    if not array.ndim:
        return np.full((int(rng.integers(3)),), array)
    if choice == 0:
        return array[: rng.integers(len(array) + 1)]
    if choice == 1:
        return np.concatenate([array] * int(rng.integers(2, 5)))
    if choice == 2:
        return array.T
    if choice == 3:
        return array.reshape(-1)
    if choice == 4:
        return array[..., :0]
    if choice == 5:
        return array[..., : rng.integers(array.shape[-1] + 1)]
    return np.zeros((int(rng.choice([0, 2**20, 2**40])), 0), array.dtype)


def changed_text(text: str, rng: Any) -> str:
    """A config with one value changed, removed or added; sometimes one that is no JSON at all."""
    kind = rng.random()
    if kind < 0.04 and text:
        at = int(rng.integers(len(text)))
        return text[:at] + chr(int(rng.integers(32, 127))) + text[at + 1 :]
    if kind < 0.05:
        return "[" * int(rng.choice([10, 500, 100_000]))
    try:
        config = json.loads(text)
    except ValueError:
        return text
    if kind < 0.09:
        config = nested(config, rng)
    places = list(walk(config)) if isinstance(config, (dict, list)) else []
    if not places:
        return text
    holder, key = places[rng.integers(len(places))]
    value, choice = holder[key], rng.random()
    if choice < 0.5:
        holder[key] = copy.deepcopy(PLAIN[rng.integers(len(PLAIN))])
    elif choice < 0.75 and isinstance(value, (int, float)):
        holder[key] = type(value)(value * float(rng.choice([-1, 2, 10, 1e6, 0.5])))
    elif choice < 0.85:
        del holder[key]
    else:
        other, another = places[rng.integers(len(places))]
        holder[key] = copy.deepcopy(other[another])
    return json.dumps(config)


def nested(config: Any, rng: Any) -> Any:
    """The config with a kernel of many levels."""
    kernel: Any = {"part": "Gaussian", "gamma": 1.0}
    for _ in range(int(rng.choice([5, 60, 400]))):
        kernel = {"part": "Sum", "kernels": [kernel, {"part": "Linear"}]}
    for holder, key in list(walk(config)):
        if key == "kernel":
            holder[key] = kernel
    return config


def walk(value: Any) -> Any:
    """Every place in nested lists and dictionaries, as (holder, key)."""
    left = [value]
    while left:
        holder = left.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], (dict, list)):
                left.append(holder[key])


def tried(path: Path, sample: Sample, rng: Any) -> str:
    """Load the file and use the model."""
    try:
        model = onkel.load(path)
    except ValueError as error:
        if str(path) not in str(error) or type(error) is not ValueError:
            raise Unexpected(f"load said: {error!r}") from error
        return "refused"
    calls = [use_prediction, use_learn, use_learn_one, use_widen, use_save]
    for number in rng.permutation(len(calls)):
        try:
            calls[number](model, sample, path)
        except (ValueError, FloatingPointError, NotImplementedError) as error:
            if isinstance(error, Busy) or len(str(error)) < 10 or "argmin" in str(error) or "broadcast" in str(error):
                raise Unexpected(f"{calls[number].__name__} said: {error!r}") from error
        except AttributeError as error:
            if "online" not in str(error) and "all rows at once" not in str(error):
                raise
    return "accepted"


def fitting(model: Any, X: Any) -> Any:
    """The rows with as many columns as the model has."""
    columns = getattr(model, "n_features_in_", X.shape[1])
    if columns == X.shape[1] or columns > 4096:
        return X
    dense = X.toarray() if sp.issparse(X) else X
    return np.resize(dense, (len(dense), columns)) if columns else X


def use_prediction(model: Any, sample: Sample, path: Path) -> None:
    X = fitting(model, sample.X)
    model.predict(X)
    one = model.score_one if sample.y is None else model.predict_one
    one(X[0].toarray()[0] if sp.issparse(X) else X[0])


def use_learn(model: Any, sample: Sample, path: Path) -> None:
    if sample.online:
        X = fitting(model, sample.X)
        model.learn(X) if sample.y is None else model.learn(X, sample.y)


def use_learn_one(model: Any, sample: Sample, path: Path) -> None:
    if sample.online:
        X = fitting(model, sample.X)
        for i in range(3):
            x = X[i].toarray()[0] if sp.issparse(X) else X[i]
            model.learn_one(x) if sample.y is None else model.learn_one(x, sample.y[i])


def use_widen(model: Any, sample: Sample, path: Path) -> None:
    model.widen(getattr(model, "n_features_in_", 4) + 3)


def use_save(model: Any, sample: Sample, path: Path) -> None:
    model.save(path.with_name("again"))
