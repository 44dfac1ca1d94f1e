"""The exceptions of the library.

`Busy` and `DataError` are given their message; the others build it from fields, which programs can read instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Refused(ValueError):
    """A field with a value that is not allowed: `Gaussian.gamma must be > 0, got -1.0`.

    Parameters
    ----------
    owner : name of the class that has the field
    field : its name
    wanted : what it must be, in words
    got : what it is
    """

    def __init__(self, owner: str, field: str, wanted: str, got: Any) -> None:
        super().__init__(owner, field, wanted, got)
        self.owner, self.field, self.wanted, self.got = owner, field, wanted, got

    def __str__(self) -> str:
        return f"{self.owner}.{self.field} must be {self.wanted}, got {self.got!r}"


class Misfit(ValueError):
    """A part needs something that no other part of the composition offers.

    Parameters
    ----------
    part : the part that needs something, or a text that names it
    wanted : what it needs, in words
    got : the part that does not offer it, or a text that names it
    """

    def __init__(self, part: Any, wanted: str, got: Any) -> None:
        super().__init__(part, wanted, got)
        self.part, self.wanted, self.got = part, wanted, got

    def __str__(self) -> str:
        part, got = (who if isinstance(who, str) else repr(who) for who in (self.part, self.got))
        return f"{part} needs {self.wanted}; got {got}"


class OfRow(Exception):
    """An error in one row of the examples. The code that notices the error may not know the number of the row.

    Parameters
    ----------
    sentence : what is wrong
    row : number of the row in its table, if known
    """

    def __init__(self, sentence: str, row: int | None = None) -> None:
        super().__init__(sentence, row)
        self.sentence, self.row = sentence, row

    def __str__(self) -> str:
        return self.sentence if self.row is None else f"row {self.row}: {self.sentence}"


class TooLarge(OfRow, ValueError):
    """An example whose numbers would overflow; it was not learned."""


class Diverged(OfRow, FloatingPointError):
    """Numbers of the model exceed the limit of 1e150 (`sane`); the round was not learned.

    An engine in Python may be half-updated (see `Journal`); the model of an estimator is that before the round.
    """


class Interrupted(KeyboardInterrupt):
    """An interrupt while a model learned; it has learned the rows before.

    Parameters
    ----------
    rows : rows of the call that were learned
    of : rows that it had
    """

    def __init__(self, rows: int, of: int) -> None:
        super().__init__(rows, of)
        self.rows, self.of = rows, of

    def __str__(self) -> str:
        return _rows_learned(self.rows, self.of)


class Busy(RuntimeError):
    """Another thread is learning with the model, or was when this process was forked; nothing was done."""


class DataError(ValueError):
    """Data that cannot be used; the message says what, where, and what to do about it."""


class NotInstalled(DataError, ImportError):
    """An optional package that is not installed.

    Parameters
    ----------
    package : its name
    extra : the extra of onkel that installs it
    purpose : what it is needed for
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(package, extra, purpose)
        self.package, self.extra, self.purpose = package, extra, purpose

    def __str__(self) -> str:
        return f"{self.package} is needed for {self.purpose}; install onkel[{self.extra}]"


def ended_early(error: BaseException, rows: int, of: int, scores: Any) -> BaseException:
    """The error that ends a call of `learn` after some of its rows: it says how many, and has their `scores`."""
    if isinstance(error, Diverged):
        error = Diverged(error.sentence, rows)
    elif type(error) is KeyboardInterrupt:
        error = Interrupted(rows, of)
    else:
        error.add_note(_rows_learned(rows, of))
    error.scores = scores  # type: ignore[attr-defined]
    return error


def _rows_learned(rows: int, of: int) -> str:
    return f"{rows:,} of {of:,} rows were learned; the model is that after these rows, error.scores has their scores"


def beyond(what: str, value: Any) -> str:
    """The message for a number of the model that is too large (see `sane`) or not finite, with a remedy."""
    return f"{what} {value}: the model diverges; use a smaller step, or scale features and targets"


def sane(values: Any) -> bool:
    """Are all values finite and below the limit of 1e150, so that their squares can be summed without overflow?"""
    return bool(np.abs(values).max(initial=0.0) < 1e150)
