"""Turns: any number of threads may predict with a model, or one may learn.

They wait for each other; a second one that learns is refused, since nobody could say what it would learn from.
src/turns.hpp says the same of what is in C++.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


class Turns:
    """Who uses a model now."""

    def __init__(self) -> None:
        self._changes = threading.Condition()
        self._learns: int | None = None  # the thread
        self._predict = 0  # how many

    def __reduce__(self) -> Any:
        return Turns, ()  # nobody uses a copy yet

    @contextmanager
    def learn(self) -> Iterator[None]:
        """The time to learn in: from now on no other thread begins, and those that predict have ended."""
        with self._changes:
            if self._learns is not None:
                raise RuntimeError("the model is learning in another thread: wait for it")
            self._learns = threading.get_ident()
        try:
            with self._changes:
                self._changes.wait_for(lambda: self._predict == 0)
            yield
        finally:
            with self._changes:
                self._learns = None
                self._changes.notify_all()

    @contextmanager
    def predict(self) -> Iterator[None]:
        """The time to predict in: nobody learns, unless it is this very thread."""
        if self._learns == threading.get_ident():
            yield
            return
        with self._changes:
            self._changes.wait_for(lambda: self._learns is None)
            self._predict += 1
        try:
            yield
        finally:
            with self._changes:
                self._predict -= 1
                self._changes.notify_all()


def learns(method: Method) -> Method:
    """A method that changes what has `turns`."""
    return _in_turn(method, Turns.learn)


def predicts(method: Method) -> Method:
    """A method that only looks at what has `turns`."""
    return _in_turn(method, Turns.predict)


def _in_turn(method: Method, turn: Callable[[Turns], AbstractContextManager[None]]) -> Method:
    @wraps(method)
    def in_turn(self: Any, *args: Any, **kwargs: Any) -> Any:
        with turn(self.turns):
            return method(self, *args, **kwargs)

    return cast(Method, in_turn)
