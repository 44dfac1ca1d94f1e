"""Moments: mean and standard deviation of columns over the rows so far.

`Moments` keeps the number of rows, and the sums and sums of squares of their differences from the first row, so that
columns far from zero lose no digits. Rows are added one after the other, so that the result does not depend on how they
are cut into blocks, bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_ROUNDING = 1e-12  # least variance, as a share of the mean square: smaller ones are rounding, and are replaced by it


@dataclass(frozen=True)
class Sums:
    """Count, sums and sums of squares of the differences from the first row.

    Either at one point of the stream, or at several points, with one row of each array per point.
    """

    count: Any
    sums: Array
    squares: Array

    @property
    def mean(self) -> Array:
        """The mean difference; 0 before the first row."""
        return np.asarray(self.sums / np.maximum(self.count, 1))

    @property
    def deviation(self) -> Array:
        """The standard deviation; 0 for a column that never varied."""
        square = self.squares / np.maximum(self.count, 1)
        return np.asarray(np.sqrt(np.maximum(square - self.mean**2, _ROUNDING * square)))

    @property
    def inverse_deviation(self) -> Array:
        """1 / standard deviation; 0 for a column that never varied."""
        deviation = self.deviation
        return np.asarray(np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0))

    def in_deviations(self, differences: Array) -> Array:
        """Differences between two rows, in deviations; 0 for a column that never varied.

        One of the rows may be new: then it counts as at most sqrt(2 (count + 1)) deviations away, the most that is
        possible if the new row is counted, too.
        """
        limit = np.sqrt(2.0 * (self.count + 1))
        return np.asarray(np.clip(differences * self.inverse_deviation, -limit, limit))

    def standardised(self, differences: Array) -> Array:
        """A row's differences from the first row, brought to mean 0 and deviation 1; 0 for a column that never varied.

        A new row counts as at most sqrt(count) deviations away from the mean, the most that is possible if it is
        counted, too.
        """
        deviation, limit = self.deviation, np.sqrt(self.count)
        varies = deviation > 0
        away = np.where(varies, (differences - self.mean) / np.where(varies, deviation, 1.0), 0.0)
        return np.asarray(np.clip(away, -limit, limit))

    def rows(self, which: slice) -> Sums:
        """The sums at the points that the slice selects."""
        return Sums(self.count[which], self.sums[which], self.squares[which])


class Moments:
    """The moments of the rows so far.

    Parameters
    ----------
    columns : number of columns of the rows
    """

    def __init__(self, columns: int) -> None:
        self.count = 0
        self.first, self.sums, self.squares = (np.zeros(columns) for _ in range(3))

    @property
    def now(self) -> Sums:
        """The sums after the last row."""
        return Sums(self.count, self.sums, self.squares)

    def mean_at(self, sums: Sums) -> Array:
        """The mean of the columns at each point of `sums`, which must come from this object; 0 before the first row."""
        return sums.mean + np.where(sums.count > 0, self.first, 0.0)

    def begin(self, row: Array) -> None:
        """Make this the row from which differences are taken."""
        self.first = row.astype(np.float64)

    def add(self, X: Array, counted: Array | None = None) -> tuple[Array, Sums]:
        """Add rows; return their differences from the first row, and the sums before these rows and after each one.

        Rows that are not counted do not change the sums.
        """
        if counted is None:
            counted = np.ones(len(X), dtype=bool)
        if self.count == 0 and counted.any():
            self.begin(X[np.argmax(counted)])
        differences = X - self.first
        kept = differences * counted[:, None]
        along = Sums(
            self.count + np.concatenate([[0], np.cumsum(counted)])[:, None],
            np.cumsum(np.vstack([self.sums, kept]), axis=0),
            np.cumsum(np.vstack([self.squares, kept * kept]), axis=0),
        )
        self.count = int(along.count[-1, 0])
        self.sums, self.squares = along.sums[-1].copy(), along.squares[-1].copy()
        return differences, along

    def add_some(self, columns: Array, differences: Array) -> None:
        """Add a row that differs from the first row in these columns only."""
        self.count += 1
        self.sums[columns] += differences
        self.squares[columns] += differences * differences

    def some(self, columns: Array) -> Sums:
        """The sums of some columns."""
        return Sums(self.count, self.sums[columns], self.squares[columns])

    @classmethod
    def of(cls, count: int, first: Array, sums: Array, squares: Array) -> Self:
        """Moments with these saved values."""
        made = cls(len(first))
        made.count, made.first, made.sums, made.squares = count, *(a.astype(np.float64) for a in (first, sums, squares))
        return made

    def widen(self, columns: int) -> None:
        """Make room for columns that were 0 before."""
        more = columns - len(self.first)
        self.first, self.sums, self.squares = (np.pad(a, (0, more)) for a in (self.first, self.sums, self.squares))
