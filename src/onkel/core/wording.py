"""Numbers, lists and names in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """A number with its noun in singular or plural: 1 class, 2 classes."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{ending}"


def listed(names: Sequence[str], most: int = 12) -> str:
    """The names in a message, cut off after `most` of them."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def printable(text: str) -> str:
    """The text with its control characters escaped, so that names from files cannot steer a terminal or forge a line.

    Examples
    --------
    >>> print(printable("a\\x1b[31m name"))
    a\\x1b[31m name
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
