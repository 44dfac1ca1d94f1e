"""The data folder: one npz file per set of the papers, a manifest with their checksums, and how a set gets there.

Layout of an npz file: X (float32), or data, indices, indptr and shape of a CSR matrix; y; n_train where there is an
official split; perms, the published row orders, where they are known.

A known checksum must match. If none is known, the first download is trusted; the manifest records its checksum, which
later downloads must match.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from onkel.core.errors import DataError
from onkel.core.files import replacing
from onkel.datasets import readers
from onkel.datasets.fetch import Progress, digest, download
from onkel.datasets.sources import PaperSet, Source
from onkel.datasets.stream import Stream

_DOWNLOADS = "downloads"


def folder() -> Path:
    """The data folder: the environment variable ONKEL_DATA, else the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ONKEL_DATA") or cache / "onkel").expanduser()


def file(entry: PaperSet) -> Path:
    """Where a set is, or would be."""
    return folder() / f"{entry.name}.npz"


def is_partial(entry: PaperSet) -> bool:
    """Whether the manifest says that fewer rows are here than the set has."""
    return bool(_manifest().get(entry.name, {}).get("rows", entry.rows) < entry.rows)


def load(entry: PaperSet) -> Stream:
    """A set from the folder, verified."""
    path = file(entry)
    if not path.is_file():
        here = f"{entry.name} is not in the data folder {folder()}"
        remedy = f"onkel data fetch {entry.name}" if entry.sources else f"put {path.name} there ({entry.about})"
        raise DataError(f"{here}; {remedy}, or let ONKEL_DATA name the folder that has it")
    known = _manifest().get(entry.name, {}).get("sha256")
    if known and digest(path) != known:
        raise DataError(
            f"{path} is damaged: its checksum is not that of {_manifest_file()}; remove it and fetch it again"
        )
    X, y, more = readers.read_npz(path)
    n_train = more.get("n_train")
    return Stream(
        *(entry.name, X, y, entry.task, entry.about),
        n_train=None if n_train is None else int(n_train),
        orders=more.get("perms"),
    )


def fetch(entry: PaperSet, *, progress: Progress | None = None) -> Path:
    """Download a set, verify it, and put it into the folder; a set that is there is fetched again."""
    if not entry.sources:
        raise DataError(f"{entry.name} has no public address ({entry.about}); put {file(entry).name} into {folder()}")
    records = _manifest().get(entry.name, {}).get("sources", {})
    downloads = folder() / _DOWNLOADS
    paths, found = [], {}
    for source in entry.sources:
        path = downloads / f"{entry.name}-{source.url.rpartition('/')[2]}"
        sha256 = source.sha256 or records.get(source.url)
        found[source.url] = download(source.url, path, sha256=sha256, progress=progress)
        paths.append(path)
    try:
        with _writable():
            _put(entry, _assembled(entry, paths), found)
    finally:  # they are in the npz file now, or wrong
        for path in paths:
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another set may be arriving there
            downloads.rmdir()
    return file(entry)


# -- from published files to one npz


def _assembled(entry: PaperSet, paths: list[Path]) -> dict[str, Any]:
    """The arrays of a set from its published files, one block at a time."""
    X = np.zeros((0 if entry.sparse else entry.rows, entry.features), np.float32)
    y = np.empty(entry.rows, np.int16 if entry.task == "classification" else np.float32)
    blocks, sizes = [], [0] * len(paths)
    start = 0
    for number, (source, path) in enumerate(zip(entry.sources, paths, strict=True)):
        for part, targets in _blocks(entry, source, path):
            stop = start + len(targets)
            if stop > entry.rows or part.shape[1] > entry.features:
                raise _another(entry, f"at least {stop:,} rows and {part.shape[1]} features")
            y[start:stop] = _labels(entry, targets)
            if entry.sparse:
                part.resize(part.shape[0], entry.features)
                blocks.append(part.astype(np.float32))
            else:
                X[start:stop, : part.shape[1]] = part.toarray() if scipy.sparse.issparse(part) else part
            sizes[number] += len(targets)
            start = stop
    if start != entry.rows or (entry.n_train is not None and sizes[0] != entry.n_train):
        raise _another(entry, " + ".join(f"{size:,}" for size in sizes) + " rows")
    arrays = {"y": y} if entry.n_train is None else {"y": y, "n_train": np.int64(entry.n_train)}
    if not entry.sparse:
        return arrays | {"X": X}
    S = scipy.sparse.vstack(blocks, format="csr")
    return arrays | {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": np.array(S.shape)}


def _blocks(entry: PaperSet, source: Source, path: Path) -> Iterator[Any]:
    with _member(source, path) as plain:
        if source.format == "libsvm":
            yield from readers.chunks(plain, format="libsvm", zero_based=False)
        else:
            header = source.format == "csv"
            yield from readers.chunks(plain, format="csv", target=source.target, drop=source.drop, header=header)


@contextlib.contextmanager
def _member(source: Source, path: Path) -> Iterator[Path]:
    """The file itself, or the one that was asked for inside an archive."""
    if source.member is None:
        yield path
        return
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part") as plain:
        try:
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive, archive.open(source.member) as inner:
                    shutil.copyfileobj(inner, plain)
            else:
                with tarfile.open(path) as tar:
                    shutil.copyfileobj(tar.extractfile(source.member), plain)  # type: ignore[arg-type]
        except (KeyError, tarfile.TarError, zipfile.BadZipFile, EOFError) as problem:
            raise DataError(f"{source.url} is no archive with {source.member}: {problem}") from None
        plain.flush()
        yield Path(plain.name)


def _labels(entry: PaperSet, targets: Any) -> Any:
    if targets.dtype.kind != "U":
        return targets
    numbers = dict(entry.labels)
    if unknown := set(targets.tolist()) - set(numbers):
        raise _another(entry, f"a target {min(unknown)!r}")
    return [numbers[label] for label in targets.tolist()]


def _another(entry: PaperSet, found: str) -> DataError:
    wanted = f"{entry.rows:,} rows and {entry.features} features"
    split = "" if entry.n_train is None else f", {entry.n_train:,} of them for training"
    return DataError(
        f"{entry.name}: the published files hold {found}, not {wanted}{split}; so they are not the set of the papers"
    )


# -- manifest


def _manifest_file() -> Path:
    return folder() / "manifest.json"


def _manifest() -> dict[str, Any]:
    path = _manifest_file()
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as problem:
        raise DataError(f"{path} is damaged ({problem}); remove it, checksums are then recorded anew") from None


def _put(entry: PaperSet, arrays: dict[str, Any], sources: dict[str, str]) -> None:
    path, manifest = file(entry), _manifest()
    with replacing(path) as new:
        np.savez_compressed(new, **arrays)
    size = {"rows": entry.rows, "features": entry.features, "n_train": entry.n_train}
    record = {"file": path.name, "sha256": digest(path), "bytes": path.stat().st_size} | size | {"sources": sources}
    with replacing(_manifest_file()) as new:
        new.write(json.dumps(manifest | {entry.name: record}, indent=1).encode())


@contextlib.contextmanager
def _writable() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise DataError(f"the data folder {folder()} cannot be written: {problem.strerror or problem}") from None
