"""Tables and figures of papers run again: a TOML file with the protocol in, ours beside the printed numbers out.

`papers/<bibkey>/<table>.toml` says what is run, `papers/<bibkey>/published.csv` what was printed. Every run is one row of
a CSV file that grows while the experiment runs, so that one that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import functools
import html
import itertools
import json
import math
import os
import statistics
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse
from sklearn.svm import SVC

from onkel import datasets, evaluate, plots, report
from onkel.algorithms import estimators
from onkel.part import from_plain

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
CHOICE = -1  # the number of the order on which parameters are chosen, which is not among those reported


class ExperimentError(ValueError):
    """An experiment that cannot be run; the message says what to mend."""


class Absent(ExperimentError):
    """A set that is not on this machine."""


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
    values : numbers that settings refer to as "$name".
    differs : in what it is not the paper's set; its cells then do not count.
    """

    name: str
    data: str
    scale: str = "raw"
    part: str = "all"
    holdout: float | None = None
    positive: int | None = None
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
    skip : sets it is not run on, and why.
    ties : a score of exactly 0 is a mistake whatever the label.
    runs : fewer runs than the table has, or more.
    """

    name: str
    estimator: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    sweep: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    on: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    skip: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ties: bool = False
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
    choose_on : share of the rows on which those of grids are chosen.
    metric : the figure of merit, which choices are made by.
    sets, contenders : columns and rows.
    figure : for a figure: `horizontal` ("seen", "seconds", "support" or the swept parameter), `vertical` (metrics), `log`.
    reasons : "set/algorithm" -> why ours is worse than what was printed.
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
        known = f"; there are {', '.join(names())}" if path.suffix == ".toml" and str(name) != str(path) else ""
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
        defaults = {"protocol": "online", "runs": 1, "chosen": "", "choose_on": 1.0, "metric": ""}
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
    for contender in experiment.contenders.values():
        for label, given in (("on", contender.on), ("skip", contender.skip)):
            for name in given:
                if name not in experiment.sets:
                    raise ExperimentError(f"{path}: {contender.name}.{label} names {name!r}, which is none of the sets")
        for source in experiment.sets.values():
            if source.name in contender.skip:
                continue
            for point, choice in itertools.product(contender.points(source), contender.choices(source)):
                try:
                    build(contender.estimator, contender.resolved(source) | choice | point, 0)
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
    """A model from its class and plain settings; parts are tables such as {part = "Gaussian", gamma = 0.5}."""
    values = {name: from_plain(value) for name, value in settings.items()}
    if estimator == "SVC":
        return SVC(gamma=values.pop("kernel").gamma, **values)
    if estimator not in estimators():
        raise ValueError(f"there is no estimator {estimator!r}")
    return estimators()[estimator](random_state=seed, **values)


# -- data --------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=2)
def load(source: str, scale: str) -> tuple[Any, Any, int | None, Any]:
    """Rows, targets, the size of the official training part, and stored orders, of a set in the folder ONKEL_DATA."""
    home = os.environ.get("ONKEL_DATA")
    path = Path(home or "") / f"{source}.npz"
    if not home or not path.is_file():
        raise Absent(f"{source} is not here" + ("" if home else "; ONKEL_DATA names the folder with the sets"))
    stream = datasets.read(path)
    with np.load(path, allow_pickle=False) as stored:
        n_train = int(stored["n_train"]) if "n_train" in stored else None
        orders = np.array(stored["perms"]) if "perms" in stored else None
    X, y = stream.X.astype(np.float64), stream.y
    if stream.task == "regression" or y.dtype.kind == "f":
        y = y.astype(np.float64)
    if scale not in ("raw", "[0,1]", "[-1,1]"):
        raise ExperimentError(f"scale must be raw, [0,1] or [-1,1], got {scale!r}")
    if scale != "raw":
        X = _stretched(X) if scale == "[0,1]" else 2 * _stretched(X) - 1
        y = _stretched(y) if y.dtype.kind == "f" else y
    return X, y, n_train, orders


def _stretched(values: Any) -> Any:
    """Columns to [0, 1] over the whole set; a constant one to 0."""
    low, high = values.min(axis=0), values.max(axis=0)
    return (values - low) / np.where(high > low, high - low, 1.0)


def _rows(source: Source, number: int) -> tuple[Any, Any]:
    """Row numbers to learn from, in order `number`, and those to test on."""
    _, y, n_train, orders = load(source.data, source.scale)
    parts = {"all": slice(None), "train": slice(n_train), "test": slice(n_train, None)}
    rows = np.arange(len(y))[parts[source.part]]
    if orders is not None and len(rows) == len(y) and 0 <= number < len(orders):
        order = orders[number]
    else:
        order = np.random.default_rng([0, number % 2**32]).permutation(len(rows))
    if source.holdout is not None:
        cut = len(order) - round(source.holdout * len(order))
        return rows[order[:cut]], rows[order[cut:]]
    rest = np.arange(len(y))[parts["test"]] if n_train is not None else rows[:0]
    return rows[order], rest


def _for_choices(learned: Any, share: float, protocol: str) -> tuple[Any, Any]:
    """Of the rows to learn from those on which parameters are chosen; a holdout run keeps a fifth of them for the test."""
    rows = learned[: round(share * len(learned))]
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
        return self.source.name, self.contender.name, _text(self.point), _text(self.settings), self.number

    def __call__(self) -> list[Run]:
        model = build(self.contender.estimator, {**self.settings, **self.point}, max(self.number, 0))
        X, y, _, _ = load(self.source.data, self.source.scale)
        if self.source.positive is not None:
            y = np.where(y == self.source.positive, 1, -1)
        learned, tested = _rows(self.source, self.number)
        if self.number == CHOICE:
            learned, tested = _for_choices(learned, self.experiment.choose_on, self.experiment.protocol)
        if self.experiment.protocol == "holdout":
            if not len(tested):
                raise ExperimentError(f"{self.source.data} has no test part; give holdout = 0.2 or the like")
            points = [_holdout(model, X[learned], y[learned], X[tested], y[tested])]
        else:
            points = _online(model, X[learned], y[learned], self.experiment.checkpoints, ties=self.contender.ties)
        day = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
        return [Run(*self.cell, *point, commit(), day) for point in points]


Point = tuple[int, float, float, float]  # examples seen, error, support, seconds


class _TiesAreMistakes:
    """A binary classifier whose scores of exactly 0 are turned to the wrong side."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def learn(self, X: Any, y: Any, classes: Any) -> Any:
        scores = self.model.learn(X, y, classes=classes)
        return np.where(scores == 0, np.where(y == classes[1], -1.0, 1.0), scores)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def _online(model: Any, X: Any, y: Any, checkpoints: int, *, ties: bool) -> list[Point]:
    task: datasets.Task = "classification" if hasattr(model, "decision_function") else "regression"
    trace = evaluate.prequential(_TiesAreMistakes(model) if ties else model, X, y, checkpoints=checkpoints, task=task)
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


def _text(settings: Mapping[str, Any]) -> str:
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
    here, absent = [], {}
    for source in experiment.sets.values():
        if sets and source.name not in sets:
            continue
        try:
            load(source.data, source.scale)
            here.append(source)
        except Absent as problem:
            absent[source.name] = str(problem)
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
    pairs = [(s, c) for s in here for c in rows if s.name not in c.skip]

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


# -- ours beside theirs ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cell:
    """One number of a table, printed and ours.

    Parameters
    ----------
    set, algorithm, metric : which.
    theirs, deviation : as printed; "" where nothing is, or it is lost.
    note : of the printed number.
    ours : one value per run; none if it was not run.
    counts : whether it is one of those by which the reproduction is judged.
    why : where it was not run or does not count, or is worse: the reason.
    """

    set: str
    algorithm: str
    metric: str
    theirs: str
    deviation: str
    note: str
    ours: tuple[float, ...]
    counts: bool
    why: str

    @property
    def mean(self) -> float:
        return statistics.fmean(self.ours)

    @property
    def difference(self) -> float | None:
        """Ours minus theirs in printed standard deviations, as far as rounding of the printed mean cannot explain it.

        A deviation printed as 0 is taken for half a unit of its last digit.
        """
        if not self.ours or not self.theirs or not self.deviation:
            return None
        gap = self.mean - float(self.theirs)
        beyond = max(0.0, abs(gap) - _half_unit(self.theirs))
        if not beyond:
            return 0.0
        return math.copysign(beyond, gap) / (float(self.deviation) or _half_unit(self.deviation))

    @property
    def verdict(self) -> str:
        """ "within 1", "within 2", "better" or "worse"; "" if there is nothing to compare."""
        less = METRICS[self.metric][1] if self.metric in METRICS else None
        if self.difference is None or less is None:
            return ""
        if abs(self.difference) <= 2:
            return "within 1" if abs(self.difference) <= 1 else "within 2"
        return "better" if (self.difference < 0) == less else "worse"


def _half_unit(number: str) -> float:
    """Half a unit of the last printed digit."""
    exponent = Decimal(number).as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent)


def compare(experiment: Experiment, results: Results, *, runs: int | None = None) -> list[Cell]:
    """Every printed number of a table with ours, in the order of the print."""
    here, absent = available(experiment)
    ours: dict[tuple[str, str], list[Run]] = {}
    for source, contender in itertools.product(here, experiment.contenders.values()):
        if source.name in contender.skip:
            continue
        try:
            settings = _text(chosen(experiment, source, contender, results))
        except ExperimentError:
            continue
        made = [r for r in results.runs if r.cell[:4] == (source.name, contender.name, "{}", settings) and r.run >= 0]
        ours[source.name, contender.name] = sorted(made, key=lambda r: r.run)[:runs]
    return [_cell(experiment, row, ours, absent) for row in experiment.published]


def _cell(
    experiment: Experiment,
    row: Mapping[str, str],
    ours: Mapping[tuple[str, str], Sequence[Run]],
    absent: Mapping[str, str],
) -> Cell:
    place = row["set"], row["algorithm"]
    source, contender = experiment.sets.get(row["set"]), experiment.contenders.get(row["algorithm"])
    value, less = METRICS.get(row["metric"], (None, None))
    values = tuple(value(made) for made in ours.get(place, ())) if value else ()
    judged = less is not None and bool(row["mean"]) and bool(row["std"])
    if source is None or row["set"] in absent:
        why = absent.get(row["set"], "the set is not here")
    elif contender is None:
        why = "not run: the algorithm is not in the table's file"
    elif row["set"] in contender.skip:
        why = f"not run: {contender.skip[row['set']]}"
    elif not values and less is not None:
        why = "not run yet"
    else:
        why = source.differs
    counts = judged and source is not None and row["set"] not in absent and not source.differs
    cell = Cell(*place, row["metric"], row["mean"], row["std"], row["note"], values, counts, why)
    if cell.verdict == "worse":
        reason = experiment.reasons.get(f"{row['set']}/{row['algorithm']}", "")
        cell = dataclasses.replace(cell, why="; ".join(filter(None, (cell.why, reason))))
    return cell


# -- what comes out ----------------------------------------------------------------------------------------


def markdown(experiment: Experiment, results: Results, *, runs: int | None = None) -> str:
    """The comparison as a Markdown page."""
    cells = compare(experiment, results, runs=runs)
    lines = [f"# {experiment.key}/{experiment.table}: {experiment.title}", ""]
    lines += [experiment.chosen.strip(), ""] if experiment.chosen else []
    for name in dict.fromkeys(cell.set for cell in cells):
        lines += _set_lines(experiment, [cell for cell in cells if cell.set == name], name)
    if experiment.figure:
        lines += [f"![{title}]({file})\n" for file, title, _ in drawings(experiment, results)]
    lines += ["## Settings", "", *_settings_lines(experiment, results), ""]
    lines += ["## Made on", "", *(f"- {name}: {value}" for name, value in _environment(results).items()), ""]
    return "\n".join(lines)


def _set_lines(experiment: Experiment, cells: Sequence[Cell], name: str) -> list[str]:
    run_at_all = any(cell.ours for cell in cells)
    if not run_at_all:
        return [f"## {name}", "", f"Not run: {next((c.why for c in cells if c.why), 'nothing to compare')}.", ""]
    source = experiment.sets[name]
    differs = [f"Not the paper's set: {source.differs}. Its cells do not count.", ""] if source.differs else []
    lines = [
        *(f"## {name}", "", f"Data: {source.data}, {source.scale}, {source.part} rows.", "", *differs),
        "| algorithm | metric | printed | ours | runs | difference in printed deviations | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for cell in cells:
        if cell.metric in METRICS:
            words = "; ".join(filter(None, (cell.verdict, "" if cell.why == source.differs else cell.why, cell.note)))
            lines.append(
                f"| {cell.algorithm} | {cell.metric} | {_printed(cell)} | {_ours(cell)} | {len(cell.ours) or ''} "
                f"| {_difference(cell)} | {words} |"
            )
    return [*lines, ""]


def _printed(cell: Cell) -> str:
    return f"{cell.theirs}±{cell.deviation}" if cell.deviation else cell.theirs or "lost"


def _ours(cell: Cell) -> str:
    if not cell.ours:
        return ""
    digits = max(2, -int(Decimal(cell.theirs or "0.00").as_tuple().exponent) + 1)
    mean = f"{cell.mean:.{digits}f}" if cell.metric not in ("support",) else f"{cell.mean:.0f}"
    return f"{mean}±{statistics.stdev(cell.ours):.{digits}f}" if len(cell.ours) > 1 else mean


def _difference(cell: Cell) -> str:
    compared = METRICS.get(cell.metric, (None, None))[1] is not None
    return f"{cell.difference:+.1f}" if compared and cell.difference is not None else ""


def _settings_lines(experiment: Experiment, results: Results) -> list[str]:
    lines = ["| set | algorithm | settings |", "| --- | --- | --- |"]
    seen = dict.fromkeys((r.set, r.algorithm, r.settings) for r in results.runs if r.run >= 0)
    for name, algorithm, text in seen:
        contender = experiment.contenders.get(algorithm)
        source = experiment.sets.get(name)
        tried = len(contender.choices(source)) if contender and source else 1
        how = f" (the best of {tried} on an order that is not reported)" if tried > 1 else ""
        lines.append(f"| {name} | {algorithm} | `{text}`{how} |")
    return lines


def _environment(results: Results) -> dict[str, str]:
    commits = ", ".join(sorted({made.commit for made in results.runs})) or commit()
    days = sorted({made.date for made in results.runs})
    machine = report.environment()
    machine["date"] = f"{days[0]} to {days[-1]}" if days else machine["date"]
    return machine | {"commit": commits, "seeds": "run i: order i (stored, or drawn from seed i), random_state i"}


def page(experiment: Experiment, results: Results, *, runs: int | None = None) -> str:
    """The comparison as one self-contained HTML page."""
    cells = [cell for cell in compare(experiment, results, runs=runs) if cell.metric in METRICS]
    rows = []
    for cell in cells:
        shown = (cell.set, cell.algorithm, cell.metric, _printed(cell), _ours(cell), len(cell.ours) or "")
        texts = [*map(str, shown), _difference(cell), "; ".join(filter(None, (cell.verdict, cell.why, cell.note)))]
        mark = f' class="{cell.verdict.split()[0]}"' if cell.verdict else ""
        rows.append(f"<tr{mark}>" + "".join(f"<td>{html.escape(text)}</td>" for text in texts) + "</tr>")
    heads = ("set", "algorithm", "metric", "printed", "ours", "runs", "deviations", "")
    table = f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>\n" + "\n".join(rows) + "</table>"
    figures = "\n".join(f"<figure>{svg}</figure>" for _, _, svg in drawings(experiment, results))
    made = "".join(f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in _environment(results).items())
    title = html.escape(f"{experiment.key}/{experiment.table}: {experiment.title}")
    style = (
        ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
        "table{border-collapse:collapse}td,th{padding:.2rem .7rem;text-align:left;border-bottom:1px solid #8884}"
        ".worse td:nth-child(7){color:#c93a3a}.better td:nth-child(7){color:#2b8a4b}dt{float:left;clear:left;width:6rem}"
        "figure{margin:1rem 0;max-width:50rem}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{style}</style><h1>{title}</h1><p>{html.escape(experiment.chosen)}</p>\n"
        f"{table if rows else ''}\n{figures}\n<h2>Made on</h2><dl>{made}</dl></html>\n"
    )


def drawings(experiment: Experiment, results: Results) -> list[tuple[str, str, str]]:
    """The figure as SVG pictures, one for each set and quantity: file name, title, picture."""
    if not experiment.figure:
        return []
    horizontal, found = experiment.figure["horizontal"], []
    for name, metric in itertools.product(experiment.sets, experiment.figure["vertical"]):
        lines = []
        for number, contender in enumerate(experiment.contenders.values()):
            points = _curve(experiment, results, name, contender, metric)
            if points:
                x, y = np.array(points).T
                lines.append(plots.Line(contender.name, number, x, y))
        if lines:
            title = f"{metric.replace('_', ' ')} on {name}"
            log = bool(experiment.figure.get("log"))
            low = min(float(line.y.min()) for line in lines)
            high = max(float(line.y.max()) for line in lines)
            vertical = plots.axis(low - 0.05 * (high - low), high) if low > 0.3 * high else None
            svg = plots.figure(lines, title=title, horizontal=horizontal, vertical=vertical, log=log)
            found.append((f"{experiment.table}-{name}-{metric}.svg", title, svg))
    return found


def _curve(
    experiment: Experiment, results: Results, name: str, contender: Contender, metric: str
) -> list[tuple[float, float]]:
    """Points of a line, each the mean over the runs."""
    horizontal, value = experiment.figure["horizontal"], METRICS[metric][0]
    groups: dict[Any, list[Run]] = {}
    for made in results.runs:
        if made.set == name and made.algorithm == contender.name and made.run >= 0:
            groups.setdefault((made.point, made.seen if horizontal == "seen" else 0), []).append(made)
    points = []
    for (point, _), runs in groups.items():
        if horizontal in ("seen", "seconds", "support"):
            x = statistics.fmean(getattr(made, horizontal) for made in runs)
        else:
            x = float(json.loads(point)[horizontal])
        points.append((x, statistics.fmean(value(made) for made in runs)))
    return sorted(points)


def write(experiment: Experiment, results: Results, *, runs: int | None = None) -> list[Path]:
    """Write the comparison beside the results, as Markdown, CSV and HTML, and figures as SVG."""
    home = results.path.parent
    files = {
        f"{experiment.table}.md": markdown(experiment, results, runs=runs),
        f"{experiment.table}.html": page(experiment, results, runs=runs),
        f"{experiment.table}-compared.csv": _csv(compare(experiment, results, runs=runs)),
    } | {file: svg for file, _, svg in drawings(experiment, results)}
    if not experiment.published:
        del files[f"{experiment.table}-compared.csv"]
    for name, text in files.items():
        (home / name).write_text(text, encoding="utf-8")
    return [home / name for name in files]


def _csv(cells: Iterable[Cell]) -> str:
    lines = [["set", "algorithm", "metric", "printed", "deviation", "ours", "runs", "difference", "verdict", "counts"]]
    for cell in cells:
        ours = f"{cell.mean:.6g}" if cell.ours else ""
        gap = "" if cell.difference is None else f"{cell.difference:.2f}"
        middle = [cell.theirs, cell.deviation, ours, str(len(cell.ours)), gap]
        lines.append([cell.set, cell.algorithm, cell.metric, *middle, cell.verdict, str(cell.counts)])
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()
