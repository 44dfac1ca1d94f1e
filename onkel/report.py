"""A race as one self-contained HTML page: curves, tables, settings, and the machine it ran on."""

from __future__ import annotations

import datetime
import html
import importlib.resources
import math
import os
import platform
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

import onkel
from onkel import native, plots
from onkel.datasets import Task
from onkel.evaluate import Result, Standings, Trace


def environment() -> dict[str, str]:
    """What a measured time depends on: onkel and its engine, Python, NumPy, the processor, and the day."""
    return {
        "onkel": f"{onkel.__version__}, {native.description()} engine",
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "processor": f"{_processor()}, {os.cpu_count() or 1} cores",
        "system": f"{platform.system()} {platform.machine()}",
        "date": datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    }


def render(
    races: Sequence[Standings],
    *,
    title: str = "onkel race",
    lead: str = "",
    command: str = "",
    machine: Mapping[str, str] | None = None,
) -> str:
    """The page as text.

    Parameters
    ----------
    races : one section each.
    title, lead : the heading, and a sentence under it.
    command : the shell command that made the page, shown at its foot.
    machine : default: `environment()`.
    """
    numbers = _numbers(races)
    machine = environment() if machine is None else machine
    template = string.Template(importlib.resources.files("onkel").joinpath("report.html").read_text("utf-8"))
    return template.substitute(
        version=html.escape(onkel.__version__),
        title=html.escape(title),
        lead=f'<p class="soft">{html.escape(lead)}</p>' if lead else "",
        environment="\n".join(f"<div>{_pair(name, value)}</div>" for name, value in machine.items()),
        contents=_contents(races),
        overview=_overview(races, numbers),
        sections="\n".join(_section(race, numbers, i) for i, race in enumerate(races)),
        footer=_footer(command),
    )


def write(
    path: str | Path,
    races: Sequence[Standings],
    *,
    title: str = "onkel race",
    lead: str = "",
    command: str = "",
) -> None:
    """Write the page to a file."""
    Path(path).write_text(render(races, title=title, lead=lead, command=command), encoding="utf-8")


def measure(task: Task) -> str:
    """The name of the error of a task, for headings."""
    return "mistake rate" if task == "classification" else "RMSE"


def show_error(task: Task) -> Callable[[float], str]:
    """How an error of a task is written."""
    return _percent if task == "classification" else _plain


def show_time(microseconds: float) -> str:
    """How a time per example is written."""
    return f"{microseconds:,.2f}" if microseconds < 10 else f"{microseconds:,.0f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %" if math.isfinite(value) else "diverged"


def _percent_mark(value: float) -> str:
    return f"{100 * value:.3g} %"


def _plain_mark(value: float) -> str:
    return f"{value:.3g}"


def _plain(value: float) -> str:
    if not math.isfinite(value):
        return "diverged"
    return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.1e}"


def _processor() -> str:
    """The model of the processor as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _numbers(races: Sequence[Standings]) -> dict[str, int]:
    """A number for every learner, in order of appearance: it looks the same in all charts of the page."""
    names = dict.fromkeys(result.name for race in races for result in race.results)
    return {name: i for i, name in enumerate(names)}


def _contents(races: Sequence[Standings]) -> str:
    if len(races) < 2:
        return ""
    links = "".join(f'<a href="#race-{i}">{html.escape(race.stream.name)}</a>' for i, race in enumerate(races))
    return f"<nav>{links}</nav>"


def _overview(races: Sequence[Standings], numbers: Mapping[str, int]) -> str:
    """All learners against all streams, where there are several."""
    if len(races) < 2:
        return ""
    columns = [{result.name: result for result in race.results} for race in races]
    heads = [("learner", ""), *((race.stream.name, measure(race.stream.task)) for race in races)]
    rows = []
    for name, number in numbers.items():
        cells = [_name_cell(name, number)]
        for race, column in zip(races, columns, strict=True):
            cells.append(_error_cell(race, column[name], deviation=False) if name in column else _cell("", "–"))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f'<section class="overview">\n<h2>At a glance</h2>\n{_sortable_table(heads, rows)}\n</section>'


def _section(race: Standings, numbers: Mapping[str, int], i: int) -> str:
    stream = race.stream
    heading = f"<h2>{html.escape(stream.name)}</h2>\n<p>{html.escape(stream.description)}</p>"
    if not race.results:
        return f'<section id="race-{i}">\n{heading}\n<p class="soft">No learner finished.</p>\n</section>'
    return "\n".join(
        [
            f'<section id="race-{i}">',
            heading,
            f'<p class="soft">{html.escape(summary(race))}</p>',
            _chart(race, numbers, i),
            _table(race, numbers),
            _settings(race),
            "</section>",
        ]
    )


def summary(race: Standings) -> str:
    """One sentence on what was run: task, size of the stream, orders."""
    stream = race.stream
    classes = stream.classes
    kind = "regression" if classes is None else f"classification, {len(classes)} classes"
    orders = "in its own order" if stream.ordered else f"{race.orders} shuffled order{'s' * (race.orders != 1)}"
    return f"{kind}; {race.examples:,} examples, {stream.features} features; {orders}"


def _chart(race: Standings, numbers: Mapping[str, int], i: int) -> str:
    task = race.stream.task
    seen = race.results[0].traces[0].seen.astype(np.float64)
    lines = [plots.Line(result.name, numbers[result.name], seen, result.mean(_error)) for result in race.results]
    name = measure(task)
    subject = f"{name[0].upper()}{name[1:]} of all predictions so far"
    over = f", mean of {race.orders} orders" if race.orders > 1 else ""
    return plots.chart(
        lines,
        title=f"{subject}, each made before its example was learned{over}",
        horizontal="examples",
        show=show_error(task),
        tick=_percent_mark if task == "classification" else _plain_mark,
        vertical=plots.error_axis(lines),
        spare=i,
    )


def _error(trace: Trace) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return trace.error


def _table(race: Standings, numbers: Mapping[str, int]) -> str:
    heads = [
        ("learner", ""),
        (measure(race.stream.task), ""),
        ("support", "vectors"),
        ("µs per", "example"),
        ("relative", "time"),
    ]
    rows = [_row(race, result, numbers[result.name], i) for i, result in enumerate(race.results)]
    return _sortable_table(heads, rows, by=1)


def _row(race: Standings, result: Result, number: int, i: int) -> str:
    relative = race.relative(result)
    size = ("", "–") if result.size is None else (f"{result.size:.6g}", f"{result.size:,.0f}")
    cells = [
        _name_cell(result.name, number),
        _error_cell(race, result),
        _cell(*size),
        _cell(f"{result.microseconds:.6g}", show_time(result.microseconds)),
        _cell(f"{relative:.6g}", f"{relative:.1f}"),
    ]
    return f'<tr data-line="{i}">{"".join(cells)}</tr>'


def _name_cell(name: str, number: int) -> str:
    swatch, text = plots.swatch(number), plots.breakable(name)
    return _cell(name, f'<span class="name">{swatch}<span>{text}</span></span>')


def _error_cell(race: Standings, result: Result, *, deviation: bool = True) -> str:
    show = show_error(race.stream.task)
    text = show(result.error)
    if race.is_best(result):
        text = f"<strong>{text}</strong>"
    if deviation and result.deviation is not None:
        text += f" <small>± {show(result.deviation)}</small>"
    return _cell(f"{result.error:.9g}" if math.isfinite(result.error) else "", text)


def _cell(value: str, content: str) -> str:
    """A table cell with the value to sort by, empty if there is none."""
    return f'<td data-value="{html.escape(value)}">{content}</td>'


def _sortable_table(heads: Sequence[tuple[str, str]], rows: Sequence[str], by: int | None = None) -> str:
    """A table with headings of two lines each, said to be sorted by column `by`."""
    sorts = [' aria-sort="ascending"' if i == by else "" for i in range(len(heads))]
    texts = ["<br>".join(html.escape(part) for part in parts if part) for parts in heads]
    head = "".join(
        f'<th scope="col"{sort}><button type="button">{text}</button></th>'
        for text, sort in zip(texts, sorts, strict=True)
    )
    body = "\n".join(rows)
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return f'<div class="scroll">{table}</div>'


def _settings(race: Standings) -> str:
    entries = "\n".join(
        _pair(result.name, ", ".join(f"{name}={value}" for name, value in result.settings.items()))
        for result in race.results
    )
    return f"<details><summary>Settings of the learners</summary><dl>\n{entries}\n</dl></details>"


def _pair(name: str, value: str) -> str:
    return f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>"


def _footer(command: str) -> str:
    made = f"Made by <code>{html.escape(command)}</code>. " if command else ""
    return f"<p>{made}Times are of learning and predicting alone, one learner after the other.</p>"
