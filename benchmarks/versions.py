"""Two builds of onkel against each other, on the cells that the manual names: CPU time and mistakes, in one run.

    python benchmarks/versions.py OLD NEW                  # two Python executables, each with a build of onkel
    python benchmarks/versions.py OLD NEW --only BOGD FOGD

Each build runs in a process of its own; they take turns, and the least of several repetitions counts. A third process
runs the old build once more: how far it is from the first is what the machine alone makes of one build.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

Cell = dict[str, Any]
SMALL = {"BOGD": {"eta": 0.1, "lam": 0.0, "unbiased": False}, "OGD": {"eta": 0.1}, "FOGD": {"eta": 0.1}}


def cells() -> list[Cell]:
    """What is measured: estimator, settings, stream, form of the rows, and their number."""

    def cell(name: str, stream: str, form: str, rows: int, **settings: Any) -> Cell:
        return {"name": name, "stream": stream, "form": form, "rows": rows, "settings": settings}

    found = []
    for form in ("float64", "float32"):
        for budget in (100, 400):
            for stream, gamma in (("ijcnn1", 2.0), ("a9a", 0.05)):
                found.append(cell("BOGD", stream, form, 40_000, budget=budget, gamma=gamma, **SMALL["BOGD"]))
        for stream, gamma in (("ijcnn1", 2.0), ("a9a", 0.05)):
            found.append(cell("FOGD", stream, form, 40_000, components=400, gamma=gamma, **SMALL["FOGD"]))
        found.append(cell("BOGD", "ijcnn1", form, 20_000, budget=1600, gamma=2.0, **SMALL["BOGD"]))
    found += [
        cell("OGD", "a9a", "float64", 10_000, gamma=0.05, **SMALL["OGD"]),
        cell("PA", "ijcnn1", "float64", 20_000, gamma=2.0),
        cell("NOGD", "ijcnn1", "float64", 20_000, budget=100, rank=20, gamma=2.0),
        cell("BSGD", "ijcnn1", "float64", 10_000, budget=400, maintenance="merge", search="table", gamma=2.0),
        cell("Projectron", "ijcnn1", "float64", 10_000, budget=400, gamma=2.0),
        cell("BPA", "ijcnn1", "float64", 20_000, budget=400, gamma=2.0),
        cell("RRF", "ijcnn1", "float64", 20_000, components=100, gamma=2.0),
        cell("FOGDOMKL", "a9a", "float64", 3_000, components=100),
        cell("SPAOMKL", "a9a", "float64", 2_000),
        cell("AutoKernel", "ijcnn1", "float64", 2_000),
        cell("BOGD", "ijcnn1", "one by one", 20_000, budget=100, gamma=2.0, **SMALL["BOGD"]),
        cell("BOGD", "ijcnn1", "dictionaries", 20_000, budget=100, gamma=2.0, **SMALL["BOGD"]),
    ]
    return found


# -- in the process of a build


def serve() -> None:
    """Run the cells that come on standard input, one a line, until it ends."""
    import numpy as np
    import streams

    import onkel

    known = {name: getattr(streams, name)() for name in ("ijcnn1", "a9a")}
    for line in sys.stdin:
        cell = json.loads(line)
        form, rows = cell["form"], cell["rows"]
        X, y = known[cell["stream"]].head(rows, np.float32 if form == "float32" else np.float64)
        settings = dict(cell["settings"])
        if "gamma" in settings:
            settings["kernel"] = onkel.kernels.Gaussian(settings.pop("gamma"))
        model = getattr(onkel, cell["name"] + "Classifier")(**settings)
        model.learn(X[:2], y[:2], classes=[-1, 1])
        if form in ("float32", "float64"):
            clock = time.process_time()
            scores = model.learn(X, y)
            seconds = time.process_time() - clock
            mistakes = int(np.sum(np.where(scores >= 0, 1, -1) != y))
        else:
            examples = [dict(enumerate(x)) for x in X.tolist()] if form == "dictionaries" else list(X)
            if form == "dictionaries":
                model = getattr(onkel, cell["name"] + "Classifier")(**settings)
            labels, mistakes = y.tolist(), 0
            clock = time.process_time()
            for x, label in zip(examples, labels, strict=True):
                mistakes += model.predict_one(x) != label
                model.learn_one(x, label)
            seconds = time.process_time() - clock
        print(json.dumps([seconds, mistakes]), flush=True)


# -- in the process that compares


class Build:
    """A process with one build, which runs cells when asked."""

    def __init__(self, python: str) -> None:
        words = [python, "-W", "ignore", __file__, "--serve"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, cell: Cell) -> tuple[float, int]:
        """Seconds and mistakes."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(cell) + "\n")
        self.process.stdin.flush()
        seconds, mistakes = json.loads(self.process.stdout.readline())
        return seconds, mistakes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?")
    parser.add_argument("new", nargs="?", default=sys.executable)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", nargs="*", help="estimators to measure")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve()
        return 0
    if not asked.old or not Path(asked.old).exists():
        parser.error(f"OLD must be the Python of an environment with the old build, got {asked.old!r}")
    builds = {"old": Build(asked.old), "new": Build(asked.new), "old again": Build(asked.old)}
    print(f"{'cell':<46} {'old us':>8} {'new us':>8} {'new/old':>8} {'old/old':>8}  mistakes")
    ratios = []
    for cell in cells():
        if asked.only and cell["name"] not in asked.only:
            continue
        best, mistakes = dict.fromkeys(builds, float("inf")), {}
        for _ in range(asked.repeats):
            for name, build in builds.items():
                seconds, mistakes[name] = build.run(cell)
                best[name] = min(best[name], 1e6 * seconds / cell["rows"])
        size = " ".join(f"{k}={v}" for k, v in cell["settings"].items() if k in ("budget", "components"))
        label = f"{cell['name']} {cell['stream']} {cell['form']} {size}"
        ratios.append(best["new"] / best["old"])
        same = mistakes["old"] if mistakes["old"] == mistakes["new"] else f"{mistakes['old']} -> {mistakes['new']}"
        spread = best["old again"] / best["old"]
        print(f"{label:<46} {best['old']:8.3f} {best['new']:8.3f} {ratios[-1]:8.3f} {spread:8.3f}  {same}", flush=True)
    print(f"worst new/old {max(ratios):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
