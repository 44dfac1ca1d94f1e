"""Scaled: a wrapper that divides every feature by its standard deviation so far.

Let c be the first row, deviation_j the standard deviation of feature j over the rows before, and v the number of
features that have differed from c in these rows. The inner learner gets

z_j = (x_j - c_j) / (deviation_j sqrt(2 v)),

so that the mean squared distance of two rows is 1, and a kernel of a given width means the same on every stream. The
row itself does not count, neither in `learn` nor in `scores`: so both see the same z. A feature that has not varied
before is 0. A row that is far from all before it counts as no farther than it could be if it were one of them (see
`Sums.in_deviations`). Rows are centred at the first row, not at the running mean: a fixed centre keeps stored rows
comparable, and sparse rows stay sparse if the first one is. Shift-invariant kernels do not depend on the centre.

The target of a regression is standardised by mean and deviation of the targets before it, within the same kind of
limit; predictions are in its original units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from onkel.core import soundness
from onkel.core.basis import State, largest
from onkel.core.errors import TooLarge
from onkel.core.locks import exclusive, shared
from onkel.core.moments import Moments, Sums
from onkel.core.outputs import Joining
from onkel.core.part import Part
from onkel.learners.engine import Engine, Out, written

Array = np.ndarray[Any, np.dtype[Any]]
SUMMABLE = 1e140  # squares of numbers up to this can be summed without overflow
BLOCK = 1 << 20  # largest size of a table of running sums


class Scaled(Engine):
    """A wrapper around a learner, with the methods of an engine.

    Parameters
    ----------
    learner : the inner learner, which gets scaled rows in float64
    columns : number of features
    target : standardise the target, too (regression)
    dtype : type of the rows to come
    """

    def __init__(self, learner: Engine, *, columns: int, target: bool, dtype: Any) -> None:
        self.learner, self.target = learner, target
        self.outputs, self.kind, self.dtype = learner.outputs, learner.kind, np.dtype(dtype)
        self.inputs, self.targets = Moments(columns), Moments(1)

    # -- learning

    @exclusive
    def learn(self, X: Any, y: Array, weight: Array | None = None, out: Out | None = None) -> Out:
        """Learn from each row in turn. Returns the scores before each update, twice: no average is kept."""
        X = _plain(X)
        self.check(X, y)
        counted = np.ones(len(y), dtype=bool) if weight is None else np.asarray(weight) > 0
        if self.inputs.count == 0 and counted.any():
            at = int(np.argmax(counted))
            row = X[at : at + 1]
            self.inputs.begin((row.toarray() if sp.issparse(row) else row)[0])
        Z = self._sparse(X, counted) if sp.issparse(X) else self._dense(X, counted)
        if not self.target:
            return written(self.learner.learn(Z, y, weight)[0], out)
        differences, sums = self.targets.add(y[:, None], counted)
        before = sums.rows(slice(-1))
        scores = self.learner.learn(Z, before.standardised(differences)[:, 0], weight)[0]
        return written(self._restored(scores, before), out)

    def _dense(self, X: Array, counted: Array) -> Array:
        Z = np.empty(X.shape)
        step = max(1, BLOCK // max(1, X.shape[1]))
        for start in range(0, len(X), step):
            block = slice(start, start + step)
            differences, sums = self.inputs.add(X[block], counted[block])
            before = sums.rows(slice(-1))
            Z[block] = before.in_deviations(differences) * _norm(_varied(before))
        return Z

    def _sparse(self, X: Any, counted: Array) -> Any:
        Z = self._shifted(X)
        inputs = self.inputs
        varied = int(_varied(inputs.now)[0])
        for i, (start, stop) in enumerate(zip(Z.indptr, Z.indptr[1:], strict=False)):
            at, x = Z.indices[start:stop], Z.data[start:stop].copy()
            before = inputs.some(at)
            Z.data[start:stop] = before.in_deviations(x) * _norm(varied)
            if counted[i]:
                varied += int(np.count_nonzero((before.squares == 0) & (x * x != 0)))
                inputs.add_some(at, x)
        return Z

    def _shifted(self, X: Any) -> Any:
        first = self.inputs.first
        if not first.any():
            return X.copy()
        Z = sp.csr_array(X - sp.csr_array(np.ones((X.shape[0], 1))) @ sp.csr_array(first[None]))
        Z.sort_indices()  # engines sum in the order of the indices
        return Z

    def _restored(self, scores: Array, before: Sums) -> Array:
        """Scores in the units of the target, by its mean and deviation over the rows before."""
        return np.asarray(scores * before.deviation + self.targets.mean_at(before))

    # -- predicting

    @shared
    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Scores of the rows, each scaled by the deviations so far."""
        X, now = _plain(X), self.inputs.now
        norm = _norm(_varied(now))
        Z: Any = self._shifted(X) if sp.issparse(X) else X - self.inputs.first
        if sp.issparse(Z):
            Z.data = self.inputs.some(Z.indices).in_deviations(Z.data) * norm
        else:
            Z = now.in_deviations(Z) * norm
        scores = np.asarray(self.learner.scores(Z))
        return self._restored(scores, self.targets.now) if self.target else scores

    # -- what is inside

    @property
    def n(self) -> int:
        """Number of terms."""
        return self.learner.n

    @property
    def t(self) -> int:
        """Number of rounds."""
        return self.learner.t

    @property
    def weights(self) -> Array | None:
        return self.learner.weights

    @property
    def sizes(self) -> Array | None:
        return self.learner.sizes

    def check(self, X: Any, y: Array | None = None) -> None:
        """Raise TooLarge for rows and targets whose squares could not be summed."""
        if largest(X) > SUMMABLE:
            raise TooLarge("a value of", largest(X), "to be scaled")
        if self.target and y is not None and not (worst := np.abs(y).max(initial=0)) < SUMMABLE:
            raise TooLarge("a target of", float(worst), "to be scaled")

    def row(self, x: Array) -> Array:
        row = super().row(x)
        self.check(row)
        return row

    @property
    def columns(self) -> int:
        """Number of features."""
        return len(self.inputs.first)

    @exclusive
    def widen(self, keys: Array) -> None:
        """Make room for features that were 0 before."""
        self.inputs.widen(len(keys))
        self.learner.widen(keys)

    @property
    def inner(self) -> tuple[Part, ...]:
        return self.learner.inner

    def relabel(self, state: State, joining: Joining) -> State:
        return self.learner.relabel(state, joining)

    @shared
    def state(self) -> State:
        """Everything that was learned, as a flat dictionary of arrays."""
        own = {"first": self.inputs.first, "sums": self.inputs.sums, "squares": self.inputs.squares}
        own["goal"] = np.concatenate([self.targets.first, self.targets.sums, self.targets.squares])
        arrays = {f"scaling.{name}": a.copy() for name, a in own.items()}
        return self.learner.state() | arrays | {"scaling.rows": np.array(self.inputs.count)}

    def check_state(self, state: State) -> None:
        for name in ("first", "sums", "squares"):
            soundness.shaped(state, f"scaling.{name}", (self.columns,))
        goal = soundness.shaped(state, "scaling.goal", (3,))
        soundness.require("scaling.first", np.abs(state["scaling.first"]) <= SUMMABLE, f"at most {SUMMABLE:g}")
        soundness.require("scaling.squares", state["scaling.squares"] >= 0, ">= 0")
        soundness.require("scaling.goal", (abs(goal[0]) <= SUMMABLE) & (goal[2] >= 0), "a target, a sum, a sum >= 0")
        rows = int(soundness.whole(state, "scaling.rows"))
        soundness.require("scaling.rows", 0 <= rows <= soundness.MOST_ROUNDS, "a number of rows")
        self.learner.check_state(state)

    def restore(self, state: State) -> None:
        """The inverse of `state` on a learner of the same composition."""
        own = {name: state[f"scaling.{name}"] for name in ("first", "sums", "squares", "goal")}
        self.learner.restore({name: a for name, a in state.items() if not name.startswith("scaling.")})
        rows = int(state["scaling.rows"])
        self.inputs = Moments.of(rows, own["first"], own["sums"], own["squares"])
        self.targets = Moments.of(rows if self.target else 0, *own["goal"].reshape(3, 1))


def _plain(X: Any) -> Any:
    """The rows in float64: an array, or a CSR matrix."""
    if not hasattr(X, "indptr"):
        return np.asarray(X, dtype=np.float64)
    return sp.csr_array((np.asarray(X.data, dtype=np.float64), X.indices, X.indptr), shape=X.shape)


def _varied(sums: Sums) -> Array:
    """The number of features that have varied."""
    return np.count_nonzero(sums.squares, axis=-1, keepdims=True)


def _norm(varied: Any) -> Any:
    """1 / sqrt(2 v), where v features have varied."""
    return 1 / np.sqrt(2.0 * np.maximum(varied, 1))
