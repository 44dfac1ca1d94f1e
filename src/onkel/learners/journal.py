"""Journal: rebuilds an engine at the last row that was learned completely.

A call that ends early (a step that diverges, an interrupt, a part that fails, memory that runs out) may leave an engine
half-updated: one component of a pool has learned a row, the next has not. The journal keeps an earlier state and the
rows learned since, so that a new engine can be brought to the last complete row, bit for bit.

A state is saved so often that to learn the rows since takes about as long as fifty states, at most. So saving costs 2 %
of the time, and a model is soon there again after an interrupt.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from onkel.core.basis import State
from onkel.learners.engine import Engine

Array = np.ndarray[Any, np.dtype[Any]]
STATES = 50  # the time between two saved states, in times that one took


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
        self._cost = 0.001  # seconds that it took to save a state
        self._spent = 0.0  # seconds that the calls in `since` took
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
        clock = time.perf_counter()
        self.keys, self.state, self.kept, self.since = keys, engine.state(), self.rows_learned + more, []
        self._cost, self._spent = time.perf_counter() - clock, 0.0

    def learned(self, engine: Engine, keys: Array, rows: tuple[Any, Array, Array | None], seconds: float) -> None:
        """Record that the engine, whose features have these keys, has learned these rows in so many seconds."""
        X, y, weight = rows
        if self._spent + seconds > STATES * self._cost:
            self.keep(engine, keys, len(y))
        else:
            self._record(X, y, weight)
            self._spent += seconds

    def _record(self, X: Any, y: Array, weight: Array | None) -> None:
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

    def ended(self, engine: Engine, X: Any, y: Array, weight: Array | None) -> list[tuple[Array, ...]]:
        """After a call failed at one of these rows, record those before it.

        They are learned once more, one by one, by a new engine. Returns their scores, as `learn` does.
        """
        scores: list[tuple[Array, ...]] = []
        self.replay(engine)
        for i in range(len(y)):
            try:
                row = slice(i, i + 1)
                scores.append(engine.learn(X[row], y[row], None if weight is None else weight[row]))
            except Exception:  # the same that ended the call
                break
        if scores:
            done = slice(len(scores))
            self._record(X[done], y[done], None if weight is None else weight[done])
        return scores
