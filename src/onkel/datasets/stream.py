"""Streams: examples in an order, their task, and how to scale them."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from onkel.core.errors import DataError
from onkel.core.wording import counted, listed

Task = Literal["classification", "regression"]
Scale = Literal["standard", "[0,1]", "[-1,1]"]
Array = NDArray[Any]

SCALES: tuple[Scale, ...] = get_args(Scale)
TASKS: tuple[Task, ...] = get_args(Task)

_MOST_CLASSES = 26  # the letters of the alphabet; targets with more different whole numbers than that are measurements


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Stream:
    """Examples in the order in which they arrived, and their task.

    Parameters
    ----------
    name : short name, for tables.
    X : (n, d) array, or a SciPy sparse matrix (kept as CSR).
    y : (n,) targets; labels of any type, or real numbers.
    task : "classification" or "regression".
    description : one sentence for people.
    ordered : whether the order carries meaning (time, drift), so that shuffling would destroy the stream.
    n_train : size of the official training part, the first rows; None if there is no official split.
    orders : (k, n) row orders that were published with the data; None if there are none.
    bayes : the Bayes error (share of mistakes, or RMSE), if the distribution of the stream is known.
    """

    name: str
    X: Any
    y: Array
    task: Task
    description: str = ""
    ordered: bool = False
    n_train: int | None = None
    orders: Array | None = None
    bayes: float | None = None

    def __post_init__(self) -> None:
        X = as_matrix(self.X)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", np.asarray(self.y))
        check_shapes(self.name, X.shape, self.y.shape)
        check_values(self.name, X)
        check_targets(self.name, self.y)
        _check_task(self.name, self.y, self.task)
        _check_rows(self.name, len(self.y), self.n_train, self.orders)

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        kind = self.task if self.classes is None else f"{self.task}, {counted(len(self.classes), 'class')}"
        return f"Stream({self.name}: {kind}; {counted(len(self), 'example')}, {counted(self.features, 'feature')})"

    @property
    def features(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def classes(self) -> Array | None:
        """The different labels, sorted; None for regression."""
        return np.unique(self.y) if self.task == "classification" else None

    @property
    def train(self) -> Stream:
        """The official training part; everything if there is no split."""
        return self if self.n_train in (None, len(self)) else self.part(slice(self.n_train))

    @property
    def test(self) -> Stream:
        """The official test part; an error if there is none."""
        if self.n_train in (None, len(self)):
            raise DataError(f"{self.name} has no official test part; hold out rows of your own")
        return self.part(slice(self.n_train, None))

    def part(self, rows: slice | Array) -> Stream:
        """Some rows, in their order, without the published orders and the official split, which are for all rows."""
        some = copy.copy(self)  # unchecked: a test part may have one class only
        for name, value in (("X", self.X[rows]), ("y", self.y[rows]), ("n_train", None), ("orders", None)):
            object.__setattr__(some, name, value)
        return some

    def split(self, share: float = 0.2, *, seed: int = 0) -> tuple[Stream, Stream]:
        """A part to learn from and a part to test on: a random share, or the last rows of an `ordered` stream."""
        if not 0 < share < 1:
            raise ValueError(f"the share to hold out must lie between 0 and 1, got {share}")
        held = min(max(1, round(share * len(self))), len(self) - 1)
        rows = np.arange(len(self)) if self.ordered else np.random.default_rng([seed, 1]).permutation(len(self))
        return self.part(np.sort(rows[:-held])), self.part(np.sort(rows[-held:]))

    def order(self, number: int = 0, *, seed: int | None = None) -> NDArray[np.intp]:
        """Row numbers of order `number`: without a seed the published order, if there is one; else a shuffled one.

        A shuffled order depends only on the seed (None: 0), the number, and how many rows there are. An `ordered`
        stream has one order only, its own.
        """
        if self.ordered:
            return np.arange(len(self))
        if seed is None and self.orders is not None and number < len(self.orders):
            return np.asarray(self.orders[number], np.intp)
        return np.random.default_rng([seed or 0, number]).permutation(len(self))

    def count_orders(self, wanted: int) -> int:
        """How many of the wanted orders there are: an `ordered` stream has only one."""
        return 1 if self.ordered else wanted

    def scaled(self, how: Scale = "standard", *, target: bool = True) -> Stream:
        """The stream with columns of comparable size.

        The statistics are those of the whole stream, which no online learner could know; the description says so.

        Parameters
        ----------
        how : "standard": dense columns get mean 0 and deviation 1, except columns of zeros and ones, which stay as they
            are; sparse columns get largest magnitude 1. "[0,1]" and "[-1,1]": smallest and largest value of a column
            become the ends of the interval (a constant column: 0).
        target : whether the target of a regression is scaled alike.
        """
        if how not in SCALES:
            raise DataError(f"{self.name}: there is no scale {how!r}; there are {', '.join(SCALES)}")
        sparse, real = scipy.sparse.issparse(self.X), target and self.task == "regression"
        words = f"features in {how}"
        if how == "standard":
            words = "features divided by their largest magnitude" if sparse else "features standardised"
        goal = "target standardised: its mean predicts with RMSE 1" if how == "standard" else f"target in {how}"
        return dataclasses.replace(
            self,
            X=_scaled(self.name, self.X, how),
            y=_scaled(self.name, self.y, how) if real else self.y,
            description=f"{self.description}; {words} over the whole stream{f'; {goal}' if real else ''}",
            bayes=None if real else self.bayes,
        )

    def against_rest(self, label: Any) -> Stream:
        """Two classes: +1 for a label, -1 for every other."""
        if label not in self.y:
            raise DataError(f"{self.name} has no label {label!r}; it has {listed([str(c) for c in np.unique(self.y)])}")
        description = f"{self.description}; +1 is {label}, -1 the rest"
        return dataclasses.replace(self, y=np.where(self.y == label, 1, -1), description=description, bayes=None)


def as_matrix(X: Any) -> Any:
    """X as an array or a CSR matrix."""
    return X.tocsr() if scipy.sparse.issparse(X) else np.asarray(X)


def infer_task(y: ArrayLike) -> Task:
    """Classification for texts, truth values, and at most 26 whole numbers that occur at least twice on average."""
    values = np.asarray(y)
    if values.dtype.kind not in "iuf":
        return "classification"
    different = np.unique(values)
    few = len(different) <= min(_MOST_CLASSES, len(values) // 2)
    whole = bool(np.all(different == np.floor(different)))
    return "classification" if few and whole else "regression"


# -- scales ------------------------------------------------------------------------------------------------


def standardise(values: Array) -> NDArray[np.float64]:
    """Columns with mean 0 and deviation 1; constant ones become 0."""
    centred = values - values.mean(axis=0, dtype=np.float64)
    deviation = centred.std(axis=0)
    rounding = 1e-12 * np.abs(values).max(axis=0)  # a constant column may be off its mean by as much
    return np.asarray(np.where(deviation > rounding, centred / np.where(deviation > 0, deviation, 1.0), 0.0))


def _scaled(name: str, values: Any, how: Scale) -> Any:
    if how == "standard":
        return _fit_magnitude(values) if scipy.sparse.issparse(values) else _comparable(values)
    if scipy.sparse.issparse(values):
        return _fit_unit(name, values, how)
    low, high = values.min(axis=0).astype(np.float64), values.max(axis=0).astype(np.float64)
    span = np.where(high > low, high - low, 1.0)
    unit = (values - low) / span
    return np.where(high > low, 2 * unit - 1, 0.0) if how == "[-1,1]" else unit


def _comparable(values: Array) -> NDArray[np.float64]:
    """Standardised, except columns of zeros and ones: a rare 1 would become huge."""
    scaled = standardise(values)
    if values.ndim == 1:
        return scaled
    flags = ((values == 0) | (values == 1)).all(axis=0) & (values.min(axis=0) < values.max(axis=0))
    scaled[:, flags] = values[:, flags]
    return scaled


def _fit_magnitude(X: Any) -> Any:
    return _divided(X, _dense(abs(X).max(axis=0)))


def _fit_unit(name: str, X: Any, how: Scale) -> Any:
    """Sparse columns in an interval; only where zero stays zero, else nothing would stay sparse."""
    if how != "[0,1]" or _dense(X.min(axis=0)).min() < 0:
        other = "" if how == "[0,1]" else ", or '[0,1]' if no value is negative"
        raise DataError(f"{name} is sparse, and {how} would fill its zeros; scale 'standard'{other}")
    return _divided(X, _dense(X.max(axis=0)))


def _dense(row: Any) -> NDArray[np.float64]:
    return np.asarray(row.todense(), np.float64).ravel()


def _divided(X: Any, by: NDArray[np.float64]) -> Any:
    return (X @ scipy.sparse.diags_array(1.0 / np.where(by > 0, by, 1.0))).tocsr()


# -- checks ------------------------------------------------------------------------------------------------


def check_shapes(name: str, X: tuple[int, ...], y: tuple[int, ...]) -> None:
    """Raise DataError unless X has as many rows as y, at least one, and at least one feature."""
    if len(X) != 2 or len(y) != 1 or X[0] != y[0]:
        raise DataError(f"{name}: X must be (n, d) and y (n,), got {X} and {y}")
    if 0 in X:
        raise DataError(f"{name}: there is nothing to learn from, X is {X}")


def check_values(name: str, X: Any) -> None:
    """Raise DataError unless all features are finite numbers."""
    check_numbers(name, X)
    for row, column, _ in not_finite(X):
        raise DataError(
            f"{name}: the value in row {row}, column {column} (from 0) is missing or infinite; "
            "fill it or remove the row"
        )


def check_numbers(name: str, X: Any) -> None:
    """Raise DataError unless all features are numbers."""
    if X.dtype.kind not in "biuf":
        raise DataError(f"{name}: features must be numbers, got {X.dtype}")


def not_finite(X: Any) -> list[tuple[int, int, float]]:
    """Row, column and value wherever a matrix is not finite."""
    values = X.data if scipy.sparse.issparse(X) else X
    if np.isfinite(values).all():
        return []
    rows, columns = _places(X)
    bad = np.flatnonzero(~np.isfinite(values.ravel()))
    return list(zip(rows[bad].tolist(), columns[bad].tolist(), values.ravel()[bad].tolist(), strict=True))


def check_targets(name: str, y: Array) -> None:
    """Raise DataError for targets that are not finite, or no targets at all."""
    check_kind(name, y)
    if y.dtype.kind in "biuf" and not np.isfinite(y).all():
        raise DataError(f"{name}: the target of row {np.flatnonzero(~np.isfinite(y))[0]} (from 0) is not finite")


def check_kind(name: str, y: Array) -> None:
    """Raise DataError for targets that are complex numbers, dates or records."""
    if y.dtype.kind in "cmMV":
        raise DataError(f"{name}: targets must be numbers or texts, got {y.dtype}")


def _places(X: Any) -> tuple[Array, Array]:
    """Row and column of each stored value of X."""
    if scipy.sparse.issparse(X):
        entries = X.tocoo()
        return entries.row, entries.col
    rows, columns = np.indices(X.shape).reshape(2, -1)
    return rows, columns


def _check_task(name: str, y: Array, task: Task) -> None:
    if task == "regression" and y.dtype.kind not in "biuf":
        raise DataError(f"{name}: regression needs numbers as targets, got for example {str(y[0])!r}")
    if task == "classification" and np.all(y == y[0]):
        raise DataError(f"{name}: classification needs two classes or more, all targets are {str(y[0])!r}")


def _check_rows(name: str, n: int, n_train: int | None, orders: Array | None) -> None:
    if n_train is not None and not 0 < n_train <= n:
        raise DataError(f"{name}: a training part of {n_train} rows does not fit a stream of {n}")
    if orders is None:
        return
    if orders.ndim != 2 or orders.shape[1] != n or not (np.sort(orders, axis=1) == np.arange(n)).all():
        raise DataError(f"{name}: its stored orders are no permutations of its {n} rows")
