"""At the terminal: control characters of names, labels and files are escaped, and Ctrl-C is quiet while it loads."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shell import Capture

from onkel import datasets
from onkel.cli import main

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


def plain(text: str) -> bool:
    return all(line.isprintable() for line in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).split("\n"))


@pytest.mark.skipif(os.name == "nt", reason="such names")
def test_nothing_from_a_file_steers_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    data, model = tmp_path / f"x{EVIL}.csv", tmp_path / f"m{EVIL}"
    rows = [f"{i % 7},{i % 5},{'p' if i % 2 else 'q'}{EVIL}\n" for i in range(60)]
    data.write_text(f"a{EVIL},b,y{EVIL}\n" + "".join(rows))
    target = ["--target", f"y{EVIL}"]
    for words in (
        ["run", data, *target, "--model", "PA", "--checkpoint", model, "--predictions", "-"],
        ["run", data, *target, "--model", "PA", "--checkpoint", model],
        ["predict", model, data],
        ["predict", model, data, "--target", EVIL],
        ["inspect", model],
        ["race", data, *target, "--algorithms", "PA,RBP"],
        ["tune", data, *target, "--algorithms", "PA", "--cost", "2"],
        ["run", data, "--target", f"z{EVIL}"],
        ["run", tmp_path / f"none{EVIL}.csv", *target],
        ["run", data, *target, "--checkpoint", tmp_path / EVIL / "m"],
        ["predict", tmp_path / f"none{EVIL}", data],
        ["race", data, *target, "--algorithms", EVIL],
    ):
        status = main([str(word) for word in words])
        output = capsys.readouterr()
        assert status in (0, 2)
        assert plain(output.out) and plain(output.err), (words, output)
        assert "owned" in output.out + output.err  # it was shown, escaped
        assert "\x1b]" not in output.out + output.err and "\x1b[2J" not in output.out + output.err


def test_errors_in_python_are_printable(tmp_path: Path) -> None:
    with pytest.raises(datasets.DataError) as error:
        datasets.read(tmp_path / f"none{EVIL}.csv", target="y")
    assert str(error.value).isprintable()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_is_quiet_while_the_command_loads(tmp_path: Path) -> None:
    """At any time from its first import on; 130, and no traceback."""
    (tmp_path / "x.csv").write_text("a,y\n" + "1,2\n2,1\n" * 50)
    code = "import importlib, onkel.cli; load = importlib.import_module\n"
    code += "importlib.import_module = lambda *name: (print('there', flush=True), load(*name))[1]\nonkel.cli.shell()"
    command = [sys.executable, "-W", "ignore", "-c", code, "run", "-", "--target", "y"]
    for wait in (0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0):
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None and process.stdout.readline() == "there\n"
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            err = process.communicate(timeout=60)[1]
        assert "Traceback" not in err and process.returncode in (130, -2), (wait, err)
        assert re.fullmatch(r"(onkel: interrupted[^\n]*\n)?", err), err
