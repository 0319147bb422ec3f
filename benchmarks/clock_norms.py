# SPDX-License-Identifier: MIT
"""Compare the clock's times of norms and rotary embeddings with times on an MI350X and an MI355X.

Reads the rows ``layernorm`` and ``rotary`` of ``silicon/kernel_times.csv`` of ``CKLANG_DATA_DIR``:
a layer norm with dropout and residual before it, and a rotary embedding, both in bf16. The programs
of ``hip/norms.hip`` do what HipKittens' newest kernels do. PyTorch's layer norm is the kernel that
the Inductor at hand generates (``inductor_source.py``); which torch was timed is not known, and the
table has several runs: the newest is compared, and the shortest time of all. To these times a
second column adds what a call of PyTorch took beside its kernel, from a product in the same table
(``clock_attention.py``). Nothing is fitted to any of these times. Prints Markdown.

python benchmarks/clock_norms.py [--points] [--stalls]
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from clock_attention import call_overhead
from data.silicon import folder
from inductor_source import generated, source
from norm_programs import BATCH, GPU, WIDTH, Module, layer_norm, rotary

from cklang.arch import arch
from cklang.emulator.clock.constants import constants_of
from cklang.emulator.clock.kernel import LaunchTime, launch_detail, time_of
from cklang.emulator.engine.recording import timing
from cklang.emulator.triton import device

_CLOCKS = {"MI350X": 2.2e9, "MI355X": 2.4e9}
"""The highest of each board (data sheets)."""
_LAUNCHES = {"layernorm": layer_norm, "rotary": rotary}
"""By the table's name of the operation."""
_NORM, _ROTARY = "HipKittens, layer norm", "HipKittens, rotary"
_NEWEST, _SHORTEST = "PyTorch, layer norm, newest run", "PyTorch, layer norm, shortest of all"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Point:
    """A kernel that was timed."""

    kind: str
    op: str
    board: str
    length: int
    us: float

    @property
    def kernel(self) -> tuple[bool, str, int]:
        """What was timed, on any board: whether by PyTorch, the operation and the length."""
        return self.kind in (_NEWEST, _SHORTEST), self.op, self.length


def points(path: Path) -> list[Point]:
    """Return the points, in the order of the table."""
    measured: list[Point] = []
    shortest: dict[tuple[str, int], float] = {}
    with (path / "kernel_times.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            op, board, us = row["op"], row["gpu"], float(row["us"] or 0)
            newest = row["latest"] == "1"
            if op in _LAUNCHES and row["implementation"] == "HipKittens" and newest:
                kind = _NORM if op == "layernorm" else _ROTARY
                measured.append(Point(kind, op, board, int(row["seqlen"]), us))
            if op == "layernorm" and row["impl_detail"] == "torch.compile":
                place = board, int(row["seqlen"])
                shortest[place] = min(us, shortest.get(place, us))
                if newest:
                    measured.append(Point(_NEWEST, op, *place, us))
    return measured + [Point(_SHORTEST, "layernorm", *place, us) for place, us in shortest.items()]


def _dropped_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    total = torch.nn.functional.dropout(x, 0.01) + residual
    return total, torch.nn.functional.layer_norm(total, (WIDTH,), weight, bias)


def inductor_time(length: int, where: Path) -> LaunchTime:
    """Time the layer norm that Inductor generates."""
    rows = (BATCH, length, WIDTH)
    text = source(_dropped_norm, (rows, rows, (WIDTH,), (WIDTH,)))
    written = generated(text, where, f"norm_{length}")
    shapes = (rows, rows, (WIDTH,), (WIDTH,), rows, rows)
    operands = [torch.empty(shape, dtype=torch.bfloat16) for shape in shapes]
    (config,) = written.configs
    groups = -(-written.extents["xnumel"] // config.kwargs["XBLOCK"])
    with device(GPU), timing(3, alone=True) as recording:
        written.kernel[(groups,)](
            torch.tensor([7]),  # the seed, and before the extents its place
            *operands,
            0,
            *written.extents.values(),
            **config.kwargs,
            num_warps=config.num_warps,
            num_stages=config.num_stages,
        )
    (recorded,) = recording.launches
    footprint = sum(each.nbytes for each in operands)
    return time_of(launch_detail(recorded, arch(GPU), constants_of(GPU), footprint))


def kernel_times(
    kernels: Sequence[tuple[bool, str, int]], where: Path
) -> dict[tuple[bool, str, int], LaunchTime]:
    """Return the times of kernels by the clock."""
    module = Module(where)
    return {
        (pytorch, op, length): inductor_time(length, where)
        if pytorch
        else time_of(module.time(_LAUNCHES[op](length)))
        for pytorch, op, length in kernels
    }


def _errors(clock: Floats, gpu: Floats) -> str:
    errors = clock / gpu - 1
    return f"{np.median(errors):+.0%}, {np.median(np.abs(errors)):.0%}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", action="store_true", help="print each point")
    parser.add_argument("--stalls", action="store_true", help="print where the waves wait")
    options = parser.parse_args()
    path = folder()
    if path is None:
        print("no folder 'silicon' in CKLANG_DATA_DIR: nothing to compare the clock with")
        return
    measured, call = points(path), call_overhead(path)
    with tempfile.TemporaryDirectory() as name:
        times = kernel_times(sorted({point.kernel for point in measured}), Path(name))
    print("| kernel | board | points | clock: median error, median of sizes | with a call |")
    print("|---|---|---|---|---|")
    groups = {
        (kind, board): [point for point in measured if (point.kind, point.board) == (kind, board)]
        for kind in (_NORM, _ROTARY, _NEWEST, _SHORTEST)
        for board in _CLOCKS
    }
    groups["HipKittens, all", ""] = [point for point in measured if not point.kernel[0]]
    for (kind, board), of in groups.items():
        gpu = np.array([point.us for point in of])
        ours = np.array([1e6 * times[p.kernel].cycles / _CLOCKS[p.board] for p in of])
        called = _errors(ours + call, gpu) if kind in (_NEWEST, _SHORTEST) else ""
        print(f"| {kind} | {board} | {len(of)} | {_errors(ours, gpu)} | {called} |")
        for point, us in zip(of, ours, strict=True) if options.points and board else ():
            rate = sum(_LAUNCHES[point.op](point.length).bytes) / point.us / 1e6
            print(f"  {point.length}: {point.us:.0f} µs ({rate:.1f} TB/s), clock {us:.0f}")
    for kernel, time in times.items() if options.stalls else ():
        print(*kernel, {op: f"{share:.0%}" for op, share in list(time.stall.items())[:5]})


if __name__ == "__main__":
    main()
