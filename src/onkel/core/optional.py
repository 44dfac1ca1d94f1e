"""Optional packages: only this module loads them, by name, when they are first needed."""

from __future__ import annotations

import importlib
from typing import Any

from onkel.core.errors import NotInstalled

EXTRAS = {
    "pandas": "frames",
    "pyarrow": "frames",
    "river": "river",
}  # package: the extra of onkel that installs it


def load(module: str, purpose: str) -> Any:
    """The module; if it is not installed, the error says what it is needed for (`purpose`)."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError:
        raise NotInstalled(package, EXTRAS[package], purpose) from None
