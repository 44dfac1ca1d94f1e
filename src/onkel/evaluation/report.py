"""Races as one self-contained HTML page: curves, tables, settings, and the machine they ran on; and as figures."""

from __future__ import annotations

import datetime
import math
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onkel import native
from onkel.core.version import __version__
from onkel.core.wording import counted
from onkel.datasets import Task
from onkel.evaluation import page, plots
from onkel.evaluation.results import Result, Standings
from onkel.evaluation.totals import error_of
from onkel.evaluation.traces import Trace

Floats = NDArray[np.float64]
Quantity = Callable[[Trace], NDArray[Any]]

_WINDOW = 0.1  # of the stream: what counts as recent


def environment() -> dict[str, str]:
    """What measured times depend on: onkel and its engine, Python, NumPy, the processor, and the day."""
    return {
        "onkel": f"{__version__}, {native.description()} engine",
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
    notice: str = "",
    command: str = "",
    machine: Mapping[str, str] | None = None,
    trivial: Mapping[str, float] | None = None,
) -> str:
    """The page as text.

    Parameters
    ----------
    races : one section each.
    title, lead, notice, command : as in `page.render`.
    machine : default: `environment()`.
    trivial : the error of the baseline (`totals.trivial`), by the name of the streams for which it is to be shown.
    """
    numbers = _numbers(races)
    overview = [_overview(races, numbers)] if len(races) > 1 else []
    return page.render(
        title,
        [*overview, *(_section(race, numbers, (trivial or {}).get(race.stream.name)) for race in races)],
        lead=lead,
        notice=notice,
        command=command,
        facts=environment() if machine is None else machine,
        footer="Each example is predicted before it is learned. Times are of predicting and learning alone.",
    )


def write(path: str | Path, races: Sequence[Standings], **words: Any) -> None:
    """Write the page to a file; words: as of `render`."""
    Path(path).write_text(render(races, **words), encoding="utf-8")


def figures(races: Sequence[Standings]) -> dict[str, str]:
    """All curves as SVG documents, by a name for a file, such as "digits-recent-error"."""
    numbers = _numbers(races)
    return {
        re.sub(r"\W+", "-", f"{race.stream.name} {panel.name}"): panel.figure(f"{race.stream.name}: ")
        for race in races
        if race.results
        for panel in panels(race, numbers)
    }


def measure(task: Task) -> str:
    """The name of the error of a task, for headings."""
    return "mistake rate" if task == "classification" else "RMSE"


def show_error(task: Task) -> Callable[[float], str]:
    """How an error of a task is written."""
    return _percent if task == "classification" else _plain


def compared(task: Task, trivial: float) -> str:
    """A line with the error of the baseline, `totals.trivial`."""
    answer = "most frequent class so far" if task == "classification" else "mean of the targets so far"
    return f"baseline: {show_error(task)(trivial)} ({answer})"


def formats(race: Standings) -> dict[str, Callable[[float], str]]:
    """How the numbers of `Standings.table` are written, by their names."""
    show = show_error(race.stream.task)
    return {
        **dict.fromkeys(("error", "deviation", "held_out"), show),
        "p": show_chance,
        **dict.fromkeys(race.results[0].measures, "{:.3f}".format),
        "size": "{:,.0f}".format,
        "bytes": lambda size: f"{size / 1024:,.0f}",
        "microseconds": show_time,
        "relative": "{:.1f}".format,
    }


def in_words(measure: str) -> str:
    """The name of a measure as people write it."""
    return {"auc": "AUC"}.get(measure, measure.replace("_", " "))


def show_time(microseconds: float) -> str:
    """How a time per example is written."""
    return f"{microseconds:,.2f}" if microseconds < 10 else f"{microseconds:,.0f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %" if math.isfinite(value) else "diverged"


def _plain(value: float) -> str:
    if not math.isfinite(value):
        return "diverged"
    return f"{value:.3f}" if abs(value) < 1e4 else f"{value:,.0f}" if abs(value) < 1e8 else f"{value:.1e}"


def show_chance(p: float) -> str:
    """How a p-value is written."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def _processor() -> str:
    """The model of the processor as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _numbers(races: Sequence[Standings]) -> dict[str, int]:
    """A number for every learner, in order of appearance: it has the same colour and dash pattern in all charts."""
    names = dict.fromkeys(result.name for race in races for result in race.results)
    return {name: i for i, name in enumerate(names)}


def _overview(races: Sequence[Standings], numbers: Mapping[str, int]) -> page.Section:
    """All learners against all streams."""
    columns = [{result.name: result for result in race.results} for race in races]
    heads = ["learner", *(f"{race.stream.name}\n{measure(race.stream.task)}" for race in races)]
    rows = [
        [
            page.Cell(name, line=number),
            *(
                _error_cell(race, column[name]) if name in column else page.ABSENT
                for race, column in zip(races, columns, strict=True)
            ),
        ]
        for name, number in numbers.items()
    ]
    return page.Section("At a glance", page.table(heads, rows))


def _section(race: Standings, numbers: Mapping[str, int], trivial: float | None) -> page.Section:
    about = page.paragraph(race.stream.description)
    if not race.results:
        return page.Section(race.stream.name, about + page.paragraph("No learner finished.", soft=True))
    settings = {
        result.name: ", ".join(f"{name}={value}" for name, value in result.settings.items()) for result in race.results
    }
    parts = [
        about,
        page.paragraph(summary(race), soft=True),
        plots.chart(panels(race, numbers)),
        _table(race, numbers),
        *([] if trivial is None else [page.paragraph(compared(race.stream.task, trivial).capitalize(), soft=True)]),
        page.definitions("Settings of the learners", settings),
    ]
    return page.Section(race.stream.name, "\n".join(parts))


def summary(race: Standings) -> str:
    """One sentence on what was run: task, size of the stream, orders."""
    stream = race.stream
    classes = stream.classes
    kind = "regression" if classes is None else f"classification, {counted(len(classes), 'class')}"
    orders = "in its own order" if stream.ordered else counted(race.orders, "shuffled order")
    return f"{kind}; {counted(race.examples, 'example')}, {counted(stream.features, 'feature')}; {orders}"


def panels(race: Standings, numbers: Mapping[str, int]) -> list[plots.Panel]:
    """What a race can draw: errors against examples and time, further measures, sizes, times.

    `numbers` has the number of each learner's line (`plots.Line`).
    """
    name = measure(race.stream.task)
    over = f", mean of {race.orders} orders" if race.orders > 1 else ""

    def panel(word: str, title: str, y: Quantity, x: Quantity = _seen, **more: Any) -> plots.Panel:
        lines = [
            plots.Line(result.name, numbers[result.name], result.mean(x), curve)
            for result in race.results
            if not np.isnan(curve := result.mean(y)).all()
        ]
        return plots.Panel(word, f"{title}{over}", lines, **more)

    error: dict[str, Any] = {"unit": "share" if race.stream.task == "classification" else "number", "noisy": True}
    time: dict[str, Any] = {"horizontal": "time", "count": "seconds", "log": True}
    made = [
        panel("error so far", f"{name} so far", _error, **error),
        panel("recent error", f"{name} in a window of {100 * _WINDOW:.0f} % of the stream", recent, **error),
        panel("error by time", f"{name} so far, against the time spent", _error, _seconds, **time, **error),
        *(
            panel(in_words(key), f"{in_words(key)} so far", partial(_measured, key), noisy=True)
            for key in race.results[0].measures
        ),
        panel("support vectors", "support vectors held", _size, unit="count"),
        panel("time", "time spent so far", _seconds, unit="seconds"),
    ]
    return [panel for panel in made if panel.lines]


def _seen(trace: Trace) -> Floats:
    return trace.seen.astype(np.float64)


def _seconds(trace: Trace) -> Floats:
    return trace.seconds


def _error(trace: Trace) -> Floats:
    return trace.error


def _size(trace: Trace) -> Floats:
    return np.full(len(trace.seen), np.nan) if trace.size is None else trace.size.astype(np.float64)


def _measured(key: str, trace: Trace) -> Floats:
    return trace.measures[key]


def recent(trace: Trace) -> Floats:
    """At each checkpoint, the error over the last examples, a tenth of the run or slightly more; at first, over all."""
    seen, total = np.r_[0, trace.seen], np.r_[0.0, trace.total]
    begin = np.searchsorted(seen, trace.seen - _WINDOW * trace.seen[-1], side="right") - 1
    begin = np.maximum(begin, 0)
    with np.errstate(invalid="ignore"):  # after a divergence: infinity less infinity
        return np.asarray(error_of(trace.total - total[begin], trace.seen - seen[begin], trace.task))


def _table(race: Standings, numbers: Mapping[str, int]) -> str:
    """Errors first; a column in which no learner has a number is left out."""
    heads = {
        "p": "p against\nthe best",
        **{key: in_words(key) for key in race.results[0].measures},
        "held_out": "held out\n" + measure(race.stream.task),
        "size": "support\nvectors",
        "bytes": "memory\nKiB",
        "microseconds": "µs per\nexample",
        "relative": "relative\ntime",
    }
    written, data = formats(race), race.table()
    used = [key for key in heads if any(row[key] is not None for row in data)]
    rows = [
        [
            page.Cell(result.name, line=numbers[result.name], note=_orders(race, result)),
            _error_cell(race, result, deviation=True),
            *(_number_cell(row[key], written[key]) for key in used),
        ]
        for row, result in zip(data, race.results, strict=True)
    ]
    return page.table(["learner", measure(race.stream.task), *(heads[key] for key in used)], rows, ordered_by=1)


def _number_cell(value: float | None, text: Callable[[float], str]) -> page.Cell:
    return page.ABSENT if value is None else page.Cell(text(value), value)


def _orders(race: Standings, result: Result) -> str:
    """Said of a learner that has not run all orders."""
    done = len(result.traces)
    return f"{done} of {race.orders} orders" if done < race.orders else ""


def _error_cell(race: Standings, result: Result, *, deviation: bool = False) -> page.Cell:
    show = show_error(race.stream.task)
    spread = f"± {show(result.deviation)}" if deviation and result.deviation is not None else ""
    return page.Cell(show(result.error), result.error, note=spread, strong=race.is_best(result))
