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
        self._ends = np.zeros(0, bool)  # of each byte of the text, whether a line ends there
        self._problem: BaseException | None = None
        self.place, self.ended, self.waiting = Place(0, 0), False, 0
        self.fingerprint = Fingerprint() if marked else None

    def there(self, most: int | None = None) -> bytes:
        """The text that was read and not taken yet: at most so many lines, None for all."""
        if most is None or self._lines(self._begin) <= most:
            return self._text[self._begin :]
        return self._text[self._begin : self._end_of_line(most)]

    def first_look(self) -> bytes:
        """The whole lines of about the first piece of the text that is there."""
        text = self._text[self._begin :]
        return text if len(text) <= PIECE else text[: text.find(b"\n", PIECE) + 1] or text

    def _lines(self, begin: int, end: int | None = None) -> int:
        """How many lines end in a part of the text."""
        return int(np.count_nonzero(self._ends[begin:end]))

    def _end_of_line(self, number: int) -> int:
        """Where the line of that number ends, counted from 1 in what is there: found by bisection, as it is fast."""
        begin, end = self._begin, len(self._text)
        while end - begin > 4096:
            half = (begin + end) // 2
            if (before := self._lines(begin, half)) < number:
                begin, number = half, number - before
            else:
                end = half
        return begin + int(np.flatnonzero(self._ends[begin:end])[number - 1]) + 1

    def _set(self, text: bytes) -> None:
        """Go on with this text, of which nothing is taken."""
        self._text, self._begin = text, 0
        self._ends = np.frombuffer(text, np.uint8) == ord("\n")

    def wait_for(self, lines: int) -> None:
        """Read until so many lines are there, and from a file a piece; or up to its end."""
        piece = 0 if self._live else PIECE
        while not self.endless and (self._size < piece or self._lines(self._begin) < lines):
            if not self.read_on():
                break

    @property
    def _size(self) -> int:
        """Bytes that were read and not taken."""
        return len(self._text) - self._begin + len(self._rest)

    def read_on(self) -> bool:
        """Read more lines; False at the end of the file. An error of reading is raised when all before it is taken."""
        if self.ended:
            return False
        if self._problem is not None:
            if self._begin < len(self._text):
                return False
            raise self._problem
        parts, size = [self._text[self._begin :], self._rest], 0
        wanted = PIECE if self._size >= PIECE else PIECE - self._size
        while size < wanted:
            try:
                new = self._file.read1(wanted - size)
            except Exception as problem:  # what came before is good
                self._problem = problem
                break
            self.ended = not new
            parts.append(new)
            size += len(new)
            if not new or (self._live and b"\n" in new):
                break
        if not size and self._problem is not None:
            return self.read_on()
        found = b"".join(parts)
        cut = len(found) if self.ended and not self._growing else found.rfind(b"\n") + 1
        before = len(parts[0])
        self._set(found[:cut])
        self._rest = found[cut:]
        self.waiting = len(self._rest) if self.ended else 0
        return not self.ended or cut > before

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
        begin, end = self._begin, self._begin + size
        taken = self._text[begin:end]
        self._begin = end
        self._note(taken)
        self.place = Place(self.place.bytes + size, self.place.lines + self._lines(begin, end))
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
        self._set(b"")
        self.place = Place(self.place.bytes + size + end, self.place.lines + 1)
        self._rest = self._rest[end:]
        return start

    def give_back(self, text: bytes, place: Place, fingerprint: Fingerprint | None) -> None:
        """Undo what was taken since that place: this text."""
        self._set(text + self._text[self._begin :])
        self.place, self.fingerprint = place, fingerprint

    def go_to(self, place: Place) -> None:
        """Go on from a place further on in the file."""
        self._file.seek(place.bytes)
        self._set(b"")
        self._rest = b""
        self.place, self.ended = place, False

    def _note(self, taken: bytes) -> None:
        if self.fingerprint is not None:
            self.fingerprint.update(taken)
