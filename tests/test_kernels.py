"""Kernels: values by hand, sums and products, what is positive semidefinite, and what learners make of them."""

from math import exp, tanh

import numpy as np
import parts
import pytest
from box_checks import same
from streams import binary, build, learn, scores_of, stream_for

from onkel.kernels import (
    Cauchy,
    Constant,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Product,
    Sigmoid,
    Sum,
    as_kernel,
)

KERNELS = parts.examples(Kernel)
X2 = ((1.0, -2.0), (0.5, 1.0))  # x z = -1.5, |x - z|^2 = 9.25, |x - z|_1 = 3.5


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        (Linear(), -1.5),
        (Polynomial(), -0.125),
        (Polynomial(2, 0.0), 2.25),
        (Polynomial(1, 3.0), 1.5),
        (Gaussian(0.1), exp(-0.925)),
        (Gaussian(), exp(-4.625)),
        (Laplacian(0.1), exp(-0.35)),
        (Laplacian("auto"), exp(-1.75)),
        (Cauchy(0.1), 1 / (1.025 * 1.9)),
        (Cauchy(), 1 / (1.125 * 5.5)),
        (Sigmoid(0.1, 0.5), tanh(0.35)),
        (Sigmoid(), tanh(-0.75)),
        (Constant(3.0), 3.0),
        (Linear() + 1, -0.5),
        (1 + Linear(), -0.5),
        (2 * Linear(), -3.0),
        (Linear() * Gaussian(0.1) + 0.5 * Constant(4.0), -1.5 * exp(-0.925) + 2),
        ((Linear() + 1) * (Linear() + 1), 0.25),
        (Gaussian() + Gaussian(0.1), exp(-4.625) + exp(-0.925)),
    ],
    ids=str,
)
def test_kernel_by_hand(kernel, value):
    assert kernel(*X2) == pytest.approx(np.array([[value]]), rel=1e-14)
    assert kernel([X2[0]], [X2[1], X2[1]]) == pytest.approx(np.array([[value, value]]), rel=1e-14)


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if not isinstance(kernel, Sigmoid)], ids=str)
def test_gram_matrices_are_positive_semidefinite(kernel):
    X = binary(60)[0]
    K = kernel(X)
    assert np.array_equal(K, K.T)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-12 * values[-1]


def test_the_sigmoid_is_not_positive_semidefinite():
    assert np.linalg.eigvalsh(Sigmoid(1.0, -1.0)(binary(60)[0]))[0] < -1


def test_kernels_add_and_multiply_value_by_value():
    X, Z = binary(20)[0], binary(15, seed=1)[0]
    a, b, c = Gaussian(0.7), Polynomial(2), Laplacian(0.4)
    same((a + b + c)(X, Z), a(X, Z) + b(X, Z) + c(X, Z))
    same((a * b * c)(X, Z), a(X, Z) * b(X, Z) * c(X, Z))
    same((a * (b + 2))(X, Z), a(X, Z) * (b(X, Z) + 2))
    assert a + b + c == Sum((a, b, c)) == a + (b + c)
    assert a * b * c == Product((a, b, c)) == a * (b * c)
    assert a + b * c == Sum((a, Product((b, c))))
    assert a + 1 == Sum((a, Constant(1)))


def test_auto_is_one_over_the_number_of_features():
    nested = Gaussian() + 0.5 * (Linear() + Laplacian())
    assert nested.resolve(4) == Gaussian(0.25) + 0.5 * (Linear() + Laplacian(0.25))
    model = build("PAClassifier", kernel=nested)
    scores = learn(model, *binary())
    assert model.kernel_ == nested.resolve(4)
    assert model.kernel is nested
    same(scores, learn(build("PAClassifier", kernel=nested.resolve(4)), *binary()), 0)


def test_kernels_by_name():
    for name in ["linear", "polynomial", "gaussian", "laplacian", "cauchy", "sigmoid"]:
        assert type(as_kernel(name)).__name__ == name.capitalize()
        assert as_kernel(as_kernel(name)) == as_kernel(name)
    with pytest.raises(ValueError, match=r"kernel must be an onkel.kernels object or one of .*gaussian.*, got 'rbf'"):
        as_kernel("rbf")


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", ["KernelPerceptronClassifier", "OGDClassifier", "PAClassifier", "ILKClassifier"])
def test_no_step_where_the_kernel_vanishes_or_is_negative(name):
    X, y = binary(40)
    X[7] = 0
    model = build(name, kernel=Linear())
    learn(model, X, y)
    assert model.t_ == 40
    assert 0 < model.n_support_ == (model.support_vectors_ != 0).any(axis=1).sum()
    model = build(name, kernel=Sigmoid(0.5, -1.0))
    learn(model, X, y)
    rows = model.support_vectors_
    assert 0 < len(rows) < 30
    assert (Sigmoid(0.5, -1.0)(rows).diagonal() > 0).all()


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_engines_use_the_kernel_they_are_given(kernel):
    X, y = binary(60)
    model = build("OGDClassifier", eta=0.1, loss="logistic", kernel=kernel)
    learn(model, X, y)
    fresh = stream_for(model, rounds=30, seed=1)[0]
    same(scores_of(model, fresh), kernel(fresh, X) @ model.dual_coef_[0])
