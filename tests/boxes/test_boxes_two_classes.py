"""Two classes with two outputs are the binary learner (section 9)."""

import pytest

from boxes import scores
from boxes.gradients import (
    bogd,
    bogd_plus_plus,
    bsgd_remove,
    ilk,
    klrsgd,
    norma,
    ogd,
    pegasos,
)
from boxes.passive_aggressive import pa
from boxes.perceptrons import (
    budget_perceptron,
    kernel_perceptron,
    rbp,
    stoptron,
    tighter_perceptron,
)
from boxes.small import LOSSES, equal, stream

# Two classes (section 9)


def two_classes():
    """A binary stream twice: as signs and as class indices, class 0 being +1; it starts with class 1."""
    K, y, _ = stream("binary", uneven=True)
    y[0] = -1.0
    return K, y, (y < 0).astype(int)


def doubled(box, **parameters):
    return lambda K, y: 2 * scores(K, box(K, y, **parameters))


def plain(box, **parameters):
    return lambda K, y: scores(K, box(K, y, **parameters))


@pytest.mark.parametrize(
    ("box", "parameters", "binary"),
    [
        (kernel_perceptron, {}, doubled(kernel_perceptron)),
        (stoptron, {"budget": 9}, doubled(stoptron, budget=9)),
        (budget_perceptron, {"budget": 9}, doubled(budget_perceptron, budget=9)),
        (budget_perceptron, {"budget": 9, "beta": 0.4}, doubled(budget_perceptron, budget=9, beta=0.2)),
        (
            budget_perceptron,
            {"budget": 9, "variant": "distil"},
            doubled(budget_perceptron, budget=9, variant="distil"),
        ),
        (tighter_perceptron, {"budget": 9}, doubled(tighter_perceptron, budget=9)),
        (rbp, {"budget": 9, "choose": lambda ids, p: 4}, doubled(rbp, budget=9, choose=lambda ids, p: 4)),
        *[(ogd, {"eta": 0.2, "loss": loss}, plain(ogd, eta=0.4, loss=loss)) for loss in LOSSES],
        (klrsgd, {"eta": 0.2}, plain(klrsgd, eta=0.4)),
        (norma, {"eta": 0.2, "lam": 0.1}, plain(norma, eta=0.4, lam=0.05)),
        (ilk, {"eta": 0.2, "lam": 0.1}, plain(ilk, eta=0.4, lam=0.05)),
        (pegasos, {"lam": 0.1}, plain(pegasos, lam=0.05)),
        (pegasos, {"lam": 0.1, "project": True}, plain(pegasos, lam=0.05, project=True)),
        (pa, {"variant": "hard"}, plain(pa, variant="hard")),
        (pa, {"variant": "I", "C": 0.2}, plain(pa, variant="I", C=0.4)),
        (pa, {"variant": "II", "C": 0.2}, plain(pa, variant="II", C=0.4)),
        (
            bogd,
            {"budget": 9, "eta": 0.2, "lam": 0.1, "cap": 1.2, "choose": lambda ids, p: 4},
            plain(bogd, budget=9, eta=0.4, lam=0.05, cap=1.2, choose=lambda ids, p: 4),
        ),
        (
            bogd_plus_plus,
            {"budget": 9, "eta": 0.2, "lam": 0.1, "choose": lambda ids, p: 4},
            plain(bogd_plus_plus, budget=9, eta=0.4, lam=0.05, choose=lambda ids, p: 4),
        ),
        (bsgd_remove, {"budget": 9, "lam": 0.1}, plain(bsgd_remove, budget=9, lam=0.05)),
    ],
)
def test_two_classes_are_the_binary_learner(box, parameters, binary):
    K, signs, classes = two_classes()
    s = scores(K, box(K, classes, outputs=2, **parameters))
    equal(s.sum(axis=1), 0)
    equal(s[:, :1] - s[:, 1:], binary(K, signs))
