# SPDX-License-Identifier: MIT
"""How long a registry takes to build: with one worker, with all cores, and many epilogues a tile.

    python benchmarks/registry_build.py [--kernels 6] [--tiles 8] [--epilogues 6]

Each part starts from an empty kernel cache in a process of its own. One worker runs pinned to one
core, because a stencil's two halves are compiled side by side. Parallel efficiency is the time of
one worker over cores times the time of all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

from cklang import knobs
from cklang.families.gemm.synthetic import problem
from cklang.fusion.functions import Functions
from cklang.ir.parser import parse_function
from cklang.selection.registry import Registry
from cklang.selection.space import pattern
from cklang.types import f16

ARCH = "gfx942"
TILES = (
    ((256, 128, 32), (32, 32, 16)),
    ((128, 256, 32), (32, 32, 16)),
    ((128, 128, 64), (32, 32, 16)),
    ((128, 128, 32), (32, 32, 16)),
    ((128, 64, 64), (32, 32, 16)),
    ((64, 128, 64), (32, 32, 16)),
    ((64, 64, 64), (16, 16, 32)),
    ((64, 64, 32), (16, 16, 32)),
)
EPILOGUES = ("relu", "gelu", "silu", "tanh", "sigmoid", "exp")


def epilogue(op: str) -> Functions:
    """An epilogue of one op."""
    text = f"func @epilogue(%acc: f32[]) -> f32[] {{\n  %0: f32[] = {op}(%acc)\n  return %0\n}}"
    return Functions(epilogue=parse_function(text))


def registry(tiles: int, epilogues: int) -> Registry:
    """Declare ``tiles`` times ``epilogues`` fp16 kernels with the widest accesses."""
    declared = Registry("benchmark")
    for op in islice(EPILOGUES, epilogues):
        functions = epilogue(op)
        signature = problem(1, 1, 1, a=f16, functions=functions.digest).signature
        for tile, warp_tile in islice(TILES, tiles):
            wide = pattern(
                tile=tile, warps=(2, 2, 1), warp_tile=warp_tile, vector_a=8, vector_b=8, vector_e=8
            )
            declared.declare(signature, functions, ARCH, wide)
    return declared


def child(tiles: int, epilogues: int, workers: int) -> None:
    """Build in this process and print the seconds."""
    if workers == 1:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    summary = registry(tiles, epilogues).build(max_workers=workers)
    failed = [str(why) for why in summary.failures.values()]
    print(json.dumps({"seconds": summary.seconds, "failed": failed}))


def timed(tiles: int, epilogues: int, workers: int) -> float:
    """Build in a fresh process with an empty cache; return the seconds."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, knobs.CACHE_DIR.name: cache}
        words = [str(tiles), str(epilogues), str(workers)]
        command = [sys.executable, str(Path(__file__)), "--child", *words]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    if answer["failed"]:
        raise SystemExit("\n".join(answer["failed"]))
    return float(answer["seconds"])


def main() -> None:
    """Print three times and the efficiency."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=6)
    parser.add_argument("--tiles", type=int, default=8)
    parser.add_argument("--epilogues", type=int, default=6)
    parser.add_argument("--child", nargs=3, type=int)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    cores = len(os.sched_getaffinity(0))
    one = timed(options.kernels, 1, 1)
    all_ = timed(options.kernels, 1, cores)
    print(f"{options.kernels} kernels, one worker on one core: {one:.1f} s")
    print(f"{options.kernels} kernels, {cores} cores: {all_:.1f} s")
    print(f"parallel efficiency: {one / (cores * all_):.0%}")
    many = timed(options.tiles, options.epilogues, cores)
    count = options.tiles * options.epilogues
    print(f"{count} kernels ({options.tiles} tiles x {options.epilogues} epilogues): {many:.1f} s")


if __name__ == "__main__":
    main()
