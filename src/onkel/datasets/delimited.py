"""CSV: its header, and its records as columns of cells.

A record is a line, or several lines if a cell in quotes has line ends. The parser here defines the format; the one in
C++ is faster, and leaves text that it does not know to this one.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from numpy.typing import NDArray

from onkel import native
from onkel.core.errors import DataError
from onkel.datasets.bad_rows import MARK
from onkel.datasets.tables import Cells, Table

Array = NDArray[Any]
Span = tuple[int, int]  # where a record begins and ends in the text

LONGEST_CELL = 131072  # characters: the limit of Python's csv
_NOT_TEXT = "not UTF-8 text; save it as CSV with that encoding"
_NUL = "a NUL byte, which no text has; save it as CSV in UTF-8"


class Header(NamedTuple):
    """What the first record of a file says."""

    names: list[str]
    separator: str | None  # None: blanks
    size: int  # bytes before the first row
    text: bytes  # the header itself, empty if there is none


class Records(NamedTuple):
    """The records of a text."""

    columns: list[Cells]  # of those with the right number of cells
    spans: Callable[[], list[Span]]  # where they are
    bad: list[tuple[Span, str]]  # the others, and what is wrong
    size: int  # bytes of text; what follows is the beginning of a record


def header(name: str, text: bytes, named: bool) -> Header:
    """The header of a file that begins with this text."""
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{name} is not UTF-8 text; save it as CSV with that encoding")
    begin = 3 if text.startswith(b"\xef\xbb\xbf") else 0
    while (line := text[begin : text.find(b"\n", begin) + 1]) and (line.startswith(MARK) or not line.strip(b"\r\n")):
        begin += len(line)
    start = text[begin:]
    line_number = 1 + text.count(b"\n", 0, begin)
    if b"\n" not in start and b"\r" in start.rstrip(b"\r"):
        raise DataError(f"{name} ends its lines with carriage returns alone; save it with line feeds")
    end = _record_end(start)
    separator = _separator(start[:end])
    (found,) = [*_Parser(start[:end], separator, None, final=True).records(), None][:1]
    if found is None or isinstance(found[1], str):
        reason = "" if found is None else found[1]
        raise DataError(f"{name}, line {line_number}: {reason}" if reason else f"{name} has no header")
    names = [cell.strip() for cell in found[1]]
    if not any(names):
        raise DataError(f"{name} has no header; its first line must name the columns")
    if not named:
        return Header([str(j) for j in range(1, len(names) + 1)], separator, begin, b"")
    if all(map(_is_number, names)):
        raise DataError(
            f"{name}, line {line_number}: only numbers where columns should be named; name them, or say there is no "
            "header (--no-header), then they are 1, 2, 3, ..."
        )
    return Header(names, separator, begin + end, start[:end])


def _record_end(text: bytes) -> int:
    """Where the first record ends: at the first end of line outside quotes."""
    end = 0
    while end < len(text):
        end = text.find(b"\n", end) + 1 or len(text)
        if text.count(b'"', 0, end) % 2 == 0:
            break
    return end


def _separator(line: bytes) -> str | None:
    """The character between cells, judged by the first line; None: blanks."""
    found = max(",;\t", key=lambda sign: line.count(sign.encode()))
    return None if found.encode() not in line and len(line.split()) > 1 else found


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def records(text: bytes, separator: str | None, table: Table, *, final: bool, skip: bool) -> Records:
    """The records of a text; `final`: nothing follows. Unless bad ones are skipped, the first one ends them."""
    return _fast(text, separator, table) or _slow(text, separator, table, final, skip)


# -- in C++


def _fast(text: bytes, separator: str | None, table: Table) -> Records | None:
    """By the parser in C++; None if no column is known to be numbers, or a cell needs Python."""
    wanted = [] if table.schema.texts is None else table.wanted()
    if separator is None or 1 not in wanted or b'"' in text or b"\0" in text or MARK in text or not _is_unicode(text):
        return None
    parsed = native.parse_table(text, separator, wanted)
    if parsed is None or not parsed[2]:
        return None
    values, places = (part.reshape(parsed[2], -1) for part in parsed[:2])
    numbers, spans = iter(values.T), iter(places.T.reshape(-1, 2, parsed[2]))
    columns = [next(numbers) if k == 1 else _texts(text, *next(spans)) if k == 2 else () for k in wanted]
    return Records(columns, functools.partial(_lines, text), [], len(text))


def _is_unicode(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _texts(text: bytes, begins: Array, ends: Array) -> list[str]:
    return [text[begin:end].decode("utf-8") for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]


def _lines(text: bytes) -> list[Span]:
    """Where the lines are that are not empty."""
    spans, begin = [], 0
    for line in _split(text):
        if line.strip():
            spans.append((begin, begin + len(line)))
        begin += len(line)
    return spans


def _split(text: bytes) -> list[bytes]:
    """Lines with their ends."""
    lines = [line + b"\n" for line in text.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


# -- in Python


def _slow(text: bytes, separator: str | None, table: Table, final: bool, skip: bool) -> Records:
    width = len(table.names)
    rows: list[list[str]] = []
    spans: list[Span] = []
    bad: list[tuple[Span, str]] = []
    parser = _Parser(text, separator, width, final)
    for span, found in parser.records():
        if isinstance(found, str):
            bad.append((span, found))
            if not skip:
                break
        else:
            spans.append(span)
            rows.append(found)
    columns: list[Cells] = list(zip(*rows, strict=True)) if rows else [()] * width
    return Records(columns, lambda: spans, bad, parser.size)


class _Parser:
    """The records of a text, one after the other.

    A record that is not well formed is its first line alone; reading goes on with the next line, so that a quote that
    is missing costs few rows.

    Parameters
    ----------
    width : how many cells a record must have; None: any number.

    Attributes
    ----------
    size : bytes up to the end of the last record.
    """

    def __init__(self, text: bytes, separator: str | None, width: int | None, final: bool) -> None:
        self._lines, self._separator, self._width, self._final = _split(text), separator, width, final
        self._decoded, self._wrong = _decoded(text, self._lines)
        self._at = self.size = 0
        self._lacking = False  # whether a record needed more lines than there are

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """The next line of a record that is being read."""
        if self._at == len(self._lines):
            self._lacking = True
            raise StopIteration
        if self._at in self._wrong:
            raise csv.Error(f"a later line of it has {self._wrong[self._at]}")
        self._at += 1
        return self._decoded[self._at - 1]

    def records(self) -> Iterator[tuple[Span, list[str] | str]]:
        """The place of each record, and its cells, or what is wrong with it."""
        reader: Any = None
        while self._at < len(self._lines):
            first = self._at
            if self._lines[first].startswith(MARK) or self._is_empty(first):
                self._at += 1
                self.size += len(self._lines[first])
                continue
            found: list[str] | str = self._wrong.get(first, "")
            plain = self._decoded[first].rstrip("\r\n")
            if not found and self._separator is None:
                self._at += 1
                cells = self._decoded[first].split()
                found = cells if max(map(len, cells), default=0) <= LONGEST_CELL else _too_long()
            elif not found and '"' not in plain and "\r" not in plain and len(plain) <= LONGEST_CELL:
                self._at += 1
                found = plain.split(self._separator)  # as csv does, without its detours
            elif not found:
                reader = reader or csv.reader(self, delimiter=self._separator or ",", strict=True)
                try:
                    found = next(reader)
                except csv.Error as problem:
                    reader = None
                    if self._lacking and not self._final:
                        return
                    limit = "field limit" in str(problem)
                    found = _too_long() if limit else f"a cell with quotes that do not fit ({problem})"
            if isinstance(found, str):
                self._at = first + 1
            elif self._width is not None and len(found) != self._width:
                found = (
                    f"{len(found)} cells where the header names {self._width} columns; "
                    "quote cells that contain the separator"
                )
            begin, self.size = self.size, self.size + sum(map(len, self._lines[first : self._at]))
            yield (begin, self.size), found

    def _is_empty(self, number: int) -> bool:
        line = self._lines[number]
        return not line.strip(b"\r\n" if self._separator == "\t" else None)


def _too_long() -> str:
    return f"a cell of more than {LONGEST_CELL:,} characters; shorten it, or close its quotes"


def _decoded(text: bytes, lines: list[bytes]) -> tuple[list[str], dict[int, str]]:
    """The lines as texts, and what is wrong with those that are none."""
    wrong = {i: _NUL for i, line in enumerate(lines) if b"\0" in line} if b"\0" in text else {}
    try:
        whole = text.decode("utf-8")
    except UnicodeDecodeError:
        decoded = []
        for i, line in enumerate(lines):
            try:
                decoded.append(line.decode("utf-8"))
            except UnicodeDecodeError:
                wrong[i] = _NOT_TEXT
                decoded.append("")
        return decoded, wrong
    return [f"{line}\n" for line in whole.split("\n")], wrong
