"""Journal: rebuilds an engine at the last row that was learned completely.

A call that ends early (a step that diverges, an interrupt, a part that fails, memory that runs out) may leave an engine
half-updated: one component of a pool has learned a row, the next has not. The journal keeps an earlier state and the
rows learned since, so that a new engine can be brought to the last complete row, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onkel.core.basis import State
from onkel.core.errors import Diverged
from onkel.learners.engine import Engine

Array = np.ndarray[Any, np.dtype[Any]]
# At least so many rows are between two saved states. Larger models are saved less often, as saving costs more.
ROWS_BETWEEN_STATES = 2048


class Journal:
    """An earlier state of an engine, and the calls of `learn` and `widen` since.

    Parameters
    ----------
    keys : keys of the features of the engine, which has learned nothing yet
    """

    def __init__(self, keys: Array) -> None:
        self.keys = keys  # keys of the features when `state` was saved
        self.state: State | None = None  # None: that of a new engine
        self.kept = 0  # rows learned before `state` was saved
        self.since: list[tuple[int, tuple[Any, ...]]] = []  # per call: rows since `state`, its arguments

    @property
    def since_kept(self) -> int:
        """Rows learned since `state` was saved."""
        return self.since[-1][0] if self.since else 0

    @property
    def rows_learned(self) -> int:
        """Rows processed in all, those of weight 0 included."""
        return self.kept + self.since_kept

    def mark(self) -> Any:
        """What `back_to` needs to return to here, if no further row is recorded."""
        return self.keys, self.state, self.kept, self.since, len(self.since)

    def back_to(self, mark: Any) -> None:
        """Forget what was recorded since the mark."""
        self.keys, self.state, self.kept, self.since, length = mark
        del self.since[length:]

    def keep(self, engine: Engine, keys: Array, more: int = 0) -> None:
        """Save the current state of the engine, which has learned `more` rows since the last recorded one."""
        self.keys, self.state, self.kept, self.since = keys, engine.state(), self.rows_learned + more, []

    def learned(self, X: Any, y: Array, weight: Array | None) -> None:
        """Record that the engine has learned these rows."""
        done = (X.copy(), y.copy(), None if weight is None else weight.copy())
        self.since.append((self.since_kept + len(y), done))

    def widened(self, keys: Array) -> None:
        """Record that the engine has further features."""
        self.since.append((self.since_kept, (keys,)))

    def replay(self, engine: Engine) -> Engine:
        """Bring a new engine, with the features of `keys`, to the last recorded row."""
        if self.state is not None:
            engine.restore(self.state)
        for _, done in self.since:
            engine.widen(*done) if len(done) == 1 else engine.learn(*done)
        return engine

    def ended(self, fresh: Any, X: Any, y: Array, weight: Array | None, row: int) -> tuple[Array, ...]:
        """After a component diverged at this row of a call, record the longest prefix that all components can learn.

        `fresh` makes a new engine. Shorter and shorter prefixes are tried, as another component may diverge at an
        earlier row. Returns the scores of the prefix, as `learn` does.
        """
        while row:
            rows = (X[:row], y[:row], None if weight is None else weight[:row])
            try:
                scores = self.replay(fresh()).learn(*rows)
            except Diverged as error:
                row = min(error.row or 0, row - 1)
            else:
                self.learned(*rows)
                return scores
        return ()
