"""Streams from files: CSV, LIBSVM, npz, Parquet and Arrow, as a whole (`read`) or in blocks (`chunks`).

`chunks` holds one block at a time, so a file may be larger than memory, and standard input need not end. Text may be
compressed by gzip, bzip2 or xz; the first bytes of the file tell, not its name.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import itertools
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from onkel.core.errors import DataError
from onkel.core.wording import counted
from onkel.datasets import npz
from onkel.datasets.bad_rows import BadRows, check, write
from onkel.datasets.cells import arrow_cells, parquet_cells
from onkel.datasets.lines import Lines
from onkel.datasets.reading import ROWS, Batches, Csv, Libsvm, Reading, Text
from onkel.datasets.stream import Stream, Task, infer_task
from onkel.datasets.tables import Block, Encode, Missing, Schema, Table, dense

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

COMPRESSED: dict[bytes, Callable[[Any], Any]] = {  # by the first bytes
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_COMPRESSED_ENDINGS = (".gz", ".bz2", ".xz")
_TABLES: dict[str, Any] = {"parquet": parquet_cells, "arrow": arrow_cells}


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
    schema: Schema | None = None,
    learning: bool = True,
    bad_rows: BadRows = "stop",
) -> Iterator[Block]:
    """Blocks (X, y) of a file, one at a time.

    The number of columns may grow from block to block where they are sparse (LIBSVM, encoded texts); features that
    come later were zero before. Dense blocks all have the same columns.

    Parameters
    ----------
    source : a file, or "-" for standard input.
    rows : the most rows of a block.
    format : one of `FORMATS`; None goes by the ending of the name, and on standard input by the first line.
    target, drop, missing, encode : see `tables.Schema`; for tables (CSV, Parquet, Arrow). Of an npz file `target` is
        the name of the target array, y if None.
    header : whether the first line of a CSV file names its columns; if not, their names are 1, 2, 3, ...
    zero_based : whether columns of a LIBSVM file are counted from 0. None: from 0 if the first block has a column 0.
    schema : instead of target, drop, missing and encode: what is known of a table's columns. The blocks add to it.
    learning : False: to predict; see `tables.Table`.
    bad_rows : what becomes of rows that cannot be used. "stop": the first is an error, after a block with the rows
        before it. "skip": they are left out. A list: they are also added to it, as `BadRow`s. A Path: they are also
        written to that file, with their place and the reason, and can be mended there and read again.
    """
    if rows < 1:
        raise DataError(f"rows must be > 0, got {rows}")
    check(bad_rows)
    schema = schema or Schema(target, drop, missing, encode)
    with contextlib.ExitStack() as stack:
        skip = bad_rows != "stop"
        reading = stack.enter_context(
            opened(source, schema, format=format, header=header, zero_based=zero_based, learning=learning, skip=skip)
        )
        reading.rows = rows
        kept = stack.enter_context(bad_rows.open("wb")) if isinstance(bad_rows, Path) else None
        empty, first = True, ""
        for block in reading:
            if kept is not None and block.bad:
                write(kept, reading.head, block.bad)
            if isinstance(bad_rows, list):
                bad_rows += block.bad
            first = first or (f"; of those that are bad, the first is {block.bad[0]}" if block.bad else "")
            if len(block.y):
                empty = False
                yield block
        if empty:
            raise DataError(f"{reading.name} has no rows{first}")


@contextlib.contextmanager
def opened(
    source: str | Path,
    schema: Schema,
    *,
    format: Format | None = None,
    header: bool = True,
    zero_based: bool | None = None,
    learning: bool = True,
    skip: bool = False,
    growing: bool = False,
    place: dict[str, Any] | None = None,
) -> Iterator[Reading]:
    """A file, opened to be read block by block.

    Parameters
    ----------
    growing : whether more may be appended to the file later. Then a last line without its end is not read, and the
        places of the reading have a fingerprint of what is before them.
    place : where an earlier reading of the file stopped; it goes on from there.
    others : see `chunks`.
    """
    with _file(source, format) as (name, file, kind, packed):
        if kind in ("csv", "libsvm"):
            lines = Lines(_Readable(name, file), growing=growing, marked=growing)
            text: Text
            if kind == "csv":
                text = Csv(name, lines, schema, named=header, learning=learning, skip=skip)
            else:
                asked = schema if learning else replace(schema, target=None)  # it may be the array of an npz file
                _check_no_columns(name, "a LIBSVM file has no named columns, and its target comes first", asked)
                schema.base = schema.base if zero_based is None else 1 - zero_based
                text = Libsvm(name, lines, schema, skip=skip)
            if place is not None:
                text.go_to(place, _Readable(name, file), packed=packed)
            yield text
        else:
            how: dict[str, Any] = {"learning": learning, "skip": skip, "marked": growing}
            batches = _npz(name, file, schema, how) if kind == "npz" else _table(name, file, kind, schema, how)
            if place is not None:
                batches.go_to(place)
            yield batches


def _npz(name: str, file: Any, schema: Schema, how: dict[str, Any]) -> Batches:
    _check_no_columns(name, "an npz file has no named columns", replace(schema, target=None))
    target = schema.target or "y"
    blocks = _checked(name, npz.blocks(name, file, target, ROWS, how["learning"]))
    first = next(blocks, None)
    if first is None:
        raise DataError(f"{name} has no rows")
    names = [*map(str, range(1, first.X.shape[1] + 1)), target]
    return Batches(name, itertools.chain([first], blocks), schema, names=names, **how)


def _table(name: str, file: Any, kind: Format, schema: Schema, how: dict[str, Any]) -> Batches:
    with _problems(name):
        names, parts = _TABLES[kind](name, file)
    table = Table(name, names, schema, how["learning"], how["skip"])
    return Batches(name, _checked(name, parts(table)), schema, table=table, names=names, **how)


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
    schema: Schema | None = None,
) -> Stream:
    """A stream from a file, as a whole.

    Parameters
    ----------
    path : a file, read according to its ending, or "-" for standard input.
    task : "auto" means classification for text and for a few different whole numbers, see `infer_task`.
    ordered : whether the order of the rows carries meaning.
    target, drop, missing, encode, header, format, schema : see `chunks`.
    """
    schema = schema or Schema(target, drop, missing, encode)
    note = ""
    known = replace(schema, words=dict(schema.words), labels="U")  # texts, until all targets are known
    with contextlib.ExitStack() as stack:
        name, file, kind, _ = stack.enter_context(_file(path, format))
        if kind == "npz":
            _check_no_columns(name, "an npz file has no named columns", replace(schema, target=None))
            with _problems(name):
                X, y, _ = npz.read(name, file, schema.target or "y")
        elif kind == "libsvm":
            stack.close()
            base = None if schema.base is None else schema.base == 0
            counted_from = replace(schema)
            X, y = _concatenated(name, chunks(path, format=kind, zero_based=base is not False, schema=counted_from))
            if base is None:
                schema.base = int(X.nnz > 0 and X.indices.min() > 0)
                X = X[:, schema.base :]
        else:
            stack.close()
            with opened(path, known, format=format, header=header) as reading:
                table = reading.table  # type: ignore[attr-defined]
                X, y = _concatenated(name, reading)
            X, y = dense(X), table.typed(y)
            vars(schema).update(vars(table.schema))
            note = f"; {counted(table.dropped, 'row')} with missing values left out" if table.dropped else ""
            note += f"; {table.filled:,} missing values filled with the mean so far" if table.filled else ""
    short = "standard input" if str(path) == "-" else Path(path).name
    return Stream(short, X, y, infer_task(y) if task == "auto" else task, f"{counted(len(y), 'row')}{note}", ordered)


def read_npz(path: Path, target: str = "y") -> tuple[Any, Array, dict[str, Array]]:
    """Features, target, and the other arrays of an npz file."""
    with _file(path, "npz") as (name, file, _, _), _problems(name):
        return npz.read(name, file, target)


def _check_no_columns(name: str, why: str, schema: Schema) -> None:
    if schema.features is not None:
        raise DataError(f"{name}: {why}, and the model knows its columns by name; give it a table")
    if given := [option for option in ("target", "drop", "missing", "encode") if getattr(schema, option)]:
        shell = ", ".join(f"--{option}" for option in given)
        raise DataError(f"{name}: {why}; omit {', '.join(given)} (at the shell {shell})")


def _concatenated(name: str, blocks: Iterator[Block]) -> tuple[Any, Array]:
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
def _file(source: str | Path, format: Format | None) -> Iterator[tuple[str, Any, Format, bool]]:
    """The name for messages, the decompressed file, its format, and whether it is compressed."""
    name = "standard input" if str(source) == "-" else str(source)
    kind = _format(source, format)
    with contextlib.ExitStack() as stack:
        with _problems(name):
            file: Any = sys.stdin.buffer if str(source) == "-" else stack.enter_context(Path(source).open("rb"))
            start = file.peek(8)
            opener = next((opener for magic, opener in COMPRESSED.items() if start.startswith(magic)), None)
            if opener is not None:
                file = io.BufferedReader(stack.enter_context(opener(file)), 1 << 20)
            kind = kind or _guess(file)
        yield name, file, kind, opener is not None


@contextlib.contextmanager
def _problems(name: str) -> Iterator[None]:
    """Errors of reading become a DataError."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"there is no file {name}") from None
    except EOFError:
        raise DataError(f"{name} ends in the middle of its archive; it is not complete, fetch it again") from None
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as problem:
        raise DataError(f"{name} is a damaged archive ({problem}); fetch it again") from None
    except OSError as problem:
        raise DataError(f"{name} cannot be read: {problem.strerror or problem}") from None


def _checked(name: str, batches: Iterator[Any]) -> Iterator[Any]:
    """The same, with errors of reading as DataErrors."""
    while True:
        with _problems(name):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


class _Readable:
    """A file whose errors are DataErrors."""

    def __init__(self, name: str, file: Any) -> None:
        self._name, self._file = name, file
        live: Any = getattr(sys.stdin, "buffer", None)
        self.live = file is live

    def read1(self, size: int) -> bytes:
        with _problems(self._name):
            data: bytes = self._file.read1(size)
        return data

    def read(self, size: int) -> bytes:
        with _problems(self._name):
            data: bytes = self._file.read(size)
        return data

    def seek(self, place: int, whence: int = 0) -> int:
        with _problems(self._name):
            return int(self._file.seek(place, whence))


def _format(source: str | Path, format: Format | None) -> Format | None:
    """The format; None for text on standard input, where it follows from the first line."""
    if format is not None and format not in FORMATS:
        raise DataError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    if str(source) == "-":
        if format in ("npz", "parquet", "arrow"):
            raise DataError(f"standard input cannot be {format}, which is read from its end; save it to a file")
        return format
    endings = [ending.lower() for ending in Path(source).suffixes]
    while endings and endings[-1] in _COMPRESSED_ENDINGS:
        endings.pop()
    kind = format or ENDINGS.get(endings[-1] if endings else "")
    if kind is None:
        known = ", ".join(ENDINGS)
        raise DataError(
            f"{source} has an ending that names no format; rename it to one of {known}, or give the format: format= "
            f"(at the shell --format)"
        )
    return kind


def _guess(file: Any) -> Format:
    """LIBSVM if the first line has a pair column:value in second place, else CSV."""
    first = bytes(file.peek()).split(b"\n")[0].split()
    return "libsvm" if len(first) > 1 and first[1].partition(b":")[0].isdigit() and b":" in first[1] else "csv"
