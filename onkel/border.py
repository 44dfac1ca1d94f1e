"""The border: what people hand in, checked once and turned into what the engine reads.

Rows come as arrays (float32 and float64 are kept), CSR matrices (never densified), pandas or polars
frames, or dictionaries. Whatever is refused is refused here, before anything is learned, with a sentence
that says what, where, and what to do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
    X = check_array(X, accept_sparse=SPARSE, dtype=wanted, order="C", ensure_all_finite=False, input_name="X")
    return settle(X)


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


def refuse_strange(values: Any, name: str) -> None:
    """Dates, complex numbers and masked arrays are no numbers to learn from."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array: fill or drop the masked values first")
    types = [(name, getattr(values, "dtype", None))]
    if is_frame(values) and hasattr(values, "dtypes"):
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
    rows = X.shape[0]
    weight = np.full(rows, sample_weight) if np.isscalar(sample_weight) else np.asarray(sample_weight)
    if weight.shape != (rows,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(rows,)}: give one number per row")
    try:
        weight = np.ascontiguousarray(weight, dtype=np.float64)
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
    except (TypeError, ValueError):
        raise ValueError(f"y must be numbers, got dtype {np.asarray(y).dtype}: encode it first") from None
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
        raise ValueError(f"y must be a finite number, got {y!r}")
    return np.array([target])


def as_labels(y: Any, X: Any) -> Array:
    """Class labels: one per row, all of one kind."""
    if type(y) is not np.ndarray or y.shape != X.shape[:1]:
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
    return checked_labels(y, "y")


def checked_labels(labels: Any, name: str) -> Array:
    """Labels of one kind: numbers, strings or booleans, none of them missing."""
    y: Array = np.asarray(labels)
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
            y = np.array(y.tolist())
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
            if type(number) is not float and not isinstance(number, (Real, np.bool_)):
                raise ValueError(f"feature {name!r} is {number!r}, not a number: encode it first")
        try:
            values = np.array(numbers, dtype=np.float64)
        except OverflowError:
            raise ValueError(f"a feature of {x!r} is too large for a floating point number: scale it") from None
        if not np.isfinite(values).all():
            name = found[int(np.argmin(np.isfinite(values)))][1]
            raise ValueError(f"feature {name!r} is {x[name]!r}: onkel needs finite numbers; impute or leave it out")
        index = np.array([i for i, _ in found], dtype=np.int32)
        return SparseRow(values, index, (1, max(len(self) + len(new), 1)))

    def select(self, X: Any, new: list[Any] | tuple[Any, ...] = ()) -> Any:
        """A frame's columns in this order, `new` ones behind; those it lacks are zero, unknown ones left out."""
        if not is_frame(X):
            raise ValueError(
                f"a frame with named columns is needed, got {type(X).__name__}: use partial_fit for arrays"
            )
        place = self.index | {name: len(self) + i for i, name in enumerate(new)} if new else self.index
        known = [name for name in X.columns if name in place]
        table = as_rows(X[known])
        full = np.zeros((table.shape[0], max(len(place), 1)), table.dtype)
        full[:, [place[name] for name in known]] = table
        return full
