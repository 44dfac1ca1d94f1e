"""onkel run, predict and inspect: a learner along a stream, killed, interrupted and resumed."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import onkel
from onkel import datasets, evaluate, state
from onkel.cli import main, show
from onkel.follower import Follower, Running

Capture = pytest.CaptureFixture[str]


def write_csv(path: Path, n: int, seed: int = 0) -> Path:
    stream = datasets.load("drift", n=n, seed=seed)
    rows = [f"{a:.5f},{1000 * b:.3f},{'up' if y > 0 else 'down'}" for (a, b), y in zip(stream.X, stream.y, strict=True)]
    path.write_text("\n".join(["a,b,label", *rows]) + "\n")
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two columns of very different scale, and a label."""
    return write_csv(tmp_path / "stream.csv", 600)


def parts_of(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a model file holds, but for the times."""
    arrays, config = state.read(path)
    follower = config["follower"]
    for name in ("seconds", "curve"):
        follower.pop(name)
    return arrays, config


def assert_same_model(one: Path, other: Path) -> None:
    a, b = parts_of(one), parts_of(other)
    assert a[0].keys() == b[0].keys()
    for name, array in a[0].items():
        np.testing.assert_array_equal(array, b[0][name])
    assert a[1] == b[1]


def refused(capsys: Capture, *words: object) -> str:
    assert main([str(word) for word in words]) == 2
    output = capsys.readouterr()
    assert output.err.startswith("onkel: ")
    assert output.err.count("\n") == 1
    return output.err


def start(*words: object, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "import sys; from onkel.cli import main; sys.exit(main())", *map(str, words)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **more)


# -- the follower


MAKERS = [onkel.FOGDClassifier, onkel.RBPClassifier, onkel.NOGDClassifier, onkel.RRFClassifier, onkel.PAClassifier]


@pytest.mark.parametrize("make", MAKERS)
def test_blocks_and_stops_never_matter(make: Any, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 4)) * [1, 1e4, 1, 1e-3] + 5
    y = np.array(["a", "b", "c"])[(X[:, 0] > 5).astype(int) + (X[:, 2] > 6)]
    y[:7] = "b"  # the first class to be seen is not the first of all
    once = Follower(make(), Running())
    whole = once.learn(X, y)
    file, said = tmp_path / "model", []
    Follower(make(), Running()).save(file)
    cuts = [0, 1, 2, 7, 8, 9, 100, 101, 299, 300]
    for a, b in pairwise(cuts):
        follower = Follower.load(file)
        said += follower.learn(X[a:b], y[a:b])
        follower.save(file)
    again = Follower.load(file)
    assert said == whole
    assert (
        (again.seen, again.total) == (once.seen, once.total) == (300, sum(p != t for p, t in zip(said, y, strict=True)))
    )
    for name, array in once.model.state()[0].items():
        np.testing.assert_array_equal(array, again.model.state()[0][name])
    assert again.predict(X) == once.predict(X)


def test_the_running_scale_is_that_of_the_rows_so_far() -> None:
    X = np.random.default_rng(1).normal(size=(50, 3)) * [1, 1e6, 0] + [0, 1e7, 4]
    scaled = Running().learn(X)
    for i in range(1, 50):
        mean, deviation = X[: i + 1].mean(axis=0), X[: i + 1].std(axis=0)
        np.testing.assert_allclose(scaled[i, :2], ((X[i] - mean) / deviation.clip(1e-300))[:2], rtol=1e-6, atol=1e-9)
    assert not scaled[0].any()
    assert not scaled[:, 2].any()
    scale = Running()
    scale.learn(X)
    np.testing.assert_allclose(scale.apply(X)[:, :2].std(axis=0), 1)
    with pytest.raises(ValueError, match="X has 2 features, but the examples before had 3"):
        scale.apply(X[:, :2])


def test_a_new_class_is_predicted_before_it_joins() -> None:
    follower = Follower(onkel.PAClassifier())
    said = follower.learn(np.eye(3)[[0, 0, 1, 1, 2]], np.array(["x", "x", "y", "y", "z"]))
    assert said[:3] == [None, "x", "x"]
    assert said[4] != "z"
    assert follower.classes.tolist() == ["x", "y", "z"]
    assert follower.total >= 3


def test_columns_may_come_later(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    dense = (generator.random((80, 9)) < 0.3) * 1.0
    dense[:40, 5:] = 0
    y = np.where(dense[:, 0] > 0, 1, -1)
    kernel = onkel.kernels.Gaussian(0.2)
    narrow, wide = Follower(onkel.PAClassifier(kernel=kernel)), Follower(onkel.PAClassifier(kernel=kernel))
    X = scipy.sparse.csr_matrix(dense)
    wide.learn(X, y)
    narrow.learn(X[:40, :5], y[:40])
    narrow.save(tmp_path / "model")
    narrow = Follower.load(tmp_path / "model")
    narrow.learn(X[40:], y[40:])
    narrow.save(tmp_path / "model")
    narrow = Follower.load(tmp_path / "model")
    assert narrow.model.n_features_in_ == 9
    assert narrow.total == wide.total
    np.testing.assert_allclose(narrow.scores(X), wide.scores(X))
    np.testing.assert_allclose(
        narrow.scores(X[:, :4]), wide.scores(scipy.sparse.csr_matrix(dense * (np.arange(9) < 4)))
    )
    with pytest.raises(ValueError, match="by name"):
        onkel.PAClassifier().partial_fit(__import__("pandas").DataFrame({"a": [1.0]}), ["x"]).widen(3)


def test_a_curve_of_many_points_is_thinned() -> None:
    follower = Follower(onkel.PARegressor())
    for i in range(450):
        follower.learn(np.array([[i / 450]]), np.array([0.5]))
    trace = follower.trace
    assert len(trace.seen) <= 200
    assert trace.seen[-1] == 450
    assert (np.diff(trace.seen) > 0).all()
    assert trace.rmse[-1] == pytest.approx(follower.error)


# -- run


def test_a_run_is_that_of_the_library(table: Path, tmp_path: Path, capsys: Capture) -> None:
    file, said = tmp_path / "model", tmp_path / "said.txt"
    words = ["run", table, "--target", "label", "--model", "RBP", "--set", "budget=20", "--set", "gamma=0.7"]
    assert main([str(word) for word in [*words, "--checkpoint", file, "--predictions", said, "--json"]]) == 0
    summary = json.loads(capsys.readouterr().out)
    follower = Follower(onkel.RBPClassifier(budget=20, kernel=onkel.kernels.Gaussian(0.7)), Running())
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


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_killed_and_resumed_it_ends_with_the_same_model(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "long.csv", 60_000)
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
    np.testing.assert_allclose(follower.goal.moments, [price.mean(axis=0), price.std(axis=0)])
    assert main(["predict", str(file), str(houses), "--target", "price"]) == 0
    said = np.array(capsys.readouterr().out.split(), float)
    np.testing.assert_allclose(said, follower.model.predict(follower.scale.apply(X)) * price.std() + price.mean())
    assert np.sqrt(np.mean((said - price[:, 0]) ** 2)) < 0.5 * price.std()


def test_a_scaled_target_does_not_depend_on_blocks(houses: Path, tmp_path: Path) -> None:
    X, y = np.split(np.loadtxt(houses, delimiter=",", skiprows=1), [2], axis=1)
    once = Follower(onkel.PARegressor(), Running(), Running())
    said = once.learn(X, y[:, 0])
    Follower(onkel.PARegressor(), Running(), Running()).save(tmp_path / "model")
    again = []
    for start in range(0, 300, 77):
        follower = Follower.load(tmp_path / "model")
        again += follower.learn(X[start : start + 77], y[start : start + 77, 0])
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


# -- what a model knows of its table


def write_mixed(path: Path, rows: range, columns: str = "size,colour,kind,y") -> Path:
    """Numbers with gaps, two columns of texts; the target follows from both."""
    generator = np.random.default_rng(rows.start)
    lines = []
    for i in rows:
        size, colour, kind = generator.normal(50, 9), ("red", "blue", "green")[generator.integers(3)], f"k{i % 7}"
        y = "good" if (colour == "red") == (size > 50) else "bad"
        cells = {"size": "" if i % 10 == 3 else f"{size:.3f}", "colour": colour, "kind": kind, "y": y}
        lines.append(",".join(cells[name] for name in columns.split(",")))
    path.write_text("\n".join([columns, *lines]) + "\n")
    return path


MIXED = ("--target", "y", "--encode", "onehot", "--missing", "mean", "--model", "PA", "--quiet")


def said(capsys: Capture, *words: object) -> list[str]:
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out.splitlines()


def test_columns_are_found_by_name(table: Path, tmp_path: Path, capsys: Capture) -> None:
    turned = tmp_path / "turned.csv"
    turned.write_text("".join(",".join(line.split(",")[::-1]) + "\n" for line in table.read_text().splitlines()))
    files = [tmp_path / "one", tmp_path / "other"]
    for file, more in zip(files, (table, turned), strict=True):
        said(capsys, "run", table, "--target", "label", "--model", "PA", "--checkpoint", file)
        assert said(capsys, "predict", file, turned) == said(capsys, "predict", file, table)
        said(capsys, "run", more, "--checkpoint", file)
        assert Follower.load(file).seen == (600 if more == table else 1200)
    wider = tmp_path / "wider.csv"
    wider.write_text("".join(f"{line},{'c' if i == 0 else i}\n" for i, line in enumerate(table.read_text().split())))
    for words in (["predict", files[0], wider], ["run", wider, "--checkpoint", files[0]]):
        assert "has columns that the model has not learned from: c; leave them out (--drop c)" in refused(
            capsys, *words
        )
        said(capsys, *words, "--drop", "c")
    said(capsys, "run", table, "--checkpoint", files[1])
    assert Follower.load(files[0]).seen == 1200
    assert Follower.load(files[1]).seen == 1800
    np.savez(tmp_path / "x.npz", X=np.zeros((2, 2)), y=[0, 1])
    assert "the model knows its columns by name" in refused(capsys, "predict", files[0], tmp_path / "x.npz")


def test_reordered_columns_are_learned_alike(table: Path, tmp_path: Path, capsys: Capture) -> None:
    first, more = tmp_path / "first", write_csv(tmp_path / "more.csv", 300, seed=1)
    said(capsys, "run", table, "--target", "label", "--model", "PA", "--checkpoint", first)
    other = tmp_path / "other"
    other.write_bytes(first.read_bytes())
    said(capsys, "run", more, "--checkpoint", first)
    more.write_text("".join(",".join(line.split(",")[::-1]) + "\n" for line in more.read_text().splitlines()))
    said(capsys, "run", more, "--checkpoint", other)
    assert_same_model(first, other)


def test_what_was_said_of_the_file_is_kept_in_the_model(tmp_path: Path, capsys: Capture) -> None:
    data, file = write_mixed(tmp_path / "data.csv", range(500)), tmp_path / "model"
    said(capsys, "run", data, *MIXED, "--checkpoint", file)
    assert main(["predict", str(file), str(write_mixed(tmp_path / "more.csv", range(1000, 1500)))]) == 0
    assert float(capsys.readouterr().err.split("mistake rate ")[1].split()[0]) < 15
    unlabelled = write_mixed(tmp_path / "new.csv", range(1000, 1500), "kind,colour,size")
    assert said(capsys, "predict", file, unlabelled) == said(capsys, "predict", file, tmp_path / "more.csv")
    assert "learned with --encode onehot; omit --encode hash" in refused(
        capsys, "predict", file, unlabelled, "--encode", "hash"
    )
    assert main(["predict", str(file), str(unlabelled), "--target", "z"]) == 0
    assert "has no targets in a column 'z' to compare with" in capsys.readouterr().err
    assert "columns" in "".join(said(capsys, "inspect", file))


def test_missing_values_are_filled_with_the_means_of_training(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model"
    said(capsys, "run", write_mixed(tmp_path / "data.csv", range(500)), *MIXED, "--checkpoint", file)
    schema = Follower.load(file).schema
    mean = datasets.read(tmp_path / "data.csv", target="y", drop=["colour", "kind"], missing="drop").X.mean()
    np.testing.assert_allclose(schema.sums / schema.counts, mean)

    def scores(*rows: str) -> list[str]:
        (tmp_path / "new.csv").write_text("\n".join(["size,colour,kind", *rows]) + "\n")
        return said(capsys, "predict", file, tmp_path / "new.csv", "--scores")

    (gap,), (filled,) = scores(",red,k1"), scores(f"{mean},red,k1")
    np.testing.assert_allclose(float(gap.split()[1]), float(filled.split()[1]))
    assert scores("900,red,k1", ",red,k1")[1] == gap
    other = tmp_path / "other"
    other.write_bytes(file.read_bytes())
    for target, cell in ((file, ""), (other, repr(float(schema.sums[0] / schema.counts[0])))):
        live = io.BufferedReader(io.BytesIO(f"size,colour,kind,y\n{cell},red,k1,good\n".encode()))
        monkeypatch.setattr(sys, "stdin", type("In", (), {"buffer": live}))
        said(capsys, "run", "-", "--checkpoint", target, "--quiet")
    np.testing.assert_array_equal(*(Follower.load(one).model.support_vectors_ for one in (file, other)))


def test_predict_leaves_no_row_out_unless_it_is_said(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, file = write_mixed(tmp_path / "data.csv", range(100)), tmp_path / "model"
    said(capsys, "run", data, *MIXED, "--missing", "drop", "--checkpoint", file)
    sentence = refused(capsys, "predict", file, data)
    assert "the value is missing" in sentence
    assert "--drop" not in sentence  # the model needs the column
    assert len(said(capsys, "predict", file, data, "--missing", "drop")) == 90
    monkeypatch.setattr("onkel.cells._TEXT", 500)
    rows = [json.loads(line)["row"] for line in said(capsys, "predict", file, data, "--missing", "drop", "--json")]
    assert rows == [i for i in range(100) if i % 10 != 3]  # those of the file
    assert len(said(capsys, "predict", file, data, "--missing", "mean")) == 100


@pytest.mark.parametrize("labels", [("no", "yes"), ("0", "1"), ("0.25", "0.5")])
def test_predict_needs_no_targets(labels: tuple[str, str], tmp_path: Path, capsys: Capture) -> None:
    data, file = tmp_path / "data.csv", tmp_path / "model"
    data.write_text("".join(["a,y\n", *(f"{i % 2},{labels[i % 2]}\n" for i in range(60))]))
    said(capsys, "run", data, "--target", "y", "--model", "PA", "--checkpoint", file)
    expected = said(capsys, "predict", file, data)[:3]
    for targets, known in (((labels[0], "", "?"), "on 1 example"), (("", "", ""), "")):
        data.write_text("a,y\n" + "".join(f"{i % 2},{target}\n" for i, target in enumerate(targets)))
        for more in ([], ["--missing", "drop"]):
            assert main(["predict", str(file), str(data), *more]) == 0
            output = capsys.readouterr()
            assert output.out.splitlines() == expected
            assert output.err.endswith(f"{known}\n") if known else output.err == ""


def test_texts_that_come_later_widen_the_model(tmp_path: Path, capsys: Capture) -> None:
    """Interrupted anywhere, or read in one: the same model; and a text never seen is no feature to predict from."""
    data, more = write_mixed(tmp_path / "data.csv", range(5)), write_mixed(tmp_path / "more.csv", range(100, 400))
    file, other = tmp_path / "model", tmp_path / "other"
    said(capsys, "run", data, *MIXED, "--checkpoint", file)
    before = Follower.load(file)
    said(capsys, "run", more, "--checkpoint", file)
    after = Follower.load(file)
    assert after.model.n_features_in_ == 1 + len(after.schema.words) > before.model.n_features_in_
    before.about |= {"source": str(more), "position": 0, "written": 0, "schema": before.schema.plain()}
    schema = before.schema
    block = next(datasets.chunks(more, schema=schema))
    before.learn(block.X[:100], block.y[:100])
    before.about["position"] = 100
    before.save(other)
    said(capsys, "run", more, "--checkpoint", other)
    assert_same_model(file, other)
    (tmp_path / "new.csv").write_text("size,colour,kind\n50,red,never\n50,red,\n")
    new, missing = said(capsys, "predict", file, tmp_path / "new.csv", "--scores")
    assert new == missing


def test_a_table_of_texts_that_grows_ends_with_the_model_of_one_run(tmp_path: Path, capsys: Capture) -> None:
    rows = [f"u{i % 7 * (i // 50)},v{i % 5 * (i // 50)},{i % 3 % 2}\n" for i in range(200)]
    data, grown, once = tmp_path / "data.csv", tmp_path / "grown", tmp_path / "once"
    words = ["run", data, "--target", "y", "--encode", "onehot", "--model", "PA", "--checkpoint"]
    for n in (100, 103, 200):
        data.write_text("u,v,y\n" + "".join(rows[:n]))
        said(capsys, *words, grown)
    said(capsys, *words, once)
    (arrays, config), (others, other) = parts_of(grown), parts_of(once)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name])
    assert config["follower"] == other["follower"]  # the rest tells with how many columns each began


@pytest.mark.parametrize(
    ("begun", "other", "sentence"),
    [
        (["--encode", "onehot"], ["--encode", "hash"], "learned with --encode onehot; omit --encode hash"),
        (["--encode", "onehot"], ["--target", "size"], "was begun with --target y; omit --target size"),
        (["--encode", "onehot"], ["--drop", "size"], "lacks columns that the model has learned from: size"),
        (["--encode", "onehot", "--missing", "drop"], ["--missing", "mean"], "was begun with --missing drop; omit"),
        (["--drop", "kind"], [], "'big' is not a number, as those before were"),
    ],
)
def test_a_file_goes_on_as_it_was_begun(
    begun: list[str], other: list[str], sentence: str, tmp_path: Path, capsys: Capture
) -> None:
    data, file = tmp_path / "data.csv", tmp_path / "model"
    rows = [f"{i % 7},k{i % 3},{i % 2}\n" for i in range(60)]
    data.write_text("".join(["size,kind,y\n", *rows]))
    said(capsys, "run", data, "--target", "y", *begun, "--checkpoint", file)
    before = file.read_bytes()
    data.write_text("".join(["size,kind,y\n", *rows, "1,k1,1\n" if other else "big,k1,1\n"]))
    assert sentence in refused(capsys, "run", data, *other, "--checkpoint", file)
    assert file.read_bytes() == before


def test_what_is_missing_later_may_be_filled(tmp_path: Path, capsys: Capture) -> None:
    """The advice can be followed: nothing was missing before, so the place in the file stays."""
    data, file = tmp_path / "data.csv", tmp_path / "model"
    rows = [f"{i % 7},{i % 2}\n" for i in range(60)]
    data.write_text("".join(["a,y\n", *rows]))
    words = ["run", data, "--target", "y", "--checkpoint", file]
    said(capsys, *words)
    data.write_text("".join(["a,y\n", *rows, ",1\n"]))
    assert "(--missing mean)" in refused(capsys, *words)
    said(capsys, *words, "--missing", "mean")
    assert Follower.load(file).seen == 61
    assert Follower.load(file).schema.sums.tolist() == [sum(i % 7 for i in range(60))]


def test_the_width_goes_by_the_columns_of_the_table(tmp_path: Path, capsys: Capture) -> None:
    data = write_mixed(tmp_path / "data.csv", range(1000))
    errors = {}
    for encode in ("onehot", "hash"):
        file = tmp_path / encode
        words = ["--target", "y", "--missing", "mean", "--model", "PA", "--checkpoint", file]
        said(capsys, "run", data, "--encode", encode, *words)
        follower = Follower.load(file)
        assert follower.model.kernel_ == onkel.kernels.Gaussian(1 / 3)
        errors[encode] = follower.error
    assert abs(errors["onehot"] - errors["hash"]) < 0.01
    assert errors["onehot"] < 0.2


def test_a_model_of_tune_knows_its_texts(tmp_path: Path, capsys: Capture) -> None:
    data, file = write_mixed(tmp_path / "data.csv", range(500)), tmp_path / "model"
    more = write_mixed(tmp_path / "more.csv", range(1000, 1500), "y,kind,size,colour")
    words = ["--algorithms", "PA", "--try", "gamma=0.1,0.3", "--cost", "5", "--target", "y", "--missing", "mean"]
    said(capsys, "tune", data, "--encode", "onehot", *words, "--save", file)
    assert main(["predict", str(file), str(more)]) == 0
    assert float(capsys.readouterr().err.split("mistake rate ")[1].split()[0]) < 15
    said(capsys, "run", more, "--checkpoint", file)
    assert Follower.load(file).seen == 1000


def test_hashed_texts_are_not_cut_to_a_model_of_something_else(tmp_path: Path, capsys: Capture) -> None:
    data, file = tmp_path / "data.csv", tmp_path / "model"
    data.write_text("a,b,y\n1,red,0\n0,blue,1\n")
    words = [data, "--target", "y", "--encode", "hash"]
    onkel.PAClassifier().partial_fit(np.eye(2), [0, 1]).save(file)
    sentence = "hashed, X has 1025 features, but the examples before had 2"
    assert sentence in refused(capsys, "predict", file, *words)
    assert sentence in refused(capsys, "run", *words, "--checkpoint", file)
    (block,) = datasets.chunks(data, target="y", encode="hash")
    onkel.PAClassifier().partial_fit(block.X, block.y).save(file)
    assert said(capsys, "predict", file, *words) == ["0", "1"]
    onkel.PARegressor().partial_fit(np.eye(1), [0]).save(file)
    assert "the target 'red' is not a number" in refused(capsys, "predict", file, data, "--target", "b", "--drop", "y")


def test_a_model_of_arrays_predicts_other_files(tmp_path: Path, capsys: Capture) -> None:
    data, file = tmp_path / "x.npz", tmp_path / "model"
    np.savez(data, X=np.eye(2), z=[0, 1])
    said(capsys, "run", data, "--target", "z", "--checkpoint", file)
    (tmp_path / "x.svm").write_text("0 1:1\n1 2:1\n")
    assert len(said(capsys, "predict", file, tmp_path / "x.svm")) == 2


def test_older_models_and_those_saved_alone(table: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "model"
    said(capsys, "run", table, "--target", "label", "--model", "PA", "--checkpoint", file)
    expected = said(capsys, "predict", file, table)
    arrays, config = state.read(file)
    config["follower"].pop("schema")
    config["follower"]["about"].pop("schema")
    state.write(file, arrays, config)
    assert said(capsys, "predict", file, table, "--target", "label") == expected
    assert "has not learned from a table" in refused(
        capsys, "predict", file, table, "--target", "label", "--missing", "mean"
    )
    said(capsys, "run", table, "--target", "label", "--checkpoint", file)
    frame = __import__("pandas").read_csv(table)
    onkel.PAClassifier().fit(frame[["b", "a"]], frame["label"]).save(file)
    turned = onkel.load(file).predict(frame[["b", "a"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert said(capsys, "predict", file, table, "--target", "label") == turned.tolist()
        said(capsys, "run", table, "--target", "label", "--checkpoint", file)


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
    monkeypatch.setattr(show, "REFRESH", 0.0)
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
    assert "has 20 rows" in told and "learned 60 rows of it" in told and "standard input" in told
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
    assert evaluate.task_of(model) == "classification"


@pytest.mark.parametrize("words", [["--scale", "none"], [], ["--target", "a", "--drop", "label"]])
def test_a_model_taken_from_its_scale_and_columns_warns(words: list[str], table: Path, tmp_path: Path) -> None:
    file = tmp_path / "model"
    assert main(["run", str(table), "--target", "label", "--model", "PA", "--checkpoint", str(file), *words]) == 0
    with pytest.warns(UserWarning, match=r"onkel\.follower\.Follower\.load") as told:
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
    time.sleep(0)
    assert not dead.exists()
    assert living.exists()
