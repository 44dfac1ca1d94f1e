"""The shell command, called and started: what it says, and the files it works on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onkel import datasets
from onkel.cli import main
from onkel.core import state

Capture = pytest.CaptureFixture[str]


def write_csv(path: Path, n: int, seed: int = 0) -> Path:
    stream = datasets.load("drift", n=n, seed=seed)
    rows = [f"{a:.5f},{1000 * b:.3f},{'up' if y > 0 else 'down'}" for (a, b), y in zip(stream.X, stream.y, strict=True)]
    path.write_text("\n".join(["a,b,label", *rows]) + "\n")
    return path


def parts_of(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a model file holds, but for the times."""
    arrays, config = state.read(path)
    follower = config["follower"]
    for name in ("seconds", "curve"):
        follower.pop(name)
    return arrays, config


def assert_same_model(one: Path, other: Path, *, but: tuple[str, ...] = ()) -> None:
    """`but`: what may differ of what is known about the stream."""
    a, b = parts_of(one), parts_of(other)
    for name in but:
        del a[1]["follower"]["about"][name], b[1]["follower"]["about"][name]
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


def said(capsys: Capture, *words: object) -> list[str]:
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out.splitlines()
