"""AutoKernel on every set of the data folder, beside hindsight and retraining: the table of docs/auto_kernel.md.

python benchmarks/auto_kernel.py [SET ...]   (needs the data folder, $ONKEL_DATA or ../shared/data)

One pass over at most ROWS rows in a seeded order; every prediction is made before its label is known. Beside it:
the best component of the pool when run alone (its kernel chosen with hindsight), on rows in the same units; the best of
six widths of unbounded gradient descent on features standardised beforehand (up to UNBOUNDED rows); scikit-learn's
HistGradientBoosting, fitted to the first 100 rows, and again to all rows so far whenever they have doubled or 5,000
have come. Errors beside the trees are counted from their first fit on, and from row 5,000 on. Seconds are CPU seconds.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import streams
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import onkel
from onkel import native
from onkel.kernels import Gaussian
from onkel.learners.learner import Learner
from onkel.learners.pool import seeds
from onkel.learners.scaled import Scaled

ROWS, UNBOUNDED = 50_000, 10_000
FIRST, REFIT = 100, 5_000  # rows before the first fit of the trees; most rows between two fits
FEWER = {"mnist": 10_000, "usps": 9_298}  # trees on hundreds of features take their time
REGRESSION = ("housing", "abalone", "parkinsons", "cpusmall", "cadata", "casp")
CLASSIFICATION = (
    *(
        "german",
        "german_raw",
        "svmguide3",
        "madelon",
        "spambase",
        "mushrooms",
        "magic04",
        "a9a",
        "w7a",
        "w8a",
        "ijcnn1",
    ),
    *("covtype", "satimage", "satimage_raw", "usps", "mnist", "letter", "poker25k"),
)


def stream(name: str) -> tuple[Any, Any]:
    """Rows in a seeded order; labels as 0, 1, ... or the target."""
    X, y = streams.table(name)
    order = np.random.default_rng(0).permutation(len(y))[: FEWER.get(name, ROWS)]
    X, y = X[order].astype(np.float64), y[order]
    return X, y.astype(np.float64) if name in REGRESSION else np.unique(y, return_inverse=True)[1]


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return run(), time.process_time() - start


def error(answers: Any, y: Any, name: str, start: int = 0) -> float:
    """Percentage of mistakes; or the root mean squared error in deviations of the target, from the 21st row on."""
    if name in REGRESSION:
        return float(np.sqrt(np.mean((answers - y)[max(start, 20) :] ** 2)) / y.std())
    labels = answers.argmax(axis=1) if answers.ndim == 2 and answers.shape[1] > 1 else answers.ravel() >= 0
    return float(100 * np.mean((labels != y)[start:]))


def auto(name: str, X: Any, y: Any) -> tuple[Any, float, int]:
    model = onkel.AutoKernelRegressor() if name in REGRESSION else onkel.AutoKernelClassifier()
    scores, seconds = timed(lambda: model.learn(X, y))
    return scores, seconds, sum(a.nbytes for a in model.state()[0].values())


def singles(name: str, X: Any, y: Any) -> Iterator[float]:
    """The error of each component alone."""
    model: Any = onkel.AutoKernelRegressor() if name in REGRESSION else onkel.AutoKernelClassifier()
    classes = 0 if name in REGRESSION else int(y.max()) + 1
    outputs, columns = classes if classes > 2 else 1, X.shape[1]
    target = np.where(y > 0, 1.0, -1.0) if classes == 2 else y.astype(np.float64)
    run = {"columns": columns, "dtype": "float64", "sparse": sp.issparse(X)}
    recipes = model.compositions(columns)
    for parts, seed in zip(recipes, seeds(0, len(recipes)), strict=True):
        keys = np.arange(columns, dtype=np.uint64)
        learner = native.fastest(Learner(*parts, outputs=outputs, keys=keys, seed=seed, **run))
        scaled = Scaled(learner, columns=columns, target=model.target, dtype="float64")
        yield error(scaled.learn(X, target)[0].squeeze(), y, name)


def unbounded(name: str, X: Any, y: Any) -> Iterator[float]:
    """Gradient descent that keeps everything, for each width; features (and target) standardised beforehand."""
    if X.shape[0] > UNBOUNDED:
        return
    X = X.toarray() if sp.issparse(X) else X
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    X /= np.sqrt(2 * np.count_nonzero(X.std(axis=0)))
    for gamma in 4.0 ** np.arange(-1, 5):
        if name in REGRESSION:
            scores = onkel.KLMSRegressor(kernel=Gaussian(gamma), eta=0.5).learn(X, (y - y.mean()) / y.std())
            yield error(scores * y.std() + y.mean(), y, name)
        else:
            yield error(onkel.OGDClassifier(kernel=Gaussian(gamma), eta=0.5).learn(X, y), y, name)


def boosted(name: str, X: Any, y: Any) -> tuple[Any, float, int]:
    """Answers of trees from row FIRST on, seconds, and the size of what is kept: the rows and the trees."""
    X = X.toarray() if sp.issparse(X) else X
    make = HistGradientBoostingRegressor if name in REGRESSION else HistGradientBoostingClassifier
    answers, at, model = np.zeros(len(y)), FIRST, None
    start = time.process_time()
    while at < len(y):
        stop = min(2 * at, at + REFIT)
        rows = (
            np.ones(at, dtype=bool) if name in REGRESSION else np.bincount(y[:at])[y[:at]] > 1
        )  # it needs two of each
        model = make(random_state=0).fit(X[:at][rows], y[:at][rows])
        answers[at:stop] = model.predict(X[at:stop])
        at = stop
    seconds = time.process_time() - start
    if name not in REGRESSION:
        classes = int(y.max()) + 1
        answers = answers - 0.5 if classes == 2 else np.eye(classes)[answers.astype(int)]
    return answers, seconds, X.nbytes + y.nbytes + len(pickle.dumps(model))


def ratio(own: float, other: float) -> str:
    return f"{own / other:.2f}" if other else ""


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def table(*columns: str) -> None:
    print(row(*columns))
    print("| --- |" + " ---: |" * (len(columns) - 1))


def main() -> None:
    names = sys.argv[1:] or [*CLASSIFICATION, *REGRESSION]
    table("set", "rows", "AutoKernel", "best alone", "ratio", "unbounded", "ratio")
    beside = []
    for name in names:
        X, y = stream(name)
        scores, seconds, size = auto(name, X, y)
        own = error(scores, y, name)
        best = min(singles(name, X, y))
        whole = min(unbounded(name, X, y), default=None)
        answers, took, kept = boosted(name, X, y)
        show = "{:.3f}".format if name in REGRESSION else "{:.2f}".format
        without_limit = ["", ""] if whole is None else [show(whole), ratio(own, whole)]
        print(row(name, f"{len(y):,}", show(own), show(best), ratio(own, best), *without_limit), flush=True)
        cells = [name]
        for since in (FIRST, REFIT):
            both = [error(given, y, name, since) for given in (scores, answers)] if since < len(y) else []
            cells += [*map(show, both), ratio(*both)] if both else ["", "", ""]
        beside.append([*cells, f"{seconds:.1f}", f"{took:.1f}", f"{size / 1e6:.1f}", f"{kept / 1e6:.1f}"])
    print()
    since = [f"from row {start:,}: AutoKernel" for start in (FIRST, REFIT)]
    table(
        "set",
        since[0],
        "trees",
        "ratio",
        since[1],
        "trees",
        "ratio",
        "s: AutoKernel",
        "trees",
        "MB: AutoKernel",
        "trees",
    )
    for line in beside:
        print(row(*line))


if __name__ == "__main__":
    main()
