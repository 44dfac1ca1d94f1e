"""Fixtures for all tests. Those marked `slow` reproduce published tables; where the data is not, they are skipped."""

import os
from pathlib import Path

import pytest
from streams import PYTHON_ONLY

import onkel

DATA = Path(os.environ.get("ONKEL_DATA") or Path(__file__).parents[2] / "shared" / "data")


def pytest_collection_modifyitems(items):
    if DATA.is_dir():
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason=f"no data at {DATA}; ONKEL_DATA may name a folder"))


@pytest.fixture
def data_folder(monkeypatch):
    """`onkel.datasets` finds the sets of the papers there."""
    monkeypatch.setenv("ONKEL_DATA", str(DATA))


@pytest.fixture(params=["python", "native"])
def engine(request):
    """The test runs on both engines."""
    if request.param == "native" and not onkel.native.available():
        pytest.skip("the native engine is not built")
    if request.param == "native" and request.node.callspec.params.get("name") in PYTHON_ONLY:
        pytest.skip("no twin in C++")
    with onkel.engine(request.param):
        yield request.param
