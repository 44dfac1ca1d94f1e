"""Files in blocks: every format, both engines, flat memory, and a sentence for whatever is wrong."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from onkel import datasets, native
from onkel.datasets import DataError
from onkel.datasets.readers import chunks, read
from onkel.datasets.tables import Schema, Table
from onkel.datasets.text import Rows, parse_libsvm


def written(folder: Path, content: str | bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def joined(blocks):
    """All blocks of a stream as one dense X and one y; narrow blocks had zeros."""
    blocks = list(blocks)
    width = max(X.shape[1] for X, _ in blocks)
    dense = [X.toarray() if sp.issparse(X) else X for X, _ in blocks]
    X = np.concatenate([np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in dense])
    return X, np.concatenate([y for _, y in blocks])


# -- LIBSVM


def same(rows: Rows, others: Rows) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(rows, others, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "1 1:2 3:-4.5e-3\n-1 2:.5\n",
        "+1 1:1\r\n\r\n-1\t2:2 \r\n",  # from elsewhere
        "# a comment\n1 qid:7 3:1 # another\n\n-1#nothing\n0.5",  # no end of line at the end
        "1 3:3 1:1 2:2\n",  # any order
        "1 0000000000001:1 21474836:2\n",
        "1 1:0.1000000000000000055511151231257827 2:1e300 3:1e-300 4:123456789012345678901234567890\n",
        "1 1:1e-400 2:-0 3:00012 4:9007199254740993 5:2.2250738585072014e-308 6:4.35 7:0.1e23\n",
        "",
    ],
)
def test_libsvm_in_both_engines(text: str) -> None:
    defined = parse_libsvm(text.encode(), 0)
    found = native.parse_libsvm(text.encode(), 0)
    fast = None if found is None else Rows(*found)
    assert fast is None or same(defined, fast)
    unusual = "e-400" in text or "00000001:" in text  # it underflows, it is padded: left to Python
    assert unusual or fast is not None or not native.available()


def test_libsvm_rubbish_is_the_same_in_both_engines() -> None:
    """Whatever C++ understands is what the definition says."""
    words = (
        "1 -1 +1 0 2: 3: 1: 10: 0.5 -1e3 .5 5. 1e400 1e-400 e nan inf : # qid:3 qid: 2147483648:1 x + -- 1:1:1 1e 0x1"
    )
    pieces = [*words.split(), " ", "\t", "\n", "\r\n", "\0", "é", "0.12345678901234567890", "9007199254740993"]
    random = np.random.default_rng(0)
    understood = 0
    for _ in range(5000):
        text = "".join(random.choice(pieces) + random.choice(["", " ", " ", "\n"]) for _ in range(random.integers(9)))
        found = native.parse_libsvm(text.encode(), 1)
        if found is not None:
            fast = Rows(*found)
            assert same(parse_libsvm(text.encode(), 1), fast)  # raises if it is none
            understood += bool(len(fast.targets))
    assert understood > 200 or not native.available()


def test_libsvm_numbers_are_the_nearest(tmp_path: Path, engine: str) -> None:
    random = np.random.default_rng(0)
    numbers = random.standard_normal(3000) * 10.0 ** random.integers(-300, 300, 3000)
    forms = [".17g", ".6g", ".3e", ".16g", ".20e"] * 600
    words = [format(x, form) for x, form in zip(numbers, forms, strict=True)]
    path = written(tmp_path, "".join(f"{word} 1:{word}\n" for word in words), "x.svm")
    X, y = joined(chunks(path))
    expected = np.array([float(word) for word in words])
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(X[:, 0], expected)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_libsvm_is_what_sklearn_reads(tmp_path: Path, engine: str, pack) -> None:
    X = sp.random_array((3000, 40), density=0.1, rng=np.random.default_rng(1), format="csr")
    y = np.random.default_rng(2).integers(0, 3, 3000)
    dump_svmlight_file(X, y, str(tmp_path / "plain.svm"), zero_based=False)
    path = written(tmp_path, pack((tmp_path / "plain.svm").read_bytes()), "packed.libsvm.gz")
    theirs, labels = load_svmlight_file(str(tmp_path / "plain.svm"))
    ours, targets = joined(chunks(path, rows=700))
    np.testing.assert_array_equal(ours, theirs.toarray())
    np.testing.assert_array_equal(targets, labels)
    whole = read(path)
    np.testing.assert_array_equal(whole.X.toarray(), theirs.toarray())
    assert whole.task == "classification"


def test_libsvm_columns_grow_and_blocks_keep_to_their_size(tmp_path: Path, engine: str) -> None:
    lines = [f"1 {1 + i // 100}:1\n" for i in range(1000)]
    path = written(tmp_path, "".join(lines), "x.svm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onkel.datasets.lines.PIECE", 500)
        blocks = list(chunks(path, rows=30))
    assert max(len(y) for _, y in blocks) == 30
    widths = [X.shape[1] for X, _ in blocks]
    assert widths == sorted(widths) and widths[0] < 3 and widths[-1] == 10
    X, _ = joined(blocks)
    np.testing.assert_array_equal(X.sum(axis=0), np.full(10, 100))


def test_libsvm_columns_from_zero(tmp_path: Path, engine: str) -> None:
    path = written(tmp_path, "1 0:5 2:6\n-1 1:7\n", "x.svm")
    for blocks in (chunks(path), chunks(path, zero_based=True)):
        X, _ = joined(blocks)
        np.testing.assert_array_equal(X, [[5, 0, 6], [0, 7, 0]])
    np.testing.assert_array_equal(read(path).X.toarray(), [[5, 0, 6], [0, 7, 0]])
    with pytest.raises(
        DataError, match=r"x.svm, line 1: column 0, where columns were counted from 1 so far; .*zero_based"
    ):
        list(chunks(path, zero_based=False))
    late = written(tmp_path, "1 1:5\n" * 300 + "-1 0:7\n", "late.svm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onkel.datasets.lines.PIECE", 500)
        with pytest.raises(DataError, match=r"late.svm, line 301: column 0"):
            list(chunks(late))
        assert read(late).features == 2  # the whole file knows better


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 2", r"'2' is no pair column:value; a line is 'target column:value ...'"),
        ("1 a:1", "'a:1' is no pair"),
        ("1 -1:1", "'-1:1' is no pair"),
        ("1 1:", "the value of column 1, '', is not a number"),
        ("1 1:1x", "the value of column 1, '1x', is not a number"),
        ("1 1:1_0", "the value of column 1, '1_0', is not a number"),
        ("1 1:0x10", "'0x10', is not a number"),
        ("1 1:nan", "the value of column 1 is 'nan', which is not finite"),
        ("1 1:-Inf", "the value of column 1 is '-Inf', which is not finite"),
        ("1 1:1e999", "the value of column 1, '1e999', is too large"),
        ("nan 1:1", "the target is 'nan', which is not finite"),
        ("1,2 1:1", "the target, '1,2', is not a number"),
        ("1 99999999999:1", "column '99999999999' is beyond the limit of 100,000,000"),
        ("1 2:1 1:1 2:1", "column 2 comes twice"),
        (f"1 {'9' * 5000}:1", "column '9{40}'... is beyond the limit of 100,000,000"),
        ("\0\0\0 1:1", r"the target, '\\x00\\x00\\x00', is not a number"),
    ],
)
def test_libsvm_problems_have_a_line_and_the_text(tmp_path: Path, engine: str, line: str, words: str) -> None:
    path = written(tmp_path, f"1 1:1\n# fine\n\n{line}\n1 1:1\n", "bad.svm")
    with pytest.raises(DataError, match=f"bad.svm, line 4: .*{words}"):
        list(chunks(path))
    with pytest.raises(DataError, match=f"line 4: .*{words}"):
        read(path)


def test_rubbish_is_told_in_a_sentence(tmp_path: Path, engine: str) -> None:
    rubbish = np.random.default_rng(0).integers(0, 256, 5000, np.uint8).tobytes()
    for name in ("x.svm", "x.csv", "x.npz", "x.parquet", "x.arrow", "x.svm.gz"):
        with pytest.raises(DataError, match=r"x[.]") as problem:
            list(chunks(written(tmp_path, rubbish, name), target=None if "svm" in name else "y"))
        assert str(problem.value).isprintable()
        with pytest.raises(DataError):
            list(chunks(written(tmp_path, b"", name), target=None if "svm" in name else "y"))


def test_a_line_without_end_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onkel.datasets.lines.LONGEST", 1 << 21)
    path = written(tmp_path, b"1 " * (1 << 21), "x.svm")
    with pytest.raises(DataError, match="line 1: no end of line within 2 MB; is this a text file"):
        list(chunks(path))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_archives_cut_or_damaged(tmp_path: Path, pack) -> None:
    packed = pack("".join(f"1 1:{x}\n" for x in np.random.default_rng(0).random(20_000)).encode())
    with pytest.raises(DataError, match=r"x.svm.gz ends in the middle of its archive; .* fetch it again"):
        list(chunks(written(tmp_path, packed[: len(packed) // 2], "x.svm.gz")))
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    damaged[len(packed) // 2 + 1] ^= 0xFF
    with pytest.raises(DataError, match=r"x.svm.gz|line \d+"):
        list(chunks(written(tmp_path, bytes(damaged), "x.svm.gz")))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured by Linux's rules")
def test_memory_is_flat(tmp_path: Path) -> None:
    """Four times the rows take no more memory."""
    lines = "".join(f"{i % 2} 1:{i} 7:0.25 9:1e-3\n" for i in range(10_000))
    code = """
import pathlib, sys
from onkel.datasets.readers import chunks
n = sum(len(y) for _, y in chunks(sys.argv[1], target="y" if sys.argv[1].endswith("csv") else None))
status = pathlib.Path("/proc/self/status").read_text().split()
print(n, status[status.index("VmHWM:") + 1])
"""
    table = "".join(f"{i % 2},{i},0.25,1e-3\n" for i in range(10_000))
    for name, head, body in (("x.svm", "", lines), ("x.csv", "y,a,b,c\n", table)):
        peaks = []
        for times in (15, 60):
            path = written(tmp_path, head + body * times, name)
            out = subprocess.run([sys.executable, "-W", "ignore", "-c", code, path], capture_output=True, check=True)
            n, peak = map(int, out.stdout.split())
            assert n == times * 10_000
            peaks.append(peak)
        assert peaks[1] < peaks[0] + 8 * 1024, name  # KB; the file grows by 9 MB or more


# -- CSV


def test_csv_in_blocks_is_the_whole(tmp_path: Path, engine: str) -> None:
    random = np.random.default_rng(0)
    values = random.standard_normal((5000, 3))
    rows = [f"{a!r},{b:.4f}, {c:.3e} ,{'cat' if a > 0 else 'dog'}\r\n" for a, b, c in values.tolist()]
    path = written(tmp_path, "\ufeffa,b,c,kind\r\n" + "".join(rows), "x.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onkel.datasets.lines.PIECE", 10_000)
        blocks = list(chunks(path, target="kind", rows=100))
        X, y = joined(blocks)
    assert max(len(y) for _, y in blocks) <= 100
    whole = read(path, target="kind")
    np.testing.assert_array_equal(X, whole.X)
    np.testing.assert_array_equal(y, whole.y)
    np.testing.assert_array_equal(X[:, 0], values[:, 0])


def test_csv_quotes_run_over_blocks(tmp_path: Path, engine: str) -> None:
    rows = [f'{i},"a ""quoted""\nname, {i}",{i % 2}\n' for i in range(500)]
    path = written(tmp_path, '"the value","the\nname",y\n' + "".join(rows), "x.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onkel.datasets.lines.PIECE", 300)
        X, y = joined(chunks(path, target="y", drop=["the\nname"]))
    np.testing.assert_array_equal(X[:, 0], np.arange(500))
    np.testing.assert_array_equal(y, np.arange(500) % 2)


def test_csv_problems_in_a_later_block_have_their_line(tmp_path: Path, engine: str) -> None:
    good = "".join(f"{i},{i % 2}\n" for i in range(1000))
    for bad, words in (
        ("x,1\n", "line 1003, column 'a': 'x' is not a number like those before"),
        ("1,x\n", "line 1003, column 'y': the target 'x' is not a number like those before"),
        ("1,\n", "line 1003, column 'y': the target is missing"),
        (",1\n", "line 1003, column 'a': the value is missing"),
        ("1\n", "line 1003: 1 cells where the header names 2 columns"),
        ("1,2,3\n", "line 1003: 3 cells"),
        ("1e999,1\n", "line 1003, column 'a': '1e999' is not finite"),
        ("1_0,1\n", "line 1003, column 'a': '1_0' is not a number"),
        ("\xff,1\n", "line 1003: not UTF-8"),
        ('"1,1\n', "line 1003: a cell with quotes that do not fit"),
        ('"1"1,1\n', "line 1003: a cell with quotes that do not fit"),
    ):
        path = written(tmp_path, ("a,y\n\n" + good + bad + "7,1\n").encode("latin-1"), "x.csv")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("onkel.datasets.lines.PIECE", 1000)
            with pytest.raises(DataError, match=words):
                list(chunks(path, target="y"))


def test_csv_is_the_same_in_both_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with surprises: the same numbers, or the same complaint."""
    monkeypatch.setattr("onkel.datasets.lines.PIECE", 60)
    odd = ["", " 4 ", "NA", "x", "1_0", "nan", "inf", "1e999", "é", '"q"', '"a,b"', "7 8", "+5", "\t", "5.", "0.1,2"]
    choices: list[dict] = [{}, {"missing": "mean"}, {"missing": "drop", "encode": "onehot"}, {"drop": ["u"]}]
    random = np.random.default_rng(0)

    def row() -> str:
        cells = [random.choice(odd if random.random() < 0.05 else ["1", "2.5", "-3e2"]) for _ in range(2)]
        return ",".join([*cells, random.choice(["0", "1"])]) + random.choice(["\n", "\n", "\r\n", "\n\n"])

    def outcome(name: str, options: dict) -> str:
        with native.use_engine(name):
            try:
                return repr([(X.toarray() if sp.issparse(X) else X, y) for X, y in chunks(path, target="y", **options)])
            except DataError as problem:
                return str(problem)

    for i in range(400):
        path = written(tmp_path, "u,v,y\n" + "".join(row() for _ in range(random.integers(25))), "x.csv")
        assert outcome("auto", choices[i % 4]) == outcome("python", choices[i % 4])


def test_csv_without_a_header_and_with_blanks(tmp_path: Path) -> None:
    path = written(tmp_path, " 1 2 0 \n 3  4 1 \n", "x.csv")
    X, y = joined(chunks(path, target="3", header=False))
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(y, [0, 1])


def test_csv_of_an_old_machine(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="carriage returns alone; save it with line feeds"):
        read(written(tmp_path, b"a,y\r1,2\r3,4\r", "x.csv"), target="y")


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has 2 columns named 'a'; rename all but one"):
        read(written(tmp_path, b"a,a,y\n1,2,0\n3,4,1\n", "x.csv"), target="y")


def test_missing_values_are_filled_with_the_mean_of_the_past(tmp_path: Path, engine: str) -> None:
    path = written(tmp_path, "a,b,y\n,1,0\n2,?,1\n4,NA,0\n,3,1\n6,4,0\n,,1\n", "x.csv")
    expected = [[0, 1], [2, 1], [4, 1], [3, 3], [6, 4], [4, 8 / 3]]
    stream = read(path, target="y", missing="mean")
    np.testing.assert_allclose(stream.X, expected)
    assert "6 missing values filled" in stream.description
    for size in (1, 8, 20):  # whatever the blocks are
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("onkel.datasets.lines.PIECE", size)
            np.testing.assert_allclose(joined(chunks(path, target="y", missing="mean"))[0], expected)


def test_rows_with_missing_values_are_left_out(tmp_path: Path, engine: str) -> None:
    path = written(tmp_path, "a,b,y\n1,x,0\n,x,1\n3,,0\n4,z,\n5,z,1\n", "x.csv")
    stream = read(path, target="y", missing="drop", encode="onehot")
    np.testing.assert_array_equal(stream.X, [[1, 1, 0], [5, 0, 1]])
    assert stream.y.tolist() == [0, 1]
    assert "3 rows with missing values left out" in stream.description


def test_texts_become_features(tmp_path: Path, engine: str) -> None:
    path = written(
        tmp_path, "city,x,size,y\nBerlin,1,big,0\nRome,2,small,1\n Berlin ,3,small,0\nOslo,4,big,1\n", "x.csv"
    )
    onehot = read(path, target="y", encode="onehot")
    np.testing.assert_array_equal(
        onehot.X,  # x, then texts as they come up, row by row: Berlin, big, Rome, small, Oslo
        [[1, 1, 1, 0, 0, 0], [2, 0, 0, 1, 1, 0], [3, 1, 0, 0, 1, 0], [4, 0, 1, 0, 0, 1]],
    )
    (block,) = chunks(path, target="y", encode="hash")
    assert block.X.shape == (4, 1 + 1024)
    hashed = block.X.toarray()
    np.testing.assert_array_equal(hashed[:, 0], [1, 2, 3, 4])
    assert (np.abs(hashed[:, 1:]).sum(axis=1) == 2).all()
    np.testing.assert_array_equal(np.flatnonzero(hashed[0, 1:] * hashed[2, 1:]).size, 1)  # both in Berlin
    with pytest.raises(DataError, match=r"'Berlin' is not a number \(texts are in size, too\); .*--drop city"):
        read(path, target="y")


def test_features_of_texts_do_not_depend_on_blocks() -> None:
    rows = [("a", "p", "0"), ("b", "q", "1"), ("a", "r", "0")]
    words = []
    for cuts in ([0, 3], [0, 1, 3]):
        schema = Schema(target="y", encode="onehot")
        table = Table("x", ["u", "v", "y"], schema)
        for a, b in pairwise(cuts):
            columns = list(zip(*rows[a:b], strict=True))
            table.begin(columns)
            table.block(columns, {})
        words.append(schema.words)
    assert words[0] == words[1]


def test_a_read_that_is_refused_teaches_nothing(tmp_path: Path) -> None:
    schema = Schema(target="y", encode="onehot")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onkel.datasets.lines.PIECE", 20)
        with pytest.raises(DataError, match="the value is missing"):
            read(written(tmp_path, "a,b,y\n" + "1,p,0\n" * 9 + ",q,1\n", "x.csv"), schema=schema)
    assert schema.plain() == Schema(target="y", encode="onehot").plain()


def test_a_name_is_no_category(tmp_path: Path) -> None:
    path = written(tmp_path, "my name,y\n" + "".join(f"row {i},{i % 2}\n" for i in range(1200)), "x.csv")
    words = r"1,200 different texts in 1,200 rows are no categories.*--drop 'my name'.*--encode hash"
    with pytest.raises(DataError, match=words):
        read(path, target="y", encode="onehot")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onkel.datasets.lines.PIECE", 300)  # so few rows a block that it shows only later
        with pytest.raises(DataError, match="more than 1,000 different texts, too many"):
            read(path, target="y", encode="onehot")
    assert read(path, target="y", encode="hash").features == 1024


def test_choices_are_checked(tmp_path: Path) -> None:
    path = written(tmp_path, "a,y\n1,2\n", "x.csv")
    for option in ({"missing": "guess"}, {"encode": "words"}, {"format": "xls"}, {"rows": 0}):
        with pytest.raises(DataError, match=f"{next(iter(option))} must be"):
            list(chunks(path, target="y", **option))


# -- Parquet, Arrow, npz


def test_parquet_and_arrow(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.table(
        {
            "a": pa.array([1, 2, None, 4], pa.int32()),
            "b": pa.array([0.5, 1.5, 2.5, 3.5], pa.float32()),
            "c": pa.array(["u", "v", "u", None]).dictionary_encode(),
            "ok": pa.array([True, False, True, True]),
            "y": ["no", "yes", "no", "yes"],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=3)
    pyarrow.feather.write_feather(table, tmp_path / "x.feather")
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    expected = [[1, 0.5, 1, 1, 0], [2, 1.5, 0, 0, 1], [1.5, 2.5, 1, 1, 0], [4, 3.5, 1, 0, 0]]
    for name in ("x.parquet", "x.feather", "x.arrow"):
        path = tmp_path / name
        X, y = joined(chunks(path, target="y", missing="mean", encode="onehot"))
        np.testing.assert_array_equal(X, expected, err_msg=name)
        assert y.tolist() == ["no", "yes", "no", "yes"]
        assert read(path, target="y", drop=["a", "c"]).X.tolist() == [[0.5, 1], [1.5, 0], [2.5, 1], [3.5, 1]]
        with pytest.raises(DataError, match=r"row 2 \(from 0\), column 'a': the value is missing"):
            list(chunks(path, target="y", drop=["c"]))


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r"pyarrow is needed for Parquet and Arrow files; install onkel\[frames\]"):
        list(chunks(written(tmp_path, b"PAR1", "x.parquet"), target="y"))


def test_npz_in_blocks(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X, y = random.standard_normal((250, 3)).astype(np.float32), random.integers(0, 2, 250)
    S = sp.random_array((250, 9), density=0.2, rng=random, format="csr")
    np.savez(tmp_path / "dense.npz", X=X, y=y)
    np.savez_compressed(tmp_path / "sparse.npz", data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=y)
    for name, expected in (("dense", X), ("sparse", S.toarray())):
        blocks = list(chunks(tmp_path / f"{name}.npz", rows=100))
        assert [len(y) for _, y in blocks] == [100, 100, 50]
        for got, wanted in zip(joined(blocks), (expected, y), strict=True):
            np.testing.assert_array_equal(got, wanted)
    np.savez(tmp_path / "short.npz", data=S.data, indices=S.indices[:-1], indptr=S.indptr, shape=S.shape, y=y)
    with pytest.raises(DataError, match="not a usable npz file: an array is shorter"):
        list(chunks(tmp_path / "short.npz"))
    np.savez(tmp_path / "objects.npz", X=X, y=np.array([None] * 250))
    with pytest.raises(DataError, match="holds objects"):
        list(chunks(tmp_path / "objects.npz"))
    np.savez(tmp_path / "columns.npz", X=np.asfortranarray(X), y=y)
    with pytest.raises(DataError, match=r"stored by columns; save numpy.ascontiguousarray"):
        list(chunks(tmp_path / "columns.npz"))
    cut = (tmp_path / "sparse.npz").read_bytes()
    with pytest.raises(DataError, match="not a usable npz file"):
        list(chunks(written(tmp_path, cut[: len(cut) // 2], "cut.npz")))


def _csr_file(**changed: Any) -> dict[str, Any]:
    S = sp.csr_array(np.arange(1.0, 21.0).reshape(10, 2))
    whole = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape, "y": np.arange(10) % 2}
    return whole | {key: change(np.array(whole[key])) for key, change in changed.items()}


def _dense_file(**changed: Any) -> dict[str, Any]:
    return {"X": np.ones((10, 2)), "y": np.arange(10) % 2} | changed


def _with(array: Any, at: Any, value: Any) -> Any:
    array = np.array(array)
    array[at] = value
    return array


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (_csr_file(indices=lambda a: a + 10**6), "no CSR matrix: indices must be < 2"),
        (_csr_file(indices=lambda a: a - 1), "no CSR matrix: indices must be >= 0"),
        (_csr_file(indices=lambda a: a.astype(np.int64) + 2**32), "no CSR matrix"),
        (_csr_file(shape=lambda a: [10, 1]), "no CSR matrix: indices must be < 1"),
        (_csr_file(shape=lambda a: [10, -2]), "no CSR matrix"),
        (_csr_file(shape=lambda a: [2]), r"X must be \(n, d\)|no CSR matrix"),
        (_csr_file(indptr=lambda a: _with(a, 5, 10**7)), "rise from 0 to 20|no CSR matrix"),
        (_csr_file(indptr=lambda a: a[::-1]), "rise from 0 to 20|no CSR matrix"),
        (_csr_file(indptr=lambda a: a[:-1]), "rise from 0 to 20|no CSR matrix"),
        (
            _csr_file(data=lambda a: _with(a, 15, np.nan)),
            "row 7.*column 1 .*(is missing or infinite|is nan, not finite)",
        ),
        (
            _dense_file(X=_with(np.ones((10, 2)), (8, 1), np.inf)),
            "row 8.*column 1 .*(is missing or infinite|is inf, not finite)",
        ),
        (
            _dense_file(y=_with(np.ones(10), 9, np.nan)),
            "target of row 9 .* not finite|row 9 .* the target is nan, which is not finite",
        ),
        (_dense_file(y=np.ones(5)), r"got \(10, 2\) and \(5,\)"),
        (_dense_file(y=np.ones((10, 2))), r"got \(10, 2\) and \(10, 2\)"),
        (_dense_file(y=np.float64(1)), r"got \(10, 2\) and \(\)"),
        (_dense_file(y=np.zeros(10, "M8[s]")), "targets must be numbers or texts"),
        (_dense_file(X=np.ones(10)), r"got \(10,\) and \(10,\)"),
        (_dense_file(X=np.ones((1, 10, 2))), r"got \(1, 10, 2\)"),
        (_dense_file(X=np.ones((10, 0))), "nothing to learn from"),
        (_dense_file(X=np.ones((10, 2), complex)), "features must be numbers, got complex"),
        (_dense_file(X=np.full((10, 2), "1")), "features must be numbers"),
        (_dense_file(X=np.zeros((10, 2), "M8[s]")), "features must be numbers"),
    ],
)
def test_npz_files_that_cannot_be_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    """As a whole and in blocks, which must not hand unsound matrices on; rows count from the first of the file."""
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=message):
        read(tmp_path / "bad.npz")
    with pytest.raises(DataError, match=message):
        list(chunks(tmp_path / "bad.npz", rows=3))


# -- standard input


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (b"1 1:2 2:3\n-1 1:4\n", {}, [[2, 3], [4, 0]]),
        (gzip.compress(b"1 1:2 2:3\n-1 1:4\n"), {}, [[2, 3], [4, 0]]),
        (b"a,y,b\n2,1,3\n4,-1,0\n", {"target": "y"}, [[2, 3], [4, 0]]),
        (b"1\n-1 1:4 2:2\n", {"format": "libsvm"}, [[0, 0], [4, 2]]),
    ],
    ids=["libsvm", "gzip", "csv", "named"],  # packed bytes hold a time, and would make another name in every process
)
def test_standard_input(monkeypatch: pytest.MonkeyPatch, text: bytes, options: dict, expected: list) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text))))
    X, y = joined(chunks("-", **options))
    np.testing.assert_array_equal(X, expected)
    assert y.tolist() == [1, -1]


def test_standard_input_gives_rows_as_they_come() -> None:
    code = "from onkel.datasets.readers import chunks\nfor X, y in chunks('-', target='y'): print(len(y), flush=True)"
    command = [sys.executable, "-W", "ignore", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"a,y\n1,2\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"1\n"  # before the input ends
        process.stdin.write(b"1,2\n3,4\n")
        process.stdin.close()
        assert process.stdout.read() == b"2\n"


def test_what_cannot_come_from_standard_input() -> None:
    with pytest.raises(DataError, match="standard input cannot be npz"):
        list(chunks("-", format="npz"))


# -- by name


def test_chunks_by_name() -> None:
    blocks = [block for block, _ in zip(datasets.chunks("checkerboard", seed=3, rows=1000), range(7), strict=False)]
    X, y = joined(blocks)
    stream = datasets.load("checkerboard", n=7000, seed=3)
    np.testing.assert_array_equal(X, stream.X)
    np.testing.assert_array_equal(y, stream.y)
    X, y = joined(datasets.chunks("iris", rows=40))
    np.testing.assert_array_equal(X, datasets.load("iris").X)
    with pytest.raises(DataError, match="iris is not generated; it has no seed"):
        next(datasets.chunks("iris", seed=1))
