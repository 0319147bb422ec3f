# SPDX-License-Identifier: MIT
"""How many planted mistakes the emulator's checks report, in kernels of Triton and of CK Tile.

    python benchmarks/sanitizer_study.py [--mutants 8] [--seed 0] [--gpu NAME ...] [--only WORD ...]
                                         [--verbose]

Changes one executed instruction at a time of a compiled kernel, runs the kernel with all checks on,
and prints the tables of docs/emulator_checks.md: how many of these mutants can change a result, how
many of those are reported, and by which check.

Whether a mutant can change a result is found without any check: it runs in four orders of
``emulator.schedule``, of which one lets each memory operation take effect as late as the waits of
the mutant allow. Where all four give the right result, what was taken out was superfluous. The
unmodified kernel must be right in each of the four. Wait states are not modelled, so a missing
``s_nop`` changes nothing here.

A removed predicate or a comparison that is always true is a bound where it changes which accesses
are made, and a choice of a value where the accesses stay the same; the two are in rows of their
own, since checks of memory can only find the first.

``--verbose`` lists the mutants that change a result and are not reported.
``benchmarks/sanitizer_cost.py`` measures what the checks cost.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from study_kernels import all_kernels
from study_mistakes import MISTAKES, Kernel, accesses, described, executed, mutant, sites

from cklang import emulator, knobs
from cklang.errors import CkError

SECONDS = 10
"""After which a mutant ends: some spin for ever."""

ORDERS = (0, 1, 2, 3)
"""In which each mutant runs without checks (``emulator.schedule``); under 1 memory operations take
effect as late as they may."""

CHECKS = (*knobs.SANITIZERS, "unwritten")
"""Those under which mutants run."""

REPORTS = {
    "missing wait": "waits",
    "race in local memory": "races",
    "uninitialized local memory": "uninitialized",
    "out of bounds": "memory",
    "hazard": "hazards",
    "race in global memory": "global_races",
    "uninitialized device memory": "uninitialized",
    "unwritten device memory": "unwritten",
    "memory access fault": "fault",
    "a barrier that it has not signalled": "fault",
    "signals a barrier twice": "fault",
    "deadlock": "fault",
}
"""What the report of each check says; a fault needs no check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a mutant."""

    report: str
    """The check that reports it, or ""."""
    changes: bool
    """Whether its result is wrong in some order."""


def outcome_of(kernel: Kernel, code: bytes, checks: tuple[str, ...]) -> Outcome:
    """Run a mutant under these checks, and without them in each order."""
    emulator.sanitize(*checks)
    report = reported_by(kernel.run(code))
    emulator.sanitize()
    try:
        changes = any(wrong_in(order, kernel, code) for order in ORDERS)
    finally:
        emulator.schedule(0)
    return Outcome(report=report, changes=changes)


def wrong_in(order: int, kernel: Kernel, code: bytes) -> bool:
    """Whether the code has wrong results, or none, in an order."""
    emulator.schedule(order)
    return bool(kernel.run(code))


def reported_by(problem: str) -> str:
    """The check that made a report, or ""."""
    return next((check for words, check in REPORTS.items() if words in problem), "")


Counts = Counter[tuple[str, str, str, bool]]
"""Mutants by family of kernels, mistake, reporting check and whether a result changes."""


def study(kernel: Kernel, checks: tuple[str, ...], arguments: argparse.Namespace) -> Counts:
    """Plant mistakes in one kernel."""
    emulator.sanitize()
    rng, counts = random.Random(f"{arguments.seed} {kernel.gpu} {kernel.name}"), Counts()
    ran, original = executed(kernel), accesses(kernel, kernel.code)
    for mistake in MISTAKES:
        places = sites(kernel, mistake, ran) if kernel.gpu not in mistake.not_on else []
        for at in rng.sample(places, min(arguments.mutants, len(places))):
            code = mutant(kernel, mistake, at)
            if code == kernel.code:
                continue
            outcome = outcome_of(kernel, code, checks)
            row = (
                mistake.row(accesses(kernel, code) == original)
                if mistake.kinds[0]
                else mistake.name
            )
            counts[kernel.family, row, outcome.report, outcome.changes] += 1
            if arguments.verbose and outcome.changes and not outcome.report:
                print(f"{row}: {kernel.gpu} {kernel.name}: {described(kernel, at)}", flush=True)
    return counts


def apart(work: Callable[[], Counts]) -> Counts | None:
    """Do work in a process of its own, which may be lost; None if it was."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(pickle.dumps(work()))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(answer) if answer else None


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=8, help="of each kind and kernel, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="list what nothing reports")
    parser.add_argument("--gpu", nargs="+", default=[])
    parser.add_argument("--only", nargs="+", default=[])
    arguments = parser.parse_args()
    emulator.load()
    emulator.timeout(SECONDS)

    def wanted(gpu: str, name: str) -> bool:
        right_name = not arguments.only or any(word in name for word in arguments.only)
        return right_name and (not arguments.gpu or gpu in arguments.gpu)

    kernels = all_kernels(wanted)
    checks = {n: usable_checks(kernel) for n, kernel in enumerate(kernels)}
    partly = sum(0 < len(usable) < len(CHECKS) for usable in checks.values())
    out = sum(not usable for usable in checks.values())
    print(f"{len(kernels)} kernels; {partly} are studied without a check that reports them as they")
    print(f"are, {out} are left out\n")
    counts, lost = Counts(), 0
    for n, kernel in enumerate(kernels):
        if not checks[n]:
            continue
        of_kernel = apart(partial(study, kernel, checks[n], arguments))
        if of_kernel is None:
            lost += 1
            print(f"{kernel.gpu} {kernel.name}: a mutant ended the process", flush=True)
        else:
            counts += of_kernel
    if lost:
        print(f"{lost} kernels are not counted: a mutant wrote into memory of this process\n")
    for family in sorted({key[0] for key in counts}):
        print(f"\n{family}\n\n{table(counts, {family})}")
    print(f"\nAll\n\n{table(counts, {key[0] for key in counts})}")


def usable_checks(kernel: Kernel) -> tuple[str, ...]:
    """The checks under which the kernel is studied; () if it is left out.

    A kernel is left out that races or is wrong in some order as it is. Missing wait states, which
    nothing else depends on, and results that it leaves unwritten only take out their check. Prints
    the reports.
    """
    checks = list(CHECKS)
    while text := report_of(kernel, *checks):
        print(f"{kernel.gpu} {kernel.name}: {text}", flush=True)
        check = reported_by(text)
        if check not in ("hazards", "unwritten"):
            return ()
        checks.remove(check)
    try:
        for order in ORDERS:
            if wrong_in(order, kernel, kernel.code):
                print(f"{kernel.gpu} {kernel.name}: another result in order {order}", flush=True)
                return ()
    finally:
        emulator.schedule(0)
    return tuple(checks)


def report_of(kernel: Kernel, *checks: str) -> str:
    """What is wrong with a kernel under these checks."""
    emulator.sanitize(*checks)
    try:
        return kernel.run(kernel.code)
    finally:
        emulator.sanitize()


def table(counts: Counts, families: set[str]) -> str:
    """The table in Markdown."""
    checks = list(dict.fromkeys(REPORTS.values()))
    heads = [
        "mistake",
        "mutants",
        "change a result",
        "of these reported",
        "%",
        *checks,
        "reported besides",
    ]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name in (row for mistake in MISTAKES for row in mistake.rows):
        rows = {key: n for key, n in counts.items() if key[0] in families and key[1] == name}
        changing = {key[2]: 0 for key in rows}
        for (_, _, check, changes), n in rows.items():
            changing[check] += n * changes
        total, reported = sum(changing.values()), sum(changing.values()) - changing.get("", 0)
        besides = sum(n for (_, _, check, changes), n in rows.items() if check and not changes)
        share = f"{100 * reported / total:.1f}" if total else ""
        by_check = [changing.get(check, 0) for check in checks]
        cells = [name, sum(rows.values()), total, reported, share, *by_check, besides]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        main()
    except CkError as problem:
        sys.exit(str(problem))
