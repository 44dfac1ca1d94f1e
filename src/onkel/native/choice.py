"""The compiled module, and the choice between it and the Python engine.

Only this package imports `_core`. The environment variable ONKEL_ENGINE=python makes the Python engine the default of a
process, `with use_engine("python"):` chooses it while the block runs; "native" makes a missing twin an error.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onkel.core import errors

try:
    import onkel.native._core as _core
except ImportError as error:
    _core = None  # type: ignore[assignment]
    if os.environ.get("ONKEL_ENGINE", "auto") == "auto":
        remedy = "Install a C++20 compiler and reinstall onkel"
        warnings.warn(
            f"onkel runs on its Python engine, which is slow: the native one is not built ({error}). "
            f"{remedy}, or set ONKEL_ENGINE=python to silence this.",
            RuntimeWarning,
            stacklevel=2,
        )

if _core is not None:
    _core.set_errors(errors)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_core.after_fork)
core: Any = _core

_CHOICES = ("auto", "python", "native")
_choice = os.environ.get("ONKEL_ENGINE", "auto")
if _choice not in _CHOICES:
    raise ValueError(f"the environment variable ONKEL_ENGINE must be one of {_CHOICES}, got {_choice!r}")


def available() -> bool:
    """Is the C++ engine built?"""
    return core is not None


def wanted() -> Any:
    """The compiled module, if it is built and enabled; else None."""
    return core if _choice != "python" else None


def required() -> bool:
    """Is the Python engine disabled?"""
    return _choice == "native"


def description() -> str:
    """The name of the engine, for reports."""
    return f"native ({core.instruction_set()})" if wanted() is not None else "python"


@contextmanager
def use_engine(engine: str) -> Iterator[None]:
    """While the block runs, estimators make engines of this kind; "auto" is the fastest available.

    The choice holds for the whole process, in all threads. A model that is loaded or meets a new class gets a
    new engine, by the choice of that moment. A `Learner` made by hand is always a Python engine.

    Examples
    --------
    >>> import onkel
    >>> with onkel.use_engine("python"):
    ...     model = onkel.PAClassifier().fit([[0.0], [1.0]], [0, 1])
    >>> model.engine_
    'python'
    """
    global _choice
    if engine not in _CHOICES:
        raise ValueError(f"engine must be one of {_CHOICES}, got {engine!r}")
    before, _choice = _choice, engine
    try:
        yield
    finally:
        _choice = before
