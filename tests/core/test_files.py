"""Files appear whole or not at all, and leave nothing beside them."""

import errno
import os
import subprocess
import sys

import pytest

from onkel.core.files import remove_leftovers, replacing


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
