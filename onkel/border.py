"""The border: what people hand in, checked once and turned into what the engine reads.

Rows come as arrays (float32 and float64 are kept), CSR matrices (never densified), pandas or polars
frames, or dictionaries. Whatever is refused is refused here, before anything is learned, with a sentence
that says what, where, and what to do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

Array = np.ndarray[Any, np.dtype[Any]]

SPARSE = ("csr", "csc", "coo")
_MISSING = {"None", "nan", "NaN", "NaT", "<NA>"}  # in words: pandas' NA does not even compare with itself


def is_frame(X: Any) -> bool:
    """A table with named columns, of pandas, polars or the like."""
    return hasattr(X, "columns") and hasattr(X, "shape") and not sp.issparse(X)


def as_rows(X: Any, dtype: Any = None) -> Any:
    """X as a C-contiguous float array or a canonical CSR matrix; the caller's object is never changed."""
    refuse_strange(X, "X")
    wanted = [np.float64, np.float32] if dtype is None else dtype
    with naming_columns(X):
        X = check_array(X, accept_sparse=SPARSE, dtype=wanted, order="C", ensure_all_finite=False, input_name="X")
    return settle(X)


def as_example(x: Any, known: Columns | None = None) -> Any:
    """One example: a mapping from names to numbers, or a row (1, features) of numbers.

    A row of a pandas frame is read by its labels, if these are words or names that are known.
    """
    if isinstance(x, Mapping):
        return x
    refuse_strange(x, "x")
    labels = list(getattr(x, "index", ())) if hasattr(x, "to_dict") and not is_frame(x) else []
    words = all(isinstance(label, str) for label in labels)
    if labels and (words or (known and not known.unknown(labels))):
        label, times = Counter(labels).most_common(1)[0]
        if times > 1:
            raise ValueError(f"x has {times} values of {label!r}: give each a name of its own")
        return dict(zip(labels, x, strict=True))
    try:
        row = np.asarray(x)
    except ValueError:  # lists of different lengths
        row = np.array(None)
    if is_frame(x) or (row.ndim > 1 and row.size != max(row.shape)):
        got = f"a table of shape {row.shape}"
        raise ValueError(f"one example is wanted, got {got}: use learn and predict, or learn_many and predict_many")
    refuse_strange(row, "x")
    if row.ndim == 0 or row.dtype.kind not in "biufO":
        raise ValueError(f"an example is a dictionary or a row of numbers, got {_shortly(x)}")
    if row.dtype.kind == "O":
        numbers = row.ravel().tolist()
        at = next((i for i, number in enumerate(numbers) if not _is_number(number)), None)
        if at is not None:
            raise ValueError(f"feature {at} is {_shortly(numbers[at])}, not a number: encode it first")
        row = np.array([_as_float(number) for number in numbers])
    return row.reshape(1, -1)


@contextmanager
def naming_columns(X: Any) -> Iterator[None]:
    """Where a value of a frame cannot be read as a number, or any one is too large, say where it is."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        for name in X.columns if is_frame(X) and hasattr(X, "dtypes") else ():
            for row, value in enumerate(X[name]):
                if not _can_be_read(value) and str(value) not in _MISSING:
                    where = f"column {name!r} of X holds {_shortly(value)} in row {row}"
                    raise ValueError(f"{where}, not a number: encode or drop it first") from None
        if isinstance(error, OverflowError):
            values = np.array(X, dtype=object)
            for row, column in np.ndindex(values.shape) if values.ndim == 2 else ():
                if not _can_be_read(values[row, column]):
                    where = f"X holds {_shortly(values[row, column])} in row {row}, column {column}"
                    raise ValueError(f"{where}, too large for a float: scale the features") from None
        raise


def _is_number(value: Any) -> bool:
    return type(value) is float or (isinstance(value, (Real, np.bool_)) and not isinstance(value, np.timedelta64))


def _can_be_read(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _shortly(value: Any) -> str:
    try:
        said = " ".join(repr(value).split())
    except ValueError:  # an integer of so many digits that Python does not print it
        return "an integer of thousands of digits"
    return said if len(said) <= 60 else f"{said[:57]}..."


def settle(X: Any) -> Any:
    """A checked matrix in the engine's form: finite, and if sparse then CSR with sorted indices."""
    if sp.issparse(X):
        X = X.tocsr()
        X.check_format(full_check=True)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        if X.shape[1] > np.iinfo(np.int32).max:
            raise ValueError(f"X has {X.shape[1]} columns; at most 2^31 - 1 are supported: hash the features to fewer")
    refuse_non_finite(X)
    return X


def refuse_masked(values: Any, name: str) -> None:
    """What is behind a mask is not to be read."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array: fill or drop the masked values first")


def refuse_strange(values: Any, name: str) -> None:
    """Dates, complex numbers and masked arrays are no numbers to learn from."""
    refuse_masked(values, name)
    if isinstance(values, Iterator):
        raise ValueError(f"{name} is an iterator: make an array of what it gives")
    if isinstance(values, (list, tuple)) and values and isinstance(values[0], Mapping):
        raise ValueError(f"{name} holds dictionaries: use learn_one and predict_one, or make a frame of them")
    types = [(name, getattr(values, "dtype", None))]
    if is_frame(values) and hasattr(values, "dtypes"):
        column, times = Counter(values.columns).most_common(1)[0] if len(values.columns) else ("", 0)
        if times > 1:
            raise ValueError(f"{name} has {times} columns {column!r}: give each a name of its own")
        columns = zip(values.columns, values.dtypes, strict=True)
        types = [(f"column {column!r} of {name}", dtype) for column, dtype in columns]
    for what, dtype in types:
        kind = getattr(dtype, "kind", "")
        if kind == "c":
            raise ValueError(f"Complex data not supported: {what} has dtype {dtype}")
        if kind in ("m", "M") or getattr(dtype, "is_temporal", bool)():  # NumPy's and polars' types
            raise ValueError(f"{what} holds dates or times ({dtype}): turn them into numbers first")


def refuse_non_finite(X: Any) -> None:
    """NaN and infinity are refused with their row and column."""
    values = X.data if hasattr(X, "indptr") else X
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum() if values.size < 10_000 else np.einsum("i->", values.ravel())  # the quicker one
        if np.isfinite(total) or np.isfinite(values).all():  # a finite sum says it all
            return
    at = np.argwhere(~np.isfinite(values))[0]
    if hasattr(X, "indptr"):
        row, column = int(np.searchsorted(X.indptr, at[0], side="right")) - 1, X.indices[at[0]]
    else:
        row, column = at
    value = values[tuple(at)]
    name = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"X contains {name} in row {row}, column {column} ({value}): onkel needs finite numbers; "
        "impute or drop such rows first (for instance with sklearn.impute.SimpleImputer)"
    )


def largest(X: Any) -> float:
    """The largest |x_ij|."""
    return float(np.abs(X.data if hasattr(X, "indptr") else X).max(initial=0))


def as_weight(sample_weight: Any, X: Any) -> Array | None:
    """Sample weights: one finite number >= 0 per row (or one for all), or None."""
    if sample_weight is None:
        return None
    refuse_masked(sample_weight, "sample_weight")
    rows = X.shape[0]
    weight = np.full(rows, sample_weight) if np.isscalar(sample_weight) else np.asarray(sample_weight)
    if weight.shape != (rows,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(rows,)}: give one number per row")
    try:
        weight = np.ascontiguousarray(weight, dtype=np.float64)
    except OverflowError:
        weight = np.array([_as_float(one) for one in weight])
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be numbers, got dtype {weight.dtype}") from None
    wrong = ~((weight >= 0) & np.isfinite(weight))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"sample_weight must be finite and >= 0, got {weight[at]} in row {at}")
    return weight


def as_one_weight(w: Any, X: Any) -> Array | None:
    """The weight of one example."""
    return None if type(w) is float and w == 1.0 else as_weight([w], X)


def as_target(y: Any, X: Any) -> Array:
    """Regression targets: one finite number per row."""
    if type(y) is not np.ndarray or y.shape != X.shape[:1]:
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
    refuse_strange(y, "y")
    try:
        target = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        at = next((i for i, value in enumerate(y) if not _can_be_read(value)), 0)
        raise ValueError(f"y must be numbers, got {_shortly(y[at])} in row {at}: encode, drop or repair it") from None
    if not np.isfinite(target).all():
        at = int(np.argmin(np.isfinite(target)))
        raise ValueError(f"y contains {'NaN' if np.isnan(target[at]) else 'infinity'} in row {at}: drop or repair it")
    return target


def as_one_target(y: Any) -> Array:
    """A regression target for one example."""
    try:
        target = float(y) if isinstance(y, Real) else math.nan
    except OverflowError:
        target = math.inf
    if not math.isfinite(target):
        raise ValueError(f"y must be a finite number, got {_shortly(y)}")
    return np.array([target])


def as_labels(y: Any, X: Any) -> Array:
    """Class labels: one per row, all of one kind."""
    y = _as_they_are(y, "y")
    if type(y) is not np.ndarray or y.shape != X.shape[:1]:
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
    return checked_labels(y, "y")


def _as_they_are(labels: Any, name: str) -> Any:
    """A list as an array of its own objects, where NumPy would make words of numbers or floats of integers."""
    refuse_masked(labels, name)
    if not isinstance(labels, (list, tuple)) or not labels:
        return labels
    types = {type(label) for label in labels}
    mixed = len(types) > 1 and len({_kind(label) for label in labels}) > 1
    if mixed or (types == {int} and max(map(abs, labels)) >= 2**63):
        objects = np.empty(len(labels), dtype=object)
        objects[:] = labels
        return objects
    return labels


def checked_labels(labels: Any, name: str) -> Array:
    """Labels of one kind: numbers, strings or booleans, none of them missing."""
    y: Array = np.asarray(_as_they_are(labels, name))
    if y.dtype.kind == "U" and isinstance(labels, list):
        for label in labels:
            if isinstance(label, str) and label.endswith("\0"):
                raise ValueError(f"{name} contains {label!r}: NumPy drops NUL characters at the end; use another label")
    if y.ndim != 1:
        raise ValueError(f"{name} must hold one label per example, got shape {y.shape}")
    if y.dtype.kind == "O":
        kinds = sorted({_kind(label) for label in y})
        if len(kinds) > 1 or kinds[0] not in ("str", "number", "bool"):
            at = next((i for i, label in enumerate(y) if _kind(label) != "str" and str(label) in _MISSING), None)
            if at is not None:
                raise ValueError(f"{name} contains {y[at]} in row {at}: drop or repair that label first")
            at = next((i for i, label in enumerate(y) if _kind(label) != _kind(y[0])), 0)
            wanted = f"{name} must hold labels of one kind (strings, numbers or booleans)"
            raise ValueError(f"{wanted}, got {kinds}: {y[at]!r} in row {at}")
        if kinds[0] != "str":
            y, given = np.array(y.tolist()), y
            at = next((i for i, label in enumerate(y.tolist()) if label != given[i]), None)
            if at is not None:
                raise ValueError(f"{name} contains {_shortly(given[at])} in row {at}, too large a number: use strings")
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            at = int(np.argmin(np.isfinite(y)))
            raise ValueError(f"{name} contains NaN or infinity in row {at} ({y[at]}): drop or repair that label first")
        if (y != np.round(y)).any():
            at = int(np.argmax(y != np.round(y)))
            raise ValueError(
                f"Unknown label type: {name} holds continuous values ({y[at]} in row {at}); "
                "use a Regressor, or turn the target into classes"
            )
    elif y.dtype.kind not in "biuUO":
        raise ValueError(f"Unknown label type: {name} has dtype {y.dtype}; use strings, numbers or booleans")
    return y


def different(y: Array) -> Array:
    """The labels that occur, sorted; two classes, the usual case, need no sorting."""
    if y.dtype.kind in "biuf" and len(y):
        least, most = y.min(), y.max()
        if ((y == least) | (y == most)).all():
            return np.unique(np.array([least, most], dtype=y.dtype))
    return np.unique(y)


def _kind(label: Any) -> str:
    if isinstance(label, (bool, np.bool_)):
        return "bool"
    if isinstance(label, Real):
        return "number"
    return "str" if isinstance(label, str) else type(label).__name__


class SparseRow(NamedTuple):
    """A CSR matrix of one row; scipy's own would take longer to make than the row takes to learn."""

    data: Array
    indices: Array
    shape: tuple[int, int]

    @property
    def indptr(self) -> Array:
        """Where the row starts and ends."""
        return np.array([0, len(self.data)])

    @property
    def dtype(self) -> Any:
        """Of the values."""
        return self.data.dtype

    def astype(self, dtype: Any) -> SparseRow:
        """With values of another type."""
        return SparseRow(self.data.astype(dtype), self.indices, self.shape)


class Columns:
    """Names of the features that came with names, in the order of their first appearance."""

    def __init__(self, names: list[Any] | None = None) -> None:
        self.names: list[Any] = list(names or [])
        self.index = {name: i for i, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def unknown(self, names: Any) -> list[Any]:
        """Those of the names that are not yet known."""
        return [name for name in names if name not in self.index]

    def add(self, names: list[Any]) -> None:
        """Put new names behind the others."""
        for name in names:
            self.index[name] = len(self.names)
            self.names.append(name)

    def rows(self, x: Mapping[Any, Any], new: list[Any] | tuple[Any, ...] = ()) -> SparseRow:
        """A dictionary as a sparse row, with `new` names behind the known; other unknown ones are left out."""
        found = sorted((self.index[name], name) for name in x if name in self.index)
        found += [(len(self) + i, name) for i, name in enumerate(new)]
        numbers = [x[name] for _, name in found]
        for (_, name), number in zip(found, numbers, strict=True):
            if not _is_number(number):
                raise ValueError(f"feature {name!r} is {_shortly(number)}, not a number: encode it first")
        values = np.array([_as_float(number) for number in numbers])
        if not np.isfinite(values).all():
            name = found[int(np.argmin(np.isfinite(values)))][1]
            got = f"feature {name!r} is {_shortly(x[name])}"
            if isinstance(x[name], int):
                raise ValueError(f"{got}, too large for a floating point number: scale it")
            raise ValueError(f"{got}: onkel needs finite numbers; impute or leave it out")
        index = np.array([i for i, _ in found], dtype=np.int32)
        return SparseRow(values, index, (1, max(len(self) + len(new), 1)))

    def select(self, X: Any, new: list[Any] | tuple[Any, ...] = ()) -> Any:
        """A frame's columns in this order, `new` ones behind; those it lacks are zero, unknown ones left out."""
        if not is_frame(X):
            raise ValueError(
                f"a frame with named columns is needed, got {type(X).__name__}: use partial_fit for arrays"
            )
        refuse_strange(X, "X")
        place = self.index | {name: len(self) + i for i, name in enumerate(new)} if new else self.index
        known = [name for name in X.columns if name in place]
        table = as_rows(X[known])
        full = np.zeros((table.shape[0], max(len(place), 1)), table.dtype)
        full[:, [place[name] for name in known]] = table
        return full
