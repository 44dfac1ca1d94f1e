"""onkel predict: what a model says of the examples of a file or of standard input, as they come."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from onkel import report
from onkel.cli import models, source
from onkel.cli.words import Problem
from onkel.follower import Follower
from onkel.stream import counted


def add(commands: Any) -> None:
    """Tell the parser about the command."""
    parser = commands.add_parser(
        "predict",
        help="predictions of a model, one a line",
        description="The model is not changed. Columns are found by their names, and read as those it learned "
        "from; if the file has targets too, the error is told at the end.",
    )
    parser.set_defaults(run=_predict)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a file that onkel run, onkel tune or save wrote")
    source.add_input(parser, labelled=False)
    add = parser.add_argument_group("output").add_argument
    add("--scores", action="store_true", help="after each prediction the scores of the classes, separated by tabs")
    add("--json", action="store_true", help="one JSON object a line")
    add("--quiet", action="store_true", help="no error at the end")


def _predict(arguments: argparse.Namespace) -> int:
    follower = models.read(arguments.model)
    if follower.seen == 0:
        raise Problem(f"{arguments.model} has learned nothing yet")
    if arguments.scores and follower.task == "regression":
        raise Problem("--scores are for classification; a prediction of a regression is its score")
    total, known, count = 0.0, 0, 0
    columns = follower.schema = source.schema(arguments, follower.schema)
    if follower.task == "regression":
        columns.labels = "f"  # texts are refused where they stand
    if arguments.missing is None and columns.missing == "drop":
        columns.missing = None  # every row gets its prediction, unless it is said here
    for block in source.blocks(arguments, columns, learning=False):
        try:
            said = follower.predict(block.X)
            scores = follower.scores(block.X).tolist() if arguments.scores else [None] * len(said)
        except ValueError as problem:
            raise Problem(f"{arguments.stream}: {problem}") from None
        rows = range(count, count + len(said)) if block.rows is None else block.rows.tolist()
        sys.stdout.writelines(_line(arguments, *each) for each in zip(rows, said, scores, strict=True))
        sys.stdout.flush()
        count += len(said)
        pairs = [(one, y) for one, y in zip(said, block.y.tolist(), strict=True) if y == y]  # NaN: not known
        total += sum(_loss(follower, one, y) for one, y in pairs)
        known += len(pairs)
    if known and not arguments.quiet:
        error = total / known if follower.task == "classification" else math.sqrt(total / known)
        shown = report.show_error(follower.task)(error)
        print(f"{report.measure(follower.task)} {shown} on {counted(known, 'example')}", file=sys.stderr)
    elif arguments.target and not arguments.quiet:
        print(f"{arguments.stream} has no targets in a column {arguments.target!r} to compare with", file=sys.stderr)
    return 0


def _loss(follower: Follower, said: Any, label: Any) -> float:
    return float(said != label) if follower.task == "classification" else float((said - label) ** 2)


def _line(arguments: argparse.Namespace, number: int, said: Any, scores: Any) -> str:
    listed = [] if scores is None else scores if isinstance(scores, list) else [scores]
    if not arguments.json:
        return "\t".join([str(said), *(f"{score!r}" for score in listed)]) + "\n"
    return json.dumps({"row": number, "prediction": said} | ({"scores": listed} if listed else {})) + "\n"
