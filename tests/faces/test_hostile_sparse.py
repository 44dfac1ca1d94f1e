"""Sparse matrices: odd ones are read, unsound ones refused."""

import os
import subprocess
import sys

import numpy as np
import scipy.sparse as sp
from streams import ESTIMATORS, TESTS, build, learn, stream_for

# -- sparse matrices


def test_odd_but_sound_sparse_matrices(engine):
    X, y = stream_for(ESTIMATORS["ForgetronClassifier"], 40, form="sparse")
    for width in (X.shape[1], 2000):
        good = sp.csr_array((X.data, X.indices, X.indptr), shape=(40, width))
        plain = build("ForgetronClassifier", budget=5)
        scores = learn(plain, good, y)
        wide = sp.csr_array((good.data, good.indices.astype(np.int64), good.indptr.astype(np.int64)), shape=good.shape)
        unsorted = sp.csr_array((good.data.copy(), good.indices.copy(), good.indptr), shape=good.shape)
        for a, b in zip(good.indptr[:-1], good.indptr[1:], strict=True):
            unsorted.data[a:b] = unsorted.data[a:b][::-1].copy()
            unsorted.indices[a:b] = unsorted.indices[a:b][::-1].copy()
        unsorted.has_sorted_indices = False
        dup = sp.csr_array((np.repeat(good.data / 2, 2), np.repeat(good.indices, 2), 2 * good.indptr), shape=good.shape)
        coo = good.tocoo()
        zeros = sp.csr_array(
            sp.coo_array(
                (
                    np.append(coo.data, [0.0] * 40),
                    (np.append(coo.row, np.arange(40)), np.append(coo.col, np.full(40, 3))),
                ),
                shape=good.shape,
            )
        )
        for odd in (wide, unsorted, dup, zeros):
            before = (odd.data.copy(), odd.indices.copy(), odd.indptr.copy())
            model = build("ForgetronClassifier", budget=5)
            np.testing.assert_allclose(learn(model, odd, y), scores, atol=1e-12)
            np.testing.assert_allclose(model.decision_function(odd), plain.decision_function(good), atol=1e-12)
            for a, b in zip(before, (odd.data, odd.indices, odd.indptr), strict=True):
                np.testing.assert_array_equal(a, b)
    empty = sp.csr_array((5, 4))
    model.partial_fit(sp.csr_array((5, 2000)), y[:5])
    build("ForgetronClassifier").partial_fit(empty, y[:5])


_EMPTY = """
import itertools, sys, numpy as np, scipy.sparse as sp, onkel
from streams import ESTIMATORS, TESTS, build, learn, scores_of, stream_for
for name, width in itertools.product(ESTIMATORS, ("sparse", "wide")):
    X, y = stream_for(ESTIMATORS[name], 40, form=width)
    rows = X.tolil()
    rows[::3] = 0
    rows, found = rows.tocsr(), []
    for form in (sp.csr_array(rows), rows.toarray()):
        with onkel.use_engine(sys.argv[1]):
            model = build(name)
            found.append((learn(model, form, y), scores_of(model, form)))
    for a, b in zip(*found):
        assert np.isfinite(a).all() and np.isfinite(b).all(), name
        if ESTIMATORS[name].__module__.endswith("feature_maps"):  # no ties to break between equal rows
            np.testing.assert_allclose(a, b, atol=1e-10, err_msg=name)
"""


def test_sparse_rows_without_entries(engine):
    """Stored, scored and merged as rows of zeros; a crash would take this process along."""
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", _EMPTY, engine]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}{done.stderr[-500:]}"


_UNSOUND = """
import sys, numpy as np, scipy.sparse as sp, onkel
rng, y, wrong = np.random.default_rng(0), np.arange(10) % 2, []
values = rng.normal(size=(10, 4))
for width in (4, 2000):
    good = sp.csr_array(np.hstack([values, np.zeros((10, width - 4))]))
    cases = [("indices", 3, v) for v in (-1, width, 2**30)] + [("indptr", 5, v) for v in (-1, 2, 10**6)]
    for where, at, value in cases:
        bad = good.copy()
        getattr(bad, where)[at] = value
        with onkel.use_engine(sys.argv[1]):
            model = onkel.ForgetronClassifier(budget=5).partial_fit(good, y)
        fresh = onkel.ForgetronClassifier(budget=5)
        for name, call in (("fit", fresh.fit), ("learn", model.learn), ("predict", model.predict)):
            try:
                call(bad) if name == "predict" else call(bad, y)
                wrong.append((width, where, value, name, "accepted"))
            except ValueError:
                pass
            except Exception as error:
                wrong.append((width, where, value, name, repr(error)))
print(*wrong, sep="\\n")
sys.exit(len(wrong) > 0)
"""


def test_unsound_sparse_matrices_are_refused(engine):
    """Indices and starts that point outside: a ValueError, not a crash and not a silent answer."""
    done = subprocess.run([sys.executable, "-c", _UNSOUND, engine], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}{done.stderr[-500:]}"
