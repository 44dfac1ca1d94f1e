"""Memory: what a part remembers between rounds, converted to named arrays and back.

A memory is a dictionary of finite numbers, arrays of them, `Random` streams, and objects with `state` and `restore`
(`Basis`, `Factor`). `start` returns all entries. An array that is not empty at the start keeps its shape, except where
it depends on the outputs (`per_output`) or the columns; an empty one may take any shape. An entry that breaks these
rules could not be saved and read again; TypeError is raised in the round in which it appears.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from onkel.core import soundness
from onkel.core.basis import State
from onkel.core.part import Memory, Part
from onkel.core.random import Random
from onkel.core.run import Run


def begin(part: Any, run: Run) -> Memory:
    """The initial memory of an update, a budget or a map."""
    memory: Memory = part.start(run)
    if not isinstance(memory, dict):
        raise TypeError(f"{part!r}.start must return a dictionary, got {memory!r}")
    check(part, memory, memory)
    return memory


def check(part: Part, memory: Memory, first: Memory) -> None:
    """Raise TypeError if the memory could not be saved; `first` is the initial memory."""
    if memory.keys() != first.keys():
        name = min(memory.keys() ^ first.keys())
        changed = "added" if name in memory else "removed"
        raise TypeError(f"{part!r} {changed} the memory entry {name!r}: `start` must return all entries")
    for name, value in memory.items():
        if type(value) is float and type(first[name]) is float and math.isfinite(value):
            continue  # most entries: this runs in every round
        if isinstance(value, Random) or hasattr(value, "restore"):
            continue
        array = np.asarray(value)
        known = isinstance(value, (np.ndarray, Real, np.bool_))
        if not known or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise TypeError(
                f"{part!r} remembers {name!r}, which is a {type(value).__name__} and cannot be saved: "
                "remember numbers, NumPy arrays of numbers, Random, Basis or Factor"
            )
        begun = np.shape(first[name])
        if array.shape != begun and 0 not in begun:
            raise TypeError(
                f"{part!r} remembers {name!r} in the shape {array.shape}, which began as {begun}: "
                "keep the shape, or begin with an empty array"
            )
        if not np.isfinite(array).all():
            raise TypeError(f"{part!r} remembers {name!r} = {value}, which cannot be saved: remember finite numbers")


def saved(prefix: str, memory: Memory) -> State:
    """The memory as arrays called `prefix.name`."""
    arrays: State = {}
    for name, value in memory.items():
        if isinstance(value, Random):
            arrays[f"{prefix}.{name}"] = np.array(value.state, dtype=np.uint64)
        elif hasattr(value, "restore"):
            arrays |= value.state(f"{prefix}.{name}")
        else:
            array = np.array(value)
            arrays[f"{prefix}.{name}"] = array.astype(np.uint8) if array.dtype.kind == "b" else array
    return arrays


def check_state(part: Part, prefix: str, state: State, run: Run, terms: int = 0) -> None:
    """Raise ValueError if the state has not what the part remembers; `terms` is the number of stored terms."""
    for name, value in begin(part, run).items():
        key = f"{prefix}.{name}"
        if isinstance(value, Random):
            soundness.random(state, key)
        elif hasattr(value, "check_state"):
            value.check_state(state, key, terms)
        elif not hasattr(value, "restore"):
            _refuse_other_shape(part, key, state[key], value)


def _refuse_other_shape(part: Part, key: str, array: Any, first: Any) -> None:
    if array.shape != np.shape(first) and 0 not in np.shape(first):
        raise ValueError(
            f"'{key}' has shape {array.shape}, not {np.shape(first)}: what {part!r} remembers for each output "
            "must be named in per_output"
        )


def recall(part: Part, prefix: str, memory: Memory, state: State) -> None:
    """The inverse of `saved`: fills an initial memory."""
    for name, value in memory.items():
        key = f"{prefix}.{name}"
        if isinstance(value, Random):
            value.state = int(state[key])
        elif hasattr(value, "restore"):
            value.restore(state, key)
        else:
            kind = np.asarray(value).dtype.kind
            array = state[key].astype({"b": bool, "f": np.float64}.get(kind, state[key].dtype))
            _refuse_other_shape(part, key, array, value)
            memory[name] = array if isinstance(value, np.ndarray) else array.item()


def widen(part: Any, memory: Memory, run: Run) -> None:
    """Make room for the new features of `run`: tables grow, and so do arrays with one number per column."""
    wider = begin(part, run)
    for name, value in memory.items():
        if hasattr(value, "widen"):
            value.widen(run.columns)
        elif isinstance(value, np.ndarray) and wider[name].size and wider[name].shape != value.shape:
            wider[name][tuple(map(slice, value.shape))] = value
            memory[name] = wider[name]


def own(prefix: str, state: State) -> State:
    """The arrays called `prefix.name`, by their own names."""
    head = f"{prefix}."
    return {name.removeprefix(head): a for name, a in state.items() if name.startswith(head)}


def named(prefix: str, arrays: State) -> State:
    """The inverse of `own`."""
    return {f"{prefix}.{name}": a for name, a in arrays.items()}
