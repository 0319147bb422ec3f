# SPDX-License-Identifier: MIT
"""How much longer programs take under each of the emulator's checks.

    python benchmarks/sanitizer_cost.py [--gpu gfx942] [--only WORD ...] [--runs 3]
                                        [--check NAME ...]

Prints one table of small programs and one of large ones: milliseconds of the emulator's engine
without checks, and how many times as long each check takes, and all of ``all`` together. Times are
the least of some runs of one call. Hot code is translated, with checks too; a column says what it
costs to interpret everything, as ``numeric`` and ``schedule`` do.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from ck_mutants import OPS, CkOp

import cklang as ck
from cklang import emulator, knobs
from cklang.device.device import open_device

_LARGE = {
    "plain product": ((512, 512), (512, 512)),
    "attention": ((1, 8, 512, 64),) * 3,
    "root mean square": ((1024, 1024), (1024,)),
    "pointwise": ((1024, 1024), (1024, 1024)),
    "sum": ((1024, 1024),),
    "sort": ((256, 1024),),
}
"""Larger shapes for ops of the mutation study; that study's own are the small ones."""

_CHECKS = (*knobs.SANITIZERS, "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds of one call, by what was asked for."""

    plain: float
    interpreted: float
    checked: dict[str, float]

    @property
    def ratios(self) -> list[float]:
        """How many times as long as without checks: interpreted, then each check."""
        return [seconds / self.plain for seconds in (self.interpreted, *self.checked.values())]


def seconds(op: CkOp, gpu: str, runs: int, *checks: str) -> float:
    """The least time of some calls in the emulator's engine."""
    device = open_device(f"emu:{gpu}").index
    emulator.sanitize(*checks)
    with knobs.scope(CKLANG_DEVICE=f"emu:{gpu}"):
        function, arguments = ck.op(op.function), op.arguments(gpu)
        times = []
        for _ in range(runs + 1):  # the first call translates
            function(*arguments)
            open_device(f"emu:{gpu}").synchronize()
            times.append(emulator.stats(device).nanoseconds / 1e9)
    emulator.sanitize()
    return min(times[1:])


def measured(op: CkOp, gpu: str, runs: int, checks: list[str]) -> Times:
    """Measure one op."""
    plain = seconds(op, gpu, runs)
    emulator.translation("off")
    interpreted = seconds(op, gpu, runs)
    emulator.translation("hot")
    by_check = {check: seconds(op, gpu, runs, check) for check in checks}
    return Times(plain=plain, interpreted=interpreted, checked=by_check)


def table(title: str, rows: dict[str, Times], checks: list[str]) -> str:
    """The rows in Markdown, and the ratio of their sums."""
    head = [title, "ms", "interpreted", *checks]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    total = Times(
        plain=sum(times.plain for times in rows.values()),
        interpreted=sum(times.interpreted for times in rows.values()),
        checked={check: sum(times.checked[check] for times in rows.values()) for check in checks},
    )
    for name, times in {**rows, "together": total}.items():
        cells = [name, f"{times.plain * 1e3:.2f}", *(f"{ratio:.1f}" for ratio in times.ratios)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="gfx942")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--check", nargs="+", default=list(_CHECKS), choices=_CHECKS)
    options = parser.parse_args()
    emulator.load()
    small = {name: OPS[name] for name in _LARGE}
    large = {
        name: CkOp(function=OPS[name].function, shapes=shapes) for name, shapes in _LARGE.items()
    }
    for title, ops in (("small", small), ("large", large)):
        rows = {
            name: measured(op, options.gpu, options.runs, options.check)
            for name, op in ops.items()
            if not options.only or any(word in name for word in options.only)
        }
        print(f"{table(title, rows, options.check)}\n", flush=True)


if __name__ == "__main__":
    main()
