"""Many settings over one stream: who is dropped when, what it costs, and who wins."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import SGDClassifier

import onkel
from onkel import datasets
from onkel.algorithms import Entry
from onkel.cli import main, progress
from onkel.evaluation import together, tuning
from onkel.evaluation.follower import Follower
from onkel.evaluation.prequential import evaluate
from onkel.evaluation.tuning import Candidate, eliminations, grid
from onkel.kernels import Gaussian

Capture = pytest.CaptureFixture[str]

STREAM = datasets.load("breast_cancer")


def settings() -> dict[str, Any]:
    model = onkel.FOGDClassifier(components=30)
    return grid(model, gamma=[0.001, 0.01, 0.1, 1.0], eta=[0.01, 0.1, 1.0, 10.0])


def test_a_grid_names_every_combination() -> None:
    made = grid(onkel.PAClassifier(variant="II"), C=[0.5, 2], gamma=[0.25])
    assert list(made) == ["PA C=0.5 gamma=0.25", "PA C=2 gamma=0.25"]
    for model, C in zip(made.values(), (0.5, 2), strict=True):
        assert (model.C, model.variant, model.kernel) == (C, "II", Gaussian(0.25))
    assert [model.alpha for model in grid(SGDClassifier(), alpha=[0.1, 0.2]).values()] == [0.1, 0.2]


@pytest.mark.parametrize("candidates", [1, 2, 3, 4, 5, 16, 63, 64, 384])
@pytest.mark.parametrize("keep", [0.1, 0.25, 0.5, 0.9])
def test_cuts_keep_to_the_cost_and_use_it(candidates: int, keep: float) -> None:
    plan = eliminations(candidates, 12.0, keep)
    running = [candidates, *(left for _, left in plan)]
    shares = [0.0, *(share for share, _ in plan)]
    assert running[-1] == 1
    assert shares[-1] == 1
    assert all(b > a for a, b in pairwise(shares))
    assert all(b < a for a, b in pairwise(running)) or candidates == 1
    spent = sum(n * (b - a) for n, (a, b) in zip(running, pairwise(shares), strict=False))
    assert spent == pytest.approx(min(12.0, candidates), abs=1e-6)


def test_nobody_is_judged_by_a_few_examples() -> None:
    assert eliminations(64, 8, 0.25, least=0.2)[0] == (0.2, 16)
    assert eliminations(64, 8, 0.25, least=0.01) == eliminations(64, 8)
    assert eliminations(64, 8, least=1.3) == [(1.0, 1)]
    tuned = onkel.tune(settings(), STREAM.X[:100], STREAM.y[:100], cost=5)
    assert min(one.seen for one in tuned.candidates) == 40


def test_costs_that_cannot_be_kept() -> None:
    with pytest.raises(ValueError, match="64 settings cannot be tuned at the cost of 1 runs: allow 5 or more"):
        eliminations(64, 1)
    with pytest.raises(ValueError, match="keep must lie between 0 and 1, got 1"):
        eliminations(64, 8, 1)


def naive(models: dict[str, Any], X: Any, y: Any, plan: list[tuple[float, int]]) -> tuple[list[str], dict[str, int]]:
    """Whole runs of everyone first; then who would have gone on where."""
    wrong = {}
    for name, model in models.items():
        scores = model.clone().learn(X, y, classes=np.unique(y))
        wrong[name] = np.cumsum(np.unique(y)[(scores >= 0).astype(int)] != y)
    alive, seen = list(models), {}
    for share, left in plan:
        end = round(share * len(y))
        seen |= dict.fromkeys(alive, end)
        alive = sorted(alive, key=lambda name: wrong[name][end - 1])[:left]
    return alive, seen


@pytest.mark.parametrize("cost", [5.0, 8.0, 100.0])
def test_the_race_is_that_of_whole_runs(cost: float) -> None:
    models = settings()
    tuned = onkel.tune(models, STREAM.X, STREAM.y, cost=cost)
    (winner,), seen = naive(models, STREAM.X, STREAM.y, eliminations(16, cost, least=40 / len(STREAM)))
    assert tuned.candidates[0].name == winner
    assert {one.name: one.seen for one in tuned.candidates} == seen
    assert tuned.cost <= min(cost, 16) + 0.2
    assert [one.seen for one in tuned.candidates] == sorted((one.seen for one in tuned.candidates), reverse=True)


def test_the_winner_is_fitted_on_the_whole_stream_bit_by_bit() -> None:
    models = settings()
    tuned = onkel.tune(models, STREAM.X, STREAM.y)
    best = tuned.candidates[0]
    alone = models[best.name].clone()
    trace = evaluate(alone, STREAM.X, STREAM.y)
    assert (best.error, best.seen) == (trace.error[-1], len(STREAM))
    np.testing.assert_array_equal(tuned.best.coef_, alone.coef_)
    assert not hasattr(models[best.name], "classes_")  # it works on copies


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"average": [False, True], "eta": [0.1, 1.0, 30.0], "map": ["fourier"]},
        {"schedule": ["constant", "1/sqrt(t)", "adagrad"], "eta": [0.3], "loss": ["hinge", "logistic"]},
        {"eta": [None, 0.5], "map": ["fastfood", "orthogonal"], "components": [10, 20]},
    ],
)
def test_what_is_learned_together_is_what_is_learned_alone(
    engine: str, settings: dict[str, Any], sparse: bool, dtype: Any
) -> None:
    digits = datasets.load("digits")
    for stream in (STREAM, digits):
        X, y, classes = stream.X[:100].astype(dtype), stream.y[:100], stream.classes
        X = scipy.sparse.csr_matrix(X) if sparse else X
        models = list(grid(onkel.FOGDClassifier(components=16), **settings).values())
        alone = [model.clone() for model in models]
        groups = together.families(models, X, y, classes)
        assert sorted(place for group in groups for place in group) == list(range(len(models)))
        assert (len(groups) < len(models)) == (engine == "native")
        for group in groups:
            family = [models[place] for place in group]
            for cut in (slice(0, 37), slice(37, 100)):
                if len(family) == 1:
                    family[0].learn(X[cut], y[cut], classes=classes)
                    continue
                said = together.learn(family, X[cut], y[cut], classes)
                for place, scores in zip(group, said, strict=True):
                    np.testing.assert_array_equal(scores, alone[place].learn(X[cut], y[cut], classes=classes))
            for place in group:
                if len(group) > 1:
                    for name, array in models[place].state()[0].items():
                        np.testing.assert_array_equal(array, alone[place].state()[0][name])


def test_learners_with_rows_of_their_own_are_alone() -> None:
    models = [onkel.PAClassifier(), onkel.PAClassifier(), onkel.RRFClassifier(), onkel.RRFClassifier(), SGDClassifier()]
    models += [onkel.DualSGDClassifier(), onkel.DualSGDClassifier(), onkel.FOGDClassifier(random_state=1)]
    models += [onkel.FOGDClassifier(kernel=Gaussian(0.5)), onkel.FOGDClassifier(kernel=Gaussian(0.25))]
    assert len(together.families(models, STREAM.X, STREAM.y, STREAM.classes)) == len(models)


def test_one_of_a_family_that_diverges_leaves_the_others_alone() -> None:
    if not onkel.native.available():
        pytest.skip("the native engine is not built")
    stream = datasets.load("diabetes")
    models = grid(onkel.FOGDRegressor(components=16), eta=[0.1, 1e9, 0.2])
    (family,) = together.families(models.values(), stream.X, stream.y)
    said = together.learn(list(models.values()), stream.X, stream.y)
    assert [scores is None for scores in said] == [False, True, False]
    assert family == [0, 1, 2]
    np.testing.assert_array_equal(said[2], onkel.FOGDRegressor(components=16, eta=0.2).learn(stream.X, stream.y))


def test_strangers_cannot_learn_together() -> None:
    if not onkel.native.available():
        pytest.skip("the native engine is not built")
    fogd, wider = (onkel.FOGDClassifier(components=D).partial_fit(STREAM.X, STREAM.y) for D in (8, 9))
    with pytest.raises(ValueError, match="same explicit features"):
        together.learn([fogd, wider], STREAM.X, STREAM.y)
    pa = onkel.PAClassifier().partial_fit(STREAM.X, STREAM.y)
    with pytest.raises(ValueError, match="same explicit features"):
        together.learn([pa, pa], STREAM.X, STREAM.y)
    with pytest.raises(ValueError, match="named twice"):
        together.learn([fogd, fogd], STREAM.X, STREAM.y)
    fogd.partial_fit(STREAM.X, STREAM.y)  # nobody is thought to be learning still


def test_side_by_side_gives_the_same() -> None:
    alone, together = (onkel.tune(settings(), STREAM.X, STREAM.y, n_jobs=jobs) for jobs in (1, 2))
    assert [(a.name, a.seen, a.total) for a in alone.candidates] == [
        (b.name, b.seen, b.total) for b in together.candidates
    ]


def test_several_algorithms_and_other_libraries() -> None:
    models = grid(onkel.PAClassifier(), C=[0.1, 1.0]) | grid(SGDClassifier(random_state=0), alpha=[0.001, 0.1])
    tuned = onkel.tune(models, STREAM.X[:150], STREAM.y[:150], cost=3, keep=0.5)
    assert tuned.candidates[0].seen == 150
    assert {one.name for one in tuned.candidates} == set(models)


def test_regression_and_those_that_diverge() -> None:
    stream = datasets.load("diabetes")
    models = grid(onkel.OGDRegressor(), eta=[1e6, 0.1, 1e-5, 1e5], gamma=[0.05])
    heard: list[tuple[int, str]] = []
    tuned = onkel.tune(
        models, stream.X, stream.y, cost=3, keep=0.5, progress=lambda seen, left: heard.append((seen, left[0].name))
    )
    assert tuned.candidates[0].name == "OGD eta=0.1 gamma=0.05"
    assert tuned.candidates[0].error == pytest.approx(
        evaluate(models["OGD eta=0.1 gamma=0.05"].clone(), stream.X, stream.y).rmse[-1]
    )
    assert heard[-1] == (len(stream), "OGD eta=0.1 gamma=0.05")
    assert math.isinf(tuned.candidates[-1].total)
    with pytest.raises(ValueError, match="every setting diverged"):
        onkel.tune(grid(onkel.OGDRegressor(), eta=[1e6], gamma=[0.05]), stream.X, stream.y)
    with pytest.raises(ValueError, match="nothing to tune"):
        onkel.tune({}, stream.X, stream.y)


def test_grids_of_the_papers() -> None:
    fogd, pa = onkel.FOGDClassifier(), onkel.PAClassifier()
    assert set(tuning.values(fogd, "default", 10)) == {"gamma", "eta"}
    assert len(grid(fogd, **tuning.values(fogd, "default", 10))) == 64
    assert tuning.values(fogd, "default", 10)["gamma"][3] == 0.1
    assert set(tuning.values(pa, "lu2017scalable")) == {"gamma", "C"}
    assert tuning.values(pa, "lu2017scalable", 10)["gamma"][5] == 1.0
    assert set(tuning.values(fogd, "lu2016large")) == {"eta_unscaled"}
    for name in tuning.GRIDS:
        for model in grid(fogd, **tuning.values(fogd, name, 5)).values():
            model.learn(np.zeros((1, 5)), ["a"], classes=["a", "b"])
    with pytest.raises(ValueError, match="no grid 'mine'; there are default, lu2016large"):
        tuning.values(pa, "mine")


@pytest.mark.slow
@pytest.mark.parametrize("entry", [entry for entry in onkel.catalogue() if entry.online], ids=lambda entry: entry.name)
def test_every_grid_makes_learners_of_every_algorithm(entry: Entry) -> None:
    X, targets = np.array([[0.5, -1.0], [1.0, 0.5]]), {"classification": ["a", "b"], "regression": [0.5, -1.0]}
    for task in entry.classes.keys() & targets.keys():
        model = entry.classes[task]()
        for name in tuning.GRIDS:
            settings = grid(model, **tuning.values(model, name, 2))
            tuned = onkel.tune(settings, X, targets[task])
            assert {one.name for one in tuned.candidates} == settings.keys() - tuned.refused.keys()
            for why in tuned.refused.values():
                assert "lam must be" in why or "eta must be" in why


def test_what_makes_no_learner_is_left_out() -> None:
    settings = grid(onkel.NORMAClassifier(), eta=[0.1, 16.0], lam=[0.01, 0.1])
    tuned = onkel.tune(settings, X := np.eye(4), y := ["a", "b", "a", "b"])
    assert tuned.refused == {"NORMA eta=16 lam=0.1": "NORMAClassifier.lam must be < 1 / eta = 0.0625, got 0.1"}
    assert len(tuned.candidates) == 3
    with pytest.raises(ValueError, match=r"no setting is valid: .* got 0\.1$"):
        onkel.tune(grid(onkel.NORMAClassifier(), eta=[16.0], lam=[0.1, 1.0]), X, y)
    assert "C" not in tuning.values(onkel.OMKCClassifier())
    assert "C" in tuning.values(onkel.OMKCClassifier(component="pa"))


def test_a_candidate_that_saw_nothing_has_no_error() -> None:
    assert Candidate("x", None, "regression").error == 0.0


# -- at the shell


def refused(capsys: Capture, *words: str) -> str:
    assert main(["tune", *words]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("onkel: ")
    assert output.err.count("\n") == 1
    return output.err


def test_the_shell_tunes_as_the_library(capsys: Capture) -> None:
    words = ["breast_cancer", "--algorithms", "PA,FOGD", "--set", "components=30", "--limit", "300", "--seed", "3"]
    assert "FOGD has no parameter" not in refused(capsys, *words)  # PA has no components
    words = ["breast_cancer", "--set", "components=30", "--try", "eta=0.1,1", "--try", "gamma=0.01,0.1,1"]
    assert main(["tune", *words, "--limit", "300", "--seed", "3", "--cost", "4", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    rows = STREAM.order(0, seed=3)[:300]
    models = grid(onkel.FOGDClassifier(components=30, random_state=3), gamma=[0.01, 0.1, 1], eta=[0.1, 1])
    tuned = onkel.tune(models, STREAM.X[rows], STREAM.y[rows], cost=4)
    assert [(one["name"], one["examples"], one["error"]) for one in data["candidates"]] == [
        (one.name, one.seen, one.error) for one in tuned.candidates
    ]
    assert data["cost"] == tuned.cost


def test_the_winner_can_predict_and_go_on(tmp_path: Path, capsys: Capture) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2)) * [1, 1000]
    lines = [f"{a:.4f},{b:.2f},{'in' if a * a + (b / 1000) ** 2 < 1 else 'out'}" for a, b in X]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,where", *lines]) + "\n")
    data, file = str(tmp_path / "data.csv"), tmp_path / "model"
    assert main(["tune", data, "--target", "where", "--algorithms", "PA", "--save", str(file)]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("data.csv: 200 rows\n64 settings over 200 examples, at the cost of ")
    assert f"model: {file}" in output.err
    assert main(["predict", str(file), data, "--target", "where"]) == 0
    error = float(capsys.readouterr().err.split()[2])
    assert error < 20
    assert main(["run", data, "--target", "where", "--checkpoint", str(file)]) == 0
    assert Follower.load(file).seen == 400


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_the_winner_is_saved_even_if_nobody_reads(tmp_path: Path) -> None:
    words = ["tune", "iris", "--algorithms", "PA", "--limit", "60", "--save", tmp_path / "model"]
    command = [sys.executable, "-c", "from onkel.cli import shell; shell()", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 0
    assert Follower.load(tmp_path / "model").seen == 60


def test_algorithms_share_what_is_to_be_tried(capsys: Capture) -> None:
    words = ["breast_cancer", "--algorithms", "PA,OGD", "--try", "C=0.5,1", "--limit", "100", "--try", "gamma=0.1"]
    assert main(["tune", *words, "--json"]) == 0
    names = {one["name"] for one in json.loads(capsys.readouterr().out)["candidates"]}
    assert {name for name in names if name.startswith("PA")} == {"PA gamma=0.1 C=0.5", "PA gamma=0.1 C=1"}
    assert len(names) == 2 + 8


def test_progress_and_a_grid_of_a_paper(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "REFRESH", 0.0)
    assert main(["tune", "diabetes", "--grid", "lu2016large", "--set", "components=20"]) == 0
    output = capsys.readouterr()
    assert "settings left" in output.err
    assert "eta_unscaled=" in output.out
    assert "RMSE" in output.out


def test_the_shell_counts_what_it_left_out(capsys: Capture) -> None:
    words = ["tune", "breast_cancer", "--algorithms", "NORMA,PA", "--quiet", "--limit", "50", "--try", "gamma=0.1"]
    assert main(words) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "2 invalid settings left out, such as: NORMAClassifier.lam must be < 1 / eta = 0.0625" in told


def test_problems_of_tuning(capsys: Capture) -> None:
    assert "tune one stream at a time" in refused(capsys, "demo")
    assert "there is no parameter 'width' to try; see: onkel algorithms FOGD" in refused(
        capsys, "digits", "--try", "width=1"
    )
    both = refused(capsys, "digits", "--try", "eta=1,3", "--set", "eta=2")
    assert "eta is given to both --set and --try; omit --set eta or --try eta" in both
    assert "cannot be tuned at the cost of 2.0 runs: allow 5 or more" in refused(capsys, "digits", "--cost", "2")
    assert "KLMS does regression, not classification" in refused(capsys, "digits", "--algorithms", "KLMS")
    assert "FOGDClassifier.components" in refused(capsys, "digits", "--try", "components=-1")
    with pytest.raises(SystemExit):
        main(["tune", "digits", "--try", "eta"])
    assert "must be NAME=A,B,..., got 'eta'" in capsys.readouterr().err
