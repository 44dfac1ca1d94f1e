"""State: the one form in which a learner is saved, used by save, load, pickle and copy.

A state is a flat dictionary of arrays (`basis.x`, `basis.coef`, `t`, ...) and a `config` of plain JSON data.
On disk it has the safetensors layout, readable without onkel: the arrays, and in the metadata the config,
a format number and a checksum. Nothing in a file is ever executed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from onkel.core.files import replacing

Array = np.ndarray[Any, np.dtype[Any]]
State = dict[str, Array]

FORMAT = 1


def write(path: str | os.PathLike[str], arrays: State, config: dict[str, Any], *, keep: bool = False) -> None:
    """Write a state; the file is complete or does not appear. `keep`: see `files.replacing`."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "name a file, this is a folder", str(path))
    text = json.dumps(config, sort_keys=True)
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata = {"onkel": str(FORMAT), "config": text, "sha256": _digest(arrays, text)}
    with replacing(path, keep=keep) as file:
        file.write(safetensors.numpy.save(arrays, metadata))


def read(path: str | os.PathLike[str]) -> tuple[State, dict[str, Any]]:
    """The arrays and the config of a file, after checking that the file is complete and of a known format."""
    try:
        with safetensors.safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise
    except MemoryError:
        raise ValueError(f"{path} needs more memory than there is") from None
    except Exception as error:  # whatever the reader of safetensors makes of it
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
    """Does the file begin as safetensors files do: the length of the header, then the header in JSON?"""
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
