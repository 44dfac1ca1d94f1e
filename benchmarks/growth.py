"""What joins in mid-stream: the time of a new feature name, of a new class, and of a bag of words, beside river.

    python benchmarks/growth.py [names] [classes] [documents]

1. Names: every event of a stream of dictionaries brings a name. The last thousand against the first thousand events.
2. Classes: every event brings a class. A round costs its classes, so the time to join is that of a row of weight 0,
   which is scored and not learned, with a new class, less that of such a row with a known one.
3. Words: short texts through river's `BagOfWords`, with a vocabulary that grows by Heaps' law, as in the SMS set;
   `predict_one`, then `learn_one`, against river's logistic regression.

All times are CPU times of the thread.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import onkel

NAMES = ("FOGDClassifier", "PAClassifier", "NOGDClassifier", "BOGDClassifier")


def timed(action: Any, *arguments: Any) -> float:
    clock = time.thread_time()
    action(*arguments)
    return time.thread_time() - clock


def microseconds(times: list[float]) -> str:
    return f"{1e6 * statistics.median(times):.0f} µs"


def names(count: int) -> None:
    print(f"\nA new name with each of {count:,} events (median of the first and the last thousand)")
    for name in NAMES:
        model = getattr(onkel, name)()
        taken = [timed(model.learn_one, {f"w{i}": 1.0, f"w{i // 2}": 0.5}, i % 2) for i in range(count)]
        first, last = taken[100:1100], taken[-1000:]
        ratio = statistics.median(last) / statistics.median(first)
        print(f"{name:16} {microseconds(first):>9} {microseconds(last):>9}   ratio {ratio:.2f}", flush=True)


def classes(count: int) -> None:
    print(f"\nA new class with each of {count:,} events (medians as before, less a round of weight 0)")
    rng = np.random.default_rng(0)
    for name in NAMES:
        # few features: the coefficients of all classes should fit in the cache, or the time to join is that of a cold
        # cache; PA keeps a term for each class, so its coefficients are the square of the classes
        model = onkel.FOGDClassifier(components=25) if name == "FOGDClassifier" else getattr(onkel, name)()
        several = count // 5 if name == "PAClassifier" else count
        joined, known = [], []
        for x, label in zip(rng.normal(size=(several, 4)), rng.permutation(several).tolist(), strict=True):
            joined.append(timed(model.learn_one, x, label, 0.0))
            known.append(timed(model.learn_one, x, label, 0.0))
            model.learn_one(x, label)
        pairs = [a - b for a, b in zip(joined, known, strict=True)]
        first, last = pairs[100:1100], pairs[-1000:]
        ratio = statistics.median(last) / statistics.median(first)
        print(
            f"{name:16} {several:6,} {microseconds(first):>9} {microseconds(last):>9}   ratio {ratio:.2f}   "
            f"(such a round at the end: {microseconds(known[-1000:])})",
            flush=True,
        )


def documents(count: int, seed: int = 0) -> Iterator[tuple[str, bool]]:
    """Short texts of some 15 words: word n + 1 is new with a probability that makes the vocabulary grow like n^0.8."""
    rng = np.random.default_rng(seed)
    read: list[int] = []  # every word so far: a known word comes as often as it came
    vocabulary = 0
    for _ in range(count):
        spam = bool(rng.random() < 0.2)
        words = []
        for _ in range(1 + rng.poisson(14)):
            if rng.random() < (len(read) + 1) ** -0.2:
                word, vocabulary = vocabulary, vocabulary + 1
            else:
                word = read[int(rng.integers(len(read)))]
                if spam and rng.random() < 0.3:  # spam prefers some words
                    word -= word % 7
            read.append(word)
            words.append(f"word{word}")
        yield " ".join(words), spam


def bag_of_words(count: int) -> None:
    from river import feature_extraction, linear_model

    stream = list(documents(count))
    vocabulary = len({word for text, _ in stream for word in text.split()})
    print(f"\nA bag of words: {count:,} documents, {vocabulary:,} words (a document, predicted and learned)")
    times = {}
    models = {"river": linear_model.LogisticRegression(), **{name: getattr(onkel, name)() for name in NAMES[:3]}}
    for name, learner in models.items():
        model = feature_extraction.BagOfWords(lowercase=True) | learner
        right, clock = 0, time.thread_time()
        for text, y in stream:
            right += model.predict_one(text) == y
            model.learn_one(text, y)
        times[name] = (time.thread_time() - clock) / count
        ratio = times[name] / times["river"]
        print(
            f"{name:16} {1e6 * times[name]:6.0f} µs   {ratio:5.1f} times river   {right / count:.1%} right", flush=True
        )


if __name__ == "__main__":
    sizes = [int(n) for n in sys.argv[1:]]
    given = dict(enumerate(sizes))
    names(given.get(0, 100_000))
    classes(given.get(1, 10_000))
    bag_of_words(given.get(2, 5000))
