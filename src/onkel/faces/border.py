"""Input validation: the arguments of users are checked once, and converted to the form that engines read.

Rows may be arrays (float32 and float64 are kept), CSR matrices (never densified), pandas or polars frames, or
dictionaries. Before anything is learned, bad values raise an error that says what is wrong, where, and what to do.
Labels are checked in `labels.py`, overflow in the engine. Duplicate column names are refused here; `columns.py`
compares names with those that a model knows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from onkel.core.errors import NotFinite
from onkel.core.limits import limits

Array = np.ndarray[Any, np.dtype[Any]]

SPARSE = ("csr", "csc", "coo")
MISSING_AS_TEXT = {"None", "nan", "NaN", "NaT", "<NA>"}  # compared as text: pandas' NA cannot be compared with itself


def is_frame(X: Any) -> bool:
    """Is X a table with named columns (pandas, polars or similar)?"""
    return hasattr(X, "columns") and hasattr(X, "shape") and not sp.issparse(X)


def as_rows(X: Any, dtype: Any = None) -> Any:
    """X as a C-contiguous float array or a canonical CSR matrix; the caller's object is never changed."""
    refuse_strange(X, "X")
    wanted = [np.float64, np.float32] if dtype is None else dtype
    with naming_columns(X):
        X = check_array(X, accept_sparse=SPARSE, dtype=wanted, order="C", ensure_all_finite=False, input_name="X")
    return settle(X)


def as_example(x: Any, known: Container[Any] = ()) -> Any:
    """One example: a mapping from names to numbers, or a row (1, features) of numbers.

    A row of a pandas frame (a Series) is read as a mapping if its index holds only strings, or only known names.
    """
    if isinstance(x, Mapping):
        return x
    refuse_strange(x, "x")
    labels = list(getattr(x, "index", ())) if hasattr(x, "to_dict") and not is_frame(x) else []
    words = all(isinstance(label, str) for label in labels)
    if labels and (words or all(label in known for label in labels)):
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
        raise ValueError(f"expected one example, got {got}: use learn and predict, or learn_many and predict_many")
    refuse_strange(row, "x")
    if row.ndim == 0 or row.dtype.kind not in "biufO":
        raise ValueError(f"an example is a dictionary or a row of numbers, got {shortly(x)}")
    if row.dtype.kind == "O":
        numbers = row.ravel().tolist()
        at = next((i for i, number in enumerate(numbers) if not is_numeric(number)), None)
        if at is not None:
            raise ValueError(f"feature {at} is {shortly(numbers[at])}, not a number: encode it first")
        row = np.array([as_float(number) for number in numbers])
    return row.reshape(1, -1)


@contextmanager
def naming_columns(X: Any) -> Iterator[None]:
    """Name row and column in errors raised in this block, if a frame holds non-numbers or a value is too large."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        for name in X.columns if is_frame(X) and hasattr(X, "dtypes") else ():
            for row, value in enumerate(X[name]):
                if not can_be_read(value) and str(value) not in MISSING_AS_TEXT:
                    where = f"column {name!r} of X holds {shortly(value)} in row {row}"
                    raise ValueError(f"{where}, not a number: encode or drop it first") from None
        if isinstance(error, OverflowError):
            values = np.array(X, dtype=object)
            for row, column in np.ndindex(values.shape) if values.ndim == 2 else ():
                if not can_be_read(values[row, column]):
                    where = f"X holds {shortly(values[row, column])} in row {row}, column {column}"
                    raise ValueError(f"{where}, too large for a float: scale the features") from None
            raise ValueError("X holds a number too large for a float: scale the features") from None
        raise


def is_numeric(value: Any) -> bool:
    return type(value) is float or (isinstance(value, (Real, np.bool_)) and not isinstance(value, np.timedelta64))


def can_be_read(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def shortly(value: Any) -> str:
    try:
        said = " ".join(repr(value).split())
    except ValueError:  # an integer of so many digits that Python does not print it
        return "an integer of thousands of digits"
    return said if len(said) <= 60 else f"{said[:57]}..."


def settle(X: Any) -> Any:
    """Check X and return it as engines read it: finite, and CSR with sorted indices and no duplicates if sparse."""
    if sp.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        limits().check("features", X.shape[1], "the number of columns of X is")
    refuse_non_finite(X)
    return X


def refuse_unsound(X: Any, name: str) -> None:
    """Raise ValueError for a sparse matrix whose parts do not fit together.

    SciPy trusts them when it converts a matrix, and writes outside its arrays; its own check sees nothing where the
    last row start is 0 or negative.
    """
    if X.format in ("csr", "csc", "bsr"):
        rows, columns = (size // block for size, block in zip(X.shape, getattr(X, "blocksize", (1, 1)), strict=True))
        major, minor = (columns, rows) if X.format == "csc" else (rows, columns)
        starts, index = X.indptr, X.indices
        sound = starts.shape == (major + 1,) and starts[0] == 0 and len(X.data) == len(index) >= starts[-1]
        sound = sound and bool((starts[1:] >= starts[:-1]).all())
        places = [(index, minor)]
    elif X.format == "coo":
        places = list(zip((X.row, X.col), X.shape, strict=True)) if X.ndim == 2 else []
        sound = all(len(at) == len(X.data) for at, _ in places)
    else:
        return
    if not sound or any(len(at) and not 0 <= at.min() <= at.max() < most for at, most in places):
        raise ValueError(
            f"the parts of the sparse matrix {name} do not fit together: an index or start is out of range"
        )


def refuse_masked(values: Any, name: str) -> None:
    """Raise ValueError for masked arrays, whose masked values must not be used."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array: fill or drop the masked values first")


def refuse_strange(values: Any, name: str) -> None:
    """Raise ValueError for dates, complex numbers, masked values, dictionaries, iterators and duplicate columns."""
    refuse_masked(values, name)
    if sp.issparse(values):
        refuse_unsound(values, name)
    if isinstance(values, Iterator):
        raise ValueError(f"{name} is an iterator: make an array of its values first")
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
        # `kind` is NumPy's and `is_temporal` polars'; for other types bool() gives False
        if kind in ("m", "M") or getattr(dtype, "is_temporal", bool)():
            raise ValueError(f"{what} holds dates or times ({dtype}): turn them into numbers first")


def refuse_non_finite(X: Any) -> None:
    """Raise ValueError for NaN and infinity, with row and column."""
    values = X.data if hasattr(X, "indptr") else X
    if values.size < 10_000:
        if np.isfinite(values).all():
            return
    else:
        with np.errstate(over="ignore", invalid="ignore"):  # if the sum is finite, so are all values; this is faster
            if np.isfinite(np.einsum("i->", values.ravel())) or np.isfinite(values).all():
                return
    at = np.argwhere(~np.isfinite(values))[0]
    if hasattr(X, "indptr"):
        row, column = int(np.searchsorted(X.indptr, at[0], side="right")) - 1, X.indices[at[0]]
    else:
        row, column = at
    raise NotFinite(float(values[tuple(at)]), int(column), int(row))


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
        weight = np.array([as_float(one) for one in weight])
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be numbers, got dtype {weight.dtype}") from None
    wrong = ~((weight >= 0) & np.isfinite(weight))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"sample_weight must be finite and >= 0, got {weight[at]} in row {at}")
    return weight


def as_one_weight(w: Any, X: Any) -> Array | None:
    """The weight of one example as an array of one number; None stands for 1.0."""
    return None if type(w) is float and w == 1.0 else as_weight([w], X)


def as_target(y: Any, X: Any) -> Array:
    """Regression targets: one finite number per row."""
    if type(y) is not np.ndarray or y.shape != X.shape[:1]:
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
    if type(y) is not np.ndarray or y.dtype.kind not in "biuf":
        refuse_strange(y, "y")
    try:
        target = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        at = next((i for i, value in enumerate(y) if not can_be_read(value)), 0)
        raise ValueError(f"y must be numbers, got {shortly(y[at])} in row {at}: encode, drop or repair it") from None
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
        raise ValueError(f"y must be a finite number, got {shortly(y)}")
    return np.array([target])
