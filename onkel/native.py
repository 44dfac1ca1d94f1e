"""The engine: hands a composition to C++ when every part has a twin there, else keeps the array engine.

Only this module imports `_core`. `use("python")` or the environment variable ONKEL_ENGINE=python choose the
array engine everywhere; ONKEL_ENGINE=native makes a missing twin an error.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onkel.hedge import Hedge
from onkel.hypothesis import Dual, Expansion, Features, Hypothesis
from onkel.learner import Learner
from onkel.maps import Drawn, Fourier, Map, Reparameterized
from onkel.part import Part
from onkel.restarts import Restarts
from onkel.text import Rows
from onkel.turns import learns, predicts

try:
    import onkel._core as _core
except ImportError as error:
    _core = None  # type: ignore[assignment]
    if os.environ.get("ONKEL_ENGINE") != "python":
        checkout = Path(__file__).resolve().parents[1]
        remedy = "Install a C++20 compiler and reinstall onkel"
        if (checkout / "CMakeLists.txt").exists():
            remedy = (
                f"This is the source folder {checkout}, not an installed onkel: start Python elsewhere for that one, "
                "or build this one (pip install -e . with a C++20 compiler)"
            )
        warnings.warn(
            f"onkel runs on its Python engine, which is slow: the native one is not built ({error}). "
            f"{remedy}, or set ONKEL_ENGINE=python to silence this.",
            RuntimeWarning,
            stacklevel=2,
        )

Array = np.ndarray[Any, np.dtype[Any]]

_CHOICES = ("auto", "python", "native")
_choice = os.environ.get("ONKEL_ENGINE", "auto")
if _choice not in _CHOICES:
    raise ValueError(f"the environment variable ONKEL_ENGINE must be one of {_CHOICES}, got {_choice!r}")


def available() -> bool:
    """Is the C++ engine built?"""
    return _core is not None


def description() -> str:
    """The engine in words, for reports."""
    return f"native ({_core.instruction_set()})" if available() and _choice != "python" else "python"


@contextmanager
def use(engine: str) -> Iterator[None]:
    """Within the block, new learners run on "python", "native" or the best there is ("auto")."""
    global _choice
    if engine not in _CHOICES:
        raise ValueError(f"engine must be one of {_CHOICES}, got {engine!r}")
    before, _choice = _choice, engine
    try:
        yield
    finally:
        _choice = before


def parse_libsvm(text: bytes, base: int) -> Rows | None:
    """`text.parse_libsvm` in C++; None where it is not built, or the text is not the usual."""
    parts: Any = _core.parse_libsvm(text, base) if available() and _choice != "python" else None
    return None if parts is None else Rows(*parts)


def parse_table(text: bytes, separator: str, wanted: list[int]) -> tuple[Array, Array, int] | None:
    """Numbers, places of the text cells, and number of rows of a table without quotes; None as above.

    `wanted` says of each column: 0 skip, 1 number (NaN where the cell is empty), 2 text.
    """
    parts: Any = _core.parse_table(text, separator, wanted) if available() and _choice != "python" else None
    return parts  # type: ignore[no-any-return]


def engine(learner: Learner | Hedge | Restarts) -> Any:
    """The fastest engine for a learner, or a pool of learners of double precision, that has not begun."""
    if isinstance(learner, Restarts):
        if _choice == "native":
            raise ValueError("no native engine: Restarts has no C++ twin")
        return learner
    components: list[Learner] = learner.learners if isinstance(learner, Hedge) else [learner]
    parts = [part for one in components for part in (*one.hypothesis.parts, one.loss, one.update)]
    parts += [learner.loss] if isinstance(learner, Hedge) and learner.loss is not None else []
    missing = sorted({type(part).__name__ for part in parts if not has_twin(part)})
    if _choice == "native" and (missing or not available()):
        raise ValueError(f"no native engine: {'it is not built' if not available() else f'{missing} have no C++ twin'}")
    if missing or _choice == "python":
        return learner
    return NativeHedge(learner) if isinstance(learner, Hedge) else NativeLearner(learner)


def has_twin(part: Part) -> bool:
    """Is there a C++ part of this very class, and of every part inside?"""
    if not available() or not type(part).__module__.startswith("onkel.") or not hasattr(_core, type(part).__name__):
        return False
    return all(has_twin(inner) for value in part.get_params(deep=False).values() for inner in _parts(value))


def _parts(value: Any) -> list[Part]:
    return [v for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, Part)]


def twin(part: Part) -> Any:
    """The C++ part with the same name and fields."""

    def convert(value: Any) -> Any:
        if isinstance(value, Part):
            return twin(value)
        if isinstance(value, np.generic):
            return value.item()
        return [convert(v) for v in value] if isinstance(value, tuple) else value

    return getattr(_core, type(part).__name__)(**{k: convert(v) for k, v in part.get_params(deep=False).items()})


def _map(f: Hypothesis) -> Map | None:
    """The map it uses, if any."""
    return f.map if isinstance(f, Features) else f.features.map if isinstance(f, Dual) else None


def _drawn(map: Map, drawn: Drawn, dtype: Any, columns: int) -> Any:
    """The C++ map with the numbers drawn for it."""
    fields: dict[str, Any] = {name: np.ascontiguousarray(array, np.float64) for name, array in drawn.items()}
    fields["reach"] = map.reach(drawn, dtype)
    if isinstance(map, Reparameterized):
        fields |= {"start": float(map.start(1)["log_widths"][0]), "eta": float(map.eta), "clip": float(map.clip)}
    elif "directions" not in drawn:
        fields |= {"components": map.components, "columns": columns}
    return getattr(_core, type(map).__name__)(**fields)


def _hypothesis(f: Hypothesis, map: Any = None) -> Any:
    """The C++ hypothesis with the same parts, on a C++ map that is there already, if any."""
    if isinstance(f, Expansion):
        return _core.Expansion(twin(f.kernel), twin(f.budget))
    if isinstance(f, Features):
        return _core.Features(map or _drawn(f.map, f.drawn, f.run.dtype, f.run.columns))
    assert isinstance(f, Dual)
    map = _drawn(f.features.map, f.features.drawn, f.run.dtype, f.run.columns)
    return _core.Dual(twin(f.expansion.kernel), map, f.budget, f.merge, f.insert_always)


class NativeLearner:
    """A learner in C++, with the verbs of `Learner`."""

    engine = "native"

    def __init__(self, learner: Learner, map: Any = None) -> None:
        self.average, self.outputs, self.dtype = learner.average, learner.outputs, learner.dtype
        self.reach, self._seed, self._columns = learner.reach, learner.run.seed, learner.columns
        self._map = _map(learner.hypothesis)
        self._explicit = isinstance(learner.hypothesis, Features) and not isinstance(self._map, Reparameterized)
        make = _core.Learner32 if learner.dtype == np.float32 else _core.Learner64
        self._core = make(
            _hypothesis(learner.hypothesis, map),
            twin(learner.loss),
            twin(learner.update),
            outputs=learner.outputs,
            average={False: 0, True: 1, "all": 2}[learner.average],
            seed=learner.run.seed & (1 << 64) - 1,
            columns=learner.columns,
            sparse=learner.run.sparse,
        )
        self.learn_one = self._core.learn_one
        self.score_one = self._core.score_one
        self.learn_named = self._core.learn_named
        self.score_named = self._core.score_named

    def learn(self, X: Any, y: Array, weight: Array | None = None) -> tuple[Array, Array]:
        """Learn from each row in turn; the scores before each update, by the last and by the averaged model."""
        last = np.empty((len(y), self.outputs))
        averaged = np.empty_like(last) if self.average else last
        self._core.learn(*_fields(X), y, weight, last, averaged)
        return last, averaged

    @property
    def family(self) -> tuple[Any, ...] | None:
        """Equal for learners with the same explicit features of unnamed columns; None if they are its own."""
        return (self._map, self._seed, self._columns, self.dtype, self.outputs) if self._explicit else None

    def check(self, X: Any) -> None:
        """Refuse rows whose numbers would overflow, before anything is learned."""
        self._core.check(*_fields(X))

    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Scores of the last or the averaged model (default: the averaged one if there is one)."""
        out = np.empty((X.shape[0], self.outputs))
        self._core.scores(*_fields(X), bool(self.average) if average is None else average, out)
        return out

    def widen(self, keys: Array, map: Any = None) -> None:
        """Make room for features that were not there before; `keys` are those of all, `map` is for all of them."""
        if self._map is None:
            self._core.widen(len(keys), None)
        else:
            drawn = self._map.redraw(self._columns, keys, self._seed)
            self._core.widen(len(keys), map or _drawn(self._map, drawn, self.dtype, len(keys)))
            self.reach = self._map.reach(drawn, self.dtype)
        self._columns = len(keys)

    @property
    def columns(self) -> int:
        """Number of features."""
        return self._columns

    @property
    def n(self) -> int:
        """Number of terms."""
        return int(self._core.n)

    @property
    def threshold(self) -> float:
        """The margin or tube of the next round."""
        return float(self._core.threshold)

    @property
    def t(self) -> int:
        """Number of rounds."""
        return int(self._core.t)

    def state(self) -> dict[str, Array]:
        """Everything that was learned, as a flat dictionary of arrays."""
        return self._core.state()  # type: ignore[return-value]

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of `state` on a learner of the same composition."""
        self._core.restore({name: np.asarray(array, order="C") for name, array in state.items()})


class NativeHedge(Hedge):
    """A pool whose components, rounds and scores are in C++; what it knows of the weights stays here.

    Random features that are one draw but for their widths (those of one seed) have their projections in common.
    """

    def __init__(self, hedge: Hedge) -> None:
        self.__dict__.update(vars(hedge))
        self._drawn_alike: dict[Any, list[int]] = {}
        for i, learner in enumerate(hedge.learners):
            f = learner.hypothesis
            if isinstance(f, Features) and type(f.map) is Fourier:
                alike = type(f.map.kernel), f.map.components, learner.run.seed
                self._drawn_alike.setdefault(alike, []).append(i)
        maps, common = self._in_common([_map(one.hypothesis) for one in hedge.learners], hedge.learners[0].run.keys)
        self.engine = "native"
        self.learners = [NativeLearner(learner, map) for learner, map in zip(hedge.learners, maps, strict=True)]
        words = ("rate", "vote", "strict", "sample_update", "sample_combination", "single", "scale_chance", "smoothing")
        rule = {word: getattr(self, word) for word in (*words, "budget", "jobs")}
        loss = None if self.loss is None else twin(self.loss)
        self._core = _core.Hedge([learner._core for learner in self.learners], loss, **rule)
        self._core.share(common)

    def _in_common(self, maps: list[Any], keys: Array) -> tuple[list[Any], list[Any]]:
        """The C++ maps of components whose directions are one draw (None: of its own), and what they share."""
        made: list[Any] = [None] * len(maps)
        common: list[Any] = []
        for (_, _, seed), members in self._drawn_alike.items():
            if len(members) == 1:
                continue
            directions = np.ascontiguousarray(maps[members[0]].spectrum(keys, seed))
            common.append(_core.Common(directions))
            for i in members:
                factor = maps[i].kernel.frequency
                reach = maps[i].reach({"directions": factor * directions}, np.float64)
                made[i] = _core.Stretched(common[-1], factor, reach)
        return made, common

    @learns
    def widen(self, keys: Array) -> None:
        """Make room for features that were not there before; `keys` are those of all."""
        maps, common = self._in_common([learner._map for learner in self.learners], keys)
        for learner, map in zip(self.learners, maps, strict=True):
            learner.widen(keys, map)
        self._core.share(common)

    @learns
    def learn(self, X: Any, y: Array, weight: Array | None = None) -> tuple[Array, Array]:
        """Learn from each row in turn; the combined scores before each update (twice: there is no average)."""
        combined = np.empty((len(y), self.outputs))
        t, draws = np.array([self.t]), np.array([r.state for r in self.random.values()], dtype=np.uint64)
        try:
            self._core.learn(*_fields(self._fine(X)), y, weight, self.losses, t, draws, combined)
        finally:
            self.t = int(t[0])
            for random, state in zip(self.random.values(), draws, strict=True):
                random.state = int(state)
        return combined, combined

    @predicts
    def scores(self, X: Any, average: bool | None = None) -> Array:
        """Combined scores of the rows; nothing is drawn."""
        out = np.empty((X.shape[0], self.outputs))
        self._core.scores(*_fields(self._fine(X)), self.losses, out)
        return out


def learn_together(family: Sequence[NativeLearner], X: Any, y: Array) -> list[tuple[Array, Array] | None]:
    """What `learn` of each would return, None for one that diverged; the features are computed once for all."""
    last = np.empty((len(family) * len(y), family[0].outputs))
    averaged = np.empty_like(last)
    group: list[Any] = [learner._core for learner in family]
    lost = type(group[0]).learn_together(group, *_fields(X), y, last, averaged)
    parts = zip(np.split(last, len(family)), np.split(averaged, len(family)), strict=True)
    return [None if gone else both for gone, both in zip(lost, parts, strict=True)]


def _fields(X: Any) -> tuple[Any, Any, Any]:
    """Values, column indices and row starts; the last two None for a dense array."""
    if hasattr(X, "indptr"):
        return X.data, np.ascontiguousarray(X.indices, np.int32), np.ascontiguousarray(X.indptr, np.int64)
    return X, None, None
