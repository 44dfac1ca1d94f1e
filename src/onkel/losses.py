"""Losses: the value of a loss and its gradient with respect to the scores.

`loss(y, s)` returns the value l(y, s) for target y and scores s, and the slope dl/ds, one number per output.

- Classification with one output: y is -1 or +1 and the margin is q = y s.
- Classification with several outputs: y is a class index and the margin is q = s[y] - s[rival]. The rival is the other
  class with the best score (lowest index on ties). The slope is l'(q) for y and -l'(q) for the rival.
- Regression: y is real, and losses are functions of the residual r = s - y.

A loss with a threshold (the margin of the hinge, the tube of a regression loss) names that field in
`threshold`; an update may change it from round to round (`at`).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np

from onkel.core.part import Part, Words
from onkel.core.scores import margins, rival

Array = np.ndarray[Any, np.dtype[np.float64]]


class Loss(Part):
    """Value, and gradient with respect to the scores."""

    threshold: ClassVar[str | None] = None  # name of the field that an update may change
    task: ClassVar[str] = ""

    @property
    def largest_slope(self) -> float:
        """The largest absolute value in a slope; infinity if there is none, or if it is not known."""
        return math.inf

    @property
    def offers(self) -> Words:
        return super().offers | ({"threshold"} if self.threshold else set())

    def __call__(self, y: float, s: Array) -> tuple[float, Array]:
        raise NotImplementedError

    def check(self, outputs: int = 1) -> None:
        """Raise TypeError if the loss of zero scores is not a value and a slope for each output."""
        answer = self(1.0, np.zeros(outputs))
        pair = isinstance(answer, tuple) and len(answer) == 2 and np.shape(answer[0]) == ()
        if not pair or np.shape(answer[1]) != (outputs,):
            wanted = f"its value, a number, and its slope, an array of shape ({outputs},)"
            raise TypeError(f"{self!r} must return {wanted}, got {answer!r}")

    def each(self, y: float, S: Array) -> tuple[Array, Array]:
        """Values and slopes for one target and several rows of scores."""
        values, slopes = zip(*(self(y, s) for s in S), strict=True)
        return np.array(values), np.array(slopes)

    def at(self, threshold: float | None) -> Self:
        """This loss with another threshold (None: unchanged)."""
        if threshold is None or self.threshold is None:
            return self
        moved = object.__new__(type(self))  # no __post_init__: an adaptive threshold may be negative
        moved.__dict__.update(self.__dict__ | {self.threshold: threshold})
        return moved


def _check_pair(loss: Loss, name: str) -> None:
    """Raise TypeError if that method returns no derivative."""
    try:
        pair = getattr(loss, name)(0.0)
    except NotImplementedError:  # the loss defines `__call__` instead
        return
    if np.shape(pair) != (2,):
        raise TypeError(f"{type(loss).__name__}.{name} must return two numbers, value and derivative, got {pair!r}")


class MarginLoss(Loss):
    """Classification: a function of the margin q."""

    task: ClassVar[str] = "classification"
    traits: ClassVar[tuple[str, ...]] = ("margin",)

    def of_margin(self, q: float) -> tuple[float, float]:
        """Value and derivative at margin q."""
        raise NotImplementedError

    def check(self, outputs: int = 1) -> None:
        _check_pair(self, "of_margin")
        super().check(outputs)

    def __call__(self, y: float, s: Array) -> tuple[float, Array]:
        slope = np.zeros_like(s)
        if len(s) == 1:
            value, derivative = self.of_margin(y * s[0])
            slope[0] = derivative * y
        else:
            label = int(y)
            other = rival(s, label)
            value, derivative = self.of_margin(s[label] - s[other])
            slope[label], slope[other] = derivative, -derivative
        return value, slope

    def each(self, y: float, S: Array) -> tuple[Array, Array]:
        slopes, targets = np.zeros_like(S), np.full(len(S), y)
        values, derivatives = np.array([self.of_margin(q) for q in margins(S, targets).tolist()]).T
        if S.shape[1] == 1:
            slopes[:, 0] = derivatives * y
        else:
            own = np.arange(len(S)), targets.astype(int)
            slopes[own], slopes[own[0], rival(S, own)] = derivatives, -derivatives
        return values, slopes


class Mistake(MarginLoss):
    """The perceptron's loss: value 1 and slope -1 in the margin on a mistake, or if the margin is at most `margin`.

    One output: a mistake is q <= 0, so a score of 0 is a mistake; with `strict_sign` a mistake is sgn(s) != y with
    sgn(0) = +1, as in some authors' programs. Several outputs: a mistake is argmax s != y.

    Examples
    --------
    >>> Mistake()(1.0, np.array([-0.2]))  # value, and slope with respect to the score
    (1.0, array([-1.]))
    """

    margin: float = 0.0
    strict_sign: bool = False
    threshold: ClassVar[str | None] = "margin"

    def __post_init__(self) -> None:
        self._nonnegative("margin")
        self._finite("margin")
        self._boolean("strict_sign")
        self._require("strict_sign", not (self.strict_sign and self.margin > 0), "False when margin > 0")

    @property
    def largest_slope(self) -> float:
        return 1.0

    def __call__(self, y: float, s: Array) -> tuple[float, Array]:
        slope = np.zeros_like(s)
        if len(s) == 1:
            wrong = (s[0] >= 0) != (y > 0) if self.strict_sign else y * s[0] <= self.margin
            slope[0] = -y * wrong
        else:
            label = int(y)
            other = rival(s, label)
            wrong = int(np.argmax(s)) != label or (self.margin > 0 and s[label] - s[other] <= self.margin)
            slope[label], slope[other] = -1.0 * wrong, 1.0 * wrong
        return float(wrong), slope

    each = Loss.each

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.3), cls(strict_sign=True)


class Hinge(MarginLoss):
    """max(0, margin - q); with `closed` the slope at q = margin is -1, not 0.

    Examples
    --------
    >>> Hinge().of_margin(0.25)  # value and derivative
    (0.75, -1.0)
    >>> Hinge()(2, np.array([0.5, 0.0, 0.75]))[1]  # the slope: class 2 against its best rival, class 0
    array([ 1.,  0., -1.])
    """

    margin: float = 1.0
    closed: bool = False
    threshold: ClassVar[str | None] = "margin"
    traits: ClassVar[tuple[str, ...]] = ("hinge", "piecewise linear")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.4), cls(closed=True), cls(0.0, closed=True)

    def __post_init__(self) -> None:
        self._finite("margin")
        self._boolean("closed")

    @property
    def offers(self) -> Words:
        at_one = {"hinge at 1"} if self.closed else {"hinge at 1", "unit hinge"}
        return super().offers | (at_one if self.margin == 1 else set())

    @property
    def largest_slope(self) -> float:
        return 1.0

    def of_margin(self, q: float) -> tuple[float, float]:
        inside = q <= self.margin if self.closed else q < self.margin
        return (self.margin - q, -1.0) if inside else (0.0, 0.0)


class SquaredHinge(MarginLoss):
    """max(0, margin - q)^2 / 2.

    Examples
    --------
    >>> SquaredHinge().of_margin(0.5)
    (0.125, -0.5)
    """

    margin: float = 1.0
    threshold: ClassVar[str | None] = "margin"

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.4)

    def __post_init__(self) -> None:
        self._finite("margin")

    def of_margin(self, q: float) -> tuple[float, float]:
        short = max(0.0, self.margin - q)
        return 0.5 * short**2, -short


class Logistic(MarginLoss):
    """ln(1 + exp(-q)).

    Examples
    --------
    >>> Logistic().of_margin(0.0)
    (0.69, -0.50)
    """

    traits: ClassVar[tuple[str, ...]] = ("logistic",)

    @property
    def largest_slope(self) -> float:
        return 1.0

    def of_margin(self, q: float) -> tuple[float, float]:
        value = float(np.logaddexp(0.0, -q))
        return value, -math.exp(-q - value)


class Exponential(MarginLoss):
    """exp(-q).

    Examples
    --------
    >>> Exponential().of_margin(0.0)
    (1.0, -1.0)
    """

    def of_margin(self, q: float) -> tuple[float, float]:
        value = float(np.exp(-q))
        return value, -value


class ResidualLoss(Loss):
    """Regression: a function of the residual r = s - y."""

    task: ClassVar[str] = "regression"

    def of_residual(self, r: float) -> tuple[float, float]:
        """Value and derivative at residual r."""
        raise NotImplementedError

    def check(self, outputs: int = 1) -> None:
        _check_pair(self, "of_residual")
        super().check(outputs)

    def __call__(self, y: float, s: Array) -> tuple[float, Array]:
        value, derivative = self.of_residual(s[0] - y)
        return value, np.array([derivative])

    def each(self, y: float, S: Array) -> tuple[Array, Array]:
        values, derivatives = np.array([self.of_residual(r) for r in (S[:, 0] - y).tolist()]).T
        return values, derivatives[:, None]


class Squared(ResidualLoss):
    """r^2 / 2, but value and slope 0 inside the tube |r| <= epsilon; epsilon 0: no tube.

    Examples
    --------
    >>> Squared().of_residual(3.0), Squared(epsilon=4.0).of_residual(3.0)
    ((4.5, 3.0), (0.0, 0.0))
    """

    epsilon: float = 0.0
    threshold: ClassVar[str | None] = "epsilon"
    traits: ClassVar[tuple[str, ...]] = ("squared",)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.3)

    def __post_init__(self) -> None:
        self._nonnegative("epsilon")
        self._finite("epsilon")

    def of_residual(self, r: float) -> tuple[float, float]:
        return (0.5 * r * r, r) if abs(r) > self.epsilon else (0.0, 0.0)


class Absolute(ResidualLoss):
    """|r|.

    Examples
    --------
    >>> Absolute().of_residual(-3.0)
    (3.0, -1.0)
    """

    traits: ClassVar[tuple[str, ...]] = ("piecewise linear",)

    @property
    def largest_slope(self) -> float:
        return 1.0

    def of_residual(self, r: float) -> tuple[float, float]:
        return abs(r), float(np.sign(r))


class EpsilonInsensitive(ResidualLoss):
    """max(0, |r| - epsilon).

    Examples
    --------
    >>> EpsilonInsensitive(0.5).of_residual(3.0)
    (2.5, 1.0)
    """

    epsilon: float = 0.1
    threshold: ClassVar[str | None] = "epsilon"
    traits: ClassVar[tuple[str, ...]] = ("piecewise linear",)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.3)

    def __post_init__(self) -> None:
        self._nonnegative("epsilon")
        self._finite("epsilon")

    @property
    def largest_slope(self) -> float:
        return 1.0

    def of_residual(self, r: float) -> tuple[float, float]:
        return (abs(r) - self.epsilon, float(np.sign(r))) if abs(r) > self.epsilon else (0.0, 0.0)


class Huber(ResidualLoss):
    """r^2 / 2 for |r| <= delta, linear beyond.

    Examples
    --------
    >>> Huber(1.0).of_residual(3.0)
    (2.5, 1.0)
    """

    delta: float = 1.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.4)

    def __post_init__(self) -> None:
        self._positive("delta")

    @property
    def largest_slope(self) -> float:
        return self.delta

    def of_residual(self, r: float) -> tuple[float, float]:
        if abs(r) <= self.delta:
            return 0.5 * r * r, r
        return self.delta * (abs(r) - 0.5 * self.delta), self.delta * float(np.sign(r))


class Quantile(ResidualLoss):
    """The pinball loss, minimal at the given quantile q: q |r| for scores below the target, (1 - q) |r| above.

    Examples
    --------
    >>> Quantile(0.75).of_residual(-1.0), Quantile(0.75).of_residual(1.0)
    ((0.75, -0.75), (0.25, 0.25))
    """

    quantile: float = 0.5
    traits: ClassVar[tuple[str, ...]] = ("piecewise linear",)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.3)

    def __post_init__(self) -> None:
        self._positive("quantile")
        self._require("quantile", self.quantile < 1, "between 0 and 1")

    @property
    def largest_slope(self) -> float:
        return max(self.quantile, 1 - self.quantile)

    def of_residual(self, r: float) -> tuple[float, float]:
        weight = self.quantile if r < 0 else 1 - self.quantile
        return weight * abs(r), weight * float(np.sign(r))


_NAMED: dict[str, type[Loss]] = {
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
    "exponential": Exponential,
    "squared": Squared,
    "absolute": Absolute,
    "epsilon_insensitive": EpsilonInsensitive,
    "huber": Huber,
    "quantile": Quantile,
}


def as_loss(loss: Loss | str, task: str, **fields: Any) -> Loss:
    """The loss itself, or the loss with this name; a named loss gets those of the `fields` that it has."""
    if isinstance(loss, str) and loss in _NAMED:
        kind = _NAMED[loss]
        known = kind().get_params(deep=False)
        loss = kind(**{name: value for name, value in fields.items() if name in known and value is not None})
    if not isinstance(loss, Loss) or loss.task != task:
        names = sorted(name for name, kind in _NAMED.items() if kind.task == task)
        raise ValueError(f"loss must be a {task} loss of onkel.losses or one of {names}, got {loss!r}")
    loss.check()
    return loss
