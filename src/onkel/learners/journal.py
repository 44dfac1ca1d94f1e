"""Journal: what brings an engine back to a row that it has passed.

A call that ends early (a step that diverges, an interrupt, a part that fails, memory that runs out) may leave an engine
torn: one component of a pool has learned a row, the next has not. The journal keeps a state from some rows ago and what
came since, so that a fresh engine can be brought to the last row that all of it has learned, bit by bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onkel.core.basis import State
from onkel.core.errors import Diverged
from onkel.learners.engine import Engine

Array = np.ndarray[Any, np.dtype[Any]]
ROWS = 256  # least number of rows between two saved states; larger models are saved less often, as saving costs more


class Journal:
    """A state of an engine, and what it did since.

    Parameters
    ----------
    keys : of the features of the engine, which has learned nothing yet
    """

    def __init__(self, keys: Array) -> None:
        self.keys = keys  # of the features when the state was written
        self.state: State | None = None  # nothing was learned yet
        self.since: list[tuple[Any, ...]] = []  # the arguments of `learn`, or of `widen`
        self.rows = 0

    def keep(self, engine: Engine, keys: Array) -> None:
        """Write down the state of now."""
        self.keys, self.state, self.since, self.rows = keys, engine.state(), [], 0

    def learned(self, X: Any, y: Array, weight: Array | None) -> None:
        """The engine has learned these rows."""
        self.since.append((X.copy(), y.copy(), None if weight is None else weight.copy()))
        self.rows += len(y)

    def widened(self, keys: Array) -> None:
        """The engine has got further features."""
        self.since.append((keys,))

    def replay(self, engine: Engine) -> Engine:
        """Bring a fresh engine, with the features of `keys`, to where the last one was."""
        if self.state is not None:
            engine.restore(self.state)
        for done in self.since:
            engine.widen(*done) if len(done) == 1 else engine.learn(*done)
        return engine

    def ended(self, fresh: Any, X: Any, y: Array, weight: Array | None, row: int) -> None:
        """A component diverged at this row of a call: write down the longest prefix that every component can learn.

        `fresh` makes a new engine. The search is repeated, because another component may diverge at an earlier row.
        """
        while row:
            rows = (X[:row], y[:row], None if weight is None else weight[:row])
            try:
                self.replay(fresh()).learn(*rows)
            except Diverged as error:
                row = min(error.row or 0, row - 1)
            else:
                self.learned(*rows)
                return
