"""Compositions: which parts go together.

Each part states in words what it needs and what it offers; only this module compares them and raises the error. A
user's part may use its own words: a word that one part needs must be offered by another. Some words are offered, but no
part needs them: they describe a part to other modules and to tests. These are "intercept" and "room" (see `Budget`),
"adapts" (see `Map`), "input distances" (a budget compares examples in the space of inputs) and "makes points" (the
terms of a budget need not be examples).

One need is a number: the largest slope of a loss is at most `allowed_slope` of the update.
"""

from __future__ import annotations

import math
from typing import Any

from onkel.core.errors import Misfit
from onkel.core.part import Words
from onkel.hypotheses import Hypothesis
from onkel.losses import Loss
from onkel.updates import Update

# word: the part that must offer it, and the requirement as the message states it
WORDS = {
    "one output": ("outputs", "one output"),
    "append-only": ("hypothesis", "a budget that only appends, such as Unlimited(), or explicit features"),
    "explicit": ("hypothesis", "explicit features"),
    "gaussian": ("hypothesis", "a Gaussian kernel"),
    "k(x, x) other than 1": (
        "hypothesis",
        "an Expansion with k(x, x) other than 1, such as Expansion(Linear()), or divide=True",
    ),
    "average": ("hypothesis", "a hypothesis that keeps the average of past models, such as Expansion or Features"),
    "own step": ("hypothesis", "a budget that takes a step of its own"),
    "leaves the step": ("update", "an update that leaves the step to the budget, Defer()"),
    "unit step": ("update", "the update Perceptron(eta=1)"),
    "threshold": ("loss", "a loss with a margin or an epsilon"),
    "piecewise linear": ("loss", "a piecewise linear loss, such as Hinge or EpsilonInsensitive"),
    "hinge": ("loss", "the loss Hinge"),
    "hinge at 1": ("loss", "the loss Hinge with margin 1"),
    "unit hinge": ("loss", "the loss Hinge()"),
    "logistic": ("loss", "the loss Logistic"),
    "squared": ("loss", "the loss Squared"),
}


def refuse_misfits(
    hypothesis: Hypothesis, loss: Loss, update: Update, outputs: int = 1, average: bool | str = False
) -> None:
    """Raise Misfit if a part needs something that no other part offers."""
    parts = (hypothesis, *hypothesis.inner, loss, update)
    offered = frozenset().union(*(part.offers for part in parts)) | ({"one output"} if outputs == 1 else set())
    asked = {"hypothesis": hypothesis, "loss": loss, "update": update, "outputs": f"{outputs} outputs"}
    needed: list[tuple[Any, Words]] = [(part, part.needs) for part in parts]
    needed += [(f"average={average!r}", frozenset({"average"}))] if average else []
    for needy, words in needed:
        for word in sorted(words - offered):
            who, wanted = WORDS.get(word, ("", f"a part that offers {word!r}"))
            raise Misfit(needy, wanted, asked.get(who, "none"))
    if update.allowed_slope < loss.largest_slope < math.inf:
        wanted = f"a loss whose slopes are at most {update.allowed_slope:g}"
        raise Misfit(update, wanted, f"{loss!r}, whose slopes reach {loss.largest_slope:g}")
