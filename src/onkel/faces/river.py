"""River: registers estimators as subclasses of river's base classes, whichever package is imported first."""

from __future__ import annotations

import contextlib
from typing import Any

from onkel.core import optional
from onkel.core.errors import NotInstalled

base: Any = None
with contextlib.suppress(NotInstalled):  # cheap: river.base imports nothing else of river
    base = optional.load("river.base", "isinstance")


def register(cls: type, kind: str) -> None:
    """Let `isinstance(model, river.base.KIND)` hold for instances of the class."""
    if base is not None and kind:
        getattr(base, kind).register(cls)
