"""Measure onkel against its plain C++ twin, scikit-learn and river, and against its own promises.

Everything runs on one core and in one thread. Times are CPU seconds of this process, the least of several
repetitions taken in turn with those of the competitors: a busy machine disturbs all alike.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import features
import maintenance
import neighbours
import numpy as np
import pools
import reading
import scipy.sparse as sp
import streams
import workbench
from bench import FLAGS, TYPES, Again, Bench, Result, Runs, begun, growth, mistakes, race
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

import onkel
from onkel import native
from onkel.budgets import Merge
from onkel.hypotheses import Expansion
from onkel.kernels import Gaussian
from onkel.learners.learner import Learner
from onkel.losses import Absolute
from onkel.updates import Pegasos


def bogd(*, budget: int, eta: float, gamma: float) -> Any:
    """Learner(Expansion(Gaussian(gamma), RemoveRandom(budget)), Hinge(), Gradient(eta))."""
    return onkel.BOGDClassifier(budget=budget, eta=eta, lam=0.0, unbiased=False, kernel=Gaussian(gamma))


def ogd(*, eta: float, gamma: float) -> Any:
    """Learner(Expansion(Gaussian(gamma), Unlimited()), Hinge(), Gradient(eta))."""
    return onkel.OGDClassifier(eta=eta, kernel=Gaussian(gamma))


def engine_alone(X: Any, y: Any, model: Any) -> None:
    """The C++ engine of a model on rows and targets that need no check."""
    model._learned.engine.learn(X, y)


# ---- the benchmarks


def budgeted(bench: Bench) -> Result:
    """Gradient descent on a budget, against the plain twin."""
    rows = []
    for stream in (streams.ijcnn1(), streams.a9a()):
        for dtype, wanted in zip(TYPES, (10, 20), strict=True):
            X, y = stream.head(bench.size(60_000), dtype)
            for budget in (100, 400, 1600):
                setting = {"budget": budget} | stream.setting
                model = bogd(**setting).partial_fit(X, y)
                runs: Runs = {flags: partial(twin.ogd, X, y, **setting) for flags, twin in bench.plain.items()}
                contender = begun(bogd(**setting), X, y)
                runs |= {"onkel": contender, "scores": partial(model.predict, X)}
                runs["engine"] = Again(contender.model, partial(engine_alone, X[1:], y[1:].astype(float)))
                seconds, returned = race(bench.repeats, runs)
                counts = returned[FLAGS[0]]
                ours, engine, plain = seconds["onkel"], seconds["engine"], seconds[FLAGS[1]]
                target = wanted if budget >= 400 else None
                rows.append(
                    {
                        "stream": stream.name,
                        "type": np.dtype(dtype).name,
                        "B": budget,
                        "mean terms": round(counts.evaluations / len(y)),
                        "steps": counts.steps / len(y),
                        "onkel us": ours / len(y) * 1e6,
                        "engine us": engine / len(y) * 1e6,
                        "plain us": plain / len(y) * 1e6,
                        "engine ns/term": engine / counts.evaluations * 1e9,
                        "predict ns/term": seconds["scores"] / len(y) / model.n_support_ * 1e9,
                        "onkel mistakes": returned["onkel"](),
                        "plain mistakes": counts.mistakes,
                        "onkel ratio": plain / ours,
                        "engine ratio": plain / engine,
                        "engine -O3": seconds[FLAGS[0]] / engine,
                        "target": target,
                        "met": target and plain / engine >= target,
                    }
                )
    title = "Budgeted OGD, random removal (onkel: `learn` with its checks; engine: without, as plain"
    return Result(f"{title}; plain: {FLAGS[1]}, the last ratio {FLAGS[0]} alone)", rows)


def merging(bench: Bench) -> Result:
    """The merging step of BSGD: every example enters (onkel scores it as well) and makes two terms one."""

    def absolute(search: str, dtype: Any, X: Any, y: Any) -> int:  # a loss that always wants to go where y is
        f = Expansion(Gaussian(stream.gamma), Merge(budget, search))
        learner = Learner(f, Absolute(), Pegasos(1.0), columns=X.shape[1], dtype=dtype)
        engine = native.fastest(learner)
        engine.learn(X, 1e9 * y)
        return engine.n

    rows, stream, budget = [], streams.ijcnn1(), 1000
    for dtype in TYPES:
        X, y = stream.head(budget + bench.size(2000), dtype)
        for signs, labels in (("both", np.where(np.arange(len(y)) % 2, 1.0, -1.0)), ("one", np.ones(len(y)))):
            setting = {"gamma": stream.gamma, "budget": budget}
            runs: Runs = {search: partial(absolute, search, dtype, X, labels) for search in ("table", "exact")}
            for name, spare in (("plain", False), ("spare", True)):
                runs[name] = partial(bench.plain[FLAGS[1]].merging, X, labels, **setting, spare=spare)
            seconds, counts = race(bench.repeats, runs)
            us = {name: spent / counts["plain"].steps * 1e6 for name, spent in seconds.items()}
            rows.append(
                {
                    "stream": stream.name,
                    "type": np.dtype(dtype).name,
                    "B": budget,
                    "signs": signs,
                    "table us": us["table"],
                    "exact us": us["exact"],
                    "plain us": us["plain"],
                    "ratio": us["plain"] / us["table"],
                    "target": 30 if signs == "one" else None,  # of which all are partners
                    "met": us["plain"] / us["table"] >= 30 if signs == "one" else None,
                    "sparing plain us": us["spare"],
                    "ratio to it": us["spare"] / us["table"],
                }
            )
    return Result("Merging steps (plain: powers at two points a step, to 0.01; sparing: exponentials at one)", rows)


def unbounded(bench: Bench) -> Result:
    """Gradient descent without a budget, on all of a9a."""
    rows = []
    stream = streams.a9a()
    setting = stream.setting
    for dtype in TYPES:
        X, y = stream.head(4000, dtype)
        builds, _ = race(2, {flags: partial(twin.ogd, X, y, **setting) for flags, twin in bench.plain.items()})
        twin = bench.plain[min(builds, key=builds.__getitem__)]
        X, y = stream.head(bench.size(len(stream.y)), dtype)
        ours, wrong = race(3, {"onkel": begun(ogd(**setting), X, y)})
        theirs, counts = race(1, {"plain": partial(twin.ogd, X, y, **setting)})
        rows.append(
            {
                "stream": stream.name,
                "type": np.dtype(dtype).name,
                "rows": len(y),
                "terms": counts["plain"].terms,
                "onkel s": ours["onkel"],
                "plain s": theirs["plain"],
                "onkel ns/term": ours["onkel"] / counts["plain"].evaluations * 1e9,
                "onkel mistakes": wrong["onkel"](),
                "plain mistakes": counts["plain"].mistakes,
                "ratio": theirs["plain"] / ours["onkel"],
            }
        )
    return Result("Unbounded OGD, one pass (plain: once, the build that wins the first 4000 rows)", rows)


def single(bench: Bench) -> Result:
    """One example a call: what the call costs above an example in a chunk."""
    stream = streams.ijcnn1()
    X, y = stream.head(5000)
    labels, dicts = y.tolist(), [dict(enumerate(row)) for row in X.tolist()]

    def learn_each(model: Any, examples: list[Any]) -> None:
        for x, label in zip(examples, labels, strict=True):
            model.learn_one(x, label)

    def predict_each(model: Any, examples: list[Any]) -> None:
        for x in examples:
            model.predict_one(x)

    rows = []
    for kind, examples, chunk in (("array", list(X), X), ("dict", dicts, sp.csr_array(X))):
        together, alone = (bogd(budget=100, **stream.setting) for _ in range(2))
        together.learn(chunk, labels)
        learn_each(alone, examples)
        runs: Runs = {
            "learn": partial(together.learn, chunk, labels),
            "learn_one": partial(learn_each, alone, examples),
            "predict": partial(together.predict, chunk),
            "predict_one": partial(predict_each, alone, examples),
        }
        seconds, _ = race(bench.repeats, runs)
        for many in ("learn", "predict"):
            one, all_ = (seconds[name] / len(labels) * 1e6 for name in (f"{many}_one", many))
            rows.append(
                {
                    "call": f"{many}_one({kind})",
                    "us a call": one,
                    "us in a chunk": all_,
                    "overhead us": one - all_,
                    "target us": 2 if kind == "array" else None,
                    "met": one - all_ < 2 if kind == "array" else None,
                }
            )
    return Result(f"One example a call ({stream.name}, float64, B = 100)", rows)


def linearity(bench: Bench) -> Result:
    """How the time per example grows with each size."""
    random = np.random.default_rng(0)
    n = 1000 if bench.quick else 2000

    def dense(d: int) -> Any:
        return random.normal(size=(n, d))

    def sparse(columns: int, nonzeros: int) -> Any:
        index = np.argpartition(random.random((n, columns), np.float32), nonzeros)[:, :nonzeros]
        index.sort(axis=1)
        starts = np.arange(0, index.size + 1, nonzeros)
        return sp.csr_array((random.normal(size=index.size), index.ravel(), starts), shape=(n, columns))

    def budgeted_by(budget: int, gamma: float) -> Any:
        return bogd(budget=budget, eta=0.1, gamma=gamma)

    def explicit(components: int, gamma: float) -> Any:
        return features.fogd(components=components, eta=0.1, gamma=gamma)

    sizes, counts = (125, 250, 500, 1000, 2000, 4000), (8, 16, 32, 64, 128, 256)
    columns = (16, 32, 64, 128, 256, 512, 1024)
    cases = {
        "B, at d = 22": (budgeted_by, {B: (B, dense(22)) for B in sizes}),
        "B, at 14 non-zeros of 123": (budgeted_by, {B: (B, sparse(123, 14)) for B in sizes}),
        "d, at B = 400": (budgeted_by, {d: (400, dense(d)) for d in columns}),
        "non-zeros of 1000, at B = 400": (budgeted_by, {count: (400, sparse(1000, count)) for count in counts}),
        "non-zeros of 5000, at B = 400": (budgeted_by, {count: (400, sparse(5000, count)) for count in counts}),
        "D, at d = 22": (explicit, {D: (D, dense(22)) for D in sizes}),
        "d, at D = 400": (explicit, {d: (400, dense(d)) for d in columns}),
        "non-zeros of 1000, at D = 400": (explicit, {count: (400, sparse(1000, count)) for count in counts}),
    }
    rows = []
    for name, (make, case) in cases.items():
        runs: Runs = {}
        for size, (terms, X) in case.items():
            y = random.choice([-1, 1], n)
            model = make(terms, 0.5 / X.shape[1]).partial_fit(X, y)
            while model.n_support_ < getattr(model, "budget", 0) and model.t_ < 20 * n:
                model.learn(X, y)
            runs[str(size)] = partial(model.learn, X, y)
        seconds, _ = race(bench.repeats, runs)
        values, us = list(case), np.array(list(seconds.values())) / n * 1e6
        exponent = np.polyfit(np.log(values), np.log(us), 1)[0]
        terms, X = case[values[-1]]
        numbers = terms * (X.nnz if sp.issparse(X) else X.size) / n  # met by an example of the largest size
        rows.append(
            {
                "size": name,
                "values": " ".join(map(str, values)),
                "us/example": " ".join(f"{t:.3g}" for t in us),
                "ns/number": us[-1] * 1e3 / numbers,
                "last doubling": float(np.log2(us[-1] / us[-2])),
                "exponent": float(exponent),
                "target": 1.05,
                "met": bool(exponent <= 1.05),
            }
        )
    return Result("Growth of the time per example (float64)", rows)


def memory(bench: Bench) -> Result:
    """Memory over a million examples."""
    stream, chunk = streams.ijcnn1(), 10_000
    marks = (bench.size(100_000), bench.size(1_000_000))
    rows = []
    for dtype in TYPES:
        X, y = stream.head(10 * chunk, dtype)
        model = bogd(budget=200, **stream.setting)
        held, state = growth(model, X, y, chunk, marks)
        rows.append(
            {
                "type": np.dtype(dtype).name,
                **{f"MiB at {mark:,}": held[i] / 2**20 for i, mark in enumerate(marks)},
                **{f"state bytes at {mark:,}": state[i] for i, mark in enumerate(marks)},
                "MiB grown": (held[1] - held[0]) / 2**20,
                "target": 1,
                "met": held[1] - held[0] < 2**20 and state[0] == state[1],
            }
        )
    return Result(f"Memory ({stream.name} over and over in chunks of {chunk:,}, B = 200)", rows)


def others(bench: Bench) -> Result:
    """The nearest that scikit-learn and river can do on the same stream."""
    stream, size = streams.ijcnn1(), 400
    X, y = stream.head(bench.size(40_000))
    makers: dict[str, Callable[[], Any]] = {
        "BOGD": partial(bogd, budget=size, **stream.setting),
        "FOGD": partial(features.fogd, components=size, gamma=stream.gamma),
    }

    def together(make: Callable[[], Any], n: int) -> int:
        return mistakes(make().learn(X[:n], y[:n]), y[:n])

    def one_by_one(make: Callable[[], Any], examples: Any, n: int) -> int:
        model = make()
        model.learn_one(examples[0], y[0].item())  # f is 0 before it
        return int(y[0] < 0) + neighbours.count_wrong(model, examples[1:n], y[1:n].tolist())

    # calls of predict_one and learn_one, with rows of the array or with dictionaries, as river has them
    forms = {"calls": X, "dictionaries": [dict(enumerate(row)) for row in X.tolist()]}
    bases = ("BOGD, learn", "FOGD, learn", "FOGD, calls", "FOGD, dictionaries")
    entries: list[neighbours.Entry] = []
    for name, make in makers.items():
        entries.append((f"onkel {name}, learn", len(y), partial(together, make), None))
        for form, examples in forms.items():
            entries.append((f"onkel {name}, {form}", len(y), partial(one_by_one, make, examples), None))
    entries += [*neighbours.sklearn(X, y, stream.gamma, size), *neighbours.river(X, y, stream.gamma, size)]
    scores = {name: make().learn(X, y) for name, make in makers.items()}
    rows: list[dict[str, Any]] = []
    took: dict[str, float] = {}
    for name, most, run, target in entries:
        n = min(most, len(y))
        seconds, wrong = race(3 if n == len(y) else 1, {name: partial(run, n)})
        took[name] = us = seconds[name] / n * 1e6
        times = {base: us / took[f"onkel {base}"] for base in bases if f"onkel {base}" in took}
        rows.append(
            {
                "learner": name,
                "examples": n,
                "us/example": us,
                **{f"times {base}": times.get(base) for base in bases},
                "target": target,
                "met": times["FOGD, learn"] >= target if target else None,
                "mistakes %": 100 * wrong[name] / n,
                **{f"{of} %": 100 * mistakes(s[:n], y[:n]) / n for of, s in scores.items()},
            }
        )
    title = f"Predict, then learn, at sizes of {size} ({stream.name}, float64; targets: times `learn` of FOGD)"
    return Result(title, rows)


BENCHMARKS = (
    *(budgeted, merging, unbounded, single, linearity, memory),
    *(maintenance.projecting, maintenance.double_updates, maintenance.growth, maintenance.health),
    *(features.fourier, features.nystrom, features.learned_widths, features.several_classes, features.million),
    *(pools.projected, pools.sampled),
    *(reading.libsvm, others, workbench.tune, workbench.killed),
)


# ---- the machine, and telling


def idlest_core() -> int | None:
    """The core that did least just now, which the process keeps to from here; None where it cannot choose."""
    if not hasattr(os, "sched_setaffinity"):
        return None

    def busy() -> dict[int, int]:
        cores = [line.split() for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu")]
        return {int(name[3:]): sum(map(int, t)) - int(t[3]) for name, *t in cores if name != "cpu"}

    before = busy()
    time.sleep(0.5)
    after = busy()
    core = min(os.sched_getaffinity(0), key=lambda c: after[c] - before[c])
    os.sched_setaffinity(0, {core})
    return core


def processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def show(result: Result) -> Table:
    """The result for people."""
    table = Table(title=result.title, title_justify="left", title_style="bold", header_style="")
    for name, value in result.rows[0].items():
        table.add_column(name, justify="left" if isinstance(value, str) else "right")
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
        return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value


def run(bench: Bench, names: Iterable[str], console: Console) -> Iterator[tuple[str, Result]]:
    """Run and show the benchmarks named."""
    for benchmark in BENCHMARKS:
        if benchmark.__name__ in names:
            result = benchmark(bench)
            console.print(show(result), "")
            yield benchmark.__name__, result


def main() -> None:
    names = [benchmark.__name__ for benchmark in BENCHMARKS]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer examples: rougher numbers")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to a file as well")
    options = parser.parse_args()
    if not native.available():
        raise SystemExit("the native engine is not built, so there is nothing to measure: install a C++ compiler")

    console = Console()
    if not console.is_terminal:
        console = Console(width=170)
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    core = idlest_core()
    about = {
        "onkel": onkel.__version__,
        "engine": native.description(),
        "processor": processor(),
        "core": core,
        "quick": options.quick,
    }
    console.print(", ".join(f"{name} {value}" for name, value in about.items()))
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.quick, Path(folder), cores)
        results = dict(run(bench, options.only or names, console))
    verdicts = [v for result in results.values() for row in result.rows for v in row.values() if isinstance(v, bool)]
    console.print(f"{sum(verdicts)} of {len(verdicts)} targets met")
    if options.json:
        numbers = {name: result.rows for name, result in results.items()}
        options.json.write_text(json.dumps(about | {"results": numbers}, indent=1) + "\n")


if __name__ == "__main__":
    main()
