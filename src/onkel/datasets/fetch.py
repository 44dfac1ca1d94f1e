"""Downloads, which are resumed where they stopped, and verified; the file appears only when it is complete."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from onkel.core.errors import DataError

Progress = Callable[[str, int, int | None], None]  # address, bytes here, bytes in all (None: not known)

_AT_ONCE = 1 << 16
_PATIENCE = 30.0  # seconds without a byte


def download(url: str, path: Path, *, sha256: str | None = None, progress: Progress | None = None) -> str:
    """Bring a file here and return its checksum.

    What has arrived is kept beside `path` (.part) until it is complete; the next call continues from there, if the
    server allows it and its file is still the same.

    Parameters
    ----------
    url : where from; http, https or file.
    path : the file to write; it appears only when it is complete and verified.
    sha256 : the checksum it must have; None: any.
    progress : called with the address, the bytes that are here, and those expected if that is known.
    """
    part, tag = path.with_name(path.name + ".part"), path.with_name(path.name + ".part.tag")
    with _told(url, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _receive(url, part, tag, progress or (lambda url, here, expected: None))
        found = digest(part)
        if sha256 is not None and found != sha256:
            part.unlink()
            tag.unlink(missing_ok=True)
            raise DataError(
                f"{url} is not the file it should be: its sha256 is {found}, not {sha256}; nothing was kept. "
                "Try again; if it stays so, the file was changed at its source"
            )
        os.replace(part, path)
        tag.unlink(missing_ok=True)
    return found


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _receive(url: str, part: Path, tag: Path, progress: Progress) -> None:
    """Download the rest of the .part file; start over if the server's file has changed."""
    here = part.stat().st_size if part.exists() and tag.exists() else 0
    known = tag.read_text(encoding="utf-8") if here else ""
    request = urllib.request.Request(url, headers={"User-Agent": "onkel", "Accept-Encoding": "identity"})
    if here:
        request.add_header("Range", f"bytes={here}-")
        request.add_header("If-Range", known)
    try:
        answer: Any = urllib.request.urlopen(request, timeout=_PATIENCE)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not here:
            raise
        part.unlink()  # it is longer than the file at the server
        return _receive(url, part, tag, progress)
    with answer:
        here = here if answer.status == 206 else 0
        length = answer.headers.get("Content-Length")
        expected = None if length is None else here + int(length)
        _remember(tag, answer.headers)
        with part.open("r+b" if here else "wb") as file:
            file.seek(here)
            while data := answer.read(_AT_ONCE):
                file.write(data)
                here += len(data)
                progress(url, here, expected)
    if expected is not None and here != expected:
        raise http.client.IncompleteRead(b"", expected - here)


def _remember(tag: Path, headers: Any) -> None:
    """Store the tag by which the server identifies this version of the file; without one, a download is not resumed."""
    mark = headers.get("ETag") or headers.get("Last-Modified")
    if mark and not mark.startswith("W/"):
        tag.write_text(mark, encoding="utf-8")
    else:
        tag.unlink(missing_ok=True)


@contextlib.contextmanager
def _told(url: str, path: Path) -> Iterator[None]:
    """Turn errors of the network and of files into a DataError with one sentence."""
    try:
        yield
    except urllib.error.HTTPError as error:
        raise DataError(f"{url} cannot be fetched: the server answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise DataError(f"{url} cannot be reached ({error.reason}); is there a network?") from None
    except (http.client.HTTPException, TimeoutError, ConnectionError):
        raise DataError(
            f"{url} stopped in the middle; what has arrived is kept, and the next try continues if the server allows it"
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from None
