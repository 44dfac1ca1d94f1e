"""Streams from files: CSV, LIBSVM, npz, Parquet and Arrow, as a whole (`read`) or in blocks (`chunks`).

`chunks` holds one block at a time, so a file may be larger than memory, and standard input need not end. Text may be
compressed by gzip, bzip2 or xz; the first bytes of the file tell, not its name.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
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

from onkel import native
from onkel.core.errors import DataError
from onkel.core.wording import counted
from onkel.datasets import npz
from onkel.datasets.cells import arrow_cells, csv_cells, line_blocks, parquet_cells
from onkel.datasets.stream import Stream, Task, infer_task
from onkel.datasets.tables import Block, Encode, Missing, Schema, Table, dense
from onkel.datasets.text import Rows, TextError, parse_libsvm

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

COMPRESSED: dict[bytes, Callable[[Any], Any]] = {  # by the first bytes
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_COMPRESSED_ENDINGS = (".gz", ".bz2", ".xz")
_TABLES = {"csv": csv_cells, "parquet": parquet_cells, "arrow": arrow_cells}


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
    """
    if rows < 1:
        raise DataError(f"rows must be > 0, got {rows}")
    schema = schema or Schema(target, drop, missing, encode)
    with _opened(source, format) as (name, file, kind):
        if kind == "libsvm":
            asked = schema if learning else replace(schema, target=None)  # it may be the array of an npz file
            _check_no_columns(name, "a LIBSVM file has no named columns, and its target comes first", asked)
            blocks = _libsvm(name, file, zero_based)
        elif kind == "npz":
            _check_no_columns(name, "an npz file has no named columns", replace(schema, target=None))
            blocks = npz.blocks(name, file, schema.target or "y", rows, learning)
        else:
            names, parts = _TABLES[kind](name, file, header)
            table = Table(name, names, schema, learning)
            blocks = (table.block(columns, place) for columns, place in parts(table))
        empty = True
        for block in blocks:
            if len(block.y):
                empty = False
                yield from block.pieces(rows)
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
    with _opened(path, format) as (name, file, kind):
        if kind == "npz":
            _check_no_columns(name, "an npz file has no named columns", replace(schema, target=None))
            X, y, _ = npz.read(name, file, schema.target or "y")
        elif kind == "libsvm":
            _check_no_columns(name, "a LIBSVM file has no named columns, and its target comes first", schema)
            X, y = _concatenated(name, _libsvm(name, file, True))
            used = X.indices.min() if X.nnz else 0
            X = X[:, 1:] if used > 0 else X
        else:
            names, parts = _TABLES[kind](name, file, header)
            known = replace(schema, words=dict(schema.words), labels="U")  # texts, until all targets are known
            table = Table(name, names, known)
            X, y = _concatenated(name, (table.block(columns, place) for columns, place in parts(table)))
            X, y = dense(X), table.typed(y)
            vars(schema).update(vars(table.schema))
            note = f"; {counted(table.dropped, 'row')} with missing values left out" if table.dropped else ""
            note += f"; {table.filled:,} missing values filled with the mean so far" if table.filled else ""
    short = "standard input" if str(path) == "-" else Path(path).name
    return Stream(short, X, y, infer_task(y) if task == "auto" else task, f"{counted(len(y), 'row')}{note}", ordered)


def read_npz(path: Path, target: str = "y") -> tuple[Any, Array, dict[str, Array]]:
    """Features, target, and the other arrays of an npz file."""
    with _opened(path, "npz") as (name, file, _):
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
def _opened(source: str | Path, format: Format | None) -> Iterator[tuple[str, Any, Format]]:
    """The name for messages, the decompressed file, and its format; errors of reading become a DataError."""
    name = "standard input" if str(source) == "-" else str(source)
    kind = _format(source, format)
    with contextlib.ExitStack() as stack:
        try:
            file: Any = sys.stdin.buffer if str(source) == "-" else stack.enter_context(Path(source).open("rb"))
            start = file.peek(8)
            opener = next((opener for magic, opener in COMPRESSED.items() if start.startswith(magic)), None)
            if opener is not None:
                file = io.BufferedReader(stack.enter_context(opener(file)), 1 << 20)
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


# -- LIBSVM ------------------------------------------------------------------------------------------------


def _libsvm(name: str, file: Any, zero_based: bool | None) -> Iterator[Block]:
    base = None if zero_based is None else 1 - zero_based
    width = 0
    for text, line in line_blocks(name, file):
        text = text.removeprefix(b"\xef\xbb\xbf") if line == 1 else text
        found = native.parse_libsvm(text, base or 0)
        rows = _parsed(name, text, base or 0, line) if found is None else Rows(*found)
        if base is None and len(rows.columns):
            base = int(rows.columns.min() > 0)
            rows = rows._replace(columns=rows.columns - base, width=rows.width - base)
        width = max(width, rows.width)
        if len(rows.targets):
            parts = (rows.values, rows.columns, rows.starts)
            yield Block(scipy.sparse.csr_matrix(parts, shape=(len(rows.targets), width)), rows.targets)


def _parsed(name: str, text: bytes, base: int, line: int) -> Rows:
    try:
        return parse_libsvm(text, base, line)
    except TextError as problem:
        raise DataError(f"{name}, line {problem.line}: {problem}") from None
