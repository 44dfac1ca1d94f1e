"""Growing: an array to which entries are added. Its room doubles, so that adding costs what is added."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Growing:
    """An array that grows along its first axis.

    `plus` returns a longer one, and leaves this one as it was. Both may share their memory, in which the shorter one
    ends earlier; so only the longer one, or only the shorter one, should grow further.
    """

    def __init__(self, values: Array) -> None:
        self._room, self.n = values, len(values)

    @property
    def values(self) -> Array:
        """The entries, as a view."""
        return self._room[: self.n]

    def plus(self, more: Array) -> Self:
        """These entries, then `more`."""
        n, room = self.n + len(more), self._room
        if n > len(room):
            room = np.empty((max(n, 2 * len(room)), *more.shape[1:]), room.dtype)
            room[: self.n] = self.values
        room[self.n : n] = more
        return type(self)(room).first(n)

    def first(self, n: int) -> Self:
        """The first n entries."""
        first = type(self)(self._room)
        first.n = n
        return first
