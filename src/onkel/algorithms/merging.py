"""Learners with twin vectors: stored points that stand for several examples."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from onkel.budgets import TwinVectors
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Parts, Settings
from onkel.faces.one_kernel import OneKernel
from onkel.hypotheses import Expansion
from onkel.kernels import Kernel
from onkel.losses import Hinge
from onkel.updates import Defer

__all__ = ["TVMClassifier"]

TWINS = "Wang, Vucetic: Twin vector machines for online learning on a budget. SDM, 2009"


class TVMClassifier(OneKernel, Classifier):
    """Twin vector machine: an SVM on a budget of points, each of which stands for the examples merged into it.

    If |f(x)| <= admit, x becomes a point; over budget a point with |f| > drop is removed or the nearest two merge;
    f <- argmin |f|^2 / 2 + C sum_i (s+_i max(0, 1 - f(x_i)) + s-_i max(0, 1 + f(x_i))), s counting examples by label

    Composition: Learner(Expansion(kernel, TwinVectors(budget, C, admit, drop, bias, precision, by_margin)), Hinge(),
    Defer())

    Two classes only. A sample weight is the count of its example.

    Parameters
    ----------
    budget : B, largest number of points
    C : weight of an example's loss, > 0
    admit : m1; should exceed 1, else f may stop changing (see TwinVectors)
    drop : m2, >= admit
    bias : add a constant to f; it is not regularised
    precision : largest violation of the optimality conditions, > 0
    by_margin : ignore an example if y f(x) > admit instead of |f(x)| > admit, an extension that cannot stop changing
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    wang2009twin: Wang, Vucetic, SDM, 2009

    Examples
    --------
    >>> from onkel import TVMClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = TVMClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9, model.n_support_ <= 50
    (True, True)
    """

    budget: int = 100
    C: float = 1.0
    admit: float = 1.5
    drop: float = 2.0
    bias: bool = True
    precision: float = 1e-3
    by_margin: bool = False
    paper: ClassVar[str] = TWINS
    aliases: ClassVar[tuple[str, ...]] = ("twin vector machine",)
    cost: ClassVar[str] = "B d (+ B^2)"
    two_classes: ClassVar[bool] = True
    examples: ClassVar[Settings] = (
        {"budget": 15, "C": 2.0},
        {"budget": 15, "C": 10.0, "admit": 1.05, "drop": 1.1, "precision": 1e-11},
        {"budget": 15, "C": 10.0, "admit": 1.05, "drop": 1.1, "precision": 1e-11, "bias": False},
        {"budget": 15, "C": 30.0, "admit": 1.05, "drop": 1.1, "precision": 1e-11, "by_margin": True},
    )

    def parts(self, kernel: Kernel) -> Parts:
        budget = TwinVectors(self.budget, self.C, self.admit, self.drop, self.bias, self.precision, self.by_margin)
        return Expansion(kernel, budget), Hinge(), Defer()

    @property
    def intercept_(self) -> Any:
        """The constant (1,) in the function that `predict` uses."""
        found = self._fitted().engine.intercept()
        return np.zeros(1) if found is None else found
