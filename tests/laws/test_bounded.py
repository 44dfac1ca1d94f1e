"""What is bounded stays bounded: terms and memory."""

import pickle

import numpy as np
import pytest
from models import (
    BOUNDED,
    BUDGETED,
    CASES,
    ROUNDS,
    SEVERAL,
    is_pool,
    make,
    most_terms,
    part,
)
from streams import (
    BUDGET,
    learn,
    stream_for,
)
from streams import EVERY as ESTIMATORS

import onkel

# -- bounded is bounded


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(
    ("name", "params", "several"),
    [(*case, several) for case in CASES if case[0] in BUDGETED for several in {False, case[0] in SEVERAL}],
)
def test_budget_holds_in_every_round(engine, name, params, average, several):
    X, y = stream_for(ESTIMATORS[name], 70, several=several)
    model = make(name, params, average=average)
    learn(model, X[:10], part(y, slice(10)))
    for i in range(10, len(X)):
        model.partial_fit(X[[i]], part(y, [i]))
        assert model.n_support_ <= most_terms(model)
    if not is_pool(model):
        assert model.n_support_ == len(model.dual_coef_.T) == len(model.support_vectors_)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", BOUNDED)
def test_memory_is_flat(engine, name, average):
    rounds = 8000 if engine == "native" else 240
    X, y = stream_for(ESTIMATORS[name], rounds)
    model = make(name, average=average)
    sizes = []
    for start in range(0, rounds, rounds // 4):
        chunk = slice(start, start + rounds // 4)
        learn(model, X[chunk], part(y, chunk))
        sizes.append(sum(a.nbytes for a in model.state()[0].values()))
        assert len(pickle.dumps(model)) < sizes[-1] + 8192
    full = (len(X[0]) + 6) * 8 * (2 * BUDGET + 1) + 200  # rows, coef, base, born, score; recent examples
    full += 2 * 8 * BUDGET**2  # the factor of a kernel matrix and its inverse
    assert max(sizes) <= full * (len(model.kernels) if is_pool(model) else 1)


def test_truncation_is_bounded(engine):
    for name in ("NORMAClassifier", "NORMARegressor", "NORMADetector"):
        X, y = stream_for(ESTIMATORS[name], 100)
        model = make(name, {"truncation": 20, "eta": 0.3, "lam": 0.1})
        for i in range(0, 100, 2):
            learn(model, X[i : i + 2], part(y, slice(i, i + 2)))
            assert model.n_support_ <= 20


def test_a_lone_term_begins_afresh(engine):
    X, y = stream_for(ESTIMATORS["BOGDClassifier"], ROUNDS)
    model = onkel.BOGDClassifier(budget=1, eta=4.0, lam=0.025, unbiased=False)
    stepped = y * model.learn(X, y) < 1
    assert 1 < stepped.sum() < ROUNDS
    rounds_since = np.argmax(stepped[::-1])  # in each of them the term shrinks by 1 - eta lam
    assert model.state()[0]["scale"] == pytest.approx(0.9**rounds_since, rel=1e-12)
