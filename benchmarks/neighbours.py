"""What scikit-learn and river offer that comes nearest: features of the kernel under a linear model, or neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

# name, most examples it has time for, mistakes on the first n, how many times as long as `learn` of FOGD it should take
Entry = tuple[str, int, Callable[[int], int], float | None]


def count_wrong(model: Any, examples: Iterable[Any], labels: Iterable[Any]) -> int:
    """Mistakes of a model with river's verbs, each example predicted and then learned."""
    wrong = 0
    for x, label in zip(examples, labels, strict=True):
        wrong += model.predict_one(x) != label
        model.learn_one(x, label)
    return wrong


def sklearn(X: Any, y: Any, gamma: float, size: int) -> Iterator[Entry]:
    """A map fitted to the first thousand examples, and SGD on its features; each chunk is predicted, then learned."""
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.linear_model import SGDClassifier

    def run(kind: Any, chunk: int, n: int) -> int:
        features = kind(gamma=gamma, n_components=size, random_state=0).fit(X[:1000])
        model = SGDClassifier(alpha=1e-6, random_state=0)
        wrong = 0
        for start in range(0, n, chunk):
            now = slice(start, min(start + chunk, n))
            rows = features.transform(X[now])
            guess = model.predict(rows) if start else -1  # the frequent class
            wrong += int((guess != y[now]).sum())
            model.partial_fit(rows, y[now], classes=[-1, 1])
        return wrong

    for kind, together, alone in ((Nystroem, None, None), (RBFSampler, 10, 500)):
        yield f"sklearn {kind.__name__}, SGD, chunks of 1000", len(y), partial(run, kind, 1000), together
        yield f"sklearn {kind.__name__}, SGD, one by one", 2000, partial(run, kind, 1), alone


def river(X: Any, y: Any, gamma: float, size: int) -> Iterator[Entry]:
    """Its linear models on random features, and its nearest neighbours; nothing where river is not installed."""
    try:
        from river import base, feature_extraction, linear_model, neighbors
    except ImportError:
        return
    examples = [dict(enumerate(row)) for row in X.tolist()]
    labels = (y > 0).tolist()

    class Fourier(base.Transformer):
        """cos(<omega, x> + b), where river's own RBFSampler has cos(omega_i x_i + b) for each feature i alone."""

        def __init__(self) -> None:
            random = np.random.default_rng(0)
            self.omega = random.normal(0, np.sqrt(2 * gamma), (size, X.shape[1]))
            self.offset = random.uniform(0, 2 * np.pi, size)

        def transform_one(self, x: Any) -> Any:
            z = np.cos(self.omega @ np.fromiter(x.values(), float) + self.offset) * np.sqrt(2 / size)
            return dict(enumerate(z.tolist()))

    def sampler() -> Any:
        return feature_extraction.RBFSampler(gamma=gamma, n_components=size, seed=0)

    def run(make: Callable[[], Any], n: int) -> int:
        return count_wrong(make(), examples[:n], labels[:n])

    def nearest() -> Any:
        return neighbors.KNNClassifier(engine=neighbors.LazySearch(window_size=size))

    def on(features: Callable[[], Any], kind: Callable[[], Any]) -> Callable[[int], int]:
        return partial(run, lambda: features() | kind())

    linear = {"ALMA": linear_model.ALMAClassifier, "PA": linear_model.PAClassifier}
    yield "river LogisticRegression (linear)", len(y), partial(run, linear_model.LogisticRegression), None
    for name, kind in linear.items():
        yield f"river RBFSampler, {name}", 1000, on(sampler, kind), None
    for name, kind in (linear | {"LogisticRegression": linear_model.LogisticRegression}).items():
        yield f"river, Fourier features, {name}", 1000, on(Fourier, kind), 100
    yield f"river KNN, window of {size}", 1000, partial(run, nearest), None
