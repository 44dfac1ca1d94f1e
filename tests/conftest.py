"""Fixtures for all tests, and the ring that each is in."""

import gc
import os
from pathlib import Path

import pytest
import rings

import onkel

DATA = Path(os.environ.get("ONKEL_DATA") or Path(__file__).parents[2] / "shared" / "data")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("xfail"):
            item.add_marker(pytest.mark.slow)
    rest = [item for item in items if not item.get_closest_marker("slow")]
    found = [rings.tried(item) for item in rest]
    for number in rings.repeats(found):
        rest[number].add_marker(pytest.mark.slow)
    quick = [item.get_closest_marker("slow") is None for item in rest]
    config.stash[rings.TRIED] = [pair for pair in zip(found, quick, strict=True) if pair[0] is not None]


def pytest_collection_finish():
    """The collected tests are many objects that stay: no garbage collection needs to look at them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def data_folder(monkeypatch):
    """`onkel.datasets` finds the sets of the papers there."""
    if not DATA.is_dir():
        pytest.skip(f"no data at {DATA}; ONKEL_DATA may name a folder")
    monkeypatch.setenv("ONKEL_DATA", str(DATA))


@pytest.fixture(params=["python", "native"])
def engine(request):
    """The test runs on both engines; on Python's alone where a part of the model has no twin in C++."""
    if request.param == "native" and not onkel.native.available():
        pytest.skip("the native engine is not built")
    case = rings.case_of(request.node.callspec.params)
    if request.param == "native" and case is not None and not rings.twinned(case):
        pytest.skip("no twin in C++")
    with onkel.use_engine(request.param):
        yield request.param
