"""Updates: how much to forget, and how far to move along the slope of the loss.

`step(round, memory)` returns (shrink, coef): the hypothesis becomes shrink * f, and a term with
coefficients `coef` (one per output; None: no term) is offered to the budget, or moves the weights of explicit
features by coef * z(x). It is called every round. A rule that moves each weight by itself returns all the moves, of
shape (features, outputs).

`start(seed)` gives the memory an update keeps between rounds. An entry named `threshold` is the margin or
tube that the loss of the next round is taken at (`Loss.at`): adaptive thresholds need nothing else.
A sample weight multiplies the slope (passive-aggressive: C).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from onkel.losses import Loss
from onkel.part import Part

Array = np.ndarray[Any, np.dtype[np.float64]]
Memory = dict[str, Any]
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

    @property
    def exact_norm(self) -> bool:
        """Does the step track |f|, which only an append-only budget leaves right?"""
        return False

    @property
    def one_by_one(self) -> bool:
        """Does every weight move by a step of its own, which needs explicit features?"""
        return False

    def start(self, seed: int) -> Memory:
        """What is remembered between rounds."""
        return {}

    def step(self, round: Round, memory: Memory) -> Step:
        """The factor on f and the coefficients of the new term."""
        raise NotImplementedError

    def check(self, loss: Loss) -> None:
        """Refuse a loss this rule is not defined for."""


class Diverged(FloatingPointError):
    """The model's numbers leave the range of floating point; it keeps what it knew before that round."""


def beyond(what: str, value: Any) -> str:
    """The sentence for it, with a remedy."""
    return f"{what} {value}: the model diverges; use a smaller step, or scale features and targets"


def sane(values: Any) -> bool:
    """Small enough to be squared and added up without harm."""
    return bool((np.abs(values) < 1e150).all())


def along(slope: Array, length: float) -> Array | None:
    """The coefficients of a step of that length against the slope; None where it would not move.

    Called before any memory changes, so that a step too far leaves none.
    """
    coef = -length * slope
    if not sane(coef):
        raise Diverged(beyond("the step is", coef))
    return coef if coef.any() else None


class Perceptron(Update):
    """f <- f - eta * slope * k(x, .): a step of fixed length whenever the loss has a slope."""

    eta: float = 1.0

    def __post_init__(self) -> None:
        self._positive("eta")
        self._finite("eta")

    def step(self, round: Round, memory: Memory) -> Step:
        return 1.0, along(round.slope, self.eta * round.weight)


class Gradient(Update):
    """f <- project[(1 - eta_t lam) f - eta_t * slope * k(x, .)] onto the ball |f| <= radius.

    eta_t is eta, eta / t or eta / sqrt(t) by `schedule`. The norm is carried along:
    |f_new|^2 = shrink^2 |f|^2 + 2 shrink <coef, s> + |coef|^2 k(x, x).
    """

    eta: float = 0.1
    lam: float = 0.0
    schedule: str = "constant"
    radius: float = math.inf

    def __post_init__(self) -> None:
        self._positive("eta", "radius")
        self._finite("eta", "lam")
        self._nonnegative("lam")
        self._one_of("schedule", "constant", "1/t", "1/sqrt(t)")
        self._require("lam", self.eta * self.lam < 1, f"< 1 / eta = {1 / self.eta:g}")

    @property
    def exact_norm(self) -> bool:
        return self.radius < math.inf

    def start(self, seed: int) -> Memory:
        return {"norm2": 0.0} if self.exact_norm else {}

    def rate(self, t: int) -> float:
        """eta_t."""
        return self.eta / {"constant": 1.0, "1/t": float(t), "1/sqrt(t)": math.sqrt(t)}[self.schedule]

    def step(self, round: Round, memory: Memory) -> Step:
        eta = self.rate(round.t)
        return project(1 - eta * self.lam, along(round.slope, eta * round.weight), round, memory, self.radius)


class AdaGrad(Update):
    """w_j <- w_j - eta g_j / sqrt(sum of g_j^2 so far), g = slope z(x): a rate for each weight (Duchi et al. 2011)."""

    eta: float = 0.1

    def __post_init__(self) -> None:
        self._positive("eta")
        self._finite("eta")

    @property
    def one_by_one(self) -> bool:
        return True

    def start(self, seed: int) -> Memory:
        return {"squares": np.zeros((0, 0))}

    def step(self, round: Round, memory: Memory) -> Step:
        direction = along(round.slope, round.weight)
        if direction is None:
            return 1.0, None
        against = np.outer(round.k, direction)
        if len(memory["squares"]) == 0:
            memory["squares"] = np.zeros_like(against)
        memory["squares"] += np.square(against)
        return 1.0, self.eta * against / np.sqrt(np.maximum(memory["squares"], np.finfo(float).tiny))


class DistanceOverGradient(Update):
    """A gradient step that needs no eta: how far f has been from 0, over the root of the squared slopes so far.

    f <- f - eta_t * slope * k(x, .),  eta_t = max(max_s |f_s| / sqrt(V_t), 1 / sqrt(n_t)), with V the sum of
    |slope|^2 k(x, x) and n of k(x, x)^2 over the rounds with a slope (DoG: Ivgi, Hinder, Carmon 2023; the floor
    1 / sqrt(n) gets it going: the first step repairs the first example). Scaling all targets of a squared loss
    scales f; scaling all sample weights changes nothing.
    """

    @property
    def exact_norm(self) -> bool:
        return True

    def start(self, seed: int) -> Memory:
        return {"norm2": 0.0, "farthest": 0.0, "squares": 0.0, "rounds": 0.0}

    def step(self, round: Round, memory: Memory) -> Step:
        slope2 = round.weight**2 * float(round.slope @ round.slope)
        if slope2 == 0 or round.kxx <= 0:
            return 1.0, None
        farthest = max(memory["farthest"], math.sqrt(max(memory["norm2"], 0.0)))
        squares = memory["squares"] + slope2 * round.kxx
        rounds = memory["rounds"] + (round.weight * round.kxx) ** 2
        eta = max(farthest / math.sqrt(squares), 1 / math.sqrt(rounds))
        coef = along(round.slope, eta * round.weight)
        memory |= {"farthest": farthest, "squares": squares, "rounds": rounds}
        if coef is not None:
            memory["norm2"] += 2 * float(coef @ round.s) + float(coef @ coef) * round.kxx
        return 1.0, coef


class Pegasos(Update):
    """Gradient with eta_t = 1 / (lam t): f <- (1 - 1/t) f - slope / (lam t) * k(x, .).

    `project` keeps |f| <= 1 / sqrt(lam), where the minimiser lies.
    """

    lam: float = 0.01
    project: bool = False

    def __post_init__(self) -> None:
        self._positive("lam")
        self._finite("lam")
        self._boolean("project")

    @property
    def exact_norm(self) -> bool:
        return self.project

    def start(self, seed: int) -> Memory:
        return {"norm2": 0.0} if self.project else {}

    def step(self, round: Round, memory: Memory) -> Step:
        shrink, coef = 1 - 1 / round.t, along(round.slope, round.weight / (self.lam * round.t))
        return project(shrink, coef, round, memory, 1 / math.sqrt(self.lam))


def project(shrink: float, coef: Array | None, round: Round, memory: Memory, radius: float) -> Step:
    """Scale the step so that the new |f| is at most radius; does nothing without a norm in memory."""
    if "norm2" not in memory:
        return shrink, coef
    norm2, most = shrink**2 * memory["norm2"], radius * radius
    if coef is not None:
        norm2 += 2 * shrink * float(coef @ round.s) + float(coef @ coef) * round.kxx
    memory["norm2"] = min(max(norm2, 0.0), most)
    if norm2 <= most:
        return shrink, coef
    factor = radius / math.sqrt(norm2)
    return shrink * factor, None if coef is None else coef * factor


def curvature(round: Round, divide: bool = True) -> float:
    """|slope|^2 k(x, x), by which a step changes the loss; without `divide` k(x, x) counts as 1."""
    return float(round.slope @ round.slope) * (round.kxx if divide else 1.0)


class PassiveAggressive(Update):
    """f <- f - tau * slope * k(x, .), the least move that repairs the loss.

    With v = |slope|^2 k(x, x): tau = loss / v ("hard"), min(C, loss / v) ("I"), loss / (v + 1/(2C)) ("II").
    Without `divide` k(x, x) counts as 1, as in a released program.
    """

    variant: str = "I"
    C: float = 1.0
    divide: bool = True

    def __post_init__(self) -> None:
        self._one_of("variant", "hard", "I", "II")
        self._positive("C")
        self._boolean("divide")

    def check(self, loss: Loss) -> None:
        if type(loss).__name__ not in ("Hinge", "EpsilonInsensitive"):
            raise ValueError(
                f"PassiveAggressive needs a piecewise linear loss, Hinge or EpsilonInsensitive; got {loss!r}"
            )

    def step(self, round: Round, memory: Memory) -> Step:
        v, C = curvature(round, self.divide), self.C * round.weight
        if v <= 0:
            return 1.0, None
        if self.variant == "II":
            return 1.0, along(round.slope, round.loss / (v + 0.5 / C))
        tau = round.loss / v
        return 1.0, along(round.slope, tau if self.variant == "hard" else min(C, tau))


class Implicit(Update):
    """argmin_g |g - f|^2 / 2 + eta (lam |g|^2 / 2 + hinge(g)), the implicit online step (ILK).

    f <- (f - q * slope * k(x, .)) / (1 + eta lam), q = clip((1 + eta lam - margin) / (|slope|^2 k(x, x)), 0, eta).
    The numerator is the hinge taken at the threshold 1 + eta lam.
    """

    eta: float = 0.1
    lam: float = 0.0

    def __post_init__(self) -> None:
        self._positive("eta")
        self._nonnegative("lam")
        self._finite("eta", "lam")

    def check(self, loss: Loss) -> None:
        if type(loss).__name__ != "Hinge":
            raise ValueError(f"Implicit is derived for the Hinge, got {loss!r}")

    def start(self, seed: int) -> Memory:
        return {"threshold": 1 + self.eta * self.lam}

    def step(self, round: Round, memory: Memory) -> Step:
        shrink = 1 / (1 + self.eta * self.lam)
        v = curvature(round)
        if v <= 0:
            return shrink, None
        return shrink, along(round.slope, shrink * min(round.loss / v, self.eta * round.weight))


class AdaptiveThreshold(Update):
    """NORMA with the nu trick: a gradient step in f and in the loss's threshold.

    f <- (1 - eta lam) f - eta * slope * k(x, .). The threshold starts at `start_at` and settles where a
    fraction nu of the rounds has a loss: with `margin` (classification, novelty) it falls by
    eta (1 - nu) on an error and rises by eta nu otherwise; a tube (regression) moves the other way.
    It may become negative, as published; `clamp` keeps it at zero or above.
    """

    eta: float = 0.1
    lam: float = 0.0
    nu: float = 0.5
    start_at: float = 1.0
    margin: bool = True
    clamp: bool = False

    def __post_init__(self) -> None:
        self._positive("eta", "nu")
        self._nonnegative("lam")
        self._finite("eta", "lam", "start_at")
        self._boolean("margin", "clamp")
        self._require("nu", self.nu < 1, "between 0 and 1")
        self._require("lam", self.eta * self.lam < 1, f"< 1 / eta = {1 / self.eta:g}")

    def check(self, loss: Loss) -> None:
        if loss.threshold is None:
            raise ValueError(f"AdaptiveThreshold needs a loss with a margin or a tube, got {loss!r}")

    def start(self, seed: int) -> Memory:
        return {"threshold": float(self.start_at)}

    def step(self, round: Round, memory: Memory) -> Step:
        coef = along(round.slope, self.eta * round.weight)
        error = bool(round.slope.any())
        rise = self.eta * round.weight * (self.nu - error)
        memory["threshold"] += rise if self.margin else -rise
        if self.clamp:
            memory["threshold"] = max(0.0, memory["threshold"])
        return 1 - self.eta * self.lam, coef
