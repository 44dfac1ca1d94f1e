"""Line charts: `chart` for the report's page, `figure` as an SVG file of its own, `trail` for what a model learns.

In a page the lines live in an SVG that stretches with it; all text is HTML around it, which keeps its size on a
phone. Colours are those of the page's style sheet (`--line-0` and so on). A figure brings its own, for light and dark.
"""

from __future__ import annotations

import dataclasses
import html
import json
import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

Floats = NDArray[np.float64]

COLOURS = 8  # the style sheet defines --line-0 ... --line-7; further lines repeat them with other dash patterns
_DASHES = ("", "7 4", "2 3", "10 3 2 3")
_LABEL_HEIGHT = 21  # pixels
_LEAST_HEIGHT = 360
_UNIT = 1000.0  # the SVG's own coordinates run from 0 to this in both directions


@dataclasses.dataclass(frozen=True, eq=False)
class Line:
    """A named curve; `number` chooses colour and dash, so that a name can look the same in several charts."""

    name: str
    number: int
    x: Floats
    y: Floats


@dataclasses.dataclass(frozen=True)
class Axis:
    """A stretch of numbers, `low` to `high`, with round marks inside."""

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


def error_axis(lines: Sequence[Line]) -> Axis:
    """The vertical axis for cumulative errors.

    The first fifth of a cumulative curve is mostly noise and may leave the picture; so may a line that ends
    far above all others. The axis starts at 0 unless all lines stay in the upper half.
    """
    tails = [line.y[line.x >= 0.2 * line.x[-1]] for line in lines]
    finite = [tail[np.isfinite(tail)] for tail in tails]
    peaks = [float(tail.max()) for tail in finite if len(tail)]
    if not peaks:
        return axis(0.0, 1.0)
    top = min(max(peaks), 3.0 * float(np.quantile(peaks, 0.5)))
    bottom = min(float(tail.min()) for tail in finite if len(tail))
    return axis(min(bottom, 0.9 * top) if bottom > 0.5 * top else 0.0, top)


def chart(
    lines: Sequence[Line],
    *,
    title: str,
    horizontal: str,
    show: Callable[[float], str],
    tick: Callable[[float], str],
    vertical: Axis,
    spare: int = 0,
) -> str:
    """A figure as an HTML fragment.

    Parameters
    ----------
    lines : all with the same x.
    title, horizontal : what is drawn, and what the horizontal axis counts.
    show, tick : a value as text, for labels and for the round marks of the vertical axis.
    vertical : the vertical axis; parts of lines outside are cut off.
    spare : number of the chart on its page, which makes its identifiers unique.
    """
    across = axis(0.0, float(lines[0].x[-1]), about=7, whole=True)
    height = max(_LEAST_HEIGHT, _LABEL_HEIGHT * len(lines))
    ends = [_clip(1.0 - vertical.share(line.y[-1])) for line in lines]
    places = spread(ends, _LABEL_HEIGHT / height)
    return "\n".join(
        [
            f'<figure class="chart" style="--height:{height}px">',
            f"<figcaption>{html.escape(title)}</figcaption>",
            '<div class="frame">',
            _vertical_labels(vertical, tick),
            '<div class="plot">',
            _drawing(lines, across, vertical, spare),
            "</div>",
            _horizontal_labels(across, horizontal),
            _leaders(lines, ends, places),
            _legend(lines, places, show),
            "</div>",
            _data(lines, across, vertical, show),
            "</figure>",
        ]
    )


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places in [0, 1] nearest to the wanted ones (least squares) that keep their order and a gap."""
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(order))
    room = max(0.0, 1.0 - gap * (len(order) - 1))
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


def _look(number: int) -> str:
    dash = _DASHES[number // COLOURS % len(_DASHES)]
    dashed = f";stroke-dasharray:{dash}" if dash else ""
    return f'style="--line:var(--line-{number % COLOURS}){dashed}"'


def swatch(number: int) -> str:
    """A short piece of a line, for legends and tables."""
    return f'<svg class="swatch" aria-hidden="true"><path {_look(number)} d="M1 5H25"/></svg>'


def _drawing(lines: Sequence[Line], across: Axis, vertical: Axis, spare: int) -> str:
    grid = "".join(
        f'<path class="grid" d="M0 {y:.1f}H{_UNIT:g}"/>' for y in _UNIT * (1 - vertical.share(vertical.ticks))
    )
    # The last lines are drawn on top: draw the worst first, the best over them.
    paths = "\n".join(
        f'<path class="line" data-line="{i}" {_look(line.number)} d="{_path(line, across, vertical)}"/>'
        for i, line in reversed(list(enumerate(lines)))
    )
    dots = "".join(f'<path class="dot" data-line="{i}" {_look(line.number)}/>' for i, line in enumerate(lines))
    return (
        f'<svg viewBox="0 0 {_UNIT:g} {_UNIT:g}" preserveAspectRatio="none" aria-hidden="true">'
        f'<clipPath id="plot-{spare}"><rect width="{_UNIT:g}" height="{_UNIT:g}"/></clipPath>'
        f'{grid}<path class="cursor"/><g clip-path="url(#plot-{spare})">\n{paths}\n{dots}</g></svg>'
    )


def _path(line: Line, across: Axis, vertical: Axis) -> str:
    """The points of a line, with gaps where values are not finite; far ones are held near the picture."""
    points = zip(_UNIT * across.share(line.x), _UNIT * (1 - vertical.share(line.y)), strict=True)
    words, pen = [], "M"
    for x, y in points:
        if math.isfinite(y):
            words.append(f"{pen}{x:.1f} {min(max(y, -9 * _UNIT), 9 * _UNIT):.1f}")
        pen = "L" if math.isfinite(y) else "M"
    return "".join(words)


def _vertical_labels(vertical: Axis, tick: Callable[[float], str]) -> str:
    labels = "".join(
        f'<span style="top:{100 * (1 - share):.2f}%">{html.escape(tick(value))}</span>'
        for value, share in zip(vertical.ticks, vertical.share(vertical.ticks), strict=True)
    )
    return f'<div class="vertical" aria-hidden="true">{labels}</div>'


def _horizontal_labels(across: Axis, text: str) -> str:
    labels = "".join(
        f'<span style="left:{100 * share:.2f}%">{value:,.0f}</span>'
        for value, share in zip(across.ticks, across.share(across.ticks), strict=True)
    )
    return f'<div class="horizontal" aria-hidden="true">{labels}<em>{html.escape(text)}</em></div>'


def _leaders(lines: Sequence[Line], ends: Sequence[float], places: Sequence[float]) -> str:
    """Short strokes from the end of each line to its label."""
    strokes = "".join(
        f'<path class="leader" data-line="{i}" {_look(line.number)} d="M0 {end:.4f}L1 {place:.4f}"/>'
        for i, (line, end, place) in enumerate(zip(lines, ends, places, strict=True))
    )
    frame = 'viewBox="0 0 1 1" preserveAspectRatio="none"'
    return f'<svg class="leaders" {frame} aria-hidden="true">{strokes}</svg>'


def _legend(lines: Sequence[Line], places: Sequence[float], show: Callable[[float], str]) -> str:
    buttons = "\n".join(
        f'<button type="button" data-line="{i}" aria-pressed="true" style="top:{100 * place:.2f}%">'
        f"{swatch(line.number)}<span>{breakable(line.name)}</span> "
        f"<output>{html.escape(show(float(line.y[-1])))}</output></button>"
        for i, (line, place) in enumerate(zip(lines, places, strict=True))
    )
    return f'<div class="legend">{buttons}</div>'


def breakable(name: str) -> str:
    """A name that may be broken before a capital where room is scarce."""
    return "<wbr>".join(html.escape(part) for part in re.split(r"(?<=[a-z])(?=[A-Z])", name))


def _data(lines: Sequence[Line], across: Axis, vertical: Axis, show: Callable[[float], str]) -> str:
    """What the page's script needs for the read-out: where the points are, and the words to show there."""
    content = {
        "seen": [f"{x:,.0f}" for x in lines[0].x],
        "across": [round(float(share), 5) for share in across.share(lines[0].x)],
        "down": [[round(_clip(1 - share), 5) for share in vertical.share(line.y)] for line in lines],
        "text": [[show(float(y)) for y in line.y] for line in lines],
    }
    # "</script>" inside a name must not end the element
    return f'<script type="application/json">{json.dumps(content).replace("<", chr(92) + "u003c")}</script>'


# -- figures: one SVG file, for manuals and papers

_PALETTE = ("#2a78c2", "#d1600f", "#2b8a4b", "#b0368f", "#8a6d00", "#6a51c9", "#c93a3a", "#12858f")
_SIZE = (760, 400)
_FRAME = (58, 40, 560, 350)  # left, top, right, bottom of the plot


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
    model : an estimator, as RRFClassifier, or OMKCClassifier for "weights_"; it goes on learning
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
) -> str:
    """A chart as a self-contained SVG document.

    Parameters
    ----------
    lines : each with its own x
    title, horizontal : what is drawn, and what the horizontal axis counts
    vertical : the vertical axis (default: from 0); parts of lines outside are cut off
    log : a logarithmic horizontal axis
    tick : a value of the vertical axis as text
    """
    left, top, right, bottom = _FRAME
    height = bottom - top
    finite = np.concatenate([line.y[np.isfinite(line.y)] for line in lines])
    down = vertical or axis(min(0.0, float(finite.min(initial=0))), float(finite.max(initial=0)))
    ends = np.concatenate([line.x for line in lines])
    across = _log_axis(ends) if log else axis(0.0, float(ends.max()), about=7, whole=True)

    def place(x: Any, y: Any) -> tuple[Floats, Floats]:
        """Where points lie on the paper."""
        values = np.log10(x) if log else np.asarray(x)
        return left + (right - left) * across.share(values), bottom - height * down.share(y)

    text = [f'<text x="{left}" y="22" class="title">{html.escape(title)}</text>']
    for value, share in zip(down.ticks, down.share(down.ticks), strict=True):
        y = bottom - height * float(share)
        text.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        text.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{html.escape(tick(value))}</text>')
    for value, share in zip(across.ticks, across.share(across.ticks), strict=True):
        label = f"{10**value:g}" if log else f"{value:,.0f}"
        x = left + (right - left) * float(share)
        text.append(f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{label}</text>')
    text.append(f'<text x="{right}" y="{bottom + 38}" text-anchor="end">{html.escape(horizontal)}</text>')
    text.append(f'<clipPath id="plot"><rect x="{left}" y="{top}" width="{right - left}" height="{height}"/></clipPath>')
    shares = [_clip(1.0 - down.share(line.y[-1])) for line in lines]
    gap = min(17 / height, 1 / max(len(lines), 1))
    for line, share, label_share in zip(lines, shares, spread(shares, gap), strict=True):
        look = f'stroke="{_PALETTE[line.number % COLOURS]}" stroke-dasharray="{_DASHES[line.number // COLOURS % 4]}"'
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(*place(line.x, line.y), strict=True) if math.isfinite(b))
        text.append(f'<polyline class="line" clip-path="url(#plot)" {look} points="{points}"/>')
        begin, target = float(place(line.x[-1:], line.y[-1:])[0][0]), top + height * label_share
        text.append(
            f'<path class="leader" {look} d="M{begin:.1f} {top + height * share:.1f}L{right + 24} {target:.1f}"/>'
        )
        name = f"{html.escape(line.name)}: {html.escape(tick(_three(line.y[-1])))}"
        text.append(f'<text x="{right + 30}" y="{target + 4:.1f}">{name}</text>')
    style = (
        "text{font:13px system-ui,sans-serif;fill:#333}.title{font-weight:600;font-size:15px}"
        ".grid{stroke:#8884;fill:none}.line{fill:none;stroke-width:2;stroke-linejoin:round}.leader{fill:none;opacity:.4}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}}"
    )
    width, tall = _SIZE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall}" role="img" '
        f'aria-label="{html.escape(title)}"><style>{style}</style>\n' + "\n".join(text) + "\n</svg>\n"
    )


def _three(value: float) -> float:
    """A number to three digits."""
    return float(f"{value:.3g}")


def _log_axis(values: Floats) -> Axis:
    """An axis of powers of ten, with marks at 1, 2 and 5 times them."""
    low, high = math.log10(float(values.min())), math.log10(float(values.max()))
    marks = [math.log10(m) + p for p in range(math.floor(low), math.ceil(high) + 1) for m in (1, 2, 5)]
    pad = 0.02 * max(high - low, 0.1)
    return Axis(low - pad, high + pad, tuple(m for m in marks if low - pad <= m <= high + pad))
