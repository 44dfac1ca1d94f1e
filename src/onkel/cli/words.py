"""Types of command-line arguments, and `Problem`, the error whose message is shown to the user."""

from __future__ import annotations

import argparse
import math
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from onkel.core.wording import printable


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, like those of all commands."""

    def parse_known_args(self, args: Any = None, namespace: Any = None, **more: Any) -> Any:
        """Parse; the two words `keep FILE` of --bad-rows are one."""
        words = list(sys.argv[1:] if args is None else args)
        for i in range(len(words) - 2, 0, -1):
            if words[i - 1] == "--bad-rows" and words[i] == "keep":
                words[i : i + 2] = [f"keep {words[i + 1]}"]
        return super().parse_known_args(words, namespace, **more)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {printable(message)}; see: {self.prog} --help\n")


class Problem(Exception):
    """A problem that the user can solve; the message is shown."""


def bad_rows(text: str) -> str | Path:
    """What becomes of bad rows: stop, skip, or the file of `keep FILE`."""
    word, _, file = text.partition(" ")
    if word == "keep" and file:
        return Path(file)
    if text not in ("stop", "skip"):
        raise argparse.ArgumentTypeError(f"must be stop, skip or keep FILE, got {text!r}")
    return text


def names(text: str) -> list[str]:
    """Several names, separated by commas."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError("name at least one, separated by commas")
    return found


def whole(text: str) -> int:
    """A whole number, 0 or more."""
    return _whole(text, 0)


def positive(text: str) -> int:
    """A whole number above zero."""
    return _whole(text, 1)


def _whole(text: str, least: int, wanted: str = "") -> int:
    if not re.fullmatch("[0-9]+", text) or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number >= {least}{wanted}, got {text!r}")
    return int(text)


def above_zero(text: str) -> float:
    """A finite number above zero."""
    return _number(text, "> 0")


def _number(text: str, wanted: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf or (value == 0 and wanted == "> 0"):
        raise argparse.ArgumentTypeError(f"must be a number {wanted}, got {text!r}")
    return value


def share(text: str) -> float:
    """A number between 0 and 1."""
    if not (re.fullmatch(r"0?\.[0-9]+", text) and float(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, written like 0.2, got {text!r}")
    return float(text)


def jobs(text: str) -> int:
    """A number of things to do at once; -1: as many as there are cores."""
    return -1 if text == "-1" else _whole(text, 1, " or -1")


def seconds(text: str) -> float:
    """A time, which may be zero."""
    return _number(text, ">= 0")
