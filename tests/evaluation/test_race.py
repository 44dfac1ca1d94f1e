"""Races: orders, ranks, times, significance."""

from __future__ import annotations

import math
import time
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from scripted import NearestMean, ScriptedClassifier
from sklearn.linear_model import SGDClassifier

import onkel
from onkel import datasets
from onkel.datasets import Stream
from onkel.evaluation.prequential import evaluate
from onkel.evaluation.race import laps, race
from onkel.evaluation.race import standings as collected
from onkel.evaluation.results import Result, Standings, settings
from onkel.evaluation.traces import Trace


def toy(n: int = 40, **changes: Any) -> Stream:
    random = np.random.default_rng(5)
    X = random.normal(size=(n, 2))
    return Stream("toy", X, np.where(X[:, 0] > 0, "right", "left"), "classification", **changes)


def test_race_runs_all_learners_over_the_same_orders() -> None:
    stream = toy()
    standings = race({"mean": NearestMean(), "sgd": SGDClassifier()}, stream, orders=3, seed=11)
    by_name = {result.name: result for result in standings.results}
    finals = []
    for k in range(3):
        rows = stream.order(k, seed=11)
        finals.append(evaluate(NearestMean(), stream.X[rows], stream.y[rows]).error[-1])
    assert [trace.error[-1] for trace in by_name["mean"].traces] == finals
    assert by_name["mean"].error == pytest.approx(np.mean(finals))
    assert by_name["mean"].deviation == pytest.approx(np.std(finals, ddof=1))
    assert standings.orders == 3
    assert standings.examples == 40


def test_race_sorts_and_compares_times() -> None:
    bad = ScriptedClassifier(np.zeros(40))  # always the second class
    standings = race({"bad": bad, "good": NearestMean()}, toy(), checkpoints=4)
    assert [result.name for result in standings.results] == ["good", "bad"]
    rows = standings.table()
    assert min(row["relative"] for row in rows) == 1.0
    assert [row["deviation"] for row in rows] == [None, None]
    assert [row["size"] for row in rows] == [None, 80.0]
    assert rows[0]["relative"] == pytest.approx(rows[0]["microseconds"] / min(r["microseconds"] for r in rows))
    assert not hasattr(bad, "t_")  # the race works on copies


def test_a_diverged_learner_comes_last_without_deviation() -> None:
    models = {
        "lost": ScriptedClassifier(np.zeros(40), diverges_at=10),
        "bad": ScriptedClassifier(-np.ones(40)),
    }
    standings = race(models, toy(), orders=2)
    assert [result.name for result in standings.results] == ["bad", "lost"]
    assert standings.results[1].error == math.inf
    assert standings.results[1].deviation is None


def test_equal_means_share_the_first_place() -> None:
    def result(name: str, *mistakes: int) -> Result:
        one, some = np.array([569]), np.array([0.1])
        traces = [Trace("classification", one, np.array([float(m)]), None, some) for m in mistakes]
        return Result(name, {}, tuple(traces))

    even, uneven, worse = result("even", 27, 27), result("uneven", 25, 29), result("worse", 27, 28)
    standings = Standings(toy(), (even, uneven, worse), 569)
    assert [standings.is_best(result) for result in standings.results] == [True, True, False]


class SlowToCall(ScriptedClassifier):
    """Every call costs two milliseconds, whatever it holds."""

    def learn(self, X: Any, y: Any, classes: Any = None) -> np.ndarray:
        time.sleep(0.002)
        return super().learn(X, y, classes)


def test_the_time_of_a_race_is_that_of_one_call() -> None:
    stream = toy()
    traced = evaluate(SlowToCall(np.zeros(40)), stream.X, stream.y, checkpoints=20)
    (result,) = race({"slow": SlowToCall(np.zeros(40))}, stream, checkpoints=20).results
    assert traced.seconds[-1] > 0.04
    assert 0.002 < result.traces[0].seconds[-1] < traced.seconds[-1] / 2
    assert (np.diff(result.traces[0].seconds) > 0).all()


def test_an_ordered_stream_is_run_once_in_its_own_order() -> None:
    stream = toy(ordered=True)
    standings = race({"mean": NearestMean()}, stream, orders=5)
    assert standings.orders == 1
    expected = evaluate(NearestMean(), stream.X, stream.y).mistakes[-1]
    assert standings.results[0].traces[0].mistakes[-1] == expected


def test_limit_takes_the_first_examples_of_each_order() -> None:
    stream = toy()
    standings = race({"mean": NearestMean()}, stream, limit=12, seed=2)
    rows = stream.order(0, seed=2)[:12]
    expected = evaluate(NearestMean(), stream.X[rows], stream.y[rows], classes=stream.classes)
    assert standings.examples == 12
    np.testing.assert_array_equal(standings.results[0].traces[0].mistakes, expected.mistakes)


def test_what_is_printed_is_short() -> None:
    stream = datasets.load("digits")
    models = {"PA": onkel.PAClassifier(), "a mean": NearestMean()}
    standings = race(models, stream, limit=40)
    assert repr(stream) == "Stream(digits: classification, 10 classes; 1,797 examples, 64 features)"
    best = standings.results[0]
    assert repr(best).startswith(f"Result({best.name}: error 0.")
    assert repr(best).endswith(" in 1 order)")
    assert repr(best.traces[0]).startswith("Trace(classification: error 0.")
    first, heads, *rows = repr(standings).splitlines()
    assert first == f"{stream!r}, 40 learned in 1 order"
    assert heads.split() == ["learner", "error", "SV", "us", "per", "row"]
    assert [row[:6].strip() for row in rows] == [result.name for result in standings.results]
    assert {len(row) for row in rows} == {len(heads)}


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_side_by_side_gives_the_same_results(backend: str) -> None:
    stream = datasets.load("breast_cancer")
    models = {"RBP": onkel.RBPClassifier(budget=20), "SGD": SGDClassifier(random_state=0)}
    alone = race(models, stream, orders=3, limit=60, checkpoints=3)
    heard: list[tuple[str, int]] = []
    with joblib.parallel_config(backend=backend):
        run = laps(
            models,
            stream,
            orders=3,
            limit=60,
            checkpoints=3,
            n_jobs=2,
            progress=lambda lap: heard.append((lap.name, lap.order)),
        )
        together = collected(models, stream, run)
    assert heard == [(name, order) for order in range(3) for name in models]
    for one, other in zip(alone.results, together.results, strict=True):
        assert one.name == other.name
        for a, b in zip(one.traces, other.traces, strict=True):
            np.testing.assert_array_equal(a.total, b.total)


def test_a_problem_in_a_run_side_by_side_is_told_with_its_name() -> None:
    with pytest.raises(ValueError, match="budget") as problem:
        race({"RBP": onkel.RBPClassifier(budget=0)}, toy(), orders=4, n_jobs=2)
    assert problem.value.__notes__ == ["RBP on toy"]


def test_significance_is_a_paired_test_over_the_orders() -> None:
    def result(name: str, *mistakes: float) -> Result:
        traces = [Trace("classification", np.array([100]), np.array([m]), None, np.array([0.1])) for m in mistakes]
        return Result(name, {}, tuple(traces))

    best, near, far = result("best", 5, 6, 9, 7), result("near", 6, 5, 10, 8), result("far", 9, 11, 13, 12)
    same, lost = result("same", 5, 6, 9, 7), result("lost", 5, np.inf, 9, 7)
    once = result("once", 30)
    p = Standings(toy(), (best, same, near, far, once, lost), 100).significance()
    raw = {
        "far": scipy.stats.ttest_rel([5, 6, 9, 7], [9, 11, 13, 12]).pvalue,
        "near": scipy.stats.ttest_rel([5, 6, 9, 7], [6, 5, 10, 8]).pvalue,
    }
    assert p == pytest.approx({"far": 3 * raw["far"], "near": 2 * raw["near"], "same": 1.0})
    shifted = Standings(toy(), (best, result("shifted", 6, 7, 10, 8)), 100)
    assert shifted.table()[1]["p"] == 0.0
    assert shifted.table()[0]["p"] is None


def test_laps_may_be_abandoned() -> None:
    models = {"first": NearestMean(), "second": NearestMean()}
    run = laps(models, toy(), orders=2)
    standings = collected(models, toy(), [next(run), next(run), next(run)])
    assert {result.name: len(result.traces) for result in standings.results} == {"first": 2, "second": 1}
    assert collected(models, toy(), []).results == ()


def test_progress_of_a_race_names_learner_and_order() -> None:
    heard: list[tuple[str, int, int]] = []
    race(
        {"mean": NearestMean()},
        toy(),
        orders=2,
        checkpoints=2,
        progress=lambda lap: heard.append((lap.name, lap.order, int(lap.trace.seen[-1]))),
    )
    assert heard == [("mean", 0, 20), ("mean", 0, 40), ("mean", 1, 20), ("mean", 1, 40)]


def test_settings_are_texts() -> None:
    assert settings(ScriptedClassifier([1], 3)) == {"diverges_at": "3", "scores": "[1]"}
    assert settings(3) == {"model": "3"}


def test_finished_learners_are_tested_on_held_out_examples() -> None:
    learned, held = datasets.load("breast_cancer").split(0.25, seed=3)
    standings = race({"PA": onkel.PAClassifier()}, learned, test=held, orders=2)
    assert standings.table()[0]["held_out"] == pytest.approx(
        np.mean([trace.held_out for trace in standings.results[0].traces])
    )


def test_a_race_over_arrays_is_that_over_their_stream() -> None:
    stream = datasets.load("iris")
    ours = race({"PA": onkel.PAClassifier()}, stream.X, stream.y, orders=2)
    assert ours.results[0].error == race({"PA": onkel.PAClassifier()}, stream, orders=2).results[0].error
    with pytest.raises(ValueError, match="there are no targets"):
        race({"PA": onkel.PAClassifier()}, stream.X)
    with pytest.raises(ValueError, match="there is no model to race"):
        race({}, stream.X, stream.y)
