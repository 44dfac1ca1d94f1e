"""Learners on explicit features, against their plain C++ twins and the limits of the machine."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import streams
from bench import FLAGS, TYPES, Again, Bench, Result, Runs, begun, growth, learning, race
from plain import Counts, Plain

import onkel
from onkel.kernels import Gaussian
from onkel.maps import Fourier, Nystrom, Reparameterized

PLAIN = f"(plain: {FLAGS[1]}; the last ratio: {FLAGS[0]} alone)"


def fogd(*, components: int, gamma: float, eta: float = 1.6) -> Any:
    """Learner(Features(Fourier(Gaussian(gamma), components)), Hinge(), Gradient(eta))."""
    return onkel.FOGDClassifier(components=components, eta=eta, kernel=Gaussian(gamma))


def compare(
    bench: Bench, n: int, twin: Callable[[Plain], Counts], ours: Again, target: float, others: Runs | None = None
) -> tuple[dict[str, Any], dict[str, float]]:
    """A learner and its twin on n examples; microseconds an example of whatever else ran."""
    runs: Runs = {flags: partial(twin, plain) for flags, plain in bench.plain.items()}
    seconds, returned = race(bench.repeats, runs | {"onkel": ours} | (others or {}))
    us = {name: s / n * 1e6 for name, s in seconds.items()}
    counts, ratio = returned[FLAGS[1]], us[FLAGS[1]] / us["onkel"]
    row = {
        "steps": counts.steps / n,
        "onkel us": us["onkel"],
        "plain us": us[FLAGS[1]],
        "onkel mistakes": returned["onkel"](),
        "plain mistakes": counts.mistakes,
        "ratio": ratio,
        "ratio -O3": us[FLAGS[0]] / us["onkel"],
        "target": target,
        "met": ratio >= target,
    }
    return row, us


def fourier(bench: Bench) -> Result:
    """Gradient descent on random Fourier features, against the plain twin and the limit of the machine.

    The limit: the multiply-adds, sines and cosines, sums and steps, each at its peak. Every multiply-add of a sparse
    row needs a number of its own, from where all directions lie: there the limit knows how fast those can be read.
    """
    rows = []
    for stream, form in ((streams.ijcnn1(), "dense"), (streams.a9a(), "dense"), (streams.a9a(), "sparse")):
        for dtype, target in zip(TYPES, (15, 20), strict=True):
            for D in (400, 1600):
                n = bench.size(8_000_000 // D)
                X, y = stream.head(n, dtype)
                if form == "dense" and sp.issparse(X):
                    X = X.toarray()
                keys, peaks = np.arange(X.shape[1], dtype=np.uint64), bench.peaks
                products = D * (X.nnz if sp.issparse(X) else X.size)
                directions = Fourier(Gaussian(stream.gamma), D).draw(keys, 0)["directions"].astype(dtype)
                row, us = compare(
                    bench,
                    n,
                    partial(Plain.fourier, X=X, y=y, directions=directions, eta=1.6),
                    begun(fogd(components=D, gamma=stream.gamma), X, y),
                    target,
                    {
                        "multiply-adds": partial(peaks.multiply_add, dtype, products, 1)
                        if form == "dense"
                        else partial(peaks.reading, dtype, directions.size, products // directions.size),
                        "sincos": partial(peaks.sincos, dtype, D, n),
                        "dot": partial(peaks.dot, dtype, 2 * D, n),
                        "axpy": partial(peaks.axpy, dtype, 2 * D, n),
                    },
                )
                limit = us["multiply-adds"] + us["sincos"] + us["dot"] + row["steps"] * us["axpy"]
                rows.append(
                    {
                        "stream": f"{stream.name} {form}",
                        "type": np.dtype(dtype).name,
                        "D": D,
                        **row,
                        "limit us": limit,
                        "limits": row["onkel us"] / limit,
                        "at most": 1.5,
                        "within": row["onkel us"] <= 1.5 * limit,
                    }
                )
    return Result(f"OGD on random Fourier features {PLAIN}", rows)


def nystrom(bench: Bench) -> Result:
    """Gradient descent on Nyström features, once the landmarks are there."""
    rows, stream, eta = [], streams.ijcnn1(), 0.2
    for dtype in TYPES:
        for B, rank in ((100, 20), (1000, 200)):
            X, y = stream.head(len(stream.y), dtype)
            kernel = Gaussian(stream.gamma)
            model = onkel.NOGDClassifier(budget=B, rank=rank, eta=eta, kernel=kernel)
            while len(model.partial_fit(X[:500], y[:500]).state()[0]["budget.transform"]) == 0:
                X, y = X[500:], y[500:]
            n = bench.size(5_000_000 // B)
            X, y = X[500 : 500 + n], y[500 : 500 + n]
            landmarks = model.support_vectors_
            K = np.exp(-stream.gamma * ((landmarks[:, None] - landmarks[None]).astype(float) ** 2).sum(axis=2))
            M = Nystrom(kernel, rank).transform(K, dtype)
            setting = {"landmarks": landmarks, "M": M, "start": M @ (K @ model.dual_coef_.ravel())}
            row, _ = compare(
                bench,
                n,
                partial(Plain.nystrom, X=X, y=y, **setting, eta=eta, gamma=stream.gamma),
                learning(model, X, y),
                10,
            )
            rows.append({"stream": stream.name, "type": np.dtype(dtype).name, "B": B, "rank": rank} | row)
    return Result(f"OGD on Nyström features {PLAIN}", rows)


def learned_widths(bench: Bench) -> Result:
    """Gradient descent on Fourier features and the widths of the kernel."""
    rows, stream, kernel = [], streams.ijcnn1(), Gaussian(0.5)
    setting = {"eta": 1.0, "eta_kernel": 0.01}
    for dtype in TYPES:
        for D in (100, 400):
            n = bench.size(4_000_000 // D)
            X, y = stream.head(n, dtype)
            keys = np.arange(X.shape[1], dtype=np.uint64)
            directions = Reparameterized(kernel, D).draw(keys, 0)["directions"].astype(dtype)
            row, _ = compare(
                bench,
                n,
                partial(Plain.widths, X=X, y=y, directions=directions, start=math.log(kernel.frequency), **setting),
                begun(onkel.RRFClassifier(components=D, kernel=kernel, **setting), X, y),
                10,
            )
            rows.append({"stream": stream.name, "type": np.dtype(dtype).name, "D": D} | row)
    return Result(f"OGD on Fourier features with learned widths {PLAIN}", rows)


def several_classes(bench: Bench) -> Result:
    """Ten classes against two on the same rows; each more costs a product with its weights."""
    rows, stream, K = [], streams.ijcnn1(), 10
    for D in (400, 1600):
        X, _ = stream.head(bench.size(8_000_000 // D), np.float32)
        labels = (X @ np.random.default_rng(0).normal(size=(X.shape[1], K))).argmax(axis=1)
        targets = {"two": labels % 2, "ten": labels}
        runs: Runs = {"dot": partial(bench.peaks.dot, np.float32, 2 * D, len(X))}
        for name, y in targets.items():
            model = fogd(components=D, gamma=stream.gamma).partial_fit(X[:1], y[:1], classes=np.unique(y))
            runs[name] = Again(model, lambda model, X=X, y=y: model.learn(X, y))
        seconds, scores = race(bench.repeats, runs)
        us = {name: s / len(X) * 1e6 for name, s in seconds.items()}
        others = np.where(np.arange(K) == labels[:, None], -np.inf, scores["ten"]).max(axis=1)
        most = 1.5 * us["two"] + (K - 1) * us["dot"]
        rows.append(
            {
                "stream": stream.name,
                "type": "float32",
                "D": D,
                "steps, two": float(((2 * targets["two"] - 1) * scores["two"] < 1).mean()),
                "steps, ten": float((scores["ten"][np.arange(len(X)), labels] - others < 1).mean()),
                "two us": us["two"],
                "ten us": us["ten"],
                "ratio": us["ten"] / us["two"],
                f"{K - 1} dots us": (K - 1) * us["dot"],
                "at most us": most,
                "met": us["ten"] <= most,
            }
        )
    return Result("Ten classes against two (OGD on random Fourier features)", rows)


def million(bench: Bench) -> Result:
    """Memory over a million examples, and a million predictions on all cores (wall time)."""
    stream, chunk, D = streams.ijcnn1(), 10_000, 1600
    marks = (bench.size(100_000), bench.size(1_000_000))
    X, y = stream.head(14 * chunk, np.float32)
    model = fogd(components=D, gamma=stream.gamma)
    start = time.process_time()
    held, state = growth(model, X, y, chunk, marks)
    learned = time.process_time() - start

    many = np.resize(X, (marks[1], X.shape[1]))
    here = os.sched_getaffinity(0) if bench.cores else set()
    runs: Runs = {str(jobs): lambda jobs=jobs: model.set_params(n_jobs=jobs).predict(many) for jobs in (None, -1)}
    if bench.cores:
        os.sched_setaffinity(0, bench.cores)
    seconds, labels = race(3, runs, time.perf_counter)
    if here:
        os.sched_setaffinity(0, here)
    grown = held[1] - held[0]
    row = {
        "examples": marks[1],
        "learn us": learned / marks[1] * 1e6,
        "state bytes": state[1],
        "MiB": held[1] / 2**20,
        f"MiB since {marks[0]:,}": grown / 2**20,
        "flat": grown < 2**20 and state[0] == state[1],
        "predict us": seconds["None"] / marks[1] * 1e6,
        "n_jobs=-1 us": seconds["-1"] / marks[1] * 1e6,
        "cores": len(bench.cores) or os.cpu_count(),
        "speed-up": seconds["None"] / seconds["-1"],
        "same": bool((labels["None"] == labels["-1"]).all()),
    }
    return Result(f"A million ({stream.name} over and over in chunks of {chunk:,}, float32, D = {D})", [row])
