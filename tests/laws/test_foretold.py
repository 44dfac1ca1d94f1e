"""`learn` is predict, then learn: it returns the scores that predicting would have given just before, bit by bit.

One exception: where draws decide which components answer (modes DS and SS of OMKC), prediction is the vote of all.
"""

import numpy as np
import pytest
from models import AVERAGES, part, step
from streams import ALL, FORMS, build, learn, scores_of, settings, stream_for, takes_several, task_of

from onkel.core.scores import predicted

ROUNDS = 60
CASES = [(name, number) for name, cls in ALL.items() if cls.online for number in range(len(settings(name)))]
ANSWERED = [
    (name, number, several, average)
    for name, number in CASES
    for several in ([False, True] if takes_several(name) else [False])
    for average in (AVERAGES if hasattr(ALL[name], "average") else [None])
    if settings(name)[number].get("mode") not in ("DS", "SS")
]
every_answer = pytest.mark.parametrize(("name", "number", "several", "average"), ANSWERED)


def made(name, number, average):
    return build(name, **settings(name)[number] | ({} if average is None else {"average": average}))


@every_answer
def test_scores_of_learn_are_those_of_predicting_just_before(engine, name, number, several, average):
    """Learned in one call and row by row; predicted alone, and together with rows to come."""
    form = FORMS[ANSWERED.index((name, number, several, average)) % 4]
    X, y = stream_for(ALL[name], ROUNDS, form=form, several=several)
    told = learn(made(name, number, average), X, y)
    model = made(name, number, average)
    learn(model, X[:1], part(y, slice(1)))
    for i in range(1, ROUNDS):
        foretold = scores_of(model, X[i : i + 1 + i % 3])[:1]
        np.testing.assert_array_equal(told[i : i + 1], foretold, err_msg=f"row {i}")
        np.testing.assert_array_equal(told[i : i + 1], learn(model, X[[i]], part(y, [i])), err_msg=f"row {i}")


@every_answer
def test_one_by_one_too(engine, name, number, several, average):
    X, y = stream_for(ALL[name], ROUNDS, several=several)
    told = learn(made(name, number, average), X, y)
    model = made(name, number, average)
    learn(model, X[:1], part(y, slice(1)))
    for i in range(1, ROUNDS):
        if task_of(model) == "Classifier":
            assert model.predict_one(X[i]) == predicted(model.classes_, told[i : i + 1])[0]
        elif task_of(model) == "Regressor":
            assert model.predict_one(X[i]) == told[i]
        else:
            assert model.score_one(X[i]) == model.offset_ - told[i]
        step(model, X[i], part(y, i))


@pytest.mark.parametrize("name", [name for name, cls in ALL.items() if cls.online and task_of(cls) != "Detector"])
def test_rows_of_weight_zero_are_only_predicted(engine, name):
    X, y = stream_for(ALL[name], ROUNDS)
    model = build(name)
    learn(model, X[:40], y[:40])
    foretold = scores_of(model, X[40:])
    np.testing.assert_array_equal(learn(model, X[40:], y[40:], sample_weight=np.zeros(20)), foretold)
    assert model.t_ == 40
