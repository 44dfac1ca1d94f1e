"""The report in a real browser: it renders, its controls work, it says nothing on the console and asks nobody."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import browser
import numpy as np
import pytest
from browser import Browser, Tab

from onkel.datasets import Stream
from onkel.evaluation import page, plots, report
from onkel.evaluation.results import Result, Standings
from onkel.evaluation.traces import Trace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.program() is None, reason="no Chromium or Chrome here; CHROMIUM may name one"),
]

SEEN = np.arange(20, 1001, 20)
EVIL = "<b>&\"Evil'</b>"


def trace(late: float, size: int | None, seconds: float) -> Trace:
    """Mistakes that become rarer: a share of `late` in the end."""
    total = np.round(1000 * late * (SEEN / 1000) ** 0.7)
    sizes = None if size is None else np.minimum(SEEN, size)
    return Trace("classification", SEEN, total, sizes, np.linspace(0, seconds, len(SEEN) + 1)[1:])


def standings(name: str) -> Standings:
    lost = trace(0.3, 40, 0.02)
    diverged = np.where(SEEN > 500, np.inf, lost.total)
    runs = {
        "Best": trace(0.1, 100, 0.004),
        "Middle": trace(0.2, None, 0.001),
        "WorstOfAllLearners": trace(0.4, 300, 0.5),
        EVIL: Trace("classification", SEEN, diverged, lost.size, lost.seconds),
    }
    results = tuple(Result(key, {"eta": "0.5"}, (run,)) for key, run in runs.items())
    return Standings(Stream(name, np.zeros((1000, 4)), np.arange(1000) % 3, "classification", "made up"), results, 1000)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(str(browser.program()), tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("page") / "race.html"
    report.write(file, [standings("first"), standings("second")], title="Race", notice="Interrupted: partial.")
    return file.as_uri()


@pytest.fixture
def tab(chromium: Browser, address: str) -> Iterator[Tab]:
    """The page, freshly opened; whatever a test does to it, it stays silent and asks the network nothing."""
    opened = Tab(chromium, address)
    yield opened
    assert opened.complaints() == []
    assert [asked for asked in opened.requests() if not asked.startswith(("blob:", "data:"))] == [address]
    opened.run("localStorage.clear()")
    opened.call("Page.close")


def texts(tab: Tab, selector: str) -> list[str]:
    found = tab.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")
    return [str(text) for text in found]


CHART = "#part-1 .chart"


def readings(tab: Tab) -> dict[str, str]:
    """The legend of the first chart: names and values."""
    return dict(zip(texts(tab, f"{CHART} .legend span"), texts(tab, f"{CHART} .legend output"), strict=True))


def lines(tab: Tab) -> list[str]:
    """The learners that are drawn in the first chart, from the back to the front."""
    names = list(readings(tab))
    drawn = tab.run(f"[...document.querySelectorAll('{CHART} .line')].map(e => e.dataset.line)")
    return [names[int(i)] for i in drawn]


def marks(tab: Tab) -> list[str]:
    """All words inside the drawing."""
    return texts(tab, f"{CHART} .plot text")


def choose(tab: Tab, measure: str) -> None:
    place = [text.strip() for text in texts(tab, f"{CHART} .controls .choice label")].index(measure)
    tab.click(f"{CHART} .controls .choice label:nth-of-type({place + 1})")


# -- drawing


def test_it_renders(tab: Tab) -> None:
    assert texts(tab, "h1") == ["Race"]
    assert texts(tab, ".notice") == ["Interrupted: partial."]
    assert tab.run("document.querySelectorAll('.chart .plot > svg').length") == 2
    assert readings(tab) == {"Best": "10.0 %", "Middle": "20.0 %", "WorstOfAllLearners": "40.0 %", EVIL: "diverged"}
    assert lines(tab) == [EVIL, "WorstOfAllLearners", "Middle", "Best"]
    assert {"0 %", "20 %", "600", "examples"} <= set(marks(tab))
    assert tab.run("document.querySelectorAll('noscript svg').length") == 0


def test_lines_lie_where_their_values_are(tab: Tab) -> None:
    places = tab.run(
        f"[...document.querySelectorAll('{CHART} .plot text')].map(e => [e.textContent, +e.getAttribute('y') - 4])"
    )
    level = dict(places)
    path = tab.run(f"document.querySelector('{CHART} .line[data-line=\"1\"]').getAttribute('d')")
    points = [tuple(map(float, point.split())) for point in re.split("[ML]", path)[1:]]
    assert len(points) == len(SEEN)
    unit = (level["0 %"] - level["20 %"]) / 0.2
    wanted = level["0 %"] - unit * trace(0.2, None, 1.0).error
    np.testing.assert_allclose([y for _, y in points], wanted, atol=0.2)


def test_labels_keep_apart_and_inside(tab: Tab) -> None:
    boxes = tab.run(
        f"[...document.querySelectorAll('{CHART} .legend button')].map(e => e.getBoundingClientRect())"
        ".map(b => [b.top, b.bottom]).sort((a, b) => a[0] - b[0])"
    )
    assert all(before[1] <= after[0] + 0.5 for before, after in itertools.pairwise(boxes))


@pytest.mark.parametrize("measure", ["recent error", "error by time", "support vectors", "time"])
def test_every_measure_is_drawn(tab: Tab, measure: str) -> None:
    before = texts(tab, f"{CHART} figcaption")
    choose(tab, measure)
    assert texts(tab, f"{CHART} figcaption") != before
    assert len(lines(tab)) == (3 if measure == "support vectors" else 4)
    values = readings(tab)
    expected = {
        "recent error": "7.0 %",
        "error by time": "10.0 %",
        "support vectors": "100",
        "time": "4 ms",
    }
    assert values["Best"] == expected[measure]
    assert (values["Middle"] == "–") == (measure == "support vectors")


def test_log_axes(tab: Tab) -> None:
    choose(tab, "error by time")
    assert tab.run(f"document.querySelector('{CHART} input[value=logX]').checked")
    plain = marks(tab)
    tab.click(f"{CHART} input[value=logX]")
    assert marks(tab) != plain
    across = marks(tab)
    tab.click(f"{CHART} input[value=logY]")
    assert marks(tab) != across
    assert "0 %" not in marks(tab)
    path = tab.run(f"document.querySelector('{CHART} .line').getAttribute('d')")
    assert re.fullmatch(r"([ML][-\d.]+ [-\d.]+)+", path)


# -- reading and zooming


def test_the_mouse_reads_values(tab: Tab) -> None:
    final = readings(tab)
    tab.hover(f"{CHART} .plot", 0.5, 0.5)
    (caption,) = texts(tab, f"{CHART} .caption")
    found = re.fullmatch(r"after (\d+) examples", caption)
    assert found
    k = int(found[1])
    error = trace(0.1, 1, 1.0).error[list(SEEN).index(k)]
    assert readings(tab)["Best"] == f"{100 * error:.1f} %"
    assert tab.run(f"document.querySelectorAll('{CHART} .readout circle').length") >= 3
    tab.hover("h1")
    assert readings(tab) == final
    assert texts(tab, f"{CHART} .caption") == ["examples"]


def test_the_keyboard_reads_zooms_and_lets_go(tab: Tab) -> None:
    tab.run(f"document.querySelector('{CHART} .plot').focus()")
    tab.key("Home")
    assert texts(tab, f"{CHART} .caption") == ["after 20 examples"]
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        tab.key(key)
    assert texts(tab, f"{CHART} .caption") == ["after 40 examples"]
    tab.key("ArrowRight", shift=True)
    assert texts(tab, f"{CHART} .caption") == ["after 140 examples"]
    spoken = tab.run(f"document.querySelector('{CHART} .plot').getAttribute('aria-valuetext')")
    assert spoken.startswith("after 140 examples: Best ")
    plain = marks(tab)
    tab.key("+", text="+")
    assert texts(tab, f"{CHART} .caption") == ["after 140 examples"]
    assert marks(tab) != plain
    tab.key("Escape")
    assert texts(tab, f"{CHART} .caption") == ["examples"]
    assert "600" in marks(tab)


def test_dragging_zooms_and_a_button_shows_all_again(tab: Tab) -> None:
    plain, button = marks(tab), f"{CHART} button[value=whole]"
    assert tab.run(f"document.querySelector('{button}').hidden")
    x, y = tab.place(f"{CHART} .plot", 0.3)
    far, _ = tab.place(f"{CHART} .plot", 0.5)
    tab.mouse("mousePressed", x, y, button="left", clickCount=1)
    tab.mouse("mouseMoved", far, y, button="left", buttons=1)
    assert tab.run(f"document.querySelectorAll('{CHART} .band').length") == 1
    tab.mouse("mouseReleased", far, y, button="left", clickCount=1)
    assert marks(tab) != plain
    assert "0" not in marks(tab)
    tab.click(button)
    tab.hover("h1")
    assert marks(tab) == plain


# -- hiding


@pytest.mark.parametrize("place", [f"{CHART} .legend", "#part-1 table", "#part-0 table"])
def test_a_name_hides_its_learner_everywhere(tab: Tab, place: str) -> None:
    name = f"{place} [data-learner=WorstOfAllLearners]"
    top = tab.run(f"document.querySelector('{CHART} .plot text').textContent")
    tab.click(name)
    assert lines(tab) == [EVIL, "Middle", "Best"]
    assert tab.run("document.querySelectorAll('#part-2 .line').length") == 3
    pressed = tab.run(
        "[...document.querySelectorAll('[data-learner=WorstOfAllLearners]')].map(e => e.ariaPressed).join()"
    )
    assert set(pressed.split(",")) == {"false"}
    assert top != marks(tab)[-1]
    tab.click(name)
    assert len(lines(tab)) == 4


def test_shift_shows_one_alone_and_a_button_shows_all(tab: Tab) -> None:
    tab.click(f"{CHART} .legend [data-learner=Middle]", shift=True)
    assert lines(tab) == ["Middle"]
    tab.click(f"{CHART} button[value=all]")
    assert len(lines(tab)) == 4
    tab.run(f"document.querySelector('{CHART} .legend [data-learner=Middle]').focus()")
    tab.key("Enter", text="\r")
    assert "Middle" not in lines(tab)


def test_with_nobody_shown_there_is_still_a_chart(tab: Tab) -> None:
    tab.click(f"{CHART} .legend [data-learner=Middle]", shift=True)
    tab.click(f"{CHART} .legend [data-learner=Middle]")
    assert lines(tab) == []
    tab.hover(f"{CHART} .plot")
    for box in ("logX", "logY"):
        tab.click(f"{CHART} input[value={box}]")


# -- tables


def column(tab: Tab, number: int) -> list[str]:
    return texts(tab, f"#part-1 tbody tr > :nth-child({number})")


def test_tables_sort_by_any_column(tab: Tab) -> None:
    head = "#part-1 thead th:nth-child({}) button"
    tab.click(head.format(2))  # sorted upwards already, so downwards; what diverged stays last
    assert column(tab, 2) == ["40.0 %", "20.0 %", "10.0 %", "diverged"]
    tab.click(head.format(4))
    assert [name.split()[0] for name in column(tab, 1)][:2] == ["Middle", "Best"]
    assert tab.run("document.querySelector('#part-1 th[aria-sort]').cellIndex") == 3
    tab.click(head.format(3))
    assert column(tab, 3) == ["40", "100", "300", "–"]
    tab.run(f"document.querySelector('{head.format(1)}').focus()")
    tab.key("Enter", text="\r")
    assert column(tab, 1)[1:] == ["Best", "Middle", "WorstOfAllLearners"]


def test_a_row_lets_its_line_stand_out(tab: Tab) -> None:
    tab.hover("#part-1 tbody tr:nth-child(2)")
    assert tab.run(f"document.querySelector('{CHART} .line.near').dataset.line") == "1"
    tab.hover("h1")
    assert tab.run(f"document.querySelectorAll('{CHART} .near').length") == 0


# -- light, dark, small, printed

CONTRASTS = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = (e) => {
    for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; }
    return rgb("Canvas");
  };
  const ratio = (colour, e) => {
    const [dim, bright] = [light(rgb(colour)), light(ground(e))].sort((a, b) => a - b);
    return (bright + 0.05) / (dim + 0.05);
  };
  const seen = (e) => e.checkVisibility() && e.getBoundingClientRect().width;
  const words = [...document.querySelectorAll("body *")].filter(e => seen(e) && !e.closest("script")
    && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()));
  const strokes = [...document.querySelectorAll(".line, .swatch path")].filter(seen);
  const style = (e) => getComputedStyle(e), colour = (e) => e.closest("svg") ? style(e).fill : style(e).color;
  return {
    words: words.map(e => [e.textContent.slice(0, 30), ratio(colour(e), e)]),
    strokes: strokes.map(e => [e.getAttribute("style"), ratio(style(e).stroke, e)]),
    colours: [0, 1, 2, 3, 4, 5, 6, 7].map(k => {
      const probe = document.querySelector("section").appendChild(document.createElement("i"));
      probe.style.color = `var(--line-${k})`;
      return [k, ratio(style(probe).color, probe)];
    }),
  };
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_everything_can_be_read_in_light_and_dark(tab: Tab, scheme: str, width: int) -> None:
    """WCAG 2.2, level AA: 4.5 : 1 for words, 3 : 1 for lines."""
    tab.media(prefers_color_scheme=scheme)
    tab.resize(width, 900)
    tab.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    tab.click("#part-1 table [data-learner=Middle]")
    tab.hover("h1")
    background = tab.run("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) > 380) == (scheme == "light")
    found = tab.run(CONTRASTS)
    assert len(found["words"]) > 80
    assert [entry for entry in found["words"] if entry[1] < 4.5] == []
    assert len(found["strokes"]) > 15
    assert [entry for entry in found["strokes"] + found["colours"] if entry[1] < 3] == []


def test_the_switch_overrides_the_system_and_is_remembered(tab: Tab, chromium: Browser, address: str) -> None:
    def ground(page: Tab) -> str:
        return str(page.run("getComputedStyle(document.body).backgroundColor"))

    light = ground(tab)
    tab.click(".theme label:nth-of-type(3)")
    assert ground(tab) != light
    until = time.monotonic() + 20  # what one tab stores reaches another a little later
    while ground(Tab(chromium, address)) == light:
        assert time.monotonic() < until, "the choice is not remembered"
        time.sleep(0.1)
    tab.media(prefers_color_scheme="dark")
    tab.click(".theme label:nth-of-type(2)")
    assert ground(tab) == light
    tab.click(".theme label:nth-of-type(1)")
    assert ground(tab) != light


@pytest.mark.parametrize("width", [320, 390, 768, 1600])
def test_nothing_is_wider_than_the_window(tab: Tab, width: int) -> None:
    tab.resize(width, 800)
    tab.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert tab.run("document.documentElement.scrollWidth") <= width
    svg = f"document.querySelector('{CHART} .plot > svg')"
    drawn, meant = tab.run(f"[{svg}.getBoundingClientRect().width, {svg}.viewBox.baseVal.width]")
    assert drawn == pytest.approx(meant, abs=1)  # drawn anew for this width, not stretched


def test_it_prints_light_with_figures_and_settings(tab: Tab) -> None:
    tab.media(prefers_color_scheme="dark")
    pdf = tab.printed()
    assert pdf.startswith(b"%PDF")
    assert tab.run("document.querySelectorAll('.printed > svg').length") == 2
    assert tab.run("document.querySelectorAll('details:not([open])').length") == 0
    tab.media("print", prefers_color_scheme="dark")
    assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.run("getComputedStyle(document.querySelector('.swatch path')).stroke") == "rgb(0, 94, 205)"
    assert tab.run("document.querySelector('.controls').checkVisibility()") is False


# -- saving


def saved(tab: Tab, kind: str, folder: Path) -> bytes:
    """Press the button and wait for the file."""
    tab.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder), eventsEnabled=True)
    tab.click(f"{CHART} button[value={kind}]")
    deadline = time.monotonic() + browser.PATIENCE
    while not (files := [file for file in folder.iterdir() if file.suffix == f".{kind}"]):
        assert time.monotonic() < deadline, "no file came"
        tab.run("new Promise(done => setTimeout(done, 50))")
    assert [file.name for file in files] == [f"race-first-error-so-far.{kind}"]
    return files[0].read_bytes()


def test_the_chart_is_saved_as_svg(tab: Tab, tmp_path: Path) -> None:
    tab.media(prefers_color_scheme="dark")
    tab.click(f"{CHART} .legend [data-learner=Middle]")
    root = ElementTree.fromstring(saved(tab, "svg", tmp_path))
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Best 10.0 %", f"{EVIL} diverged", "examples"} <= set(words)
    assert "Middle 20.0 %" not in words
    strokes = [element.attrib["style"] for element in root.findall(".//{*}path")]
    assert not any("(" in style for style in strokes)  # plain colours, which every program understands
    assert any("#005ecd" in style for style in strokes)  # on paper it is light


def test_the_chart_is_saved_as_png(tab: Tab, tmp_path: Path) -> None:
    data = saved(tab, "png", tmp_path)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(data[16:20]) == 2400


# -- other pages


def opened(chromium: Browser, folder: Path, text: str, **how: bool) -> Tab:
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8")
    return Tab(chromium, file.as_uri(), **how)


def test_without_scripts_there_is_a_figure(chromium: Browser, tmp_path: Path) -> None:
    tab = opened(chromium, tmp_path, report.render([standings("first")]), scripts=False)
    names = tab.call("DOMSnapshot.captureSnapshot", computedStyles=[])["strings"]
    assert "polyline" in names
    assert tab.complaints() == []


ODD = {
    "one checkpoint": ([1], [1.0], [1], [1e-5]),
    "never wrong": ([10, 20], [0.0, 0.0], [1, 1], [0.0, 1e-6]),
    "diverged at once": ([10, 20], [np.inf, np.inf], [5, 5], [1e-3, 1e-3]),
    "large numbers": ([10, 10**9], [1e7, 5e8], [10**6, 10**7], [1e3, 1e6]),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_races_are_drawn(chromium: Browser, tmp_path: Path, kind: str) -> None:
    seen, total, size, seconds = map(np.array, ODD[kind])
    made = [
        Result(name, {}, (Trace("classification", seen, total, size, seconds),)) for name in ("one", "the same again")
    ]
    race = Standings(Stream("odd", np.zeros((4, 1)), np.arange(4), "classification", kind), tuple(made), int(seen[-1]))
    tab = opened(chromium, tmp_path, report.render([race]))
    for measure in range(5):
        tab.click(f".controls .choice label:nth-of-type({measure + 1})")
        for box in ("logX", "logY", "logX", "logY"):
            tab.click(f".controls input[value={box}]")
            tab.hover(".plot")
            for key in ("Home", "+", "-", "End", "Escape"):
                tab.run("document.querySelector('.plot').focus()")
                tab.key(key, text=key if len(key) == 1 else "")
            drawn = tab.run("document.querySelector('.plot').innerHTML")
            assert not re.search("NaN|Infinity|undefined|null", drawn)
    assert tab.complaints() == []


def test_a_chart_of_other_things(chromium: Browser, tmp_path: Path) -> None:
    x = np.array([0.01, 0.1, 1.0])
    lines = [plots.Line("FOGD", 0, x, np.array([3.0, 1.0, 2.0])), plots.Line("NOGD", 9, x[1:], np.array([-1.0, 4.0]))]
    panel = plots.Panel("a9a", "loss on a9a", lines, horizontal="gamma", count="number", log=True)
    tab = opened(chromium, tmp_path, page.render("T", [page.Section("S", plots.chart([panel]))]))
    assert tab.run("document.querySelector('input[value=logX]').checked")
    assert tab.run("document.querySelectorAll('.controls .choice').length") == 0  # there is one panel only
    assert {"0.01", "0.1", "1", "-2", "4", "gamma"} <= set(texts(tab, ".plot text"))
    tab.run("document.querySelector('.plot').focus()")
    tab.key("Home")
    assert texts(tab, ".caption") == ["gamma 0.010"]
    assert texts(tab, ".legend output") == ["3.000", ""]  # the second begins later
    assert tab.complaints() == []


def test_a_page_without_charts(chromium: Browser, tmp_path: Path) -> None:
    rows = [["b", page.Cell("2", 2)], ["a", page.Cell("10", 10, mark="bad")]]
    tab = opened(chromium, tmp_path, page.render("T", [page.Section("S", page.table(["name", "n"], rows))]))
    tab.click("thead th:nth-child(2) button")
    assert texts(tab, "tbody th") == ["b", "a"]
    tab.click("thead th:nth-child(1) button")
    assert texts(tab, "tbody th") == ["a", "b"]
    assert tab.complaints() == []
