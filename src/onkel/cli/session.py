"""A session of `onkel run`: the learner, the source it reads, and what is written while it learns.

After every block the learner, its place in the stream, and the lengths of what was written agree. Whatever ends the
session, `save` writes them together.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

from onkel.algorithms import find
from onkel.cli import models, output, source
from onkel.cli.interrupts import Interrupts
from onkel.cli.progress import StreamProgress
from onkel.cli.words import Problem
from onkel.core.errors import TooLarge
from onkel.core.files import previous, sync
from onkel.core.wording import counted
from onkel.datasets.bad_rows import BadRow, write
from onkel.datasets.reading import ROWS, OtherFile, Reading
from onkel.datasets.stream import Task, infer_task
from onkel.datasets.tables import Block, Schema
from onkel.evaluation.follower import Follower
from onkel.evaluation.results import settings
from onkel.evaluation.scale import scales_for
from onkel.evaluation.tuning import parameter

DEFAULT = "FOGD"  # which needs no settings
ENOUGH = 50  # rows after which targets are known to be classes or numbers
FEW = 64  # rows of the first block, as nothing is known of the time they take
PATIENCE = 0.1  # seconds that a block should take, as an interrupt waits for its end


class Session:
    """One run of the command.

    Parameters
    ----------
    arguments : those of the command

    Attributes
    ----------
    follower : the learner, with all that it has learned, also after an interrupt; None before its first example.
    before : examples it had learned when the command began.
    skipped : bad rows of the stream so far.
    waiting : bytes at the end of the file that wait for the end of their line.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.follower, self._sound = _resumed(arguments)  # sound: the newest checkpoint is whole
        about = {} if self.follower is None else self.follower.about
        self.before = 0 if self.follower is None else self.follower.seen
        self.skipped, self.waiting = int(about.get("skipped", 0)), 0
        self._place = None if self.live else about.get("place")
        if about.get("position") and not self.live and self._place is None:
            raise Problem(
                f"{arguments.checkpoint} does not tell its place in {arguments.stream}; name another checkpoint"
            )
        self._written, self._kept = about.get("written") or 0, about.get("kept") or 0
        self._changed = False
        self._reading: Reading | None = None
        self._predictions: TextIO | None = None
        self._bad: BinaryIO | None = None
        self._first = ""

    @property
    def live(self) -> bool:
        """Does the stream come on standard input?"""
        return bool(self.arguments.stream == "-")

    @property
    def skip(self) -> bool:
        """Are bad rows skipped?"""
        return bool(self.arguments.bad_rows != "stop")

    @property
    def title(self) -> str:
        """The stream, for people."""
        return "standard input" if self.live else Path(self.arguments.stream).name

    @contextlib.contextmanager
    def outputs(self) -> Iterator[None]:
        """Open what is written along the stream; files are cut back to the rows that the checkpoint has learned."""
        arguments = self.arguments
        with contextlib.ExitStack() as stack:
            if arguments.predictions == "-":
                self._predictions = sys.stdout
            elif arguments.predictions is not None:
                file = stack.enter_context(_continued("predictions", Path(arguments.predictions), self._written))
                self._predictions = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
            if isinstance(arguments.bad_rows, Path):
                self._bad = stack.enter_context(_continued("bad rows", arguments.bad_rows, self._kept))
            yield

    def follow(self, progress: StreamProgress, interrupts: Interrupts) -> None:
        """Learn the stream to its end."""
        arguments, schema = self.arguments, _schema(self.arguments, self.follower, again=self._place is not None)
        task = arguments.task if self.follower is None else self.follower.task
        if task in (None, "auto") and not self.live:
            task = self._task_ahead(schema)
        if task == "regression" and schema.labels != "U":
            schema.labels = "f"  # so that a text is a bad row
        try:
            with self._opened(schema, self._place) as reading:
                self._reading = reading
                if task in (None, "auto"):
                    task = self._task_of(reading)
                if self.follower is not None:
                    self.follower.schema = schema
                self._learn_all(reading, task, progress, interrupts)
        except OtherFile as problem:
            raise Problem(
                f"{problem}, but {arguments.checkpoint} has learned {counted(self._learned_of_it, 'row')} of it, so it "
                "is another file now; give it on standard input (-), where all rows are new, or name another checkpoint"
            ) from None
        if self.follower is None:
            what = "whole row yet" if self.waiting else "rows"
            raise Problem(f"{arguments.stream} has no {what}{self._first}")

    @property
    def _learned_of_it(self) -> int:
        return 0 if self.follower is None else int(self.follower.about["position"])

    def _opened(self, schema: Schema, place: Any) -> contextlib.AbstractContextManager[Reading]:
        growing = self.arguments.checkpoint is not None and not self.live
        return source.reading(self.arguments, schema, skip=self.skip, growing=growing, place=place)

    def _learn_all(self, reading: Reading, task: Any, progress: StreamProgress, interrupts: Interrupts) -> None:
        saved, reading.rows = time.monotonic(), FEW
        for block in reading:
            with interrupts.waiting():
                clock = time.monotonic()
                self._learn(reading, block, task)
                spent = max(time.monotonic() - clock, 1e-9)
                reading.rows = max(1, min(4 * reading.rows, ROWS, int(len(block.y) * PATIENCE / spent) or 1))
            if self.follower is not None:
                progress.show(self.follower)
            if time.monotonic() - saved > self.arguments.every:
                with interrupts.waiting():
                    self.save()
                saved = time.monotonic()
        self.waiting = reading.waiting

    def _learn(self, reading: Reading, block: Block, task: Any) -> None:
        """Learn a block, or the rows before the one that cannot be learned."""
        try:
            said = [] if not len(block.y) else self._learner(reading, block, task).learn(block.X, block.y)
        except Problem:
            raise
        except BaseException as error:
            said = getattr(error, "said", [])
            wrong = error.sentence if isinstance(error, TooLarge) else str(error)
            refused = reading.refused(len(said), wrong) if isinstance(error, TooLarge) else None
            part = reading.cut(len(said), wrong if refused is not None and self.skip else None)
            self._note(said, () if part is None else part.bad)
            if refused is not None and self.skip:
                return  # the rest of the block comes again, without the row
            if isinstance(error, (ValueError, FloatingPointError)):
                where = f"{reading.name}, {refused}" if refused else f"after {counted(self._seen, 'example')}: {wrong}"
                raise Problem(where) from None
            raise
        reading.confirm()
        self._note(said, block.bad)

    @property
    def _seen(self) -> int:
        return 0 if self.follower is None else self.follower.seen

    def _learner(self, reading: Reading, block: Block, task: Any) -> Follower:
        if self.follower is None:
            task = infer_task(block.y) if task in (None, "auto") else task
            self.follower = _fresh(self.arguments, task, block.X, reading.schema)
            self.follower.schema = reading.schema
        return self.follower

    def _note(self, said: list[Any], bad: tuple[BadRow, ...]) -> None:
        """Take note of rows that were learned, and of bad rows among them."""
        self._changed = True
        self.skipped += len(bad)
        self._first = self._first or (f"; of those that are bad, the first is {bad[0]}" if bad else "")
        if self.follower is not None:
            self.follower.about["position"] += len(said)
        if self._bad is not None and bad and self._reading is not None:
            write(self._bad, self._reading.head, bad)
            self._kept = self._bad.tell()
        if self._predictions is not None:
            self._predictions.writelines("\n" if one is None else f"{output.printed(one)}\n" for one in said)
            self._predictions.flush()
            self._written = 0 if self._predictions is sys.stdout else self._predictions.tell()

    # -- the task

    def _task_ahead(self, schema: Schema) -> Task:
        """The task, inferred from the first targets; if they are numbers, from at least 50 of them."""
        found: list[Any] = []
        ahead = replace(schema, words=dict(schema.words))
        with self._opened(ahead, None) as reading:
            for block in reading:
                found.append(block.y)
                if block.y.dtype.kind not in "iuf" and len(block.y):
                    break
                if sum(map(len, found)) >= ENOUGH:
                    break
        return infer_task(np.concatenate(found)) if found else "classification"

    def _task_of(self, reading: Reading) -> Task | None:
        """The same for standard input; None if there is no good row yet."""
        for least in (1, ENOUGH):
            reading.least = least
            block = next(reading, None)
            reading.back()
            if block is None:
                return None
            if len(block.y) and (block.y.dtype.kind not in "iuf" or len(block.y) >= ENOUGH):
                break
        reading.least = 1
        return infer_task(block.y) if block is not None and len(block.y) else None

    # -- the checkpoint

    def save(self) -> bool:
        """Write the checkpoint, if there is one to write and something new; whether there is one."""
        file, follower, reading = self.arguments.checkpoint, self.follower, self._reading
        if file is None or follower is None or not follower.seen:
            return False
        if self._changed and reading is not None:
            reading.back()
            for written in (self._predictions, self._bad):
                if written is not None and written is not sys.stdout:
                    sync(written.fileno())
            follower.about |= {"written": self._written, "skipped": self.skipped, "kept": self._kept}
            follower.about["place"] = None if self.live else reading.place
            output.write_model(follower, file, keep=self._sound)
            self._sound, self._changed = True, False
        return True

    def rescue(self) -> str:
        """Save after a problem; what became of the rows that were learned."""
        file, learned = self.arguments.checkpoint, self._seen - self.before
        rows = f"{counted(learned, 'row')} before {'was' if learned == 1 else 'were'} learned"
        if file is None:
            return f"{rows}, but not saved, as there is no --checkpoint" if learned else ""
        try:
            saved = self.save()
        except Problem as problem:
            return f"{rows}, but {problem}"
        if not learned:
            return f"{file} is as it was" if saved else ""
        again = "" if self.live else "; the same command goes on from there"
        return f"{rows} and saved in {file}{again}"


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


def _schema(arguments: argparse.Namespace, follower: Follower | None, again: bool) -> Schema:
    """The schema to read the stream with; `again`: a file that was begun with other options is refused."""
    known = Schema() if follower is None else follower.schema
    made = source.schema(arguments, known)
    for option in ("target", "missing") if again else ():
        was, now = getattr(known, option), getattr(made, option)
        if was != now and (was or option == "target"):  # without --missing no value was missing so far
            how = f"with --{option} {was}" if was else f"without --{option}"
            raise Problem(f"{arguments.stream} was begun {how}; omit --{option} {now}, or name another checkpoint")
    return made


def _fresh(arguments: argparse.Namespace, task: Task, X: Any, schema: Schema) -> Follower:
    model = models.make(arguments.model or DEFAULT, task, dict(arguments.set), schema)
    follower = Follower(model, *(scales_for(X, schema, task) if arguments.scale == "running" else (None, None)))
    follower.begin(arguments.stream)
    return follower


@contextlib.contextmanager
def _continued(what: str, path: Path, written: int) -> Iterator[BinaryIO]:
    """A file to go on with after so many bytes; what follows them was written after the checkpoint, and is cut off."""
    with output.writing(what, path):
        if written and not (path.exists() and path.stat().st_size >= written):
            raise Problem(f"{path} is shorter than it was at the checkpoint; name another file for {what}")
        with path.open("r+b" if written else "wb") as file:
            if written:
                file.seek(written)
                file.truncate()
            yield file
