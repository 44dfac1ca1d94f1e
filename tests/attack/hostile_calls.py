"""Calls with hostile arguments: every verb of every estimator.

A call succeeds, or raises an error with a sentence. A refused call leaves the model as it was, bit for bit, and a
prediction always does. A model that was called is one that `load` accepts.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import streams
from model_files import samples
from watch import Unexpected

import onkel
from onkel.faces.files import restored

LEARNING = ["learn", "partial_fit", "fit", "learn_one", "learn_many", "begin", "widen"]
PREDICTING = ["predict", "predict_one", "predict_many", "decision_function", "predict_proba", "predict_proba_one",
              "predict_proba_many", "score_samples", "score_one", "score"]  # fmt: skip
ERRORS = (ValueError, TypeError, FloatingPointError, NotImplementedError, AttributeError, MemoryError)
FOREIGN = {"score": OverflowError}  # what scikit-learn itself says of such targets
NUMBERS = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-160, 1e20, 1e100, 1e150, 1e200, 1.7e308, -1.7e308, 3.4e38, 2**53 + 1]
NONE = [np.nan, np.inf, -np.inf]
ODD = [None, True, "a", "1.5", "", b"x", 1j, [], {}, (), object(), np.datetime64("2020-01-01"), 10**400, 2**63,
       [1, [2]], float("nan"), np.float16(1), np.ma.masked, pd.NA, lambda: 1, type, "\ud800", "a\0"]  # fmt: skip


class Sample:
    """A model that has learned rows by number, and one that has learned dictionaries."""

    def __init__(self, name: str, params: Any, average: Any, form: str, several: bool, engine: str) -> None:
        self.X, self.y = streams.stream_for(streams.ALL[name], 24, form=form, several=several)
        with onkel.use_engine("auto" if engine == "native" else engine):
            self.fresh = streams.ALL[name](**params)
            self.arrays = streams.ALL[name](**params)
            self.named = streams.ALL[name](**params)
            if not self.fresh.online:
                self.arrays.fit(self.X, self.y)
                self.named = self.arrays
                return
            streams.learn(self.arrays, self.X, self.y)
            dense = self.X.toarray() if sp.issparse(self.X) else self.X
            for i, row in enumerate(dense[:8, :4].tolist()):
                x = dict(zip("abcd", row, strict=True))
                self.named.learn_one(x) if self.y is None else self.named.learn_one(x, self.y[i].item())


class HostileCalls:
    """The target of the attack."""

    def __init__(self, seed: int) -> None:
        self.seed, self.made = seed, []
        for one in samples():
            try:
                self.made.append((one, Sample(*one)))
            except ValueError:
                self.made.append((one, Sample(*one[:3], "dense", *one[4:])))

    def __call__(self, case: int) -> str:
        rng = np.random.default_rng([self.seed, case])
        (*_, engine), sample = self.made[rng.integers(len(self.made))]
        with onkel.use_engine("auto" if engine == "native" else engine):
            model = copy.deepcopy([sample.arrays, sample.named, sample.fresh][rng.choice(3, p=[0.6, 0.3, 0.1])])
            outcome = ""
            for _ in range(rng.integers(1, 4)):
                outcome = called(model, sample, rng)
            sound(model)
        return outcome


def snapshot(model: Any) -> Any:
    """Everything that is saved of a model."""
    arrays, config = model.state()
    return {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}, repr(config)


def called(model: Any, sample: Sample, rng: Any) -> str:
    """Call a verb; check what is promised of it."""
    verb = str(rng.choice(LEARNING if rng.random() < 0.6 else PREDICTING))
    try:
        method = getattr(model, verb)
    except AttributeError:
        return "absent"
    arguments, options = arguments_for(verb, model, sample, rng)
    before = snapshot(model)
    answers = probe(model, sample)
    try:
        method(*arguments, **options)
    except (*ERRORS, FOREIGN.get(verb, ValueError)) as error:
        if len(str(error)) < 10 and not isinstance(error, MemoryError):
            raise Unexpected(f"{verb} said: {error!r}") from error
        if len(getattr(error, "scores", ())):
            return "ended early"
        if snapshot(model) != before:
            raise Unexpected(f"{verb} was refused, and changed the model: {error!r}") from error
        if not same(probe(model, sample), answers):
            raise Unexpected(f"{verb} was refused, and changed predictions: {error!r}") from error
        return "refused"
    if verb in PREDICTING and snapshot(model) != before:
        raise Unexpected(f"{verb} changed the model")
    return "accepted"


def probe(model: Any, sample: Sample) -> Any:
    """Predictions for rows of the right form; the error's name where there are none."""
    try:
        return model.predict(sample.X[:3])
    except ERRORS as error:
        return type(error).__name__


def same(a: Any, b: Any) -> bool:
    return a == b if isinstance(a, str) or isinstance(b, str) else np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def sound(model: Any) -> None:
    """The state can be loaded, if its numbers can be saved."""
    arrays, config = model.state()
    if all(np.isfinite(a).all() for a in arrays.values()):
        restored("the model", arrays, config)


def arguments_for(verb: str, model: Any, sample: Sample, rng: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a verb, most of them nearly right."""
    if verb == "widen":
        return [odd(rng) if rng.random() < 0.5 else int(rng.integers(-2, 40))], {}
    one, many = verb.endswith("_one"), verb.endswith("_many")
    n = 1 if one else int(rng.integers(1, 6))
    x: Any = frame(sample, n, rng) if many and rng.random() < 0.8 else rows(sample, n, rng)
    if one:
        x = example(sample, rng)
    arguments, options = [x], {}
    if verb in ("learn", "partial_fit", "fit", "learn_one", "learn_many", "begin", "score") and sample.y is not None:
        arguments.append(label(sample, rng) if one else targets(sample, n, rng))
    if verb in ("learn", "partial_fit", "fit") and rng.random() < 0.2:
        options["sample_weight"] = weights(n, rng)
    if verb in ("learn", "partial_fit") and rng.random() < 0.15:
        options["classes"] = targets(sample, 4, rng)
    if verb == "learn_one" and rng.random() < 0.15:
        arguments.append(weights(1, rng))
    if rng.random() < 0.03:
        arguments = arguments[:-1] if rng.random() < 0.5 else [*arguments, odd(rng)]
    return arguments, options


def odd(rng: Any) -> Any:
    return ODD[rng.integers(len(ODD))]


def value(rng: Any, bad: float = 0.3) -> float:
    """A number, often extreme, sometimes none."""
    if rng.random() > bad:
        return float(rng.normal())
    return float(rng.choice(NUMBERS if rng.random() < 0.75 else NONE))


def rows(sample: Sample, n: int, rng: Any) -> Any:
    """A matrix: right, with other numbers, or of another form."""
    at = rng.integers(len(sample.y) if sample.y is not None else sample.X.shape[0], size=n)
    X = sample.X[at]
    choice = rng.random()
    if choice < 0.25:
        return X
    if sp.issparse(X):
        return sparse(X, rng)
    X = X.copy()
    if choice < 0.55:
        with np.errstate(over="ignore"):
            X[rng.random(X.shape) < 0.3] = value(rng, 1.0)
        return X
    if choice < 0.62:
        return X.astype(rng.choice(["f2", "f4", "f8", "i8", "O", "U", "?", "c16", ">f8"]))
    if choice < 0.70:
        return X.tolist() if rng.random() < 0.5 else [[*row, odd(rng)] for row in X[:, :-1].tolist()]
    if choice < 0.80:
        forms = [X[:, :-1], np.hstack([X, X]), X[:0], X[:, :0], X[0], X[None], np.asfortranarray(X), X[::-1, ::-1]]
        return forms[rng.integers(len(forms))]
    if choice < 0.88:
        return sparse(sp.csr_array(X), rng)
    if choice < 0.94:
        return pd.DataFrame(X, columns=list("abcdefghijklmnop"[: X.shape[1]]))
    return odd(rng)


def sparse(X: Any, rng: Any) -> Any:
    """A sparse matrix: right, with other numbers, of another kind, or with parts that do not fit."""
    X = sp.csr_array(X)
    choice = rng.random()
    if choice < 0.3:
        X.data[rng.random(X.data.shape) < 0.3] = value(rng, 1.0)
        return X
    if choice < 0.5:
        return X.asformat(str(rng.choice(["csc", "coo", "lil", "dok", "bsr"])))
    if choice < 0.6:
        return sp.csr_matrix(X)
    parts = [part.copy() for part in (X.data, X.indices, X.indptr)]
    which = parts[rng.integers(1, 3)]
    if len(which):
        which[rng.integers(len(which))] = rng.choice([-1, 0, 1, 2, 10**6, 2**31 - 1])
    if rng.random() < 0.2:
        parts[0] = parts[0][:-1]
    X.data, X.indices, X.indptr = parts
    return X


def frame(sample: Sample, n: int, rng: Any) -> Any:
    """A frame with names that are known, new, doubled or strange."""
    names = list("abcd")
    if rng.random() < 0.5:
        names[rng.integers(4)] = [*"abcdxy", 1, None, ("a", 1), "", 2.5][rng.integers(11)]
    columns: list[Any] = [[value(rng) for _ in range(n)] for _ in names]
    if rng.random() < 0.3:
        columns[rng.integers(4)] = [odd(rng) if rng.random() < 0.5 else 1.0 for _ in range(n)]
    try:
        return pd.concat([pd.Series(column, name=name) for name, column in zip(names, columns, strict=True)], axis=1)
    except UnicodeEncodeError:  # pandas itself refuses a text that is no Unicode
        return pd.DataFrame({"a": [1.0] * n})


def example(sample: Sample, rng: Any) -> Any:
    """One example: a dictionary, a row, or something else."""
    if rng.random() < 0.5:
        x: Any = dict(zip("abcd", (value(rng) for _ in range(4)), strict=True))
        if rng.random() < 0.4:
            x[["e", "f", 7, None, ("t",), "", 1.5, b"b", frozenset(), "\ud800", "g" * 1000][rng.integers(11)]] = (
                odd(rng) if rng.random() < 0.3 else value(rng)
            )
        if rng.random() < 0.2:
            del x["b"]
        return x
    X = rows(sample, 1, rng)
    try:
        return X[0]
    except Exception:
        return X


def label(sample: Sample, rng: Any) -> Any:
    right = sample.y[rng.integers(len(sample.y))]
    choice = rng.random()
    return right.item() if choice < 0.5 else right if choice < 0.6 else value(rng, 0.8) if choice < 0.8 else odd(rng)


def targets(sample: Sample, n: int, rng: Any) -> Any:
    """Targets: right, with odd ones, of another form or type."""
    if sample.y is None:
        return odd(rng)
    y, choice = sample.y[rng.integers(len(sample.y), size=n)], rng.random()
    if choice < 0.5:
        return y
    if choice < 0.65:
        y = y.astype(float)
        y[rng.integers(n)] = value(rng, 0.9)
        return y
    if choice < 0.75:
        return [odd(rng) if rng.random() < 0.4 else one for one in y.tolist()]
    if choice < 0.85:
        return y.astype(rng.choice(["U", "O", "i1", "?", "f4", "S"]))
    if choice < 0.95:
        forms = [y[:-1], np.append(y, y), y[:, None], y[None], y[:0], sp.csr_array(y[None].astype(float)), pd.Series(y)]
        return forms[rng.integers(len(forms))]
    return odd(rng)


def weights(n: int, rng: Any) -> Any:
    choice = rng.random()
    if choice < 0.5:
        return np.array([abs(value(rng, 0.6)) if rng.random() < 0.9 else value(rng, 0.9) for _ in range(n)])
    if choice < 0.7:
        return value(rng, 0.8)
    return odd(rng) if choice < 0.9 else np.ones(n + 1)
