"""Updates whose step size or threshold adapts to the rounds so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np

from onkel.core import soundness
from onkel.core.basis import State
from onkel.core.errors import Diverged
from onkel.core.part import Memory, Words
from onkel.core.run import Run
from onkel.updates.base import Round, Step, Update, along


class AdaGrad(Update):
    """w_j <- w_j - eta g_j / sqrt(sum of g_j^2 so far), g = slope z(x): a step for each weight (Duchi et al. 2011)."""

    eta: float = 0.1

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(0.2),)

    def __post_init__(self) -> None:
        self._positive("eta")
        self._finite("eta")

    per_output: ClassVar[Mapping[str, str]] = {"squares": "squares"}

    @property
    def needs(self) -> Words:
        return super().needs | {"explicit"}

    def start(self, run: Run) -> Memory:
        return {"squares": np.zeros((0, 0))}

    def check_state(self, state: State) -> None:
        soundness.nonnegative(state, "update.squares")
        squares = state["update.squares"]
        wanted = state["weights.coef"].shape if len(squares) else (0, 0)
        soundness.shaped(state, "update.squares", wanted)

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
    """A gradient step of size largest |f| so far / root of the sum of squared gradients, so without eta (DoG).

    f <- f - eta_t * slope * k(x, .),  eta_t = max(max_s |f_s| / sqrt(V_t), 1 / sqrt(n_t)). Over the rounds with a
    slope, V_t is the sum of |slope|^2 k(x, x) and n_t the sum of k(x, x)^2 (Ivgi, Hinder, Carmon 2023). The lower bound
    1 / sqrt(n_t) makes the first step possible. If all targets of a squared loss are scaled, f scales with them;
    scaling all sample weights changes nothing.
    """

    per_output: ClassVar[Mapping[str, str]] = {"norm2": "squared length", "farthest": "length"}

    @property
    def needs(self) -> Words:
        return super().needs | {"append-only"}

    def start(self, run: Run) -> Memory:
        return {"norm2": 0.0, "farthest": 0.0, "squares": 0.0, "rounds": 0.0}

    def check_state(self, state: State) -> None:
        soundness.nonnegative(state, "update.farthest", "update.squares", "update.rounds")

    def step(self, round: Round, memory: Memory) -> Step:
        slope2 = round.weight * round.weight * float(round.slope @ round.slope)
        if slope2 == 0 or round.kxx <= 0:
            return 1.0, None
        farthest = max(memory["farthest"], math.sqrt(max(memory["norm2"], 0.0)))
        squares = memory["squares"] + slope2 * round.kxx
        rounds = memory["rounds"] + (round.weight * round.kxx) * (round.weight * round.kxx)
        if not math.isfinite(squares + rounds):
            raise Diverged("the sum of squared slopes is", squares + rounds)
        eta = max(farthest / math.sqrt(squares), 1 / math.sqrt(rounds))
        coef = along(round.slope, eta * round.weight)
        memory |= {"farthest": farthest, "squares": squares, "rounds": rounds}
        if coef is not None:
            memory["norm2"] += 2 * float(coef @ round.s) + float(coef @ coef) * round.kxx
        return 1.0, coef


class AdaptiveThreshold(Update):
    """NORMA with the nu trick: a gradient step in f and in the threshold of the loss.

    f <- (1 - eta lam) f - eta * slope * k(x, .). The threshold starts at `start_at` and settles where a
    fraction nu of the rounds has a loss. With `margin` (classification, novelty) it falls by eta (1 - nu) in a round
    with a loss and rises by eta nu otherwise; a tube (regression) moves the other way.
    The threshold may become negative, as published; `clamp` keeps it at zero or above.
    """

    eta: float = 0.1
    lam: float = 0.0
    nu: float = 0.5
    start_at: float = 1.0
    margin: bool = True
    clamp: bool = False

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(0.2, 0.1, 0.3),
            cls(0.2, 0.1, 0.6, 0.2, margin=False),
            cls(0.2, 0.1, 0.9, 0.2, margin=False, clamp=True),
        )

    def __post_init__(self) -> None:
        self._positive("eta", "nu")
        self._nonnegative("lam")
        self._finite("eta", "lam", "start_at")
        self._boolean("margin", "clamp")
        self._require("nu", self.nu < 1, "between 0 and 1")
        self._require("lam", self.eta * self.lam < 1, f"< 1 / eta = {1 / self.eta:g}")

    @property
    def needs(self) -> Words:
        return super().needs | {"threshold"}

    def start(self, run: Run) -> Memory:
        return {"threshold": float(self.start_at)}

    def step(self, round: Round, memory: Memory) -> Step:
        coef = along(round.slope, self.eta * round.weight)
        error = bool(round.slope.any())
        rise = self.eta * round.weight * (self.nu - error)
        memory["threshold"] += rise if self.margin else -rise
        if self.clamp:
            memory["threshold"] = max(0.0, memory["threshold"])
        return 1 - self.eta * self.lam, coef
