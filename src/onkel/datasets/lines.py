"""Lines of text, taken from the beginning of a file in pieces: always whole lines, with their place in the file."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onkel.datasets.fingerprint import Fingerprint

PIECE = 1 << 20  # bytes of text read at once
LONGEST = 1 << 26  # bytes; no line of text is longer


class Place(NamedTuple):
    """A place in the text: how many bytes and lines are before it."""

    bytes: int
    lines: int


class Lines:
    """The text of a file that is read from its beginning.

    Parameters
    ----------
    file : the open file, decompressed; `live` if it is standard input.
    growing : whether more may be appended to the file later. Then a last line without an end is not handed out.
    marked : whether to keep the fingerprint of what was taken.

    Attributes
    ----------
    place : where the text begins that was not taken yet.
    ended : whether the end of the file was reached.
    waiting : bytes of a last line without an end, which may come later.
    """

    def __init__(self, file: Any, *, growing: bool = False, marked: bool = False) -> None:
        self._file, self._growing = file, growing
        self._live = file.live  # then read what is available, without waiting for more
        self.longest = LONGEST
        self._text, self._begin, self._rest = b"", 0, b""
        self._ends: Any = None  # of the lines in the text, when they are asked for
        self._problem: BaseException | None = None
        self.place, self.ended, self.waiting = Place(0, 0), False, 0
        self.fingerprint = Fingerprint() if marked else None

    def there(self, most: int | None = None) -> bytes:
        """The text that was read and not taken yet: at most so many lines, None for all."""
        if most is None or self._text.count(b"\n", self._begin) <= most:
            return self._text[self._begin :] if self._begin else self._text
        if self._ends is None:
            self._ends = np.flatnonzero(np.frombuffer(self._text, np.uint8) == 10) + 1
        first = int(np.searchsorted(self._ends, self._begin, side="right"))
        return self._text[self._begin : int(self._ends[first + most - 1])]

    def read_on(self) -> bool:
        """Read more lines; False at the end of the file."""
        if self.ended:
            return False
        if self._problem is not None:
            raise self._problem
        parts, size = [self._rest], 0
        while size < PIECE:
            try:
                new = self._file.read1(PIECE - size)
            except Exception as problem:  # what came before is good
                self._problem = problem
                break
            self.ended = not new
            parts.append(new)
            size += len(new)
            if not new or (self._live and b"\n" in new):
                break
        found = b"".join(parts)
        if not size and self._problem is not None:
            self._rest = found
            raise self._problem
        cut = len(found) if self.ended and not self._growing else found.rfind(b"\n") + 1
        self._text = self._text[self._begin :] + found[:cut]
        self._begin, self._ends, self._rest = 0, None, found[cut:]
        self.waiting = len(self._rest) if self.ended else 0
        return not self.ended or cut > 0

    @property
    def final(self) -> bool:
        """Whether what is there is all that will ever come."""
        return self.ended and not self._growing

    @property
    def endless(self) -> bool:
        """Whether the next line is longer than any line of text."""
        return self._begin == len(self._text) and len(self._rest) > self.longest

    def take(self, size: int) -> bytes:
        """Take so many bytes of the text that is there."""
        taken = self._text[self._begin : self._begin + size]
        self._begin += size
        self._note(taken)
        self.place = Place(self.place.bytes + size, self.place.lines + taken.count(b"\n"))
        return taken

    def drop_line(self) -> bytes:
        """Leave out an endless line, which is not kept in memory; its beginning."""
        start, size = self._rest[:1000], 0
        while self._rest and b"\n" not in self._rest:
            size += len(self._rest)
            self._note(self._rest)
            self._rest = self._file.read1(PIECE)
        self.ended = not self._rest
        end = self._rest.find(b"\n") + 1
        self._note(self._rest[:end])
        self._text, self._begin, self._ends = b"", 0, None
        self.place = Place(self.place.bytes + size + end, self.place.lines + 1)
        self._rest = self._rest[end:]
        return start

    def give_back(self, text: bytes, place: Place, fingerprint: Fingerprint | None) -> None:
        """Undo what was taken since that place: this text."""
        self._text = text + self._text[self._begin :]
        self._begin, self._ends = 0, None
        self.place, self.fingerprint = place, fingerprint

    def go_to(self, place: Place) -> None:
        """Go on from a place further on in the file."""
        self._file.seek(place.bytes)
        self._text, self._begin, self._rest, self._ends = b"", 0, b"", None
        self.place, self.ended = place, False

    def _note(self, taken: bytes) -> None:
        if self.fingerprint is not None:
            self.fingerprint.update(taken)
