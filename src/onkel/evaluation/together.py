"""Several models over the same examples: those with the same explicit features have them computed once.

What each of them learns is, bit for bit, what it would have learned alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from onkel.faces.estimator import Array, Estimator
from onkel.native import learn_together


def families(models: Iterable[Any], X: Any, y: Any, classes: Any = None) -> list[list[int]]:
    """The indices of the models, grouped: those of a group compute the same explicit features.

    Models that have learned nothing yet are prepared for rows like the first one.
    """
    found: dict[Any, list[int]] = {}
    for number, model in enumerate(models):
        begin = getattr(model, "begin", None)  # models of other libraries have none
        family = None if begin is None else begin(X[:1], y[:1], classes)._fitted().family
        found.setdefault((number,) if family is None else (type(model), family), []).append(number)
    return list(found.values())


def learn(family: Sequence[Estimator], X: Any, y: Any, classes: Any = None) -> list[Array | None]:
    """The scores that each model of a family made before each update; None for one that diverged."""
    _, X, target, _ = family[0]._ready(X, y, classes, None)
    said = learn_together([model._fitted().engine for model in family], X, target)
    used = [both and both[1 if model._fitted().average else 0] for model, both in zip(family, said, strict=True)]
    return [scores if scores is None or scores.shape[1] > 1 else scores[:, 0] for scores in used]
