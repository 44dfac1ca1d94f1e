"""A short run of the attacker; `make attack` runs longer, with other seeds.

The numbers of cases here are for about half a minute on two cores. What earlier runs found is in `test_findings.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import attacker
import pytest
import watch

pytestmark = pytest.mark.skipif(not hasattr(watch.os, "fork"), reason="cases run in forked processes")


@pytest.mark.slow
@pytest.mark.parametrize(("target", "count"), [("models", 1500), ("calls", 800), ("files", 2000), ("kills", 3)])
def test_a_short_attack(target: str, count: int, tmp_path: Path) -> None:
    outcomes, findings = attacker.attack(target, 27, count, 600.0, tmp_path)
    assert not findings, "\n".join(f"case {case}: {kind}\n{text}" for kind, case, text in findings)
    assert outcomes["cases"] >= count
    if target != "kills":
        assert outcomes["refused"] > count / 10 and outcomes["accepted"] > count / 20


def dies(case: int) -> str:
    if case == 3:
        watch.os.kill(watch.os.getpid(), 9)
    if case == 5:
        while True:
            pass
    if case == 7:
        raise watch.Unexpected("seven")
    return "accepted"


def test_deaths_hangs_and_errors_are_findings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And every other case of the batch is run."""
    monkeypatch.setattr(watch, "LONGEST", 0.3)
    outcomes, findings = watch.attack(dies, 0, 10, findings=watch.Kept(tmp_path, "models", 1))
    assert [(kind, case) for kind, case, _ in findings] == [("death", 3), ("hang", 5), ("wrong", 7)]
    assert outcomes == {"accepted": 7, "death": 1, "hang": 1, "wrong": 1, "cases": 10}
    assert json.loads((tmp_path / "models-1-3.json").read_text())["kind"] == "death"
