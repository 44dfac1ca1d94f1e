"""Whatever ends a call leaves the model of the rows before: a prefix of the stream, pools and layers included."""

import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from models import assert_same, declared, every_estimator, make, part
from streams import EVERY, learn, stream_for

import onkel
from onkel.core.errors import Diverged, Interrupted
from onkel.faces.learned import Learned

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


@every_estimator
def test_an_interrupted_call_leaves_a_prefix(engine, name):
    X, y = stream_for(EVERY[name], ROWS)
    half = ROWS // 2
    first, rest = (X[:half], part(y, slice(half))), (X[half:], part(y, slice(half, ROWS)))
    classes = declared(make(name), y)
    timed = make(name)
    learn(timed, *first, **classes)
    lines = lines_of(timed, *rest)
    rng = np.random.default_rng(len(name))
    for moment in rng.integers(1, lines, 3):
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
    assert caught.value.__notes__[0].startswith("16 of 60 rows were learned")  # those of the blocks before
    assert model.t_ == len(caught.value.scores) == 16
    model = onkel.ComposedRegressor(hypothesis=onkel.Expansion(budget=Breaks(10)))
    for i in range(29):
        model.learn_one(X[i], y[i])
    before = model.predict(X)
    with pytest.raises(ZeroDivisionError, match="a slip"):
        model.learn_one(X[29], y[29])
    assert model.t_ == 29
    np.testing.assert_array_equal(model.predict(X), before)
