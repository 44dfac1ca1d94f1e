"""Sampled updates: an example becomes a term with a probability that depends on its loss, so that terms stay few.

Every round draws one uniform number, whatever the probability, so that runs with different settings use the same draws.
In a pool of learners, `round.chance` multiplies the probability.
These updates never remove a term, so the average of the models has exactly the terms that entered. With a finite
`radius` they rescale all of them.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from onkel.core.part import Memory, Words, refuse_ignored
from onkel.core.random import Random
from onkel.core.run import Run
from onkel.updates.base import Projected, Round, Step, Update, along, curvature


class SampledPassiveAggressive(Update):
    """A passive-aggressive step with probability rho = min(alpha, loss) / beta (SPA).

    f <- f - tau * slope * k(x, .), tau = min(eta / rho, loss / (|slope|^2 k(x, x))). The expected number of terms is
    at most alpha / beta times the rounds. Without `divide` k(x, x) counts as 1, as in the program
    released by the authors (lu2017scalable).
    """

    eta: float = 1.0
    alpha: float = 1.0
    beta: float = 20.0
    divide: bool = True

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.3, 1.0, 2.0), cls(1.0, 0.5, 0.5), cls(0.3, 1.0, 2.0, divide=False)

    def __post_init__(self) -> None:
        self._positive("eta", "alpha", "beta")
        self._finite("eta", "alpha", "beta")
        self._boolean("divide")
        self._require("beta", self.beta >= self.alpha, f">= alpha = {self.alpha:g}")

    @property
    def needs(self) -> Words:
        return super().needs | {"piecewise linear"} | (set() if self.divide else {"k(x, x) other than 1"})

    def start(self, run: Run) -> Memory:
        return {"random": Random(run.seed, "sampling")}

    def step(self, round: Round, memory: Memory) -> Step:
        u = memory["random"].uniform()
        rho, v = min(self.alpha, round.loss) / self.beta, curvature(round, self.divide)
        if not u < rho * round.chance or v <= 0:
            return 1.0, None
        return 1.0, along(round.slope, min(self.eta * round.weight / rho, round.loss / v))


class SampledGradient(Projected):
    """A step of fixed length with a probability proportional to the slope (OSKL).

    With probability weight * max_j |slope_j| / G (at most 1): f <- project[f - eta G sgn(slope) k(x, .)] onto the ball
    |f| <= radius.
    Its expectation is the gradient step if G is at least the largest |slope|.
    """

    eta: float = 0.1
    G: float = 1.0
    radius: float = math.inf

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.3, 1.5), cls(0.4, 1.5, 2.0)

    def __post_init__(self) -> None:
        self._positive("eta", "G", "radius")
        self._finite("eta", "G")

    @property
    def bound(self) -> float:
        return self.radius

    @property
    def allowed_slope(self) -> float:
        return self.G

    def start(self, run: Run) -> Memory:
        return {"random": Random(run.seed, "sampling")} | super().start(run)

    def step(self, round: Round, memory: Memory) -> Step:
        u = memory["random"].uniform()
        chosen = u < round.chance * round.weight * float(np.abs(round.slope).max()) / self.G
        coef = along(np.sign(round.slope), self.eta * self.G) if chosen else None
        return self.projected(1.0, coef, round, memory)


class SampledLogistic(Projected):
    """A step of logistic regression, less likely the larger p, the model's probability of the true label, is.

    f <- project[f + eta (1 - p) y k(x, .)] onto the ball |f| <= radius, with probability
    (2 - eta) / (2 - eta + eta p) ("margin"), c (1 - p) / (c (1 - p) + p) ("auxiliary") or
    (1 - eta/2) (1 - p) / (loss - eta/2 (1 - p)^2) ("tight").
    """

    variant: str = "margin"
    eta: float = 1.0
    radius: float = math.inf
    c: float = 2.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls("margin", 0.6), cls("margin", 0.6, 2.0), cls("auxiliary", 0.6, c=1.5), cls("tight", 0.6)

    def __post_init__(self) -> None:
        self._one_of("variant", "margin", "auxiliary", "tight")
        self._positive("eta", "radius", "c")
        self._finite("c")
        self._require("eta", self.eta < 2, "< 2")
        if self.variant != "auxiliary":
            refuse_ignored(self, f"variant={self.variant!r}", "c")

    @property
    def bound(self) -> float:
        return self.radius

    @property
    def needs(self) -> Words:
        return super().needs | {"logistic"}

    def start(self, run: Run) -> Memory:
        return {"random": Random(run.seed, "sampling")} | super().start(run)

    def chance(self, loss: float, doubt: float) -> float:
        """The probability of a step, with `doubt` = 1 - p."""
        if self.variant == "margin":
            return (2 - self.eta) / (2 - self.eta + self.eta * (1 - doubt))
        if self.variant == "auxiliary":
            return self.c * doubt / (self.c * doubt + (1 - doubt))
        return (1 - self.eta / 2) * doubt / (loss - self.eta / 2 * doubt**2) if doubt > 0 else 0.0

    def step(self, round: Round, memory: Memory) -> Step:
        u = memory["random"].uniform()
        chosen = u < round.chance * self.chance(round.loss, float(np.abs(round.slope).max()))
        coef = along(round.slope, self.eta * round.weight) if chosen else None
        return self.projected(1.0, coef, round, memory)
