"""Parts are values: they compare, print, hash, nest, and cross files as plain data."""

import dataclasses
import itertools
import json
import math

import numpy as np
import parts
import pytest
from streams import build

from onkel.core.part import Part
from onkel.kernels import Gaussian
from onkel.updates import Gradient, PassiveAggressive

PARTS = parts.examples()


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_parts_are_values(part):
    again = eval(repr(part), Part.known | {"inf": math.inf})
    assert again == part
    assert hash(again) == hash(part)
    assert Part.from_config(json.loads(json.dumps(part.config()))) == part
    assert part.replace() == part
    assert type(part)(**part.get_params(deep=False)) == part
    for field in dataclasses.fields(part):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, field.name, getattr(part, field.name))


@pytest.mark.parametrize("cls", {type(part): None for part in PARTS})
def test_examples_use_every_field(cls):
    """Those that hold a part are tried with every part there is."""
    tried = cls.examples()
    for field in dataclasses.fields(cls):
        if not isinstance(field.default, (Part, tuple)):
            assert any(getattr(part, field.name) != field.default for part in tried), field.name


def test_different_parts_differ():
    for a, b in itertools.combinations(PARTS, 2):
        assert a != b, (a, b)


def test_parts_are_changed_by_replacing():
    assert Gaussian(0.5).replace(gamma=2.0) == Gaussian(2.0)
    assert Gradient(0.1, 0.2).replace(lam=0) == Gradient(0.1, 0)
    assert Gaussian(0.5).get_params() == {"gamma": 0.5}
    with pytest.raises(ValueError, match=r"Gaussian has no field 'sigma'; it has \['gamma'\]"):
        Gaussian().replace(sigma=1.0)
    with pytest.raises(ValueError, match=r"Gaussian\.gamma must be > 0"):
        Gaussian().replace(gamma=-1.0)
    model = build("PAClassifier", kernel=Gaussian(0.5))
    before = model.kernel
    model.set_params(kernel__gamma=2.0)
    assert (before, model.kernel) == (Gaussian(0.5), Gaussian(2.0))


def test_config_is_plain_data():
    assert Gaussian(0.5).config() == {"part": "Gaussian", "gamma": 0.5}
    assert PassiveAggressive("I", math.inf).config()["C"] == {"number": "inf"}
    assert Part.from_config(PassiveAggressive("I", math.inf).config()) == PassiveAggressive("I", math.inf)
    numbers = Gradient(np.float32(0.5), np.int64(1)).config()
    assert [type(numbers[name]) for name in ("eta", "lam")] == [float, int]
    with pytest.raises(ValueError, match="unknown part 'Nothing'"):
        Part.from_config({"part": "Nothing"})
