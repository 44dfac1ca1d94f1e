"""Measure onkel: against its plain C++ twin, scikit-learn and river, and against its own promises.

Everything runs on one core, one thread. Times are CPU seconds of this process: the least of several
repetitions, taken in turn with those of the competitors, so that a busy machine disturbs all alike.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import streams
from plain import Plain
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

import onkel
from onkel import native
from onkel.kernels import Gaussian

FLAGS = ("-O3", "-O3 -march=native")  # of the plain twin: neither is the faster one everywhere


@dataclass
class Bench:
    """The settings of a run."""

    quick: bool
    plain: dict[str, Plain]

    def size(self, n: int) -> int:
        """n examples, or fewer of them in a quick run."""
        return n // 5 if self.quick else n

    @property
    def repeats(self) -> int:
        """How often a thing is measured."""
        return 3 if self.quick else 5


@dataclass
class Result:
    """A table: rows of the same keys; the value under `met` says whether a target was."""

    title: str
    rows: list[dict[str, Any]] = field(default_factory=list)


# ---- measuring


def race(repeats: int, **contenders: Callable[[], Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """The least CPU seconds of each contender, run in turn, and what each returned last."""
    best = dict.fromkeys(contenders, float("inf"))
    returned = {}
    gc.collect()
    gc.disable()
    try:
        for _ in range(repeats):
            for name, run in contenders.items():
                start = time.process_time()
                returned[name] = run()
                best[name] = min(best[name], time.process_time() - start)
    finally:
        gc.enable()
    return best, returned


def idlest_core() -> int | None:
    """The core that did least just now, which the process then keeps to; None where cores cannot be chosen."""
    if not hasattr(os, "sched_setaffinity"):
        return None

    def busy() -> dict[int, int]:
        lines = [
            line.split() for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu")
        ]
        return {
            int(name[3:]): sum(map(int, times)) - int(times[3]) for name, *times in lines if name != "cpu"
        }

    before = busy()
    time.sleep(0.5)
    after = busy()
    core = min(os.sched_getaffinity(0), key=lambda c: after[c] - before[c])
    os.sched_setaffinity(0, {core})
    return core


def mistakes(scores: Any, y: Any) -> int:
    """How many scores have the wrong sign; 0 counts as positive."""
    return int(((scores >= 0) != (y > 0)).sum())


def bogd(budget: int, eta: float, gamma: float) -> Any:
    """Learner(Expansion(Gaussian(gamma), RemoveRandom(budget)), Hinge(), Gradient(eta))."""
    kernel = Gaussian(gamma)
    return onkel.BOGDClassifier(
        budget=budget, eta=eta, lam=0.0, unbiased=False, kernel=kernel, random_state=0
    )


# ---- the benchmarks


def budgeted(bench: Bench) -> Iterator[Result]:
    """Budgeted gradient descent against the plain twin."""
    result = Result(f"budgeted OGD, random removal; plain: the faster of {' and '.join(FLAGS)}")
    n = bench.size(30_000)
    for stream in (streams.ijcnn1(), streams.a9a()):
        for dtype, target in ((np.float64, 10), (np.float32, 20)):
            X, y = stream.head(n, dtype)
            for budget in (100, 400, 1600):
                setting = {"budget": budget, "eta": stream.eta, "gamma": stream.gamma}
                seconds, returned = race(
                    bench.repeats,
                    onkel=lambda X=X, y=y, setting=setting: bogd(**setting).learn(X, y),
                    **{
                        flags: lambda p=p, X=X, y=y, s=setting: p(X, y, **s)
                        for flags, p in bench.plain.items()
                    },
                )
                ours, plain = seconds.pop("onkel"), min(seconds.values())
                counts = returned[FLAGS[0]]
                result.rows.append(
                    {
                        "stream": stream.name,
                        "type": np.dtype(dtype).name,
                        "B": budget,
                        "mean terms": round(counts.evaluations / len(y)),
                        "steps": counts.steps / len(y),
                        "onkel us": ours / len(y) * 1e6,
                        "plain us": plain / len(y) * 1e6,
                        "ratio": plain / ours,
                        "onkel ns/term": ours / counts.evaluations * 1e9,
                        "onkel mistakes": mistakes(returned["onkel"], y),
                        "plain mistakes": counts.mistakes,
                        "target": target if budget >= 400 else None,
                        "met": plain / ours >= target if budget >= 400 else None,
                    }
                )
    yield result


def unbounded(bench: Bench) -> Iterator[Result]:
    """Unbounded gradient descent on all of a9a."""
    stream = streams.a9a()
    result = Result("unbounded OGD, one pass; plain: the build that is faster on the first 4000 rows")
    setting = {"eta": stream.eta, "gamma": stream.gamma}
    for dtype in (np.float64, np.float32):
        X, y = stream.head(4000, dtype)
        builds, _ = race(
            2, **{flags: lambda p=p, X=X, y=y: p(X, y, **setting) for flags, p in bench.plain.items()}
        )
        fastest = bench.plain[min(builds, key=lambda flags: builds[flags])]
        X, y = stream.head(bench.size(len(stream.y)), dtype)
        kernel = Gaussian(stream.gamma)
        seconds, returned = race(
            1,
            onkel=lambda X=X, y=y, k=kernel: onkel.OGDClassifier(eta=stream.eta, kernel=k).learn(X, y),
            plain=lambda X=X, y=y, fastest=fastest: fastest(X, y, **setting),
        )
        counts = returned["plain"]
        result.rows.append(
            {
                "stream": stream.name,
                "type": np.dtype(dtype).name,
                "rows": len(y),
                "terms": counts.terms,
                "onkel s": seconds["onkel"],
                "plain s": seconds["plain"],
                "ratio": seconds["plain"] / seconds["onkel"],
                "onkel ns/term": seconds["onkel"] / counts.evaluations * 1e9,
                "onkel mistakes": mistakes(returned["onkel"], y),
                "plain mistakes": counts.mistakes,
            }
        )
    yield result


def single(bench: Bench) -> Iterator[Result]:
    """One example a call against many: what the call itself costs."""
    result = Result("one example a call, above the time of an example in a chunk (ijcnn1, float64, B = 100)")
    stream = streams.ijcnn1()
    X, y = stream.head(2000 + bench.size(5000))
    rows, labels = list(X[2000:]), y[2000:].tolist()
    dicts = [dict(enumerate(row.tolist())) for row in rows]
    model = bogd(100, stream.eta, stream.gamma)
    model.learn(X[:2000], y[:2000])
    named = bogd(100, stream.eta, stream.gamma)
    for x, label in zip(map(dict, map(enumerate, X[:2000].tolist())), y[:2000].tolist(), strict=True):
        named.learn_one(x, label)

    def learn_each(model: Any, rows: Sequence[Any]) -> None:
        learn_one = copy.deepcopy(model).learn_one
        for x, label in zip(rows, labels, strict=True):
            learn_one(x, label)

    def predict_each(model: Any, rows: Sequence[Any]) -> None:
        predict_one = model.predict_one
        for x in rows:
            predict_one(x)

    sparse = sp.csr_array(X[2000:])
    cases = {
        "learn_one, array": (
            lambda: copy.deepcopy(model).learn(X[2000:], labels),
            learn_each,
            model,
            rows,
            2.0,
        ),
        "predict_one, array": (lambda: model.decision_function(X[2000:]), predict_each, model, rows, 2.0),
        "learn_one, dict": (
            lambda: copy.deepcopy(named).learn(sparse, labels),
            learn_each,
            named,
            dicts,
            None,
        ),
        "predict_one, dict": (lambda: named.decision_function(sparse), predict_each, named, dicts, None),
    }
    for name, (chunk, each, subject, examples, target) in cases.items():
        seconds, _ = race(bench.repeats, chunk=chunk, each=lambda e=each, m=subject, r=examples: e(m, r))
        us = {kind: value / len(rows) * 1e6 for kind, value in seconds.items()}
        above = us["each"] - us["chunk"]
        result.rows.append(
            {
                "call": name,
                "us a call": us["each"],
                "us in a chunk": us["chunk"],
                "overhead us": above,
                "target": target,
                "met": None if target is None else above < target,
            }
        )
    yield result


def linearity(bench: Bench) -> Iterator[Result]:
    """Time per example against each size."""
    result = Result("growth of the time per example: exponent of the best power law (float64); target 1.05")
    random = np.random.default_rng(0)

    def dense(d: int) -> Any:
        return random.normal(size=(n, d))

    def sparse(columns: int, nonzeros: int) -> Any:
        index = np.argpartition(random.random((n, columns), np.float32), nonzeros)[:, :nonzeros]
        index.sort(axis=1)
        parts = (random.normal(size=index.size), index.ravel(), np.arange(0, index.size + 1, nonzeros))
        return sp.csr_array(parts, shape=(n, columns))

    n = 1000 if bench.quick else 2000
    sizes: dict[str, tuple[Sequence[int], Callable[[int], tuple[Any, int]]]] = {
        "B (d = 22)": ((125, 250, 500, 1000, 2000, 4000), lambda size: (dense(22), size)),
        "B (14 of 123 non-zero)": ((125, 250, 500, 1000, 2000, 4000), lambda size: (sparse(123, 14), size)),
        "d (B = 400)": ((16, 32, 64, 128, 256, 512, 1024), lambda size: (dense(size), 400)),
        "non-zeros of 1000 (B = 400)": ((8, 16, 32, 64, 128, 256), lambda size: (sparse(1000, size), 400)),
        "non-zeros of 5000 (B = 400)": ((8, 16, 32, 64, 128, 256), lambda size: (sparse(5000, size), 400)),
    }
    for name, (values, make) in sizes.items():
        runs = {}
        for size in values:
            X, budget = make(size)
            y = random.choice([-1, 1], n)
            model = bogd(budget, 0.1, 1 / (2 * X.shape[1]))
            while not hasattr(model, "classes_") or model.n_support_ < budget:
                model.learn(X, y)
            runs[str(size)] = lambda model=model, X=X, y=y: model.learn(X, y)
        seconds, _ = race(bench.repeats, **runs)
        us = [s / n * 1e6 for s in seconds.values()]
        exponent = np.polyfit(np.log(values), np.log(us), 1)[0]
        result.rows.append(
            {
                "size": name,
                "values": " ".join(map(str, values)),
                "us": " ".join(f"{t:.3g}" for t in us),
                "exponent": exponent,
                "in the last step": np.log(us[-1] / us[-2]) / np.log(values[-1] / values[-2]),
                "met": bool(exponent <= 1.05),
            }
        )
    yield result


def memory(bench: Bench) -> Iterator[Result]:
    """Memory over a million examples."""
    n, chunk = bench.size(1_000_000), 10_000
    result = Result(
        f"memory over {n:,} examples (ijcnn1 again and again, B = 200, d = 22, chunks of {chunk:,})"
    )
    for dtype in (np.float64, np.float32):
        stream = streams.ijcnn1()
        X, y = stream.head(10 * chunk, dtype)
        model = bogd(200, stream.eta, stream.gamma)
        at: dict[int, tuple[int, int]] = {}
        for learned in range(chunk, n + 1, chunk):
            rows = slice((learned - chunk) % len(y), (learned - chunk) % len(y) + chunk)
            model.learn(X[rows], y[rows])
            if learned in (n // 10, n):
                gc.collect()
                at[learned] = resident(), sum(array.nbytes for array in model.state()[0].values())
        (early, small), (late, large) = at.values()
        result.rows.append(
            {
                "type": np.dtype(dtype).name,
                f"MiB at {n // 10:,}": early / 2**20,
                f"MiB at {n:,}": late / 2**20,
                "MiB grown": (late - early) / 2**20,
                f"state bytes at {n // 10:,}": small,
                f"at {n:,}": large,
                "met": small == large and late - early < 2**20,
            }
        )
    yield result


def resident() -> int:
    """Bytes of memory this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def neighbours(bench: Bench) -> Iterator[Result]:
    """The nearest that scikit-learn and river can do, on the same stream."""
    n = bench.size(10_000)
    stream = streams.ijcnn1()
    result = Result(
        f"the first {n:,} examples of {stream.name}: predict, then learn (float64, sizes of 400 where there is one)"
    )
    X, y = stream.head(n)
    size, chunk = 400, 1000

    def ours_at_once() -> int:
        return mistakes(bogd(size, stream.eta, stream.gamma).learn(X, y), y)

    def ours_one_by_one(count: int) -> int:
        model = bogd(size, stream.eta, stream.gamma)
        model.partial_fit(X[:1], y[:1], classes=[-1, 1])
        return count_wrong(model, X[1:count], y[1:count].tolist())

    entries: list[tuple[str, int, Callable[[], int]]] = [
        ("onkel BOGD, learn", n, ours_at_once),
        ("onkel BOGD, predict_one + learn_one", n, lambda: ours_one_by_one(n)),
    ]
    for name, rows, count, run in [
        *_sklearn(X, y, stream.gamma, size, chunk),
        *_river(X, y, stream.gamma, size),
    ]:
        entries.append((f"{name}, {rows}", min(n, count), lambda run=run, count=count: run(min(n, count))))

    ours = None
    for name, count, run in entries:
        seconds, wrong = race(3 if name.startswith("onkel") else 1, it=run)
        us = seconds["it"] / count * 1e6
        ours = ours or us
        row = {"learner": name, "examples": count, "us/example": us, "times onkel": us / ours}
        result.rows.append(row | {"mistakes %": 100 * wrong["it"] / count})
    yield result


Entry = tuple[str, str, int, Callable[[int], int]]


def count_wrong(model: Any, rows: Iterable[Any], labels: Iterable[Any]) -> int:
    """Mistakes of a model with river's verbs."""
    wrong = 0
    for x, label in zip(rows, labels, strict=True):
        wrong += model.predict_one(x) != label
        model.learn_one(x, label)
    return wrong


def _sklearn(X: Any, y: Any, gamma: float, size: int, chunk: int) -> Iterator[Entry]:
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.linear_model import SGDClassifier

    def run(kind: Any, step: int, count: int) -> int:
        # the map is made from the first chunk, which the linear model then sees too
        features = kind(gamma=gamma, n_components=size, random_state=0).fit(X[:chunk])
        model = SGDClassifier(alpha=1e-6, random_state=0)
        model.partial_fit(features.transform(X[:1]), y[:1], classes=[-1, 1])
        wrong = 0
        for start in range(0, count, step):
            rows = features.transform(X[start : min(start + step, count)])
            labels = y[start : min(start + step, count)]
            wrong += int((model.predict(rows) != labels).sum())
            model.partial_fit(rows, labels)
        return wrong

    for kind in (Nystroem, RBFSampler):
        for how, step, count in ((f"chunks of {chunk}", chunk, len(y)), ("one by one", 1, 2000)):
            yield (
                f"sklearn {kind.__name__} + SGD",
                how,
                count,
                lambda n, kind=kind, step=step: run(kind, step, n),
            )


def _river(X: Any, y: Any, gamma: float, size: int) -> Iterator[Entry]:
    try:
        from river import feature_extraction, linear_model, neighbors
    except ImportError:
        return
    rows = [dict(enumerate(row)) for row in X.tolist()]
    labels = (y > 0).tolist()

    def sampled(model: Any) -> Any:
        return feature_extraction.RBFSampler(gamma=gamma, n_components=size, seed=0) | model

    makers: dict[str, Callable[[], Any]] = {
        "LogisticRegression": linear_model.LogisticRegression,
        "RBFSampler + ALMA": lambda: sampled(linear_model.ALMAClassifier()),
        "RBFSampler + PA": lambda: sampled(linear_model.PAClassifier()),
        f"KNN, window {size}": lambda: neighbors.KNNClassifier(engine=neighbors.LazySearch(window_size=size)),
    }
    for name, make in makers.items():
        count = len(y) if name == "LogisticRegression" else 1000
        yield (
            f"river {name}",
            "one by one",
            count,
            lambda n, make=make: count_wrong(make(), rows[:n], labels[:n]),
        )


BENCHMARKS = (budgeted, unbounded, single, linearity, memory, neighbours)


# ---- telling


def show(result: Result) -> Table:
    """The result for people."""
    table = Table(title=result.title, title_justify="left", title_style="bold", header_style="")
    for name, value in result.rows[0].items():
        table.add_column(name, justify="left" if isinstance(value, str) else "right", overflow="fold")
    for row in result.rows:
        table.add_row(*map(cell, row.values()))
    return table


def cell(value: Any) -> str:
    """One entry of a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "[green]met[/]" if value else "[red]missed[/]"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = {bench.__name__: bench for bench in BENCHMARKS}
    parser.add_argument("--quick", action="store_true", help="fewer examples: the numbers are rougher")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to a file too")
    options = parser.parse_args()
    if not native.available():
        raise SystemExit("the native engine is not built: there is nothing to measure")

    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    core = idlest_core()
    machine = f"{processor()}, core {core}" if core is not None else processor()
    console.print(
        f"onkel {onkel.__version__}, {native.description()} engine; {machine}; least CPU time of several runs"
    )
    results: list[Result] = []
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.quick, {flags: Plain(Path(folder), flags) for flags in FLAGS})
        for name in options.only or names:
            for result in names[name](bench):
                console.print(show(result), "")
                results.append(result)
    verdicts = [row["met"] for result in results for row in result.rows if row.get("met") is not None]
    console.print(f"targets: {sum(verdicts)} of {len(verdicts)} met")
    if options.json:
        about = {
            "onkel": onkel.__version__,
            "engine": native.description(),
            "machine": machine,
            "quick": options.quick,
        }
        options.json.write_text(json.dumps(about | {"results": [vars(r) for r in results]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
