"""Checkpoints: on the disk before their name stands for them, and the one before is used if the newest is damaged."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shell import Capture, said, write_csv

from onkel.cli import main
from onkel.evaluation.follower import Follower, latest


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A checkpoint of 50 rows, and beside it the one before, of 40."""
    table, file = write_csv(tmp_path / "stream.csv", 40), tmp_path / "m"
    words = ["run", str(table), "--target", "label", "--model", "RBP", "--set", "budget=5", "--checkpoint", str(file)]
    assert main(words) == 0
    with table.open("a") as more:
        more.write("0.1,20,up\n" * 10)
    assert main(words) == 0
    return file


def _every_length(file: Path, step: int) -> None:
    whole = file.read_bytes()
    edges = {0, 1, 7, 8, 9, len(whole) - 1, 8 + int.from_bytes(whole[:8], "little")}
    for length in sorted(edges | set(range(0, len(whole), step))):
        file.write_bytes(whole[:length])
        follower, sentence = latest(file)
        assert follower.seen == 40, length
        assert "is damaged" in sentence and "m.previous is used" in sentence and "of 40 examples" in sentence
    file.write_bytes(whole)
    follower, sentence = latest(file)
    assert (follower.seen, sentence) == (50, "")


def test_a_checkpoint_cut_somewhere_loads_the_one_before(pair: Path) -> None:
    _every_length(pair, 37)


@pytest.mark.slow
def test_a_checkpoint_cut_anywhere_loads_the_one_before(pair: Path) -> None:
    _every_length(pair, 1)


def test_a_run_goes_on_from_the_checkpoint_before(pair: Path, tmp_path: Path, capsys: Capture) -> None:
    """With a sentence; and the damaged file does not take the place of the one that is whole."""
    pair.write_bytes(pair.read_bytes()[:-1])
    kept = (tmp_path / "m.previous").read_bytes()
    capsys.readouterr()
    assert main(["run", str(tmp_path / "stream.csv"), "--checkpoint", str(pair)]) == 0
    out, err = capsys.readouterr()
    assert re.match("onkel: .*m is damaged .*; .*m.previous is used, the checkpoint before it, of 40 examples\n", err)
    assert "50 examples (10 new)" in out
    assert (tmp_path / "m.previous").read_bytes() == kept
    assert Follower.load(pair).seen == 50
    pair.unlink()
    assert len(said(capsys, "predict", pair, tmp_path / "stream.csv")) == 50  # so does a prediction
    assert main(["run", str(tmp_path / "stream.csv"), "--checkpoint", str(pair)]) == 0
    assert "m is missing; " in capsys.readouterr().err


def test_if_both_are_damaged_the_newest_is_told(pair: Path, tmp_path: Path, capsys: Capture) -> None:
    for file in (pair, tmp_path / "m.previous"):
        file.write_bytes(b"")
    capsys.readouterr()
    assert main(["run", str(tmp_path / "stream.csv"), "--checkpoint", str(pair)]) == 2
    assert "m is not an onkel model" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_the_system_is_asked_in_this_order(pair: Path, tmp_path: Path) -> None:
    trace, name = tmp_path / "trace", re.escape(str(pair))
    with (tmp_path / "stream.csv").open("a") as more:
        more.write("0.1,20,up\n")
    asked = "trace=openat,write,fsync,rename,renameat,renameat2,link,linkat"
    command = [sys.executable, "-c", "import sys; from onkel.cli import main; sys.exit(main())"]
    words = ["run", tmp_path / "stream.csv", "--checkpoint", pair]
    ran = subprocess.run(["strace", "-f", "-y", "-e", asked, "-o", trace, *command, *words], capture_output=True)
    if "ptrace" in ran.stderr.decode():
        pytest.skip("no permission to trace")
    assert ran.returncode == 0, ran.stderr
    lines = trace.read_text().splitlines()
    folder, new = re.escape(str(tmp_path)), rf"{folder_of(name)}\.m\.[0-9.]+onkel"
    steps = [
        rf"write\(\d+<{new}>",
        rf"fsync\(\d+<{new}>",
        rf'rename\w*\(.*"{folder}/\.m\.previous\.[0-9.]+onkel".*"{name}\.previous"',
        rf'rename\w*\(.*"{new}".*"{name}"',
        rf"fsync\(\d+<{folder}>",
    ]
    places = [[i for i, line in enumerate(lines) if re.search(step, line)] for step in steps]
    assert all(places), places
    assert max(places[0]) < min(places[1])  # all of it was written before it was synced
    assert places[1:] == sorted(places[1:]) and all(len(place) == 1 for place in places[1:])


def folder_of(name: str) -> str:
    return name[: -len("m")]
