"""Several models over the same examples: those with the same explicit features have them computed once.

What each of them learns is what it would have learned alone, bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from onkel.estimator import Array
from onkel.faces import Supervised
from onkel.native import NativeLearner, learn_together


def families(models: Iterable[Any], X: Any, y: Any, classes: Any = None) -> list[list[int]]:
    """Which models have the same features, by their numbers; those that have not begun do so on these examples."""
    found: dict[Any, list[int]] = {}
    for number, model in enumerate(models):
        kind: Any = None
        if isinstance(model, Supervised):
            if not model._started:
                model._ready(X[:1], y[:1], classes, None)
            if isinstance(model._learner, NativeLearner) and not hasattr(model, "feature_names_in_"):
                kind = model._learner.family
        found.setdefault((number,) if kind is None else (type(model), *kind), []).append(number)
    return list(found.values())


def learn(family: Sequence[Supervised], X: Any, y: Any, classes: Any = None) -> list[Array | None]:
    """The scores that each model of a family made before each update; None for one that diverged."""
    X, target, _ = family[0]._ready(X, y, classes, None)
    said = learn_together([model._learner for model in family], X, target)
    return [None if both is None else model._used(both) for model, both in zip(family, said, strict=True)]
