"""Double updates: each step maximises the dual of the SVM over two coefficients, a new and an old one."""

from __future__ import annotations

from typing import ClassVar

from onkel.budgets import DoubleUpdate, DualAscent
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Parts, Settings, Variants
from onkel.faces.one_kernel import OneKernel
from onkel.hypotheses import Expansion
from onkel.kernels import Kernel
from onkel.losses import Hinge
from onkel.updates import Defer

__all__ = [
    "BDUOLClassifier",
    "DUOLClassifier",
]


class DUOLClassifier(OneKernel, Classifier):
    """DUOL: a new term also changes the coefficient of the old term that contradicts it most. Two classes only.

    f = sum_i g_i y_i k(x_i, .), 0 <= g_i <= C. On a loss l = 1 - y f(x) > 0, with b the term of least
    w = y_b y k(x_b, x) among those whose own margin y_b f(x_b) is below 1, and l_b = 1 - y_b f(x_b): if w <= -rho,
    g and the change q of g_b maximise g l + q l_b - (k(x, x) g^2 + k(x_b, x_b) q^2 + 2 w g q) / 2 within their bounds;
    else g = min(C, l / k(x, x)). Then f <- f + g y k(x, .) + q y_b k(x_b, .)

    Composition: Learner(Expansion(kernel, DoubleUpdate(C, rho)), Hinge(), Defer())

    Parameters
    ----------
    C : largest weight of a term, > 0; times its sample weight
    rho : conflict from which on two terms move, >= 0; from 1 on (kernels with k <= 1) this is PA-I
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    zhao2011double: Zhao, Hoi, Jin: Double updating online learning. JMLR 12, 2011
    zhao2012bduol: Zhao, Hoi, ECML PKDD, 2012, equations (1) and (2)

    Examples
    --------
    >>> from onkel import DUOLClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = DUOLClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    C: float = 1.0
    rho: float = 0.0
    two_classes: ClassVar[bool] = True
    paper: ClassVar[str] = "Zhao, Hoi, Jin: Double updating online learning. JMLR 12, 2011"
    aliases: ClassVar[tuple[str, ...]] = ("Double Updating Online Learning",)
    cost: ClassVar[str] = "n d"
    examples: ClassVar[Settings] = ({"C": 0.4}, {"C": 2.0, "rho": 0.2})

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, DoubleUpdate(self.C, self.rho)), Hinge(), Defer()


class BDUOLClassifier(OneKernel, Classifier):
    """BDUOL: DUOL on a budget; when full, it removes the term whose removal costs the dual least. Two classes.

    On a loss, when full: f <- f - Df. Term j is removed, and its projection on other terms is added to them, with
    0 <= g_i <= C. "remove": no projection; "nearest": on the nearest term; "approximate": on all terms, then cut off at
    the bounds; "project": the best within the bounds. With Dg_i the decrease of g_i, j is the term of largest
    -sum_i Dg_i (1 - y_i f(x_i)) - |Df|^2 / 2. Then, if there is still a loss, the step of DUOL

    Composition: Learner(Expansion(kernel, DualAscent(budget, C, rho, maintenance, cheap)), Hinge(),
    Defer())

    Parameters
    ----------
    budget : B, largest number of terms
    C, rho : as for DUOLClassifier
    maintenance : "remove", "project" (slow: a quadratic program for every term), "approximate" or "nearest"
    cheap : choose term j as "remove" does
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    zhao2012bduol: Zhao, Hoi: BDUOL: Double updating online learning on a fixed budget. ECML PKDD, 2012,
    algorithm 1 and equations (7) to (14)

    Examples
    --------
    >>> from onkel import BDUOLClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = BDUOLClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9, model.n_support_ <= 50
    (True, True)
    """

    budget: int = 100
    C: float = 1.0
    rho: float = 0.0
    maintenance: str = "nearest"
    cheap: bool = False
    two_classes: ClassVar[bool] = True
    paper: ClassVar[str] = "Zhao, Hoi: BDUOL: Double updating online learning on a fixed budget. ECML PKDD, 2012"
    aliases: ClassVar[tuple[str, ...]] = ("Budget Double Updating Online Learning",)
    variants: ClassVar[Variants] = {
        "BDUOL_remo": {"maintenance": "remove"},
        "BDUOL_proj": {"maintenance": "project"},
        "BDUOL_appr": {"maintenance": "approximate"},
        "BDUOL_near": {"maintenance": "nearest"},
    }
    cost: ClassVar[str] = "B d (approximate: + B^3, cheap: + B^2)"
    examples: ClassVar[Settings] = (
        {"budget": 15, "C": 0.4, "maintenance": "remove"},
        {"budget": 15, "C": 0.4, "maintenance": "nearest"},
        {"budget": 15, "C": 0.4, "maintenance": "approximate"},
        {"budget": 15, "C": 0.4, "maintenance": "nearest", "cheap": True},
        {"budget": 15, "C": 0.4, "maintenance": "approximate", "cheap": True},
        {"budget": 15, "C": 0.4, "rho": 0.2, "maintenance": "project", "cheap": True},
        {"budget": 6, "C": 0.4, "maintenance": "project"},
    )

    def parts(self, kernel: Kernel) -> Parts:
        budget = DualAscent(self.budget, self.C, self.rho, self.maintenance, self.cheap)
        return Expansion(kernel, budget), Hinge(), Defer()
