"""Plain transcriptions of published online kernel learners, written from their specification alone.

A box takes the full Gram matrix of a stream and its labels and returns F, the history of its coefficients,
of shape (rounds + 1, rounds, outputs): F[t] is the model before example t, F[0] is zero, F[-1] is the final
model. Section numbers in the docstrings are those of ALGORITHMS.md. This module reads histories, `common`
helps to write them.
"""

import numpy as np


def scores(K, F):
    """The score of every example by the model before it, of shape (rounds, outputs)."""
    return np.einsum("ti,tio->to", K, F[:-1])


def averaged(F, average="all"):
    """The history of the averaged model: entry t is the mean of F[0] .. F[t] (section 0, F[t] itself counts).

    average="live" keeps of that mean only the live terms of F[t], taken to be those that are not zero.
    """
    mean = np.cumsum(F, axis=0) / np.arange(1, len(F) + 1)[:, None, None]
    if average == "live":
        return np.where(live(F)[:, :, None], mean, 0.0)
    return mean


def averaged_scores(K, F, average="all"):
    """The score of every example by the averaged model before it."""
    return scores(K, averaged(F, average))


def live(F):
    """Which examples are support vectors in which model, of shape (rounds + 1, rounds)."""
    return (F != 0).any(axis=2)


def support_size(F):
    """The number of support vectors of every model, of length rounds + 1."""
    return live(F).sum(axis=1)


def chooser(seed):
    """A random `choose(ids, p)`: the position in ids to remove, drawn with probabilities p (None: equal)."""
    generator = np.random.default_rng(seed)
    return lambda ids, p: int(generator.choice(len(ids), p=p))
