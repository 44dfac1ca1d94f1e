"""Kills of the real command: `onkel run --checkpoint`, killed at random moments and started again until it ends.

Most kills come while it learns: after it has written predictions in this life. The model and the predictions at the end
are those of a run that was never interrupted, bit for bit.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import shell
from watch import Finding, Unexpected

MODELS = [
    ("BOGD", "budget=60"),
    ("Forgetron", "budget=50"),
    ("FOGD", "components=80"),
    ("BPA", "budget=30"),
    ("AutoKernel", "components=30"),
    ("RBP", "budget=80"),
]
LONGEST = 120.0  # seconds of one life


class Kills:
    """The target of the attack; its cases are kills."""

    def __init__(self, seed: int, rows: int = 40_000) -> None:
        self.seed = seed
        self.folder = Path(tempfile.mkdtemp(prefix="onkel-attack-"))
        self.table = shell.write_csv(self.folder / "table.csv", rows, seed)

    def attack(self, count: int, until: float, findings: list[Finding]) -> tuple[Counter[str], list[Finding]]:
        """Chains of kills, until there were so many kills or it is so late."""
        outcomes: Counter[str] = Counter()
        chain = 0
        while outcomes["cases"] < count and time.monotonic() < until:
            try:
                self(chain, outcomes, until)
            except BaseException as error:
                kind = "hang" if isinstance(error, subprocess.TimeoutExpired) else "wrong"
                findings.append(Finding(kind, chain, traceback.format_exc(limit=-5)[-3000:]))
            chain += 1
        return outcomes, findings

    def words(self, model: str, setting: str, name: str) -> list[Any]:
        options = ["--target", "label", "--model", model, "--set", setting, "--every", "0", "--quiet"]
        files = ["--checkpoint", self.folder / name, "--predictions", self.folder / f"{name}.txt"]
        return ["run", self.table, *options, *files]

    def __call__(self, chain: int, outcomes: Counter[str] | None = None, until: float = float("inf")) -> str:
        """One chain: a run to compare with, then lives that are killed, and one that is not."""
        outcomes = Counter() if outcomes is None else outcomes
        rng = np.random.default_rng([self.seed, chain])
        model, setting = MODELS[rng.integers(len(MODELS))]
        once, killed = f"once-{model}", f"killed-{chain}"
        if not (self.folder / once).exists():
            finish(self.words(model, setting, once))
        words = self.words(model, setting, killed)
        while time.monotonic() < until and self.life(words, self.folder / f"{killed}.txt", rng, outcomes):
            pass
        finish(words)  # if it was at its end already, this does nothing more
        shell.assert_same_model(self.folder / once, self.folder / killed)
        if (self.folder / f"{once}.txt").read_bytes() != (self.folder / f"{killed}.txt").read_bytes():
            raise Unexpected(f"{model}: other predictions after kills")
        if left := [path.name for path in self.folder.glob(".*")]:
            raise Unexpected(f"{model}: {left} were left behind")
        outcomes["chains resumed bit by bit"] += 1
        return "resumed"

    def life(self, words: list[Any], said: Path, rng: Any, outcomes: Counter[str]) -> bool:
        """Start the command and kill it; False if it came to its end."""
        before, begun = size(said), time.monotonic()
        early = rng.random() < 0.15
        wait = rng.uniform(0, 1.0) if early else rng.exponential(0.03)
        process = shell.start(*words)
        learning = None
        while process.poll() is None:
            now = time.monotonic()
            if learning is None and size(said) != before:
                learning = now
            if (early and now > begun + wait) or (learning is not None and now > learning + wait):
                break
            if now > begun + LONGEST:
                process.kill()
                raise subprocess.TimeoutExpired("onkel run", LONGEST)
            time.sleep(0.0005)
        ended = process.poll() is not None
        process.kill()
        _, err = process.communicate()
        if ended:
            if process.returncode != 0:
                raise Unexpected(f"the command ended with {process.returncode}: {err}")
            return False
        outcomes["cases"] += 1
        outcomes["killed while learning" if learning is not None else "killed before learning"] += 1
        return True

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def finish(words: list[Any]) -> None:
    process = shell.start(*words)
    _, err = process.communicate(timeout=LONGEST)
    if process.returncode != 0:
        raise Unexpected(f"the command ended with {process.returncode}: {err}")
