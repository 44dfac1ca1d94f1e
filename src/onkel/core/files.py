"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A temporary file that replaces `path` if the block succeeds; otherwise `path` is unchanged."""
    temporary = path.with_name(f".{path.name[:100]}.{threading.get_ident()}.{os.getpid()}.onkel")
    try:
        with temporary.open("wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException as problem:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(problem, OSError) and problem.filename:  # name the file that was asked for
            raise type(problem)(problem.errno, problem.strerror, str(path)) from None
        raise


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote `path`."""
    for leftover in path.parent.glob(f".{escape(path.name[:100])}.*.onkel"):
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
