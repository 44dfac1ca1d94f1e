"""Streams by name: embedded, generated, and the sets of the papers; or from a file.

Embedded and generated streams need nothing else; `NAMES` lists them. The sets of the papers (`SETS`) are npz files in
the data folder: the environment variable ONKEL_DATA, else the user's cache. `onkel data fetch NAME` puts them there.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onkel.core.errors import DataError
from onkel.datasets import embedded, readers, storage
from onkel.datasets.fetch import Progress
from onkel.datasets.generated import LAWS, drift, generate, segments
from onkel.datasets.readers import ENDINGS, FORMATS, read
from onkel.datasets.reading import ROWS
from onkel.datasets.sources import SETS, PaperSet
from onkel.datasets.storage import folder
from onkel.datasets.stream import SCALES, TASKS, Scale, Stream, Task, infer_task
from onkel.datasets.tables import ENCODE, MISSING, Block

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
    "TASKS",
    "Block",
    "DataError",
    "PaperSet",
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
    settings : those of a generated stream, such as `noise`.
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


def chunks(source: str | Path, *, rows: int = ROWS, seed: int | None = None, **settings: Any) -> Iterator[Block]:
    """Blocks (X, y) of a stream, one at a time.

    Files and generated streams are read block by block; embedded streams and sets of the papers are loaded whole.

    Parameters
    ----------
    source : a file, "-" for standard input, or the name of a stream. A generated stream has no end.
    rows : the most rows of a block.
    seed : of a generated stream.
    settings : of a file see `readers.chunks`; of a generated stream see `load`.
    """
    name = str(source)
    if name in LAWS:
        for segment in segments(name, seed or 0, **settings):
            yield from Block(segment.X, segment.y).pieces(rows)
    elif seed is not None:
        raise DataError(f"{name} is not generated; it has no seed")
    elif name in embedded.NAMES or name in SETS:
        stream = load(name, **settings)
        yield from Block(stream.X, stream.y).pieces(rows)
    else:
        yield from readers.chunks(source, rows=rows, **settings)


def is_here(name: str) -> bool:
    """Whether `load` finds it without a download."""
    return name in NAMES or (name in SETS and storage.file(SETS[name]).is_file())


def is_whole(name: str) -> bool:
    """Whether it is here with all its rows; some sets are available only in part."""
    return is_here(name) and not (name in SETS and storage.is_partial(SETS[name]))


def fetch(name: str, *, progress: Progress | None = None) -> Path:
    """Download a set of the papers into the data folder; its file there."""
    if name in NAMES:
        raise DataError(f"{name} needs no download")
    if name not in SETS:
        raise _unknown(name)
    return storage.fetch(SETS[name], progress=progress)


def _stored(name: str) -> Stream:
    if name in embedded.NAMES:
        return embedded.load(name)
    if name not in SETS:
        raise _unknown(name)
    return storage.load(SETS[name])


def _unknown(name: str) -> DataError:
    close = difflib.get_close_matches(name, (*NAMES, *SETS), 3, 0.7)
    meant = f"; did you mean {' or '.join(close)}?" if close else ";"
    return DataError(f"there is no file and no stream {name!r}{meant} onkel data lists all streams")


GENERATED: tuple[str, ...] = tuple(LAWS)
NAMES: tuple[str, ...] = (*embedded.NAMES, *GENERATED)
DEMO: tuple[str, ...] = ("breast_cancer", "digits", "drift", "diabetes")
