"""A new feature costs what it adds: its own numbers are drawn, and what is there is not copied."""

import statistics
import time

import numpy as np
import pytest
import scipy.sparse as sp
from models import make
from streams import EVERY, stream_for

import onkel
from onkel import maps
from onkel.core.growing import Growing
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
