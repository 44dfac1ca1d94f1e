"""Turns: any number of threads may predict with a model, or one may learn.

Readers and the writer wait for each other; a second writer gets `Busy`, because nobody could say in which order it
learns.
cpp/core/locks.hpp says the same of what is in C++.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from onkel.core.errors import Busy

Method = TypeVar("Method", bound=Callable[..., Any])


class Turns:
    """A lock for many readers or one writer, made of plain locks.

    A reader takes one of seven, by the number of its thread; the writer takes all. Nothing is counted, so that an
    interrupt at any moment leaves all as it was. `door` makes new readers wait for a writer that waits.
    """

    def __init__(self) -> None:
        self.door = threading.RLock()
        self.readers = tuple(threading.RLock() for _ in range(7))
        self.learner: int | None = None  # the thread

    def __reduce__(self) -> Any:
        return Turns, ()  # nobody uses a copy yet


def learns(method: Method) -> Method:
    """A method that changes what has `turns`."""

    @wraps(method)
    def in_turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        turns: Turns = self.turns
        if turns.learner not in (None, threading.get_ident()):
            raise Busy("the model is learning in another thread: wait for it")
        a, b, c, d, e, f, g = turns.readers
        with turns.door, a, b, c, d, e, f, g:
            turns.learner = threading.get_ident()
            try:
                return method(self, *args, **kwargs)
            finally:
                turns.learner = None

    return cast(Method, in_turn)


def predicts(method: Method) -> Method:
    """A method that only looks at what has `turns`; it calls no other such method of the same object."""

    @wraps(method)
    def in_turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        turns: Turns = self.turns
        with turns.door:  # not before who waits to learn
            pass
        with turns.readers[threading.get_ident() % len(turns.readers)]:
            return method(self, *args, **kwargs)

    return cast(Method, in_turn)
