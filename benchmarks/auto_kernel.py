"""AutoKernel on every set of the data folder, beside hindsight and retraining: the table of docs/auto_kernel.md.

python benchmarks/auto_kernel.py [SET ...]   (needs the data folder, $ONKEL_DATA or ../shared/data)

One pass over at most ROWS rows in a seeded order; every prediction is made before its label is known. Beside it:
the best component of the pool when run alone (its kernel chosen with hindsight), on rows in the same units; the best of
six widths of unbounded gradient descent on features standardised beforehand (up to UNBOUNDED rows); scikit-learn's
HistGradientBoosting, fitted again to all rows so far every 5,000 rows.
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

ROWS, UNBOUNDED, REFIT = 50_000, 10_000, 5_000
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
    start = time.perf_counter()
    return run(), time.perf_counter() - start


def error(answers: Any, y: Any, name: str) -> float:
    """Percentage of mistakes; or the root mean squared error in deviations of the target, from the 21st row on."""
    if name in REGRESSION:
        return float(np.sqrt(np.mean((answers - y)[20:] ** 2)) / y.std())
    labels = answers.argmax(axis=1) if answers.ndim == 2 and answers.shape[1] > 1 else answers.ravel() >= 0
    return float(100 * np.mean(labels != y))


def auto(name: str, X: Any, y: Any) -> tuple[float, float, int]:
    model = onkel.AutoKernelRegressor() if name in REGRESSION else onkel.AutoKernelClassifier()
    scores, seconds = timed(lambda: model.learn(X, y))
    return error(scores, y, name), seconds, sum(a.nbytes for a in model.state()[0].values())


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


def boosted(name: str, X: Any, y: Any) -> tuple[float, float, int]:
    """Trees, fitted again every REFIT rows to all that came before; what is kept is the rows and the trees."""
    X = X.toarray() if sp.issparse(X) else X
    answers = np.zeros((len(y), 1 if name in REGRESSION else int(y.max()) + 1))
    model: Any = None
    start = time.perf_counter()
    for at in range(0, len(y), REFIT):
        rows = slice(at, at + REFIT)
        if at:
            make = HistGradientBoostingRegressor if name in REGRESSION else HistGradientBoostingClassifier
            model = make(random_state=0).fit(X[:at], y[:at])
            answers[rows] = (
                model.predict(X[rows])[:, None]
                if name in REGRESSION
                else np.eye(answers.shape[1])[model.predict(X[rows]).astype(int)]
            )
        elif name in REGRESSION:
            answers[rows, 0] = y[:REFIT].mean()  # kinder than possible: nothing is known yet
        else:
            answers[rows, np.bincount(y[:REFIT]).argmax()] = 1
    seconds = time.perf_counter() - start
    if name not in REGRESSION and answers.shape[1] == 2:
        answers = answers[:, 1:] - 0.5
    kept = X.nbytes + y.nbytes + (len(pickle.dumps(model)) if model is not None else 0)
    return error(answers.squeeze(), y, name), seconds, kept


def main() -> None:
    names = sys.argv[1:] or [*CLASSIFICATION, *REGRESSION]
    print("| set | rows | AutoKernel | s | MB | best alone | ratio | unbounded | ratio | boosted trees | s | MB |")
    print("| --- |" + " ---: |" * 11)
    for name in names:
        X, y = stream(name)
        own, seconds, size = auto(name, X, y)
        best = min(singles(name, X, y))
        whole = min(unbounded(name, X, y), default=None)
        trees, took, kept = boosted(name, X, y)
        show = "{:.3f}".format if name in REGRESSION else "{:.2f}".format
        cells = [name, f"{len(y):,}", show(own), f"{seconds:.1f}", f"{size / 1e6:.1f}", show(best), f"{own / best:.2f}"]
        cells += ["", ""] if whole is None else [show(whole), f"{own / whole:.2f}"]
        cells += [show(trees), f"{took:.1f}", f"{kept / 1e6:.1f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
