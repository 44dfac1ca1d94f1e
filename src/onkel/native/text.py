"""Readers of text in C++, for `datasets`."""

from __future__ import annotations

from typing import Any

import numpy as np

from onkel.core.limits import limits
from onkel.native import choice

Array = np.ndarray[Any, np.dtype[Any]]


def parse_libsvm(text: bytes, base: int) -> tuple[Any, ...] | None:
    """`datasets.text.parse_libsvm` in C++: the fields of `Rows`, or None if the text must be read in Python.

    None is returned if C++ is not built or disabled, and for errors and rare forms, which only the Python reader knows.
    `base` is the number of the first column, 0 or 1.
    """
    core = choice.wanted()
    parts: tuple[Any, ...] | None = core.parse_libsvm(text, base) if core is not None else None
    return parts if parts is None or parts[-1] <= limits().features else None


def parse_table(text: bytes, separator: str, wanted: list[int]) -> tuple[Array, Array, int] | None:
    """Numbers, positions of the text cells, and number of rows of a table without quotes; None as in `parse_libsvm`.

    `wanted` says for each column: 0 skip, 1 number (NaN if the cell is empty), 2 text.
    """
    core = choice.wanted()
    parts: tuple[Array, Array, int] | None = core.parse_table(text, separator, wanted) if core is not None else None
    return parts
