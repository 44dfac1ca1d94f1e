"""Following a file: it grows, is mended or replaced, and its last line may still be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shell import Capture, assert_same_model, refused, said

from onkel.cli import main
from onkel.datasets import lines
from onkel.datasets.fingerprint import Fingerprint
from onkel.evaluation.follower import Follower


def rows_of(n: int) -> list[str]:
    random = np.random.default_rng(0)
    return [f"{a:.4f},{100 * a:.4f}\n" for a in random.random(n)]


@pytest.mark.parametrize("cut", ["0.1519,10", "0.15", "0.1519,100.6139"])
def test_a_last_line_waits_for_its_end(cut: str, tmp_path: Path, capsys: Capture) -> None:
    """`0.1519,10` is never learned for `0.1519,100.6139`."""
    data, rows = tmp_path / "x.csv", rows_of(80)
    words = ["run", data, "--target", "y", "--model", "KLMS", "--checkpoint"]
    data.write_text("a,y\n" + "".join(rows) + cut)
    shown = said(capsys, *words, tmp_path / "m")
    assert "80 examples" in shown[0]
    assert "the last line has no end yet, and waits for it" in shown[1]
    assert "nothing new" in said(capsys, *words, tmp_path / "m")[0]
    data.write_text("a,y\n" + "".join(rows) + "0.1519,100.6139\n")
    shown = said(capsys, *words, tmp_path / "m")
    assert "81 examples (1 new)" in shown[0] and "learner" in shown[1]
    said(capsys, *words, tmp_path / "once")
    assert_same_model(tmp_path / "once", tmp_path / "m")


@pytest.mark.parametrize("name", ["x.csv", "x.svm"])
def test_a_last_line_counts_where_nothing_can_follow(name: str, tmp_path: Path, capsys: Capture) -> None:
    data = tmp_path / name
    head, row, more = ("a,y\n", "{0},{1}\n", ["--target", "y"]) if name == "x.csv" else ("", "{1} 1:{0}\n", [])
    data.write_text((head + "".join(row.format(i, i % 2) for i in range(60))).rstrip("\n"))
    assert "60 examples" in said(capsys, "run", data, *more)[0]
    assert "59 examples" in said(capsys, "run", data, *more, "--checkpoint", tmp_path / "m")[0]


def test_a_file_that_grows_byte_by_byte_ends_with_the_model_of_one_run(tmp_path: Path, capsys: Capture) -> None:
    rows = [f'{i % 7},"a ""{i % 3}""\nb",{"yes" if i % 4 else "no"}\r\n' for i in range(60)]
    whole, data = ("u,v,y\n" + "".join(rows)).encode(), tmp_path / "x.csv"
    words = ["run", data, "--target", "y", "--encode", "onehot", "--model", "PA", "--quiet", "--checkpoint"]
    first = len(("u,v,y\n" + "".join(rows[:20])).encode())
    for size in [*range(first, first + 50), first + 300, len(whole)]:
        data.write_bytes(whole[:size])
        said(capsys, *words, tmp_path / "grown")
    said(capsys, *words, tmp_path / "once")
    a, b = Follower.load(tmp_path / "grown"), Follower.load(tmp_path / "once")
    assert a.seen == b.seen == 60
    assert a.about == b.about and a.schema.plain() == b.schema.plain()
    assert (a.total, a.scores(np.eye(3, a.model.n_features_in_)).tolist()) == (
        b.total,
        b.scores(np.eye(3, b.model.n_features_in_)).tolist(),
    )


@pytest.mark.parametrize("longer", [0, 1, -1])
def test_a_replaced_file_is_noticed_whatever_its_length(longer: int, tmp_path: Path, capsys: Capture) -> None:
    """One digit of any row that was read is enough."""
    data, model, rows = tmp_path / "x.csv", tmp_path / "m", rows_of(200)
    words = ["run", data, "--target", "y", "--model", "KLMS", "--checkpoint", model]
    data.write_text("a,y\n" + "".join(rows))
    said(capsys, *words)
    kept = model.read_bytes()
    for place in (0, 100, 199):
        changed = list(rows)
        changed[place] = changed[place].replace("0.", "1.", 1)
        text = "".join(changed)
        data.write_text("a,y\n" + (text + rows[0] if longer > 0 else text[: -len(rows[-1])] if longer else text))
        told = refused(capsys, *words)
        assert "another file now" in told and "200 rows" in told
        assert model.read_bytes() == kept
    data.write_text("a,y\n" + "".join([*rows, *rows[:7]]))
    assert "207 examples (7 new)" in said(capsys, *words)[0]


def test_a_run_goes_on_at_its_byte(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read is not parsed again; and of a long file, not even read."""
    data, rows = tmp_path / "x.csv", rows_of(2000)
    words = ["run", data, "--target", "y", "--task", "regression", "--model", "KLMS", "--checkpoint", tmp_path / "m"]
    data.write_text("a,y\n" + "".join(rows))
    said(capsys, *words)
    with data.open("a") as more:
        more.write("".join(rows[:5]))
    monkeypatch.setattr(lines, "PIECE", 4096)
    taken: list[bytes] = []
    take = lines.Lines.take

    def noted(self: Any, size: int) -> bytes:
        taken.append(take(self, size))
        return taken[-1]

    monkeypatch.setattr(lines.Lines, "take", noted)
    assert "2,005 examples (5 new)" in said(capsys, *words)[0]
    assert b"".join(taken) == b"a,y\n" + "".join(rows[:5]).encode()


@pytest.mark.parametrize("packed", [False, True])
def test_a_fingerprint_is_the_same_however_it_is_taken(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces, as a file is read; or by samples; and every byte that counts changes it."""
    for name, value in (("_WHOLE", 4000), ("_EVERY", 1000), ("_SAMPLE", 50), ("_LAST", 300)):
        monkeypatch.setattr(f"onkel.datasets.fingerprint.{name}", value)
    data = np.random.default_rng(0).bytes(20_000)
    (tmp_path / "x").write_bytes(data)
    for size in (0, 1, 299, 3999, 4000, 4049, 4050, 9_999, 20_000):
        made, begin = Fingerprint(), 0
        for step in [1, 7, 500, 1000, 49, *[333] * 99]:
            made.update(data[begin : min(begin + step, size)])
            begin = min(begin + step, size)
        with (tmp_path / "x").open("rb") as file:
            assert Fingerprint.of(file, size, packed=packed).digest() == made.digest()
    for place in (0, 3999, 5020, 19_000, 19_999):
        changed = bytearray(data)
        changed[place] ^= 1
        (tmp_path / "x").write_bytes(changed)
        with (tmp_path / "x").open("rb") as file:
            assert Fingerprint.of(file, 20_000, packed=packed).digest() != made.digest()
    with (tmp_path / "x").open("rb") as file:
        assert Fingerprint.of(file, 30_000, packed=packed).size == 20_000


@pytest.mark.parametrize("name", ["x.npz", "x.parquet", "x.arrow", "x.csv.gz", "x.svm", "digits"])
def test_every_format_goes_on_where_it_stopped(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted after the first block, the run ends as one that was not."""
    words = ["run", _written(tmp_path, name), "--model", "KLMS", "--task", "regression", "--every", "900", "--quiet"]
    words = ["run", words[1], "--model", "PA", *words[6:]] if name == "digits" else words
    words += ["--target", "y"] if name not in ("digits", "x.svm") else []
    monkeypatch.setattr("onkel.cli.session.PATIENCE", 0.0)  # blocks of one row
    assert main([*map(str, words), "--checkpoint", str(tmp_path / "once")]) == 0
    learn, calls = Follower.learn, 0

    def stopped(self: Follower, X: Any, y: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return learn(self, X, y)

    monkeypatch.setattr(Follower, "learn", stopped)
    assert main([*map(str, words), "--checkpoint", str(tmp_path / "m")]) == 0
    assert calls == 3 and Follower.load(tmp_path / "m").seen < Follower.load(tmp_path / "once").seen
    monkeypatch.setattr(Follower, "learn", learn)
    assert main([*map(str, words), "--checkpoint", str(tmp_path / "m")]) == 0
    assert_same_model(tmp_path / "once", tmp_path / "m")


@pytest.mark.parametrize("name", ["x.npz", "x.parquet", "x.arrow"])
def test_other_rows_are_noticed_in_files_that_are_no_text(name: str, tmp_path: Path, capsys: Capture) -> None:
    """Whatever their number; and a file with further rows is learned on."""
    words = ["run", tmp_path / name, "--model", "KLMS", "--task", "regression", "--target", "y", "--checkpoint"]
    _written(tmp_path, name)
    said(capsys, *words, tmp_path / "m")
    kept = (tmp_path / "m").read_bytes()
    for rows in (140, 150, 160):
        _written(tmp_path, name, rows=rows, changed=130)
        assert "another file now" in refused(capsys, *words, tmp_path / "m")
        assert (tmp_path / "m").read_bytes() == kept
    _written(tmp_path, name, rows=160)
    assert "160 examples (10 new)" in said(capsys, *words, tmp_path / "m")[0]
    said(capsys, *words, tmp_path / "once")
    assert_same_model(tmp_path / "once", tmp_path / "m")


def _written(folder: Path, name: str, rows: int = 150, changed: int | None = None) -> Path | str:
    import gzip

    random = np.random.default_rng(0)
    both = random.normal(size=(160, 4))[:rows]
    if changed is not None:
        both[changed, 1] += 1
    X, y = np.ascontiguousarray(both[:, :3]), both[:, 3].copy()
    path = folder / name
    if name == "x.npz":
        np.savez(path, X=X, y=y)
    elif name in ("x.parquet", "x.arrow"):
        pa = pytest.importorskip("pyarrow")
        import pyarrow.feather
        import pyarrow.parquet

        table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
        if name == "x.parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=20)
        else:
            pyarrow.feather.write_feather(table, path, chunksize=30)
    elif name == "x.csv.gz":
        text = "a,b,c,y\n" + "".join(
            ",".join(map(repr, [*x, t])) + "\n" for x, t in zip(X.tolist(), y.tolist(), strict=True)
        )
        path.write_bytes(gzip.compress(text.encode()))
    elif name == "x.svm":
        path.write_text(
            "".join(f"{t} 1:{a} 2:{b} 3:{c}\n" for (a, b, c), t in zip(X.tolist(), y.tolist(), strict=True))
        )
    else:
        return name
    return path
