"""Locks: any number of threads may predict with a model, or one may learn.

They wait for each other. A second thread that learns gets `Busy`, because nobody could say in which order they learn.
cpp/core/locks.hpp is the same for what is in C++.

A forked process has none of the other threads. Locks that these held are made anew there; a model in which one of them
was learning is refused, as it may be half changed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from onkel.core.errors import Busy

Method = TypeVar("Method", bound=Callable[..., Any])

FORKED = "this process was forked while another thread learned: copy or load the model instead"
_process = object()  # this one; another object in a forked process


def _forked() -> None:
    global _process
    _process = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Mutex:
    """One thread at a time; `with mutex:` works in a forked process, too."""

    def __init__(self) -> None:
        self.process, self.lock = _process, threading.RLock()

    def __enter__(self) -> None:
        if self.process is not _process:
            self.__init__()  # type: ignore[misc]
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


class ReadersWriterLock:
    """A lock that many threads share, or one has alone; made of plain locks.

    A thread that shares it takes one of seven locks, by its number; one that has it alone takes all. As nothing is
    counted, an interrupt at any moment leaves all as it was. `door` lets a thread that waits for all go first.
    """

    def __init__(self) -> None:
        self.process = _process
        self.door = threading.RLock()
        self.shares = tuple(threading.RLock() for _ in range(7))
        self.learner: int | None = None  # the thread that has it alone, or waits for that

    def __reduce__(self) -> Any:
        return ReadersWriterLock, ()  # a copy is free

    def enter_process(self) -> None:
        """Nobody holds it in a process that was just forked."""
        if self.learner is not None:
            raise Busy(FORKED)
        self.__init__()  # type: ignore[misc]


def exclusive(method: Method) -> Method:
    """A method that changes the object, which has a `lock`."""

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
    """A method that only reads the object, which has a `lock`; it calls no other such method of the same object."""

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
