"""Fixtures for the tests of the shell command."""

from pathlib import Path

import pytest
from shell import write_csv


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two columns of very different scale, and a label."""
    return write_csv(tmp_path / "stream.csv", 600)
