"""BDUOL against other learners on a budget, by the protocol of its paper: the results in papers/zhao2012bduol.

python benchmarks/bduol.py papers/zhao2012bduol/results [SET ...]   (needs the data: $ONKEL_DATA or ../shared/data)
python benchmarks/bduol.py papers/zhao2012bduol/results --table     (from the runs that are kept)

A random half of a set serves to choose C, the other half is learned online.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import streams

import onkel
from onkel.kernels import Gaussian

SETS = ("german_raw", "mushrooms", "spambase", "magic04", "a9a")
KERNEL = Gaussian(1 / 128)  # sigma = 8
COSTS = [2.0**power for power in range(-10, 11)]
FRACTIONS = (0.1, 0.2, 0.3)  # of the terms the perceptron needs
CHOOSING = 4000  # rows at most, to choose C
ROWS = 1000  # at most, to learn online: in each update the exact projection solves as many problems as there are terms
ORDERS = 20
FREE = {"Perceptron": "KernelPerceptronClassifier", "DUOL": "DUOLClassifier"}
BUDGETED = {
    **{name: f"{name}Classifier" for name in ("RBP", "Forgetron", "Projectron")},
    "Projectron++": "ProjectronPlusPlusClassifier",
    **{f"BDUOL {way}": "BDUOLClassifier" for way in ("remove", "nearest", "approximate", "project")},
}


def build(name: str, C: float, **settings: Any) -> Any:
    """A learner by its name in the table."""
    if name.startswith("BDUOL"):
        settings["maintenance"] = name.split()[1]
    if "DUOL" in name:
        settings["C"] = C
    return getattr(onkel, (FREE | BUDGETED)[name])(kernel=KERNEL, **settings)


def mistakes(model: Any, X: Any, y: Any) -> float:
    """In percent, each example predicted before it is learned."""
    return 100 * float(np.mean((model.learn(X, y, classes=[-1, 1]) >= 0) != (y > 0)))


def best_cost(X: Any, y: Any) -> float:
    """The C of least error in 5-fold cross-validation with DUOL, the smallest among equals."""
    fold = np.arange(len(y)) % 5

    def error(C: float) -> int:
        wrong = 0
        for k in range(5):
            model = build("DUOL", C).partial_fit(X[fold != k], y[fold != k], classes=[-1, 1])
            wrong += int((model.predict(X[fold == k]) != y[fold == k]).sum())
        return wrong

    return min(COSTS, key=error)


def run(name: str, writer: Any) -> None:
    """Every learner over the same orders of one set."""
    X, y = streams.labelled(name)
    order = np.random.default_rng(0).permutation(len(y))
    halves = order[: len(y) // 2][:CHOOSING], order[len(y) // 2 :][:ROWS]
    C = best_cost(X[halves[0]], y[halves[0]])
    X, y = X[halves[1]], y[halves[1]]
    orders = [np.random.default_rng(seed).permutation(len(y)) for seed in range(1, ORDERS + 1)]
    terms = int(np.mean([build("Perceptron", C).partial_fit(X[o], y[o]).n_support_ for o in orders]))
    budgets = [0, *(max(2, round(fraction * terms)) for fraction in FRACTIONS)]
    for number, o in enumerate(orders):
        for budget in budgets:
            for learner in BUDGETED if budget else FREE:
                model = build(learner, C, **({"budget": budget} if budget else {}))
                if learner == "RBP":
                    model.set_params(random_state=number)
                start = time.process_time()
                wrong = mistakes(model, X[o], y[o])
                us = (time.process_time() - start) / len(y) * 1e6
                writer.writerow([name, len(y), C, learner, budget or "", number, wrong, model.n_support_, round(us, 2)])


def table(file: Path) -> str:
    """The runs as Markdown: mistakes in percent, mean and deviation over the orders, and microseconds per example."""
    with file.open() as text:
        runs = list(csv.DictReader(text))
    lines: list[str] = []
    for name in dict.fromkeys(r["set"] for r in runs):
        own = [r for r in runs if r["set"] == name]
        budgets = list(dict.fromkeys(r["budget"] for r in own if r["budget"]))
        lines += [f"### {name}", "", f"{own[0]['rows']} examples, C = {float(own[0]['C']):g}.", ""]
        heads = ["learner", *(f"B = {budget} | us" for budget in budgets)]
        lines += ["| " + " | ".join(heads) + " |", "| --- |" + " --- | --- |" * len(budgets)]
        for learner in FREE | BUDGETED:
            cells = []
            for budget in [""] * (learner in FREE) or budgets:
                these = [r for r in own if r["learner"] == learner and r["budget"] == budget]
                wrong = np.array([float(r["mistakes"]) for r in these])
                us = np.mean([float(r["us"]) for r in these])
                terms = f", {np.mean([float(r['terms']) for r in these]):.0f} terms" if not budget else ""
                cells += [
                    f"{wrong.mean():.1f}±{wrong.std(ddof=1):.1f}{terms}",
                    f"{us:.0f}" if us >= 10 else f"{us:.1f}",
                ]
            cells += ["", ""] * (len(budgets) - len(cells) // 2)
            lines.append("| " + " | ".join([learner, *cells]) + " |")
        lines.append("")
    return "\n".join(lines)


def main(folder: Path, names: list[str]) -> None:
    """Run the sets named, or write the table."""
    file = folder / "protocol.csv"
    folder.mkdir(parents=True, exist_ok=True)
    if "--table" in names:
        print(table(file))
        return
    for name in names or SETS:
        head = not file.exists()
        with file.open("a", newline="") as text:
            writer = csv.writer(text, lineterminator="\n")
            if head:
                writer.writerow(["set", "rows", "C", "learner", "budget", "order", "mistakes", "terms", "us"])
            run(name, writer)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
