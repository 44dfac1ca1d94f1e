"""Hedge: a learner made of learners. Each predicts and learns; their answers are weighted by how well they did.

th_i <- th_i * discount^(i was wrong), or th_i * exp(-eta_weights * loss_i), normalised; the answer is the weighted vote
of the components, or the weighted sum of their scores.

Components that depend neither on the weights nor on each other learn from a whole chunk at once; the weights follow
from their scores. Where a component learns with a probability that follows its weight, or all have one budget, rounds
are taken one by one. This file is the definition; its twin in C++ holds components that run there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from onkel.basis import State
from onkel.budgets import pick
from onkel.learner import Engine
from onkel.losses import Loss
from onkel.random import Random, uniforms
from onkel.turns import learns, predicts
from onkel.updates import Diverged

Array = np.ndarray[Any, np.dtype[Any]]


class Hedge(Engine):
    """A weighted pool of learners, with the verbs of one.

    Parameters
    ----------
    learners : components with as many outputs as the whole
    loss : of a component's score, for weights that follow the loss; None: they follow mistakes
    discount : factor on the weight of a component that was wrong, in (0, 1]; 1: the weights stay equal
    eta_weights : with a loss: the rate of the weights, >= 0
    vote : combine the components' answers (-1 or +1, or one class); else their scores
    strict : with two classes a score of 0 is no mistake of a component
    sample_update : only components drawn with probability p_i = (1 - smoothing) th_i / max th + smoothing learn, and
        lose weight
    scale_chance : all learn; p_i multiplies the probability of their own sampled steps
    sample_combination : only components drawn with p_i, or (`single`) one drawn with th_i, take part in the answer that
        `learn` returns
    budget : most terms of all components together; without room left, a component that learns removes one of its own
    jobs : threads on which components learn side by side, where they learn from whole chunks
    """

    average = False
    threshold = 0.0

    def __init__(
        self,
        learners: Sequence[Any],
        *,
        loss: Loss | None = None,
        discount: float = 0.99,
        eta_weights: float = 1.0,
        vote: bool = True,
        strict: bool = False,
        sample_update: bool = False,
        sample_combination: bool = False,
        single: bool = False,
        scale_chance: bool = False,
        smoothing: float = 0.001,
        budget: int | None = None,
        seed: int = 0,
        dtype: Any = np.float64,
        jobs: int = 1,
    ) -> None:
        if not 0 < discount <= 1:
            raise ValueError(f"Hedge.discount must be in (0, 1], got {discount!r}")
        if not 0 <= smoothing <= 1:
            raise ValueError(f"Hedge.smoothing must be between 0 and 1, got {smoothing!r}")
        if not 0 <= eta_weights < math.inf:
            raise ValueError(f"Hedge.eta_weights must be >= 0, got {eta_weights!r}")
        self.learners, self.loss, self.vote, self.strict = list(learners), loss, vote, strict
        self.rate = eta_weights if loss is not None else -math.log(discount)
        self.sample_update, self.scale_chance, self.smoothing = sample_update, scale_chance, smoothing
        self.sample_combination, self.single = sample_combination, single
        self.budget = math.inf if budget is None else budget
        self.outputs, self.dtype = learners[0].outputs, np.dtype(dtype)  # of the rows; components may be finer
        self.engine, self.jobs = learners[0].engine, jobs
        self.t = 0
        self.losses = np.zeros(len(self.learners))  # of each component so far: mistakes, or sums of its loss
        self.random = {"update": Random(seed, "update"), "combination": Random(seed, "combination")}

    # -- weights and answers

    @property
    def weights(self) -> Array:
        """th, which sum to 1."""
        return np.asarray(self._weights(self.losses[None])[0])

    def _weights(self, losses: Array) -> Array:
        """th for rows of losses."""
        power = -self.rate * (losses - losses.min(axis=1, keepdims=True))
        th = np.exp(power)
        return np.asarray(th / th.sum(axis=1, keepdims=True))

    def _chances(self, th: Array) -> Array:
        return np.asarray((1 - self.smoothing) * th / th.max(axis=-1, keepdims=True) + self.smoothing)

    def _drawn(self, th: Array) -> Array:
        """The weights of those drawn to take part, for each round; the best if none is."""
        draw = self.random["combination"]
        if self.single:
            return np.eye(len(self.learners))[[pick(row, draw.uniform()) for row in th]]
        u = np.array([[draw.uniform() for _ in row] for row in th]).reshape(th.shape)
        kept = np.where(u < self._chances(th), th, 0.0)
        none = ~kept.any(axis=1)
        kept[none] = np.where(th[none] == th[none].max(axis=1, keepdims=True), th[none], 0.0)
        return kept

    def _answers(self, scores: Array) -> Array:
        """What each component says, from scores (rounds, components, outputs)."""
        if not self.vote:
            return scores
        if self.outputs == 1:
            return np.where(scores >= 0, 1.0, -1.0)
        return np.asarray(np.eye(self.outputs)[np.argmax(scores, axis=2)])

    def _combine(self, scores: Array, th: Array) -> Array:
        return np.asarray((self._answers(scores) * th[:, :, None]).sum(axis=1))

    def _faults(self, scores: Array, y: Array) -> Array:
        """The mistakes (or losses) of the components, (rounds, components)."""
        if self.loss is not None:
            found = [[self.loss(float(t), s)[0] for s in row] for t, row in zip(y, scores, strict=True)]
            return np.array(found).reshape(scores.shape[:2])
        if self.outputs == 1:
            margins = y[:, None] * scores[:, :, 0]
            return np.asarray(margins < 0 if self.strict else margins <= 0, dtype=np.float64)
        return np.asarray(np.argmax(scores, axis=2) != y[:, None], dtype=np.float64)

    # -- learning

    @learns
    def learn(self, X: Any, y: Array, weight: Array | None = None) -> tuple[Array, Array]:
        """Learn from each row in turn; the combined scores before each update (twice: there is no average).

        If a component diverges the call ends there; other components may then have learned from rows beyond.
        """
        X = self._fine(X)
        self.check(X)
        weight = np.ones(len(y)) if weight is None else weight
        by_rounds = self.sample_update or self.scale_chance or self.budget < math.inf
        combined = self._rounds(X, y, weight) if by_rounds else self._chunk(X, y, weight)
        return combined, combined

    def _chunk(self, X: Any, y: Array, weight: Array) -> Array:
        """Components learn from all rows, then the weights follow."""
        scores = np.stack(self._each(lambda learner: learner.learn(X, y, weight)[0]), axis=1)
        counts = weight > 0
        faults = self._faults(scores, y) * counts[:, None]
        losses = np.cumsum(np.vstack([self.losses, faults]), axis=0)  # one after the other, in any chunks
        self.losses = losses[-1].copy()
        self.t += int(counts.sum())
        th = self._weights(losses[:-1])
        if self.sample_combination:
            th[counts] = self._drawn(th[counts])
        return self._combine(scores, th)

    def _each(self, action: Callable[[Any], Any]) -> list[Any]:
        """The action on every component, side by side if asked; the native engine runs without the interpreter."""
        if self.jobs == 1:
            return [action(learner) for learner in self.learners]
        with ThreadPoolExecutor(self.jobs) as threads:
            return list(threads.map(action, self.learners))

    def _rounds(self, X: Any, y: Array, weight: Array) -> Array:
        combined = np.zeros((len(y), self.outputs))
        for i in range(len(y)):
            now = slice(i, i + 1)
            x = X if len(y) == 1 else X[now]
            try:
                combined[i] = self._round(x, y[now], weight[now])[0] if weight[i] > 0 else self.scores(x)[0]
            except Diverged as error:
                raise Diverged(str(error).replace("row 0", f"row {i}", 1)) from None
        return combined

    def _round(self, x: Any, y: Array, weight: Array) -> Array:
        """One round in which components depend on their weights, or on each other."""
        th = self.weights[None]
        chances = self._chances(th)[0]
        scores = np.zeros((1, len(self.learners), self.outputs))
        drawn = np.ones(len(self.learners), dtype=bool)
        for i, (learner, chance) in enumerate(zip(self.learners, chances, strict=True)):
            drawn[i] = not self.sample_update or self.random["update"].uniform() < chance
            if drawn[i]:
                options = {"chance": chance if self.scale_chance else 1.0, "room": self.budget - self.n}
                scores[:, i] = learner.learn(x, y, weight, **options)[0]
            else:
                scores[:, i] = learner.scores(x)
        self.losses = self.losses + self._faults(scores, y)[0] * drawn
        self.t += 1
        return self._combine(scores, self._drawn(th) if self.sample_combination else th)

    # -- predicting

    @predicts
    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Combined scores of the rows; nothing is drawn."""
        X = self._fine(X)
        scores = np.stack([learner.scores(X) for learner in self.learners], axis=1)
        return self._combine(scores, np.broadcast_to(self.weights, scores.shape[:2]))

    # -- what is inside

    def _fine(self, X: Any) -> Any:
        """The rows in the type of the components."""
        return X if X.dtype == self.learners[0].dtype else X.astype(self.learners[0].dtype)

    @property
    def sizes(self) -> Array:
        """Number of terms of each component."""
        return np.array([learner.n for learner in self.learners])

    @property
    def n(self) -> int:
        """Number of terms of all components."""
        return sum(learner.n for learner in self.learners)

    @property
    def columns(self) -> int:
        """Number of features."""
        return int(self.learners[0].columns)

    @property
    def reach(self) -> float:
        """How large |x_1| + |x_2| + ... of an example may be."""
        return float(min(learner.reach for learner in self.learners))

    def check(self, X: Any) -> None:
        """Refuse rows whose numbers would overflow."""
        X = self._fine(X)
        for learner in self.learners:
            learner.check(X)

    @learns
    def widen(self, keys: Array) -> None:
        """Make room for features that were not there before."""
        for learner in self.learners:
            learner.widen(keys)

    @predicts
    def state(self) -> State:
        """Everything that was learned, as a flat dictionary of arrays."""
        arrays = {f"{i}.{name}": a for i, f in enumerate(self.learners) for name, a in f.state().items()}
        draws = {f"hedge.{name}": np.array(r.state, dtype=np.uint64) for name, r in self.random.items()}
        return arrays | draws | {"hedge.losses": self.losses.copy(), "t": np.array(self.t)}

    def restore(self, state: State) -> None:
        """The inverse of `state` on a pool of the same composition."""
        for i, learner in enumerate(self.learners):
            head = f"{i}."
            learner.restore({name.removeprefix(head): a for name, a in state.items() if name.startswith(head)})
        if state["hedge.losses"].shape != self.losses.shape:
            raise ValueError(f"'hedge.losses' has shape {state['hedge.losses'].shape}, not {self.losses.shape}")
        self.losses, self.t = state["hedge.losses"].astype(np.float64), int(state["t"])
        for name, random in self.random.items():
            random.state = int(state[f"hedge.{name}"])


def seeds(seed: int, count: int) -> list[int]:
    """A seed for each component; the first keeps the seed of the whole, so that a pool of one is the learner itself."""
    rest = uniforms(seed, "components", np.arange(count), 1)[:, 0] * 2.0**52
    return [seed, *(int(number) for number in rest[1:])]
