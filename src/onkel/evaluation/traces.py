"""Traces: the course of a run, as numbers at its checkpoints."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from onkel.core.wording import counted
from onkel.datasets.stream import Task
from onkel.evaluation.totals import error_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The course of a run: except `task`, `bytes` and `held_out`, arrays with one value per checkpoint.

    Parameters
    ----------
    task : "classification" or "regression".
    seen : examples seen.
    total : mistakes so far (classification) or the sum of squared errors so far (regression); infinite from
        the first checkpoint after the learner diverged.
    size : number of support vectors; None if the learner does not report it (`n_support_`).
    seconds : time spent predicting and learning so far.
    measures : further measures of all predictions so far, by name; NaN where the learner does not allow them.
    bytes : size of the learner at the end, as pickle writes it; None if it cannot be pickled.
    held_out : the error on examples that it never learned from, at the end; None if there were none.
    """

    task: Task
    seen: Integers
    total: Floats
    size: Integers | None
    seconds: Floats
    measures: Mapping[str, Floats] = dataclasses.field(default_factory=dict)
    bytes: int | None = None
    held_out: float | None = None

    def __repr__(self) -> str:
        size = "" if self.size is None else f", {self.size[-1]:,} SV"
        return f"Trace({self.task}: error {self.error[-1]:.4g} over {counted(int(self.seen[-1]), 'example')}{size})"

    @property
    def mistakes(self) -> Integers:
        """Mistakes so far (classification)."""
        if self.task != "classification":
            raise AttributeError("regression has no mistakes; use mse or rmse")
        if not np.isfinite(self.total[-1]):
            raise FloatingPointError("the learner diverged, so it has no number of mistakes; see total")
        return self.total.astype(np.int64)

    @property
    def mse(self) -> Floats:
        """Mean squared error so far (regression)."""
        if self.task != "regression":
            raise AttributeError("classification has no squared error; use mistakes or error")
        return self.total / self.seen

    @property
    def rmse(self) -> Floats:
        """Root of the mean squared error so far (regression)."""
        return np.sqrt(self.mse)

    @property
    def error(self) -> Floats:
        """The error by which learners are compared: mistakes per example, or the root mean squared error."""
        return np.asarray(error_of(self.total, self.seen, self.task))

    @property
    def windowed(self) -> Floats:
        """The error over the examples since the last checkpoint alone."""
        with np.errstate(invalid="ignore"):  # once the learner diverged: infinity less infinity
            error = error_of(np.diff(self.total, prepend=0.0), np.diff(self.seen, prepend=0), self.task)
        return np.where(np.isfinite(self.total), error, np.inf)

    @property
    def microseconds(self) -> float:
        """Microseconds per example over the whole run, or until the learner diverged."""
        last = min(int(np.isfinite(self.total).sum()), len(self.seen) - 1)
        return float(1e6 * self.seconds[-1] / self.seen[last])
