"""The data folder: one npz file per set of the papers, a manifest with their checksums, and how a set gets there.

Layout of an npz file: X (float32), or data, indices, indptr and shape of a CSR matrix; y; n_train where there is an
official split; perms, the published row orders, where they are known.

A checksum that is known beforehand must be met. Where none is known, the first download is trusted; the manifest
records what came, and a later download must be the same.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from onkel import readers
from onkel.fetch import digest, download
from onkel.sources import Named, Source
from onkel.stream import DataError, Stream

Progress = Callable[[str, int, int | None], None]  # address, bytes here, bytes in all (None: not known)

_DOWNLOADS = "downloads"


def folder() -> Path:
    """ONKEL_DATA, else the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ONKEL_DATA") or cache / "onkel").expanduser()


def file(named: Named) -> Path:
    """Where a set is, or would be."""
    return folder() / f"{named.name}.npz"


def is_partial(named: Named) -> bool:
    """Whether the manifest says that fewer rows are here than the set has."""
    return bool(_manifest().get(named.name, {}).get("rows", named.rows) < named.rows)


def load(named: Named) -> Stream:
    """A set from the folder, verified."""
    path = file(named)
    if not path.is_file():
        here = f"{named.name} is not in the data folder {folder()}"
        remedy = f"onkel data fetch {named.name}" if named.sources else f"put {path.name} there ({named.about})"
        raise DataError(f"{here}; {remedy}, or let ONKEL_DATA name the folder that has it")
    known = _manifest().get(named.name, {}).get("sha256")
    if known and digest(path) != known:
        raise DataError(
            f"{path} is damaged: its checksum is not that of {_manifest_file()}; remove it and fetch it again"
        )
    X, y, more = readers.read_npz(path)
    n_train = more.get("n_train")
    return Stream(
        *(named.name, X, y, named.task, named.about),
        n_train=None if n_train is None else int(n_train),
        orders=more.get("perms"),
    )


def fetch(named: Named, *, progress: Progress | None = None) -> Path:
    """Download a set, verify it, and put it into the folder; a set that is there is fetched again."""
    if not named.sources:
        raise DataError(f"{named.name} has no public address ({named.about}); put {file(named).name} into {folder()}")
    records = _manifest().get(named.name, {}).get("sources", {})
    downloads = folder() / _DOWNLOADS
    paths, found = [], {}
    for source in named.sources:
        path = downloads / f"{named.name}-{source.url.rpartition('/')[2]}"
        told = None if progress is None else _about(progress, source.url)
        found[source.url] = download(source.url, path, sha256=source.sha256 or records.get(source.url), progress=told)
        paths.append(path)
    try:
        with _writable():
            _put(named, _assembled(named, paths), found)
    finally:  # used, or of no use
        for path in paths:
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another set may be on its way
            downloads.rmdir()
    return file(named)


def _about(progress: Progress, url: str) -> Callable[[int, int | None], None]:
    return lambda here, expected: progress(url, here, expected)


# -- from published files to one npz


def _assembled(named: Named, paths: list[Path]) -> dict[str, Any]:
    """The arrays of a set from its published files, one block at a time."""
    X = np.zeros((0 if named.sparse else named.rows, named.features), np.float32)
    y = np.empty(named.rows, np.int16 if named.task == "classification" else np.float32)
    blocks, sizes = [], [0] * len(paths)
    start = 0
    for number, (source, path) in enumerate(zip(named.sources, paths, strict=True)):
        for part, targets in _blocks(named, source, path):
            stop = start + len(targets)
            if stop > named.rows or part.shape[1] > named.features:
                raise _another(named, f"at least {stop:,} rows and {part.shape[1]} features")
            y[start:stop] = _labels(named, targets)
            if named.sparse:
                part.resize(part.shape[0], named.features)
                blocks.append(part.astype(np.float32))
            else:
                X[start:stop, : part.shape[1]] = part.toarray() if scipy.sparse.issparse(part) else part
            sizes[number] += len(targets)
            start = stop
    if start != named.rows or (named.n_train is not None and sizes[0] != named.n_train):
        raise _another(named, " + ".join(f"{size:,}" for size in sizes) + " rows")
    arrays = {"y": y} if named.n_train is None else {"y": y, "n_train": np.int64(named.n_train)}
    if not named.sparse:
        return arrays | {"X": X}
    S = scipy.sparse.vstack(blocks, format="csr")
    return arrays | {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": np.array(S.shape)}


def _blocks(named: Named, source: Source, path: Path) -> Iterator[Any]:
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


def _labels(named: Named, targets: Any) -> Any:
    if targets.dtype.kind != "U":
        return targets
    numbers = dict(named.labels)
    if unknown := set(targets.tolist()) - set(numbers):
        raise _another(named, f"a target {min(unknown)!r}")
    return [numbers[label] for label in targets.tolist()]


def _another(named: Named, found: str) -> DataError:
    wanted = f"{named.rows:,} rows and {named.features} features"
    split = "" if named.n_train is None else f", {named.n_train:,} of them for training"
    return DataError(
        f"{named.name}: the published files hold {found}, not {wanted}{split}; they are not the set we know"
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


def _put(named: Named, arrays: dict[str, Any], sources: dict[str, str]) -> None:
    path, manifest = file(named), _manifest()
    with _replacing(path) as part:
        np.savez_compressed(part, **arrays)
    size = {"rows": named.rows, "features": named.features, "n_train": named.n_train}
    entry = {"file": path.name, "sha256": digest(path), "bytes": path.stat().st_size} | size | {"sources": sources}
    with _replacing(_manifest_file()) as part:
        part.write(json.dumps(manifest | {named.name: entry}, indent=1).encode())


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Any]:
    """A file that takes the place of another when it is complete."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(part, path)


@contextlib.contextmanager
def _writable() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise DataError(f"the data folder {folder()} cannot be written: {problem.strerror or problem}") from None
