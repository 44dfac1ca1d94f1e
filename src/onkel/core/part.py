"""Part: an immutable value with named fields, from which every learner is composed.

Kernels, losses, updates, budgets, maps and hypotheses are parts. A part is frozen, compares by value, prints as the
expression that makes it, and is saved to files as plain data (`config`), never as code. What is learned is not stored
in a part but in the memory of the learner, so one part may serve many learners.

A part states in words what it needs of the other parts (`needs`) and what is true of it (`offers`);
`learners.composition` compares these words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self, dataclass_transform

from onkel.core.errors import Refused

Memory = dict[str, Any]  # what a part remembers between rounds
Words = frozenset[str]


@dataclass_transform(frozen_default=True)
class Part:
    """Base of all parts: a subclass declares its fields; it is then a frozen dataclass, registered by its name."""

    known: ClassVar[dict[str, type[Part]]] = {}
    traits: ClassVar[tuple[str, ...]] = ()  # words that are true of every part of this class

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(frozen=True, repr=False)(cls)
        taken = Part.known.get(cls.__name__)
        if taken is not None and taken.__module__ != cls.__module__:  # files know parts by name alone
            raise TypeError(f"there is a part called {cls.__name__} in {taken.__module__}: choose another name")
        Part.known[cls.__name__] = cls

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Parts of this class for the tests: together they use every field, and short streams are enough for them."""
        return (cls(),)

    # -- needs and offers

    @property
    def needs(self) -> Words:
        """Words that another part of the composition must offer."""
        return frozenset()

    @property
    def offers(self) -> Words:
        """Words that are true of this part: the `traits` of its class and base classes, and what its fields imply."""
        return frozenset(word for cls in type(self).__mro__ for word in vars(cls).get("traits", ()))

    @property
    def inner(self) -> tuple[Part, ...]:
        """The parts among its fields, alone or in tuples."""
        values = (getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]
        listed = (value if isinstance(value, tuple) else (value,) for value in values)
        return tuple(part for several in listed for part in several if isinstance(part, Part))

    def resolve(self, columns: int) -> Self:
        """This part with every "auto" in it replaced by its value for `columns` features."""
        changes: dict[str, Any] = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Part):
                changes[name] = value.resolve(columns)
            elif isinstance(value, tuple):
                changes[name] = tuple(one.resolve(columns) if isinstance(one, Part) else one for one in value)
        return self.replace(**changes) if changes else self

    def twin_fields(self, run: Any, draws: Mapping[Any, Any]) -> dict[str, Any]:
        """The arguments of its C++ counterpart (twin): its fields, or for a map what it drew for the run."""
        return self.get_params(deep=False)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({values})"

    # -- the protocol scikit-learn uses for nested parameters: kernel__gamma and the like

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The fields by name; `deep` adds the fields of nested parts, as `field__subfield`."""
        params = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        if deep:
            for name, value in list(params.items()):
                if isinstance(value, Part):
                    params |= {f"{name}__{sub}": v for sub, v in value.get_params().items()}
        return params

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed; `inner__field=value` changes a field of a nested part."""
        flat: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            head, _, rest = name.partition("__")
            if head not in self.get_params(deep=False):
                raise ValueError(f"{type(self).__name__} has no field {head!r}; it has {list(self.get_params(False))}")
            if rest:
                nested.setdefault(head, {})[rest] = value
            else:
                flat[head] = value
        for head, inner in nested.items():
            flat[head] = flat.get(head, getattr(self, head)).replace(**inner)
        return replace(self, **flat)  # type: ignore[type-var]

    def __sklearn_clone__(self) -> Self:
        return self  # immutable: no copy is needed

    # -- plain data

    def config(self) -> dict[str, Any]:
        """This part as plain JSON data; `Part.from_config` is the inverse."""
        return {"part": type(self).__name__} | {k: to_plain(v) for k, v in self.get_params(deep=False).items()}

    @staticmethod
    def from_config(data: Mapping[str, Any]) -> Part:
        """The part that `config` described; the module that defines its class must have been imported."""
        name = data["part"]
        if name not in Part.known:
            raise ValueError(f"unknown part {name!r}: import the module that defines it before loading")
        return Part.known[name](**{k: from_plain(v) for k, v in data.items() if k != "part"})

    # -- declared constraints, used in __post_init__: `Gaussian.gamma must be > 0, got -1.0`

    def _require(self, field: str, ok: bool, wanted: str) -> None:
        if not ok:
            raise Refused(type(self).__name__, field, wanted, getattr(self, field))

    def _positive(self, *names: str) -> None:
        for name in names:
            self._require(name, is_number(getattr(self, name)) and getattr(self, name) > 0, "> 0")

    def _nonnegative(self, *names: str) -> None:
        for name in names:
            self._require(name, is_number(getattr(self, name)) and getattr(self, name) >= 0, ">= 0")

    def _finite(self, *names: str) -> None:
        for name in names:
            self._require(
                name, is_number(getattr(self, name)) and math.isfinite(getattr(self, name)), "a finite number"
            )

    def _integer(self, name: str, least: int, most: int = 2**31 - 1) -> None:
        value = getattr(self, name)
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        self._require(name, whole and least <= value, f"an integer >= {least}")
        self._require(name, value <= most, f"<= {most}")

    def _boolean(self, *names: str) -> None:
        for name in names:
            self._require(name, type(getattr(self, name)).__name__ in ("bool", "bool_"), "True or False")

    def _one_of(self, name: str, *allowed: Any) -> None:
        value = getattr(self, name)
        known = any(type(value) is type(choice) and value == choice for choice in allowed)
        self._require(name, known, "one of " + ", ".join(map(repr, allowed)))


def refuse_ignored(owner: Any, where: str, *names: str) -> None:
    """Raise Refused if a field without effect is set: `PassiveAggressive.C must be left at 1.0 with variant="hard"`."""
    defaults = {f.name: f.default for f in fields(owner)}
    for name in names:
        value = getattr(owner, name)
        if value != defaults[name]:
            raise Refused(type(owner).__name__, name, f"left at {defaults[name]!r} with {where}", value)


def is_number(value: Any) -> bool:
    """Is the value a real number other than NaN that fits into a float? (Booleans are not numbers.)"""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)
    except OverflowError:
        return False


def to_plain(value: Any) -> Any:
    """A field's value as JSON data: parts become tagged dictionaries, infinities strings."""
    if isinstance(value, Part):
        return value.config()
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value) if math.isfinite(value) else {"number": str(float(value))}
    if value is None or isinstance(value, (str, bool)):
        return value
    if type(value).__name__ in ("bool", "bool_"):  # NumPy's
        return bool(value)
    raise TypeError(
        f"cannot store {value!r} of type {type(value).__name__} in a model file; use plain values and parts"
    )


def from_plain(value: Any) -> Any:
    """The inverse of `to_plain` (a list comes back as a tuple)."""
    if isinstance(value, Mapping):
        return float(value["number"]) if "number" in value else Part.from_config(value)
    if isinstance(value, list):
        return tuple(from_plain(v) for v in value)
    return value
