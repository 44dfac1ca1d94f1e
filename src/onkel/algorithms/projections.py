"""Learners that project: a step near the span of the terms changes their coefficients, and no term is added."""

from __future__ import annotations

from typing import ClassVar

from onkel.algorithms.perceptrons import ORABONA, StepOnMistake, StepOutsideTube
from onkel.budgets import Project, Refit
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Parts, Settings, Variants
from onkel.faces.one_kernel import OneKernel
from onkel.hypotheses import Expansion
from onkel.kernels import Kernel
from onkel.losses import Hinge
from onkel.updates import PassiveAggressive, Perceptron

__all__ = [
    "BPAClassifier",
    "ProjectronClassifier",
    "ProjectronPlusPlusClassifier",
    "ProjectronRegressor",
]

WANG = "Wang, Vucetic: Online passive-aggressive algorithms on a budget. AISTATS, 2010"


class _Projectron(OneKernel):
    """Steps are projected on the span of the terms if it is near, or if the budget is full."""

    budget: int | None = None
    tolerance: float = 0.0
    squared: bool = False
    paper: ClassVar[str] = ORABONA
    cost: ClassVar[str] = "B d (+ B^2)"

    def budget_part(self) -> Project:
        """How the new term enters."""
        return Project(self.budget, self.tolerance, self.squared)


class ProjectronClassifier(_Projectron, StepOnMistake):
    """Projectron: a mistake becomes a new term, or is projected on the terms if near their span or over budget.

    On a mistake, with d = K^-1 k(x) and delta the distance of k(x, .) to the span of the terms:
    f <- f + y sum_i d_i k(x_i, .) if delta <= tolerance or there are `budget` terms, else f <- f + y k(x, .)

    Composition: Learner(Expansion(kernel, Project(budget, tolerance, squared)), Mistake(strict_sign), Perceptron())

    Parameters
    ----------
    budget : B, largest number of terms; None: no limit but the tolerance
    tolerance : eta in the paper, a distance >= 0
    squared : compare the squared distance, as the authors' library does
    strict_sign_update : a score of 0 for a positive example is no mistake, as in some authors' programs
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    orabona2009bounded: Orabona, Keshet, Caputo, JMLR 10, 2009

    Examples
    --------
    >>> from onkel import ProjectronClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = ProjectronClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    examples: ClassVar[Settings] = (
        {"budget": 15},
        {"tolerance": 0.6},
        {"tolerance": 0.4, "squared": True},
        {"budget": 15, "tolerance": 0.5, "strict_sign_update": True},
    )


class ProjectronRegressor(_Projectron, StepOutsideTube):
    """Projectron for regression, an extension: examples outside the tube take the place of mistakes.

    If |y - f(x)| > epsilon: the step eta sgn(y - f(x)) k(x, .), projected as in ProjectronClassifier

    Composition: Learner(Expansion(kernel, Project(budget, tolerance, squared)), EpsilonInsensitive(epsilon),
    Perceptron(eta))

    Parameters
    ----------
    budget, tolerance, squared : as for ProjectronClassifier
    eta : step, > 0
    epsilon : half width of the tube, >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    orabona2009bounded: Orabona, Keshet, Caputo, JMLR 10, 2009

    Examples
    --------
    >>> from onkel import ProjectronRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = ProjectronRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.45
    True
    """

    examples: ClassVar[Settings] = (
        {"budget": 15, "eta": 0.3, "epsilon": 0.2},
        {"eta": 0.3, "epsilon": 0.2, "tolerance": 0.6},
        {"eta": 0.3, "epsilon": 0.2, "budget": 40, "tolerance": 0.2, "squared": True},
    )


class ProjectronPlusPlusClassifier(_Projectron, Classifier):
    """Projectron++: Projectron, with projected steps also where the prediction is right but the margin small.

    On a margin error, 0 < l < 1 with p = k(x, x) - delta^2: f <- f + tau y sum_i d_i k(x_i, .),
    "icml": tau = min(l / p, 1) if 2 l - tau p - 2 U delta >= 0;
    "jmlr": tau = min(l / p, 2 (l - delta / tolerance) / p, 1) if l > delta / tolerance

    Composition: Learner(Expansion(kernel, Project(budget, tolerance, squared, rule, U, strict_sign)), Hinge(),
    Perceptron())

    Parameters
    ----------
    budget, tolerance, squared, strict_sign_update : as for ProjectronClassifier
    rule : "icml" (needs U or a budget) or "jmlr" (needs a tolerance > 0)
    U : None: 1/4 sqrt((B + 1) / ln(B + 1)) with the budget B
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    orabona2009bounded: Orabona, Keshet, Caputo, JMLR 10, 2009 ("jmlr") and ICML, 2008 ("icml")

    Examples
    --------
    >>> from onkel import ProjectronPlusPlusClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = ProjectronPlusPlusClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    budget: int | None = 100
    rule: str = "icml"
    U: float | None = None
    strict_sign_update: bool = False
    aliases: ClassVar[tuple[str, ...]] = ("Projectron++",)
    examples: ClassVar[Settings] = (
        {"budget": 15},
        {"budget": 15, "U": 0.2},
        {"budget": None, "tolerance": 0.6, "rule": "jmlr"},
        {"budget": 40, "tolerance": 0.4, "squared": True, "strict_sign_update": True},
    )

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, self.budget_part()), Hinge(), Perceptron()

    def budget_part(self) -> Project:
        rule = self._choice("rule", icml="icml", jmlr="jmlr")
        return super().budget_part().replace(rule=rule, U=self.U, strict_sign=self.strict_sign_update)


class BPAClassifier(OneKernel, Classifier):
    """Passive-aggressive on a budget: when full, the new term replaces an old one, which is projected on others.

    l = max(0, 1 - y f(x));  f <- f + tau y k(x, .), tau = min(C, l / k(x, x));
    when full, term r is replaced by its projection on terms V, for the r of the least |a_r|^2 |residual_r|^2;
    V is the new term ("simple"), the new term and the one nearest to r ("nearest") or all others ("projecting");
    "plain": r is removed without projection, for the least |f^r - f|^2 / 2 + C l(f^r)
    Several classes: as in PAClassifier.

    Composition: Learner(Expansion(kernel, Refit(budget, variant, C)), Hinge(), PassiveAggressive("I", C))

    Parameters
    ----------
    budget : B, largest number of terms
    variant : "simple" (BPA-S), "nearest" (BPA-NN), "projecting" (BPA-P), or "plain", without any projection
    C : aggressiveness, > 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    wang2010online: Wang, Vucetic, AISTATS, 2010; "plain" as in Lu's thesis, 2.4.1. Several classes: extension

    Examples
    --------
    >>> from onkel import BPAClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = BPAClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9, model.n_support_ <= 50
    (True, True)
    """

    budget: int = 100
    variant: str = "simple"
    C: float = 1.0
    paper: ClassVar[str] = WANG
    variants: ClassVar[Variants] = {
        "BPA-S": {"variant": "simple"},
        "BPA-NN": {"variant": "nearest"},
        "BPA-P": {"variant": "projecting"},
    }
    cost: ClassVar[str] = "B d (+ B^2)"
    examples: ClassVar[Settings] = (
        {"budget": 15, "C": 0.4, "variant": "simple"},
        {"budget": 15, "C": 0.4, "variant": "nearest"},
        {"budget": 15, "C": 0.4, "variant": "projecting"},
        {"budget": 15, "C": 0.4, "variant": "plain"},
    )

    def parts(self, kernel: Kernel) -> Parts:
        budget = Refit(self.budget, self.variant)
        if self.variant == "plain":
            budget = budget.replace(C=self.C)
        return Expansion(kernel, budget), Hinge(), PassiveAggressive("I", self.C)
