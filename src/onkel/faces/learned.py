"""Learned: everything that an estimator has learned, in one object.

For a new class label another `Learned` is made. The estimator keeps it if the call succeeds, or fails after a row was
learned; so a call with bad arguments changes nothing. If `learn` ends early, the model is that of the rows before.
"""

from __future__ import annotations

import copy
import math
import sys
import threading
import time
from collections.abc import Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from joblib import effective_n_jobs

from onkel.core.basis import State, narrowed, rows_between
from onkel.core.errors import Busy, TooLarge, ended_early
from onkel.core.locks import Mutex
from onkel.core.outputs import Joining, Leaving
from onkel.faces import border
from onkel.faces.columns import Columns
from onkel.faces.labels import Labels
from onkel.learners.engine import Engine
from onkel.learners.journal import Journal

Array = np.ndarray[Any, np.dtype[Any]]
FLOAT_MAX = sys.float_info.max


class Recipe(Protocol):
    """An estimator, which makes engines."""

    task: ClassVar[str]

    def _make(self, outputs: int, run: Mapping[str, Any], keys: Array) -> Engine: ...


class Learned:
    """An engine, and what is needed to convert examples for it.

    Parameters
    ----------
    recipe : an estimator with the parameters of the first call, which makes the engines
    run : what was known at the first call: `columns` (their number), `dtype`, `sparse` and `seed`
    columns : the known columns
    labels : the known classes; None if the target is not a class
    """

    def __init__(self, recipe: Recipe, run: Mapping[str, Any], columns: Columns, labels: Labels | None) -> None:
        self.recipe: Any = recipe
        self.run, self.columns, self.labels = dict(run), columns, labels
        self._engine: Engine | None = self._fresh(columns.keys, labels)
        self.dtype, self.average = self._engine.dtype, self._engine.average
        self._journal = None if self._engine.atomic else Journal(columns.keys)
        self._block = 16  # rows learned in one call of the engine; adapted so that it takes 0.03 to 0.06 seconds
        self._mutex = Mutex()
        self._caller: int | None = None  # the thread whose call of several blocks is running

    def _fresh(self, keys: Array, labels: Labels | None) -> Engine:
        recipe: Recipe = self.recipe
        return recipe._make(labels.outputs if labels else 1, self.run, keys)

    @property
    def family(self) -> Hashable:
        """The `family` of the engine; None if columns have names, as each model has its own."""
        return self.engine.family if self.columns.names is None else None

    @property
    def engine(self) -> Engine:
        """The engine; if a call left it half-updated, a new one at the last complete row."""
        if self._engine is None:
            with self._mutex:
                if self._engine is None and self._journal is not None:
                    self._engine = self._journal.replay(self._fresh(self._journal.keys, self.labels))
        assert self._engine is not None
        return self._engine

    # -- learning

    def learn(self, X: Any, y: Array, weight: Array | None) -> Array:
        """Learn from checked rows. Returns the scores before each update, of the averaged model if there is one.

        Rows are learned in blocks of about 0.05 seconds. An interrupt ends the call after a block, or (in Python)
        within one, whose rows then do not count. After any other error all rows before the one that failed count. The
        error says how many rows were learned, and has their scores (see `ended_early`).
        """
        if self._caller is not None:
            self._refuse_other_thread()
        engine = self._engine or self.engine
        counter = self._journal or engine  # the one that knows how many rows were learned
        before = counter.rows_learned
        last = np.empty((len(y), engine.outputs))
        averaged = np.empty_like(last) if self.average else last
        used = averaged if averaged.shape[1] > 1 else averaged[:, 0]
        try:
            if len(y) <= self._block:
                self._learn(X, y, weight, (last, averaged))
            else:
                engine.check(X, y)
                self._learn_in_blocks(X, y, weight, (last, averaged))
        except BaseException as error:
            done = counter.rows_learned - before
            if isinstance(error, (Busy, TooLarge)) and not done:
                raise
            ended = ended_early(error, done, len(y), used[:done])
            if ended is error:
                raise
            raise ended from None
        return used

    def _learn_in_blocks(self, X: Any, y: Array, weight: Array | None, out: tuple[Array, Array]) -> None:
        stop = 0
        try:
            self._caller = threading.get_ident()
            while (start := stop) < len(y):
                stop = min(start + self._block, len(y))
                block, clock = slice(start, stop), time.perf_counter()
                rows = rows_between(X, start, stop)
                self._learn(rows, y[block], None if weight is None else weight[block], (out[0][block], out[1][block]))
                self._block = self._next_block(time.perf_counter() - clock)
        finally:
            self._caller = None

    def _next_block(self, seconds: float) -> int:
        """The number of rows in the next block, if the last one took this many seconds.

        After less than 0.03 seconds, the next block aims at 0.045. Where every row becomes a term, c times as many rows
        may take c^2 times as long: hence the square root.
        """
        if seconds > 0.06:
            return max(1, int(self._block * max(0.1, 0.045 / seconds)))
        return int(self._block * min(4.0, math.sqrt(0.045 / max(seconds, 1e-6)))) if seconds < 0.03 else self._block

    def _refuse_other_thread(self) -> None:
        """Raise Busy if another thread is in a call of several blocks, even if it is between two of them."""
        if self._caller is not None and self._caller != threading.get_ident():
            raise Busy("the model is learning in another thread: wait for it")

    def _learn(self, X: Any, y: Array, weight: Array | None, out: tuple[Array, Array] | None = None) -> None:
        journal, engine = self._journal, self._engine or self.engine
        if journal is None:
            engine.learn(X, y, weight, out)
            return
        clock = time.perf_counter()
        try:
            engine.learn(X, y, weight, out)
            journal.learned(engine, self.columns.keys, (X, y, weight), time.perf_counter() - clock)
        except (Busy, TooLarge):  # nothing was done
            raise
        except BaseException as error:
            self._engine = None
            if isinstance(error, Exception) and len(y) > 1:
                scores = journal.ended(self._fresh(journal.keys, self.labels), X, y, weight)
                for i, both in enumerate(scores):
                    for to, some in zip(out or (), both, strict=False):
                        to[i : i + 1] = some
            raise

    def learn_as_it_is(self, x: Any, target: float, weight: Any) -> bool:
        """Learn from an array row or a dictionary that the engine itself checks; False: nothing was done."""
        if type(weight) is not float or not 0 <= weight <= FLOAT_MAX or not abs(target) <= FLOAT_MAX:
            return False
        if self._caller is not None:
            self._refuse_other_thread()
        if type(x) is np.ndarray and x.dtype is self.dtype and x.ndim == 1:
            if self._journal is None:
                self.engine.learn_one(x, target, weight)
            else:
                self._learn(self.engine.row(x), np.array([target]), np.array([weight]))
            return True
        named = type(x) is dict and self.columns.grows and self._journal is None
        return named and self.engine.learn_named(x, self.columns.index, target, weight)

    @contextmanager
    def joining(self, new: list[Any] | None, labels: Labels | None) -> Iterator[None]:
        """`new` names and the labels join; if no row is learned in this block, they leave again.

        Labels join in place where `joins_in_place`.
        """
        self._refuse_other_thread()
        columns, count, before, rounds = self.columns, self.columns.count, self.labels, self.engine.t
        mark = self._journal.mark() if self._journal else None
        try:
            if new is not None:
                self._name(new)
            if labels is not before:
                assert labels is not None and before is not None
                self.engine.join(labels.joined_since(before) or [])
                self.labels = labels
            yield
        except BaseException:
            if self.engine.t == rounds:
                self._leave(columns, count, before, mark)
            raise

    def joins_in_place(self, labels: Labels) -> bool:
        """Can the engine take the outputs of further labels without a copy of what it has learned?"""
        return self.labels is not None and labels.joined_since(self.labels) is not None and self.engine.join([])

    def _leave(self, columns: Columns, count: int, labels: Labels | None, mark: Any) -> None:
        """Return to these columns and labels: no row was learned since."""
        keys = columns.first_keys(count)
        if self._journal is not None:
            self._engine = None
            self._journal.back_to(mark)
        elif self.columns.count > count or self.labels is not labels:
            engine = self.engine
            state = engine.state()
            if labels is not self.labels:
                assert labels is not None and self.labels is not None
                state = engine.relabel(state, Leaving(labels.classes, self.labels.classes))
            fresh = self._fresh(keys, labels)
            fresh.restore(narrowed(state, fresh.state(), len(keys)))
            self._engine = fresh
        columns.leave(count)
        self.columns, self.labels = columns, labels

    def _name(self, new: list[Any]) -> None:
        """Add new names to the columns."""
        columns = self.columns.open()
        if new:
            keys = columns.keys_with(new)
            if columns.count == 0:
                self._begin_columns(keys.values[:1])
            if len(new) + columns.count > 1:
                self._widen(keys.values)
            columns.add(new, keys)
        self.columns = columns

    def widen(self, count: int) -> None:
        """Make room for `count` columns in all, without names; the new ones were 0 so far."""
        more = count - self.columns.count
        keys = self.columns.keys_with(more)
        if count > 1:
            self._widen(keys.values)
        self.columns.add(more, keys)

    def _begin_columns(self, keys: Array) -> None:
        """The first column gets a name. So far there was one without a name, see `Columns.keys`."""
        self._refuse_other_thread()
        engine = self._fresh(keys, self.labels)
        engine.restore(self.engine.state())
        self._engine = engine
        if self._journal is not None:
            self._journal.keep(engine, keys)

    def _widen(self, keys: Array) -> None:
        self._refuse_other_thread()
        journal, engine = self._journal, self._engine or self.engine
        if journal is None:
            engine.widen(keys)
            return
        try:
            engine.widen(keys)
        except Busy:
            raise
        except BaseException:
            self._engine = None
            raise
        journal.widened(keys)

    def relabelled(self, labels: Labels) -> Learned:
        """A `Learned` with these labels, which contain the known ones; it has learned the same rows."""
        assert self.labels is not None
        self._refuse_other_thread()
        engine = self.engine
        state = engine.state()
        if len(labels) > len(self.labels):
            state = engine.relabel(state, Joining(self.labels.classes, labels.classes))
        other = Learned(self.recipe, self.run, copy.deepcopy(self.columns), labels)
        other.restore(state)
        return other

    def restore(self, arrays: State) -> None:
        """Continue from the state of an engine of the same composition."""
        engine = self.engine
        engine.restore(arrays)
        if self._journal is not None:
            self._journal.keep(engine, self.columns.keys)

    # -- input

    def rows(self, X: Any) -> Any:
        """Check a matrix or a frame."""
        columns = self.columns
        if (  # an array that needs no conversion, and no names to compare
            type(X) is np.ndarray
            and X.dtype is self.dtype
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == columns.count
            and X.flags.c_contiguous
            and (columns.names is None or columns.grows)
        ):
            border.refuse_non_finite(X)
            return X
        return columns.matrix(X, self.dtype)

    # -- predicting

    def scores(self, X: Any, output: str | None, n_jobs: int | None) -> Array:
        """Scores of checked rows, of the "last" or the "average" model (None: the one that predicts)."""
        if output not in (None, "last", "average"):
            raise ValueError(f'output must be "last" or "average", got {output!r}')
        engine = self.engine
        if output == "average" and not engine.average:
            raise ValueError('output="average" needs a model made with average=True')
        average = None if output is None else output == "average"
        jobs, n = 1 if n_jobs is None else effective_n_jobs(n_jobs), X.shape[0]
        if jobs == 1 or n < 1000 * jobs:
            return engine.scores(X, average)
        cuts = pairwise(np.linspace(0, n, jobs + 1).astype(int))
        with ThreadPoolExecutor(jobs) as threads:
            return np.concatenate(list(threads.map(lambda cut: engine.scores(X[slice(*cut)], average), cuts)))

    def score_one(self, x: Any) -> list[float]:
        """Scores of one example that was not checked yet."""
        engine = self.engine
        if type(x) is np.ndarray and x.dtype is self.dtype and x.ndim == 1:
            return engine.score_one(x)
        if type(x) is dict and self.columns.grows:
            scores = engine.score_named(x, self.columns.index)
            if scores is not None:
                return scores
        found: list[float] = engine.scores(self.columns.example(x, self.dtype))[0].tolist()
        return found

    # -- as plain data

    def plain(self) -> tuple[State, dict[str, Any]]:
        """The arrays of the engine, and everything else that is saved."""
        labels = self.labels.plain() if self.labels else {}
        engine = self.engine
        return engine.state(), self.run | {"outputs": engine.outputs} | self.columns.plain() | labels

    @classmethod
    def of(cls, recipe: Recipe, arrays: State, run: Mapping[str, Any]) -> Learned:
        """The inverse of `plain`; raises ValueError for data that do not fit together."""
        if run["dtype"] not in ("float32", "float64") or type(run["columns"]) is not int:
            raise ValueError(f"its dtype {run['dtype']!r} or number of columns {run['columns']!r} is wrong")
        columns = Columns.from_plain(run, type(recipe).__name__)
        if not 0 <= run["columns"] <= max(columns.count, 1):
            raise ValueError(f"it began with {run['columns']} columns, and has {columns.count}")
        if type(run["seed"]) is not int:
            raise ValueError(f"seed must be an integer, got {run['seed']!r}")
        labels = Labels.of(run) if recipe.task == "classification" else None
        outputs = labels.outputs if labels else 1
        if type(run["outputs"]) is not int or run["outputs"] != outputs:
            raise ValueError(f"it has {run['outputs']!r} outputs, but its targets need {outputs}")
        made = cls(recipe, {name: run[name] for name in ("columns", "dtype", "sparse", "seed")}, columns, labels)
        made.engine.check_state(arrays)
        made.restore(arrays)
        return made

    def __reduce__(self) -> Any:
        return Learned.of, (self.recipe, *self.plain())
