"""Quick and slow tests, and the rule that decides which tests are slow.

A test is quick, and run by `make test`, unless it is marked `slow`. Tests that need much time or data are marked by
hand. Tests that are expected to fail are slow, and so are repeats: of the tests of one function that try the same
composition of parts, and differ only in the `VARIED` parameters, one is quick and the others are slow. The variations
take turns: the first is quick for the first composition, the second for the second, so that all are quick somewhere.
"""

from functools import cache, partial
from typing import NamedTuple

import pytest
from streams import ALL, learn, settings, stream_for

import onkel
from onkel.faces.estimator import Estimator
from onkel.hypotheses import Hypothesis
from onkel.learners.pool import PoolEngine

# Parameters of tests. The first say what is tried: an estimator by name, with its first settings, or these, or those of
# a number; or a model, or a hypothesis. The others are ways to try it.
CASE = ("name", "params", "number", "estimator", "hypothesis")
VARIED = ("several", "kind", "average", "form", "kernel", "bad", "mode", "shared")
TRIED = pytest.StashKey()  # of the session: what its tests try, and whether they are slow


class Tried(NamedTuple):
    """What a test over the estimators tries."""

    function: str
    composition: tuple[str, ...]
    rest: tuple[tuple[str, str], ...]  # parameters that are not varied
    variation: tuple[tuple[str, str], ...]  # and those that are


def tried(item):
    """What a collected test tries; None if its parameters name no case."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    case = case_of(parameters)
    if case is None:
        return None
    words = sorted((name, label(value)) for name, value in parameters.items() if name not in CASE)
    rest, variation = (tuple(word for word in words if (word[0] in VARIED) == varied) for varied in (False, True))
    return Tried(item.nodeid.partition("[")[0], composition(case), rest, variation)


def case_of(parameters):
    """A model, a hypothesis, or the name of an estimator and the number of its settings; None if there is neither."""
    for kind in (Estimator, Hypothesis):
        if isinstance(case := parameters.get(kind.__name__.lower()), kind):
            return case
    name, params = parameters.get("name"), parameters.get("params")
    if name not in ALL or (params is not None and params not in settings(name)):
        return None
    return name, settings(name).index(params) if params is not None else parameters.get("number", 0)


def repeats(found):
    """The numbers of those that are slow by the rule, among the things that tests try."""
    alike, turns = {}, {}
    for number, one in enumerate(found):
        if one is not None:
            alike.setdefault(one[:3], []).append(number)
            turns.setdefault(one.function, {}).setdefault(one.composition, len(turns[one.function]))
    for (function, parts, _), numbers in alike.items():
        turn = turns[function][parts] % len(numbers)
        yield from numbers[:turn] + numbers[turn + 1 :]


def label(value):
    """A parameter as a text that is the same for equal ones; a check is known by its name and options but its data."""
    if isinstance(value, partial):
        options = sorted((name, label(option)) for name, option in value.keywords.items() if name != "dataset")
        return f"{value.func.__name__} {options}"
    return getattr(value, "__name__", None) or repr(value)


# -- what is known of a case


def begun(case, engine):
    """Its model, which has learned something."""
    model = case.clone() if isinstance(case, Estimator) else ALL[case[0]](**settings(case[0])[case[1]])
    with onkel.use_engine(engine):
        learn(model, *stream_for(model, rounds=2))
    return model


@cache
def composition(case):
    """What it is for, and the classes it is composed of: its loop, how a pool weighs, and all parts."""
    if isinstance(case, Hypothesis):
        return (kinds(case),)
    cls = type(case) if isinstance(case, Estimator) else ALL[case[0]]
    if not cls.online:  # it learns from a whole table, without parts
        return cls.task, cls.__name__
    engine = begun(case, "python")._learned.engine
    pool = isinstance(engine, PoolEngine)
    weighing = (type(engine.weighting).__name__, str(engine.vote), str(engine.by_rounds)) if pool else ()
    return cls.task, type(engine).__name__, *weighing, *map(kinds, engine.inner)


def kinds(part):
    """The class of a part, and of those inside."""
    inside = ", ".join(map(kinds, part.inner))
    return f"{type(part).__name__}({inside})" if inside else type(part).__name__


@cache
def twinned(case):
    """Does its model run in C++?"""
    return begun(case, "auto").engine_ == "native"


def one_each(cases):
    """Of the cases (name, settings) the first of every composition."""
    first = {}
    for name, params in cases:
        first.setdefault(composition((name, settings(name).index(params))), (name, params))
    return [*first.values()]
