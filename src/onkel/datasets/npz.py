"""npz files: features and targets as arrays, read as a whole or block by block."""

from __future__ import annotations

import contextlib
import io
import math
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from onkel.core.errors import DataError
from onkel.core.wording import listed
from onkel.datasets.stream import check_kind, check_numbers, check_shapes
from onkel.datasets.tables import Block

Array = NDArray[Any]

_MOST_PACKED = 1032  # bytes that one byte of deflate can stand for
_CSR = ("data", "indices", "indptr", "shape")


def read(name: str, file: Any, target: str) -> tuple[Any, Array, dict[str, Array]]:
    """Features, target, and the other arrays."""
    if bytes(file.peek(2)[:2]) != b"PK":
        raise DataError(f"{name} is not a usable npz file: it is no archive of arrays")
    size = _size(file)
    with _problems(name), np.load(file, allow_pickle=False) as archive:
        taken = _names(name, archive.files, target)
        for key in archive.files:
            _check_size(name, key, archive.zip, size)
        arrays = {key: archive[key] for key in archive.files}
    rest = {key: array for key, array in arrays.items() if key not in taken}
    if "X" in arrays:
        X = arrays["X"]
    else:
        X = _csr(name, (arrays["data"], arrays["indices"], arrays["indptr"]), tuple(arrays["shape"].ravel()))
    check_shapes(name, X.shape, arrays[target].shape)
    return X, arrays[target], rest


def _size(file: Any) -> int:
    """The number of bytes of an open file."""
    size = int(file.seek(0, io.SEEK_END))
    file.seek(0)
    return size


def _check_size(name: str, key: str, archive: zipfile.ZipFile, whole: int) -> None:
    """Refuse a header that promises more or less than the file of `whole` bytes has, before memory is asked for."""
    stored = archive.getinfo(f"{key}.npy" if f"{key}.npy" in archive.NameToInfo else key)
    if stored.compress_size > whole or stored.file_size > _MOST_PACKED * stored.compress_size + 1024:
        promised = f"array {key!r} is said to have {stored.file_size:,} bytes"
        raise DataError(f"{name}: {promised}, more than the file can hold; write or fetch it again")
    with archive.open(stored) as file:
        shape, _, dtype = _header(file)
        size = file.tell() + math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and size != stored.file_size:
        raise DataError(
            f"{name}: array {key!r} of shape {shape} needs {size:,} bytes, but the file has {stored.file_size:,}; "
            "write or fetch it again"
        )


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order by columns, and type of an array; the file is then at its first number."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    header: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(file)
    return header


def _csr(name: str, parts: tuple[Array, Array, Array], shape: tuple[int, ...]) -> Any:
    try:
        X = scipy.sparse.csr_matrix(parts, shape=shape)
        X.check_format()
    except (ValueError, TypeError) as problem:
        raise DataError(f"{name}: data, indices, indptr and shape make no CSR matrix: {problem}") from None
    return X


@contextlib.contextmanager
def _problems(name: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except Exception as problem:  # whatever a damaged archive makes of its readers
        raise DataError(f"{name} is not a usable npz file: {problem}") from None


def _names(name: str, there: Sequence[str], target: str) -> list[str]:
    """The names of the arrays to read: the target, and either X or the four parts of a CSR matrix."""
    known = listed([key if key.isprintable() else repr(key) for key in there])
    if target not in there:
        raise DataError(f"{name} has no array {target!r} for the target; its arrays are {known}")
    if "X" in there:
        return ["X", target]
    if not set(_CSR) <= set(there):
        raise DataError(f"{name} needs an array X, or {', '.join(_CSR)}; its arrays are {known}")
    return [*_CSR, target]


def blocks(name: str, file: Any, target: str, rows: int, learning: bool = True) -> Iterator[Block]:
    """Rows of an npz file: the matrix block by block; targets and row starts are in memory as a whole.

    Whether the numbers are finite is not checked.
    """
    size = _size(file)
    with _problems(name), zipfile.ZipFile(file) as archive, contextlib.ExitStack() as stack:

        def member(key: str) -> _Member:
            _check_size(name, key, archive, size)
            return _Member(name, key, stack.enter_context(archive.open(f"{key}.npy")))

        there = [key.removesuffix(".npy") for key in archive.namelist()]
        taken = _names(name, there, target)
        y = member(target).take()
        if learning:
            check_kind(name, y)
        if "X" in taken:
            X = member("X")
            check_shapes(name, X.shape, y.shape)
            take: Callable[[int], Any] = X.take
        else:
            take = _csr_rows(name, y.shape, *(member(key) for key in _CSR))
        for start in range(0, len(y), rows):
            part = y[start : start + rows]
            block = take(len(part))
            check_numbers(name, block)
            yield Block(block, part)


def _csr_rows(
    name: str, targets: tuple[int, ...], values: _Member, columns: _Member, starts: _Member, sizes: _Member
) -> Callable[[int], Any]:
    """A function that returns the next rows of a CSR matrix."""
    at, shape = starts.take(), tuple(sizes.take().ravel().tolist())
    check_shapes(name, shape, targets)
    stored = values.shape[0] if values.shape else 0
    whole = at.dtype.kind in "iu" and at.shape == (shape[0] + 1,) and (at[0], at[-1]) == (0, stored)
    if not (whole and np.all(at[1:] >= at[:-1])):
        raise DataError(f"{name}: indptr must hold {shape[0] + 1:,} whole numbers that rise from 0 to {stored:,}")
    done = 0

    def take(count: int) -> Any:
        nonlocal done
        ends = at[done : done + count + 1]
        size = int(ends[-1] - ends[0])
        done += count
        return _csr(name, (values.take(size), columns.take(size), ends - ends[0]), (count, shape[1]))

    return take


class _Member:
    """An array inside an npz file, read from its beginning in pieces."""

    def __init__(self, name: str, key: str, file: Any) -> None:
        self._file = file
        self.shape, fortran, self._dtype = _header(file)
        self._left = self.shape[0] if self.shape else 1
        if self._dtype.hasobject:
            raise DataError(f"{name}: array {key!r} holds objects; save numbers or texts")
        if fortran and len(self.shape) > 1:
            raise DataError(f"{name}: array {key!r} is stored by columns; save numpy.ascontiguousarray of it")

    def take(self, rows: int | None = None) -> Array:
        """The next rows, all that are left if None."""
        rows = self._left if rows is None else rows
        shape = (rows, *self.shape[1:]) if self.shape else ()
        size = int(np.prod(shape)) * self._dtype.itemsize
        data = self._file.read(size)
        if rows > self._left or len(data) < size:
            raise ValueError("an array is shorter than the others say")
        self._left -= rows
        return np.frombuffer(data, self._dtype).reshape(shape)
