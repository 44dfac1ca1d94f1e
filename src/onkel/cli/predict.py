"""onkel predict: prints the predictions of a model for a file or standard input, block by block."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from onkel.cli import models, output, source
from onkel.cli.show import say
from onkel.cli.words import Problem
from onkel.core.wording import counted
from onkel.evaluation import report
from onkel.evaluation.totals import accumulated, error_of, errors


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.description = (
        "The model is not changed. Columns are found by their names, and read as those it learned "
        "from; if the file has targets too, the error is told at the end."
    )
    parser.set_defaults(run=_predict)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a file that onkel run, onkel tune or save wrote")
    source.add_input(parser, labelled=False)
    add = parser.add_argument_group("output").add_argument
    add("--scores", action="store_true", help="also the score (two classes) or the scores of all classes")
    add("--json", action="store_true", help="one JSON object a line")
    add("--quiet", action="store_true", help="no error at the end")


def _predict(arguments: argparse.Namespace) -> int:
    follower, _ = models.read_latest(arguments.model)
    if follower.seen == 0:
        raise Problem(f"{arguments.model} has learned nothing yet")
    if arguments.scores and follower.task == "regression":
        raise Problem("--scores are for classification; a prediction of a regression is its score")
    total, known, count = 0.0, 0, 0
    columns = follower.schema = source.schema(arguments, follower.schema)
    if follower.task == "regression":
        columns.labels = "f"  # so a text is refused with its place
    if arguments.missing is None and columns.missing == "drop":
        columns.missing = None  # without --missing drop on this call every row gets a prediction
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
        there = block.y == block.y  # NaN: not known
        predicted = np.array(said, dtype=float if follower.task == "regression" else object)
        total = accumulated(total, errors(predicted[there], block.y[there], follower.task))
        known += int(there.sum())
    if known and not arguments.quiet:
        shown = report.show_error(follower.task)(float(error_of(total, known, follower.task)))
        print(f"{report.measure(follower.task)} {shown} on {counted(known, 'example')}", file=sys.stderr)
    elif arguments.target and not arguments.quiet:
        say(f"{arguments.stream} has no targets in a column {arguments.target!r} to compare with", to=sys.stderr)
    return 0


def _line(arguments: argparse.Namespace, number: int, said: Any, scores: Any) -> str:
    listed = [] if scores is None else scores if isinstance(scores, list) else [scores]
    if not arguments.json:
        return "\t".join([output.printed(said), *(f"{score!r}" for score in listed)]) + "\n"
    return json.dumps({"row": number, "prediction": said} | ({"scores": listed} if listed else {})) + "\n"
