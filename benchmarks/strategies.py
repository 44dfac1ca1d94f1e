"""Compare every way to keep a budget, at equal budget and at equal time: the pictures and the table of docs/budgets.md.

python benchmarks/strategies.py docs   (needs the data folder, $ONKEL_DATA or ../shared/data)
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import onkel
from onkel import plots
from onkel.kernels import Gaussian
from onkel.plots import Line

ROWS = 20_000
BUDGET = 200
BUDGETS = (50, 100, 200, 400, 800)
STREAMS = {"magic04": 0.5, "a9a": 0.05, "ijcnn1": 2.0}  # and the width of the kernel

# the one setting each strategy runs with everywhere; none was tuned for a stream
STRATEGIES: dict[str, tuple[str, dict[str, Any]]] = {
    "refuse (Stoptron)": ("StoptronClassifier", {}),
    "random (RBP)": ("RBPClassifier", {}),
    "oldest, shrinking (Forgetron)": ("ForgetronClassifier", {}),
    "least needed (Budget Perceptron)": ("BudgetPerceptronClassifier", {}),
    "project (Projectron)": ("ProjectronClassifier", {}),
    "project (Projectron++)": ("ProjectronPlusPlusClassifier", {}),
    "random (BOGD)": ("BOGDClassifier", {"eta": 0.3, "lam": 1e-4}),
    "by weight (BOGD++)": ("BOGDPlusPlusClassifier", {"eta": 0.3, "lam": 1e-4}),
    "smallest (BSGD)": ("BSGDClassifier", {"lam": 1e-4}),
    "project smallest (BSGD)": ("BSGDClassifier", {"lam": 1e-4, "maintenance": "project"}),
    "merge (BSGD)": ("BSGDClassifier", {"lam": 1e-4, "maintenance": "merge", "search": "table"}),
    "refit on the new (BPA)": ("BPAClassifier", {"C": 1.0}),
    "refit on the nearest (BPA)": ("BPAClassifier", {"C": 1.0, "variant": "nearest"}),
    "refit on all (BPA)": ("BPAClassifier", {"C": 1.0, "variant": "projecting"}),
    "dual ascent (BDUOL remove)": ("BDUOLClassifier", {"C": 1.0, "maintenance": "remove"}),
    "dual ascent (BDUOL nearest)": ("BDUOLClassifier", {"C": 1.0, "maintenance": "nearest"}),
    "landmarks (NOGD)": ("NOGDClassifier", {"eta": 0.3}),
}


def stream(name: str) -> tuple[Any, Any]:
    """The first rows of a shuffled set, features of order one."""
    folder = Path(os.environ.get("ONKEL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    with np.load(folder / f"{name}.npz") as data:
        y = np.where(data["y"] > 0, 1, -1)
        if "X" in data:
            X = data["X"].astype(np.float64)
            X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1) if name == "magic04" else X
        else:
            X = sp.csr_array((data["data"].astype(np.float64), data["indices"], data["indptr"]), shape=data["shape"])
    order = np.random.default_rng(0).permutation(len(y))[:ROWS]
    return X[order], y[order]


def run(strategy: str, budget: int, gamma: float, X: Any, y: Any) -> tuple[Any, float]:
    """The mistakes by round, and the microseconds per example."""
    name, settings = STRATEGIES[strategy]
    model = getattr(onkel, name)(budget=budget, kernel=Gaussian(gamma), **settings)
    start = time.process_time()
    scores = model.learn(X, y, classes=[-1, 1])
    return (scores >= 0) != (y > 0), (time.process_time() - start) / len(y) * 1e6


def main(folder: Path) -> None:
    """Write the pictures, and print the table."""
    rows: dict[str, list[str]] = {strategy: [] for strategy in STRATEGIES}
    for name, gamma in STREAMS.items():
        X, y = stream(name)
        rounds = np.arange(1, len(y) + 1)
        shown = np.unique(np.geomspace(500, len(y), 60).astype(int)) - 1
        equal_budget, equal_time = [], []
        for number, strategy in enumerate(STRATEGIES):
            runs = {budget: run(strategy, budget, gamma, X, y) for budget in BUDGETS}
            wrong, us = runs[BUDGET]
            rate = 100 * np.cumsum(wrong) / rounds
            equal_budget.append(Line(strategy, number, rounds[shown].astype(float), rate[shown]))
            times = np.array([t for _, t in runs.values()])
            errors = np.array([100 * w.mean() for w, _ in runs.values()])
            equal_time.append(Line(strategy, number, times, errors))
            rows[strategy] += [f"{100 * wrong.mean():.1f}", f"{us:.1f}"]
            print(name, strategy, " ".join(f"{e:.1f}/{t:.1f}" for e, t in zip(errors, times, strict=True)), flush=True)
        for kind, lines, title, words, log in (
            ("budget", equal_budget, f"{name}, {BUDGET} terms: mistakes so far, %", "examples", False),
            ("time", equal_time, f"{name}, {BUDGETS[0]} to {BUDGETS[-1]} terms: mistakes, %", "us per example", True),
        ):
            best = min(float(line.y.min()) for line in lines)
            top = float(np.quantile([line.y[-1] for line in lines], 0.9)) * 1.15
            vertical = plots.axis(0.8 * best, top)
            ordered = sorted(lines, key=lambda line: line.y[-1])
            picture = plots.figure(ordered, title=title, horizontal=words, vertical=vertical, log=log)
            (folder / f"budgets_{name}_{kind}.svg").write_text(picture)
    print("| strategy | " + " | ".join(f"{name} % | us" for name in STREAMS) + " |")
    print("| --- |" + " --- |" * (2 * len(STREAMS)))
    for strategy, cells in rows.items():
        print(f"| {strategy} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
