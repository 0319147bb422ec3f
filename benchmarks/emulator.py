# SPDX-License-Identifier: MIT
"""Measure the emulator's engine alone: one code object, launched again and again.

    python benchmarks/emulator.py gemm.co kern --kernarg kernarg.bin --grid 64 --block 256

The kernel's arguments are the bytes of a file, in which ``--pointer OFFSET:BYTES`` puts the address
of fresh memory. The table shows what one launch executes and how fast.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from cklang import emulator


def main() -> None:
    """Parse the command line, run, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("code_object", type=Path)
    parser.add_argument("kernel")
    parser.add_argument("--kernarg", type=Path, required=True)
    parser.add_argument("--pointer", action="append", default=[], metavar="OFFSET:BYTES")
    parser.add_argument("--grid", type=int, nargs="+", default=[1])
    parser.add_argument("--block", type=int, default=256)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    best = min((measure(options) for _ in range(options.repeat)), key=lambda s: s.nanoseconds)
    report(best)


def measure(options: argparse.Namespace) -> emulator.Stats:
    """Launch once and return the engine's statistics."""
    emulator.load()
    hip: Any = importlib.import_module("hip").hip

    def ok(answer: tuple[Any, ...]) -> Any:
        if answer[0] != hip.hipError_t.hipSuccess:
            raise SystemExit(f"{answer[0].name}: {emulator.last_error()}")
        return answer[1] if len(answer) > 1 else None

    ok(hip.hipSetDevice(options.device))
    module = ok(hip.hipModuleLoadData(options.code_object.read_bytes()))
    function = ok(hip.hipModuleGetFunction(module, options.kernel.encode()))
    kernarg = bytearray(options.kernarg.read_bytes())
    memory = []
    for pointer in options.pointer:
        offset, size = map(int, pointer.split(":"))
        memory.append(np.zeros(size, np.uint8))
        kernarg[offset : offset + 8] = int(memory[-1].ctypes.data).to_bytes(8, "little")
    buffer = (ctypes.c_char * len(kernarg)).from_buffer(kernarg)
    size_word = ctypes.c_size_t(len(kernarg))
    words = (1, ctypes.addressof(buffer), 2, ctypes.addressof(size_word), 3)
    grid = [*options.grid, 1, 1][:3]
    shape = (*grid, options.block, 1, 1, 0, None, None, (ctypes.c_void_p * 5)(*words))
    ok(hip.hipModuleLaunchKernel(function, *shape))
    ok(hip.hipDeviceSynchronize())
    stats = emulator.stats(options.device)
    ok(hip.hipModuleUnload(module))
    return stats


def report(stats: emulator.Stats) -> None:
    """Print the table."""
    seconds = stats.nanoseconds / 1e9
    table = Table("measure", "value")
    table.add_row("wall time", f"{seconds * 1e3:.3f} ms")
    table.add_row("workgroups, waves", f"{stats.workgroups}, {stats.waves}")
    table.add_row("wave instructions", f"{stats.instructions:,}")
    table.add_row("time for each", f"{stats.nanoseconds / max(stats.instructions, 1):.1f} ns")
    for name in ("valu", "salu", "mfma", "lds", "memory", "scalar_memory"):
        table.add_row(f"  {name}", f"{getattr(stats, name):,}")
    table.add_row("matrix throughput", f"{stats.mfma_flops / seconds / 1e9:.2f} GFLOP/s")
    table.add_row("loaded", f"{stats.bytes_loaded / seconds / 1e9:.2f} GB/s")
    Console().print(table)


if __name__ == "__main__":
    main()
