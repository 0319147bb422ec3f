# SPDX-License-Identifier: MIT
"""Measure kernels of rows: bytes, registers, instructions, and what building them takes.

For each op: the bytes that the emulated kernel loads and stores beside the bytes of its operands
and results, and the same of the 128-byte lines that its waves touch, each once: what memory moves
if the caches keep what several workgroups read. Then its registers and spills, the instructions of
a lane for each element, and the algorithm (threads of a row x vector x vectors kept). Then the time
to build a kernel of a new stencil, and to fill a known stencil with a new function, each the least
of some runs. Then the launches and bytes of the Llama-3 block (examples/15_llama_block.py) with the
sizes of the 8B model, as planned: nothing is built or run. Last what was asked of whole layers,
each with its limit: RMSNorm and LayerNorm beside CK Tile's own kernels (norms_against_upstream.py),
and with ``--programs`` the 30 random programs of tests/family/test_programs.py, with ``--full`` too
300 more.

python benchmarks/layers.py [--gpu gfx942] [--rows 64] [--length 4096] [--repeat 3] [--programs]
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from norms_against_upstream import norms

import cklang as ck
from cklang import emulator
from cklang.device.device import open_device
from cklang.runtime.op import Op

M, K = ck.dims("M K")


@ck.op
def rms_norm(x: ck.f16[M, K], gain: ck.f16[K]) -> ck.f16[M, K]:
    """The norm of Llama."""
    return ck.rms_norm(x, gain)


@ck.op
def layer_norm(x: ck.f16[M, K], gain: ck.f16[K], bias: ck.f16[K]) -> ck.f16[M, K]:
    """The norm of GPT-2 and BERT."""
    return ck.layer_norm(x, gain, bias)


@ck.op
def softmax(x: ck.f16[M, K]) -> ck.f16[M, K]:
    """The weights of rows of scores."""
    return ck.softmax(x, axis=-1)


@ck.op
def residual_norm_quantised(
    x: ck.f16[M, K], residual: ck.f16[M, K], gain: ck.f16[K]
) -> tuple[ck.f16[M, K], ck.fp8_fnuz[M, K], ck.f32[M, 1]]:
    """The residual, its norm in fp8, and the scale of each row."""
    h = (x + residual).to(ck.f16)
    y = ck.rms_norm(h, gain)
    scale = ck.max(ck.abs(y), axis=-1, keepdims=True) / 240.0
    return h, (y / scale).to(ck.fp8_fnuz), scale


@ck.op
def gelu(x: ck.f16[M, K], bias: ck.f16[K]) -> ck.f16[M, K]:
    """A pointwise function alone."""
    return ck.gelu(x + bias)


OPS = (rms_norm, layer_norm, softmax, residual_norm_quantised, gelu)


def arguments(op: Op, rows: int, length: int) -> list[Any]:
    """Return normally distributed operands."""
    rng = np.random.default_rng(0)
    shapes: list[tuple[int, ...]] = [
        (rows, length),
        *([(rows, length)] if "residual" in op.program.name else []),
    ]
    shapes += [(length,)] * (len(op.program.signature.tensors) - len(shapes))
    return [rng.standard_normal(shape).astype(np.float16) for shape in shapes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What one op moved on the emulated GPU, beside the least that it can."""

    name: str
    launches: int
    threads: float
    """Bytes of the accesses of all threads over those of operands and results."""
    memory: float
    """The same of the distinct lines that they touch."""
    vgprs: int
    spills: int
    instructions: float
    """Of a lane for each element."""
    algorithm: str

    def __str__(self) -> str:
        cells = (
            self.name,
            self.launches,
            f"{self.threads:.3f}",
            f"{self.memory:.3f}",
            self.vgprs,
            self.spills,
            f"{self.instructions:.1f}",
            self.algorithm,
        )
        return f"| {' | '.join(map(str, cells))} |"


def traffic(op: Op, rows: int, length: int, gpu: str) -> Traffic:
    """Run an op and return what it moved."""
    args = arguments(op, rows, length)
    device = f"emu:{gpu}"
    with emulator.timing(sys.maxsize & 0xFFFFFFFF) as recording:
        op(*args, device=device)
    assert op.last is not None
    launches = op.last.launches
    stats = emulator.stats(open_device(device).index, len(launches))
    least = op.summary(*args, device=device).least_bytes
    algorithm = launches[0].key.algorithm
    return Traffic(
        name=op.program.name,
        launches=len(launches),
        threads=(stats.bytes_loaded + stats.bytes_stored) / least,
        memory=sum(each.memory_bytes for each in recording.launches) / least,
        vgprs=max(each.resources.vgprs for each in launches),
        spills=sum(each.resources.spills for each in launches),
        instructions=stats.instructions * 64 / (rows * length),
        algorithm=f"{algorithm.threads} x {algorithm.vector} x {algorithm.chunks}",
    )


@ck.op
def other_norm(x: ck.f16[M, K], gain: ck.f16[K], *, c: ck.const[float]) -> ck.f16[M, K]:
    """Another function for each ``c``, on the stencil of :func:`rms_norm`."""
    return ck.rms_norm(x, gain) * c + c


def building(rows: int, length: int, gpu: str, repeat: int) -> list[str]:
    """Return the times of a new stencil with its function, and of another function."""
    args = arguments(rms_norm, rows, length)
    stencils: list[float] = []
    fills: list[float] = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["CKLANG_CACHE_DIR"] = folder
            for times in (stencils, fills):
                start = time.perf_counter()
                other_norm.build(
                    *args, c=1.0 + len(stencils) + 0.5 * len(fills), device=f"emu:{gpu}"
                )
                times.append(time.perf_counter() - start)
    return [f"new stencil {min(stencils):.2f} s", f"new function {min(fills):.2f} s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The block of Llama 3 8B as it is planned for a number of tokens."""

    tokens: int
    launches: int
    bytes: int
    partition: float
    """Bytes over those of what its kernels compute from and compute."""
    whole: float
    """Bytes over those of its arguments and results."""

    def __str__(self) -> str:
        cells = (str(self.tokens), str(self.launches), f"{self.bytes / 1e6:.1f}")
        ratios = (f"{self.partition:.3f}", f"{self.whole:.3f}")
        return f"| {' | '.join((*cells, *ratios))} |"


def llama_block(gpu: str, tokens: int) -> Block:
    """Plan the block."""
    folder = Path(__file__).parents[1] / "examples"
    example = runpy.run_path(str(folder / "15_llama_block.py"))
    operands = example["empty"](1, tokens, 4096, 32, 8, 128, 14336)
    summary = example["llama_block"].summary(*operands, kv=8, device=f"emu:{gpu}")
    return Block(
        tokens=tokens,
        launches=summary.launches,
        bytes=summary.bytes,
        partition=summary.bytes / summary.partition_bytes,
        whole=summary.bytes / summary.least_bytes,
    )


def random_programs(*, full: bool) -> str:
    """Run the tests of random programs; return how many they draw, and what pytest says."""
    root, file = Path(__file__).parents[1], "tests/family/test_programs.py"
    names = ["test_any_program", *(["test_any_other_program"] if full else [])]
    drawn = re.findall(r"max_examples=(\d+)", (root / file).read_text("utf-8"))
    tests = [f"{file}::{name}" for name in names]
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-m", "", *tests]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    count = sum(map(int, drawn[: len(names)]))
    return f"{count} programs; {run.stdout.strip().splitlines()[-1]}"


def measured(
    block: Block, norm: Traffic, ratios: dict[str, float], programs: str
) -> list[tuple[str, str, str]]:
    """Return what was asked of whole layers: what, measured, limit."""
    moved = f"{norm.memory:.3f} by memory, {norm.threads:.3f} by threads; {norm.spills}"
    beside = ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items())
    return [
        ("kernels of a Llama-3 block, forward", f"{block.launches} launches", "9"),
        ("bytes of the block beside the least of its partition", f"{block.partition:.3f}", "1.05"),
        ("RMSNorm + residual + fp8: bytes beside the least; spills", moved, "1.0; 0"),
        ("instructions beside CK Tile's own kernels", beside, "1.05"),
        ("random programs", programs, "none wrong"),
    ]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="gfx942")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--programs", action="store_true")
    parser.add_argument("--full", action="store_true")
    asked = parser.parse_args()
    print(f"{asked.rows} rows of {asked.length} on emulated {asked.gpu}; bytes beside the least\n")
    print("| op | launches | by threads | by memory | VGPRs | spills |", end="")
    print(" lane instructions / element | threads x vector x kept |\n|" + "---|" * 8)
    moved = {op: traffic(op, asked.rows, asked.length, asked.gpu) for op in OPS}
    print("\n".join(map(str, moved.values())))
    print()
    print("\n".join(building(asked.rows, asked.length, asked.gpu, asked.repeat)))
    print("\n| tokens | launches | MB | / least of its kernels | / arguments and results |")
    print("|---|---|---|---|---|")
    blocks = [llama_block(asked.gpu, tokens) for tokens in (1, 512, 8192)]
    print("\n".join(map(str, blocks)))
    ratios = {each.name: each.ratio for each in norms(asked.gpu, asked.rows)}
    programs = random_programs(full=asked.full) if asked.programs else "not run (--programs)"
    largest = max(blocks, key=lambda block: (block.launches, block.partition))
    print("\n| what | measured | limit |\n|---|---|---|")
    for row in measured(largest, moved[residual_norm_quantised], ratios, programs):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
