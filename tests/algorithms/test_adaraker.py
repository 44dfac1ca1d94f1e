"""AdaRaker is its box, and each of its instances a Raker."""

import numpy as np
import pytest
from boxes.multi_kernel import adaraker
from streams import STREAMS, regression

import onkel
from onkel.algorithms import find
from onkel.kernels import Gaussian, Laplacian
from onkel.learners.learner import rows
from onkel.learners.pool import seeds
from onkel.maps import Fourier

KERNELS = (Gaussian(0.1), Gaussian(1.0), Laplacian(0.5))
COMPONENTS = 8
every = pytest.mark.parametrize("kind", STREAMS)


def make(kind, **params):
    kernels = params.pop("kernels", KERNELS)
    cls = onkel.AdaRakerRegressor if kind == "regression" else onkel.AdaRakerClassifier
    return cls(kernels=kernels, components=COMPONENTS, **params)


def features(X, seed=0, kernels=KERNELS):
    """z_p(x) for each kernel, (kernels, rounds, features)."""
    keys = np.arange(X.shape[1], dtype=np.uint64)
    maps = [Fourier(kernel, COMPONENTS) for kernel in kernels]
    return [map.features(X, map.draw(keys, s), {}) for map, s in zip(maps, seeds(seed, len(maps)), strict=True)]


@every
@pytest.mark.parametrize(("eta", "lam"), [(0.7, 0.0), (10.0, 0.02)])
def test_adaraker_is_its_box(kind, eta, lam):
    stream, outputs = STREAMS[kind]
    X, y = stream(320)  # long enough for nine instances
    for loss in ("squared", "absolute") if kind == "regression" else ("logistic", "hinge"):
        run, inner, _ = adaraker(features(X, 5), y, outputs=outputs, eta=eta, lam=lam, loss=loss)
        assert len(y) >= 300 and run.W.shape[1] == 9
        model = make(kind, eta=eta, lam=lam, loss=loss, random_state=5)
        for start in range(0, len(y), 32):
            part = slice(start, start + 32)
            if start:
                np.testing.assert_allclose(model.weights_, run.W[start] @ inner[start], rtol=0, atol=1e-10)
                assert model.weights_.sum() == pytest.approx(1)
            np.testing.assert_allclose(model.learn(X[part], y[part]), run.S[part], rtol=0, atol=1e-10)


@every
def test_one_kernel_in_one_instance_is_fogd(kind):
    """Instance 5 lives from round 32 to round 63, and between them it is FOGD; so is every other."""
    stream, _ = STREAMS[kind]
    X, y = stream(64)
    eta, loss = 2.0, "absolute" if kind == "regression" else "hinge"
    model = make(kind, kernels=KERNELS[:1], eta=eta, loss=loss)
    engine, found = None, {}
    for t in range(1, 64):
        if engine is not None:
            x = next(rows(X[t - 1 : t]))
            found[t] = engine.answers(engine.features(x))[1]
        model.partial_fit(X[t - 1 : t], y[t - 1 : t], **({} if kind == "regression" else {"classes": np.unique(y)}))
        engine = model._learned.engine
    single = onkel.FOGDRegressor if kind == "regression" else onkel.FOGDClassifier
    for j, start in ((5, 32), (4, 16), (4, 32), (4, 48), (3, 24)):
        part = slice(start - 1, min(start + 2**j, 64) - 1)
        fogd = single(kernel=KERNELS[0], components=COMPONENTS, eta=min(0.5, eta / np.sqrt(2**j)), loss=loss)
        options = {} if kind == "regression" else {"classes": np.unique(y)}
        expected = fogd.learn(X[part], y[part], **options)
        got = np.array([found[t][j] for t in range(start, part.stop + 1)])
        np.testing.assert_allclose(got[:, 0] if got.shape[1] == 1 else got, expected, atol=1e-12)


def test_every_instance_is_a_raker_between_its_restarts():
    X, y = regression(48)
    model = make("regression", eta=0.9, eta_weights=3.0, lam=0.01)
    found = []
    model.learn(X[:31], y[:31])
    for t in range(31, 48):
        x = next(rows(X[t : t + 1]))
        found.append(model._learned.engine.answers(model._learned.engine.features(x))[1][4, 0])
        model.learn(X[t : t + 1], y[t : t + 1])
    raker = onkel.RakerRegressor(
        kernels=KERNELS, components=COMPONENTS, eta=0.9 / 4, eta_weights=min(0.5, 3.0 / 4), lam=0.01
    )
    np.testing.assert_allclose(found[:16], raker.learn(X[31:47], y[31:47]), atol=1e-12)
    assert found[16] == 0.0  # round 48: it begins anew


def test_scores_before_a_round_are_those_of_prediction():
    """Also in the rounds that restart an instance."""
    X, y = regression(40)
    model = make("regression").fit(X[:1], y[:1])
    for t in range(1, 40):
        told = model.predict(X[t : t + 1])
        np.testing.assert_array_equal(model.learn(X[t : t + 1], y[t : t + 1]), told)


@pytest.mark.parametrize("seed", range(3))
def test_it_follows_a_stream_that_turns(seed):
    """After the sign of the target has changed, no constant step makes a Raker as good."""
    X = np.random.default_rng(seed).normal(size=(1024, 2))
    y = np.sin(X @ [2.0, 1.0]) * np.where(np.arange(1024) < 700, 1.0, -1.0)

    def late(model):
        return np.mean((model.learn(X, y) - y)[700:] ** 2)

    best = min(late(onkel.RakerRegressor(eta=eta)) for eta in (0.05, 0.1, 0.2, 0.5, 1.0))
    assert late(onkel.AdaRakerRegressor()) < best


def test_names():
    assert find("adaraker").name == "AdaRaker"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"eta": 0.0}, r"AdaRakerRegressor\.eta must be a finite number > 0, got 0\.0"),
        ({"eta_weights": -1.0}, r"AdaRakerRegressor\.eta_weights must be a finite number > 0, got -1\.0"),
        ({"lam": 1.5}, r"AdaRakerRegressor\.lam must be >= 0 and < 1, got 1\.5"),
        ({"components": 0}, r"AdaRakerRegressor\.components must be an integer >= 1"),
        ({"loss": "hinge"}, "loss must be a regression loss"),
        ({"kernels": ["linear"]}, "has no random features"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    X, y = regression(5)
    with pytest.raises(ValueError, match=message):
        onkel.AdaRakerRegressor(**params).fit(X, y)
