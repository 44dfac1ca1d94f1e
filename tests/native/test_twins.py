"""Every part in C++ does what it does in Python, whatever it is composed with."""

import itertools

import numpy as np
import parts
import pytest
from box_checks import same
from streams import binary, build, learn, multiclass, regression, scores_of

import onkel
from onkel.core.errors import Diverged
from onkel.hypotheses import Expansion
from onkel.kernels import Gaussian, Kernel
from onkel.learners.hedge import Hedge
from onkel.learners.learner import Learner
from onkel.learners.weighting import ByMistakes, Sampling, Weighting
from onkel.losses import Hinge, Loss, ResidualLoss
from onkel.native import has_twin
from onkel.updates import SampledPassiveAggressive, Update

pytestmark = pytest.mark.skipif(not onkel.native.available(), reason="the native engine is not built")

HYPOTHESES = [part for part in parts.hypotheses() if has_twin(part)]
LOSSES = [part for part in parts.examples(Loss) if has_twin(part)]
UPDATES = [part for part in parts.examples(Update) if has_twin(part)]


def both(hypothesis, loss, update, **options):
    """The learner in Python and its twin, before they begin."""
    make = [Learner(hypothesis, loss, update, average="all", seed=5, columns=4, **options) for _ in range(2)]
    with onkel.use_engine("native"):
        twin = onkel.native.fastest(make[1])
    assert twin.kind == "native"
    return make[0], twin


def same_state(a, b):
    assert set(a) == set(b)
    for name in a:
        assert a[name].shape == b[name].shape, name
        if name.endswith("random"):
            assert a[name] == b[name]
        elif name == "budget.transform":  # M, of which scores see M' M only
            same(a[name].T @ a[name], b[name].T @ b[name])
        else:
            same(a[name], b[name])


def compositions(hypothesis, losses, updates):
    """All that can be made of them, with the streams they learn from."""
    for loss, update in itertools.product(losses, updates):
        kinds = [(regression, 1)] if isinstance(loss, ResidualLoss) else [(binary, 1), (multiclass, 4)]
        for stream, outputs in kinds:
            if parts.composes(hypothesis, loss, update, outputs):
                yield loss, update, stream, outputs


# once with every class of loss and of update, each in some pair; once with all pairs and all their settings
@pytest.mark.parametrize("thorough", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("hypothesis", HYPOTHESES, ids=str)
def test_twins_agree_on_every_composition(hypothesis, thorough):
    losses, updates = (LOSSES, UPDATES) if thorough else map(parts.one_each, (LOSSES, UPDATES))
    tried = set()
    for loss, update, stream, outputs in compositions(hypothesis, losses, updates):
        new = {(loss, outputs), (update, outputs)} - tried
        if not new and not thorough:
            continue
        X, y = stream(45)
        python, twin = both(hypothesis, loss, update, outputs=outputs)
        try:
            wanted = python.learn(X, y.astype(float))
        except Diverged:
            with pytest.raises(Diverged):
                twin.learn(X, y.astype(float))
            continue
        found = twin.learn(X, y.astype(float))
        size = np.abs(wanted).max()
        told = f"{loss}, {update}, {outputs} outputs"
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * max(1, size), err_msg=told)
        same_state(twin.state(), python.state())
        tried |= new
    assert tried


@pytest.mark.parametrize("weighting", parts.examples(Weighting), ids=str)
@pytest.mark.parametrize("sampling", parts.examples(Sampling), ids=str)
@pytest.mark.parametrize("several", [False, True])
def test_pools_agree(weighting, sampling, several):
    """Whatever weights the components, and whichever of them take part."""
    classes = several and isinstance(weighting, ByMistakes)
    X, y = (multiclass if classes else binary)(60)
    outputs = 4 if classes else 1

    def pool(vote):
        step = SampledPassiveAggressive(0.3, 1.0, 2.0)
        options = {"outputs": outputs, "columns": 4}
        learners = [
            Learner(Expansion(Gaussian(g)), Hinge(), step, seed=i, **options) for i, g in enumerate((0.1, 1, 9))
        ]
        return Hedge(
            learners, weighting=weighting, sampling=sampling, vote=vote, seed=5, budget=20 if several else None
        )

    for vote in (False, True):
        python = pool(vote)
        with onkel.use_engine("native"):
            twin = onkel.native.fastest(pool(vote))
        np.testing.assert_allclose(twin.learn(X, y.astype(float))[0], python.learn(X, y.astype(float))[0], atol=1e-10)
        same_state(twin.state(), python.state())


class Exponent(Kernel):
    """exp(<x, z>), a kernel that has no twin."""

    def pair(self, x, z):
        return x * z

    def shape(self, total):
        return np.exp(total)


@pytest.mark.parametrize("kernel", [Exponent(), Gaussian(1.0) + Exponent()], ids=str)
def test_a_part_without_a_twin_runs_in_python(kernel):
    X, y = binary(60)
    model = build("OGDClassifier", eta=0.1, loss="logistic", kernel=kernel)
    learn(model, X, y)
    assert model._learned.engine.kind == "python"
    same(scores_of(model, X), kernel(X) @ model.dual_coef_[0])
    with onkel.use_engine("native"), pytest.raises(ValueError, match="there is no C\\+\\+ twin of"):
        learn(build("OGDClassifier", kernel=kernel), X, y)
