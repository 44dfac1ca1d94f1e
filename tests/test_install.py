"""The package as pip sees it: what is in it, and that it installs where no compiler works."""

import importlib.metadata
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import onkel
from onkel import native

ROOT = Path(__file__).parents[1]


def run(*command, **environment):
    """What the command printed; a sanitizer's runtime is for this process alone."""
    keep = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "ONKEL_ENGINE")}
    done = subprocess.run(
        command, cwd=ROOT, env=keep | environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_version_and_command():
    assert onkel.__version__ == importlib.metadata.version("onkel")
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="onkel")
    assert callable(command.load())


def test_a_built_module_can_be_imported():
    """Otherwise the suite would quietly run on the Python engine."""
    built = any(Path(file).name.startswith("_core.") for file in importlib.metadata.files("onkel"))
    assert native.available() == built


@pytest.fixture(scope="module")
def pure_wheel(tmp_path_factory):
    """The wheel that pip makes where the compiler does not work."""
    pytest.importorskip("scikit_build_core")
    folder = tmp_path_factory.mktemp("wheel")
    broken = folder / "c++"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), ".",
        CXX=str(broken), ONKEL_REQUIRE_NATIVE="0")  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_wheel_without_compiler_is_pure(pure_wheel):
    assert pure_wheel.name.endswith("-py3-none-any.whl")
    names = set(zipfile.ZipFile(pure_wheel).namelist())
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "onkel").rglob("*.py")}
    assert sources | {"onkel/py.typed", "onkel/native/_core.pyi"} <= names
    assert not [name for name in names if not name.startswith(("onkel/", "onkel-"))]


def test_wheel_without_compiler_warns_once(pure_wheel, tmp_path):
    zipfile.ZipFile(pure_wheel).extractall(tmp_path)
    # -S: site would put the suite's own editable install first
    code = (
        "import sys, warnings; sys.path[:0] = sys.argv[1:]\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always', RuntimeWarning)\n"
        "    import onkel, onkel.native\n"
        "    assert onkel.__file__.startswith(sys.argv[1]), onkel.__file__\n"
        "    assert not onkel.native.available()\n"
        "print(sum('Python engine' in str(warning.message) for warning in caught))\n"
    )
    paths = [str(tmp_path), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    assert run(sys.executable, "-S", "-c", code, *paths).splitlines()[-1] == "1"


def test_a_checkout_cannot_be_imported_by_mistake():
    """Python started in the checkout finds the installed package, or none."""
    code = "import sys, importlib.util; print(importlib.util.find_spec('onkel'))"
    told = run(sys.executable, "-S", "-c", code)
    assert told.strip() == "None"


def test_sdist_has_what_a_build_needs(tmp_path):
    pytest.importorskip("scikit_build_core")
    code = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", code, str(tmp_path))
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "cpp").rglob("*.?pp")}
    assert sources | {"CMakeLists.txt", "LICENSE", "src/onkel/__init__.py", "pyproject.toml"} <= names
    assert not [name for name in names if name.startswith((".venv", "build/", ".git/"))]
