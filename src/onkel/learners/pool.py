"""Pools: the base class of engines made of engines, in Python and C++."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onkel.core import soundness
from onkel.core.basis import State
from onkel.core.locks import exclusive, shared
from onkel.core.memory import own
from onkel.core.outputs import Joining
from onkel.core.part import Part
from onkel.core.random import Random, uniforms
from onkel.learners.engine import Engine
from onkel.learners.weighting import ByMistakes, Sampling, Weighting

Array = np.ndarray[Any, np.dtype[Any]]


class PoolEngine(Engine):
    """A weighted pool of engines, with the methods of an engine.

    Parameters
    ----------
    learners : the components, each with as many outputs as the pool
    weighting : how the components are weighted
    sampling : which components take part in a round
    vote : combine the predictions of the components (-1 or +1, or a class); if False, their scores
    budget : most terms of all components together; when it is used up, a component that adds a term first removes one
        of its own, or drops the new term if it has none
    seed : seed of the draws
    dtype : type of the rows; components may use a wider type (float64 for float32 rows)
    jobs : threads on which components learn in parallel, if they learn from whole chunks
    """

    def __init__(
        self,
        learners: Sequence[Any],
        *,
        weighting: Weighting = ByMistakes(),
        sampling: Sampling = Sampling(),
        vote: bool = True,
        budget: float | None = None,
        seed: int = 0,
        dtype: Any = np.float64,
        jobs: int = 1,
    ) -> None:
        self.learners, self.weighting, self.sampling, self.vote = list(learners), weighting, sampling, vote
        self.budget = math.inf if budget is None else budget
        self.outputs, self.dtype, self.jobs = learners[0].outputs, np.dtype(dtype), jobs
        self.rounds = 0
        self.losses = np.zeros(len(self.learners))  # the sum of the losses of each component so far
        self.random = {"update": Random(seed, "update"), "combination": Random(seed, "combination")}

    @property
    def weights(self) -> Array:
        """The current weights of the components, which sum to 1."""
        return np.asarray(self.weighting.weights(self.losses[None])[0])

    @property
    def by_rounds(self) -> bool:
        """Must rows be learned one by one, because components depend on their weights or on each other?"""
        return self.sampling.learn or self.sampling.scale or self.budget < math.inf

    # -- what is inside

    def fine(self, X: Any) -> Any:
        """The rows in the type of the components."""
        return X if X.dtype == self.learners[0].dtype else X.astype(self.learners[0].dtype)

    @property
    def sizes(self) -> Array:
        """Number of terms of each component."""
        return np.array([learner.n for learner in self.learners])

    @property
    def n(self) -> int:
        return sum(learner.n for learner in self.learners)

    @property
    def t(self) -> int:
        return self.rounds

    @property
    def columns(self) -> int:
        return int(self.learners[0].columns)

    @property
    def inner(self) -> tuple[Part, ...]:
        return *(part for learner in self.learners for part in learner.inner), self.weighting, self.sampling

    def check(self, X: Any, y: Array | None = None) -> None:
        X = self.fine(X)
        for learner in self.learners:
            learner.check(X)

    @exclusive
    def widen(self, keys: Array) -> None:
        for learner in self.learners:
            learner.widen(keys)

    # -- state

    @shared
    def state(self) -> State:
        arrays = {f"{i}.{name}": a for i, f in enumerate(self.learners) for name, a in f.state().items()}
        draws = {f"hedge.{name}": np.array(r.state, dtype=np.uint64) for name, r in self.random.items()}
        return arrays | draws | {"hedge.losses": self.losses.copy(), "t": np.array(self.rounds)}

    def check_state(self, state: State) -> None:
        t, terms = soundness.rounds(state), 0
        for i, learner in enumerate(self.learners):
            inner = own(str(i), state)
            learner.check_state(inner)
            soundness.require(f"{i}.t", soundness.rounds(inner) <= t, f"at most the rounds of the pool, {t}")
            terms += len(inner.get("basis.born", ()))
        if terms > self.budget:
            raise ValueError(f"the components have {terms} terms, more than their budget of {self.budget:g}")
        soundness.shaped(state, "hedge.losses", self.losses.shape)
        for name in self.random:
            soundness.random(state, f"hedge.{name}")

    def restore(self, state: State) -> None:
        for i, learner in enumerate(self.learners):
            learner.restore(own(str(i), state))
        self.losses, self.rounds = state["hedge.losses"].astype(np.float64), int(state["t"])
        for name, random in self.random.items():
            random.state = int(state[f"hedge.{name}"])

    def relabel(self, state: State, joining: Joining) -> State:
        state = dict(state)
        for i, learner in enumerate(self.learners):
            inner = learner.relabel(own(str(i), state), joining)
            state |= {f"{i}.{name}": a for name, a in inner.items()}
        return state


def seeds(seed: int, count: int) -> list[int]:
    """A seed for each component; the first has the seed of the pool, so that a pool of one equals its component."""
    rest = uniforms(seed, "components", np.arange(count), 1)[:, 0] * 2.0**52
    return [seed, *(int(number) for number in rest[1:])]
