"""Files larger than memory, read in blocks; beside the loaders people use."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench import Bench, Result, race, resident
from sklearn.datasets import load_svmlight_file

from onkel.datasets import readers

_REPEATED = 20_000  # different rows; a file has them over and over
_CSV_HEAD = "y," + ",".join(f"x{j}" for j in range(12)) + "\n"


def libsvm(bench: Bench) -> Result:
    """Text as rows: megabytes a second, and the memory it takes."""
    n = bench.size(5_000_000) // _REPEATED * _REPEATED
    rows = []
    for format, line, head, other, load, most in (
        ("libsvm", _libsvm_line, "", "scikit-learn", load_svmlight_file, n),
        ("csv", _csv_line, _CSV_HEAD, "numpy.loadtxt", partial(np.loadtxt, delimiter=",", skiprows=1), n // 20),
    ):
        path, part = bench.folder / f"big.{format}", bench.folder / f"part.{format}"
        sizes = [_write(file, head, line, count) / 1e6 for file, count in ((path, n), (part, most))]
        seconds, seen = race(1, {"onkel": partial(_streamed, path, format), other: partial(_loaded, load, part)})
        held, read = seen["onkel"]
        grown = (max(held) - held[0]) / 2**20
        speed, baseline = sizes[0] / seconds["onkel"], sizes[1] / seconds[other]
        target = 100 if format == "libsvm" else None
        rows.append(
            {
                "format": format,
                "rows": read,
                "MB": sizes[0],
                "onkel MB/s": speed,
                "other": other,
                "other MB/s": baseline,
                "ratio": speed / baseline,
                "MiB after a tenth": held[len(held) // 10] / 2**20,
                "MiB at most": max(held) / 2**20,
                "MiB grown": grown,
                "target MB/s": target,
                "met": target and speed >= target and grown < 32 and read == n,
            }
        )
        path.unlink()
        part.unlink()
    return Result("Text in blocks, against a loader of whole files (MiB: of the process)", rows)


def _loaded(load: Callable[[str], Any], path: Path) -> int:
    return len(load(str(path))[-1])


def _streamed(path: Path, format: Any) -> tuple[list[int], int]:
    """Memory held at every block, and the rows seen."""
    gc.collect()
    held, n = [resident()], 0
    for block in readers.chunks(path, format=format, target="y" if format == "csv" else None):
        n += len(block.y)
        held.append(resident())
    return held, n


def _write(path: Path, head: str, line: Callable[[Any], str], n: int) -> int:
    """A file of n rows; its size."""
    random = np.random.default_rng(0)
    body = "".join(line(random) for _ in range(_REPEATED))
    with path.open("w") as file:
        file.write(head)
        for _ in range(max(n // _REPEATED, 1)):
            file.write(body)
    return path.stat().st_size


def _libsvm_line(random: Any) -> str:
    columns = np.unique(random.integers(1, 1000, 12))
    pairs = zip(columns.tolist(), random.standard_normal(len(columns)).tolist(), strict=True)
    return f"{random.choice(('+1', '-1'))} " + " ".join(f"{j}:{x:.6g}" for j, x in pairs) + "\n"


def _csv_line(random: Any) -> str:
    return f"{random.integers(2)}," + ",".join(f"{x:.6g}" for x in random.standard_normal(12).tolist()) + "\n"
