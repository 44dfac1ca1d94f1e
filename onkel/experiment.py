"""Tables and figures of papers run again, from a TOML file with the protocol.

`papers/<bibkey>/<table>.toml` says what is run, `papers/<bibkey>/published.csv` what was printed. Every run is one row
of a CSV file that grows while the experiment runs, so that one that was interrupted goes on where it stopped.
`onkel.comparison` sets the runs beside the printed numbers.
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
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
from sklearn.svm import SVC

from onkel import datasets, evaluate
from onkel.algorithms import estimators
from onkel.estimator import Estimator
from onkel.kernels import Gaussian
from onkel.part import from_plain
from onkel.stream import SCALES, Scale, Stream

PRINTED = ("table", "set", "algorithm", "metric", "mean", "std", "note")
# metric -> (its value in one run, whether less is better; None: never compared)
METRICS: dict[str, tuple[Callable[[Run], float], bool | None]] = {
    "mistakes": (lambda run: run.error, True),
    "accuracy": (lambda run: 100 - run.error, False),
    "squared_loss": (lambda run: run.error, True),
    "rmse": (lambda run: math.sqrt(run.error), True),
    "support": (lambda run: run.support, True),
    "sparsity": (lambda run: 100 * (1 - run.support / run.seen), False),
    "seconds": (lambda run: run.seconds, None),
    "train_seconds": (lambda run: run.seconds, None),
    "minutes": (lambda run: run.seconds / 60, None),
}
PROTOCOLS = ("online", "holdout")
LEAST = 2000  # rows to choose parameters on
CHOICE = -1  # the number of the order on which parameters are chosen, which is not among those reported


class ExperimentError(ValueError):
    """An experiment that cannot be run; the message says what to mend."""


# -- what is to be run -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Source:
    """A set of a table.

    Parameters
    ----------
    name : as printed in the table.
    data : the name of the stream that is read.
    scale : "raw", "[0,1]" or "[-1,1]", features by column over the whole set; regression: the target to [0,1] too,
        unless raw.
    part : "all", "train" or "test" of the official split; a holdout run learns from "train" and is tested on "test",
        or on a random part of the size `holdout`.
    holdout : share of the rows that a random split keeps for the test.
    positive : the label that is +1 against all others, for a set with more labels than the table has.
    limit : learn only the first so many rows of each order.
    dtype : of the rows; double, unless the set is so large that only single precision is affordable.
    values : numbers that settings refer to as "$name".
    differs : in what it is not the paper's set; its cells then do not count.
    """

    name: str
    data: str
    scale: Scale | Literal["raw"] = "raw"
    part: str = "all"
    holdout: float | None = None
    positive: int | None = None
    limit: int | None = None
    dtype: str = "float64"
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    differs: str = ""


@dataclasses.dataclass(frozen=True)
class Contender:
    """A row of a table or a line of a figure.

    Parameters
    ----------
    name : as printed.
    estimator : a class of onkel, or "SVC" (scikit-learn's, for LIBSVM).
    settings : its parameters; "$name" stands for a value of the set.
    grid : parameters to choose from, on an order that is not reported.
    sweep : the parameter that a figure varies, and its values.
    on : settings for some sets.
    zero : what a score of exactly 0 counts as: "+1", "-1", or "wrong", whatever the label.
    runs : fewer runs than the table has, or more.
    """

    name: str
    estimator: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    sweep: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    on: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    zero: str = "+1"
    runs: int | None = None

    def resolved(self, source: Source) -> dict[str, Any]:
        """Its settings on a set, references replaced."""
        return {k: _refer(v, source) for k, v in {**self.settings, **self.on.get(source.name, {})}.items()}

    def points(self, source: Source) -> list[dict[str, Any]]:
        """The swept values, one dictionary each; without a sweep a single empty one."""
        return _combinations({k: _refer(v, source) for k, v in self.sweep.items()})

    def choices(self, source: Source) -> list[dict[str, Any]]:
        """What is to be chosen from on a set; parameters that are given for the set are not chosen."""
        given = self.on.get(source.name, {})
        return _combinations({k: _refer(v, source) for k, v in self.grid.items() if k not in given})


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One table or figure.

    Parameters
    ----------
    key, table : the paper's bibkey, and the name of the file without its ending.
    title : what it shows.
    protocol : "online" (predict, then learn) or "holdout" (learn, then test).
    runs : orders of the rows (or splits), each learned once.
    chosen : how the parameters were chosen, in words.
    choose_on : share of the rows on which those of grids are chosen, at least 2000 rows.
    metric : the figure of merit, which choices are made by.
    sets, contenders : columns and rows.
    figure : for a figure: `horizontal` ("seen", "seconds", "support" or the swept parameter), `vertical` (metrics) and
        `log` (whether the horizontal axis is logarithmic).
    reasons : "set/algorithm" -> why ours is worse than what was printed, or was not run.
    published : rows of published.csv for this table.
    """

    key: str
    table: str
    title: str
    protocol: str
    runs: int
    chosen: str
    choose_on: float
    metric: str
    sets: Mapping[str, Source]
    contenders: Mapping[str, Contender]
    figure: Mapping[str, Any]
    reasons: Mapping[str, str]
    published: tuple[Mapping[str, str], ...]

    @property
    def checkpoints(self) -> int:
        """How many points of each run are written down."""
        return 20 if self.figure.get("horizontal") == "seen" else 1


def _refer(value: Any, source: Source) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in source.values:
            raise ExperimentError(f"set {source.name!r} has no value {value[1:]!r}; add it under values")
        return source.values[value[1:]]
    if isinstance(value, Mapping):
        return {k: _refer(v, source) for k, v in value.items()}
    if isinstance(value, list):
        return [_refer(v, source) for v in value]
    return value


def _combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def folder() -> Path:
    """Where the papers are: the folder `papers` here, or in the checkout that the package is part of."""
    for place in (Path.cwd() / "papers", Path(__file__).parents[1] / "papers"):
        if place.is_dir():
            return place
    raise ExperimentError("the folder papers is part of the source tree and not installed; run this in a checkout")


def names() -> list[str]:
    """All experiments as KEY/TABLE."""
    return sorted(f"{path.parent.name}/{path.stem}" for path in folder().glob("*/*.toml"))


def read(name: str | Path) -> Experiment:
    """An experiment by KEY/TABLE, or from the path of a TOML file."""
    path = Path(name) if str(name).endswith(".toml") else folder() / f"{name}.toml"
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        known = "" if str(name).endswith(".toml") else f"; there are {', '.join(names())}"
        raise ExperimentError(f"there is no experiment {name}{known}") from None
    except tomllib.TOMLDecodeError as problem:
        raise ExperimentError(f"{path} is not a TOML file: {problem}") from None
    return _checked(path, content)


def _checked(path: Path, content: dict[str, Any]) -> Experiment:
    common = content.pop("settings", {})
    try:
        sets = {name: Source(name, **fields) for name, fields in content.pop("sets", {}).items()}
        contenders = {}
        for name, fields in content.pop("algorithms", {}).items():
            contenders[name] = Contender(name, **fields | {"settings": common | fields.get("settings", {})})
        defaults: dict[str, Any] = {"protocol": "online", "runs": 1, "chosen": "", "choose_on": 1.0, "metric": ""}
        defaults |= {"figure": {}, "reasons": {}}
        experiment = Experiment(
            key=path.parent.name,
            table=path.stem,
            sets=sets,
            contenders=contenders,
            published=tuple(row for row in published(path.parent) if row["table"] == path.stem),
            **(defaults | content),
        )
    except TypeError as problem:
        raise ExperimentError(f"{path}: {problem}; see onkel/experiment.py for the fields") from None
    _check(path, experiment)
    return experiment


def _check(path: Path, experiment: Experiment) -> None:
    if experiment.protocol not in PROTOCOLS:
        raise ExperimentError(f"{path}: protocol must be one of {PROTOCOLS}, got {experiment.protocol!r}")
    if experiment.metric not in METRICS:
        raise ExperimentError(f"{path}: metric must be one of {', '.join(METRICS)}, got {experiment.metric!r}")
    for source in experiment.sets.values():
        if source.scale not in ("raw", *SCALES):
            raise ExperimentError(
                f"{path}: scale of {source.name} must be raw, {', '.join(SCALES)}, got {source.scale!r}"
            )
    for contender in experiment.contenders.values():
        if contender.zero not in ("+1", "-1", "wrong"):
            raise ExperimentError(
                f'{path}: {contender.name}.zero must be "+1", "-1" or "wrong", got {contender.zero!r}'
            )
        for name in contender.on:
            if name not in experiment.sets:
                raise ExperimentError(f"{path}: {contender.name}.on names {name!r}, which is none of the sets")
        for source in experiment.sets.values():
            for point, choice in itertools.product(contender.points(source), contender.choices(source)):
                try:
                    model = build(contender.estimator, contender.resolved(source) | choice | point, 0)
                    if isinstance(model, Estimator) and model.online:
                        model.parts(Gaussian(1.0))  # estimators check values when they begin
                except (TypeError, ValueError) as problem:
                    raise ExperimentError(f"{path}: {contender.name} on {source.name}: {problem}") from None


def published(paper: Path) -> list[dict[str, str]]:
    """The rows of a paper's published.csv; none if it printed no numbers."""
    path = paper / "published.csv"
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != PRINTED:
            raise ExperimentError(f"{path} must have the columns {', '.join(PRINTED)}")
        return list(reader)


def build(estimator: str, settings: Mapping[str, Any], seed: int) -> Any:
    """A model from its class and plain settings.

    Parts inside are tables such as {part = "Gaussian", gamma = 0.5}, models {estimator = "BOGDClassifier", eta = 0.1}.
    """
    values = {name: _value(value, seed) for name, value in settings.items()}
    if estimator == "SVC":
        return SVC(gamma=values.pop("kernel").gamma, **values)
    if estimator not in estimators():
        raise ValueError(f"there is no estimator {estimator!r}")
    return estimators()[estimator](random_state=seed, **values)


def _value(value: Any, seed: int) -> Any:
    if isinstance(value, Mapping) and "estimator" in value:
        inside = dict(value)
        return build(inside.pop("estimator"), inside, seed)
    return from_plain(value)


# -- data --------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=2)
def _stream(data: str, scale: Scale | Literal["raw"], positive: int | None, dtype: str) -> Stream:
    stream = datasets.load(data, positive=positive)
    stream = dataclasses.replace(stream, X=stream.X.astype(np.float64))
    stream = stream if scale == "raw" else stream.scaled(scale)
    return dataclasses.replace(stream, X=stream.X.astype(dtype))


def load(source: Source) -> Stream:
    """The rows of a set as the table wants them."""
    return _stream(source.data, source.scale, source.positive, source.dtype)


def _rows(source: Source, number: int) -> tuple[Any, Any]:
    """Row numbers to learn from, in order `number`, and those to test on."""
    stream = load(source)
    parts = {"all": slice(None), "train": slice(stream.n_train), "test": slice(stream.n_train, None)}
    rows = np.arange(len(stream))[parts[source.part]]
    if 0 <= number < len(() if stream.orders is None else stream.orders) and len(rows) == len(stream):
        order = np.asarray(stream.orders)[number]
    else:
        order = np.random.default_rng([0, number % 2**32]).permutation(len(rows))
    order = order[: source.limit]
    if source.holdout is not None:
        cut = len(order) - round(source.holdout * len(order))
        return rows[order[:cut]], rows[order[cut:]]
    return rows[order], np.arange(len(stream))[parts["test"]] if stream.n_train else rows[:0]


def _for_choices(learned: Any, share: float, protocol: str) -> tuple[Any, Any]:
    """Of the rows to learn from those on which parameters are chosen; a holdout run tests on a fifth of them."""
    rows = learned[: max(round(share * len(learned)), LEAST)]
    cut = len(rows) * 4 // 5 if protocol == "holdout" else len(rows)
    return rows[:cut], rows[cut:]


# -- running -----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Run:
    """What one run gave: an error (% of mistakes, or mean squared error), support vectors, seconds.

    `run` is the number of the order and the seed of the model; -1 is the order on which parameters were chosen.
    """

    set: str
    algorithm: str
    point: str
    settings: str
    run: int
    seen: int
    error: float
    support: float
    seconds: float
    commit: str = ""
    date: str = ""

    @property
    def cell(self) -> tuple[str, str, str, str, int]:
        """What makes it the same run as another."""
        return self.set, self.algorithm, self.point, self.settings, self.run


@dataclasses.dataclass(frozen=True)
class Task:
    """One run to be made."""

    experiment: Experiment
    source: Source
    contender: Contender
    point: Mapping[str, Any]
    settings: Mapping[str, Any]
    number: int

    @property
    def cell(self) -> tuple[str, str, str, str, int]:
        """As `Run.cell`."""
        return self.source.name, self.contender.name, as_text(self.point), as_text(self.settings), self.number

    def __call__(self) -> list[Run]:
        model = build(self.contender.estimator, {**self.settings, **self.point}, max(self.number, 0))
        stream = load(self.source)
        X, y = stream.X, stream.y
        learned, tested = _rows(self.source, self.number)
        if self.number == CHOICE:
            learned, tested = _for_choices(learned, self.experiment.choose_on, self.experiment.protocol)
        if self.experiment.protocol == "holdout" and not len(tested):
            raise ExperimentError(f"{self.source.data} has no test part; give holdout = 0.2 or the like")
        try:
            if self.experiment.protocol == "holdout":
                points = [_holdout(model, X[learned], y[learned], X[tested], y[tested])]
            else:
                points = _online(model, X[learned], y[learned], self.experiment.checkpoints, self.contender.zero)
        except Exception as problem:
            problem.add_note(f"in {', '.join(map(str, self.cell))}")
            raise
        day = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
        return [Run(*self.cell, *point, commit(), day) for point in points]


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
    trace = evaluate.prequential(
        model if zero == "+1" else _Zero(model, zero), X, y, checkpoints=checkpoints, task=task
    )
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
    """The runs of an experiment in a CSV file, which is read first and then grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: list[Run] = []
        if path.is_file():
            with path.open(newline="", encoding="utf-8") as file:
                self.runs = [_parsed(row) for row in csv.DictReader(file)]

    def add(self, runs: Iterable[Run]) -> None:
        """Keep runs, on disk too."""
        new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow([field.name for field in dataclasses.fields(Run)])
            for run in runs:
                self.runs.append(run)
                writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in dataclasses.astuple(run)])

    def missing(self, tasks: Iterable[Task]) -> list[Task]:
        """The tasks that have no run yet."""
        done = {run.cell for run in self.runs}
        return [task for task in tasks if task.cell not in done]


def _parsed(row: dict[str, str]) -> Run:
    kinds = {"run": int, "seen": int, "error": float, "support": float, "seconds": float}
    return Run(**{name: kinds.get(name, str)(value) for name, value in row.items()})


def available(experiment: Experiment, sets: Sequence[str] = ()) -> tuple[list[Source], dict[str, str]]:
    """The sets that can be run, and why the others cannot."""
    for name in sets:
        if name not in experiment.sets:
            raise ExperimentError(f"{experiment.table} has no set {name!r}; it has {', '.join(experiment.sets)}")
    wanted = [source for source in experiment.sets.values() if not sets or source.name in sets]
    here = [source for source in wanted if datasets.is_here(source.data)]
    absent = {source.name: f"{source.data} is not in the data folder" for source in wanted if source not in here}
    return here, absent


def run(
    experiment: Experiment,
    results: Results,
    *,
    sets: Sequence[str] = (),
    algorithms: Sequence[str] = (),
    runs: int | None = None,
    jobs: int = 1,
    progress: Callable[[Run], object] | None = None,
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

    def make(tasks: Iterable[Task]) -> None:
        for made in _made(results.missing(tasks), jobs):
            results.add(made)
            if progress is not None:
                progress(made[-1])

    make(task for source, contender in pairs for task in _candidates(experiment, source, contender))
    make(
        Task(experiment, source, contender, point, settings, number)
        for source, contender in pairs
        for settings in [chosen(experiment, source, contender, results)]
        for point in contender.points(source)
        for number in range(runs or contender.runs or experiment.runs)
    )


def _made(tasks: Sequence[Task], jobs: int) -> Iterator[list[Run]]:
    if jobs == 1:
        yield from (task() for task in tasks)
    else:
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        yield from parallel(joblib.delayed(task)() for task in tasks)


def _candidates(experiment: Experiment, source: Source, contender: Contender) -> Iterator[Task]:
    choices = contender.choices(source)
    if len(choices) > 1:
        for choice in choices:
            settings = contender.resolved(source) | choice
            for point in contender.points(source)[:1]:
                yield Task(experiment, source, contender, point, settings, CHOICE)


def chosen(experiment: Experiment, source: Source, contender: Contender, results: Results) -> dict[str, Any]:
    """The settings on a set: of those in the grid the ones with the least error on the order for choices."""
    tasks = list(_candidates(experiment, source, contender))
    if not tasks:
        return contender.resolved(source) | contender.choices(source)[0]
    errors = {made.cell: made.error for made in results.runs if made.run == CHOICE}
    if missing := [task for task in tasks if task.cell not in errors]:
        raise ExperimentError(f"{contender.name} on {source.name}: {len(missing)} settings were not tried yet")
    return dict(min(tasks, key=lambda task: _or_infinite(errors[task.cell])).settings)


def _or_infinite(error: float) -> float:
    return error if math.isfinite(error) else math.inf
