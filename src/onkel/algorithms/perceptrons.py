"""Perceptrons: a step of fixed length on every mistake, without and with a budget."""

from __future__ import annotations

from typing import ClassVar

from onkel.budgets import Budget, Forget, RemoveByEvaluation, RemoveByMargin, RemoveRandom, Stop, Unlimited
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Parts, Settings, Variants
from onkel.faces.one_kernel import OneKernel
from onkel.faces.regressor import Regressor
from onkel.hypotheses import Expansion
from onkel.kernels import Kernel
from onkel.losses import EpsilonInsensitive, Mistake
from onkel.updates import Perceptron

__all__ = [
    "BudgetPerceptronClassifier",
    "ForgetronClassifier",
    "ForgetronRegressor",
    "KernelPerceptronClassifier",
    "KernelPerceptronRegressor",
    "RBPClassifier",
    "RBPRegressor",
    "StoptronClassifier",
    "StoptronRegressor",
    "TighterPerceptronClassifier",
]

FREUND = (
    "Freund, Schapire: Large margin classification using the perceptron algorithm. Machine Learning 37, 1999. "
    "doi:10.1023/A:1007662407062"
)
ORABONA = "Orabona, Keshet, Caputo: Bounded kernel-based online learning. JMLR 10, 2009"
CRAMMER = "Crammer, Kandola, Singer: Online classification on a budget. NIPS 16, 2003"
WESTON = "Weston, Bordes, Bottou: Online (and offline) on an even tighter budget. AISTATS, 2005"
CAVALLANTI = (
    "Cavallanti, Cesa-Bianchi, Gentile: Tracking the best hyperplane with a simple budget Perceptron. "
    "Machine Learning 69, 2007. doi:10.1007/s10994-007-5003-0"
)
DEKEL = (
    "Dekel, Shalev-Shwartz, Singer: The Forgetron: a kernel-based perceptron on a budget. "
    "SIAM Journal on Computing 37, 2008. doi:10.1137/060666998"
)


class StepOnMistake(OneKernel, Classifier):
    """On a mistake add y k(x, .) (several classes: +1 on y, -1 on the best rival), by the rule of a budget."""

    strict_sign_update: bool = False

    def budget_part(self) -> Budget:
        """How the new term enters."""
        raise NotImplementedError

    def parts(self, kernel: Kernel) -> Parts:
        loss = Mistake(strict_sign=self.strict_sign_update)
        return Expansion(kernel, self.budget_part()), loss, Perceptron()


class StepOutsideTube(OneKernel, Regressor):
    """Outside the tube |y - f(x)| <= epsilon add eta sgn(y - f(x)) k(x, .), by the rule of a budget."""

    eta: float = 0.2
    epsilon: float = 0.1

    def budget_part(self) -> Budget:
        """How the new term enters."""
        raise NotImplementedError

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, self.budget_part()), EpsilonInsensitive(self.epsilon), Perceptron(self.eta)


class KernelPerceptronClassifier(StepOnMistake):
    """The kernel perceptron: on a mistake, the example becomes a term.

    if y f(x) <= 0:  f <- f + y k(x, .)

    Composition: Learner(Expansion(kernel, Unlimited()), Mistake(), Perceptron())

    Parameters
    ----------
    strict_sign_update : a mistake is sgn(f(x)) != y with sgn(0) = +1, so that f(x) = 0 is no mistake on y = +1
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    freund1999large: Freund, Schapire, Machine Learning 37, 1999. doi:10.1023/A:1007662407062
    lu2017scalable: Lu, Scalable online kernel learning, thesis, 2017, algorithm 4

    Examples
    --------
    >>> from onkel import KernelPerceptronClassifier
    >>> model = KernelPerceptronClassifier(kernel="gaussian")
    >>> model.learn([[0.0], [1.0], [0.1]], [0, 1, 0]).shape
    (3,)
    """

    paper: ClassVar[str] = FREUND
    aliases: ClassVar[tuple[str, ...]] = ("Perceptron", "kernel perceptron")
    cost: ClassVar[str] = "n d"
    examples: ClassVar[Settings] = ({}, {"strict_sign_update": True})

    def budget_part(self) -> Budget:
        return Unlimited()


class KernelPerceptronRegressor(StepOutsideTube):
    """Perceptron-type regression: steps of fixed length towards targets outside the tube.

    if |y - f(x)| > epsilon:  f <- f + eta sgn(y - f(x)) k(x, .)

    Composition: Learner(Expansion(kernel, Unlimited()), EpsilonInsensitive(epsilon), Perceptron(eta))

    Parameters
    ----------
    eta : step, > 0
    epsilon : half width of the tube, >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    freund1999large: Freund, Schapire, Machine Learning 37, 1999. doi:10.1023/A:1007662407062
    lu2016large: Lu, Hoi, Wang, Zhao, Liu, JMLR 17, 2016 (regression)

    Examples
    --------
    >>> from onkel import KernelPerceptronRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = KernelPerceptronRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.45
    True
    """

    paper: ClassVar[str] = FREUND
    aliases: ClassVar[tuple[str, ...]] = ("Perceptron",)
    cost: ClassVar[str] = "n d"
    examples: ClassVar[Settings] = ({"eta": 0.3, "epsilon": 0.2},)

    def budget_part(self) -> Budget:
        return Unlimited()


class BudgetPerceptronClassifier(OneKernel, Classifier):
    """Budget Perceptron: when full, it removes the term whose example has the largest margin without its own term.

    if y f(x) <= beta:  if full, remove argmax_j y_j (f(x_j) - a_j k(x_j, x_j));  f <- f + y k(x, .)

    Composition: Learner(Expansion(kernel, RemoveByMargin(budget, beta, distil)), Mistake(beta), Perceptron())

    Parameters
    ----------
    budget : B, largest number of terms
    beta : margin up to which examples are learned from, >= 0
    variant : "plain", or "distil": then also removes each term whose example has a margin above beta without it
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    crammer2003online: Crammer, Kandola, Singer, NIPS 16, 2003. Several classes: extension

    Examples
    --------
    >>> from onkel import BudgetPerceptronClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = BudgetPerceptronClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9, model.n_support_ <= 50
    (True, True)
    """

    budget: int = 100
    beta: float = 0.0
    variant: str = "plain"
    paper: ClassVar[str] = CRAMMER
    aliases: ClassVar[tuple[str, ...]] = ("Budget Perceptron", "BP")
    cost: ClassVar[str] = "B d"
    examples: ClassVar[Settings] = (
        {"budget": 15},
        {"budget": 15, "beta": 0.3},
        {"budget": 15, "variant": "distil"},
        {"budget": 15, "variant": "distil", "beta": 0.3},
    )

    def parts(self, kernel: Kernel) -> Parts:
        distil = self._choice("variant", plain=False, distil=True)
        budget = RemoveByMargin(self.budget, beta=self.beta if distil else 0.0, distil=distil)
        return Expansion(kernel, budget), Mistake(self.beta), Perceptron()


class TighterPerceptronClassifier(OneKernel, Classifier):
    """Tighter Budget Perceptron: when full, it removes the term without which the fewest seen examples are mistakes.

    if y f(x) <= beta:  if full, remove argmin_j sum_(x',y') [y' != sgn(f(x') - a_j k(x_j, x'))];  f <- f + y k(x, .)

    Composition: Learner(Expansion(kernel, RemoveByEvaluation(budget, recent)), Mistake(beta), Perceptron())

    Parameters
    ----------
    budget : B, largest number of terms
    beta : margin up to which examples are learned from, >= 0
    recent : p, number of last examples on which f is tried, besides the stored ones; None: as many as the budget
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    weston2005online: Weston, Bordes, Bottou, AISTATS, 2005. Several classes: extension

    Examples
    --------
    >>> from onkel import TighterPerceptronClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = TighterPerceptronClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9, model.n_support_ <= 50
    (True, True)
    """

    budget: int = 100
    beta: float = 0.0
    recent: int | None = None
    paper: ClassVar[str] = WESTON
    aliases: ClassVar[tuple[str, ...]] = ("Tighter Budget Perceptron", "TBP")
    cost: ClassVar[str] = "B (B + p) d on an update"
    examples: ClassVar[Settings] = (
        {"budget": 15},
        {"budget": 15, "beta": 0.3},
        {"budget": 15, "recent": 0},
        {"budget": 15, "recent": 40},
    )

    def parts(self, kernel: Kernel) -> Parts:
        budget = RemoveByEvaluation(self.budget, recent=self.recent)
        return Expansion(kernel, budget), Mistake(self.beta), Perceptron()


class RBPClassifier(StepOnMistake):
    """Randomized Budget Perceptron: when full, a term drawn uniformly is removed.

    if y f(x) <= 0:  if full, remove a random term;  f <- f + y k(x, .)

    Composition: Learner(Expansion(kernel, RemoveRandom(budget)), Mistake(), Perceptron())

    Parameters
    ----------
    budget : B, largest number of terms
    strict_sign_update : see KernelPerceptronClassifier
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    cavallanti2007tracking: Cavallanti, Cesa-Bianchi, Gentile, Machine Learning 69, 2007. doi:10.1007/s10994-007-5003-0

    Examples
    --------
    >>> from onkel import RBPClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = RBPClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9, model.n_support_ <= 50
    (True, True)
    """

    budget: int = 100
    paper: ClassVar[str] = CAVALLANTI
    aliases: ClassVar[tuple[str, ...]] = ("Randomized Budget Perceptron", "Random Budget Perceptron")
    cost: ClassVar[str] = "B d"
    examples: ClassVar[Settings] = ({"budget": 15}, {"budget": 15, "strict_sign_update": True})

    def budget_part(self) -> Budget:
        return RemoveRandom(self.budget)


class RBPRegressor(StepOutsideTube):
    """Randomized Budget Perceptron for regression: when full, a term drawn uniformly is removed.

    Composition: Learner(Expansion(kernel, RemoveRandom(budget)), EpsilonInsensitive(epsilon), Perceptron(eta))

    Parameters
    ----------
    budget : B, largest number of terms
    eta : step, > 0
    epsilon : half width of the tube, >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    cavallanti2007tracking: Cavallanti, Cesa-Bianchi, Gentile, Machine Learning 69, 2007. doi:10.1007/s10994-007-5003-0
    lu2016large: Lu, Hoi, Wang, Zhao, Liu, JMLR 17, 2016 (regression)

    Examples
    --------
    >>> from onkel import RBPRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = RBPRegressor(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.3, model.n_support_ <= 50
    (True, True)
    """

    budget: int = 100
    paper: ClassVar[str] = CAVALLANTI
    cost: ClassVar[str] = "B d"
    forgets: ClassVar[bool] = True
    examples: ClassVar[Settings] = ({"budget": 15, "eta": 0.3, "epsilon": 0.2},)

    def budget_part(self) -> Budget:
        return RemoveRandom(self.budget)


class ForgetronClassifier(OneKernel, Classifier):
    """Forgetron: shrink all coefficients, so that removing the oldest term does little damage, then remove it.

    on a mistake:  f <- f + y k(x, .);  f <- phi f;  if over budget, remove the oldest

    Composition: Learner(Expansion(kernel, Forget(budget, variant)), Mistake(), Perceptron())

    Parameters
    ----------
    budget : B, largest number of terms
    variant : "self-tuned" (phi depends on the damage of all removals so far) or "basic" (phi is constant; B >= 83)
    legacy_root : repeat the wrong root of the authors' program (it reproduces some published rows)
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    dekel2008forgetron: Dekel, Shalev-Shwartz, Singer, SIAM J. Comput. 37, 2008. doi:10.1137/060666998

    Examples
    --------
    >>> from onkel import ForgetronClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = ForgetronClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9, model.n_support_ <= 50
    (True, True)
    """

    budget: int = 100
    variant: str = "self-tuned"
    legacy_root: bool = False
    paper: ClassVar[str] = DEKEL
    variants: ClassVar[Variants] = {"Self-tuned Forgetron": {"variant": "self-tuned"}}
    cost: ClassVar[str] = "B d, twice on an update"
    examples: ClassVar[Settings] = (
        {"budget": 15},
        {"budget": 15, "legacy_root": True},
        {"budget": 15, "variant": "basic"},
    )

    def parts(self, kernel: Kernel) -> Parts:
        budget = Forget(self.budget, variant=self.variant, legacy_root=self.legacy_root)
        return Expansion(kernel, budget), Mistake(), Perceptron()


class ForgetronRegressor(StepOutsideTube):
    """Forgetron for regression: steps of fixed length; when full, f is shrunk and the oldest term is removed.

    Composition: Learner(Expansion(kernel, Forget(budget, absolute=True)), EpsilonInsensitive(epsilon), Perceptron(eta))

    Parameters
    ----------
    budget : B, largest number of terms
    eta : step, > 0
    epsilon : half width of the tube, >= 0
    variant, legacy_root : see ForgetronClassifier
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    dekel2008forgetron: Dekel, Shalev-Shwartz, Singer, SIAM J. Comput. 37, 2008. doi:10.1137/060666998
    lu2016large: Lu, Hoi, Wang, Zhao, Liu, JMLR 17, 2016 (regression)

    Examples
    --------
    >>> from onkel import ForgetronRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = ForgetronRegressor(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.3, model.n_support_ <= 50
    (True, True)
    """

    budget: int = 100
    variant: str = "self-tuned"
    legacy_root: bool = False
    paper: ClassVar[str] = DEKEL
    cost: ClassVar[str] = "B d, twice on an update"
    forgets: ClassVar[bool] = True
    examples: ClassVar[Settings] = (
        {"budget": 15, "eta": 0.8, "epsilon": 0.2},
        {"budget": 15, "eta": 0.8, "epsilon": 0.2, "legacy_root": True},
        {"budget": 15, "eta": 0.3, "epsilon": 0.2, "variant": "basic"},
    )

    def budget_part(self) -> Budget:
        return Forget(self.budget, self.variant, absolute=self.variant != "basic", legacy_root=self.legacy_root)


class StoptronClassifier(StepOnMistake):
    """Stoptron: a kernel perceptron that stops learning when its budget is full.

    Composition: Learner(Expansion(kernel, Stop(budget)), Mistake(), Perceptron())

    Parameters
    ----------
    budget : B, largest number of terms
    strict_sign_update : see KernelPerceptronClassifier
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    orabona2009bounded: Orabona, Keshet, Caputo, JMLR 10, 2009

    Examples
    --------
    >>> from onkel import StoptronClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = StoptronClassifier(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9, model.n_support_ <= 50
    (True, True)
    """

    budget: int = 100
    paper: ClassVar[str] = ORABONA
    cost: ClassVar[str] = "B d"
    examples: ClassVar[Settings] = ({"budget": 15}, {"budget": 15, "strict_sign_update": True})

    def budget_part(self) -> Budget:
        return Stop(self.budget)


class StoptronRegressor(StepOutsideTube):
    """Stoptron for regression: it stops learning when its budget is full.

    Composition: Learner(Expansion(kernel, Stop(budget)), EpsilonInsensitive(epsilon), Perceptron(eta))

    Parameters
    ----------
    budget : B, largest number of terms
    eta : step, > 0
    epsilon : half width of the tube, >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    orabona2009bounded: Orabona, Keshet, Caputo, JMLR 10, 2009; regression: extension

    Examples
    --------
    >>> from onkel import StoptronRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = StoptronRegressor(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.15, model.n_support_ <= 50
    (True, True)
    """

    budget: int = 100
    paper: ClassVar[str] = ORABONA
    cost: ClassVar[str] = "B d"
    forgets: ClassVar[bool] = True
    examples: ClassVar[Settings] = ({"budget": 15, "eta": 0.3, "epsilon": 0.2},)

    def budget_part(self) -> Budget:
        return Stop(self.budget)
