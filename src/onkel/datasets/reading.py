"""Reading: a source that is read block by block, with a place from which reading can go on later.

A block that was handed out counts as read when it is confirmed, or when the next one is asked for. Before that it can
be given back, as a whole or from some row on: then what is known of the columns, and the place, are those of the rows
before. So whatever ends the work on a block, rows, columns and place agree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from onkel import native
from onkel.core.errors import DataError
from onkel.core.wording import counted
from onkel.datasets import delimited
from onkel.datasets.bad_rows import BadRow, as_csv
from onkel.datasets.fingerprint import Fingerprint
from onkel.datasets.lines import Lines, Place
from onkel.datasets.stream import not_finite
from onkel.datasets.tables import Block, Fault, Schema, Table
from onkel.datasets.text import Rows, TextError, parse_libsvm

ROWS = 8192  # most rows of a block
Span = tuple[int, int]  # where a row begins and ends in a text
NOTHING = Block(np.empty((0, 0)), np.empty(0))


class Parsed(NamedTuple):
    """What was found in a text.

    `rows` are the numbers of those of its records that became rows of the block, `faults` what is wrong with others,
    and `bad` where text is that is no record, and why. `size` is what was read of the text.
    """

    block: Block
    rows: Sequence[int] | NDArray[np.int64]
    faults: dict[int, Fault]
    spans: Callable[[], list[Span]]  # where the records are
    bad: list[tuple[Span, str]]
    size: int


class OtherFile(DataError):
    """The file is not the one that was read before."""


class Reading(Iterator[Block]):
    """The blocks of a source.

    Parameters
    ----------
    name : for messages.
    skip : whether bad rows are skipped. If not, the first one is an error, after the rows before it.

    Attributes
    ----------
    rows : the most rows of the next block.
    least : lines to wait for before the next block, unless the source ends.
    head : with what a file of kept bad rows begins.
    """

    def __init__(self, name: str, schema: Schema, *, skip: bool = False) -> None:
        self.name, self.schema, self.skip = name, schema, skip
        self.rows, self.least, self.head = ROWS, 1, b""
        self._before: Any = None  # the state before a block that is not confirmed
        self._problem: DataError | None = None
        self._refused: dict[int, str] = {}  # rows refused by whom they were handed to, by their place

    def __next__(self) -> Block:
        self.confirm()
        if self._problem is not None:
            raise self._problem
        self._prepare()
        self._before = self._state(), self.schema.mark()
        block = self._take(None)
        if self._problem is not None and not len(block.y):
            raise self._problem
        return block

    @property
    def waiting(self) -> int:
        """Bytes at the end of the file that may be only a part of a row, and wait for its end."""
        return 0

    @property
    def ends_badly(self) -> bool:
        """Whether a bad row follows, which is an error."""
        return self._problem is not None

    def confirm(self) -> None:
        """The last block has been used."""
        self._before = None

    def back(self) -> None:
        """Give the last block back, unless it is confirmed."""
        if self._before is not None:
            state, mark = self._before
            self._go_back(state)
            self.schema.back(mark)
            self._before = self._problem = None

    def cut(self, rows: int, reason: str | None = None) -> Block | None:
        """Confirm only so many rows of the last block, which are returned. With a reason, the next row is a bad row."""
        end, refused = self._end_of(rows), self._place_of(rows) if reason is not None else 0
        self.back()
        if reason is not None:
            self._refused[refused] = reason
        return self._take(end) if rows else None

    def refused(self, row: int, reason: str) -> BadRow:
        """A row of the last block as a bad row."""
        raise NotImplementedError

    @property
    def place(self) -> dict[str, Any]:
        """The place after the last block, as plain data, from which another reading can go on."""
        raise NotImplementedError

    def _prepare(self) -> None:
        """Wait until there is something to take."""

    def _take(self, end: int | None) -> Block:
        """The next block: of at most `rows` rows, or up to this end; StopIteration if there is none."""
        raise NotImplementedError

    def _end_of(self, rows: int) -> int:
        """The end of the first so many rows of the last block, for `_take`."""
        raise NotImplementedError

    def _place_of(self, row: int) -> int:
        """The place of a row of the last block."""
        raise NotImplementedError

    def _state(self) -> Any:
        raise NotImplementedError

    def _go_back(self, state: Any) -> None:
        raise NotImplementedError

    def _bad(self, row: BadRow) -> None:
        """Note that the first bad row is an error."""
        self._problem = DataError(f"{self.name}, {row}")


class Text(Reading):
    """Rows of text. What a format must know is in `_begin` and `_parsed`."""

    def __init__(self, name: str, lines: Lines, schema: Schema, *, skip: bool = False) -> None:
        super().__init__(name, schema, skip=skip)
        self.lines = lines
        self._taken = b""  # the text of the last block
        self._kept: Any = ()  # which of its records are rows of it
        self._spans: Callable[[], list[Span]] = list
        self._known = False  # whether `_begin` was done

    @property
    def place(self) -> dict[str, Any]:
        place, mark = self.lines.place, self.lines.fingerprint
        return place._asdict() | ({} if mark is None else {"fingerprint": mark.digest()})

    @property
    def waiting(self) -> int:
        return len(self.lines.there()) + self.lines.waiting if self.lines.ended else 0

    def go_to(self, place: dict[str, Any], file: Any, *, packed: bool) -> None:
        """Go on from a place of a reading of the same file; an error if what is before it has changed."""
        size = int(place["bytes"])
        there = Fingerprint.of(file, size, packed=packed)
        if there.size < size:
            raise OtherFile(f"{self.name} has {there.size:,} bytes, fewer than were read of it ({size:,})")
        if there.digest() != place["fingerprint"]:
            raise OtherFile(f"{self.name} has changed where it was read already, in its first {size:,} bytes")
        self.lines.go_to(Place(size, int(place["lines"])))
        self.lines.fingerprint = there

    def refused(self, row: int, reason: str) -> BadRow:
        begin, end = self._spans()[self._kept[row]]
        lines = self._before[0][0].lines + self._taken.count(b"\n", 0, begin)
        return BadRow(lines + 1, reason, None, self._taken[begin:end])

    def _state(self) -> Any:
        mark = self.lines.fingerprint
        self._taken = b""
        return self.lines.place, None if mark is None else mark.copy(), self._known

    def _go_back(self, state: Any) -> None:
        place, mark, self._known = state
        self.lines.give_back(self._taken, place, mark)

    def _end_of(self, rows: int) -> int:
        return int(self._spans()[self._kept[rows - 1]][1]) if rows else 0

    def _place_of(self, row: int) -> int:
        place: Place = self._before[0][0]
        return place.bytes + int(self._spans()[self._kept[row]][0])

    def _prepare(self) -> None:
        self.lines.wait_for(self.least)

    def _take(self, end: int | None) -> Block:
        lines = self.lines
        if lines.endless:
            return self._endless()
        most: int | None = self.rows
        while True:
            text = lines.there(most) if end is None else lines.there()[:end]
            if not text:
                raise StopIteration
            final = lines.final and len(text) == len(lines.there())
            if not self._known:
                first = lines.first_look()
                self._known = self._begin(first, lines.final and len(first) == len(lines.there()))
            found = self._parsed(text, final)
            if found.size:
                break
            if most is None and lines.ended:  # a record without its end
                raise StopIteration
            if most is None:
                lines.read_on()
            most = None
        wrong = [(found.spans()[i], fault) for i, fault in found.faults.items()]
        wrong += [(span, Fault(None, reason)) for span, reason in found.bad]
        wrong.sort(key=lambda each: each[0])
        bad = tuple(self._bad_row(text, span, fault) for span, fault in wrong)
        self._kept, self._spans = found.rows, found.spans
        self._taken = lines.take(found.size if self.skip or not wrong else wrong[0][0][0])
        if bad and not self.skip:
            self._bad(bad[0])
            return found.block
        return Block(found.block.X, found.block.y, found.block.rows, bad)

    def _bad_row(self, text: bytes, span: Span, fault: Fault) -> BadRow:
        line = self.lines.place.lines + text.count(b"\n", 0, span[0]) + 1
        return BadRow(line, fault.reason, fault.column, text[span[0] : span[1]])

    def _refusals(self, spans: Callable[[], list[Span]]) -> dict[int, Fault]:
        """Which of the records were refused."""
        if not self._refused:
            return {}
        here = {self.lines.place.bytes + begin: i for i, (begin, _) in enumerate(spans())}
        return {here[place]: Fault(None, why) for place, why in self._refused.items() if place in here}

    def _endless(self) -> Block:
        most = self.lines.longest >> 20
        row = BadRow(self.lines.place.lines + 1, f"no end of line within {most} MB; is this a text file?")
        if not self.skip:
            raise DataError(f"{self.name}, {row}")
        row = BadRow(row.number, row.reason, None, self.lines.drop_line())
        self._kept, self._spans = (), list
        self.confirm()  # such a line cannot be given back
        return Block(NOTHING.X, NOTHING.y, None, (row,))

    def _begin(self, text: bytes, final: bool) -> bool:
        """Find out what the first rows say about the others; False if there are none yet."""
        raise NotImplementedError

    def _parsed(self, text: bytes, final: bool) -> Parsed:
        """What a text holds; `final`: nothing follows it."""
        raise NotImplementedError


class Csv(Text):
    """Rows of a CSV file."""

    def __init__(
        self, name: str, lines: Lines, schema: Schema, *, named: bool = True, learning: bool = True, skip: bool = False
    ) -> None:
        super().__init__(name, lines, schema, skip=skip)
        while not lines.there().strip(b"\r\n") or lines.there().count(b'"') % 2:
            if lines.endless or not lines.read_on():
                break
        found = delimited.header(name, lines.there(), named)
        lines.take(found.size)
        self.separator, self.head = found.separator, found.text
        self.table = Table(name, found.names, schema, learning, skip)

    def _state(self) -> Any:
        return (*super()._state(), self.table.counts)

    def _go_back(self, state: Any) -> None:
        *state, self.table.counts = state
        super()._go_back(state)

    def _begin(self, text: bytes, final: bool) -> bool:
        found = delimited.records(text, self.separator, self.table, final=final, skip=True)
        if found.spans():
            self.table.begin(found.columns)
        return bool(found.spans())

    def _parsed(self, text: bytes, final: bool) -> Parsed:
        found = delimited.records(text, self.separator, self.table, final=final, skip=self.skip)
        if not self._known:
            return Parsed(NOTHING, (), {}, found.spans, found.bad, found.size)
        faults = self._refusals(found.spans)
        block, rows = self.table.block(found.columns, faults)
        return Parsed(block, rows, faults, found.spans, found.bad, found.size)


class Libsvm(Text):
    """Rows of a LIBSVM file. Its first rows tell the number of the first column, unless it is known."""

    def __init__(self, name: str, lines: Lines, schema: Schema, *, skip: bool = False) -> None:
        super().__init__(name, lines, schema, skip=skip)
        self.width = 0
        while len(lines.there()) < 3 and not lines.endless and lines.read_on():
            pass
        if lines.there().startswith(b"\xef\xbb\xbf"):
            lines.take(3)

    def _state(self) -> Any:
        return (*super()._state(), self.width)

    def _go_back(self, state: Any) -> None:
        *state, self.width = state
        super()._go_back(state)

    def _begin(self, text: bytes, final: bool) -> bool:
        if self.schema.base is None:
            rows, _, _ = _rows(text, 0, skip=True)
            if len(rows.columns):
                self.schema.base = int(rows.columns.min() > 0)
        return self.schema.base is not None

    def _parsed(self, text: bytes, final: bool) -> Parsed:
        rows, spans, bad = _rows(text, self.schema.base or 0, skip=self.skip)
        self.width = max(self.width, rows.width)
        n = len(rows.targets)
        faults = self._refusals(spans)
        X = scipy.sparse.csr_matrix((rows.values, rows.columns, rows.starts), shape=(n, self.width))
        if not faults:
            return Parsed(Block(X, rows.targets), range(n), faults, spans, bad, len(text))
        kept = np.array([i for i in range(n) if i not in faults], np.int64)
        return Parsed(Block(X[kept], rows.targets[kept]), kept, faults, spans, bad, len(text))


_FEW = 16  # lines


def _rows(text: bytes, base: int, *, skip: bool) -> tuple[Rows, Callable[[], list[Span]], list[tuple[Span, str]]]:
    """The rows of LIBSVM text, where they are, and what is wrong with others; unless these are skipped, the first ends
    them.
    """
    bad: list[tuple[Span, str]] = []
    rows = _joined(_parts(text, base, 0, bad))
    if bad and not skip:
        text = text[: bad[0][0][0]]
        rows = _joined(_parts(text, base, 0, []))
    wrong = {span for span, _ in bad}
    return rows, lambda: [span for span in _written(text) if span not in wrong], bad


def _parts(text: bytes, base: int, begin: int, bad: list[tuple[Span, str]]) -> list[Rows]:
    """Rows by the parser in C++; only the lines around those that it does not understand are read in Python."""
    found = native.parse_libsvm(text, base)
    if found is not None:
        return [Rows(*found)]
    lines = text.split(b"\n")
    if native.available() and len(lines) > _FEW:
        half = sum(len(line) + 1 for line in lines[: len(lines) // 2])
        return _parts(text[:half], base, begin, bad) + _parts(text[half:], base, begin + half, bad)
    wrong: list[TextError] = []
    rows = parse_libsvm(text, base, 0, wrong)
    for problem in wrong:
        at = begin + sum(len(line) + 1 for line in lines[: problem.line])
        bad.append(((at, min(at + len(lines[problem.line]) + 1, begin + len(text))), str(problem)))
    return [rows]


def _joined(parts: list[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    starts, size = [parts[0].starts[:1]], 0
    for part in parts:
        starts.append(part.starts[1:] + size)
        size += int(part.starts[-1])
    targets, values, columns = (np.concatenate([part[k] for part in parts]) for k in range(3))
    return Rows(targets, values, columns, np.concatenate(starts), max(part.width for part in parts))


def _written(text: bytes) -> list[Span]:
    """Where the lines are that are not empty, nor comments."""
    spans, begin = [], 0
    for line in text.split(b"\n"):
        if line.partition(b"#")[0].strip():
            spans.append((begin, min(begin + len(line) + 1, len(text))))
        begin += len(line) + 1
    return spans


# -- what is no text


class Batches(Reading):
    """Rows that come in batches of columns (Parquet, Arrow) or of matrices (npz, streams by name).

    Parameters
    ----------
    batches : Blocks, or columns of cells if there is a table.
    names : of the columns, if bad rows can be kept.
    """

    def __init__(
        self,
        name: str,
        batches: Iterator[Any],
        schema: Schema,
        *,
        table: Table | None = None,
        names: Sequence[str] = (),
        learning: bool = True,
        skip: bool = False,
        marked: bool = False,
    ) -> None:
        super().__init__(name, schema, skip=skip)
        self.table, self._batches, self._learning = table, batches, learning
        self._marks: dict[int, Fingerprint] | None = {} if marked else None  # of each column, of the rows so far
        self.head = as_csv(names) if names else b""
        self._batch: Any = None
        self._at = self._size = 0  # in the batch
        self.row = 0
        self._kept: Any = ()

    @property
    def place(self) -> dict[str, Any]:
        return {"row": self.row} | ({} if self._marks is None else {"fingerprint": self._fingerprint()})

    def _fingerprint(self) -> str:
        digests = [mark.digest() for _, mark in sorted((self._marks or {}).items())]
        return hashlib.sha256(" ".join(digests).encode()).hexdigest()

    def _step(self, size: int) -> None:
        """Go on by so many rows of the batch."""
        if self._marks is not None:
            for number, data in enumerate(_bytes_of(self._batch, slice(self._at, self._at + size))):
                self._marks.setdefault(number, Fingerprint()).update(data)
        self._at, self.row = self._at + size, self.row + size

    def go_to(self, place: dict[str, Any]) -> None:
        """Go on from a place of a reading of the same source; an error if what is before it has changed."""
        while self.row < int(place["row"]):
            try:
                self._prepare()
            except StopIteration:
                rows = counted(self.row, "row")
                raise OtherFile(f"{self.name} has {rows}, fewer than were read of it ({place['row']:,})") from None
            self._step(min(self._size - self._at, int(place["row"]) - self.row))
        if self._marks is not None and self._fingerprint() != place["fingerprint"]:
            raise OtherFile(f"{self.name} has changed where it was read already, in its first {place['row']:,} rows")

    def _prepare(self) -> None:
        while self._at == self._size:
            self._batch = next(self._batches)
            self._at = 0
            self._size = len(self._batch.y) if self.table is None else max(map(len, self._batch))

    def refused(self, row: int, reason: str) -> BadRow:
        return BadRow(self._place_of(row), reason, is_line=False)

    def _state(self) -> Any:
        marks = None if self._marks is None else {number: mark.copy() for number, mark in self._marks.items()}
        return self._at, self.row, None if self.table is None else self.table.counts, marks

    def _go_back(self, state: Any) -> None:
        self._at, self.row, counts, self._marks = state
        if self.table is not None:
            self.table.counts = counts

    def _end_of(self, rows: int) -> int:
        return int(self._kept[rows - 1]) + 1 if rows else 0

    def _place_of(self, row: int) -> int:
        return int(self._before[0][1]) + int(self._kept[row])

    def _take(self, end: int | None) -> Block:
        size = min(self.rows, self._size - self._at) if end is None else end
        part = slice(self._at, self._at + size)
        faults = {row - self.row: Fault(None, why) for row, why in self._refused.items() if row >= self.row}
        faults = {i: fault for i, fault in faults.items() if i < size}
        if self.table is None:
            block, cells = self._arrays(part, faults), self._cells
        else:
            columns = [column[part] if len(column) else column for column in self._batch]
            if self.schema.texts is None or self.schema.labels is None:
                self.table.begin(self._batch)
            block, self._kept = self.table.block(columns, faults)
            cells = self._row_cells
        if faults and not self.skip:
            size = min(faults)
        bad = tuple(
            BadRow(self.row + i, fault.reason, fault.column, as_csv(cells(self._at + i)), is_line=False)
            for i, fault in sorted(faults.items())
        )
        self._step(size)
        if bad and not self.skip:
            self._bad(bad[0])
            return block
        return Block(block.X, block.y, block.rows, bad)

    def _row_cells(self, i: int) -> list[Any]:
        return [column[i] if len(column) else None for column in self._batch]

    def _cells(self, i: int) -> list[Any]:
        X = self._batch.X[i : i + 1]
        return [*(X.toarray() if scipy.sparse.issparse(X) else X).ravel().tolist(), self._batch.y[i]]

    def _arrays(self, part: slice, faults: dict[int, Fault]) -> Block:
        X, y = self._batch.X[part], self._batch.y[part]
        for row, column, value in not_finite(X):
            reason = f"the value in column {column} (from 0) is {value}, not finite; fill it or remove the row"
            faults.setdefault(row, Fault(None, reason))
        if self._learning and y.dtype.kind == "f":
            for row in np.flatnonzero(~np.isfinite(y)).tolist():
                faults.setdefault(row, Fault(None, f"the target is {y[row]}, which is not finite; correct it"))
        if not faults:
            self._kept = range(len(y))
            return Block(X, y)
        there = np.ones(len(y), bool)
        there[sorted(faults)] = False
        if not self.skip:
            there[min(faults) :] = False
        rows = np.flatnonzero(there)
        self._kept = rows.tolist()
        return Block(X[rows], y[rows])


def _bytes_of(batch: Any, part: slice) -> Iterator[bytes]:
    """What stands in some rows of a batch: for each column, or for a block its values, their places and the targets."""
    columns = batch
    if isinstance(batch, Block):
        X = batch.X[part]
        columns = [X.data, X.indices, np.diff(X.indptr)] if scipy.sparse.issparse(X) else [X]
        columns, part = [*columns, batch.y[part]], slice(None)
    for column in columns:
        cells = column[part]
        texts = not isinstance(cells, np.ndarray) or cells.dtype.kind in "UO"
        yield "".join(f"{cell}\0" for cell in cells).encode() if texts else np.ascontiguousarray(cells).tobytes()
