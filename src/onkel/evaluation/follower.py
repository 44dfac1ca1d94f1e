"""Follower: a learner that learns a stream block by block. It may stop at any time, and continue where it stopped.

It scales features and real targets by the examples before each one, accepts new classes and columns, counts its errors,
and saves all of this in the model's file. The result is the same bit for bit, however the stream is cut into blocks: a
run that was interrupted and resumed ends with the same model as one that was not.
"""

from __future__ import annotations

import copy
import os
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from onkel.core import state
from onkel.core.errors import LIMIT, TooLarge, sane
from onkel.core.files import previous, remove_leftovers
from onkel.core.outputs import cuts
from onkel.core.scores import predicted
from onkel.core.wording import counted
from onkel.datasets.tables import Schema
from onkel.evaluation.protocols import task_of
from onkel.evaluation.scale import RunningScale
from onkel.evaluation.totals import accumulated, error_of, errors
from onkel.evaluation.traces import Trace
from onkel.faces.files import restored

Array = NDArray[Any]

_POINTS = 200  # most points of a curve


class Follower:
    """A learner, the scales of its features and its target, and how it has done so far.

    Parameters
    ----------
    model : a classifier or regressor of onkel, fresh or not.
    scale : a `RunningScale` of the features, which makes sparse rows dense; None takes features as they are.
    goal : the same for the target of a regression. Predictions are in the target's own units.

    Attributes
    ----------
    seen, total, seconds : examples, mistakes (or squared errors) and time spent so far.
    schema : what is known of the columns of the tables it learned from.
    about : plain data that is saved with it: which stream, and which place in it.
    """

    def __init__(self, model: Any, scale: RunningScale | None = None, goal: RunningScale | None = None) -> None:
        self.model, self.scale, self.goal = model, scale, goal
        self.task = task_of(model)
        self.seen, self.total, self.seconds = 0, 0.0, 0.0
        self.schema = Schema()
        self.about: dict[str, Any] = {}
        self._curve: list[tuple[int, float, int, float]] = []

    def begin(self, source: str) -> None:
        """Set its position to the beginning of the stream of that name."""
        self.about = {"source": source, "position": 0, "written": 0, "skipped": 0, "kept": 0, "place": None}

    # -- learning

    def learn(self, X: Any, y: Array) -> list[Any]:
        """Predict and then learn each row in turn; the predictions, None before the first label is known.

        If the call ends early, the rows before are learned: the error has their predictions as `said`.
        """
        clock, before = time.perf_counter(), copy.deepcopy((self.scale, self.goal))
        said: list[Any] = []
        try:
            self._learn(X, y, said)
        except BaseException as error:
            self.scale, self.goal = before
            if said:  # the scales of the rows that were learned
                self._scaled(X[: len(said)], y[: len(said)])
            error.said = said  # type: ignore[attr-defined]
            raise
        finally:
            if said:
                known = np.array(said, float if self.task == "regression" else object)
                self.total = accumulated(self.total, errors(known, y[: len(said)], self.task))
                self.seen += len(said)
                self.seconds += time.perf_counter() - clock
                self._note()
        return said

    def _learn(self, X: Any, y: Array, said: list[Any]) -> None:
        """Learn, and add to what was `said` as soon as rows are learned."""
        refused = self._too_large(X, y)
        if refused is not None:
            if refused.row:
                self._learn(X[: refused.row], y[: refused.row], said)
            raise refused
        X, targets, mean, deviation = self._scaled(X, y)
        stretches = [0, len(y)] if self.task == "regression" else cuts(y, self.classes)
        for a, b in pairwise(stretches):
            self._stretch(X[a:b], targets[a:b], mean[a:b], deviation[a:b], said)

    def _too_large(self, X: Any, y: Array) -> TooLarge | None:
        """The first row with a number that would overflow in a running scale, which all later rows would feel."""
        found = []
        pairs: list[tuple[str, Any, RunningScale | None]] = [
            ("a value of", X, self.scale),
            ("a target of", y, self.goal),
        ]
        for what, values, scale in pairs:
            numbers = values.data if scipy.sparse.issparse(values) else np.asarray(values)
            if scale is not None and not sane(numbers):
                rows = values.tocoo().row if scipy.sparse.issparse(values) else np.arange(len(y))
                wrong = ~(np.abs(numbers) < LIMIT)
                at = int(np.flatnonzero(wrong.any(axis=1) if wrong.ndim == 2 else wrong)[0])
                value = float(np.abs(numbers[at]).max())
                found.append(TooLarge(what, value, "to be scaled", int(rows[at])))
        return min(found, key=lambda error: error.row or 0, default=None)

    def _scaled(self, X: Any, y: Array) -> tuple[Any, Array, Array, Array]:
        """Learn the scales; the rows and targets scaled, and with which mean and deviation before each row."""
        X = self._rows(X, learning=True)
        if self.goal is None:
            return X, y, np.zeros(len(y)), np.ones(len(y))
        return X, *self.goal.follow(y)

    def _stretch(self, X: Any, y: Array, mean: Array, deviation: Array, said: list[Any]) -> None:
        """Learn from rows of which only the first may be of a new class; that one is predicted before it joins."""
        known, guess, more = self.classes, None, {}
        is_new = self.task == "classification" and y[0] not in known
        if is_new:
            guess = self._decide(self.model.decision_function(X[:1]))[0] if len(known) else None
            more = {"classes": np.unique(y[:1]) if len(known) == 0 else np.union1d(known, y[:1])}

        def note(scores: Array) -> None:
            if self.task == "regression":
                said.extend((np.asarray(scores, float) * deviation[: len(scores)] + mean[: len(scores)]).tolist())
            elif len(scores):
                said.extend([guess, *self._decide(scores)[1:]] if is_new else self._decide(scores))

        try:
            scores = self.model.learn(X, y, **more)
        except BaseException as error:
            if hasattr(error, "scores"):
                note(error.scores)
            elif isinstance(error, TooLarge) and error.row:  # no row was learned, though those before it can be
                self._stretch(X[: error.row], y[: error.row], mean, deviation, said)
            raise
        note(scores)

    def _decide(self, scores: Array) -> list[Any]:
        return list(predicted(self.classes, scores).tolist())

    @property
    def classes(self) -> Array:
        """The labels that have been seen."""
        return np.asarray(getattr(self.model, "classes_", []))

    def _rows(self, X: Any, learning: bool = False) -> Any:
        if self.scale is not None:
            X = self.scale.learn(X) if learning else self.scale.apply(X)
        if scipy.sparse.issparse(X):
            width = getattr(self.model, "n_features_in_", X.shape[1])
            if X.shape[1] != width and self.schema.encode == "hash":  # hashed texts always make as many
                raise ValueError(f"X has {X.shape[1]} features with hashed texts, but the examples before had {width}")
            if X.shape[1] > width and learning:
                self.model.widen(X.shape[1])
            elif X.shape[1] > width:
                X = X[:, :width]  # nothing is known of columns that were never seen
            elif X.shape[1] < width:
                X = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
            return X
        return np.asarray(X, float)

    # -- predicting

    def predict(self, X: Any) -> list[Any]:
        """Predictions for the rows, without learning."""
        said = np.asarray(self.model.predict(self._rows(X)))
        if self.goal is not None:
            said = said * self.goal.deviation + self.goal.mean
        return list(said.tolist())

    def scores(self, X: Any) -> Array:
        """Scores of the rows (classification)."""
        return np.asarray(self.model.decision_function(self._rows(X)))

    @property
    def error(self) -> float:
        """Mistakes per example so far, or the root mean squared error."""
        return float(error_of(self.total, self.seen, self.task))

    @property
    def trace(self) -> Trace:
        """The run as a `Trace` of at most 200 points; the longer the run, the farther apart they are."""
        seen, total, size, seconds = (np.array(column) for column in zip(*self._curve, strict=True))
        return Trace(self.task, seen, total.astype(float), size, seconds)

    def _note(self) -> None:
        now = (self.seen, self.total, self.model.n_support_, self.seconds)
        if len(self._curve) >= _POINTS:
            del self._curve[::2]
        self._curve.append(now)

    # -- files

    def save(self, path: str | os.PathLike[str], *, keep: bool = False) -> None:
        """Write model, scales and counts. The file is written whole or not at all; `onkel.load` reads its model.

        `keep`: what was saved there before stays beside it (`files.previous`), for `latest`.
        """
        path = Path(path)
        remove_leftovers(path)
        arrays, config = self.model.state()
        counts = {"seen": self.seen, "total": self.total, "seconds": self.seconds, "curve": self._curve}
        scale, goal = (None if one is None else one.plain() for one in (self.scale, self.goal))
        known = {"scale": scale, "goal": goal, "schema": self.schema.plain(), "about": self.about}
        state.write(path, arrays, config | {"follower": counts | known}, keep=keep)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Follower:
        """Read what `save` wrote. A model that was saved alone has no scale and no errors so far."""
        arrays, config = state.read(path)
        made = cls(restored(path, arrays, config))
        data = config.get("follower")
        if data is None:
            made.seen = getattr(made.model, "t_", 0)
            made.schema = Schema(features=[*map(str, getattr(made.model, "feature_names_in_", ()))] or None)
            return made
        try:
            made.seen, made.total, made.seconds = int(data["seen"]), float(data["total"]), float(data["seconds"])
            made._curve = [(int(a), float(b), int(c), float(d)) for a, b, c, d in data["curve"]]
            made.scale = None if data["scale"] is None else RunningScale.of(data["scale"])
            made.goal = None if data["goal"] is None else RunningScale.of(data["goal"])
            made.schema = Schema.of(data["schema"])
            made.about = dict(data["about"])
        except (KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"{os.fspath(path)} holds no valid position in a stream: {problem!r}") from problem
        return made


def latest(path: Path) -> tuple[Follower, str]:
    """What was saved there; if it is damaged or missing, what was saved before it, and a sentence that says so."""
    try:
        return Follower.load(path), ""
    except (FileNotFoundError, ValueError) as problem:
        try:
            before = Follower.load(previous(path))
        except (OSError, ValueError):
            raise problem from None
        what = "is missing" if isinstance(problem, FileNotFoundError) else f"is damaged ({problem})"
    examples = counted(before.seen, "example")
    return before, f"{path} {what}; {previous(path)} is used, the checkpoint before it, of {examples}"
