"""The tests marked `rounding`, as other processors would run them: one line each; the exit code is 1 if one fails.

    python tests/every_processor.py         # pytest's options may follow

Elsewhere the same numbers are added up in another order: OpenBLAS has code for each type of core, NumPy and our C++ for
each set of instructions. Of these all are tried that the processor at hand can run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import numpy as np

import onkel

TESTS = Path(__file__).parent
SETS = ["plain", "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-popcnt"]  # each has all of those before it
CORES = ["Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"]
CORES += ["ARMV8", "CORTEXA57", "NEOVERSEN1", "NEOVERSEV1", "NEOVERSEN2", "VORTEX"]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
CORE_IN_USE = """
import numpy as np, scipy.linalg, threadpoolctl
A = np.random.default_rng(0).normal(size=(200, 200))
for B in (A, A.astype("f")):
    np.linalg.lstsq(B, B[0]), scipy.linalg.cholesky(B @ B.T + 200 * np.eye(200)), np.linalg.eigh(B + B.T)
print(*sorted({pool["architecture"] for pool in threadpoolctl.threadpool_info() if "architecture" in pool}))
"""
SET_IN_USE = "import onkel; print(onkel.native._core.instruction_set())"


def answer(program: str, **environment: str) -> str:
    """What a Python program prints in this environment; nothing where the processor cannot run it."""
    child = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | ONE_THREAD | environment, capture_output=True, text=True
    )
    if child.returncode != 0 and child.returncode != -signal.SIGILL:
        raise RuntimeError(child.stderr)
    return child.stdout.strip()


def core_in_use(wanted: str) -> str:
    return answer(CORE_IN_USE, OPENBLAS_CORETYPE=wanted)


def set_in_use(wanted: str) -> str:
    return answer(SET_IN_USE, ONKEL_INSTRUCTIONS=wanted)


def processors(pool: Executor) -> Iterator[tuple[str, dict[str, str]]]:
    """Names, and the environments that make this processor work as those would."""
    used = set()
    for core, found in zip(CORES, pool.map(core_in_use, CORES), strict=True):
        if found and found not in used:  # types unknown to OpenBLAS, and those that share all code, are not tried twice
            used.add(found)
            yield f"OpenBLAS for {core}", {"OPENBLAS_CORETYPE": core}
    features = np._core._multiarray_umath.__cpu_features__
    optional = [name for name in np._core._multiarray_umath.__cpu_dispatch__ if features[name]]
    yield "NumPy without " + ", ".join(optional), {"NPY_DISABLE_CPU_FEATURES": " ".join(optional)}
    sets = SETS if onkel.native.available() else []
    for name, found in zip(sets, pool.map(set_in_use, sets), strict=True):
        if found == name:
            yield f"onkel for {name}", {"ONKEL_INSTRUCTIONS": name}


def run(environment: dict[str, str]) -> tuple[bool, str]:
    """Whether the tests pass there, and what pytest says."""
    files = [str(path) for path in TESTS.rglob("test_*.py") if "pytest.mark.rounding" in path.read_text()]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "rounding and not slow", "-p", "no:cacheprovider", "-rf"]
    child = subprocess.run(
        [*command, *files, *sys.argv[1:]],
        env=os.environ | ONE_THREAD | environment,
        cwd=TESTS.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return child.returncode == 0, child.stdout.strip()


def main() -> int:
    passed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tried = [(name, pool.submit(run, environment)) for name, environment in list(processors(pool))]
        for name, future in tried:
            fine, report = future.result()
            lines = report.splitlines()
            print(f"{name}: {lines[-1]}", *(() if fine else lines[:-1]), sep="\n", flush=True)
            passed.append(fine)
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
