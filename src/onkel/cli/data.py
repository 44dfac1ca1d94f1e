"""onkel data: lists the streams that have a name, and downloads those of the papers."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from typing import Any

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.text import Text

from onkel import datasets
from onkel.cli.show import Console, say, table
from onkel.core.wording import printable
from onkel.datasets import SETS


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.description = (
        "Streams by name: built in, generated, and the sets of the papers, which are files in the data "
        "folder (the environment variable ONKEL_DATA, else the user's cache)."
    )
    parser.set_defaults(run=_list)
    parser.add_argument("--json", action="store_true", help="as JSON")
    verbs = parser.add_subparsers(metavar="fetch")
    fetch = verbs.add_parser(
        "fetch",
        help="download sets of the papers into the data folder",
        description="Downloads are verified and go on where they stopped. Where no checksum is known beforehand, the "
        "first download is trusted and recorded, and a later one must be the same.",
    )
    fetch.set_defaults(run=_fetch)
    fetch.add_argument("names", nargs="+", metavar="NAME", help="sets of the papers")
    fetch.add_argument("--again", action="store_true", help="also what is here already")
    fetch.add_argument("--quiet", action="store_true", help="no progress")


def _list(arguments: argparse.Namespace) -> int:
    entries = [_entry(name) for name in (*datasets.NAMES, *SETS)]
    if arguments.json:
        print(json.dumps({"folder": str(datasets.folder()), "streams": entries}, indent=1))
        return 0
    console = Console()
    heads = ("name", "rows", "features", "task", "where")
    cells = [[e["name"], e["rows"] or "any", e["features"], e["task"][0].upper(), e["where"]] for e in entries]
    shown = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in cells]
    room = console.width - sum(max(len(row[j]) for row in [heads, *shown]) + 3 for j in range(len(heads)))
    rows = table(*heads, "what", justify="left")
    rows.columns[1].justify = rows.columns[2].justify = "right"
    for row, entry in zip(shown, entries, strict=True):
        rows.add_row(*map(Text, (*row, textwrap.shorten(entry["about"], max(room, 20), placeholder=" ..."))))
    console.print(rows)
    say(f"\ndata folder: {datasets.folder()} (the environment variable ONKEL_DATA names another)")
    print("task: C classification, R regression")
    print("where: fetch = onkel data fetch NAME downloads it; in part = only some of its rows are here;")
    print("       nowhere = no public address")
    return 0


def _entry(name: str) -> dict[str, Any]:
    if name in SETS:
        entry = SETS[name]
        where = "fetch" if entry.sources else "nowhere"
        if datasets.is_here(name):
            where = "here" if datasets.is_whole(name) else "in part"
        facts = {
            "rows": entry.rows,
            "features": entry.features,
            "task": entry.task,
            "n_train": entry.n_train,
        }
        return {
            "name": name,
            **facts,
            "where": where,
            "about": entry.about,
            "sources": [s.url for s in entry.sources],
        }
    stream = datasets.load(name)
    generated = name in datasets.GENERATED
    return {
        "name": name,
        "rows": None if generated else len(stream),
        "features": stream.features,
        "task": stream.task,
        "n_train": None,
        "where": "generated" if generated else "built in",
        "about": stream.description,
        "sources": [],
    }


def _fetch(arguments: argparse.Namespace) -> int:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    hidden = arguments.quiet or not console.is_terminal
    for name in arguments.names:
        if datasets.is_here(name) and not arguments.again and name in SETS:
            print(f"{name} is here already (--again fetches it once more)", file=sys.stderr)
            continue
        with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
            lines: dict[str, Any] = {}

            def show(url: str, here: int, expected: int | None, progress: Any = progress, lines: Any = lines) -> None:
                if url not in lines:
                    lines[url] = progress.add_task(url.rpartition("/")[2])
                progress.update(lines[url], completed=here, total=expected)

            path = datasets.fetch(name, progress=show)
        say(printable(str(path)))
    return 0
