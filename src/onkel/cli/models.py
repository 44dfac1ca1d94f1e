"""Models at the shell: one made from a name and settings, or read from its file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from onkel.algorithms import Entry, find
from onkel.cli.show import say
from onkel.cli.words import Problem
from onkel.core.wording import printable
from onkel.datasets.stream import Task
from onkel.datasets.tables import Schema
from onkel.evaluation.follower import Follower, latest
from onkel.evaluation.tuning import parameter
from onkel.kernels import as_kernel

Found = TypeVar("Found")


def algorithms(names: list[str]) -> list[Entry]:
    """The algorithms and variants of these names, each once."""
    try:
        return list({entry.title: entry for entry in map(find, names)}.values())
    except ValueError as error:
        raise Problem(str(error)) from None


def setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE; the value is a number, true, false, null, or else a text."""
    name, equals, value = text.partition("=")
    if not name.strip() or not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name.strip(), literal(value.strip())


def literal(text: str) -> Any:
    """A value as it is written at the shell."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def make(name: str, task: Task, settings: dict[str, Any], schema: Schema | None = None) -> Any:
    """A fresh model of the algorithm with that name, for such columns if they are known."""
    (entry,) = algorithms([name])
    face = entry.classes.get(task)
    if face is None:
        raise Problem(f"{entry.name} does {' and '.join(entry.tasks)}, not {task}; choose another, or say --task")
    if not entry.online:
        raise Problem(f"{entry.name} learns from all rows at once, not from a stream: choose another")
    model = face(**entry.settings)
    for key, value in settings.items():
        try:
            model.set_params(**{parameter(key): value})
        except (ValueError, TypeError) as problem:
            known = [*(["gamma"] if hasattr(model, "kernel") else []), *model.get_params(deep=False)]
            if key.partition("__")[0] in known:
                raise Problem(f"{entry.name}: {key} cannot be {value!r}: {problem}") from None
            raise Problem(f"{entry.name} has no parameter {key!r}; it has {', '.join(known)}") from None
    try:
        model._check_params()
    except (ValueError, TypeError) as problem:
        raise Problem(str(problem)) from None
    if schema is not None and schema.texts and hasattr(model, "kernel"):
        model.kernel = as_kernel(model.kernel).resolve(len(schema.features or ()))  # "auto" counts columns, not texts
    return model


def read(path: Path) -> Follower:
    """A model from its file, with what is known of its stream."""
    return _read(path, Follower.load)


def read_latest(path: Path) -> tuple[Follower, bool]:
    """The model, and whether it is that of the file itself; else it is the one saved before, and a sentence says so."""
    follower, said = _read(path, latest)
    if said:
        say(f"onkel: {printable(said)}", to=sys.stderr)
    return follower, not said


def _read(path: Path, how: Callable[[Path], Found]) -> Found:
    try:
        return how(path)
    except FileNotFoundError:
        raise Problem(f"there is no model {path}; onkel run and onkel tune make one") from None
    except (ValueError, OSError) as problem:
        raise Problem(str(problem)) from None
