"""The algorithms that race (those that were named, or the line-up), and their settings."""

from __future__ import annotations

import argparse
from typing import Any

from onkel.algorithms import Entry, catalogue
from onkel.cli.models import algorithms
from onkel.cli.words import Problem
from onkel.datasets import Stream
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Estimator
from onkel.kernels import Gaussian

# The algorithms that race if none are named. Their settings were picked by hand on the demo streams, the same for
# all of them; they are reasonable where features, and the targets of regression, are of order one.
LINEUP: dict[str, dict[str, dict[str, Any]]] = {
    "classification": {
        "KernelPerceptron": {},
        "OGD": {"eta": 0.5},
        "PA": {"C": 1.0},
        "Pegasos": {"lam": 0.003},
        "NORMA": {"eta": 0.5, "lam": 0.001},
        "ILK": {"eta": 0.5, "lam": 0.001},
        "KLRSGD": {"eta": 2.0},
        "Stoptron": {},
        "BudgetPerceptron": {},
        "TighterPerceptron": {},
        "RBP": {},
        "Forgetron": {},
        "BOGD": {"eta": 0.5, "lam": 0.01},
        "BOGDPlusPlus": {"eta": 0.5, "lam": 0.01},
        "BSGD": {"lam": 0.001},
        "FOGD": {},
        "NOGD": {"eta": 1.0},
        "RRF": {"eta": 1.0, "eta_kernel": 0.003},
        "DualSGD": {"lam": 0.001},
        "BPA": {"variant": "nearest"},
        "AutoKernel": {},
    },
    "regression": {
        "KernelPerceptron": {"eta": 0.2},
        "OGD": {"eta": 0.2},
        "PA": {"C": 0.2},
        "NORMA": {"eta": 0.2, "lam": 0.001},
        "KLMS": {"eta": 0.2},
        "Stoptron": {"eta": 0.2},
        "RBP": {"eta": 0.2},
        "Forgetron": {"eta": 0.2},
        "BOGD": {"eta": 0.2, "lam": 0.001},
        "BOGDPlusPlus": {"eta": 0.05, "lam": 0.001},
        "FOGD": {},
        "NOGD": {"eta": 0.2},
        "RRF": {"eta": 0.1, "eta_kernel": 0.003},
        "DualSGD": {"lam": 0.3},
        "KRLS": {"nu": 0.1},
        "AutoKernel": {},
    },
}
# gamma of the Gaussian kernel, and the budget, for the streams of the demo.
GAMMAS = {"breast_cancer": 0.02, "digits": 0.25, "drift": 5.0, "diabetes": 0.05}
BUDGETS = {"breast_cancer": 30, "digits": 100, "drift": 100, "diabetes": 60}
BUDGET = 100


def chosen(names: list[str] | None) -> list[Entry]:
    """The algorithms that were asked for, or those of the line-up."""
    if names == ["all"]:
        return [entry for entry in catalogue() if entry.online]
    wanted = names or list(dict.fromkeys(name for line in LINEUP.values() for name in line))
    return algorithms(wanted)


def check(entries: list[Entry], streams: list[Stream], *, named: bool) -> None:
    """Raise an error for an algorithm that was named but can learn none of the streams."""
    for entry in entries:
        if not entry.online:
            raise Problem(f"{entry.name} learns from all rows at once and cannot race: leave it out")
        if not named or any(_face(entry, stream) for stream in streams):
            continue
        if not {stream.task for stream in streams} & set(entry.tasks):
            kinds = " or ".join(sorted({stream.task for stream in streams}))
            raise Problem(f"{entry.name} does {' and '.join(entry.tasks)}, not {kinds}; leave it out or say --task")
        raise Problem(f"{entry.name} knows two classes only, and {streams[0].name} has more: leave it out")


def _face(entry: Entry, stream: Stream) -> type[Estimator] | None:
    """The estimator for a stream; None if it cannot learn it."""
    face = entry.classes.get(stream.task)
    two = face is not None and issubclass(face, Classifier) and face.two_classes
    return None if two and stream.classes is not None and len(stream.classes) > 2 else face


def models(entries: list[Entry], stream: Stream, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fresh learners by name, with the settings of the line-up and those of the command line."""
    gamma = arguments.gamma or GAMMAS.get(stream.name)
    common: dict[str, Any] = {"random_state": arguments.seed}
    if gamma is not None:
        common["kernel"] = Gaussian(gamma)
    made = {}
    for entry in entries:
        face = _face(entry, stream)
        if face is None:
            continue
        known = face().get_params(deep=False)
        settings = {k: v for k, v in common.items() if k in known} | LINEUP[stream.task].get(entry.name, {})
        settings |= entry.settings
        if {"kernel", "budget"} <= known.keys():  # pools of kernels have their own
            settings["budget"] = arguments.budget or BUDGETS.get(stream.name, BUDGET)
        made[entry.title] = face(**settings)
    return made
