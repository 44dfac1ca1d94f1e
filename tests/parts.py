"""The parts of the library, found by discovery and tried by the examples they declare."""

import onkel
from onkel.budgets import Budget
from onkel.core.part import Part
from onkel.hypotheses import Dual, Expansion, Features
from onkel.kernels import Gaussian
from onkel.learners.learner import Learner
from onkel.maps import Map

onkel.algorithms.estimators()  # every module that defines parts is imported
OURS = [cls for cls in Part.known.values() if cls.__module__.startswith("onkel.")]
BASES = {base for cls in OURS for base in cls.__mro__[1:]}


def kinds(base=Part):
    """Every part of a kind: classes from which no other derives, or which state examples of their own."""
    return [cls for cls in OURS if issubclass(cls, base) and (cls not in BASES or "examples" in vars(cls))]


def examples(base=Part):
    """Of every part of a kind."""
    return [example for cls in kinds(base) for example in cls.examples()]


def one_each(parts):
    """The first of every class."""
    first = {}
    for part in parts:
        first.setdefault(type(part), part)
    return [*first.values()]


def hypotheses(kernel=Gaussian(1.0)):  # noqa: B008
    """One with each budget, one with a kernel for which k(x, x) is not 1, one with each map, and both."""
    expansions = [*(Expansion(kernel, budget) for budget in examples(Budget)), Expansion(kernel + 1)]
    return [*expansions, *map(Features, examples(Map)), *examples(Dual)]


def composes(hypothesis, loss, update, outputs=1):
    """May the three be composed?"""
    try:
        Learner(hypothesis, loss, update, outputs=outputs)
    except ValueError:
        return False
    return True
