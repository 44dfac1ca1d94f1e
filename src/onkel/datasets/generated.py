"""Streams drawn from known distributions: of any length, the same for the same seed, and with their Bayes error.

A law says what is drawn at times t: the features, and for each example the chance of class +1 (or the mean of the
target and the deviation around it). Labels are drawn from that chance, so the Bayes error is known row by row.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from onkel.core.errors import DataError
from onkel.core.wording import listed
from onkel.datasets.stream import Stream, Task

Floats = NDArray[np.float64]
SEGMENT = 3000  # rows drawn at once, however many are asked for: so n rows are the beginning of any longer stream


@dataclasses.dataclass(frozen=True)
class Segment:
    """Rows drawn from a law: features, targets, and the Bayes error of each row (regression: its noise variance)."""

    X: Any
    y: NDArray[Any]
    least: Floats


def drift(n: int = SEGMENT, seed: int = 0, *, turns: float = 1.0, noise: float = 0.05) -> Stream:
    """Points of a square, labelled by the sides of a wavy line that turns while the stream runs.

    Here the line makes `turns` turns in n rows. With `load("drift", n=n)` the line turns once in 3000 rows, so n rows
    are the beginning of a longer stream.

    Parameters
    ----------
    n : number of examples.
    seed : of the points and of the noise.
    turns : full turns of the line from the first example to the last; 0 makes the concept stand still.
    noise : share of the labels that are flipped.
    """
    period = n / turns if turns else np.inf
    segment = _draw("drift", np.random.default_rng(seed), np.arange(n), period=period, noise=noise)
    return _stream("drift", segment.X, segment.y, segment.least, noise=noise)


def generate(name: str, n: int = SEGMENT, seed: int = 0, **settings: Any) -> Stream:
    """The first n rows of a generated stream; the settings are those of its law."""
    if n < 1:
        raise DataError(f"{name}: n must be > 0, got {n}")
    drawn = list(itertools.islice(segments(name, seed, **settings), -(-n // SEGMENT)))
    y, least = (np.concatenate([getattr(segment, part) for segment in drawn])[:n] for part in ("y", "least"))
    rows = [segment.X for segment in drawn]
    X = scipy.sparse.vstack(rows, format="csr") if scipy.sparse.issparse(rows[0]) else np.concatenate(rows)
    return _stream(name, X[:n], y, least, **settings)


def segments(name: str, seed: int = 0, **settings: Any) -> Iterator[Segment]:
    """A generated stream without end, segment by segment."""
    if name not in LAWS:
        raise DataError(f"there is no generated stream {name!r}; there are {', '.join(LAWS)}")
    known = [p.name for p in inspect.signature(LAWS[name]).parameters.values() if p.kind is p.KEYWORD_ONLY]
    if unknown := [setting for setting in settings if setting not in known]:
        raise DataError(f"{name} has no setting {unknown[0]!r}; it has {listed(known)}")
    random = np.random.default_rng(seed)
    start = 0
    while True:
        yield _draw(name, random, np.arange(start, start + SEGMENT), **settings)
        start += SEGMENT


def _draw(name: str, random: np.random.Generator, t: NDArray[np.intp], **settings: Any) -> Segment:
    X, middle, deviation = LAWS[name](random, t, **settings)
    if deviation is not None:
        return Segment(X, middle + deviation * random.standard_normal(len(t)), deviation**2)
    rare = np.minimum(middle, 1 - middle)
    likely = middle > 0.5
    return Segment(X, np.where(likely != (random.uniform(size=len(t)) < rare), 1, -1), rare)


def _stream(name: str, X: Any, y: Any, least: Floats, **settings: Any) -> Stream:
    law = LAWS[name]
    task: Task = "regression" if name in REGRESSION else "classification"
    defaults = {p.name: p.default for p in inspect.signature(law).parameters.values() if p.kind is p.KEYWORD_ONLY}
    about = (inspect.getdoc(law) or "").split("\n")[0].rstrip(".").format(**(defaults | settings))
    bayes = float(np.sqrt(least.mean()) if task == "regression" else least.mean())
    return Stream(name, X, y, task, about, ordered=name in MOVING, bayes=bayes)


# -- laws: (random, times) -> features, chance of +1 or mean, deviation (None for classes) -------------------

Law = Callable[..., tuple[Any, Floats, Floats | None]]


def _flipped(above: NDArray[np.bool_], noise: float) -> Floats:
    return np.where(above, 1 - noise, noise)


def _above_wave(X: Floats, angle: Any) -> NDArray[np.bool_]:
    along = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]
    across = np.cos(angle) * X[:, 1] - np.sin(angle) * X[:, 0]
    return np.asarray(across > 0.4 * np.sin(4 * along))


def _drift(random: np.random.Generator, t: Any, *, period: float = SEGMENT, noise: float = 0.05) -> Any:
    """points on two sides of a wavy line that turns, {noise:.0%} of the labels flipped."""
    X = random.uniform(-1.0, 1.0, size=(len(t), 2))
    return X, _flipped(_above_wave(X, 2 * np.pi * t / period), noise), None


def _abrupt(random: np.random.Generator, t: Any, *, period: float = 1000, noise: float = 0.05) -> Any:
    """points on two sides of a wavy line that jumps by 120 degrees every {period} rows, {noise:.0%} flipped."""
    X = random.uniform(-1.0, 1.0, size=(len(t), 2))
    return X, _flipped(_above_wave(X, 2 * np.pi / 3 * (t // period)), noise), None


def _gradual(random: np.random.Generator, t: Any, *, period: float = 1000, noise: float = 0.05) -> Any:
    """two wavy lines at right angles; over {period} rows one takes the place of the other, {noise:.0%} flipped."""
    X = random.uniform(-1.0, 1.0, size=(len(t), 2))
    second = (1 - np.cos(np.pi * t / period)) / 2  # the chance that the second line rules
    first = _flipped(_above_wave(X, 0.0), noise)
    return X, (1 - second) * first + second * _flipped(_above_wave(X, np.pi / 2), noise), None


def _rotating(
    random: np.random.Generator, t: Any, *, features: int = 10, period: float = 10_000, noise: float = 0.05
) -> Any:
    """{features} uniform features; a plane through the origin turns once in {period} rows, {noise:.0%} flipped."""
    X = random.uniform(-1.0, 1.0, size=(len(t), features))
    angle = 2 * np.pi * t / period
    even, odd = X[:, ::2].sum(axis=1), X[:, 1::2].sum(axis=1)
    return X, _flipped(np.cos(angle) * even + np.sin(angle) * odd > 0, noise), None


def _gaussians(random: np.random.Generator, t: Any, *, features: int = 5, distance: float = 3.0) -> Any:
    """two clouds a class in {features} dimensions, at the corners of a square with side {distance}, as XOR."""
    corner = random.integers(0, 2, size=(len(t), 2))
    X = random.standard_normal((len(t), features))
    X[:, :2] += distance * (corner - 0.5)
    odds = [distance * X[:, j] for j in range(2)]  # log odds of the far corner on either axis
    up = [1 / (1 + np.exp(-o)) for o in odds]
    return X, up[0] * up[1] + (1 - up[0]) * (1 - up[1]), None


def _checkerboard(random: np.random.Generator, t: Any, *, fields: int = 4, noise: float = 0.1) -> Any:
    """points of a square, coloured as a board of {fields} x {fields} fields, {noise:.0%} of the labels flipped."""
    X = random.uniform(-1.0, 1.0, size=(len(t), 2))
    white = np.floor((X + 1) / 2 * fields).sum(axis=1) % 2 == 0
    return X, _flipped(white, noise), None


def _text(random: np.random.Generator, t: Any, *, words: int = 20_000, length: int = 40, contrast: float = 0.2) -> Any:
    """sparse counts of about {length} words a row from {words} words by Zipf's law, of unit length; two topics."""
    topic = np.where(np.arange(words) * 0x9E3779B1 % 2**32 < 2**31, contrast, -contrast)  # half the words lean each way
    weight = 1 / np.arange(1, words + 1)
    shares = [(weight * np.exp(side * topic)) / (weight * np.exp(side * topic)).sum() for side in (-1, 1)]
    label = random.integers(0, 2, size=len(t))
    counts = 1 + random.poisson(length - 1, size=len(t))
    spots = random.uniform(size=counts.sum())
    by_word = np.repeat(label, counts)
    drawn = np.where(by_word == 1, *(np.searchsorted(np.cumsum(s)[:-1], spots, side="right") for s in shares[::-1]))
    rows = np.repeat(np.arange(len(t)), counts)
    X = scipy.sparse.csr_array((np.ones(len(drawn)), (rows, drawn)), shape=(len(t), words))
    odds = X @ (np.log(shares[1]) - np.log(shares[0]))
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    return X, 1 / (1 + np.exp(-odds)), None


def _sinc(random: np.random.Generator, t: Any, *, noise: float = 0.1) -> Any:
    """sin(x) / x on [-10, 10] with noise of deviation {noise}."""
    X = random.uniform(-10.0, 10.0, size=(len(t), 1))
    return X, np.sinc(X[:, 0] / np.pi), np.full(len(t), noise)


def _friedman(random: np.random.Generator, t: Any, *, noise: float = 1.0) -> Any:
    """Friedman's first function of ten uniform features, five of them idle, with noise of deviation {noise}."""
    X = random.uniform(size=(len(t), 10))
    mean = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, mean, np.full(len(t), noise)


def _system(random: np.random.Generator, t: Any, *, period: float = 1000, noise: float = 0.1) -> Any:
    """a nonlinear response to three inputs whose coefficients change every {period} rows, noise {noise}."""
    X = random.uniform(-1.0, 1.0, size=(len(t), 3))
    side = np.where(t // period % 2 == 0, 1.0, -1.0)
    return X, np.tanh(2 * side * X[:, 0] + X[:, 1]) + side * X[:, 1] * X[:, 2], np.full(len(t), noise)


LAWS: dict[str, Law] = {
    "drift": _drift,
    "abrupt": _abrupt,
    "gradual": _gradual,
    "rotating": _rotating,
    "gaussians": _gaussians,
    "checkerboard": _checkerboard,
    "text": _text,
    "sinc": _sinc,
    "friedman": _friedman,
    "system": _system,
}
MOVING = frozenset({"drift", "abrupt", "gradual", "rotating", "system"})
REGRESSION = frozenset({"sinc", "friedman", "system"})
