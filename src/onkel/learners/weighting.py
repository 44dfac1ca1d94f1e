"""How a pool weights its components, and which of them take part in a round.

The weight th_i (theta) of component i is proportional to exp(-rate * losses_i), where losses_i is the sum of the losses
by which it was judged in the rounds so far, such as 1 for a mistake.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from onkel.core.part import Part, is_number, refuse_ignored
from onkel.core.scores import decided, softmax
from onkel.losses import Loss, Squared

Array = np.ndarray[Any, np.dtype[Any]]


class Weighting(Part):
    """By which loss a component is judged in a round, and by how much that lowers its weight."""

    @property
    def rate(self) -> float:
        """How much a loss of 1 lowers the logarithm of the weight."""
        raise NotImplementedError

    def losses(self, y: Array, scores: Array) -> Array:
        """The losses (rounds, components) of scores (rounds, components, outputs)."""
        raise NotImplementedError

    def weights(self, losses: Array) -> Array:
        """The weights th, which sum to 1, for each row of summed losses."""
        return softmax(-self.rate * (losses - losses.min(axis=1, keepdims=True)))


class ByMistakes(Weighting):
    """th_i <- th_i * discount if component i was wrong, then normalised. With `discount` 1 the weights stay equal.

    With two classes, a score of 0 counts as a mistake, whichever class is right; with `strict` it never does. (As a
    prediction, a score of 0 means the second class.)
    """

    discount: float = 0.99
    strict: bool = False

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(0.7), cls(0.7, strict=True)

    def __post_init__(self) -> None:
        self._require("discount", is_number(self.discount) and 0 < self.discount <= 1, "in (0, 1]")
        self._boolean("strict")

    @property
    def rate(self) -> float:
        return -math.log(self.discount)

    def losses(self, y: Array, scores: Array) -> Array:
        if scores.shape[2] == 1:
            margins = y[:, None] * scores[:, :, 0]
            return np.asarray(margins < 0 if self.strict else margins <= 0, dtype=np.float64)
        return np.asarray(decided(scores) != y[:, None], dtype=np.float64)


class ByLoss(Weighting):
    """th_i <- th_i * exp(-eta_weights * loss_i), then normalised; loss_i is the loss of component i."""

    loss: Loss = Squared()
    eta_weights: float = 1.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(Squared(), 0.5), cls(Squared(), 0.1)

    def __post_init__(self) -> None:
        known = is_number(self.eta_weights) and 0 <= self.eta_weights < math.inf
        self._require("eta_weights", known, ">= 0")

    @property
    def rate(self) -> float:
        return self.eta_weights

    def losses(self, y: Array, scores: Array) -> Array:
        found = [[self.loss(float(t), s)[0] for s in row] for t, row in zip(y, scores, strict=True)]
        return np.array(found).reshape(scores.shape[:2])


class Sampling(Part):
    """Which components take part in a round, with p_i = (1 - smoothing) th_i / max_j th_j + smoothing.

    Parameters
    ----------
    learn : only components drawn with probability p_i learn and can lose weight
    answer : the components whose scores `learn` combines: "all", "some" (drawn with p_i) or "one" (drawn with th_i)
    scale : all components learn; p_i multiplies the probability of their own sampled steps
    smoothing : between 0 and 1
    """

    learn: bool = False
    answer: str = "all"
    scale: bool = False
    smoothing: float = 0.001

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(learn=True, smoothing=0.1), cls(answer="some"), cls(answer="one"), cls(scale=True)

    def __post_init__(self) -> None:
        self._boolean("learn", "scale")
        self._one_of("answer", "all", "some", "one")
        self._require("smoothing", is_number(self.smoothing) and 0 <= self.smoothing <= 1, "between 0 and 1")
        if not (self.learn or self.scale or self.answer == "some"):
            refuse_ignored(self, f"learn=False, answer={self.answer!r} and scale=False", "smoothing")

    def chances(self, th: Array) -> Array:
        """The probabilities p_i."""
        return np.asarray((1 - self.smoothing) * th / th.max(axis=-1, keepdims=True) + self.smoothing)
