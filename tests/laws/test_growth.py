"""A new feature costs what it adds: its own numbers are drawn, and what is there is not copied."""

import contextlib
import statistics
import time

import numpy as np
import pytest
import scipy.sparse as sp
from models import SEVERAL, assert_same, every_estimator, make, part, snapshot, step
from streams import EVERY, stream_for

import onkel
from onkel import maps
from onkel.core.errors import Diverged
from onkel.core.growing import Growing
from onkel.faces.classifier import Classifier
from onkel.faces.regressor import Regressor
from onkel.kernels import Gaussian

MAPS = [
    "FOGDClassifier",
    "RRFRegressor",
    "DualSGDClassifier",
    "FOGDOMKLRegressor",
    "RakerClassifier",
    "AdaRakerRegressor",
]


def drawn_by(model, rows, y, monkeypatch):
    """How many random numbers are drawn for each key while a model learns from dictionaries."""
    counts = {}

    def counted(seed, purpose, keys, count):
        for key in np.asarray(keys).tolist():
            counts[seed, key] = counts.get((seed, key), 0) + count
        return uniforms(seed, purpose, keys, count)

    uniforms = maps.uniforms
    monkeypatch.setattr(maps, "uniforms", counted)
    maps._spectrum.cache_clear()
    for x, target in zip(rows, y, strict=True):
        model.learn_one(x, target)
    return counts


@pytest.mark.parametrize("name", MAPS)
def test_only_new_features_are_drawn(engine, name, monkeypatch):
    y = stream_for(EVERY[name], 60)[1]
    rows = [{f"x{2 * i}": 1.0, f"x{2 * i + 1}": 0.5, f"x{i}": 2.0} for i in range(60)]
    counts = drawn_by(make(name), rows, y, monkeypatch)
    seeds = {seed for seed, _ in counts}  # components of a pool may have seeds of their own
    assert len(counts) == 120 * len(seeds)
    assert len(set(counts.values())) == 1  # as often for the first name, which 59 others joined, as for the last


@pytest.mark.parametrize("name", ["PAClassifier", "BOGDClassifier", "RBPClassifier", "DualSGDClassifier"])
@pytest.mark.parametrize("dense", [False, True])
def test_columns_without_names_grow_with_flags_and_without(engine, name, dense):
    """Past the ends of words of flags, of room, and of the dense table."""
    rng = np.random.default_rng(0)
    wide = rng.choice([0.0, 1.0, 0.5], p=[0.9, 0.09, 0.01], size=(90, 1200))
    y = rng.choice([-1, 1], 90)
    widths = [3, 5, 63, 64, 65, 130, 200, 900, 1100]
    form = np.array if dense else sp.csr_array
    grown, whole = (getattr(onkel, name)(kernel=Gaussian(0.1)) for _ in range(2))
    for i, width in enumerate(widths):
        rows = np.zeros((10, widths[-1]))
        rows[:, :width] = wide[10 * i : 10 * i + 10, :width]
        block = y[10 * i : 10 * i + 10]
        if i:
            grown.widen(width)
        scores = grown.learn(form(rows[:, :width]), block, classes=[-1, 1])
        np.testing.assert_allclose(scores, whole.learn(form(rows), block, classes=[-1, 1]), atol=1e-9)
    assert grown.n_features_in_ == widths[-1]


def test_growing_keeps_what_it_had():
    short = Growing(np.arange(3.0))
    longer = short.plus(np.array([3.0, 4.0]))
    assert short.values.tolist() == [0, 1, 2]
    other = short.plus(np.array([9.0]))
    assert other.values.tolist() == [0, 1, 2, 9]
    assert longer.values.tolist()[:3] == [0, 1, 2]
    rooms, grown = set(), Growing(np.zeros((1, 2)))
    for i in range(1000):
        grown = grown.plus(np.full((1, 2), i))
        rooms.add(grown.values.base.shape[0])
    assert grown.values[1:, 0].tolist() == list(range(1000))
    assert len(rooms) <= 11  # it was copied as often as its length doubled


@pytest.mark.parametrize("name", ["FOGDClassifier", "PAClassifier", "NOGDClassifier", "BOGDClassifier"])
def test_the_time_to_join_does_not_grow_with_the_features(name):
    """A ratio of medians, with 100 features known and with 10,000. `benchmarks/growth.py` measures more closely."""
    model, taken = getattr(onkel, name)(), []
    for i in range(10_600):
        x = {f"w{i}": 1.0, f"w{i // 2}": 0.5}
        clock = time.perf_counter()
        model.learn_one(x, i % 2)
        taken.append(time.perf_counter() - clock)
    assert statistics.median(taken[10_000:]) < 8 * statistics.median(taken[100:700])


@pytest.mark.parametrize("name", SEVERAL)
def test_classes_join_in_place_as_they_would_in_a_copy(engine, name):
    """Beside a model that is copied, and so built anew, whenever a class joins."""
    rng = np.random.default_rng(5)
    X, order = rng.normal(size=(60, 4)), rng.permutation(20)[rng.integers(0, 20, 60)]
    model, other = make(name), make(name)
    for i, (x, label) in enumerate(zip(X, order.tolist(), strict=True)):
        if i % 3:
            model.learn_one(x, label)
            other.learn_one(x, label)
            continue
        model.learn_one(x, label)
        other.learn(x[None], [label])  # always in a copy
        assert_same(model, other)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))


@every_estimator
def test_names_and_classes_leave_with_a_row_that_is_not_learned(engine, name):
    """A row that is too large, or at which the model diverges, leaves neither its names nor its class."""
    X, y = stream_for(EVERY[name], 40)
    model, other = make(name), make(name)
    wild = {"a": 1e305, "new": 1e305}
    several = issubclass(EVERY[name], Classifier) and not EVERY[name].two_classes
    y = [f"{i % 4}" for i in range(40)] if several else y
    for i in range(40):
        x = dict(zip("abcd", X[i], strict=True))
        if i % 10 == 9:
            before = snapshot(model)
            with contextlib.suppress(ValueError, Diverged):
                step(model, wild, "5" if several else 1e305 if issubclass(EVERY[name], Regressor) else part(y, i))
                return  # this one can learn such rows
            assert snapshot(model) == before
        step(model, x, part(y, i))
        step(other, x, part(y, i))
    assert_same(model, other)


@pytest.mark.parametrize("name", ["FOGDClassifier", "PAClassifier", "FOGDRegressor", "KLMSRegressor", "RBPClassifier"])
@pytest.mark.parametrize("known", [5, 1020])
def test_names_leave_a_model_whose_table_they_made_sparse(engine, name, known, monkeypatch):
    """A step that diverges after names and a class joined: the same model goes on with the same bits."""
    rng = np.random.default_rng(1)
    classes = name.endswith("Classifier")
    model, other = (getattr(onkel, name)() for _ in range(2))
    first = {f"x{i}": 1.0 / (i + 1) for i in range(known)}

    def target(i):
        return i % 4 if classes else float(rng.normal())

    for i in range(30):
        x, y = (first if i == 0 else {f"x{j}": rng.normal() for j in rng.integers(0, known, 3)}), target(i)
        for one in (model, other):
            one.learn_one(x, y)
    before = snapshot(model)
    with monkeypatch.context() as patch:

        def diverges(*_):
            raise Diverged("the score is", 1e200)

        for verb in ("_learn", "learn_as_it_is"):
            patch.setattr(type(model._learned), verb, diverges)
        with pytest.raises(Diverged):
            model.learn_one({f"new{j}": 1.0 for j in range(10)} | {"x0": 1.0}, 9 if classes else 1.0)
    assert snapshot(model) == before
    for i in range(30):
        x, y = {f"x{j}": rng.normal() for j in rng.integers(0, known + 3, 3)}, target(i)
        for one in (model, other):
            one.learn_one(x, y)
    assert_same(model, other)


def test_models_with_names_of_their_own_are_of_no_family():
    """Their features may differ, so they are not learned together."""
    models = [onkel.FOGDClassifier(), onkel.FOGDClassifier(), onkel.FOGDClassifier()]
    for model, names in zip(models, ("ab", "cd", "ab"), strict=True):
        for i in range(2):
            model.learn_one(dict.fromkeys(names, 1.0 + i), i)
    assert [model._learned.family for model in models] == [None] * 3
    plain = onkel.FOGDClassifier().fit(np.eye(2), [0, 1])
    assert plain._learned.family == plain._learned.engine.family
