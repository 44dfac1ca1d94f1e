"""Laws that `test_laws` does not hold pools to, for those whose engine is Python only."""

import numpy as np
import pytest
from models import assert_same, make
from rings import twinned
from streams import EVERY, POOL_CASES, POOLS, learn, stream_for, takes_several

import onkel
from onkel.core.errors import Diverged
from onkel.kernels import Polynomial

NAMES = [name for name in POOLS if not twinned((name, 0))]
CLASSIFIERS = [name for name in NAMES if takes_several(name)]
CASES = [(name, params) for name, params in POOL_CASES if name in NAMES]
ROUNDS = 60

every_estimator = pytest.mark.parametrize("name", NAMES)
every_case = pytest.mark.parametrize(
    ("name", "params"), CASES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(CASES)]
)


def streams(name, **options):
    """Two classes and several, or real targets."""
    for several in (False, True) if name in CLASSIFIERS else (False,):
        yield stream_for(EVERY[name], ROUNDS, several=several, **options)


@every_case
def test_a_round_of_weight_zero_is_skipped(name, params):
    for X, y in streams(name):
        weight = (np.arange(ROUNDS) % 3 > 0).astype(float)
        kept = weight > 0
        some, those = make(name, params), make(name, params)
        scores = learn(some, X, y, sample_weight=weight)
        np.testing.assert_array_equal(scores[kept], learn(those, X[kept], y[kept]))
        assert_same(some, those)
        assert some.t_ == kept.sum()
        assert (learn(make(name, params), X, y, sample_weight=weight / 2)[kept] != scores[kept]).any()


@every_estimator
def test_these_pools_work_in_double_on_rows_of_either_type(name):
    for X, y in streams(name, form="float32"):
        np.testing.assert_array_equal(learn(make(name), X, y), learn(make(name), X.astype(np.float64), y))


@every_estimator
def test_files_that_do_not_fit_a_pool_are_refused(name, tmp_path):
    X, y = stream_for(EVERY[name], ROUNDS)
    model = make(name)
    learn(model, X, y)
    arrays, config = model.state()
    for key in (key for key in arrays if arrays[key].ndim):
        onkel.core.state.write(tmp_path / "model", arrays | {key: arrays[key][:-1]}, config)
        with pytest.raises(ValueError, match="does not hold a model"):
            onkel.load(tmp_path / "model")
        if key.startswith("groups."):
            onkel.core.state.write(tmp_path / "model", arrays | {key: -1.0 - arrays[key]}, config)
            with pytest.raises(ValueError, match=f"'{key}' must be"):
                onkel.load(tmp_path / "model")


@every_estimator
def test_there_is_no_twin(name):
    X, y = stream_for(EVERY[name], 5)
    model = make(name)
    learn(model, X, y)
    assert model.engine_ == "python"
    with onkel.use_engine("native"), pytest.raises(ValueError, match="no native engine"):
        make(name).fit(X, y)


def test_divergence_of_a_group_names_the_row():
    X, y = stream_for(onkel.ProximalMKLRegressor, 300)
    model = make("ProximalMKLRegressor", eta=1e4, lam=0.0)
    with pytest.raises(Diverged, match=r"row \d+.*use a smaller step"):
        learn(model, X, y)
    assert 0 < model.t_ < 300
    assert np.isfinite(model.predict(X)).all()
    long = onkel.ProximalMKLRegressor(eta=1e140, loss="absolute", kernels=[Polynomial(2, 0.0)])
    with pytest.raises(Diverged, match=r"row 0: the squared length of the model is inf"):
        long.learn(1e8 * X, y)
    assert not long.__sklearn_is_fitted__()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_third_class_joins_these_pools_with_score_zero(name):
    X, y = stream_for(EVERY[name], 80)
    for third, columns in ((-5, (1, 2, 0)), (0, (0, 2, 1)), (5, (0, 1, 2))):  # places of -1, +1 and the third
        model = make(name).partial_fit(X, y)
        f, weights = model.decision_function(X), model.weights_
        model.learn(X[:1], [third], sample_weight=[0.0])
        s = model.decision_function(X)
        np.testing.assert_allclose(s[:, columns[0]], -f / 2, atol=1e-13)
        np.testing.assert_allclose(s[:, columns[1]], f / 2, atol=1e-13)
        assert not s[:, columns[2]].any()
        lengths = np.sqrt(2) if name.startswith("Proximal") else 1.0  # |(-f/2, f/2)|^2 = |f|^2 / 2
        np.testing.assert_allclose(model.weights_ * lengths, weights, atol=1e-12)
        model.partial_fit(X, np.where(np.arange(80) % 4, y, third))
        assert np.isfinite(model.decision_function(X)).all()
