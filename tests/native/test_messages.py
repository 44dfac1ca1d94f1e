"""What the compiled module says of arrays that do not fit: it reads them without a check by the estimators."""

import numpy as np
import pytest
import scipy.sparse as sp

import onkel
from onkel.hypotheses import Expansion, Features
from onkel.kernels import Gaussian
from onkel.learners.learner import Learner
from onkel.losses import Hinge
from onkel.maps import Fourier
from onkel.native.engines import learn_together
from onkel.updates import Perceptron

pytestmark = pytest.mark.skipif(not onkel.native.available(), reason="the native engine is not built")
X, Y = np.zeros((5, 3)), np.ones(5)


def twin(hypothesis=None):
    learner = Learner(hypothesis or Expansion(Gaussian(1.0)), Hinge(), Perceptron(), columns=3)
    with onkel.use_engine("native"):
        return onkel.native.fastest(learner)


def wide():
    """A row with a column that the model does not have."""
    return sp.csr_matrix((np.ones(2), ([0, 0], [1, 7])), shape=(1, 8))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: twin().learn(X, Y[:4]), "an array has length 4, not 5"),
        (lambda: twin().learn(X, Y, out=(np.empty((5, 2)),) * 2), "an array has length 2, not 1"),
        (lambda: twin().scores(X[:, :2]), "X has 2 columns, not 3"),
        (lambda: twin().scores(wide()), "a column index is 7, but there are 3 columns"),
    ],
)
def test_the_message_has_the_numbers(call, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        call()


def test_a_learner_learns_together_with_others_only():
    learner = twin(Features(Fourier(Gaussian(1.0), 4)))
    with pytest.raises(ValueError, match=r"^a learner is named twice among those that learn together$"):
        learn_together([learner, learner], X, Y)
