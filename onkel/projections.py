"""Budgets that project: what a term would have added, or leaves behind, goes to the terms that stay.

They keep the kernel matrix of the terms factored (`linalg.Factor`, in their memory). An example that depends on
the terms (a duplicate, say) is never stored: its step is exact on them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onkel.budgets import Budget
from onkel.linalg import Factor
from onkel.updates import Memory, Round

if TYPE_CHECKING:
    from onkel.hypothesis import Expansion

Array = np.ndarray[Any, np.dtype[Any]]


def join(f: Expansion, round: Round, coef: Array, factor: Factor) -> bool:
    """A new term, unless it depends on those there are: then its step goes to them. Is there a new one?"""
    d, distance2 = factor.project(round.k, round.kxx)
    if distance2 == 0:
        f.add(d, coef)
        return False
    factor.append(round.k, round.kxx)
    f.append(round, coef)
    return True


def part_with(f: Expansion, i: int, factor: Factor) -> None:
    """Term i leaves; its projection on the others stays."""
    x, a = f.basis.row(i), f.scale * f.coef[i]
    f.remove(i)
    factor.remove(i)
    factor.refresh(f.matrix)
    f.add(factor.project(f.row(x), f.diagonal(x))[0], a)


class Project(Budget):
    """The step goes to the span of the terms if that is near, or the budget is full (Projectron).

    With d = K^-1 k(x) the projection of k(x, .) and delta its distance to the span: the step coef * k(x, .) becomes
    coef * sum_i d_i k(x_i, .) if delta <= tolerance (`squared`: delta^2, as in the authors' own library) or there are
    `budget` terms (None: no limit), and a new term otherwise.

    A `rule` adds margin steps (Projectron++), for the Hinge and a Perceptron: where the answer is right but the loss l
    is in (0, 1), the projected step is taken with tau = min(l / p, 1), p = k(x, x) - delta^2, if
    2 l - tau p - 2 U delta >= 0 ("icml"), or with tau = min(l / p, 2 (l - delta / tolerance) / p, 1) if
    l > delta / tolerance ("jmlr"). With `strict_sign` a score of 0 is a right answer to a positive example.
    """

    budget: int | None = None
    tolerance: float = 0.0
    squared: bool = False
    rule: str | None = None
    U: float | None = None
    strict_sign: bool = False

    def __post_init__(self) -> None:
        if self.budget is not None:
            self._integer("budget", 1)
        self._nonnegative("tolerance")
        self._finite("tolerance")
        self._boolean("squared", "strict_sign")
        self._one_of("rule", None, "icml", "jmlr")
        if self.U is not None:
            self._nonnegative("U")
            self._finite("U")
        self._require("U", self.rule != "icml" or self.reach is not None, 'given for the rule "icml" without a budget')

    @property
    def reach(self) -> float | None:
        """U: given, or 1/4 sqrt((B + 1) / ln(B + 1)) from the budget B."""
        if self.U is not None or self.budget is None:
            return self.U
        return 0.25 * math.sqrt((self.budget + 1) / math.log(self.budget + 1))

    def start(self, seed: int) -> Memory:
        return {"factor": Factor()}

    def insert(self, f: Expansion, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is None:
            return
        factor: Factor = memory["factor"]
        d, distance2 = factor.project(round.k, round.kxx)
        if self.rule is not None and not self._mistaken(round):
            f.add(d, coef * self._margin_step(round, distance2))
        elif f.n > 0 and (distance2 == 0 or self._near(distance2) or f.n == self.budget):
            f.add(d, coef)
        else:
            factor.append(round.k, round.kxx)
            f.append(round, coef)

    def _near(self, distance2: float) -> bool:
        return (distance2 if self.squared else math.sqrt(distance2)) <= self.tolerance

    def _mistaken(self, round: Round) -> bool:
        """Is the answer wrong?"""
        if len(round.s) == 1:
            right = self.strict_sign and round.s[0] == 0 and round.y > 0
            return bool(round.y * round.s[0] <= 0) and not right
        return int(np.argmax(round.s)) != int(round.y)

    def _margin_step(self, round: Round, distance2: float) -> float:
        """tau; 0 where nothing is to be done."""
        loss, p, delta = round.loss, round.kxx - distance2, math.sqrt(distance2)
        if p <= 0 or loss >= 1:
            return 0.0
        if self.rule == "icml":
            tau = min(loss / p, 1.0)
            assert self.reach is not None
            return tau if 2 * loss - tau * p - 2 * self.reach * delta >= 0 else 0.0
        if delta > 0 and self.tolerance == 0:
            return 0.0
        spare = loss - (delta / self.tolerance if delta > 0 else 0.0)
        return min(loss / p, 2 * spare / p, 1.0) if spare > 0 else 0.0
