"""Files that are written completely or not at all, and are on the disk, not only in the system's memory.

The order is: write, sync the file, rename, sync the folder. So a name never stands for a file that a loss of power
could empty, and the rename is not lost once `replacing` has returned.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import BinaryIO


def previous(path: Path) -> Path:
    """Where `replacing` keeps the file that it has replaced, if it is asked to."""
    return path.with_name(f"{path.name}.previous")


@contextlib.contextmanager
def replacing(path: Path, *, keep: bool = False) -> Iterator[BinaryIO]:
    """A temporary file that replaces `path` if the block succeeds; otherwise `path` is unchanged.

    `keep`: the file that was there is kept as `previous(path)`. There is a whole file at `path` all the time.
    """
    temporary = _temporary(path)
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if keep and path.exists():
            _keep(path)
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except BaseException as problem:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(problem, OSError) and problem.filename:  # name the file that was asked for
            raise type(problem)(problem.errno, problem.strerror, str(path)) from None
        raise


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name[:100]}.{threading.get_ident()}.{os.getpid()}.onkel")


def _keep(path: Path) -> None:
    """Give the file its second name; where the file system has no links, its only one for a moment."""
    link = _temporary(previous(path))
    try:
        os.link(path, link)
    except OSError:
        os.replace(path, previous(path))
    else:
        os.replace(link, previous(path))


def _sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk, where the system can do that."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    try:
        number = os.open(folder, os.O_RDONLY)
    except PermissionError:  # one may write there, but not list
        return
    try:
        sync(number)
    finally:
        os.close(number)


def sync(number: int) -> None:
    """Put an open file or folder on the disk, unless it is of a kind for which there is no such thing."""
    try:
        os.fsync(number)
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            raise


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote `path`."""
    for leftover in path.parent.glob(f".{escape(path.name[:100])}.*.onkel"):  # also of `previous(path)`
        if not _is_running(leftover.name.split(".")[-2]):
            leftover.unlink(missing_ok=True)


def _is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except OSError:  # it is another user's
        pass
    return True
