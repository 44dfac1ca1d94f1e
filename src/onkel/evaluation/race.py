"""Races: several learners over the same shuffled orders of a stream, each example predicted before it is learned."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import joblib
import numpy as np
import sklearn.base
from numpy.typing import ArrayLike, NDArray

from onkel.datasets.stream import Stream, Task
from onkel.evaluation.prequential import evaluate, timed
from onkel.evaluation.protocols import protocol, task_of
from onkel.evaluation.results import Result, Standings, settings
from onkel.evaluation.traces import Trace

Array = NDArray[Any]

_SHORT = 1.0  # seconds; shorter runs are measured a second time


@dataclasses.dataclass(frozen=True)
class Lap:
    """One learner over one order of the stream."""

    name: str
    order: int
    trace: Trace


def race(
    models: Mapping[str, Any], X: Any, y: ArrayLike | None = None, *, task: Task | None = None, **options: Any
) -> Standings:
    """Run fresh copies of several learners over the same shuffled orders of a stream.

    Checkpoints take time, too. So learners of onkel that finish within one second run again without checkpoints, and
    that time is reported, unless labels are delayed.

    Parameters
    ----------
    models : learners by name; they are copied, never changed.
    X, y : the examples; or a `Stream` alone.
    task : of X and y; default: the task of the models.
    options : as of `laps`.

    Examples
    --------
    >>> from onkel import PAClassifier, RBPClassifier, datasets, race
    >>> models = {"PA": PAClassifier(), "RBP": RBPClassifier(budget=20)}
    >>> standings = race(models, datasets.load("breast_cancer"), orders=3)
    >>> [result.name for result in standings.results]
    ['PA', 'RBP']
    """
    stream = X if isinstance(X, Stream) else _as_stream(models, X, y, task)
    return standings(models, stream, laps(models, stream, **options))


def _as_stream(models: Mapping[str, Any], X: Any, y: ArrayLike | None, task: Task | None) -> Stream:
    if y is None:
        raise ValueError("there are no targets: give X and y, or a Stream")
    if not models:
        raise ValueError("there is no model to race: give one or more")
    return Stream("stream", X, np.asarray(y), task or task_of(next(iter(models.values()))))


def laps(
    models: Mapping[str, Any],
    stream: Stream,
    *,
    orders: int = 1,
    seed: int | None = None,
    limit: int | None = None,
    test: Stream | None = None,
    n_jobs: int | None = None,
    progress: Callable[[Lap], object] | None = None,
    **options: Any,
) -> Iterator[Lap]:
    """The laps of `race` one by one, all learners on the first order first; stop at any time.

    Parameters
    ----------
    models : learners by name; they are copied, never changed.
    stream : an `ordered` stream is run once, in its own order.
    orders, seed : the number of orders, and the seed by which rows are shuffled (None: first the published orders, if
        there are any; then seed 0).
    limit : learn only the first so many examples of each order.
    test : examples to test the finished learners on; `Stream.split` makes such a part.
    n_jobs : laps that run in parallel (None: one, -1: one for each core); except for the times, the results do not
        depend on it. They are threads, as native learners can share a process; for processes put the
        call in `with joblib.parallel_config(backend="loky"):`.
    progress : called at every checkpoint with the lap so far; in parallel, with each finished lap.
    options : `checkpoints`, `delay`, `measures`, as of `evaluate`.
    """
    options |= {"classes": stream.classes, "task": stream.task, "test": None if test is None else (test.X, test.y)}

    def runs() -> Iterator[tuple[Any, ...]]:
        for number in range(stream.count_orders(orders)):
            rows = stream.order(number, seed=seed)[:limit]
            X, y = stream.X[rows], stream.y[rows]
            for name, model in models.items():
                yield name, number, model, X, y, stream.name

    if joblib.effective_n_jobs(n_jobs) == 1:
        for run in runs():
            yield _lap(*run, progress=progress, **options)
        return
    side_by_side = joblib.Parallel(n_jobs, prefer="threads", return_as="generator")
    for lap in side_by_side(joblib.delayed(_lap)(*run, progress=None, **options) for run in runs()):
        if progress is not None:
            progress(lap)
        yield lap


def _lap(
    name: str,
    number: int,
    model: Any,
    X: Any,
    y: Array,
    where: str,
    *,
    progress: Callable[[Lap], object] | None,
    **options: Any,
) -> Lap:
    report = None if progress is None else lambda trace: progress(Lap(name, number, trace))
    try:
        trace = evaluate(_fresh(model), X, y, progress=report, **options)
        if not options.get("delay"):
            trace = _timed_in_one_call(trace, model, X, y, options["classes"])
    except Exception as error:
        error.add_note(f"{name} on {where}")
        raise
    return Lap(name, number, trace)


def standings(models: Mapping[str, Any], stream: Stream, finished: Iterable[Lap]) -> Standings:
    """Collect finished laps; learners without one are left out."""
    traces: dict[str, list[Trace]] = {}
    for lap in finished:
        traces.setdefault(lap.name, []).append(lap.trace)
    results = [Result(name, settings(models[name]), tuple(runs)) for name, runs in traces.items()]
    examples = max((int(result.traces[0].seen[-1]) for result in results), default=0)
    best_first = sorted(results, key=lambda result: result.error)
    return Standings(stream, tuple(best_first), examples)


def _timed_in_one_call(trace: Trace, model: Any, X: Any, y: Array, classes: Array | None) -> Trace:
    """The trace with the time of a second run without checkpoints, if the first was short.

    Between checkpoints a learner is called anew, and checks its input anew. In a short run that would be most
    of the time, and all fast learners would look the same.
    """
    traced = float(trace.seconds[-1])
    if traced > _SHORT or not hasattr(model, "learn") or not math.isfinite(trace.total[-1]):
        return trace
    _, seconds = timed(protocol(_fresh(model), classes), X, y, 0, len(y))
    return dataclasses.replace(trace, seconds=trace.seconds * min(1.0, seconds / traced))


def _fresh(model: Any) -> Any:
    return model.clone() if hasattr(model, "clone") else sklearn.base.clone(model)
