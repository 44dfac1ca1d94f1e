"""Tables and numbers, as every command shows them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TextIO

import rich.console
from rich import box
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from onkel.core.wording import printable


def say(text: str, *, to: TextIO | None = None) -> None:
    """Print lines, without the control characters that names, labels and files may have."""
    print("\n".join(map(printable, text.split("\n"))), file=to)


class Console(rich.console.Console):
    """Where tables are printed, also without control characters of theirs."""

    def render(self, *arguments: Any, **more: Any) -> Iterable[Segment]:
        """The pieces of what is printed, each printable."""
        for segment in super().render(*arguments, **more):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment("\n".join(map(printable, segment.text.split("\n"))), segment.style)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError instead of exiting, so that `main` handles it as for all other output."""
        raise BrokenPipeError


def pairs(data: Mapping[str, Any]) -> None:
    """Names and values, one pair a line; what is None is left out."""
    shown = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in data.items():
        if value is not None:
            shown.add_row(name, Text(f"{value:,}" if isinstance(value, int) else printable(str(value))))
    Console().print(shown)


def table(first: str, *others: str, justify: Literal["left", "right"] = "right") -> Table:
    """An empty table with these columns."""
    rows = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    rows.add_column(first, no_wrap=True)
    for name in others:
        rows.add_column(name, justify=justify)
    return rows


def print_whole(
    console: Console, rows: Callable[[list[str]], Table], columns: Sequence[str], dispensable: Sequence[str]
) -> list[str]:
    """Print a table without cutting numbers; a narrow terminal leaves out dispensable columns, which are returned."""
    kept, dropped = list(columns), []
    for name in dispensable:
        if console.is_terminal and name in kept and _width(console, rows(kept)) > console.width:
            kept.remove(name)
            dropped.append(name)
    made = rows(kept)
    Console(width=max(console.width, _width(console, made))).print(made)
    return dropped


def _width(console: Console, rows: Table) -> int:
    return console.measure(rows, options=console.options.update(width=10_000)).maximum


def finite(value: Any) -> Any:
    """The value, or None if it is a number that JSON cannot hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
