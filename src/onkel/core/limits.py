"""Limits against floods: how large a model and its input may be.

They are generous, and there to turn a wrong file or a hostile stream into a sentence instead of a machine without
memory. `use_limits` sets others; without a limit is `math.inf`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from onkel.core.errors import Refused

SHARE = 0.8  # of the memory of the machine


class TooMany(ValueError):
    """A number beyond one of the limits; nothing was done.

    Parameters
    ----------
    limit : the name of the limit, a field of `Limits`
    what : what there is too much of, in words
    got, most : the number and its limit
    """

    def __init__(self, limit: str, what: str, got: float, most: float) -> None:
        super().__init__(limit, what, got, most)
        self.limit, self.what, self.got, self.most = limit, what, got, most

    def __str__(self) -> str:
        got, most = (f"{n / 2**30:,.3g} GiB" if self.limit == "memory" else f"{n:,.0f}" for n in (self.got, self.most))
        remedy = f"use fewer, or allow more: with onkel.use_limits({self.limit}=...)"
        return f"{self.what} {got}; the limit is {most}: {remedy}"


def machine() -> float:
    """The memory that this process may use, in bytes; infinity if it is not known."""
    found = [math.inf]
    if hasattr(os, "sysconf"):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    control = Path("/sys/fs/cgroup/memory.max")  # of a container
    if control.is_file() and (text := control.read_text().strip()).isdigit():
        found.append(int(text))
    return min(n for n in found if n > 0)


@dataclass(frozen=True)
class Limits:
    """How much there may be.

    Parameters
    ----------
    features : of a model, and columns of a matrix or of LIBSVM text
    classes : of a classifier
    length : characters of the name of a feature, or of a label
    memory : bytes that a model may allocate at once; by default a share of 0.8 of the machine's
    """

    features: float = 100_000_000
    classes: float = 1_000_000
    length: float = 100_000
    memory: float = SHARE * machine()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
                raise Refused("Limits", field.name, "a number > 0", value)

    def check(self, name: str, got: float, what: str) -> None:
        """Raise TooMany if the number is beyond the limit of that name."""
        most = getattr(self, name)
        if got > most:
            raise TooMany(name, what, got, most)


_current = Limits()


def limits() -> Limits:
    """The limits in force."""
    return _current


def refuse_memory(needed: float) -> None:
    """Raise TooMany for a model that needs about so many bytes, if they are more than the limit."""
    limits().check("memory", needed, "the memory that the model needs is about")


@contextmanager
def use_limits(**other: Any) -> Iterator[Limits]:
    """While the block runs, other limits hold, in the whole process: `features`, `classes`, `length` and `memory`.

    Examples
    --------
    >>> import onkel
    >>> with onkel.use_limits(features=2):
    ...     onkel.PAClassifier().learn_one({"a": 1.0, "b": 2.0, "c": 3.0}, "x")
    Traceback (most recent call last):
    ...
    onkel.core.limits.TooMany: the number of features would be 3; the limit is 2: use fewer, or allow more: with \
onkel.use_limits(features=...)
    """
    global _current
    unknown = other.keys() - {field.name for field in fields(Limits)}
    if unknown:
        raise TypeError(f"there is no limit {min(unknown)!r}: they are {', '.join(f.name for f in fields(Limits))}")
    before, _current = _current, replace(_current, **other)
    try:
        yield _current
    finally:
        _current = before
