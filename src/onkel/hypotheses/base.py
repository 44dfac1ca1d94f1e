"""Hypotheses: the specification of what is learned (`Hypothesis`), and the learned function itself (`Function`).

A hypothesis is a part: a value that may serve many learners. `start(run)` makes the function f = 0. The function holds
the stored examples, the coefficients and the memory of the budget or map; the learner holds the memory of the update.
The hypothesis also reads terms and weights from the arrays of a saved state, because it knows what they are called.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from onkel.core.basis import DENSE_COLUMNS, Row, State
from onkel.core.errors import Diverged, sane
from onkel.core.limits import refuse_memory
from onkel.core.outputs import Joining
from onkel.core.part import Part
from onkel.core.run import Run
from onkel.kernels import Kernel
from onkel.maps import Drawn, Map
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]


class Stored(NamedTuple):
    """The terms of a function: examples (terms, columns), coefficients, and the rounds in which the terms entered.

    Coefficients have shape (terms, outputs), those of a `GroupedExpansion` (terms, kernels, outputs). A term that was
    made in round t by merging two others counts as entered in round t + 0.5.
    """

    x: Any
    coef: Array
    born: Array


class Hypothesis(Part):
    """What is learned: kernels on stored examples, weights of features, or both."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that are evaluated on examples, or for which features are drawn."""
        raise NotImplementedError

    @property
    def most(self) -> float:
        """Largest number of terms after a round."""
        return math.inf

    @property
    def maps(self) -> tuple[Map, ...]:
        """The maps whose features are used."""
        return ()

    def start(self, run: Run) -> Function:
        """The function f = 0."""
        raise NotImplementedError

    def check_state(self, state: State, run: Run) -> None:
        """Raise ValueError if the state is not that of such a function: see `core.soundness`."""
        raise NotImplementedError

    def refuse_too_large(self, run: Run, terms: int = 0) -> None:
        """Raise TooMany if a function with so many terms would need more memory than the limit."""
        drawn = sum(map.memory(run.columns) for map in self.maps)
        numbers = (sum(map.size for map in self.maps) + terms) * run.outputs * (2 if run.average else 1)
        dense = terms * run.columns if not run.sparse or run.columns <= DENSE_COLUMNS else 0
        refuse_memory(drawn + 8 * numbers + run.dtype.itemsize * dense)

    # -- what is in a state; each method returns None if the state has nothing of the kind

    def terms(self, state: State, run: Run) -> Stored | None:
        """The terms of the predicting function (the averaged one, if averaging), in storage order."""
        return None

    def weights(self, state: State, run: Run) -> Array | None:
        """The weights of the explicit features, (features, outputs), of the predicting function."""
        return None

    def intercept(self, state: State, run: Run) -> Array | None:
        """The intercept (outputs,) of the predicting function."""
        return None

    def relabel(self, state: State, joining: Joining) -> State:
        """The state after classes were added; arrays that are not of this hypothesis stay."""
        raise NotImplementedError


class Function:
    """f(x) = scale * sum_i coef_i k_i, with `row` giving the numbers k_i of an example.

    The average after t rounds is that of t + 1 models: those at the start of each round, of which the first is 0, and
    the current one. To add a model to it needs no pass over the coefficients: `cumulative` is the sum of `scale` over
    the rounds since `scale` was last reset to 1, and the sum of scale * coef_i over all rounds is
    coef_i * cumulative + base_i. So base_i changes only when coef_i changes or `scale` is reset.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.scale, self.cumulative = 1.0, 0.0
        self._cumulative_before = 0.0  # at the end of the last round, for `uncount`

    @property
    def draws(self) -> dict[Map, Drawn]:
        """The numbers drawn for the maps."""
        return {}

    # -- scoring

    @property
    def n(self) -> int:
        """Number of stored terms."""
        raise NotImplementedError

    @property
    def coef(self) -> Array:
        """The coefficients, one row for each k_i, without the common factor `scale`."""
        raise NotImplementedError

    @property
    def base(self) -> Array:
        """base_i of the average, see the docstring of the class."""
        raise NotImplementedError

    @property
    def reach(self) -> float:
        """A limit: `check` refuses examples whose sum |x_1| + |x_2| + ... is not below it."""
        return math.inf

    def check(self, X: Any) -> None:
        """Raise TooLarge, with the number of the row, if numbers of a row would overflow."""

    def row(self, x: Row) -> Array:
        """The numbers k_i of an example: kernel values, features or both."""
        raise NotImplementedError

    def length2(self, x: Row, k: Array) -> float:
        """k(x, x), or |z(x)|^2; with several kernels the largest k_j(x, x)."""
        raise NotImplementedError

    def scores(self, k: Array) -> Array:
        """f(x) from the numbers k_i of `row`."""
        return self.scale * (self.coef.T @ k)

    def average_scores(self, x: Row, k: Array, t: int) -> Array:
        """The average after t rounds at x."""
        return np.asarray(((self.cumulative + self.scale) * (self.coef.T @ k) + self.base.T @ k) / (t + 1))

    # -- moving

    def count(self) -> None:
        """Add the current model to the sums over the rounds, at the beginning of a round."""
        self._cumulative_before = self.cumulative
        self.cumulative += self.scale

    def uncount(self) -> None:
        """Undo `count`, after a round that diverged. Other changes of that round are not undone (see `Journal`)."""
        self.cumulative = self._cumulative_before

    def check_scale(self, factor: float) -> None:
        """Raise Diverged if the factor would make a coefficient larger than the limit of `sane`."""
        scale = self.scale * factor
        if len(self.coef) and self._far(scale) and not sane(self.coef * scale):
            raise Diverged("a coefficient becomes", np.abs(self.coef).max() * scale)

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
        """Is `scale` so far from 1 that the average would lose digits? Then `shrink` resets it to 1."""
        return not 1e-3 < scale < 1e3

    def move(self, round: Round, shrink: float, coef: Array | None) -> None:
        """f <- shrink * f, then the step: add `coef` times k(x, .) or z(x). If `coef` is None, there is no step.

        With explicit features, a `coef` of shape (features, outputs) is itself the step that is added to the weights.
        """
        raise NotImplementedError

    def widen(self, keys: Array) -> None:
        """Make room for new features; `keys` (see `Run`) has one number for each feature, old or new."""
        self.run = replace(self.run, keys=keys)

    # -- state

    def state(self) -> State:
        """Everything that was learned, as plain arrays."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        """The inverse of `state`, on a new function."""
        raise NotImplementedError


def averaged(state: State, prefix: str = "basis.", common: str = "") -> Array:
    """The average coefficients in a state; see `Function`. `common` is the prefix of the common factors' names."""
    total = float(state[f"{common}cumulative"]) + float(state[f"{common}scale"])
    return np.asarray((state[f"{prefix}coef"] * total + state[f"{prefix}base"]) / (int(state["t"]) + 1))
