"""Optional packages: the one place that loads them, by name, when they are first needed."""

from __future__ import annotations

import importlib
from typing import Any

from onkel.core.errors import NotInstalled

EXTRAS = {
    "pandas": "frames",
    "pyarrow": "frames",
    "river": "river",
}  # the package, and the extra of onkel that brings it


def load(module: str, purpose: str) -> Any:
    """The module; `purpose` says what it is needed for where it is not installed."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError:
        raise NotInstalled(package, EXTRAS[package], purpose) from None
