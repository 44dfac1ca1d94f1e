"""Test, then train: how well a learner predicts each example before it learns from it.

`prequential` runs one learner over one stream; `race` runs several over the same shuffled orders of a stream.
onkel's estimators are asked through `learn`, which returns the scores made before each update. Estimators of
scikit-learn (`partial_fit`, `predict`) and river (`learn_one`, `predict_one`) are asked example by example.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
import sklearn.base
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from onkel.datasets import Stream, Task

Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_SHORT = 1.0  # seconds; a race measures shorter runs a second time


@dataclasses.dataclass(frozen=True, eq=False)
class Trace:
    """What a run looked like at its checkpoints: but for `task`, arrays with one value per checkpoint.

    Parameters
    ----------
    task : "classification" or "regression".
    seen : examples seen.
    total : mistakes so far (classification) or the sum of squared errors so far (regression); infinite from
        the checkpoint on before which the learner diverged.
    size : support vectors held, None if the learner has no such number.
    seconds : time spent predicting and learning so far.
    """

    task: Task
    seen: Integers
    total: Floats
    size: Integers | None
    seconds: Floats

    @property
    def mistakes(self) -> Integers:
        """Mistakes so far (classification)."""
        if self.task != "classification":
            raise AttributeError("regression has no mistakes; use mse or rmse")
        if not np.isfinite(self.total[-1]):
            raise FloatingPointError("the learner diverged, so it has no number of mistakes; see total")
        return self.total.astype(np.int64)

    @property
    def mse(self) -> Floats:
        """Mean squared error so far (regression)."""
        if self.task != "regression":
            raise AttributeError("classification has no squared error; use mistakes or error")
        return self.total / self.seen

    @property
    def rmse(self) -> Floats:
        """Root of the mean squared error so far (regression)."""
        return np.sqrt(self.mse)

    @property
    def error(self) -> Floats:
        """The figure of merit: mistakes per example, or the root mean squared error."""
        return self.total / self.seen if self.task == "classification" else self.rmse

    @property
    def microseconds(self) -> float:
        """Microseconds per example over the whole run, or until the learner diverged."""
        last = min(int(np.isfinite(self.total).sum()), len(self.seen) - 1)
        return float(1e6 * self.seconds[-1] / self.seen[last])


def prequential(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    checkpoints: int | Sequence[int] = 50,
    classes: ArrayLike | None = None,
    task: Task | None = None,
    progress: Callable[[Trace], object] | None = None,
) -> Trace:
    """Let `model` predict and then learn each example in turn.

    A learner that leaves the range of floating point (it raises FloatingPointError, or its squared error is
    not finite) is stopped; its error is infinite from then on.

    Parameters
    ----------
    model : goes on from what it knows and is changed; give a fresh one for a fresh run.
    X, y : the stream; X dense or sparse.
    checkpoints : how many, evenly spread, or the numbers of examples seen; the end is always one. They choose
        what is written down, never what is learned.
    classes : all labels of the stream (default: those of y), declared to the learner before it begins.
    task : default: what the model says of itself.
    progress : called with the trace so far at every checkpoint.

    Examples
    --------
    >>> from onkel import KernelPerceptronClassifier, datasets, evaluate
    >>> stream = datasets.load("breast_cancer")
    >>> trace = evaluate.prequential(KernelPerceptronClassifier(), stream.X, stream.y)
    >>> bool(trace.error[-1] < 0.1)
    True
    """
    y = np.asarray(y)
    X = X.tocsr() if scipy.sparse.issparse(X) else np.asarray(X)
    task = task or _task(model)
    labels = _labels(y, classes) if task == "classification" else None
    ask = _protocol(model)
    marks = _marks(checkpoints, len(y))
    total, seconds = 0.0, 0.0
    written: list[tuple[int, float, int, float]] = []
    for begin, end in zip([0, *marks], marks, strict=False):
        if math.isfinite(total):
            targets = y[begin:end]
            predicted, spent = _timed(ask, model, X[begin:end], targets, labels)
            total = math.inf if predicted is None else _add(total, _errors(predicted, targets, task))
            seconds += spent
        written.append((end, total, getattr(model, "n_support_", -1), seconds))
        if progress is not None:
            progress(_trace(task, written))
    return _trace(task, written)


# -- asking a learner --------------------------------------------------------------------------------------

Protocol = Callable[[Any, Any, Array, Array | None], Array]


def _timed(ask: Protocol, model: Any, X: Any, y: Array, classes: Array | None) -> tuple[Array | None, float]:
    """The predictions, None if the learner diverged, and the seconds they took."""
    clock = time.perf_counter()
    try:
        predicted = ask(model, X, y, classes)
    except FloatingPointError:
        return None, time.perf_counter() - clock
    return predicted, time.perf_counter() - clock


def _protocol(model: Any) -> Protocol:
    if hasattr(model, "learn"):
        return _by_scores
    if hasattr(model, "partial_fit") and hasattr(model, "predict"):
        return _row_by_row
    if hasattr(model, "learn_one") and hasattr(model, "predict_one"):
        return _dict_by_dict
    raise TypeError(f"{type(model).__name__} has none of learn, partial_fit with predict, learn_one with predict_one")


def _by_scores(model: Any, X: Any, y: Array, classes: Array | None) -> Array:
    if classes is None:
        return np.asarray(model.learn(X, y), dtype=np.float64)
    return decide(model.learn(X, y, classes=classes), model.classes_)


def _row_by_row(model: Any, X: Any, y: Array, classes: Array | None) -> Array:
    """scikit-learn: one example per call; a batch would be predicted before any of it is learned."""
    declared = {} if classes is None else {"classes": classes}
    predicted = []
    for i in range(len(y)):
        try:
            predicted.append(model.predict(X[i : i + 1])[0])
        except NotFittedError:
            predicted.append(_untaught(classes))
        model.partial_fit(X[i : i + 1], y[i : i + 1], **declared)
    return np.array(predicted)


def _dict_by_dict(model: Any, X: Any, y: Array, classes: Array | None) -> Array:
    """river: one dict per example, keyed by column; absent entries of a sparse row stay absent."""
    predicted = []
    for row, target in zip(_dicts(X), y.tolist(), strict=True):
        answer = model.predict_one(row)
        predicted.append(_untaught(classes) if answer is None else answer)
        model.learn_one(row, target)
    return np.array(predicted)


def _dicts(X: Any) -> Iterator[dict[int, float]]:
    if scipy.sparse.issparse(X):
        for i in range(X.shape[0]):
            here = slice(X.indptr[i], X.indptr[i + 1])
            yield dict(zip(X.indices[here].tolist(), X.data[here].tolist(), strict=True))
    else:
        for values in X.tolist():
            yield dict(enumerate(values))


def decide(scores: ArrayLike, classes: Array) -> Array:
    """Labels for scores: binary 0 is the second class; of several largest scores the first wins."""
    values = np.asarray(scores)
    if values.ndim == 1:
        return np.asarray(classes[(values >= 0).astype(np.intp)])
    return np.asarray(classes[values.argmax(axis=1)])


def _untaught(classes: Array | None) -> Any:
    """The prediction of a learner that knows nothing: what score 0 predicts."""
    if classes is None:
        return 0.0
    return decide(np.zeros(1) if len(classes) == 2 else np.zeros((1, len(classes))), classes)[0]


def _task(model: Any) -> Task:
    if hasattr(model, "__sklearn_tags__"):
        if sklearn.base.is_classifier(model):
            return "classification"
        if sklearn.base.is_regressor(model):
            return "regression"
    raise ValueError(f"{type(model).__name__} does not say its task; pass task='classification' or 'regression'")


# -- bookkeeping -------------------------------------------------------------------------------------------


def _labels(y: Array, classes: ArrayLike | None) -> Array:
    labels = np.unique(y if classes is None else np.asarray(classes))
    if len(labels) < 2:
        raise ValueError(f"classification needs two classes or more, got {labels.tolist()}; declare them with classes=")
    return labels


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


def _errors(predicted: Array, y: Array, task: Task) -> Array:
    if task == "classification":
        return np.asarray(predicted != y)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.square(predicted - y))


def _add(total: float, errors: Array) -> float:
    """Add one by one, in the order of the stream: sums over chunks would round differently."""
    for error in errors.tolist():
        total += error
    return total if math.isfinite(total) else math.inf


def _trace(task: Task, written: list[tuple[int, float, int, float]]) -> Trace:
    seen, total, size, seconds = (np.array(column) for column in zip(*written, strict=True))
    return Trace(task, seen, total.astype(np.float64), size if size[0] >= 0 else None, seconds)


# -- several learners --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Lap:
    """One learner over one order of the stream."""

    name: str
    order: int
    trace: Trace


@dataclasses.dataclass(frozen=True)
class Result:
    """One learner over all orders it has finished.

    Parameters
    ----------
    name : the learner's name in the race.
    settings : its hyper-parameters as text.
    traces : one per order.
    """

    name: str
    settings: Mapping[str, str]
    traces: tuple[Trace, ...]

    @property
    def error(self) -> float:
        """Mean over the orders of the final mistake rate or root mean squared error."""
        return statistics.fmean(trace.error[-1] for trace in self.traces)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over the orders; None with one order, or if the learner diverged."""
        finals = [float(trace.error[-1]) for trace in self.traces]
        return statistics.stdev(finals) if len(finals) > 1 and np.isfinite(finals).all() else None

    @property
    def size(self) -> float | None:
        """Mean number of support vectors at the end."""
        sizes = [float(trace.size[-1]) for trace in self.traces if trace.size is not None]
        return statistics.fmean(sizes) if sizes else None

    @property
    def microseconds(self) -> float:
        """Mean time per example."""
        return statistics.fmean(trace.microseconds for trace in self.traces)

    def mean(self, quantity: Callable[[Trace], Array]) -> Floats:
        """A curve averaged over the orders, such as ``result.mean(lambda trace: trace.error)``."""
        return np.asarray(np.mean([quantity(trace) for trace in self.traces], axis=0), dtype=np.float64)


@dataclasses.dataclass(frozen=True)
class Standings:
    """How a race ended: the stream in words, and the results, best first."""

    stream: Stream
    results: tuple[Result, ...]
    examples: int

    @property
    def orders(self) -> int:
        """The number of orders that the best-travelled learner has finished."""
        return max((len(result.traces) for result in self.results), default=0)

    def relative(self, result: Result) -> float:
        """Time of a learner in units of the fastest one."""
        return result.microseconds / min(other.microseconds for other in self.results)

    def is_best(self, result: Result) -> bool:
        """Whether no learner did better; several may share the place."""
        return math.isclose(result.error, self.results[0].error, rel_tol=1e-9)

    def table(self) -> list[dict[str, Any]]:
        """One plain dict per learner: name, error, deviation, size, microseconds, relative, orders."""
        return [
            {
                "name": result.name,
                "error": result.error,
                "deviation": result.deviation,
                "size": result.size,
                "microseconds": result.microseconds,
                "relative": self.relative(result),
                "orders": len(result.traces),
            }
            for result in self.results
        ]


def race(
    models: Mapping[str, Any],
    stream: Stream,
    *,
    orders: int = 1,
    seed: int = 0,
    limit: int | None = None,
    checkpoints: int | Sequence[int] = 50,
    progress: Callable[[Lap], object] | None = None,
) -> Standings:
    """Run fresh copies of several learners over the same shuffled orders of a stream.

    Times are those of an uninterrupted run: short ones are measured a second time, in one call.

    Parameters
    ----------
    models : learners by name; they are copied, never changed.
    stream : an `ordered` stream is run once, in its own order.
    orders, seed : how many shuffled orders, and what they are drawn from.
    limit : learn only the first so many examples of each order.
    checkpoints : as in `prequential`.
    progress : called at every checkpoint with the lap so far.
    """
    finished = laps(models, stream, orders=orders, seed=seed, limit=limit, checkpoints=checkpoints, progress=progress)
    return standings(models, stream, finished)


def laps(
    models: Mapping[str, Any],
    stream: Stream,
    *,
    orders: int = 1,
    seed: int = 0,
    limit: int | None = None,
    checkpoints: int | Sequence[int] = 50,
    progress: Callable[[Lap], object] | None = None,
) -> Iterator[Lap]:
    """The laps of `race` one by one, all learners on the first order first; stop at any time."""
    classes = stream.classes
    for number in range(1 if stream.ordered else orders):
        rows = stream.order(number, seed=seed)[:limit]
        X, y = stream.X[rows], stream.y[rows]
        for name, model in models.items():
            report = None if progress is None else _reporter(progress, name, number)
            try:
                trace = prequential(
                    _fresh(model),
                    X,
                    y,
                    checkpoints=checkpoints,
                    classes=classes,
                    task=stream.task,
                    progress=report,
                )
                trace = _timed_in_one_call(trace, model, X, y, classes)
            except Exception as error:
                error.add_note(f"{name} on {stream.name}")
                raise
            yield Lap(name, number, trace)


def standings(models: Mapping[str, Any], stream: Stream, finished: Iterable[Lap]) -> Standings:
    """Collect finished laps; learners without one are left out."""
    traces: dict[str, list[Trace]] = {}
    for lap in finished:
        traces.setdefault(lap.name, []).append(lap.trace)
    results = [Result(name, settings(models[name]), tuple(runs)) for name, runs in traces.items()]
    examples = max((int(result.traces[0].seen[-1]) for result in results), default=0)
    best_first = sorted(results, key=lambda result: result.error)
    return Standings(stream, tuple(best_first), examples)


def settings(model: Any) -> dict[str, str]:
    """The hyper-parameters of a learner as text, or its whole text where it does not list them."""
    if hasattr(model, "get_params"):
        return {name: str(value) for name, value in model.get_params(deep=False).items()}
    return {"model": str(model)}


def _timed_in_one_call(trace: Trace, model: Any, X: Any, y: Array, classes: Array | None) -> Trace:
    """The trace with the time of a second run without checkpoints, if the first was short.

    Between checkpoints a learner is called anew, and checks its input anew. In a short run that would be most
    of the time, and all fast learners would look the same.
    """
    traced = float(trace.seconds[-1])
    if traced > _SHORT or not hasattr(model, "learn") or not math.isfinite(trace.total[-1]):
        return trace
    _, seconds = _timed(_by_scores, _fresh(model), X, y, classes)
    return dataclasses.replace(trace, seconds=trace.seconds * min(1.0, seconds / traced))


def _reporter(progress: Callable[[Lap], object], name: str, number: int) -> Callable[[Trace], object]:
    return lambda trace: progress(Lap(name, number, trace))


def _fresh(model: Any) -> Any:
    return model.clone() if hasattr(model, "clone") else sklearn.base.clone(model)
