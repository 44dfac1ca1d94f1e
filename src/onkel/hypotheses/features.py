"""Features: f is linear in the features of a map."""

from __future__ import annotations

import reprlib
from typing import Any, ClassVar, Self

import numpy as np

from onkel.core import memory as memories
from onkel.core import soundness
from onkel.core.basis import Row, State, rows
from onkel.core.growing import Growing
from onkel.core.outputs import Joining
from onkel.core.part import Words
from onkel.core.run import Run
from onkel.hypotheses.base import Function, Hypothesis, averaged
from onkel.kernels import Gaussian, Kernel
from onkel.maps import Drawn, Fourier, Map, refuse_overflow
from onkel.updates.base import Round

Array = np.ndarray[Any, np.dtype[Any]]


class Weights(Function):
    """f(x) = scale * sum_i coef_i z_i(x), linear in the features of a map."""

    def __init__(self, map: Map, run: Run) -> None:
        super().__init__(run)
        self.map = map
        self._rooms: dict[str, Growing] = {}  # of `drawn`, with the columns first; empty until features appear
        self.drawn = map.draw(run.keys, run.seed)
        self._reach = map.reach(self.drawn, run.dtype)
        self.memory = memories.begin(map, run)
        self._first = memories.begin(map, run)  # its names and shapes are those that the memory must keep
        self._coef = np.zeros((map.size, run.outputs))
        self._base = np.zeros_like(self._coef)

    @property
    def draws(self) -> dict[Map, Drawn]:
        return {self.map: self.drawn}

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

    def check(self, X: Any) -> None:
        refuse_overflow([np.abs(x.values).sum() for x in rows(X)], self.reach)

    def row(self, x: Row) -> Array:
        z = self.map.features(x.matrix(self.run.columns), self.drawn, self.memory)
        if np.shape(z) != (1, self.map.size):
            raise TypeError(
                f"{self.map!r}.features must return an array of {self.map.size} columns, as `size` says, one row for "
                f"each example; for one example it returned {reprlib.repr(z)}"
            )
        return np.asarray(z[0])

    def length2(self, x: Row, k: Array) -> float:
        return self.map.length2(k)

    def move(self, round: Round, shrink: float, coef: Array | None) -> None:
        if coef is not None:
            weighted = round.weight * round.slope
            self.map.adapt(round.x, round.k, self.scale * (self.coef @ weighted), self.drawn, self.memory)
            memories.check(self.map, self.memory, self._first)
        self.shrink(shrink)
        if coef is not None:
            self.add(coef if coef.ndim == 2 else np.outer(round.k, coef))

    def add(self, step: Array, past: Array | None = None) -> None:
        """Add `step` to the coefficients.

        `past`, if given, is added to their sum over earlier rounds, which the average uses.
        """
        inner = step / self.scale
        self.coef[:] += inner
        if self.run.average:
            self.base[:] -= self.cumulative * inner
            if past is not None:
                self.base[:] += past

    def widen(self, keys: Array) -> None:
        map, run = self.map, self.run
        more = map.draw_more(run.columns, keys, run.seed)
        reach = map.reach(more, run.dtype)
        if map.by_column:
            rooms = self._rooms or {name: Growing(np.moveaxis(a, -1, 0)) for name, a in self.drawn.items()}
            self._rooms = {name: room.plus(np.moveaxis(more[name], -1, 0)) for name, room in rooms.items()}
            more = {name: np.moveaxis(room.values, 0, -1) for name, room in self._rooms.items()}
            reach = min(reach, self._reach)
        self.drawn, self._reach = more, reach
        super().widen(keys)
        memories.widen(self.map, self.memory, self.run)
        self._first = memories.begin(self.map, self.run)

    # -- state

    def state(self) -> State:
        arrays = {"weights.coef": self.coef.copy(), "weights.scale": np.array(self.scale)}
        if self.run.average:
            arrays |= {"weights.base": self.base.copy(), "weights.cumulative": np.array(self.cumulative)}
        return arrays | memories.saved("map", self.memory)

    def restore(self, state: State) -> None:
        for name in ("coef", "base") if self.run.average else ("coef",):
            getattr(self, name)[:] = state[f"weights.{name}"]
        self.scale = float(state["weights.scale"])
        if self.run.average:
            self.cumulative = float(state["weights.cumulative"])
        memories.recall(self.map, "map", self.memory, state)


class Features(Hypothesis):
    """f(x) = sum_i coef_i z_i(x), linear in the features of a map.

    Examples
    --------
    >>> from onkel import ComposedRegressor, Features
    >>> model = ComposedRegressor(hypothesis=Features(Fourier(Gaussian(0.5), components=100)))
    >>> model.fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0]).coef_.shape
    (1, 200)
    """

    map: Map = Fourier()
    traits: ClassVar[tuple[str, ...]] = ("append-only", "average", "explicit")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(Fourier(Gaussian(1.0), 6)),)

    def __post_init__(self) -> None:
        self._require("map", isinstance(self.map, Map), "a map of onkel.maps")

    @property
    def offers(self) -> Words:
        return super().offers | self.map.offers

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return (self.map.kernel,)

    @property
    def maps(self) -> tuple[Map, ...]:
        return (self.map,)

    def start(self, run: Run) -> Weights:
        return Weights(self.map, run)

    def check_state(self, state: State, run: Run) -> None:
        for name in ("coef", "base") if run.average else ("coef",):
            soundness.shaped(state, f"weights.{name}", (self.map.size, run.outputs))
        factor = soundness.scale(state, "weights.", run.average)
        soundness.coefficients("weights.coef", state["weights.coef"], factor)
        memories.check_state(self.map, "map", state, run)

    # -- what is in a state

    def weights(self, state: State, run: Run) -> Array:
        if not run.average:
            return np.asarray(state["weights.coef"] * state["weights.scale"])
        return averaged(state, "weights.", "weights.")

    def widths(self, state: State) -> Array:
        """The factor that a map with learned widths has found for each column; other maps raise TypeError."""
        return self.map.widths(memories.own("map", state))

    def relabel(self, state: State, joining: Joining) -> State:
        memory = joining.all(self.map.per_output, memories.own("map", state))
        linear = dict.fromkeys(("weights.coef", "weights.base"), "scores")
        return joining.all(linear, state) | memories.named("map", memory)
