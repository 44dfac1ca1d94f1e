"""Hypotheses: the function that is learned, how it is stored and how it scores."""

from onkel.hypotheses.base import Function, Hypothesis, Stored
from onkel.hypotheses.dual import Dual
from onkel.hypotheses.expansion import Expansion, Unlimited
from onkel.hypotheses.features import Features
from onkel.hypotheses.grouped import GroupedExpansion
from onkel.hypotheses.terms import Budget, Terms

__all__ = [
    "Budget",
    "Dual",
    "Expansion",
    "Features",
    "Function",
    "GroupedExpansion",
    "Hypothesis",
    "Stored",
    "Terms",
    "Unlimited",
]
