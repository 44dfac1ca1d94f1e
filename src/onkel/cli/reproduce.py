"""onkel reproduce: runs a table or figure of a paper again, and shows our numbers beside the printed ones."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.text import Text

from onkel.cli.show import Console, finite, table
from onkel.cli.words import Problem, names, positive
from onkel.papers import comparison, experiment, reproduction
from onkel.papers.comparison import Comparison
from onkel.papers.experiment import Experiment, ExperimentError, Trial
from onkel.papers.reproduction import Results


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.description = (
        "Runs what papers/KEY/TABLE.toml says on the sets that are in the data folder (ONKEL_DATA). Every "
        "run is kept in FOLDER/TABLE.csv, and none that is there is repeated: delete the file to start afresh."
    )
    parser.set_defaults(run=_reproduce)
    argument = parser.add_argument
    argument("name", nargs="?", metavar="KEY/TABLE", help="or a TOML file; without one: what there is")
    argument("--sets", type=names, default=[], metavar="A,B", help="only these sets")
    argument("--algorithms", type=names, default=[], metavar="A,B", help="only these rows")
    argument("--runs", type=positive, metavar="N", help="orders of the rows (default: as many as the paper's)")
    argument("--jobs", type=positive, default=1, metavar="N", help="processes at a time (default 1)")
    argument("--output", type=Path, metavar="FOLDER", help="default reproduced/KEY")
    argument("--summary", action="store_true", help="no runs: judge all results in papers/, as Markdown")
    argument("--json", action="store_true", help="the comparison as JSON instead of a table")
    argument("--quiet", action="store_true", help="no progress")


def _reproduce(arguments: argparse.Namespace) -> int:
    try:
        if arguments.summary:
            print(comparison.summary(), end="")
        elif arguments.name is None:
            for name in experiment.names():
                print(f"{name:32} {experiment.read(name).title}")
        else:
            _run(arguments)
    except ExperimentError as problem:
        raise Problem(str(problem)) from None
    return 0


def _run(arguments: argparse.Namespace) -> None:
    found = experiment.read(arguments.name)
    home = arguments.output or Path("reproduced") / found.key
    try:
        results = Results(home / f"{found.table}.csv")
    except (KeyError, TypeError, ValueError):
        raise Problem(f"{home / found.table}.csv holds no runs of this command; name another folder") from None
    here, absent = reproduction.available(found, arguments.sets)
    for name, reason in absent.items():
        print(f"onkel: {name} is absent: {reason}", file=sys.stderr)
    if not here:
        raise Problem(f"no set of {found.key}/{found.table} is here; ONKEL_DATA names the folder with the sets")
    only: dict[str, Any] = {"sets": [dataset.name for dataset in here], "algorithms": arguments.algorithms}
    told = None if arguments.quiet else _Teller()
    reproduction.run(found, results, **only, runs=arguments.runs, jobs=arguments.jobs, progress=told)
    files = comparison.write(found, results, runs=arguments.runs)
    cells = [cell for cell in comparison.compare(found, results, runs=arguments.runs) if cell.ours]
    if arguments.json:
        print(json.dumps([_data(cell) for cell in cells], indent=1))
    else:
        _print(found, cells)
        print(f"\nwritten: {', '.join(map(str, files))}")


class _Teller:
    """One line for every run, on standard error."""

    def __init__(self) -> None:
        self.begun = time.monotonic()

    def __call__(self, trial: Trial) -> None:
        order = "tuning order" if trial.run < 0 else f"order {trial.run}"
        point = "" if trial.point == "{}" else f" {trial.point}"
        seconds = time.monotonic() - self.begun
        print(f"{seconds:7.1f} s  {trial.set}, {trial.algorithm}{point}, {order}: {trial.error:.5g}", file=sys.stderr)


def _print(found: Experiment, cells: list[Comparison]) -> None:
    print(f"{found.key}/{found.table}: {found.title}")
    shown = [cell for cell in cells if cell.metric in experiment.METRICS]
    if not shown:
        print("no numbers were printed to compare with")
        return
    for name in dict.fromkeys(cell.set for cell in shown):
        rows = table(name, "metric", "printed", "ours", "runs", "deviations", "", justify="left")
        for cell in shown:
            if cell.set == name:
                numbers = comparison.printed(cell), comparison.ours(cell), str(len(cell.ours))
                words = (cell.algorithm, cell.metric, *numbers, comparison.difference(cell), cell.verdict)
                rows.add_row(*map(Text, words))
        Console().print(rows)


def _data(cell: Comparison) -> dict[str, Any]:
    return {
        "set": cell.set,
        "algorithm": cell.algorithm,
        "metric": cell.metric,
        "printed": cell.theirs,
        "deviation": cell.deviation,
        "ours": finite(cell.mean),
        "runs": len(cell.ours),
        "difference": cell.difference,
        "verdict": cell.verdict,
        "counts": cell.counts,
    }
