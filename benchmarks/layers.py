# SPDX-License-Identifier: MIT
"""Measure kernels of rows: bytes, registers, instructions, and what building them takes.

For each op: the bytes that the emulated kernel loads and stores beside the bytes of its operands
and results, its registers and spills, the instructions of a lane for each element, and the
algorithm (threads of a row x vector x vectors kept). Then the time to build a kernel of
a new stencil, and to fill a known stencil with a new function, each the least of some runs. Last
the launches and bytes of the Llama-3 block (examples/15_llama_block.py) with the sizes of the 8B
model, as planned: nothing is built or run.

python benchmarks/layers.py [--gpu gfx942] [--rows 64] [--length 4096] [--repeat 3]
"""

from __future__ import annotations

import argparse
import os
import runpy
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

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


def traffic(op: Op, rows: int, length: int, gpu: str) -> str:
    """Run an op and return a row of the table."""
    args = arguments(op, rows, length)
    device = f"emu:{gpu}"
    op(*args, device=device)
    assert op.last is not None
    launches = op.last.launches
    stats = emulator.stats(open_device(device).index, len(launches))
    least = op.summary(*args, device=device).least_bytes
    moved = stats.bytes_loaded + stats.bytes_stored
    spills = sum(each.resources.spills for each in launches)
    registers = max(each.resources.vgprs for each in launches)
    algorithm = launches[0].key.algorithm
    return (
        f"| {op.program.name} | {len(launches)} | {moved / least:.3f} | {registers} | {spills} "
        f"| {stats.instructions * 64 / (rows * length):.1f} "
        f"| {algorithm.threads} x {algorithm.vector} x {algorithm.chunks} |"
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


def llama_block(gpu: str, tokens: int) -> str:
    """Return a row about the block of Llama 3 8B, as it is planned for a number of tokens."""
    folder = Path(__file__).parents[1] / "examples"
    example = runpy.run_path(str(folder / "15_llama_block.py"))
    operands = example["empty"](1, tokens, 4096, 32, 8, 128, 14336)
    summary = example["llama_block"].summary(*operands, kv=8, device=f"emu:{gpu}")
    ratios = (summary.bytes / least for least in (summary.partition_bytes, summary.least_bytes))
    cells = (str(tokens), str(summary.launches), f"{summary.bytes / 1e6:.1f}")
    return f"| {' | '.join((*cells, *(f'{ratio:.3f}' for ratio in ratios)))} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="gfx942")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    print(f"{asked.rows} rows of {asked.length} on emulated {asked.gpu}\n")
    print(
        "| op | launches | bytes / least | VGPRs | spills | lane instructions / element |", end=""
    )
    print(" threads x vector x kept |\n|---|---|---|---|---|---|---|")
    for op in OPS:
        print(traffic(op, asked.rows, asked.length, asked.gpu))
    print()
    print("\n".join(building(asked.rows, asked.length, asked.gpu, asked.repeat)))
    print("\n| tokens | launches | MB | / least of its kernels | / arguments and results |")
    print("|---|---|---|---|---|")
    for tokens in (1, 512, 8192):
        print(llama_block(asked.gpu, tokens))


if __name__ == "__main__":
    main()
