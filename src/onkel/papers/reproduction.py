"""The runs of an experiment: how they are made and kept, and the settings chosen by them.

What a run gave is written to a CSV file at once, so an experiment that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import functools
import itertools
import json
import math
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np

from onkel import datasets
from onkel.datasets.stream import Scale, Stream
from onkel.evaluation.prequential import evaluate
from onkel.papers.experiment import Contender, Dataset, Experiment, ExperimentError, Trial, build

LEAST_ROWS = 2000  # rows to choose parameters on
CHOICE = -1  # the number of the order on which parameters are chosen, which is not among those reported


# -- data --------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=2)
def _stream(data: str, scale: Scale | Literal["raw"], positive: int | None, dtype: str) -> Stream:
    stream = datasets.load(data, positive=positive)
    stream = dataclasses.replace(stream, X=stream.X.astype(np.float64))
    stream = stream if scale == "raw" else stream.scaled(scale)
    return dataclasses.replace(stream, X=stream.X.astype(dtype))


def load(dataset: Dataset) -> Stream:
    """The rows of a set as the table wants them."""
    return _stream(dataset.data, dataset.scale, dataset.positive, dataset.dtype)


def _rows(dataset: Dataset, number: int) -> tuple[Any, Any]:
    """Row numbers to learn from, in order `number`, and those to test on."""
    stream = load(dataset)
    parts = {"all": slice(None), "train": slice(stream.n_train), "test": slice(stream.n_train, None)}
    rows = np.arange(len(stream))[parts[dataset.part]]
    if 0 <= number < len(() if stream.orders is None else stream.orders) and len(rows) == len(stream):
        order = np.asarray(stream.orders)[number]
    else:
        order = np.random.default_rng([0, number % 2**32]).permutation(len(rows))
    order = order[: dataset.limit]
    if dataset.holdout is not None:
        cut = len(order) - round(dataset.holdout * len(order))
        return rows[order[:cut]], rows[order[cut:]]
    return rows[order], np.arange(len(stream))[parts["test"]] if stream.n_train else rows[:0]


def _for_choices(learned: Any, share: float, protocol: str) -> tuple[Any, Any]:
    """Of the rows to learn from those on which parameters are chosen; a holdout run tests on a fifth of them."""
    rows = learned[: max(round(share * len(learned)), LEAST_ROWS)]
    cut = len(rows) * 4 // 5 if protocol == "holdout" else len(rows)
    return rows[:cut], rows[cut:]


# -- running -----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Job:
    """One run to be made."""

    experiment: Experiment
    dataset: Dataset
    contender: Contender
    point: Mapping[str, Any]
    settings: Mapping[str, Any]
    number: int

    @property
    def identity(self) -> tuple[str, str, str, str, int]:
        """As `Trial.identity`."""
        return self.dataset.name, self.contender.name, as_text(self.point), as_text(self.settings), self.number

    def __call__(self) -> list[Trial]:
        model = build(self.contender.estimator, {**self.settings, **self.point}, max(self.number, 0))
        stream = load(self.dataset)
        X, y = stream.X, stream.y
        learned, tested = _rows(self.dataset, self.number)
        if self.number == CHOICE:
            learned, tested = _for_choices(learned, self.experiment.choose_on, self.experiment.protocol)
        if self.experiment.protocol == "holdout" and not len(tested):
            raise ExperimentError(f"{self.dataset.data} has no test part; give holdout = 0.2 or the like")
        try:
            if self.experiment.protocol == "holdout":
                points = [_holdout(model, X[learned], y[learned], X[tested], y[tested])]
            else:
                points = _online(model, X[learned], y[learned], self.experiment.checkpoints, self.contender.zero)
        except Exception as problem:
            problem.add_note(f"in {', '.join(map(str, self.identity))}")
            raise
        day = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
        return [Trial(*self.identity, *point, commit(), day) for point in points]


Point = tuple[int, float, float, float]  # examples seen, error, support, seconds


class _Zero:
    """A binary classifier whose scores of exactly 0 are turned to -1, or to the wrong side."""

    def __init__(self, model: Any, zero: str) -> None:
        self.model, self.zero = model, zero

    def learn(self, X: Any, y: Any, classes: Any) -> Any:
        scores = self.model.learn(X, y, classes=classes)
        return np.where(scores == 0, np.where((y == classes[1]) | (self.zero == "-1"), -1.0, 1.0), scores)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def _online(model: Any, X: Any, y: Any, checkpoints: int, zero: str) -> list[Point]:
    task: datasets.Task = "classification" if hasattr(model, "decision_function") else "regression"
    trace = evaluate(model if zero == "+1" else _Zero(model, zero), X, y, checkpoints=checkpoints, task=task)
    scale = 100.0 if task == "classification" else 1.0
    errors = scale * trace.total / trace.seen
    sizes = np.full(len(errors), _size(model)) if trace.size is None else trace.size
    columns = (trace.seen.tolist(), errors.tolist(), map(float, sizes), trace.seconds.tolist())
    return list(zip(*columns, strict=True))


def _holdout(model: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> Point:
    clock = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - clock
    predicted = model.predict(X_test)
    wrong = 100 * np.mean(predicted != y_test) if hasattr(model, "classes_") else np.mean((predicted - y_test) ** 2)
    return len(y), float(wrong), _size(model), seconds


def _size(model: Any) -> float:
    """Support vectors, or features where there are none."""
    if hasattr(model, "n_support_"):
        return float(np.sum(model.n_support_))
    return float(getattr(model, "components", math.nan))


def as_text(settings: Mapping[str, Any]) -> str:
    """Settings as they are written to files and compared."""
    return json.dumps(settings, sort_keys=True)


@functools.cache
def commit() -> str:
    """The state of the source tree, "unknown" outside of one."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


class Results:
    """The trials of an experiment in a CSV file, which is read first and then grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trials: list[Trial] = []
        if path.is_file():
            with path.open(newline="", encoding="utf-8") as file:
                self.trials = [_parsed(row) for row in csv.DictReader(file)]

    def add(self, trials: Iterable[Trial]) -> None:
        """Keep trials, on disk too."""
        new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow([field.name for field in dataclasses.fields(Trial)])
            for trial in trials:
                self.trials.append(trial)
                writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in dataclasses.astuple(trial)])

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs that are not done yet."""
        done = {trial.identity for trial in self.trials}
        return [job for job in jobs if job.identity not in done]


def _parsed(row: dict[str, str]) -> Trial:
    kinds = {"run": int, "seen": int, "error": float, "support": float, "seconds": float}
    return Trial(**{name: kinds.get(name, str)(value) for name, value in row.items()})


def available(experiment: Experiment, sets: Sequence[str] = ()) -> tuple[list[Dataset], dict[str, str]]:
    """The sets that can be run, and why the others cannot."""
    for name in sets:
        if name not in experiment.sets:
            raise ExperimentError(f"{experiment.table} has no set {name!r}; it has {', '.join(experiment.sets)}")
    wanted = [dataset for dataset in experiment.sets.values() if not sets or dataset.name in sets]
    here = [dataset for dataset in wanted if datasets.is_here(dataset.data)]
    absent = {dataset.name: f"{dataset.data} is not in the data folder" for dataset in wanted if dataset not in here}
    return here, absent


def run(
    experiment: Experiment,
    results: Results,
    *,
    sets: Sequence[str] = (),
    algorithms: Sequence[str] = (),
    runs: int | None = None,
    jobs: int = 1,
    progress: Callable[[Trial], object] | None = None,
) -> None:
    """Make the runs that `results` does not have yet, parameters of grids chosen first.

    Parameters
    ----------
    sets, algorithms : only these (default: all that are here).
    runs : default: as many as the paper's.
    jobs : processes at a time.
    progress : called with every run that was made.
    """
    for name in algorithms:
        if name not in experiment.contenders:
            known = ", ".join(experiment.contenders)
            raise ExperimentError(f"{experiment.table} has no algorithm {name!r}; it has {known}")
    here, _ = available(experiment, sets)
    rows = [c for c in experiment.contenders.values() if not algorithms or c.name in algorithms]
    pairs = list(itertools.product(here, rows))

    def make(wanted: Iterable[Job]) -> None:
        for trials in _done(results.missing(wanted), jobs):
            results.add(trials)
            if progress is not None:
                progress(trials[-1])

    make(job for dataset, contender in pairs for job in _candidates(experiment, dataset, contender))
    make(
        Job(experiment, dataset, contender, point, settings, number)
        for dataset, contender in pairs
        for settings in [chosen(experiment, dataset, contender, results)]
        for point in contender.points(dataset)
        for number in range(runs or contender.runs or experiment.runs)
    )


def _done(wanted: Sequence[Job], at_once: int) -> Iterator[list[Trial]]:
    if at_once == 1:
        yield from (job() for job in wanted)
    else:
        parallel = joblib.Parallel(n_jobs=at_once, return_as="generator_unordered")
        yield from parallel(joblib.delayed(job)() for job in wanted)


def _candidates(experiment: Experiment, dataset: Dataset, contender: Contender) -> Iterator[Job]:
    choices = contender.choices(dataset)
    if len(choices) > 1:
        for choice in choices:
            settings = contender.resolved(dataset) | choice
            for point in contender.points(dataset)[:1]:
                yield Job(experiment, dataset, contender, point, settings, CHOICE)


def chosen(experiment: Experiment, dataset: Dataset, contender: Contender, results: Results) -> dict[str, Any]:
    """The settings on a set: those of the grid with the least error on the order for choices."""
    jobs = list(_candidates(experiment, dataset, contender))
    if not jobs:
        return contender.resolved(dataset) | contender.choices(dataset)[0]
    errors = {trial.identity: trial.error for trial in results.trials if trial.run == CHOICE}
    if missing := [job for job in jobs if job.identity not in errors]:
        raise ExperimentError(f"{contender.name} on {dataset.name}: {len(missing)} settings were not tried yet")
    return dict(min(jobs, key=lambda job: _or_infinite(errors[job.identity])).settings)


def _or_infinite(error: float) -> float:
    return error if math.isfinite(error) else math.inf
