"""Base classes of budgets, and functions of the terms that several budgets use."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from onkel.core.part import Memory
from onkel.core.scores import margins
from onkel.core.ties import oldest_of_least
from onkel.hypotheses.terms import Budget, Terms
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]


class Bounded(Budget):
    """Budgets that keep at most `budget` terms."""

    budget: int = 100

    def __post_init__(self) -> None:
        self._integer("budget", 1)

    def full(self, f: Terms, round: Round) -> bool:
        """Must a term be removed before another enters?"""
        return f.n == self.budget or round.room <= 0


class Replace(Bounded):
    """When the budget is full, a new term replaces an old one, which the subclass chooses (`victim`).

    `unbiased` multiplies the n - 1 remaining terms by n / (n - 1); if the removed term is drawn uniformly, this keeps
    E[f]. After a replacement, f is scaled down so that no |coefficient| exceeds `cap` (BOGD).
    """

    traits: ClassVar[tuple[str, ...]] = ("room",)
    unbiased: bool = False
    cap: float | None = None

    def __post_init__(self) -> None:
        self._boolean("unbiased")
        self._integer("budget", 2 if self.unbiased else 1)
        if self.cap is not None:
            self._positive("cap")

    def victim(self, f: Terms, memory: Memory) -> int:
        """The slot of the term to remove."""
        raise NotImplementedError

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        full = self.full(f, round)
        if full:
            f.shrink(f.n / (f.n - 1) if self.unbiased and f.n > 1 else 1.0)
            f.remove(self.victim(f, memory))
        f.append(round, coef)
        if full and self.cap is not None:
            limit_coefficients(f, self.cap)


def limit_coefficients(f: Terms, cap: float) -> None:
    """f <- f * min(1, cap / max_i |coef_i|)."""
    largest = abs(f.scale) * np.abs(f.coef).max()
    if largest > cap:
        f.shrink(cap / largest)


def term_diagonals(f: Terms) -> Array:
    """k(x_i, x_i) of every term."""
    return np.ones(f.n) if f.kernel.unit else f.kernel.diagonal(f.basis.matrix().astype(np.float64))


def smallest_term(f: Terms) -> int:
    """The slot of the term with the least |coef|^2 k(x, x); the oldest among equals."""
    return oldest_of_least((f.coef**2).sum(axis=1) * term_diagonals(f), f.born)


def norm_bound(budget: int) -> float:
    """U = sqrt((B + 1) / ln(B + 1)) / 4: for budget B the Forgetron's bound holds for competitors |g| <= U."""
    return math.sqrt((budget + 1) / math.log(budget + 1)) / 4


def own_output(coef: Array) -> Array:
    """The class of each term's example (0 if one output), read from `coef`; right for perceptron steps only."""
    return np.argmax(coef, axis=1) if coef.shape[1] > 1 else np.zeros(len(coef), dtype=int)


def own_margins(coef: Array, scores: Array) -> Array:
    """The margin of each term's own example, from its scores; labels are read from `coef` (see `own_output`)."""
    return margins(scores, own_output(coef) if coef.shape[1] > 1 else np.sign(coef[:, 0]))


def removed(values: Array, i: int) -> Array:
    """A copy without entry i; the last entry takes its place."""
    rest = values[:-1].copy()
    if i < len(rest):
        rest[i] = values[-1]
    return rest
