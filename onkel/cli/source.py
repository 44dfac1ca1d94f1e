"""Where the examples come from: a file or a stream that has a name."""

from __future__ import annotations

import argparse
from pathlib import Path

from onkel import datasets
from onkel.cli.words import Problem, names
from onkel.datasets import Stream

FACES = {"classification": "Classifier", "regression": "Regressor"}


def add(parser: argparse.ArgumentParser) -> None:
    """Let a command ask for streams."""
    endings = ", ".join(datasets.ENDINGS)
    parser.add_argument(
        "stream",
        nargs="?",
        default="demo",
        metavar="STREAM",
        help=f"a file ({endings}), a name (see: onkel data), or demo: four small streams (default)",
    )
    add = parser.add_argument_group("files").add_argument
    add("--target", metavar="NAME", help="target column of a CSV file (npz: target array, default y)")
    add("--drop", type=names, metavar="A,B", help="columns of a CSV file to leave out")
    add("--task", choices=["auto", *FACES], help="default auto: by the look of the target")
    add("--scale", choices=["auto", "none"], help="auto (default): standardise features and real targets")
    add("--keep-order", action="store_true", help="learn the rows as they stand, not shuffled")


def streams(arguments: argparse.Namespace) -> list[Stream]:
    """The streams that were asked for."""
    named = arguments.stream == "demo" or not _is_file(arguments.stream)
    if not named:
        return [_file(arguments)]
    for option in ("target", "drop", "task", "scale", "keep_order"):
        if getattr(arguments, option):
            raise Problem(f"--{option.replace('_', '-')} is for files; {arguments.stream} needs none")
    chosen = datasets.DEMO if arguments.stream == "demo" else [arguments.stream]
    return [datasets.load(name) for name in chosen]


def _is_file(name: str) -> bool:
    return name not in (*datasets.NAMES, *datasets.SETS) and (bool(Path(name).suffix) or Path(name).exists())


def _file(arguments: argparse.Namespace) -> Stream:
    path = Path(arguments.stream)
    stream = datasets.read(
        path,
        target=arguments.target,
        task=arguments.task or "auto",
        drop=arguments.drop or (),
        ordered=arguments.keep_order,
    )
    return stream if arguments.scale == "none" else stream.scaled()
