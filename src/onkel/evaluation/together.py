"""Several models over the same examples: those with the same explicit features have them computed once.

What each of them learns is, bit for bit, what it would have learned alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from onkel.faces.estimator import Array, Estimator
from onkel.native import NativeLearner, learn_together


def families(models: Iterable[Any], X: Any, y: Any, classes: Any = None) -> list[list[int]]:
    """The indices of models with the same features, group by group; fresh models are begun with the first example."""
    found: dict[Any, list[int]] = {}
    for number, model in enumerate(models):
        kind: Any = None
        if isinstance(model, Estimator):
            model.begin(X[:1], y[:1], classes)
            learned = model._fitted()
            if isinstance(learned.engine, NativeLearner) and learned.columns.fixed is None:
                kind = learned.engine.family
        found.setdefault((number,) if kind is None else (type(model), *kind), []).append(number)
    return list(found.values())


def learn(family: Sequence[Estimator], X: Any, y: Any, classes: Any = None) -> list[Array | None]:
    """The scores that each model of a family made before each update; None for one that diverged."""
    _, X, target, _ = family[0]._ready(X, y, classes, None)
    said = learn_together([cast(NativeLearner, model._fitted().engine) for model in family], X, target)
    used = [both and both[1 if model._fitted().average else 0] for model, both in zip(family, said, strict=True)]
    return [scores if scores is None or scores.shape[1] > 1 else scores[:, 0] for scores in used]
