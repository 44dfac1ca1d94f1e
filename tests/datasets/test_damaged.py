"""Damaged Parquet, Arrow, Feather and npz files: a sentence, and no byte outside their buffers is read."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np
import pytest

from onkel.datasets import DataError
from onkel.datasets.readers import chunks, read

ROWS = 100


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow")


def table(pa):
    return pa.table(
        {
            "a": ["xx", "yy"] * (ROWS // 2),
            "b": np.linspace(0, 1, ROWS),
            "c": pa.array(["p", "q"] * (ROWS // 2)).dictionary_encode(),
            "y": np.arange(ROWS) % 2,
        }
    )


def arrow(pa, kind):
    """The table as an Arrow file, a stream or a Feather file, not compressed."""
    stream = io.BytesIO()
    if kind == "feather":
        pytest.importorskip("pyarrow.feather").write_feather(table(pa), stream, compression="uncompressed")
    else:
        ipc = pytest.importorskip("pyarrow.ipc")
        with (ipc.new_file if kind == "file" else ipc.new_stream)(stream, table(pa).schema) as writer:
            writer.write_table(table(pa))
    return bytearray(stream.getvalue())


def refused(path, data, *words):
    """Both readers refuse the file in one line that names it."""
    path.write_bytes(data)
    for reading in (lambda: read(path, target="y", encode="onehot"), lambda: list(chunks(path, target="y"))):
        with pytest.raises(DataError, match=path.name) as caught:
            reading()
        said = str(caught.value)
        assert "\n" not in said and len(said) > 30
        assert all(word in said for word in words), said


@pytest.mark.parametrize("kind", ["feather", "file", "stream"])
@pytest.mark.parametrize("to", [100_000_000, 2**31 - 1, -1000])
def test_offsets_outside_the_buffer(pa, tmp_path, kind, to):
    """pyarrow alone reads foreign memory here, or dies."""
    data = arrow(pa, kind)
    at = data.find(struct.pack("<5i", 0, 2, 4, 6, 8))
    for k in range(3, ROWS + 1):
        data[at + 4 * k : at + 4 * k + 4] = struct.pack("<i", min(to + 2 * k, 2**31 - 1))
    refused(tmp_path / "t.arrow", data, "damaged", "from row 0")


@pytest.mark.parametrize("kind", ["feather", "file", "stream"])
def test_codes_outside_the_dictionary(pa, tmp_path, kind):
    data = arrow(pa, kind)
    at = data.rfind(struct.pack("<6i", 0, 1, 0, 1, 0, 1))
    assert at > 0
    data[at + 4 : at + 8] = struct.pack("<i", 1_000_000)
    refused(tmp_path / "t.arrow", data, "damaged")


def test_texts_that_are_no_utf8(pa, tmp_path):
    data = arrow(pa, "file")
    at = data.find(b"xxyyxxyy")
    data[at : at + 2] = b"\xff\xfe"
    refused(tmp_path / "t.arrow", data, "damaged", "UTF8")


@pytest.mark.parametrize("kind", ["feather", "file", "stream", "parquet"])
def test_files_cut_anywhere(pa, tmp_path, kind):
    """A stream of Arrow that is cut behind a whole block is a shorter stream."""
    if kind == "parquet":
        stream = io.BytesIO()
        pytest.importorskip("pyarrow.parquet").write_table(table(pa), stream)
        data, path = stream.getvalue(), tmp_path / "t.parquet"
    else:
        data, path = bytes(arrow(pa, kind)), tmp_path / "t.arrow"
    whole = 0
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        try:
            stream = read(path, target="y", encode="onehot")
        except DataError as error:
            assert "t." in str(error)  # noqa: PT017
        else:
            whole += 1
            assert len(stream.y) == ROWS
    assert whole == 0 or kind == "stream"


def test_a_column_that_is_neither_numbers_nor_texts(pa, tmp_path):
    """pyarrow cannot decode a dictionary of lists."""
    ipc = pytest.importorskip("pyarrow.ipc")
    lists = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([[1], [2]]))
    stream = io.BytesIO()
    with ipc.new_file(stream, pa.schema([("a", lists.type), ("y", pa.int64())])) as writer:
        writer.write_batch(pa.record_batch({"a": lists, "y": [0, 1]}))
    (tmp_path / "t.arrow").write_bytes(stream.getvalue())
    try:
        read(tmp_path / "t.arrow", target="y", encode="onehot")
    except DataError as error:
        assert "save the column as numbers or texts" in str(error)  # noqa: PT017


# -- npz


def archive(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def with_header(shape, rest=b"\0" * 800, declared=None):
    """An npz file whose array X says that it has this shape; `declared`: the size that the directory states."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + rest
    stream = io.BytesIO(archive(y=np.arange(ROWS) % 2))
    with zipfile.ZipFile(stream, "a") as file:
        file.writestr("X.npy", member)
        if declared:
            file.getinfo("X.npy").file_size = declared
    return stream.getvalue()


@pytest.mark.parametrize("shape", ["(100, 2)", "(100, 4000000000)", "(2147483648, 2147483648)", "(100,)  "])
def test_a_header_that_promises_another_size(tmp_path, shape):
    """Nothing is allocated for it: 3 TB would be asked for."""
    refused_npz(tmp_path, with_header(shape, rest=b"\0" * 808), "needs")


def test_a_directory_that_promises_more_than_the_file_has(tmp_path):
    data = with_header("(100, 4000000000)", declared=128 + 100 * 4_000_000_000 * 8)
    refused_npz(tmp_path, data, "more than the file can hold")


def test_npz_files_cut_or_flipped_anywhere(tmp_path):
    data = archive(X=np.ones((ROWS, 2)), y=np.arange(ROWS) % 2)
    rng = np.random.default_rng(0)
    for at in range(0, len(data), 11):
        refused_npz(tmp_path, data[:at])
        flipped = bytearray(data)
        flipped[at] ^= 1 << rng.integers(8)
        (tmp_path / "t.npz").write_bytes(flipped)
        try:
            read(tmp_path / "t.npz")
        except DataError as error:
            assert "t.npz" in str(error)  # noqa: PT017


def refused_npz(folder, data, *words):
    path = folder / "t.npz"
    path.write_bytes(data)
    for reading in (lambda: read(path), lambda: list(chunks(path))):
        with pytest.raises(DataError, match=r"t\.npz") as caught:
            reading()
        assert all(word in str(caught.value) for word in words), str(caught.value)
