"""Line charts: `chart` for a page, `figure` as an SVG file, `trail` for an attribute that a model learns.

On a page the lines are drawn by its script, page.js, and can be hidden, zoomed and read. A figure is drawn here, and
looks as the chart does at first.
"""

from __future__ import annotations

import dataclasses
import html
import json
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Unit = Literal["share", "number", "count", "seconds"]

# For a light and for a dark background, with a contrast of at least 3. Colour-blind readers can tell them apart: in
# Machado's simulations the CIE76 difference is at least 14. Further lines repeat them with other dash patterns.
PALETTE = (
    ("#005ecd", "#528fcb"),
    ("#b64800", "#f77b3c"),
    ("#009d6f", "#22c08e"),
    ("#b65390", "#eb91c3"),
    ("#de7a00", "#f5b82f"),
    ("#4094f4", "#9bd8fb"),
    ("#4a4b51", "#cbd6c7"),
    ("#7c3390", "#b282ff"),
)
COLOURS = len(PALETTE)
_DASHES = ("none", "7 4", "2 3", "10 3 2 3")


@dataclasses.dataclass(frozen=True, eq=False)
class Line:
    """A named curve; `number` chooses colour and dash, so that a name can look the same in several charts."""

    name: str
    number: int
    x: Floats
    y: Floats


@dataclasses.dataclass(frozen=True, eq=False)
class Panel:
    """One measure of several lines.

    Parameters
    ----------
    name : a word or two, to choose it by.
    title, horizontal : what is drawn, and what the horizontal axis counts.
    lines : those that have such a measure.
    unit, count : how values, and places on the horizontal axis, are written.
    noisy : the beginning, and a line far above the others, may leave the picture (see `fit`).
    log : a logarithmic horizontal axis, to begin with.
    """

    name: str
    title: str
    lines: Sequence[Line]
    horizontal: str = "examples"
    unit: Unit = "number"
    count: Unit = "count"
    noisy: bool = False
    log: bool = False

    def figure(self, prefix: str = "") -> str:
        """The panel alone, as an SVG document; the prefix goes before the title."""
        return figure(
            self.lines,
            title=prefix + self.title,
            horizontal=self.horizontal,
            vertical=fit(self.lines, noisy=self.noisy),
            log=self.log,
            tick=TICKS[self.unit],
            count=TICKS[self.count],
        )


@dataclasses.dataclass(frozen=True)
class Axis:
    """The interval of numbers from `low` to `high`, with round numbers inside as ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def share(self, values: Any) -> Floats:
        """Where values lie, 0 at `low` and 1 at `high`."""
        return (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low)


def axis(low: float, high: float, *, about: int = 5, whole: bool = False) -> Axis:
    """An axis with roughly `about` round ticks that covers low to high; `whole` keeps the ends as given."""
    high = high if high > low else low + (abs(low) or 1.0)
    step = _round_step((high - low) / about)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [step * i for i in range(first, last + 1)]
    if whole:
        return Axis(low, high, tuple(tick for tick in ticks if low <= tick <= high))
    return Axis(ticks[0], ticks[-1], tuple(ticks))


def fit(lines: Sequence[Line], *, noisy: bool) -> Axis:
    """The vertical axis for lines. It starts at 0, unless a value is negative or all are above half of the largest.

    The first fifth of a noisy curve, such as a cumulative error, may leave the picture; so may a line that ends
    far above all others.
    """
    tails = [line.y[line.x >= 0.2 * line.x[-1]] if noisy else line.y for line in lines]
    finite = [tail[np.isfinite(tail)] for tail in tails]
    peaks = [float(tail.max()) for tail in finite if len(tail)]
    if not peaks:
        return axis(0.0, 1.0)
    top, middle = max(peaks), float(np.quantile(peaks, 0.5))
    top = 3 * middle if noisy and top > 5 * middle else top
    bottom = min(float(tail.min()) for tail in finite if len(tail))
    return axis(min(bottom, 0.9 * top) if bottom > 0.5 * top else min(0.0, bottom), top)


def chart(panels: Sequence[Panel]) -> str:
    """An interactive chart as an HTML fragment for `page.render`: one panel at a time, to begin with the first."""
    first = panels[0]
    return "\n".join(
        [
            '<figure class="chart">',
            f"<figcaption>{html.escape(first.title)}</figcaption>",
            f"<noscript>{first.figure()}</noscript>",
            f'<script type="application/json">{_data(panels)}</script>',
            "</figure>",
        ]
    )


def _data(panels: Sequence[Panel]) -> str:
    """The data for page.js as JSON, with < escaped so that no text ends the script element; nan and inf become null."""
    numbers = {line.name: line.number for panel in panels for line in panel.lines}
    content = {
        "learners": [{"name": name, "number": number} for name, number in numbers.items()],
        "panels": [_panel_data(panel, list(numbers)) for panel in panels],
    }
    return json.dumps(content, separators=(",", ":")).replace("<", chr(92) + "u003c")


def _panel_data(panel: Panel, names: Sequence[str]) -> dict[str, Any]:
    """The data of the lines, in the order of the names; if all have the same x, it is written once."""
    words = {field.name: getattr(panel, field.name) for field in dataclasses.fields(panel) if field.name != "lines"}
    lines = {line.name: line for line in panel.lines}
    common = panel.lines[0].x
    shared = all(np.array_equal(line.x, common) for line in panel.lines)
    return words | {
        "x": [_digits(x, 9) for x in common] if shared else [],
        "lines": [_points(lines[name], shared) if name in lines else {"y": None} for name in names],
    }


def _points(line: Line, shared: bool) -> dict[str, Any]:
    y = {"y": [_digits(value, 4) for value in line.y]}
    return y if shared else y | {"x": [_digits(value, 4) for value in line.x]}


def _digits(value: float, most: int) -> float | int | None:
    """A number in few digits."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{most}g}")
    return int(rounded) if rounded.is_integer() else rounded


def style_sheet() -> str:
    """The colours of lines as CSS variables."""
    return "\n".join(f"  --line-{i}: light-dark({light}, {dark});" for i, (light, dark) in enumerate(PALETTE))


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """The places in [0, 1] nearest to the wanted ones (least squares) with the same order and at least this gap."""
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(order))
    room = max(0.0, 1.0 - gap * (len(order) - 1))
    from sklearn.isotonic import isotonic_regression  # slow to import

    sorted_places = isotonic_regression(np.asarray(wanted)[order] - steps, y_min=0.0, y_max=room) + steps
    places = np.empty(len(order))
    places[order] = sorted_places
    return [float(place) for place in places]


def _round_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, not below `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))


def _clip(share: Any) -> float:
    """A place inside the picture; what is not a number lies at the top, above everything."""
    value = float(share)
    return min(max(value, 0.0), 1.0) if math.isfinite(value) else 0.0


def swatch(number: int) -> str:
    """A short piece of a line, for tables."""
    look = f"stroke:var(--line-{number % COLOURS});stroke-dasharray:{_dash(number)}"
    return f'<svg class="swatch" aria-hidden="true"><path style="{look}" d="M1 5H25"/></svg>'


# -- figures: one SVG file, for manuals and papers

_WIDTH, _LEAST_HEIGHT = 760, 400
_LEFT, _TOP, _RIGHT, _BELOW = 64, 40, 560, 50  # the plot: its left, top and right edge, and the room under it
_LABEL = 17


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{1e6 * seconds:.3g} µs" if seconds else "0"


TICKS: dict[Unit, Callable[[float], str]] = {
    "share": lambda value: f"{100 * value:.3g} %",
    "number": "{:.3g}".format,
    "count": "{:,.0f}".format,
    "seconds": _time,
}


def trail(
    model: Any,
    X: Any,
    y: Any,
    attribute: str = "widths_",
    *,
    names: Sequence[str] = (),
    points: int = 100,
    **learn: Any,
) -> str:
    """Learn from the rows in order, and draw how a learned attribute moves: one line for each of its numbers.

    Parameters
    ----------
    model : an estimator, as RRFClassifier, or OMKCClassifier for "weights_"; it continues to learn
    X, y : the rows and targets to learn from
    attribute : what to watch, an array of one axis
    names : of the lines (default: the model's kernels for "weights_", its feature names, or numbers)
    points : how often to look
    learn : passed on to `model.learn`, as classes=
    """
    cuts = np.unique(np.linspace(0, len(y), points + 1).astype(int))
    seen = []
    for start, stop in pairwise(cuts):
        model.learn(X[start:stop], y[start:stop], **learn)
        seen.append(np.array(getattr(model, attribute), dtype=np.float64))
    values = np.stack(seen, axis=1)
    own = getattr(model, "kernels_" if attribute == "weights_" else "feature_names_in_", range(len(values)))
    labels = list(names) or [str(name) for name in own]
    if len(labels) != len(values):
        raise ValueError(f"names has {len(labels)} entries, {attribute} has {len(values)}: give one for each")
    lines = [
        Line(label, i, cuts[1:].astype(float), line) for i, (label, line) in enumerate(zip(labels, values, strict=True))
    ]
    return figure(lines, title=f"{type(model).__name__}.{attribute}", horizontal="examples")


def figure(
    lines: Sequence[Line],
    *,
    title: str,
    horizontal: str,
    vertical: Axis | None = None,
    log: bool = False,
    tick: Callable[[float], str] = "{:g}".format,
    count: Callable[[float], str] = "{:,g}".format,
) -> str:
    """A chart as a self-contained SVG document.

    Parameters
    ----------
    lines : each with its own x
    title, horizontal : what is drawn, and what the horizontal axis counts
    vertical : the vertical axis (default: `fit`); parts of lines outside are cut off
    log : a logarithmic horizontal axis, of what is positive
    tick, count : values of the vertical and of the horizontal axis as text (default: plain numbers)
    """
    height = max(_LEAST_HEIGHT - _TOP - _BELOW, _LABEL * len(lines))
    bottom = _TOP + height
    down = vertical or fit(lines, noisy=False)
    ends = np.concatenate([line.x for line in lines])
    across = _log_axis(ends) if log else axis(0.0, float(ends.max()), about=7, whole=True)

    def place(x: Any, y: Any) -> tuple[Floats, Floats]:
        """The coordinates of points in the picture."""
        with np.errstate(divide="ignore"):  # 0 lies infinitely far to the left, and is not drawn
            values = np.log10(x) if log else np.asarray(x)
        return _LEFT + (_RIGHT - _LEFT) * across.share(values), bottom - height * down.share(y)

    text = [f'<text x="{_LEFT}" y="22" class="title">{html.escape(title)}</text>']
    for value, share in zip(down.ticks, down.share(down.ticks), strict=True):
        y = bottom - height * float(share)
        text.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>')
        text.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{html.escape(tick(value))}</text>')
    for value, share in zip(across.ticks, across.share(across.ticks), strict=True):
        label = count(10**value if log else value)
        x = _LEFT + (_RIGHT - _LEFT) * float(share)
        text.append(f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{label}</text>')
    text.append(f'<text x="{_RIGHT}" y="{bottom + 38}" text-anchor="end">{html.escape(horizontal)}</text>')
    box = (_LEFT, _TOP, _RIGHT - _LEFT, height)
    text.append('<svg x="{}" y="{}" width="{}" height="{}" viewBox="{} {} {} {}">'.format(*box, *box))  # cuts off
    for line in reversed(lines):  # the first over the others
        drawn = [(a, b) for a, b in zip(*place(line.x, line.y), strict=True) if math.isfinite(a) and math.isfinite(b)]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in drawn)
        text.append(f'<polyline {_look(line)} points="{points}"/>')
    text.append("</svg>")
    shares = [_clip(1.0 - down.share(line.y[-1])) for line in lines]
    names = [f"{line.name}: {tick(_three(line.y[-1])) if math.isfinite(line.y[-1]) else 'diverged'}" for line in lines]
    gap = min(_LABEL / height, 1 / max(len(lines), 1))
    for line, name, share, label_share in zip(lines, names, shares, spread(shares, gap), strict=True):
        end, target = float(place(line.x[-1:], line.y[-1:])[0][0]), _TOP + height * label_share
        text.append(_end(line, end, _TOP + height * share, target))
        text.append(f'<path {_look(line)} d="M{_RIGHT + 28} {target:.1f}h22"/>')
        text.append(f'<text x="{_RIGHT + 56}" y="{target + 4:.1f}">{html.escape(name)}</text>')
    width = max(_WIDTH, _RIGHT + 64 + 7 * max(map(len, names)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + _BELOW}" role="img" '
        f'aria-label="{html.escape(title)}"><style>{_style()}</style>\n' + "\n".join(text) + "\n</svg>\n"
    )


def _end(line: Line, x: float, y: float, target: float) -> str:
    """A leader from the end of a line to its name; if it ends early, only a point: a leader would cross other lines."""
    if not math.isfinite(line.y[-1]):
        return ""
    if x < _RIGHT - 1:
        return f'<circle class="end{line.number % COLOURS}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
    return f'<path class="line{line.number % COLOURS} leader" d="M{x:.1f} {y:.1f}L{_RIGHT + 24} {target:.1f}"/>'


def _style() -> str:
    light, dark = (
        "".join(f".line{i}{{stroke:{pair[k]};fill:none}}.end{i}{{fill:{pair[k]}}}" for i, pair in enumerate(PALETTE))
        for k in (0, 1)
    )
    return (
        "text{font:13px system-ui,sans-serif;fill:#333}.title{font-weight:600;font-size:15px}"
        ".grid{stroke:#8884;fill:none}.line{stroke-width:2;stroke-linejoin:round}.leader{opacity:.5}"
        f"{light}@media(prefers-color-scheme:dark){{text{{fill:#ddd}}{dark}}}"
    )


def _look(line: Line) -> str:
    return f'class="line line{line.number % COLOURS}" stroke-dasharray="{_dash(line.number)}"'


def _dash(number: int) -> str:
    """The dash pattern of a line; lines of the same colour have different ones."""
    return _DASHES[number // COLOURS % len(_DASHES)]


def _three(value: float) -> float:
    """A number to three digits."""
    return float(f"{value:.3g}")


def _log_axis(values: Floats) -> Axis:
    """An axis of powers of ten, with marks at 1, 2 and 5 times them."""
    low, high = np.log10(values[values > 0].min()), np.log10(values.max())
    marks = [math.log10(m) + p for p in range(math.floor(low), math.ceil(high) + 1) for m in (1, 2, 5)]
    pad = 0.02 * max(high - low, 0.1)
    return Axis(low - pad, high + pad, tuple(m for m in marks if low - pad <= m <= high + pad))
