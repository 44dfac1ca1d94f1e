"""Downloads from a server of our own: resumed, verified, whole or not at all; and the data folder they fill."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import io
import json
import socket
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from onkel import datasets
from onkel.datasets import DataError, sources
from onkel.datasets.fetch import download
from onkel.datasets.sources import PaperSet, Source


class Server(http.server.ThreadingHTTPServer):
    """Files by name, with ranges; `cut` ends an answer after so many bytes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.cut: int | None = None
        self.ranges = True
        self.version = "1"
        self.asked: list[str | None] = []

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        data = self.server.files.get(self.path[1:])
        self.server.asked.append(self.headers["Range"])
        if data is None:
            self.send_error(404)
            return
        tag = f'"{self.server.version}"'
        start = 0
        if self.server.ranges and self.headers["Range"] and self.headers["If-Range"] == tag:
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        if start > len(data):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:][: self.server.cut])

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as one:
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield one
        one.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONKEL_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


CONTENT = np.random.default_rng(0).bytes(300_000)
SHA = hashlib.sha256(CONTENT).hexdigest()


# -- one file


def test_a_download_is_verified_and_tells_its_progress(server: Server, tmp_path: Path) -> None:
    server.files["x"] = CONTENT
    told: list[tuple[str, int, int | None]] = []
    path = tmp_path / "new" / "x"
    assert download(server.url("x"), path, sha256=SHA, progress=lambda *now: told.append(now)) == SHA
    assert path.read_bytes() == CONTENT
    assert told[-1] == (server.url("x"), 300_000, 300_000) and told == sorted(told)
    assert [file.name for file in path.parent.iterdir()] == ["x"]


def test_what_was_interrupted_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.files["x"], server.cut = CONTENT, 100_000
    path = tmp_path / "x"
    for _ in range(2):
        with pytest.raises(DataError, match="stopped in the middle; what has arrived is kept"):
            download(server.url("x"), path, sha256=SHA)
        assert not path.exists()
    server.cut = None
    download(server.url("x"), path, sha256=SHA)
    assert path.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-", "bytes=200000-"]


def test_an_interruption_from_here_can_be_resumed(server: Server, tmp_path: Path) -> None:
    server.files["x"] = CONTENT

    def stop(url: str, here: int, expected: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(server.url("x"), tmp_path / "x", progress=stop)
    assert not (tmp_path / "x").exists()
    download(server.url("x"), tmp_path / "x", sha256=SHA)
    assert server.asked[1] is not None and (tmp_path / "x").read_bytes() == CONTENT


@pytest.mark.parametrize("what", ["the file changed", "no ranges", "the part is too long", "no mark"])
def test_what_cannot_be_resumed_starts_over(server: Server, tmp_path: Path, what: str) -> None:
    server.files["x"], server.cut = bytes(300_000), 100_000
    with pytest.raises(DataError):
        download(server.url("x"), tmp_path / "x")
    server.files["x"], server.cut = CONTENT, None
    if what == "the part is too long":
        (tmp_path / "x.part").write_bytes(bytes(400_000))
    elif what == "no mark":
        (tmp_path / "x.part.tag").unlink()
    else:
        server.version, server.ranges = "2", what != "no ranges"
    download(server.url("x"), tmp_path / "x", sha256=SHA)
    assert (tmp_path / "x").read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(server: Server, tmp_path: Path) -> None:
    server.files["x"] = CONTENT
    (tmp_path / "x").write_bytes(b"the old one")
    with pytest.raises(DataError, match=f"its sha256 is {SHA}, not 0000; nothing was kept"):
        download(server.url("x"), tmp_path / "x", sha256="0000")
    assert (tmp_path / "x").read_bytes() == b"the old one"
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


def test_no_network_no_file_no_room(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the server answers 404 Not Found"):
        download(server.url("nothing"), tmp_path / "x")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(DataError, match=r"cannot be reached \(.*refused.*\); is there a network\?"):
            download(f"http://127.0.0.1:{free.getsockname()[1]}/x", tmp_path / "x")
    with pytest.raises(DataError, match=r"no-such-host.invalid/x cannot be reached"):
        download("http://no-such-host.invalid/x", tmp_path / "x")
    server.files["x"] = CONTENT
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        download(server.url("x"), tmp_path / "file" / "x")


# -- a set


def published(server: Server, monkeypatch: pytest.MonkeyPatch, entry: PaperSet) -> None:
    """The set is known, and its files are on our server."""
    local = [dataclasses.replace(s, url=server.url(s.url.rpartition("/")[2])) for s in entry.sources]
    monkeypatch.setitem(sources.SETS, entry.name, dataclasses.replace(entry, sources=tuple(local)))


SMALL = PaperSet("w7a", "classification", 4, 3, 3, "small", (Source("w7a"), Source("w7a.t")), sparse=True)
TEXTS = {"w7a": b"+1 1:1 3:2\n-1 2:1\n-1\n", "w7a.t": b"1 3:0.5\n"}


def test_a_set_is_fetched_once_and_loaded(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published(server, monkeypatch, SMALL)
    server.files |= TEXTS
    assert not datasets.is_here("w7a")
    with pytest.raises(DataError, match=r"w7a is not in the data folder .*data; onkel data fetch w7a"):
        datasets.load("w7a")
    assert datasets.fetch("w7a") == folder / "w7a.npz"
    assert datasets.is_here("w7a")
    stream = datasets.load("w7a")
    np.testing.assert_array_equal(stream.X.toarray(), [[1, 0, 2], [0, 1, 0], [0, 0, 0], [0, 0, 0.5]])
    assert (stream.y.tolist(), stream.n_train, stream.name) == ([1, -1, -1, 1], 3, "w7a")
    assert (stream.train.y.tolist(), stream.test.y.tolist()) == ([1, -1, -1], [1])
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "w7a.npz"]


def test_the_first_download_is_trusted_and_later_ones_compared(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(server, monkeypatch, SMALL)
    server.files |= TEXTS
    datasets.fetch("w7a")
    recorded = json.loads((folder / "manifest.json").read_text())["w7a"]["sources"]
    assert recorded == {server.url(name): hashlib.sha256(text).hexdigest() for name, text in TEXTS.items()}
    datasets.fetch("w7a")  # the same again
    server.files["w7a.t"] = b"-1 3:0.5\n"
    with pytest.raises(DataError, match=r"w7a.t is not the file it should be"):
        datasets.fetch("w7a")
    assert datasets.load("w7a").y.tolist() == [1, -1, -1, 1]


def test_damage_in_the_folder_is_noticed(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published(server, monkeypatch, SMALL)
    server.files |= TEXTS
    path = datasets.fetch("w7a")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"w7a.npz is damaged: its checksum is not that of .*manifest.json"):
        datasets.load("w7a")
    (folder / "manifest.json").write_text("{")
    with pytest.raises(DataError, match=r"manifest.json is damaged"):
        datasets.load("w7a")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("w7a.t", b"1 3:0.5\n1 3:1\n", "hold at least 5 rows and 3 features, not 4 rows and 3 features"),
        ("w7a.t", b"1 4:0.5\n", "hold at least 4 rows and 4 features"),
        ("w7a", b"+1 1:1 3:2\n-1 2:1\n", r"hold 2 \+ 1 rows, not 4 rows and 3 features, 3 of them for training"),
        ("w7a", b"<html>sorry</html>\n", "line 1: the target, '<html>sorry</html>', is not a number"),
    ],
)
def test_files_that_are_not_the_set(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: bytes, words: str
) -> None:
    published(server, monkeypatch, SMALL)
    server.files |= TEXTS | {name: text}
    with pytest.raises(DataError, match=words):
        datasets.fetch("w7a")
    assert not datasets.is_here("w7a") and not list(folder.iterdir())


def packed(kind: str, text: bytes) -> bytes:
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("inner.data", text)
    else:
        with tarfile.open(fileobj=out, mode="w:gz") as tar:
            info = tarfile.TarInfo("inner.data")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return out.getvalue()


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_tables_archives_and_labels(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    inner = Source("m", "table", "3", member="inner.data")
    entry = PaperSet("magic04", "classification", 2, 2, None, "small", (inner,), (("g", 1), ("h", -1)))
    published(server, monkeypatch, entry)
    server.files["m"] = packed(kind, b"1.5,2,g\n3,4,h\n")
    datasets.fetch("magic04")
    stream = datasets.load("magic04")
    assert (stream.X.tolist(), stream.y.tolist(), stream.n_train) == ([[1.5, 2], [3, 4]], [1, -1], None)
    server.files["n"] = packed(kind, b"1.5,2,x\n3,4,h\n")
    published(server, monkeypatch, dataclasses.replace(entry, sources=(dataclasses.replace(inner, url="n"),)))
    with pytest.raises(DataError, match="hold a target 'x'"):
        datasets.fetch("magic04")
    server.files["o"] = b"no archive"
    published(server, monkeypatch, dataclasses.replace(entry, sources=(dataclasses.replace(inner, url="o"),)))
    with pytest.raises(DataError, match=r"is no archive with inner.data"):
        datasets.fetch("magic04")


def test_what_cannot_be_fetched(folder: Path) -> None:
    with pytest.raises(DataError, match="digits needs no download"):
        datasets.fetch("digits")
    with pytest.raises(DataError, match="did you mean german"):
        datasets.fetch("germann")
    with pytest.raises(DataError, match=r"kddcup08 has no public address \(.*\); put kddcup08.npz into"):
        datasets.fetch("kddcup08")
    with pytest.raises(DataError, match=r"put kddcup08.npz there"):
        datasets.load("kddcup08")


# -- the table of sets


def test_the_table_of_sets_is_sound() -> None:
    for name, entry in sources.SETS.items():
        assert name == entry.name and entry.name not in datasets.NAMES
        assert entry.n_train is None or 0 < entry.n_train <= entry.rows
        assert all(source.url.startswith("https://") for source in entry.sources)
        assert all((source.target is None) == (source.format == "libsvm") for source in entry.sources)


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
def test_the_data_folder_has_what_the_table_says() -> None:
    there = [entry for entry in sources.SETS.values() if datasets.is_here(entry.name)]
    assert len(there) > 20
    for entry in there:
        stream = datasets.load(entry.name)
        assert (stream.task, stream.features) == (entry.task, entry.features)
        if entry.name != "w8a":  # only its training part is there
            assert (len(stream), stream.n_train) == (entry.rows, entry.n_train)
