"""No parameter of an estimator is silently ignored: it changes what is learned, or other values are refused.

Each is changed alone, in the settings that the estimator states, to the values that others of its settings have.
"""

import numpy as np
import pytest
from streams import KERNELS, inputs, learn, scores_of, stream_for

import onkel
from onkel.algorithms import estimators
from onkel.core.errors import Diverged
from onkel.faces import transformers
from onkel.kernels import Gaussian

EVERY = estimators()
KERNEL = [KERNELS["uneven"], Gaussian(1.0), Gaussian(5.0)]  # k(x, x) varies; rows are alike; they are not
OTHERS = {"kernel": [Gaussian(0.3)], "kernels": [KERNEL[:2]], "random_state": [1], "average": [True, False]}


def fields(cls):
    """The parameters that may matter; n_jobs must not."""
    return sorted(cls().get_params(deep=False).keys() - {"n_jobs"})


def values(cls, field):
    """The values its settings have in a field, each once."""
    default = cls().get_params(deep=False)[field]
    found = {repr(value): value for value in (*(s.get(field, default) for s in cls.examples), default)}
    found |= {repr(value): value for value in OTHERS.get(field, [])}
    return list(found.values())


def settings(cls):
    """Its settings, with every kernel that may show something."""
    kernels = [{"kernel": kernel} for kernel in KERNEL] if "kernel" in fields(cls) else [{}]
    return [{**kernel, **params} for kernel in kernels for params in cls.examples]


def outcome(cls, params):
    """Its scores, those before each update if it learns from a stream; None if the settings are refused."""
    try:
        model = cls(**params)
        X, y = stream_for(model, 320)  # long enough for rules that only matter when a budget is full
        return (learn(model, X, y) if cls.online else scores_of(model.fit(X, y), X)).tobytes()
    except Diverged:
        return "diverged"
    except ValueError:
        return None


def is_ignored(cls, field, outcomes):
    """May the field have other values, and do none of them change what is learned?

    Parameters
    ----------
    outcomes : those of the settings that the estimator states
    """
    accepted = len(values(cls, field)) < 2
    for params, before in zip(settings(cls), outcomes, strict=True):
        for value in values(cls, field) if before is not None else ():
            if repr(value) == repr(cls(**params).get_params(deep=False)[field]):
                continue
            after = outcome(cls, params | {field: value})
            if after is not None and after != before:
                return False
            accepted = accepted or after is not None
    return accepted


def streams(model):
    """Where its streams of random numbers are."""
    return {name: int(a) for name, a in model.state()[0].items() if a.dtype == np.uint64}


@pytest.mark.parametrize("cls", EVERY.values(), ids=EVERY)
def test_every_parameter_matters(cls):
    """But for the seed, where nothing is drawn."""
    outcomes = [outcome(cls, params) for params in settings(cls)]
    ignored = {field for field in fields(cls) if is_ignored(cls, field, outcomes)}
    assert ignored <= {"random_state"}
    for params in cls.examples if ignored else ():
        model = cls(**params)
        X, y = stream_for(model, 60)
        learn(model, X[:5], None if y is None else y[:5])
        before = streams(model)
        learn(model, X, y)
        assert streams(model) == before


TRANSFORMERS = {
    "FastfoodTransformer": ({},),
    "FourierTransformer": ({},),
    "NystromTransformer": ({}, {"landmarks": "random", "rank": 3}),
    "OrthogonalTransformer": ({}, {"structured": True}),
    "ReparameterizedTransformer": ({}, {"widths": [1.0, 2.0, 3.0, 4.0]}),
}


@pytest.mark.parametrize("name", transformers.__all__)
def test_every_parameter_of_a_transformer_matters(name):
    cls, X = getattr(onkel, name), inputs(40)
    defaults = cls().get_params(deep=False)
    for field, default in defaults.items():
        others = [params[field] for params in TRANSFORMERS[name] if field in params]
        others += {"kernel": [Gaussian(2.0)], "components": [9], "random_state": [1]}.get(field, [])
        before = cls(components=7).fit_transform(X)
        found = [cls(**{"components": 7, field: other}).fit_transform(X) for other in others]
        assert any(Z.shape != before.shape or not np.array_equal(Z, before) for Z in found), field
        assert default not in others
