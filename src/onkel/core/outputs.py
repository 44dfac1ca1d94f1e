"""How everything that was learned changes when a class is added.

One class so far: one score f, target -1. Two classes: one score f, targets -1 and +1. Three or more: one score for each
class. From one class to two the score stays, negated if the new class comes first. From two classes to more, f becomes
(-f/2, f/2); from one class to three or more, the score of the old class is -f/2; in both cases a new one has 0.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def cuts(labels: Array, known: Array) -> list[int]:
    """Where to cut rows into blocks, from 0 to their number: a block starts at the first row of each unknown class."""
    there = set(known.tolist())
    first = np.unique(labels, return_index=True)[1]
    return sorted({0, len(labels), *(int(i) for i in first if labels[i] not in there)})


class Joining:
    """The step from the old set of classes to a larger one.

    Parameters
    ----------
    old, new : the classes before and after, sorted; `new` contains `old`
    """

    def __init__(self, old: Array, new: Array) -> None:
        self.old, self.new = len(old), len(new)
        self.at = np.searchsorted(new, old)

    @property
    def outputs(self) -> int:
        """Number of scores after the step."""
        return self.new if self.new > 2 else 1

    @property
    def swaps(self) -> bool:
        """Does the only class so far, whose target was -1, now get the target +1?"""
        return self.new == 2 and bool(self.at[0] == 1)

    def all(self, kinds: Mapping[str, str], arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The arrays, each changed as its kind says; those without a kind do not depend on the outputs."""
        return {name: self.array(kinds[name], a) if name in kinds else a for name, a in arrays.items()}

    def array(self, kind: str, values: Array) -> Array:
        """An array of one of these kinds:

        "scores" : one column for each output, linear in f
        "squares" : one column for each output, sums of squared slopes
        "length" : |f|, or a multiple of it
        "squared length" : |f|^2, or a multiple of it
        "targets" : targets of examples
        """
        if kind not in KINDS:
            raise ValueError(f"the kind of an array must be one of {', '.join(KINDS)}; got {kind!r}")
        return np.asarray(KINDS[kind](self, values))

    def _scores(self, values: Array, half: float = 0.5) -> Array:
        if values.ndim == 0 or (values.size == 0 and values.shape[-1] == 0):
            return values
        if self.new == 2:
            return -values if self.swaps else values
        wider = np.zeros((*values.shape[:-1], self.new))
        if values.shape[-1] == 1:
            wider[..., self.at[:1]] = -half * values
            wider[..., self.at[1:]] = half * values
        else:
            wider[..., self.at] = values
        return wider

    def _squares(self, values: Array) -> Array:
        return np.abs(self._scores(values, half=1.0))

    def _squared_length(self, values: Array) -> Array:
        if self.new > 2 >= self.old:
            return np.asarray(values / (4 if self.old == 1 else 2))  # |(-f/2, 0, ..)|^2, |(-f/2, f/2)|^2
        return values

    def _length(self, values: Array) -> Array:
        if self.new > 2 >= self.old:
            return np.asarray(values / (2 if self.old == 1 else math.sqrt(2)))
        return values

    def _targets(self, values: Array) -> Array:
        label: Array = self.at[(values > 0).astype(int) if self.old <= 2 else values.astype(int)]
        return 2.0 * label - 1.0 if self.new == 2 else label.astype(np.float64)


class Leaving(Joining):
    """The way back from a larger set of classes, if none of the new ones was learned: `Joining`, undone."""

    @property
    def outputs(self) -> int:
        """Number of scores after the step."""
        return self.old

    @property
    def swaps(self) -> bool:
        """Never: there were three classes or more."""
        return False

    def array(self, kind: str, values: Array) -> Array:
        """What `Joining.array` made of the array that is returned."""
        if kind in ("scores", "squares") and values.ndim and values.size:
            return np.asarray(values[..., self.at])
        if kind == "scores" and values.ndim and values.shape[-1]:
            return np.zeros((*values.shape[:-1], self.old))
        return np.searchsorted(self.at, values).astype(np.float64) if kind == "targets" else values


KINDS = {
    "scores": Joining._scores,
    "squares": Joining._squares,
    "length": Joining._length,
    "squared length": Joining._squared_length,
    "targets": Joining._targets,
}


def refuse_unknown_kinds(owner: type, field: str, kinds: Collection[str]) -> None:
    """Raise TypeError if `field` of the class does not map each name to one of these kinds."""
    stated = getattr(owner, field)
    if not isinstance(stated, Mapping) or not all(kind in kinds for kind in stated.values()):
        raise TypeError(
            f"{owner.__name__}.{field} must give each name a kind, one of {', '.join(kinds)}; got {stated!r}"
        )
