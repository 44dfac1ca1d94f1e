"""Live progress on a terminal: of a race, and of a single learner.

It is drawn between measurements, not by a separate thread, so that it does not add to measured times.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any, Self

from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn

from onkel.cli.show import Console
from onkel.core.wording import counted
from onkel.datasets import Stream
from onkel.evaluation import report
from onkel.evaluation.follower import Follower
from onkel.evaluation.race import Lap

REFRESH = 0.1  # seconds between two drawings


class Live:
    """Lines with a bar and these columns, as long as the block lasts."""

    def __init__(self, *columns: ProgressColumn, quiet: bool) -> None:
        console = Console(stderr=True)
        hidden = quiet or not console.is_terminal
        self.progress = Progress(*columns, console=console, transient=True, auto_refresh=False, disable=hidden)
        self.drawn = 0.0

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.progress.stop()

    def draw(self) -> None:
        """Draw, unless this was done a moment ago."""
        if time.monotonic() - self.drawn > REFRESH:
            self.progress.refresh()
            self.drawn = time.monotonic()


class RaceProgress(Live):
    """One line for each learner of a race."""

    def __init__(self, stream: Stream, names: list[str], arguments: argparse.Namespace) -> None:
        fields = ("error", "count", "size", "seconds")
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            *(TextColumn(f"{{task.fields[{field}]}}", justify="right") for field in fields),
            quiet=arguments.quiet,
        )
        self.error = report.show_error(stream.task)
        self.examples = min(len(stream), arguments.limit or len(stream))
        total = self.examples * stream.count_orders(arguments.orders)
        empty: dict[str, Any] = dict.fromkeys(fields, "")
        self.lines = {name: self.progress.add_task(name, total=total, **empty) for name in names}
        self.seconds = dict.fromkeys(names, 0.0)  # of the orders a learner has finished

    def show(self, lap: Lap) -> None:
        """Take note of a checkpoint."""
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
        self.draw()


class StreamProgress(Live):
    """One line: how far a stream has been learned, the error so far, and the time left."""

    def __init__(self, quiet: bool, total: int | None = None) -> None:
        super().__init__(BarColumn(bar_width=16), TextColumn("{task.fields[words]}", markup=False), quiet=quiet)
        self.line = self.progress.add_task("", total=1.0 if total is None else total, words="")
        self.total, self.begun = total, time.monotonic()
        self.first: int | None = None

    def show(self, follower: Follower) -> None:
        """Where a follower is: examples, error, size, rate."""
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
        """Set how much is done, in units of the total."""
        self.progress.update(self.line, completed=done, words="  ".join(words))
        self.draw()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
