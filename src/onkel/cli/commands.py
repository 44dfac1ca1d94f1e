"""The commands of the shell: one table, and the parser that is made of it.

A command is a module with `add`, which tells its parser about the arguments and what to run. The module is loaded
when the command is chosen.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from onkel.cli.words import Parser
from onkel.core.version import __version__

COMMANDS = {  # the module, and the line that help shows
    "race": ("onkel.cli.race", "run several learners over the same stream and compare them"),
    "run": ("onkel.cli.run", "let one learner follow a stream, from a file or standard input"),
    "tune": ("onkel.cli.tune", "find good settings in one pass over a stream"),
    "predict": ("onkel.cli.predict", "predictions of a model, one a line"),
    "inspect": ("onkel.cli.inspect", "say what a model file holds"),
    "reproduce": ("onkel.cli.reproduce", "run a table or figure of a paper again, and compare"),
    "algorithms": ("onkel.cli.algorithms", "list the algorithms, or describe one"),
    "data": ("onkel.cli.data", "list the streams that have a name, or fetch one"),
    "completion": ("onkel.cli.completion", "print what makes a shell complete onkel's words"),
}


def parsers(chosen: Iterable[str]) -> tuple[Parser, dict[str, Parser]]:
    """The parser of the command line, and one for each command; only the chosen ones know their arguments."""
    whole = Parser(prog="onkel", description="Online kernel learning at the shell.")
    whole.add_argument("--version", action="version", version=f"onkel {__version__}")
    places = whole.add_subparsers(required=True, metavar="COMMAND")
    each = {name: places.add_parser(name, help=words) for name, (_, words) in COMMANDS.items()}
    for name in each.keys() & set(chosen):
        importlib.import_module(COMMANDS[name][0]).add(each[name])
    return whole, each
