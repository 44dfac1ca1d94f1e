"""Learner: the loop, in array notation. This file is the definition; the C++ engine is its twin.

k            = hypothesis.row(x)                 kernel values k(x_i, x), or features z_i(x)
s            = hypothesis.scores(k)              f(x) = sum_i coef_i k_i
value, slope = loss(y, s)
shrink, coef = update.step(round)
hypothesis.move(round, shrink, coef)             f = shrink * f, then the step
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from onkel.basis import Row, State
from onkel.hypothesis import Hypothesis, Run, recall, remembered
from onkel.losses import Loss
from onkel.turns import Turns, learns, predicts
from onkel.updates import Diverged, Round, Update, beyond, sane

Array = np.ndarray[Any, np.dtype[Any]]


def rows(X: Any) -> Iterator[Row]:
    """The rows of an array or a CSR matrix."""
    if hasattr(X, "indptr"):
        for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            yield Row(X.data[start:stop].astype(np.float64), X.indices[start:stop])
    else:
        for x in X:
            yield Row(x.astype(np.float64))


class Engine:
    """Whatever learns from rows; here is what it does with a single one."""

    dtype: Any
    turns: Turns

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        self.turns = Turns()
        return self

    @property
    def columns(self) -> int:
        """Number of features."""
        raise NotImplementedError

    def learn(self, X: Any, y: Array, weight: Array | None = None) -> tuple[Array, Array]:
        """Learn from each row in turn; the scores before each update, by the last and by the averaged model."""
        raise NotImplementedError

    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Scores of the last or the averaged model (default: the averaged one if there is one)."""
        raise NotImplementedError

    def learn_one(self, x: Array, y: float, weight: float = 1.0) -> None:
        """Learn from one dense row."""
        if not np.isfinite(y) or not 0 <= weight < np.inf:
            raise ValueError(f"y must be finite and the weight >= 0, got {y} and {weight}")
        self.learn(self._one(x), np.array([y]), np.array([weight]))

    def score_one(self, x: Array) -> list[float]:
        """Scores of one dense row."""
        return [float(s) for s in self.scores(self._one(x))[0]]

    def learn_named(self, x: dict[Any, Any], columns: dict[Any, int], y: float, weight: float) -> bool:
        """Learn from a dictionary, if it can be read here as it is; False: nothing was done."""
        return False

    def score_named(self, x: dict[Any, Any], columns: dict[Any, int]) -> list[float] | None:
        """Scores of a dictionary, if it can be read here as it is."""
        return None

    def _one(self, x: Array) -> Array:
        if x.ndim != 1 or len(x) != self.columns:
            raise ValueError(f"X has {x.shape[-1]} features, but the model expects {self.columns}")
        if not np.isfinite(x).all():
            at = int(np.argmin(np.isfinite(x)))
            raise ValueError(f"x contains NaN or infinity in column {at}: impute or drop such examples first")
        return x.astype(self.dtype)[None]


class Learner(Engine):
    """An online learner: a hypothesis, a loss and an update.

    Parameters
    ----------
    hypothesis : Expansion, Features or Dual
    loss : Loss
    update : Update
    outputs : number of scores: 1 for two classes (targets -1, +1) and regression, else one per class (targets 0, 1, ..)
    average : False; True: also score with the average of the models before each round, over the terms
        that still live; "all": over every term that ever lived
    seed : of the random choices
    columns, dtype, sparse : the rows to come; see `Basis`
    keys : a number for each column, from which random features are drawn (default: its place)
    """

    engine = "python"

    def __init__(
        self,
        hypothesis: Hypothesis,
        loss: Loss,
        update: Update,
        *,
        outputs: int = 1,
        average: bool | str = False,
        seed: int = 0,
        columns: int = 0,
        dtype: Any = np.float64,
        sparse: bool = False,
        keys: Array | None = None,
    ) -> None:
        if not isinstance(average, (bool, np.bool_)) and not (isinstance(average, str) and average == "all"):
            raise ValueError(f'Learner.average must be False, True or "all", got {average!r}')
        update.check(loss)
        hypothesis.suits(loss, outputs)
        if update.exact_norm and not hypothesis.exact:
            raise ValueError(f"{update!r} needs a budget that only appends, got {hypothesis.parts[-1]!r}")
        if update.one_by_one and not hypothesis.explicit:
            raise ValueError(
                f"{update!r} moves each weight by itself and needs explicit features, got {hypothesis.parts!r}"
            )
        self.hypothesis, self.loss, self.update = hypothesis, loss, update
        self.average = average if average == "all" else bool(average)
        keys = np.arange(columns, dtype=np.uint64) if keys is None else keys
        self.run = Run(outputs, keys, np.dtype(dtype), sparse, self.average, seed)
        self.outputs, self.dtype = outputs, self.run.dtype
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self.hypothesis.start(self.run)
        self.t = 0
        self.memory = self.update.start(self.run.seed)

    @property
    def columns(self) -> int:
        return self.run.columns

    # -- learning

    @learns
    def learn(
        self, X: Any, y: Array, weight: Array | None = None, *, chance: float = 1.0, room: float = math.inf
    ) -> tuple[Array, Array]:
        """Learn from each row in turn; the scores before each update, by the last and by the averaged model.

        `chance` and `room` are told to every round (see `Round`).
        """
        self.check(X)
        last, averaged = np.zeros((len(y), self.outputs)), np.zeros((len(y), self.outputs))
        with np.errstate(over="ignore", invalid="ignore"):
            for i, x in enumerate(rows(X)):
                w = 1.0 if weight is None else float(weight[i])
                last[i], averaged[i] = self._round(x, float(y[i]), w, i, chance, room)
        return last, averaged

    def _round(self, x: Row, y: float, weight: float, i: int, chance: float, room: float) -> tuple[Array, Array]:
        f = self.hypothesis
        k = f.row(x)
        s, kxx = f.scores(k), f.length2(x, k)
        if not sane(s):
            raise Diverged(f"row {i}: {beyond('the score is', s)}")
        if weight == 0:
            return s, self._average(x, k, s, self.t)
        value, slope = self.loss.at(self.memory.get("threshold"))(y, s)
        if kxx <= 0:
            slope[:] = 0  # no step
        round = Round(x, y, self.t + 1, k, kxx, s, value, slope, weight, chance, room)
        try:
            shrink, coef = self.update.step(round, self.memory)
            f.foresee(shrink)
            self.t += 1
            f.count()
            averaged = self._average(x, k, s, self.t)
            f.move(round, shrink, coef)
        except Diverged as error:
            raise Diverged(f"row {i}: {error}") from None
        return s, averaged

    def _average(self, x: Row, k: Array, s: Array, t: int) -> Array:
        return self.hypothesis.average_scores(x, k, t) if self.average else s

    def check(self, X: Any) -> None:
        """Refuse rows whose numbers would overflow, before anything is learned."""
        with np.errstate(over="ignore", invalid="ignore"):
            for i, x in enumerate(rows(X)):
                try:
                    self.hypothesis.check(x)
                except ValueError as error:
                    raise ValueError(f"row {i}: {error}") from None

    @property
    def reach(self) -> float:
        """How large |x_1| + |x_2| + ... of an example may be."""
        return self.hypothesis.reach

    # -- predicting

    @predicts
    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Scores of the last or the averaged model (default: the averaged one if there is one)."""
        f, average = self.hypothesis, bool(self.average) if average is None else average
        if f.reach < math.inf:
            self.check(X)
        out = np.zeros((X.shape[0], self.outputs))
        with np.errstate(over="ignore", invalid="ignore"):
            for i, x in enumerate(rows(X)):
                k = f.row(x)
                out[i] = f.average_scores(x, k, self.t) if average else f.scores(k)
        return out

    # -- what is inside

    @learns
    def widen(self, keys: Array) -> None:
        """Make room for features that were not there before; `keys` are those of all."""
        self.hypothesis.widen(keys)
        self.run = self.hypothesis.run

    @property
    def threshold(self) -> float:
        """The margin or tube of the next round."""
        own = getattr(self.loss, self.loss.threshold) if self.loss.threshold else 0.0
        return float(self.memory.get("threshold", own))

    @property
    def n(self) -> int:
        """Number of terms."""
        return self.hypothesis.n

    @predicts
    def state(self) -> State:
        """Everything that was learned, as a flat dictionary of arrays."""
        return self.hypothesis.state() | {"t": np.array(self.t)} | remembered("update", self.memory)

    def restore(self, state: State) -> None:
        """The inverse of `state` on a learner of the same composition."""
        self.restart()
        self.hypothesis.restore(state)
        self.t = int(state["t"])
        recall(state, "update", self.memory)
