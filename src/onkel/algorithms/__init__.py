"""The algorithms, one file per family, and the catalogue of them.

Every module of this package is imported, and every estimator that names its paper is listed: an algorithm
joins by existing. `load` is offered here because a file names its algorithm: from here on all of them are known.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from onkel.faces.estimator import Estimator
from onkel.faces.files import load

__all__ = ["Entry", "catalogue", "estimators", "find", "load"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

_ENDINGS = {"classification": "Classifier", "regression": "Regressor", "novelty detection": "Detector"}


@dataclass(frozen=True)
class Entry:
    """One algorithm of the catalogue, or a variant of it that has a name of its own."""

    name: str
    classes: dict[str, type[Estimator]]  # "classification", "regression" or "novelty detection" -> estimator
    aliases: tuple[str, ...]
    paper: str
    cost: str
    variant: str = ""

    @property
    def title(self) -> str:
        """The name of the variant, or of the algorithm."""
        return self.variant or self.name

    @property
    def settings(self) -> dict[str, Any]:
        """What makes it this variant."""
        return dict(self.variants[self.variant]) if self.variant else {}

    @property
    def variants(self) -> dict[str, Mapping[str, Any]]:
        """Names in the papers that also say a setting, and which."""
        return {name: settings for cls in self.classes.values() for name, settings in cls.variants.items()}

    @property
    def tasks(self) -> tuple[str, ...]:
        """What it can do: "classification", "regression", "novelty detection"."""
        return tuple(self.classes)

    @property
    def online(self) -> bool:
        """Does it learn from a stream?"""
        return all(cls.online for cls in self.classes.values())

    @property
    def parameters(self) -> dict[str, Any]:
        """Hyper-parameters and their defaults, over all tasks."""
        return {name: value for cls in self.classes.values() for name, value in cls().get_params(deep=False).items()}


def estimators() -> dict[str, type[Estimator]]:
    """Every estimator of the library by name."""
    return {name: cls for name, cls in sorted(Estimator.registry.items()) if cls.__module__.startswith(__name__)}


def catalogue() -> list[Entry]:
    """Every algorithm: its estimators, its names in the papers, its reference and its cost per round.

    Examples
    --------
    >>> import onkel
    >>> entries = {entry.name: entry for entry in onkel.catalogue()}
    >>> entries["NORMA"].tasks, entries["NORMA"].cost
    (('classification', 'regression', 'novelty detection'), 'n d')
    """
    found: dict[str, dict[str, type[Estimator]]] = {}
    for name, cls in Estimator.registry.items():
        if not _names_its_paper(cls):
            continue
        found.setdefault(name.removesuffix(_ENDINGS[cls.task]), {})[cls.task] = cls
    entries = []
    for name, classes in sorted(found.items()):
        kinds = list(classes.values())
        aliases = tuple(dict.fromkeys(alias for cls in kinds for alias in cls.aliases))
        entries.append(Entry(name, classes, aliases, kinds[0].paper, kinds[0].cost))
    return entries


def _names_its_paper(cls: type[Estimator]) -> bool:
    """Is it an algorithm of a paper? A subclass of a known estimator is one only if it names a paper itself."""
    names = [base for base in cls.__mro__ if "paper" in vars(base)]
    parent = next((base for base in cls.__mro__[1:] if base in Estimator.registry.values()), None)
    return bool(cls.paper) and (parent is None or not issubclass(parent, names[0]))


def find(name: str) -> Entry:
    """The algorithm or variant with that name or alias, whatever the case and the hyphens."""
    wanted = _letters(name)
    for entry in catalogue():
        names = {entry.name, *entry.aliases, *(cls.__name__ for cls in entry.classes.values())}
        if wanted in map(_letters, names):
            return entry
        for variant in entry.variants:
            if wanted == _letters(variant):
                classes = {task: cls for task, cls in entry.classes.items() if variant in cls.variants}
                return replace(entry, classes=classes, variant=variant)
    known = [entry.name for entry in catalogue()]
    spelt = {other.lower(): other for entry in catalogue() for other in (*entry.aliases, *entry.variants, entry.name)}
    near = difflib.get_close_matches(name.lower(), spelt, n=1)
    meant = f"did you mean {spelt[near[0]]}? " if near else ""
    raise ValueError(f"no algorithm is called {name!r}; {meant}known are {', '.join(known)}")


def _letters(name: str) -> str:
    return name.lower().replace("-", "")
