"""Ties: values are often equal in exact arithmetic, and rounding must not choose among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from onkel.core.errors import Diverged

Array = np.ndarray[Any, np.dtype[Any]]


def oldest_of_least(values: Array, born: Array, size: float = 0.0) -> int:
    """The slot of the least value; of several that are equal up to rounding, the term that entered first.

    `size` is the magnitude of the operands, if the values are differences: it scales the tolerance.
    """
    least = values.min()
    close = np.flatnonzero(values <= least + 1e-9 * max(abs(least), size))
    if not len(close):
        raise Diverged("the least cost of a term is", least)  # it is no number
    return int(close[np.argmin(born[close])])
