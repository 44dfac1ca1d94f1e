"""Engine: the common interface of learners, pools and wrappers (`Scaled`), in Python and C++.

Shapes, for n rows, d columns and m outputs:

X       (n, d), a C-contiguous array of `dtype`, or a CSR matrix of it with sorted indices; all values finite
y       (n,) float64: -1 or +1 (two classes), the index of a class (several), or a real number (regression)
weight  (n,) float64, >= 0; None: all 1. A row of weight 0 is scored, but not learned
scores  (n, m) float64

Arguments are only read during the call, and neither changed nor kept. Returned arrays belong to the caller. `learn` and
`scores` may raise `TooLarge`, `Diverged` and `Busy`. They rely on the estimators to refuse NaN and wrong shapes.
`learn_one`, `score_one` and `row` check the row.

Any number of threads may predict with an engine, or one may learn: see `core.locks`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np

from onkel.core import memory as memories
from onkel.core import soundness
from onkel.core.basis import State
from onkel.core.errors import NotFinite, WrongWidth
from onkel.core.locks import ReadersWriterLock
from onkel.core.outputs import Joining
from onkel.core.part import Part
from onkel.core.run import Run
from onkel.hypotheses import Hypothesis, Stored
from onkel.losses import Loss
from onkel.updates import Update

Array = np.ndarray[Any, np.dtype[Any]]
Out = tuple[Array, Array]  # arrays for the scores of the current and of the averaged model


class Engine:
    """The base class of engines; it defines the methods for a single row."""

    kind: str = "python"  # or "native" (C++): where the learning loop runs; a wrapper has the kind of its inner engine
    average: bool | str = False  # does `scores` use the average of past models?
    hypothesis: Hypothesis | None = None  # what is learned; None for an engine of several functions
    outputs: int
    dtype: Any  # of the rows
    lock: ReadersWriterLock
    learners: Sequence[Any] = ()  # the engines that a pool is made of

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        self.lock = ReadersWriterLock()
        return self

    # -- learning

    atomic: bool = False  # if a call ends early, is the model that of the last complete row? If not, see `Journal`

    def learn(self, X: Any, y: Array, weight: Array | None = None, out: Out | None = None) -> tuple[Array, Array]:
        """Learn from each row in turn. Returns the scores before each update: by the current and by the averaged model.

        They are also written into `out`, if given. The errors of `check` are raised before anything is
        learned. `Diverged` names the row that was not learned.
        """
        raise NotImplementedError

    @property
    def rows_learned(self) -> int:
        """Rows that `learn` of this engine has processed, those of weight 0 included; only for atomic engines."""
        raise NotImplementedError

    def check(self, X: Any, y: Array | None = None) -> None:
        """Raise TooLarge if numbers of a row (or target) would overflow; the error names the row if it is known."""
        raise NotImplementedError

    def widen(self, keys: Array) -> None:
        """Make room for new features; `keys` are the keys of all features, old and new (see `maps`)."""
        raise NotImplementedError

    def join(self, at: list[int]) -> bool:
        """Add outputs at these positions, if there are three or more. False: cannot do so in place (see `relabel`)."""
        return False

    # -- predicting

    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Scores by the current or by the averaged model (default: by the averaged one if there is one)."""
        raise NotImplementedError

    # -- what is inside

    @property
    def columns(self) -> int:
        """Number of features."""
        raise NotImplementedError

    @property
    def t(self) -> int:
        """Number of rounds: rows learned, except those of weight 0."""
        raise NotImplementedError

    @property
    def n(self) -> int:
        """Number of terms."""
        raise NotImplementedError

    @property
    def most(self) -> float:
        """Largest number of terms; infinity if it is unlimited or not known."""
        return math.inf

    @property
    def threshold(self) -> float:
        """The loss's margin or epsilon in the next round; 0 if it has neither."""
        return 0.0

    @property
    def inner(self) -> tuple[Part, ...]:
        """The parts of the engine."""
        raise NotImplementedError

    @property
    def family(self) -> Hashable:
        """A key: if the columns have no names, engines with equal keys compute the same explicit features.

        They can learn together (`native.learn_together`). None if the engine has no explicit features, if these change
        while it learns, or if it is not a `NativeLearner`.
        """
        return None

    @property
    def weights(self) -> Array | None:
        """The weights of the components, which sum to 1; None if there are no components."""
        return None

    @property
    def sizes(self) -> Array | None:
        """The number of terms of each component; None if there are no components."""
        return None

    def terms(self) -> Stored | None:
        """The terms of the predicting function (the averaged one, if averaging), in storage order; None if none."""
        return None

    def feature_weights(self) -> Array | None:
        """The weights (features, outputs) of the predicting function; None if there are no explicit features."""
        return None

    def intercept(self) -> Array | None:
        """The intercept (outputs,) of the predicting function; None if there is none."""
        return None

    # -- state

    def state(self) -> State:
        """Everything that was learned, as named arrays."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        """The inverse of `state` on an engine of the same composition."""
        raise NotImplementedError

    def check_state(self, state: State) -> None:
        """Raise ValueError if the state cannot be that of such an engine (`core.soundness`); `restore` relies on it."""
        raise NotImplementedError

    def relabel(self, state: State, joining: Joining) -> State:
        """The given state of an engine of this composition, changed for the classes that `joining` adds."""
        raise NotImplementedError

    # -- one row

    def learn_one(self, x: Array, y: float, weight: float = 1.0) -> None:
        """Learn from one dense row (d,)."""
        if not np.isfinite(y) or not 0 <= weight < np.inf:
            raise ValueError(f"y must be finite, and the weight finite and >= 0, got {y} and {weight}")
        self.learn(self.row(x), np.array([y]), np.array([weight]))

    def score_one(self, x: Array) -> list[float]:
        """Scores (m) of one dense row (d,)."""
        return [float(s) for s in self.scores(self.row(x))[0]]

    def learn_named(self, x: dict[Any, Any], columns: dict[Any, int], y: float, weight: float) -> bool:
        """Learn from a dictionary; `columns` has the column of each name. False: cannot read it, nothing was done."""
        return False

    def score_named(self, x: dict[Any, Any], columns: dict[Any, int]) -> list[float] | None:
        """Scores of a dictionary; `columns` has the column of each name. None: the engine cannot read it."""
        return None

    def row(self, x: Array) -> Array:
        """Check a dense row (d,); returns it as (1, d)."""
        if x.ndim != 1:
            raise ValueError(f"x must have shape ({self.columns},), got {x.shape}")
        if len(x) != self.columns:
            raise WrongWidth(len(x), self.columns)
        if not np.isfinite(x).all():
            at = int(np.argmin(np.isfinite(x)))
            raise NotFinite(float(x[at]), at)
        return x.astype(self.dtype)[None]


def written(scores: Array, out: Out | None) -> Out:
    """The scores of an engine without an average, written into `out` if given."""
    if out is None:
        return scores, scores
    out[0][:] = out[1][:] = scores
    return out


class Composed(Engine):
    """The base class of engines with one hypothesis, one loss and one update."""

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

    def check_state(self, state: State) -> None:
        soundness.rounds(state)
        self.hypothesis.check_state(state, self.run)
        memories.check_state(self.update, "update", state, self.run)
        self.update.check_state(state)

    def relabel(self, state: State, joining: Joining) -> State:
        memory = joining.all(self.update.per_output, memories.own("update", state))
        return self.hypothesis.relabel(state, joining) | memories.named("update", memory)
