"""The report page: well-formed, self-contained, complete, and safe against what names contain."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from onkel.datasets import Stream, Task
from onkel.evaluation import page, plots, report
from onkel.evaluation.results import Result, Standings
from onkel.evaluation.traces import Trace

VOID = {"meta", "br", "wbr", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """A page as a list of elements (tag, attributes, text); refuses tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.stack: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        texts: list[str] = []
        self.elements.append((tag, dict(attrs), texts))
        if tag not in VOID:
            self.open.append(tag)
            self.stack.append(texts)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> does not match"
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        for texts in self.stack:
            texts.append(data)

    def find(self, tag: str, **wanted: str) -> list[tuple[dict[str, str | None], str]]:
        return [
            (attributes, "".join(texts))
            for name, attributes, texts in self.elements
            if name == tag and all(attributes.get(key.rstrip("_")) == value for key, value in wanted.items())
        ]


def trace(task: Task, finals: float, n: int = 100, size: int | None = 7, seconds: float = 0.01) -> Trace:
    seen = np.arange(10, n + 1, 10)
    final = n * (finals if task == "classification" else finals**2)
    total = final * (seen / n) ** (0.8 + 0.2 * finals)  # errors become rarer, unless there are nothing but errors
    sizes = None if size is None else np.full(len(seen), size)
    return Trace(task, seen, total, sizes, np.linspace(seconds / 10, seconds, len(seen)))


def standings(results: dict[str, Any], task: Task = "classification", name: str = "toy") -> Standings:
    y = np.arange(100) % 3 if task == "classification" else np.arange(100.0)
    stream = Stream(name, np.zeros((100, 4)), y, task, f"about {name}")
    made = [
        Result(
            key,
            {"eta": "0.5", "kernel": "Gaussian(gamma=1)"},
            tuple(value if isinstance(value, list) else [value]),
        )
        for key, value in results.items()
    ]
    return Standings(stream, tuple(sorted(made, key=lambda result: result.error)), 100)


@pytest.fixture
def race() -> Standings:
    return standings(
        {
            "Slow": trace("classification", 0.25, seconds=0.05),
            "Fast": [trace("classification", 0.1, size=3), trace("classification", 0.2, size=5)],
        }
    )


def table_rows(page: Page) -> list[list[str]]:
    """The texts of the cells of each body row, from the flat list of elements."""
    rows: list[list[str]] = []
    for tag, attributes, texts in page.elements:
        if tag == "tr":
            rows.append([])
        elif tag == "td" or attributes.get("scope") == "row":
            rows[-1].append("".join(texts))
    return [row for row in rows if row]


def test_the_page_holds_everything(race: Standings) -> None:
    page = Page(report.render([race], title="A title", lead="A lead.", command="onkel race toy.csv"))
    assert [text for _, text in page.find("title")] == ["A title"]
    assert [text for _, text in page.find("h2")] == ["toy"]
    text = "".join("".join(texts) for tag, _, texts in page.elements if tag == "main")
    assert "A lead." in text
    assert "about toy" in text
    assert "classification, 3 classes; 100 examples, 4 features; 2 shuffled orders" in text
    assert "eta=0.5, kernel=Gaussian(gamma=1)" in text
    assert "Made by onkel race toy.csv." in text
    assert table_rows(page) == [
        ["Fast", "15.0 % ± 7.1 %", "4", "100", "1.0"],
        ["Slow 1 of 2 orders", "25.0 %", "7", "500", "5.0"],
    ]


def test_the_environment_is_named(race: Standings) -> None:
    facts = report.environment()
    assert {"onkel", "Python", "processor"} <= set(facts)
    assert "engine" in facts["onkel"]
    page = Page(report.render([race]))
    for _, value in page.find("dd"):
        facts = {name: fact for name, fact in facts.items() if fact != value}
    assert set(facts) <= {"date"}  # the minute may have passed


def test_the_page_asks_nothing_of_the_network(race: Standings) -> None:
    text = report.render([race])
    page = Page(text)
    addresses = set(re.findall(r"https?://[^\"' ]*", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not re.search(r"url\((?!#)|@import|src=", text)
    assert not page.find("link")
    assert all("src" not in attributes for attributes, _ in page.find("script"))
    assert 'name="viewport"' in text
    assert "color-scheme: light dark" in text
    assert "@media print" in text


def test_identifiers_are_unique_and_links_lead_to_them(race: Standings) -> None:
    other = standings({"Fast": trace("regression", 0.5)}, "regression", "other")
    page = Page(report.render([race, other]))
    identifiers = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    targets = [str(attributes["href"]) for attributes, _ in page.find("a")]
    assert targets == ["#part-0", "#part-1", "#part-2"]
    assert {target[1:] for target in targets} <= set(identifiers)


def data(page: Page) -> list[Any]:
    """What the charts of a page are drawn from."""
    return [json.loads(text) for _, text in page.find("script", type="application/json")]


def test_every_learner_has_a_row_and_curves(race: Standings) -> None:
    page = Page(report.render([race]))
    assert [a["data-learner"] for a, _ in page.find("button") if "data-learner" in a] == ["Fast", "Slow"]
    (chart,) = data(page)
    assert chart["learners"] == [{"name": "Fast", "number": 0}, {"name": "Slow", "number": 1}]
    panels = {panel["name"]: panel for panel in chart["panels"]}
    assert list(panels) == ["error so far", "recent error", "error by time", "support vectors", "time"]
    for panel in panels.values():
        assert all(len(line["y"]) == len(line.get("x", panel["x"])) == 10 for line in panel["lines"])
    so_far = panels["error so far"]
    assert so_far["x"] == list(range(10, 101, 10))
    assert [line["y"][-1] for line in so_far["lines"]] == [0.15, 0.25]
    assert so_far["title"] == "mistake rate so far, mean of 2 orders"
    assert [line["y"][-1] for line in panels["support vectors"]["lines"]] == [4, 7]
    assert [line["x"][-1] for line in panels["error by time"]["lines"]] == [0.01, 0.05]


def test_recent_errors_forget_the_beginning() -> None:
    seen = np.array([5, 10, 15, 20, 100, 105])
    total = np.array([5.0, 10.0, 10.0, 10.0, 10.0, 13.0])
    run = Trace("classification", seen, total, None, np.zeros(6))
    # the window is the last 10.5 examples, or back to the checkpoint before
    np.testing.assert_allclose(report.recent(run), [1, 1, 2 / 3, 1 / 3, 0, 3 / 85])
    squares = Trace("regression", seen[:3], np.array([20.0, 40.0, math.inf]), None, np.zeros(3))
    np.testing.assert_allclose(report.recent(squares), [2, 2, math.inf])


def test_figures_are_named_and_well_formed(race: Standings) -> None:
    figures = report.figures([race])
    assert set(figures) == {
        "toy-error-so-far",
        "toy-recent-error",
        "toy-error-by-time",
        "toy-support-vectors",
        "toy-time",
    }
    for text in figures.values():
        root = ElementTree.fromstring(text)
        assert root.attrib["aria-label"].startswith("toy: ")
        assert len(root.findall(".//{*}polyline")) == 2
        assert {"Fast", "Slow"} <= {str(element.text).partition(":")[0] for element in root.iter() if element.text}


def test_the_figure_is_drawn_where_the_values_are() -> None:
    flat = standings({"Flat": trace("classification", 1.0)})  # mistakes only: a level line at 100 %
    root = ElementTree.fromstring(report.figures([flat])["toy-error-so-far"])
    (line,) = root.findall(".//{*}polyline")
    points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    labels = {element.text: element for element in root.findall(".//{*}text")}
    assert points[-1][0] == float(labels["100"].attrib["x"])
    assert points[4][0] == pytest.approx((points[3][0] + points[5][0]) / 2)
    assert {y for _, y in points} == {float(labels["100 %"].attrib["y"]) - 4}


def test_an_interrupted_race_says_so(race: Standings) -> None:
    page = Page(report.render([race], notice="Interrupted: a partial race."))
    assert [text for _, text in page.find("p", class_="notice")] == ["Interrupted: a partial race."]
    assert [text for _, text in page.find("th", scope="row")] == ["Fast", "Slow 1 of 2 orders"]


def test_several_races_have_an_overview_and_steady_colours(race: Standings) -> None:
    other = standings({"Only": trace("regression", 0.4), "Fast": trace("regression", 0.5)}, "regression", "other")
    page = Page(report.render([race, other]))
    assert [text for _, text in page.find("h2")] == ["At a glance", "toy", "other"]
    assert table_rows(page)[:3] == [
        ["Fast", "15.0 %", "0.500"],
        ["Slow", "25.0 %", "–"],
        ["Only", "–", "0.400"],
    ]
    numbers = [{entry["name"]: entry["number"] for entry in chart["learners"]} for chart in data(page)]
    assert numbers == [{"Fast": 0, "Slow": 1}, {"Only": 2, "Fast": 0}]


def test_names_are_escaped_everywhere() -> None:
    evil = "<script>alert('1')</script>\"&"
    hostile = standings({evil: trace("classification", 0.3), "x</script>": trace("classification", 0.4)}, name=evil)
    text = report.render([hostile, hostile], title=evil, lead=evil, command=evil, machine={evil: evil})
    page = Page(text)  # would not match up if a name had ended an element
    assert "<script>alert" not in text
    assert len(page.find("script")) == 3  # two charts and the page's own
    assert page.find("h1")[0][1] == evil
    for _, content in page.find("script", type="application/json"):
        json.loads(content)


def test_a_learner_that_diverged_is_shown_and_sorted_last() -> None:
    lost = trace("regression", 0.5)
    total = lost.total.copy()
    total[4:] = math.inf
    lost = Trace("regression", lost.seen, total, lost.size, lost.seconds)
    page = Page(report.render([standings({"Lost": lost, "Good": trace("regression", 0.9)}, "regression")]))
    rows = table_rows(page)
    assert [row[0] for row in rows] == ["Good", "Lost"]
    assert rows[1][1] == "diverged"
    for panel in data(page)[0]["panels"][:3]:
        assert all(value is not None for value in panel["lines"][0]["y"])
        assert panel["lines"][1]["y"][4:] == [None] * 6  # drawn as far as it went
    values = [a["data-value"] for a, _ in page.find("td")]
    assert "" in values
    assert not any(value and "inf" in value for value in values)


def test_a_race_nobody_finished(race: Standings) -> None:
    assert report.figures([standings({})]) == {}
    page = Page(report.render([standings({})]))
    assert any("No learner finished." in text for _, text in page.find("section"))


def test_unknown_sizes_are_a_dash_and_a_column_of_them_is_left_out() -> None:
    plain, sized = trace("classification", 0.5, size=None), trace("classification", 0.6)
    page = Page(report.render([standings({"Plain": plain, "Sized": sized})]))
    assert [row[2] for row in table_rows(page)] == ["–", "7"]
    panel = next(panel for panel in data(page)[0]["panels"] if panel["name"] == "support vectors")
    assert [line["y"] is None for line in panel["lines"]] == [True, False]
    page = Page(report.render([standings({"Plain": plain})]))
    assert len(table_rows(page)[0]) == 4
    assert "support vectors" not in [panel["name"] for panel in data(page)[0]["panels"]]


def test_further_measures_have_columns_and_curves() -> None:
    made = trace("classification", 0.2)
    curve = np.linspace(0.5, 0.9, len(made.seen))
    made = dataclasses.replace(made, measures={"auc": curve, "log_loss": curve * np.nan}, bytes=2048, held_out=0.125)
    page = Page(report.render([standings({"Known": made, "Other": made})]))
    heads = [text for a, text in page.find("th") if a.get("scope") == "col"]
    assert heads[:6] == ["learner", "mistake rate", "AUC", "held outmistake rate", "supportvectors", "memoryKiB"]
    assert table_rows(page)[0][:6] == ["Known", "20.0 %", "0.900", "12.5 %", "7", "2"]
    panels = {panel["name"]: panel for panel in data(page)[0]["panels"]}
    assert panels["AUC"]["lines"][0]["y"][-1] == 0.9
    assert "log loss" not in panels  # nobody has it


def test_the_significance_of_a_difference_is_shown() -> None:
    runs = {"A": [trace("classification", 0.1 + i / 100) for i in range(4)]}
    runs["B"] = [trace("classification", 0.2 + i**2 / 100) for i in range(4)]
    page = Page(report.render([standings(runs)]))
    p = [row[2] for row in table_rows(page)]
    assert p[0] == "–"
    assert 0 < float(p[1]) < 0.05


def test_write(tmp_path: Path, race: Standings) -> None:
    report.write(tmp_path / "page.html", [race], title="größer")
    assert "größer" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_figure_with_many_lines_keeps_its_labels_apart() -> None:
    many = standings({f"Learner{i:02}": trace("classification", 0.3 + i / 1e4) for i in range(30)})
    root = ElementTree.fromstring(report.figures([many])["toy-error-so-far"])
    labels = [element for element in root.findall(".//{*}text") if str(element.text).startswith("Learner")]
    tops = sorted(float(label.attrib["y"]) for label in labels)
    assert len(tops) == 30
    assert min(np.diff(tops)) > 15
    looks = {(line.attrib["class"], line.attrib["stroke-dasharray"]) for line in root.findall(".//{*}polyline")}
    assert len(looks) == 30  # colour and dash together tell all of them apart


# -- the frame


def test_a_table_of_any_kind() -> None:
    cells = [page.Cell("5.1 %", 0.051, note="± 0.2 %", mark="good"), page.ABSENT, "a < b"]
    made = Page(page.render("T", [page.Section("S", page.table(["name", "a\nb", "c", "d"], [["x", *cells]]))]))
    (row,) = table_rows(made)
    assert row == ["x", "5.1 % ± 0.2 %", "–", "a < b"]
    assert [a["data-value"] for a, _ in made.find("td")] == ["0.051", "", "a < b"]
    assert [a.get("class") for a, _ in made.find("td")] == ["good", None, "text"]
    assert not made.find("nav")  # of one section there is nothing to choose


# -- the axes


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.0, 0.037, [0, 0.01, 0.02, 0.03, 0.04]),
        (0.76, 0.94, [0.75, 0.8, 0.85, 0.9, 0.95]),
        (0.0, 0.0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
    ],
)
def test_axes_have_round_ticks_that_cover_the_data(low: float, high: float, ticks: list[float]) -> None:
    made = plots.axis(low, high)
    np.testing.assert_allclose(made.ticks, ticks, atol=1e-12)
    assert made.low <= low
    assert made.high >= high


def test_a_whole_axis_ends_where_the_data_end() -> None:
    made = plots.axis(0, 569, about=7, whole=True)
    assert (made.low, made.high) == (0, 569)
    assert made.ticks == (0, 100, 200, 300, 400, 500)


def line(*y: float) -> plots.Line:
    return plots.Line("l", 0, np.arange(1.0, len(y) + 1), np.array(y))


def test_the_axis_starts_at_zero_unless_all_is_far_above() -> None:
    assert plots.fit([line(0.9, *[0.3] * 4, *[0.1] * 5)], noisy=True).low == 0
    assert plots.fit([line(2.0, *[0.95] * 4, *[0.8] * 5)], noisy=True).low == pytest.approx(0.8)
    assert plots.fit([line(*[0.8] * 10)], noisy=True).low < 0.75  # a level line is no reason for a magnifying glass


def test_the_axis_of_a_noisy_curve_ignores_the_noisy_beginning_and_what_left_the_world() -> None:
    calm = [line(1.0, *[0.1] * 9) for _ in range(4)]
    assert plots.fit(calm, noisy=True).high == pytest.approx(0.1)
    assert plots.fit([*calm, line(*[50.0] * 10)], noisy=True).high < 1
    assert plots.fit([*calm, line(*[math.inf] * 10)], noisy=True).high == pytest.approx(0.1)
    assert plots.fit([line(math.inf, math.inf)], noisy=True).high == 1


def test_spread_moves_labels_no_more_than_needed() -> None:
    assert plots.spread([0.1, 0.5, 0.9], 0.1) == pytest.approx([0.1, 0.5, 0.9])
    assert plots.spread([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])
    assert plots.spread([0.6, 0.2, 0.61], 0.1) == pytest.approx([0.555, 0.2, 0.655])
    assert plots.spread([1.0, 1.0, 1.0], 0.1) == pytest.approx([0.8, 0.9, 1.0])
