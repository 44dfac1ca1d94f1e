"""onkel race: several learners over the same stream."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from onkel import evaluate, report
from onkel.algorithms import Entry, catalogue
from onkel.cli import source
from onkel.cli.show import Console, Display, finite, print_whole, table
from onkel.cli.source import FACES
from onkel.cli.words import Problem, algorithms, check_outputs, jobs, names, positive, share, whole, width
from onkel.datasets import Stream
from onkel.estimator import Estimator
from onkel.evaluate import Lap, Standings
from onkel.faces import Classifier
from onkel.kernels import Gaussian
from onkel.measures import MEASURES

# Who races when nobody is named, and with which settings: picked by hand on the embedded streams, the same
# for all of them; reasonable where features, and the targets of regression, are of order one.
LINEUP: dict[str, dict[str, dict[str, Any]]] = {
    "classification": {
        "KernelPerceptron": {},
        "OGD": {"eta": 0.5},
        "PA": {"C": 1.0},
        "Pegasos": {"lam": 0.003},
        "NORMA": {"eta": 0.5, "lam": 0.001},
        "ILK": {"eta": 0.5, "lam": 0.001},
        "KLRSGD": {"eta": 2.0},
        "Stoptron": {},
        "BudgetPerceptron": {},
        "TighterPerceptron": {},
        "RBP": {},
        "Forgetron": {},
        "BOGD": {"eta": 0.5, "lam": 0.01},
        "BOGDPlusPlus": {"eta": 0.5, "lam": 0.01},
        "BSGD": {"lam": 0.001},
        "FOGD": {},
        "NOGD": {"eta": 1.0},
        "RRF": {"eta": 1.0, "eta_kernel": 0.003},
        "DualSGD": {"lam": 0.001},
        "BPA": {"variant": "nearest"},
        "AutoKernel": {},
    },
    "regression": {
        "KernelPerceptron": {"eta": 0.2},
        "OGD": {"eta": 0.2},
        "PA": {"C": 0.2},
        "NORMA": {"eta": 0.2, "lam": 0.001},
        "KLMS": {"eta": 0.2},
        "Stoptron": {"eta": 0.2},
        "RBP": {"eta": 0.2},
        "Forgetron": {"eta": 0.2},
        "BOGD": {"eta": 0.2, "lam": 0.001},
        "BOGDPlusPlus": {"eta": 0.05, "lam": 0.001},
        "FOGD": {},
        "NOGD": {"eta": 0.2},
        "RRF": {"eta": 0.1, "eta_kernel": 0.003},
        "DualSGD": {"lam": 0.3},
        "KRLS": {"nu": 0.1},
        "AutoKernel": {},
    },
}
# Width of the Gaussian kernel and budget for the embedded streams.
WIDTHS = {"breast_cancer": 0.02, "digits": 0.25, "drift": 5.0, "diabetes": 0.05}
BUDGETS = {"breast_cancer": 30, "digits": 100, "drift": 100, "diabetes": 60}
BUDGET = 100


def add(commands: Any) -> None:
    """Tell the parser about the command."""
    parser = commands.add_parser(
        "race",
        help="run several learners over the same stream and compare them",
        description="Every learner predicts each example before it learns from it; those predictions count.",
        epilog="Streams that have a name: onkel data.",
    )
    parser.set_defaults(run=_race)
    source.add(parser, default="demo", scale="standardise features and real targets")
    _add_learners(parser)
    _add_output(parser)


def _add_learners(parser: argparse.ArgumentParser) -> None:
    own = "embedded streams have their own"
    add = parser.add_argument_group("learners and orders").add_argument
    add("--algorithms", type=names, metavar="A,B", help="who races, or all (see: onkel algorithms)")
    add("--budget", type=positive, metavar="N", help=f"most support vectors (default {BUDGET}; {own})")
    add("--gamma", type=width, metavar="G", help=f"kernel exp(-G |x - z|^2) (default 1 / features; {own})")
    add("--orders", type=positive, default=1, metavar="N", help="shuffled orders (default 1)")
    add("--limit", type=positive, metavar="N", help="learn only the first N examples of each order")
    add("--seed", type=whole, default=0, metavar="S", help="of orders and random choices (default 0)")
    add("--delay", type=whole, default=0, metavar="K", help="labels arrive K examples late (default 0)")
    add("--held-out", type=share, metavar="P", help="test the finished learners on a share P, such as 0.2")
    add("--measures", type=names, default=[], metavar="A,B", help=f"further columns: {', '.join(MEASURES)}")
    add("--jobs", type=jobs, metavar="N", help="runs side by side; -1: one for each core (default 1)")


def _add_output(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("output").add_argument
    add("--report", type=Path, metavar="PAGE", help="write an HTML page with curves, tables and settings")
    add("--figures", type=Path, metavar="FOLDER", help="write every curve as an SVG file")
    add("--json", action="store_true", help="results as JSON instead of tables")
    add("--quiet", action="store_true", help="no progress")


def _race(arguments: argparse.Namespace) -> int:
    check_outputs(arguments.stream, report=arguments.report)
    _make_folder(arguments.figures)
    for name in arguments.measures:
        if name not in MEASURES:
            raise Problem(f"there is no measure {name!r}; there are {', '.join(MEASURES)}")
    entries = _chosen(arguments.algorithms)
    streams = source.streams(arguments)
    _check_chosen(entries, streams, named=arguments.algorithms not in (None, ["all"]))
    races: list[Standings] = []
    notice = ""
    for i, stream in enumerate(streams):
        models = _models(entries, stream, arguments)
        if arguments.algorithms is not None and (unfit := [e.title for e in entries if e.title not in models]):
            print(f"onkel: left out of {stream.name}, which they cannot learn: {', '.join(unfit)}", file=sys.stderr)
        if not models:
            continue
        if arguments.orders > 1 and stream.ordered:
            print(
                f"onkel: {stream.name} keeps its order, so it is run once and not {arguments.orders} times",
                file=sys.stderr,
            )
        standings, interrupted = _run(models, stream, arguments)
        races.append(standings)
        if not arguments.json:
            _print(standings, arguments)
        if interrupted:
            notice = _interrupted(standings, len(models), streams[i + 1 :], arguments)
            break
    if arguments.json:
        print(json.dumps(_as_data(races, arguments) | {"complete": not notice}, indent=1))
    _write_report(races, notice, arguments)
    _write_figures(races, arguments)
    if notice:
        print(f"onkel: {notice}", file=sys.stderr)
    return 130 if notice else 0


def _interrupted(race: Standings, learners: int, left: list[Stream], arguments: argparse.Namespace) -> str:
    """What of a race was not run."""
    orders = _orders(race.stream, arguments)
    done = sum(len(result.traces) == orders for result in race.results)
    words = f"interrupted, so this is partial: {done} of {learners} learners finished {race.stream.name}"
    words += f" in all {orders} orders" * (orders > 1)
    return words + f"; not begun: {', '.join(stream.name for stream in left)}" * bool(left)


def _run(models: dict[str, Any], stream: Stream, arguments: argparse.Namespace) -> tuple[Standings, bool]:
    """The race over one stream, and whether it was interrupted."""
    finished: list[Lap] = []
    interrupted = False
    stream, test = (stream, None) if arguments.held_out is None else evaluate.split(stream, arguments.held_out)
    display = Display(stream, list(models), arguments)
    run = evaluate.laps(
        models,
        stream,
        orders=arguments.orders,
        seed=arguments.seed,
        limit=arguments.limit,
        test=test,
        n_jobs=arguments.jobs,
        progress=display.show,
        delay=arguments.delay,
        measures=arguments.measures,
    )
    try:
        with display:
            finished.extend(run)
    except KeyboardInterrupt:
        interrupted = True
    except ValueError as error:  # a setting or a stream that a learner refuses
        where = " ".join(getattr(error, "__notes__", [stream.name]))
        raise Problem(f"{where}: {error}") from error
    return evaluate.standings(models, stream, finished), interrupted


# -- who races


def _chosen(names: list[str] | None) -> list[Entry]:
    """The algorithms that were asked for, or those of the line-up."""
    if names == ["all"]:
        return [entry for entry in catalogue() if entry.online]
    wanted = names or list(dict.fromkeys(name for line in LINEUP.values() for name in line))
    return algorithms(wanted)


def _check_chosen(entries: list[Entry], streams: list[Stream], *, named: bool) -> None:
    """Refuse an algorithm that was named but can learn none of the streams."""
    for entry in entries:
        if not entry.online:
            raise Problem(f"{entry.name} learns from all rows at once and cannot race: leave it out")
        if not named or any(_face(entry, stream) for stream in streams):
            continue
        if not {FACES[stream.task] for stream in streams} & set(entry.classes):
            kinds = " or ".join(sorted({stream.task for stream in streams}))
            raise Problem(f"{entry.name} does {' and '.join(entry.tasks)}, not {kinds}; leave it out or say --task")
        raise Problem(f"{entry.name} knows two classes only, and {streams[0].name} has more: leave it out")


def _face(entry: Entry, stream: Stream) -> type[Estimator] | None:
    """The estimator for a stream; None if it cannot learn it."""
    face = entry.classes.get(FACES[stream.task])
    two = face is not None and issubclass(face, Classifier) and face.two_classes
    return None if two and stream.classes is not None and len(stream.classes) > 2 else face


def _models(entries: list[Entry], stream: Stream, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fresh learners by name, with the settings of the line-up and those of the command line."""
    gamma = arguments.gamma or WIDTHS.get(stream.name)
    common: dict[str, Any] = {"random_state": arguments.seed}
    if gamma is not None:
        common["kernel"] = Gaussian(gamma)
    models = {}
    for entry in entries:
        face = _face(entry, stream)
        if face is None:
            continue
        known = face().get_params(deep=False)
        settings = {k: v for k, v in common.items() if k in known} | LINEUP[stream.task].get(entry.name, {})
        settings |= entry.settings
        if {"kernel", "budget"} <= known.keys():  # a pool of kernels knows its own
            settings["budget"] = arguments.budget or BUDGETS.get(stream.name, BUDGET)
        models[entry.title] = face(**settings)
    return models


# -- what to show


def _trivial(stream: Stream, arguments: argparse.Namespace) -> float:
    """The error of the trivial answer over the same orders."""
    orders = [stream.order(k, seed=arguments.seed)[: arguments.limit] for k in range(_orders(stream, arguments))]
    return statistics.fmean(evaluate.trivial(stream.y[rows], stream.task) for rows in orders)


def _orders(stream: Stream, arguments: argparse.Namespace) -> int:
    return 1 if stream.ordered else arguments.orders


def _print(race: Standings, arguments: argparse.Namespace) -> None:
    console = Console()
    console.print(Text.assemble((race.stream.name, "bold"), f": {race.stream.description}"))
    console.print(Text(report.summary(race), style="dim"))
    if not race.results:
        console.print("no learner finished\n")
        return
    show = report.show_error(race.stream.task)
    heads = {"error": report.measure(race.stream.task), "deviation": "sd", "p": "p"}
    heads |= {name: name.replace("_", " ") for name in race.results[0].measures}
    heads |= {"held_out": "held out", "size": "SV", "bytes": "KiB", "microseconds": "us per row"}
    ways = {"error": show, "deviation": show, "held_out": show, "bytes": _kibibytes, "size": "{:,.0f}".format}
    ways |= {"p": report.show_chance, "microseconds": report.show_time}
    data = race.table()
    used = [name for name in heads if any(row[name] is not None for row in data)]

    def rows(names: list[str]) -> Table:
        made = table("learner", *(heads[name] for name in names))
        for row, result in zip(data, race.results, strict=True):
            cells = ["" if row[name] is None else ways.get(name, "{:.3f}".format)(row[name]) for name in names]
            made.add_row(Text(result.name), *cells, style="bold" if race.is_best(result) else None)
        return made

    dropped = print_whole(console, rows, used, ["bytes", "microseconds", "size"])
    notes = {
        "p: chance that orders alone make such a distance from the best (t-tests, Holm)": "p" in used,
        "SV: more than examples where a pool of learners adds up those of its components": "size" not in dropped
        and any(result.size is not None and result.size > race.examples for result in race.results),
        f"no room for {', '.join(heads[name] for name in dropped)}: see --json, or widen the terminal": dropped,
    }
    for note in (note for note, holds in notes.items() if holds):
        console.print(Text(note, style="dim"))
    trivial = report.compared(race.stream.task, _trivial(race.stream, arguments))
    console.print(Text(trivial, style="dim"), "", sep="\n")


def _kibibytes(size: float) -> str:
    return f"{size / 1024:,.0f}"


def _as_data(races: list[Standings], arguments: argparse.Namespace) -> dict[str, Any]:
    """Plain data for --json; what is not finite becomes null."""
    return {
        "command": arguments.command,
        "environment": report.environment(),
        "races": [
            {
                "stream": race.stream.name,
                "description": race.stream.description,
                "task": race.stream.task,
                "examples": race.examples,
                "features": race.stream.features,
                "measure": report.measure(race.stream.task),
                "seed": arguments.seed,
                "trivial": _trivial(race.stream, arguments),
                "results": [
                    {name: finite(value) for name, value in row.items()}
                    | {
                        "settings": dict(result.settings),
                        "seen": result.traces[0].seen.tolist(),
                        "curve": [finite(value) for value in result.mean(lambda trace: trace.error).tolist()],
                    }
                    for row, result in zip(race.table(), race.results, strict=True)
                ],
            }
            for race in races
        ],
    }


def _write_report(races: list[Standings], notice: str, arguments: argparse.Namespace) -> None:
    if arguments.report is None:
        return
    title = f"onkel race: {Path(arguments.stream).name}"
    lead = (
        "Settings were picked by hand on the demo streams; but for kernel width and budget they are the same "
        "for all streams."
    )
    words = {"title": title, "lead": lead, "notice": notice[:1].upper() + notice[1:], "command": arguments.command}
    trivial = {race.stream.name: _trivial(race.stream, arguments) for race in races}
    try:
        report.write(arguments.report, races, **words, trivial=trivial)
    except OSError as problem:
        raise Problem(f"the report cannot be written to {arguments.report}: {problem.strerror}") from None
    if not arguments.quiet:
        print(f"report: {arguments.report}", file=sys.stderr)


def _make_folder(path: Path | None) -> None:
    """The folder for figures, made before the race and not after it."""
    try:
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise Problem(f"the figures cannot be written to {path}: {problem.strerror}") from None


def _write_figures(races: list[Standings], arguments: argparse.Namespace) -> None:
    if arguments.figures is None:
        return
    try:
        for name, picture in report.figures(races).items():
            (arguments.figures / f"{name}.svg").write_text(picture, encoding="utf-8")
    except OSError as problem:
        raise Problem(f"the figures cannot be written to {arguments.figures}: {problem.strerror}") from None
    if not arguments.quiet:
        print(f"figures: {arguments.figures}", file=sys.stderr)
