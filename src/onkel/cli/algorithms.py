"""onkel algorithms: the catalogue, or one of its entries."""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from onkel.algorithms import Entry, catalogue
from onkel.cli.models import algorithms
from onkel.cli.show import Console, table


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.set_defaults(run=_show)
    parser.add_argument("name", nargs="?", metavar="NAME", help="a name or an alias of the papers")
    parser.add_argument("--json", action="store_true", help="as JSON")


def _show(arguments: argparse.Namespace) -> int:
    entries = catalogue() if arguments.name is None else algorithms([arguments.name])
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
        "variants": {name: dict(settings) for name, settings in entry.variants.items()},
        "tasks": list(entry.tasks),
        "paper": entry.paper,
        "cost": entry.cost,
        "estimators": {
            face.__name__: {name: repr(value) for name, value in face().get_params(deep=False).items()}
            for face in entry.classes.values()
        },
    }


def _print_catalogue(entries: list[Entry]) -> None:
    rows = table("algorithm", "tasks", "cost", "paper", justify="left")
    for entry in entries:
        tasks = " ".join(task[0].upper() for task in entry.tasks)
        rows.add_row(*map(Text, (entry.name, tasks, entry.cost, _citation(entry.paper))))
    Console().print(rows)
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
    facts = {
        "also called": ", ".join(entry.aliases),
        "variants": ", ".join(_variant(*variant) for variant in entry.variants.items()),
        "paper": entry.paper,
        "cost of a round": entry.cost,
    }
    for name, value in facts.items():
        print(f"{name}: {value or '-'}")
    for face in entry.classes.values():
        values = ", ".join(f"{name}={value!r}" for name, value in face().get_params(deep=False).items())
        print(f"\n{face.__name__}({values})\n{inspect.getdoc(face)}")


def _variant(name: str, settings: Mapping[str, Any]) -> str:
    said = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    return f"{name} ({said})" if said else name
