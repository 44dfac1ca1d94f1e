"""Test, then train: how well a learner predicts each example before it learns from it.

`prequential` runs one learner over one stream; `race` runs several over the same shuffled orders of a stream.
onkel's estimators are asked through `learn`, which returns the scores made before each update. Estimators of
scikit-learn (`partial_fit`, `predict`) and river (`learn_one`, `predict_one`) are asked example by example, and so is
everyone where labels arrive late.
"""

from __future__ import annotations

import dataclasses
import math
import pickle
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import joblib
import numpy as np
import scipy.sparse
import scipy.stats
import sklearn.base
from numpy.typing import ArrayLike, NDArray

from onkel.measures import MEASURES, Measure
from onkel.protocols import Answers, Protocol, protocol
from onkel.stream import Stream, Task, counted

Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_SHORT = 1.0  # seconds; a race measures shorter runs a second time


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
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
    measures : further measures of all predictions so far, by name; NaN where the learner does not allow them.
    bytes : of the whole learner at the end, as pickle writes it; None if it cannot.
    held_out : the error on examples that it never learned from, at the end; None if there were none.
    """

    task: Task
    seen: Integers
    total: Floats
    size: Integers | None
    seconds: Floats
    measures: Mapping[str, Floats] = dataclasses.field(default_factory=dict)
    bytes: int | None = None
    held_out: float | None = None

    def __repr__(self) -> str:
        size = "" if self.size is None else f", {self.size[-1]:,} SV"
        return f"Trace({self.task}: error {self.error[-1]:.4g} over {counted(int(self.seen[-1]), 'example')}{size})"

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
    def windowed(self) -> Floats:
        """The error over the examples since the checkpoint before alone."""
        with np.errstate(invalid="ignore"):
            mean = np.diff(self.total, prepend=0.0) / np.diff(self.seen, prepend=0)
        mean = np.where(np.isfinite(self.total), mean, np.inf)
        return mean if self.task == "classification" else np.sqrt(mean)

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
    model : goes on from what it knows and is changed; give a fresh one for a fresh run.
    X, y : the stream; X dense or sparse.
    checkpoints : how many, evenly spread, or the numbers of examples seen; the end is always one. They choose
        what is written down, never what is learned.
    classes : all labels of the stream (default: those of y), declared to the learner before it begins.
    task : default: what the model says of itself.
    delay : how many further examples are predicted before the label of one is known and learned from. The labels
        that are still out at the end arrive then.
    measures : names of `onkel.measures.MEASURES` to take down as well. Learners of scikit-learn and river need a
        further call for their scores, which takes its time.
    test : examples and targets to test the finished learner on, without learning.
    progress : called with the trace so far at every checkpoint.

    Examples
    --------
    >>> from onkel import KernelPerceptronClassifier, datasets, evaluate
    >>> stream = datasets.load("breast_cancer")
    >>> trace = evaluate.prequential(KernelPerceptronClassifier(), stream.X, stream.y)
    >>> bool(trace.error[-1] < 0.1)
    True
    """
    if delay < 0:
        raise ValueError(f"delay must be >= 0, got {delay}")
    y = np.asarray(y)
    X = X.tocsr() if scipy.sparse.issparse(X) else np.asarray(X)
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
            answers, spent = _timed(asked, X, y, begin, end, delay)
            total = math.inf if answers is None else add(total, errors(answers.predicted, y[begin:end], task))
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


def _timed(asked: Protocol, X: Any, y: Array, begin: int, end: int, delay: int = 0) -> tuple[Answers | None, float]:
    """The answers to the rows from `begin` to `end`, None if the learner diverged, and the seconds they took."""
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
    """The error of what was learned on other examples."""
    y = np.asarray(y)
    X = X.tocsr() if scipy.sparse.issparse(X) else np.asarray(X)
    mean = add(0.0, errors(asked.ask(X).predicted, y, task)) / len(y)
    return mean if task == "classification" else math.sqrt(mean)


def _bytes(model: Any) -> int | None:
    try:
        return len(pickle.dumps(model, protocol=5))
    except Exception:  # whatever it is made of: it cannot be written down
        return None


def task_of(model: Any) -> Task:
    """What the model says of itself."""
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


def errors(predicted: Array, y: Array, task: Task) -> Array:
    """Which predictions are mistakes; or the squared errors."""
    if task == "classification":
        return np.asarray(predicted != y)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.square(predicted - y))


def trivial(y: ArrayLike, task: Task) -> float:
    """The error of an answer that looks at no feature: the most frequent class so far (the first is guessed wrong), or
    the mean of the targets so far (the first is guessed 0). A learner that does no better has learned nothing.

    Examples
    --------
    >>> from onkel import evaluate
    >>> evaluate.trivial(["a", "a", "b", "b", "b", "b"], "classification")
    0.6666666666666666
    """
    y = np.asarray(y)
    if task == "regression":
        means = np.cumsum(y[:-1]) / np.arange(1, len(y))
        return float(np.sqrt(np.mean(np.square(y - [0.0, *means]))))
    counts: Counter[Any] = Counter()
    said, mistakes = None, 0
    for label in y.tolist():
        mistakes += label != said
        counts[label] += 1
        if counts[label] > counts[said]:
            said = label
    return mistakes / len(y)


def add(total: float, errors: Array) -> float:
    """A total and further errors, added one by one in the order of the stream: other sums would round differently."""
    if errors.dtype == bool:
        return total + np.count_nonzero(errors)
    for error in errors.tolist():
        total += error
    return total if math.isfinite(total) else math.inf


def _trace(task: Task, written: list[tuple[Any, ...]], measures: Sequence[str]) -> Trace:
    seen, total, size, seconds, *values = (np.array(column) for column in zip(*written, strict=True))
    further = dict(zip(measures, values, strict=True))
    sizes = np.maximum(size, 0) if size[-1] >= 0 else None  # before its first label a learner has no number yet
    return Trace(task, seen, total.astype(np.float64), sizes, seconds, further)


# -- several learners --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Lap:
    """One learner over one order of the stream."""

    name: str
    order: int
    trace: Trace


@dataclasses.dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        return f"Result({self.name}: error {self.error:.4g} in {counted(len(self.traces), 'order')})"

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

    @property
    def bytes(self) -> float | None:
        """Mean size of the learner at the end."""
        sizes = [float(trace.bytes) for trace in self.traces if trace.bytes is not None]
        return statistics.fmean(sizes) if sizes else None

    @property
    def held_out(self) -> float | None:
        """Mean error on examples that were never learned from; None if there were none."""
        errors = [trace.held_out for trace in self.traces if trace.held_out is not None]
        return statistics.fmean(errors) if errors else None

    @property
    def measures(self) -> dict[str, float | None]:
        """Means of the further measures at the end; None where the learner does not allow one."""
        finals = {name: [trace.measures[name][-1] for trace in self.traces] for name in self.traces[0].measures}
        return {name: statistics.fmean(v) if np.isfinite(v).all() else None for name, v in finals.items()}

    def mean(self, quantity: Callable[[Trace], Array]) -> Floats:
        """A curve averaged over the orders, such as ``result.mean(lambda trace: trace.error)``."""
        return np.asarray(np.mean([quantity(trace) for trace in self.traces], axis=0), dtype=np.float64)


@dataclasses.dataclass(frozen=True, repr=False)
class Standings:
    """How a race ended: the stream in words, and the results, best first."""

    stream: Stream
    results: tuple[Result, ...]
    examples: int

    def __repr__(self) -> str:
        rows = [("learner", "error", "SV", "us per row")]
        for result in self.results:
            size = "" if result.size is None else f"{result.size:,.0f}"
            rows.append((result.name, f"{result.error:.4g}", size, f"{result.microseconds:.3g}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [" ".join([f"{name:<{widths[0]}}", *map(str.rjust, cells, widths[1:])]) for name, *cells in rows]
        return "\n".join([f"{self.stream!r}, {self.examples:,} learned in {counted(self.orders, 'order')}", *lines])

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

    def significance(self) -> dict[str, float]:
        """How likely a difference from the best learner as large as this is if orders alone made it, by name.

        Two-sided paired t-tests of the final errors over the orders that both have finished, corrected for their
        number (Holm). The best, learners that diverged, and those with fewer than two orders have none. The orders
        are of the same examples: what is tested is whether the ranking holds on further orders of them.
        """
        best, *others = self.results[:1] + tuple(r for r in self.results[1:] if math.isfinite(r.error))
        raw = {other.name: p for other in others if (p := _paired(best, other)) is not None}
        adjusted: dict[str, float] = {}
        least = 0.0
        for rank, (name, p) in enumerate(sorted(raw.items(), key=lambda item: item[1])):
            least = max(least, min(1.0, p * (len(raw) - rank)))
            adjusted[name] = least
        return adjusted

    def table(self) -> list[dict[str, Any]]:
        """One plain dict per learner: name, error, deviation, p, further measures, size, bytes, times, orders."""
        p = self.significance() if self.results else {}
        return [
            {
                "name": result.name,
                "error": result.error,
                "deviation": result.deviation,
                "p": p.get(result.name),
                **result.measures,
                "held_out": result.held_out,
                "size": result.size,
                "bytes": result.bytes,
                "microseconds": result.microseconds,
                "relative": self.relative(result),
                "orders": len(result.traces),
            }
            for result in self.results
        ]


def _paired(one: Result, other: Result) -> float | None:
    """The p-value of a paired t-test over the orders that both have finished."""
    pairs = list(zip(one.traces, other.traces, strict=False))
    differences = np.array([float(a.error[-1] - b.error[-1]) for a, b in pairs])
    if len(differences) < 2 or not np.isfinite(differences).all():
        return None
    if np.ptp(differences) <= 1e-12 * np.abs(differences).max():  # no spread to compare with, but for rounding
        return 1.0 if differences[0] == 0 else 0.0
    return float(scipy.stats.ttest_1samp(differences, 0.0).pvalue)


def race(models: Mapping[str, Any], stream: Stream, **options: Any) -> Standings:
    """Run fresh copies of several learners over the same shuffled orders of a stream; the options are those of `laps`.

    Times are those of an uninterrupted run: short ones are measured a second time, in one call.

    Examples
    --------
    >>> from onkel import PAClassifier, RBPClassifier, datasets, evaluate
    >>> models = {"PA": PAClassifier(), "RBP": RBPClassifier(budget=20)}
    >>> standings = evaluate.race(models, datasets.load("breast_cancer"), orders=3)
    >>> [result.name for result in standings.results]
    ['PA', 'RBP']
    """
    return standings(models, stream, laps(models, stream, **options))


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
    orders, seed : how many shuffled orders, and what they are drawn from (None: published ones where there are).
    limit : learn only the first so many examples of each order.
    test : examples to test the finished learners on; `split` makes such a part.
    n_jobs : laps that run side by side (None: one, -1: one for each core), with the same results whatever it is,
        but for the times. They are threads, as native learners can share a process; for processes put the
        call in `with joblib.parallel_config(backend="loky"):`.
    progress : called at every checkpoint with the lap so far; side by side, with each finished lap.
    options : `checkpoints`, `delay`, `measures`, as in `prequential`.
    """
    options |= {"classes": stream.classes, "task": stream.task, "test": None if test is None else (test.X, test.y)}

    def heats() -> Iterator[tuple[Any, ...]]:
        for number in range(1 if stream.ordered else orders):
            rows = stream.order(number, seed=seed)[:limit]
            X, y = stream.X[rows], stream.y[rows]
            for name, model in models.items():
                yield name, number, model, X, y, stream.name

    if joblib.effective_n_jobs(n_jobs) == 1:
        for heat in heats():
            yield _lap(*heat, progress=progress, **options)
        return
    side_by_side = joblib.Parallel(n_jobs, prefer="threads", return_as="generator")
    for lap in side_by_side(joblib.delayed(_lap)(*heat, progress=None, **options) for heat in heats()):
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
        trace = prequential(_fresh(model), X, y, progress=report, **options)
        if not options.get("delay"):
            trace = _timed_in_one_call(trace, model, X, y, options["classes"])
    except Exception as error:
        error.add_note(f"{name} on {where}")
        raise
    return Lap(name, number, trace)


def split(stream: Stream, share: float = 0.2, *, seed: int = 0) -> tuple[Stream, Stream]:
    """A part to learn from, and a random share (of an `ordered` stream the last) to test on."""
    if not 0 < share < 1:
        raise ValueError(f"the share to hold out must lie between 0 and 1, got {share}")
    held = min(max(1, round(share * len(stream))), len(stream) - 1)
    rows = np.arange(len(stream)) if stream.ordered else np.random.default_rng([seed, 1]).permutation(len(stream))
    return stream.part(np.sort(rows[:-held])), stream.part(np.sort(rows[-held:]))


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
    _, seconds = _timed(protocol(_fresh(model), classes), X, y, 0, len(y))
    return dataclasses.replace(trace, seconds=trace.seconds * min(1.0, seconds / traced))


def _fresh(model: Any) -> Any:
    return model.clone() if hasattr(model, "clone") else sklearn.base.clone(model)
