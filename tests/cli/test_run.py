"""onkel run: a learner along a stream, killed, interrupted and resumed."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shell import Capture, assert_same_model, refused, said, start, write_csv

import onkel
from onkel import datasets
from onkel.cli import main, progress
from onkel.evaluation.follower import Follower
from onkel.evaluation.scale import RunningScale

# -- run


def test_a_run_is_that_of_the_library(table: Path, tmp_path: Path, capsys: Capture) -> None:
    file, said = tmp_path / "model", tmp_path / "said.txt"
    words = ["run", table, "--target", "label", "--model", "RBP", "--set", "budget=20", "--set", "gamma=0.7"]
    assert main([str(word) for word in [*words, "--checkpoint", file, "--predictions", said, "--json"]]) == 0
    summary = json.loads(capsys.readouterr().out)
    follower = Follower(onkel.RBPClassifier(budget=20, kernel=onkel.kernels.Gaussian(0.7)), RunningScale())
    stream = datasets.read(table, target="label")
    expected = follower.learn(stream.X, stream.y)
    assert said.read_text().split("\n")[1:-1] == expected[1:]
    assert (summary["examples"], summary["error"], summary["size"]) == (600, follower.error, follower.model.n_support_)
    assert (summary["learner"], summary["settings"]["budget"]) == ("RBPClassifier", "20")
    model = Follower.load(file).model
    np.testing.assert_array_equal(model.dual_coef_, follower.model.dual_coef_)


def test_predictions_as_they_come_from_standard_input() -> None:
    process = start(
        "run", "-", "--target", "y", "--task", "classification", "--predictions", "-", stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("a,y\n1,p\n")
    process.stdin.flush()
    assert process.stdout.readline() == "\n"  # nothing was known
    process.stdin.write("2,q\n")
    process.stdin.flush()
    assert process.stdout.readline() == "p\n"  # before the end, and before q was learned
    out, err = process.communicate("2,q\n", timeout=60)
    assert process.returncode == 0, err
    assert out in ("p\n", "q\n")
    assert "standard input: 3 examples" in err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_killed_and_resumed_it_ends_with_the_same_model(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "long.csv", 30_000)
    options = ["--target", "label", "--model", "BOGD", "--set", "budget=60", "--every", "0"]
    said, whole = tmp_path / "said.txt", tmp_path / "whole.txt"
    assert main(["run", str(table), *options, "--checkpoint", str(tmp_path / "once"), "--predictions", str(whole)]) == 0
    words = ["run", table, *options, "--checkpoint", tmp_path / "killed", "--predictions", said]
    kills = 0
    for share in (0.0, 0.1, 0.3, 0.5, 0.8):
        process = start(*words)
        while process.poll() is None and (not said.exists() or said.stat().st_size < share * whole.stat().st_size):
            time.sleep(0.001)
        kills += process.poll() is None
        process.kill()
        process.communicate()
    process = start(*words)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert kills > 0
    assert_same_model(tmp_path / "once", tmp_path / "killed")
    assert said.read_text() == whole.read_text()
    assert not list(tmp_path.glob(".*"))  # nothing is left lying about


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_it_leaves_a_checkpoint_and_a_report(tmp_path: Path, number: int, status: int) -> None:
    rows = [f"{i % 7},{i % 11},{'odd' if i % 2 else 'even'}\n" for i in range(4000)]
    words = ["run", "-", "--target", "label", "--model", "PA", "--checkpoint", tmp_path / "model"]
    process = start(*words, "--report", tmp_path / "page.html", "--predictions", "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(["a,b,label\n", *rows]))
    process.stdin.flush()
    for _ in rows:
        assert process.stdout.readline()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status, err
    assert "interrupted after 4,000 examples" in err
    assert "Traceback" not in err
    follower = Follower.load(tmp_path / "model")
    assert follower.seen == follower.model.t_ == 4000
    page = (tmp_path / "page.html").read_text()
    assert "PAClassifier" in page
    assert "Interrupted after 4,000 examples, so this is partial." in page


def test_an_interruption_in_the_middle_of_learning_waits(
    table: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn, before = Follower.learn, signal.getsignal(signal.SIGINT)

    def interrupted(self: Follower, X: Any, y: Any) -> list[Any]:
        os.kill(os.getpid(), signal.SIGINT)
        return learn(self, X, y)

    monkeypatch.setattr(Follower, "learn", interrupted)
    file = tmp_path / "model"
    words = ["run", str(table), "--target", "label", "--checkpoint", str(file)]
    assert main(words) == 130
    stopped = Follower.load(file)
    sentence = f"interrupted after {stopped.seen} examples; the same command goes on from here"
    assert sentence in capsys.readouterr().err
    assert 0 < stopped.seen == stopped.about["position"] == stopped.model.t_
    monkeypatch.undo()
    assert main(words) == 0
    assert Follower.load(file).seen == 600
    assert signal.getsignal(signal.SIGINT) is before


def test_another_file_is_learned_from_its_beginning(table: Path, tmp_path: Path, capsys: Capture) -> None:
    file, other = tmp_path / "model", write_csv(tmp_path / "other.csv", 50, seed=5)
    assert main(["run", str(table), "--target", "label", "--checkpoint", str(file)]) == 0
    assert main(["run", str(other), "--target", "label", "--checkpoint", str(file)]) == 0
    assert Follower.load(file).seen == 650
    with other.open("a") as more:  # a file that grows
        more.write("0.1,20,up\n")
    assert main(["run", str(other), "--target", "label", "--checkpoint", str(file)]) == 0
    assert Follower.load(file).seen == 651


@pytest.fixture
def houses(tmp_path: Path) -> Path:
    """A table of prices, far from 0 and large."""
    random = np.random.default_rng(1)
    X = random.normal(size=(300, 2))
    price = 250_000 + 60_000 * np.sin(X[:, 0]) + 30_000 * X[:, 1] + random.normal(0, 5_000, 300)
    rows = [f"{a},{b},{c}" for (a, b), c in zip(X, price, strict=True)]
    file = tmp_path / "house.csv"
    file.write_text("\n".join(["a,b,price", *rows, ""]))
    return file


@pytest.mark.parametrize(
    "command", [["run", "--model", "PA", "--checkpoint"], ["tune", "--algorithms", "PA", "--save"]]
)
def test_targets_are_brought_to_scale_and_back(
    houses: Path, tmp_path: Path, capsys: Capture, command: list[str]
) -> None:
    name, *options = command
    file = tmp_path / "model"
    assert main([name, str(houses), "--target", "price", "--quiet", *options, str(file)]) == 0
    capsys.readouterr()
    X, price = np.split(np.loadtxt(houses, delimiter=",", skiprows=1), [2], axis=1)
    follower = Follower.load(file)
    assert follower.error < 0.6 * price.std()
    np.testing.assert_allclose([follower.goal.mean, follower.goal.deviation], [price.mean(axis=0), price.std(axis=0)])
    assert main(["predict", str(file), str(houses), "--target", "price"]) == 0
    said = np.array(capsys.readouterr().out.split(), float)
    np.testing.assert_allclose(said, follower.model.predict(follower.scale.apply(X)) * price.std() + price.mean())
    assert np.sqrt(np.mean((said - price[:, 0]) ** 2)) < 0.5 * price.std()


def test_a_scaled_target_does_not_depend_on_blocks(houses: Path, tmp_path: Path) -> None:
    X, y = np.split(np.loadtxt(houses, delimiter=",", skiprows=1), [2], axis=1)
    once = Follower(onkel.PARegressor(), RunningScale(), RunningScale())
    said = once.learn(X, y[:, 0])
    Follower(onkel.PARegressor(), RunningScale(), RunningScale()).save(tmp_path / "model")
    again = []
    for begin in range(0, 300, 77):
        follower = Follower.load(tmp_path / "model")
        again += follower.learn(X[begin : begin + 77], y[begin : begin + 77, 0])
        follower.save(tmp_path / "model")
    assert again == said
    assert Follower.load(tmp_path / "model").predict(X) == once.predict(X)
    assert said[0] == 0.0
    assert said[1] == y[0, 0]  # all that is known


def test_regression_and_sparse_files(tmp_path: Path, capsys: Capture) -> None:
    generator = np.random.default_rng(0)
    x = generator.random((300, 3))
    lines = [f"{a + b:.4f} 1:{a:.4f} 3:{b:.4f}" for a, b, _ in x]
    (tmp_path / "data.svm").write_text("\n".join(lines) + "\n")
    file = tmp_path / "model"
    assert main(["run", str(tmp_path / "data.svm"), "--checkpoint", str(file)]) == 0
    assert "RMSE" in capsys.readouterr().out
    assert main(["predict", str(file), str(tmp_path / "data.svm")]) == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 300
    assert "RMSE" in output.err
    assert Follower.load(file).scale is None


def test_numbers_on_standard_input_are_looked_at_before_they_are_taken_for_measurements(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    class Drop(io.BytesIO):  # one line at a time
        def read1(self, size: int | None = -1, /) -> bytes:
            return self.readline()

        def peek(self, size: int = 0, /) -> bytes:
            return b"a,y"

    rows = "".join(f"{i % 5},{i % 2}\n" for i in range(200))
    monkeypatch.setattr(sys, "stdin", type("In", (), {"buffer": Drop(f"a,y\n{rows}".encode())}))
    assert main(["run", "-", "--target", "y", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["task"], summary["examples"]) == ("classification", 200)


def test_texts_are_hashed_and_scaled_with_the_numbers(tmp_path: Path, capsys: Capture) -> None:
    rows = [f"{1000 * (i % 3)},{'red' if i % 2 else 'blue'},{'yes' if i % 2 else 'no'}" for i in range(100)]
    (tmp_path / "data.csv").write_text("\n".join(["size,colour,y", *rows]) + "\n")
    words = [str(tmp_path / "data.csv"), "--encode", "hash", "--target", "y"]
    file = tmp_path / "model"
    assert main(["run", *words, "--set", "gamma=0.1", "--checkpoint", str(file)]) == 0
    assert Follower.load(file).total < 10
    assert main(["predict", str(file), *words]) == 0
    assert "mistake rate 0.0 % on 100 examples" in capsys.readouterr().err


def test_another_variant_is_another_learner(table: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ["run", table, "--target", "label", "--checkpoint", tmp_path / "model"]
    said(capsys, *words, "--model", "PA-II")
    assert "PAClassifier(variant='II')" in refused(capsys, *words, "--model", "PA-I")
    for same in ("PA-II", "pa-ii", "PA"):
        said(capsys, *words, "--model", same)


def test_a_stream_that_has_a_name(capsys: Capture) -> None:
    assert main(["run", "digits", "--model", "PA", "--set", "gamma=0.25"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("digits: 1,797 examples, mistake rate ")


def test_live_progress_on_a_terminal(table: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "REFRESH", 0.0)
    words = ["run", str(table), "--target", "label"]
    assert main(words) == 0
    assert "600 examples" in capsys.readouterr().err
    assert main([*words, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_problems_of_a_run(table: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "model"
    assert "needs a target column" in refused(capsys, "run", table)
    assert "no algorithm is called 'Perzeptron'" in refused(
        capsys, "run", table, "--target", "label", "--model", "Perzeptron"
    )
    words = ["run", table, "--target", "label"]
    assert "KLMS does regression, not classification" in refused(capsys, *words, "--model", "KLMS")
    assert "LLSVM learns from all rows at once" in refused(capsys, *words, "--model", "LLSVM")
    assert "PA has no parameter 'eta'" in refused(capsys, *words, "--model", "PA", "--set", "eta=1")
    assert "budget must be" in refused(capsys, *words, "--model", "RBP", "--set", "budget=0")
    assert "the model cannot be written to" in refused(capsys, *words, "--checkpoint", tmp_path / "none" / "model")
    assert "the report cannot be written to" in refused(capsys, *words, "--report", tmp_path)
    assert "predictions cannot be written to" in refused(capsys, *words, "--predictions", tmp_path / "none" / "p")
    file.write_text("not a model")
    assert "is not an onkel model" in refused(capsys, *words, "--checkpoint", file)
    file.unlink()
    said = tmp_path / "said.txt"
    assert main([*map(str, words), "--checkpoint", str(file), "--predictions", str(said)]) == 0
    capsys.readouterr()
    assert "holds FOGDClassifier" in refused(capsys, *words, "--checkpoint", file, "--model", "PA")
    assert "omit --model and --set" in refused(capsys, *words, "--checkpoint", file, "--set", "components=3")
    said.write_text("")
    assert "is shorter than it was" in refused(capsys, *words, "--checkpoint", file, "--predictions", said)
    said.unlink()
    assert "is shorter than it was" in refused(capsys, *words, "--checkpoint", file, "--predictions", said)


def test_nothing_is_written_over_what_is_read_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, other = tmp_path / "rows.csv", tmp_path / "other"
    data.write_text("a,y\n" + "".join(f"{i % 7},{'no' if i % 7 < 3 else 'yes'}\n" for i in range(60)))
    before = data.read_bytes()
    (tmp_path / "link.csv").symlink_to(data)
    run = ("run", data, "--target", "y")
    for words, what in (
        ((*run, "--predictions", data), "the predictions would be written over the data"),
        ((*run, "--predictions", tmp_path / "link.csv"), "the predictions would be written over the data"),
        ((*run, "--report", data), "the report would be written over the data"),
        ((*run, "--checkpoint", data), "the model would be written over the data"),
        ((*run, "--checkpoint", other, "--report", other), "the report would be written over the model"),
        ((*run, "--checkpoint", other, "--predictions", other), "the predictions would be written over the model"),
        (("race", data, "--target", "y", "--report", data), "the report would be written over the data"),
        (("tune", data, "--target", "y", "--save", data), "the model would be written over the data"),
    ):
        assert what in refused(capsys, *words)
        assert data.read_bytes() == before and not other.exists()
    assert main([*map(str, run), "--predictions", "/dev/null", "--report", "/dev/null"]) == 0


def test_a_file_that_became_shorter_is_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "rows.csv", tmp_path / "model.onkel"
    rows = [f"{i % 7},{'no' if i % 7 < 3 else 'yes'}\n" for i in range(60)]
    words = ["run", str(data), "--target", "y", "--checkpoint", str(model)]
    data.write_text("a,y\n" + "".join(rows))
    assert main(words) == 0
    kept = model.read_bytes()
    data.write_text("a,y\n" + "".join(rows[:20]))
    told = refused(capsys, *words)
    assert "fewer than were read of it" in told and "learned 60 rows of it" in told and "standard input" in told
    assert model.read_bytes() == kept
    data.write_text("a,y\n" + "".join(rows + rows[:5]))
    assert main(words) == 0
    assert "65 examples (5 new)" in capsys.readouterr().out


def test_a_second_run_says_what_is_new(table: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ["run", table, "--target", "label", "--checkpoint", tmp_path / "model"]
    assert "stream.csv: 600 examples, " in said(capsys, *words)[0]
    assert "stream.csv: 600 examples (nothing new), " in said(capsys, *words)[0]
    table.write_text(table.read_text() + "0.1,2.5,up\n")
    assert "stream.csv: 601 examples (1 new), " in said(capsys, *words)[0]
    assert json.loads("\n".join(said(capsys, *words, "--json")))["new"] == 0


def test_a_row_that_cannot_be_learned_leaves_the_last_checkpoint(tmp_path: Path, capsys: Capture) -> None:
    table, file = write_csv(tmp_path / "stream.csv", 40), tmp_path / "model"
    words = ["run", table, "--target", "label", "--checkpoint", file]
    assert main([str(word) for word in words]) == 0
    capsys.readouterr()
    with table.open("a") as more:
        more.write("a,b,c\n")
    assert "is not a number" in refused(capsys, *words)
    assert Follower.load(file).seen == 40
