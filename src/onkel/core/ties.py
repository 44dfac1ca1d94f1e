"""Ties: values are often equal in exact arithmetic, and rounding must not choose among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from onkel.core.errors import Diverged

Array = np.ndarray[Any, np.dtype[Any]]

EQUAL = 1e-9  # relative difference up to which values are equal
ROUNDING = 1e-14  # rounding of a difference of two numbers, relative to these


def oldest_of_least(values: Array, born: Array, sizes: Array | float = 0.0) -> int:
    """The slot of the least value; of several that are equal up to rounding, the term that entered first.

    Values are equal to the least if they differ from it by at most 1e-9 of it. If values are differences, `sizes` are
    the magnitudes of their operands, for each value or for all: then each value may be wrong by 1e-14 of its size, and
    all that may be the least are equal to it.
    """
    errors = ROUNDING * np.broadcast_to(sizes, values.shape)
    limit = np.fmin.reduce(values + np.maximum(EQUAL * np.abs(values), errors))
    if np.isnan(limit):
        raise Diverged("the least cost of a term is", limit)
    return int(np.argmin(np.where(values - errors <= limit, born[: len(values)], np.inf)))
