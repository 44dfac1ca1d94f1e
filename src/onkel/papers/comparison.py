"""Ours beside what a paper printed: differences in printed deviations, pages, figures, a summary of all papers."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np

from onkel.evaluation import page as pages
from onkel.evaluation import plots, report
from onkel.papers.experiment import METRICS, Contender, Experiment, ExperimentError, Trial, folder, names, read
from onkel.papers.reproduction import Results, as_text, available, chosen, commit

# -- ours beside theirs ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One cell of a printed table, and our number for it.

    Parameters
    ----------
    set, algorithm, metric : which.
    theirs, deviation : as printed; "" where nothing is, or it is lost.
    note : of the printed number.
    ours : one value per run; none if it was not run.
    counts : whether it is one of those by which the reproduction is judged.
    why : the reason, where it was not run, does not count, or is worse.
    """

    set: str
    algorithm: str
    metric: str
    theirs: str
    deviation: str
    note: str
    ours: tuple[float, ...]
    counts: bool
    why: str

    @property
    def mean(self) -> float:
        return statistics.fmean(self.ours)

    @property
    def difference(self) -> float | None:
        """Ours minus theirs in printed standard deviations, less what rounding of the printed mean can explain.

        A deviation printed as 0 is taken for half a unit of its last digit.
        """
        if not self.ours or not self.theirs or not self.deviation:
            return None
        gap = self.mean - float(self.theirs)
        beyond = max(0.0, abs(gap) - _half_unit(self.theirs))
        if not beyond:
            return 0.0
        return math.copysign(beyond, gap) / (float(self.deviation) or _half_unit(self.deviation))

    @property
    def verdict(self) -> str:
        """ "within 1", "within 2", "better" or "worse"; "" if there is nothing to compare."""
        less = METRICS[self.metric][1] if self.metric in METRICS else None
        if self.difference is None or less is None:
            return ""
        if abs(self.difference) <= 2:
            return "within 1" if abs(self.difference) <= 1 else "within 2"
        return "better" if (self.difference < 0) == less else "worse"


def _half_unit(number: str) -> float:
    """Half a unit of the last printed digit."""
    exponent = Decimal(number).as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent)


def compare(experiment: Experiment, results: Results, *, runs: int | None = None) -> list[Comparison]:
    """Every printed number of a table with ours, in the printed order.

    A set that is not here now, but was when the runs were made, is compared too.
    """
    ours: dict[tuple[str, str], list[Trial]] = {}
    for dataset, contender in itertools.product(experiment.sets.values(), experiment.contenders.values()):
        try:
            settings = as_text(chosen(experiment, dataset, contender, results))
        except ExperimentError:  # not all of the grid was tried
            continue
        wanted = (dataset.name, contender.name, "{}", settings)
        made = [trial for trial in results.trials if trial.identity[:4] == wanted and trial.run >= 0]
        ours[dataset.name, contender.name] = sorted(made, key=lambda trial: trial.run)[:runs]
    met = {trial.set for trial in results.trials}
    absent = {name: why for name, why in available(experiment)[1].items() if name not in met}
    return [_cell(experiment, row, ours, absent) for row in experiment.published]


def _cell(
    experiment: Experiment,
    row: Mapping[str, str],
    ours: Mapping[tuple[str, str], Sequence[Trial]],
    absent: Mapping[str, str],
) -> Comparison:
    place = row["set"], row["algorithm"]
    dataset, contender = experiment.sets.get(row["set"]), experiment.contenders.get(row["algorithm"])
    value, less = METRICS.get(row["metric"], (None, None))
    values = tuple(value(trial) for trial in ours.get(place, ())) if value else ()
    judged = less is not None and bool(row["mean"]) and bool(row["std"])
    reason = experiment.reasons.get("/".join(place), "")
    if dataset is None or row["set"] in absent:
        why = absent.get(row["set"], "the set is not here")
    elif contender is None:
        why = "not run: the algorithm is not in the table's file"
    elif not values and less is not None:
        why = "; ".join(filter(None, ("not run", reason)))
    else:
        why = dataset.differs
    counts = judged and dataset is not None and row["set"] not in absent and not dataset.differs
    cell = Comparison(*place, row["metric"], row["mean"], row["std"], row["note"], values, counts, why)
    if cell.verdict == "worse":
        cell = dataclasses.replace(cell, why="; ".join(filter(None, (cell.why, reason))))
    return cell


# -- what comes out ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Chapter:
    """A part of the comparison, before it is Markdown or HTML: a heading, sentences, a table whose first row are the
    heads, and charts by file name.
    """

    heading: str
    sentences: tuple[str, ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    charts: Mapping[str, plots.Panel] = dataclasses.field(default_factory=dict)


def chapters(experiment: Experiment, results: Results, *, runs: int | None = None) -> list[Chapter]:
    """What is to be said of an experiment: each set, figures, settings, and the machine."""
    cells = [cell for cell in compare(experiment, results, runs=runs) if cell.metric in METRICS]
    names = dict.fromkeys(cell.set for cell in cells)
    found = [_set_chapter(experiment, [cell for cell in cells if cell.set == name], name) for name in names]
    if experiment.figure:
        differs = tuple(f"{one.name}: {one.differs}." for one in experiment.sets.values() if one.differs)
        found.append(Chapter("Figures", differs, charts=charts(experiment, results)))
    found.append(Chapter("Settings", table=_settings_table(experiment, results)))
    made = (("what", "value"), *_environment(results.trials).items())
    return [*found, Chapter("Made on", table=made)]


def _set_chapter(experiment: Experiment, cells: Sequence[Comparison], name: str) -> Chapter:
    if not any(cell.ours for cell in cells):
        return Chapter(name, (f"Not run: {next((c.why for c in cells if c.why), 'nothing to compare')}.",))
    dataset = experiment.sets[name]
    rows = [("algorithm", "metric", "printed", "ours", "runs", "deviations", "")]
    for cell in cells:
        words = "; ".join(filter(None, (cell.verdict, "" if cell.why == dataset.differs else cell.why, cell.note)))
        numbers = printed(cell), ours(cell), str(len(cell.ours) or "")
        rows.append((cell.algorithm, cell.metric, *numbers, difference(cell), words))
    sentences = [f"Data: {dataset.data}, {dataset.scale}, {dataset.part} rows."]
    sentences += [f"Not the paper's set: {dataset.differs}. Its cells do not count."] if dataset.differs else []
    return Chapter(name, tuple(sentences), tuple(rows))


def _title(experiment: Experiment) -> str:
    return f"{experiment.key}/{experiment.table}: {experiment.title}"


def markdown(experiment: Experiment, results: Results, *, runs: int | None = None) -> str:
    """The comparison as a Markdown page."""
    lines = [f"# {_title(experiment)}", "", experiment.chosen.strip(), ""]
    for chapter in chapters(experiment, results, runs=runs):
        lines += [f"## {chapter.heading}", ""]
        lines += [line for sentence in chapter.sentences for line in (sentence, "")]
        lines += [f"![{panel.title}]({file})\n" for file, panel in chapter.charts.items()]
        for number, row in enumerate(chapter.table):
            lines.append(f"| {' | '.join(row)} |")
            lines += ["| --- " * len(row) + "|"] if number == 0 else []
        lines += [""] if chapter.table else []
    return "\n".join(lines)


def page(experiment: Experiment, results: Results, *, runs: int | None = None) -> str:
    """The comparison as one self-contained HTML page."""
    parts = []
    for chapter in chapters(experiment, results, runs=runs):
        body = [pages.paragraph(sentence) for sentence in chapter.sentences]
        body += [plots.chart([panel]) for panel in chapter.charts.values()]
        if chapter.table:
            heads, *rows = chapter.table
            body.append(pages.table(heads, [[_page_cell(text, row[-1]) for text in row] for row in rows]))
        parts.append(pages.Section(chapter.heading, "\n".join(body)))
    return pages.render(_title(experiment), parts, lead=experiment.chosen)


def _page_cell(text: str, words: str) -> pages.Cell:
    """A cell of the table: a number sorts as a number; a difference is coloured by the verdict that begins `words`."""
    number, _, deviation = text.partition("±")
    try:
        value = float(number)
    except ValueError:
        return pages.Cell(text.strip("`"), math.nan if not text else None)
    verdict = words.partition(";")[0]
    signed = text[0] in "+-" and verdict in VERDICTS
    mark: Literal["good", "bad"] = "bad" if verdict == "worse" else "good"
    return pages.Cell(number, value, note=f"± {deviation}" if deviation else "", mark=mark if signed else "")


def printed(cell: Comparison) -> str:
    """The printed number as text."""
    return f"{cell.theirs}±{cell.deviation}" if cell.deviation else cell.theirs or "lost"


def ours(cell: Comparison) -> str:
    """Our mean and deviation, with one digit more than was printed."""
    if not cell.ours:
        return ""
    digits = max(2, -int(Decimal(cell.theirs or "0.00").as_tuple().exponent) + 1)
    mean = f"{cell.mean:.{digits}f}" if cell.metric not in ("support",) else f"{cell.mean:.0f}"
    return f"{mean}±{statistics.stdev(cell.ours):.{digits}f}" if len(cell.ours) > 1 else mean


def difference(cell: Comparison) -> str:
    """The difference in printed deviations as text; none for times."""
    compared = METRICS.get(cell.metric, (None, None))[1] is not None
    return f"{cell.difference:+.1f}" if compared and cell.difference is not None else ""


def _settings_table(experiment: Experiment, results: Results) -> tuple[tuple[str, ...], ...]:
    rows = [("set", "algorithm", "settings", "chosen from")]
    for name, algorithm, text in dict.fromkeys((r.set, r.algorithm, r.settings) for r in results.trials if r.run >= 0):
        contender, dataset = experiment.contenders.get(algorithm), experiment.sets.get(name)
        tried = len(contender.choices(dataset)) if contender and dataset else 1
        rows.append((name, algorithm, f"`{text}`", str(tried) if tried > 1 else ""))
    return tuple(rows)


def _environment(trials: Sequence[Trial]) -> dict[str, str]:
    commits = ", ".join(sorted({trial.commit for trial in trials})) or commit()
    days = sorted({trial.date for trial in trials})
    machine = report.environment()
    machine["date"] = f"{days[0]} to {days[-1]}" if days else machine["date"]
    return machine | {"commit": commits, "seeds": "run i: order i (stored, or drawn from seed i), random_state i"}


def charts(experiment: Experiment, results: Results) -> dict[str, plots.Panel]:
    """What the figure draws, by the name of its file: a panel for each set and quantity."""
    if not experiment.figure:
        return {}
    horizontal, found = experiment.figure["horizontal"], {}
    counts: dict[str, plots.Unit] = {"seen": "count", "support": "count", "seconds": "seconds"}
    for name, metric in itertools.product(experiment.sets, experiment.figure["vertical"]):
        lines = []
        for number, contender in enumerate(experiment.contenders.values()):
            points = _curve(experiment, results, name, contender, metric)
            if points:
                x, y = np.array(points).T
                lines.append(plots.Line(contender.name, number, x, y))
        if lines:
            found[f"{experiment.table}-{name}-{metric}.svg"] = plots.Panel(
                f"{name} {metric}",
                f"{metric.replace('_', ' ')} on {name}",
                lines,
                horizontal="examples" if horizontal == "seen" else horizontal,
                unit=counts.get(metric, "number"),
                count=counts.get(horizontal, "number"),
                log=bool(experiment.figure.get("log")),
            )
    return found


def _curve(
    experiment: Experiment, results: Results, name: str, contender: Contender, metric: str
) -> list[tuple[float, float]]:
    """Points of a line, each the mean over the runs."""
    horizontal, value = experiment.figure["horizontal"], METRICS[metric][0]
    groups: dict[Any, list[Trial]] = {}
    for trial in results.trials:
        if trial.set == name and trial.algorithm == contender.name and trial.run >= 0:
            groups.setdefault((trial.point, trial.seen if horizontal == "seen" else 0), []).append(trial)
    points = []
    for (point, _), trials in groups.items():
        if horizontal in ("seen", "seconds", "support"):
            x = statistics.fmean(getattr(trial, horizontal) for trial in trials)
        else:
            x = float(json.loads(point)[horizontal])
        points.append((x, statistics.fmean(value(trial) for trial in trials)))
    return sorted(points)


def write(experiment: Experiment, results: Results, *, runs: int | None = None) -> list[Path]:
    """Write the comparison beside the results, as Markdown, CSV and HTML, and figures as SVG."""
    home = results.path.parent
    files = {
        f"{experiment.table}.md": markdown(experiment, results, runs=runs),
        f"{experiment.table}.html": page(experiment, results, runs=runs),
        f"{experiment.table}-compared.csv": _csv(compare(experiment, results, runs=runs)),
    } | {file: panel.figure() for file, panel in charts(experiment, results).items()}
    if not experiment.published:
        del files[f"{experiment.table}-compared.csv"]
    for name, text in files.items():
        (home / name).write_text(text, encoding="utf-8")
    return [home / name for name in files]


def _csv(cells: Iterable[Comparison]) -> str:
    lines = [["set", "algorithm", "metric", "printed", "deviation", "ours", "runs", "difference", "verdict", "counts"]]
    for cell in cells:
        ours = f"{cell.mean:.6g}" if cell.ours else ""
        gap = "" if cell.difference is None else f"{cell.difference:.2f}"
        middle = [cell.theirs, cell.deviation, ours, str(len(cell.ours)), gap]
        lines.append([cell.set, cell.algorithm, cell.metric, *middle, cell.verdict, str(cell.counts)])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


# -- all of it ---------------------------------------------------------------------------------------------

VERDICTS = ("within 1", "within 2", "better", "worse")


def summary() -> str:
    """What the results kept in papers/*/results say of all tables, as a Markdown page."""
    found = [(e, Results(folder() / e.key / "results" / f"{e.table}.csv")) for e in map(read, names())]
    tables = [(e, [cell for cell in compare(e, r) if cell.counts], r) for e, r in found if e.published]
    judged = [cell for _, cells, _ in tables for cell in cells]
    done = [cell for cell in judged if cell.verdict]
    good = [cell for cell in done if cell.verdict != "worse"]
    close = [cell for cell in good if cell.verdict != "better"]
    share, same = (f"{100 * len(some) / max(1, len(done)):.1f} %" for some in (good, close))
    lines = [
        *("# The papers' tables, run again", ""),
        "A cell counts if its set is here complete and in the paper's variant, if it is an error, a loss or a number "
        "of support vectors, and if a standard deviation is printed. Differences are in printed standard deviations, "
        "as far as the rounding of the printed mean cannot explain them.",
        "",
        "Where a document leaves a setting open, readings were tried against the printed numbers; the README of each "
        "paper lists them. Such cells say which reading gives the table, not that the table is right. Names of "
        "algorithms are those of the paper; its README says what the short ones stand for.",
        "",
        f"**{len(good)} of the {len(done)} cells that were run ({share}) are within two printed standard deviations or "
        f"better**; {len(close)} ({same}) are within two, the others better. "
        f"{len(judged) - len(done)} of the {len(judged)} that count were not run. Of all that count the former are "
        f"{100 * len(good) / max(1, len(judged)):.1f} %.",
        "",
        "| table | cells | within 1 | within 2 | better | worse | not run |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for e, cells, _ in tables:
        numbers = [sum(cell.verdict == verdict for cell in cells) for verdict in VERDICTS]
        name = f"[{e.key}/{e.table}]({e.key}/results/{e.table}.md)"
        lines.append(f"| {name} | {len(cells)} | {' | '.join(map(str, numbers))} | {len(cells) - sum(numbers)} |")
    lines += ["", "## Worse than printed", "", *_worse(tables), "", "## Not run", "", *_not_run(tables), ""]
    figures = [f"- {e.key}/{e.table}: {e.title}" for e, r in found if e.figure and r.trials]
    lines += ["## Figures", "", *figures, ""] if figures else []
    trials = [trial for _, r in found for trial in r.trials]
    lines += ["## Made on", "", *(f"- {name}: {value}" for name, value in _environment(trials).items()), ""]
    return "\n".join(lines)


Judged = Sequence[tuple[Experiment, list[Comparison], Results]]


def _worse(tables: Judged) -> list[str]:
    lines = ["| table | set | algorithm | metric | printed | ours | runs | deviations | reason |", "| --- " * 9 + "|"]
    for e, cells, _ in tables:
        for cell in cells:
            if cell.verdict == "worse":
                numbers = (printed(cell), ours(cell), str(len(cell.ours)), difference(cell))
                place = (f"{e.key}/{e.table}", cell.set, cell.algorithm, cell.metric)
                lines.append(f"| {' | '.join((*place, *numbers, cell.why or 'not known'))} |")
    return lines


def _not_run(tables: Judged) -> list[str]:
    places: dict[tuple[str, str, str], list[str]] = {}
    for e, cells, _ in tables:
        for cell in cells:
            if not cell.verdict:
                rows = places.setdefault((f"{e.key}/{e.table}", cell.set, cell.why), [])
                rows += [cell.algorithm] if cell.algorithm not in rows else []
    return [f"- {table}, {name}: {', '.join(rows)} ({why})" for (table, name, why), rows in places.items()]
