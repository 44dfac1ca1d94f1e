"""Streams by name: embedded, generated, and the sets of the papers; or from a file.

Embedded and generated streams need nothing else; `NAMES` lists them. The sets of the papers (`SETS`) are npz files in
the data folder: the environment variable ONKEL_DATA, else the user's cache. `onkel data fetch NAME` puts them there.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets

from onkel import readers
from onkel.generated import LAWS, drift, generate, laps
from onkel.readers import ENDINGS, FORMATS, read, read_npz
from onkel.sources import SETS, Named
from onkel.stream import SCALES, DataError, Scale, Stream, Task, infer_task, standardise
from onkel.tables import ENCODE, MISSING, Block

__all__ = [
    "DEMO",
    "ENCODE",
    "ENDINGS",
    "FORMATS",
    "MISSING",
    "NAMES",
    "SCALES",
    "SETS",
    "Block",
    "DataError",
    "Named",
    "Scale",
    "Stream",
    "Task",
    "chunks",
    "drift",
    "folder",
    "infer_task",
    "is_here",
    "load",
    "read",
]


def load(
    name: str,
    *,
    scale: Scale | None = None,
    positive: Any = None,
    n: int | None = None,
    seed: int = 0,
    **settings: Any,
) -> Stream:
    """A stream by name.

    Parameters
    ----------
    name : an embedded or generated stream (`NAMES`), or a set of the papers (`SETS`) that is in the data folder.
    scale : "standard", "[0,1]" or "[-1,1]", see `Stream.scaled`; None leaves the values as they are published.
    positive : a label: two classes, +1 for it and -1 for the rest.
    n : the first n rows; a generated stream is as long as that (default 3000).
    seed : of a generated stream.
    settings : of the law of a generated stream, as `noise`.
    """
    if name in LAWS:
        stream = generate(name, **({} if n is None else {"n": n}), seed=seed, **settings)
    elif settings or seed:
        raise DataError(f"{name} is not generated; it has no setting {next(iter(settings), 'seed')!r}")
    else:
        stream = _stored(name)
        stream = stream if n is None else stream.part(slice(n))
    if positive is not None:
        stream = stream.against_rest(positive)
    return stream if scale is None else stream.scaled(scale)


def chunks(
    source: str | Path, *, rows: int = readers.ROWS, seed: int | None = None, **settings: Any
) -> Iterator[Block]:
    """Blocks (X, y) of a stream, one at a time: what is in memory does not grow.

    Parameters
    ----------
    source : a file or "-" for standard input (settings: see `readers.chunks`); or a name. A generated stream has no
        end (settings: those of its law); other names give their rows once.
    rows : the most rows of a block.
    seed : of a generated stream.
    """
    name = str(source)
    if name in LAWS:
        for block in laps(name, seed or 0, **settings):
            yield from _pieces(block.X, block.y, rows)
    elif seed is not None:
        raise DataError(f"{name} is not generated; it has no seed")
    elif name in _EMBEDDED or name in SETS:
        stream = load(name, **settings)
        yield from _pieces(stream.X, stream.y, rows)
    else:
        yield from readers.chunks(source, rows=rows, **settings)


def _pieces(X: Any, y: Any, rows: int) -> Iterator[Block]:
    yield from (Block(X[start : start + rows], y[start : start + rows]) for start in range(0, len(y), rows))


def folder() -> Path:
    """The data folder: ONKEL_DATA, else the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ONKEL_DATA") or cache / "onkel")


def is_here(name: str) -> bool:
    """Whether `load` finds it without a download."""
    return name in NAMES or (name in SETS and _file(name).is_file())


def _file(name: str) -> Path:
    return folder() / f"{name}.npz"


def _stored(name: str) -> Stream:
    if name in _EMBEDDED:
        return _EMBEDDED[name]()
    if name not in SETS:
        close = difflib.get_close_matches(name, (*NAMES, *SETS), 3, 0.7)
        meant = f"; did you mean {' or '.join(close)}?" if close else ";"
        raise DataError(f"there is no stream {name!r}{meant} onkel data lists them all")
    if not is_here(name):
        here = f"{name} is not in the data folder {folder()}"
        remedy = f"onkel data fetch {name}" if SETS[name].sources else f"put {name}.npz there; {SETS[name].about}"
        raise DataError(f"{here}; {remedy}, or let ONKEL_DATA name the folder that has it")
    return _named(SETS[name])


def _named(named: Named) -> Stream:
    path = _file(named.name)
    _verify(named.name, path)
    X, y, more = read_npz(path)
    n_train = more.get("n_train")
    return Stream(
        named.name,
        X,
        y,
        named.task,
        named.about,
        n_train=None if n_train is None else int(n_train),
        orders=more.get("perms"),
    )


def _verify(name: str, path: Path) -> None:
    """Refuse a file that is not the one the folder's manifest speaks of."""
    manifest = folder() / "manifest.json"
    if not manifest.is_file():
        return
    known = json.loads(manifest.read_text(encoding="utf-8")).get(name, {}).get("sha256")
    if known and hashlib.sha256(path.read_bytes()).hexdigest() != known:
        raise DataError(f"{path} is damaged: its checksum is not that of {manifest}; remove it and fetch it again")


# -- embedded ----------------------------------------------------------------------------------------------


def _digits() -> Stream:
    X, y = sklearn.datasets.load_digits(return_X_y=True)
    return Stream("digits", X / 16.0, y, "classification", "handwritten digits, 8 x 8 pixels in [0, 1], 10 classes")


def _breast_cancer() -> Stream:
    X, y = sklearn.datasets.load_breast_cancer(return_X_y=True)
    label = np.where(y == 0, "malignant", "benign")
    return Stream(
        "breast_cancer",
        standardise(X),
        label,
        "classification",
        "30 standardised measurements of cell nuclei, benign or malignant",
    )


def _flowers() -> Stream:
    data = sklearn.datasets.load_iris()
    about = "4 standardised measurements of flowers of 3 kinds"
    return Stream("iris", standardise(data.data), data.target_names[data.target], "classification", about)


def _wine() -> Stream:
    X, y = sklearn.datasets.load_wine(return_X_y=True)
    return Stream("wine", standardise(X), y, "classification", "13 standardised measurements of wine from 3 growers")


def _diabetes() -> Stream:
    X, y = sklearn.datasets.load_diabetes(return_X_y=True, scaled=False)
    description = "progress of the disease within a year from 10 measurements; all standardised"
    return Stream("diabetes", standardise(X), standardise(y), "regression", description)


_EMBEDDED: dict[str, Callable[[], Stream]] = {
    "breast_cancer": _breast_cancer,
    "digits": _digits,
    "iris": _flowers,
    "wine": _wine,
    "diabetes": _diabetes,
}
NAMES: tuple[str, ...] = (*_EMBEDDED, *LAWS)
DEMO: tuple[str, ...] = ("breast_cancer", "digits", "drift", "diabetes")
