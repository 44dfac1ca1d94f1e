"""What is imported is declared with a lower bound, and what is linked in is named."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = {"sklearn": "scikit-learn"}  # where the name of the package is another


def bounds(requirements: list[str]) -> dict[str, str]:
    found = [re.fullmatch(r"([\w-]+)>=([\d.]+)", each) for each in requirements if not each.startswith("onkel[")]
    assert all(found), requirements  # each has a lower bound
    return {match[1]: match[2] for match in found if match}


def imported() -> tuple[set[str], set[str]]:
    """Packages imported anywhere in the library, and those of an extra, which `core.optional` loads by name."""
    always, optional = set(), set()
    for file in (ROOT / "src" / "onkel").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                always |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                always.add(str(node.module).partition(".")[0])
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "optional.load":
                optional.add(re.split(r"\W", ast.unparse(node.args[0]).lstrip("f").strip("'"))[0])
    return always - {"onkel", *sys.stdlib_module_names}, optional


def test_what_is_imported_is_declared() -> None:
    always, optional = imported()
    assert {PACKAGES.get(name, name) for name in always} == set(bounds(PROJECT["dependencies"]))
    extras = PROJECT["optional-dependencies"]
    assert optional <= set(bounds([*extras["river"], *extras["frames"]]))


def test_lower_bounds_are_versions_that_exist_here_or_earlier() -> None:
    for name, least in bounds(PROJECT["dependencies"]).items():
        here = [int(part) for part in re.findall(r"\d+", metadata.version(name))]
        assert here >= [int(part) for part in least.split(".")], name


@pytest.mark.parametrize("name", ["nanobind", "robin-map", "MurmurHash3"])
def test_what_is_linked_in_is_named(name: str) -> None:
    assert name in (ROOT / "NOTICE").read_text(encoding="utf-8")
    assert "NOTICE" in PROJECT["license-files"]
