"""The shell command `onkel`: one file per command, and a table of them in `commands`.

The only package that prints. Results go to standard output, progress and problems to standard error.
Exit status: 0 if all went well, 2 after a problem, which one sentence reports, 130 after Ctrl-C, 143 after SIGTERM
(`onkel run`).
"""

import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NoReturn


def main(argv: Sequence[str] | None = None, loaded: Callable[[], Any] = lambda: None) -> int:
    """Run the command line and return the exit status; `loaded`: see `entry.main`."""
    status: int = importlib.import_module("onkel.cli.entry").main(argv, loaded)
    return status


def shell() -> NoReturn:
    """The command as a process of its own.

    Ctrl-C ends it in silence also while it loads, when Python would show where it was, or take it for a failed import.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # it is not ignored
        signal.signal(signal.SIGINT, _leave)
    status = main(loaded=lambda: signal.signal(signal.SIGINT, before))
    if threading.active_count() > 1:  # interrupted learners still run; exit without clean-up, which would crash them
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, b"onkel: interrupted\n")
    os._exit(130)
