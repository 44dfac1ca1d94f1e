"""What is imported when, and from where: the public names, the import contract and its two tables.

`python tests/test_imports.py` writes the stub of the public names anew.
"""

import ast
import importlib
import json
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import onkel
from onkel.algorithms import estimators
from onkel.core import optional as optional_packages
from onkel.core.errors import NotInstalled
from onkel.core.part import Part
from onkel.faces import transformers

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "onkel"
SOURCES = sorted(PACKAGE.rglob("*.py"))
STUB = PACKAGE / "__init__.pyi"


def name_of(path):
    return str(path.relative_to(ROOT))


# -- the public names


def stub():
    """The public names as type checkers read them: `import name as name` says that it is public."""
    public = sorted(onkel.PUBLIC.items())
    imports = [
        f"from {module} import {name} as {name}" for module, names in public for name in sorted(names, key=str.lower)
    ]
    return "# Written by: python tests/test_imports.py\n\n" + "\n".join(imports) + "\n"


def test_type_checkers_know_the_public_names():
    assert STUB.read_text("utf-8") == stub(), "write it anew with: python tests/test_imports.py"


@pytest.mark.parametrize("name", dir(onkel))
def test_every_public_name_is_there(name):
    value = getattr(onkel, name)
    assert value is getattr(onkel, name)
    if name in {module.name for module in pkgutil.iter_modules(onkel.__path__)}:
        assert value is sys.modules[f"onkel.{name}"], "importing the module hides what has its name"


def test_every_estimator_and_transformer_is_public():
    assert {*estimators(), *transformers.__all__} <= set(dir(onkel))


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match="module 'onkel' has no attribute 'Nothing'"):
        _ = onkel.Nothing


def test_loading_a_model_knows_every_part_and_every_algorithm():
    code = "import onkel, json; onkel.load; from onkel.core.part import Part; print(json.dumps(sorted(Part.known)))"
    known = json.loads(python(code))
    for module in modules():
        importlib.import_module(module)
    ours = {name for name, part in Part.known.items() if part.__module__.startswith("onkel.")}
    assert ours <= set(known)


def test_one_word_names_one_class():
    classes = [
        (node.name, name_of(path))
        for path in SOURCES
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    assert len(dict(classes)) == len(classes), sorted(classes)


# -- what is loaded when


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


HEAVY = {"joblib", "pandas", "rich", "scipy", "sklearn"}


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import onkel", HEAVY | {"numpy"}),
        ("import onkel; dir(onkel)", HEAVY | {"numpy"}),
        ("from onkel.cli import main; main(['--help'])", HEAVY),
        ("from onkel.cli import main; main(['--version'])", HEAVY),
    ],
)
def test_starting_loads_nothing_heavy(code, heavy):
    said = python(f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint(*sys.modules)")
    assert not heavy & set(said.splitlines()[-1].split())


# -- the contract


def modules():
    """Every module of the package by name."""
    parts = (path.relative_to(PACKAGE.parent).with_suffix("").parts for path in SOURCES)
    return [".".join(path[:-1] if path[-1] == "__init__" else path) for path in parts]


TABLES = {
    "__init__.py": "the public names",
    "cli/__init__.py": "the command, which may be interrupted while it loads",
    "cli/commands.py": "the commands",
    "algorithms/__init__.py": "its files",
}
LEAVES = "core/optional.py"  # loads optional packages
COMPILED = {"onkel.native._core"}  # where there is no compiler it is not there
BY_NAME = re.compile(r"(import_module|__import__|exec|eval|find_spec|load_module)$")


def optional():
    """The packages that only an extra of onkel brings, and those of tests, lint and docs."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    return {re.match(r"[\w-]+", wanted)[0] for several in extras.values() for wanted in several} - {"onkel"}


def imported(node):
    """What a statement imports, in full names."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: a relative import"
        return {node.module}
    return set()


def hidden(path):
    """Imports that the contract in pyproject.toml does not see: in a function, under a condition, or by name.

    The tables of public names and of commands name modules, the shell command loads itself, and the package of
    algorithms imports its own files.
    """
    tree = ast.parse(path.read_text("utf-8"))
    on_top = {id(node) for node in tree.body}
    here = path.relative_to(PACKAGE).as_posix()
    for node in ast.walk(tree):
        names = imported(node)
        ours = {name for name in names if name.split(".")[0] == "onkel"} - COMPILED
        if ours and id(node) not in on_top:
            yield f"line {node.lineno}: {', '.join(ours)} is imported where the contract does not see it"
        if leaves := {name for name in names if name.split(".")[0] in optional()}:
            yield f"line {node.lineno}: {', '.join(leaves)} is optional: load it with core.optional"
        by_name = isinstance(node, ast.Call) and BY_NAME.search(ast.unparse(node.func))
        if by_name and here not in {*TABLES, LEAVES}:
            yield f"line {node.lineno}: {ast.unparse(node)} imports by name"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_import_is_hidden(path):
    assert list(hidden(path)) == []


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    import onkel.kernels",
        "def f():\n    from onkel import kernels",
        "if True:\n    from onkel.core import part",
        "try:\n    import onkel.losses\nexcept ImportError:\n    pass",
        "import pandas",
        "def f():\n    from pyarrow import parquet",
        "import importlib\nimportlib.import_module('onkel.kernels')",
        "from importlib import import_module\nimport_module('numpy')",
    ],
)
def test_a_hidden_import_is_found(code, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(code)
    assert len(list(hidden(path))) == 1


def test_optional_packages_are_those_of_the_extras():
    assert set(optional_packages.EXTRAS) <= optional()
    for package, extra in optional_packages.EXTRAS.items():
        assert f"onkel[{extra}]" in str(NotInstalled(package, extra, "something"))
        wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
        assert any(re.match(rf"{package}\b", entry) for entry in wanted[extra])


def test_an_optional_package_that_is_absent_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^pandas is needed for tables; install onkel\[frames\]$"):
        optional_packages.load("pandas", "tables")


def test_the_binding_imports_nothing_of_ours():
    binding = sorted((ROOT / "cpp").rglob("*.?pp"))
    assert any("nb::module_::import_" in path.read_text("utf-8") for path in binding)
    for path in binding:
        assert not re.search(r'import\w*\(\s*"onkel', path.read_text("utf-8"), re.IGNORECASE), name_of(path)


if __name__ == "__main__":
    STUB.write_text(stub(), "utf-8")
    print(f"{name_of(STUB)} written")
