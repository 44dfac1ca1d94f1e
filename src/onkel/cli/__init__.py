"""The shell command `onkel`: one file per command, and a table of them in `commands`.

The only package that prints. Results go to standard output, progress and problems to standard error.
Exit status: 0 if all went well, 2 after a problem, which one sentence reports, 130 after Ctrl-C, 143 after SIGTERM
(`onkel run`).
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

from onkel.cli.commands import parsers
from onkel.cli.words import Problem
from onkel.core.errors import DataError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
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
            status: int = arguments.run(arguments)
        sys.stdout.flush()
    except (Problem, DataError) as problem:
        print(f"onkel: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("onkel: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has closed the pipe: nothing can be printed any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def shell() -> NoReturn:
    """The command as a process of its own."""
    status = main()
    if threading.active_count() > 1:  # interrupted learners still run; exit without clean-up, which would crash them
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
