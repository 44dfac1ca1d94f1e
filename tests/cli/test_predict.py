"""onkel predict and inspect: what a saved model says."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shell import Capture, refused, start

import onkel
from onkel import datasets
from onkel.cli import main
from onkel.evaluation.follower import Follower
from onkel.evaluation.protocols import task_of

# -- predict and inspect


@pytest.fixture
def model(table: Path, tmp_path: Path) -> Path:
    file = tmp_path / "model"
    assert main(["run", str(table), "--target", "label", "--model", "PA", "--checkpoint", str(file), "--quiet"]) == 0
    return file


def test_predictions_are_those_of_the_model(model: Path, table: Path, capsys: Capture) -> None:
    follower, stream = Follower.load(model), datasets.read(table, target="label")
    expected = follower.predict(stream.X)
    capsys.readouterr()
    assert main(["predict", str(model), str(table), "--target", "label"]) == 0
    output = capsys.readouterr()
    assert output.out.splitlines() == expected
    error = np.mean(np.array(expected) != stream.y)
    assert f"mistake rate {100 * error:.1f} % on 600 examples" in output.err
    assert main(["predict", str(model), str(table), "--drop", "label", "--scores", "--json"]) == 0
    output = capsys.readouterr()
    lines = [json.loads(line) for line in output.out.splitlines()]
    assert output.err == ""
    assert [line["prediction"] for line in lines] == expected
    np.testing.assert_allclose([line["scores"][0] for line in lines], follower.scores(stream.X))
    before = model.read_bytes()
    assert main(["predict", str(model), str(table), "--target", "label", "--quiet"]) == 0
    assert model.read_bytes() == before
    assert capsys.readouterr().err == ""


def test_predict_reads_standard_input(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    text = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"a,b\n0.1,500\n-0.9,-900\n")))  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdin", text)
    assert main(["predict", str(model), "-"]) == 0
    assert len(capsys.readouterr().out.split()) == 2


def test_a_pipe_that_ends_early_is_no_problem(model: Path, table: Path) -> None:
    with start("predict", model, table, "--drop", "label") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 0


def test_problems_of_predict_and_inspect(model: Path, table: Path, tmp_path: Path, capsys: Capture) -> None:
    assert "there is no model" in refused(capsys, "predict", tmp_path / "nothing", table)
    assert "there is no model" in refused(capsys, "inspect", tmp_path / "nothing")
    assert "there is no file" in refused(capsys, "predict", model, tmp_path / "nothing.csv")
    sentence = refused(capsys, "predict", model, table, "--drop", "label,a")
    assert "lacks columns that the model has learned from: a; it has b" in sentence
    onkel.PARegressor().partial_fit(np.eye(2), [0, 1]).save(tmp_path / "regressor")
    assert "--scores are for" in refused(capsys, "predict", tmp_path / "regressor", table, "--scores")
    onkel.PAClassifier().save(tmp_path / "fresh")
    assert "has learned nothing yet" in refused(capsys, "predict", tmp_path / "fresh", table)


def test_inspect_says_what_a_model_is(model: Path, table: Path, tmp_path: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["inspect", str(model), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    loaded = Follower.load(model).model
    assert data["learner"] == "PAClassifier"
    assert (data["examples"], data["features"], data["classes"]) == (600, 2, ["down", "up"])
    assert data["support vectors"] == loaded.n_support_
    assert (data["stream"], data["position"]) == (str(table), 600)
    assert data["settings"]["C"] == str(loaded.C)
    assert main(["inspect", str(model)]) == 0
    out = capsys.readouterr().out
    assert "mistake rate so far" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    onkel.PAClassifier().save(tmp_path / "fresh")
    assert main(["inspect", str(tmp_path / "fresh"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 0


def test_a_model_saved_by_hand_can_go_on(table: Path, tmp_path: Path, capsys: Capture) -> None:
    stream = datasets.read(table, target="label")
    file = tmp_path / "model"
    onkel.PAClassifier().partial_fit(stream.X, stream.y).save(file)
    assert main(["run", str(table), "--target", "label", "--checkpoint", str(file)]) == 0
    model = Follower.load(file).model
    assert model.t_ == 1200
    assert task_of(model) == "classification"


@pytest.mark.parametrize("words", [["--scale", "none"], [], ["--target", "a", "--drop", "label"]])
def test_a_model_taken_from_its_scale_and_columns_warns(words: list[str], table: Path, tmp_path: Path) -> None:
    file = tmp_path / "model"
    assert main(["run", str(table), "--target", "label", "--model", "PA", "--checkpoint", str(file), *words]) == 0
    with pytest.warns(UserWarning, match=r"onkel\.evaluation\.follower\.Follower\.load") as told:
        onkel.load(file)
    assert told[0].filename == __file__
    svmlight = tmp_path / "stream.svm"
    svmlight.write_text("1 1:0.5\n-1 2:0.5\n")  # sparse, so not scaled, and without names: the model says all
    assert main(["run", str(svmlight), "--task", "classification", "--checkpoint", str(tmp_path / "alone")]) == 0
    onkel.load(tmp_path / "alone")


def test_leftovers_of_the_dead_are_removed_and_of_the_living_not(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    dead = tmp_path / f".model.7.{process.pid}.onkel"
    living = tmp_path / f".model.7.{os.getpid()}.onkel"
    dead.touch()
    living.touch()
    follower = Follower(onkel.PAClassifier())
    follower.learn(np.eye(2), np.array([0, 1]))
    follower.save(tmp_path / "model")
    assert not dead.exists()
    assert living.exists()
