"""Bad rows in every format: each is found, with its place and its text, and the others are those of the good file."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from onkel.datasets import DataError
from onkel.datasets.bad_rows import BadRow
from onkel.datasets.readers import chunks, opened
from onkel.datasets.tables import Schema


def joined(path: Path, **how: Any) -> tuple[Any, Any, list[BadRow]]:
    """All rows of a file, but for the bad ones, and these."""
    bad: list[BadRow] = []
    blocks = list(chunks(path, **({"bad_rows": bad} | how)))
    X = sp.vstack([sp.csr_matrix(np.pad(_dense(b.X), ((0, 0), (0, 9 - b.X.shape[1])))) for b in blocks]).toarray()
    return X, np.concatenate([b.y for b in blocks]), bad


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X


BAD_CSV = [
    (b"x,2,1\n", "column 'a': 'x' is not a number"),
    (b"1,2\n", "2 cells where the header names 3 columns"),
    (b"1,2,3,4\n", "4 cells where"),
    (b"1\0,2,1\n", "a NUL byte"),
    (b"1,\xff,1\n", "not UTF-8"),
    (b"1,inf,1\n", "column 'b': 'inf' is not finite"),
    (b"1,nan,1\n", "column 'b': the value is missing"),
    (b",2,1\n", "column 'a': the value is missing"),
    (b"1,2,\n", "column 'y': the target is missing"),
    (b"1,2,z\n", "column 'y': the target 'z' is not a number"),
    (b"1,2,1e999\n", "column 'y': the target '1e999' is not finite"),
    (b"1_0,2,1\n", "column 'a': '1_0' is not a number"),
    (b'"1"1,2,1\n', "a cell with quotes that do not fit"),
    (b'"1,2,1\n', "a cell "),
    (b"1," + b"2" * 200_000 + b",1\n", "a cell of more than 131,072 characters"),
]
BAD_SVM = [
    (b"x 1:1\n", "the target, 'x', is not a number"),
    (b"1 1:1 1:2\n", "column 1 comes twice"),
    (b"1 0:1\n", "column 0, where columns were counted from 1"),
    (b"1 1:nan\n", "not finite"),
    (b"1 2\n", "is no pair"),
    (b"1 1:\xff\n", "is not a number"),
    (b"1 1:\0\n", "is not a number"),
    (b"1 99999999999:1\n", "is beyond the limit"),
]


@pytest.mark.parametrize("name", ["x.csv", "x.svm", "x.csv.gz"])
@pytest.mark.parametrize("piece", [40, 700, 1 << 20])
def test_every_kind_anywhere(
    name: str, piece: int, tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onkel.datasets.lines.PIECE", piece)
    kinds, random = (BAD_SVM if "svm" in name else BAD_CSV), np.random.default_rng(piece)
    head = b"" if "svm" in name else b"a,b,y\n"
    good = [
        b"%d 1:%d.5 3:%d\n" % (i % 2, i, i % 7) if "svm" in name else b"%d.5,%d,%d\n" % (i, i % 7, i % 2)
        for i in range(300)
    ]
    lines, places = (
        list(good),
        sorted(random.choice(np.arange(20, 290), len(kinds), replace=False).tolist(), reverse=True),
    )
    for place, (text, _) in zip(places, kinds, strict=True):
        lines.insert(place, text)
    pack = gzip.compress if name.endswith("gz") else bytes
    (tmp_path / name).write_bytes(pack(head + b"".join(lines)))
    (tmp_path / f"good-{name}").write_bytes(pack(head + b"".join(good)))
    how: dict[str, Any] = {"zero_based": False} if "svm" in name else {"target": "y"}
    X, y, bad = joined(tmp_path / name, **how)
    expected = joined(tmp_path / f"good-{name}", **how)
    np.testing.assert_array_equal(X, expected[0])
    np.testing.assert_array_equal(y, expected[1])
    assert len(bad) == len(kinds)
    starts = 1 + len(head.splitlines())
    for row, place, (text, words) in zip(bad, sorted(places), reversed(kinds), strict=True):
        assert row.text == text and words in str(row), str(row)
        assert lines[row.number - starts] == text
        assert row.number - starts >= place
    before: list[int] = []
    with pytest.raises(DataError, match=f"line {bad[0].number}[:,]"):
        before.extend(len(block.y) for block in chunks(tmp_path / name, **how))
    assert sum(before) == bad[0].number - starts


def test_rubbish_in_a_table_that_is_skipped_ends(tmp_path: Path, engine: str) -> None:
    """Whatever is in it: the same good rows and the same bad ones, in any pieces."""
    random = np.random.default_rng(0)
    words = [
        b"1",
        b"2.5",
        b",",
        b",",
        b",",
        b'"',
        b"\n",
        b"\n",
        b"\r",
        b"\0",
        b"x",
        b"\xff",
        b" ",
        b"# onkel: ",
        b"nan",
    ]
    for number in range(300):
        body = b"".join(words[i] for i in random.integers(len(words), size=random.integers(120)))
        path = tmp_path / "x.csv"
        path.write_bytes(b"a,b,y\n1,2,0\n" + body)
        found = []
        for piece in (1, 7, 1 << 20):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("onkel.datasets.lines.PIECE", piece)
                X, y, bad = joined(path, target="y")
            found.append((X.tolist(), y.tolist(), [str(row) for row in bad]))
        assert found[0] == found[1] == found[2], (number, body)


def test_npz_parquet_and_arrow(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    X, y = np.arange(600.0).reshape(200, 3), np.arange(200.0) % 3
    there = np.ones(200, bool)
    there[[5, 80, 199]] = False
    X[5, 1], X[80, 2], y[199] = np.nan, np.inf, np.nan
    np.savez(tmp_path / "x.npz", X=X, y=y)
    S = sp.csr_matrix(X)
    np.savez(tmp_path / "s.npz", data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=y)
    table = pa.table({"1": X[:, 0], "2": X[:, 1], "3": X[:, 2], "y": y})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=30)
    pyarrow.feather.write_feather(table, tmp_path / "x.arrow", chunksize=30)
    for name in ("x.npz", "s.npz", "x.parquet", "x.arrow"):
        kept = tmp_path / "kept.csv"
        got, targets, bad = joined(tmp_path / name, target="y", rows=70)
        list(chunks(tmp_path / name, target="y", bad_rows=kept))
        np.testing.assert_array_equal(got[:, :3], X[there], err_msg=name)
        np.testing.assert_array_equal(targets, y[there])
        assert [row.number for row in bad] == [5, 80, 199]
        with pytest.raises(DataError, match=r"row 5 \(from 0\)"):
            list(chunks(tmp_path / name, target="y"))
        lines = kept.read_text().splitlines()
        assert lines[0] == "1,2,3,y" and lines[2] == "15.0,,17.0,2.0" and len(lines) == 7
        kept.write_text(
            kept.read_text().replace(",,", ",16.0,").replace("inf", "242.0").replace("599.0,\n", "599.0,1.0\n")
        )
        mended, _, _ = joined(kept, target="y")
        np.testing.assert_array_equal(mended[:, :3], np.arange(600.0).reshape(200, 3)[~there])


@pytest.mark.parametrize("name", ["x.csv", "x.svm", "x.npz"])
def test_a_block_can_be_given_back_or_cut(name: str, tmp_path: Path) -> None:
    """Then columns, place and rows are those of the rows before; and a refused row is bad."""
    random, path = np.random.default_rng(0), tmp_path / name
    if name == "x.csv":
        path.write_text("a,t,y\n" + "".join(f"{i},w{i},{i % 2}\n" + (i % 9 == 4) * "x,y\n" for i in range(40)))
    elif name == "x.svm":
        path.write_text("".join(f"{i % 2} {1 + i}:{i}\n" + (i % 9 == 4) * "oops\n" for i in range(40)))
    else:
        np.savez(path, X=np.arange(40.0)[:, None], y=np.arange(40) % 2)
    how: dict[str, Any] = {"target": "y", "encode": "onehot"} if name == "x.csv" else {}

    def walk(whole: bool) -> list[Any]:
        schema, seen, bad = Schema(**how), [], 0
        with opened(path, schema, skip=True, growing=True) as reading:
            reading.rows = 40 if whole else 7
            for block in reading:
                used = block
                if not whole and random.random() < 0.7:
                    used = reading.cut(int(random.integers(len(block.y) + 1))) if len(block.y) else block
                    if random.random() < 0.3:
                        reading.back()
                if used is not None:
                    bad += len(used.bad)
                    seen += _dense(used.X)[:, :1].tolist() if name != "x.svm" else used.X.data.tolist()
            return [seen, bad, reading.place, schema.plain()]

    expected = walk(whole=True)
    for _ in range(10):
        assert walk(whole=False) == expected
    with opened(path, Schema(**how), skip=True) as reading:
        block = next(reading)
        reading.cut(3, "not for this model")
        rest = next(reading)
        assert len(rest.y) == len(block.y) - 4
        assert rest.bad[0].reason == "not for this model"
