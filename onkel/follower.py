"""Follower: a learner on its way along a stream that may stop at any time, and go on where it stopped.

It brings features and real targets to scale by what it has seen so far, meets new classes and columns as they come,
counts its errors, and writes all of that into the model's file. How the stream is cut into blocks never matters, to the
last bit: whoever loads the file and goes on from its position ends with the model of one who was never interrupted.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from glob import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from onkel import state
from onkel.estimator import restored
from onkel.evaluate import Trace, task_of
from onkel.protocols import decide
from onkel.tables import Schema

Array = NDArray[Any]
Floats = NDArray[np.float64]

_POINTS = 200  # most points of a curve


class Running:
    """Brings columns to mean 0 and deviation 1, as they have been up to each example.

    Parameters
    ----------
    columns : how many, the first; those behind them say yes or no and stay as they are. None: all.
    """

    def __init__(self, columns: int | None = None) -> None:
        self.columns, self.count = columns, 0
        self.origin = self.sums = self.squares = np.zeros(0)  # sums are of distances from the first example

    def learn(self, X: Any) -> Any:
        """The rows to scale, each by itself and those before it."""
        return self._first(X, self._learn)

    def apply(self, X: Any) -> Any:
        """The rows to the scale known now."""
        return self._first(X, self._apply)

    def _first(self, X: Any, scale: Callable[[Floats], Floats]) -> Any:
        sparse = scipy.sparse.issparse(X)
        numbers = X if self.columns is None else X[:, : self.columns]
        numbers = scale(numbers.toarray() if sparse else np.asarray(numbers, float))
        if self.columns is None:
            return numbers
        rest = X[:, self.columns :]
        return scipy.sparse.hstack([numbers, rest], format="csr") if sparse else np.hstack([numbers, rest])

    def _learn(self, X: Floats) -> Floats:
        distances, sums, squares, counts = self._add(X)
        return _scaled(distances, sums[1:], squares[1:], counts[1:])

    def _add(self, X: Floats) -> tuple[Floats, Floats, Floats, Array]:
        """Distances from the first example; and sums, squares and counts before all of them and after each."""
        if self.count == 0:
            self.origin, self.sums, self.squares = X[0].copy(), np.zeros(X.shape[1]), np.zeros(X.shape[1])
        self._check(X)
        distances = X - self.origin
        sums = np.cumsum(np.vstack([self.sums, distances]), axis=0)  # one by one, so blocks do not matter
        squares = np.cumsum(np.vstack([self.squares, distances**2]), axis=0)
        counts = self.count + np.arange(len(X) + 1)[:, None]
        self.count, self.sums, self.squares = self.count + len(X), sums[-1], squares[-1]
        return distances, sums, squares, counts

    def follow(self, y: Array) -> tuple[Floats, Floats, Floats]:
        """A target to scale; and its mean and deviation before each example, which predictions are made in."""
        distances, sums, squares, counts = self._add(np.asarray(y, float)[:, None])
        mean, deviation = _moments(sums[:-1], squares[:-1], np.maximum(counts[:-1], 1))
        mean = mean + np.where(counts[:-1] > 0, self.origin, 0.0)
        return _scaled(distances, sums[1:], squares[1:], counts[1:])[:, 0], mean[:, 0], deviation[:, 0]

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean and deviation of every column so far."""
        mean, deviation = _moments(self.sums, self.squares, max(self.count, 1))
        return mean + self.origin, deviation

    def _apply(self, X: Floats) -> Floats:
        self._check(X)
        return _scaled(X - self.origin, self.sums, self.squares, max(self.count, 1))

    def _check(self, X: Floats) -> None:
        if X.shape[1] != len(self.origin):
            raise ValueError(f"X has {X.shape[1]} features, but the examples before had {len(self.origin)}")

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        arrays = {name: getattr(self, name).tolist() for name in ("origin", "sums", "squares")}
        return {"columns": self.columns, "count": self.count, **arrays}

    @classmethod
    def of(cls, data: dict[str, Any]) -> Running:
        """The inverse of `plain`."""
        made = cls(data.get("columns"))
        made.count = int(data["count"])
        made.origin, made.sums, made.squares = (np.array(data[name], float) for name in ("origin", "sums", "squares"))
        return made


def _scaled(distances: Floats, sums: Floats, squares: Floats, counts: Any) -> Floats:
    mean, deviation = _moments(sums, squares, counts)
    varies = deviation > 0
    return np.where(varies, (distances - mean) / np.where(varies, deviation, 1.0), 0.0)


def _moments(sums: Floats, squares: Floats, counts: Any) -> tuple[Floats, Floats]:
    """Mean, and deviation; 0 if that is rounding, or nothing."""
    mean, square = sums / counts, squares / counts
    variance = square - mean**2
    return mean, np.sqrt(np.where(variance > 1e-12 * square, variance, 0.0))


class Follower:
    """A learner, the scale of its features and of its target, and what it did so far.

    Parameters
    ----------
    model : a classifier or regressor of onkel, fresh or not.
    scale : a `Running` scale, for not too many features, as it fills zeros; None takes them as they are.
    goal : likewise of the target of a regression, in whose units predictions are.

    Attributes
    ----------
    seen, total, seconds : examples, mistakes (or squared errors) and time spent so far.
    schema : what is known of the columns of the tables it learned from.
    about : plain data that is saved along: which stream, which place in it.
    """

    def __init__(self, model: Any, scale: Running | None = None, goal: Running | None = None) -> None:
        self.model, self.scale, self.goal = model, scale, goal
        self.task = task_of(model)
        self.seen, self.total, self.seconds = 0, 0.0, 0.0
        self.schema = Schema()
        self.about: dict[str, Any] = {}
        self._curve: list[tuple[int, float, int, float]] = []

    # -- learning

    def learn(self, X: Any, y: Array) -> list[Any]:
        """Predict and then learn each row in turn; the predictions, None before the first label is known."""
        clock = time.perf_counter()
        X = self._rows(X, learning=True)
        if self.task == "regression":
            targets, mean, deviation = (y, 0.0, 1.0) if self.goal is None else self.goal.follow(y)
            said: list[Any] = (np.asarray(self.model.learn(X, targets), float) * deviation + mean).tolist()
            for prediction, target in zip(said, y.tolist(), strict=True):
                self.total += (prediction - target) ** 2
        else:
            said = [prediction for a, b in pairwise(self._cuts(y)) for prediction in self._stretch(X[a:b], y[a:b])]
            self.total += sum(prediction != label for prediction, label in zip(said, y.tolist(), strict=True))
        self.seen += len(y)
        self.seconds += time.perf_counter() - clock
        self._take_down()
        return said

    def _cuts(self, y: Array) -> list[int]:
        """Where new labels come up: a class joins with its first example, whatever block it comes in."""
        labels, first = np.unique(y, return_index=True)
        new = [] if len(y) == 0 else first[~np.isin(labels, self.classes)].tolist()
        return sorted({0, len(y), *new})

    def _stretch(self, X: Any, y: Array) -> list[Any]:
        """Learn from rows of which only the first may be of a new class; that one is predicted before it joins."""
        known = self.classes
        if y[0] in known:
            return self._decide(self.model.learn(X, y))
        guess = self._decide(self.model.decision_function(X[:1])) if len(known) else [None]
        scores = self.model.learn(X, y, classes=np.unique(y[:1]) if len(known) == 0 else np.union1d(known, y[:1]))
        return guess + self._decide(scores)[1:]

    def _decide(self, scores: Array) -> list[Any]:
        classes = self.classes
        said = np.repeat(classes, len(scores)) if len(classes) == 1 else decide(scores, classes)
        return list(said.tolist())

    @property
    def classes(self) -> Array:
        """The labels that have been seen."""
        return np.asarray(getattr(self.model, "classes_", []))

    def _rows(self, X: Any, learning: bool = False) -> Any:
        if self.scale is not None:
            X = self.scale.learn(X) if learning else self.scale.apply(X)
        if scipy.sparse.issparse(X):
            width = getattr(self.model, "n_features_in_", X.shape[1])
            if X.shape[1] != width and self.schema.encode == "hash":  # the only matrix of a table that never widens
                raise ValueError(f"hashed, X has {X.shape[1]} features, but the examples before had {width}")
            if X.shape[1] > width and learning:
                self.model.widen(X.shape[1])
            elif X.shape[1] > width:
                X = X[:, :width]  # columns that were never seen: nothing is known of them
            elif X.shape[1] < width:
                X = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
            return X
        return np.asarray(X, float)

    # -- asking

    def predict(self, X: Any) -> list[Any]:
        """Predictions for the rows, without learning."""
        said = np.asarray(self.model.predict(self._rows(X)))
        if self.goal is not None:
            mean, deviation = self.goal.moments
            said = said * deviation + mean
        return list(said.tolist())

    def scores(self, X: Any) -> Array:
        """Scores of the rows (classification)."""
        return np.asarray(self.model.decision_function(self._rows(X)))

    @property
    def error(self) -> float:
        """Mistakes per example so far, or the root mean squared error."""
        mean = self.total / max(self.seen, 1)
        return mean if self.task == "classification" else math.sqrt(mean)

    @property
    def trace(self) -> Trace:
        """What the run looked like: at most 200 points, more sparsely the longer it is."""
        seen, total, size, seconds = (np.array(column) for column in zip(*self._curve, strict=True))
        return Trace(self.task, seen, total.astype(float), size, seconds)

    def _take_down(self) -> None:
        now = (self.seen, self.total, self.model.n_support_, self.seconds)
        if len(self._curve) >= _POINTS:
            del self._curve[::2]
        self._curve.append(now)

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write model, scale and counts; the file appears whole or not at all, and `onkel.load` reads its model."""
        path = Path(path)
        for leftover in path.parent.glob(f".{escape(path.name[:100])}.*.onkel"):  # of one who was killed while writing
            if not _alive(leftover.name.split(".")[-2]):
                leftover.unlink(missing_ok=True)
        arrays, config = self.model.state()
        counts = {"seen": self.seen, "total": self.total, "seconds": self.seconds, "curve": self._curve}
        scale, goal = (None if one is None else one.plain() for one in (self.scale, self.goal))
        known = {"scale": scale, "goal": goal, "schema": self.schema.plain(), "about": self.about}
        state.write(path, arrays, config | {"follower": counts | known})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Follower:
        """Take up what `save` wrote; a model saved alone begins to count from 0."""
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
            made.scale = None if data["scale"] is None else Running.of(data["scale"])
            made.goal = Running.of(data["goal"]) if data.get("goal") else None
            made.schema = Schema.of(data["schema"]) if "schema" in data else Schema()  # older files have none
            made.about = dict(data["about"])
        except (KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"{os.fspath(path)} does not hold a place in a stream: {problem!r}") from problem
        return made


def _alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except OSError:  # it is someone else's
        pass
    return True
