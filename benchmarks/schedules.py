# SPDX-License-Identifier: MIT
"""What each schedule of :mod:`cklang.build.schedules` makes of kernels that fill the registers.

Prints registers, spills and time by the clock of large products and of causal attention, compiled
under each schedule alone, and of products of the pipeline mem, whose loads are masked:

    python benchmarks/schedules.py gfx942
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from unittest import mock

import cklang as ck
from cklang import knobs
from cklang.arch import arch
from cklang.build.builder import shared_builder
from cklang.build.schedules import OVERLAPPED, SCHEDULES, Schedule
from cklang.families.gemm.key import Algorithm, Pipeline
from cklang.prebuilding.essentials import EssentialCall, causal_attention, linear, linear_of_8_bits

LARGE = {"M": 4096, "N": 4096, "K": 4096}
MASKED = ({"M": 1024, "N": 1024, "K": 2048}, {"M": 16, "N": 11008, "K": 11008})
_MEM = Algorithm(
    tile=(64, 64, 64),
    warps=(2, 2, 1),
    warp_tile=(16, 16, 16),
    pipeline=Pipeline.MEM,
    vector_a=8,
    vector_b=8,
    vector_e=8,
)


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
    parser.add_argument("--masked", type=int, help="only masked loads, in this order, by number")
    asked = parser.parse_args(arguments)
    if asked.masked is not None:
        print_masked(asked.gpu, (SCHEDULES[0], OVERLAPPED)[asked.masked])
        return
    if asked.schedule is None:
        print("| op | tile | scheduled | VGPRs | spills | µs by the clock |")
        print("|---|---|---|---|---|---|", flush=True)
        each = [f"--schedule={number}" for number in range(len(SCHEDULES))]
        for word in (*each, "--masked=0", "--masked=1"):
            subprocess.run([sys.executable, __file__, asked.gpu, word], check=True)
        return
    only = (SCHEDULES[asked.schedule],)
    with (
        # Kept launches would be those of the kernel that is kept, whatever it is compiled for here.
        knobs.scope(CKLANG_PLANS="0"),
        mock.patch("cklang.build.schedules.SCHEDULES", only),
    ):
        for call in calls(asked.gpu):
            print(row(call, asked.gpu, *only), flush=True)


def print_masked(gpu: str, schedule: Schedule) -> None:
    """Print the rows of products of the pipeline mem under a schedule."""
    for extents in MASKED:
        call = EssentialCall(op=linear.using(_MEM), names={**extents, "X": ck.f16})
        with (
            knobs.scope(CKLANG_PLANS="0"),
            mock.patch("cklang.build.schedules.OVERLAPPED", schedule),
        ):
            cells = row(call, gpu, schedule).split(" | ")[1:]
        print(" | ".join(["| mem, " + "x".join(map(str, extents.values())), *cells]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
