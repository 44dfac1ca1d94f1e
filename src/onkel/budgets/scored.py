"""Budgets that store f(x_i) with every term i, and remove a term that is not needed to classify examples well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from onkel.budgets.base import Bounded, own_margins, own_output, removed, term_diagonals
from onkel.core import soundness
from onkel.core.basis import Basis, State
from onkel.core.part import Memory, refuse_ignored
from onkel.core.run import Run
from onkel.core.scores import decided
from onkel.core.ties import oldest_of_least
from onkel.hypotheses.terms import Terms
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]


class Scored(Bounded):
    """Budgets that store f(x_i) with every term i, in the column `score` (divided by scale).

    Each change of f updates the column with one kernel row, so that choosing a term needs no kernel matrix.
    """

    columns: ClassVar[Mapping[str, str]] = {"score": "scores"}

    def victim(self, f: Terms, memory: Memory) -> int:
        """The slot of the term to remove when the budget is full."""
        raise NotImplementedError

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        k = round.k
        if f.n == self.budget:
            leaves = self.victim(f, memory)
            k = removed(k, leaves)
            forget(f, leaves)
        s, inner = f.coef.T @ k, coef / f.scale
        f.basis["score"][:] += np.outer(k, inner)
        f.append(round, coef, score=s + inner * round.kxx)


class RemoveByMargin(Scored):
    """When full, the term j with the largest leave-one-out margin is removed (Budget Perceptron).

    The leave-one-out margin y_j (f(x_j) - coef_j k(x_j, x_j)) is the margin of x_j after term j is removed.
    With `distil`, after the new term entered, further terms are removed while such a margin exceeds `beta`.
    """

    beta: float = 0.0
    distil: bool = False

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(8), cls(8, beta=0.2, distil=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._nonnegative("beta")
        self._boolean("distil")
        if not self.distil:
            refuse_ignored(self, "distil=False", "beta")

    def victim(self, f: Terms, memory: Memory) -> int:
        return oldest_of_least(-margins_without(f), f.born, largest_term(f))

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        super().insert(f, round, coef, memory)
        while coef is not None and self.distil and f.n:
            leaves = self.victim(f, memory)
            if f.scale * margins_without(f)[leaves] <= self.beta:
                break
            forget(f, leaves)


def margins_without(f: Terms) -> Array:
    """The leave-one-out margin of each term, divided by scale."""
    return own_margins(f.coef, f.basis["score"] - f.coef * term_diagonals(f)[:, None])


def largest_term(f: Terms) -> float:
    """max_j |coef_j| k(x_j, x_j): the margins are differences of such numbers (the `sizes` in `oldest_of_least`)."""
    return float((np.abs(f.coef) * term_diagonals(f)[:, None]).max())


def forget(f: Terms, i: int) -> None:
    """Remove term i, and subtract it from the column `score`."""
    k = f.row(f.basis.row(i))
    f.basis["score"][:] -= np.outer(k, f.coef[i])
    f.remove(i)


class RemoveByEvaluation(Scored):
    """When full, the term without which f makes the fewest mistakes is removed (Tighter Budget Perceptron).

    The mistakes are counted on the last `recent` examples of the stream, the current one included (None: as many as the
    budget), and on the examples of the terms. A score of 0 predicts +1, the first of several classes where all scores
    are equal: so without its own term, a lone example of the label -1 counts as a mistake, one of +1 does not.
    `RemoveByMargin` decides among equals.
    """

    recent: int | None = None
    per_output: ClassVar[Mapping[str, str]] = {"recent.y": "targets"}

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(8), cls(8, recent=0), cls(8, recent=20)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recent is not None:
            self._integer("recent", 0)

    def start(self, run: Run) -> Memory:
        return {"recent": Basis(run.columns, run.dtype, run.sparse, {"born": 1, "y": 1})}  # a table of examples

    @property
    def _size(self) -> int:
        """The most examples that are remembered."""
        return self.budget if self.recent is None else self.recent

    def check_state(self, state: State, run: Run) -> None:
        y = state["budget.recent.y"]
        soundness.require("budget.recent.y", len(y) <= self._size, f"of at most {self._size} examples")
        if run.outputs > 1:
            soundness.require("budget.recent.y", np.isin(y, np.arange(run.outputs)), f"classes, 0 to {run.outputs - 1}")

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        size = self._size
        seen = memory["recent"]
        if size:
            if seen.n == size:
                seen.remove(int(np.argmin(seen["born"][:, 0])))
            seen.append(round.x, born=round.t, y=round.y)
        super().insert(f, round, coef, memory)

    def victim(self, f: Terms, memory: Memory) -> int:
        """The j for which f - coef_j k(x_j, .) makes the fewest mistakes."""
        mistakes = np.zeros(f.n)
        for i in range(f.n):
            label = float(own_output(f.coef[i : i + 1])[0]) if f.run.outputs > 1 else float(np.sign(f.coef[i, 0]))
            mistakes += mistakes_without(f, f.row(f.basis.row(i)), label)
        seen = memory["recent"]
        stored = set(f.born)
        for i in range(seen.n):
            if seen["born"][i, 0] not in stored:
                mistakes += mistakes_without(f, f.row(seen.row(i)), float(seen["y"][i, 0]))
        margins = margins_without(f)
        margins[mistakes > mistakes.min()] = -np.inf
        return oldest_of_least(-margins, f.born, largest_term(f))


def mistakes_without(f: Terms, k: Array, y: float) -> Array:
    """For every term: is f without this term wrong on the example with kernel row k and target y?"""
    without = f.coef.T @ k - f.coef * k[:, None]
    return np.asarray(decided(without) != (y > 0 if f.run.outputs == 1 else int(y)))
