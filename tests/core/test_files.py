"""Files appear whole or not at all, and leave nothing beside them."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from onkel.core.files import previous, remove_leftovers, replacing


def test_the_file_is_there_when_the_block_ends(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("problem", [ValueError("odd"), KeyboardInterrupt(), OSError(errno.ENOSPC, "disk full")])
def test_a_block_that_fails_changes_nothing(problem, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write():
        with replacing(path) as file:
            file.write(b"ne")
            raise problem

    with pytest.raises(type(problem)):
        write()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_error_names_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "nowhere" / "file"
    with pytest.raises(FileNotFoundError) as error, replacing(path):
        pass
    assert error.value.filename == str(path)


def test_leftovers_of_processes_that_ended_are_removed(tmp_path):
    """Those of a process that is still writing stay, and so do those of other files."""
    write = "import sys, os; from pathlib import Path; from onkel.core.files import replacing\n"
    write += "with replacing(Path(sys.argv[1])) as file: os._exit(0)"
    for name in ("file", "other"):
        subprocess.run([sys.executable, "-c", write, tmp_path / name], check=True)
    assert len(os.listdir(tmp_path)) == 2
    with replacing(tmp_path / "file"):
        remove_leftovers(tmp_path / "file")
        assert len(os.listdir(tmp_path)) == 2
    remove_leftovers(tmp_path / "other")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("keep", [False, True])
def test_written_synced_renamed_and_the_folder_synced(keep, tmp_path, monkeypatch):
    """In this order, so that after a loss of power the name stands for the whole old or the whole new file."""
    path, calls = tmp_path / "file", []
    path.write_bytes(b"old")

    def noted(name, call, show):
        def wrapped(*arguments):
            calls.append((name, *show(*arguments)))
            return call(*arguments)

        return wrapped

    def what(number):
        return ["folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file"]

    monkeypatch.setattr(os, "fsync", noted("sync", os.fsync, what))
    monkeypatch.setattr(os, "replace", noted("rename", os.replace, lambda old, new: [os.path.basename(new)]))
    with replacing(path, keep=keep) as file:
        file.write(b"new")
        assert not calls
    kept = [("rename", "file.previous")] if keep else []
    assert calls == [("sync", "file"), *kept, ("rename", "file"), ("sync", "folder")]
    assert previous(path).exists() == keep
    assert path.read_bytes() == b"new"


def test_what_was_replaced_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "file"
    for number in range(3):
        with replacing(path, keep=True) as file:
            file.write(b"%d" % number)
    assert (path.read_bytes(), previous(path).read_bytes()) == (b"2", b"1")

    def refuse(*arguments):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    with replacing(path, keep=True) as file:
        file.write(b"3")
    assert (path.read_bytes(), previous(path).read_bytes()) == (b"3", b"2")
    assert sorted(os.listdir(tmp_path)) == ["file", "file.previous"]
