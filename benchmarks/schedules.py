# SPDX-License-Identifier: MIT
"""What each schedule of :mod:`cklang.build.schedules` makes of kernels that fill the registers.

Prints registers, spills and time by the clock of large products and of causal attention, compiled
under each schedule alone:

    python benchmarks/schedules.py gfx942
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from unittest import mock

import cklang as ck
from cklang.arch import arch
from cklang.build.builder import shared_builder
from cklang.build.schedules import SCHEDULES, Schedule
from cklang.prebuilding.essentials import (
    EssentialCall,
    causal_attention,
    linear,
    linear_of_8_bits,
)

LARGE = {"M": 4096, "N": 4096, "K": 4096}


def calls(gpu: str) -> Iterator[EssentialCall]:
    """Yield the calls whose default kernels are compared."""
    yield EssentialCall(op=linear, names={**LARGE, "X": ck.f16})
    eight = {"ocp": ck.fp8, "fnuz": ck.fp8_fnuz}.get(arch(gpu).fp8)
    if eight is not None:
        yield EssentialCall(op=linear_of_8_bits, names={**LARGE, "F8": eight})
    heads = {"B": 2, "S": 1024, "H": 8, "D": 128, "X": ck.f16}
    yield EssentialCall(op=causal_attention, names=heads)


def row(call: EssentialCall, gpu: str, schedule: Schedule) -> str:
    """Return a row of the table: the kernel of a call under the schedule of this process."""
    device = f"emu:{gpu}"
    ((key, functions),) = call.op.kernels(**call.arguments(), device=device)
    microseconds = ck.predict(call.op, **call.arguments(), device=device).us
    artifact = shared_builder().find(key, functions)
    assert artifact is not None
    used = artifact.resources
    tile = "x".join(map(str, key.algorithm.tile))
    return (
        f"| {call.op.program.name} | {tile} | {schedule.name} | {used.vgprs} | "
        f"{used.vgpr_spills} | {microseconds:.0f} |"
    )


def main(arguments: list[str]) -> None:
    """Print the table for a GPU, each schedule in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpu", nargs="?", default="gfx942")
    parser.add_argument("--schedule", type=int, help="only this one, by number")
    asked = parser.parse_args(arguments)
    if asked.schedule is None:
        print("| op | tile | scheduled | VGPRs | spills | µs by the clock |")
        print("|---|---|---|---|---|---|", flush=True)
        for number in range(len(SCHEDULES)):
            subprocess.run(
                [sys.executable, __file__, asked.gpu, f"--schedule={number}"], check=True
            )
        return
    only = (SCHEDULES[asked.schedule],)
    with (
        mock.patch("cklang.build.steps.SCHEDULES", only),
        mock.patch("cklang.build.builder.SCHEDULES", only),
    ):
        for call in calls(asked.gpu):
            print(row(call, asked.gpu, *only), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
