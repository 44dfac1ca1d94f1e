"""Landmarks: the terms become the landmarks of a Nyström map."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from onkel.budgets.base import Bounded
from onkel.core import soundness
from onkel.core.basis import State
from onkel.core.part import Memory
from onkel.core.run import Run
from onkel.hypotheses.terms import Terms
from onkel.maps import Nystrom
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]


class Landmarks(Bounded):
    """The first `budget` terms become the landmarks of a Nyström map, and steps are taken in its features (NOGD).

    Let z(x) = M k(x) be the `rank` features of the landmarks (`Nystrom`). The learner switches to them in the first
    round whose term finds no room ("lazy"), or at the end of the round that fills the budget ("eager"): f is replaced
    by its projection on the span of the features. From then on, a step adds coef * z(x) to the weights of the features.
    As f stays an expansion, M' M k(x) * coef is added to its coefficients instead, which is the same change of f.
    """

    rank: int = 20
    switch: str = "lazy"

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(8, 3), cls(8, 8, "eager")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._integer("rank", 1, self.budget)
        self._one_of("switch", "lazy", "eager")

    def start(self, run: Run) -> Memory:
        return {"transform": np.zeros((0, 0))}

    def check_state(self, state: State, run: Run) -> None:
        n, M = len(state["basis.born"]), state["budget.transform"]
        if not M.size:  # before the switch
            soundness.require("budget.transform", M.ndim == 2, "a matrix")
            return
        soundness.require("budget.transform", n == self.budget, f"empty before there are {self.budget} terms")
        soundness.shaped(state, "budget.transform", (min(len(M), self.rank), n))

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is not None and f.n < self.budget:
            f.append(round, coef)
            if f.n == self.budget and self.switch == "eager":
                self._become_linear(f, memory)
        elif coef is not None:
            if len(memory["transform"]) == 0:
                self._become_linear(f, memory)
            M = memory["transform"]
            f.add(M.T @ (M @ round.k), coef)

    def _become_linear(self, f: Terms, memory: Memory) -> None:
        K = f.matrix()
        M = memory["transform"] = Nystrom(f.kernel, self.rank).transform(K, f.run.dtype)
        f.change(K @ (M.T @ (M @ f.coef)))
