"""Run: what a part is told at the start of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Run:
    """The rows to come, the outputs, and the seed of the random choices.

    Parameters
    ----------
    outputs : number of scores: one for each class from three classes on, else 1
    keys : a number for each feature, made from its name or place (see `maps`)
    dtype : float32 or float64, of the rows
    sparse : do the rows come as CSR matrices?
    average : False, True or "all", see Learner
    seed : of the random choices
    """

    outputs: int
    keys: Array
    dtype: Any
    sparse: bool
    average: bool | str
    seed: int

    @property
    def columns(self) -> int:
        """Number of features."""
        return len(self.keys)
