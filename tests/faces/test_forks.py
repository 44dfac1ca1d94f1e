"""Processes that fork while another thread learns: the child gets an answer or an error, and never waits for ever."""

import multiprocessing
import os
import threading
import time
import warnings

import numpy as np
import pytest
from streams import EVERY, stream_for

import onkel
from onkel.budgets import Bounded
from onkel.core.errors import Busy

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
ANSWERED, REFUSED, ELSE = 7, 8, 9
SECONDS = 60  # a child that takes longer hangs


def in_a_child(call):
    """What became of the call in a forked process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # this process has several threads, as it should
        child = os.fork()
    if child == 0:
        try:
            call()
            os._exit(ANSWERED)
        except Busy:
            os._exit(REFUSED)
        except BaseException:
            os._exit(ELSE)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


@pytest.mark.parametrize("name", ["BOGDClassifier", "FOGDOMKLClassifier", "AutoKernelClassifier"])
def test_a_child_forked_while_a_thread_learns_is_answered_or_refused(engine, name):
    model = getattr(onkel, name)()
    X, y = stream_for(model, 300)
    model.learn(X, y)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            model.learn(X, y)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        ended = [in_a_child(lambda: model.predict(X[:2])) for _ in range(6)]
        ended += [in_a_child(lambda: model.partial_fit(X[:2], y[:2])) for _ in range(6)]
    finally:
        stop.set()
        thread.join()
    assert set(ended) <= {ANSWERED, REFUSED}
    model.learn(X, y)  # nothing happened to the parent
    assert in_a_child(lambda: model.predict(X[:2])) == ANSWERED  # nobody learns now
    assert in_a_child(lambda: model.partial_fit(X[:2], y[:2])) == ANSWERED


class Waits(Bounded):
    """Learns nothing for a while."""

    begun, go_on = threading.Event(), threading.Event()

    def insert(self, f, round, coef, memory):
        if round.t == 3:
            self.begun.set()
            assert self.go_on.wait(SECONDS)


def test_a_model_forked_in_the_middle_of_a_round_is_refused():
    X, y = stream_for(EVERY["OGDRegressor"], 10)
    model = onkel.ComposedRegressor(hypothesis=onkel.Expansion(budget=Waits(5)))
    model.learn(X[:2], y[:2])
    thread = threading.Thread(target=model.learn, args=(X[2:], y[2:]))
    thread.start()
    try:
        assert Waits.begun.wait(SECONDS)
        for call in (lambda: model.predict(X), lambda: model.learn(X, y), lambda: model.state()):
            assert in_a_child(call) == REFUSED
        assert in_a_child(lambda: model.fit(X[:2], y[:2])) == ANSWERED  # which forgets it
    finally:
        Waits.go_on.set()
        thread.join()
    assert model.t_ == 10


def _double(x):
    return 2 * x


def test_pools_of_forked_processes_work_beside_models(engine):
    X, y = stream_for(EVERY["PAClassifier"], 50)
    model = onkel.PAClassifier()
    model.learn(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            np.testing.assert_array_equal(pool.map(_double, range(4)), [0, 2, 4, 6])
            found = pool.map(model.decision_function, [X, X])
    for scores in found:
        np.testing.assert_array_equal(scores, model.decision_function(X))
