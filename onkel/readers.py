"""Streams from files: CSV, LIBSVM and npz, whole; or in blocks, for what does not fit into memory."""

from __future__ import annotations

import csv
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse
import sklearn.datasets
from numpy.typing import NDArray

from onkel.stream import DataError, Stream, Task, infer_task, listed

Array = NDArray[Any]

_ROWS_AT_ONCE = 4096


def read(
    path: str | Path,
    *,
    target: str | None = None,
    task: Task | Literal["auto"] = "auto",
    drop: Sequence[str] = (),
    ordered: bool = False,
) -> Stream:
    """A stream from a file, read according to its ending.

    Parameters
    ----------
    path : .csv or .tsv (a header line, numbers, one target column); .libsvm, .svm or .svmlight (also with
        .gz or .bz2 after it); .npz (array X, or the CSR parts data, indices, indptr, shape; target array y).
    target : the target column of a CSV file, or the name of the target array of an npz file if it is not y.
    task : "auto" means classification for text and for a few different whole numbers, see `infer_task`.
    drop : columns of a CSV file to leave out.
    ordered : whether the order of the rows carries meaning.
    """
    path = Path(path)
    reader = _reader(path)
    try:
        X, y = reader(path, target, tuple(drop))
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except OSError as problem:
        raise DataError(f"{path} cannot be read: {problem.strerror or problem}") from None
    y = np.asarray(y)
    description = f"{len(y):,} rows"
    return Stream(path.name, X, y, infer_task(y) if task == "auto" else task, description, ordered)


Parts = tuple[Any, Array]
Reader = Callable[[Path, str | None, tuple[str, ...]], Parts]


def _reader(path: Path) -> Reader:
    endings = [ending.lower() for ending in path.suffixes]
    while endings and endings[-1] in (".gz", ".bz2"):
        endings.pop()
    ending = endings[-1] if endings else ""
    packed = path.suffix.lower() in (".gz", ".bz2")
    if ending not in _READERS or (packed and _READERS[ending] is not _read_libsvm):
        known = ", ".join(_READERS)
        raise DataError(f"{path} has an ending that names no format; rename it to one of {known}")
    return _READERS[ending]


def _read_csv(path: Path, target: str | None, drop: tuple[str, ...]) -> Parts:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            separator = max(",;\t", key=first.count)
            file.seek(0)
            return _parse_table(csv.reader(file, delimiter=separator), path, target, drop)
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text; save it as CSV with that encoding") from None
    except csv.Error as problem:
        raise DataError(f"{path} is not a CSV file: {problem}") from None


def _parse_table(reader: Any, path: Path, target: str | None, drop: tuple[str, ...]) -> Parts:
    header = [cell.strip() for cell in next(reader, [])]
    if not any(header):
        raise DataError(f"{path} has no header; its first line must name the columns")
    goal = _target_column(path, header, target)
    kept = _feature_columns(path, header, goal, drop)
    blocks: list[NDArray[np.float64]] = []
    labels: list[str] = []
    for lines, rows in _batches(_full_rows(reader, path, len(header))):
        labels += _label_cells(path, lines, rows, header, goal)
        blocks.append(_numbers(path, lines, rows, header, kept))
    if not blocks:
        raise DataError(f"{path} has a header but no rows")
    return np.concatenate(blocks), _typed(path, labels, header[goal])


def _target_column(path: Path, header: list[str], target: str | None) -> int:
    columns = f"its columns are {listed(header)}"
    if target is None:
        raise DataError(f"{path} needs a target column (--target NAME); {columns}")
    if header.count(target) > 1:
        raise DataError(f"{path} has {header.count(target)} columns named {target!r}; rename the others")
    if target not in header:
        raise DataError(f"{path} has no column {target!r}; {columns}")
    return header.index(target)


def _feature_columns(path: Path, header: list[str], goal: int, drop: tuple[str, ...]) -> list[int]:
    for name in drop:
        if name not in header:
            raise DataError(f"{path} has no column {name!r} to drop; its columns are {listed(header)}")
        if name == header[goal]:
            raise DataError(f"{path}: {name!r} cannot be dropped, it is the target")
    kept = [j for j, name in enumerate(header) if j != goal and name not in drop]
    if not kept:
        raise DataError(f"{path} has no feature column besides the target {header[goal]!r}")
    return kept


def _full_rows(reader: Any, path: Path, width: int) -> Iterator[tuple[int, list[str]]]:
    for row in reader:
        if not row:
            continue
        if len(row) != width:
            raise DataError(
                f"{path}, line {reader.line_num}: {len(row)} cells where the header names {width} columns; "
                "quote cells that contain the separator"
            )
        yield reader.line_num, row


def _batches(rows: Iterable[tuple[int, list[str]]]) -> Iterator[tuple[list[int], list[list[str]]]]:
    lines: list[int] = []
    cells: list[list[str]] = []
    for line, row in rows:
        lines.append(line)
        cells.append(row)
        if len(cells) == _ROWS_AT_ONCE:
            yield lines, cells
            lines, cells = [], []
    if cells:
        yield lines, cells


def _label_cells(path: Path, lines: list[int], rows: list[list[str]], header: list[str], goal: int) -> list[str]:
    cells = [row[goal].strip() for row in rows]
    for line, cell in zip(lines, cells, strict=True):
        if not cell:
            place = f"{path}, line {line}, column {header[goal]!r}"
            raise DataError(f"{place}: the target is missing; fill it or remove the row")
    return cells


def _numbers(
    path: Path, lines: list[int], rows: list[list[str]], header: list[str], kept: list[int]
) -> NDArray[np.float64]:
    try:
        block = np.array([[row[j] for j in kept] for row in rows], dtype=np.float64)
    except ValueError:
        block = None
    if block is not None and np.isfinite(block).all():
        return block
    for line, row in zip(lines, rows, strict=True):
        for j in kept:
            problem = _cell_problem(row[j].strip())
            if problem:
                raise DataError(f"{path}, line {line}, column {header[j]!r}: {problem}")
    raise AssertionError("a block that NumPy refuses has a cell that is no finite number")  # pragma: no cover


def _cell_problem(cell: str) -> str | None:
    """What is wrong with a feature cell, and the remedy; None if it is a finite number."""
    if cell.lower() in ("", "na", "n/a", "nan", "null", "none", "?"):
        return "the value is missing; fill it, or remove the row or the column (--drop)"
    try:
        number = float(cell)
    except ValueError:
        return f"{cell!r} is not a number; encode text as numbers, or leave the column out (--drop)"
    return None if np.isfinite(number) else f"{cell!r} is not finite; replace it, or remove the row"


def _typed(path: Path, cells: list[str], name: str) -> Array:
    """The target column as integers if possible, else as real numbers, else as text."""
    for kind in (np.int64, np.float64):
        try:
            values = np.array(cells).astype(kind)
        except (ValueError, OverflowError):
            continue
        if not np.isfinite(values).all():
            raise DataError(f"{path}, column {name!r}: the target is missing or infinite in some row; remove it")
        return values
    return np.array(cells)


def _read_libsvm(path: Path, target: str | None, drop: tuple[str, ...]) -> Parts:
    if target is not None or drop:
        raise DataError(
            f"{path}: a LIBSVM file has no named columns, and its target comes first; omit --target, --drop"
        )
    try:
        X, y = sklearn.datasets.load_svmlight_file(path)
    except (ValueError, OverflowError) as problem:
        raise DataError(f"{path} is not a LIBSVM file (lines 'target column:value ...'): {problem}") from None
    return X, y


def _read_npz(path: Path, target: str | None, drop: tuple[str, ...]) -> Parts:
    if drop:
        raise DataError(f"{path}: an npz file has no named columns; omit --drop")
    X, y, _ = read_npz(path, target or "y")
    return X, y


def read_npz(path: Path, target: str = "y") -> tuple[Any, Array, dict[str, Array]]:
    """Features, target, and the other arrays of an npz file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            names = _npz_names(path, archive.files, target)
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
        if isinstance(problem, DataError):
            raise
        raise DataError(f"{path} is not a usable npz file: {problem}") from None
    rest = {name: array for name, array in arrays.items() if name not in names}
    if "X" in arrays:
        return arrays["X"], arrays[target], rest
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    try:
        return scipy.sparse.csr_matrix(parts, shape=tuple(arrays["shape"])), arrays[target], rest
    except ValueError as problem:
        raise DataError(f"{path}: data, indices, indptr and shape make no CSR matrix: {problem}") from None


def _npz_names(path: Path, there: list[str], target: str) -> list[str]:
    """The arrays to take: the target and either X or the four parts of a CSR matrix."""
    sparse = ["data", "indices", "indptr", "shape"]
    if target not in there:
        raise DataError(f"{path} has no array {target!r} for the target; its arrays are {listed(there)}")
    if "X" in there:
        return ["X", target]
    if not set(sparse) <= set(there):
        raise DataError(f"{path} needs an array X, or {', '.join(sparse)}; its arrays are {listed(there)}")
    return [*sparse, target]


_READERS: dict[str, Reader] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".libsvm": _read_libsvm,
    ".svm": _read_libsvm,
    ".svmlight": _read_libsvm,
    ".npz": _read_npz,
}
ENDINGS: tuple[str, ...] = tuple(_READERS)
