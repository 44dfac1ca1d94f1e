"""Budgets that remove a term for a new one, or do not add the new one; nothing of a removed term is kept."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from onkel.budgets.base import Bounded, Replace, limit_coefficients, smallest_term, term_diagonals
from onkel.core.part import Memory
from onkel.core.random import Random, pick
from onkel.core.run import Run
from onkel.core.ties import oldest_of_least
from onkel.hypotheses.terms import Budget, Terms
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]


class Truncate(Budget):
    """A term is removed after `rounds` rounds (NORMA): round t scores with the terms of rounds t - rounds .. t - 1."""

    rounds: int = 100

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(12),)

    def __post_init__(self) -> None:
        self._integer("rounds", 1)

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is not None:
            f.append(round, coef)
        if f.n and f.born.min() <= round.t - self.rounds:  # at most one enters per round, so at most one is removed
            f.remove(int(np.argmin(f.born)))


class Stop(Bounded):
    """The first `budget` terms are kept, later ones are not added (Stoptron)."""

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(8), cls(40)

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is not None and f.n < self.budget:
            f.append(round, coef)


class RemoveRandom(Replace):
    """When full, a term drawn uniformly is removed (RBP; BOGD with `unbiased` and `cap`)."""

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(8), cls(8, unbiased=True, cap=0.5)

    def start(self, run: Run) -> Memory:
        return {"random": Random(run.seed, "removal")}

    def victim(self, f: Terms, memory: Memory) -> int:
        return int(memory["random"].below(f.n))


class RemoveOldest(Replace):
    """When full, the oldest term is removed: first in, first out."""

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(8), cls(8, unbiased=True, cap=0.5)

    def victim(self, f: Terms, memory: Memory) -> int:
        return int(np.argmin(f.born))


class ReplaceSmallest(Replace):
    """When full, the term with the least |coef| is removed; the oldest among equals.

    Unlike `RemoveSmallest`, it ignores k(x, x) and always keeps the new term.
    """

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(8), cls(8, unbiased=True, cap=0.5)

    def victim(self, f: Terms, memory: Memory) -> int:
        return oldest_of_least(np.linalg.norm(f.coef, axis=1), f.born)


class RemoveWeighted(Bounded):
    """When full, a random term is removed, small terms with higher probability (BOGD++).

    With a budget of B, term i stays with probability q_i = min(1, s |coef_i| sqrt(k(x_i, x_i))), where s is chosen so
    that the q_i sum to B - 1. The coefficients of the remaining terms are divided by q_i, which keeps E[f]. `cap` as in
    `Replace`.
    """

    cap: float | None = None

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(8), cls(8, cap=0.5)

    def __post_init__(self) -> None:
        self._integer("budget", 2)
        if self.cap is not None:
            self._positive("cap")

    def start(self, run: Run) -> Memory:
        return {"random": Random(run.seed, "removal")}

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        full = f.n == self.budget
        if full:
            weight = np.linalg.norm(f.coef, axis=1) * np.sqrt(term_diagonals(f))
            keep = keep_probabilities(weight, f.n - 1)
            leaves = pick(1 - keep, memory["random"].uniform())
            keep[leaves] = 1.0  # not used, as this term is removed; avoids a division by 0
            f.change(f.coef / keep[:, None])
            f.remove(leaves)
        f.append(round, coef)
        if full and self.cap is not None:
            limit_coefficients(f, self.cap)


def keep_probabilities(weight: Array, total: float) -> Array:
    """q_i = min(1, s * weight_i), with s such that the q_i sum to `total` (water-filling)."""
    keep = np.zeros(len(weight))
    free = np.ones(len(weight), dtype=bool)
    while free.any():
        mass = weight[free].sum()
        remaining = total - np.count_nonzero(~free)
        if mass <= 0:
            keep[free] = remaining / np.count_nonzero(free)
            break
        keep[free] = weight[free] * (remaining / mass)
        over = free & (keep > 1)
        if not over.any():
            break
        keep[over] = 1.0
        free &= ~over
    return keep


class RemoveSmallest(Bounded):
    """Over budget, the term with the least |coef|^2 k(x, x) is removed, which may be the new one (BSGD)."""

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(8),)

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        f.append(round, coef)
        if f.n > self.budget:
            f.remove(smallest_term(f))
