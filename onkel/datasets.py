"""Streams by name: embedded, generated, and the sets of the papers; or from a file.

Embedded and generated streams need nothing else; `NAMES` lists them. The sets of the papers (`SETS`) are npz files in
the data folder: the environment variable ONKEL_DATA, else the user's cache. `onkel data fetch NAME` puts them there.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets

from onkel import folder as data_folder
from onkel import readers
from onkel.folder import folder
from onkel.generated import LAWS, drift, generate, laps
from onkel.readers import ENDINGS, FORMATS, read
from onkel.sources import SETS, Named
from onkel.stream import SCALES, DataError, Scale, Stream, Task, infer_task, standardise
from onkel.tables import ENCODE, MISSING, Block

__all__ = [
    "DEMO",
    "ENCODE",
    "ENDINGS",
    "FORMATS",
    "GENERATED",
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
    "fetch",
    "folder",
    "infer_task",
    "is_here",
    "is_whole",
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
        for lap in laps(name, seed or 0, **settings):
            yield from Block(lap.X, lap.y).pieces(rows)
    elif seed is not None:
        raise DataError(f"{name} is not generated; it has no seed")
    elif name in _EMBEDDED or name in SETS:
        stream = load(name, **settings)
        yield from Block(stream.X, stream.y).pieces(rows)
    else:
        yield from readers.chunks(source, rows=rows, **settings)


def is_here(name: str) -> bool:
    """Whether `load` finds it without a download."""
    return name in NAMES or (name in SETS and data_folder.file(SETS[name]).is_file())


def is_whole(name: str) -> bool:
    """Whether it is here with all its rows; of some sets only a part could be had."""
    return is_here(name) and not (name in SETS and data_folder.is_partial(SETS[name]))


def fetch(name: str, *, progress: data_folder.Progress | None = None) -> Path:
    """Download a set of the papers into the data folder; its file there."""
    if name in NAMES:
        raise DataError(f"{name} needs no download")
    if name not in SETS:
        raise _unknown(name)
    return data_folder.fetch(SETS[name], progress=progress)


def _stored(name: str) -> Stream:
    if name in _EMBEDDED:
        return _EMBEDDED[name]()
    if name not in SETS:
        raise _unknown(name)
    return data_folder.load(SETS[name])


def _unknown(name: str) -> DataError:
    close = difflib.get_close_matches(name, (*NAMES, *SETS), 3, 0.7)
    meant = f"; did you mean {' or '.join(close)}?" if close else ";"
    return DataError(f"there is no file and no stream {name!r}{meant} onkel data lists all streams")


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
GENERATED: tuple[str, ...] = tuple(LAWS)
NAMES: tuple[str, ...] = (*_EMBEDDED, *GENERATED)
DEMO: tuple[str, ...] = ("breast_cancer", "digits", "drift", "diabetes")
