"""Locks: several threads may predict with a model, or one may learn.

Predictions and learning wait for each other. A second thread that learns gets `Busy`, as the order of the rows would be
undefined. `cpp/core/locks.hpp` does the same for models in C++. In Python at most seven threads predict at once.

In a forked process the other threads do not exist, so the locks that they held are replaced by new ones. If another
thread was learning at the fork, the model may be half-updated, and its use raises `Busy`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from onkel.core.errors import Busy

Method = TypeVar("Method", bound=Callable[..., Any])

FORKED = "this process was forked while another thread learned: load the model from a file, or copy it before the fork"
_process = object()  # identifies this process; a forked process has another object


def _forked() -> None:
    global _process
    _process = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Mutex:
    """A lock for one thread at a time; `with mutex:` also works in a forked process."""

    def __init__(self) -> None:
        self.process, self.lock = _process, threading.RLock()

    def __enter__(self) -> None:
        if self.process is not _process:
            self.__init__()  # type: ignore[misc]
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


class ReadersWriterLock:
    """A readers-writer lock, made of plain locks.

    A reader takes one of seven locks, chosen by the number of its thread, so at most seven read at once; a writer takes
    all of them. As nothing is counted, an interrupt at any moment leaves the locks as they were. `door` gives a waiting
    writer precedence.
    """

    def __init__(self) -> None:
        self.process = _process
        self.door = threading.RLock()
        self.shares = tuple(threading.RLock() for _ in range(7))
        self.learner: int | None = None  # the thread that learns, or waits for this

    def __reduce__(self) -> Any:
        return ReadersWriterLock, ()  # the copy of a lock is not held by anyone

    def enter_process(self) -> None:
        """Reset the lock in a forked process; raises Busy if another thread was learning."""
        if self.learner is not None:
            raise Busy(FORKED)
        self.__init__()  # type: ignore[misc]


def exclusive(method: Method) -> Method:
    """Decorator for methods that change an object which has a `lock`."""

    @wraps(method)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        lock: ReadersWriterLock = self.lock
        if lock.process is not _process:
            lock.enter_process()
        thread = threading.get_ident()
        if lock.learner not in (None, thread):
            raise Busy("the model is learning in another thread: wait for it")
        lock.learner = thread
        try:
            a, b, c, d, e, f, g = lock.shares
            with lock.door, a, b, c, d, e, f, g:
                return method(self, *args, **kwargs)
        finally:
            lock.learner = None

    return cast(Method, alone)


def shared(method: Method) -> Method:
    """Decorator for methods that only read an object which has a `lock`.

    They must not call each other: if a writer comes to wait between the two calls, the inner one waits for the writer,
    and the writer for the outer one.
    """

    @wraps(method)
    def together(self: Any, *args: Any, **kwargs: Any) -> Any:
        lock: ReadersWriterLock = self.lock
        if lock.process is not _process:
            lock.enter_process()
        with lock.door:  # a thread that waits to learn goes first
            pass
        with lock.shares[threading.get_ident() % len(lock.shares)]:
            return method(self, *args, **kwargs)

    return cast(Method, together)
