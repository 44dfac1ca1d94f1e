"""What every command shows alike: tables, and live progress."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import rich.console
from rich import box
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from onkel import report
from onkel.datasets import Stream
from onkel.evaluate import Lap
from onkel.follower import Follower
from onkel.stream import counted

REFRESH = 0.1  # seconds between two pictures of the progress


class Console(rich.console.Console):
    """Where tables are printed."""

    def on_broken_pipe(self) -> None:
        """Leave it to `main` to end well, as where something else is printed."""
        raise BrokenPipeError


class Display:
    """Live progress on a terminal, one line per learner.

    It is drawn between measurements, never by a thread of its own, so that measured times stay true.
    """

    def __init__(self, stream: Stream, names: list[str], arguments: argparse.Namespace) -> None:
        console = Console(stderr=True)
        self.error = report.show_error(stream.task)
        self.examples = min(len(stream), arguments.limit or len(stream))
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[error]}", justify="right"),
            TextColumn("{task.fields[count]}", justify="right"),
            TextColumn("{task.fields[size]}", justify="right"),
            TextColumn("{task.fields[seconds]}", justify="right"),
            console=console,
            transient=True,
            auto_refresh=False,
            disable=arguments.quiet or not console.is_terminal,
        )
        total = self.examples * (1 if stream.ordered else arguments.orders)
        self.lines = {
            name: self.progress.add_task(name, total=total, error="", count="", size="", seconds="") for name in names
        }
        self.seconds = dict.fromkeys(names, 0.0)  # of the orders a learner has finished
        self.drawn = 0.0

    def __enter__(self) -> Display:
        self.progress.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.progress.stop()

    def show(self, lap: Lap) -> None:
        """Take note of a checkpoint, and draw if the last picture is old enough."""
        trace = lap.trace
        seen, seconds = int(trace.seen[-1]), self.seconds[lap.name] + float(trace.seconds[-1])
        if seen == self.examples:
            self.seconds[lap.name] = seconds
        told = trace.task == "classification" and math.isfinite(trace.total[-1])
        self.progress.update(
            self.lines[lap.name],
            completed=lap.order * self.examples + seen,
            error=self.error(float(trace.error[-1])),
            count=counted(int(trace.mistakes[-1]), "mistake") if told else "",
            size="" if trace.size is None else f"{trace.size[-1]:,} SV",
            seconds=f"{seconds:.1f} s",
        )
        if time.monotonic() - self.drawn > REFRESH:
            self.progress.refresh()
            self.drawn = time.monotonic()


class Walk:
    """Live progress of one thing: how far it is, what it says of itself, and the time left."""

    def __init__(self, quiet: bool, total: int | None = None) -> None:
        console = Console(stderr=True)
        self.progress = Progress(
            BarColumn(bar_width=16),
            TextColumn("{task.fields[words]}", markup=False),
            console=console,
            transient=True,
            auto_refresh=False,
            disable=quiet or not console.is_terminal,
        )
        self.line = self.progress.add_task("", total=1.0 if total is None else total, words="")
        self.total, self.begun, self.drawn = total, time.monotonic(), 0.0
        self.first: int | None = None

    def __enter__(self) -> Walk:
        self.progress.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.progress.stop()

    def show(self, follower: Follower) -> None:
        """Where a follower is: examples, rate, error, size."""
        now = time.monotonic()
        if self.first is None:
            self.first, self.begun = follower.seen, now
        rate = (follower.seen - self.first) / max(now - self.begun, 1e-9)
        error = report.show_error(follower.task)(follower.error)
        words = [counted(follower.seen, "example"), error, f"{follower.model.n_support_:,} SV"]
        if rate > 0:
            words.append(f"{rate:,.0f}/s")
        if rate > 0 and self.total is not None:
            words.append(f"{_duration(max(0, self.total - follower.about['position']) / rate)} left")
        self.tell(follower.about["position"], *words)

    def tell(self, done: float, *words: str) -> None:
        """Take note, and draw if the last picture is old enough."""
        self.progress.update(self.line, completed=done, words="  ".join(words))
        if time.monotonic() - self.drawn > REFRESH:
            self.progress.refresh()
            self.drawn = time.monotonic()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def pairs(data: Mapping[str, Any]) -> None:
    """Names and values, one pair a line; what is None is left out."""
    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in data.items():
        if value is not None:
            shown.add_row(name, Text(f"{value:,}" if isinstance(value, int) else str(value)))
    Console().print(shown)


def table(first: str, *others: str, justify: Literal["left", "right"] = "right") -> Table:
    """An empty table with these columns."""
    rows = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    rows.add_column(first, no_wrap=True)
    for name in others:
        rows.add_column(name, justify=justify)
    return rows


def print_whole(
    console: Console, rows: Callable[[list[str]], Table], columns: Sequence[str], dispensable: Sequence[str]
) -> list[str]:
    """Print a table with no number cut, on a narrow terminal without dispensable columns; those that were left out."""
    kept, dropped = list(columns), []
    for name in dispensable:
        if console.is_terminal and name in kept and _width(console, rows(kept)) > console.width:
            kept.remove(name)
            dropped.append(name)
    made = rows(kept)
    Console(width=max(console.width, _width(console, made))).print(made)
    return dropped


def _width(console: Console, rows: Table) -> int:
    return console.measure(rows, options=console.options.update(width=10_000)).maximum


def finite(value: Any) -> Any:
    """The value, or None if it is a number that JSON cannot hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
