"""One self-contained HTML page: sections, sortable tables, charts; for light and dark mode, phones and print.

The frame is page.html and the style page.css; page.js sorts tables and draws the charts of `plots.chart`.

    table = page.table(["learner", "error"], [["FOGD", page.Cell("5 %", 0.05)]])
    text = page.render("A title", [page.Section("A heading", table)])
"""

from __future__ import annotations

import dataclasses
import html
import importlib.resources
import math
import re
import string
from collections.abc import Mapping, Sequence
from typing import Literal

from onkel.core.version import __version__
from onkel.evaluation import plots


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a page; its body is HTML, as `paragraph`, `table`, `definitions` and `plots.chart` return."""

    heading: str
    body: str


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Parameters
    ----------
    text : what is shown.
    value : what to sort by (default: the text); a number that is not finite comes last.
    note : in small letters after the text.
    strong : the best of its column.
    mark : a verdict, shown as the background colour; the text should say the same.
    line : if the cell names a learner, the number of its lines (`plots.Line`); a click shows or hides them.
    """

    text: str
    value: float | str | None = None
    note: str = ""
    strong: bool = False
    mark: Literal["", "good", "fair", "bad"] = ""
    line: int | None = None


ABSENT = Cell("–", math.nan)


def render(
    title: str,
    sections: Sequence[Section],
    *,
    lead: str = "",
    notice: str = "",
    facts: Mapping[str, str] | None = None,
    footer: str = "",
    command: str = "",
) -> str:
    """The page as text.

    Parameters
    ----------
    title, lead : the heading, and a sentence under it.
    sections : in their order; several get a list of links.
    notice : a sentence in a frame, such as that a race was interrupted.
    facts : names and values in small letters, such as `report.environment()`.
    footer : a sentence at the foot.
    command : the shell command that made the page, shown before it.
    """
    return string.Template(_file("html")).substitute(
        version=html.escape(__version__),
        palette=plots.style_sheet(),
        style=_file("css"),
        script=_file("js"),
        title=html.escape(title),
        lead=paragraph(lead, soft=True) if lead else "",
        notice=f'<p class="notice" role="note">{html.escape(notice)}</p>' if notice else "",
        facts=_facts(facts or {}),
        contents=_contents(sections),
        sections="\n".join(_section(section, i) for i, section in enumerate(sections)),
        footer=_footer(command, footer),
    )


def paragraph(text: str, *, soft: bool = False) -> str:
    """A paragraph; a soft one is less prominent."""
    return f"<p{_class('soft' * soft)}>{html.escape(text)}</p>"


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell | str]], *, ordered_by: int | None = None) -> str:
    """A table that sorts by the heading clicked; the first cell of a row names it, "\\n" breaks a heading.

    A string is a cell of text. Columns with a text are aligned left and may wrap, columns of numbers are aligned right.
    """
    cells = [[Cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    worded = [any(_is_text(row[i]) for row in cells) for i in range(len(heads))]
    head = "".join(_head(head, text, i == ordered_by) for i, (head, text) in enumerate(zip(heads, worded, strict=True)))
    body = "\n".join(f"<tr>{_row(row, worded)}</tr>" for row in cells)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="table">'
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def definitions(summary: str, entries: Mapping[str, str]) -> str:
    """A list of names and what they mean, folded under a summary."""
    pairs = "\n".join(_pair(name, value) for name, value in entries.items())
    return f"<details><summary>{html.escape(summary)}</summary><dl>\n{pairs}\n</dl></details>"


def breakable(name: str) -> str:
    """A name as HTML that may be broken before a capital where room is scarce."""
    return "<wbr>".join(html.escape(part) for part in re.split(r"(?<=[a-z])(?=[A-Z])", name))


def _file(ending: str) -> str:
    return importlib.resources.files("onkel.evaluation").joinpath(f"page.{ending}").read_text("utf-8").strip()


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _pair(name: str, value: str) -> str:
    return f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>"


def _facts(facts: Mapping[str, str]) -> str:
    pairs = "\n".join(f"<div>{_pair(name, value)}</div>" for name, value in facts.items())
    return f'<dl class="facts">\n{pairs}\n</dl>' if facts else ""


def _contents(sections: Sequence[Section]) -> str:
    links = "".join(f'<a href="#part-{i}">{html.escape(section.heading)}</a>' for i, section in enumerate(sections))
    return f'<nav aria-label="contents">{links}</nav>' if len(sections) > 1 else ""


def _section(section: Section, i: int) -> str:
    heading = f'<h2 id="head-{i}">{html.escape(section.heading)}</h2>'
    return f'<section id="part-{i}" aria-labelledby="head-{i}">\n{heading}\n{section.body}\n</section>'


def _footer(command: str, text: str) -> str:
    made = f"Made by <code>{html.escape(command)}</code>. " if command else ""
    return f"<p>{made}{html.escape(text)}</p>"


def _is_text(cell: Cell) -> bool:
    return cell.text != "" and not isinstance(cell.value, int | float)


def _head(head: str, text: bool, ordered: bool) -> str:
    sort = ' aria-sort="ascending"' if ordered else ""
    words = html.escape(head).replace("\n", "<br>")
    return f'<th scope="col"{_class("text" * text)}{sort}><button type="button">{words}</button></th>'


def _row(cells: Sequence[Cell], worded: Sequence[bool]) -> str:
    return "".join(_cell(cell, i == 0, text) for i, (cell, text) in enumerate(zip(cells, worded, strict=True)))


def _cell(cell: Cell, heads: bool, worded: bool) -> str:
    text = breakable(cell.text) if heads else html.escape(cell.text)
    if cell.line is not None:
        name = f'data-learner="{html.escape(cell.text)}"'
        text = f'<button type="button" class="name" {name}>{plots.swatch(cell.line)}<span>{text}</span></button>'
    text = f"<strong>{text}</strong>" if cell.strong else text
    text += f" <small>{html.escape(cell.note)}</small>" if cell.note else ""
    tag, scope = ("th", ' scope="row"') if heads else ("td", "")
    look = _class(" ".join(filter(None, (cell.mark, "text" * (worded and not heads)))))
    return f'<{tag}{scope}{look} data-value="{html.escape(_sort_value(cell))}">{text}</{tag}>'


def _sort_value(cell: Cell) -> str:
    """Empty if there is nothing to compare."""
    if isinstance(cell.value, int | float):
        return f"{cell.value:.9g}" if math.isfinite(cell.value) else ""
    return cell.text if cell.value is None else cell.value
