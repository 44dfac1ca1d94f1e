"""Tests marked `slow` reproduce published tables; they are skipped where the data folder is not."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("ONKEL_DATA") or Path(__file__).parents[2] / "shared" / "data")


def pytest_collection_modifyitems(items):
    if DATA.is_dir():
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason=f"no data at {DATA}; ONKEL_DATA may name a folder"))
