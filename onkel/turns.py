"""Turns: any number of threads may predict with a model, or one may learn.

They wait for each other; a second one that learns is refused, since nobody could say what it would learn from.
src/turns.hpp says the same of what is in C++.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


class Turns:
    """Seven rooms behind a door: who predicts goes through it into one of them, who learns shuts it and has them all.

    Nothing is counted, so that an interrupt at any moment leaves all as it was.
    """

    def __init__(self) -> None:
        self.door = threading.RLock()
        self.rooms = tuple(threading.RLock() for _ in range(7))
        self.learner: int | None = None  # the thread

    def __reduce__(self) -> Any:
        return Turns, ()  # nobody uses a copy yet


def learns(method: Method) -> Method:
    """A method that changes what has `turns`."""

    @wraps(method)
    def in_turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        turns: Turns = self.turns
        if turns.learner not in (None, threading.get_ident()):
            raise RuntimeError("the model is learning in another thread: wait for it")
        a, b, c, d, e, f, g = turns.rooms
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
        with turns.rooms[threading.get_ident() % len(turns.rooms)]:
            return method(self, *args, **kwargs)

    return cast(Method, in_turn)
