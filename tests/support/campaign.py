# SPDX-License-Identifier: MIT
"""Legal kernels of every family, drawn, built, run and judged: sums over all runs.

``tests/data/campaign.json`` has the next seed of each family and what its calls came to, by commit
and GPU; a run goes on where the last one stopped, and writes each call down at once. A call with a
kernel that takes longer than ``SECONDS`` to build is counted apart, as unjudged::

    python -m tests.support.campaign --minutes 10    # the family with the fewest calls first
    python -m tests.support.campaign product 17      # repeat one call

What was drawn is added to ``.full/campaign.txt``.
"""

import argparse
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cklang.errors import (
    CkBuildError,
    CkError,
    CkInternalError,
    CkMismatchError,
    CkUnsupportedError,
)
from tests.support import coverage_table
from tests.support.campaign_sums import RECORD, Sums
from tests.support.drawn_kernels import FAMILIES, DrawnCall, draw, judge
from tests.support.full import RESULTS, ROOT

_UNCOMPILED = ("B010", "B011", "B014")
SECONDS = 100.0
"""The processor time that a call may take, with all that it builds."""


@contextmanager
def _changed(path: Path) -> Iterator[Sums]:
    """Read the sums and write them back, with the page; other processes wait meanwhile."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        sums = Sums.read(path)
        yield sums
        path.write_text(sums.text())
        if path == RECORD:
            coverage_table.publish([])


@cache
def commit() -> str:
    """Return the last commit that changed kernels or rules."""
    command = ["git", "log", "-1", "--format=%h", "--", "cklang", "arch_specs"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def repeat(family: str, seed: int) -> str:
    """Return the command that repeats a call."""
    name = f"'{family}'" if "'" not in family else f'"{family}"'
    return f"python -m tests.support.campaign {name} {seed}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a call."""

    kind: str
    """``right``, ``refused``, ``wrong``, ``uncompiled`` or ``slow``."""
    error: Exception | None = None


def trial(call: DrawnCall) -> Outcome:
    """Run a call and say what became of it."""
    try:
        judge(call)
    except CkUnsupportedError:
        return Outcome(kind="refused")
    except (CkBuildError, CkInternalError) as problem:
        is_compiler = problem.code in _UNCOMPILED
        return Outcome(kind="uncompiled" if is_compiler else "wrong", error=problem)
    except CkError as problem:
        return Outcome(kind="wrong", error=problem)
    return Outcome(kind="right")


def timed_trial(call: DrawnCall, seconds: float = SECONDS) -> Outcome:
    """Run a call in a process of its own; it is ended, with its compilers, when its time is up."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)

    def run() -> None:
        os.setpgid(0, 0)
        outcome = trial(call)
        error = outcome.error
        sender.send((outcome.kind, None if error is None else str(error)))

    process = fork.Process(target=run)
    process.start()
    sender.close()
    while not receiver.poll(1.0) and _processor_time(process.pid or 0) < seconds:
        pass
    try:
        kind, text = receiver.recv() if receiver.poll() else ("slow", None)
    except EOFError:
        kind, text = "wrong", "the process died"
    with suppress(ProcessLookupError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    return Outcome(kind=kind, error=None if text is None else CkMismatchError("T001", text))


def _processor_time(group: int) -> float:
    """Return the seconds that a group of processes has taken so far (proc(5), stat)."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            words = path.read_text().rpartition(")")[2].split()
            ticks += sum(map(int, words[11:15])) if int(words[2]) == group else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def advance(
    family: str, path: Path = RECORD, run: Callable[[DrawnCall], Outcome] = trial
) -> tuple[int, DrawnCall, Outcome]:
    """Draw and judge the next call of a family, and write it down."""
    with _changed(path) as sums:
        seed = sums.next.get(family, 0)
        sums.next[family] = seed + 1
    call = draw(family, seed)
    outcome = run(call)
    with _changed(path) as sums:
        row = sums.row(commit(), family, call.gpu)
        row.refused += call.refused + (outcome.kind == "refused")
        if outcome.kind == "right":
            row.right += 1
        elif outcome.kind != "refused":
            getattr(row, outcome.kind).append(seed)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "campaign.txt").open("a") as log:
        log.write(f"{commit()} seed {seed}, {outcome.kind}: {call}\n{outcome.error or ''}\n\n")
    return seed, call, outcome


def _repeated(family: str, seed: int, seconds: float | None) -> int:
    call = draw(family, seed)
    sys.stdout.write(f"{call}\n")
    sys.stdout.flush()
    outcome = trial(call) if seconds is None else timed_trial(call, seconds)
    if outcome.error is not None:
        traceback.print_exception(outcome.error)
    sys.stdout.write(f"{outcome.kind}\n")
    return int(outcome.error is not None)


def _went_on(minutes: float) -> int:
    start, counts = time.monotonic(), Counter[str]()
    while time.monotonic() - start < 60 * minutes:
        drawn = Sums.read().next
        family = min(FAMILIES, key=lambda family: drawn.get(family, 0))
        before = time.monotonic()
        seed, call, outcome = advance(family, run=timed_trial)
        counts[outcome.kind] += 1
        took = time.monotonic() - before
        sys.stdout.write(f"{took:6.1f} s {outcome.kind}: {family} {seed} on {call.gpu}\n")
        if outcome.error is not None:
            sys.stdout.write(f"{outcome.error}\n{repeat(family, seed)}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{dict(counts)}\n")
    return int(counts["wrong"] + counts["uncompiled"] > 0)


def main(words: Any = None) -> int:
    """Repeat a call or go on with the campaign; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.campaign", description=__doc__)
    parser.add_argument("family", nargs="?", choices=list(FAMILIES))
    parser.add_argument("seed", nargs="?", type=int)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, help="processor time of a call that is repeated")
    options = parser.parse_args(words)
    os.environ.setdefault("CKLANG_PRESET", "essential")
    os.environ.setdefault("CKLANG_PLANS", "0")
    if options.seed is not None:
        return _repeated(options.family, options.seed, options.seconds)
    return _went_on(options.minutes)


if __name__ == "__main__":
    raise SystemExit(main())
