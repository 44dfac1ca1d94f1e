"""Dictionary learners: gradient descent that drops terms while f changes little, and adaptive filters with a sparse
dictionary.
"""

from __future__ import annotations

import math
from typing import ClassVar

from onkel.algorithms.gradients import KIVINEN
from onkel.budgets import (
    AlmostLinearDependence,
    Budget,
    Coherence,
    Dissimilarity,
    InsertRemove,
    Novelty,
    Pursue,
    PursueTogether,
    Quantise,
    SelectSubset,
    Unlimited,
)
from onkel.core.part import refuse_ignored
from onkel.faces.classifier import Classifier
from onkel.faces.estimator import Parts, Settings, Variants
from onkel.faces.one_kernel import OneKernel
from onkel.faces.regressor import Regressor
from onkel.hypotheses import Expansion
from onkel.kernels import Kernel
from onkel.losses import Loss, Squared
from onkel.updates import Defer, Gradient

__all__ = [
    "FSGDClassifier",
    "FSGDRegressor",
    "IncDecClassifier",
    "IncDecRegressor",
    "KNLMSRegressor",
    "KRLSRegressor",
    "POLKClassifier",
    "POLKRegressor",
    "PlattRANRegressor",
    "QKLMSRegressor",
    "SubsetSelectionClassifier",
    "SubsetSelectionRegressor",
]

KOPPEL = (
    "Koppel, Warnell, Stump, Ribeiro: Parsimonious online learning with kernels via sparse projections in function "
    "space. JMLR 20, 2019"
)
CHEN = (
    "Chen, Zhao, Zhu, Principe: Quantized kernel least mean square algorithm. "
    "IEEE Transactions on Neural Networks and Learning Systems 23, 2012. doi:10.1109/TNNLS.2011.2178446"
)
RICHARD = (
    "Richard, Bermudez, Honeine: Online prediction of time series data with kernels. "
    "IEEE Transactions on Signal Processing 57, 2009. doi:10.1109/TSP.2008.2009895"
)
PLATT = (
    "Platt: A resource-allocating network for function interpolation. "
    "Neural Computation 3, 1991. doi:10.1162/neco.1991.3.2.213"
)
ENGEL = (
    "Engel, Mannor, Meir: The kernel recursive least-squares algorithm. "
    "IEEE Transactions on Signal Processing 52, 2004. doi:10.1109/TSP.2004.830985"
)


class _Descent(OneKernel):
    """The fields of gradient descent in the function space, and what they stand for."""

    eta: float = 0.1
    lam: float = 0.001
    cost: ClassVar[str] = "n d + n^2"

    def _update(self) -> Gradient:
        return Gradient(self.eta, self.lam)

    def _budget(self, update: Gradient) -> Budget:
        raise NotImplementedError

    def parts(self, kernel: Kernel) -> Parts:
        loss, update = self._loss(), self._update()
        return Expansion(kernel, self._budget(update)), loss, update


class _FSGD(_Descent):
    schedule: str = "constant"
    paper: ClassVar[str] = KIVINEN
    cost: ClassVar[str] = "n d"

    def _update(self) -> Gradient:
        return Gradient(self.eta, self.lam, self.schedule)

    def _budget(self, update: Gradient) -> Budget:
        return Unlimited()


class FSGDClassifier(_FSGD, Classifier):
    """Functional stochastic gradient descent on a regularised loss: POLK without compression.

    f <- (1 - eta_t lam) f - eta_t l'(f(x)) k(x, .), with no term where the loss has no slope

    Composition: Learner(Expansion(kernel, Unlimited()), loss, Gradient(eta, lam, schedule))

    Parameters
    ----------
    eta, lam : step, > 0, and regularisation, eta lam < 1
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    schedule : eta_t is "constant", "1/t" or "1/sqrt(t)" times eta
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    kivinen2004online: Kivinen, Smola, Williamson, IEEE TSP 52, 2004. doi:10.1109/TSP.2004.830991

    Examples
    --------
    >>> from onkel import FSGDClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = FSGDClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "hinge"
    aliases: ClassVar[tuple[str, ...]] = ("functional SGD",)
    examples: ClassVar[Settings] = (
        {"eta": 0.3, "lam": 0.1},
        {"eta": 0.3, "lam": 0.1, "loss": "logistic"},
        {"eta": 0.8, "schedule": "1/sqrt(t)"},
    )


class FSGDRegressor(_FSGD, Regressor):
    """Functional stochastic gradient descent for regression; see FSGDClassifier. The squared loss has no tube.

    Composition: Learner(Expansion(kernel, Unlimited()), loss, Gradient(eta, lam, schedule))

    Parameters
    ----------
    eta, lam, schedule : as for FSGDClassifier
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    kivinen2004online: Kivinen, Smola, Williamson, IEEE TSP 52, 2004. doi:10.1109/TSP.2004.830991

    Examples
    --------
    >>> from onkel import FSGDRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = FSGDRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.5
    True
    """

    eta: float = 0.2
    loss: Loss | str = "squared"
    examples: ClassVar[Settings] = (
        {"eta": 0.3, "lam": 0.1},
        {"eta": 0.3, "lam": 0.1, "loss": "epsilon_insensitive"},
        {"eta": 0.8, "schedule": "1/t"},
    )


PARSIMONY = 1.0  # K in the default error: K eta^(3/2) for constant steps, K eta_t^2 for diminishing ones


class _POLK(_FSGD):
    compression: str = "komp"
    error: float | None = None
    threshold: float = 2.0
    put_back: str = "random"
    paper: ClassVar[str] = KOPPEL
    variants: ClassVar[Variants] = {
        "KOMP": {"compression": "komp"},
        "KOMP with multiple removals": {"compression": "multiple"},
        "dissimilarity compression": {"compression": "dissimilarity"},
    }
    cost: ClassVar[str] = "n d + n^2"
    examples: ClassVar[Settings] = (
        {"eta": 0.3, "lam": 0.1, "error": 0.1},
        {"eta": 0.3, "lam": 0.1, "error": 0.1, "compression": "multiple"},
        {"eta": 0.3, "lam": 0.1, "error": 0.1, "compression": "multiple", "put_back": "largest"},
        {"eta": 0.3, "lam": 0.1, "compression": "dissimilarity", "threshold": 4.0},
        {"eta": 0.3, "lam": 0.1, "schedule": "1/sqrt(t)"},
        {"eta": 0.3, "lam": 0.0, "schedule": "1/t", "error": 20.0},
    )

    def _budget(self, update: Gradient) -> Budget:
        meant = {"komp": {"error"}, "multiple": {"error", "put_back"}, "dissimilarity": {"threshold"}}
        idle = {"error", "put_back", "threshold"} - self._choice("compression", **meant)
        refuse_ignored(self, f"compression={self.compression!r}", *sorted(idle))
        error, schedule = self.error, update.schedule
        if error is None:
            error = PARSIMONY * update.eta * (math.sqrt(update.eta) if schedule == "constant" else update.eta)
        budget: Budget = self._choice(
            "compression",
            komp=Pursue(error, schedule),
            multiple=PursueTogether(error, schedule, self.put_back),
            dissimilarity=Dissimilarity(self.threshold),
        )
        return budget


class POLKClassifier(_POLK, Classifier):
    """POLK: functional gradient descent; after each step terms are removed while f changes by at most an error.

    f~ = (1 - eta_t lam) f - eta_t l'(f(x)) k(x, .);  f <- f~ on fewer terms, with |f - f~| <= error_t
    "komp": remove the term whose projection on the others changes f least, and repeat while the error allows it;
    "multiple": remove all terms that alone are within the error, then put some back until all together are within it;
    "dissimilarity": no error; a step is projected on the terms if its cosine with one of them is at least 1 / threshold

    Composition: Learner(Expansion(kernel, Pursue(error, schedule), PursueTogether(error, schedule, put_back) or
    Dissimilarity(threshold)), loss, Gradient(eta, lam, schedule))

    Parameters
    ----------
    eta, lam : step, > 0, and regularisation, eta lam < 1
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    schedule : eta_t is "constant", "1/t" or "1/sqrt(t)" times eta
    compression : "komp", "multiple" or "dissimilarity"
    error : epsilon, with error_t = error (eta_t / eta)^2; None: K eta^(3/2), or K eta^2 if steps diminish, with K = 1
    threshold : of "dissimilarity", >= 1
    put_back : which term "multiple" puts back next: "random" or "largest" (whose removal changes f most)
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    koppel2019parsimonious: Koppel et al., JMLR 20, 2019 ("komp")
    pradhan-efficient: Pradhan, Kumar: Efficient online sparse kernel learning. Term report, algorithms 1
    ("multiple") and 2 ("dissimilarity")

    Examples
    --------
    >>> from onkel import POLKClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = POLKClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "hinge"
    examples: ClassVar[Settings] = (*_POLK.examples, {"eta": 0.3, "lam": 0.1, "loss": "logistic"})


class POLKRegressor(_POLK, Regressor):
    """POLK for regression; see POLKClassifier. The squared loss has no tube.

    Composition: Learner(Expansion(kernel, Pursue(error, schedule), PursueTogether(error, schedule, put_back) or
    Dissimilarity(threshold)), loss, Gradient(eta, lam, schedule))

    Parameters
    ----------
    eta, lam, schedule, compression, error, threshold, put_back : as for POLKClassifier
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    koppel2019parsimonious: Koppel et al., JMLR 20, 2019 ("komp")
    pradhan-efficient: Pradhan, Kumar: Efficient online sparse kernel learning. Term report, algorithms 1
    ("multiple") and 2 ("dissimilarity")

    Examples
    --------
    >>> from onkel import POLKRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = POLKRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.45
    True
    """

    eta: float = 0.2
    loss: Loss | str = "squared"
    examples: ClassVar[Settings] = (*_POLK.examples, {"eta": 0.3, "lam": 0.1, "loss": "absolute"})


class _IncDec(_Descent):
    insert_error: float = 0.03
    remove_error: float = 0.03
    paper: ClassVar[str] = KOPPEL

    def _budget(self, update: Gradient) -> Budget:
        return InsertRemove(self.insert_error, self.remove_error)


class IncDecClassifier(_IncDec, Classifier):
    """Functional gradient descent with a dictionary that grows and shrinks by two thresholds.

    A step becomes a term if its distance to the span of the terms exceeds insert_error, else it is projected on them;
    then terms are removed as in POLK, while f changes by at most remove_error

    Composition: Learner(Expansion(kernel, InsertRemove(insert_error, remove_error)), loss, Gradient(eta, lam))

    Parameters
    ----------
    insert_error, remove_error : distances in the function space, >= 0
    eta, lam : step, > 0, and regularisation, eta lam < 1
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    koppel2019parsimonious: Koppel et al., JMLR 20, 2019
    pradhan-efficient: Pradhan, Kumar: Efficient online sparse kernel learning. Term report, section 3

    Examples
    --------
    >>> from onkel import IncDecClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = IncDecClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "hinge"
    aliases: ClassVar[tuple[str, ...]] = ("incremental/decremental",)
    examples: ClassVar[Settings] = (
        {"eta": 0.3, "lam": 0.1, "insert_error": 0.1, "remove_error": 0.05},
        {"eta": 0.3, "lam": 0.1, "insert_error": 0.05, "remove_error": 0.1, "loss": "logistic"},
    )


class IncDecRegressor(_IncDec, Regressor):
    """IncDec for regression; see IncDecClassifier. The squared loss has no tube.

    Composition: Learner(Expansion(kernel, InsertRemove(insert_error, remove_error)), loss, Gradient(eta, lam))

    Parameters
    ----------
    insert_error, remove_error, eta, lam : as for IncDecClassifier
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    koppel2019parsimonious: Koppel et al., JMLR 20, 2019
    pradhan-efficient: Pradhan, Kumar: Efficient online sparse kernel learning. Term report, section 3

    Examples
    --------
    >>> from onkel import IncDecRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = IncDecRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.45
    True
    """

    insert_error: float = 0.1
    remove_error: float = 0.1
    eta: float = 0.2
    loss: Loss | str = "squared"
    examples: ClassVar[Settings] = (
        {"eta": 0.3, "lam": 0.1, "insert_error": 0.2, "remove_error": 0.05},
        {"eta": 0.3, "lam": 0.1, "insert_error": 0.05, "remove_error": 0.2, "loss": "huber"},
    )


class _SubsetSelection(_Descent):
    error: float = 0.03
    candidates: int = 4
    paper: ClassVar[str] = KOPPEL
    aliases: ClassVar[tuple[str, ...]] = ("subset selection",)

    def _budget(self, update: Gradient) -> Budget:
        return SelectSubset(self.error, candidates=self.candidates)


class SubsetSelectionClassifier(_SubsetSelection, Classifier):
    """Functional gradient descent; after each step several terms are removed at once, if f changes little.

    Removing a term projects it on the others. The `candidates` terms whose removal alone changes f least are removed
    together if f then changes by at most error, or else the better half of them, and so on

    Composition: Learner(Expansion(kernel, SelectSubset(error, candidates=candidates)), loss, Gradient(eta, lam))

    Parameters
    ----------
    error : a distance in the function space, >= 0
    candidates : r, how many terms are tried first, >= 1
    eta, lam : step, > 0, and regularisation, eta lam < 1
    loss : "hinge", "squared_hinge", "logistic", "exponential" or an object
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    koppel2019parsimonious: Koppel et al., JMLR 20, 2019
    pradhan-efficient: Pradhan, Kumar: Efficient online sparse kernel learning. Term report, section 3

    Examples
    --------
    >>> from onkel import SubsetSelectionClassifier, datasets
    >>> stream = datasets.load("breast_cancer")
    >>> model = SubsetSelectionClassifier().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.9
    True
    """

    loss: Loss | str = "hinge"
    examples: ClassVar[Settings] = (
        {"eta": 0.3, "lam": 0.1, "error": 0.1},
        {"eta": 0.3, "lam": 0.1, "error": 0.1, "candidates": 6, "loss": "logistic"},
    )


class SubsetSelectionRegressor(_SubsetSelection, Regressor):
    """Subset selection for regression; see SubsetSelectionClassifier. The squared loss has no tube.

    Composition: Learner(Expansion(kernel, SelectSubset(error, candidates=candidates)), loss, Gradient(eta, lam))

    Parameters
    ----------
    error, candidates, eta, lam : as for SubsetSelectionClassifier
    loss : "squared", "absolute", "epsilon_insensitive", "huber", "quantile" or an object
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    koppel2019parsimonious: Koppel et al., JMLR 20, 2019
    pradhan-efficient: Pradhan, Kumar: Efficient online sparse kernel learning. Term report, section 3

    Examples
    --------
    >>> from onkel import SubsetSelectionRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = SubsetSelectionRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.45
    True
    """

    error: float = 0.1
    eta: float = 0.2
    loss: Loss | str = "squared"
    examples: ClassVar[Settings] = (
        {"eta": 0.3, "lam": 0.1, "error": 0.2},
        {"eta": 0.3, "lam": 0.1, "error": 0.2, "candidates": 6, "loss": "absolute"},
    )


class QKLMSRegressor(OneKernel, Regressor):
    """Quantised kernel least mean squares: an example near a stored one changes its coefficient.

    f <- f + eta (y - f(x)) k(c, .), with c the nearest stored example if |x - c| <= radius, else x itself

    Composition: Learner(Expansion(kernel, Quantise(radius)), Squared(), Gradient(eta))

    Parameters
    ----------
    eta : step, > 0; stable for eta < 2 / k(x, x)
    radius : quantisation size, a distance of inputs, >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    chen2012quantized: Chen, Zhao, Zhu, Principe, IEEE TNNLS 23, 2012. doi:10.1109/TNNLS.2011.2178446

    Examples
    --------
    >>> from onkel import QKLMSRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = QKLMSRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.5
    True
    """

    eta: float = 0.2
    radius: float = 0.5
    paper: ClassVar[str] = CHEN
    aliases: ClassVar[tuple[str, ...]] = ("quantised KLMS", "quantized KLMS")
    cost: ClassVar[str] = "n d"
    examples: ClassVar[Settings] = ({"eta": 0.3}, {"eta": 0.1, "radius": 0.8})

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Quantise(self.radius)), Squared(), Gradient(self.eta)


class KNLMSRegressor(OneKernel, Regressor):
    """Kernel normalised least mean squares on a dictionary without similar examples.

    x joins if |k(c, x)| / sqrt(k(c, c) k(x, x)) <= coherence for all stored c; then the coefficients of all stored
    examples, of kernel values k, move by eta (y - f(x)) k / (ridge + |k|^2)

    Composition: Learner(Expansion(kernel, Coherence(coherence, ridge)), Squared(), Gradient(eta))

    Parameters
    ----------
    eta : step, in (0, 2)
    coherence : mu_0, in (0, 1]
    ridge : epsilon, >= 0
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    richard2009online: Richard, Bermudez, Honeine, IEEE TSP 57, 2009. doi:10.1109/TSP.2008.2009895

    Examples
    --------
    >>> from onkel import KNLMSRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = KNLMSRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.35
    True
    """

    eta: float = 0.2
    coherence: float = 0.5
    ridge: float = 0.01
    paper: ClassVar[str] = RICHARD
    aliases: ClassVar[tuple[str, ...]] = ("coherence",)
    cost: ClassVar[str] = "n d"
    examples: ClassVar[Settings] = ({"eta": 0.3}, {"eta": 0.3, "coherence": 0.2, "ridge": 0.1})

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Coherence(self.coherence, self.ridge)), Squared(), Gradient(self.eta)


class PlattRANRegressor(OneKernel, Regressor):
    """Resource-allocating network: an example becomes a term if it is far from all terms and badly predicted.

    f <- f + eta (y - f(x)) k(x, .) if |x - c| > distance for all stored c and |y - f(x)| >= surprise;
    else nothing ("discard"), or the coefficient of every stored c moves by eta (y - f(x)) k(c, x) ("lms")

    Composition: Learner(Expansion(kernel, Novelty(distance, surprise, rejected)), Squared(), Gradient(eta))

    Parameters
    ----------
    eta : step, > 0; "lms" diverges unless eta < 2 / |k|^2, k being the kernel values of an example
    distance : of inputs, >= 0
    surprise : least residual, >= 0
    rejected : "discard" or "lms"
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    platt1991resource: Platt, Neural Computation 3, 1991 (fixed widths and distance). doi:10.1162/neco.1991.3.2.213

    Examples
    --------
    >>> from onkel import PlattRANRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = PlattRANRegressor().fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.5
    True
    """

    eta: float = 0.2
    distance: float = 0.5
    surprise: float = 0.1
    rejected: str = "discard"
    paper: ClassVar[str] = PLATT
    aliases: ClassVar[tuple[str, ...]] = ("Platt novelty", "RAN")
    cost: ClassVar[str] = "n d"
    examples: ClassVar[Settings] = ({"eta": 0.3}, {"eta": 0.05, "distance": 0.8, "surprise": 0.3, "rejected": "lms"})

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, Novelty(self.distance, self.surprise, self.rejected)), Squared(), Gradient(self.eta)


class KRLSRegressor(OneKernel, Regressor):
    """Kernel recursive least squares: the least-squares fit, with examples projected on those almost independent.

    x joins if its squared distance to the span of the stored examples exceeds nu; f is the least-squares fit to all
    examples so far, each replaced by its projection on those stored in its round

    Composition: Learner(Expansion(kernel, AlmostLinearDependence(nu, budget)), Squared(), Defer())

    Parameters
    ----------
    nu : squared distance, >= 0; with nu = 0, f interpolates all examples
    budget : None, or the most examples to store (an extension): later ones are only projected
    kernel, average, random_state, n_jobs : see OneKernel

    References
    ----------
    engel2004kernel: Engel, Mannor, Meir, IEEE TSP 52, 2004. doi:10.1109/TSP.2004.830985

    Examples
    --------
    >>> from onkel import KRLSRegressor, datasets
    >>> stream = datasets.load("diabetes")
    >>> model = KRLSRegressor(budget=50).fit(stream.X, stream.y)
    >>> model.score(stream.X, stream.y) > 0.5, model.n_support_ <= 50
    (True, True)
    """

    nu: float = 0.01
    budget: int | None = None
    paper: ClassVar[str] = ENGEL
    aliases: ClassVar[tuple[str, ...]] = ("ALD", "ALD-KRLS")
    cost: ClassVar[str] = "n d + n^2"
    examples: ClassVar[Settings] = ({"nu": 0.1, "budget": 15}, {"nu": 0.1}, {"nu": 0.5})

    def parts(self, kernel: Kernel) -> Parts:
        return Expansion(kernel, AlmostLinearDependence(self.nu, self.budget)), Squared(), Defer()
