"""Rows in every form of storage, under every kernel: the engines agree with each other and with sums written out."""

import numpy as np
import parts
import pytest
import scipy.sparse as sp
from box_checks import same
from streams import binary, build, learn, multiclass, scores_of

import onkel
from onkel.budgets import RemoveOldest, Unlimited
from onkel.hypotheses import Expansion
from onkel.kernels import Cauchy, Gaussian, Kernel, Laplacian, Polynomial
from onkel.learners.learner import Learner
from onkel.losses import Logistic
from onkel.native import has_twin
from onkel.updates import Gradient

native = pytest.mark.skipif(not onkel.native.available(), reason="the native engine is not built")
KERNELS = parts.examples(Kernel)


@native
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", ["dense", "sparse", "wide"])
@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if has_twin(kernel)], ids=str)
def test_twins_agree_on_every_kernel_and_storage(kernel, form, dtype):
    X, y = multiclass(150, form=form)
    X, y, kernel = X.astype(dtype), y.astype(float), kernel.resolve(X.shape[1])
    tolerance = 1e-10 if dtype is np.float64 else 2e-5
    run = {"outputs": 4, "average": True, "columns": X.shape[1], "dtype": dtype, "sparse": sp.issparse(X)}
    for budget in [Unlimited(), RemoveOldest(20)]:
        python, other = (Learner(Expansion(kernel, budget), Logistic(), Gradient(0.05, 0.01), **run) for _ in range(2))
        with onkel.use_engine("native"):
            twin = onkel.native.fastest(other)
        same(twin.learn(X, y), python.learn(X, y), tolerance)
        same(twin.scores(X[:40]), python.scores(X[:40]), tolerance)
        same(twin.scores(X[:40], average=False), python.scores(X[:40], average=False), tolerance)
        found, wanted = twin.state(), python.state()
        assert found.keys() == wanted.keys()
        for name in found:
            same(found[name], wanted[name], tolerance)


@native
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", ["dense", "sparse", "wide"])
@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(0.4), Cauchy(0.8), 0.2 * Polynomial(2) + 1], ids=str)
def test_long_expansions_add_up(kernel, form, dtype):
    X, y = binary(1200, form=form)
    model = build("OGDClassifier", eta=0.01, loss="logistic", kernel=kernel)
    scores = learn(model, X.astype(dtype), y)
    dense = X.astype(dtype).toarray() if sp.issparse(X) else X.astype(dtype)
    some = np.arange(0, 1200, 25)
    K = kernel(dense[some], dense) * (np.arange(1200) < some[:, None])
    same(scores[some], K @ model.dual_coef_[0], 1e-10 if dtype is np.float64 else 2e-5)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("form", ["sparse", "wide"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_sparse_rows_are_dense_rows_with_zeros(kernel, form):
    X, y = binary(80, form=form)
    for name, more in {"PA": {}, "Forgetron": {"budget": 30}, "TighterPerceptron": {"budget": 30}}.items():
        models = [build(f"{name}Classifier", kernel=kernel, **more) for _ in range(2)]
        found, wanted = learn(models[0], X, y), learn(models[1], X.toarray(), y)
        same(found, wanted)
        same(models[0].dual_coef_, models[1].dual_coef_)
        same(scores_of(models[0], X), scores_of(models[1], X.toarray()))
        stored = models[0].support_vectors_
        stored = stored.toarray() if sp.issparse(stored) else stored
        assert np.array_equal(stored, models[1].support_vectors_)


@pytest.mark.usefixtures("engine")
def test_float32_rows_stay_float32():
    X, y = binary(form="float32")
    model, exact = (
        build("OGDClassifier", eta=0.1, loss="logistic"),
        build("OGDClassifier", eta=0.1, loss="logistic"),
    )
    scores = learn(model, X, y)
    assert scores.dtype == np.float64
    assert model.support_vectors_.dtype == np.float32
    same(scores, learn(exact, X.astype(np.float64), y), 1e-4)
