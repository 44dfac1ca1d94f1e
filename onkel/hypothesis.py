"""Hypotheses: the function being learned, what is stored of it and how it scores.

`Basis` is a table: one row per term, with the stored example and named columns (coefficients, birth, ...)
that move with it. `Expansion` is the function f(x) = scale * sum_i coef_i k(x_i, x) on such a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from onkel.budgets import Budget
from onkel.kernels import Kernel, Pair, Totals
from onkel.updates import Diverged, Round, beyond, sane

Array = np.ndarray[Any, np.dtype[Any]]
State = dict[str, Array]

# A sparse stream with more columns than this is stored sparsely; below it a dense table costs less than bookkeeping.
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

    def nonzero(self) -> Row:
        """The non-zero values and where they are."""
        kept = np.flatnonzero(self.values)
        return Row(self.values[kept], kept if self.index is None else self.index[kept])


def values_at(x: Row, index: Array) -> Array:
    """The values of a sparse row in those columns."""
    if x.index is None or len(x.index) == 0:
        return np.zeros(len(index))
    at = np.minimum(np.searchsorted(x.index, index), len(x.index) - 1)
    return np.where(x.index[at] == index, x.values[at], 0.0)


class Basis:
    """A table of stored rows with named columns. `append` adds at the end; `remove(i)` moves the last row to i."""

    def __init__(self, columns: int, dtype: Any, sparse: bool, named: dict[str, int]) -> None:
        self.width, self.dtype = columns, np.dtype(dtype)
        self.expects_sparse = sparse
        self.sparse = sparse and columns > DENSE_COLUMNS
        self.n = 0
        self._rows: list[Row] = []  # sparse storage
        self._dense = np.zeros((0 if self.sparse else 8, columns), dtype)  # dense storage, with room to grow
        self._named = {name: np.zeros((8, width)) for name, width in named.items()}
        self._csr: Any = None

    def fresh(self, named: dict[str, int]) -> Basis:
        """An empty table for rows like these."""
        return Basis(self.width, self.dtype, self.expects_sparse, named)

    def __getitem__(self, name: str) -> Array:
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
        """Forget term i; the last one takes its place."""
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
        """Make room for features that were not there before; stored rows have zeros in them."""
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
            left, Z = x.dense(self.width), self._dense[: self.n].astype(np.float64)
            return lambda pair: pair(left, Z).sum(axis=1)

        x = x.nonzero()

        def sums(pair: Pair) -> Array:
            # the non-zeros of each z, and then those of x where z has none
            Z = self._matrix()
            row = np.repeat(np.arange(self.n), np.diff(Z.indptr))
            theirs = np.bincount(row, pair(values_at(x, Z.indices), Z.data), self.n)
            taken = row * self.width + Z.indices  # every place (i, j) where z_i has a value
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
        """The inverse of `state` on a fresh table."""
        self.n = 0
        self._rows = []
        self.sparse = f"{prefix}.x" not in state
        self._refuse_unsound(state, prefix)
        for i in range(len(state[f"{prefix}.born"])):
            if self.sparse:
                part = slice(*state[f"{prefix}.indptr"][i : i + 2])
                row = Row(state[f"{prefix}.data"][part].astype(np.float64), state[f"{prefix}.indices"][part])
            else:
                row = Row(state[f"{prefix}.x"][i].astype(np.float64))
            self.append(row, **{name: state[f"{prefix}.{name}"][i] for name in self._named})

    def _refuse_unsound(self, state: State, prefix: str) -> None:
        n = len(state[f"{prefix}.born"])
        shapes: dict[str, tuple[int, ...]] = {name: (n, column.shape[1]) for name, column in self._named.items()}
        shapes |= {"indptr": (n + 1,)} if self.sparse else {"x": (n, self.width)}
        for name, shape in shapes.items():
            if state[f"{prefix}.{name}"].shape != shape:
                raise ValueError(f"'{prefix}.{name}' has shape {state[f'{prefix}.{name}'].shape}, not {shape}")
        if self.sparse:
            parts = (state[f"{prefix}.data"], state[f"{prefix}.indices"], state[f"{prefix}.indptr"])
            sp.csr_array(parts, shape=(n, self.width)).check_format(full_check=True)


class Expansion:
    """f(x) = scale * sum_i coef_i k(x_i, x), with terms entering by the rule of a budget.

    The average of the models before each round is carried along without a pass over the terms. With
    `cumulative` the sum of `scale` over rounds, the sum of term i's coefficient over rounds is
    coef_i * cumulative + base_i; only a change of coef_i itself touches base_i.
    """

    def __init__(self, kernel: Kernel, budget: Budget) -> None:
        self.kernel, self.budget = kernel, budget

    def start(self, outputs: int, columns: int, dtype: Any, sparse: bool, average: bool | str) -> None:
        """Begin with no terms."""
        self.outputs, self.average = outputs, average
        named = {"coef": outputs, "born": 1, **dict.fromkeys(self.budget.columns, outputs)}
        if average:
            named["base"] = outputs
        self.basis = Basis(columns, dtype, sparse, named)
        self.dead = Basis(columns, dtype, sparse, {"coef": outputs, "born": 1})  # average="all": terms that once lived
        self.scale, self.cumulative = 1.0, 0.0

    # -- scoring

    @property
    def n(self) -> int:
        """Number of terms."""
        return self.basis.n

    @property
    def coef(self) -> Array:
        """Coefficients of the terms, without the common factor `scale`."""
        return self.basis["coef"]

    @property
    def born(self) -> Array:
        """The round in which each term entered."""
        return self.basis["born"][:, 0]

    def row(self, x: Row) -> Array:
        """k(x_i, x) for all terms."""
        return self.kernel.row(self.basis.totals(x)) if self.n else np.zeros(0)

    def diagonal(self, x: Row) -> float:
        """k(x, x)."""
        return float(self.kernel.row(lambda pair: np.atleast_1d(pair(x.values, x.values).sum()))[0])

    def scores(self, k: Array) -> Array:
        """f(x) from the row of kernel values."""
        return self.scale * (self.coef.T @ k)

    def average_scores(self, x: Row, k: Array, t: int) -> Array:
        """The average of the models of rounds 1..t at x."""
        total = self.cumulative * (self.coef.T @ k) + self.basis["base"].T @ k
        if self.dead.n:
            total += self.dead["coef"].T @ self.kernel.row(self.dead.totals(x))
        return np.asarray(total / max(t, 1))

    # -- moving

    def count(self) -> None:
        """A round begins: the model as it is enters the average."""
        self.cumulative += self.scale

    def shrink(self, factor: float) -> None:
        """f <- factor * f, in constant time."""
        if self.n == 0:
            return
        self.foresee(factor)
        self.scale *= factor
        if self._far(self.scale):
            if self.average:
                self.basis["base"][:] += self.cumulative * self.coef
            for name in ("coef", *self.budget.columns):
                self.basis[name][:] *= self.scale
            self.scale, self.cumulative = 1.0, 0.0

    @staticmethod
    def _far(scale: float) -> bool:
        """Far from 1 the average would lose digits: then the coefficients take the scale over."""
        return not 1e-3 < scale < 1e3

    def foresee(self, factor: float) -> None:
        """Refuse a factor that would take coefficients out of range."""
        scale = self.scale * factor
        if self.n and self._far(scale) and not sane(self.coef * scale):
            raise Diverged(beyond("a coefficient becomes", np.abs(self.coef).max() * scale))

    def append(self, round: Round, coef: Array, **named: Any) -> None:
        """Add the term coef * k(x, .)."""
        if self.n == 0:
            self.scale, self.cumulative = 1.0, 0.0  # nothing refers to them: begin afresh
        inner = coef / self.scale
        self.basis.append(round.x, coef=inner, born=round.t, base=-self.cumulative * inner, **named)

    def change(self, coef: Array) -> None:
        """Give the terms new coefficients (still without `scale`)."""
        if self.average:
            self.basis["base"][:] += self.cumulative * (self.coef - coef)
        self.coef[:] = coef

    def remove(self, i: int) -> None:
        """Drop term i; the last term takes its place."""
        if self.average == "all":
            total = self.cumulative * self.coef[i] + self.basis["base"][i]
            self.dead.append(self.basis.row(i), coef=total, born=self.born[i])
        self.basis.remove(i)

    def widen(self, columns: int) -> None:
        """Make room for new features."""
        self.basis.widen(columns)
        self.dead.widen(columns)

    # -- state

    def state(self) -> State:
        """Everything that was learned, as plain arrays."""
        arrays = self.basis.state("basis") | {"scale": np.array(self.scale)}
        if self.average:
            arrays["cumulative"] = np.array(self.cumulative)
        if self.average == "all":
            arrays |= self.dead.state("dead")
        return arrays

    def restore(self, state: State) -> None:
        """The inverse of `state`, after `start`."""
        self.basis.restore(state, "basis")
        self.scale = float(state["scale"])
        if self.average:
            self.cumulative = float(state["cumulative"])
        if self.average == "all":
            self.dead.restore(state, "dead")
