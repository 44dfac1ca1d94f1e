"""Basis: a table of stored examples, one row per term, with named columns (coefficients, round of entry, ...).

`Row` is one example. How examples are stored is known here only; other modules use the methods of `Basis` and `Row`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from onkel.core import soundness

Array = np.ndarray[Any, np.dtype[Any]]
State = dict[str, Array]
Pair = Callable[[Array, Array], Array]  # the summand pair(x_j, z_j) of a kernel, elementwise
Totals = Callable[[Pair], Array]  # from `pair` to the sums over j, one for each stored row z

# Sparse streams with more columns than this are stored sparsely; with fewer columns a dense table is faster.
DENSE_COLUMNS = 1024


@dataclass(slots=True)
class Row:
    """One example: all its values, or (with `index`, ascending) its non-zero ones."""

    values: Array
    index: Array | None = None

    def dense(self, columns: int) -> Array:
        """All values, zeros included."""
        if self.index is None:
            return self.values
        full = np.zeros(columns)
        full[self.index] = self.values
        return full

    def matrix(self, columns: int) -> Any:
        """An array or a CSR matrix with this as its only row."""
        if self.index is None:
            return self.values[None]
        return sp.csr_array((self.values, self.index, [0, len(self.values)]), shape=(1, columns))

    def nonzero(self) -> Row:
        """The row with its non-zero values and their columns only."""
        kept = np.flatnonzero(self.values)
        return Row(self.values[kept], kept if self.index is None else self.index[kept])


def values_at(x: Row, index: Array) -> Array:
    """The values of a sparse row (not of a dense one) in the columns `index`; 0 where it has none."""
    if x.index is None or len(x.index) == 0:
        return np.zeros(len(index))
    at = np.minimum(np.searchsorted(x.index, index), len(x.index) - 1)
    return np.where(x.index[at] == index, x.values[at], 0.0)


def between(x: Row, z: Row, share: float) -> Row:
    """z + share * (x - z) for two rows, both dense or both sparse; exactly z if they are equal."""
    if x.index is None or z.index is None:
        return Row(z.values + share * (x.values - z.values))
    index = np.union1d(x.index, z.index)
    start, end = values_at(z, index), values_at(x, index)
    return Row(start + share * (end - start), index)


def largest(X: Any) -> float:
    """The largest |x_ij|."""
    return float(np.abs(X.data if hasattr(X, "indptr") else X).max(initial=0))


def rows_between(X: Any, start: int, stop: int) -> Any:
    """The rows from `start` to before `stop`. The values of a CSR matrix are not copied."""
    if not sp.issparse(X):
        return X[start:stop]
    stop = min(stop, X.shape[0])
    first, last = X.indptr[start], X.indptr[stop]
    rows = sp.csr_array((stop - start, X.shape[1]), dtype=X.dtype)  # slices, and CSR matrices made from parts, copy
    rows.data, rows.indices, rows.indptr = X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first
    return rows


def narrowed(state: State, like: State, columns: int) -> State:
    """A state without the columns after the first `columns`, in which all rows are 0.

    `like` is the state of a new engine with so many columns. It tells the shapes of the other arrays.
    """
    arrays = dict(state)
    for name, values in state.items():
        table = name.removesuffix(".indptr")
        if name.endswith(".x"):
            arrays[name] = values[:, :columns].copy()
        elif name.endswith(".indptr") and f"{table}.x" in like:  # these rows became sparse with the new columns
            parts = (arrays.pop(f"{table}.data"), arrays.pop(f"{table}.indices"), arrays.pop(name))
            arrays[f"{table}.x"] = sp.csr_array(parts, shape=(len(values) - 1, columns)).toarray()
        elif name in like and like[name].size and like[name].shape != values.shape:
            arrays[name] = values[tuple(map(slice, like[name].shape))].copy()
    return arrays


def rows(X: Any) -> Iterator[Row]:
    """The rows of an array or a CSR matrix."""
    if hasattr(X, "indptr"):
        for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            yield Row(X.data[start:stop].astype(np.float64), X.indices[start:stop])
    else:
        for x in X:
            yield Row(x.astype(np.float64))


def rows_of(state: State, prefix: str, columns: int) -> Any:
    """The examples of a table in a state, as an array or a CSR matrix."""
    if f"{prefix}.x" in state:
        return state[f"{prefix}.x"]
    indptr = state[f"{prefix}.indptr"]
    parts = (state[f"{prefix}.data"], state[f"{prefix}.indices"], indptr)
    return sp.csr_array(parts, shape=(len(indptr) - 1, columns))


class Basis:
    """A table of stored rows with named columns. `append` adds at the end; `remove(i)` moves the last row to i."""

    def __init__(self, columns: int, dtype: Any, sparse: bool, named: dict[str, int]) -> None:
        self.width, self.dtype = columns, np.dtype(dtype)
        self.expects_sparse = sparse
        self.sparse = sparse and columns > DENSE_COLUMNS
        self.n = 0
        self._rows: list[Row] = []  # sparse storage
        self._dense = np.zeros((0 if self.sparse else 8, columns), dtype)  # dense storage, with room to grow
        self._named = {name: np.zeros((8, width)) for name, width in ({"born": 1} | named).items()}
        self._csr: Any = None

    def fresh(self, named: dict[str, int]) -> Basis:
        """An empty table for rows of the same form."""
        return Basis(self.width, self.dtype, self.expects_sparse, named)

    def __getitem__(self, name: str) -> Array:
        if name not in self._named:
            raise KeyError(f"the table has no column {name!r}; its columns are {sorted(self._named)}")
        return self._named[name][: self.n]

    def row(self, i: int) -> Row:
        """The stored example of term i."""
        return self._rows[i] if self.sparse else Row(self._dense[i].astype(np.float64))

    def append(self, row: Row, **named: Any) -> None:
        """Store an example (a copy of it) with its named values."""
        if self.n == len(self._named["born"]):
            grow = 2 * self.n
            self._named = {k: np.resize(v, (grow, v.shape[1])) for k, v in self._named.items()}
            if not self.sparse:
                self._dense = np.resize(self._dense, (grow, self.width))
        if self.sparse:
            kept = row.nonzero()
            self._rows.append(Row(kept.values.astype(self.dtype).astype(np.float64), np.array(kept.index)))
        else:
            self._dense[self.n] = row.dense(self.width)
        for name, column in self._named.items():
            column[self.n] = named.get(name, 0.0)
        self.n += 1
        self._csr = None

    def remove(self, i: int) -> None:
        """Remove term i; the last one takes its place."""
        self.n -= 1
        for column in self._named.values():
            column[i] = column[self.n]
        if self.sparse:
            self._rows[i] = self._rows[self.n]
            self._rows.pop()
        else:
            self._dense[i] = self._dense[self.n]
        self._csr = None

    def widen(self, columns: int) -> None:
        """Make room for new features; stored rows are zero there."""
        if columns <= self.width:
            return
        if not self.sparse:
            wider = np.zeros((len(self._dense), columns), self.dtype)
            wider[:, : self.width] = self._dense
            self._dense = wider
            if self.expects_sparse and columns > DENSE_COLUMNS:
                self._rows = [self.row(i).nonzero() for i in range(self.n)]
                self.sparse = True
        self.width = columns
        self._csr = None

    def totals(self, x: Row) -> Totals:
        """The function pair -> sum_j pair(x_j, z_j) for all stored rows z."""
        if not self.sparse:
            left, Z = x.dense(self.width), self._dense[: self.n].astype(np.float64, copy=False)
            return lambda pair: pair(left, Z).sum(axis=1)

        x = x.nonzero()

        def sums(pair: Pair) -> Array:
            # first the non-zero columns of each z, then those of x where z is zero
            Z = self._matrix()
            row = np.repeat(np.arange(self.n), np.diff(Z.indptr))
            theirs = np.bincount(row, pair(values_at(x, Z.indices), Z.data), self.n)
            taken = row * self.width + Z.indices  # every pair (i, j) where z_i has a value
            free = np.isin(np.arange(self.n)[:, None] * self.width + np.asarray(x.index), taken, invert=True)
            return np.asarray(theirs + np.where(free, pair(x.values, np.zeros(1)), 0.0).sum(axis=1))

        return sums

    def _matrix(self) -> Any:
        if self._csr is None:
            lengths = [len(row.values) for row in self._rows]
            data = np.concatenate([row.values for row in self._rows]) if self.n else np.zeros(0)
            index = np.concatenate([row.index for row in self._rows]) if self.n else np.zeros(0, int)
            indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
            self._csr = sp.csr_array((data, index, indptr), shape=(self.n, self.width))
        return self._csr

    def matrix(self) -> Any:
        """The stored rows in slot order, as an array or a CSR matrix."""
        return self._matrix().astype(self.dtype) if self.sparse else self._dense[: self.n].copy()

    def state(self, prefix: str) -> State:
        """Rows and columns as plain arrays."""
        arrays = {f"{prefix}.{name}": self[name].copy() for name in self._named}
        rows = self.matrix()
        if self.sparse:
            return arrays | {
                f"{prefix}.data": rows.data,
                f"{prefix}.indices": rows.indices.astype(np.int64),
                f"{prefix}.indptr": rows.indptr.astype(np.int64),
            }
        return arrays | {f"{prefix}.x": rows}

    def restore(self, state: State, prefix: str) -> None:
        """The inverse of `state`, on a new table."""
        self.n = 0
        self._rows = []
        self.sparse = f"{prefix}.x" not in state
        if not self.sparse and len(self._dense) < len(self._named["born"]):  # the table was made for sparse storage
            self._dense = np.zeros((len(self._named["born"]), self.width), self.dtype)
        for i in range(len(state[f"{prefix}.born"])):
            if self.sparse:
                part = slice(*state[f"{prefix}.indptr"][i : i + 2])
                row = Row(state[f"{prefix}.data"][part].astype(np.float64), state[f"{prefix}.indices"][part])
            else:
                row = Row(state[f"{prefix}.x"][i].astype(np.float64))
            self.append(row, **{name: state[f"{prefix}.{name}"][i] for name in self._named})

    def check_state(self, state: State, prefix: str, terms: int = 0) -> None:
        """Raise ValueError if the state is not that of such a table; it may have any number of rows."""
        born = state[f"{prefix}.born"]
        n, t = len(born), soundness.rounds(state)
        for name, column in self._named.items():
            soundness.shaped(state, f"{prefix}.{name}", (n, column.shape[1]))
        # t + 1: a term may be left of a round that diverged
        soundness.require(f"{prefix}.born", (born >= 0) & (born < t + 2), f"rounds from 0 to {t + 1}")
        if f"{prefix}.x" in state:
            soundness.shaped(state, f"{prefix}.x", (n, self.width))
            return
        starts = soundness.whole(state, f"{prefix}.indptr", (n + 1,))
        values = state[f"{prefix}.data"]
        index = soundness.whole(state, f"{prefix}.indices", values.shape)
        soundness.require(f"{prefix}.indptr", starts[0] == 0 and starts[-1] == values.size, f"from 0 to {values.size}")
        soundness.require(f"{prefix}.indptr", starts[1:] >= starts[:-1], "ascending")
        soundness.require(f"{prefix}.indices", (index >= 0) & (index < self.width), f"from 0 to {self.width - 1}")
        first = np.isin(np.arange(1, len(index)), starts)  # of its row
        soundness.require(f"{prefix}.indices", first | (index[1:] > index[:-1]), "ascending in each row")
