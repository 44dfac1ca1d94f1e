"""Dual: an expansion plus explicit features; when the expansion is full, its smallest terms go into the features."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from onkel.core import soundness
from onkel.core.basis import Row, State
from onkel.core.outputs import Joining
from onkel.core.run import Run
from onkel.core.ties import oldest_of_least
from onkel.hypotheses.base import Function, Hypothesis, Stored
from onkel.hypotheses.expansion import Expansion, Unlimited
from onkel.hypotheses.features import Features
from onkel.kernels import Gaussian, Kernel
from onkel.maps import Drawn, Fourier, Map
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]


class TermsAndWeights(Function):
    """The sum of an expansion and a function of features."""

    def __init__(self, hypothesis: Dual, run: Run) -> None:
        super().__init__(run)
        self.hypothesis = hypothesis
        self.terms, self.weights = hypothesis.expansion.start(run), hypothesis.features.start(run)

    @property
    def n(self) -> int:
        return self.terms.n

    @property
    def draws(self) -> dict[Map, Drawn]:
        return self.weights.draws

    @property
    def reach(self) -> float:
        return self.weights.reach

    def check(self, X: Any) -> None:
        self.terms.check(X)
        self.weights.check(X)

    def row(self, x: Row) -> Array:
        return np.concatenate([self.terms.row(x), self.weights.row(x)])

    def length2(self, x: Row, k: Array) -> float:
        return self.terms.diagonal(x)

    def _split(self, k: Array) -> tuple[Array, Array]:
        return k[: self.n], k[self.n :]

    def scores(self, k: Array) -> Array:
        own, z = self._split(k)
        return self.terms.scores(own) + self.weights.scores(z)

    def average_scores(self, x: Row, k: Array, t: int) -> Array:
        own, z = self._split(k)
        return self.terms.average_scores(x, own, t) + self.weights.average_scores(x, z, t)

    def count(self) -> None:
        self.terms.count()
        self.weights.count()

    def uncount(self) -> None:
        self.terms.uncount()
        self.weights.uncount()

    def check_scale(self, factor: float) -> None:
        self.terms.check_scale(factor)
        self.weights.check_scale(factor)

    def move(self, round: Round, shrink: float, coef: Array | None) -> None:
        self.terms.shrink(shrink)
        self.weights.shrink(shrink)
        if coef is None and self.hypothesis.insert_always:
            coef = np.zeros(self.run.outputs)
        if coef is None:
            return
        if self.hypothesis.budget == 0:
            self.weights.add(np.outer(self._split(round.k)[1], coef))
            return
        if self.n == self.hypothesis.budget:  # full: the smallest terms go into the features
            for _ in range(min(self.hypothesis.merge, self.n)):
                self._merge_smallest()
        self.terms.append(round, coef)

    def _merge_smallest(self) -> None:
        f = self.terms
        i = oldest_of_least(np.linalg.norm(f.coef, axis=1), f.born)
        z = self.weights.row(f.basis.row(i))
        # The term's part of the average goes into the features, too; with average="all", `remove` keeps it instead.
        past = np.outer(z, f.past(i)) if self.run.average is True else None
        self.weights.add(np.outer(z, f.scale * f.coef[i]), past)
        f.remove(i)

    def widen(self, keys: Array) -> None:
        super().widen(keys)
        self.weights.widen(keys)
        self.terms.widen(keys)

    def state(self) -> State:
        return self.terms.state() | self.weights.state()

    def restore(self, state: State) -> None:
        self.terms.restore(state)
        self.weights.restore(state)


class Dual(Hypothesis):
    """f = an expansion of at most `budget` terms + features (DualSGD).

    When the expansion is full, the `merge` terms of least |coef| (older first among equals) go into the features:
    such a term is removed, and coef_i z(x_i) is added to the weights, so that coef_i <z(x_i), z(.)> takes the place of
    coef_i k(x_i, .). With budget = 0 no terms are stored, and every step updates the weights directly. With
    `insert_always`, rounds without a step add a term of coefficient 0, as in the program of the authors of DualSGD.
    """

    kernel: Kernel = Gaussian()
    map: Map = Fourier()
    budget: int = 100
    merge: int = 20
    insert_always: bool = False
    traits: ClassVar[tuple[str, ...]] = ("average",)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        kernel, map = Gaussian(1.0), Fourier(Gaussian(1.0), 6)
        return (
            cls(kernel, map, 8, 3),
            cls(kernel, map, 8, 20),
            cls(kernel, map, 8, 3, insert_always=True),
            cls(kernel, map, 0, 3),
        )

    def __post_init__(self) -> None:
        self._integer("budget", 0)
        self._integer("merge", 1)
        self._boolean("insert_always")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return self.kernel, self.map.kernel

    @property
    def most(self) -> float:
        return self.budget

    @property
    def maps(self) -> tuple[Map, ...]:
        return (self.map,)

    @property
    def expansion(self) -> Expansion:
        """The expansion without a limit; `Dual` removes its terms itself."""
        return Expansion(self.kernel, Unlimited())

    @property
    def features(self) -> Features:
        """The explicit features."""
        return Features(self.map)

    def start(self, run: Run) -> TermsAndWeights:
        return TermsAndWeights(self, run)

    def check_state(self, state: State, run: Run) -> None:
        soundness.require("basis.born", len(state["basis.born"]) <= self.most, f"of at most {self.most} terms")
        self.expansion.check_state(state, run)
        self.features.check_state(state, run)

    # -- what is in a state

    def terms(self, state: State, run: Run) -> Stored:
        return self.expansion.terms(state, run)

    def weights(self, state: State, run: Run) -> Array:
        return self.features.weights(state, run)

    def relabel(self, state: State, joining: Joining) -> State:
        return self.features.relabel(self.expansion.relabel(state, joining), joining)
