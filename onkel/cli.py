"""The shell command `onkel`: races of learners over a stream, and the catalogue of algorithms.

The only module that prints. Results go to standard output, progress and problems to standard error.
Exit status: 0 done, 2 a problem of the input (told in one sentence), 130 interrupted.
"""

from __future__ import annotations

import argparse
import inspect
import io
import json
import math
import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

import onkel
from onkel import datasets, evaluate, report
from onkel.algorithms import Entry, catalogue, find
from onkel.datasets import DataError, Stream
from onkel.evaluate import Lap, Standings
from onkel.kernels import Gaussian

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
    },
}
# Width of the Gaussian kernel and budget for the embedded streams.
WIDTHS = {"breast_cancer": 0.02, "digits": 0.25, "drift": 5.0, "diabetes": 0.05}
BUDGETS = {"breast_cancer": 30, "digits": 100, "drift": 100, "diabetes": 60}
BUDGET = 100

FACES = {"classification": "Classifier", "regression": "Regressor"}
REFRESH = 0.1  # seconds between two pictures of the progress


class Problem(Exception):
    """Something the user can mend; the message is the sentence to show."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name the terminal cannot show is no reason to stop
    arguments = _parser().parse_args(words)
    arguments.command = shlex.join(["onkel", *words])
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except (Problem, DataError) as problem:
        print(f"onkel: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("onkel: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read us has gone; nothing more can or need be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="onkel", description="Online kernel learning at the shell.")
    parser.add_argument("--version", action="version", version=f"onkel {onkel.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_race(commands)
    _add_algorithms(commands)
    return parser


# -- race --------------------------------------------------------------------------------------------------


def _add_race(commands: Any) -> None:
    parser = commands.add_parser(
        "race",
        help="run several learners over the same stream and compare them",
        description="Every learner predicts each example before it learns from it; those predictions count.",
        epilog=f"Embedded streams: {', '.join(datasets.NAMES)}.",
    )
    parser.set_defaults(run=_race)
    _add_source(parser)
    _add_learners(parser)
    _add_output(parser)


def _add_source(parser: argparse.ArgumentParser) -> None:
    endings = ", ".join(datasets.ENDINGS)
    parser.add_argument(
        "stream",
        nargs="?",
        default="demo",
        metavar="STREAM",
        help=f"a file ({endings}), an embedded stream, or demo: all embedded streams (default)",
    )
    add = parser.add_argument_group("files").add_argument
    add("--target", metavar="NAME", help="target column of a CSV file (npz: target array, default y)")
    add("--drop", type=_names, metavar="A,B", help="columns of a CSV file to leave out")
    add("--task", choices=["auto", *FACES], help="default auto: by the look of the target")
    add("--scale", choices=["auto", "none"], help="auto (default): standardise features and real targets")
    add("--keep-order", action="store_true", help="learn the rows as they stand, not shuffled")


def _add_learners(parser: argparse.ArgumentParser) -> None:
    own = "embedded streams have their own"
    add = parser.add_argument_group("learners and orders").add_argument
    add("--algorithms", type=_names, metavar="A,B", help="who races, or all (see: onkel algorithms)")
    add("--budget", type=_positive, metavar="N", help=f"most support vectors (default {BUDGET}; {own})")
    add("--gamma", type=_width, metavar="G", help=f"kernel exp(-G |x - z|^2) (default 1 / features; {own})")
    add("--orders", type=_positive, default=1, metavar="N", help="shuffled orders (default 1)")
    add("--limit", type=_positive, metavar="N", help="learn only the first N examples of each order")
    add("--seed", type=_whole, default=0, metavar="S", help="of orders and random choices (default 0)")


def _add_output(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("output").add_argument
    add("--report", type=Path, metavar="PAGE", help="write an HTML page with curves, tables and settings")
    add("--json", action="store_true", help="results as JSON instead of tables")
    add("--quiet", action="store_true", help="no progress")


def _race(arguments: argparse.Namespace) -> int:
    _check_report(arguments.report)
    entries = _chosen(arguments.algorithms)
    streams = _streams(arguments)
    _check_chosen(entries, streams, named=arguments.algorithms not in (None, ["all"]))
    races: list[Standings] = []
    interrupted = False
    for stream in streams:
        models = _models(entries, stream, arguments)
        if not models:
            continue
        standings, interrupted = _run(models, stream, arguments)
        races.append(standings)
        if not arguments.json:
            _print_standings(standings)
        if interrupted:
            break
    if arguments.json:
        print(json.dumps(_as_data(races, arguments), indent=1))
    _write_report(races, arguments)
    if interrupted:
        print("onkel: interrupted; shown is what was finished", file=sys.stderr)
    return 130 if interrupted else 0


def _run(models: dict[str, Any], stream: Stream, arguments: argparse.Namespace) -> tuple[Standings, bool]:
    """The race over one stream, and whether it was interrupted."""
    finished: list[Lap] = []
    interrupted = False
    display = Display(stream, list(models), arguments)
    run = evaluate.laps(
        models,
        stream,
        orders=arguments.orders,
        seed=arguments.seed,
        limit=arguments.limit,
        progress=display.show,
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


# -- what to race


def _streams(arguments: argparse.Namespace) -> list[Stream]:
    if arguments.stream != "demo" and arguments.stream not in datasets.NAMES:
        return [_file(arguments)]
    for option in ("target", "drop", "task", "scale", "keep_order"):
        if getattr(arguments, option):
            raise Problem(f"--{option.replace('_', '-')} is for files; {arguments.stream} needs none")
    names = datasets.NAMES if arguments.stream == "demo" else [arguments.stream]
    return [datasets.load(name) for name in names]


def _file(arguments: argparse.Namespace) -> Stream:
    path = Path(arguments.stream)
    if not path.exists() and not path.suffix:
        raise Problem(f"there is no file {path}, nor an embedded stream of that name ({', '.join(datasets.NAMES)})")
    stream = datasets.read(
        path,
        target=arguments.target,
        task=arguments.task or "auto",
        drop=arguments.drop or (),
        ordered=arguments.keep_order,
    )
    return stream if arguments.scale == "none" else stream.scaled()


def _chosen(names: list[str] | None) -> list[Entry]:
    """The algorithms that were asked for, or those of the line-up."""
    if names == ["all"]:
        return [entry for entry in catalogue() if entry.online]
    wanted = names or list(dict.fromkeys(name for line in LINEUP.values() for name in line))
    try:
        entries = {entry.name: entry for entry in map(find, wanted)}
    except ValueError as error:
        raise Problem(str(error)) from None
    return list(entries.values())


def _check_chosen(entries: list[Entry], streams: list[Stream], *, named: bool) -> None:
    """Refuse an algorithm that was named but has no face for any of the streams."""
    faces = {FACES[stream.task] for stream in streams}
    for entry in entries:
        if not entry.online:
            raise Problem(f"{entry.name} learns from all rows at once and cannot race: leave it out")
        if named and not faces & set(entry.classes):
            kinds = " or ".join(sorted({stream.task for stream in streams}))
            raise Problem(f"{entry.name} does {' and '.join(entry.tasks)}, not {kinds}; leave it out or say --task")


def _models(entries: list[Entry], stream: Stream, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fresh learners by name, with the settings of the line-up and those of the command line."""
    gamma = arguments.gamma or WIDTHS.get(stream.name)
    common: dict[str, Any] = {"random_state": arguments.seed}
    if gamma is not None:
        common["kernel"] = Gaussian(gamma)
    models = {}
    for entry in entries:
        face = entry.classes.get(FACES[stream.task])
        if face is None:
            continue
        known = face().get_params(deep=False)
        settings = {k: v for k, v in common.items() if k in known} | LINEUP[stream.task].get(entry.name, {})
        if "budget" in known:
            settings["budget"] = arguments.budget or BUDGETS.get(stream.name, BUDGET)
        models[entry.name] = face(**settings)
    return models


# -- what to show


class Display:
    """Live progress on a terminal, one line per learner.

    It is drawn between measurements, never by a thread of its own, so that measured times stay true.
    """

    def __init__(self, stream: Stream, names: list[str], arguments: argparse.Namespace) -> None:
        console = Console(stderr=True)
        self.error = report.show_error(stream.task)
        self.examples = min(len(stream), arguments.limit or len(stream))
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[error]}", justify="right"),
            TextColumn("{task.fields[count]}", justify="right"),
            TextColumn("{task.fields[size]}", justify="right"),
            TextColumn("{task.fields[seconds]}", justify="right"),
            console=console,
            transient=True,
            auto_refresh=False,
            disable=arguments.quiet or not console.is_terminal,
        )
        total = self.examples * (1 if stream.ordered else arguments.orders)
        self.lines = {
            name: self.progress.add_task(name, total=total, error="", count="", size="", seconds="") for name in names
        }
        self.seconds = dict.fromkeys(names, 0.0)  # of the orders a learner has finished
        self.drawn = 0.0

    def __enter__(self) -> Display:
        self.progress.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.progress.stop()

    def show(self, lap: Lap) -> None:
        """Take note of a checkpoint, and draw if the last picture is old enough."""
        trace = lap.trace
        seen, seconds = int(trace.seen[-1]), self.seconds[lap.name] + float(trace.seconds[-1])
        if seen == self.examples:
            self.seconds[lap.name] = seconds
        counted = trace.task == "classification" and math.isfinite(trace.total[-1])
        self.progress.update(
            self.lines[lap.name],
            completed=lap.order * self.examples + seen,
            error=self.error(float(trace.error[-1])),
            count=f"{trace.mistakes[-1]:,} mistakes" if counted else "",
            size="" if trace.size is None else f"{trace.size[-1]:,} SV",
            seconds=f"{seconds:.1f} s",
        )
        if time.monotonic() - self.drawn > REFRESH:
            self.progress.refresh()
            self.drawn = time.monotonic()


def _print_standings(race: Standings) -> None:
    console = Console()
    console.print(Text.assemble((race.stream.name, "bold"), f": {race.stream.description}"))
    console.print(Text(report.summary(race), style="dim"))
    if not race.results:
        console.print("no learner finished\n")
        return
    show = report.show_error(race.stream.task)
    spread = ["sd"] if race.orders > 1 else []
    table = _table("learner", report.measure(race.stream.task), *spread, "SV", "us/example", "relative")
    for result in race.results:
        cells = [
            show(result.error),
            *("" if result.deviation is None else show(result.deviation) for _ in spread),
            "" if result.size is None else f"{result.size:,.0f}",
            report.show_time(result.microseconds),
            f"{race.relative(result):.1f}",
        ]
        table.add_row(Text(result.name), *cells, style="bold" if race.is_best(result) else None)
    console.print(table, "", sep="\n")


def _table(first: str, *others: str, justify: Literal["left", "right"] = "right") -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify=justify)
    return table


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
                "results": [
                    {name: _finite(value) for name, value in row.items()}
                    | {
                        "settings": dict(result.settings),
                        "seen": result.traces[0].seen.tolist(),
                        "curve": [_finite(value) for value in result.mean(lambda trace: trace.error).tolist()],
                    }
                    for row, result in zip(race.table(), race.results, strict=True)
                ],
            }
            for race in races
        ],
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _check_report(path: Path | None) -> None:
    """Refuse a report that could not be written, before the race and not after it."""
    if path is None:
        return
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise Problem(f"the report cannot be written to {path}; name a file in a folder that exists")


def _write_report(races: list[Standings], arguments: argparse.Namespace) -> None:
    if arguments.report is None:
        return
    title = f"onkel race: {Path(arguments.stream).name}"
    lead = (
        "Settings were picked by hand on the demo streams; but for kernel width and budget they are the same "
        "for all streams."
    )
    try:
        report.write(arguments.report, races, title=title, lead=lead, command=arguments.command)
    except OSError as problem:
        raise Problem(f"the report cannot be written to {arguments.report}: {problem.strerror}") from None
    if not arguments.quiet:
        print(f"report: {arguments.report}", file=sys.stderr)


# -- algorithms --------------------------------------------------------------------------------------------


def _add_algorithms(commands: Any) -> None:
    parser = commands.add_parser("algorithms", help="list the algorithms, or describe one")
    parser.set_defaults(run=_algorithms)
    parser.add_argument("name", nargs="?", metavar="NAME", help="a name or an alias of the papers")
    parser.add_argument("--json", action="store_true", help="as JSON")


def _algorithms(arguments: argparse.Namespace) -> int:
    entries = catalogue() if arguments.name is None else _chosen([arguments.name])
    if arguments.json:
        print(json.dumps([_entry_data(entry) for entry in entries], indent=1))
    elif arguments.name is None:
        _print_catalogue(entries)
    else:
        _print_entry(entries[0])
    return 0


def _entry_data(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "aliases": list(entry.aliases),
        "tasks": list(entry.tasks),
        "paper": entry.paper,
        "cost": entry.cost,
        "estimators": {
            face.__name__: {name: repr(value) for name, value in face().get_params(deep=False).items()}
            for face in entry.classes.values()
        },
    }


def _print_catalogue(entries: list[Entry]) -> None:
    table = _table("algorithm", "tasks", "cost", "paper", justify="left")
    for entry in entries:
        tasks = " ".join(task[0].upper() for task in entry.tasks)
        table.add_row(*map(Text, (entry.name, tasks, entry.cost, _citation(entry.paper))))
    Console().print(table)
    print("\ntasks: C classification, R regression, N novelty detection")
    print("cost of a round: d features, n support vectors, B budget, p recent examples")
    print("more on one of them: onkel algorithms NAME")


def _citation(paper: str) -> str:
    """Authors and year of a reference."""
    authors, _, rest = paper.partition(":")
    years = re.findall(r"\b(?:19|20)\d\d\b", rest.partition("doi:")[0])
    people = authors.split(", ")
    shown = authors if len(people) <= 2 else f"{people[0]} et al."
    return f"{shown} {years[-1]}" if years else shown


def _print_entry(entry: Entry) -> None:
    print(f"{entry.name}: {', '.join(entry.tasks)}")
    facts = {"also called": ", ".join(entry.aliases), "paper": entry.paper, "cost of a round": entry.cost}
    for name, value in facts.items():
        print(f"{name}: {value or '-'}")
    for face in entry.classes.values():
        values = ", ".join(f"{name}={value!r}" for name, value in face().get_params(deep=False).items())
        print(f"\n{face.__name__}({values})\n{inspect.getdoc(face)}")


# -- words of the command line -----------------------------------------------------------------------------


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("name at least one, separated by commas")
    return names


def _whole(text: str) -> int:
    if not re.fullmatch("[0-9]+", text):
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(text)


def _positive(text: str) -> int:
    if _whole(text) < 1:
        raise argparse.ArgumentTypeError(f"must be > 0, got {text!r}")
    return int(text)


def _width(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number > 0, got {text!r}")
    return value
