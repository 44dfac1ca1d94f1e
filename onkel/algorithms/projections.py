"""Learners that project: mistakes near the span of what is stored go to what is stored."""

from __future__ import annotations

from typing import ClassVar

from onkel.algorithms.perceptrons import ORABONA
from onkel.estimator import Parts, Variants
from onkel.faces import Classifier, Regressor
from onkel.hypothesis import Expansion
from onkel.kernels import Kernel
from onkel.losses import EpsilonInsensitive, Hinge, Mistake
from onkel.projections import Project, Refit
from onkel.updates import PassiveAggressive, Perceptron

__all__ = [
    "BPAClassifier",
    "ProjectronClassifier",
    "ProjectronPlusPlusClassifier",
    "ProjectronRegressor",
]

WANG = "Wang, Vucetic: Online passive-aggressive algorithms on a budget. AISTATS, 2010"


class ProjectronClassifier(Classifier):
    """Projectron: a mistake becomes a new term, unless the terms there are can express it nearly or the budget is full.

    On a mistake, with d = K^-1 k(x) and delta the distance of k(x, .) to the span of the terms:
    f <- f + y sum_i d_i k(x_i, .) if delta <= tolerance or there are `budget` terms, else f <- f + y k(x, .)

    Composition: Learner(Expansion(kernel, Project(budget, tolerance, squared)), Mistake(strict_sign), Perceptron())

    Parameters
    ----------
    budget : B, largest number of terms; None: no limit but the tolerance
    tolerance : eta in the paper, a distance >= 0
    squared : compare the squared distance, as the authors' library does
    strict_sign_update : a score of 0 for a positive example is no mistake, as in some released programs
    kernel, average, random_state, n_jobs : see Estimator

    References
    ----------
    orabona2009bounded: Orabona, Keshet, Caputo, JMLR 10, 2009
    """

    budget: int | None = None
    tolerance: float = 0.0
    squared: bool = False
    strict_sign_update: bool = False
    words: ClassVar[dict[str, str]] = {"Mistake.strict_sign": "strict_sign_update"}
    paper: ClassVar[str] = ORABONA
    cost: ClassVar[str] = "B d (+ B^2)"

    def parts(self, kernel: Kernel) -> Parts:
        budget = Project(self.budget, self.tolerance, self.squared)
        return Expansion(kernel, budget), Mistake(strict_sign=self.strict_sign_update), Perceptron()


class ProjectronRegressor(Regressor):
    """Projectron for regression, an extension: examples outside the tube take the place of mistakes.

    If |y - f(x)| > epsilon: the step eta sgn(y - f(x)) k(x, .), projected as in ProjectronClassifier

    Composition: Learner(Expansion(kernel, Project(budget, tolerance, squared)), EpsilonInsensitive(epsilon),
    Perceptron(eta))

    Parameters
    ----------
    budget, tolerance, squared : as for ProjectronClassifier
    eta : step, > 0
    epsilon : half width of the tube, >= 0
    kernel, average, random_state, n_jobs : see Estimator

    References
    ----------
    orabona2009bounded: Orabona, Keshet, Caputo, JMLR 10, 2009
    """

    budget: int | None = None
    tolerance: float = 0.0
    squared: bool = False
    eta: float = 0.2
    epsilon: float = 0.1
    paper: ClassVar[str] = ORABONA
    cost: ClassVar[str] = "B d (+ B^2)"

    def parts(self, kernel: Kernel) -> Parts:
        budget = Project(self.budget, self.tolerance, self.squared)
        return Expansion(kernel, budget), EpsilonInsensitive(self.epsilon), Perceptron(self.eta)


class ProjectronPlusPlusClassifier(Classifier):
    """Projectron++: Projectron, and projected steps also where the answer is right but the margin small.

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
    kernel, average, random_state, n_jobs : see Estimator

    References
    ----------
    orabona2009bounded: Orabona, Keshet, Caputo, JMLR 10, 2009 ("jmlr") and ICML, 2008 ("icml")
    """

    budget: int | None = 100
    tolerance: float = 0.0
    squared: bool = False
    rule: str = "icml"
    U: float | None = None
    strict_sign_update: bool = False
    words: ClassVar[dict[str, str]] = {"Project.strict_sign": "strict_sign_update"}
    paper: ClassVar[str] = ORABONA
    aliases: ClassVar[tuple[str, ...]] = ("Projectron++",)
    cost: ClassVar[str] = "B d (+ B^2)"

    def parts(self, kernel: Kernel) -> Parts:
        rule = self._choice("rule", icml="icml", jmlr="jmlr")
        budget = Project(self.budget, self.tolerance, self.squared, rule, self.U, self.strict_sign_update)
        return Expansion(kernel, budget), Hinge(), Perceptron()


class BPAClassifier(Classifier):
    """Passive-aggressive on a budget: when full, the new term takes the place of one that others can express.

    l = max(0, 1 - y f(x));  f <- f + tau y k(x, .), tau = min(C, l / k(x, x));
    when full, term r leaves and its projection on terms V stays, for the r of the least |a_r|^2 |residual_r|^2,
    with V the new term ("simple"), that and the nearest to r ("nearest") or all others ("projecting");
    "plain": r leaves as it is, for the least |f^r - f|^2 / 2 + C l(f^r)
    Several classes: as in PAClassifier.

    Composition: Learner(Expansion(kernel, Refit(budget, variant, C)), Hinge(), PassiveAggressive("I", C))

    Parameters
    ----------
    budget : B, largest number of terms
    variant : "simple" (BPA-S), "nearest" (BPA-NN), "projecting" (BPA-P), or "plain", without any projection
    C : aggressiveness, > 0
    kernel, average, random_state, n_jobs : see Estimator

    References
    ----------
    wang2010online: Wang, Vucetic, AISTATS, 2010; "plain" as in Lu's thesis, 2.4.1. Several classes: extension
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

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Refit(self.budget, self.variant, self.C)), Hinge(), PassiveAggressive("I", self.C)
