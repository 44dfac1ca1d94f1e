"""No field of a part is silently ignored: it changes the scores, or the composition is refused with a sentence."""

from itertools import product

import numpy as np
import pytest
from compositions import LOSSES, answer, around, compositions, fields, scores
from parts import OURS, kinds
from streams import binary

import onkel
from onkel.budgets import (
    AlmostLinearDependence,
    Budget,
    DualAscent,
    Forget,
    Project,
    Refit,
    RemoveByMargin,
    Stop,
    TwinVectors,
)
from onkel.core.errors import Misfit, Refused
from onkel.hypotheses import Expansion, GroupedExpansion
from onkel.hypotheses.grouped import DualStep, Grouping
from onkel.kernels import Gaussian
from onkel.learners.learner import Learner
from onkel.learners.weighting import Sampling
from onkel.losses import Hinge, Huber, Loss, Quantile, Squared
from onkel.maps import Nystrom
from onkel.updates import (
    Defer,
    Gradient,
    PassiveAggressive,
    Pegasos,
    Perceptron,
    SampledGradient,
    SampledLogistic,
    Update,
)


def name_of(cls):
    return cls.__name__


@pytest.mark.parametrize("part", [cls for cls in kinds() if cls is not Nystrom], ids=name_of)
def test_every_field_matters(part):
    """That of the Nystrom map is shown by its landmarks."""
    for field in fields(part):
        answers = (answer(example, field, list(compositions(example))) for example in part.examples())
        assert "changed" in answers, f"state examples of {part.__name__} that show its field {field!r}"


@pytest.mark.parametrize("budget", kinds(Budget), ids=name_of)
def test_every_pair_of_update_and_budget(budget):
    """All examples of both: each field of each matters, or is refused."""
    silent = []
    for update in kinds(Update):
        found = [
            (hypothesis, loss, u)
            for b, u in product(budget.examples(), update.examples())
            for hypothesis, loss in product(around(b), LOSSES)
        ]
        for cls, place in ((update, lambda c: c[2]), (budget, lambda c: c[0].budget)):
            of_part = {}
            for composition in found:
                of_part.setdefault(place(composition), []).append(composition)
            for field in fields(cls):
                answers = set()
                for part, those in of_part.items():
                    answers.add(answer(part, field, those))
                    if "changed" in answers:
                        break
                if "changed" not in answers and "ignored" in answers:
                    silent.append(f"{cls.__name__}.{field} with {update.__name__}")
    assert not silent, "refuse these pairs, or state examples that show these fields"


IGNORED = [
    (
        lambda: PassiveAggressive("hard", 0.4),
        r'PassiveAggressive\.C must be left at 1\.0 with variant="hard", got 0\.4',
    ),
    (lambda: SampledLogistic("tight", c=1.5), r"SampledLogistic\.c must be left at 2\.0 with variant='tight'"),
    (lambda: RemoveByMargin(8, beta=0.2), r"RemoveByMargin\.beta must be left at 0\.0 with distil=False"),
    (lambda: Forget(8, "basic", absolute=True), r'Forget\.absolute must be left at False with variant="basic"'),
    (lambda: Forget(8, "basic", legacy_root=True), r'Forget\.legacy_root must be left at False with variant="basic"'),
    (lambda: Refit(8, "nearest", 0.4), r"Refit\.C must be left at 1\.0 with variant='nearest'"),
    (lambda: Project(8, U=0.3), r"Project\.U must be left at None with rule=None"),
    (lambda: Project(8, 0.4, rule="jmlr", U=0.3), r"Project\.U must be left at None with rule='jmlr'"),
    (lambda: Project(8, strict_sign=True), r"Project\.strict_sign must be left at False with rule=None"),
    (lambda: DualAscent(8, maintenance="remove", cheap=True), r'cheap must be left at False with maintenance="remove"'),
    (lambda: Sampling(smoothing=0.1), r"Sampling\.smoothing must be left at 0\.001 with learn=False, answer='all'"),
]


@pytest.mark.parametrize(("make", "message"), IGNORED, ids=[message for _, message in IGNORED])
def test_a_value_that_would_be_ignored_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


MISFITS = [
    (
        Stop(8),
        Hinge(),
        PassiveAggressive(divide=False),
        "an Expansion with k(x, x) other than 1, such as Expansion(Linear()), or divide=True",
    ),
    (TwinVectors(8), Hinge(), Perceptron(0.1), "an update that leaves the step to the budget, Defer()"),
    (DualAscent(8), Hinge(), Gradient(0.1), "an update that leaves the step to the budget, Defer()"),
    (AlmostLinearDependence(), Squared(), Gradient(0.1), "an update that leaves the step to the budget, Defer()"),
    (Stop(8), Hinge(), Defer(), "a budget that takes a step of its own"),
    (Stop(8), Squared(), DualStep(), "the loss Hinge with margin 1"),
    (Stop(8), Hinge(0.4), DualStep(), "the loss Hinge with margin 1"),
    (Project(8, rule="icml"), Hinge(), Gradient(0.1), "the update Perceptron(eta=1)"),
    (Project(8, rule="icml"), Hinge(), Perceptron(0.1), "the update Perceptron(eta=1)"),
    (Project(8, rule="icml"), Hinge(0.4), Perceptron(), "the loss Hinge()"),
]


@pytest.mark.parametrize(("budget", "loss", "update", "wanted"), MISFITS, ids=str)
def test_a_composition_that_would_ignore_a_part_is_refused(budget, loss, update, wanted):
    with pytest.raises(Misfit) as caught:
        Learner(Expansion(Gaussian(1.0), budget), loss, update)
    assert f"needs {wanted}; got " in str(caught.value)


@pytest.mark.parametrize("loss", [Hinge(), Quantile(0.5), Quantile(0.2), Huber(2.0), Squared()], ids=str)
def test_a_slope_that_a_sampled_step_does_not_allow_is_refused(loss):
    hypothesis, most = Expansion(Gaussian(1.0)), loss.largest_slope
    allowed = [most, 2 * most] if most < np.inf else [0.3, 3.0]  # no G is enough for the squared loss: any may be used
    for G in allowed:
        Learner(hypothesis, loss, SampledGradient(G=G))
    if most < np.inf:
        with pytest.raises(Misfit) as caught:
            Learner(hypothesis, loss, SampledGradient(G=0.9 * most))
        needed, got = str(caught.value).split("; got ")
        assert needed.endswith(f", radius=inf) needs a loss whose slopes are at most {0.9 * most:g}")
        assert got == f"{loss!r}, whose slopes reach {most:g}"


def test_groups_keep_no_average():
    with pytest.raises(Misfit, match="average=True needs a hypothesis that keeps the average of past models"):
        Learner(GroupedExpansion(), Hinge(), Perceptron(), average=True)


def test_groups_forget_as_all_hypotheses_do():
    """Of one group f_1 = f, shrunk and moved like an expansion."""
    X, y = binary(60)
    for update in (Gradient(0.2, 0.3), Pegasos(0.1)):
        one = Learner(GroupedExpansion((Gaussian(1.0),), Grouping()), Hinge(), update, columns=4)
        same = Learner(Expansion(Gaussian(1.0)), Hinge(), update, columns=4)
        np.testing.assert_allclose(one.learn(X, y)[0], same.learn(X, y)[0], atol=1e-12)


@pytest.mark.parametrize("cls", [cls for cls in OURS if cls not in kinds()], ids=name_of)
def test_a_part_that_is_not_tried_cannot_be_used(cls):
    """It is the base of others, and leaves something to them."""
    with onkel.use_engine("python"), pytest.raises((NotImplementedError, Refused)):
        use(cls(8) if "budget" in fields(cls) else cls())


def use(part):
    if isinstance(part, Loss):
        part(1.0, np.zeros(1))
    for composition in compositions(part):
        scores(1.0, *composition)
