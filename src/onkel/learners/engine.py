"""Engine: whatever learns from rows. This is the one interface of learners, pools and layers, in Python and C++.

Shapes, for n rows, d columns and m outputs:

X       (n, d), a C-contiguous array of `dtype`, or a CSR matrix of it with sorted indices; all values finite
y       (n,) float64: -1 or +1 (two classes), the number of a class (several), or a real number (regression)
weight  (n,) float64, >= 0; None: all 1. A row of weight 0 is scored, and not learned
scores  (n, m) float64

Arrays that are handed in are read during the call, and neither changed nor kept. Arrays that are handed out belong to
the caller. Meaning (labels, names, missing values) is checked before; an engine refuses what would overflow.

Any number of threads may ask an engine for scores, or one may let it learn: see `core.locks`.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from onkel.core import memory as memories
from onkel.core.basis import State
from onkel.core.locks import ReadersWriterLock
from onkel.core.outputs import Joining
from onkel.core.part import Part
from onkel.core.run import Run
from onkel.hypotheses import Hypothesis, Stored
from onkel.losses import Loss
from onkel.updates import Update

Array = np.ndarray[Any, np.dtype[Any]]
Out = tuple[Array, Array]  # where scores are written, by the last and by the averaged model


class Engine:
    """Whatever learns from rows; here is what it does with a single one."""

    kind: str = "python"  # or "native": in C++
    average: bool | str = False  # does `scores` answer with the average of past models?
    outputs: int
    dtype: Any  # of the rows
    lock: ReadersWriterLock

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        self.lock = ReadersWriterLock()
        return self

    # -- learning

    atomic: bool = False  # does whatever ends a call leave the model of the rows before? Else see `Journal`

    def learn(self, X: Any, y: Array, weight: Array | None = None, out: Out | None = None) -> tuple[Array, Array]:
        """Learn from each row in turn; the scores before each update, by the last and by the averaged model.

        They are written into `out`, if it is given, and returned. Rows that `check` refuses are refused before anything
        is learned. `Diverged` names the row that was not learned.
        """
        raise NotImplementedError

    @property
    def rows_learned(self) -> int:
        """Rows that `learn` of this engine has learned, those of weight 0 included; known of atomic engines alone."""
        raise NotImplementedError

    def check(self, X: Any, y: Array | None = None) -> None:
        """Refuse rows (or targets) whose numbers would overflow: `TooLarge`, with its row."""
        raise NotImplementedError

    def widen(self, keys: Array) -> None:
        """Make room for features that were not there before; `keys` are those of all (see `maps`)."""
        raise NotImplementedError

    # -- predicting

    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Scores of the last or the averaged model (default: the averaged one if there is one)."""
        raise NotImplementedError

    # -- what is inside

    @property
    def columns(self) -> int:
        """Number of features."""
        raise NotImplementedError

    @property
    def t(self) -> int:
        """Number of rounds: rows learned, but for those of weight 0."""
        raise NotImplementedError

    @property
    def n(self) -> int:
        """Number of terms."""
        raise NotImplementedError

    @property
    def most(self) -> float:
        """Largest number of terms there may be."""
        return math.inf

    @property
    def threshold(self) -> float:
        """The margin or tube of the next round; 0 where there is none."""
        return 0.0

    @property
    def inner(self) -> tuple[Part, ...]:
        """The parts it is made of."""
        raise NotImplementedError

    @property
    def twinned(self) -> bool:
        """Is there a loop in C++ for learners like this one?"""
        return False

    def terms(self) -> Stored | None:
        """The terms of the predicting function (the averaged one, if averaging), in storage order; None if none."""
        return None

    def feature_weights(self) -> Array | None:
        """The weights (features, outputs) of the function that predicts; None where there are none."""
        return None

    def intercept(self) -> Array | None:
        """The number (outputs,) that is added to the function that predicts; None where there is none."""
        return None

    # -- state

    def state(self) -> State:
        """Everything that was learned, as named arrays."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        """The inverse of `state` on an engine of the same composition."""
        raise NotImplementedError

    def relabel(self, state: State, joining: Joining) -> State:
        """A state of an engine like this one, for more outputs."""
        raise NotImplementedError

    # -- one row

    def learn_one(self, x: Array, y: float, weight: float = 1.0) -> None:
        """Learn from one dense row (d,)."""
        if not np.isfinite(y) or not 0 <= weight < np.inf:
            raise ValueError(f"y must be finite and the weight >= 0, got {y} and {weight}")
        self.learn(self.row(x), np.array([y]), np.array([weight]))

    def score_one(self, x: Array) -> list[float]:
        """Scores (m) of one dense row (d,)."""
        return [float(s) for s in self.scores(self.row(x))[0]]

    def learn_named(self, x: dict[Any, Any], columns: dict[Any, int], y: float, weight: float) -> bool:
        """Learn from a dictionary, if it can be read here as it is; False: nothing was done."""
        return False

    def score_named(self, x: dict[Any, Any], columns: dict[Any, int]) -> list[float] | None:
        """Scores of a dictionary, if it can be read here as it is."""
        return None

    def row(self, x: Array) -> Array:
        """A dense row (d,), checked, as rows to learn from."""
        if x.ndim != 1 or len(x) != self.columns:
            raise ValueError(f"X has {x.shape[-1]} features, but the model expects {self.columns}")
        if not np.isfinite(x).all():
            at = int(np.argmin(np.isfinite(x)))
            raise ValueError(f"x contains NaN or infinity in column {at}: impute or drop such examples first")
        return x.astype(self.dtype)[None]


def written(scores: Array, out: Out | None) -> Out:
    """The scores of an engine without an average, where they were asked for."""
    if out is None:
        return scores, scores
    out[0][:] = out[1][:] = scores
    return out


class Composed(Engine):
    """Engines of one composition: a hypothesis, a loss and an update, for one run."""

    hypothesis: Hypothesis
    loss: Loss
    update: Update
    run: Run

    @property
    def columns(self) -> int:
        return self.run.columns

    @property
    def inner(self) -> tuple[Hypothesis, Loss, Update]:
        return self.hypothesis, self.loss, self.update

    @property
    def most(self) -> float:
        return self.hypothesis.most

    def terms(self) -> Stored | None:
        return self.hypothesis.terms(self.state(), self.run)

    def feature_weights(self) -> Array | None:
        return self.hypothesis.weights(self.state(), self.run)

    def intercept(self) -> Array | None:
        return self.hypothesis.intercept(self.state(), self.run)

    def relabel(self, state: State, joining: Joining) -> State:
        memory = joining.all(self.update.per_output, memories.own("update", state))
        return self.hypothesis.relabel(state, joining) | memories.named("update", memory)
