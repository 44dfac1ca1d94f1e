"""The report page: well-formed, self-contained, complete, and safe against what names contain."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onkel import plots, report
from onkel.datasets import Stream, Task
from onkel.evaluate import Result, Standings, Trace

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
    rate = finals + (1 - finals) * np.linspace(0.5, 0, len(seen))
    total = rate * seen if task == "classification" else rate**2 * seen
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
    for tag, _, texts in page.elements:
        if tag == "tr":
            rows.append([])
        elif tag == "td":
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
        ["Slow", "25.0 %", "7", "500", "5.0"],
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
    assert not re.search(r"https?://|url\((?!#)|@import|src=", text)
    assert not page.find("link")
    assert all("src" not in attributes for attributes, _ in page.find("script"))
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_identifiers_are_unique_and_links_lead_to_them(race: Standings) -> None:
    other = standings({"Fast": trace("regression", 0.5)}, "regression", "other")
    page = Page(report.render([race, other]))
    identifiers = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    targets = [str(attributes["href"]) for attributes, _ in page.find("a")]
    assert targets == ["#race-0", "#race-1"]
    assert {target[1:] for target in targets} <= set(identifiers)


def test_every_line_has_a_path_a_button_a_row_and_data(race: Standings) -> None:
    page = Page(report.render([race]))
    numbers = {"0", "1"}
    assert {a["data-line"] for a, _ in page.find("path", class_="line")} == numbers
    assert {a["data-line"] for a, _ in page.find("button") if "data-line" in a} == numbers
    assert {a["data-line"] for a, _ in page.find("tr") if "data-line" in a} == numbers
    data = json.loads(page.find("script", type="application/json")[0][1])
    assert data["seen"] == [str(k) for k in range(10, 101, 10)]
    assert [line[-1] for line in data["text"]] == ["15.0 %", "25.0 %"]
    assert len(data["across"]) == len(data["down"][0]) == 10
    labels = [re.sub(r"\s+", " ", text) for a, text in page.find("button") if "data-line" in a]
    assert labels == ["Fast 15.0 %", "Slow 25.0 %"]


def test_the_curve_is_drawn_where_the_values_are() -> None:
    flat = standings({"Flat": trace("classification", 1.0)})  # mistakes only: a level line at 100 %
    page = Page(report.render([flat]))
    path = str(page.find("path", class_="line")[0][0]["d"])
    points = [tuple(map(float, point.split())) for point in re.split("[ML]", path)[1:]]
    assert [x for x, _ in points] == [100.0 * k for k in range(1, 11)]
    assert len({y for _, y in points}) == 1


def test_several_races_have_an_overview_and_steady_colours(race: Standings) -> None:
    other = standings({"Only": trace("regression", 0.4), "Fast": trace("regression", 0.5)}, "regression", "other")
    page = Page(report.render([race, other]))
    assert [text for _, text in page.find("h2")] == ["At a glance", "toy", "other"]
    assert table_rows(page)[:3] == [
        ["Fast", "15.0 %", "0.500"],
        ["Slow", "25.0 %", "–"],
        ["Only", "–", "0.400"],
    ]
    first = report.render([race, other])
    styles = re.findall(r'<button type="button" data-line.*?path style="([^"]*)".*?<span>(\w+)</span>', first, re.S)
    by_name: dict[str, set[str]] = {}
    for style, name in styles:
        by_name.setdefault(name, set()).add(style)
    assert {name: len(found) for name, found in by_name.items()} == {"Fast": 1, "Slow": 1, "Only": 1}
    assert len({style for found in by_name.values() for style in found}) == 3


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
    lines = {a["data-line"]: str(a["d"]) for a, _ in page.find("path", class_="line")}
    assert lines["1"].count("L") == 3  # drawn as far as it went
    values = [a["data-value"] for a, _ in page.find("td")]
    assert "" in values
    assert not any(value and "inf" in value for value in values)


def test_a_race_nobody_finished(race: Standings) -> None:
    page = Page(report.render([standings({})]))
    assert any("No learner finished." in text for _, text in page.find("section"))


def test_unknown_sizes_are_a_dash() -> None:
    page = Page(report.render([standings({"Plain": trace("classification", 0.5, size=None)})]))
    assert table_rows(page)[0][2] == "–"


def test_write(tmp_path: Path, race: Standings) -> None:
    report.write(tmp_path / "page.html", [race], title="größer")
    assert "größer" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_page_with_many_lines_keeps_its_labels_apart() -> None:
    many = standings({f"Learner{i:02}": trace("classification", 0.3 + i / 1e4) for i in range(30)})
    text = report.render([many])
    height = int(re.findall(r"--height:(\d+)px", text)[0])
    tops = sorted(float(top) for top in re.findall(r'aria-pressed="true" style="top:([\d.]+)%"', text))
    assert len(tops) == 30
    assert 0 <= tops[0] <= tops[-1] <= 100
    assert min(np.diff(tops)) * height / 100 > 20
    looks = re.findall(r'class="line" data-line="\d+" (style="[^"]*")', text)
    assert len(set(looks)) == 30  # colour and dash together tell all of them apart


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


def test_the_error_axis_starts_at_zero_unless_all_is_far_above() -> None:
    assert plots.error_axis([line(0.9, *[0.3] * 4, *[0.1] * 5)]).low == 0
    assert plots.error_axis([line(2.0, *[0.95] * 4, *[0.8] * 5)]).low == pytest.approx(0.8)
    assert plots.error_axis([line(*[0.8] * 10)]).low < 0.75  # a level line is no reason for a magnifying glass


def test_the_error_axis_ignores_the_noisy_beginning_and_what_left_the_world() -> None:
    calm = [line(1.0, *[0.1] * 9) for _ in range(4)]
    assert plots.error_axis(calm).high == pytest.approx(0.1)
    assert plots.error_axis([*calm, line(*[50.0] * 10)]).high < 1
    assert plots.error_axis([*calm, line(*[math.inf] * 10)]).high == pytest.approx(0.1)
    assert plots.error_axis([line(math.inf, math.inf)]).high == 1


def test_spread_moves_labels_no_more_than_needed() -> None:
    assert plots.spread([0.1, 0.5, 0.9], 0.1) == pytest.approx([0.1, 0.5, 0.9])
    assert plots.spread([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])
    assert plots.spread([0.6, 0.2, 0.61], 0.1) == pytest.approx([0.555, 0.2, 0.655])
    assert plots.spread([1.0, 1.0, 1.0], 0.1) == pytest.approx([0.8, 0.9, 1.0])
