"""Expansion: f is a sum of kernel functions at stored examples."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from onkel.core import memory as memories
from onkel.core import soundness
from onkel.core.basis import State, rows_of
from onkel.core.outputs import Joining
from onkel.core.part import Memory, Words
from onkel.core.run import Run
from onkel.hypotheses.base import Hypothesis, Stored, averaged
from onkel.hypotheses.terms import Budget, Terms
from onkel.kernels import Gaussian, Kernel
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]


class Unlimited(Budget):
    """Every term is kept."""

    traits: ClassVar[tuple[str, ...]] = ("append-only",)

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        if coef is not None:
            f.append(round, coef)


class Expansion(Hypothesis):
    """f(x) = sum_i coef_i k(x_i, x); a budget decides how new terms enter.

    Examples
    --------
    >>> from onkel import ComposedRegressor, Expansion
    >>> from onkel.budgets import RemoveOldest
    >>> model = ComposedRegressor(hypothesis=Expansion(Gaussian(0.5), RemoveOldest(2)))
    >>> model.fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0]).n_support_
    2
    """

    kernel: Kernel = Gaussian()
    budget: Budget = Unlimited()
    traits: ClassVar[tuple[str, ...]] = ("average",)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(Gaussian(1.0)),)

    def __post_init__(self) -> None:
        self._require("kernel", isinstance(self.kernel, Kernel), "a kernel of onkel.kernels")
        self._require("budget", isinstance(self.budget, Budget), "a budget of onkel.budgets")

    @property
    def offers(self) -> Words:
        return super().offers | self.kernel.offers | self.budget.offers

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return (self.kernel,)

    @property
    def most(self) -> float:
        return self.budget.most

    def start(self, run: Run) -> Terms:
        return Terms(self.kernel, self.budget, run)

    def check_state(self, state: State, run: Run) -> None:
        soundness.require("basis.born", len(state["basis.born"]) <= self.most, f"of at most {self.most} terms")
        self.start(run).check_state(state)

    # -- what is in a state

    def terms(self, state: State, run: Run) -> Stored:
        x, born = rows_of(state, "basis", run.columns), state["basis.born"][:, 0]
        if not run.average:
            return Stored(x, state["basis.coef"] * state["scale"], born)
        coef = averaged(state)
        if run.average == "all" and len(state["dead.born"]):
            gone = rows_of(state, "dead", run.columns)
            x = sp.vstack([x, gone], format="csr") if sp.issparse(x) else np.vstack([x, gone])
            coef = np.vstack([coef, state["dead.coef"] / (int(state["t"]) + 1)])
            born = np.concatenate([born, state["dead.born"][:, 0]])
        return Stored(x, coef, born)

    @staticmethod
    def state_of(stored: Stored, t: int) -> State:
        """The state with these terms (dense rows) after t rounds, if budget and update have no memory: see `terms`."""
        arrays = {"basis.x": stored.x, "basis.coef": stored.coef, "basis.born": stored.born[:, None]}
        return arrays | {"scale": np.array(1.0), "t": np.array(t)}

    def intercept(self, state: State, run: Run) -> Array | None:
        if "intercept" not in self.budget.offers:
            return None
        if run.average:
            return np.asarray((state["bias_sum"][0] + state["bias"][0]) / (int(state["t"]) + 1))
        return np.asarray(state["bias"][0])

    def relabel(self, state: State, joining: Joining) -> State:
        kept = {f"basis.{name}": state[f"basis.{name}"] for name in self.budget.columns}
        columns, memory = self.budget.relabel(memories.own("basis", kept), memories.own("budget", state), joining)
        linear = dict.fromkeys(("basis.coef", "basis.base", "dead.coef", "bias", "bias_sum"), "scores")
        return joining.all(linear, state) | memories.named("basis", columns) | memories.named("budget", memory)
