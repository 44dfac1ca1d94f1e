"""Parts of one's own, and learners used directly."""

import pickle

import numpy as np
import pytest
from refusals import refuses
from streams import ESTIMATORS, learn, stream_for

import onkel
from onkel.budgets import Bounded, Stop
from onkel.core.part import Part
from onkel.faces import Classifier, OneKernel
from onkel.hypotheses import Expansion
from onkel.kernels import Gaussian, Kernel
from onkel.learners.hedge import Hedge
from onkel.learners.learner import Learner
from onkel.learners.weighting import ByLoss, ByMistakes, Sampling
from onkel.losses import Hinge, MarginLoss, Mistake
from onkel.updates import Gradient, Perceptron, SampledPassiveAggressive

# -- parts of one's own


class MyStop(Bounded):
    """Stop, by somebody else."""

    def insert(self, f, round, coef, memory):
        if coef is not None and f.n < self.budget:
            f.append(round, coef)


class MyGaussian(Kernel):
    """exp(-|x - z|^2), by somebody else."""

    def pair(self, x, z):
        return (x - z) ** 2

    def shape(self, total):
        return np.exp(-np.maximum(total, 0))


class MyStoptronClassifier(OneKernel, Classifier):
    """An algorithm of one's own, with a budget of one's own."""

    budget: int = 15

    def parts(self, kernel):
        return Expansion(kernel, MyStop(self.budget)), Mistake(), Perceptron()


class Remembers(Bounded):
    """Remembers what it is given."""

    what: object = 0.0

    def start(self, run):
        return {"seen": self.what}

    def insert(self, f, round, coef, memory):
        pass


@pytest.mark.parametrize("what", ["text", np.array(["text"]), None, np.inf], ids=repr)
def test_a_memory_that_could_not_be_saved_is_refused_by_name(what):
    hypothesis = Expansion(Gaussian(1.0), Remembers(5, what))
    with pytest.raises(TypeError, match=r"remembers .seen..* cannot be saved"):
        Learner(hypothesis, Mistake(), Perceptron(), columns=2)


def test_own_parts_run_on_the_python_engine():
    X, y = stream_for(ESTIMATORS["StoptronClassifier"], 100)
    twin = onkel.StoptronClassifier(budget=15, kernel=Gaussian(1.0))
    scores = learn(twin, X, y)
    mine = [
        MyStoptronClassifier(kernel=Gaussian(1.0)),
        MyStoptronClassifier(kernel=MyGaussian()),
        onkel.StoptronClassifier(budget=15, kernel=MyGaussian()),
        onkel.StoptronClassifier(budget=15, kernel=1.0 * MyGaussian()),
    ]
    for model in mine:
        np.testing.assert_allclose(learn(model, X, y), scores, atol=1e-10)
        assert model._learned.engine.kind == "python"
        assert model.n_support_ == 15
        copied = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copied.decision_function(X), model.decision_function(X))
    assert twin._learned.engine.kind == ("native" if onkel.native.available() else "python")


def test_the_name_of_a_part_is_taken_once():
    """Files and twins know parts by name: one of one's own that is called like ours is refused."""
    with pytest.raises(TypeError, match=r"Stop in onkel\.budgets\.removal: choose another name"):
        type("Stop", (Bounded,), {"insert": lambda self, f, round, coef, memory: None})
    assert onkel.core.part.Part.known["Stop"] is Stop


def test_native_alone_refuses_own_parts():
    if not onkel.native.available():
        pytest.skip("the native engine is not built")
    X, y = stream_for(ESTIMATORS["StoptronClassifier"], 10)
    with onkel.use_engine("native"):
        refuses(["MyStop", "C\\+\\+"], learn, MyStoptronClassifier(), X, y)
    refuses(
        ["engine", "gpu"],
        onkel.use_engine("gpu").__enter__,
    )


class Halves(ByMistakes):
    """A mistake counts half."""

    def losses(self, y, scores):
        return 0.5 * super().losses(y, scores)


class Doubles(ByLoss):
    """The hinge counts twice."""

    def losses(self, y, scores):
        return 2 * super().losses(y, scores)


class Even(Sampling):
    """All components are drawn with the same probability."""

    def chances(self, th):
        return np.full_like(th, 0.5)


def pool(kind=Hedge, member=Learner, **parts):
    update = SampledPassiveAggressive(0.3, 1.0, 2.0)
    return kind([member(Expansion(Gaussian(g)), Hinge(), update, columns=4, seed=3) for g in (0.1, 1.0, 9.0)], **parts)


OVERRIDES = {
    "weights by mistakes": ({"weighting": Halves(0.5)}, {"weighting": ByMistakes(0.5)}),
    "weights by loss": ({"weighting": Doubles(Hinge(), 0.5)}, {"weighting": ByLoss(Hinge(), 0.5)}),
    "chances to learn": ({"sampling": Even(learn=True)}, {"sampling": Sampling(learn=True)}),
    "chances to answer": ({"sampling": Even(answer="some")}, {"sampling": Sampling(answer="some")}),
    "chances of a step": ({"sampling": Even(scale=True)}, {"sampling": Sampling(scale=True)}),
}


@pytest.mark.parametrize("case", OVERRIDES)
def test_own_parts_of_a_pool_run_on_the_python_engine(case):
    X, y = stream_for(ESTIMATORS["StoptronClassifier"], 150)
    mine, ours = OVERRIDES[case]
    engine = onkel.native.fastest(pool(**mine))
    assert engine.kind == "python"
    scores = engine.learn(X, y.astype(float))[0]
    np.testing.assert_array_equal(scores, pool(**mine).learn(X, y.astype(float))[0])
    twin = onkel.native.fastest(pool(**ours))
    assert twin.kind == ("native" if onkel.native.available() else "python")
    assert np.abs(twin.learn(X, y.astype(float))[0] - scores).max() > 0.01  # what was overridden has an effect


class MyOMKCClassifier(onkel.OMKCClassifier):
    """With weights of one's own."""

    def _weighting(self):
        return Halves(0.5)


def test_an_estimator_whose_pool_is_weighted_otherwise_runs_on_the_python_engine():
    X, y = stream_for(ESTIMATORS["StoptronClassifier"], 60)
    model = MyOMKCClassifier(kernels=[Gaussian(0.1), Gaussian(1.0)])
    learn(model, X, y)
    assert model.engine_ == "python"
    mistakes = 2 * model._learned.engine.losses
    np.testing.assert_allclose(model.weights_, 0.5 ** (mistakes / 2) / (0.5 ** (mistakes / 2)).sum())


class MyLearner(Learner):
    """A loop of one's own."""


class MyHedge(Hedge):
    """A pool of one's own."""


@pytest.mark.parametrize("engine", [MyLearner, MyHedge])
def test_an_own_loop_is_not_replaced(engine):
    single = MyLearner(Expansion(Gaussian(1.0)), Hinge(), Gradient(0.1), columns=4)
    whole = {MyLearner: (single, pool(member=MyLearner)), MyHedge: (pool(MyHedge),)}[engine]
    for mine in whole:
        assert onkel.native.fastest(mine) is mine
        with onkel.use_engine("native"), pytest.raises(ValueError, match=rf"twin of {engine.__name__};|not built"):
            onkel.native.fastest(mine)


def test_a_pool_of_pools_runs_on_the_python_engine():
    X, y = stream_for(ESTIMATORS["StoptronClassifier"], 40)
    several = Hedge([pool(), pool()])
    assert onkel.native.fastest(several) is several
    assert several.learn(X, y.astype(float))[0].shape == (40, 1)


def test_learners_can_be_used_directly(engine):
    X, y = stream_for(ESTIMATORS["StoptronClassifier"], 50)
    learner = onkel.native.fastest(Learner(Expansion(Gaussian(1.0), Stop(5)), Mistake(), Perceptron(), columns=4))
    last, averaged = learner.learn(X, y.astype(float))
    assert last.shape == averaged.shape == (50, 1) and learner.n == 5


def test_a_loss_without_derivative_is_told_what_to_return(monkeypatch):
    monkeypatch.setattr(Part, "known", dict(Part.known))

    class Half(MarginLoss):
        """Forgets its derivative."""

        def of_margin(self, q):
            return max(0.0, -q)

    model = onkel.OGDClassifier(loss=Half())
    refuses(["Half.of_margin must return two numbers, value and derivative, got 0.0"], model.fit, np.eye(2), [0, 1])
