"""Streams to learn from: embedded, generated, or read from a file.

Everything here gives a `Stream`: features, targets, and what kind of task they pose. Nothing is downloaded.
Embedded streams come scaled as their description says; files are given as they are (`Stream.scaled` helps).
"""

from __future__ import annotations

import csv
import dataclasses
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse
import sklearn.datasets
from numpy.typing import ArrayLike, NDArray

Task = Literal["classification", "regression"]
Array = NDArray[Any]

_MOST_CLASSES = 26  # an alphabet of labels; more different whole numbers than that are taken for measurements
_ROWS_AT_ONCE = 4096


class DataError(ValueError):
    """Data that cannot be used; the message says what, where, and what to do about it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Stream:
    """Examples in the order they arrived, and the task they pose.

    Parameters
    ----------
    name : short name, for tables.
    X : (n, d) array, or a SciPy sparse matrix (kept as CSR).
    y : (n,) targets; labels of any type, or real numbers.
    task : "classification" or "regression".
    description : one sentence for people.
    ordered : whether the order carries meaning (time, drift), so that shuffling would destroy the stream.
    """

    name: str
    X: Any
    y: Array
    task: Task
    description: str = ""
    ordered: bool = False

    def __post_init__(self) -> None:
        X = self.X.tocsr() if scipy.sparse.issparse(self.X) else np.asarray(self.X)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", np.asarray(self.y))
        _check_shapes(self.name, X, self.y)
        _check_finite(self.name, X)
        _check_targets(self.name, self.y, self.task)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def features(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def classes(self) -> Array | None:
        """The different labels, sorted; None for regression."""
        return np.unique(self.y) if self.task == "classification" else None

    def order(self, number: int = 0, *, seed: int = 0) -> NDArray[np.intp]:
        """Row numbers of shuffled order `number`; the same for the same seed, whatever other orders exist.

        An `ordered` stream has one order only, its own.
        """
        if self.ordered:
            return np.arange(len(self))
        return np.random.default_rng([seed, number]).permutation(len(self))

    def scaled(self) -> Stream:
        """The stream with comparable columns.

        Dense columns and regression targets get mean 0 and deviation 1, sparse columns largest magnitude 1.
        The statistics are those of the whole stream, which an honest online learner could not know; the
        description says so.
        """
        sparse, real = scipy.sparse.issparse(self.X), self.task == "regression"
        how = "features divided by their largest magnitude" if sparse else "features standardised"
        note = "; target standardised: its mean predicts with RMSE 1" if real else ""
        return dataclasses.replace(
            self,
            X=_fit_magnitude(self.X) if sparse else _standardise(self.X),
            y=_standardise(self.y) if real else self.y,
            description=f"{self.description}; {how} over the whole stream{note}",
        )


def load(name: str) -> Stream:
    """An embedded stream by name; `NAMES` lists them."""
    if name not in _EMBEDDED:
        raise DataError(f"there is no embedded stream {name!r}; there are {', '.join(NAMES)}")
    return _EMBEDDED[name]()


def drift(n: int = 3000, seed: int = 0, *, turns: float = 1.0, noise: float = 0.05) -> Stream:
    """Points of a square, labelled by the sides of a wavy line that turns while the stream runs.

    Parameters
    ----------
    n : number of examples.
    seed : of the points and of the noise.
    turns : full turns of the line from the first example to the last; 0 makes the concept stand still.
    noise : share of the labels that are flipped.
    """
    random = np.random.default_rng(seed)
    X = random.uniform(-1.0, 1.0, size=(n, 2))
    angle = 2 * np.pi * turns * np.arange(n) / n
    along = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]
    across = np.cos(angle) * X[:, 1] - np.sin(angle) * X[:, 0]
    above = across > 0.4 * np.sin(4 * along)
    flipped = random.uniform(size=n) < noise
    return Stream(
        name="drift",
        X=X,
        y=np.where(above != flipped, 1, -1),
        task="classification",
        description=f"points on two sides of a wavy line that turns, {noise:.0%} of the labels flipped",
        ordered=True,
    )


def _digits() -> Stream:
    X, y = sklearn.datasets.load_digits(return_X_y=True)
    return Stream("digits", X / 16.0, y, "classification", "handwritten digits, 8 x 8 pixels in [0, 1], 10 classes")


def _breast_cancer() -> Stream:
    X, y = sklearn.datasets.load_breast_cancer(return_X_y=True)
    label = np.where(y == 0, "malignant", "benign")
    return Stream(
        "breast_cancer",
        _standardise(X),
        label,
        "classification",
        "30 standardised measurements of cell nuclei, benign or malignant",
    )


def _diabetes() -> Stream:
    X, y = sklearn.datasets.load_diabetes(return_X_y=True, scaled=False)
    description = "progress of the disease within a year from 10 measurements; all standardised"
    return Stream("diabetes", _standardise(X), _standardise(y), "regression", description)


_EMBEDDED: dict[str, Callable[[], Stream]] = {
    "breast_cancer": _breast_cancer,
    "digits": _digits,
    "drift": drift,
    "diabetes": _diabetes,
}
NAMES: tuple[str, ...] = tuple(_EMBEDDED)


# -- files -------------------------------------------------------------------------------------------------


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


def infer_task(y: ArrayLike) -> Task:
    """Classification for text, truth values, and at most 26 different whole numbers seen twice on average."""
    values = np.asarray(y)
    if values.dtype.kind not in "iuf":
        return "classification"
    different = np.unique(values)
    few = len(different) <= min(_MOST_CLASSES, len(values) // 2)
    whole = bool(np.all(different == np.floor(different)))
    return "classification" if few and whole else "regression"


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
    columns = f"its columns are {_listed(header)}"
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
            raise DataError(f"{path} has no column {name!r} to drop; its columns are {_listed(header)}")
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
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in _npz_names(path, archive.files, target or "y")}
    except (ValueError, zipfile.BadZipFile) as problem:
        if isinstance(problem, DataError):
            raise
        raise DataError(f"{path} is not a usable npz file: {problem}") from None
    y = arrays[target or "y"]
    if "X" in arrays:
        return arrays["X"], y
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    try:
        return scipy.sparse.csr_matrix(parts, shape=tuple(arrays["shape"])), y
    except ValueError as problem:
        raise DataError(f"{path}: data, indices, indptr and shape make no CSR matrix: {problem}") from None


def _npz_names(path: Path, there: list[str], target: str) -> list[str]:
    """The arrays to take: the target and either X or the four parts of a CSR matrix."""
    sparse = ["data", "indices", "indptr", "shape"]
    if target not in there:
        raise DataError(f"{path} has no array {target!r} for the target; its arrays are {_listed(there)}")
    if "X" in there:
        return ["X", target]
    if not set(sparse) <= set(there):
        raise DataError(f"{path} needs an array X, or {', '.join(sparse)}; its arrays are {_listed(there)}")
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


# -- checks and scales -------------------------------------------------------------------------------------


def _check_shapes(name: str, X: Any, y: Array) -> None:
    if X.ndim != 2 or y.ndim != 1 or X.shape[0] != len(y):
        raise DataError(f"{name}: X must be (n, d) and y (n,), got {X.shape} and {y.shape}")
    if len(y) == 0 or X.shape[1] == 0:
        raise DataError(f"{name}: there is nothing to learn from, X is {X.shape}")


def _check_finite(name: str, X: Any) -> None:
    values = X.data if scipy.sparse.issparse(X) else X
    if values.dtype.kind not in "biuf":
        raise DataError(f"{name}: features must be numbers, got {values.dtype}")
    if np.isfinite(values).all():
        return
    rows, columns = _places(X)
    bad = int(np.flatnonzero(~np.isfinite(values.ravel()))[0])
    raise DataError(
        f"{name}: the value in row {rows[bad]}, column {columns[bad]} (from 0) is missing or infinite; "
        "fill it or remove the row"
    )


def _places(X: Any) -> tuple[Array, Array]:
    """Row and column of each stored value of X."""
    if scipy.sparse.issparse(X):
        entries = X.tocoo()
        return entries.row, entries.col
    rows, columns = np.indices(X.shape).reshape(2, -1)
    return rows, columns


def _check_targets(name: str, y: Array, task: Task) -> None:
    number = y.dtype.kind in "biuf"
    if number and not np.isfinite(y).all():
        raise DataError(f"{name}: the target of row {np.flatnonzero(~np.isfinite(y))[0]} (from 0) is not finite")
    if task == "regression" and not number:
        raise DataError(f"{name}: regression needs numbers as targets, got for example {str(y[0])!r}")
    if task == "classification" and np.all(y == y[0]):
        raise DataError(f"{name}: classification needs two classes or more, all targets are {str(y[0])!r}")


def _standardise(values: Array) -> NDArray[np.float64]:
    centred = values - values.mean(axis=0, dtype=np.float64)
    deviation = centred.std(axis=0)
    rounding = 1e-12 * np.abs(values).max(axis=0)  # a constant column may be off its mean by as much
    return np.asarray(np.where(deviation > rounding, centred / np.where(deviation > 0, deviation, 1.0), 0.0))


def _fit_magnitude(X: Any) -> Any:
    largest = np.asarray(abs(X).max(axis=0).todense()).ravel().astype(np.float64)
    return (X @ scipy.sparse.diags_array(1.0 / np.where(largest > 0, largest, 1.0))).tocsr()


def _listed(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"
