"""What commands write: models, pages and figures. If something cannot be written, the error says why."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from onkel.cli.show import say
from onkel.cli.words import Problem
from onkel.core.wording import printable
from onkel.evaluation import report
from onkel.evaluation.follower import Follower
from onkel.evaluation.results import Standings


def check(read: str, **written: Path | None) -> None:
    """Refuse files that cannot be written, or are also read or written as something else, before the work begins.

    `read` is what the command reads from, `written` the files it is to write, by what they are.
    """
    taken = {Path(read).resolve(): "the data"} if Path(read).is_file() else {}
    for name, path in written.items():
        what = name.replace("_", " ")
        if path is None:
            continue
        folder = path.absolute().parent
        if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
            raise Problem(f"the {what} cannot be written to {path}; name a file in a folder that you can write to")
        other = taken.setdefault(path.resolve(), f"the {what}")
        if other != f"the {what}" and (path.is_file() or not path.exists()):  # /dev/null may be named twice
            raise Problem(f"the {what} would be written over {other}, {path}; name another file")


@contextlib.contextmanager
def writing(what: str, path: Path) -> Iterator[None]:
    """Turn errors of writing into a `Problem`."""
    try:
        yield
    except OSError as problem:
        raise Problem(f"{what} cannot be written to {path}: {problem.strerror}") from None


def write_model(follower: Follower, path: Path, *, keep: bool = False) -> None:
    """Write a learner and its place in the stream; `keep`: see `Follower.save`."""
    with writing("the model", path):
        follower.save(path, keep=keep)


def write_report(races: Sequence[Standings], arguments: argparse.Namespace, **words: Any) -> None:
    """Write the page that --report asks for; words: as of `report.render`."""
    with writing("the report", arguments.report):
        report.write(arguments.report, races, command=arguments.command, **words)
    written("report", arguments.report, arguments)


def make_folder(path: Path | None) -> None:
    """Make the folder for figures, before the race and not after it."""
    if path is not None:
        with writing("the figures", path):
            path.mkdir(parents=True, exist_ok=True)


def write_figures(races: Sequence[Standings], arguments: argparse.Namespace) -> None:
    """Write the figures that --figures asks for."""
    with writing("the figures", arguments.figures):
        for name, picture in report.figures(races).items():
            (arguments.figures / f"{name}.svg").write_text(picture, encoding="utf-8")
    written("figures", arguments.figures, arguments)


def printed(prediction: Any) -> str:
    """A prediction on its line: a label from a file may hold anything."""
    return printable(str(prediction))


def written(what: str, path: Path, arguments: argparse.Namespace) -> None:
    """Tell where a file was written, unless --quiet."""
    if not arguments.quiet:
        say(f"{what}: {printable(str(path))}", to=sys.stderr)
