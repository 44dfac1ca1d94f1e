"""Is a model its paper's box? What a box of `boxes` says, compared with what a learner does."""

from typing import Any, NamedTuple

import numpy as np
from streams import learn, scores_of, stream_for

from onkel.core.random import Random


class Expected(NamedTuple):
    """What a box makes of a stream."""

    scores: Any  # before each round, (rounds, outputs)
    final: Any  # coefficients of f_(T+1) by example, (rounds, outputs)
    mean: Any  # and of the mean of f_1 .. f_T
    live_scores: Any  # of the mean of the models so far, over the terms that still live
    all_scores: Any  # the same over all terms


class Slots:
    """A `choose` for the boxes that removes what the library removes.

    The library keeps terms in slots: a new one takes the next slot, and the last one moves into a slot that
    is emptied. A uniform removal empties slot int(u n), a weighted one that at which the running sum of
    probabilities exceeds u.
    """

    def __init__(self, seed, spare_new=False):
        self.random, self.slots, self.spare_new = Random(seed, "removal"), [], spare_new

    def __call__(self, ids, p):
        offered = ids[:-1] if self.spare_new else ids
        self.slots += [i for i in offered if i not in self.slots]
        u = self.random.uniform()
        if p is None:
            slot = int(u * len(self.slots))
        else:
            running = np.cumsum([p[ids.index(i)] for i in self.slots])
            slot = int(np.argmax(running > u * running[-1]))
        leaves, last = self.slots[slot], self.slots.pop()
        if slot < len(self.slots):
            self.slots[slot] = last
        return ids.index(leaves)


def same(actual, wanted, tolerance=1e-10):
    wanted = np.reshape(wanted, np.shape(actual))
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=tolerance * max(1.0, np.abs(wanted).max(initial=0)))


def coefficients(model, X):
    """The coefficients of a model by example, of shape (rounds, outputs); its terms must be rows of X."""
    assert model.n_support_ == len(model.support_vectors_) == model.dual_coef_.shape[1]
    found = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in model.support_vectors_]
    assert found == sorted(found)
    table = np.zeros((len(X), len(model.dual_coef_)))
    table[found] = model.dual_coef_.T
    return table, found


def is_its_box(model, X, y, wanted, kernel):
    """A fresh model makes of the stream what the box does."""
    same(learn(model, X, y), wanted.scores)
    table, found = coefficients(model, X)
    same(table, wanted.final)
    assert found == list(np.flatnonzero(wanted.final.any(axis=1)))
    fresh = stream_for(model, rounds=20, seed=1)[0]
    same(scores_of(model, fresh), kernel(fresh, X) @ wanted.final)
    assert model.t_ == len(X)


def is_the_mean_of_its_box(model, X, y, wanted, kernel):
    """So does one that averages."""
    same(learn(model, X, y), wanted.all_scores if model.average == "all" else wanted.live_scores)
    table, found = coefficients(model, X)
    mean = wanted.mean
    if model.average is True:  # of the terms that outlived the last round
        mean = np.where(wanted.final.any(axis=1, keepdims=True), mean, 0.0)
        assert found == list(np.flatnonzero(wanted.final.any(axis=1)))
    same(table, mean)
    fresh = stream_for(model, rounds=20, seed=1)[0]
    K = kernel(fresh, X)
    same(scores_of(model, fresh), K @ mean)
    if y is not None:
        same(scores_of(model, fresh, output="last"), K @ wanted.final)
