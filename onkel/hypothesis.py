"""Hypotheses: the function being learned, what is stored of it and how it scores.

`Expansion` is f(x) = sum_i coef_i k(x_i, x) on a table of stored examples, `Features` is f(x) = sum_i coef_i z_i(x)
on an explicit map z, and `Dual` the sum of one and the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from onkel.basis import Basis, Row, State
from onkel.budgets import Budget, Unlimited, oldest_of_least
from onkel.kernels import Kernel
from onkel.linalg import Factor
from onkel.losses import Loss
from onkel.maps import Drawn, Map
from onkel.part import Part
from onkel.random import Random
from onkel.updates import Diverged, Memory, Round, beyond, sane

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Run:
    """What a hypothesis is told when it begins."""

    outputs: int
    keys: Array  # one number for each feature, made from its name or place (see `maps`)
    dtype: Any
    sparse: bool
    average: bool | str
    seed: int

    @property
    def columns(self) -> int:
        """Number of features."""
        return len(self.keys)


class Hypothesis:
    """f(x) = scale * sum_i coef_i k_i, with `row` giving the numbers k_i of an example.

    The average of the models before each round is carried along without a pass over the coefficients. With
    `cumulative` the sum of `scale` over rounds, the sum of coef_i over rounds is coef_i * cumulative + base_i;
    only a change of coef_i itself touches base_i.
    """

    run: Run
    scale: float
    cumulative: float
    explicit = False  # is every k_i a feature with a weight of its own?

    @property
    def parts(self) -> tuple[Part, ...]:
        """What it is composed of."""
        raise NotImplementedError

    @property
    def exact(self) -> bool:
        """Is the new function always shrink times the old one plus the step?"""
        raise NotImplementedError

    def suits(self, loss: Loss, outputs: int) -> None:
        """Refuse a loss or a number of outputs its parts are not defined for."""

    def start(self, run: Run) -> None:
        """Begin as f = 0."""
        self.run = run
        self.scale, self.cumulative = 1.0, 0.0

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
        self.cumulative += self.scale

    def foresee(self, factor: float) -> None:
        """Refuse a factor that would take coefficients out of range."""
        scale = self.scale * factor
        if len(self.coef) and self._far(scale) and not sane(self.coef * scale):
            raise Diverged(beyond("a coefficient becomes", np.abs(self.coef).max() * scale))

    def shrink(self, factor: float) -> None:
        """f <- factor * f, in constant time."""
        if len(self.coef) == 0:
            return
        self.foresee(factor)
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
        """The inverse of `state`, after `start`."""
        raise NotImplementedError


class Terms(Hypothesis):
    """A hypothesis that stores examples, in the table `basis`."""

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


class Expansion(Terms):
    """f(x) = scale * sum_i coef_i k(x_i, x), with terms entering by the rule of a budget."""

    def __init__(self, kernel: Kernel, budget: Budget) -> None:
        self.kernel, self.budget = kernel, budget

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.kernel, self.budget

    @property
    def exact(self) -> bool:
        return self.budget.exact

    def suits(self, loss: Loss, outputs: int) -> None:
        self.budget.check(self.kernel, loss, outputs)

    def start(self, run: Run) -> None:
        super().start(run)
        named = {"coef": run.outputs, "born": 1, **dict.fromkeys(self.budget.columns, run.outputs)}
        if run.average:
            named["base"] = run.outputs
        self.basis = Basis(run.columns, run.dtype, run.sparse, named)
        self.dead = self.basis.fresh({"coef": run.outputs, "born": 1})  # average="all": terms that once lived
        self.bias = np.zeros(run.outputs)  # stays 0 but for budgets with an intercept
        self.bias_sum = np.zeros(run.outputs)  # over the rounds
        self.memory = self.budget.start(run.seed)

    @property
    def base(self) -> Array:
        return self.basis["base"]

    def check(self, x: Row) -> None:
        if not np.isfinite(kxx := self.diagonal(x)):
            raise ValueError(f"k(x, x) is {kxx}; its values are too large for the kernel: scale the features")

    def row(self, x: Row) -> Array:
        return self.kernel.row(self.basis.totals(x)) if self.n else np.zeros(0)

    def length2(self, x: Row, k: Array) -> float:
        return self.diagonal(x)

    def diagonal(self, x: Row) -> float:
        """k(x, x)."""
        return float(self.kernel.row(lambda pair: np.atleast_1d(pair(x.values, x.values).sum()))[0])

    def scores(self, k: Array) -> Array:
        return super().scores(k) + self.bias

    def average_scores(self, x: Row, k: Array, t: int) -> Array:
        average = super().average_scores(x, k, t) + self.bias_sum / max(t, 1)
        if self.dead.n:
            average += self.dead["coef"].T @ self.kernel.row(self.dead.totals(x)) / max(t, 1)
        return average

    def count(self) -> None:
        super().count()
        self.bias_sum += self.bias

    def _fold(self, scale: float) -> None:
        for name in ("coef", *self.budget.columns):
            self.basis[name][:] *= scale

    def move(self, round: Round, shrink: float, coef: Array | None) -> None:
        self.shrink(shrink)
        refused = round.room <= 0 and self.n == 0  # none of its own can make room
        self.budget.insert(self, round, None if refused else coef, self.memory)

    def append(self, round: Round, coef: Array, **named: Any) -> None:
        """Add the term coef * k(x, .) of the example."""
        self.enter(round.x, round.t, coef, **named)

    def enter(self, x: Row, born: float, coef: Array, **named: Any) -> None:
        """Add a term on any row, be it one that never arrived."""
        self._begin_afresh()
        inner = coef / self.scale
        self.basis.append(x, coef=inner, born=born, base=-self.cumulative * inner, **named)

    def change(self, coef: Array) -> None:
        """Give the terms new coefficients (still without `scale`)."""
        if self.run.average:
            self.base[:] += self.cumulative * (self.coef - coef)
        self.coef[:] = coef

    def past(self, i: int) -> Array:
        """With averages: the sum of term i's coefficient over the rounds."""
        return np.asarray(self.cumulative * self.coef[i] + self.base[i])

    def matrix(self) -> Array:
        """k(x_i, x_j) of all terms."""
        return np.array([self.row(self.basis.row(i)) for i in range(self.n)]).reshape(self.n, self.n)

    def add(self, step: Array, coef: Array) -> None:
        """Move the coefficients of all terms by `step` (one number each) times `coef` (one for each output)."""
        self.change(self.coef + np.outer(step, coef / self.scale))

    def remove(self, i: int) -> None:
        """Drop term i; the last term takes its place."""
        if self.run.average == "all":
            self.dead.append(self.basis.row(i), coef=self.past(i), born=self.born[i])
        self.basis.remove(i)
        self._begin_afresh()

    def _begin_afresh(self) -> None:
        """Where no term is left nothing refers to them."""
        if self.n == 0:
            self.scale, self.cumulative = 1.0, 0.0

    def widen(self, keys: Array) -> None:
        super().widen(keys)
        for table in (self.basis, self.dead, *self.memory.values()):
            if isinstance(table, Basis):
                table.widen(len(keys))

    def state(self) -> State:
        arrays = self.basis.state("basis") | {"scale": np.array(self.scale)} | remembered("budget", self.memory)
        if self.run.average:
            arrays["cumulative"] = np.array(self.cumulative)
        if self.run.average == "all":
            arrays |= self.dead.state("dead")
        return arrays | {name: getattr(self, name)[None].copy() for name in self._intercept}

    @property
    def _intercept(self) -> tuple[str, ...]:
        """What is saved of it."""
        return (("bias", "bias_sum") if self.run.average else ("bias",)) if self.budget.intercept else ()

    def restore(self, state: State) -> None:
        self.basis.restore(state, "basis")
        self.scale = float(state["scale"])
        recall(state, "budget", self.memory, self.basis)
        if self.run.average:
            self.cumulative = float(state["cumulative"])
        if self.run.average == "all":
            self.dead.restore(state, "dead")
        for name in self._intercept:
            if state[name].shape != (1, self.run.outputs):
                raise ValueError(f"'{name}' has shape {state[name].shape}, not {(1, self.run.outputs)}")
            setattr(self, name, state[name][0].copy())


class Features(Hypothesis):
    """f(x) = scale * sum_i coef_i z_i(x), linear in the features of a map."""

    explicit = True

    def __init__(self, map: Map) -> None:
        self.map = map

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.map,)

    @property
    def exact(self) -> bool:
        return True

    def start(self, run: Run) -> None:
        super().start(run)
        self._use(self.map.draw(run.keys, run.seed))
        self.memory = self.map.start(run.columns)
        self._coef = np.zeros((self.map.size, run.outputs))
        self._base = np.zeros_like(self._coef)

    def _use(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self._reach = self.map.reach(drawn, self.run.dtype)

    @property
    def reach(self) -> float:
        return self._reach

    @property
    def n(self) -> int:
        return 0

    @property
    def coef(self) -> Array:
        return self._coef

    @property
    def base(self) -> Array:
        return self._base

    def check(self, x: Row) -> None:
        if not np.abs(x.values).sum() < self.reach:
            raise ValueError("its values are too large for random features: scale them")

    def row(self, x: Row) -> Array:
        return np.asarray(self.map.features(x.matrix(self.run.columns), self.drawn, self.memory)[0])

    def length2(self, x: Row, k: Array) -> float:
        return self.map.length2(k)

    def move(self, round: Round, shrink: float, coef: Array | None) -> None:
        if coef is not None:
            weighted = round.weight * round.slope
            self.map.adapt(round.x, round.k, self.scale * (self.coef @ weighted), self.drawn, self.memory)
        self.shrink(shrink)
        if coef is not None:
            self.add(coef if coef.ndim == 2 else np.outer(round.k, coef))

    def add(self, step: Array, past: Array | None = None) -> None:
        """Move the coefficients by `step`; `past` is what else the average is to know of earlier rounds."""
        inner = step / self.scale
        self.coef[:] += inner
        if self.run.average:
            self.base[:] -= self.cumulative * inner
            if past is not None:
                self.base[:] += past

    def widen(self, keys: Array) -> None:
        self._use(self.map.redraw(self.run.columns, keys, self.run.seed))
        super().widen(keys)
        for name, value in self.map.start(len(keys)).items():
            value[: len(self.memory[name])] = self.memory[name]
            self.memory[name] = value

    def state(self) -> State:
        arrays = {"weights.coef": self.coef.copy(), "weights.scale": np.array(self.scale)}
        if self.run.average:
            arrays |= {"weights.base": self.base.copy(), "weights.cumulative": np.array(self.cumulative)}
        return arrays | remembered("map", self.memory)

    def restore(self, state: State) -> None:
        for name in ("coef", "base") if self.run.average else ("coef",):
            if state[f"weights.{name}"].shape != self.coef.shape:
                raise ValueError(f"'weights.{name}' has shape {state[f'weights.{name}'].shape}, not {self.coef.shape}")
            getattr(self, name)[:] = state[f"weights.{name}"]
        self.scale = float(state["weights.scale"])
        if self.run.average:
            self.cumulative = float(state["weights.cumulative"])
        recall(state, "map", self.memory)


class Dual(Hypothesis):
    """f = an expansion of at most `budget` terms + features (DualSGD).

    A new term finds room by k-merging: the `merge` terms of least |coef| (older first among equals) become
    features, coef_i k(x_i, .) -> coef_i <z(x_i), z(.)>. Without a budget the step goes to the features at once.
    `insert_always` lets a term of coefficient 0 in where the loss has no slope, as the released program does.
    """

    def __init__(self, kernel: Kernel, map: Map, budget: int, merge: int = 20, insert_always: bool = False) -> None:
        for name, value, least in (("budget", budget, 0), ("merge", merge, 1)):
            if not isinstance(value, Integral) or isinstance(value, bool) or not least <= value < 2**31:
                raise ValueError(f"Dual.{name} must be an integer >= {least} (and below 2^31), got {value!r}")
        self.expansion, self.features = Expansion(kernel, Unlimited()), Features(map)
        self.budget, self.merge, self.insert_always = int(budget), int(merge), bool(insert_always)

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.expansion.kernel, self.features.map

    @property
    def exact(self) -> bool:
        return False

    def start(self, run: Run) -> None:
        super().start(run)
        self.expansion.start(run)
        self.features.start(run)

    @property
    def n(self) -> int:
        return self.expansion.n

    @property
    def reach(self) -> float:
        return self.features.reach

    def check(self, x: Row) -> None:
        self.expansion.check(x)
        self.features.check(x)

    def row(self, x: Row) -> Array:
        return np.concatenate([self.expansion.row(x), self.features.row(x)])

    def length2(self, x: Row, k: Array) -> float:
        return self.expansion.diagonal(x)

    def _split(self, k: Array) -> tuple[Array, Array]:
        return k[: self.n], k[self.n :]

    def scores(self, k: Array) -> Array:
        own, z = self._split(k)
        return self.expansion.scores(own) + self.features.scores(z)

    def average_scores(self, x: Row, k: Array, t: int) -> Array:
        own, z = self._split(k)
        return self.expansion.average_scores(x, own, t) + self.features.average_scores(x, z, t)

    def count(self) -> None:
        self.expansion.count()
        self.features.count()

    def foresee(self, factor: float) -> None:
        self.expansion.foresee(factor)
        self.features.foresee(factor)

    def move(self, round: Round, shrink: float, coef: Array | None) -> None:
        self.expansion.shrink(shrink)
        self.features.shrink(shrink)
        if coef is None and self.insert_always:
            coef = np.zeros(self.run.outputs)
        if coef is None:
            return
        if self.budget == 0:
            self.features.add(np.outer(self._split(round.k)[1], coef))
            return
        if self.n == self.budget:
            for _ in range(min(self.merge, self.n)):
                self._merge_smallest()
        self.expansion.append(round, coef)

    def _merge_smallest(self) -> None:
        f = self.expansion
        i = oldest_of_least(np.linalg.norm(f.coef, axis=1), f.born)
        z = self.features.row(f.basis.row(i))
        past = np.outer(z, f.past(i)) if self.run.average is True else None  # with "all" it stays a term
        self.features.add(np.outer(z, f.scale * f.coef[i]), past)
        f.remove(i)

    def widen(self, keys: Array) -> None:
        super().widen(keys)
        self.features.widen(keys)
        self.expansion.widen(keys)

    def state(self) -> State:
        return self.expansion.state() | self.features.state()

    def restore(self, state: State) -> None:
        self.expansion.restore(state)
        self.features.restore(state)


# -- what parts remember between rounds, as arrays


def remembered(part: str, memory: Memory) -> State:
    """A part's memory as named arrays."""
    arrays: State = {}
    for name, value in memory.items():
        if isinstance(value, (Basis, Factor)):
            arrays |= value.state(f"{part}.{name}")
        elif isinstance(value, Random):
            arrays[f"{part}.{name}"] = np.array(value.state, dtype=np.uint64)
        elif value is not None:
            arrays[f"{part}.{name}"] = np.array(value)
    return arrays


def recall(state: State, part: str, memory: Memory, table: Basis | None = None) -> None:
    """The inverse of `remembered` on the memory a part starts with; `table` is one for rows like these."""
    for name, value in memory.items():
        key = f"{part}.{name}"
        if isinstance(value, Random):
            value.state = int(state[key])
        elif isinstance(value, Factor):
            value.restore(state, key)
            if table is not None and len(value) != table.n:
                raise ValueError(f"'{key}' is of {len(value)} terms, not {table.n}")
        elif isinstance(value, np.ndarray):
            memory[name] = state[key].copy()
        elif value is not None:
            memory[name] = float(state[key])
        elif table is not None and f"{key}.born" in state:
            memory[name] = table.fresh({"born": 1, "y": 1})
            memory[name].restore(state, key)
