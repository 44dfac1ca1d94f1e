"""What is refused with a sentence: one estimator of each kind to try it on, and what the sentence must say."""

import re

import pytest
from streams import ESTIMATORS, build, learn, stream_for

from onkel.faces.detector import Detector

KINDS = ["ForgetronClassifier", "KLMSRegressor", "NORMADetector"]
every_kind = pytest.mark.parametrize("name", KINDS)
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def step(model, x, y):
    model.learn_one(x) if isinstance(model, Detector) else model.learn_one(x, y)


def refuses(words, call, *args, **kwargs):
    """The call raises a ValueError or TypeError whose sentence has all the words."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call(*args, **kwargs)
    for word in words:
        assert re.search(word, str(caught.value)), f"{word!r} is not in: {caught.value}"


def trained(name, rounds=30, form="dense"):
    X, y = stream_for(ESTIMATORS[name], rounds, form=form)
    model = build(name)
    learn(model, X, y)
    return model, X, y
