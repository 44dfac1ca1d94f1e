"""What the benchmarks share: a race, its settings and its results."""

from __future__ import annotations

import copy
import gc
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from plain import Peaks, Plain

FLAGS = ("-O3", "-O3 -march=native")  # of the plain twins: neither is the faster one everywhere
TYPES = (np.float64, np.float32)


@dataclass
class Bench:
    """The settings of a run."""

    quick: bool
    folder: Path
    cores: set[int] = field(default_factory=set)  # that there are; one of them is used

    @cached_property
    def plain(self) -> dict[str, Plain]:
        """The plain twins as different flags make them."""
        return {flags: Plain(self.folder, flags) for flags in FLAGS}

    @cached_property
    def peaks(self) -> Peaks:
        """What the machine can do at best."""
        return Peaks(self.folder)

    @property
    def repeats(self) -> int:
        """How often a thing is measured."""
        return 3 if self.quick else 5

    def size(self, n: int) -> int:
        """n examples, fewer in a quick run."""
        return n // 5 if self.quick else n


@dataclass
class Result:
    """A table. The value under `met` says whether a row reached its target."""

    title: str
    rows: list[dict[str, Any]]


@dataclass
class Again:
    """A contender that changes a model: each time a copy of the one given, made before the clock starts."""

    model: Any
    run: Callable[[Any], Any]

    def ready(self) -> Callable[[], Any]:
        """What is to be measured."""
        return partial(self.run, copy.deepcopy(self.model))


Runs = dict[str, Callable[[], Any] | Again]


def race(
    repeats: int, contenders: Runs, clock: Callable[[], float] = time.process_time
) -> tuple[dict[str, float], dict[str, Any]]:
    """The least CPU seconds of each contender, run in turn, and what each returned.

    Nothing is freed meanwhile: where numbers come to lie is luck worth some percent, and is tried as often.
    """
    best = dict.fromkeys(contenders, float("inf"))
    returned, alive = {}, []
    gc.collect()
    gc.disable()
    try:
        for _ in range(repeats):
            for name, contender in contenders.items():
                run = contender.ready() if isinstance(contender, Again) else contender
                alive.append(run)
                start = clock()
                returned[name] = run()
                best[name] = min(best[name], clock() - start)
    finally:
        gc.enable()
    return best, returned


def mistakes(scores: Any, y: Any) -> int:
    """How many scores have the wrong sign; 0 counts as positive."""
    return int(((scores >= 0) != (y > 0)).sum())


def learning(model: Any, X: Any, y: Any) -> Again:
    """A model learns, and returns what counts its mistakes once the clock has stopped."""
    return Again(model, lambda model: partial(mistakes, model.learn(X, y), y))


def begun(model: Any, X: Any, y: Any) -> Again:
    """The same from the second example on: the first, where the score is 0, comes before the clock starts.

    That is when it learns about columns and classes, and draws its random numbers; the plain twin is given these.
    """
    model.partial_fit(X[:1], y[:1], classes=np.unique(y))
    later, targets = X[1:], y[1:]

    def run(model: Any) -> Callable[[], int]:
        scores = model.learn(later, targets)
        return lambda: int(y[0] < 0) + mistakes(scores, targets)

    return Again(model, run)


def resident() -> int:
    """Bytes of memory this process holds now (elsewhere than on Linux: ever held)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def growth(model: Any, X: Any, y: Any, chunk: int, marks: tuple[int, int]) -> tuple[list[int], list[int]]:
    """The examples over and over; at the marks, the bytes this process holds and those of the model's state."""
    held, state = [], []
    for done in range(0, marks[1], chunk):
        now = slice(done % len(y), done % len(y) + chunk)
        model.partial_fit(X[now], y[now])
        if done + chunk in marks:
            gc.collect()
            held.append(resident())
            state.append(sum(array.nbytes for array in model.state()[0].values()))
    return held, state
