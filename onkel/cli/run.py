"""onkel run: one learner along a stream, with predictions as they come and checkpoints to go on from."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import numpy as np
import scipy.sparse

from onkel import report
from onkel.algorithms import find
from onkel.cli import models, source
from onkel.cli.show import Walk, finite
from onkel.cli.words import Problem, check_outputs, seconds
from onkel.evaluate import Result, Standings, settings
from onkel.follower import Follower, Running
from onkel.stream import Stream, Task, counted, infer_task
from onkel.tables import Block, Schema

DEFAULT = "FOGD"  # which needs no settings
ENOUGH = 50  # rows that tell a class from a number


def add(commands: Any) -> None:
    """Tell the parser about the command."""
    parser = commands.add_parser(
        "run",
        help="let one learner follow a stream, from a file or standard input",
        description="Every example is predicted and then learned, in the order of the file. With a checkpoint the run "
        "may be interrupted or killed at any time: the same command goes on where it stopped, and ends with the very "
        "model of a run that was never interrupted.",
        epilog="What comes on standard input is always new: nothing of it is skipped.",
    )
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


def _run(arguments: argparse.Namespace) -> int:
    to = None if arguments.predictions in (None, "-") else Path(arguments.predictions)
    check_outputs(arguments.stream, model=arguments.checkpoint, predictions=to, report=arguments.report)
    follower = _resumed(arguments)
    arguments.before = 0 if follower is None else follower.seen
    with Interrupts() as interrupts, contextlib.ExitStack() as stack:
        walk = stack.enter_context(Walk(arguments.quiet, source.expected(arguments)))
        output = None if arguments.predictions is None else stack.enter_context(_predictions(arguments, follower))
        try:
            follower = _follow(arguments, follower, output, walk, interrupts)
        except BrokenPipeError:
            _save(arguments, arguments.follower)
            raise
        except KeyboardInterrupt:
            follower = arguments.follower
            with interrupts.waiting(final=True):
                _save(arguments, follower)
    _tell(arguments, follower, interrupts.status)
    return interrupts.status


def _follow(
    arguments: argparse.Namespace, follower: Follower | None, output: TextIO | None, walk: Walk, interrupts: Interrupts
) -> Follower:
    """Learn the stream to its end; where it is now can be seen in `arguments.follower`, even if it stops early."""
    arguments.follower = follower
    skip = 0 if follower is None or _is_live(arguments) else follower.about.get("position", 0)
    saved = time.monotonic()
    schema, begun = _columns(arguments, follower, again=skip > 0)
    blocks = source.blocks(arguments, schema)
    if follower is None and arguments.task in (None, "auto"):
        arguments.task, blocks = _look(blocks)
    for block in blocks:
        X, y = block.X[skip:], block.y[skip:]
        skip = max(0, skip - len(block.y))
        if len(y) == 0:
            continue
        if follower is None:
            follower = arguments.follower = _fresh(arguments, X, schema)
        follower.schema = schema  # not before: until then it was behind the place of the model
        follower.about["schema"] = begun
        with interrupts.waiting():
            try:
                said = follower.learn(X, y)
            except (ValueError, FloatingPointError) as problem:
                raise Problem(_told(arguments, follower, problem)) from None
            follower.about["position"] += len(y)
            if output is not None:
                output.writelines("\n" if one is None else f"{one}\n" for one in said)
                output.flush()
                follower.about["written"] = None if arguments.predictions == "-" else output.tell()
        walk.show(follower)
        if time.monotonic() - saved > arguments.every:
            _save(arguments, follower)
            saved = time.monotonic()
    if follower is None:
        raise Problem(f"{arguments.stream} has no rows")
    if skip:
        learned = follower.about["position"]
        raise Problem(
            f"{arguments.stream} has {counted(learned - skip, 'row')}, but {arguments.checkpoint} has "
            f"learned {counted(learned, 'row')} of it, so it is another file now; give it on standard input (-), "
            "where all rows are new, or name another checkpoint"
        )
    with interrupts.waiting():
        _save(arguments, follower)
    return follower


def _is_live(arguments: argparse.Namespace) -> bool:
    return bool(arguments.stream == "-")


def _told(arguments: argparse.Namespace, follower: Follower, problem: Exception) -> str:
    kept = f"; {arguments.checkpoint} is as it was at the last checkpoint" if arguments.checkpoint else ""
    return f"after {counted(follower.seen, 'example')}: {problem}{kept}"


def _look(blocks: Iterator[Block]) -> tuple[Task, Iterator[Block]]:
    """What kind of task the targets pose, and the same blocks; of numbers it takes some to tell."""
    first: list[Block] = []
    for block in blocks:
        first.append(block)
        if block.y.dtype.kind not in "iuf" or sum(len(one.y) for one in first) >= ENOUGH:
            break
    return infer_task(np.concatenate([block.y for block in first])), itertools.chain(first, blocks)


# -- the learner


def _resumed(arguments: argparse.Namespace) -> Follower | None:
    """What the checkpoint holds; None if there is none yet."""
    if arguments.checkpoint is None or not arguments.checkpoint.exists():
        return None
    follower = models.read(arguments.checkpoint)
    wanted, said = follower.model, arguments.set
    if arguments.model:
        wanted = models.make(arguments.model, follower.task, {})
        said = [*find(arguments.model).settings.items(), *said]
    if type(wanted) is not type(follower.model) or not _agrees(follower.model, said):
        raise Problem(
            f"{arguments.checkpoint} holds {follower.model!r}; omit --model and --set to go on with it, "
            "or name another checkpoint"
        )
    if follower.about.get("source") != arguments.stream:  # another stream: from its beginning
        follower.about |= {"source": arguments.stream, "position": 0, "written": 0}
    return follower


def _agrees(model: Any, wanted: list[tuple[str, Any]]) -> bool:
    other = model.clone().set_params(**{models.parameter(key): value for key, value in wanted})
    return settings(other) == settings(model)


def _columns(arguments: argparse.Namespace, follower: Follower | None, again: bool) -> tuple[Schema, dict[str, Any]]:
    """What is known of the columns, and what was known before the first row: its sums and words count, read `again`."""
    known = Schema() if follower is None else follower.schema
    made = source.schema(arguments, known)
    if follower is None or not again or "schema" not in follower.about:  # older models do not tell
        return made, made.plain()
    for option in ("target", "missing"):
        was, now = getattr(known, option), getattr(made, option)
        if was != now and (was or option == "target"):  # so far nothing was missing, if it was not said
            how = f"with --{option} {was}" if was else f"without --{option}"
            raise Problem(f"{arguments.stream} was begun {how}; omit --{option} {now}, or name another checkpoint")
    begun = Schema.of(follower.about["schema"])
    return replace(made, sums=begun.sums, counts=begun.counts, words=begun.words), follower.about["schema"]


def _fresh(arguments: argparse.Namespace, X: Any, schema: Schema) -> Follower:
    model = models.make(arguments.model or DEFAULT, arguments.task, dict(arguments.set), schema)
    scaled = arguments.scale == "running" and (schema.texts or not scipy.sparse.issparse(X))
    goal = Running() if arguments.scale == "running" and arguments.task == "regression" else None
    follower = Follower(model, Running(schema.numbers if schema.texts else None) if scaled else None, goal)
    follower.about = {"source": arguments.stream, "position": 0, "written": 0}
    return follower


def _save(arguments: argparse.Namespace, follower: Follower | None) -> None:
    if arguments.checkpoint is None or follower is None or follower.seen == 0:
        return
    try:
        follower.save(arguments.checkpoint)
    except OSError as problem:
        raise Problem(f"the model cannot be written to {arguments.checkpoint}: {problem.strerror}") from None


@contextlib.contextmanager
def _predictions(arguments: argparse.Namespace, follower: Follower | None) -> Iterator[TextIO]:
    """Where predictions go; a file is cut back to what the checkpoint knows of."""
    if arguments.predictions == "-":
        yield sys.stdout
        return
    written = 0 if follower is None else follower.about.get("written") or 0
    path = Path(arguments.predictions)
    try:
        with path.open("r+" if written and path.exists() else "w", encoding="utf-8", newline="\n") as file:
            if written:
                if file.seek(0, 2) < written:
                    raise Problem(f"{path} is shorter than it was at the checkpoint; name another file for predictions")
                file.seek(written)
                file.truncate()
            yield file
    except OSError as problem:
        raise Problem(f"predictions cannot be written to {path}: {problem.strerror}") from None


# -- interruptions


class Interrupts:
    """Ctrl-C and SIGTERM: they wait while examples are being learned, so that model and place stay together."""

    def __init__(self) -> None:
        self.number = 0
        self._busy = False

    @property
    def status(self) -> int:
        """The exit status: 0, or 128 and the number of the signal."""
        return 128 + self.number if self.number else 0

    def __enter__(self) -> Interrupts:
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *problem: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.number:
            raise SystemExit(128 + number)  # a second time: at once, without saving
        self.number = number
        if not self._busy:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def waiting(self, final: bool = False) -> Iterator[None]:
        """Within the block a signal is only noted; it takes effect at its end, unless all is over anyway."""
        self._busy = True
        yield
        self._busy = False
        if self.number and not final:
            raise KeyboardInterrupt


# -- what to show


def _tell(arguments: argparse.Namespace, follower: Follower | None, status: int) -> None:
    channel = sys.stderr if arguments.predictions == "-" else sys.stdout
    if follower is None:
        print("onkel: interrupted before the first example", file=sys.stderr)
        return
    if arguments.json:
        print(json.dumps(_as_data(arguments, follower, status), indent=1), file=channel)
    else:
        print(_in_words(arguments, follower), file=channel)
    if arguments.report is not None:
        stopped = f"Interrupted after {counted(follower.seen, 'example')}, so this is partial." if status else ""
        _write_report(arguments, follower, stopped)
    if status:
        again = "; the same command goes on from here" if arguments.checkpoint and not _is_live(arguments) else ""
        print(f"onkel: interrupted after {counted(follower.seen, 'example')}{again}", file=sys.stderr)


def _in_words(arguments: argparse.Namespace, follower: Follower) -> str:
    error = report.show_error(follower.task)(follower.error)
    each = report.show_time(1e6 * follower.seconds / max(follower.seen, 1))
    new = follower.seen - arguments.before
    news = f" ({f'{new:,} new' if new else 'nothing new'})" if arguments.before else ""
    lines = [
        f"{_title(arguments)}: {counted(follower.seen, 'example')}{news}, {report.measure(follower.task)} {error}, "
        f"{follower.model.n_support_:,} SV, {each} us per example",
        f"learner: {type(follower.model).__name__}",
    ]
    return "\n".join([*lines, *([f"model: {arguments.checkpoint}"] if arguments.checkpoint else [])])


def _title(arguments: argparse.Namespace) -> str:
    return "standard input" if _is_live(arguments) else Path(arguments.stream).name


def _as_data(arguments: argparse.Namespace, follower: Follower, status: int) -> dict[str, Any]:
    return {
        "stream": _title(arguments),
        "learner": type(follower.model).__name__,
        "settings": models.describe(follower.model),
        "task": follower.task,
        "measure": report.measure(follower.task),
        "examples": follower.seen,
        "new": follower.seen - arguments.before,
        "error": finite(follower.error),
        "size": follower.model.n_support_,
        "seconds": follower.seconds,
        "model": None if arguments.checkpoint is None else str(arguments.checkpoint),
        "interrupted": bool(status),
    }


def _write_report(arguments: argparse.Namespace, follower: Follower, notice: str) -> None:
    """The page of a race with one learner; of its stream nothing is kept but what it was like."""
    y: Any = follower.classes if follower.task == "classification" else np.zeros(1)
    X = scipy.sparse.csr_matrix((len(y), follower.model.n_features_in_))
    like = Stream(_title(arguments), X, y, follower.task, f"{counted(follower.seen, 'example')} so far", ordered=True)
    result = Result(type(follower.model).__name__, settings(follower.model), (follower.trace,))
    try:
        race = Standings(like, (result,), follower.seen)
        title = f"onkel run: {_title(arguments)}"
        report.write(arguments.report, [race], title=title, notice=notice, command=arguments.command)
    except OSError as problem:
        raise Problem(f"the report cannot be written to {arguments.report}: {problem.strerror}") from None
    if not arguments.quiet:
        print(f"report: {arguments.report}", file=sys.stderr)
