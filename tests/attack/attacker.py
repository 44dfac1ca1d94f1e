"""The attacker: `make attack ARGS="--seconds 60 --seed 1"`.

Mutated model files, hostile calls, mutated data files, and kills of the real command. Each case runs in a process
whose death or silence is a finding. Findings are written to `--keep`, and the exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import multiprocessing
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import watch
from data_files import DataFiles
from hostile_calls import HostileCalls
from kills import Kills
from model_files import ModelFiles

TARGETS: dict[str, Any] = {
    "models": ModelFiles,
    "calls": HostileCalls,
    "files": DataFiles,
    "kills": Kills,
}
SHARE = {"models": 0.4, "calls": 0.2, "files": 0.15, "kills": 0.25}  # of the time


def attack(
    target: str, seed: int, count: int, seconds: float, folder: Path
) -> tuple[Counter[str], list[watch.Finding]]:
    """Attack one target with so many cases, or for so long; findings are kept in the folder."""
    made, until, kept = TARGETS[target](seed), time.monotonic() + seconds, watch.Kept(folder, target, seed)
    if target == "kills":
        return made.attack(count, until, kept)
    return watch.attack(made, 0, count, until, kept)


def _job(job: tuple[str, int, int, float, Path]) -> tuple[str, int, Counter[str], list[watch.Finding], float]:
    target, seed, count, seconds, folder = job
    begun = time.monotonic()
    outcomes, findings = attack(target, seed, count, seconds, folder)
    return target, seed, outcomes, list(findings), time.monotonic() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="in all (default: 60, or unlimited with counts)")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--keep", type=Path, default=Path("build/attack"), help="folder for findings")
    parser.add_argument("--again", type=Path, help="run the case of this finding again, in this process")
    for target in TARGETS:
        parser.add_argument(f"--{target}", type=int, help="number of cases")
    options = parser.parse_args()
    if options.again:
        facts = json.loads(options.again.read_text())
        run = TARGETS[facts["target"]](facts["seed"])
        faulthandler.dump_traceback_later(2 * watch.LONGEST, exit=True)
        print(run(facts["case"]))
        return 0
    counts = {target: getattr(options, target) for target in TARGETS}
    chosen = {target: count for target, count in counts.items() if count}
    seconds = options.seconds or (1e9 if chosen else 60)
    jobs = []
    for target, share in SHARE.items():
        if chosen and target not in chosen:
            continue
        each = seconds if chosen else seconds * share / sum(SHARE.values())
        count = -(-chosen.get(target, 10**9) // options.jobs)
        jobs += [(target, options.seed * 1000 + k, count, each, options.keep) for k in range(options.jobs)]
    totals: dict[str, Counter[str]] = {target: Counter() for target, *_ in jobs}
    found, spent = [], Counter()
    with multiprocessing.get_context("fork").Pool(options.jobs, maxtasksperchild=1) as pool:
        for target, seed, outcomes, findings, took in pool.imap_unordered(_job, jobs, chunksize=1):
            totals[target] += outcomes
            spent[target] += took
            found += [(target, seed, one) for one in findings]
    for target, seed, (kind, case, text) in found:
        print(f"{target} seed {seed} case {case}: {kind}\n{text}\n")
    for target, outcomes in totals.items():
        rate = outcomes["cases"] / max(spent[target], 1e-9)
        print(
            f"{target}: "
            + ", ".join(f"{n:,} {what}" for what, n in sorted(outcomes.items()))
            + f"; {rate:.0f} a second a process"
        )
    print(f"{len(found)} findings" + (f", kept in {options.keep}" if found else ""))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
