"""Limits: what is beyond them is refused in a sentence, before anything is allocated or changed."""

import contextlib
import math

import numpy as np
import pytest
import scipy.sparse as sp

import onkel
from onkel import native
from onkel.core.errors import Refused
from onkel.core.limits import Limits, TooMany, limits, machine
from onkel.datasets.text import TextError, parse_libsvm


def refused(limit, got, most):
    return pytest.raises(TooMany, match=rf"{got}; the limit is {most}: .*onkel\.use_limits\({limit}=")


def test_use_limits_holds_in_its_block():
    before = limits()
    with onkel.use_limits(features=7, classes=math.inf) as inside:
        assert limits() is inside and (inside.features, inside.classes) == (7, math.inf)
        assert inside.memory == before.memory
        with contextlib.suppress(ZeroDivisionError), onkel.use_limits(length=3):
            raise ZeroDivisionError
        assert limits() is inside
    assert limits() is before
    told = "there is no limit 'rows': they are features, classes, length, memory"
    with pytest.raises(TypeError, match=told), onkel.use_limits(rows=3):
        pass
    for wrong in (0, -1, math.nan, True, "many", None):
        with pytest.raises(Refused, match=r"Limits\.length must be a number > 0"):
            Limits(length=wrong)
    assert limits() is before
    assert 2**20 < limits().memory < machine()


def test_a_million_columns_pass(engine):
    X = sp.csr_array((np.ones(3), ([0, 1, 2], [999_999, 5, 7])), shape=(3, 1_000_000))
    assert onkel.PAClassifier().fit(X, [0, 1, 0]).n_features_in_ == 1_000_000


@pytest.mark.parametrize("name", ["PAClassifier", "FOGDClassifier", "SPAOMKLClassifier"])
def test_features_and_names(engine, name):
    model = getattr(onkel, name)()
    model.learn_one({"a": 1.0, "b": 2.0}, "x")
    model.learn_one({"a": 2.0}, "y")
    before = model.state()[1]
    with onkel.use_limits(features=3, length=5):
        with refused("features", 4, 3):
            model.learn_one({"c": 1.0, "d": 1.0}, "x")
        with refused("length", 6, 5):
            model.learn_one({"longer": 1.0}, "x")
        with refused("features", 4, 3):
            getattr(onkel, name)().learn(np.zeros((2, 4)), [0, 1])
        assert model.state()[1] == before
        model.learn_one({"c": 1.0}, "x")
    model.learn_one({"longer": 1.0}, "x")
    assert model.n_features_in_ == 4
    plain = getattr(onkel, name)().fit(np.eye(2), [0, 1])
    with onkel.use_limits(features=5), refused("features", 6, 5):
        plain.widen(6)
    assert plain.n_features_in_ == 2


@pytest.mark.parametrize("name", ["PAClassifier", "FOGDClassifier", "SPAOMKLClassifier"])
def test_classes_and_labels(engine, name):
    model = getattr(onkel, name)()
    for i in range(4):
        model.learn_one({"a": float(i)}, f"c{i}")
    with onkel.use_limits(classes=4, length=6):
        with refused("classes", 5, 4):
            model.learn_one({"a": 1.0}, "d")
        with refused("classes", 6, 4):
            model.learn([[1.0], [2.0]], ["d", "e"])
        with refused("length", 7, 6):
            getattr(onkel, name)().fit(np.eye(2), ["x", "longest"])
        assert model.classes_.tolist() == ["c0", "c1", "c2", "c3"]
    model.learn_one({"a": 1.0}, "d")
    assert model.classes_.tolist() == ["c0", "c1", "c2", "c3", "d"]


def test_columns_of_libsvm(engine):
    line = b"1 3:1\n1 2147483000:1\n"
    assert native.parse_libsvm(line, 1) is None  # left to the definition, which knows the line
    with pytest.raises(
        TextError, match=r"'2147483000' is beyond the limit of 100,000,000 columns.*use_limits"
    ) as caught:
        parse_libsvm(line, 1)
    assert caught.value.line == 2
    with onkel.use_limits(features=4):
        assert parse_libsvm(b"1 4:1", 1).width == 4
        with pytest.raises(TextError, match="'5' is beyond the limit of 4 columns"):
            parse_libsvm(b"1 5:1", 1)
    with onkel.use_limits(features=math.inf):
        assert parse_libsvm(line, 1).width == 2147483000
        with pytest.raises(TextError, match="beyond the limit of 2,147,483,647"):
            parse_libsvm(b"1 99999999999999999999:1", 1)


HUGE = {
    "FOGDClassifier": [{}, {"map": "orthogonal"}, {"map": "fastfood"}, {"map": "sorf"}],
    "RRFRegressor": [{}],
    "DualSGDClassifier": [{}],
    "FOGDOMKLRegressor": [{}],
    "RakerClassifier": [{}],
    "AdaRakerRegressor": [{}],
}


@pytest.mark.parametrize(("name", "params"), [(n, p) for n, several in HUGE.items() for p in several])
def test_components_that_no_machine_can_hold(engine, name, params):
    """Refused before anything is allocated; before, the system killed the process."""
    model = getattr(onkel, name)(components=2_000_000_000, **params)
    with pytest.raises(TooMany, match=r"the memory that the model needs is about .* GiB; the limit is .* GiB"):
        model.learn(np.eye(4), [0, 1, 0, 1])
    assert not model.__sklearn_is_fitted__()


def test_a_map_that_grows_beyond_the_memory(engine):
    model = onkel.FOGDClassifier(components=100)
    with onkel.use_limits(memory=2**20):
        for i in range(2**20 // (32 * 100) - 10):
            model.learn_one({f"w{i}": 1.0}, i % 2)
        before = model.state()
        with pytest.raises(TooMany, match="GiB"):
            model.learn_one({f"v{i}": 1.0 for i in range(100)}, 1)
        assert model.state()[1] == before[1]
    with pytest.raises(TooMany):
        onkel.FourierTransformer(components=2_000_000_000).fit(np.eye(3))
