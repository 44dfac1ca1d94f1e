"""Budgets: how a new term enters an expansion."""

from onkel.budgets.base import Bounded
from onkel.budgets.double_update import DoubleUpdate, DualAscent
from onkel.budgets.forgetting import Forget
from onkel.budgets.landmarks import Landmarks
from onkel.budgets.merging import Merge, TwinVectors
from onkel.budgets.projection import Project, ProjectSmallest, Refit
from onkel.budgets.pursuit import (
    AlmostLinearDependence,
    Coherence,
    Dissimilarity,
    InsertRemove,
    Novelty,
    Pursue,
    PursueTogether,
    Quantise,
    SelectSubset,
)
from onkel.budgets.removal import (
    RemoveOldest,
    RemoveRandom,
    RemoveSmallest,
    RemoveWeighted,
    ReplaceSmallest,
    Stop,
    Truncate,
)
from onkel.budgets.scored import RemoveByEvaluation, RemoveByMargin
from onkel.hypotheses.expansion import Unlimited
from onkel.hypotheses.terms import Budget

__all__ = [
    "AlmostLinearDependence",
    "Bounded",
    "Budget",
    "Coherence",
    "Dissimilarity",
    "DoubleUpdate",
    "DualAscent",
    "Forget",
    "InsertRemove",
    "Landmarks",
    "Merge",
    "Novelty",
    "Project",
    "ProjectSmallest",
    "Pursue",
    "PursueTogether",
    "Quantise",
    "Refit",
    "RemoveByEvaluation",
    "RemoveByMargin",
    "RemoveOldest",
    "RemoveRandom",
    "RemoveSmallest",
    "RemoveWeighted",
    "ReplaceSmallest",
    "SelectSubset",
    "Stop",
    "Truncate",
    "TwinVectors",
    "Unlimited",
]
