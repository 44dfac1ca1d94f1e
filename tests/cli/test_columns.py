"""What a model knows of its table: columns by name, texts, missing values."""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from shell import Capture, assert_same_model, parts_of, refused, said, write_csv

import onkel
from onkel import datasets
from onkel.cli import main
from onkel.datasets.readers import opened
from onkel.evaluation.follower import Follower

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
        assert (
            "has columns that the model has not learned from: c; leave them out by drop=['c'] (at the shell --drop c)"
            in refused(capsys, *words)
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
    assert_same_model(first, other, but=("place",))


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
    monkeypatch.setattr("onkel.datasets.lines.PIECE", 500)
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
    before.begin(str(more))
    with opened(more, before.schema, growing=True) as reading:
        reading.rows = 100
        block = next(reading)
        before.learn(block.X, block.y)
        before.about |= {"position": 100, "place": reading.place}
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
        (["--drop", "kind"], [], "'big' is not a number like those before"),
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
    assert "(at the shell --missing mean)" in refused(capsys, *words)
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
    sentence = "X has 1025 features with hashed texts, but the examples before had 2"
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


def test_a_model_that_was_saved_alone(table: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "model"
    frame = pytest.importorskip("pandas").read_csv(table)
    onkel.PAClassifier().fit(frame[["b", "a"]], frame["label"]).save(file)
    turned = onkel.load(file).predict(frame[["b", "a"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert said(capsys, "predict", file, table, "--target", "label") == turned.tolist()
        words = ("--target", "label", "--missing", "mean")
        assert "has not learned from a table" in refused(capsys, "predict", file, table, *words)
        said(capsys, "run", table, "--target", "label", "--checkpoint", file)
