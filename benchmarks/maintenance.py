"""Budgets that do more than remove: what their updates cost, how that grows, and whether they stay right."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import streams
from bench import TYPES, Again, Bench, Result, Runs, mistakes, race
from scipy.linalg.blas import dsymv

import onkel
from onkel.kernels import Gaussian

KERNEL = Gaussian(0.2)  # for standard normal inputs of 22 features, no two of which are alike
ALWAYS = 1e9  # a target that regression never reaches: every example makes a step


def normal(rows: int, dtype: Any = np.float64) -> tuple[Any, Any]:
    """Inputs, and labels that nothing can predict."""
    random = np.random.default_rng(0)
    return random.normal(size=(rows, 22)).astype(dtype), random.choice([-1, 1], rows)


def product(size: int) -> Callable[[], None]:
    """A hundred products of a symmetric matrix and a vector."""
    random = np.random.default_rng(0)
    K, v = np.asfortranarray(random.normal(size=(size, size))), random.normal(size=size)

    def run() -> None:
        for _ in range(100):
            dsymv(1.0, K, v, lower=1)

    return run


def full(model: Any, budget: int, X: Any, y: Any) -> Any:
    """The model with all its terms."""
    while model.partial_fit(X, y).n_support_ < budget:
        pass
    return model


def projecting(bench: Bench) -> Result:
    """An update of Projectron against the least it could cost, and a round without one against RBP's."""
    rows, budget = [], 1000
    symmetric = product(budget)
    for dtype in TYPES:
        X, y = normal(budget + 500, dtype)
        step = onkel.ProjectronRegressor(budget=budget, eta=1e-3, epsilon=0.0, kernel=KERNEL)
        full(step, budget, X[:budget], ALWAYS * y[:budget])
        runs: Runs = {"product": symmetric, "update": partial(step.learn, X[budget:], ALWAYS * y[budget:])}
        for name in ("Projectron", "RBP"):
            model = full(getattr(onkel, f"{name}Classifier")(budget=budget, kernel=KERNEL), budget, X, y)
            easy = np.tile(X, (40, 1))  # of a few hundredths of a second
            runs[name] = partial(model.learn, easy, model.predict(easy))  # it is always right
        seconds, _ = race(bench.repeats, runs)
        one, update = seconds["product"] / 100 * 1e6, seconds["update"] / 500 * 1e6
        idle = {name: seconds[name] / len(easy) * 1e6 for name in ("Projectron", "RBP")}
        rows.append(
            {
                "type": np.dtype(dtype).name,
                "B": budget,
                "product us": one,
                "update us": update,
                "ratio": update / one,
                "target": 2.5,
                "met": update / one <= 2.5,
                "Projectron us": idle["Projectron"],
                "RBP us": idle["RBP"],
                "ratio to RBP": idle["Projectron"] / idle["RBP"],
                "wanted": 1.05,
                "too": idle["Projectron"] / idle["RBP"] <= 1.05,
            }
        )
    return Result("Projectron: an update against a symmetric product (BLAS), a round without one against RBP", rows)


def double_updates(bench: Bench) -> Result:
    """BDUOL by nearest terms against BDUOL by plain removal."""
    rows = []
    for dtype in TYPES:
        for budget in (100, 1000):
            X, y = normal(budget + bench.size(5000), dtype)
            runs: Runs = {}
            for maintenance in ("remove", "nearest"):
                model = onkel.BDUOLClassifier(budget=budget, C=1.0, maintenance=maintenance, kernel=KERNEL)
                runs[maintenance] = partial(full(model, budget, X, y).learn, X, y)
            seconds, _ = race(bench.repeats, runs)
            us = {name: spent / len(y) * 1e6 for name, spent in seconds.items()}
            rows.append(
                {
                    "type": np.dtype(dtype).name,
                    "B": budget,
                    **{f"{name} us": spent for name, spent in us.items()},
                    "ratio": us["nearest"] / us["remove"],
                    "target": 2,
                    "met": us["nearest"] / us["remove"] <= 2,
                }
            )
    return Result("BDUOL on labels that nothing can predict", rows)


def growth(bench: Bench) -> Result:
    """How the time of a round grows with the number of terms, against the order that is stated for it."""

    def classifier(name: str, **settings: Any) -> Callable[[int], Any]:
        return lambda size: getattr(onkel, f"{name}Classifier")(budget=size, kernel=KERNEL, **settings)

    def komp(size: int) -> Any:  # a term is given up when its weight has shrunk tenfold
        lam = np.log(10) / (0.1 * size)
        return onkel.POLKRegressor(loss="absolute", eta=0.1, lam=lam, error=0.01, kernel=Gaussian(2.0))

    many, some, few = (125, 250, 500, 1000), (50, 100, 200, 400), (25, 50, 100)
    cases: list[tuple[str, Callable[[int], Any], float, tuple[int, ...]]] = [
        ("RBP", classifier("RBP"), 1, many),
        ("Forgetron", classifier("Forgetron"), 1, many),
        ("Projectron", classifier("Projectron"), 2, many),
        ("BPA simple", classifier("BPA"), 1, many),
        ("BPA nearest", classifier("BPA", variant="nearest"), 1, many),
        ("BPA projecting", classifier("BPA", variant="projecting"), 2, many),
        ("BSGD project", classifier("BSGD", maintenance="project"), 2, many),
        ("BSGD merge", classifier("BSGD", maintenance="merge", search="table"), 1, many),
        ("BDUOL remove", classifier("BDUOL", maintenance="remove"), 1, many),
        ("BDUOL nearest", classifier("BDUOL", maintenance="nearest"), 1, many),
        ("BDUOL approximate", classifier("BDUOL", maintenance="approximate"), 3, some),
        ("BDUOL project", classifier("BDUOL", maintenance="project"), 4, few),
        ("POLK, a removal a round", komp, 2, many),
    ]
    rows = []
    for name, make, order, sizes in cases:
        runs: Runs = {}
        terms, examples = [], []
        for size in sizes:
            n = 2 * size if order == 2 else bench.size(1000 if order < 2 else 50)  # with all that is done now and then
            X, y = normal(8 * size + n)
            model = make(size)
            targets = y if hasattr(model, "budget") else ALWAYS * y
            model.partial_fit(X[n:], targets[n:])
            terms.append(model.n_support_)
            examples.append(n)
            # examples that are stored already would cost less
            runs[str(size)] = Again(model, lambda model, X=X[:n], y=targets[:n]: model.learn(X, y))
            runs[f"product {size}"] = product(size)
        seconds, _ = race(bench.repeats, runs)
        us = np.array([seconds[str(size)] for size in sizes]) / examples * 1e6
        least = np.array([seconds[f"product {size}"] for size in sizes])
        exponent, memory = (float(np.polyfit(np.log(terms), np.log(t), 1)[0]) for t in (us, least))
        allowed = 0.1 + (max(order, memory * order / 2) if order >= 2 else order)  # as caches run over
        rows.append(
            {
                "learner": name,
                "terms": " ".join(map(str, terms)),
                "us/example": " ".join(f"{t:.3g}" for t in us),
                "last doubling": float(np.log(us[-1] / us[-2]) / np.log(terms[-1] / terms[-2])),
                "exponent": exponent,
                "order": order,
                "of a product": memory,
                "met": exponent <= allowed,
            }
        )
    return Result("Growth of the time per example with the terms, about half of them updating (float64)", rows)


def residual(model: Any, X: Any, y: Any) -> float:
    """How wrong the next projection is: max |K d - k| / max |k|, with d seen in the coefficients it changes."""
    at = np.flatnonzero(y * model.decision_function(X) <= 0)[:1]
    before = model.dual_coef_.copy()
    model.learn(X[at], y[at])
    d = y[at] * (model.dual_coef_ - before).ravel()
    terms, row = (rows.toarray() if sp.issparse(rows) else rows for rows in (model.support_vectors_, X[at]))
    k = model.kernel_(terms, row).ravel()
    return float(np.abs(model.kernel_(terms, terms) @ d - k).max() / np.abs(k).max())


def health(bench: Bench) -> Result:
    """Projectrons over and over the same rows, where nearly everything depends on what is stored."""
    rows, stream, budget = [], streams.a9a_in_order(), 1350
    y, passes = stream.y, -(-bench.size(200_000) // len(stream.y))
    for name in ("Projectron", "ProjectronPlusPlus"):
        for dtype in TYPES:
            X = stream.X.astype(dtype)
            few, model = (getattr(onkel, f"{name}Classifier")(budget=B, kernel=Gaussian(0.01)) for B in (100, budget))
            first = {B: mistakes(m.learn(X, y), y) / len(y) * 100 for B, m in ((100, few), (budget, model))}
            worst, finite = residual(model, X, y), True
            for done in range(1, passes):
                rest = slice(0, min(len(y), bench.size(200_000) - done * len(y)))
                finite &= bool(np.isfinite(model.learn(X[rest], y[rest])).all())
                worst = max(worst, residual(model, X, y))
            rows.append(
                {
                    "learner": name,
                    "type": np.dtype(dtype).name,
                    "rounds": model.t_,
                    **{f"first pass % at {B}": rate for B, rate in first.items()},
                    "no worse": first[budget] <= first[100] + 0.3,
                    "finite": finite and bool(np.isfinite(model.dual_coef_).all()),
                    "worst residual": f"{worst:.1e}",
                    "met": worst < 1e-6,
                }
            )
    return Result(f"Solves with a kernel matrix of duplicates ({stream.name}, gamma = 0.01, B = {budget})", rows)
