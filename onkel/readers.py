"""Streams from files: CSV, LIBSVM, npz, Parquet and Arrow, as a whole (`read`) or in blocks (`chunks`).

`chunks` holds one block at a time, so a file may be larger than memory, and standard input need not end. Text may be
packed (.gz, .bz2, .xz); that is seen in the file, not in its name.
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import functools
import gzip
import importlib
import io
import itertools
import lzma
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from onkel import native
from onkel.stream import DataError, Stream, Task, infer_task, listed
from onkel.tables import Block, Cells, Encode, Missing, Place, Table, dense
from onkel.text import Rows, TextError, parse_libsvm

Format = Literal["csv", "libsvm", "npz", "parquet", "arrow"]
Array = NDArray[Any]

FORMATS: tuple[Format, ...] = get_args(Format)
ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".npz": "npz",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
ROWS = 8192  # most rows of a block

_PACKED: dict[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_PACKED_ENDINGS = (".gz", ".bz2", ".xz")
_TEXT = 1 << 20  # bytes of text read at once
_LONGEST = 1 << 26  # bytes of a line; longer ones are no text
_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def chunks(
    source: str | Path,
    *,
    rows: int = ROWS,
    format: Format | None = None,
    target: str | None = None,
    drop: Sequence[str] = (),
    missing: Missing | None = None,
    encode: Encode | None = None,
    header: bool = True,
    zero_based: bool | None = None,
    labelled: bool = True,
) -> Iterator[Block]:
    """Blocks (X, y) of a file, one at a time.

    The number of columns may grow from block to block where they are sparse (LIBSVM, encoded texts); features that
    come later were zero before. Dense blocks all have the same columns.

    Parameters
    ----------
    source : a file, or "-" for standard input.
    rows : the most rows of a block.
    format : one of `FORMATS`; None goes by the ending of the name, and on standard input by the first line.
    target, drop, missing, encode : see `tables.Table`; for tables (CSV, Parquet, Arrow). Of an npz file `target` is
        the name of the target array, y if None.
    header : whether the first line of a CSV file names its columns; if not, their names are 1, 2, 3, ...
    zero_based : whether columns of a LIBSVM file are counted from 0. None: if a 0 is there among the first rows.
    labelled : whether a table has a target column; if not, all targets are 0.
    """
    if rows < 1:
        raise DataError(f"rows must be > 0, got {rows}")
    options = {"target": target, "drop": drop, "missing": missing, "encode": encode}
    with _opened(source, format) as (name, file, kind):
        if kind == "libsvm":
            _check_no_columns(name, "a LIBSVM file has no named columns, and its target comes first", options)
            blocks = _libsvm(name, file, zero_based)
        elif kind == "npz":
            _check_no_columns(name, "an npz file has no named columns", options | {"target": None})
            blocks = _npz_blocks(name, file, target or "y", rows)
        else:
            names, parts = _TABLES[kind](name, file, header)
            table = Table(name, names, target, drop, missing, encode, labels="auto" if labelled else "none")
            blocks = (table.block(columns, place) for columns, place in parts(table))
        empty = True
        for block in blocks:
            empty = empty and not len(block.y)
            yield from _pieces(block, rows)
        if empty:
            raise DataError(f"{name} has no rows")


def read(
    path: str | Path,
    *,
    target: str | None = None,
    task: Task | Literal["auto"] = "auto",
    drop: Sequence[str] = (),
    missing: Missing | None = None,
    encode: Encode | None = None,
    header: bool = True,
    format: Format | None = None,
    ordered: bool = False,
) -> Stream:
    """A stream from a file, as a whole.

    Parameters
    ----------
    path : a file, read according to its ending, or "-" for standard input.
    task : "auto" means classification for text and for a few different whole numbers, see `infer_task`.
    ordered : whether the order of the rows carries meaning.
    target, drop, missing, encode, header, format : see `chunks`.
    """
    options = {"target": target, "drop": drop, "missing": missing, "encode": encode}
    note = ""
    with _opened(path, format) as (name, file, kind):
        if kind == "npz":
            _check_no_columns(name, "an npz file has no named columns", options | {"target": None})
            X, y, _ = _npz(name, file, target or "y")
        elif kind == "libsvm":
            _check_no_columns(name, "a LIBSVM file has no named columns, and its target comes first", options)
            X, y = _joined(name, _libsvm(name, file, True))
            used = X.indices.min() if X.nnz else 0
            X = X[:, 1:] if used > 0 else X
        else:
            names, parts = _TABLES[kind](name, file, header)
            table = Table(name, names, target, drop, missing, encode, labels="text")
            X, y = _joined(name, (table.block(columns, place) for columns, place in parts(table)))
            X, y = dense(X), table.typed(y)
            note = f"; {table.dropped:,} rows with missing values left out" if table.dropped else ""
            note += f"; {table.filled:,} missing values filled with the mean so far" if table.filled else ""
    short = "standard input" if str(path) == "-" else Path(path).name
    return Stream(short, X, y, infer_task(y) if task == "auto" else task, f"{len(y):,} rows{note}", ordered)


def read_npz(path: Path, target: str = "y") -> tuple[Any, Array, dict[str, Array]]:
    """Features, target, and the other arrays of an npz file."""
    with _opened(path, "npz") as (name, file, _):
        return _npz(name, file, target)


def _check_no_columns(name: str, why: str, options: dict[str, Any]) -> None:
    if given := [option for option, value in options.items() if value]:
        raise DataError(f"{name}: {why}; omit {', '.join(f'--{option}' for option in given)}")


def _pieces(block: Block, rows: int) -> Iterator[Block]:
    n = len(block.y)
    if 0 < n <= rows:
        yield block
        return
    for start in range(0, n, rows):
        yield Block(block.X[start : start + rows], block.y[start : start + rows])


def _joined(name: str, blocks: Iterator[Block]) -> tuple[Any, Array]:
    parts = [block for block in blocks if len(block.y)]
    if not parts:
        raise DataError(f"{name} has no rows")
    y = np.concatenate([block.y for block in parts])
    if not scipy.sparse.issparse(parts[0].X):
        return np.concatenate([block.X for block in parts]), y
    width = max(block.X.shape[1] for block in parts)
    for block in parts:
        block.X.resize(block.X.shape[0], width)
    return scipy.sparse.vstack([block.X for block in parts], format="csr"), y


# -- files -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(source: str | Path, format: Format | None) -> Iterator[tuple[str, Any, Format]]:
    """Name for messages, the file unpacked, and its format; troubles of reading become sentences."""
    name = "standard input" if str(source) == "-" else str(source)
    kind = _format(source, format)
    with contextlib.ExitStack() as stack:
        try:
            file: Any = sys.stdin.buffer if str(source) == "-" else stack.enter_context(Path(source).open("rb"))
            start = file.peek(8)
            opener = next((opener for magic, opener in _PACKED.items() if start.startswith(magic)), None)
            if opener is not None:
                file = io.BufferedReader(stack.enter_context(opener(file)), _TEXT)
            yield name, file, kind or _guess(file)
        except FileNotFoundError:
            raise DataError(f"there is no file {name}") from None
        except EOFError:
            raise DataError(f"{name} ends in the middle of its archive; it is not complete, fetch it again") from None
        except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as problem:
            raise DataError(f"{name} is a damaged archive ({problem}); fetch it again") from None
        except OSError as problem:
            raise DataError(f"{name} cannot be read: {problem.strerror or problem}") from None


def _format(source: str | Path, format: Format | None) -> Format | None:
    """The format, None for text on standard input of which nobody said more."""
    if format is not None and format not in FORMATS:
        raise DataError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    if str(source) == "-":
        if format in ("npz", "parquet", "arrow"):
            raise DataError(f"standard input cannot be {format}, which is read from its end; save it to a file")
        return format
    endings = [ending.lower() for ending in Path(source).suffixes]
    while endings and endings[-1] in _PACKED_ENDINGS:
        endings.pop()
    kind = format or ENDINGS.get(endings[-1] if endings else "")
    if kind is None:
        known = ", ".join(ENDINGS)
        raise DataError(f"{source} has an ending that names no format; rename it to one of {known}, or say --format")
    return kind


def _guess(file: Any) -> Format:
    """LIBSVM if the first line has a pair column:value in second place, else CSV."""
    first = bytes(file.peek(_TEXT)).split(b"\n")[0].split()
    return "libsvm" if len(first) > 1 and first[1].partition(b":")[0].isdigit() and b":" in first[1] else "csv"


def _line_blocks(name: str, file: Any, line: int = 1, whole: Callable[[bytes], bool] | None = None) -> Any:
    """Whole lines, about a megabyte at once, and the number of the first; `whole` may ask for more lines."""
    rest = b""
    take: Any = getattr(file, "read1" if file is sys.stdin.buffer else "read")  # what comes live is not waited for
    while read := take(_TEXT):
        rest = rest + read if rest else read
        end = rest.rfind(b"\n") + 1
        if len(rest) > _LONGEST:
            raise DataError(f"{name}, line {line}: no end of line within {_LONGEST >> 20} MB; this is not a text file")
        if not end or (whole is not None and not whole(rest[:end])):
            continue
        yield rest[:end], line
        line += rest.count(b"\n", 0, end)
        rest = rest[end:]
    if rest:
        yield rest, line


# -- LIBSVM ------------------------------------------------------------------------------------------------


def _libsvm(name: str, file: Any, zero_based: bool | None) -> Iterator[Block]:
    base = None if zero_based is None else 1 - zero_based
    width = 0
    for text, line in _line_blocks(name, file):
        text = text.removeprefix(b"\xef\xbb\xbf") if line == 1 else text
        rows = native.parse_libsvm(text, base or 0)
        if rows is None:
            rows = _defined(name, text, base or 0, line)
        if base is None and len(rows.columns):
            base = int(rows.columns.min() > 0)
            rows = rows._replace(columns=rows.columns - base, width=rows.width - base)
        width = max(width, rows.width)
        if len(rows.targets):
            parts = (rows.values, rows.columns, rows.starts)
            yield Block(scipy.sparse.csr_matrix(parts, shape=(len(rows.targets), width)), rows.targets)


def _defined(name: str, text: bytes, base: int, line: int) -> Rows:
    try:
        return parse_libsvm(text, base, line)
    except TextError as problem:
        raise DataError(f"{name}, line {problem.line}: {problem}") from None


# -- tables: the names of the columns, and what gives their cells --------------------------------------------

Parts = Callable[[Table], Iterator[tuple[list[Cells], Place]]]


def _csv(name: str, file: Any, header: bool) -> tuple[list[str], Parts]:
    blocks = _line_blocks(name, file, whole=_quotes_close)
    text, line = next(blocks, (b"", 1))
    if text.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in text:
        raise DataError(f"{name} is not UTF-8 text; save it as CSV with that encoding")
    text = text.removeprefix(b"\xef\xbb\xbf")
    start = text.lstrip(b"\r\n")
    line += text.count(b"\n", 0, len(text) - len(start))
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
    """The sign between cells, by the first line; None for blanks."""
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
    reader = csv.reader(lines, delimiter=separator)
    try:
        yield from ((line + reader.line_num - 1, row) for row in reader if row)
    except csv.Error as problem:
        raise DataError(f"{name}, line {line + reader.line_num - 1}: this is not CSV: {problem}") from None


def _slow_cells(
    name: str, text: bytes, line: int, separator: str | None, width: int
) -> Iterator[tuple[list[Cells], Place]]:
    """The cells of a block by the definition of CSV."""
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
    """The cells of a block of plain numbers in C++; None if it is not such a block."""
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


def _parquet(name: str, file: Any, header: bool) -> tuple[list[str], Parts]:
    parquet = _pyarrow("parquet")
    table = _arrow_opened(name, "Parquet", lambda: parquet.ParquetFile(file))
    return list(table.schema_arrow.names), _batches(name, lambda: table.iter_batches(batch_size=ROWS))


def _arrow(name: str, file: Any, header: bool) -> tuple[list[str], Parts]:
    ipc = _pyarrow("ipc")
    if file.peek(6)[:6] == b"ARROW1":
        table = _arrow_opened(name, "Arrow", lambda: ipc.open_file(file))
        return list(table.schema.names), _batches(
            name, lambda: (table.get_batch(i) for i in range(table.num_record_batches))
        )
    stream = _arrow_opened(name, "Arrow", lambda: ipc.open_stream(file))
    return list(stream.schema.names), _batches(name, lambda: iter(stream))


def _pyarrow(part: str) -> Any:
    try:
        return importlib.import_module(f"pyarrow.{part}")
    except ImportError:
        raise DataError("Parquet and Arrow files need pyarrow; install onkel[frames]") from None


def _arrow_opened(name: str, kind: str, open_: Callable[[], Any]) -> Any:
    try:
        return open_()
    except (ValueError, OSError) as problem:  # pyarrow's own errors are these
        reason = str(problem).split("\n")[0]
        raise DataError(f"{name} is not {'an Arrow' if kind == 'Arrow' else 'a Parquet'} file: {reason}") from None


def _batches(name: str, batches: Callable[[], Iterator[Any]]) -> Parts:
    def parts(table: Table) -> Iterator[tuple[list[Cells], Place]]:
        start = 0
        for batch in batches():
            if batch.num_rows:
                wanted = table.wanted()
                columns = [
                    _arrow_cells(column) if kind else () for column, kind in zip(batch.columns, wanted, strict=True)
                ]
                yield columns, functools.partial(_row_place, name, start)
            start += batch.num_rows

    return parts


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


_TABLES: dict[str, Callable[[str, Any, bool], tuple[list[str], Parts]]] = {
    "csv": _csv,
    "parquet": _parquet,
    "arrow": _arrow,
}


# -- npz ---------------------------------------------------------------------------------------------------

_CSR = ("data", "indices", "indptr", "shape")


def _npz(name: str, file: Any, target: str) -> tuple[Any, Array, dict[str, Array]]:
    if bytes(file.peek(2)[:2]) != b"PK":
        raise DataError(f"{name} is not a usable npz file: it is no archive of arrays")
    with _npz_problems(name), np.load(file, allow_pickle=False) as archive:
        taken = _npz_names(name, archive.files, target)
        arrays = {key: archive[key] for key in archive.files}
    rest = {key: array for key, array in arrays.items() if key not in taken}
    if "X" in arrays:
        return arrays["X"], arrays[target], rest
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    try:
        X = scipy.sparse.csr_matrix(parts, shape=tuple(arrays["shape"]))
        X.check_format()
    except ValueError as problem:
        raise DataError(f"{name}: data, indices, indptr and shape make no CSR matrix: {problem}") from None
    return X, arrays[target], rest


@contextlib.contextmanager
def _npz_problems(name: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as problem:
        raise DataError(f"{name} is not a usable npz file: {problem}") from None


def _npz_names(name: str, there: Sequence[str], target: str) -> list[str]:
    """The arrays to take: the target and either X or the four parts of a CSR matrix."""
    if target not in there:
        raise DataError(f"{name} has no array {target!r} for the target; its arrays are {listed(list(there))}")
    if "X" in there:
        return ["X", target]
    if not set(_CSR) <= set(there):
        raise DataError(f"{name} needs an array X, or {', '.join(_CSR)}; its arrays are {listed(list(there))}")
    return [*_CSR, target]


def _npz_blocks(name: str, file: Any, target: str, rows: int) -> Iterator[Block]:
    """Rows of an npz file; the matrix is unpacked as it goes, targets and row starts are held whole."""
    with _npz_problems(name), zipfile.ZipFile(file) as archive, contextlib.ExitStack() as stack:

        def member(key: str) -> _Member:
            return _Member(name, key, stack.enter_context(archive.open(f"{key}.npy")))

        there = [key.removesuffix(".npy") for key in archive.namelist()]
        taken = _npz_names(name, there, target)
        y = member(target).take()
        if "X" in taken:
            X = member("X")
            for start in range(0, len(y), rows):
                part = y[start : start + rows]
                yield Block(X.take(len(part)), part)
            return
        values, columns, starts, shape = (member(key) for key in _CSR)
        at, width = starts.take(), int(shape.take()[1])
        for start in range(0, len(y), rows):
            part = y[start : start + rows]
            ends = at[start : start + len(part) + 1]
            count = int(ends[-1] - ends[0])
            parts = (values.take(count), columns.take(count), ends - ends[0])
            yield Block(scipy.sparse.csr_matrix(parts, shape=(len(part), width)), part)


class _Member:
    """An array inside an npz file, taken from its beginning in pieces."""

    def __init__(self, name: str, key: str, file: Any) -> None:
        self._file = file
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self._shape, fortran, self._dtype = header(file)
        self._left = self._shape[0] if self._shape else 1
        if self._dtype.hasobject:
            raise DataError(f"{name}: array {key!r} holds objects; save numbers or texts")
        if fortran and len(self._shape) > 1:
            raise DataError(f"{name}: array {key!r} is stored by columns; save numpy.ascontiguousarray of it")

    def take(self, rows: int | None = None) -> Array:
        """The next rows, all that are left if None."""
        rows = self._left if rows is None else rows
        shape = (rows, *self._shape[1:])
        size = int(np.prod(shape)) * self._dtype.itemsize
        data = self._file.read(size)
        if rows > self._left or len(data) < size:
            raise ValueError("an array is shorter than the others say")
        self._left -= rows
        return np.frombuffer(data, self._dtype).reshape(shape)
