"""npz files: features and targets as arrays, the whole at once or in blocks unpacked as they go."""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from onkel.stream import DataError, listed
from onkel.tables import Block

Array = NDArray[Any]

_CSR = ("data", "indices", "indptr", "shape")


def read(name: str, file: Any, target: str) -> tuple[Any, Array, dict[str, Array]]:
    if bytes(file.peek(2)[:2]) != b"PK":
        raise DataError(f"{name} is not a usable npz file: it is no archive of arrays")
    with _problems(name), np.load(file, allow_pickle=False) as archive:
        taken = _names(name, archive.files, target)
        arrays = {key: archive[key] for key in archive.files}
    rest = {key: array for key, array in arrays.items() if key not in taken}
    if "X" in arrays:
        return arrays["X"], arrays[target], rest
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    try:
        X = scipy.sparse.csr_matrix(parts, shape=tuple(arrays["shape"]))
        X.check_format()
    except ValueError as problem:
        raise DataError(f"{name}: data, indices, indptr and shape make no CSR matrix: {problem}") from None
    return X, arrays[target], rest


@contextlib.contextmanager
def _problems(name: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as problem:
        raise DataError(f"{name} is not a usable npz file: {problem}") from None


def _names(name: str, there: Sequence[str], target: str) -> list[str]:
    """The arrays to take: the target and either X or the four parts of a CSR matrix."""
    if target not in there:
        raise DataError(f"{name} has no array {target!r} for the target; its arrays are {listed(list(there))}")
    if "X" in there:
        return ["X", target]
    if not set(_CSR) <= set(there):
        raise DataError(f"{name} needs an array X, or {', '.join(_CSR)}; its arrays are {listed(list(there))}")
    return [*_CSR, target]


def blocks(name: str, file: Any, target: str, rows: int) -> Iterator[Block]:
    """Rows of an npz file; the matrix is unpacked as it goes, targets and row starts are held whole."""
    with _problems(name), zipfile.ZipFile(file) as archive, contextlib.ExitStack() as stack:

        def member(key: str) -> _Member:
            return _Member(name, key, stack.enter_context(archive.open(f"{key}.npy")))

        there = [key.removesuffix(".npy") for key in archive.namelist()]
        taken = _names(name, there, target)
        y = member(target).take()
        if "X" in taken:
            X = member("X")
            for start in range(0, len(y), rows):
                part = y[start : start + rows]
                yield Block(X.take(len(part)), part)
            return
        values, columns, starts, shape = (member(key) for key in _CSR)
        at, width = starts.take(), int(shape.take()[1])
        for start in range(0, len(y), rows):
            part = y[start : start + rows]
            ends = at[start : start + len(part) + 1]
            count = int(ends[-1] - ends[0])
            parts = (values.take(count), columns.take(count), ends - ends[0])
            yield Block(scipy.sparse.csr_matrix(parts, shape=(len(part), width)), part)


class _Member:
    """An array inside an npz file, taken from its beginning in pieces."""

    def __init__(self, name: str, key: str, file: Any) -> None:
        self._file = file
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self._shape, fortran, self._dtype = header(file)
        self._left = self._shape[0] if self._shape else 1
        if self._dtype.hasobject:
            raise DataError(f"{name}: array {key!r} holds objects; save numbers or texts")
        if fortran and len(self._shape) > 1:
            raise DataError(f"{name}: array {key!r} is stored by columns; save numpy.ascontiguousarray of it")

    def take(self, rows: int | None = None) -> Array:
        """The next rows, all that are left if None."""
        rows = self._left if rows is None else rows
        shape = (rows, *self._shape[1:])
        size = int(np.prod(shape)) * self._dtype.itemsize
        data = self._file.read(size)
        if rows > self._left or len(data) < size:
            raise ValueError("an array is shorter than the others say")
        self._left -= rows
        return np.frombuffer(data, self._dtype).reshape(shape)
