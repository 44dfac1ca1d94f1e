"""What happens when the shell command is called: the command is found, run, and its problems are told."""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence

from onkel.cli.commands import parsers
from onkel.cli.words import Problem
from onkel.core.errors import DataError
from onkel.core.wording import printable


def main(argv: Sequence[str] | None, loaded: Callable[[], None]) -> int:
    """Run the command line and return the exit status; `loaded` is called when all that it needs is imported."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # characters that the terminal cannot show are replaced
    command = next((word for word in words if not word.startswith("-")), "")
    try:  # loading a command takes time, and may be interrupted, too
        said = argparse.Namespace(command=shlex.join(["onkel", *words]))  # for reports
        arguments = parsers([command])[0].parse_args(words, said)
        with warnings.catch_warnings():  # columns of files have been matched by name
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            loaded()
            status: int = arguments.run(arguments)
        sys.stdout.flush()
    except (Problem, DataError) as problem:
        print(f"onkel: {printable(str(problem))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("onkel: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has closed the pipe: nothing can be printed any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status
