"""The shell command `onkel`: one file per command, each with `add`, which tells the parser about it.

The only package that prints. Results go to standard output, progress and problems to standard error.
Exit status: 0 done, 2 a problem of the input (told in one sentence), 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
import threading
import warnings
from collections.abc import Sequence
from typing import NoReturn

import onkel
from onkel.cli import algorithms, completion, data, inspect, predict, race, reproduce, run, tune
from onkel.cli.words import Parser, Problem
from onkel.datasets import DataError

COMMANDS = (race, run, tune, predict, inspect, reproduce, algorithms, data, completion)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name the terminal cannot show is no reason to stop
    arguments = _parser().parse_args(words)
    arguments.command = shlex.join(["onkel", *words])
    try:
        with warnings.catch_warnings():  # columns of files have been matched by name
            warnings.filterwarnings("ignore", "X does not have valid feature names")
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


def shell() -> NoReturn:
    """The command as a process of its own."""
    status = main()
    if threading.active_count() > 1:  # learners that were interrupted: ending the interpreter under native code aborts
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="onkel", description="Online kernel learning at the shell.")
    parser.add_argument("--version", action="version", version=f"onkel {onkel.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return parser
