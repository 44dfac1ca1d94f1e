"""Absurd values of parts, compositions and estimators are refused with a sentence."""

import math

import pytest
from streams import build, learn, stream_for

from onkel.budgets import (
    Forget,
    Landmarks,
    Project,
    ProjectSmallest,
    Refit,
    RemoveByEvaluation,
    RemoveByMargin,
    RemoveOldest,
    RemoveRandom,
    RemoveSmallest,
    RemoveWeighted,
    Stop,
    Truncate,
    Unlimited,
)
from onkel.hypotheses import Dual, Expansion
from onkel.kernels import Cauchy, Constant, Gaussian, Laplacian, Linear, Polynomial, Product, Sigmoid, Sum
from onkel.learners.learner import Learner
from onkel.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Mistake, Quantile, Squared, SquaredHinge
from onkel.maps import Fastfood, Fourier, Nystrom, Orthogonal, Reparameterized
from onkel.updates import (
    AdaGrad,
    AdaptiveThreshold,
    DistanceOverGradient,
    Gradient,
    Implicit,
    PassiveAggressive,
    Pegasos,
    Perceptron,
)

number = r"Gaussian\.gamma must be > 0, or \"auto\", got "
REFUSED = [
    (lambda: Gaussian(-1.0), number + "-1.0"),
    (lambda: Gaussian(0), number + "0"),
    (lambda: Gaussian(math.inf), number + "inf"),
    (lambda: Gaussian(math.nan), number + "nan"),
    (lambda: Gaussian("wide"), number + "'wide'"),
    (lambda: Gaussian(None), number + "None"),
    (lambda: Gaussian(True), number + "True"),
    (lambda: Laplacian(-1.0), r"Laplacian\.gamma must be > 0"),
    (lambda: Cauchy(-1.0), r"Cauchy\.gamma must be > 0"),
    (lambda: Sigmoid(0.1, math.inf), r"Sigmoid\.coef0 must be a finite number, got inf"),
    (lambda: Polynomial(0), r"Polynomial\.degree must be an integer >= 1, got 0"),
    (lambda: Polynomial(1.5), r"Polynomial\.degree must be an integer >= 1, got 1.5"),
    (lambda: Polynomial(2, -1.0), r"Polynomial\.coef0 must be >= 0, got -1.0"),
    (lambda: Constant(0.0), r"Constant\.value must be > 0, got 0.0"),
    (lambda: Gaussian() + -1, r"Constant\.value must be > 0, got -1"),
    (lambda: 0 * Gaussian(), r"Constant\.value must be > 0, got 0"),
    (lambda: Sum(()), r"Sum\.kernels must be a non-empty sequence of kernels, got \(\)"),
    (lambda: Product(("gaussian",)), r"Product\.kernels must be a non-empty sequence of kernels"),
    (lambda: Mistake(-1), r"Mistake\.margin must be >= 0, got -1"),
    (lambda: Mistake(1.0, True), r"Mistake\.strict_sign must be False when margin > 0"),
    (lambda: Hinge(math.nan), r"Hinge\.margin must be a finite number, got nan"),
    (lambda: SquaredHinge(math.inf), r"SquaredHinge\.margin must be a finite number"),
    (lambda: Squared(-0.1), r"Squared\.epsilon must be >= 0, got -0.1"),
    (lambda: EpsilonInsensitive("0.1"), r"EpsilonInsensitive\.epsilon must be >= 0, got '0.1'"),
    (lambda: Huber(0), r"Huber\.delta must be > 0, got 0"),
    (lambda: Quantile(0.0), r"Quantile\.quantile must be > 0, got 0.0"),
    (lambda: Quantile(1.0), r"Quantile\.quantile must be between 0 and 1, got 1.0"),
    (lambda: Perceptron(0), r"Perceptron\.eta must be > 0, got 0"),
    (lambda: Perceptron(math.inf), r"Perceptron\.eta must be a finite number, got inf"),
    (lambda: Gradient(-0.1), r"Gradient\.eta must be > 0, got -0.1"),
    (lambda: Gradient(0.5, -1), r"Gradient\.lam must be >= 0, got -1"),
    (lambda: Gradient(0.5, 2.0), r"Gradient\.lam must be < 1 / eta = 2, got 2.0"),
    (lambda: Gradient(schedule="t"), r"Gradient\.schedule must be one of 'constant', '1/t', '1/sqrt\(t\)', got 't'"),
    (lambda: Gradient(radius=0), r"Gradient\.radius must be > 0, got 0"),
    (lambda: Pegasos(0), r"Pegasos\.lam must be > 0, got 0"),
    (lambda: PassiveAggressive("III"), r"PassiveAggressive\.variant must be one of 'hard', 'I', 'II', got 'III'"),
    (lambda: PassiveAggressive(C=0), r"PassiveAggressive\.C must be > 0, got 0"),
    (lambda: PassiveAggressive(C=math.nan), r"PassiveAggressive\.C must be > 0, got nan"),
    (lambda: Implicit(0), r"Implicit\.eta must be > 0, got 0"),
    (lambda: Implicit(1, -1), r"Implicit\.lam must be >= 0, got -1"),
    (lambda: AdaptiveThreshold(nu=0), r"AdaptiveThreshold\.nu must be > 0, got 0"),
    (lambda: AdaptiveThreshold(nu=1), r"AdaptiveThreshold\.nu must be between 0 and 1, got 1"),
    (lambda: AdaptiveThreshold(start_at=math.inf), r"AdaptiveThreshold\.start_at must be a finite number"),
    (lambda: AdaptiveThreshold(0.5, 2.0), r"AdaptiveThreshold\.lam must be < 1 / eta"),
    (lambda: Truncate(0), r"Truncate\.rounds must be an integer >= 1, got 0"),
    (lambda: Stop(0), r"Stop\.budget must be an integer >= 1, got 0"),
    (lambda: Stop(2.0), r"Stop\.budget must be an integer >= 1, got 2.0"),
    (lambda: RemoveRandom(1, unbiased=True), r"RemoveRandom\.budget must be an integer >= 2, got 1"),
    (lambda: RemoveOldest(5, cap=0), r"RemoveOldest\.cap must be > 0, got 0"),
    (lambda: RemoveWeighted(1), r"RemoveWeighted\.budget must be an integer >= 2, got 1"),
    (lambda: RemoveWeighted(5, cap=-1), r"RemoveWeighted\.cap must be > 0, got -1"),
    (lambda: RemoveSmallest("5"), r"RemoveSmallest\.budget must be an integer >= 1, got '5'"),
    (lambda: RemoveByMargin(5, beta=-1), r"RemoveByMargin\.beta must be >= 0, got -1"),
    (lambda: RemoveByEvaluation(5, recent=-1), r"RemoveByEvaluation\.recent must be an integer >= 0, got -1"),
    (lambda: Forget(5, "other"), r"Forget\.variant must be one of 'self-tuned', 'basic', got 'other'"),
    (lambda: Landmarks(5, 6), r"Landmarks\.rank must be <= 5, got 6"),
    (lambda: Landmarks(5, 0), r"Landmarks\.rank must be an integer >= 1, got 0"),
    (lambda: Landmarks(5, 2, "now"), r"Landmarks\.switch must be one of 'lazy', 'eager', got 'now'"),
    (lambda: Project(0), r"Project\.budget must be an integer >= 1, got 0"),
    (lambda: Project(5, -1), r"Project\.tolerance must be >= 0, got -1"),
    (lambda: Project(5, math.inf), r"Project\.tolerance must be a finite number, got inf"),
    (lambda: Project(5, squared=2), r"Project\.squared must be True or False, got 2"),
    (lambda: Project(5, rule="other"), r"Project\.rule must be one of None, 'icml', 'jmlr', got 'other'"),
    (lambda: Project(5, rule="icml", U=-1), r"Project\.U must be >= 0, got -1"),
    (lambda: Project(rule="icml"), r'Project\.U must be given for the rule "icml" without a budget, got None'),
    (lambda: ProjectSmallest(0), r"ProjectSmallest\.budget must be an integer >= 1, got 0"),
    (lambda: Refit(5, "none"), r"Refit\.variant must be one of 'simple', 'nearest', 'projecting', 'plain', got 'none'"),
    (lambda: Refit(5, C=0), r"Refit\.C must be > 0, got 0"),
    (lambda: Refit(5, "plain", math.inf), r'Refit\.C must be finite for the variant "plain", got inf'),
    (lambda: AdaGrad(0), r"AdaGrad\.eta must be > 0, got 0"),
    (lambda: Fourier("gaussian"), r"Fourier\.kernel must be a kernel, got 'gaussian'"),
    (lambda: Fourier(components=0), r"Fourier\.components must be an integer >= 1, got 0"),
    (lambda: Reparameterized(eta=-1), r"Reparameterized\.eta must be >= 0, got -1"),
    (lambda: Reparameterized(clip=0), r"Reparameterized\.clip must be > 0, got 0"),
    (lambda: Reparameterized(clip=51), r"Reparameterized\.clip must be <= 50, got 51"),
    (lambda: Orthogonal(Laplacian(1.0)), r"Orthogonal\.kernel must be Gaussian.*got Laplacian"),
    (lambda: Orthogonal(structured=1), r"Orthogonal\.structured must be True or False, got 1"),
    (lambda: Fastfood(Cauchy(1.0)), r"Fastfood\.kernel must be Gaussian.*got Cauchy"),
    (lambda: Nystrom(rank=0), r"Nystrom\.rank must be an integer >= 1, got 0"),
    (lambda: Dual(Gaussian(), Fourier(), -1), r"Dual\.budget must be an integer >= 0, got -1"),
    (lambda: Dual(Gaussian(), Fourier(), 5, 0), r"Dual\.merge must be an integer >= 1, got 0"),
    (lambda: learner(Hinge(), AdaGrad()), r"AdaGrad.* needs explicit features; got Expansion"),
    (lambda: learner(Hinge(), DistanceOverGradient(), Stop(5)), r"DistanceOverGradient.* needs a budget that only app"),
    (lambda: fitted("FOGDClassifier", kernel="linear"), r"Linear.* no random features: use Gaussian, Laplacian or C"),
    (lambda: fitted("FOGDClassifier", map="rff"), r"FOGDClassifier\.map must be one of 'fourier', 'orthogonal', 'so"),
    (lambda: fitted("FOGDClassifier", map="sorf", kernel="cauchy"), r"FOGDClassifier\.kernel must be Gaussian"),
    (lambda: fitted("FOGDClassifier", eta=1.0, eta_unscaled=1.0), r"\beta\b.*eta_unscaled"),
    (lambda: fitted("FOGDClassifier", schedule="1/t"), r"1/t.* eta"),
    (lambda: fitted("FOGDClassifier", eta=1.0, schedule="t"), r"FOGDClassifier\.schedule must be one of"),
    (lambda: fitted("NOGDClassifier", budget=5, rank=6), r"NOGDClassifier\.rank must be <= 5, got 6"),
    (lambda: fitted("RRFClassifier", eta_kernel=-1), r"RRFClassifier\.eta_kernel must be >= 0, got -1"),
    (
        lambda: fitted("DualSGDClassifier", maintenance="new"),
        r"maintenance must be one of 'merge', 'remove', got",
    ),
    (lambda: fitted("DualSGDClassifier", maintenance="remove", insert_always=True), r"insert_always"),
    (
        lambda: learner(Logistic(), PassiveAggressive()),
        r"PassiveAggressive\(.*\) needs a piecewise linear loss, .*; got Logistic",
    ),
    (lambda: learner(SquaredHinge(), Implicit()), r"Implicit\(.*\) needs the loss Hinge; got SquaredHinge"),
    (lambda: learner(Logistic(), AdaptiveThreshold()), r"AdaptiveThreshold.* needs a loss with a margin or an epsilon"),
    (
        lambda: learner(Hinge(), Pegasos(project=True), Stop(5)),
        r"Pegasos.* needs a budget that only appends, .*; got Expansion.*Stop",
    ),
    (lambda: learner(Hinge(), Gradient(radius=1.0), RemoveOldest(5)), r"Gradient.* needs a budget that only appends"),
    (lambda: learner(Hinge(), Gradient(), average="live"), r'average must be False, True or "all", got \'live\''),
    (lambda: fitted("PAClassifier", variant="III"), r"variant must be one of 'hard', 'I', 'II', got 'III'"),
    (lambda: fitted("BOGDClassifier", removal="new"), r"BOGDClassifier\.removal must be one of 'uniform', 'fifo', got"),
    (lambda: fitted("BOGDClassifier", budget=1), r"budget must be an integer >= 2, got 1"),
    (lambda: fitted("BPAClassifier", variant="new"), r"BPAClassifier\.variant must be one of 'simple', 'nearest'"),
    (lambda: fitted("ProjectronPlusPlusClassifier", rule="new"), r"\.rule must be one of 'icml', 'jmlr', got 'new'"),
    (lambda: fitted("ProjectronPlusPlusClassifier", budget=None), r"ProjectronPlusPlusClassifier\.U must be given"),
    (lambda: fitted("BSGDClassifier", removal="new"), r"BSGDClassifier\.removal must be one of 'smallest'"),
    (lambda: fitted("BSGDClassifier", maintenance="new"), r"BSGDClassifier\.maintenance must be one of 'remove'"),
    (lambda: fitted("BudgetPerceptronClassifier", variant="new"), r"variant must be one of 'plain', 'distil'"),
    (lambda: fitted("ForgetronClassifier", variant="new"), r"variant must be one of 'self-tuned', 'basic'"),
    (lambda: fitted("NORMAClassifier", loss="logistic", nu=0.4), r"AdaptiveThreshold\(.*\) needs a loss with a margin"),
    (lambda: fitted("OGDClassifier", loss=Squared()), r"loss must be a classification loss .*got Squared"),
    (lambda: fitted("OGDRegressor", loss="hinge"), r"loss must be a regression loss .*got 'hinge'|.*got Hinge"),
    (lambda: fitted("OGDClassifier", kernel="rbf"), r"kernel must be an onkel.kernels object or one of"),
    (lambda: fitted("OGDClassifier", average="live"), r'average must be False, True or "all", got \'live\''),
    (lambda: fitted("KLRSGDClassifier", R=-1.0), r"KLRSGDClassifier\.R must be > 0, got -1.0"),
]


def learner(loss, update, budget=None, **options):
    return Learner(Expansion(Linear(), budget or Unlimited()), loss, update, **options)


def fitted(name, **params):
    model = build(name, **params)
    return learn(model, *stream_for(model, rounds=5))


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_absurd_values_are_refused_with_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
