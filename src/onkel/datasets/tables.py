"""From the columns of a table to features and targets, block by block: numbers, texts, missing values, labels.

The first rows decide which columns are numbers and which are texts, and likewise for the target; a row with a cell that
does not fit is a bad row. Missing values are filled with means of the rows before, so no later row is used.
"""

from __future__ import annotations

import math
import re
import shlex
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from onkel.core.errors import DataError
from onkel.core.wording import listed
from onkel.datasets.bad_rows import BadRow

Missing = Literal["mean", "drop"]
Encode = Literal["onehot", "hash"]
Cells = Any  # a sequence: texts, or numbers with NaN where there is none
Floats = NDArray[np.float64]

MISSING: tuple[Missing, ...] = get_args(Missing)
ENCODE: tuple[Encode, ...] = get_args(Encode)
WORDS_FOR_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})

_BUCKETS = 1024
_MOST_TEXTS = 1000  # of a column, with a feature each
_FEW_TEXTS = 50  # up to so many different texts are categories, however few the rows
_MOST_DENSE = 1000  # columns; wider tables with texts stay sparse


@dataclass(frozen=True)
class Block:
    """Some examples, which unpack into X (n, d), dense or CSR, and y (n,).

    `rows` are their numbers in a table, from 0; `bad` are the rows among them that were left out.
    """

    X: Any
    y: NDArray[Any]
    rows: NDArray[np.int64] | None = None
    bad: tuple[BadRow, ...] = ()

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y))

    def pieces(self, rows: int) -> Iterator[Block]:
        """The same in blocks of at most so many rows."""
        if rows < 1:
            raise DataError(f"rows must be > 0, got {rows}")
        if len(self.y) <= rows:
            yield self
        else:
            for part in (slice(start, start + rows) for start in range(0, len(self.y), rows)):
                yield Block(self.X[part], self.y[part], None if self.rows is None else self.rows[part])


class Fault(NamedTuple):
    """What is wrong with a row, and the column it is about."""

    column: str | None
    reason: str


@dataclass
class Schema:
    """What must be known of a table to read another one with the same columns; `Table` fills it in.

    Parameters
    ----------
    target : name of the target column.
    drop : names of columns to leave out.
    missing : what becomes of a missing value: None refuses it, "mean" puts the mean of the column so far (0 before
        the first value), "drop" leaves the row out.
    encode : what becomes of texts: None refuses them, "onehot" makes a feature of every text of a column, "hash" maps
        all texts to 1024 features.
    features : names of the feature columns, in the order of the model's features; None: not known yet.
    texts : those of them that hold texts.
    words : the feature of each (column, text), with "onehot".
    sums, counts : of the values of each column of numbers so far.
    labels : dtype kind of the targets of the first rows: "i" whole numbers, "f" real numbers, "U" texts.
    base : the number of the first column of LIBSVM files, 0 or 1.
    """

    target: str | None = None
    drop: Sequence[str] = ()
    missing: Missing | None = None
    encode: Encode | None = None
    features: list[str] | None = None
    texts: list[str] | None = None
    words: dict[tuple[str, str], int] = field(default_factory=dict)
    sums: Floats = field(default_factory=lambda: np.zeros(0))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    labels: str | None = None
    base: int | None = None

    def __post_init__(self) -> None:
        _check_choice("missing", self.missing, MISSING)
        _check_choice("encode", self.encode, ENCODE)

    @property
    def numbers(self) -> int:
        """How many features are numbers; they come first, those of texts after them."""
        return len(self.features or ()) - len(self.texts or ())

    def mark(self) -> dict[str, Any]:
        """What is known now, for `back`. The words are only counted, as further ones join at the end."""
        return vars(self) | {"words": len(self.words)}

    def back(self, mark: dict[str, Any]) -> None:
        """Forget what was learned since the mark."""
        while len(self.words) > mark["words"]:
            self.words.popitem()
        vars(self).update(mark | {"words": self.words})

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        arrays = {"sums": self.sums.tolist(), "counts": self.counts.tolist()}
        return vars(self) | arrays | {"drop": list(self.drop), "words": [list(word) for word in self.words]}

    @classmethod
    def of(cls, data: dict[str, Any]) -> Schema:
        """The inverse of `plain`."""
        words = {(column, text): number for number, (column, text) in enumerate(data["words"])}
        arrays = {"sums": np.array(data["sums"], float), "counts": np.array(data["counts"], np.int64)}
        return cls(**(data | arrays | {"words": words}))


class Table:
    """Makes features and targets of a table whose columns have names.

    Parameters
    ----------
    source : name of the file, for messages.
    names : of the columns.
    schema : what is known of them; learned here as rows come.
    learning : False: to predict. The schema is not changed, and missing targets are NaN.
    skip : whether bad rows are left out; if not, the first one ends the table.
    """

    def __init__(
        self, source: str, names: Sequence[str], schema: Schema, learning: bool = True, skip: bool = False
    ) -> None:
        self.source, self.names, self.schema, self.learning, self.skip = source, list(names), schema, learning, skip
        for name, times in Counter(self.names).items():
            if times > 1:
                raise DataError(f"{source} has {times} columns named {name!r}; rename all but one")
        if not learning and schema.texts is None and (schema.missing == "mean" or schema.encode == "onehot"):
            raise DataError(
                f"{source}: the model has not learned from a table, so it knows neither means nor texts of columns; "
                f"leave out rows with missing values by {_option('missing', 'drop')}, hash texts by "
                f"{_option('encode', 'hash')}"
            )
        self.target = -1
        if learning or (schema.target in self.names and schema.target not in schema.drop):
            self.target = _target_column(source, self.names, schema.target)
        self.needed = schema.features is not None  # then all columns are needed, as a model has learned from them
        self.kept = _feature_columns(source, self.names, self.target, schema)
        self.read = self.filled = self.dropped = 0
        self._refused: list[str] = []  # columns whose first rows hold texts, if texts are refused

    @property
    def counts(self) -> tuple[int, int, int]:
        """Rows read, values filled and rows dropped so far."""
        return self.read, self.filled, self.dropped

    @counts.setter
    def counts(self, counts: tuple[int, int, int]) -> None:
        self.read, self.filled, self.dropped = counts

    def wanted(self) -> list[int]:
        """For each column: 0 if it is not needed, 1 for numbers, 2 for texts or if not known yet."""
        wanted = [0] * len(self.names)
        numbers, texts = ([], self.kept) if self.schema.texts is None else self._kinds()
        for kind, columns in ((1, numbers), (2, texts), (2, [self.target] if self.target >= 0 else [])):
            for j in columns:
                wanted[j] = kind
        return wanted

    def _kinds(self) -> tuple[list[int], list[int]]:
        """The columns of numbers, and those of texts."""
        texts = set(self.schema.texts or ())
        return [j for j in self.kept if self.names[j] not in texts], [j for j in self.kept if self.names[j] in texts]

    def begin(self, columns: Sequence[Cells]) -> None:
        """Find out from the first rows which columns hold texts, and what the targets are, if that is not known."""
        schema = self.schema
        if schema.texts is None:
            texts = [j for j in self.kept if self._are_texts(columns[j])]
            if schema.encode is None:  # then all columns are numbers, and each text is refused
                self._refused, texts = [self.names[j] for j in texts], []
            self._refuse_names(texts, columns)
            schema.features, schema.texts = [self.names[j] for j in self.kept], [self.names[j] for j in texts]
        if not schema.sums.size:
            schema.sums, schema.counts = np.zeros(schema.numbers), np.zeros(schema.numbers, np.int64)
        if schema.labels is None and self.target >= 0:
            known = [str(cell).strip() for cell in columns[self.target] if not _is_missing(cell)]
            if known:
                numbers = known if not self.skip else [cell for cell in known if _as_number(cell) is not None]
                schema.labels = "U" if self._are_texts(known) else _typed(numbers).dtype.kind

    def _are_texts(self, cells: Cells) -> bool:
        """Whether a column holds texts: any, or if bad rows are left out, more texts than numbers."""
        if _as_numbers(cells) is not None:
            return False
        if not self.skip:
            return True
        known = [_as_number(cell) for cell in cells if not _is_missing(cell)]
        return 2 * known.count(None) > len(known)

    def block(self, columns: Sequence[Cells], faults: dict[int, Fault]) -> tuple[Block, NDArray[np.int64]]:
        """Features and targets of some rows, and which of them they are.

        `columns` holds all columns, those not wanted may be empty. Rows with `faults` are left out; those found here
        are added. Unless bad rows are left out, so are all rows from the first one on.
        """
        columns = [*columns, [math.nan] * len(columns[self.kept[0]])] if self.target < 0 else columns
        n = len(columns[self.target])
        numbers, coded = self._kinds()
        values = np.column_stack([np.empty((n, 0)), *(self._numbers(j, columns[j], faults) for j in numbers)])
        texts = [_stripped(columns[j]) for j in coded]
        goal = columns[self.target]
        y = self._find_bad_targets(goal, faults)
        dropped = self._find_missing(values, texts, goal if y is None else None, faults)
        self._find_too_many(coded, texts, faults)
        there = np.ones(n, bool)
        there[sorted(faults)] = False
        if faults and not self.skip:
            there[min(faults) :] = False
        self.dropped += int((there & dropped).sum())
        rows = np.flatnonzero(there & ~dropped)
        if len(rows) < n:
            y, values, goal = None, values[rows], [goal[i] for i in rows]
            texts = [[column[i] for i in rows] for column in texts]
        y = self._known_targets(goal) if y is None else y
        self._fill(values)
        X = self._features_of(values, dict(zip(coded, texts, strict=True)), len(y))
        numbered = self.read + rows
        self.read += n
        return Block(X, y, numbered), rows

    # -- cells

    def _numbers(self, j: int, cells: Cells, faults: dict[int, Fault]) -> Floats:
        values = _as_numbers(cells)
        if values is None:
            found = [_as_number(cell) for cell in cells]
            for i in (i for i, value in enumerate(found) if value is None):
                self._note(faults, i, j, f"{cells[i].strip()!r} {self._no_number(j, cells[i].strip())}")
            values = np.array([math.nan if value is None else value for value in found])
            values[[i for i, value in enumerate(found) if value is None]] = 0.0  # it is not missing
        for i in np.flatnonzero(np.isinf(values)).tolist():
            self._note(faults, i, j, f"'{cells[i]}' is not finite; replace it, or remove the row")
        return values

    def _note(self, faults: dict[int, Fault], i: int, j: int, reason: str) -> None:
        faults.setdefault(i, Fault(self.names[j], reason))

    def _no_number(self, j: int, cell: str) -> str:
        """What to do about a text in a column of numbers."""
        if self.names[j] not in self._refused:
            return "is not a number like those before; correct it"
        others = [name for name in self._refused if name != self.names[j]]
        remedy = (
            "make features of texts by encode='onehot' or 'hash' (at the shell --encode onehot or hash), or leave the "
            f"column out by {_drop(self.names[j])}"
        )
        if re.fullmatch(r"[+-]?\d+,\d+", cell):
            remedy = "write decimals with a point"
        return f"is not a number{f' (texts are in {listed(others)}, too)' if others else ''}; {remedy}"

    def _refuse_names(self, texts: list[int], columns: Sequence[Cells]) -> None:
        """Raise an error for columns of texts that are not categories."""
        for j in texts if self.schema.encode == "onehot" else ():
            different, n = len(set(columns[j])), len(columns[j])
            if different > max(_FEW_TEXTS, n / 2):
                raise DataError(
                    f"{self.source}, column {self.names[j]!r}: {different:,} different texts in {n:,} rows are "
                    f"no categories; leave the column out by {_drop(self.names[j])}, or hash texts by "
                    f"{_option('encode', 'hash')}"
                )

    def _find_missing(
        self, values: Floats, texts: list[list[str]], goal: Cells | None, faults: dict[int, Fault]
    ) -> NDArray[np.bool_]:
        """Find rows with missing values; returns those that are left out because `missing` says so.

        Without a goal, no target is missing.
        """
        numbers, coded = self._kinds()
        holes = {j: np.isnan(values[:, k]) for k, j in enumerate(numbers)}
        holes |= {j: np.array([not cell for cell in column], bool) for j, column in zip(coded, texts, strict=True)}
        gaps = {j: hole for j, hole in holes.items() if hole.any()}
        n = len(values)
        unlabelled = np.zeros(n, bool)
        if goal is not None and self.learning:
            unlabelled = np.array([_is_missing(cell) for cell in goal], bool)
        if self.schema.missing == "drop":
            return np.asarray(np.logical_or.reduce([unlabelled, *gaps.values()]))
        remedy = f"fill it, or leave such rows out by {_option('missing', 'drop')}"
        for i in np.flatnonzero(unlabelled).tolist():
            self._note(faults, i, self.target, f"the target is missing; {remedy}")
        if self.schema.missing is None and gaps:
            counts = listed([f"{self.names[k]} {int(gaps[k].sum())}" for k in sorted(gaps)])
            among = "" if self.skip else f" (in these {n:,} rows: {counts})"
            for j in sorted(gaps):
                reason = f"the value is missing{among}; {self._remedies(j)}"
                for i in np.flatnonzero(gaps[j]).tolist():
                    self._note(faults, i, j, reason)
        return np.zeros(n, bool)

    def _remedies(self, j: int) -> str:
        """What to do about missing values of a column."""
        mean = f"fill with the mean so far by {_option('missing', 'mean')}"
        drop = f"leave such rows out by {_option('missing', 'drop')}"
        if self.needed:
            return f"{mean}, or {drop}"
        return f"{mean}, {drop}, or leave the column out by {_drop(self.names[j])}"

    def _find_too_many(self, coded: list[int], texts: list[list[str]], faults: dict[int, Fault]) -> None:
        """Find rows that would give a column more than 1000 texts with a feature each."""
        if self.schema.encode != "onehot" or not self.learning:
            return
        for j, column in zip(coded, texts, strict=True):
            known = {text for name, text in self.schema.words if name == self.names[j]}
            if len(known | set(column) - {""}) <= _MOST_TEXTS:
                continue
            for i in (i for i, text in enumerate(column) if text and i not in faults):
                if column[i] not in known and len(known) >= _MOST_TEXTS:
                    reason = (
                        f"more than {_MOST_TEXTS:,} different texts, too many for a feature each; leave the column "
                    )
                    reason += f"out by {_drop(self.names[j])}, or hash texts by {_option('encode', 'hash')}"
                    self._note(faults, i, j, reason)
                else:
                    known.add(column[i])

    def _fill(self, values: Floats) -> None:
        """Put the mean of the rows before where a value is missing (0 before the first)."""
        schema, hole = self.schema, np.isnan(values)
        self.filled += int(hole.sum())
        if not self.learning:
            values[hole] = np.broadcast_to(schema.sums / np.maximum(schema.counts, 1), values.shape)[hole]
            return
        holes = bool(hole.any())
        known = np.where(hole, 0.0, values) if holes else values
        # one by one: how rows are cut into blocks must not matter
        sums = np.vstack([schema.sums, known]).cumsum(axis=0)
        if holes:
            counts = np.vstack([schema.counts, ~hole]).cumsum(axis=0)
            values[hole] = (sums / np.maximum(counts, 1))[:-1][hole]
        schema.sums, schema.counts = sums[-1], schema.counts + len(values) - hole.sum(axis=0)

    def _features_of(self, values: Floats, texts: dict[int, list[str]], n: int) -> Any:
        if not texts:
            return values
        rows, features, signs = [], [], []
        for i, row in enumerate(zip(*texts.values(), strict=True)):  # row by row: blocks must not matter
            for j, cell in zip(texts, row, strict=True):
                feature, sign = self._feature(self.names[j], cell) if cell else (None, 0.0)
                if feature is not None:
                    rows.append(i)
                    features.append(feature)
                    signs.append(sign)
        width = _BUCKETS if self.schema.encode == "hash" else len(self.schema.words)
        coded = scipy.sparse.csr_matrix((signs, (rows, features)), shape=(n, width), dtype=np.float64)
        return scipy.sparse.hstack([scipy.sparse.csr_matrix(values), coded], format="csr")

    def _feature(self, column: str, cell: str) -> tuple[int | None, float]:
        """Number and value of the feature for a text; a new text has none (None) unless `learning`."""
        if self.schema.encode == "hash":
            code = zlib.crc32(f"{column}={cell}".encode())
            return code % _BUCKETS, 1.0 if code >> 31 else -1.0
        words = self.schema.words
        if self.learning:
            words.setdefault((column, cell), len(words))
        return words.get((column, cell)), 1.0

    def _find_bad_targets(self, cells: Cells, faults: dict[int, Fault]) -> NDArray[Any] | None:
        """Find targets that are no finite numbers, if the targets are numbers. If all are good, they are returned."""
        if self.schema.labels in (None, "U"):
            return None
        values = _typed([str(cell).strip() for cell in cells])
        if values.dtype.kind != "U" and np.isfinite(values).all():
            return values
        for i, cell in enumerate(cells):
            text = str(cell).strip()
            value = _as_number(text)
            if value is None:
                self._note(faults, i, self.target, f"the target {text!r} is not a number like those before; correct it")
            elif math.isinf(value):
                self._note(faults, i, self.target, f"the target {text!r} is not finite; correct it")
        return None

    def _known_targets(self, cells: Cells) -> NDArray[Any]:
        """Targets; NaN where there is none, which is allowed if nothing is learned from them."""
        known = [i for i, cell in enumerate(cells) if self.learning or not _is_missing(cell)]
        texts = [str(cells[i]).strip() for i in known]
        targets = np.array(texts) if self.schema.labels == "U" or not texts else _typed(texts)
        if len(known) == len(cells):
            return targets
        y = np.full(len(cells), np.nan, object if targets.dtype.kind == "U" else np.float64)
        y[known] = targets
        return y

    def typed(self, labels: NDArray[Any]) -> NDArray[Any]:
        """All targets, which were read as texts, as numbers if they are numbers."""
        values = _typed(labels)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            bad = str(labels[~np.isfinite(values)][0])
            raise DataError(
                f"{self.source}, column {self.names[self.target]!r}: the target {bad!r} is not finite; correct it"
            )
        self.schema.labels = values.dtype.kind
        return values


def dense(X: Any) -> Any:
    """A narrow CSR matrix as an array, in which columns can be centred; a wide one as it is."""
    return X.toarray() if scipy.sparse.issparse(X) and X.shape[1] <= _MOST_DENSE else X


# -- columns -----------------------------------------------------------------------------------------------


def _target_column(source: str, names: list[str], target: str | None) -> int:
    columns = f"its columns are {listed(names)}"
    if target is None:
        raise DataError(f"{source} needs a target column: target= (at the shell --target NAME); {columns}")
    if target not in names:
        raise DataError(f"{source} has no column {target!r}; {columns}")
    return names.index(target)


def _feature_columns(source: str, names: list[str], goal: int, schema: Schema) -> list[int]:
    """Where the feature columns are: those that the model knows, in its order, or all that are not left out."""
    if goal >= 0 and names[goal] in schema.drop:
        raise DataError(f"{source}: {names[goal]!r} cannot be dropped, it is the target")
    there = {name: j for j, name in enumerate(names) if j != goal and name not in schema.drop}
    if schema.features is None:
        if unknown := [name for name in schema.drop if name not in names]:
            raise DataError(f"{source} has no column {unknown[0]!r} to drop; its columns are {listed(names)}")
        if not there:
            raise DataError(f"{source} has no feature column besides the target {names[goal]!r}")
        return list(there.values())
    if lacking := [name for name in schema.features if name not in there]:
        raise DataError(
            f"{source} lacks columns that the model has learned from: {listed(lacking)}; it has {listed(list(there))}"
        )
    if more := sorted(there.keys() - set(schema.features), key=there.__getitem__):
        raise DataError(
            f"{source} has columns that the model has not learned from: {listed(more)}; leave them out by "
            f"{_drop(*more)}"
        )
    return [there[name] for name in schema.features]


def _option(name: str, value: str) -> str:
    """An argument in a message: for Python, and as the option of the shell command."""
    return f"{name}={value!r} (at the shell --{name} {value})"


def _drop(*names: str) -> str:
    return f"drop={list(names)!r} (at the shell --drop {shlex.quote(','.join(names))})"


def _check_choice(name: str, value: str | None, choices: Sequence[str]) -> None:
    if value is not None and value not in choices:
        raise DataError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


# -- cells -------------------------------------------------------------------------------------------------


def _typed(cells: Any) -> NDArray[Any]:
    """Whole numbers if all are, else real numbers if all are, else texts."""
    texts = np.asarray(cells)
    if any("_" in text for text in texts.tolist()):  # 1_000 is a number in Python, but not in a table
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
    if not any("_" in cell for cell in cells if cell is not None):  # 1_000 is a number in Python, but not in a table
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
