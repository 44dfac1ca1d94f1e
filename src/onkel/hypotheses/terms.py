"""Terms: a sum of kernel functions at stored examples; Budget: the rule by which terms are added and removed."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from onkel.core import memory as memories
from onkel.core import soundness
from onkel.core.basis import Basis, Row, State, Totals, rows, rows_of
from onkel.core.errors import TooLarge
from onkel.core.outputs import KINDS, Joining, refuse_unknown_kinds
from onkel.core.part import Memory, Part
from onkel.core.run import Run
from onkel.core.wording import counted
from onkel.hypotheses.base import Function
from onkel.kernels import Kernel
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]


class Budget(Part):
    """How a new term enters an expansion.

    `insert` is called every round, after f was shrunk. It changes f by `f.append`, `f.enter`, `f.remove`, `f.change`,
    `f.add` and `f.shrink`, its own columns by `f.basis[name]`, and leaves at most `most` terms. A budget that offers
    "intercept" may also change `f.bias`.

    Numbers kept with each term are columns of the table `f.basis`. They are named in `columns`, with a kind: "scores"
    (one number for each output), "weight" or "number" (one number). "scores" and "weight" are multiplied whenever f is,
    so they are stored divided by `f.scale`. When a class is added, "scores" change as the scores of f do. All other
    memory is made by `start`; its entries that depend on the outputs are named in `per_output`, with their kind (see
    `core.outputs`).

    Where a rule chooses the oldest of equal terms, terms are equal if their values differ only by rounding
    (`core.ties`).

    In a pool with a shared budget, `round.room` is the number of terms that may still be added. If that is 0, a budget
    that offers "room" removes one of its terms before it adds the new one; if f has no terms, the new one is dropped.
    """

    columns: ClassVar[Mapping[str, str]] = {}
    per_output: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_unknown_kinds(cls, "per_output", KINDS)
        refuse_unknown_kinds(cls, "columns", ("scores", "weight", "number"))
        if taken := {"coef", "born", "base", "x", "data", "indices", "indptr"} & cls.columns.keys():
            raise TypeError(f"{cls.__name__}.columns: every table has {min(taken)!r}, choose another name")

    @property
    def most(self) -> float:
        """Largest number of terms after a round: the field `budget`, if there is one."""
        budget = getattr(self, "budget", None)
        return math.inf if budget is None else float(budget)

    def start(self, run: Run) -> Memory:
        """The initial memory: numbers, arrays, `Random` streams and tables by name."""
        return {}

    def insert(self, f: Terms, round: Round, coef: Array | None, memory: Memory) -> None:
        """Add the new term according to this budget's rule; `coef` is None if the update makes no step."""
        raise NotImplementedError

    def check_state(self, state: State, run: Run) -> None:
        """Raise ValueError if its columns and memory in the state are not what this budget relies on.

        Their shapes were checked before, and so was what tables and factors in the memory rely on.
        """

    def relabel(self, columns: State, memory: State, joining: Joining) -> tuple[State, State]:
        """The columns and the memory of this budget after classes were added."""
        linear = {name: kind for name, kind in self.columns.items() if kind == "scores"}
        return joining.all(linear, columns), joining.all(self.per_output, memory)


def kernel_row(kernel: Kernel, totals: Totals, count: int) -> Array:
    """The kernel values from so many sums over the features."""
    values = kernel.row(totals)
    if np.shape(values) != (count,):
        raise TypeError(
            f"{kernel!r}.shape must return an array with one value for each sum that it is given; for an array of "
            f"{counted(count, 'sum')} it returned {reprlib.repr(values)}"
        )
    return values


class OnBasis(Function):
    """A function that stores examples in the table `basis`."""

    basis: Basis

    @property
    def n(self) -> int:
        return self.basis.n

    @property
    def coef(self) -> Array:
        return self.basis["coef"]

    @property
    def born(self) -> Array:
        """The round in which each term entered."""
        return self.basis["born"][:, 0]


class Terms(OnBasis):
    """f(x) = scale * sum_i coef_i k(x_i, x) + bias; a budget decides how new terms enter.

    Terms sit in slots: `remove(i)` moves the last term to slot i.
    """

    def __init__(self, kernel: Kernel, budget: Budget, run: Run) -> None:
        super().__init__(run)
        self.kernel, self.budget, self._unit = kernel, budget, kernel.unit
        widths = {name: run.outputs if kind == "scores" else 1 for name, kind in budget.columns.items()}
        self.scaled = ["coef", *(name for name, kind in budget.columns.items() if kind != "number")]
        named = {"coef": run.outputs, "born": 1, **widths} | ({"base": run.outputs} if run.average else {})
        self.basis = Basis(run.columns, run.dtype, run.sparse, named)
        self.dead = self.basis.fresh({"coef": run.outputs, "born": 1})  # average="all": removed terms
        self.bias = np.zeros(run.outputs)  # stays 0 except for budgets with an intercept
        self.bias_sum = np.zeros(run.outputs)  # over the rounds
        self._bias_sum_before = self.bias_sum  # at the end of the last round, for `uncount`
        self.memory = memories.begin(budget, run)
        self._first = memories.begin(budget, run)  # its names and shapes are those that the memory must keep

    @property
    def base(self) -> Array:
        return self.basis["base"]

    # -- kernel values

    def check(self, X: Any) -> None:
        if self._unit:
            return
        for i, x in enumerate(rows(X)):
            if not np.isfinite(kxx := self.diagonal(x)):
                raise TooLarge("k(x, x) =", kxx, "for the kernel", i)

    def row(self, x: Row) -> Array:
        return kernel_row(self.kernel, self.basis.totals(x), self.n) if self.n else np.zeros(0)

    def length2(self, x: Row, k: Array) -> float:
        return self.diagonal(x)

    def diagonal(self, x: Row) -> float:
        """k(x, x)."""
        if self._unit:
            return 1.0
        return float(kernel_row(self.kernel, lambda pair: np.atleast_1d(pair(x.values, x.values).sum()), 1)[0])

    def matrix(self) -> Array:
        """The kernel matrix of the terms, k(x_i, x_j)."""
        return np.array([self.row(self.basis.row(i)) for i in range(self.n)]).reshape(self.n, self.n)

    # -- scoring

    def scores(self, k: Array) -> Array:
        return super().scores(k) + self.bias

    def average_scores(self, x: Row, k: Array, t: int) -> Array:
        average = super().average_scores(x, k, t) + (self.bias_sum + self.bias) / (t + 1)
        if self.dead.n:
            average += self.dead["coef"].T @ kernel_row(self.kernel, self.dead.totals(x), self.dead.n) / (t + 1)
        return average

    def count(self) -> None:
        super().count()
        self._bias_sum_before = self.bias_sum.copy()
        self.bias_sum += self.bias

    def uncount(self) -> None:
        super().uncount()
        self.bias_sum = self._bias_sum_before

    def _fold(self, scale: float) -> None:
        for name in self.scaled:
            self.basis[name][:] *= scale

    # -- moving

    def move(self, round: Round, shrink: float, coef: Array | None) -> None:
        self.shrink(shrink)
        if round.room <= 0 and self.n == 0:  # there is no term to remove
            coef = None
        try:
            self.budget.insert(self, round, coef, self.memory)
        except (TypeError, AttributeError) as error:
            if coef is not None:
                raise
            told = f"{self.budget!r}.insert failed in a round without a term (coef is None): {error}"
            raise TypeError(f"{told}; ask `if coef is not None` first") from error
        if self.n > self.budget.most:
            raise TypeError(
                f"{self.budget!r} holds {self.n} terms after round {round.t}: its insert must leave at most "
                f"{self.budget.most:g}"
            )
        memories.check(self.budget, self.memory, self._first)

    def append(self, round: Round, coef: Array, **named: Any) -> None:
        """Add the term coef * k(x, .) of the current example."""
        self.enter(round.x, round.t, coef, **named)

    def enter(self, x: Row, born: float, coef: Array, **named: Any) -> None:
        """Add a term at any row, which need not be an example of the stream."""
        if np.shape(coef) != (self.run.outputs,):
            what = "None" if coef is None else f"of shape {np.shape(coef)}"
            raise TypeError(f"{self.budget!r} adds a term whose coefficients are {what}, not ({self.run.outputs},)")
        if unknown := named.keys() - self.budget.columns.keys():
            raise TypeError(
                f"{self.budget!r} has no column {min(unknown)!r}: its columns are {list(self.budget.columns)}"
            )
        if missing := self.budget.columns.keys() - named.keys():
            raise TypeError(f"{self.budget!r} adds a term without a number for its column {min(missing)!r}")
        self._begin_afresh()
        inner = coef / self.scale
        self.basis.append(x, coef=inner, born=born, base=-self.cumulative * inner, **named)

    def change(self, coef: Array) -> None:
        """Replace the coefficients of all terms by `coef`, which is without the factor `scale`."""
        if np.shape(coef) != self.coef.shape:
            raise TypeError(f"{self.budget!r} gives coefficients of shape {np.shape(coef)}, not {self.coef.shape}")
        if self.run.average:
            self.base[:] += self.cumulative * (self.coef - coef)
        self.coef[:] = coef

    def past(self, i: int) -> Array:
        """The sum of term i's coefficient over the rounds, for averages."""
        return np.asarray(self.cumulative * self.coef[i] + self.base[i])

    def add(self, step: Array, coef: Array) -> None:
        """Move the coefficients of all terms by `step` (one number each) times `coef` (one for each output)."""
        self.change(self.coef + np.outer(step, coef / self.scale))

    def remove(self, i: int) -> None:
        """Remove term i; the last term takes its place."""
        if not 0 <= i < self.n:
            raise IndexError(f"{self.budget!r} removes term {i}, but the {self.n} terms are 0 to {self.n - 1}")
        if self.run.average == "all":
            self.dead.append(self.basis.row(i), coef=self.past(i), born=self.born[i])
        self.basis.remove(i)
        self._begin_afresh()

    def _begin_afresh(self) -> None:
        """Reset `scale` and `cumulative` if no term is left that uses them."""
        if self.n == 0:
            self.scale, self.cumulative = 1.0, 0.0

    def widen(self, keys: Array) -> None:
        super().widen(keys)
        self.basis.widen(len(keys))
        self.dead.widen(len(keys))
        memories.widen(self.budget, self.memory, self.run)
        self._first = memories.begin(self.budget, self.run)

    # -- state

    def state(self) -> State:
        arrays = self.basis.state("basis") | {"scale": np.array(self.scale)} | memories.saved("budget", self.memory)
        if self.run.average:
            arrays["cumulative"] = np.array(self.cumulative)
        if self.run.average == "all":
            arrays |= self.dead.state("dead")
        return arrays | {name: getattr(self, name)[None].copy() for name in self._intercept}

    @property
    def _intercept(self) -> tuple[str, ...]:
        """The names of the arrays of the intercept that are saved."""
        if "intercept" not in self.budget.offers:
            return ()
        return ("bias", "bias_sum") if self.run.average else ("bias",)

    def check_state(self, state: State) -> None:
        """Raise ValueError if the state is not that of such a function."""
        run, tables = self.run, {"basis": self.basis} | ({"dead": self.dead} if self.run.average == "all" else {})
        for prefix, table in tables.items():
            table.check_state(state, prefix)
            if not self._unit:
                X = rows_of(state, prefix, run.columns)
                with np.errstate(over="ignore", invalid="ignore"):
                    kxx = self.kernel.diagonal(X.astype(np.float64))
                soundness.require(f"{prefix}.x", np.isfinite(kxx), "rows for which k(x, x) is finite")
        factor = soundness.scale(state, "", run.average)
        soundness.coefficients("basis.coef", state["basis.coef"], factor)
        for name in self._intercept:
            soundness.shaped(state, name, (1, run.outputs))
        memories.check_state(self.budget, "budget", state, run, len(state["basis.born"]))
        self.budget.check_state(state, run)

    def restore(self, state: State) -> None:
        self.basis.restore(state, "basis")
        self.scale = float(state["scale"])
        memories.recall(self.budget, "budget", self.memory, state)
        if self.run.average:
            self.cumulative = float(state["cumulative"])
        if self.run.average == "all":
            self.dead.restore(state, "dead")
        for name in self._intercept:
            setattr(self, name, state[name][0].copy())
