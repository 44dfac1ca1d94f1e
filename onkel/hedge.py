"""Hedge: a learner made of learners. Each predicts and learns; their answers are weighted by how well they did.

th_i <- th_i * discount^(i was wrong), or th_i * exp(-eta_weights * loss_i), normalised; the answer is the weighted vote
of the components, or the weighted sum of their scores.

Components whose updates do not depend on the weights learn from a whole chunk at once, on their own engines; the
weights follow from their scores. Where a component is only updated with a probability that follows its weight
(`sample_update`), rounds are taken one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from onkel.basis import State
from onkel.losses import Loss
from onkel.random import Random, uniforms

Array = np.ndarray[Any, np.dtype[Any]]


class Hedge:
    """A weighted pool of learners, with the verbs of one.

    Parameters
    ----------
    learners : components with as many outputs as the whole
    loss : of a component's score, for weights that follow the loss; None: they follow mistakes
    discount : factor on the weight of a component that was wrong, in (0, 1]; 1: the weights stay equal
    eta_weights : with a loss: the rate of the weights
    vote : combine the components' answers (-1 or +1, or one class); else their scores
    sample_update, sample_combination : only components drawn with probability (1 - smoothing) th_i / max th + smoothing
        learn (and lose weight, unless `discount_always`), or take part in the answer that `learn` returns
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
        sample_update: bool = False,
        sample_combination: bool = False,
        discount_always: bool = False,
        smoothing: float = 0.001,
        seed: int = 0,
        dtype: Any = np.float64,
    ) -> None:
        if not 0 < discount <= 1:
            raise ValueError(f"Hedge.discount must be in (0, 1], got {discount!r}")
        if not 0 <= smoothing <= 1:
            raise ValueError(f"Hedge.smoothing must be between 0 and 1, got {smoothing!r}")
        self.learners, self.loss, self.vote = list(learners), loss, vote
        self.rate = eta_weights if loss is not None else -math.log(discount)
        self.sample_update, self.sample_combination = sample_update, sample_combination
        self.discount_always, self.smoothing = discount_always, smoothing
        self.outputs, self.dtype = learners[0].outputs, np.dtype(dtype)  # of the rows; components may be finer
        self.engine = learners[0].engine
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

    def _answers(self, scores: Array) -> Array:
        """What each component says, from scores (rounds, components, outputs)."""
        if not self.vote:
            return scores
        if self.outputs == 1:
            return np.where(scores >= 0, 1.0, -1.0)
        return np.asarray(np.eye(self.outputs)[np.argmax(scores, axis=2)])

    def _combine(self, scores: Array, th: Array) -> Array:
        return np.asarray(np.einsum("nmo,nm->no", self._answers(scores), th))

    def _faults(self, scores: Array, y: Array) -> Array:
        """The mistakes (or losses) of the components, (rounds, components)."""
        if self.loss is not None:
            return np.array([[self.loss(float(t), s)[0] for s in row] for t, row in zip(y, scores, strict=True)])
        if self.outputs == 1:
            return np.asarray(y[:, None] * scores[:, :, 0] <= 0, dtype=np.float64)
        return np.asarray(np.argmax(scores, axis=2) != y[:, None], dtype=np.float64)

    def _fine(self, X: Any) -> Any:
        """The rows in the type of the components."""
        return X if X.dtype == self.learners[0].dtype else X.astype(self.learners[0].dtype)

    # -- learning

    def learn(self, X: Any, y: Array, weight: Array | None = None) -> tuple[Array, Array]:
        """Learn from each row in turn; the combined scores before each update (twice: there is no average)."""
        X = self._fine(X)
        if self.sample_update:
            single = len(y) == 1
            rows = [X] if single else (X[i : i + 1] for i in range(len(y)))
            weights = [None] * len(y) if weight is None else weight[:, None]
            parts = [self._round(x, t, w) for x, t, w in zip(rows, y[:, None], weights, strict=True)]
            combined = np.concatenate(parts) if parts else np.zeros((0, self.outputs))
            return combined, combined
        scores = np.stack([learner.learn(X, y, weight)[0] for learner in self.learners], axis=1)
        counted = np.ones(len(y)) if weight is None else (weight > 0).astype(np.float64)
        faults = self._faults(scores, y) * counted[:, None]
        before = np.cumsum(np.vstack([self.losses, faults]), axis=0)  # one after the other, in any chunks
        self.losses = before[-1]
        self.t += int(counted.sum())
        th = self._weights(before[:-1])
        combined = self._combine(scores, self._drawn(th) if self.sample_combination else th)
        return combined, combined

    def _drawn(self, th: Array) -> Array:
        """The weights of those drawn to take part, one draw for each round and component; the best if none is."""
        draw = self.random["combination"]
        u = np.array([[draw.uniform() for _ in row] for row in th])
        kept = np.where(u < self._chances(th), th, 0.0)
        none = ~kept.any(axis=1)
        kept[none] = np.where(th[none] == th[none].max(axis=1, keepdims=True), th[none], 0.0)
        return kept

    def _round(self, x: Any, y: Array, weight: Array | None) -> Array:
        """One round in which only some learn."""
        th = self.weights
        if weight is not None and weight[0] == 0:
            return self.scores(x)
        draw = self.random["update"]
        chosen = np.array([draw.uniform() < chance for chance in self._chances(th)])
        scores = np.stack(
            [
                learner.learn(x, y, weight)[0] if drawn else learner.scores(x)
                for learner, drawn in zip(self.learners, chosen, strict=True)
            ],
            axis=1,
        )
        faults = self._faults(scores, y)[0]
        self.losses = self.losses + (faults if self.discount_always else faults * chosen)
        self.t += 1
        return self._combine(scores, self._drawn(th[None]) if self.sample_combination else th[None])

    def learn_one(self, x: Array, y: float, weight: float = 1.0) -> None:
        """Learn from one dense row."""
        self.learn(np.asarray(x)[None], np.array([y]), np.array([weight]))

    # -- predicting

    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Combined scores of the rows; nothing is drawn."""
        X = self._fine(X)
        scores = np.stack([learner.scores(X) for learner in self.learners], axis=1)
        return self._combine(scores, np.broadcast_to(self.weights, scores.shape[:2]))

    def score_one(self, x: Array) -> list[float]:
        """Combined scores of one dense row."""
        return [float(s) for s in self.scores(np.asarray(x)[None])[0]]

    # -- what is inside

    @property
    def n(self) -> int:
        """Number of terms of all components."""
        return sum(learner.n for learner in self.learners)

    @property
    def reach(self) -> float:
        """How large |x_1| + |x_2| + ... of an example may be."""
        return float(min(learner.reach for learner in self.learners))

    def check(self, X: Any) -> None:
        """Refuse rows whose numbers would overflow."""
        for learner in self.learners:
            learner.check(X)

    def widen(self, keys: Array) -> None:
        """Make room for features that were not there before."""
        for learner in self.learners:
            learner.widen(keys)

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
        self.losses, self.t = state["hedge.losses"].copy(), int(state["t"])
        for name, random in self.random.items():
            random.state = int(state[f"hedge.{name}"])


def seeds(seed: int, count: int) -> list[int]:
    """A seed for each component; the first keeps the seed of the whole, so that a pool of one is the learner itself."""
    rest = uniforms(seed, "components", np.arange(count), 1)[:, 0] * 2.0**52
    return [seed, *(int(number) for number in rest[1:])]
