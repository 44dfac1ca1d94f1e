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

from onkel.cli import lineup, output, source
from onkel.cli.progress import RaceProgress
from onkel.cli.show import Console, finite, print_whole, say, table
from onkel.cli.words import Problem, above_zero, jobs, names, positive, share, whole
from onkel.datasets import Stream
from onkel.evaluation import report
from onkel.evaluation.measures import MEASURES
from onkel.evaluation.race import Lap, laps, standings
from onkel.evaluation.results import Standings
from onkel.evaluation.totals import trivial


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.description = "Every learner predicts each example before it learns from it; those predictions count."
    parser.epilog = "Streams that have a name: onkel data."
    parser.set_defaults(run=_race)
    source.add(parser, default="demo", scale="standardise features and real targets")
    _add_learners(parser)
    _add_output(parser)


def _add_learners(parser: argparse.ArgumentParser) -> None:
    own = "the demo streams have their own"
    add = parser.add_argument_group("learners and orders").add_argument
    add("--algorithms", type=names, metavar="A,B", help="which ones race, or all (see: onkel algorithms)")
    add("--budget", type=positive, metavar="N", help=f"most support vectors (default {lineup.BUDGET}; {own})")
    add("--gamma", type=above_zero, metavar="G", help=f"kernel exp(-G |x - z|^2) (default 1 / features; {own})")
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
    output.check(arguments.stream, report=arguments.report)
    output.make_folder(arguments.figures)
    for name in arguments.measures:
        if name not in MEASURES:
            raise Problem(f"there is no measure {name!r}; there are {', '.join(MEASURES)}")
    entries = lineup.chosen(arguments.algorithms)
    streams = source.streams(arguments)
    lineup.check(entries, streams, named=arguments.algorithms not in (None, ["all"]))
    races: list[Standings] = []
    notice = ""
    for i, stream in enumerate(streams):
        models = lineup.models(entries, stream, arguments)
        if arguments.algorithms is not None and (unfit := [e.title for e in entries if e.title not in models]):
            say(f"onkel: left out of {stream.name}, which they cannot learn: {', '.join(unfit)}", to=sys.stderr)
        if not models:
            continue
        if arguments.orders > 1 and stream.ordered:
            say(
                f"onkel: {stream.name} keeps its order, so it is run once and not {arguments.orders} times",
                to=sys.stderr,
            )
        race, interrupted = _run(models, stream, arguments)
        races.append(race)
        if not arguments.json:
            _print(race, arguments)
        if interrupted:
            notice = _interrupted(race, len(models), streams[i + 1 :], arguments)
            break
    if arguments.json:
        print(json.dumps(_as_data(races, arguments) | {"complete": not notice}, indent=1))
    if arguments.report is not None:
        _write_report(races, notice, arguments)
    if arguments.figures is not None:
        output.write_figures(races, arguments)
    if notice:
        print(f"onkel: {notice}", file=sys.stderr)
    return 130 if notice else 0


def _interrupted(race: Standings, learners: int, left: list[Stream], arguments: argparse.Namespace) -> str:
    """What of a race was not run."""
    orders = race.stream.count_orders(arguments.orders)
    done = sum(len(result.traces) == orders for result in race.results)
    words = f"interrupted, so this is partial: {done} of {learners} learners finished {race.stream.name}"
    words += f" in all {orders} orders" * (orders > 1)
    return words + f"; not begun: {', '.join(stream.name for stream in left)}" * bool(left)


def _run(models: dict[str, Any], stream: Stream, arguments: argparse.Namespace) -> tuple[Standings, bool]:
    """The race over one stream, and whether it was interrupted."""
    finished: list[Lap] = []
    interrupted = False
    stream, test = (stream, None) if arguments.held_out is None else stream.split(arguments.held_out)
    progress = RaceProgress(stream, list(models), arguments)
    run = laps(
        models,
        stream,
        orders=arguments.orders,
        seed=arguments.seed,
        limit=arguments.limit,
        test=test,
        n_jobs=arguments.jobs,
        progress=progress.show,
        delay=arguments.delay,
        measures=arguments.measures,
    )
    try:
        with progress:
            finished.extend(run)
    except KeyboardInterrupt:
        interrupted = True
    except ValueError as error:  # a setting or a stream that a learner refuses
        where = " ".join(getattr(error, "__notes__", [stream.name]))
        raise Problem(f"{where}: {error}") from error
    return standings(models, stream, finished), interrupted


# -- what to show


def _trivial(stream: Stream, arguments: argparse.Namespace) -> float:
    """The error of the baseline, averaged over the same orders."""
    orders = [
        stream.order(k, seed=arguments.seed)[: arguments.limit] for k in range(stream.count_orders(arguments.orders))
    ]
    return statistics.fmean(trivial(stream.y[rows], stream.task) for rows in orders)


def _print(race: Standings, arguments: argparse.Namespace) -> None:
    console = Console()
    console.print(Text.assemble((race.stream.name, "bold"), f": {race.stream.description}"))
    console.print(Text(report.summary(race), style="dim"))
    if not race.results:
        console.print("no learner finished\n")
        return
    heads = {"error": report.measure(race.stream.task), "deviation": "sd", "p": "p"}
    heads |= {name: report.in_words(name) for name in race.results[0].measures}
    heads |= {"held_out": "held out", "size": "SV", "bytes": "KiB", "microseconds": "us per row"}
    written, data = report.formats(race), race.table()
    used = [name for name in heads if any(row[name] is not None for row in data)]

    def rows(names: list[str]) -> Table:
        made = table("learner", *(heads[name] for name in names))
        for row, result in zip(data, race.results, strict=True):
            cells = ["" if row[name] is None else written[name](row[name]) for name in names]
            made.add_row(Text(result.name), *cells, style="bold" if race.is_best(result) else None)
        return made

    dropped = print_whole(console, rows, used, ["bytes", "microseconds", "size"])
    notes = {
        "p: p-value of the difference from the best (paired t-tests over orders, Holm)": "p" in used,
        "SV of a pool: the sum over its components, which may exceed the examples": "size" not in dropped
        and any(result.size is not None and result.size > race.examples for result in race.results),
        f"no room for {', '.join(heads[name] for name in dropped)}: see --json, or widen the terminal": dropped,
    }
    for note in (note for note, holds in notes.items() if holds):
        console.print(Text(note, style="dim"))
    compared = report.compared(race.stream.task, _trivial(race.stream, arguments))
    console.print(Text(compared, style="dim"), "", sep="\n")


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
    lead = (
        "Settings were picked by hand on the demo streams; except gamma and the budget they are the same for all "
        "streams."
    )
    output.write_report(
        races,
        arguments,
        title=f"onkel race: {Path(arguments.stream).name}",
        lead=lead,
        notice=notice[:1].upper() + notice[1:],
        trivial={race.stream.name: _trivial(race.stream, arguments) for race in races},
    )
