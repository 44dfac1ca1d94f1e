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
    golden = np.uint64(0x9E3779B97F4A7C15)
    start = np.array([mix((seed & _MASK) ^ hash_text(purpose))], dtype=np.uint64)
    stream = _mix(start ^ _mix(np.asarray(keys, dtype=np.uint64) + golden))
    places = np.arange(1, count + 1, dtype=np.uint64) * golden
    return ((_mix(stream[:, None] + places) >> np.uint64(12)) + 0.5) * 2.0**-52


def _mix(z: Array) -> Array:
    """`mix`, for arrays."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def pick(probability: Array, uniform: float) -> int:
    """The index at which the running sum of probabilities first exceeds uniform * their sum."""
    running = np.cumsum(probability)
    return min(int(np.searchsorted(running, uniform * running[-1], side="right")), len(running) - 1)
