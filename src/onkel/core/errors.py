"""The exceptions of the library.

`Busy` and `DataError` are given their message; the others build it from fields, which programs can read instead.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from onkel.core.wording import printable

LIMIT = 1e150  # numbers of a model are smaller, so that their squares can be summed without overflow


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


class WrongWidth(ValueError):
    """A row with another number of features than the model has.

    Parameters
    ----------
    got, wanted : the numbers of features
    """

    def __init__(self, got: int, wanted: int) -> None:
        super().__init__(got, wanted)
        self.got, self.wanted = got, wanted

    def __str__(self) -> str:
        return f"X has {self.got} features, but the model expects {self.wanted}"


class NotFinite(ValueError):
    """NaN or infinity in a row.

    Parameters
    ----------
    value : what was found
    column : number of its column
    row : number of its row in the table; None for a single row
    """

    def __init__(self, value: float, column: int, row: int | None = None) -> None:
        super().__init__(value, column, row)
        self.value, self.column, self.row = value, column, row

    def __str__(self) -> str:
        name = "NaN" if np.isnan(self.value) else "infinity"
        place = f"x contains {name} in" if self.row is None else f"X contains {name} in row {self.row},"
        return (
            f"{place} column {self.column} ({self.value}): onkel needs finite numbers; "
            "impute or drop such rows first (for instance with sklearn.impute.SimpleImputer)"
        )


class OfRow(Exception):
    """An error in one row of the examples. The code that notices the error may not know the number of the row.

    Parameters
    ----------
    facts : the arguments of the subclass, from which it builds its message
    row : number of the row in its table, if known
    """

    def __init__(self, *facts: Any, row: int | None) -> None:
        super().__init__(*facts, row)
        self.facts, self.row = facts, row

    @property
    def sentence(self) -> str:
        """What is wrong, without the number of the row."""
        raise NotImplementedError

    def at(self, row: int) -> Self:
        """This error, in the row of that number."""
        return type(self)(*self.facts, row=row)

    def __str__(self) -> str:
        return self.sentence if self.row is None else f"row {self.row}: {self.sentence}"


class TooLarge(OfRow, ValueError):
    """An example whose numbers would overflow; it was not learned.

    Parameters
    ----------
    what, value : a number, and the words before it in the message, such as "k(x, x) =" or "a target of"
    use : what it is too large for: "for the kernel"
    row : number of the row, if known
    """

    def __init__(self, what: str, value: float, use: str, row: int | None = None) -> None:
        super().__init__(what, value, use, row=row)
        self.what, self.value, self.use = what, value, use

    @property
    def sentence(self) -> str:
        return f"{self.what} {self.value:.3g} is too large {self.use}: use smaller numbers"


class Diverged(OfRow, FloatingPointError):
    """Numbers of the model exceed the limit of 1e150 (`sane`); the round was not learned.

    An engine in Python may be half-updated (see `Journal`); the model of an estimator is that before the round.

    Parameters
    ----------
    what : the numbers, in words that the value completes: "the step is"
    values : one or several; the first that is too large or not finite is kept as `value`
    row : number of the row, if known
    """

    def __init__(self, what: str, values: Any, row: int | None = None) -> None:
        numbers = np.ravel(values)
        self.what, self.value = what, float(numbers[np.argmin(np.abs(numbers) < LIMIT)])
        super().__init__(what, self.value, row=row)

    @property
    def sentence(self) -> str:
        remedy = "use a smaller step, or scale features and targets"
        return f"{self.what} {self.value:g}: the model diverges; {remedy}"


class Interrupted(KeyboardInterrupt):
    """An interrupt while a model learned; it has learned the rows before.

    Parameters
    ----------
    rows : rows of the call that were learned
    of : rows of the call
    """

    def __init__(self, rows: int, of: int) -> None:
        super().__init__(rows, of)
        self.rows, self.of = rows, of

    def __str__(self) -> str:
        return _rows_learned(self.rows, self.of)


class Busy(RuntimeError):
    """Another thread is learning with the model, or was when this process was forked; nothing was done."""


class DataError(ValueError):
    """Data that cannot be used; the message says what, where, and what to do about it.

    Names from files are part of the message, so its control characters are escaped.
    """

    def __str__(self) -> str:
        return printable(super().__str__())


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
        error = error.at(rows)
    elif type(error) is KeyboardInterrupt:
        error = Interrupted(rows, of)
    else:
        error.add_note(_rows_learned(rows, of))
    error.scores = scores  # type: ignore[attr-defined]
    return error


def _rows_learned(rows: int, of: int) -> str:
    return f"{rows:,} of {of:,} rows were learned; the model is that after these rows, error.scores has their scores"


def sane(values: Any) -> bool:
    """Are all values finite and below the limit of 1e150?"""
    return bool(np.abs(values).max(initial=0.0) < LIMIT)
