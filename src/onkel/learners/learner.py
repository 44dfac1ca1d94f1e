"""Learner: the learning loop, in array notation. This file is the definition; `NativeLearner` is its C++ counterpart.

k            = f.row(x)                          kernel values k(x_i, x), or features z_i(x)
s            = f.scores(k)                       f(x) = sum_i coef_i k_i
value, slope = loss(y, s)
shrink, coef = update.step(round, memory)
f.move(round, shrink, coef)                      f = shrink * f, then the step
"""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from onkel.core import memory as memories
from onkel.core.basis import Row, State, rows
from onkel.core.errors import Diverged, Refused, sane
from onkel.core.locks import exclusive, shared
from onkel.core.run import Run
from onkel.hypotheses import Hypothesis
from onkel.learners.composition import refuse_misfits
from onkel.learners.engine import Composed, Out
from onkel.losses import Loss
from onkel.updates import Round, Update

Array = np.ndarray[Any, np.dtype[Any]]


class Learner(Composed):
    """An online learner: a hypothesis, a loss and an update. What is learned is `f`, `memory` and `t`.

    Parameters
    ----------
    hypothesis : Expansion, Features, Dual or GroupedExpansion; like all parts, it may serve other learners too
    loss : Loss
    update : Update
    outputs : number of scores: 1 for two classes (targets -1, +1) and regression, else one per class (targets 0, 1, ..)
    average : True: also score with the average of the models so far: the first one, which is 0, and the one after each
        round. Its terms are those that are still stored; "all": the removed ones, too; False: no average
    seed : seed of the random choices
    columns, dtype, sparse : number of columns, type and form of the rows; see `Basis`
    keys : a number for each column, from which random features are drawn (default: its index)

    Examples
    --------
    >>> import numpy as np
    >>> from onkel import Expansion, Learner
    >>> from onkel.losses import Hinge
    >>> from onkel.updates import Perceptron
    >>> learner = Learner(Expansion(), Hinge(), Perceptron(), columns=1)
    >>> scores, _ = learner.learn(np.array([[0.0], [1.0]]), np.array([-1.0, 1.0]))
    >>> learner.n, learner.t
    (2, 2)
    """

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
            raise Refused("Learner", "average", 'False, True or "all"', average)
        refuse_misfits(hypothesis, loss, update, outputs, average)
        loss.check(outputs)
        hypothesis = hypothesis.resolve(columns if keys is None else len(keys))
        self.hypothesis, self.loss, self.update = hypothesis, loss, update
        self.average = average if average == "all" else bool(average)
        keys = np.arange(columns, dtype=np.uint64) if keys is None else keys
        self.run = Run(outputs, keys, np.dtype(dtype), sparse, self.average, seed)
        self.outputs, self.dtype = outputs, self.run.dtype
        hypothesis.refuse_too_large(self.run)
        self.f, self.rounds = hypothesis.start(self.run), 0
        self.memory = memories.begin(update, self.run)
        self._first = memories.begin(update, self.run)  # never changed: the memory must keep its names and shapes

    # -- learning

    @exclusive
    def learn(
        self,
        X: Any,
        y: Array,
        weight: Array | None = None,
        out: Out | None = None,
        *,
        chance: float = 1.0,
        room: float = math.inf,
    ) -> Out:
        """Learn from each row in turn. Returns the scores before each update: by the current and by the averaged model.

        `chance` and `room` are passed on to every round (see `Round`).
        """
        self._refuse_other_width(X)
        self.check(X)
        last, averaged = out or (np.zeros((len(y), self.outputs)), np.zeros((len(y), self.outputs)))
        with np.errstate(over="ignore", invalid="ignore"):
            for i, x in enumerate(rows(X)):
                w = 1.0 if weight is None else float(weight[i])
                last[i], averaged[i] = self._round(x, float(y[i]), w, i, chance, room)
        return last, averaged

    def _round(self, x: Row, y: float, weight: float, i: int, chance: float, room: float) -> tuple[Array, Array]:
        f = self.f
        k = f.row(x)
        s, kxx = f.scores(k), f.length2(x, k)
        if not sane(s):
            raise Diverged("the score is", s, i)
        averaged = f.average_scores(x, k, self.rounds) if self.average else s
        if weight == 0:
            return s, averaged
        value, slope = self.loss.at(self.memory.get("threshold"))(y, s)
        if kxx <= 0:
            slope[:] = 0  # no step can lower the loss
        round = Round(x, y, self.rounds + 1, k, kxx, s, value, slope, weight, chance, room)
        try:
            shrink, coef = self._step(round)
            f.check_scale(shrink)
        except Diverged as error:
            raise error.at(i) from None
        self.rounds += 1
        f.count()
        try:
            f.move(round, shrink, coef)
        except Diverged as error:
            self.rounds -= 1
            f.uncount()
            raise error.at(i) from None
        return s, averaged

    def _step(self, round: Round) -> tuple[float, Array | None]:
        """The step of the update, checked for shape and range."""
        answer = self.update.step(round, self.memory)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise self._wrong_step(round, answer)
        shrink, coef = answer
        shape = (self.outputs,) if coef is None else np.shape(coef)
        if not isinstance(shrink, Real) or (shape != (self.outputs,) and shape != self._shape_of_all(round)):
            raise self._wrong_step(round, answer)
        if not math.isfinite(shrink) or (coef is not None and not sane(coef)):
            raise Diverged("the step is", shrink if coef is None else coef)
        memories.check(self.update, self.memory, self._first)
        return shrink, coef

    def _shape_of_all(self, round: Round) -> tuple[int, int] | None:
        """The shape of a step that moves each weight separately, if the update may take one."""
        return (len(round.k), self.outputs) if "explicit" in self.update.needs else None

    def _wrong_step(self, round: Round, answer: Any) -> TypeError:
        shape = self._shape_of_all(round) or (self.outputs,)
        wanted = f"{self.update!r}.step must return a factor and coefficients of shape {shape} or None"
        return TypeError(f"{wanted}, got {answer!r}")

    def check(self, X: Any, y: Array | None = None) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            self.f.check(X)

    def _refuse_other_width(self, X: Any) -> None:
        if X.shape[1] != self.columns:
            wanted = f"this learner was made with columns={self.columns}"
            raise ValueError(f"X has {X.shape[1]} features, but {wanted}: give Learner the number of features")

    # -- predicting

    @shared
    def scores(self, X: Any, average: bool | None = None) -> Array:
        self._refuse_other_width(X)
        f, average = self.f, bool(self.average) if average is None else average
        if f.reach < math.inf:  # features could overflow; without features every row is scored, as k(x, x) is not used
            self.check(X)
        out = np.zeros((X.shape[0], self.outputs))
        with np.errstate(over="ignore", invalid="ignore"):
            for i, x in enumerate(rows(X)):
                k = f.row(x)
                out[i] = f.average_scores(x, k, self.rounds) if average else f.scores(k)
        return out

    # -- what is inside

    @exclusive
    def widen(self, keys: Array) -> None:
        run = replace(self.run, keys=keys)
        self.hypothesis.refuse_too_large(run, self.n)
        self.f.widen(keys)
        self.run = run
        memories.widen(self.update, self.memory, self.run)
        self._first = memories.begin(self.update, self.run)

    @property
    def threshold(self) -> float:
        own = getattr(self.loss, self.loss.threshold) if self.loss.threshold else 0.0
        return float(self.memory.get("threshold", own))

    @property
    def t(self) -> int:
        return self.rounds

    @property
    def n(self) -> int:
        return self.f.n

    @shared
    def state(self) -> State:
        return self.f.state() | {"t": np.array(self.rounds)} | memories.saved("update", self.memory)

    def restore(self, state: State) -> None:
        f, memory = self.hypothesis.start(self.run), memories.begin(self.update, self.run)
        f.restore(state)
        memories.recall(self.update, "update", memory, state)
        self.f, self.memory, self.rounds = f, memory, int(state["t"])
