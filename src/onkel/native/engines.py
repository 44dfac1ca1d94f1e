"""Engines in C++: learners and pools whose parts all have C++ counterparts (twins)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onkel.core.locks import exclusive, shared
from onkel.core.part import Part
from onkel.core.run import Run
from onkel.learners.engine import Composed, Engine, Out, written
from onkel.learners.hedge import Hedge
from onkel.learners.learner import Learner
from onkel.learners.pool import PoolEngine
from onkel.maps import Drawn
from onkel.native import choice

Array = np.ndarray[Any, np.dtype[Any]]


# -- twins of parts


def has_twin(part: Part) -> bool:
    """Is there a C++ counterpart of this class, and of the class of every nested part?"""
    return choice.available() and not list(without_twin(part))


def without_twin(part: Part) -> Iterator[str]:
    """The class names of the parts without a C++ counterpart, among this part and the parts inside it."""
    if not type(part).__module__.startswith("onkel.") or not hasattr(choice.core, type(part).__name__):
        yield type(part).__name__
    for inner in part.inner:
        yield from without_twin(inner)


def twin(
    part: Part,
    run: Run | None = None,
    draws: Mapping[Any, Drawn] | None = None,
    made: Mapping[Part, Any] | None = None,
) -> Any:
    """The C++ counterpart of a part, made from the part's `twin_fields`.

    Parameters
    ----------
    run, draws : for maps, the run and the numbers drawn for them
    made : C++ counterparts that exist already; they are used instead of making new ones
    """
    if made and part in made:
        return made[part]

    def convert(value: Any) -> Any:
        if isinstance(value, Part):
            return twin(value, run, draws, made)
        if isinstance(value, np.generic):
            return value.item()
        return [convert(v) for v in value] if isinstance(value, tuple) else value

    fields = part.twin_fields(run, draws or {})
    return getattr(choice.core, type(part).__name__)(**{name: convert(value) for name, value in fields.items()})


# -- engines


class NativeLearner(Composed):
    """A learner in C++."""

    kind = "native"
    atomic = True

    def __init__(self, learner: Learner, made: Mapping[Part, Any] | None = None) -> None:
        """`made` has the C++ maps that exist already (see `NativeHedge`)."""
        self.hypothesis, self.loss, self.update = learner.inner
        self.run = learner.run
        self.average, self.outputs, self.dtype = learner.average, learner.outputs, learner.dtype
        draws = learner.f.draws
        make = choice.core.Learner32 if learner.dtype == np.float32 else choice.core.Learner64
        self._core = make(
            twin(learner.hypothesis, learner.run, draws, made),
            twin(learner.loss),
            twin(learner.update),
            outputs=learner.outputs,
            average={False: 0, True: 1, "all": 2}[learner.average],
            seed=learner.run.seed & (1 << 64) - 1,
            columns=learner.columns,
            sparse=learner.run.sparse,
        )
        for verb in ("learn_one", "score_one", "learn_named", "score_named"):  # called directly, for speed
            setattr(self, verb, getattr(self._core, verb))

    def learn(self, X: Any, y: Array, weight: Array | None = None, out: Out | None = None) -> Out:
        if out is None:
            last = np.empty((len(y), self.outputs))
            out = last, np.empty_like(last) if self.average else last
        self._core.learn(*_fields(X), y, weight, *out)
        return out

    @property
    def rows_learned(self) -> int:
        return int(self._core.rows_learned)

    @property
    def family(self) -> tuple[Any, ...] | None:
        if "explicit" not in self.hypothesis.offers or "adapts" in self.hypothesis.offers:
            return None
        return (self.hypothesis, self.run.seed, self.columns, self.dtype, self.outputs)

    def check(self, X: Any, y: Array | None = None) -> None:
        self._core.check(*_fields(X))

    def scores(self, X: Any, average: bool | None = None) -> Array:
        average = bool(self.average) if average is None else average
        while True:
            out = np.empty((X.shape[0], self.outputs))
            if self._core.scores(*_fields(X), average, out):  # False: an output has joined in the meantime
                return out

    def join(self, at: list[int]) -> bool:
        if self.outputs < 3:
            return False
        self._core.join(at)
        self.outputs += len(at)
        return True

    def widen(self, keys: Array, made: Mapping[Part, Any] | None = None) -> None:
        """Make room for new features; `made` has the C++ maps of the new features that exist already."""
        run = replace(self.run, keys=keys)
        self.hypothesis.refuse_too_large(run, self.n)
        draws = {map: map.draw_more(self.columns, keys, run.seed) for map in self.hypothesis.maps}
        maps = [twin(map, run, draws, made) for map in draws]
        self._core.widen(len(keys), *(maps or [None]))
        self.run = run

    @property
    def n(self) -> int:
        return int(self._core.n)

    @property
    def threshold(self) -> float:
        return float(self._core.threshold)

    @property
    def t(self) -> int:
        return int(self._core.t)

    def state(self) -> dict[str, Array]:
        return dict(self._core.state())

    def restore(self, state: dict[str, Array]) -> None:
        self._core.restore({name: np.asarray(array, order="C") for name, array in state.items()})


class NativeHedge(PoolEngine):
    """A pool whose components and loop are in C++.

    The round counter, the losses of the components and the random states are kept in Python and passed to
    each call.

    Components whose random features have the same seed and differ only in kernel width share their projections.
    """

    kind = "native"

    def __init__(self, hedge: Hedge) -> None:
        first = hedge.learners[0].run
        self._seeds = [learner.run.seed for learner in hedge.learners]
        maps, common = self._in_common([learner.hypothesis for learner in hedge.learners], first.keys)
        learners = [NativeLearner(learner, made) for learner, made in zip(hedge.learners, maps, strict=True)]
        super().__init__(
            learners,
            weighting=hedge.weighting,
            sampling=hedge.sampling,
            vote=hedge.vote,
            budget=hedge.budget,
            dtype=hedge.dtype,
            jobs=hedge.jobs,
        )
        self.random = hedge.random
        self._core = choice.core.Hedge(
            [learner._core for learner in learners],
            twin(hedge.weighting),
            twin(hedge.sampling),
            vote=hedge.vote,
            budget=hedge.budget,
            jobs=hedge.jobs,
        )
        self._common = common
        self._core.share(common)

    def _in_common(self, hypotheses: Sequence[Any], keys: Array) -> tuple[list[dict[Part, Any]], list[Any]]:
        """Per component, the C++ map if it shares random directions with other components; then the shared
        directions."""
        alike: dict[Any, list[int]] = {}
        for i, (hypothesis, seed) in enumerate(zip(hypotheses, self._seeds, strict=True)):
            if "explicit" in hypothesis.offers:
                alike.setdefault(hypothesis.maps[0].stretches(seed), []).append(i)
        made: list[dict[Part, Any]] = [{} for _ in hypotheses]
        common: list[Any] = []
        for key, members in alike.items():
            if key is None or len(members) == 1:
                continue
            maps = [hypotheses[i].maps[0] for i in members]
            directions = np.ascontiguousarray(maps[0].spectrum(keys, self._seeds[members[0]]))
            common.append(choice.core.Common(directions))
            for i, map in zip(members, maps, strict=True):
                factor = map.kernel.frequency
                reach = map.reach({"directions": factor * directions}, np.float64)
                made[i][map] = choice.core.Stretched(common[-1], factor, reach)
        return made, common

    @exclusive
    def widen(self, keys: Array) -> None:
        maps, common = self._in_common([learner.hypothesis for learner in self.learners], keys[self.columns :])
        for known, more in zip(self._common, common, strict=True):
            known.append(more)
        for learner, made in zip(self.learners, maps, strict=True):
            learner.widen(keys, made)

    @exclusive
    def learn(self, X: Any, y: Array, weight: Array | None = None, out: Out | None = None) -> Out:
        combined = np.empty((len(y), self.outputs))
        t, draws = np.array([self.rounds]), np.array([r.state for r in self.random.values()], dtype=np.uint64)
        try:
            self._core.learn(*_fields(self.fine(X)), y, weight, self.losses, t, draws, combined)
        finally:
            self.rounds = int(t[0])
            for random, state in zip(self.random.values(), draws, strict=True):
                random.state = int(state)
        return written(combined, out)

    @shared
    def scores(self, X: Any, average: bool | None = None) -> Array:
        out = np.empty((X.shape[0], self.outputs))
        self._core.scores(*_fields(self.fine(X)), self.losses, out)
        return out


_LOOPS: dict[type[Engine], Any] = {Learner: NativeLearner, Hedge: NativeHedge}  # a subclass has no native loop


def fastest(learner: Engine) -> Engine:
    """The C++ engine for a learner or pool that has learned nothing yet.

    The learner itself is returned if the native engine is disabled or not built, or if the loop or a part has no twin.
    But if the native engine is `required()`, ValueError is raised when it is not built or a twin is missing.
    """
    loop = _LOOPS.get(type(learner))
    missing = sorted({name for part in learner.inner for name in without_twin(part)})
    missing += [] if loop else [type(learner).__name__]
    components = [type(one) for one in learner.learners]
    missing += sorted({kind.__name__ for kind in components if _LOOPS.get(kind) is not NativeLearner})
    if choice.required() and (missing or not choice.available()):
        why = f"there is no C++ twin of {', '.join(missing)}" if choice.available() else "it is not built"
        raise ValueError(f'no native engine: {why}; use use_engine("auto"), or unset ONKEL_ENGINE')
    return learner if loop is None or missing or choice.wanted() is None else loop(learner)


def learn_together(family: Sequence[Any], X: Any, y: Array) -> list[tuple[Array, Array] | None]:
    """Learn the same rows with native learners that share their features; results of `learn`, None if diverged."""
    last = np.empty((len(family) * len(y), family[0].outputs))
    averaged = np.empty_like(last)
    group: list[Any] = [learner._core for learner in family]
    lost = type(group[0]).learn_together(group, *_fields(X), y, last, averaged)
    parts = zip(np.split(last, len(family)), np.split(averaged, len(family)), strict=True)
    return [None if gone else both for gone, both in zip(lost, parts, strict=True)]


def _fields(X: Any) -> tuple[Any, Any, Any]:
    """Values, column indices and row starts; the latter two are None for a dense array."""
    if hasattr(X, "indptr"):
        return X.data, np.ascontiguousarray(X.indices, np.int32), np.ascontiguousarray(X.indptr, np.int64)
    return X, None, None
