# SPDX-License-Identifier: MIT
"""The numbers of the slice: each measured here and now, beside what it must be and should be.

    python benchmarks/slice.py [--without triton] [--without upstream]

Rows that need torch and triton need ``pip install '.[emu,bench]'``. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

import first_result
import host_overhead
import interpreter_comparison
import numpy as np
import upstream_unit
from programs import arguments, best, flops, half, linear, linear_gelu, with_constant

from cklang import knobs
from cklang.families.gemm.key import Algorithm

OTHER_TILE = Algorithm(
    tile=(64, 64, 32), warps=(2, 2, 1), warp_tile=(16, 16, 32), vector_a=8, vector_b=8, vector_e=8
)


@dataclass(frozen=True)
class Row:
    """One line of the table; ``more`` says whether larger is better."""

    what: str
    value: float
    unit: str
    least: float
    aim: float
    more: bool = False
    note: str = ""

    def verdict(self) -> str:
        """Return ``aim``, ``pass`` or ``FAIL``."""
        sign = 1 if self.more else -1
        if sign * self.value >= sign * self.aim:
            return "aim"
        return "pass" if sign * self.value >= sign * self.least else "FAIL"


def emulated_gemm() -> Row:
    """Time 1024 cubed on every core."""
    rng = np.random.default_rng(0)
    x, w = half(rng, 1024, 1024), half(rng, 1024, 1024)
    linear(x, w)

    def once() -> float:
        start = time.perf_counter()
        linear(x, w)
        return time.perf_counter() - start

    speed = flops(1024, 1024, 1024) / best(3, once) / 1e9
    cores = f"{os.cpu_count()} cores"
    return Row("emulated 1024 cubed fp16", speed, "GFLOP/s", 15, 60, more=True, note=cores)


def against_triton() -> Row:
    """Compare with Triton's interpreter, each side in a process of its own."""
    ours = interpreter_comparison.measure("cklang")
    theirs = interpreter_comparison.measure("triton")
    note = f"{ours.gflops:.1f} against {theirs.gflops:.2f} GFLOP/s"
    ratio = ours.gflops / theirs.gflops
    return Row("times TRITON_INTERPRET=1", ratio, "x", 20, 80, more=True, note=note)


def new_epilogue() -> Row:
    """Build epilogues that nobody has built on a stencil that is there."""
    args = arguments(384, 512, 256)
    with_constant.build(*args, c=1.0)
    seed = time.time()

    def once() -> float:
        start = time.perf_counter()
        with_constant.build(*args, c=1.0 + (seed + time.perf_counter()) * 1e-9)
        return time.perf_counter() - start

    return Row("new epilogue, cached stencil", best(5, once), "s", 0.6, 0.25)


def new_tile(upstream: float | None) -> Row:
    """Build the first kernel of a tile, beside upstream's unit.

    A kernel of another tile is built before it: so the headers are precompiled, as on any machine
    that has built a kernel.
    """
    args = arguments(384, 512, 256)[:2]
    with tempfile.TemporaryDirectory() as folder, knobs.scope(CKLANG_CACHE_DIR=folder):
        linear.using(OTHER_TILE).build(*args)
        start = time.perf_counter()
        linear.build(*args)
        spent = time.perf_counter() - start
    if upstream is None:
        return Row("first kernel of a new tile", spent, "s", 8.5, 4.25, note="upstream: 17 s noted")
    note = f"{spent:.1f} s against upstream's {upstream:.1f} s"
    return Row("first kernel of a new tile / upstream", spent / upstream, "x", 0.5, 0.25, note=note)


def fused_code() -> Iterator[Row]:
    """Compare the code object of the fused kernel with the tile that has no epilogue."""
    args = arguments(384, 512, 256)
    fused, plain = linear_gelu.build(*args)[0], linear.build(*args[:2])[0]
    yield Row("spills of the fused kernel", fused.resources.spills, "", 0, 0)
    counts = [_mfma(artifact) for artifact in (fused, plain)]
    note = f"{counts[0]} against {counts[1]}"
    yield Row("MFMA more than without epilogue", counts[0] - counts[1], "", 0, 0, note=note)


def _mfma(artifact: object) -> int:
    from cklang import emulator

    text = emulator.disassemble(artifact.key.arch, artifact.code_object.read_bytes())  # type: ignore[attr-defined]
    return sum("v_mfma" in line for line in text.splitlines())


def rows(without: set[str]) -> Iterator[Row]:
    """Yield the rows of the table in the order of the issue."""
    yield emulated_gemm()
    if "triton" not in without:
        yield against_triton()
    yield new_epilogue()
    yield new_tile(None if "upstream" in without else upstream_unit.measure())
    yield Row("new process to first result, cached", first_result.measure(), "s", 2, 0.7)
    host = statistics.median(host_overhead.measure(host_overhead.CASES[0]))
    yield Row("host time of a repeated call", host, "us", 15, 5)
    yield from fused_code()


def main() -> int:
    """Print the table; return 1 if a number is below what it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", action="append", default=[], choices=["triton", "upstream"])
    without = set(parser.parse_args().without)
    if "triton" not in without and importlib.util.find_spec("triton") is None:
        print("torch and triton are not installed (pip install '.[emu,bench]'): no such row\n")
        without.add("triton")
    print(f"{'what':40} {'measured':>16} {'least':>8} {'aim':>8}  verdict")
    failed = False
    for row in rows(without):
        failed |= row.verdict() == "FAIL"
        measured = f"{row.value:.4g} {row.unit}"
        bounds = f"{row.least:8.4g} {row.aim:8.4g}"
        print(f"{row.what:40} {measured:>16} {bounds}  {row.verdict():7} {row.note}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
