"""The fingerprint of the beginning of a file, by which a file is known again that has grown, or been replaced."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

_WHOLE = 1 << 24  # bytes at the beginning, all of which count
_EVERY, _SAMPLE = 1 << 20, 1 << 12  # after them, of every megabyte the first bytes
_LAST = 1 << 16  # and always the last bytes


class Fingerprint:
    """Of bytes that come one after the other: of the first 16 MB all, then 4 KB of every MB, and the last 64 KB.

    So a long file can be checked without reading all of it.

    Attributes
    ----------
    size : bytes so far.
    """

    def __init__(self) -> None:
        self._hash, self._tail, self.size = hashlib.sha256(), b"", 0

    def update(self, data: bytes) -> None:
        """Go on with these bytes."""
        for begin, end in _sampled(self.size, self.size + len(data)):
            self._hash.update(data[begin - self.size : end - self.size])
        self._tail = (self._tail + data)[-_LAST:] if len(data) < _LAST else data[-_LAST:]
        self.size += len(data)

    def digest(self) -> str:
        """The fingerprint so far."""
        last = self._hash.copy()
        last.update(self._tail)
        return last.hexdigest()

    def copy(self) -> Fingerprint:
        """Another one that goes on from here."""
        made = Fingerprint()
        made._hash, made._tail, made.size = self._hash.copy(), self._tail, self.size
        return made

    @classmethod
    def of(cls, file: Any, size: int, *, packed: bool) -> Fingerprint:
        """That of the first bytes of an open file; smaller than `size` if the file is shorter.

        `packed`: the file is decompressed while it is read, so that all of it must be read.
        """
        made = cls()
        file.seek(0)
        if packed:
            while made.size < size and (data := file.read(min(_EVERY, size - made.size))):
                made.update(data)
            return made
        there = file.seek(0, 2)
        made.size = min(size, there)
        for begin, end in _sampled(0, made.size):
            file.seek(begin)
            made._hash.update(file.read(end - begin))
        file.seek(max(0, made.size - _LAST))
        made._tail = file.read(min(_LAST, made.size))
        return made


def _sampled(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of these bytes that count."""
    if begin < _WHOLE:
        yield begin, min(end, _WHOLE)
    for start in range(max(_WHOLE, begin // _EVERY * _EVERY), end, _EVERY):
        if max(start, begin) < min(start + _SAMPLE, end):
            yield max(start, begin), min(start + _SAMPLE, end)
