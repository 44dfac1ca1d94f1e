"""onkel run: one learner learns a stream, writes its predictions, and saves checkpoints from which it continues."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
import scipy.sparse

from onkel.algorithms import find
from onkel.cli import models, output, source
from onkel.cli.interrupts import Interrupts
from onkel.cli.progress import StreamProgress
from onkel.cli.show import finite
from onkel.cli.words import Problem, seconds
from onkel.core.files import previous
from onkel.core.wording import counted
from onkel.datasets.stream import Stream, Task, infer_task
from onkel.datasets.tables import Block, Schema
from onkel.evaluation import report
from onkel.evaluation.follower import Follower
from onkel.evaluation.results import Result, Standings, settings
from onkel.evaluation.scale import scales_for
from onkel.evaluation.tuning import parameter

DEFAULT = "FOGD"  # which needs no settings
ENOUGH = 50  # rows after which targets are known to be classes or numbers


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.description = (
        "Every example is predicted and then learned, in the order of the file. With a checkpoint the run "
        "may be interrupted or killed at any time: the same command goes on where it stopped, and ends with the very "
        "model of a run that was never interrupted."
    )
    parser.epilog = "What comes on standard input is always new: nothing of it is skipped."
    parser.set_defaults(run=_run)
    source.add_input(parser)
    add = parser.add_argument_group("learner").add_argument
    add("--model", metavar="NAME", help=f"an algorithm (see: onkel algorithms; default {DEFAULT})")
    add(
        "--set",
        type=models.setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter, such as eta=0.5 or gamma=0.1; may be repeated",
    )
    add(
        "--scale",
        choices=["running", "none"],
        default="running",
        help="running (default): standardise dense features and real targets by what has been seen so far",
    )
    add = parser.add_argument_group("output").add_argument
    add("--checkpoint", type=Path, metavar="MODEL", help="write the model there, and go on from it if it is there")
    add("--every", type=seconds, default=10.0, metavar="SECONDS", help="time between checkpoints (default 10)")
    add(
        "--predictions",
        metavar="PATH",
        help="write one prediction a line, made before its example was learned; - for standard output",
    )
    add("--report", type=Path, metavar="PAGE", help="write an HTML page with the curve and the settings")
    add("--json", action="store_true", help="the summary as JSON")
    add("--quiet", action="store_true", help="no progress")


class Session:
    """One run of the command: the learner, and how far it was when the command began.

    Parameters
    ----------
    arguments : those of the command

    Attributes
    ----------
    follower : the learner, with all that it has learned, also after an interrupt; None before its first example.
    before : examples it had learned when the command began.
    sound : whether the newest checkpoint is whole, so that it may be kept as the one before.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.follower, self.sound = _resumed(arguments)
        self.before = 0 if self.follower is None else self.follower.seen

    @property
    def live(self) -> bool:
        """Does the stream come on standard input?"""
        return bool(self.arguments.stream == "-")

    @property
    def title(self) -> str:
        """The stream, for people."""
        return "standard input" if self.live else Path(self.arguments.stream).name

    def follow(self, predictions: TextIO | None, progress: StreamProgress, interrupts: Interrupts) -> None:
        """Learn the stream to its end."""
        arguments = self.arguments
        skip = 0 if self.follower is None or self.live else self.follower.about.get("position", 0)
        schema, begun = _columns(arguments, self.follower, again=skip > 0)
        task, blocks = arguments.task, source.blocks(arguments, schema)
        if self.follower is None and task in (None, "auto"):
            task, blocks = _task_of(blocks)
        saved = time.monotonic()
        for block in blocks:
            X, y = block.X[skip:], block.y[skip:]
            skip = max(0, skip - len(block.y))
            if len(y) == 0:
                continue
            if self.follower is None:
                self.follower = _fresh(arguments, task, X, schema)
            self.follower.schema = schema  # not before: while learned rows are skipped, it lags behind the model
            self.follower.about["schema"] = begun
            with interrupts.waiting():
                self._learn(self.follower, X, y, predictions)
            progress.show(self.follower)
            if time.monotonic() - saved > arguments.every:
                self.save()
                saved = time.monotonic()
        if self.follower is None:
            raise Problem(f"{arguments.stream} has no rows")
        if skip:
            learned = self.follower.about["position"]
            raise Problem(
                f"{arguments.stream} has {counted(learned - skip, 'row')}, but {arguments.checkpoint} has "
                f"learned {counted(learned, 'row')} of it, so it is another file now; give it on standard input (-), "
                "where all rows are new, or name another checkpoint"
            )
        with interrupts.waiting():
            self.save()

    def _learn(self, follower: Follower, X: Any, y: Any, predictions: TextIO | None) -> None:
        try:
            said = follower.learn(X, y)
        except (ValueError, FloatingPointError) as problem:
            file = self.arguments.checkpoint
            kept = f"; {file} is as it was at the last checkpoint" if file else ""
            raise Problem(f"after {counted(follower.seen, 'example')}: {problem}{kept}") from None
        follower.about["position"] += len(y)
        if predictions is not None:
            predictions.writelines("\n" if one is None else f"{one}\n" for one in said)
            predictions.flush()
            follower.about["written"] = None if predictions is sys.stdout else predictions.tell()

    def save(self) -> None:
        """Write the checkpoint, if there is one to write."""
        if self.arguments.checkpoint is not None and self.follower is not None and self.follower.seen:
            output.write_model(self.follower, self.arguments.checkpoint, keep=self.sound)
            self.sound = True


def _run(arguments: argparse.Namespace) -> int:
    to = None if arguments.predictions in (None, "-") else Path(arguments.predictions)
    file = arguments.checkpoint
    before = None if file is None else previous(file)
    output.check(arguments.stream, model=file, previous_model=before, predictions=to, report=arguments.report)
    session = Session(arguments)
    with Interrupts() as interrupts, contextlib.ExitStack() as stack:
        progress = stack.enter_context(StreamProgress(arguments.quiet, source.expected(arguments)))
        predictions = stack.enter_context(_predictions(arguments, session.follower))
        try:
            session.follow(predictions, progress, interrupts)
        except BrokenPipeError:
            session.save()
            raise
        except KeyboardInterrupt:
            with interrupts.waiting(final=True):
                session.save()
    if session.follower is None:
        print("onkel: interrupted before the first example", file=sys.stderr)
    else:
        _tell(session, session.follower, interrupts.status)
    return interrupts.status


def _task_of(blocks: Iterator[Block]) -> tuple[Task, Iterator[Block]]:
    """The task inferred from the targets, and the same blocks; if targets are numbers, at least 50 of them decide."""
    first: list[Block] = []
    for block in blocks:
        first.append(block)
        if block.y.dtype.kind not in "iuf" or sum(len(one.y) for one in first) >= ENOUGH:
            break
    return infer_task(np.concatenate([block.y for block in first])), itertools.chain(first, blocks)


# -- the learner


def _resumed(arguments: argparse.Namespace) -> tuple[Follower | None, bool]:
    """What the checkpoint holds, None if there is none yet; and whether it is the newest."""
    file = arguments.checkpoint
    if file is None or not (file.exists() or previous(file).exists()):
        return None, False
    follower, newest = models.read_latest(file)
    wanted, said = follower.model, arguments.set
    if arguments.model:
        wanted = models.make(arguments.model, follower.task, {})
        said = [*find(arguments.model).settings.items(), *said]
    if type(wanted) is not type(follower.model) or not _agrees(follower.model, said):
        raise Problem(
            f"{arguments.checkpoint} holds {follower.model!r}; omit --model and --set to go on with it, "
            "or name another checkpoint"
        )
    if follower.about.get("source") != arguments.stream:
        follower.begin(arguments.stream)
    return follower, newest


def _agrees(model: Any, wanted: list[tuple[str, Any]]) -> bool:
    other = model.clone().set_params(**{parameter(key): value for key, value in wanted})
    return settings(other) == settings(model)


def _columns(arguments: argparse.Namespace, follower: Follower | None, again: bool) -> tuple[Schema, dict[str, Any]]:
    """The schema to read the stream with, and what it was before the first row.

    If rows are read `again`, only to be skipped, their means and words are learned again: then the first is a copy with
    the means and words from before the first row.
    """
    known = Schema() if follower is None else follower.schema
    made = source.schema(arguments, known)
    if follower is None or not again:
        return made, made.plain()
    for option in ("target", "missing"):
        was, now = getattr(known, option), getattr(made, option)
        if was != now and (was or option == "target"):  # without --missing no value was missing so far
            how = f"with --{option} {was}" if was else f"without --{option}"
            raise Problem(f"{arguments.stream} was begun {how}; omit --{option} {now}, or name another checkpoint")
    begun = Schema.of(follower.about["schema"])
    return replace(made, sums=begun.sums, counts=begun.counts, words=begun.words), follower.about["schema"]


def _fresh(arguments: argparse.Namespace, task: Task, X: Any, schema: Schema) -> Follower:
    model = models.make(arguments.model or DEFAULT, task, dict(arguments.set), schema)
    follower = Follower(model, *(scales_for(X, schema, task) if arguments.scale == "running" else (None, None)))
    follower.begin(arguments.stream)
    return follower


@contextlib.contextmanager
def _predictions(arguments: argparse.Namespace, follower: Follower | None) -> Iterator[TextIO | None]:
    """The output for predictions; a file is cut back to the rows that the checkpoint has learned."""
    if arguments.predictions in (None, "-"):
        yield None if arguments.predictions is None else sys.stdout
        return
    written = 0 if follower is None else follower.about.get("written") or 0
    path = Path(arguments.predictions)
    mode: Literal["r+", "w"] = "r+" if written and path.exists() else "w"
    with output.writing("predictions", path), path.open(mode, encoding="utf-8", newline="\n") as file:
        if written:
            if file.seek(0, 2) < written:
                raise Problem(f"{path} is shorter than it was at the checkpoint; name another file for predictions")
            file.seek(written)
            file.truncate()
        yield file


# -- what to show


def _tell(session: Session, follower: Follower, status: int) -> None:
    arguments = session.arguments
    channel = sys.stderr if arguments.predictions == "-" else sys.stdout
    if arguments.json:
        print(json.dumps(_as_data(session, follower, status), indent=1), file=channel)
    else:
        print(_in_words(session, follower), file=channel)
    if arguments.report is not None:
        notice = f"Interrupted after {counted(follower.seen, 'example')}, so this is partial." if status else ""
        title = f"onkel run: {session.title}"
        output.write_report([_as_race(session, follower)], arguments, title=title, notice=notice)
    if status:
        again = "; the same command goes on from here" if arguments.checkpoint and not session.live else ""
        print(f"onkel: interrupted after {counted(follower.seen, 'example')}{again}", file=sys.stderr)


def _in_words(session: Session, follower: Follower) -> str:
    error = report.show_error(follower.task)(follower.error)
    each = report.show_time(1e6 * follower.seconds / max(follower.seen, 1))
    new = follower.seen - session.before
    news = f" ({f'{new:,} new' if new else 'nothing new'})" if session.before else ""
    lines = [
        f"{session.title}: {counted(follower.seen, 'example')}{news}, {report.measure(follower.task)} {error}, "
        f"{follower.model.n_support_:,} SV, {each} us per example",
        f"learner: {type(follower.model).__name__}",
    ]
    file = session.arguments.checkpoint
    return "\n".join([*lines, *([f"model: {file}"] if file else [])])


def _as_data(session: Session, follower: Follower, status: int) -> dict[str, Any]:
    file = session.arguments.checkpoint
    return {
        "stream": session.title,
        "learner": type(follower.model).__name__,
        "settings": settings(follower.model),
        "task": follower.task,
        "measure": report.measure(follower.task),
        "examples": follower.seen,
        "new": follower.seen - session.before,
        "error": finite(follower.error),
        "size": follower.model.n_support_,
        "seconds": follower.seconds,
        "model": None if file is None else str(file),
        "interrupted": bool(status),
    }


def _as_race(session: Session, follower: Follower) -> Standings:
    """The run as a race with one learner; of the stream, only its number of columns and its classes are kept."""
    y: Any = follower.classes if follower.task == "classification" else np.zeros(1)
    X = scipy.sparse.csr_matrix((len(y), follower.model.n_features_in_))
    about = f"{counted(follower.seen, 'example')} so far"
    result = Result(type(follower.model).__name__, settings(follower.model), (follower.trace,))
    return Standings(Stream(session.title, X, y, follower.task, about, ordered=True), (result,), follower.seen)
