"""Memory that runs out while a model learns or widens leaves the model of the rows before, which learns on."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import resource, sys
import numpy as np
import onkel

name, seed, trials = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(seed)
X = rng.normal(size=(1500, 200))
y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)


def used():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def same(a, b):
    one, two = a.state()[0], b.state()[0]
    return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)


ended = 0
for trial in range(trials):
    model, fresh = (getattr(onkel, name)() for _ in range(2))
    start = int(rng.integers(20, 400))
    model.learn(X[:start], y[:start])
    widens = trial % 4 == 3 and not name.startswith("AutoKernel")
    resource.setrlimit(resource.RLIMIT_AS, (used() + int(rng.integers(0, 3_000_000)), resource.RLIM_INFINITY))
    try:
        model.widen(100_000) if widens else model.learn(X[start:], y[start:])
    except MemoryError:
        ended += 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if model.n_features_in_ > X.shape[1]:
        continue  # there was enough
    t = model.t_
    fresh.learn(X[:t], y[:t])
    assert same(model, fresh), (trial, start, t)
    for one in (model, fresh):
        one.learn(X[t : t + 50], y[t : t + 50]) if t < len(X) else None
    assert same(model, fresh), (trial, start, t)
print(ended)
"""
POOLS = ["SPAOMKLClassifier", "OMKCClassifier", "NOGDOMKLClassifier", "FOGDOMKLClassifier", "AutoKernelClassifier"]
ALONE = ["PAClassifier", "OGDRegressor", "NORMAClassifier", "ProjectronClassifier", "FSGDClassifier", "KLMSRegressor"]

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")


def failed_allocations(name, trials):
    """How many of so many trials ended for want of memory; each left the model of a prefix."""
    program = [sys.executable, "-W", "ignore", "-c", PROGRAM, name, "1", str(trials)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


@pytest.mark.parametrize(
    "name", ["SPAOMKLClassifier", "AutoKernelClassifier", "NORMAClassifier", "ProjectronClassifier"]
)
def test_memory_that_runs_out(name):
    assert failed_allocations(name, 8) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", POOLS + ALONE)
def test_memory_that_runs_out_often(name):
    assert failed_allocations(name, 50) > 0
