"""Hypotheses: the function that is learned, how it is stored and how it scores."""

from onkel.hypotheses.base import Function, Hypothesis, Stored
from onkel.hypotheses.dual import Dual
from onkel.hypotheses.expansion import Expansion, Unlimited
from onkel.hypotheses.features import Features
from onkel.hypotheses.grouped import DualNorm, DualStep, GroupedExpansion, Grouping, Proximal
from onkel.hypotheses.terms import Budget, Terms

__all__ = [
    "Budget",
    "Dual",
    "DualNorm",
    "DualStep",
    "Expansion",
    "Features",
    "Function",
    "GroupedExpansion",
    "Grouping",
    "Hypothesis",
    "Proximal",
    "Stored",
    "Terms",
    "Unlimited",
]
