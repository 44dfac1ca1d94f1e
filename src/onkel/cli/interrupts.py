"""Ctrl-C and SIGTERM during a run that keeps what it has learned."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType

_SAME = 1.0  # seconds within which a second signal is the first one, sent twice


class Interrupts:
    """Delays signals while examples are learned, so that the saved model and its place in the stream agree.

    The first signal raises KeyboardInterrupt at once or, while a block is learned, after that block. A second one, more
    than a second later, ends the run at once: what was not saved is lost.
    """

    def __init__(self) -> None:
        self.number = 0
        self._busy = False
        self._first = 0.0

    @property
    def status(self) -> int:
        """The exit status: 0, or 128 and the number of the signal."""
        return 128 + self.number if self.number else 0

    def __enter__(self) -> Interrupts:
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *problem: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.number:
            if time.monotonic() - self._first > _SAME:
                raise SystemExit(128 + number)  # nothing is saved
            return
        self.number, self._first = number, time.monotonic()
        if not self._busy:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def waiting(self, final: bool = False) -> Iterator[None]:
        """Within the block a signal is only noted. It takes effect at the end, unless the run ends there anyway."""
        self._busy = True
        yield
        self._busy = False
        if self.number and not final:
            raise KeyboardInterrupt
