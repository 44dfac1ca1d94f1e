"""Prequential evaluation (test, then train): how well a learner predicts each example before it learns from it.

onkel's estimators predict through `learn`, which returns the scores made before each update. Estimators of
scikit-learn (`partial_fit`, `predict`) and river (`learn_one`, `predict_one`) predict example by example, and so
does every learner if labels arrive late.
"""

from __future__ import annotations

import dataclasses
import math
import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onkel.datasets.stream import Task, as_matrix
from onkel.evaluation.measures import MEASURES, Measure
from onkel.evaluation.protocols import Answers, Protocol, protocol, task_of
from onkel.evaluation.totals import accumulated, error_of, errors
from onkel.evaluation.traces import Trace

Array = NDArray[Any]


def evaluate(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    checkpoints: int | Sequence[int] = 50,
    classes: ArrayLike | None = None,
    task: Task | None = None,
    delay: int = 0,
    measures: Sequence[str] = (),
    test: tuple[Any, ArrayLike] | None = None,
    progress: Callable[[Trace], object] | None = None,
) -> Trace:
    """Let `model` predict and then learn each example in turn.

    A learner that leaves the range of floating point (it raises FloatingPointError, or its squared error is
    not finite) is stopped; its error is infinite from then on.

    Parameters
    ----------
    model : it continues from what it has learned, and is changed; pass a new one for a new run.
    X, y : the stream; X dense or sparse.
    checkpoints : evaluation points: their number (evenly spread), or the numbers of examples seen. The end is always
        one of them. They do not change what is learned.
    classes : all labels of the stream (default: those of y), declared to the learner before it begins.
    task : default: the task of the model.
    delay : how many further examples are predicted before the label of one arrives and is learned from. Labels
        that are still missing at the end arrive then.
    measures : names of `onkel.evaluation.measures.MEASURES` to compute as well. Learners of scikit-learn and river
        are called a second time for their scores, which takes time.
    test : examples and targets to test the finished learner on, without learning.
    progress : called with the trace so far at every checkpoint.

    Examples
    --------
    >>> from onkel import KernelPerceptronClassifier, datasets, evaluate
    >>> stream = datasets.load("breast_cancer")
    >>> trace = evaluate(KernelPerceptronClassifier(), stream.X, stream.y)
    >>> bool(trace.error[-1] < 0.1)
    True
    """
    if delay < 0:
        raise ValueError(f"delay must be >= 0, got {delay}")
    y = np.asarray(y)
    X = as_matrix(X)
    task = task or task_of(model)
    labels = _labels(y, classes) if task == "classification" else None
    asked = protocol(model, labels, detailed=bool(measures))
    measured = _measures(measures)
    marks = _marks(checkpoints, len(y))
    total, seconds = 0.0, 0.0
    written: list[tuple[Any, ...]] = []
    for begin, end in zip([0, *marks], marks, strict=False):
        values = dict.fromkeys(measured, math.nan)
        if math.isfinite(total):
            answers, spent = timed(asked, X, y, begin, end, delay)
            total = math.inf if answers is None else accumulated(total, errors(answers.predicted, y[begin:end], task))
            seconds += spent
            if answers is not None:
                values = {name: measure.add(answers, y[begin:end], labels) for name, measure in measured.items()}
        written.append((end, total, getattr(model, "n_support_", -1), seconds, *values.values()))
        if progress is not None:
            progress(_trace(task, written, measures))
    trace = dataclasses.replace(_trace(task, written, measures), bytes=_bytes(model))
    if test is None:
        return trace
    error = _test(asked, *test, task) if math.isfinite(total) else math.inf
    return dataclasses.replace(trace, held_out=error)


def timed(asked: Protocol, X: Any, y: Array, begin: int, end: int, delay: int = 0) -> tuple[Answers | None, float]:
    """The predictions for the rows from `begin` to `end` (None if the learner diverged), and the seconds they took."""
    clock = time.perf_counter()
    try:
        if delay == 0:
            answers = asked.learn(X[begin:end], y[begin:end])
        else:
            answers = asked.delayed(X, y, range(begin, end), delay)
            if end == len(y):
                asked.teach(X[max(0, end - delay) :], y[max(0, end - delay) :])
    except FloatingPointError:
        return None, time.perf_counter() - clock
    return answers, time.perf_counter() - clock


def _test(asked: Protocol, X: Any, y: ArrayLike, task: Task) -> float:
    """The error of the finished learner on test examples."""
    y = np.asarray(y)
    return float(error_of(accumulated(0.0, errors(asked.ask(as_matrix(X)).predicted, y, task)), len(y), task))


def _bytes(model: Any) -> int | None:
    try:
        return len(pickle.dumps(model, protocol=5))
    except Exception:  # not every learner can be pickled, and any error may say so
        return None


def _labels(y: Array, classes: ArrayLike | None) -> Array:
    labels = np.unique(y if classes is None else np.asarray(classes))
    if len(labels) < 2:
        raise ValueError(f"classification needs two classes or more, got {labels.tolist()}; declare them with classes=")
    return labels


def _measures(names: Sequence[str]) -> dict[str, Measure]:
    for name in names:
        if name not in MEASURES:
            raise ValueError(f"there is no measure {name!r}; there are {', '.join(MEASURES)}")
    return {name: MEASURES[name]() for name in names}


def _marks(checkpoints: int | Sequence[int], n: int) -> list[int]:
    if n < 1:
        raise ValueError("the stream is empty")
    if isinstance(checkpoints, int):
        if checkpoints < 1:
            raise ValueError(f"checkpoints must be > 0, got {checkpoints}")
        marks = [int(mark) for mark in np.linspace(0, n, min(checkpoints, n) + 1).round()[1:]]
    else:
        marks = sorted({int(mark) for mark in checkpoints} | {n})
    if marks[0] < 1 or marks[-1] > n:
        raise ValueError(f"checkpoints must lie between 1 and {n}, got {marks[0]} and {marks[-1]}")
    return marks


def _trace(task: Task, written: list[tuple[Any, ...]], measures: Sequence[str]) -> Trace:
    seen, total, size, seconds, *values = (np.array(column) for column in zip(*written, strict=True))
    further = dict(zip(measures, values, strict=True))
    sizes = np.maximum(size, 0) if size[-1] >= 0 else None  # -1: none before the first label
    return Trace(task, seen, total.astype(np.float64), sizes, seconds, further)
