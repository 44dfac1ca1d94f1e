"""Data files, changed at random: CSV, LIBSVM, npz, Parquet, Arrow, Feather.

Each is refused in a sentence, or read. What another reader also reads (Python's csv, scikit-learn, NumPy, pyarrow) has
the same numbers.
"""

from __future__ import annotations

import csv
import io
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from watch import Unexpected

from onkel.datasets import DataError
from onkel.datasets.readers import chunks, read

ROWS = 12
WORDS = [b"nan", b"inf", b"-", b"1e999", b"0x10", b"1_0", b'"', b'""', b",", b";", b"\t", b"\n", b"\r\n", b"\r", b":",
         b"#", b"qid:1", b" ", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xc3\xa9", b"2147483647:1", b"-1:1", b"0:0", b"1:1",
         b"", b"1,2", b"99999999999999999999", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f"]  # fmt: skip


class DataFiles:
    """The target of the attack."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.folder = Path(tempfile.mkdtemp(prefix="onkel-attack-"))
        self.samples = list(samples())

    def __call__(self, case: int) -> str:
        rng = np.random.default_rng([self.seed, case])
        ending, data, compare = self.samples[rng.integers(len(self.samples))]
        path = self.folder / f"t{ending}"
        path.write_bytes(changed(data, rng, ending in (".csv", ".libsvm")))
        found = []
        for reading in (whole, blocks):
            try:
                found.append(reading(path, mixed=compare is None))
            except DataError as error:
                if path.name not in str(error) or len(str(error)) < len(path.name) + 20 or "\n" in str(error):
                    raise Unexpected(f"{reading.__name__} said: {error!r}") from error
        if not found:
            return "refused"
        if compare is not None:
            for X in found:
                compare(path, X)
        return "accepted"


def whole(path: Path, mixed: bool) -> Any:
    """The rows of the file, read at once."""
    more: Any = {"encode": "onehot", "missing": "mean"} if mixed else {}
    return read(path, target="y", **more).X if is_table(path) else read(path).X


def blocks(path: Path, mixed: bool) -> Any:
    """The rows of the file, read in blocks; of LIBSVM and of tables with texts the first block."""
    more: Any = {"encode": "hash", "missing": "drop"} if mixed else {}
    parts = [X for X, _ in (chunks(path, rows=5, target="y", **more) if is_table(path) else chunks(path, rows=5))]
    if mixed or path.suffix == ".libsvm":
        return parts[0]
    return sp.vstack(parts) if sp.issparse(parts[0]) else np.concatenate(parts)


def is_table(path: Path) -> bool:
    return path.suffix not in (".npz", ".libsvm")


def samples() -> Any:
    """Sound files: their ending, their bytes, and how to compare them (None: with texts, not compared)."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(ROWS, 3)), np.arange(ROWS) % 2
    columns = {"a": X[:, 0], "b": (100 * X[:, 1]).astype(int), "y": y, "c": X[:, 2].astype(np.float32)}
    numbers = pa.table(columns)
    texts = [None if i == 3 else "xyz"[i % 3] * (i % 4) for i in range(ROWS)]
    mixed = pa.table(
        columns | {"t": texts, "d": pa.array(texts).dictionary_encode(), "m": [None, 1.5] * (ROWS // 2), "z": y > 0}
    )
    for separator in ",;\t ":
        lines = [separator.join(("a", "b", "y", "c"))]
        lines += [separator.join(map(str, row)) for row in zip(*(v.tolist() for v in columns.values()), strict=True)]
        yield ".csv", "\n".join(lines).encode() + b"\n", same_csv
    yield ".csv", b'a,y,t\n1.5,0,"x, y"\n2,1,z\n,0,"a ""b"""\n', None
    sparse = io.BytesIO()
    dump_svmlight_file(sp.csr_array(X * (X > 0)), y, sparse, zero_based=False)
    yield ".libsvm", sparse.getvalue(), same_libsvm
    for packed in (np.savez, np.savez_compressed):
        stream = io.BytesIO()
        packed(stream, X=X, y=y)
        yield ".npz", stream.getvalue(), same_npz
        stream, csr = io.BytesIO(), sp.csr_array(X * (X > 0))
        packed(stream, data=csr.data, indices=csr.indices, indptr=csr.indptr, shape=csr.shape, y=y)
        yield ".npz", stream.getvalue(), None
    for table, compare in ((numbers, same_arrow), (mixed, None)):
        for compression in ("uncompressed", "lz4"):
            stream = io.BytesIO()
            pyarrow.feather.write_feather(table, stream, compression=compression)
            yield ".feather", stream.getvalue(), compare
        stream = io.BytesIO()
        with pyarrow.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table, max_chunksize=5)
        yield ".arrow", stream.getvalue(), compare
        for options in ({}, {"compression": "none", "use_dictionary": False}, {"data_page_version": "2.0"}):
            stream = io.BytesIO()
            pyarrow.parquet.write_table(table, stream, **options)
            yield ".parquet", stream.getvalue(), compare


def changed(data: bytes, rng: Any, text: bool) -> bytes:
    """The bytes after one to four changes."""
    made = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        choice, at = rng.random(), int(rng.integers(len(made) + 1))
        if choice < (0.1 if text else 0.45) and made:
            made[at % len(made)] ^= 1 << rng.integers(8)
        elif choice < 0.55:
            word = WORDS[rng.integers(len(WORDS))]
            made[at : at + (len(word) if rng.random() < 0.5 else 0)] = word
        elif choice < 0.65:
            del made[at : len(made) if rng.random() < 0.3 else at + int(rng.integers(1, 20))]
        elif choice < 0.75:
            made[at:at] = made[at : at + int(rng.integers(1, 60))]
        elif choice < 0.9:
            size = int(rng.choice([1, 2, 4, 8]))
            number = int(rng.choice([0, 1, -1, 127, 255, 2**15, 2**31 - 1, -(2**31), 2**40, 2**63 - 1]))
            made[at : at + size] = (number % 2 ** (8 * size)).to_bytes(size, "little")
        else:
            to = int(rng.integers(len(made) + 1))
            made[at : at + 8] = made[to : to + 8]
    return bytes(made)


def same(X: Any, other: Any, who: str) -> None:
    """Both are the same matrix."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    if X.shape != other.shape or not np.array_equal(X, other):
        raise Unexpected(f"{who} reads other numbers:\n{X!r}\n{other!r}")


def same_csv(path: Path, X: Any) -> None:
    """As Python's csv module and float read it; nothing is said of files that it does not read as numbers."""
    text = path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode()
    first = text.lstrip("\r\n").split("\n")[0]
    separator = max(",;\t", key=first.count)
    if separator not in first:
        return
    table = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True) if row]
    names = [name.strip() for name in table[0]]
    try:
        values = np.array([[float(cell) for j, cell in enumerate(row) if names[j] != "y"] for row in table[1:]])
    except ValueError:
        return
    same(X, values.astype(np.float64), "csv")


def same_libsvm(path: Path, X: Any) -> None:
    try:
        other = load_svmlight_file(str(path))[0]
    except (ValueError, OverflowError, UnicodeDecodeError, IndexError):
        return
    if other.shape[0] != X.shape[0]:  # the first block alone
        other = other[: X.shape[0]]
    a, b = sp.csr_array(X), sp.csr_array(other)
    for one in (a, b):
        one.sort_indices()
        one.eliminate_zeros()
    offset = 0 if len(a.indices) == 0 or a.indices.min() == b.indices.min() else a.indices.min() - b.indices.min()
    if not np.array_equal(a.data, b.data) or not np.array_equal(a.indices - offset, b.indices) or abs(offset) > 1:
        raise Unexpected("scikit-learn reads other numbers")


def same_npz(path: Path, X: Any) -> None:
    try:
        with np.load(path, allow_pickle=False) as archive:
            other = archive["X"]
    except Exception:
        return
    same(X, other.astype(np.float64), "NumPy")


def same_arrow(path: Path, X: Any) -> None:
    try:
        if path.suffix == ".parquet":
            table = pyarrow.parquet.read_table(path)
        elif path.suffix == ".feather":
            table = pyarrow.ipc.open_file(pa.OSFile(str(path))).read_all()
        else:
            table = pyarrow.ipc.open_stream(pa.OSFile(str(path))).read_all()
        table.validate(full=True)
        columns = [table[i].to_pylist() for i, name in enumerate(table.column_names) if name != "y"]
    except Exception:
        return
    if any(not isinstance(v, (int, float)) or not math.isfinite(v) for column in columns for v in column):
        return
    same(X, np.array(columns, dtype=np.float64).T.reshape(-1, len(columns)), "pyarrow")
