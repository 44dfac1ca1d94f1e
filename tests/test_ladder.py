"""The folders of the C++ have the layers of the Python packages: a file includes from its own folder or lower ones.

    python tests/test_ladder.py     # make lint: prints includes that point up

Only the binding is in another place: it binds everything, so it is on top.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CPP = ROOT / "cpp"


def steps() -> dict[str, int]:
    """The height of the layer of each folder."""
    (contract,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [layer for layer in contract["layers"] if layer != "native"]
    rooms = [re.findall(r"\w+", layer) for layer in [*reversed(layers), "native"]]
    return {room: step for step, layer in enumerate(rooms) for room in layer}


def room(path: str) -> str:
    """The folder of a file, or the file itself if it is in none: kernels.hpp."""
    return path.partition("/")[0].partition(".")[0]


def wrong_includes() -> Iterator[str]:
    """Includes that point up, sideways or nowhere, and includes of the binding's library outside the binding."""
    height = steps()
    for path in sorted(CPP.rglob("*.[ch]pp")):
        here = path.relative_to(CPP).as_posix()
        for kind, there in re.findall(r'^#include (["<])(.+)[">]', path.read_text(), re.MULTILINE):
            if kind == "<":
                fine = room(here) == "native" or not re.match("nanobind|Python", there)
            else:
                fine = (CPP / there).exists() and (
                    room(here) == room(there) or height[room(here)] > height[room(there)]
                )
            if not fine:
                yield f"cpp/{here} includes {there}"


def test_includes_point_down():
    assert list(wrong_includes()) == []


if __name__ == "__main__":
    sys.exit("\n".join(wrong_includes()) or 0)
