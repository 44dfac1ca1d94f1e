"""Part: an immutable value with named fields, from which every learner is composed.

Kernels, losses, updates and budgets are parts. A part is frozen, compares by value, prints as the
expression that makes it, and crosses files as plain data (`config`), never as code. What a part learns
during a run is not stored in it but in the learner's memory, so one part may serve many learners.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self, dataclass_transform


@dataclass_transform(frozen_default=True)
class Part:
    """Base of all parts: a subclass states its fields, and is frozen and known by name from then on."""

    known: ClassVar[dict[str, type[Part]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(frozen=True)(cls)
        taken = Part.known.get(cls.__name__)
        if taken is not None and taken.__module__ != cls.__module__:  # files know parts by name alone
            raise TypeError(f"there is a part called {cls.__name__} in {taken.__module__}: choose another name")
        Part.known[cls.__name__] = cls

    # -- the protocol scikit-learn uses for nested parameters: kernel__gamma and the like

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The fields by name; `deep` adds those of parts inside, as `field__subfield`."""
        params = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        if deep:
            for name, value in list(params.items()):
                if isinstance(value, Part):
                    params |= {f"{name}__{sub}": v for sub, v in value.get_params().items()}
        return params

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed; `inner__field=value` changes a part inside."""
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
        return self  # immutable: a clone is the thing itself

    # -- plain data

    def config(self) -> dict[str, Any]:
        """This part as plain JSON data; `Part.from_config` is the inverse."""
        return {"part": type(self).__name__} | {k: to_plain(v) for k, v in self.get_params(deep=False).items()}

    @staticmethod
    def from_config(data: Mapping[str, Any]) -> Part:
        """The part that `config` described; only parts that are already imported can be named."""
        name = data["part"]
        if name not in Part.known:
            raise ValueError(f"unknown part {name!r}: import the module that defines it before loading")
        return Part.known[name](**{k: from_plain(v) for k, v in data.items() if k != "part"})

    # -- declared constraints, used in __post_init__: `Gaussian.gamma must be > 0, got -1.0`

    def _require(self, field: str, ok: bool, wanted: str) -> None:
        if not ok:
            raise ValueError(f"{type(self).__name__}.{field} must be {wanted}, got {getattr(self, field)!r}")

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


def is_number(value: Any) -> bool:
    """A real number other than NaN that a float can hold (booleans are not numbers)."""
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
