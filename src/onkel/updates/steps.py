"""Updates whose step size is a parameter, or follows from the loss of the round."""

from __future__ import annotations

import math
from typing import ClassVar, Self

from onkel.core.part import Memory, Words, refuse_ignored
from onkel.core.run import Run
from onkel.updates.base import SCHEDULES, Projected, Round, Step, Update, along, curvature, slowdown2


class Perceptron(Update):
    """f <- f - eta * slope * k(x, .): a step with a fixed step size eta whenever the slope is not zero."""

    eta: float = 1.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.3)

    def __post_init__(self) -> None:
        self._positive("eta")
        self._finite("eta")

    @property
    def offers(self) -> Words:
        return super().offers | ({"unit step"} if self.eta == 1 else set())

    def step(self, round: Round, memory: Memory) -> Step:
        return 1.0, along(round.slope, self.eta * round.weight)


class Defer(Update):
    """The budget takes the step: `coef` is only its direction, -weight * slope (TVM, DUOL, BDUOL, KRLS).

    For the squared loss this is weight times the residual y - f(x).
    """

    traits: ClassVar[tuple[str, ...]] = ("leaves the step",)

    @property
    def needs(self) -> Words:
        return super().needs | {"own step"}  # a budget that computes the step

    def step(self, round: Round, memory: Memory) -> Step:
        return 1.0, along(round.slope, round.weight)


class Gradient(Projected):
    """f <- project[(1 - eta_t lam) f - eta_t * slope * k(x, .)] onto the ball |f| <= radius.

    eta_t is eta, eta / t or eta / sqrt(t), according to `schedule`. The norm of f is updated with each step:
    |f_new|^2 = shrink^2 |f|^2 + 2 shrink <coef, s> + |coef|^2 k(x, x).
    """

    eta: float = 0.1
    lam: float = 0.0
    schedule: str = "constant"
    radius: float = math.inf

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.2), cls(0.2, 0.3, "1/t"), cls(0.2, 0.3, "1/sqrt(t)"), cls(0.3, 0.1, radius=0.7)

    def __post_init__(self) -> None:
        self._positive("eta", "radius")
        self._finite("eta", "lam")
        self._nonnegative("lam")
        self._one_of("schedule", *SCHEDULES)
        self._require("lam", self.eta * self.lam < 1, f"< 1 / eta = {1 / self.eta:g}")

    @property
    def bound(self) -> float:
        return self.radius

    def rate(self, t: int) -> float:
        """eta_t."""
        return self.eta / math.sqrt(slowdown2(self.schedule, t))

    def step(self, round: Round, memory: Memory) -> Step:
        eta = self.rate(round.t)
        return self.projected(1 - eta * self.lam, along(round.slope, eta * round.weight), round, memory)


class Pegasos(Projected):
    """Gradient with eta_t = 1 / (lam t): f <- (1 - 1/t) f - slope / (lam t) * k(x, .).

    `project` keeps f in the ball |f| <= 1 / sqrt(lam), which contains the minimiser.
    """

    lam: float = 0.01
    project: bool = False

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.2), cls(0.2, project=True)

    def __post_init__(self) -> None:
        self._positive("lam")
        self._finite("lam")
        self._boolean("project")

    @property
    def bound(self) -> float:
        return 1 / math.sqrt(self.lam) if self.project else math.inf

    def step(self, round: Round, memory: Memory) -> Step:
        shrink, coef = 1 - 1 / round.t, along(round.slope, round.weight / (self.lam * round.t))
        return self.projected(shrink, coef, round, memory)


class PassiveAggressive(Update):
    """f <- f - tau * slope * k(x, .), the smallest step that brings the loss to zero, limited by C.

    With v = |slope|^2 k(x, x): tau = loss / v ("hard"), min(C, loss / v) ("I"), loss / (v + 1/(2C)) ("II").
    Without `divide` k(x, x) counts as 1, as in the program released by the authors (lu2017scalable).
    """

    variant: str = "I"
    C: float = 1.0
    divide: bool = True

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls("hard"), cls("I", 0.2), cls("II", 0.2), cls("I", 0.2, divide=False)

    def __post_init__(self) -> None:
        self._one_of("variant", "hard", "I", "II")
        self._positive("C")
        self._boolean("divide")
        if self.variant == "hard":
            refuse_ignored(self, 'variant="hard"', "C")

    @property
    def needs(self) -> Words:
        # tau = loss / v makes the loss zero only if it is piecewise linear; if k(x, x) = 1, `divide` has no effect
        return super().needs | {"piecewise linear"} | (set() if self.divide else {"k(x, x) other than 1"})

    def step(self, round: Round, memory: Memory) -> Step:
        v, C = curvature(round, self.divide), self.C * round.weight
        if v <= 0 or C == 0:  # C is 0 if the weight is so small
            return 1.0, None
        if self.variant == "II":
            return 1.0, along(round.slope, round.loss / (v + 0.5 / C))
        tau = round.loss / v
        return 1.0, along(round.slope, tau if self.variant == "hard" else min(C, tau))


class Implicit(Update):
    """argmin_g |g - f|^2 / 2 + eta (lam |g|^2 / 2 + hinge(g)), the implicit online step (ILK).

    f <- (f - q * slope * k(x, .)) / (1 + eta lam), q = clip((1 + eta lam - margin) / (|slope|^2 k(x, x)), 0, eta).
    The numerator is the hinge loss with the margin 1 + eta lam.
    """

    eta: float = 0.1
    lam: float = 0.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.3, 0.2),)

    def __post_init__(self) -> None:
        self._positive("eta")
        self._nonnegative("lam")
        self._finite("eta", "lam")

    @property
    def needs(self) -> Words:
        return super().needs | {"hinge"}

    def start(self, run: Run) -> Memory:
        return {"threshold": 1 + self.eta * self.lam}

    def step(self, round: Round, memory: Memory) -> Step:
        shrink = 1 / (1 + self.eta * self.lam)
        v = curvature(round)
        if v <= 0:
            return shrink, None
        return shrink, along(round.slope, shrink * min(round.loss / v, self.eta * round.weight))
