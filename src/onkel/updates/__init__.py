"""Updates: how much to shrink f, and how far to move against the gradient of the loss."""

from onkel.updates.adaptive import AdaGrad, AdaptiveThreshold, DistanceOverGradient
from onkel.updates.base import Round, Update, along
from onkel.updates.sampling import SampledGradient, SampledLogistic, SampledPassiveAggressive
from onkel.updates.steps import Defer, Gradient, Implicit, PassiveAggressive, Pegasos, Perceptron

__all__ = [
    "AdaGrad",
    "AdaptiveThreshold",
    "Defer",
    "DistanceOverGradient",
    "Gradient",
    "Implicit",
    "PassiveAggressive",
    "Pegasos",
    "Perceptron",
    "Round",
    "SampledGradient",
    "SampledLogistic",
    "SampledPassiveAggressive",
    "Update",
    "along",
]
