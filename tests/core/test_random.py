"""Random numbers: the published generator, uniform and independent streams, and what is picked by them."""

from math import sqrt

import numpy as np

from onkel.core.random import Random, pick


def test_random_numbers_are_splitmix64():
    stream = Random(0, "removal")
    stream.state = 1234567
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [stream.uniform() for _ in published] == [(number >> 11) * 2.0**-53 for number in published]


def test_random_streams_are_uniform_and_apart():
    streams = [Random(0, "removal"), Random(1, "removal"), Random(0, "sampling"), Random(-1, "removal")]
    draws = np.array([[stream.uniform() for _ in range(4000)] for stream in streams])
    assert ((draws >= 0) & (draws < 1)).all()
    assert np.abs(draws.mean(axis=1) - 0.5).max() < 4 * sqrt(1 / 12 / 4000)
    assert np.abs(np.corrcoef(draws) - np.eye(4)).max() < 4 / sqrt(4000)
    stream = Random(3, "removal")
    counts = np.bincount([stream.below(6) for _ in range(6000)], minlength=6)
    assert len(counts) == 6 and np.abs(counts - 1000).max() < 150


def test_pick_takes_the_first_that_exceeds():
    p = np.array([0.0, 0.5, 0.0, 0.25, 0.25])
    assert [pick(p, u) for u in (0.0, 0.4999, 0.5, 0.7499, 0.75, 1 - 2**-53)] == [1, 1, 3, 3, 4, 4]
    assert pick(4 * p, 0.6) == 3
