"""Hedge: a learner made of learners. Each predicts and learns; components that did well get larger weights.

th = weighting.weights(losses);  score = sum_i th_i answer_i, where answer_i is the vote or the score of component i

If components depend neither on the weights nor on each other, each learns a whole chunk, and the weights follow from
the scores. Rows are processed one by one if components are drawn by weight to learn, if weights scale the probabilities
of sampled steps, or if the components share a budget. This file is the definition; the C++ counterpart is
`NativeHedge`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from onkel.core.errors import Diverged
from onkel.core.locks import exclusive, shared
from onkel.core.random import pick
from onkel.core.scores import decided
from onkel.learners.engine import Out, written
from onkel.learners.pool import PoolEngine

Array = np.ndarray[Any, np.dtype[Any]]


class Hedge(PoolEngine):
    """The loop of a pool, in array notation."""

    # -- answers

    def _drawn(self, th: Array) -> Array:
        """The weights th of each round, 0 for components that are not drawn.

        With answer="one" the drawn component has weight 1. With "some", if none is drawn, the best keep their weights.
        """
        draw = self.random["combination"]
        if self.sampling.answer == "one":
            return np.eye(len(self.learners))[[pick(row, draw.uniform()) for row in th]]
        u = np.array([[draw.uniform() for _ in row] for row in th]).reshape(th.shape)
        kept = np.where(u < self.sampling.chances(th), th, 0.0)
        none = ~kept.any(axis=1)
        kept[none] = np.where(th[none] == th[none].max(axis=1, keepdims=True), th[none], 0.0)
        return kept

    def _answers(self, scores: Array) -> Array:
        """The votes (or scores) of the components, from scores (rounds, components, outputs)."""
        if not self.vote:
            return scores
        said = decided(scores)
        return 2.0 * said[:, :, None] - 1.0 if self.outputs == 1 else np.asarray(np.eye(self.outputs)[said])

    def _combine(self, scores: Array, th: Array) -> Array:
        return np.asarray((self._answers(scores) * th[:, :, None]).sum(axis=1))

    # -- learning

    @exclusive
    def learn(self, X: Any, y: Array, weight: Array | None = None, out: Out | None = None) -> Out:
        """Learn from each row in turn. Returns the combined scores before each update, twice: no average is kept.

        If a component diverges, the call ends; other components may then have learned further rows (see `Journal`).
        """
        X = self.fine(X)
        self.check(X)
        weight = np.ones(len(y)) if weight is None else weight
        return written(self._rounds(X, y, weight) if self.by_rounds else self._chunk(X, y, weight), out)

    def _chunk(self, X: Any, y: Array, weight: Array) -> Array:
        """Each component learns all rows; then the weights are computed from the scores."""
        scores = np.stack(self._each(lambda learner: learner.learn(X, y, weight)[0]), axis=1)
        counts = weight > 0
        with np.errstate(over="ignore"):
            found = self.weighting.losses(y, scores) * counts[:, None]
            losses = np.cumsum(np.vstack([self.losses, found]), axis=0)  # row by row, so that chunks do not matter
        _refuse_infinite(losses[1:])
        self.losses = losses[-1].copy()
        self.rounds += int(counts.sum())
        th = self.weighting.weights(losses[:-1])
        if self.sampling.answer != "all":
            th[counts] = self._drawn(th[counts])
        return self._combine(scores, th)

    def _each(self, action: Callable[[Any], Any]) -> list[Any]:
        """The action on every component, in parallel if `jobs` > 1; the native engine releases the GIL."""
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
                raise error.at(i) from None
        return combined

    def _round(self, x: Any, y: Array, weight: Array) -> Array:
        """One round, for components that depend on their weights or on each other."""
        th = self.weights[None]
        chances = self.sampling.chances(th)[0]
        scores = np.zeros((1, len(self.learners), self.outputs))
        drawn = np.ones(len(self.learners), dtype=bool)
        for i, (learner, chance) in enumerate(zip(self.learners, chances, strict=True)):
            drawn[i] = not self.sampling.learn or self.random["update"].uniform() < chance
            if drawn[i]:
                options = {"chance": chance if self.sampling.scale else 1.0, "room": self.budget - self.n}
                scores[:, i] = learner.learn(x, y, weight, **options)[0]
            else:
                scores[:, i] = learner.scores(x)
        with np.errstate(over="ignore", invalid="ignore"):
            losses = self.losses + self.weighting.losses(y, scores)[0] * drawn
        _refuse_infinite(losses[None])
        self.losses = losses
        self.rounds += 1
        return self._combine(scores, self._drawn(th) if self.sampling.answer != "all" else th)

    # -- predicting

    @shared
    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Combined scores of the rows; nothing is drawn."""
        X = self.fine(X)
        scores = np.stack([learner.scores(X) for learner in self.learners], axis=1)
        return self._combine(scores, np.broadcast_to(self.weights, scores.shape[:2]))


def _refuse_infinite(losses: Array) -> None:
    """Raise Diverged, with the number of the row, if no weights follow from the summed losses (rows, components)."""
    fine = np.isfinite(losses).all(axis=1)
    if not fine.all():
        row = int(np.argmin(fine))
        raise Diverged("the summed loss of a component is", losses[row].max(), row)
