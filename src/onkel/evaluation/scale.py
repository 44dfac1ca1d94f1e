"""The running scale of a stream: features or a target with mean 0 and deviation 1, by the rows before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from onkel.core.moments import Moments, Sums
from onkel.datasets.stream import Task
from onkel.datasets.tables import Schema

Array = NDArray[Any]
Floats = NDArray[np.float64]


class RunningScale:
    """Brings columns to mean 0 and deviation 1, computed from the examples before each row.

    Parameters
    ----------
    columns : only the first so many are scaled; the others, which encode texts, stay as they are. None: all.
    """

    def __init__(self, columns: int | None = None) -> None:
        self.columns = columns
        self._moments = Moments(0)

    def learn(self, X: Any) -> Any:
        """Learn from the rows; each is returned scaled by the statistics of the rows before it, as `apply` would."""
        return self._to_numbers(X, self._learned)

    def apply(self, X: Any) -> Any:
        """The rows, scaled by what is known now."""
        return self._to_numbers(X, self._applied)

    def _to_numbers(self, X: Any, scale: Callable[[Floats], Floats]) -> Any:
        """Scale the first columns, dense; keep the others."""
        sparse = scipy.sparse.issparse(X)
        numbers = X if self.columns is None else X[:, : self.columns]
        numbers = scale(numbers.toarray() if sparse else np.asarray(numbers, float))
        if self.columns is None:
            return numbers
        rest = X[:, self.columns :]
        return scipy.sparse.hstack([numbers, rest], format="csr") if sparse else np.hstack([numbers, rest])

    def _learned(self, X: Floats) -> Floats:
        differences, sums = self._added(X)
        return sums.rows(slice(-1)).standardised(differences)

    def _applied(self, X: Floats) -> Floats:
        self._check(X)
        return self._moments.now.standardised(X - self._moments.first)

    def _added(self, X: Floats) -> tuple[Floats, Sums]:
        if self._moments.count == 0:
            self._moments = Moments(X.shape[1])
        self._check(X)
        return self._moments.add(X)

    def follow(self, y: Array) -> tuple[Floats, Floats, Floats]:
        """Learn from a target; returns it scaled, and its mean and deviation before each example, for predictions."""
        differences, sums = self._added(np.asarray(y, float)[:, None])
        before = sums.rows(slice(-1))
        return before.standardised(differences)[:, 0], self._moments.mean_at(before)[:, 0], before.deviation[:, 0]

    @property
    def mean(self) -> Floats:
        """Mean of every column so far."""
        return self._moments.mean_at(self._moments.now)

    @property
    def deviation(self) -> Floats:
        """Standard deviation of every column so far."""
        return self._moments.now.deviation

    def _check(self, X: Floats) -> None:
        known = len(self._moments.first)
        if X.shape[1] != known:
            raise ValueError(f"X has {X.shape[1]} features, but the examples before had {known}")

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        kept = self._moments
        arrays = {"origin": kept.first, "sums": kept.sums, "squares": kept.squares}
        return {"columns": self.columns, "count": kept.count} | {name: a.tolist() for name, a in arrays.items()}

    @classmethod
    def of(cls, data: dict[str, Any]) -> RunningScale:
        """The inverse of `plain`."""
        made = cls(data.get("columns"))
        arrays = (np.array(data[name], float) for name in ("origin", "sums", "squares"))
        made._moments = Moments.of(int(data["count"]), *arrays)
        return made


def scales_for(X: Any, schema: Schema, task: Task) -> tuple[RunningScale | None, RunningScale | None]:
    """Fresh scales for the features and the target of rows like these.

    Sparse rows are not scaled, except in a table with texts, whose numeric columns come first. Labels are not scaled.
    """
    scaled = schema.texts or not scipy.sparse.issparse(X)
    features = RunningScale(schema.numbers if schema.texts else None) if scaled else None
    return features, RunningScale() if task == "regression" else None
