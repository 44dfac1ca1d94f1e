"""Whatever ends a call leaves the model of the rows before: a prefix of the stream, pools and layers included."""

import signal
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from models import arrays_of, assert_same, declared, every_estimator, make, part, snapshot
from streams import EVERY, learn, stream_for

import onkel
from onkel.core.errors import Diverged, Interrupted
from onkel.faces.learned import Learned
from onkel.learners.hedge import Hedge
from onkel.learners.journal import Journal
from onkel.learners.weighting import ByLoss
from onkel.losses import Squared
from onkel.updates import Update

INSIDE = str(Path(onkel.__file__).parent)
ROWS = 60


class Interrupt:
    """Raises KeyboardInterrupt when the library is about to run its n-th line, as a user may at any moment."""

    def __init__(self, n):
        self.left, self.raised = n, False

    def __enter__(self):
        sys.settrace(self._call)

    def __exit__(self, *_):
        sys.settrace(None)

    def _call(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(INSIDE):
            return None
        return self._line

    def _line(self, frame, event, argument):
        if event == "line":
            self.left -= 1
            if self.left == 0:
                self.raised = True
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._line


def lines_of(model, X, y):
    """How many lines the library runs to learn these rows."""
    count = Interrupt(-1)
    with count:
        learn(model, X, y, **declared(model, y))
    return -1 - count.left


def interrupted(name, moments):
    """Interrupt a call at so many random lines: the model is that of a prefix, and goes on like it."""
    X, y = stream_for(EVERY[name], ROWS)
    half = ROWS // 2
    first, rest = (X[:half], part(y, slice(half))), (X[half:], part(y, slice(half, ROWS)))
    classes = declared(make(name), y)
    timed = make(name)
    learn(timed, *first, **classes)
    lines = lines_of(timed, *rest)
    rng = np.random.default_rng(len(name))
    for moment in rng.integers(1, lines, moments):
        model, fresh = make(name), make(name)
        learn(model, *first, **classes)
        interrupt = Interrupt(int(moment))
        with pytest.raises(KeyboardInterrupt) as caught, interrupt:
            learn(model, *rest, **classes)
        t = model.t_
        assert half <= t <= ROWS
        scores = learn(fresh, X[:t], part(y, slice(t)), **classes)
        if isinstance(caught.value, Interrupted):  # it came while rows were learned
            assert (caught.value.rows, caught.value.of) == (t - half, ROWS - half)
            np.testing.assert_array_equal(caught.value.scores, scores[half:])
        assert_same(model, fresh)
        if t < ROWS:
            for one in (model, fresh):
                learn(one, X[t:], part(y, slice(t, ROWS)), **classes)
        assert_same(model, fresh)


@every_estimator
def test_an_interrupted_call_leaves_a_prefix(engine, name):
    interrupted(name, 3)


@pytest.mark.slow
@every_estimator
def test_a_call_interrupted_at_many_moments_leaves_a_prefix(engine, name):
    interrupted(name, 12)


class FailsAtRow(Update):
    """A gradient step that fails in one round."""

    row: int = 5
    traits: ClassVar = ()

    def start(self, run):
        return {"rounds": 0}

    def step(self, round, memory):
        memory["rounds"] += 1
        if round.t == self.row + 1:
            raise ValueError("a slip")
        return 1.0, -0.1 * round.slope


@pytest.mark.parametrize("rows", [10, 200])
@pytest.mark.parametrize("failing", [0, 5, 7])
def test_rows_before_one_that_fails_count(rows, failing):
    X, y = stream_for(EVERY["OGDRegressor"], rows)
    model, fresh = (onkel.ComposedRegressor(update=FailsAtRow(row)) for row in (failing + 2, 10**6))
    model.learn(X[:2], y[:2])
    with pytest.raises(ValueError, match="a slip") as caught:
        model.learn(X[2:], y[2:])
    assert caught.value.__notes__[0].startswith(f"{failing} of {rows - 2} rows were learned")
    scores = fresh.learn(X[: failing + 2], y[: failing + 2])
    np.testing.assert_array_equal(caught.value.scores, scores[2:])
    assert arrays_of(model) == arrays_of(fresh)


@pytest.mark.parametrize("failing", [0, 5])
def test_rows_before_one_that_fails_in_a_component_count(failing):
    X, y = stream_for(EVERY["OGDRegressor"], 40)

    def pool(row):
        learners = [
            onkel.Learner(onkel.Expansion(), Squared(), FailsAtRow(10**6 if i != 1 else row), columns=4)
            for i in range(3)
        ]
        return Hedge(learners, weighting=ByLoss(), vote=False)

    engine, fresh = pool(failing), pool(10**6)
    journal = Journal(np.arange(4, dtype=np.uint64))
    with pytest.raises(ValueError, match="a slip"):
        engine.learn(X, y)
    assert [learner.t for learner in engine.learners] != [failing] * 3  # torn
    scores = journal.ended(pool(failing), X, y, None)
    assert journal.rows_learned == len(scores) == failing
    again = journal.replay(pool(10**6))
    if failing:
        fresh.learn(X[:failing], y[:failing])
    one, two = again.state(), fresh.state()
    assert all(np.array_equal(one[name], two[name]) for name in two)


def test_a_state_is_saved_so_often_that_an_interrupt_is_soon_over():
    """The rows since the saved state take at most as long as fifty states, or one block."""
    X, y = stream_for(EVERY["OM2Classifier"], 400)
    model = onkel.OM2Classifier()
    clock = time.perf_counter()
    model.learn(X, y)
    learning = time.perf_counter() - clock
    clock = time.perf_counter()
    model._learned.engine.state()
    saving = time.perf_counter() - clock
    assert model._learned._journal.since_kept < len(X) or learning < 200 * saving


@pytest.mark.parametrize("rows", [1, 7, 200, 1000])
@pytest.mark.parametrize("name", ["FOGDOMKLRegressor", "RakerRegressor", "AutoKernelRegressor"])
def test_components_of_a_pool_that_diverges_are_at_one_round(engine, name, rows):
    """One component diverges in the middle of a chunk: all of them stand before that row."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1000, 3))
    y = rng.normal(size=1000)
    y[613] = 1e300
    kind = getattr(onkel, name)
    model, fresh = (kind(**kind.examples[0]) for _ in range(2))
    before = 613 // rows * rows
    for start in range(0, before, rows):
        model.learn(X[start : start + rows], y[start : start + rows])
    with pytest.raises((Diverged, ValueError)) as caught:
        model.learn(X[before : before + rows], y[before : before + rows])
    if not model.__sklearn_is_fitted__():  # the first call was refused as a whole
        assert before == 0 and not isinstance(caught.value, Diverged)
        return
    t = model.t_
    assert t <= 613
    if isinstance(caught.value, Diverged):
        assert caught.value.row == 613 % rows
        assert t == 613
        assert len(caught.value.scores) == caught.value.row
    for start in range(0, t, rows):
        fresh.learn(X[start : min(start + rows, t)], y[start : min(start + rows, t)])
    assert_same(model, fresh)
    learners = getattr(model._learned.engine, "learners", [])
    assert all(learner.t == t for learner in learners)


@pytest.mark.parametrize("name", ["PAClassifier", "FOGDRegressor", "RakerClassifier", "AutoKernelRegressor"])
def test_control_c_tells_the_rows_learned_and_their_scores(engine, name):
    """A real signal: the model is that of the rows that the error counts, and goes on."""
    kind = getattr(onkel, name)
    X, y = stream_for(kind(), 100)
    X, y = np.tile(X, (400, 1)), np.tile(y, 400)
    model, fresh = kind(), kind()
    first = learn(model, X[:20], y[:20])
    np.testing.assert_array_equal(learn(fresh, X[:20], y[:20]), first)
    for seconds in (0.02, 0.1, 0.3):
        whole = []  # the scores of calls that were not interrupted

        def go_on(whole=whole):
            while True:
                whole.append(learn(model, X, y))

        threading.Timer(seconds, signal.raise_signal, [signal.SIGINT]).start()
        start, clock = model.t_, time.perf_counter()
        with pytest.raises(KeyboardInterrupt) as caught:
            go_on()
        assert time.perf_counter() - clock < 30  # a hang
        calls, rows = divmod(model.t_ - start, len(X))
        for i in range(calls):
            scores = learn(fresh, X, y)
            if i < len(whole):
                np.testing.assert_array_equal(whole[i], scores)
        scores = learn(fresh, X[:rows], y[:rows]) if rows else np.zeros(0)
        if isinstance(caught.value, Interrupted) and len(whole) == calls:
            assert caught.value.rows == rows
            np.testing.assert_array_equal(caught.value.scores, scores)
        assert_same(model, fresh)


@pytest.mark.parametrize("name", ["PAClassifier", "OGDRegressor", "NORMADetector"])
def test_a_fit_that_is_interrupted_keeps_the_rows_learned_so_far(engine, name, monkeypatch):
    X, y = stream_for(getattr(onkel, name))
    model = make(name)
    learn(model, X[:7], part(y, slice(7)))
    learn_block, blocks = Learned._learn, []

    def block(*args):
        if blocks:
            raise KeyboardInterrupt
        blocks.append(args)
        learn_block(*args)

    monkeypatch.setattr(Learned, "_learn", block)
    with pytest.raises(Interrupted) as caught:
        model.fit(X) if y is None else model.fit(X, y)
    monkeypatch.undo()
    rows = caught.value.rows
    assert 0 < rows < len(X)
    assert_same(model, make(name).fit(X[:rows]) if y is None else make(name).fit(X[:rows], y[:rows]))


def test_a_part_that_fails_in_mid_stream_leaves_the_rows_before():
    """A stranger's part may raise anything: the rows before count."""
    from onkel.budgets import Bounded

    class Breaks(Bounded):
        """Fails at its thirtieth term, after it has changed the function."""

        def insert(self, f, round, coef, memory):
            if coef is None:
                return
            if f.n == self.budget:
                f.remove(0)
            f.append(round, coef)
            if round.t == 30:
                raise ZeroDivisionError("a slip")

    X, y = stream_for(EVERY["OGDRegressor"], 60)
    model = onkel.ComposedRegressor(hypothesis=onkel.Expansion(budget=Breaks(10)))
    with pytest.raises(ZeroDivisionError, match="a slip") as caught:
        model.learn(X, y)
    assert caught.value.__notes__[0].startswith("29 of 60 rows were learned")
    assert model.t_ == len(caught.value.scores) == 29
    model = onkel.ComposedRegressor(hypothesis=onkel.Expansion(budget=Breaks(10)))
    for i in range(29):
        model.learn_one(X[i], y[i])
    before = model.predict(X)
    with pytest.raises(ZeroDivisionError, match="a slip"):
        model.learn_one(X[29], y[29])
    assert model.t_ == 29
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    ("name", "params", "weight"),
    [
        ("SparseKLRClassifier", {}, 1e200),
        ("SparseKLRClassifier", {"R": 5.0, "average": True}, 1e200),
        ("OSKLClassifier", {"eta": 1e200}, 1.0),
        ("OSKLRegressor", {"eta": 1e200, "average": True}, 1.0),
    ],
)
def test_a_draw_of_a_round_that_diverges_is_taken_back(engine, name, params, weight):
    """A sampled step draws its number before it is too large: the next round draws the same one."""
    X, y = stream_for(EVERY[name], 60)
    model, fresh = (EVERY[name](**params) for _ in range(2))
    for one in (model, fresh):
        one.begin(X, y)
    failed, learned = 0, []
    for i in range(60):
        before = snapshot(model)
        w = weight if i % 2 else 1.0
        try:
            model.learn_one(X[i], y[i], w)
        except Diverged:
            failed += 1
            assert snapshot(model) == before
        else:
            learned.append((X[i], y[i], w))
    assert failed > 3 and len(learned) > 3
    for row in learned:
        fresh.learn_one(*row)
    assert_same(model, fresh)
