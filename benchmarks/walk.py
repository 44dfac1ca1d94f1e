"""The walk from a call to its answer: Python calls, and the functions and files of onkel that they run through.

    python benchmarks/walk.py     # of the onkel that this Python has installed

Generator expressions count as calls, each time they are resumed.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np

import onkel
from onkel.cli import main

HOME = str(Path(onkel.__file__).parent)


class Walk:
    """Counts what is called while the block lasts."""

    def __init__(self) -> None:
        self.calls, self.ours, self.functions = 0, 0, set[tuple[str, str]]()

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code
            self.calls += 1
            if code.co_filename.startswith(HOME):
                self.ours += 1
                self.functions.add((code.co_filename, code.co_qualname))

    def __enter__(self) -> Walk:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *problem: object) -> None:
        sys.setprofile(None)
        self.calls -= 1  # this one

    def row(self, name: str) -> str:
        """A row of the table."""
        files = len({file for file, _ in self.functions})
        return f"| {name} | {self.ours:,} | {len(self.functions)} | {files} | {self.calls:,} |"


def walk(action: Callable[[], object]) -> Walk:
    """What an action runs through; it was run before, so that nothing is imported on the way."""
    with Walk() as counted:
        action()
    return counted


def table() -> None:
    """Print it."""
    X = np.random.default_rng(0).normal(size=(100, 5))
    y = np.where(X[:, 0] * X[:, 1] > 0, "a", "b")
    row = dict(zip("abcde", X[0].tolist(), strict=True))

    def model() -> onkel.RBPClassifier:
        return onkel.RBPClassifier(budget=20).partial_fit(X, y)

    named = onkel.RBPClassifier(budget=20)
    for label in "abab":
        named.learn_one(row, label)
    learned, path = model(), Path(tempfile.mkdtemp()) / "model"

    def race() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            main(["race", "iris", "--algorithms", "RBP", "--limit", "50", "--quiet", "--json"])

    actions: dict[str, Callable[[], object]] = {
        "the first partial_fit": model,
        "a second partial_fit": lambda: learned.partial_fit(X, y),
        "predict": lambda: learned.predict(X),
        "learn_one, array": lambda: learned.learn_one(X[0], "a"),
        "learn_one, dictionary": lambda: named.learn_one(row, "a"),
        "predict_one, dictionary": lambda: named.predict_one(row),
        "save": lambda: learned.save(path),
        "load": lambda: onkel.load(path),
        "onkel race, one learner, 50 rows": race,
    }
    print("| from the call and back | calls in onkel | functions | files | calls in all |")
    print("| --- | --- | --- | --- | --- |")
    for name, action in actions.items():
        action()
        print(walk(action).row(name))


if __name__ == "__main__":
    table()
