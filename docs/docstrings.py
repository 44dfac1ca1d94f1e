"""How the manual reads our docstrings and shows our classes: an extension of griffe (see zensical.toml).

In our docstrings `name : words` is a parameter and its description, angle brackets are mathematics, and lines
set in columns are formulas. The fields of parts and estimators are their parameters, which no reader of source
text can know; so the signatures are taken from the classes themselves.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from typing import Any

import griffe

SECTION = re.compile(r"^(?=\w+\n-{3,}$)", re.MULTILINE)


class House(griffe.Extension):
    """Rewrites docstrings as they are read, and gives classes their signatures."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = rewritten(obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Called for every class."""
        if cls.module.name.startswith("_"):  # the compiled module may not be there
            return
        kind = getattr(importlib.import_module(cls.module.path), cls.name, None)
        if dataclasses.is_dataclass(kind) and "__init__" not in cls.members:
            cls.set_member("__init__", constructor(kind, cls))


def constructor(kind: type, cls: griffe.Class) -> griffe.Function:
    """The `__init__` that the dataclass machinery wrote."""
    own = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    given = [
        griffe.Parameter(
            name,
            annotation=str(parameter.annotation),
            kind=griffe.ParameterKind(parameter.kind.description),
            default=None if parameter.default is parameter.empty else repr(parameter.default),
        )
        for name, parameter in inspect.signature(kind).parameters.items()
    ]
    return griffe.Function("__init__", parameters=griffe.Parameters(own, *given), parent=cls)


def rewritten(text: str) -> str:
    """A docstring in the numpy style, safe for Markdown."""
    head, *sections = SECTION.split(text)
    paragraphs = head.rstrip().split("\n\n")
    formulas = any(paragraph.startswith("Composition:") for paragraph in paragraphs)
    head = "\n\n".join([escaped(paragraphs[0]), *(paragraph_of(p, formulas) for p in paragraphs[1:])])
    return "\n\n".join([head, *map(section_of, sections)])


def paragraph_of(text: str, formulas: bool) -> str:
    """A paragraph: the composition, a formula, or prose."""
    if text.startswith("Composition:"):
        return f"Composition: `{' '.join(text.removeprefix('Composition:').split())}`"
    if formulas or re.search(r"\S {2,}\S", text):
        return f"```text\n{text}\n```"
    return escaped(text)


def section_of(text: str) -> str:
    """A section; parameters get their descriptions below their names."""
    if text.startswith("Examples"):
        return text
    if text.startswith("Parameters"):
        text = re.sub(r"^(\w[^:\n]*) : (.*(?:\n +.*)*)", entries_of, text, flags=re.MULTILINE)
    return escaped(text)


def entries_of(match: re.Match[str]) -> str:
    """One entry for each of the names that share a description."""
    return "\n".join(f"{name}\n    {match[2]}" for name in match[1].split(", "))


def escaped(text: str) -> str:
    """Text whose angle brackets are no tags."""
    return re.sub(r"(`[^`]*`)|<", lambda match: match[1] or "&lt;", text)
