"""Scaled: a learner that sees every feature in units of how much it has varied so far.

With c the first row, and mean and deviation over the rows so far (the current one included, as a row is known before
its target), the inner learner sees

z_j = (x_j - c_j) / (deviation_j sqrt(2 v)),   v features having differed from c so far,

so that two rows are at a mean squared distance of 1, and a kernel of a given width means the same on every stream. A
feature that never varied is 0. Rows are not centred by their moving mean: what matters to a kernel is a difference, and
the first row is a fixed place near the others that leaves sparse rows sparse.

The target of a regression is standardised likewise; predictions come back in its own units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from onkel import border
from onkel.basis import State
from onkel.learner import Engine
from onkel.turns import learns, predicts

Array = np.ndarray[Any, np.dtype[Any]]
LARGEST = 1e140  # its square can still be added up
BLOCK = 1 << 20  # numbers in a table of running sums


class Scaled(Engine):
    """A learner around a learner, with the verbs of one.

    Parameters
    ----------
    learner : sees scaled rows, in float64
    columns : number of features
    target : standardise the target, too (regression)
    dtype : type of the rows to come
    """

    average = False
    threshold = 0.0

    def __init__(self, learner: Any, *, columns: int, target: bool, dtype: Any) -> None:
        self.learner, self.target = learner, target
        self.outputs, self.engine, self.dtype = learner.outputs, learner.engine, np.dtype(dtype)
        self.rows = 0  # counted
        self.first, self.sums, self.squares = (np.zeros(columns) for _ in range(3))
        self.goal = np.zeros(3)  # the first target; sum and sum of squares of the others' differences from it

    # -- learning

    @learns
    def learn(self, X: Any, y: Array, weight: Array | None = None) -> tuple[Array, Array]:
        """Learn from each row in turn; the scores before each update (twice: there is no average)."""
        X = _plain(X)
        if self.rows == 0:  # later ones were checked before they came here
            self.check(X)
        if self.target and not (worst := np.abs(y).max(initial=0)) < LARGEST:
            raise ValueError(f"a target of {worst:.3g} is too large to be scaled: use numbers below {LARGEST:g}")
        counted = np.ones(len(y), dtype=bool) if weight is None else np.asarray(weight) > 0
        if self.rows == 0 and counted.any():
            at = int(np.argmax(counted))
            row = X[at : at + 1]
            self.first = (row.toarray() if sp.issparse(row) else row)[0].copy()
            self.goal[0] = y[at]
        seen = self.rows + np.cumsum(counted)
        scale = self._sparse if sp.issparse(X) else self._dense
        Z = scale(X, counted, np.maximum(seen, 1))
        self.rows = int(seen[-1]) if len(seen) else self.rows
        if not self.target:
            scores: Array = self.learner.learn(Z, y, weight)[0]
            return scores, scores
        t, mean, deviation = self._standardised(y, counted, seen)
        scores = self.learner.learn(Z, t, weight)[0] * deviation[:, None] + mean[:, None]
        return scores, scores

    def _dense(self, X: Array, counted: Array, seen: Array) -> Array:
        Z = np.empty(X.shape)
        step = max(1, BLOCK // max(1, X.shape[1]))
        for start in range(0, len(X), step):
            block = slice(start, start + step)
            x = X[block] - self.first
            kept = x * counted[block, None]
            sums = np.cumsum(np.vstack([self.sums, kept]), axis=0)[1:]  # one after the other, in any chunks
            squares = np.cumsum(np.vstack([self.squares, kept * kept]), axis=0)[1:]
            self.sums, self.squares = sums[-1], squares[-1]
            Z[block] = x * _units(sums, squares, seen[block, None]) * _norm(squares)
        return Z

    def _sparse(self, X: Any, counted: Array, seen: Array) -> Any:
        Z = self._shifted(X)
        varied = int(np.count_nonzero(self.squares))
        for i, (start, stop) in enumerate(zip(Z.indptr, Z.indptr[1:], strict=False)):
            at, x = Z.indices[start:stop], Z.data[start:stop]
            if counted[i]:
                varied += int(np.count_nonzero((self.squares[at] == 0) & (x != 0)))
                self.sums[at] += x
                self.squares[at] += x * x
            Z.data[start:stop] = x * _units(self.sums[at], self.squares[at], seen[i]) / np.sqrt(2 * max(varied, 1))
        return Z

    def _shifted(self, X: Any) -> Any:
        if not self.first.any():
            return X.copy()
        Z = sp.csr_array(X - sp.csr_array(np.ones((X.shape[0], 1))) @ sp.csr_array(self.first[None]))
        Z.sort_indices()  # engines add up in the order they find
        return Z

    def _standardised(self, y: Array, counted: Array, seen: Array) -> tuple[Array, Array, Array]:
        """The targets; and mean and deviation before each of them."""
        y = y - self.goal[0]
        kept = y * counted
        sums = np.cumsum(np.append(self.goal[1], kept))
        squares = np.cumsum(np.append(self.goal[2], kept * kept))
        self.goal[1:] = sums[-1], squares[-1]
        n = np.append(seen[:1] - counted[:1], seen)
        mean = sums / np.maximum(n, 1)
        unit = _units(sums, squares, np.maximum(n, 1))
        deviation = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0)
        origin = np.where(n[:-1] > 0, self.goal[0], 0.0)
        return (y - mean[1:]) * unit[1:], mean[:-1] + origin, deviation[:-1]

    # -- predicting

    @predicts
    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Scores of the rows, in the units of now."""
        X = _plain(X)
        Z: Any = self._shifted(X) if sp.issparse(X) else X - self.first
        unit = _units(self.sums, self.squares, max(self.rows, 1)) * _norm(self.squares)
        if sp.issparse(Z):
            Z.data *= unit[Z.indices]
        else:
            Z = Z * unit
        scores = np.asarray(self.learner.scores(Z))
        if self.target and self.rows:
            unit = float(_units(self.goal[1], self.goal[2], self.rows))
            scores = scores * (1 / unit if unit > 0 else 0.0) + (self.goal[1] / self.rows + self.goal[0])
        return scores

    # -- what is inside

    @property
    def n(self) -> int:
        """Number of terms."""
        return int(self.learner.n)

    @property
    def t(self) -> int:
        """Number of rounds."""
        return int(self.learner.t)

    @property
    def weights(self) -> Array:
        """Those of a hedge."""
        return np.asarray(self.learner.weights)

    @property
    def reach(self) -> float:
        """How large |x_1| + |x_2| + ... of an example may be."""
        return LARGEST

    def check(self, X: Any) -> None:
        """Refuse rows whose squares could not be added up."""
        if border.largest(X) > LARGEST:
            raise ValueError(
                f"a value of {border.largest(X):.3g} is too large to be scaled: use numbers below {LARGEST:g}"
            )

    def _one(self, x: Array) -> Array:
        row = super()._one(x)
        self.check(row)
        return row

    @property
    def columns(self) -> int:
        """Number of features."""
        return len(self.first)

    @learns
    def widen(self, keys: Array) -> None:
        """Make room for features that were 0 before."""
        more = len(keys) - len(self.first)
        self.first, self.sums, self.squares = (np.pad(a, (0, more)) for a in (self.first, self.sums, self.squares))
        self.learner.widen(keys)

    @predicts
    def state(self) -> State:
        """Everything that was learned, as a flat dictionary of arrays."""
        own = {"first": self.first, "sums": self.sums, "squares": self.squares, "goal": self.goal}
        arrays = {f"scaling.{name}": a.copy() for name, a in own.items()}
        return dict(self.learner.state()) | arrays | {"scaling.rows": np.array(self.rows)}

    def restore(self, state: State) -> None:
        """The inverse of `state` on a learner of the same composition."""
        own = {name: state[f"scaling.{name}"] for name in ("first", "sums", "squares", "goal")}
        for name, a in own.items():
            if a.shape != getattr(self, name).shape or not np.isfinite(a).all():
                raise ValueError(f"'scaling.{name}' has shape {a.shape}, or numbers that are not finite")
        self.learner.restore({name: a for name, a in state.items() if not name.startswith("scaling.")})
        self.first, self.sums, self.squares, self.goal = (a.copy() for a in own.values())
        self.rows = int(state["scaling.rows"])


def _plain(X: Any) -> Any:
    """The rows in float64: an array, or a CSR matrix."""
    if not hasattr(X, "indptr"):
        return np.asarray(X, dtype=np.float64)
    return sp.csr_array((np.asarray(X.data, dtype=np.float64), X.indices, X.indptr), shape=X.shape)


def _units(sums: Any, squares: Any, n: Any) -> Array:
    """1 / deviation; 0 for what never varied."""
    mean = squares / n
    variance = np.maximum(mean - (sums / n) ** 2, 1e-12 * mean)
    return np.asarray(np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 0))


def _norm(squares: Array) -> Any:
    """1 / sqrt(2 v), v of the features having varied."""
    varied = np.maximum(np.count_nonzero(squares, axis=-1, keepdims=True), 1)
    return 1 / np.sqrt(2.0 * varied)
