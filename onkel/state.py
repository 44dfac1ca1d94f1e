"""State: one way to write a learner down, used by save, load, pickle and copy.

A state is a flat dictionary of arrays (`basis.x`, `basis.coef`, `t`, ...) and a `config` of plain JSON data.
On disk it has the safetensors layout, readable without onkel: the arrays, and in the metadata the config,
a format number and a checksum. Nothing in a file is ever executed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

Array = np.ndarray[Any, np.dtype[Any]]
State = dict[str, Array]

FORMAT = 1


def write(path: str | os.PathLike[str], arrays: State, config: dict[str, Any]) -> None:
    """Write a state; the file appears whole or not at all."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "name a file, this is a folder", str(path))
    text = json.dumps(config, sort_keys=True)
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata = {"onkel": str(FORMAT), "config": text, "sha256": _digest(arrays, text)}
    temporary = path.with_name(f".{path.name[:100]}.{threading.get_ident()}.{os.getpid()}.onkel")
    try:
        temporary.write_bytes(safetensors.numpy.save(arrays, metadata))
        os.replace(temporary, path)
    except BaseException as problem:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(problem, OSError) and problem.filename:  # one that nobody asked for
            raise type(problem)(problem.errno, problem.strerror, str(path)) from None
        raise


def read(path: str | os.PathLike[str]) -> tuple[State, dict[str, Any]]:
    """The arrays and the config of a file, after checking that it is whole and of a known format."""
    try:
        with safetensors.safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise
    except (safetensors.SafetensorError, OSError, ValueError, OverflowError) as error:
        if not _begins(path):
            raise ValueError(f"{path} is not an onkel model: save models with model.save(path)") from None
        raise ValueError(f"{path} is not a whole onkel model ({error}): copy or save it again") from None
    if "onkel" not in metadata or "config" not in metadata:
        raise ValueError(f"{path} is a safetensors file, but not an onkel model: save models with model.save(path)")
    if metadata["onkel"] != str(FORMAT):
        raise ValueError(f"{path} has format {metadata['onkel']}, this onkel reads format {FORMAT}: update onkel")
    if metadata.get("sha256") != _digest(arrays, metadata["config"]):
        raise ValueError(f"{path} was altered after it was saved (its checksum differs): restore it or save it again")
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise ValueError(f"{path} holds no usable model: '{name}' must be finite numbers")
    try:
        config: dict[str, Any] = json.loads(metadata["config"])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} holds no usable model: its config is not JSON ({error})") from None
    return arrays, config


def _begins(path: str | os.PathLike[str]) -> bool:
    """Does the file begin as safetensors do, with the length of a header in JSON, and the header?"""
    try:
        with Path(path).open("rb") as file:
            return file.read(9)[8:] == b"{"
    except OSError:
        return False


def _digest(arrays: State, text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def relabel(state: State, old: Array, new: Array) -> State:
    """The state of a classifier for more classes; a class that joins has score 0.

    One class: f with target -1. Two: one score f, targets -1 and +1. More: one score per class, and a
    binary f becomes (-f/2, f/2). `old` and `new` are sorted; `new` contains `old`.
    """
    at = np.searchsorted(new, old)
    state = dict(state)
    components = sorted({name.partition(".")[0] for name in state if name.partition(".")[0].isdigit()})
    for head in components:  # of a pool
        inner = {name.removeprefix(f"{head}."): a for name, a in state.items() if name.startswith(f"{head}.")}
        state |= {f"{head}.{name}": a for name, a in relabel(inner, old, new).items()}
    by_output = ("basis.coef", "basis.base", "basis.score", "dead.coef", "weights.coef", "weights.base")
    for name in (*by_output, "bias", "bias_sum", "instances.coef"):
        if name in state:
            state[name] = _outputs(state[name], at, len(new))
    if len(new) == 2 and at[0] == 1 and "basis.positive" in state:
        state["basis.positive"], state["basis.negative"] = state["basis.negative"], state["basis.positive"]
    if len(new) > 2 >= len(old):
        for name in ("update.norm2", "budget.norm2", "groups.norm2"):
            if name in state:
                state[name] = state[name] / (4 if len(old) == 1 else 2)  # |(-f/2, 0, ..)|^2, |(-f/2, f/2)|^2
        if "update.farthest" in state:
            state["update.farthest"] = state["update.farthest"] / (2 if len(old) == 1 else math.sqrt(2))
    if state.get("update.squares", np.zeros(0)).ndim == 2 and len(state["update.squares"]):
        state["update.squares"] = np.abs(_outputs(state["update.squares"], at, len(new), half=1.0))
    if "budget.recent.y" in state:
        y = state["budget.recent.y"]
        label = at[(y > 0).astype(int) if len(old) <= 2 else y.astype(int)]
        state["budget.recent.y"] = (2.0 * label - 1.0) if len(new) == 2 else label.astype(np.float64)
    return state


def _outputs(values: Array, at: Array, classes: int, half: float = 0.5) -> Array:
    """Columns of scores for `classes` classes, the old ones standing at `at`; of a binary score each has half."""
    if classes == 2:  # one class becomes two: it was -1, and is +1 if it now comes second
        return values if at[0] == 0 else -values
    wider = np.zeros((len(values), classes))
    if values.shape[1] == 1:
        wider[:, at[:1]] = -half * values
        wider[:, at[1:]] = half * values
    else:
        wider[:, at] = values
    return wider
