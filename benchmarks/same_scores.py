"""Prove that a change of the code changed no number: every estimator, setting, form of input and engine, bit by bit.

    python benchmarks/same_scores.py write before.npz     # with the old code
    python benchmarks/same_scores.py compare before.npz   # with the new code

The file holds streams, settings as plain data and the scores of `learn` and of a prediction at the end, so the new
code needs nothing of the old. Only what differs is printed; the exit code is 1 if anything does.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import onkel
from onkel import kernels, losses

FORMS = ("dense", "float32", "sparse", "wide")
ENGINES = ("native", "python")
USE_ENGINE = getattr(onkel, "use_engine", None) or onkel.engine  # the name that it had in version 0.1
Case = dict[str, Any]


# -- settings as plain data


def plain(value: Any) -> Any:
    """A setting as JSON data."""
    if hasattr(value, "get_params"):
        kind = "estimator" if hasattr(value, "fit") else "part"
        return {kind: type(value).__name__, "fields": plain(value.get_params(deep=False))}
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value


def read(value: Any) -> Any:
    """The inverse of `plain`."""
    if isinstance(value, list):
        return tuple(read(inner) for inner in value)
    if not isinstance(value, dict):
        return value
    fields = {name: read(inner) for name, inner in value.get("fields", value).items()}
    if "estimator" in value:
        return getattr(onkel, value["estimator"])(**fields)
    if "part" in value:
        home = kernels if hasattr(kernels, value["part"]) else losses
        return getattr(home, value["part"])(**fields)
    return fields


# -- cases


def cases() -> Iterator[Case]:
    """Every estimator with every setting of the tests, on every form of input."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import streams

    for name, params in (*streams.CASES, *streams.POOL_CASES):
        kernel = {} if "kernels" in params or name in streams.POOLS else {"kernel": streams.kernel_for(name, params)}
        averages = (False, True) if name in streams.ESTIMATORS else (None,)
        for form in FORMS:
            for several in (False, True) if streams.takes_several(name) else (False,):
                for average in averages:
                    extra = {} if average is None or (average and form != "dense") else {"average": average}
                    if average and not extra:
                        continue
                    yield {"name": name, "params": plain(params | kernel | extra), "form": form, "several": several}
    small: dict[str, Any] = {"components": 20, "budget": 15}
    for name in ("AutoKernelClassifier", "AutoKernelRegressor"):
        for form in FORMS:
            for several in (False, True) if name.endswith("Classifier") else (False,):
                yield {"name": name, "params": plain(small), "form": form, "several": several}


def stream(case: Case) -> str:
    """What its stream is called in the file."""
    task = next(task for task in ("Classifier", "Regressor", "Detector") if case["name"].endswith(task))
    return f"{task}-{case['form']}-{case['several']}"


def arrays_of(X: Any) -> dict[str, Any]:
    """An array or a CSR matrix as arrays."""
    if sp.issparse(X):
        return {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    return {"x": X}


def matrix_of(arrays: dict[str, Any]) -> Any:
    """The inverse."""
    if "x" in arrays:
        return arrays["x"]
    return sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))


# -- scores


def scores(case: Case, X: Any, y: Any, engine: str) -> Any:
    """The scores of `learn`, and those of a prediction at the end; what refuses to learn is a text."""
    try:
        with USE_ENGINE(engine):
            model = getattr(onkel, case["name"])(**read(case["params"]))
            if y is None:
                return np.concatenate([model.learn(X).ravel(), model.score_samples(X).ravel()])
            options = {}
            if case["name"].endswith("Classifier"):
                options["classes"] = [0, 1, 2, 3] if case["several"] else [-1.0, 1.0]
            told = model.learn(X, y, **options)
            last = (model.decision_function if options else model.predict)(X)
            return np.concatenate([np.ravel(told), np.ravel(last)])
    except ValueError as error:
        return np.array(f"refused: {str(error)[:60]}")


def run(job: tuple[Case, dict[str, Any], str]) -> Any:
    """One case on one engine, in a process of its own kind."""
    case, arrays, engine = job
    arrays = dict(arrays)
    y = arrays.pop("y", None)
    return scores(case, matrix_of(arrays), y, engine)


def all_scores(found: list[Case], streams: dict[str, dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The scores of all cases by name."""
    jobs = [(case, streams[stream(case)], engine) for case in found for engine in ENGINES]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for number, result in enumerate(pool.map(run, jobs, chunksize=4)):
            yield f"scores {number}", result


def write(path: str) -> None:
    """Compute everything and keep it."""
    found = list(cases())
    import streams as generated

    wanted = {stream(case): case for case in found}
    streams = {}
    for key, case in wanted.items():
        X, y = generated.stream_for(getattr(onkel, case["name"]), form=case["form"], several=case["several"])
        streams[key] = arrays_of(X) | ({} if y is None else {"y": y})
    arrays = dict(all_scores(found, streams))
    arrays |= {f"stream {key} {name}": a for key, parts in streams.items() for name, a in parts.items()}
    np.savez_compressed(path, cases=np.array(json.dumps(found)), **arrays)
    print(f"{len(found)} settings, {len(found) * len(ENGINES)} runs")


def compare(path: str, allowed: list[str]) -> int:
    """Compute everything again; how much differs."""
    kept = np.load(path)
    found = json.loads(str(kept["cases"]))
    streams: dict[str, dict[str, Any]] = {}
    for key in kept.files:
        if key.startswith("stream "):
            _, name, part = key.split(" ")
            streams.setdefault(name, {})[part] = kept[key]
    different: dict[str, int] = {}
    for key, now in all_scores(found, streams):
        before = kept[key]
        if before.dtype.kind == now.dtype.kind == "f" and np.array_equal(before, now, equal_nan=True):
            continue
        if before.dtype.kind == now.dtype.kind == "U":
            continue  # refused then and now
        number = int(key.removeprefix("scores "))
        case, engine = found[number // len(ENGINES)], ENGINES[number % len(ENGINES)]
        if case["name"] in allowed:
            different[f"{case['name']} (allowed)"] = different.get(f"{case['name']} (allowed)", 0) + 1
            continue
        apart = ""
        if before.shape == now.shape and before.dtype.kind == now.dtype.kind == "f":
            apart = f": by up to {np.nanmax(np.abs(before - now)):.3g}, from score {int(np.argmax(before != now))}"
        elif before.dtype.kind != now.dtype.kind:
            apart = f": {before if before.dtype.kind == 'U' else now}"
        print(f"{engine} {case['name']} {json.dumps(case['params'])} {case['form']} several={case['several']}{apart}")
        different[case["name"]] = different.get(case["name"], 0) + 1
    print(f"{len(found) * len(ENGINES)} runs compared; different: {different or 'none'}")
    return int(any(not name.endswith("(allowed)") for name in different))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "compare"])
    parser.add_argument("file")
    parser.add_argument("--allow", nargs="*", default=[], help="estimators whose numbers may differ")
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(write(asked.file) if asked.what == "write" else compare(asked.file, asked.allow))
