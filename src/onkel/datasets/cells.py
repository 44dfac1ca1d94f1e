"""The cells of tables: from CSV, Parquet and Arrow files to columns with names.

Each reader takes the name of a file (for messages), the open file, and whether a CSV file has a header. It returns the
names of the columns, and a function that yields the file block by block: the cells of each column, and a function that
tells where in the file a row is.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from numpy.typing import NDArray

from onkel import native
from onkel.core import optional
from onkel.core.errors import DataError
from onkel.datasets.tables import Cells, Place, Table

Array = NDArray[Any]
Batches = Callable[[Table], Iterator[tuple[list[Cells], Place]]]

_TEXT = 1 << 20  # bytes of text read at once
_LONGEST = 1 << 26  # bytes; a file with a longer line is not text
_ROWS = 8192  # of a Parquet file, at once


def line_blocks(name: str, file: Any, line: int = 1, whole: Callable[[bytes], bool] | None = None) -> Any:
    """Blocks of whole lines, about a megabyte each, and the number of their first line.

    `whole` tells whether a block may end there: not within quotes.
    """
    rest = b""
    live: Any = getattr(sys.stdin, "buffer", None)
    take = live.read1 if file is live else file.read  # standard input: read what is available, without waiting for more
    while read := take(_TEXT):
        rest = rest + read if rest else read
        end = rest.rfind(b"\n") + 1
        if len(rest) > _LONGEST:
            what = "no end of line" if not end else "quotes that do not close"
            raise DataError(f"{name}, line {line}: {what} within {_LONGEST >> 20} MB; is this a text file?")
        if not end or (whole is not None and not whole(rest[:end])):
            continue
        yield rest[:end], line
        line += rest.count(b"\n", 0, end)
        rest = rest[end:]
    if rest:
        yield rest, line


# -- CSV ---------------------------------------------------------------------------------------------------


def csv_cells(name: str, file: Any, header: bool) -> tuple[list[str], Batches]:
    blocks = line_blocks(name, file, whole=_quotes_close)
    text, line = next(blocks, (b"", 1))
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{name} is not UTF-8 text; save it as CSV with that encoding")
    if b"\0" in text:
        at = line + text.count(b"\n", 0, text.index(b"\0"))
        raise DataError(f"{name}, line {at}: a NUL byte, which no text has; save it as CSV in UTF-8")
    text = text.removeprefix(b"\xef\xbb\xbf")
    start = text.lstrip(b"\r\n")
    line += text.count(b"\n", 0, len(text) - len(start))
    if b"\n" not in start and b"\r" in start.rstrip(b"\r"):
        raise DataError(f"{name} ends its lines with carriage returns alone; save it with line feeds")
    end = _record_end(start)
    separator = _separator(start[:end])
    names = [cell.strip() for _, row in _rows(name, start[:end], line, separator) for cell in row]
    if not any(names):
        raise DataError(f"{name} has no header; its first line must name the columns")
    if not header:
        names, end = [str(j) for j in range(1, len(names) + 1)], 0
    elif all(map(_is_number, names)):
        raise DataError(
            f"{name}, line {line}: only numbers where columns should be named; name them, or say there is no header "
            "(--no-header), then they are 1, 2, 3, ..."
        )

    def parts(table: Table) -> Iterator[tuple[list[Cells], Place]]:
        rest = (start[end:], line + start.count(b"\n", 0, end))
        for block, at in itertools.chain([rest], blocks):
            fast = None if separator is None or b'"' in block else _fast_cells(name, block, at, separator, table)
            yield from [fast] if fast else _slow_cells(name, block, at, separator, len(names))

    return names, parts


def _quotes_close(text: bytes) -> bool:
    return text.count(b'"') % 2 == 0


def _record_end(text: bytes) -> int:
    """Where the first row ends: at the first end of line outside quotes."""
    end = 0
    while end < len(text):
        end = text.find(b"\n", end) + 1 or len(text)
        if _quotes_close(text[:end]):
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


def _rows(name: str, text: bytes, line: int, separator: str | None) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not empty, each with the number of its last line."""
    try:
        lines = io.StringIO(text.decode("utf-8"), newline="")
    except UnicodeDecodeError as problem:
        at = line + text.count(b"\n", 0, problem.start)
        raise DataError(f"{name}, line {at}: not UTF-8 text; save it as CSV with that encoding") from None
    if separator is None:
        yield from ((number, row) for number, content in enumerate(lines, line) if (row := content.split()))
        return
    reader = csv.reader(lines, delimiter=separator, strict=True)
    last = 0
    try:
        for row in reader:
            last = reader.line_num
            if row:
                yield line + last - 1, row
    except csv.Error as problem:
        raise DataError(f"{name}, line {line + last}: a cell with quotes that do not fit ({problem})") from None


def _slow_cells(
    name: str, text: bytes, line: int, separator: str | None, width: int
) -> Iterator[tuple[list[Cells], Place]]:
    """The cells of a block, parsed in Python: the definition of the format."""
    lines, rows = [], []
    for at, row in _rows(name, text, line, separator):
        if len(row) != width:
            raise DataError(
                f"{name}, line {at}: {len(row)} cells where the header names {width} columns; "
                "quote cells that contain the separator"
            )
        lines.append(at)
        rows.append(row)
    if rows:
        yield list(zip(*rows, strict=True)), lambda i: f"{name}, line {lines[i]}"


def _fast_cells(name: str, text: bytes, line: int, separator: str, table: Table) -> tuple[list[Cells], Place] | None:
    """The cells of a block, parsed in C++; None if no column is known to be numbers, or a cell needs Python."""
    wanted = table.wanted()
    parsed = native.parse_table(text, separator, wanted) if 1 in wanted and _is_unicode(text) else None
    if parsed is None or not parsed[2]:
        return None
    values, places = (part.reshape(parsed[2], -1) for part in parsed[:2])
    numbers, spans = iter(values.T), iter(places.T.reshape(-1, 2, parsed[2]))
    columns = [next(numbers) if k == 1 else _texts(text, *next(spans)) if k == 2 else () for k in wanted]

    def place(i: int) -> str:
        return f"{name}, line {[k for k, row in enumerate(text.splitlines(), line) if row.strip()][i]}"

    return columns, place


def _is_unicode(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _texts(text: bytes, begins: Array, ends: Array) -> list[str]:
    return [text[begin:end].decode("utf-8") for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]


# -- Parquet and Arrow -------------------------------------------------------------------------------------


def parquet_cells(name: str, file: Any, header: bool) -> tuple[list[str], Batches]:
    parquet = _pyarrow("parquet")
    with _arrow_problems(f"{name} is not a Parquet file"):
        table = parquet.ParquetFile(file)
        names = list(table.schema_arrow.names)
    return names, _batches(name, lambda: table.iter_batches(batch_size=_ROWS))


def arrow_cells(name: str, file: Any, header: bool) -> tuple[list[str], Batches]:
    ipc = _pyarrow("ipc")
    in_blocks = file.peek(6)[:6] == b"ARROW1"  # else a stream
    with _arrow_problems(f"{name} is not an Arrow file"):
        table = (ipc.open_file if in_blocks else ipc.open_stream)(file)
        names = list(table.schema.names)
    if not in_blocks:
        return names, _batches(name, lambda: iter(table))
    return names, _batches(name, lambda: (table.get_batch(i) for i in range(table.num_record_batches)))


def _pyarrow(part: str) -> Any:
    return optional.load(f"pyarrow.{part}", "Parquet and Arrow files")


@contextlib.contextmanager
def _arrow_problems(what: str, remedy: str = "") -> Iterator[None]:
    """Whatever a damaged file makes of pyarrow becomes one sentence: `what`, the reason and the remedy."""
    try:
        yield
    except DataError:
        raise
    except Exception as problem:
        reason = str(problem).split("\n")[0] or type(problem).__name__
        raise DataError(f"{what}: {reason}{remedy}") from None


def _batches(name: str, batches: Callable[[], Iterator[Any]]) -> Batches:
    def parts(table: Table) -> Iterator[tuple[list[Cells], Place]]:
        start = 0
        for batch in _checked(name, batches):
            if batch.num_rows:
                wanted = table.wanted()
                with _arrow_problems(f"{name}, rows from {start}", "; save the column as numbers or texts"):
                    columns = [
                        _arrow_cells(column) if kind else () for column, kind in zip(batch.columns, wanted, strict=True)
                    ]
                yield columns, functools.partial(_row_place, name, start)
            start += batch.num_rows

    return parts


def _checked(name: str, batches: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """The batches, each checked in full before anything is read: offsets may point outside the buffers of a file."""
    left, start = None, 0
    while True:
        with _arrow_problems(f"{name} is damaged, from row {start} on", "; write or fetch it again"):
            left = batches() if left is None else left
            batch = next(left, None)
            if batch is None:
                return
            batch.validate(full=True)
        yield batch
        start += batch.num_rows


def _row_place(name: str, start: int, i: int) -> str:
    return f"{name}, row {start + i} (from 0)"


def _arrow_cells(column: Any) -> Cells:
    """A column as numbers with NaN for nulls, or as texts with None."""
    types = _pyarrow("types")
    kind = column.type
    if types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        if column.null_count or not types.is_integer(kind):
            column = column.cast("float64", safe=False)
        return column.to_numpy(zero_copy_only=False)
    return [None if value is None else str(value) for value in column.to_pylist()]
