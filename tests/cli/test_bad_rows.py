"""A bad row costs that row and no other: it ends the run, is skipped, or is kept, and what is learned is saved."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from shell import Capture, assert_same_model, refused, start

from onkel.cli import main
from onkel.datasets import chunks
from onkel.datasets.bad_rows import BadRow
from onkel.evaluation.follower import Follower

WORDS = ("--target", "y", "--model", "BOGD", "--set", "budget=30", "--every", "0")


def good_rows(n: int, seed: int = 0) -> list[bytes]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return [f"{a:.5f},{b:.4f},{c:.6f},{'p' if a * b > 0 else 'q'}\n".encode() for a, b, c in X]


def bad_row(kind: int, huge: int) -> bytes:
    return [b"1.0,x,2.0,p\n", b"1.0,2.0\n", b"1.0,2\0.0,3.0,q\n", b"1.0,\xff\xfe,3.0,q\n", b"1" * huge + b",2,3,p\n"][
        kind % 5
    ]


def mixed(folder: Path, n: int, share: float, huge: int, seed: int = 0) -> tuple[Path, Path, int]:
    """A file with bad rows, the same file without, and how many are bad."""
    random = np.random.default_rng(seed)
    good = good_rows(n, seed)
    places = np.flatnonzero(random.random(n) < share).tolist()
    with_bad = list(good)
    for number, place in enumerate(reversed(places)):
        with_bad.insert(place, bad_row(number, huge))
    (folder / "mixed.csv").write_bytes(b"a,b,c,y\n" + b"".join(with_bad))
    (folder / "good.csv").write_bytes(b"a,b,c,y\n" + b"".join(good))
    return folder / "mixed.csv", folder / "good.csv", len(places)


STREAM = ("source", "place", "written", "skipped", "kept", "position")


def _policies(folder: Path, n: int, huge: int) -> None:
    data, good, bad = mixed(folder, n, 0.01, huge)
    once = folder / "once"
    assert main(["run", str(good), *WORDS, "--quiet", "--checkpoint", str(once)]) == 0
    for way in ("file", "pipe"):
        for policy in ("skip", f"keep {folder / 'kept.csv'}"):
            model = folder / f"{way}-{policy[:4]}"
            stream = str(data) if way == "file" else "-"
            command = ["run", stream, *WORDS, "--quiet", "--json", "--bad-rows", *policy.split(" ", 1)]
            with data.open("rb") as given:
                process = start(*command, "--checkpoint", model, stdin=given if way == "pipe" else None)
                out, err = process.communicate(timeout=600)
            assert process.returncode == 0, err
            summary = json.loads(out)
            assert (summary["examples"], summary["skipped"]) == (n, bad)
            assert_same_model(once, model, but=STREAM)
    kept = (folder / "kept.csv").read_bytes()
    assert kept.startswith(b"a,b,c,y\n# onkel: line ")
    assert kept.count(b"\n# onkel: line ") == bad


def test_skipped_and_kept_from_a_file_and_from_a_pipe(tmp_path: Path) -> None:
    _policies(tmp_path, 2000, 200_000)


@pytest.mark.slow
def test_skipped_and_kept_from_a_file_and_from_a_pipe_in_full(tmp_path: Path) -> None:
    _policies(tmp_path, 20_000, 10_000_000)


def test_the_first_bad_row_ends_the_run_and_the_mended_file_goes_on(tmp_path: Path, capsys: Capture) -> None:
    """Every bad row in turn, until the file is mended."""
    data, good, bad = mixed(tmp_path, 600, 0.01, 200_000)
    words = ["run", data, *WORDS, "--checkpoint", tmp_path / "model"]
    assert main(["run", str(good), *WORDS, "--checkpoint", str(tmp_path / "once")]) == 0
    capsys.readouterr()
    wrong = 0
    while main([*map(str, words)]) == 2:
        wrong += 1
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        line = int(err.split(", line ")[1].split(",")[0].split(":")[0])
        lines = data.read_bytes().splitlines(keepends=True)
        learned = line - 2
        assert Follower.load(tmp_path / "model").seen == learned
        assert "learned and saved in" in err or "model is as it was" in err
        data.write_bytes(b"".join([*lines[: line - 1], *lines[line:]]))
    assert wrong == bad
    assert data.read_bytes() == good.read_bytes()
    assert_same_model(tmp_path / "once", tmp_path / "model", but=("source", "kept"))


def test_a_pipe_that_ends_badly_loses_nothing(tmp_path: Path) -> None:
    """15,000 rows piped in, one bad cell: what came before is saved, and the message says how many."""
    rows = good_rows(15_000)
    text = b"a,b,c,y\n" + b"".join(rows[:9_999]) + b"1,oops,2,p\n" + b"".join(rows[9_999:])
    (tmp_path / "in.csv").write_bytes(text)
    with (tmp_path / "in.csv").open("rb") as given:
        process = start("run", "-", *WORDS, "--quiet", "--checkpoint", tmp_path / "m", stdin=given)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "line 10001, column 'b': 'oops' is not a number" in err
    assert "; 9,999 rows before were learned and saved in" in err
    assert Follower.load(tmp_path / "m").seen == 9_999


def test_kept_rows_can_be_mended_and_read_again(tmp_path: Path, capsys: Capture) -> None:
    data, kept = tmp_path / "data.csv", tmp_path / "kept.csv"
    data.write_text("a;b;y\n1;2;0\n3;x;1\n5;6\n7;8;0\n9;1e999;1\n" + "1;1;0\n2;2;1\n" * 30)
    words = ["run", data, "--target", "y", "--model", "PA", "--checkpoint", tmp_path / "m", "--bad-rows", "keep", kept]
    assert main([*map(str, words)]) == 0
    assert "3 bad rows skipped" in capsys.readouterr().out
    whys = [line for line in kept.read_text().splitlines() if line.startswith("# onkel: ")]
    assert "line 3, column 'b': 'x' is not a number" in whys[0]
    assert "line 4: 2 cells where the header names 3 columns" in whys[1]
    assert "line 6, column 'b': '1e999' is not finite" in whys[2]
    assert [line for line in kept.read_text().splitlines() if line not in whys] == [
        "a;b;y",
        "3;x;1",
        "5;6",
        "9;1e999;1",
    ]
    kept.write_text(kept.read_text().replace("3;x;1", "3;4;1").replace("5;6\n", "5;6;1\n").replace("9;1e999", "9;10"))
    X, y = (np.concatenate(part) for part in zip(*chunks(kept, target="y"), strict=True))
    np.testing.assert_array_equal(X, [[3, 4], [5, 6], [9, 10]])
    assert y.tolist() == [1, 1, 1]
    assert main(["run", str(kept), "--checkpoint", str(tmp_path / "m")]) == 0
    assert Follower.load(tmp_path / "m").seen == 65


def _killed(folder: Path, n: int, kills: int) -> None:
    """Killed and interrupted at random while it learns, a run ends as one that was not, and its kept file, too."""
    data, good, bad = mixed(folder, n, 0.01, 200_000)
    kept, once, model = folder / "kept.csv", folder / "once", folder / "m"
    assert main(["run", str(good), *WORDS, "--quiet", "--checkpoint", str(once)]) == 0
    words = ["run", data, *WORDS, "--quiet", "--bad-rows", "keep", kept, "--checkpoint", model]
    random, killed = np.random.default_rng(0), 0
    for number in range(kills):
        process = start(*words)
        before = kept.stat().st_size if kept.exists() else 0
        while process.poll() is None and (not kept.exists() or kept.stat().st_size == before):
            time.sleep(0.001)
        time.sleep(random.random() * 0.05)
        killed += process.poll() is None
        process.send_signal([signal.SIGKILL, signal.SIGTERM, signal.SIGINT][number % 3])
        process.communicate()
    process = start(*words, "--json")
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert killed
    summary = json.loads(out)
    assert (summary["examples"], summary["skipped"]) == (n, bad)
    assert kept.read_bytes().count(b"# onkel: ") == bad
    assert_same_model(once, model, but=("source", "place", "skipped", "kept"))


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_killed_and_resumed_with_bad_rows(tmp_path: Path) -> None:
    _killed(tmp_path, 4000, 3)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_killed_and_resumed_with_bad_rows_often(tmp_path: Path) -> None:
    _killed(tmp_path, 40_000, 40)


# -- rows that the model cannot learn, and other ends


def test_a_row_too_large_for_the_model_is_a_bad_row(tmp_path: Path, capsys: Capture) -> None:
    rows = [f"{i % 7},{i % 5},{i % 3}\n" for i in range(200)]
    data, good = tmp_path / "data.csv", tmp_path / "good.csv"
    good.write_text("a,b,y\n" + "".join(rows))
    data.write_text("a,b,y\n" + "".join([*rows[:60], "1,1,1e200\n", *rows[60:]]))
    how = ["--target", "y", "--task", "regression", "--model", "PA"]
    words = ["run", data, *how, "--checkpoint", tmp_path / "m"]
    told = refused(capsys, *words)
    assert "data.csv, line 62: " in told and "too large" in told
    assert Follower.load(tmp_path / "m").seen == 60
    assert main([*map(str, words), "--bad-rows", "skip"]) == 0
    assert "1 bad row skipped" in capsys.readouterr().out
    assert main(["run", str(good), *how, "--checkpoint", str(tmp_path / "once")]) == 0
    assert_same_model(tmp_path / "once", tmp_path / "m", but=("source", "place", "skipped"))


def test_what_diverges_ends_the_run_with_the_rows_before(tmp_path: Path, capsys: Capture) -> None:
    """The model is that of the rows before, scales included."""
    rows = [f"{i % 7},{i % 5},{i % 3}\n" for i in range(400)]
    data, before = tmp_path / "data.csv", tmp_path / "before.csv"
    data.write_text("a,b,y\n" + "".join(rows))
    words = ["--target", "y", "--task", "regression", "--model", "KLMS", "--set", "eta=1e6"]
    told = refused(capsys, "run", data, *words, "--checkpoint", tmp_path / "m")
    learned = Follower.load(tmp_path / "m").seen
    assert f"after {learned} examples: " in told and "the model diverges" in told
    assert f"; {learned} rows before were learned and saved in" in told
    before.write_text("a,b,y\n" + "".join(rows[:learned]))
    assert main(["run", str(before), *words, "--checkpoint", str(tmp_path / "once")]) == 0
    assert_same_model(tmp_path / "once", tmp_path / "m", but=("source",))


@pytest.mark.parametrize("command", [["--bad-rows", "stop"], ["--bad-rows", "skip"]])
def test_words_of_bad_rows(tmp_path: Path, capsys: Capture, command: list[str]) -> None:
    data = tmp_path / "data.csv"
    data.write_text("a,y\n" + "1,0\n2,1\n" * 30)
    assert main(["run", *command, str(data), "--target", "y"]) == 0
    with pytest.raises(SystemExit):
        main(["run", str(data), "--bad-rows", "keep"])
    assert "must be stop, skip or keep FILE" in capsys.readouterr().err
    assert "the bad rows would be written over the data" in refused(capsys, "run", data, "--bad-rows", "keep", data)


def test_python_has_the_same_word(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("a,y\n1,0\nx,1\n3,0\n")
    bad: list[BadRow] = []
    for how in ("skip", bad):
        assert [block.X.tolist() for block in chunks(data, target="y", bad_rows=how)] == [[[1.0], [3.0]]]
    (row,) = bad
    assert (row.number, row.column, row.text) == (3, "a", b"x,1\n")
    list(chunks(data, target="y", bad_rows=tmp_path / "kept.csv"))
    assert (tmp_path / "kept.csv").read_bytes().endswith(b"\nx,1\n")
    live = chunks(data, target="y")
    assert next(live).y.tolist() == [0]
    with pytest.raises(ValueError, match="line 3, column 'a'"):
        next(live)
    with pytest.raises(ValueError, match="bad_rows must be 'stop', 'skip', a list, or a Path"):
        next(chunks(data, target="y", bad_rows="ignore"))  # type: ignore[arg-type]
