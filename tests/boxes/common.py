"""The words of section 0 in which the transcriptions are written.

`s` is always the vector of scores of one example (one per output) and `y` its label: +1 or -1 with one
output, the class index with several.
"""

import numpy as np


def history(rounds, outputs=1):
    """An empty coefficient history."""
    return np.zeros((rounds + 1, rounds, outputs))


def rival(s, y):
    """The best class other than y, the lowest index on ties."""
    others = s.copy()
    others[int(y)] = -np.inf
    return int(np.argmax(others))


def margin(s, y):
    """y f(x) with one output, f^y - f^s with several."""
    if len(s) == 1:
        return y * s[0]
    return s[int(y)] - s[rival(s, y)]


def direction(s, y):
    """What a step of length one adds: y with one output, e_y - e_s with several."""
    if len(s) == 1:
        return np.array([float(y)])
    step = np.zeros(len(s))
    step[int(y)] = 1.0
    step[rival(s, y)] = -1.0
    return step


def counts_as_error(s, y):
    """The 0/1 loss, with sgn(0) = +1 and argmax taking the lowest index on ties."""
    if len(s) == 1:
        return (1 if s[0] >= 0 else -1) != y
    return int(np.argmax(s)) != int(y)


def mistaken(s, y, strict_sign_update=False):
    """Whether a perceptron-type update fires.

    E01: with one output on y f(x) <= 0, under strict_sign_update on a counted error only (they differ at
    f = 0); with several outputs always on a counted error.
    """
    if len(s) == 1 and not strict_sign_update:
        return y * s[0] <= 0
    return counts_as_error(s, y)


def curvature(k_tt, outputs):
    """The k_tt of a closed-form step: 2 k_tt with several outputs, where a step moves two of them."""
    return k_tt if outputs == 1 else 2 * k_tt


def norm(K, f):
    """The norm of the function with coefficients f; several outputs add up their squares."""
    return np.sqrt(max(0.0, np.sum(f * (K @ f))))
