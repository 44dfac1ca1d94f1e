"""Pools of kernels, against their plain C++ twin and against separate learners."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import streams
from bench import FLAGS, Again, Bench, Result, Runs, begun, race

import onkel
from onkel.faces.pool import GAUSSIANS, POOL
from onkel.kernels import Gaussian
from onkel.learners.pool import seeds


def sampled(bench: Bench) -> Result:
    """SPA-OMKL with the sixteen kernels of the papers, and with one of them, on a9a."""
    stream = streams.a9a()
    X, y = stream.head(bench.size(48_842))
    rows = []
    for name, kernels in (("all sixteen", POOL), ("one Gaussian", (Gaussian(stream.gamma),))):
        setting = {"eta": 0.1, "beta": 3.0}
        plain = {"kernels": kernels, "seeds": seeds(0, len(kernels))} | setting
        runs: Runs = {flags: partial(twin.pool, X, y, **plain) for flags, twin in bench.plain.items()}
        runs["onkel"] = begun(onkel.SPAOMKLClassifier(kernels=kernels, **setting), X, y)
        seconds, returned = race(1 if len(kernels) > 1 else bench.repeats, runs)
        counts, ratio = returned[FLAGS[1]], seconds[FLAGS[1]] / seconds["onkel"]
        rows.append(
            {
                "stream": stream.name,
                "kernels": name,
                "mean terms": round(counts.evaluations / len(y)),
                "onkel us": seconds["onkel"] / len(y) * 1e6,
                "plain us": seconds[FLAGS[1]] / len(y) * 1e6,
                "onkel ns/term": seconds["onkel"] / counts.evaluations * 1e9,
                "plain ns/term": seconds[FLAGS[1]] / counts.evaluations * 1e9,
                "onkel mistakes": returned["onkel"](),
                "plain mistakes": counts.mistakes,
                "ratio": ratio,
                "ratio -O3": seconds[FLAGS[0]] / seconds["onkel"],
                "target": 20 if len(kernels) > 1 else None,
                "met": ratio >= 20 if len(kernels) > 1 else None,
            }
        )
    return Result(f"SPA-OMKL, float64 (plain: {FLAGS[1]}; the last ratio: {FLAGS[0]} alone)", rows)


def projected(bench: Bench) -> Result:
    """FOGD-OMKL with thirteen Gaussians that share their draws, against thirteen times FOGD, on a9a."""
    stream, rows = streams.a9a(), []
    for form in ("dense", "sparse"):
        X, y = stream.head(bench.size(20_000))
        X = X.toarray() if form == "dense" else X
        models = {
            "separate": [onkel.FOGDClassifier(components=100, eta=0.2, kernel=kernel) for kernel in GAUSSIANS],
            "own draws": [onkel.FOGDOMKLClassifier(components=100)],
            "shared draws": [onkel.FOGDOMKLClassifier(components=100, shared_draws=True)],
        }
        for each in models.values():
            for model in each:
                model.partial_fit(X[:1], y[:1], classes=[-1, 1])  # draws
        seconds, _ = race(bench.repeats, {name: Again(each, partial(_learn, X, y)) for name, each in models.items()})
        ratio = seconds["separate"] / seconds["shared draws"]
        us = {f"{name} us": spent / len(y) * 1e6 for name, spent in seconds.items()}
        rows.append({"stream": stream.name, "rows": form, **us, "ratio": ratio, "target": 2, "met": ratio >= 2})
    return Result("FOGD-OMKL, thirteen Gaussians, D = 100, float64 (ratio: separate to shared)", rows)


def _learn(X: Any, y: Any, models: list[Any]) -> np.ndarray[Any, Any]:
    return np.array([model.learn(X[1:], y[1:]).sum() for model in models])
