"""Columns of zeros and ones, whose bits the C++ engine counts: the same numbers, whatever comes and goes."""

import os
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from every_processor import SETS
from streams import CASE_IDS, CASES, TESTS, build, learn, task_of

import onkel
from onkel.kernels import Gaussian, Laplacian, Linear, Polynomial

pytestmark = pytest.mark.skipif(not onkel.native.available(), reason="the native engine is not built")

KERNELS = [Gaussian(0.3), Laplacian(0.2), Polynomial(2, 1.0), Gaussian(0.3) + Linear()]
ROUNDS = 500
TOLERANCE = {"float32": 1e-5, "float64": 1e-13}


def mixed(columns=70, seed=0, fractions=0.005):
    """Some numbers, categories spread over columns, and two of these that are numbers now and then only: whether their
    ones are added to the numbers or counted apart can be seen in the last bit."""
    random = np.random.default_rng(seed)
    X = np.zeros((ROUNDS, columns))
    X[np.arange(ROUNDS), random.integers(5, columns, ROUNDS)] = 1
    X[random.random(X.shape) < 0.2] = 1
    X[:, :3] = random.normal(size=(ROUNDS, 3))
    rare = random.random(ROUNDS) < fractions
    X[rare, 4] = random.normal(size=rare.sum())
    X[ROUNDS // 2 :: 40, columns // 2] = -0.0
    X[ROUNDS // 2 + 7 :: 50, columns // 2] = 2.0
    return X, labels(X)


def binary(columns=70, seed=0):
    X = (np.random.default_rng(seed).random((ROUNDS, columns)) < 0.3).astype(float)
    return X, labels(X)


def categories(groups=14, seed=0):
    """One of five columns for each of fourteen questions; near the end more than one. The rows differ in few places, so
    that values of a kernel are looked up, until there are too many."""
    random = np.random.default_rng(seed)
    X = np.zeros((ROUNDS, 5 * groups))
    for group in range(groups):
        X[np.arange(ROUNDS), 5 * group + random.integers(0, 5, ROUNDS)] = 1
    X[-60:][random.random((60, 5 * groups)) < 0.1] = 1
    return X, labels(X)


def unsteady(random):
    """A number, flags, and three columns that are flags until a row with a fraction comes."""
    X = (random.random((100, 32)) < 0.3).astype(float)
    X[:, 0] = random.normal(size=100)
    for column in (1, 2, 3):
        X[random.random(100) < 0.05, column] = 0.3
    return X


def labels(X):
    return np.where(X[:, -3:].sum(axis=1) + np.sin(3 * X[:, 0]) > X[:, 3:7].sum(axis=1) / 2, 1, -1)


STREAMS = {
    "mixed": mixed(),
    "border": mixed(fractions=0.065),  # 16 of 200 terms, more or less: so many make a column one of numbers
    "few": mixed(12),
    "wide": mixed(300),
    "binary": binary(),
    "narrow": binary(3),
    "categories": categories(),
    "sparse categories": (sp.csr_array(categories()[0]), categories()[1]),
    "sparse": (sp.csr_array(mixed(200)[0]), mixed(200)[1]),
    "sparse binary": (sp.csr_array(binary(200)[0]), binary(200)[1]),
}


def model(kernel):
    """Random removal, and a loss without kinks at which rounding could decide."""
    return onkel.BOGDClassifier(kernel=kernel, budget=200, loss="logistic", eta=0.01)


def learned(kernel, X, y, engine, cuts=()):
    """All scores made before each update, learned in pieces."""
    with onkel.use_engine(engine):
        one = model(kernel)
        edges = [0, *cuts, ROUNDS]
        scores = [one.learn(X[a:b], y[a:b], classes=[-1, 1]) for a, b in pairwise(edges)]
        return np.concatenate(scores), one.decision_function(X)


@pytest.fixture(params=STREAMS)
def stream(request):
    return STREAMS[request.param]


@pytest.fixture(params=[np.float32, np.float64])
def rows(request, stream):
    return stream[0].astype(request.param), stream[1]


@pytest.fixture(params=KERNELS, ids=str)
def kernel(request):
    return request.param


def test_flags_change_nothing(kernel, rows):
    """What is counted in bits is what the definition adds up, to rounding."""
    X, y = rows
    for ours, reference in zip(learned(kernel, X, y, "native"), learned(kernel, X, y, "python"), strict=True):
        size = np.abs(reference).max()
        np.testing.assert_allclose(ours, reference, rtol=0, atol=TOLERANCE[X.dtype.name] * size)


def test_any_chunking_and_resume(kernel, rows):
    """Which columns are flags depends on the terms there are: neither on blocks of examples nor on past terms."""
    X, y = rows
    whole, predictions = learned(kernel, X, y, "native")
    single, again = learned(kernel, X, y, "native", cuts=range(1, ROUNDS))
    np.testing.assert_array_equal(single, whole)
    np.testing.assert_array_equal(again, predictions)
    with onkel.use_engine("native"):
        one, at, scores = model(kernel), 0, []
        for cut in (200, 333, 334, 380, ROUNDS):
            scores.append(one.learn(X[at:cut], y[at:cut], classes=[-1, 1]))
            one, at = pickle.loads(pickle.dumps(one)), cut
        np.testing.assert_array_equal(np.concatenate(scores), whole)
        np.testing.assert_array_equal(
            np.concatenate([one.decision_function(X[i : i + 1]) for i in range(ROUNDS)]), predictions
        )


def test_integers_are_exact():
    """Counts of bits are integers: linear kernels on flags come out without any rounding."""
    X, y = binary(500)
    with onkel.use_engine("native"):
        one = onkel.KernelPerceptronClassifier(kernel=Linear()).fit(X, y)
        terms = one.support_vectors_.T @ np.sign(one.dual_coef_).T
    np.testing.assert_array_equal(one.decision_function(X), (X @ terms).ravel() * np.abs(one.dual_coef_).max())


@pytest.mark.slow
@pytest.mark.parametrize("instructions", SETS)
def test_every_instruction_set(instructions, tmp_path):
    """A process that may use only the given instructions."""
    best = onkel.native._core.instruction_set()
    if SETS.index(instructions) > SETS.index(best):
        pytest.skip(f"the best set of instructions here is {best}")
    program = tmp_path / "scores.py"
    program.write_text(
        "import sys\nimport numpy as np\nimport onkel\nfrom test_flags import KERNELS, STREAMS, learned\n"
        "parts = [learned(k, *STREAMS[s], 'native')[0] for k in KERNELS for s in STREAMS]\n"
        "np.save(sys.argv[1], np.concatenate(parts))\n"
        "print(onkel.native._core.instruction_set())\n"
    )
    environment = os.environ | {
        "ONKEL_INSTRUCTIONS": instructions,
        "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), str(TESTS)]),
    }
    command = [sys.executable, str(program), str(tmp_path / "out.npy")]
    child = subprocess.run(command, env=environment, check=True, timeout=300, stdout=subprocess.PIPE, text=True)
    assert child.stdout.split() == [instructions]
    expected = np.concatenate([learned(k, *STREAMS[s], "native")[0] for k in KERNELS for s in STREAMS])
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("name", "params"), CASES, ids=CASE_IDS)
def test_every_estimator_in_pieces(name, params):
    """One by one, saved and loaded on the way, is all at once, while columns become flags and cease to be."""
    X = unsteady(np.random.default_rng(3))
    goal = X[:, :5].sum(axis=1) - X[:, -5:].sum(axis=1)
    y = {"Classifier": np.where(goal > 0, 1.0, -1.0), "Regressor": goal / 5, "Detector": None}
    with onkel.use_engine("native"):
        whole, pieces = build(name, **params), build(name, **params)
        target = y[task_of(whole)]
        scores = []
        expected = learn(whole, X, target)
        for i in range(100):
            scores.append(learn(pieces, X[i : i + 1], None if target is None else target[i : i + 1]))
            pieces = pickle.loads(pickle.dumps(pieces)) if i in (40, 55, 56, 80) else pieces
        np.testing.assert_array_equal(np.concatenate(scores), expected)


@pytest.mark.parametrize("seed", [11, 19])
def test_kernel_values_that_a_budget_keeps_are_made_again_alike(seed):
    """TVM keeps those of its terms, but not in its state: when columns cease to be flags they must be made anew."""
    random = np.random.default_rng(seed)
    X = unsteady(random)
    y = np.where(X[:, :5].sum(axis=1) + 0.3 * random.normal(size=100) > X[:, -5:].sum(axis=1), 1, -1)
    with onkel.use_engine("native"):
        never = onkel.TVMClassifier(kernel=Gaussian(0.1))
        never.learn(X[:55], y[:55], classes=[-1, 1])
        resumed = pickle.loads(pickle.dumps(never))
        np.testing.assert_array_equal(resumed.learn(X[55:], y[55:]), never.learn(X[55:], y[55:]))
