"""Learner: the loop, in array notation. This file is the definition; the C++ engine is its twin.

k, s         = hypothesis.scores(x)              f(x) = sum_i coef_i k(x_i, x)
value, slope = loss(y, s)
shrink, coef = update.step(round)
f            = shrink * f, then insert(round, coef)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onkel.hypothesis import Basis, Expansion, Row, State
from onkel.losses import Loss
from onkel.random import Random
from onkel.updates import Diverged, Memory, Round, Update, beyond, sane

Array = np.ndarray[Any, np.dtype[Any]]


def rows(X: Any) -> Iterator[Row]:
    """The rows of an array or a CSR matrix."""
    if hasattr(X, "indptr"):
        for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            yield Row(X.data[start:stop].astype(np.float64), X.indices[start:stop])
    else:
        for x in X:
            yield Row(x.astype(np.float64))


class Learner:
    """An online learner: a hypothesis, a loss and an update.

    Parameters
    ----------
    hypothesis : Expansion
    loss : Loss
    update : Update
    outputs : number of scores: 1 for two classes (targets -1, +1) and regression, else one per class (targets 0, 1, ..)
    average : False; True: also score with the average of the models before each round, over the terms
        that still live; "all": over every term that ever lived
    seed : of the random choices
    columns, dtype, sparse : the rows to come; see `Basis`
    """

    engine = "python"

    def __init__(
        self,
        hypothesis: Expansion,
        loss: Loss,
        update: Update,
        *,
        outputs: int = 1,
        average: bool | str = False,
        seed: int = 0,
        columns: int = 0,
        dtype: Any = np.float64,
        sparse: bool = False,
    ) -> None:
        if not isinstance(average, (bool, np.bool_)) and not (isinstance(average, str) and average == "all"):
            raise ValueError(f'Learner.average must be False, True or "all", got {average!r}')
        update.check(loss)
        if update.exact_norm and not hypothesis.budget.exact:
            raise ValueError(f"{update!r} needs a budget that only appends, got {hypothesis.budget!r}")
        self.hypothesis, self.loss, self.update = hypothesis, loss, update
        self.outputs, self.seed = outputs, seed
        self.average = average if average == "all" else bool(average)
        self.columns, self.dtype, self.sparse = columns, np.dtype(dtype), sparse
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        f = self.hypothesis
        f.start(self.outputs, self.columns, self.dtype, self.sparse, self.average)
        self.t = 0
        self.memory: dict[str, Memory] = {"update": self.update.start(), "budget": f.budget.start(self.seed)}

    # -- learning

    def learn(self, X: Any, y: Array, weight: Array | None = None) -> tuple[Array, Array]:
        """Learn from each row in turn; the scores before each update, by the last and by the averaged model."""
        self._check_diagonal(X)
        last, averaged = np.zeros((len(y), self.outputs)), np.zeros((len(y), self.outputs))
        with np.errstate(over="ignore", invalid="ignore"):
            for i, x in enumerate(rows(X)):
                last[i], averaged[i] = self._round(x, float(y[i]), 1.0 if weight is None else float(weight[i]), i)
        return last, averaged

    def learn_one(self, x: Array, y: float, weight: float = 1.0) -> None:
        """Learn from one dense row."""
        if not np.isfinite(y) or not 0 <= weight < np.inf:
            raise ValueError(f"y must be finite and the weight >= 0, got {y} and {weight}")
        self.learn(self._one(x), np.array([y]), np.array([weight]))

    def _one(self, x: Array) -> Array:
        if x.ndim != 1 or len(x) != self.columns:
            raise ValueError(f"X has {x.shape[-1]} features, but the model expects {self.columns}")
        if not np.isfinite(x).all():
            at = int(np.argmin(np.isfinite(x)))
            raise ValueError(f"x contains NaN or infinity in column {at}: impute or drop such examples first")
        return x.astype(self.dtype)[None]

    def _round(self, x: Row, y: float, weight: float, i: int) -> tuple[Array, Array]:
        f, memory = self.hypothesis, self.memory
        k, kxx = f.row(x), f.diagonal(x)
        s = f.scores(k)
        if not sane(s):
            raise Diverged(f"row {i}: {beyond('the score is', s)}")
        if weight == 0:
            return s, self._average(x, k, s, self.t)
        value, slope = self.loss.at(memory["update"].get("threshold"))(y, s)
        if kxx <= 0:
            slope[:] = 0  # no step
        round = Round(x, y, self.t + 1, k, kxx, s, value, slope, weight)
        try:
            shrink, coef = self.update.step(round, memory["update"])
            f.foresee(shrink)
            self.t += 1
            f.count()
            averaged = self._average(x, k, s, self.t)
            f.shrink(shrink)
            f.budget.insert(f, round, coef, memory["budget"])
        except Diverged as error:
            raise Diverged(f"row {i}: {error}") from None
        return s, averaged

    def _average(self, x: Row, k: Array, s: Array, t: int) -> Array:
        return self.hypothesis.average_scores(x, k, t) if self.average else s

    def _check_diagonal(self, X: Any) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            for i, x in enumerate(rows(X)):
                if not np.isfinite(kxx := self.hypothesis.diagonal(x)):
                    raise ValueError(
                        f"row {i}: k(x, x) is {kxx}; its values are too large for the kernel: scale the features"
                    )

    # -- predicting

    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Scores of the last or the averaged model (default: the averaged one if there is one)."""
        f, average = self.hypothesis, bool(self.average) if average is None else average
        out = np.zeros((X.shape[0], self.outputs))
        with np.errstate(over="ignore", invalid="ignore"):
            for i, x in enumerate(rows(X)):
                k = f.row(x)
                out[i] = f.average_scores(x, k, self.t) if average else f.scores(k)
        return out

    def score_one(self, x: Array) -> list[float]:
        """Scores of one dense row."""
        return [float(s) for s in self.scores(self._one(x))[0]]

    # -- what is inside

    def widen(self, columns: int) -> None:
        """Make room for features that were not there before."""
        self.columns = max(columns, self.columns)
        self.hypothesis.widen(columns)
        for value in self.memory["budget"].values():
            if isinstance(value, Basis):
                value.widen(columns)

    @property
    def threshold(self) -> float:
        """The margin or tube of the next round."""
        own = getattr(self.loss, self.loss.threshold) if self.loss.threshold else 0.0
        return float(self.memory["update"].get("threshold", own))

    @property
    def n(self) -> int:
        """Number of terms."""
        return self.hypothesis.n

    def state(self) -> State:
        """Everything that was learned, as a flat dictionary of arrays."""
        arrays = self.hypothesis.state() | {"t": np.array(self.t)}
        for part, memory in self.memory.items():
            for name, value in memory.items():
                if isinstance(value, Basis):
                    arrays |= value.state(f"{part}.{name}")
                elif isinstance(value, Random):
                    arrays[f"{part}.{name}"] = np.array(value.state, dtype=np.uint64)
                elif value is not None:
                    arrays[f"{part}.{name}"] = np.array(value)
        return arrays

    def restore(self, state: State) -> None:
        """The inverse of `state` on a learner of the same composition."""
        self.restart()
        self.hypothesis.restore(state)
        self.t = int(state["t"])
        for part, memory in self.memory.items():
            for name, value in memory.items():
                key = f"{part}.{name}"
                if isinstance(value, Random):
                    value.state = int(state[key])
                elif isinstance(value, np.ndarray):
                    memory[name] = state[key].copy()
                elif value is not None:
                    memory[name] = float(state[key])
                elif f"{key}.born" in state:
                    memory[name] = self.hypothesis.basis.fresh({"born": 1, "y": 1})
                    memory[name].restore(state, key)
