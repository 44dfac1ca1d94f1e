"""The promises of the work bench: tuning in one pass, and runs that are killed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import streams
from bench import Bench, Result

import onkel
from onkel import datasets
from onkel.core import state
from onkel.core.scores import decided
from onkel.datasets.stream import Stream, standardise
from onkel.evaluation import tuning

SETS = ("a9a", "covtype", "ijcnn1", "letter", "magic04", "satimage", "spambase", "usps", "w7a")
ROWS = 100_000


def tune(bench: Bench) -> Result:
    """64 settings of FOGD in one pass, against whole runs of all of them, each on one core."""
    rows = []
    for name in streams.here(SETS) or ["breast_cancer", "digits", "drift"]:
        stream = datasets.load(name)
        order = stream.order(0, seed=0)[: bench.size(ROWS)]
        X = stream.X[order] if sp.issparse(stream.X) else standardise(stream.X[order])
        rows.append(_tuned(stream, X, stream.y[order]))
    title = "Tuning 64 settings of FOGD (8 widths, 8 steps, D = 400) in one pass; excess over the best of whole runs"
    return Result(title, rows)


def _tuned(stream: Stream, X: Any, y: Any) -> dict[str, Any]:
    model = onkel.FOGDClassifier()
    settings = tuning.grid(model, **tuning.values(model, "default", X.shape[1]))
    clock = time.process_time()
    tuned = onkel.tune(settings, X, y, classes=stream.classes)
    spent = time.process_time() - clock
    clock = time.process_time()
    wrong = {name: _run(setting.clone(), X, y, stream.classes) for name, setting in settings.items()}
    single = (time.process_time() - clock) / len(settings)
    best, found = min(wrong, key=wrong.__getitem__), tuned.candidates[0]
    assert found.total == wrong[found.name]
    return {
        "stream": stream.name,
        "examples": len(y),
        "best": best,
        "found": found.name,
        "best %": 100 * wrong[best] / len(y),
        "found %": 100 * found.error,
        "excess %": 100 * (found.total / wrong[best] - 1),
        "single run s": single,
        "cost in runs": spent / single,
        "target": "< 10 runs, < 2 %",
        "met": bool(spent / single < 10 and found.total <= 1.02 * wrong[best]),
    }


def _run(model: Any, X: Any, y: Any, classes: Any) -> int:
    """The mistakes of a setting that runs alone."""
    return int((classes[decided(model.learn(X, y, classes=classes))] != y).sum())


def killed(bench: Bench) -> Result:
    """`onkel run`, killed at random moments and resumed: the same model and predictions as never killed."""
    table = bench.folder / "stream.csv"
    X = np.random.default_rng(0).random((bench.size(1_000_000), 2))
    y = (np.sin(9 * X[:, 0]) > 2 * X[:, 1] - 1).astype(int)
    np.savetxt(table, np.column_stack([X, y]), fmt=["%.4f", "%.4f", "%d"], delimiter=",", header="a,b,y", comments="")
    options = ["--target", "y", "--model", "BOGD", "--set", "budget=400", "--set", "gamma=20", "--every", "0"]
    command = [sys.executable, "-c", "import sys; from onkel.cli import main; sys.exit(main())", "run", str(table)]
    run = partial(_start, [*command, *options], bench.folder)
    if run("once").wait() != 0:
        raise SystemExit("the run that nobody interrupted failed")
    wanted, kills, ends, same, began = bench.size(100), 0, 0, True, time.monotonic()
    chance = random.Random(0)
    while kills < wanted:
        for file in bench.folder.glob("killed*"):
            file.unlink()
        while (process := run("killed")) and not _ended(process, bench.folder / "killed.txt", chance, kills < wanted):
            kills += 1
        ends += 1
        same = same and process.returncode == 0 and _same(bench.folder / "once", bench.folder / "killed")
        same = same and (bench.folder / "once.txt").read_bytes() == (bench.folder / "killed.txt").read_bytes()
    row = {"examples": len(y), "kills": kills, "times to the end": ends, "seconds": time.monotonic() - began}
    verdict = {"same model and predictions": "yes" if same else "no", "target": wanted, "met": same}
    title = "onkel run killed at random moments and resumed, against a run that was never interrupted"
    return Result(title, [row | verdict])


def _ended(process: subprocess.Popen[bytes], said: Path, chance: random.Random, kill: bool) -> bool:
    """Whether a run came to its end, or was killed soon after it had begun to learn."""
    before = _size(said)
    while kill and process.poll() is None and _size(said) == before:
        time.sleep(0.001)
    if kill:
        time.sleep(chance.uniform(0, 0.1))
    if not kill or process.poll() is not None:
        process.wait()
        return True
    process.kill()
    process.wait()
    return False


def _start(command: list[str], folder: Path, name: str) -> subprocess.Popen[bytes]:
    files = ["--checkpoint", str(folder / name), "--predictions", str(folder / f"{name}.txt")]
    return subprocess.Popen([*command, *files], stdout=subprocess.DEVNULL)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _same(one: Path, other: Path) -> bool:
    """Whether two model files hold the same, but for the times."""
    (a, first), (b, second) = state.read(one), state.read(other)
    for config in (first, second):
        config["follower"] |= {"seconds": 0, "curve": []}
    return first == second and a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
