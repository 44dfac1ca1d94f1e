"""LIBSVM text: its lines as rows of a CSR matrix, or an error with the number of the line that is not valid.

This parser defines the format; the one in C++ is faster, and leaves text that it does not know to this one. A line is

    target [qid:number] column:value column:value ... [# comment]

Targets and values are decimal numbers, finite. Columns may come in any order, but only once. Empty lines and lines of
comment are skipped; carriage returns are ignored, and so is a byte-order mark at the start of a file (see `readers`).
"""

from __future__ import annotations

import itertools
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onkel.core.limits import limits

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_QUERY = re.compile(rb"qid:\d+")
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)


class Rows(NamedTuple):
    """Rows of LIBSVM text: targets, and the parts of a CSR matrix with `width` columns."""

    targets: NDArray[np.float64]
    values: NDArray[np.float64]
    columns: NDArray[np.int32]
    starts: NDArray[np.int32]
    width: int


class TextError(ValueError):
    """Text that is not understood, with the number of its line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def parse_libsvm(text: bytes, base: int, line: int = 1, bad: list[TextError] | None = None) -> Rows:
    """The rows of whole lines; columns are counted from `base`, lines in messages from `line`.

    With a list of `bad` ones, lines that are not understood are added to it and left out, else the first is an error.
    """
    targets: list[float] = []
    values: list[float] = []
    columns: list[int] = []
    starts = [0]
    for number, content in enumerate(text.split(b"\n"), line):
        words = content.partition(b"#")[0].split()
        if not words:
            continue
        try:
            target, pairs = _row(number, words, base)
        except TextError as problem:
            if bad is None:
                raise
            bad.append(problem)
            continue
        targets.append(target)
        columns += [column for column, _ in pairs]
        values += [value for _, value in pairs]
        starts.append(len(columns))
    return Rows(
        np.array(targets, np.float64),
        np.array(values, np.float64),
        np.array(columns, np.int32),
        np.array(starts, np.int32),
        max(columns, default=-1) + 1,
    )


def _row(line: int, words: list[bytes], base: int) -> tuple[float, list[tuple[int, float]]]:
    """The target and the pairs of a row, by their columns."""
    target = _number(line, words[0], "the target")
    pairs = [_pair(line, word, base) for word in words[1 + _has_query(words) :]]
    pairs.sort(key=lambda pair: pair[0])
    for (one, _), (other, _) in itertools.pairwise(pairs):
        if one == other:
            raise TextError(line, f"column {one + base} comes twice; a row may name it only once")
    return target, pairs


def _has_query(words: list[bytes]) -> bool:
    return len(words) > 1 and _QUERY.fullmatch(words[1]) is not None


def _pair(line: int, word: bytes, base: int) -> tuple[int, float]:
    column, colon, value = word.partition(b":")
    if not colon or not column.isdigit():
        raise TextError(line, f"{shown(word)} is no pair column:value; a line is 'target column:value ...'")
    number = int(column) if len(column.lstrip(b"0")) < 19 else 10**18
    if number < base:
        raise TextError(line, "column 0, where columns were counted from 1 so far; in Python pass zero_based=True")
    if number - base >= (most := min(limits().features, 2**31 - 1)):
        remedy = "number columns without gaps, or allow more: with onkel.use_limits(features=...)"
        raise TextError(line, f"column {shown(column)} is beyond the limit of {most:,} columns; {remedy}")
    return number - base, _number(line, value, f"the value of column {number}")


def _number(line: int, word: bytes, what: str) -> float:
    if _NUMBER.fullmatch(word):
        value = float(word)
        if np.isfinite(value):
            return value
        raise TextError(line, f"{what}, {shown(word)}, is too large for a number of double precision")
    if _NOT_FINITE.fullmatch(word):
        raise TextError(line, f"{what} is {shown(word)}, which is not finite; leave the value out, or the row")
    raise TextError(line, f"{what}, {shown(word)}, is not a number; a line is 'target column:value ...'")


def shown(word: bytes, most: int = 40) -> str:
    """A piece of text for a message: quoted, cut, and printable whatever it is."""
    text: Any = word[:most].decode("utf-8", "backslashreplace")
    return repr(text) + ("..." if len(word) > most else "")
