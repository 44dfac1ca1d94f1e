"""Parts are values: learners made of the same parts have nothing in common."""

import itertools

import numpy as np
import parts
import pytest
from streams import binary

import onkel
from onkel.budgets import Unlimited
from onkel.hypotheses import Expansion, Features
from onkel.kernels import Gaussian
from onkel.learners.learner import Learner
from onkel.losses import Loss
from onkel.maps import Fourier
from onkel.native import engines
from onkel.updates import Update

CHUNK = 6


HYPOTHESES = parts.hypotheses()
PLAIN = [Expansion(Gaussian(1.0), Unlimited()), Features(Fourier(Gaussian(1.0), 6))]


def composition(hypotheses, updates):
    """The first of them that go together, with a loss."""
    several = itertools.product(hypotheses, parts.examples(Loss), updates)
    return next(three for three in several if parts.composes(*three))


UPDATES = parts.examples(Update)
COMPOSITIONS = {str(part): composition([part], UPDATES) for part in HYPOTHESES}
COMPOSITIONS |= {str(part): composition([*PLAIN, *HYPOTHESES], [part]) for part in UPDATES}


def chunks(X, y):
    return [(X[i : i + CHUNK], y[i : i + CHUNK]) for i in range(0, len(y), CHUNK)]


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("three", COMPOSITIONS.values(), ids=COMPOSITIONS)
def test_learners_of_the_same_parts_are_independent(three, dtype, engine, monkeypatch):
    """Two that learn in turns, from different streams, become what each would be alone."""
    if engine == "native" and not all(map(engines.has_twin, three)):
        pytest.skip("no twin in C++")
    alone, shared = engines.twin, {}

    def once(part, *rest):
        """The C++ part that was made for the first learner serves the second."""
        if part not in shared:
            shared[part] = alone(part, *rest)
        return shared[part]

    def learner(columns):
        return onkel.native.fastest(Learner(*three, average="all", columns=columns, dtype=dtype, seed=3))

    streams = [(X.astype(dtype), y) for X, y in (binary(60, seed=0), binary(60, seed=1))]
    columns = streams[0][0].shape[1]
    separate = [learner(columns) for _ in streams]
    monkeypatch.setattr(engines, "twin", once)
    together = [learner(columns) for _ in streams]
    wanted = [[each.learn(*chunk) for chunk in chunks(*stream)] for each, stream in zip(separate, streams, strict=True)]
    found = [
        [each.learn(*chunk) for each, chunk in zip(together, turn, strict=True)]
        for turn in zip(*(chunks(*stream) for stream in streams), strict=True)
    ]
    np.testing.assert_array_equal(found, list(zip(*wanted, strict=True)))
    for a, b in zip(separate, together, strict=True):
        same(a.state(), b.state())
