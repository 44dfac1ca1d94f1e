"""Ties: in exact arithmetic values often are equal, and rounding must not choose among them."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def oldest_of_least(values: Array, born: Array, size: float = 0.0) -> int:
    """Where the least value is; among those equal up to rounding, the term that entered first.

    `size` is the magnitude of the operands, if the values are differences: it scales what counts as rounding.
    """
    least = values.min()
    close = np.flatnonzero(values <= least + 1e-9 * max(abs(least), size))
    return int(close[np.argmin(born[close])])
