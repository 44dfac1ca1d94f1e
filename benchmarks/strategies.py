"""Compare the ways to keep a budget, at equal budget and at equal time: the pictures and the tables of docs/budgets.md.

python benchmarks/strategies.py docs   (needs the data folder, $ONKEL_DATA or ../shared/data)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import streams

import onkel
from onkel.evaluation import plots
from onkel.evaluation.plots import Line
from onkel.kernels import Gaussian

ROWS, CHOOSING = 15_000, 3_000  # that are learned, and others to choose parameters on
BUDGETS = (50, 100, 200, 400, 800)
BUDGET = 200  # of the table, and to choose parameters with
STREAMS = {"magic04": 0.5, "a9a": 0.05, "ijcnn1": 2.0}  # and the width of the kernel
ETA, LAM, C = {"eta": (0.03, 0.1, 0.3, 1.0)}, {"lam": (1e-5, 1e-4, 1e-3, 1e-2)}, {"C": (0.1, 0.3, 1.0, 3.0)}

# what the budget does when it is full, the estimator, its settings, and the settings to choose from
Strategy = tuple[str, str, dict[str, Any], dict[str, tuple[float, ...]]]
STRATEGIES: dict[str, Strategy] = {
    "Stoptron": ("the new term is dropped", "Stoptron", {}, {}),
    "RBP": ("a random term is removed", "RBP", {}, {}),
    "Forgetron": ("all terms shrink, the oldest is removed", "Forgetron", {}, {}),
    "Budget Perceptron": ("the term with the largest leave-one-out margin is removed", "BudgetPerceptron", {}, {}),
    "Projectron": ("the new term is projected on the others", "Projectron", {}, {}),
    "Projectron++": ("the same, and margin errors are projected, too", "ProjectronPlusPlus", {}, {}),
    "BOGD": ("a random term is removed", "BOGD", {"lam": 1e-4}, ETA),
    "BOGD++": ("a random term is removed, mostly a small one", "BOGDPlusPlus", {"lam": 1e-4}, ETA),
    "BSGD smallest": ("the smallest term is removed", "BSGD", {}, LAM),
    "BSGD project": ("the smallest term is projected on the others", "BSGD", {"maintenance": "project"}, LAM),
    "BSGD merge": ("two terms are merged", "BSGD", {"maintenance": "merge", "search": "table"}, LAM),
    "BPA simple": ("a term is projected on the new term", "BPA", {}, C),
    "BPA nearest": ("a term is projected on the new term and its neighbour", "BPA", {"variant": "nearest"}, C),
    "BPA projecting": ("a term is projected on all others", "BPA", {"variant": "projecting"}, C),
    "BDUOL remove": ("the term whose removal costs the dual least is removed", "BDUOL", {"maintenance": "remove"}, C),
    "BDUOL nearest": ("the same, projected on its neighbour", "BDUOL", {"maintenance": "nearest"}, C),
    "NOGD": ("terms become landmarks of a feature map", "NOGD", {}, ETA),
}
DRAWN = (
    *("Stoptron", "RBP", "Forgetron", "Projectron++", "BOGD"),
    *("BSGD merge", "BPA simple", "BPA projecting", "BDUOL nearest", "NOGD"),
)


def stream(name: str) -> tuple[Any, Any]:
    """The first rows of a shuffled set, features of order one."""
    X, y = streams.labelled(name)
    X = X.astype(np.float64)
    if name == "magic04":
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.random.default_rng(0).permutation(len(y))[: ROWS + CHOOSING]
    return X[order], y[order]


def run(name: str, budget: int, gamma: float, chosen: dict[str, float], X: Any, y: Any) -> tuple[float, float]:
    """Mistakes in percent and microseconds per example."""
    _, estimator, settings, _ = STRATEGIES[name]
    model = getattr(onkel, f"{estimator}Classifier")(budget=budget, kernel=Gaussian(gamma), **settings, **chosen)
    start = time.process_time()
    scores = model.learn(X, y, classes=[-1, 1])
    spent = time.process_time() - start
    return 100 * float(np.mean((scores >= 0) != (y > 0))), spent / len(y) * 1e6


def choose(name: str, gamma: float, X: Any, y: Any) -> dict[str, float]:
    """The setting with the fewest mistakes."""
    grid = STRATEGIES[name][3]
    settings = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    return min(settings, key=lambda chosen: run(name, BUDGET, gamma, chosen, X, y)[0]) if grid else {}


def compare(folder: Path) -> None:
    """Two pictures of each stream, and a table of all."""
    cells: dict[str, list[str]] = {name: [what] for name, (what, *_) in STRATEGIES.items()}
    for stream_name, gamma in STREAMS.items():
        X, y = stream(stream_name)
        later, rows = slice(ROWS, None), slice(ROWS)
        by_terms, by_time = [], []
        for name in STRATEGIES:
            chosen = choose(name, gamma, X[later], y[later])
            runs = [run(name, budget, gamma, chosen, X[rows], y[rows]) for budget in BUDGETS]
            errors, times = (np.array(values) for values in zip(*runs, strict=True))
            if name in DRAWN:
                number = DRAWN.index(name)
                by_terms.append(Line(name, number, np.array(BUDGETS, dtype=float), errors))
                by_time.append(Line(name, number, times, errors))
            error, us = runs[BUDGETS.index(BUDGET)]
            cells[name] += [f"{error:.1f}", f"{us:.1f}", " ".join(f"{value:g}" for value in chosen.values())]
            print(stream_name, name, chosen, *(f"{e:.2f}/{t:.1f}" for e, t in runs), flush=True)
        for kind, lines, words in (("terms", by_terms, "terms"), ("time", by_time, "microseconds per example")):
            best, worst = (float(f([f(line.y) for line in lines])) for f in (np.min, np.max))
            vertical = plots.axis(best, min(worst, 3 * best))
            lines.sort(key=lambda line: line.y[-1])
            title = f"{stream_name}: mistakes in percent"
            picture = plots.figure(lines, title=title, horizontal=words, vertical=vertical, log=True)
            (folder / f"budgets-{stream_name}-{kind}.svg").write_text(picture)
    heads = ["", "what happens to a term too many", *(f"{name} % | us | setting" for name in STREAMS)]
    print("\n".join(table(heads, ([name, *row] for name, row in cells.items()))))


# ---- compression


def compress(name: str, gamma: float, X: Any, y: Any) -> Iterable[list[str]]:
    """POLK by its three ways to compress: a row of cells for each."""
    eta, lam, regression = 0.2, 1e-3, len(np.unique(y)) > 2
    face = onkel.POLKRegressor if regression else onkel.POLKClassifier
    errors, thresholds = ((0.001, 0.003, 0.01), (1.01, 1.1, 1.5)) if regression else ((0.1, 0.15, 0.19), (1.5, 4, 50))
    for setting in (
        *({"compression": way, "error": error} for error in errors for way in ("komp", "multiple")),
        *({"compression": "dissimilarity", "threshold": threshold} for threshold in thresholds),
    ):
        model = face(eta=eta, lam=lam, kernel=Gaussian(gamma), **setting)
        classes = {} if regression else {"classes": [-1, 1]}
        start = time.process_time()
        scores = model.learn(X, y, **classes)
        us = (time.process_time() - start) / len(y) * 1e6
        loss = np.mean((scores - y) ** 2) if regression else 100 * np.mean((scores >= 0) != (y > 0))
        terms = model.n_support_
        realised = [
            error_of_round(model, X[[t]], y[[t]], eta, lam, regression) for t in range(0, len(y), len(y) // 200)
        ]
        promised = setting.get("error", setting.get("threshold"))
        yield [
            *(name, str(setting["compression"]), f"{promised:g}", str(terms), f"{us:.1f}"),
            *(f"{np.mean(realised):.1e}", f"{np.max(realised):.1e}", f"{loss:.4f}" if regression else f"{loss:.1f} %"),
        ]


def error_of_round(model: Any, x: Any, y: Any, eta: float, lam: float, regression: bool) -> float:
    """|f - f~|, f~ being the step of the next round before anything is compressed."""
    before, a = model.support_vectors_, model.dual_coef_.ravel().copy()
    s = float(np.ravel(model.learn(x, y))[0])
    step = eta * (y[0] - s) if regression else eta * y[0] * (y[0] * s < 1)
    points = [rows.toarray() if sp.issparse(rows) else rows for rows in (before, x, model.support_vectors_)]
    weights = np.concatenate([(1 - eta * lam) * a, [step], -model.dual_coef_.ravel()])
    K = model.kernel_(np.concatenate(points))
    return float(np.sqrt(max(weights @ K @ weights, 0.0)))


def scaled(values: Any) -> Any:
    """Each column to 0 .. 1."""
    return (values - values.min(axis=0)) / (values.max(axis=0) - values.min(axis=0))


def compressions() -> None:
    """Print the table of compressions."""
    heads = ["stream", "compression", "error or threshold", "terms", "us"]
    heads += ["realised, mean", "realised, largest", "loss or mistakes"]
    rows: list[list[str]] = []
    for name in ("abalone", "cpusmall"):
        X, y = (scaled(values.astype(np.float64)) for values in streams.table(name))
        order = np.random.default_rng(0).permutation(len(y))[:2000]
        rows += compress(name, 1.0, X[order], y[order])
    X, y = stream("magic04")
    rows += compress("magic04", 0.5, X[:2000], y[:2000])
    print("\n".join(table(heads, rows)))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of Markdown."""
    columns = " | ".join(heads).count("|") + 1
    return [f"| {' | '.join(heads)} |", "|" + " --- |" * columns, *(f"| {' | '.join(row)} |" for row in rows)]


if __name__ == "__main__":
    compare(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    compressions()
