"""Streams: what is embedded, what is generated, what is read, and what is refused with which words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file, load_digits

from onkel import datasets
from onkel.datasets import DataError, Stream


def written(folder: Path, text: str, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# -- embedded and generated


@pytest.mark.parametrize(
    ("name", "shape", "task", "classes"),
    [
        ("digits", (1797, 64), "classification", list(range(10))),
        ("breast_cancer", (569, 30), "classification", ["benign", "malignant"]),
        ("diabetes", (442, 10), "regression", None),
        ("drift", (3000, 2), "classification", [-1, 1]),
    ],
)
def test_embedded_streams(name: str, shape: tuple[int, int], task: str, classes: list[object] | None) -> None:
    stream = datasets.load(name)
    assert stream.X.shape == shape
    assert (stream.name, stream.task, stream.features, len(stream)) == (name, task, shape[1], shape[0])
    assert (None if stream.classes is None else stream.classes.tolist()) == classes
    assert stream.description


def test_scales_of_the_embedded_streams() -> None:
    digits = datasets.load("digits")
    assert (digits.X.min(), digits.X.max()) == (0, 1)
    np.testing.assert_array_equal(digits.X * 16, load_digits().data)
    for name in ("breast_cancer", "diabetes"):
        stream = datasets.load(name)
        np.testing.assert_allclose(stream.X.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(stream.X.std(axis=0), 1)
    assert datasets.load("diabetes").y.std() == pytest.approx(1)


def test_an_unknown_name_is_refused_with_those_that_are_close() -> None:
    with pytest.raises(DataError, match=r"no stream 'digit'; did you mean digits\? onkel data lists all streams"):
        datasets.load("digit")


def test_drift_is_determined_by_its_seed() -> None:
    one, same, other = datasets.drift(200, seed=1), datasets.drift(200, seed=1), datasets.drift(200, seed=2)
    np.testing.assert_array_equal(one.X, same.X)
    np.testing.assert_array_equal(one.y, same.y)
    assert not np.array_equal(one.y, other.y)


def test_drift_moves_the_concept_and_noise_flips_labels() -> None:
    moving = datasets.drift(4000, turns=0.5, noise=0)
    still = datasets.drift(4000, turns=0, noise=0)
    noisy = datasets.drift(4000, turns=0, noise=0.1)
    late = slice(3600, 4000)  # after half a turn the sides are exchanged
    assert np.mean(moving.y[late] != still.y[late]) > 0.9
    assert np.mean(noisy.y != still.y) == pytest.approx(0.1, abs=0.02)
    assert still.y.mean() == pytest.approx(0, abs=0.05)


def test_orders_are_permutations_drawn_from_seed_and_number() -> None:
    stream = datasets.load("digits")
    first = stream.order(0, seed=3)
    assert sorted(first) == list(range(len(stream)))
    np.testing.assert_array_equal(first, stream.order(0, seed=3))
    assert not np.array_equal(first, stream.order(1, seed=3))
    assert not np.array_equal(first, stream.order(0, seed=4))


def test_an_ordered_stream_keeps_its_order() -> None:
    np.testing.assert_array_equal(datasets.drift(50).order(7, seed=9), np.arange(50))


# -- the value


def test_scaled_standardises_dense_columns_and_real_targets() -> None:
    X = np.array([[1.0, 5.0, 0.1], [2.0, 5.0, 0.1], [6.0, 5.0, 0.1]])
    stream = Stream("s", X, np.array([10.0, 20.0, 60.0]), "regression").scaled()
    np.testing.assert_allclose(stream.X[:, 0], (X[:, 0] - 3) / X[:, 0].std())
    np.testing.assert_array_equal(stream.X[:, 1:], 0)  # constant columns carry nothing
    np.testing.assert_allclose([stream.y.mean(), stream.y.std()], [0, 1], atol=1e-15)


def test_scaled_leaves_columns_of_zeros_and_ones() -> None:
    X = np.array([[0.0, 1, 0, 3], [0, 1, 0, 4], [1, 1, 0, 5], [0, 1, 0, 6]])
    stream = Stream("s", X, np.array([0, 1, 0, 1]), "classification").scaled()
    np.testing.assert_array_equal(stream.X[:, 0], X[:, 0])
    np.testing.assert_array_equal(stream.X[:, 1:3], 0)  # they say nothing
    np.testing.assert_allclose(stream.X[:, 3].std(), 1)


def test_scales_between_two_ends() -> None:
    X = np.array([[1.0, 5.0, -3.0], [2.0, 5.0, 0.0], [5.0, 5.0, 1.0]])
    y = np.array([10.0, 20.0, 60.0])
    unit = Stream("s", X, y, "regression").scaled("[0,1]")
    np.testing.assert_allclose(unit.X, [[0, 0, 0], [0.25, 0, 0.75], [1, 0, 1]])
    np.testing.assert_allclose(unit.y, [0, 0.2, 1])
    both = Stream("s", X, y, "regression").scaled("[-1,1]", target=False)
    np.testing.assert_allclose(both.X, [[-1, 0, -1], [-0.5, 0, 0.5], [1, 0, 1]])
    assert both.y.tolist() == y.tolist() and "target" not in both.description
    sparse = Stream("s", scipy.sparse.csr_matrix([[0, 4.0], [2, 0]]), np.array([0, 1]), "classification")
    np.testing.assert_allclose(sparse.scaled("[0,1]").X.toarray(), [[0, 1], [1, 0]])
    with pytest.raises(DataError, match=r"s is sparse, and .* would fill its zeros"):
        sparse.scaled("[-1,1]")
    with pytest.raises(DataError, match="there is no scale 'unit'; there are standard"):
        sparse.scaled("unit")  # type: ignore[arg-type]


def test_splits_orders_and_labels() -> None:
    X, y = np.arange(8.0).reshape(4, 2), np.array([3, 5, 7, 7])
    orders = np.array([[3, 2, 1, 0], [1, 0, 3, 2]], np.int16)
    stream = Stream("s", X, y, "classification", n_train=2, orders=orders)
    assert (stream.train.y.tolist(), stream.test.y.tolist()) == ([3, 5], [7, 7])
    assert stream.train.orders is None and stream.train.n_train is None
    assert stream.order(0).tolist() == [3, 2, 1, 0] and stream.order(1).tolist() == [1, 0, 3, 2]
    np.testing.assert_array_equal(stream.order(2), stream.order(2, seed=0))  # published ones are used up
    assert [*map(sorted, (stream.order(5, seed=1), stream.order(5, seed=2)))] == [[0, 1, 2, 3]] * 2
    assert stream.against_rest(7).y.tolist() == [-1, -1, 1, 1]
    with pytest.raises(DataError, match="no label 9; it has 3, 5, 7"):
        stream.against_rest(9)
    whole = Stream("s", X, y, "classification")
    assert whole.train is whole
    with pytest.raises(DataError, match="no official test part"):
        _ = whole.test
    with pytest.raises(DataError, match="training part of 5 rows does not fit"):
        Stream("s", X, y, "classification", n_train=5)
    with pytest.raises(DataError, match="no permutations of its 4 rows"):
        Stream("s", X, y, "classification", orders=orders[:, :3])


def test_scaled_keeps_sparse_zeros_and_labels() -> None:
    X = scipy.sparse.csr_matrix([[0, -4.0, 0], [2.0, 0, 0], [1.0, 1.0, 0]])
    stream = Stream("s", X, np.array(["a", "b", "a"]), "classification").scaled()
    assert stream.X.nnz == 4
    np.testing.assert_allclose(stream.X.toarray(), [[0, -1, 0], [1, 0, 0], [0.5, 0.25, 0]])
    assert stream.y.tolist() == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("X", "y", "task", "words"),
    [
        (
            np.zeros((3, 2)),
            np.zeros(2),
            "regression",
            r"X must be \(n, d\) and y \(n,\), got \(3, 2\) and \(2,\)",
        ),
        (np.zeros((0, 2)), np.zeros(0), "regression", "nothing to learn from"),
        (
            np.array([[0, 1], [np.nan, 2]]),
            np.zeros(2),
            "regression",
            "row 1, column 0 .* missing or infinite",
        ),
        (scipy.sparse.csr_matrix([[0, 0], [0, np.inf]]), np.zeros(2), "regression", "row 1, column 1 "),
        (np.zeros((2, 1)), np.array([1.0, np.nan]), "regression", "target of row 1 .* not finite"),
        (
            np.zeros((2, 1)),
            np.array(["a", "b"]),
            "regression",
            "needs numbers as targets, got for example 'a'",
        ),
        (
            np.zeros((2, 1)),
            np.array(["a", "a"]),
            "classification",
            "two classes or more, all targets are 'a'",
        ),
        (np.array([["1"], ["2"]]), np.array([1, 2]), "regression", "features must be numbers"),
    ],
)
def test_useless_data_are_refused(X: object, y: np.ndarray, task: datasets.Task, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Stream("s", X, y, task)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["yes", "no"], "classification"),
        ([True, False], "classification"),
        ([-1.0, 1.0, 1.0, -1.0], "classification"),
        (list(range(26)) * 2, "classification"),
        (list(range(27)) * 2, "regression"),
        ([1, 2, 3, 4], "regression"),  # every value once: measurements
        ([0.5, 1.0, 0.5, 1.0], "regression"),
    ],
)
def test_infer_task(y: list[object], task: str) -> None:
    assert datasets.infer_task(y) == task


# -- CSV


def test_csv_with_text_labels(tmp_path: Path) -> None:
    path = written(tmp_path, "a,kind,b\n1,cat,2.5\n\n-3,dog,4e1\n5, cat ,0\n7,dog,1\n")
    stream = datasets.read(path, target="kind")
    np.testing.assert_array_equal(stream.X, [[1, 2.5], [-3, 40], [5, 0], [7, 1]])
    assert stream.y.tolist() == ["cat", "dog", "cat", "dog"]
    assert (stream.name, stream.task) == ("data.csv", "classification")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_csv_finds_its_separator_and_drops_columns(tmp_path: Path, separator: str) -> None:
    text = "\ufeffid,x,y\nrow 1,1,0.5\nrow 2,2,0.25\n".replace(",", separator)
    stream = datasets.read(written(tmp_path, text, "data.tsv"), target="y", drop=["id"])
    assert stream.X.tolist() == [[1], [2]]
    assert (stream.y.tolist(), stream.task) == ([0.5, 0.25], "regression")


def test_csv_target_types(tmp_path: Path) -> None:
    path = written(tmp_path, "x,i,f,s\n1,1,1,1\n2,0,0.5,b\n")
    kinds = [datasets.read(path, target=name, drop=[*({"i", "f", "s"} - {name})]).y.dtype.kind for name in "ifs"]
    assert kinds == ["i", "f", "U"]


def test_csv_longer_than_one_batch(tmp_path: Path) -> None:
    rows = 3 * 4096 + 5
    path = written(tmp_path, "x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(rows)))
    stream = datasets.read(path, target="y")
    np.testing.assert_array_equal(stream.X[:, 0], np.arange(rows))
    np.testing.assert_array_equal(stream.y, np.arange(rows) % 2)
    with path.open("a") as file:
        file.write("oops,1\n")
    with pytest.raises(DataError, match=f"line {rows + 2}, column 'x': 'oops' is not a number"):
        datasets.read(path, target="y")


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        ("a,b\n1,2\n", None, r"needs a target column: target= \(at the shell --target NAME\); its columns are a, b"),
        ("a,b\n1,2\n", "c", "no column 'c'; its columns are a, b"),
        ("a,a\n1,2\n", "a", "2 columns named 'a'"),
        ("a\n1\n2\n", "a", "no feature column besides the target 'a'"),
        ("", "a", "no header"),
        ("a,b\n", "a", "has no rows"),
        ("a,b\n1,2\n1,2,3\n", "b", "line 3: 3 cells where the header names 2 columns"),
        (
            "a,b\n1,2\n,4\n",
            "b",
            r"line 3, column 'a': the value is missing \(in these 2 rows: a 1\); .* \(at the shell --missing mean\)",
        ),
        ("a,b\n1,2\nNA,4\n", "b", "line 3, column 'a': the value is missing"),
        ("a,b\n1,2\nnan,4\n", "b", "line 3, column 'a': the value is missing"),
        ("a,b\n1,2\ninf,4\n", "b", "line 3, column 'a': 'inf' is not finite"),
        ("a,b\n1,2\n\nBerlin,4\n", "b", r"line 4, column 'a': 'Berlin' is not a number; .*--encode onehot.*--drop a"),
        ('a,b\n"1\n",2\nx,4\n', "b", "line 4, column 'a'"),  # the line of the file, not of the table
        ("a,b\n1,2\n3,\n", "b", "line 3, column 'b': the target is missing"),
        ("a,b\n1,2\n3,nan\n", "b", "line 3, column 'b': the target is missing; .*--missing drop"),
        ("a,b\n1,2\n3,inf\n", "b", "column 'b': the target 'inf' is not finite"),
        ("a;b\n1,5;2\n2,5;3\n", "b", "line 2, column 'a': '1,5' is not a number; write decimals with a point"),
        ("1,2\n3,4\n", "2", "line 1: only numbers where columns should be named; .*--no-header"),
        ("a,b\n1,2\n1_000,4\n", "b", "line 3, column 'a': '1_000' is not a number"),
    ],
)
def test_csv_problems_name_the_place_and_the_remedy(tmp_path: Path, text: str, target: str | None, words: str) -> None:
    with pytest.raises(DataError, match=words) as problem:
        datasets.read(written(tmp_path, text), target=target)
    assert "data.csv" in str(problem.value)


def test_csv_drop_must_make_sense(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\n1,2\n")
    with pytest.raises(DataError, match="no column 'z' to drop"):
        datasets.read(path, target="b", drop=["z"])
    with pytest.raises(DataError, match="it is the target"):
        datasets.read(path, target="b", drop=["b"])


def test_csv_of_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes("größe,y\n1,2\n".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        datasets.read(path, target="y")
    path.write_text("größe,y\n1,2\n", encoding="utf-16")
    with pytest.raises(DataError, match="not UTF-8"):
        datasets.read(path, target="y")
    path.write_bytes(b"a,y\n1,2\n3,\0\n")
    with pytest.raises(DataError, match="line 3: a NUL byte"):
        datasets.read(path, target="y")


# -- other files


@pytest.mark.parametrize("name", ["data.libsvm", "data.svm"])
def test_libsvm(tmp_path: Path, name: str) -> None:
    dense = np.random.default_rng(0).integers(-2, 3, size=(20, 7)) / 2
    dense[0, 6] = 1.0  # the last column exists
    X, y = scipy.sparse.csr_matrix(dense), np.where(np.arange(20) % 3, 1, -1)
    dump_svmlight_file(X, y, str(tmp_path / name), zero_based=False)
    stream = datasets.read(tmp_path / name)
    assert scipy.sparse.issparse(stream.X)
    np.testing.assert_array_equal(stream.X.toarray(), dense)
    np.testing.assert_array_equal(stream.y, y)
    assert stream.task == "classification"


def test_libsvm_problems(tmp_path: Path) -> None:
    path = written(tmp_path, "1 a:b\n", "data.svm")
    with pytest.raises(DataError, match="line 1: 'a:b' is no pair column:value"):
        datasets.read(path)
    with pytest.raises(DataError, match=r"omit target \(at the shell --target\)"):
        datasets.read(path, target="y")


def test_npz_dense_and_another_target(tmp_path: Path) -> None:
    X, y, z = np.arange(6.0).reshape(3, 2), np.array([1, 2, 1]), np.array([0.5, 1.5, 2.5])
    np.savez(tmp_path / "data.npz", X=X, y=y, z=z)
    stream = datasets.read(tmp_path / "data.npz", task="classification")
    np.testing.assert_array_equal(stream.X, X)
    assert (stream.y.tolist(), stream.task) == ([1, 2, 1], "classification")
    assert datasets.read(tmp_path / "data.npz", target="z").y.tolist() == [0.5, 1.5, 2.5]


def test_npz_sparse(tmp_path: Path) -> None:
    X = scipy.sparse.csr_matrix([[0, 1.0, 0], [2.0, 0, 0], [0, 0, 0]])
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    np.savez(tmp_path / "data.npz", y=np.array(["u", "v", "u"]), **parts)
    stream = datasets.read(tmp_path / "data.npz")
    np.testing.assert_array_equal(stream.X.toarray(), X.toarray())
    assert stream.classes is not None and stream.classes.tolist() == ["u", "v"]


def test_npz_problems(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, X=np.zeros((2, 2)))
    with pytest.raises(DataError, match="no array 'y' for the target; its arrays are X"):
        datasets.read(path)
    np.savez(path, data=np.zeros(2), y=np.arange(2))
    with pytest.raises(DataError, match="needs an array X, or data, indices, indptr, shape"):
        datasets.read(path)
    np.savez(path, X=np.zeros((2, 2)), y=np.array([None, {}]))  # objects would need pickle, which is code
    with pytest.raises(DataError, match="not a usable npz file"):
        datasets.read(path)
    path.write_bytes(b"PK\x03\x04 but not really")
    with pytest.raises(DataError, match="not a usable npz file"):
        datasets.read(path)


def test_files_that_are_not_there_or_not_known(tmp_path: Path) -> None:
    for name in ("none.csv", "none.svm", "none.npz"):
        with pytest.raises(DataError, match=f"there is no file .*{name}"):
            datasets.read(tmp_path / name, target="y" if name == "none.csv" else None)
    with pytest.raises(DataError, match=r"rename it to one of \.csv, \.tsv, \.libsvm"):
        datasets.read(tmp_path / "data.xls")
    with pytest.raises(DataError, match=r"names no format; .* --format"):
        datasets.read(tmp_path / "data.gz", target="y")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        datasets.read(tmp_path / "folder.csv", target="y")


def test_of_an_ordered_stream_the_end_is_held_out() -> None:
    stream = datasets.load("drift")
    learned, held = stream.split(0.1)
    np.testing.assert_array_equal(held.X, stream.X[-300:])
    np.testing.assert_array_equal(learned.y, stream.y[:-300])
    with pytest.raises(ValueError, match="between 0 and 1, got 1"):
        stream.split(1)
