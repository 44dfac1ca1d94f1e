"""Updates: how much to forget, and how far to move along the slope of the loss.

`step(round, memory)` returns (shrink, coef): the hypothesis becomes shrink * f, and a term with
coefficients `coef` (one per output; None: no term) is offered to the budget, or moves the weights of explicit
features by coef * z(x). It is called every round. A rule that moves each weight by itself returns all the moves, of
shape (features, outputs).

`start(run)` gives the memory an update keeps between rounds. An entry named `threshold` is the margin or
tube that the loss of the next round is taken at (`Loss.at`): adaptive thresholds need nothing else. Entries that
depend on the outputs are named in `per_output`, with their kind (see `core.outputs`).
A sample weight multiplies the slope (passive-aggressive: C).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onkel.core.errors import Diverged, beyond, sane
from onkel.core.outputs import KINDS, refuse_unknown_kinds
from onkel.core.part import Memory, Part, Words
from onkel.core.run import Run

Array = np.ndarray[Any, np.dtype[np.float64]]
Step = tuple[float, Array | None]


@dataclass(slots=True)
class Round:
    """All that is known about the current example."""

    x: Any  # the row
    y: float  # target: -1 or +1, class index, or real
    t: int  # number of the round, from 1
    k: Array  # k(x_i, x) for the stored terms, or the features z(x)
    kxx: float  # k(x, x), or |z(x)|^2
    s: Array  # scores before the update, one per output
    loss: float  # l(y, s)
    slope: Array  # dl/ds
    weight: float = 1.0
    chance: float = 1.0  # by a pool of learners: multiplies the probability of a sampled step
    room: float = math.inf  # by a pool with a common budget: how many more terms there may be


class Update(Part):
    """How far to move, and how much to forget."""

    per_output: ClassVar[Mapping[str, str]] = {}  # entries of the memory that depend on the outputs, and their kind

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_unknown_kinds(cls, "per_output", KINDS)

    def start(self, run: Run) -> Memory:
        """What is remembered between rounds: floats, arrays and `Random` streams by name."""
        return {}

    def step(self, round: Round, memory: Memory) -> Step:
        """The factor on f and the coefficients of the new term."""
        raise NotImplementedError


class Projected(Update):
    """Updates that keep |f| within a radius, if there is one. They track |f|, which only appending leaves right."""

    per_output: ClassVar[Mapping[str, str]] = {"norm2": "squared length"}

    @property
    def bound(self) -> float:
        """The radius; infinity: none, and nothing is tracked."""
        raise NotImplementedError

    @property
    def needs(self) -> Words:
        return super().needs | ({"append-only"} if self.bound < math.inf else set())

    def start(self, run: Run) -> Memory:
        return {"norm2": 0.0} if self.bound < math.inf else {}

    def projected(self, shrink: float, coef: Array | None, round: Round, memory: Memory) -> Step:
        """The step scaled so that the new |f| is at most the radius."""
        if self.bound == math.inf:
            return shrink, coef
        norm2, most = shrink**2 * memory["norm2"], self.bound * self.bound
        if coef is not None:
            norm2 += 2 * shrink * float(coef @ round.s) + float(coef @ coef) * round.kxx
        memory["norm2"] = min(max(norm2, 0.0), most)
        if norm2 <= most:
            return shrink, coef
        factor = self.bound / math.sqrt(norm2)
        return shrink * factor, None if coef is None else coef * factor


def along(slope: Array, length: float) -> Array | None:
    """The coefficients of a step of that length against the slope; None where it would not move.

    Called before any memory changes, so that a step too far leaves none.
    """
    coef = -length * slope
    if not sane(coef):
        raise Diverged(beyond("the step is", coef))
    return coef if coef.any() else None


def curvature(round: Round, divide: bool = True) -> float:
    """|slope|^2 k(x, x), by which a step changes the loss; without `divide` k(x, x) counts as 1."""
    return float(round.slope @ round.slope) * (round.kxx if divide else 1.0)
