"""Updates that toss a coin: an example becomes a term with a probability that follows its loss, so that terms stay few.

One uniform number is drawn in every round, whatever the probability, so that runs with other settings stay aligned. In
a pool of learners the round may carry a `chance`, which multiplies the probability.
None of them changes or removes a term, so the average of the models keeps exactly the terms that entered.
"""

from __future__ import annotations

import math

import numpy as np

from onkel.losses import Loss
from onkel.random import Random
from onkel.updates import Memory, Round, Step, Update, along, curvature, project


class SampledPassiveAggressive(Update):
    """A passive-aggressive step with probability rho = min(alpha, loss) / beta (SPA).

    f <- f - tau * slope * k(x, .), tau = min(eta / rho, loss / (|slope|^2 k(x, x))), so that E[number of terms] is at
    most alpha / beta of the rounds. Without `divide` k(x, x) counts as 1, as in a released program.
    """

    eta: float = 1.0
    alpha: float = 1.0
    beta: float = 20.0
    divide: bool = True

    def __post_init__(self) -> None:
        self._positive("eta", "alpha", "beta")
        self._finite("eta", "alpha", "beta")
        self._boolean("divide")
        self._require("beta", self.beta >= self.alpha, f">= alpha = {self.alpha:g}")

    def check(self, loss: Loss) -> None:
        if type(loss).__name__ not in ("Hinge", "EpsilonInsensitive"):
            raise ValueError(f"SampledPassiveAggressive needs Hinge or EpsilonInsensitive, got {loss!r}")

    def start(self, seed: int) -> Memory:
        return {"random": Random(seed, "sampling")}

    def step(self, round: Round, memory: Memory) -> Step:
        u = memory["random"].uniform()
        rho, v = min(self.alpha, round.loss) / self.beta, curvature(round, self.divide)
        if not u < rho * round.chance or v <= 0:
            return 1.0, None
        return 1.0, along(round.slope, min(self.eta * round.weight / rho, round.loss / v))


class SampledGradient(Update):
    """A step of fixed length with a probability proportional to the slope (OSKL).

    With probability |slope| / G (at most 1): f <- project[f - eta G sgn(slope) k(x, .)] onto the ball |f| <= radius. On
    average that is the gradient step, as long as G is at least the largest slope.
    """

    eta: float = 0.1
    G: float = 1.0
    radius: float = math.inf

    def __post_init__(self) -> None:
        self._positive("eta", "G", "radius")
        self._finite("eta", "G")

    @property
    def exact_norm(self) -> bool:
        return self.radius < math.inf

    def check(self, loss: Loss) -> None:
        if type(loss).__name__ in ("Hinge", "Logistic", "Mistake", "Absolute", "EpsilonInsensitive"):
            self._require("G", self.G >= 1, f">= 1, the largest slope of {loss!r}")

    def start(self, seed: int) -> Memory:
        return {"random": Random(seed, "sampling")} | ({"norm2": 0.0} if self.exact_norm else {})

    def step(self, round: Round, memory: Memory) -> Step:
        u = memory["random"].uniform()
        chosen = u < round.chance * round.weight * float(np.abs(round.slope).max()) / self.G
        coef = along(np.sign(round.slope), self.eta * self.G) if chosen else None
        return project(1.0, coef, round, memory, self.radius)


class SampledLogistic(Update):
    """A step of logistic regression with a probability that falls as p, the model's trust in the label, rises.

    With probability (2 - eta) / (2 - eta + eta p) ("margin"), c (1 - p) / (c (1 - p) + p) ("auxiliary") or
    (1 - eta/2) (1 - p) / (loss - eta/2 (1 - p)^2) ("tight"): f <- project[f + eta (1 - p) y k(x, .)], |f| <= radius.
    """

    variant: str = "margin"
    eta: float = 1.0
    radius: float = math.inf
    c: float = 2.0

    def __post_init__(self) -> None:
        self._one_of("variant", "margin", "auxiliary", "tight")
        self._positive("eta", "radius", "c")
        self._finite("c")
        self._require("eta", self.eta < 2, "< 2")

    @property
    def exact_norm(self) -> bool:
        return self.radius < math.inf

    def check(self, loss: Loss) -> None:
        if type(loss).__name__ != "Logistic":
            raise ValueError(f"SampledLogistic is derived for the Logistic loss, got {loss!r}")

    def start(self, seed: int) -> Memory:
        return {"random": Random(seed, "sampling")} | ({"norm2": 0.0} if self.exact_norm else {})

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
        return project(1.0, coef, round, memory, self.radius)
