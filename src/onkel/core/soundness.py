"""Soundness: what a saved state must be, whoever wrote the file.

An engine relies on more than shapes: factors have positive diagonals, terms entered in past rounds, a scale is near 1.
`Engine.check_state` checks this, part by part, for both engines, before a state from a file is restored. Each
`check_state` raises ValueError for a state that no stream can lead to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
State = dict[str, Array]
MOST = 1e200  # of coefficients: single steps are below 1e150
MOST_ROUNDS = 2**53  # rounds are counted exactly up to here, in floating point too


def require(name: str, true: Any, wanted: str) -> None:
    """Raise ValueError if not all of `true` is true."""
    if not np.all(true):
        raise ValueError(f"'{name}' must be {wanted}")


def shaped(state: State, name: str, shape: tuple[int, ...]) -> Array:
    """The array of that name, which must have this shape."""
    array = state[name]
    if array.shape != shape:
        raise ValueError(f"'{name}' has shape {array.shape}, not {shape}")
    return array


def number(state: State, name: str) -> float:
    """The single number of that name."""
    return float(shaped(state, name, ()))


def whole(state: State, name: str, shape: tuple[int, ...] = ()) -> Array:
    """The array of that name, which must hold whole numbers."""
    array = shaped(state, name, shape)
    require(name, array.dtype.kind in "iu", "whole numbers")
    return array


def rounds(state: State) -> int:
    """The number of rounds of a state."""
    t = int(whole(state, "t"))
    require("t", 0 <= t <= MOST_ROUNDS, "a number of rounds, 0 or more")
    return t


def random(state: State, name: str) -> None:
    """The state of a random stream."""
    require(name, int(whole(state, name)) >= 0, "the state of a random stream, >= 0")


def nonnegative(state: State, *names: str) -> None:
    """Those of these arrays that the state has must be >= 0."""
    for name in names:
        if name in state:
            require(name, state[name] >= 0, ">= 0")


def scale(state: State, head: str, average: Any) -> float:
    """The common factor of coefficients, which is near 1, and for averages its sum over the rounds."""
    factor = number(state, f"{head}scale")
    require(f"{head}scale", 1e-3 < factor < 1e3, "between 0.001 and 1000")
    if average:
        most = 1e3 * (rounds(state) + 1)
        require(f"{head}cumulative", 0 <= number(state, f"{head}cumulative") <= most, f"between 0 and {most:g}")
    return factor


def coefficients(name: str, values: Array, factor: float) -> None:
    """Coefficients, multiplied by the common factor, must be in the range of numbers; sums of steps may be there."""
    with np.errstate(over="ignore"):
        require(name, ~(np.abs(values.astype(np.float64)) * factor >= MOST), f"below {MOST:g}")
