"""Tables and figures of papers run again, from a TOML file with the protocol.

`papers/<bibkey>/<table>.toml` says what is run, `papers/<bibkey>/published.csv` what was printed. `reproduction` makes
the runs, `comparison` sets them beside the printed numbers.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from onkel.algorithms import estimators
from onkel.core.part import from_plain
from onkel.datasets.stream import SCALES, Scale
from onkel.faces.estimator import Estimator
from onkel.kernels import Gaussian

PRINTED = ("table", "set", "algorithm", "metric", "mean", "std", "note")
# metric -> (its value in one run, whether less is better; None: never compared)
METRICS: dict[str, tuple[Callable[[Trial], float], bool | None]] = {
    "mistakes": (lambda trial: trial.error, True),
    "accuracy": (lambda trial: 100 - trial.error, False),
    "squared_loss": (lambda trial: trial.error, True),
    "rmse": (lambda trial: math.sqrt(trial.error), True),
    "support": (lambda trial: trial.support, True),
    "sparsity": (lambda trial: 100 * (1 - trial.support / trial.seen), False),
    "seconds": (lambda trial: trial.seconds, None),
    "train_seconds": (lambda trial: trial.seconds, None),
    "minutes": (lambda trial: trial.seconds / 60, None),
}
PROTOCOLS = ("online", "holdout")


class ExperimentError(ValueError):
    """An experiment that cannot be run; the message says what to mend."""


@dataclasses.dataclass(frozen=True)
class Dataset:
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
    differs : how it differs from the paper's set, if it does; its cells then do not count.
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

    def resolved(self, dataset: Dataset) -> dict[str, Any]:
        """Its settings on a set, references replaced."""
        return {k: _refer(v, dataset) for k, v in {**self.settings, **self.on.get(dataset.name, {})}.items()}

    def points(self, dataset: Dataset) -> list[dict[str, Any]]:
        """The swept values, one dictionary each; without a sweep a single empty one."""
        return _combinations({k: _refer(v, dataset) for k, v in self.sweep.items()})

    def choices(self, dataset: Dataset) -> list[dict[str, Any]]:
        """What is to be chosen from on a set; parameters that are given for the set are not chosen."""
        given = self.on.get(dataset.name, {})
        return _combinations({k: _refer(v, dataset) for k, v in self.grid.items() if k not in given})


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
    sets: Mapping[str, Dataset]
    contenders: Mapping[str, Contender]
    figure: Mapping[str, Any]
    reasons: Mapping[str, str]
    published: tuple[Mapping[str, str], ...]

    @property
    def checkpoints(self) -> int:
        """How many points of each run are written down."""
        return 20 if self.figure.get("horizontal") == "seen" else 1


@dataclasses.dataclass(frozen=True)
class Trial:
    """What a run gave after so many examples: error (% of mistakes, or mean squared error), support vectors, seconds.

    `run` is the number of the order, and the seed of the model; -1 is the order on which parameters were chosen.
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
    def identity(self) -> tuple[str, str, str, str, int]:
        """What makes it the same trial as another."""
        return self.set, self.algorithm, self.point, self.settings, self.run


def _refer(value: Any, dataset: Dataset) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in dataset.values:
            raise ExperimentError(f"set {dataset.name!r} has no value {value[1:]!r}; add it under values")
        return dataset.values[value[1:]]
    if isinstance(value, Mapping):
        return {k: _refer(v, dataset) for k, v in value.items()}
    if isinstance(value, list):
        return [_refer(v, dataset) for v in value]
    return value


def _combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def folder() -> Path:
    """Where the papers are: the folder `papers` here, or in the checkout that the package is part of."""
    for place in (Path.cwd() / "papers", Path(__file__).parents[3] / "papers"):
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
        sets = {name: Dataset(name, **fields) for name, fields in content.pop("sets", {}).items()}
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
        raise ExperimentError(f"{path}: {problem}; see onkel/papers/experiment.py for the fields") from None
    _check(path, experiment)
    return experiment


def _check(path: Path, experiment: Experiment) -> None:
    if experiment.protocol not in PROTOCOLS:
        raise ExperimentError(f"{path}: protocol must be one of {PROTOCOLS}, got {experiment.protocol!r}")
    if experiment.metric not in METRICS:
        raise ExperimentError(f"{path}: metric must be one of {', '.join(METRICS)}, got {experiment.metric!r}")
    for dataset in experiment.sets.values():
        if dataset.scale not in ("raw", *SCALES):
            raise ExperimentError(
                f"{path}: scale of {dataset.name} must be raw, {', '.join(SCALES)}, got {dataset.scale!r}"
            )
    for contender in experiment.contenders.values():
        if contender.zero not in ("+1", "-1", "wrong"):
            raise ExperimentError(
                f'{path}: {contender.name}.zero must be "+1", "-1" or "wrong", got {contender.zero!r}'
            )
        for name in contender.on:
            if name not in experiment.sets:
                raise ExperimentError(f"{path}: {contender.name}.on names {name!r}, which is none of the sets")
        for dataset in experiment.sets.values():
            for point, choice in itertools.product(contender.points(dataset), contender.choices(dataset)):
                try:
                    model = build(contender.estimator, contender.resolved(dataset) | choice | point, 0)
                    if isinstance(model, Estimator) and model.online:
                        model.parts(Gaussian(1.0))  # estimators check values when they begin
                except (TypeError, ValueError) as problem:
                    raise ExperimentError(f"{path}: {contender.name} on {dataset.name}: {problem}") from None


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
        from sklearn.svm import SVC  # slow to import

        return SVC(gamma=values.pop("kernel").gamma, **values)
    if estimator not in estimators():
        raise ValueError(f"there is no estimator {estimator!r}")
    return estimators()[estimator](random_state=seed, **values)


def _value(value: Any, seed: int) -> Any:
    if isinstance(value, Mapping) and "estimator" in value:
        inside = dict(value)
        return build(inside.pop("estimator"), inside, seed)
    return from_plain(value)
