"""onkel run: one learner learns a stream, writes its predictions, and saves checkpoints from which it continues."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from onkel.cli import models, output, source
from onkel.cli.interrupts import Interrupts
from onkel.cli.progress import StreamProgress
from onkel.cli.session import DEFAULT, Session
from onkel.cli.show import finite, say
from onkel.cli.words import Problem, bad_rows, seconds
from onkel.core.errors import DataError
from onkel.core.files import previous
from onkel.core.wording import counted, printable
from onkel.datasets.stream import Stream
from onkel.evaluation import report
from onkel.evaluation.follower import Follower
from onkel.evaluation.results import Result, Standings, settings


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
    parser.add_argument(
        "--bad-rows",
        type=bad_rows,
        default="stop",
        metavar="stop|skip|keep FILE",
        help="rows that cannot be used: stop at the first one (default), skip them, or skip them and write them to a "
        "file, with line and reason, which can be mended and read again",
    )
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
        help="running (default): standardise dense features and real targets by the rows before",
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


def _run(arguments: argparse.Namespace) -> int:
    to = None if arguments.predictions in (None, "-") else Path(arguments.predictions)
    file, kept = arguments.checkpoint, arguments.bad_rows if isinstance(arguments.bad_rows, Path) else None
    before = None if file is None else previous(file)
    output.check(
        arguments.stream, model=file, previous_model=before, predictions=to, bad_rows=kept, report=arguments.report
    )
    session = Session(arguments)
    with Interrupts() as interrupts, contextlib.ExitStack() as stack:
        progress = stack.enter_context(StreamProgress(arguments.quiet, source.expected(arguments)))
        stack.enter_context(session.outputs())
        try:
            session.follow(progress, interrupts)
            with interrupts.waiting(final=True):
                session.save()
        except KeyboardInterrupt:
            with interrupts.waiting(final=True):
                session.save()
        except (Problem, DataError) as problem:
            with interrupts.waiting(final=True):
                rescued = session.rescue()
            raise Problem(f"{problem}; {rescued}" if rescued else str(problem)) from None
        except Exception:  # a closed pipe, no memory: the rows before are learned all the same
            with interrupts.waiting(final=True):
                session.rescue()
            raise
    if session.follower is None:
        print("onkel: interrupted before the first example", file=sys.stderr)
    else:
        _tell(session, session.follower, interrupts.status)
    return interrupts.status


# -- what to show


def _tell(session: Session, follower: Follower, status: int) -> None:
    arguments = session.arguments
    channel = sys.stderr if arguments.predictions == "-" else sys.stdout
    if arguments.json:
        print(json.dumps(_as_data(session, follower, status), indent=1), file=channel)
    else:
        say(_in_words(session, follower), to=channel)
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
    left = [f"{counted(session.skipped, 'bad row')} skipped"] if session.skipped else []
    left += ["the last line has no end yet, and waits for it"] if session.waiting else []
    news = f" ({f'{new:,} new' if new else 'nothing new'})" if session.before else ""
    lines = [
        f"{printable(session.title)}: {counted(follower.seen, 'example')}{news}, "
        f"{report.measure(follower.task)} {error}, "
        f"{follower.model.n_support_:,} SV, {each} us per example",
        *left,
        f"learner: {type(follower.model).__name__}",
    ]
    file = session.arguments.checkpoint
    return "\n".join([*lines, *([f"model: {printable(str(file))}"] if file else [])])


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
        "skipped": session.skipped,
        "waiting": session.waiting,
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
    skipped = f", {counted(session.skipped, 'bad row')} skipped" if session.skipped else ""
    about = f"{counted(follower.seen, 'example')} so far{skipped}"
    result = Result(type(follower.model).__name__, settings(follower.model), (follower.trace,))
    return Standings(Stream(session.title, X, y, follower.task, about, ordered=True), (result,), follower.seen)
