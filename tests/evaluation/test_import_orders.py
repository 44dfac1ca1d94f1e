"""Whether onkel or river is imported first makes no difference to evaluation, theirs and ours."""

import subprocess
import sys

import pytest

pytest.importorskip("river")

CODE = """
import {first}

made = {first}.PAClassifier() if "{first}" == "onkel" else None

import {second}
import numpy as np
from river import evaluate, linear_model, metrics

random = np.random.default_rng(0)
X = random.normal(size=(60, 3))
y = np.where(X[:, 0] * X[:, 1] > 0, "a", "b")
rows = [(dict(enumerate(values.tolist())), bool(label == "a")) for values, label in zip(X, y)]
print(evaluate.progressive_val_score(rows, made or onkel.PAClassifier(), metrics.Accuracy()))
models = {{"onkel": onkel.PAClassifier(), "river": linear_model.Perceptron()}}
for name, model in models.items():
    trace = onkel.evaluate(model, X, y == "a", checkpoints=6, task="classification")
    print(name, trace.total.tolist())
print(onkel.race({{"onkel": models["onkel"]}}, X, y).results[0].error)
"""


def test_the_order_of_imports_does_not_matter():
    orders = [("onkel", "river"), ("river", "onkel")]
    codes = [CODE.format(first=first, second=second) for first, second in orders]
    said = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for code in codes]
    assert [one.returncode for one in said] == [0, 0], said[0].stderr + said[1].stderr
    assert said[0].stdout == said[1].stdout
    assert said[0].stdout.count("\n") == 4
