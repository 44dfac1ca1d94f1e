"""Cases in child processes: a case that kills its process or does not end is a finding, not the end of the attack.

A batch of cases runs in a forked child, which writes one line before and one line after each case into a pipe. If the
child dies or is silent for too long, the case it had begun is the finding, and the next child begins after it.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TextIO

import threadpoolctl

SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")  # slow, and its addresses span terabytes
LONGEST = 40.0 if SANITIZED else 2.0  # seconds of processor time: a case that takes more hangs, as each is small
PATIENCE = 30.0  # seconds on the clock, for a case that waits for something that never comes
ROOM = 6 << 30  # bytes of address space of a child, so that absurd sizes fail instead of filling the machine
BATCH = 500

Case = Callable[[int], str]  # runs the case of this number; returns its outcome, such as "refused"


class Finding(NamedTuple):
    """What went wrong in a case: "death", "hang" or "wrong" (an assertion or an unexpected exception)."""

    kind: str
    case: int
    text: str


class Unexpected(AssertionError):
    """A case that did not end as it should."""


def attack(
    run: Case, first: int, count: int, until: float = float("inf"), findings: list[Finding] | None = None
) -> tuple[Counter[str], list[Finding]]:
    """Run the cases `first` to `first + count - 1`, or fewer if `until` (of time.monotonic) comes before."""
    outcomes: Counter[str] = Counter()
    findings = [] if findings is None else findings
    case, stop = first, first + count
    with tempfile.TemporaryFile("w+") as stack:  # what a child does, written when it dies or is asked
        while case < stop and time.monotonic() < until:
            stack.seek(0)
            stack.truncate()
            case = _batch(run, case, min(case + BATCH, stop), until, outcomes, findings, stack)
    outcomes["cases"] = sum(outcomes.values())
    return outcomes, findings


def _batch(
    run: Case,
    first: int,
    stop: int,
    until: float,
    outcomes: Counter[str],
    findings: list[Finding],
    stack: TextIO,
) -> int:
    """Run cases in one child, until one of them kills it or hangs; returns the number of the next case."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_child(run, first, stop, until, writing, stack)
    os.close(writing)
    pending, at, hung = b"", first, False
    heard, spent = time.monotonic(), 0.0  # at the last line
    while True:
        while not select.select([reading], [], [], 0.2)[0]:
            if not hung and (time.monotonic() - heard > PATIENCE or seconds_of(child) - spent > LONGEST):
                hung = True
                os.kill(child, signal.SIGUSR1)
                time.sleep(0.1)
                os.kill(child, signal.SIGKILL)
        heard, spent = time.monotonic(), 0.0 if hung else seconds_of(child)
        data = os.read(reading, 1 << 16)
        if not data:
            break
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            outcome, text = json.loads(line)
            if outcome == "wrong":
                findings.append(Finding("wrong", at, text))
            outcomes[outcome] += 1
            at += 1
    os.close(reading)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0 or hung:
        kind = "hang" if hung else "death"
        stack.seek(0)
        findings.append(Finding(kind, at, f"exit status {status}\n{stack.read()[:3000]}"))
        outcomes[kind] += 1
        at += 1
    if not hung and status == 0 and at < stop and time.monotonic() < until:
        raise RuntimeError(f"the child ended before case {at}")
    return at


def seconds_of(process: int) -> float:
    """The processor time that a process has taken."""
    try:
        after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # not on this system, or it has ended
        return 0.0
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


def _be_child(run: Case, first: int, stop: int, until: float, pipe: int, stack: TextIO) -> None:
    """Run the cases, and end the process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threadpoolctl.threadpool_limits(1)  # OpenMP waits for ever for threads that a fork has not copied
    warnings.simplefilter("ignore")
    faulthandler.enable(stack)
    faulthandler.register(signal.SIGUSR1, stack)
    for case in range(first, stop):
        if time.monotonic() > until:
            break
        try:
            outcome, text = run(case), ""
        except BaseException:
            outcome, text = "wrong", traceback.format_exc(limit=-8)
        os.write(pipe, json.dumps([outcome, text[-3000:]]).encode() + b"\n")
    os._exit(0)


class Kept(list[Finding]):
    """Findings, each written as a small file as soon as it is there: see `attacker.py --again`."""

    def __init__(self, folder: Path, target: str, seed: int) -> None:
        super().__init__()
        self.folder, self.target, self.seed = folder, target, seed

    def append(self, finding: Finding) -> None:
        super().append(finding)
        self.folder.mkdir(parents=True, exist_ok=True)
        facts = {"target": self.target, "seed": self.seed, **finding._asdict()}
        (self.folder / f"{self.target}-{self.seed}-{finding.case}.json").write_text(json.dumps(facts, indent=1))
