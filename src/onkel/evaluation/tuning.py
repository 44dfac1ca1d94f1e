"""Tuning in one pass: many settings learn the same stream; bad ones are dropped early, and the best learns all of it.

`tune` is successive halving on the prequential loss: every setting learns the same examples, and at geometrically
spaced points of the stream only the best share of the settings continues. Nothing is learned twice; explicit features
that several settings have in common are computed once. The result is the best setting, fitted. `grid` makes the
settings, `GRIDS` has those of the papers.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import joblib
import numpy as np
import sklearn.base
from numpy.typing import ArrayLike

from onkel.datasets.stream import Task, as_matrix
from onkel.evaluation import together
from onkel.evaluation.protocols import ByScores, protocol, task_of
from onkel.evaluation.totals import accumulated, error_of, errors

Values = Mapping[str, Sequence[Any]]

LEAST_ROWS = 40  # examples; on fewer no setting is judged

_TENS = [10.0**k for k in range(-3, 4)]
_FOURS = [4.0**k for k in range(-4, 4)]

# Values to try, by the name of the parameter. `gamma` is the kernel's; in "default" it counts in units of 1 / features.
GRIDS: dict[str, Values] = {
    "default": {
        "gamma": [4.0**k for k in range(-3, 5)],
        "eta": _FOURS,
        "C": _FOURS,
        "lam": [10.0**k for k in range(-6, 0)],
    },
    "lu2016large": {
        "eta": [2.0 * 10.0**k for k in range(-4, 1)],
        "eta_unscaled": [2.0 * 10.0**k for k in range(-4, 1)],
        "C": [1.0],
    },
    "lu2017scalable": {
        "gamma": [2.0**k for k in range(-5, 6)],
        "eta": _TENS,
        "lam": _TENS,
        "C": [0.25, 0.5, 1.0, 2.0],
    },
    "nguyen2017large": {
        "gamma": [2.0**k for k in (-8, -4, -2, 0, 2, 4, 8)],
        "eta": [16.0, 8.0, 4.0, 2.0, 0.2, 0.02, 0.002, 0.0002],
        "C": [2.0**k for k in range(-5, 16, 2)],
    },
    "zhang2013online": {
        "eta": [0.01, 0.1, 1.0],
        "lam": [10.0**k for k in range(-10, 0)],
        "R": [10.0**k for k in range(6)],
    },
}


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One setting, and how far it has learned.

    Parameters
    ----------
    name : its settings in words.
    model : the learner, with what it has learned until it was dropped.
    task : "classification" or "regression".
    seen : examples learned.
    total : mistakes, or the sum of squared errors; infinite if it diverged.
    seconds : time spent predicting and learning.
    """

    name: str
    model: Any
    task: Task
    seen: int = 0
    total: float = 0.0
    seconds: float = 0.0

    @property
    def error(self) -> float:
        """Mistakes per example, or the root mean squared error."""
        return float(error_of(self.total, self.seen, self.task))


@dataclasses.dataclass(frozen=True)
class Tuned:
    """The result of `tune`.

    Parameters
    ----------
    candidates : the best first; those that were dropped early come last.
    examples : in the whole stream.
    refused : invalid settings, which were left out, by name; with the reason.
    """

    candidates: tuple[Candidate, ...]
    examples: int
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def best(self) -> Any:
        """The winner, fitted on the whole stream."""
        return self.candidates[0].model

    @property
    def cost(self) -> float:
        """Examples learned by all candidates together, in units of one run over the stream."""
        return sum(candidate.seen for candidate in self.candidates) / self.examples

    @property
    def seconds(self) -> float:
        """Time spent predicting and learning, by all candidates together."""
        return sum(candidate.seconds for candidate in self.candidates)


def tune(
    models: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    *,
    cost: float = 10.0,
    keep: float = 0.25,
    classes: ArrayLike | None = None,
    task: Task | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int, Sequence[Candidate]], object] | None = None,
) -> Tuned:
    """Race many settings over a stream, drop the worse ones early, and return the best one fitted.

    Parameters
    ----------
    models : settings by name, of one algorithm or several; they are copied, never changed. See `grid`. Invalid
        settings are left out and listed in `Tuned.refused`.
    X, y : the stream. Its rows should be in random order; `tune` does not shuffle them.
    cost : how many examples all settings together may learn, in units of one run over the stream. It decides when the
        first are dropped. If there are at most `cost` settings, all of them run to the end. None is dropped before 40
        examples, so a short stream may cost more.
    keep : the share of the settings that continues at each cut.
    classes : all labels of the stream (default: those of y).
    task : default: the task of the models.
    n_jobs : settings that learn in parallel, as threads (None: one, -1: one for each core).
    progress : called at each cut with the examples seen and the candidates that continue, the best first.

    Examples
    --------
    >>> from onkel import FOGDClassifier, datasets, tune
    >>> from onkel.evaluation.tuning import grid
    >>> stream = datasets.load("breast_cancer")
    >>> settings = grid(FOGDClassifier(), gamma=[0.001, 0.01, 0.1, 1.0], eta=[0.01, 0.1, 1.0, 10.0])
    >>> tuned = tune(settings, stream.X, stream.y)
    >>> tuned.best.t_, len(tuned.candidates), tuned.cost <= 10.5
    (569, 16, True)
    """
    y = np.asarray(y)
    X = as_matrix(X)
    if not models:
        raise ValueError("there is nothing to tune: give one setting or more")
    labels = None if classes is None else np.asarray(classes)
    refused = {name: why for name, model in models.items() if (why := _refusal(model))}
    possible = {name: model for name, model in models.items() if name not in refused}
    if not possible:
        raise ValueError(f"no setting is valid: {next(iter(refused.values()))}")
    alive = [Candidate(name, sklearn.base.clone(model), task or task_of(model)) for name, model in possible.items()]
    if alive[0].task == "classification" and labels is None:
        labels = np.unique(y)
    dropped: list[Candidate] = []
    side_by_side = joblib.Parallel(n_jobs, prefer="threads")
    begin = 0
    for share, left in eliminations(len(alive), cost, keep, LEAST_ROWS / len(y)):
        end = max(begin + 1, round(share * len(y))) if share < 1 else len(y)
        stretch = X[begin:end], y[begin:end], labels
        families = together.families([one.model for one in alive], *stretch)
        learned = side_by_side(joblib.delayed(_further)([alive[i] for i in family], *stretch) for family in families)
        places = itertools.chain.from_iterable(families)
        judged = dict(zip(places, itertools.chain.from_iterable(learned), strict=True))
        ranking = sorted((judged[place] for place in sorted(judged)), key=lambda one: one.total)  # if equal, the first
        alive = [one for one in ranking[:left] if math.isfinite(one.total)]
        dropped = ranking[len(alive) :] + dropped
        if not alive:
            raise ValueError("every setting diverged: try smaller steps, or scale the features")
        if progress is not None:
            progress(end, alive)
        begin = end
    return Tuned((*alive, *dropped), len(y), refused)


def _further(family: list[Candidate], X: Any, y: Any, classes: Any) -> list[Candidate]:
    """The candidates after they have learned the next part of the stream; several must have the same features."""
    clock = time.perf_counter()
    if len(family) > 1:
        scores = together.learn([one.model for one in family], X, y, classes)
        asked = [ByScores(one.model, classes) for one in family]
        said = [None if made is None else one.answers(made) for one, made in zip(asked, scores, strict=True)]
    else:
        try:
            said = [protocol(family[0].model, classes).learn(X, y)]
        except FloatingPointError:
            said = [None]
    totals = [
        math.inf if answers is None else accumulated(one.total, errors(answers.predicted, y, one.task))
        for one, answers in zip(family, said, strict=True)
    ]
    spent = (time.perf_counter() - clock) / len(family)
    return [
        dataclasses.replace(one, seen=one.seen + len(y), total=total, seconds=one.seconds + spent)
        for one, total in zip(family, totals, strict=True)
    ]


def eliminations(
    candidates: int, cost: float = 10.0, keep: float = 0.25, least: float = 0.0
) -> list[tuple[float, int]]:
    """When candidates are dropped: pairs of a share of the stream and the number of candidates left after it.

    The last pair is (1, 1). The shares grow geometrically to 1. The first is the largest that the cost allows, but at
    least `least`.
    """
    if not 0 < keep < 1:
        raise ValueError(f"keep must lie between 0 and 1, got {keep}")
    if candidates <= cost or least >= 1:
        return [(1.0, 1)]
    left = [candidates]
    while left[-1] > 1:
        left.append(min(math.ceil(left[-1] * keep), left[-1] - 1))

    def shares(first: float) -> list[float]:
        rest = len(left) - 2
        return [first ** (1 - k / rest) for k in range(rest + 1)] if rest else [1.0]

    def total(first: float) -> float:
        ends = shares(first)
        return sum(n * (b - a) for n, a, b in zip(left, [0.0, *ends], ends, strict=False))

    low, high = 1e-9, 1.0
    if total(low) > cost:
        least = math.ceil(total(low))
        raise ValueError(f"{candidates} settings cannot be tuned at the cost of {cost} runs: allow {least} or more")
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if total(middle) <= cost else (low, middle)
    return list(zip(shares(max(low, least)), left[1:], strict=True))


def _refusal(model: Any) -> str:
    """Why these settings are invalid; empty if they are valid, or if the learner is not one of onkel."""
    try:
        getattr(model, "_check_params", bool)()
    except (ValueError, TypeError) as problem:
        return str(problem)
    return ""


def parameter(name: str) -> str:
    """The parameter that a short name stands for: `gamma` is the kernel's."""
    return "kernel__gamma" if name == "gamma" else name


def grid(model: Any, **values: Sequence[Any]) -> dict[str, Any]:
    """Every combination of the values of parameters, named by them; `gamma` is the one of the kernel."""
    made = {}
    for combination in itertools.product(*values.values()):
        setting = dict(zip(values, combination, strict=True))
        name = " ".join([_name(model), *(f"{key}={_text(value)}" for key, value in setting.items())])
        params = {parameter(key): value for key, value in setting.items()}
        made[name] = sklearn.base.clone(model).set_params(**params)
    return made


def values(model: Any, name: str = "default", features: int = 1) -> dict[str, Sequence[Any]]:
    """The values of a grid of `GRIDS` for the parameters that this model has; `features` counts those of the stream.

    A parameter is left out if the model refuses all its values, as for one without effect under its other settings.
    """
    if name not in GRIDS:
        raise ValueError(f"there is no grid {name!r}; there are {', '.join(GRIDS)}")
    known = set(model.get_params(deep=False))
    chosen: dict[str, Sequence[Any]] = {key: list(tried) for key, tried in GRIDS[name].items() if key in known}
    if "eta_unscaled" in chosen:  # the papers' step for random features
        chosen.pop("eta")
    if "kernel" in known and "gamma" in GRIDS[name]:
        unit = features if name == "default" else 1
        chosen = {"gamma": [gamma / unit for gamma in GRIDS[name]["gamma"]], **chosen}
    return {key: tried for key, tried in chosen.items() if not all(map(_refusal, grid(model, **{key: tried}).values()))}


def _name(model: Any) -> str:
    return type(model).__name__.removesuffix("Classifier").removesuffix("Regressor")


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
