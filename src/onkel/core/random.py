"""Random numbers that are the same in Python and in C++ and on every machine, and that resume exactly.

SplitMix64 (Steele, Lea, Flood 2014): the whole state is one 64-bit integer. Each purpose (such as the
removal of terms) has its own stream, so that draws for one purpose never shift those for another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_MASK = (1 << 64) - 1


def mix(z: int) -> int:
    """SplitMix64's output function: a bijection of 64-bit integers that scatters nearby inputs."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def hash_text(text: str) -> int:
    """FNV-1a, 64 bits: a stable number for a name."""
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & _MASK
    return h


class Random:
    """A stream of uniform numbers for one purpose."""

    def __init__(self, seed: int, purpose: str) -> None:
        self.state = mix((seed & _MASK) ^ hash_text(purpose))

    def uniform(self) -> float:
        """A number in [0, 1) with 53 random bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        return float(mix(self.state) >> 11) * 2.0**-53

    def below(self, n: int) -> int:
        """An integer in 0..n-1, uniform up to 2^-53 n."""
        return int(self.uniform() * n)


def uniforms(seed: int, purpose: str, keys: Array, count: int) -> Array:
    """Numbers in (0, 1), `count` for each key; each depends only on seed, purpose, key and position."""
    start = np.uint64(mix((seed & _MASK) ^ hash_text(purpose)))
    stream = _mixed(start ^ _mixed(np.asarray(keys, dtype=np.uint64) + _GOLDEN))
    places = np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
    return ((_mixed(stream[:, None] + places) >> _12) + 0.5) * 2.0**-52


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_12, _27, _30, _31 = (np.uint64(bits) for bits in (12, 27, 30, 31))


def _mixed(z: Array) -> Array:
    """`mix`, for an array, which is overwritten."""
    z ^= z >> _30
    z *= _FIRST
    z ^= z >> _27
    z *= _SECOND
    z ^= z >> _31
    return z


def pick(probability: Array, uniform: float) -> int:
    """The index at which the running sum of probabilities first exceeds uniform * their sum."""
    running = np.cumsum(probability)
    return min(int(np.searchsorted(running, uniform * running[-1], side="right")), len(running) - 1)
