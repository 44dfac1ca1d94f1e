"""Hypotheses: what is learned, as a recipe (`Hypothesis`) and as the function a learner holds (`Function`).

A hypothesis is a part: a value that may serve many learners. `start(run)` makes the function f = 0, which holds the
stored examples, the coefficients and the memory of the budget or map; the learner holds the memory of the update. The
recipe also reads the arrays of a state, because it alone knows their names.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from onkel.core.basis import Row, State
from onkel.core.errors import Diverged, beyond, sane
from onkel.core.outputs import Joining
from onkel.core.part import Part
from onkel.core.run import Run
from onkel.kernels import Kernel
from onkel.maps import Drawn, Map
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]


class Stored(NamedTuple):
    """The terms of a function: examples (terms, columns), coefficients (terms, outputs) and the rounds they entered."""

    x: Any
    coef: Array
    born: Array


class Hypothesis(Part):
    """What is learned: kernels on stored examples, weights of features, or both."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels it evaluates on examples, or draws features for."""
        raise NotImplementedError

    @property
    def most(self) -> float:
        """Largest number of terms after a round."""
        return math.inf

    @property
    def maps(self) -> tuple[Map, ...]:
        """The maps whose features it uses."""
        return ()

    def start(self, run: Run) -> Function:
        """The function f = 0."""
        raise NotImplementedError

    # -- what is in a state. Each returns None where there is nothing of the kind.

    def terms(self, state: State, run: Run) -> Stored | None:
        """The terms of the predicting function (the averaged one, if averaging), in storage order."""
        return None

    def weights(self, state: State, run: Run) -> Array | None:
        """The weights (features, outputs) of the function that predicts."""
        return None

    def intercept(self, state: State, run: Run) -> Array | None:
        """The number (outputs,) that is added to the function that predicts."""
        return None

    def relabel(self, state: State, joining: Joining) -> State:
        """The state with more outputs, where classes join; whatever is not its own stays."""
        raise NotImplementedError


class Function:
    """f(x) = scale * sum_i coef_i k_i, with `row` giving the numbers k_i of an example.

    The average of the models before each round is carried along without a pass over the coefficients. `cumulative` is
    the sum of `scale` over the rounds since `scale` was last reset to 1. The sum of the actual coefficients
    scale * coef_i over all rounds is coef_i * cumulative + base_i; base_i changes only when coef_i changes or `scale`
    is reset.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.scale, self.cumulative = 1.0, 0.0

    @property
    def draws(self) -> dict[Map, Drawn]:
        """The numbers drawn for its maps."""
        return {}

    # -- scoring

    @property
    def n(self) -> int:
        """Number of stored terms."""
        raise NotImplementedError

    @property
    def coef(self) -> Array:
        """Coefficients (one row for each k_i), without the common factor `scale`."""
        raise NotImplementedError

    @property
    def base(self) -> Array:
        """With averages: see above."""
        raise NotImplementedError

    @property
    def reach(self) -> float:
        """How large |x_1| + |x_2| + ... may be."""
        return math.inf

    def check(self, x: Row) -> None:
        """Refuse an example whose numbers would overflow."""

    def row(self, x: Row) -> Array:
        """The numbers k_i of an example: kernel values, features or both."""
        raise NotImplementedError

    def length2(self, x: Row, k: Array) -> float:
        """k(x, x), or |z(x)|^2."""
        raise NotImplementedError

    def scores(self, k: Array) -> Array:
        """f(x) from the row."""
        return self.scale * (self.coef.T @ k)

    def average_scores(self, x: Row, k: Array, t: int) -> Array:
        """The average of the models of rounds 1..t at x."""
        return np.asarray((self.cumulative * (self.coef.T @ k) + self.base.T @ k) / max(t, 1))

    # -- moving

    def count(self) -> None:
        """A round begins: the model as it is enters the average."""
        self._cumulative_before = self.cumulative
        self.cumulative += self.scale

    def uncount(self) -> None:
        """The round was none after all: it diverged before anything moved."""
        self.cumulative = self._cumulative_before

    def check_scale(self, factor: float) -> None:
        """Refuse a factor that would take coefficients out of range."""
        scale = self.scale * factor
        if len(self.coef) and self._far(scale) and not sane(self.coef * scale):
            raise Diverged(beyond("a coefficient becomes", np.abs(self.coef).max() * scale))

    def shrink(self, factor: float) -> None:
        """f <- factor * f, in constant time."""
        if len(self.coef) == 0:
            return
        self.check_scale(factor)
        self.scale *= factor
        if self._far(self.scale):
            if self.run.average:
                self.base[:] += self.cumulative * self.coef
            self._fold(self.scale)
            self.scale, self.cumulative = 1.0, 0.0

    def _fold(self, scale: float) -> None:
        self.coef[:] *= scale

    @staticmethod
    def _far(scale: float) -> bool:
        """Far from 1 the average would lose digits: then the coefficients take the scale over."""
        return not 1e-3 < scale < 1e3

    def move(self, round: Round, shrink: float, coef: Array | None) -> None:
        """f <- shrink * f, then the step: `coef` times the example (None: no step), or a step for each feature."""
        raise NotImplementedError

    def widen(self, keys: Array) -> None:
        """Make room for new features; `keys` are those of all."""
        self.run = replace(self.run, keys=keys)

    # -- state

    def state(self) -> State:
        """Everything that was learned, as plain arrays."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        """The inverse of `state`, on a function that has just begun."""
        raise NotImplementedError


def averaged(coef: Array, base: Array, cumulative: Any, t: Any) -> Array:
    """The average coefficients over t rounds; see `Function`."""
    return np.asarray((coef * float(cumulative) + base) / max(int(t), 1))
