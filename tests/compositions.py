"""Compositions in which a part shows what it does, on short streams.

Whether a field matters is seen by changing it alone, to a value that another example of its class has: then the scores
of some composition must change, or all those compositions are refused.
"""

import dataclasses
from contextlib import suppress
from functools import cache
from itertools import product

import numpy as np
from parts import examples, kinds
from streams import KERNELS, binary, regression

import onkel
from onkel.budgets import Budget, Unlimited
from onkel.core.errors import Diverged
from onkel.core.part import Part
from onkel.hypotheses import Expansion, Features, GroupedExpansion, Hypothesis
from onkel.hypotheses.grouped import Grouping
from onkel.kernels import Gaussian, Kernel, Polynomial
from onkel.learners.hedge import Hedge
from onkel.learners.learner import Learner
from onkel.learners.weighting import ByMistakes, Weighting
from onkel.losses import EpsilonInsensitive, Hinge, Logistic, Loss, Mistake, Squared
from onkel.maps import Map
from onkel.updates import Gradient, SampledPassiveAggressive, Update

ROUNDS = 80
STREAMS = {"classification": binary(ROUNDS), "regression": regression(ROUNDS)}
UNEVEN = KERNELS["uneven"]
WEIGHTS = [1.0, 10.0]  # of the rows: usual steps, and large ones
WIDTHS = [UNEVEN, Gaussian(1.0), Gaussian(5.0)]  # k(x, x) varies; rows are alike; they are not
LOSSES = [Hinge(), EpsilonInsensitive(), Logistic(), Squared(), Mistake()]
FAMILIES = (Kernel, Loss, Update, Budget, Map, Grouping)
GROUP = (Gaussian(0.3), Polynomial(2, 0.5), Gaussian(2.0))


def fields(cls):
    """The names of its fields."""
    return [field.name for field in dataclasses.fields(cls)]


@cache
def values(cls, field):
    """The values that its examples have in that field; a part inside may be any of its family."""
    found = []
    for part in (*cls.examples(), *defaults(cls)):
        value = getattr(part, field)
        family = next((family for family in FAMILIES if isinstance(value, family)), None)
        for each in (value, *(kind.examples()[0] for kind in (kinds(family) if family else ()))):
            if each not in found:
                found.append(each)
    return found


@cache
def changed(part, field):
    """The part with other values in that field, but for those it refuses."""
    found = []
    for value in values(type(part), field):
        if value != getattr(part, field):
            with suppress(ValueError):
                found.append(part.replace(**{field: value}))
    return found


def defaults(cls):
    """The part with its default fields, if it has one for each."""
    try:
        return [cls()]
    except (TypeError, ValueError):
        return []


# -- what a part is combined with


def around(budget):
    """Hypotheses with that budget."""
    return [Expansion(kernel, budget) for kernel in WIDTHS]


@cache
def hypotheses():
    """Hypotheses for updates to move."""
    on_budgets = [hypothesis for budget in examples(Budget) for hypothesis in around(budget)[:2]]
    return [*on_budgets, *map(Features, examples(Map)), *examples(Hypothesis), *map(grouped, examples(Grouping))]


def grouped(grouping):
    return GroupedExpansion(GROUP, grouping)


def compositions(part):
    """Everything it may be combined with."""
    updates, rates = examples(Update), [Gradient(0.2), Gradient(0.5)]
    if isinstance(part, Kernel):
        return product([Expansion(part, Unlimited())], LOSSES[:1], rates)
    if isinstance(part, Loss):
        return product(around(Unlimited()), [part], updates)
    if isinstance(part, Update):
        return product(hypotheses(), LOSSES, [part])
    if isinstance(part, Budget):
        return product(around(part), LOSSES, updates)
    if isinstance(part, Map):
        return product([Features(part)], LOSSES, rates)
    if isinstance(part, Grouping):
        return product([grouped(part)], LOSSES, rates)
    if isinstance(part, Hypothesis):
        return product([part], LOSSES, updates)
    return [(part,)]  # of a pool


@cache
def scores(weight, *parts):
    """The scores of a composition on its stream, as bytes; None if it is refused; how far it came if it diverges."""
    try:
        learner = pool(*parts) if len(parts) == 1 else composed(*parts)
    except ValueError:
        return None
    X, y = STREAMS["classification" if len(parts) == 1 else parts[1].task]
    try:
        return learner.learn(X, y, np.full(ROUNDS, weight))[0].tobytes()
    except Diverged:
        return learner.t


def composed(hypothesis, loss, update):
    return onkel.native.fastest(Learner(hypothesis, loss, update, columns=4, seed=3))


def pool(part):
    """A pool weighed or sampled by the part."""
    learners = [
        Learner(Expansion(kernel, Unlimited()), Hinge(), SampledPassiveAggressive(0.3, 1.0, 2.0), columns=4, seed=i)
        for i, kernel in enumerate(GROUP)
    ]
    how = {"weighting": part} if isinstance(part, Weighting) else {"weighting": ByMistakes(0.7), "sampling": part}
    return onkel.native.fastest(Hedge(learners, **how))


def with_part(composition, part, other):
    """The composition with another part in the place of one."""

    def put(value):
        if value == part:
            return other
        if not isinstance(value, Part) or part not in value.inner:
            return value
        return value.replace(**{field: put(getattr(value, field)) for field in fields(type(value))})

    return tuple(put(value) for value in composition)


def answer(part, field, found):
    """What a change of the field does to these compositions: "changed", "refused" by all, or "ignored" by some."""
    result, others = "refused", changed(part, field)
    for weight, composition in product(WEIGHTS, found) if others else ():
        before = scores(weight, *composition)
        for other in others if before is not None else ():
            after = scores(weight, *with_part(composition, part, other))
            if after is not None and after != before:
                return "changed"
            if after is not None:
                result = "ignored"
    return result
