"""onkel tune: tries many settings on one stream in one pass; bad ones are dropped early, and the best one is kept."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from onkel.cli import models, output, source
from onkel.cli.progress import StreamProgress
from onkel.cli.show import Console, finite, table
from onkel.cli.words import Problem, above_zero, jobs, names, positive, whole
from onkel.core.wording import counted
from onkel.datasets.stream import Stream
from onkel.datasets.tables import Schema
from onkel.evaluation import report, tuning
from onkel.evaluation.follower import Follower
from onkel.evaluation.results import settings
from onkel.evaluation.scale import scales_for
from onkel.evaluation.totals import trivial
from onkel.evaluation.tuning import Candidate, Tuned

SHOWN = 10  # candidates


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.description = (
        "All settings learn the same examples; after parts of the stream that grow geometrically, only the best "
        "quarter continues. At the cost of a few runs the winner is found and has learned the whole stream."
    )
    parser.epilog = f"Grids: {', '.join(tuning.GRIDS)} (papers by their keys)."
    parser.set_defaults(run=_tune)
    source.add(parser, scale="standardise dense features and real targets")
    add = parser.add_argument_group("settings").add_argument
    add("--algorithms", type=names, default=["FOGD"], metavar="A,B", help="which ones compete (default FOGD)")
    add("--grid", choices=tuning.GRIDS, default="default", metavar="NAME", help="values to try (default: default)")
    add(
        "--try",
        dest="tried",
        type=_values,
        action="append",
        default=[],
        metavar="NAME=A,B",
        help="try these values of a parameter instead, such as eta=0.1,1; may be repeated",
    )
    add("--set", type=models.setting, action="append", default=[], metavar="NAME=VALUE", help="fix a parameter")
    add("--cost", type=above_zero, default=10.0, metavar="RUNS", help="total work, in runs over the data (default 10)")
    add("--limit", type=positive, metavar="N", help="learn only the first N examples")
    add("--seed", type=whole, default=0, metavar="S", help="of the order and of random choices (default 0)")
    add("--jobs", type=jobs, metavar="N", help="settings side by side; -1: one for each core (default 1)")
    add = parser.add_argument_group("output").add_argument
    add("--save", type=Path, metavar="MODEL", help="write the winner, ready to predict and to go on")
    add("--json", action="store_true", help="results as JSON")
    add("--quiet", action="store_true", help="no progress")


def _values(text: str) -> tuple[str, list[Any]]:
    name, equals, values = text.partition("=")
    if not name.strip() or not equals or not values.strip():
        raise argparse.ArgumentTypeError(f"must be NAME=A,B,..., got {text!r}")
    return name.strip(), [models.literal(value.strip()) for value in values.split(",")]


def _tune(arguments: argparse.Namespace) -> int:
    output.check(arguments.stream, model=arguments.save)
    if arguments.stream == "demo":
        raise Problem("tune one stream at a time; demo is four")
    columns = source.schema(arguments)
    (stream,) = source.streams(arguments, scaled=False, columns=columns)
    X, y, unit = stream.X, stream.y, 1.0
    scale, goal = (None, None) if arguments.scale == "none" else scales_for(X, columns, stream.task)
    if scale is not None:
        X = X.astype(float)
        scale.learn(X)
        X = scale.apply(X)
    if goal is not None:
        goal.follow(y)
        unit = float(goal.deviation[0]) or 1.0  # a target that never varies has none
        y = goal.apply(y[:, None])[:, 0]
    rows = stream.order(0, seed=arguments.seed)[: arguments.limit]
    candidates = _candidates(arguments, stream, columns)
    progress = StreamProgress(arguments.quiet)

    def show(seen: int, left: Sequence[Candidate]) -> None:
        best = _measured(left[0], unit)
        progress.tell(seen / len(rows), f"{len(left)} of {len(candidates)} settings left", _error(best), best.name)

    try:
        with progress:
            tuned = tuning.tune(
                candidates,
                X[rows],
                y[rows],
                cost=arguments.cost,
                classes=stream.classes,
                n_jobs=arguments.jobs,
                progress=show,
            )
    except ValueError as problem:
        raise Problem(f"{stream.name}: {problem}") from None
    tuned = dataclasses.replace(tuned, candidates=tuple(_measured(one, unit) for one in tuned.candidates))
    if arguments.save is not None:  # before anything is printed: the reader may close the pipe
        winner = tuned.candidates[0]
        follower = Follower(winner.model, scale, goal)
        follower.seen, follower.total, follower.seconds = winner.seen, winner.total, winner.seconds
        follower.schema = columns
        follower.begin(stream.name)
        output.write_model(follower, arguments.save)
        output.written("model", arguments.save, arguments)
    baseline = trivial(stream.y[rows], stream.task)
    if arguments.json:
        print(json.dumps(_as_data(tuned, stream, baseline), indent=1))
    else:
        _print(tuned, stream, baseline)
    return 0


def _candidates(arguments: argparse.Namespace, stream: Stream, columns: Schema) -> dict[str, Any]:
    """All settings to try, by name."""
    made: dict[str, Any] = {}
    fixed, tried, used = dict(arguments.set), dict(arguments.tried), set()
    for name in set(fixed) & set(tried):
        raise Problem(f"{name} is given to both --set and --try; omit --set {name} or --try {name}")
    for entry in models.algorithms(arguments.algorithms):
        model = models.make(entry.title, stream.task, {"random_state": arguments.seed} | fixed, columns)
        known = {"gamma", *model.get_params(deep=False)}
        variant = {key: [value] for key, value in entry.settings.items()}
        features = len(columns.features or ()) or stream.features
        values = variant | tuning.values(model, arguments.grid, features) | tried
        used |= known & set(tried)
        made |= tuning.grid(model, **{key: value for key, value in values.items() if key in known - set(fixed)})
    for name in set(tried) - used:
        raise Problem(f"there is no parameter {name!r} to try; see: onkel algorithms {arguments.algorithms[0]}")
    return made


def _measured(candidate: Candidate, unit: float) -> Candidate:
    """Its squared errors in the units of the target."""
    return dataclasses.replace(candidate, total=candidate.total * unit**2)


def _error(candidate: Candidate) -> str:
    return report.show_error(candidate.task)(candidate.error)


def _print(tuned: Tuned, stream: Stream, baseline: float) -> None:
    console = Console()
    console.print(Text.assemble((stream.name, "bold"), f": {stream.description}"))
    words = f"{counted(len(tuned.candidates), 'setting')} over {counted(tuned.examples, 'example')}"
    cost = f"at the cost of {tuned.cost:.1f} runs ({tuned.seconds:.1f} s)"
    console.print(Text(f"{words}, {cost}", style="dim"))
    if tuned.refused:
        why = next(iter(tuned.refused.values()))
        console.print(Text(f"{counted(len(tuned.refused), 'invalid setting')} left out, such as: {why}", style="dim"))
    rows = table("setting", report.measure(stream.task), "examples")
    for candidate in tuned.candidates[:SHOWN]:
        rows.add_row(Text(candidate.name), _error(candidate), f"{candidate.seen:,}")
    console.print(rows)
    if len(tuned.candidates) > SHOWN:
        console.print(f"and {len(tuned.candidates) - SHOWN} more")
    console.print(Text(report.compared(stream.task, baseline), style="dim"))


def _as_data(tuned: Tuned, stream: Stream, baseline: float) -> dict[str, Any]:
    return {
        "stream": stream.name,
        "task": stream.task,
        "measure": report.measure(stream.task),
        "examples": tuned.examples,
        "trivial": baseline,
        "cost": tuned.cost,
        "seconds": tuned.seconds,
        "refused": dict(tuned.refused),
        "candidates": [
            {
                "name": one.name,
                "settings": settings(one.model),
                "error": finite(one.error),
                "examples": one.seen,
                "seconds": one.seconds,
            }
            for one in tuned.candidates
        ],
    }
