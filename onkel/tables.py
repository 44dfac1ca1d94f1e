"""From the columns of a table to features and targets, block by block: numbers, texts, missing values, labels.

What a column is (numbers or texts) and what labels are is decided by the first block and kept; a later cell that does
not fit is refused with its place. Statistics used to fill are those of the rows before, so nothing looks ahead.
"""

from __future__ import annotations

import re
import shlex
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from onkel.stream import DataError, listed

Missing = Literal["mean", "drop"]
Encode = Literal["onehot", "hash"]
Cells = Any  # a sequence: texts, or numbers with NaN where there is none
Place = Callable[[int], str]  # of a row of the block, for messages
Floats = NDArray[np.float64]

MISSING: tuple[Missing, ...] = ("mean", "drop")
ENCODE: tuple[Encode, ...] = ("onehot", "hash")
WORDS_FOR_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})

_BUCKETS = 1024
_MOST_TEXTS = 1000  # of a column, with a feature each
_FEW_TEXTS = 50  # so many may be different in every row
_MOST_DENSE = 1000  # columns; wider tables with texts stay sparse


class Block(NamedTuple):
    """Some examples: X (n, d), dense or CSR, and y (n,)."""

    X: Any
    y: NDArray[Any]

    def pieces(self, rows: int) -> Iterator[Block]:
        """The same in blocks of at most so many rows."""
        if rows < 1:
            raise DataError(f"rows must be > 0, got {rows}")
        if len(self.y) <= rows:
            yield self
        else:
            for start in range(0, len(self.y), rows):
                yield Block(self.X[start : start + rows], self.y[start : start + rows])


class Table:
    """Makes features and targets of a table whose columns have names.

    Parameters
    ----------
    source : name of the file, for messages.
    names : of the columns.
    target : name of the target column.
    drop : names of columns to leave out.
    missing : what becomes of a missing value: None refuses it, "mean" puts the mean of the column so far (0 before
        the first value), "drop" leaves the row out.
    encode : what becomes of texts: None refuses them, "onehot" gives every text of a column a feature, "hash" throws
        all of them into 1024 features.
    labels : "auto" makes numbers of targets that look like it; "text" leaves that to `typed`, in the end; "none":
        there is no target column, all targets are 0.
    """

    def __init__(
        self,
        source: str,
        names: Sequence[str],
        target: str | None,
        drop: Sequence[str] = (),
        missing: Missing | None = None,
        encode: Encode | None = None,
        labels: Literal["auto", "text", "none"] = "auto",
    ) -> None:
        _check_choice("missing", missing, MISSING)
        _check_choice("encode", encode, ENCODE)
        self.source, self.names, self.missing, self.encode = source, list(names), missing, encode
        self.target = -1 if labels == "none" else _target_column(source, self.names, target)
        self.kept = _feature_columns(source, self.names, self.target, drop)
        self.filled = self.dropped = 0
        self._texts: list[int] | None = None  # columns of texts
        self._features: dict[tuple[int, str], int] = {}  # of (column, text)
        self._sums = np.zeros(len(names))
        self._counts = np.zeros(len(names), np.int64)
        self._labels = "U" if labels == "text" else None  # "i", "f" or "U"

    def wanted(self) -> list[int]:
        """Of each column: 0 not needed, 1 numbers, 2 texts or not known yet."""
        text = set(self.kept if self._texts is None else self._texts) | {self.target}  # of which -1 is none
        return [2 if j in text else 1 if j in self.kept else 0 for j in range(len(self.names))]

    def block(self, columns: Sequence[Cells], place: Place) -> Block:
        """Features and targets of some rows; `columns` holds all columns, those not wanted may be empty."""
        columns = [*columns, ["0"] * len(columns[self.kept[0]])] if self.target < 0 else columns
        if self._texts is None:
            self._texts = [j for j in self.kept if _first_text(columns[j]) is not None]
            self._refuse_texts(columns, place)
        numbers = [j for j in self.kept if j not in self._texts]
        empty = np.empty((len(columns[self.target]), 0))
        values = np.column_stack([empty, *(self._numbers(j, columns[j], place) for j in numbers)])
        texts = [_stripped(columns[j]) for j in self._texts]
        goal = columns[self.target]
        rows = self._complete(values, texts, goal, place)
        if rows is not None:
            values, texts = values[rows], [[column[i] for i in rows] for column in texts]
            goal = [goal[i] for i in rows]
            place = _chosen(place, rows)
        y = self._targets(goal, place)
        self._fill(numbers, values)
        return Block(self._features_of(values, texts, len(y)), y)

    # -- cells

    def _numbers(self, j: int, cells: Cells, place: Place) -> Floats:
        values = _as_numbers(cells)
        if values is None:
            i, cell = _first_text(cells) or (0, "")
            raise DataError(f"{self._cell(place, i, j)}: {cell!r} is not a number, as those before were; mend it")
        if np.isinf(values).any():
            i = int(np.flatnonzero(np.isinf(values))[0])
            raise DataError(f"{self._cell(place, i, j)}: '{cells[i]}' is not finite; replace it, or remove the row")
        return values

    def _refuse_texts(self, columns: Sequence[Cells], place: Place) -> None:
        """Texts that nobody said what to do with, or that are no categories."""
        assert self._texts is not None
        for j in self._texts if self.encode == "onehot" else ():
            different, n = len(set(columns[j])), len(columns[j])
            if different > max(_FEW_TEXTS, n / 2):
                raise DataError(
                    f"{self.source}, column {self.names[j]!r}: {different:,} different texts in {n:,} rows, a name and "
                    f"no category; leave the column out ({self._drop(j)}), or hash texts (--encode hash)"
                )
        if self.encode is not None or not self._texts:
            return
        j = self._texts[0]
        i, cell = _first_text(columns[j]) or (0, "")
        others = f" (columns {listed([self.names[k] for k in self._texts[1:]])} hold texts, too)"
        remedy = f"make features of texts (--encode onehot or hash), or leave the column out ({self._drop(j)})"
        if re.fullmatch(r"[+-]?\d+,\d+", cell):
            remedy = "write decimals with a point"
        raise DataError(
            f"{self._cell(place, i, j)}: {cell!r} is not a number{others if self._texts[1:] else ''}; {remedy}"
        )

    def _drop(self, j: int) -> str:
        return f"--drop {shlex.quote(self.names[j])}"

    def _complete(self, values: Floats, texts: list[list[str]], goal: Cells, place: Place) -> list[int] | None:
        """The rows to keep, None for all; refuses missing values that nobody said what to do with."""
        assert self._texts is not None
        numbers = [j for j in self.kept if j not in self._texts]
        holes = {j: np.isnan(values[:, k]) for k, j in enumerate(numbers)}
        holes |= {j: np.array([not cell for cell in column]) for j, column in zip(self._texts, texts, strict=True)}
        gaps = {j: hole for j, hole in holes.items() if hole.any()}
        unlabelled = np.array([_is_missing(cell) for cell in goal])
        if self.missing != "drop" and unlabelled.any():
            i = int(np.flatnonzero(unlabelled)[0])
            place_ = self._cell(place, i, self.target)
            raise DataError(f"{place_}: the target is missing; fill it, or leave such rows out (--missing drop)")
        if self.missing is None and gaps:
            j, hole = min(gaps.items(), key=lambda gap: (int(np.flatnonzero(gap[1])[0]), gap[0]))
            counts = listed([f"{self.names[k]} {int(gaps[k].sum())}" for k in sorted(gaps)])
            raise DataError(
                f"{self._cell(place, int(np.flatnonzero(hole)[0]), j)}: the value is missing (in these {len(goal):,} "
                f"rows: {counts}); fill with the mean so far (--missing mean), leave such rows out (--missing drop), "
                f"or the column ({self._drop(j)})"
            )
        if self.missing != "drop":
            return None
        bad = np.logical_or.reduce([unlabelled, *gaps.values()])
        self.dropped += int(bad.sum())
        return np.flatnonzero(~bad).tolist() if bad.any() else None

    def _fill(self, numbers: list[int], values: Floats) -> None:
        """Put the mean of the rows before where a value is missing (0 before the first)."""
        if self.missing != "mean":
            return
        hole = np.isnan(values)
        self.filled += int(hole.sum())
        known = np.where(hole, 0.0, values)  # summed one by one: how rows are cut into blocks must not matter
        sums = np.vstack([self._sums[numbers], known]).cumsum(axis=0)
        counts = np.vstack([self._counts[numbers], ~hole]).cumsum(axis=0)
        values[hole] = (sums / np.maximum(counts, 1))[:-1][hole]
        self._sums[numbers], self._counts[numbers] = sums[-1], counts[-1]

    def _features_of(self, values: Floats, texts: list[list[str]], n: int) -> Any:
        if not self._texts:
            return values
        rows, features, signs = [], [], []
        for j, column in zip(self._texts, texts, strict=True):
            for i, cell in enumerate(column):
                if cell:
                    feature, sign = self._feature(j, cell)
                    rows.append(i)
                    features.append(feature)
                    signs.append(sign)
        width = _BUCKETS if self.encode == "hash" else len(self._features)
        coded = scipy.sparse.csr_matrix((signs, (rows, features)), shape=(n, width), dtype=np.float64)
        return scipy.sparse.hstack([scipy.sparse.csr_matrix(values), coded], format="csr")

    def _feature(self, j: int, cell: str) -> tuple[int, float]:
        """Number and value of the feature that stands for a text."""
        if self.encode == "hash":
            code = zlib.crc32(f"{self.names[j]}={cell}".encode())
            return code % _BUCKETS, 1.0 if code >> 31 else -1.0
        if (j, cell) not in self._features:
            if sum(column == j for column, _ in self._features) >= _MOST_TEXTS:
                raise DataError(
                    f"{self.source}, column {self.names[j]!r}: more than {_MOST_TEXTS:,} different texts, too many for "
                    f"a feature each; leave the column out ({self._drop(j)}), or hash texts (--encode hash)"
                )
            self._features[j, cell] = len(self._features)
        return self._features[j, cell], 1.0

    def _targets(self, cells: Cells, place: Place) -> NDArray[Any]:
        """Whole numbers if possible, else real numbers, else texts, as the first block has decided."""
        texts = [str(cell).strip() for cell in cells]
        if self._labels == "U" or not texts:
            return np.array(texts)
        values = _typed(texts)
        if values.dtype.kind == "U" and self._labels is not None:
            i, cell = _first_text(texts) or (0, texts[0])
            place_ = self._cell(place, i, self.target)
            raise DataError(f"{place_}: the target {cell!r} is not a number, as those before were; mend it")
        self._labels = self._labels or values.dtype.kind
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            i = int(np.flatnonzero(~np.isfinite(values))[0])
            raise DataError(f"{self._cell(place, i, self.target)}: the target {texts[i]!r} is not finite; mend it")
        return values

    def typed(self, labels: NDArray[Any]) -> NDArray[Any]:
        """All targets, read as texts, as numbers if they are."""
        values = _typed(labels)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            bad = str(labels[~np.isfinite(values)][0])
            raise DataError(
                f"{self.source}, column {self.names[self.target]!r}: the target {bad!r} is not finite; mend it"
            )
        return values

    def _cell(self, place: Place, i: int, j: int) -> str:
        return f"{place(i)}, column {self.names[j]!r}"


def dense(X: Any) -> Any:
    """A narrow matrix that holds texts as features, as an array: there a column can be centred."""
    return X.toarray() if scipy.sparse.issparse(X) and X.shape[1] <= _MOST_DENSE else X


# -- columns -----------------------------------------------------------------------------------------------


def _target_column(source: str, names: list[str], target: str | None) -> int:
    columns = f"its columns are {listed(names)}"
    if target is None:
        raise DataError(f"{source} needs a target column (--target NAME); {columns}")
    if names.count(target) > 1:
        raise DataError(f"{source} has {names.count(target)} columns named {target!r}; rename the others")
    if target not in names:
        raise DataError(f"{source} has no column {target!r}; {columns}")
    return names.index(target)


def _feature_columns(source: str, names: list[str], goal: int, drop: Sequence[str]) -> list[int]:
    for name in drop:
        if name not in names:
            raise DataError(f"{source} has no column {name!r} to drop; its columns are {listed(names)}")
        if goal >= 0 and name == names[goal]:
            raise DataError(f"{source}: {name!r} cannot be dropped, it is the target")
    kept = [j for j, name in enumerate(names) if j != goal and name not in drop]
    if not kept:
        raise DataError(f"{source} has no feature column besides the target {names[goal]!r}")
    return kept


def _check_choice(name: str, value: str | None, choices: Sequence[str]) -> None:
    if value is not None and value not in choices:
        raise DataError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def _chosen(place: Place, rows: list[int]) -> Place:
    return lambda i: place(rows[i])


# -- cells -------------------------------------------------------------------------------------------------


def _typed(cells: Any) -> NDArray[Any]:
    """Whole numbers if all are, else real numbers if all are, else texts."""
    texts = np.asarray(cells)
    if any("_" in text for text in texts.tolist()):  # Python's numbers may have it, a table's not
        return texts
    for kind in (np.int64, np.float64):
        try:
            return texts.astype(kind)
        except (ValueError, OverflowError):
            continue
    return texts


def _is_missing(cell: Any) -> bool:
    if isinstance(cell, str):
        return cell.strip().lower() in WORDS_FOR_MISSING
    return cell is None or bool(np.isnan(cell))


def _stripped(cells: Cells) -> list[str]:
    """Texts without blanks around them; empty where the value is missing."""
    return ["" if _is_missing(cell) else str(cell).strip() for cell in cells]


def _as_numbers(cells: Cells) -> Floats | None:
    """All cells as numbers, NaN where missing; None if one is neither."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        return cells.astype(np.float64)
    if not any("_" in cell for cell in cells if cell is not None):  # Python's numbers may have it, a table's not
        try:
            return np.array(cells, dtype=np.float64)
        except (ValueError, TypeError):
            pass
    values = [_as_number(cell) for cell in cells]
    return None if None in values else np.array(values, dtype=np.float64)


def _as_number(cell: Any) -> float | None:
    if _is_missing(cell):
        return np.nan
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _first_text(cells: Cells) -> tuple[int, str] | None:
    """The first cell that is neither a number nor missing."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        return None
    if _as_numbers(cells) is not None:
        return None
    return next((i, cell.strip()) for i, cell in enumerate(cells) if _as_number(cell) is None)
