"""Bad rows: what is known of a row that cannot be used, what becomes of it, and the file in which such rows are kept.

A kept file can be mended and read again: it has the header of its source, and before each row, as it stands in the
source, a line that says where it was and what is wrong. Readers skip those lines. Rows of files that are no text are
written as CSV.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from onkel.core.errors import DataError
from onkel.core.wording import printable

MARK = b"# onkel: "  # begins a line of a kept file that is about the row after it


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used.

    Parameters
    ----------
    number : of its first line, from 1; in files that are no text, of the row, from 0.
    reason : what is wrong, and what to do about it.
    column : the name of the column, if it is about one.
    text : the row as it stands in the file.
    is_line : whether the number is that of a line.
    """

    number: int
    reason: str
    column: str | None = None
    text: bytes = b""
    is_line: bool = True

    def __str__(self) -> str:
        where = f"line {self.number}" if self.is_line else f"row {self.number} (from 0)"
        column = "" if self.column is None else f", column {self.column!r}"
        return f"{where}{column}: {self.reason}"


# What becomes of bad rows. A path: they are skipped, and kept in that file; a list: skipped, and added to it.
BadRows = Literal["stop", "skip"] | Path | list[BadRow]


def check(bad_rows: Any) -> None:
    """Raise DataError unless it says what becomes of bad rows."""
    if not isinstance(bad_rows, (Path, list)) and bad_rows not in ("stop", "skip"):
        raise DataError(f"bad_rows must be 'stop', 'skip', a list, or a Path of a file, got {bad_rows!r}")


def write(file: BinaryIO, head: bytes, rows: Sequence[BadRow]) -> None:
    """Append rows to a file of kept rows, which begins with `head`, the header of the source."""
    if not file.tell():
        file.write(head)
    for row in rows:
        file.write(MARK + printable(str(row)).encode() + b"\n" + row.text.rstrip(b"\r\n") + b"\n")
    file.flush()


def as_csv(cells: Sequence[Any]) -> bytes:
    """Cells that come from no text, as a line of CSV; empty where a value is missing."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow("" if cell is None or cell != cell else cell for cell in cells)
    return text.getvalue().encode()
