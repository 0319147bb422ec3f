# SPDX-License-Identifier: MIT
"""Kernels of rows beside CK Tile's own norm kernels: instructions, bytes, registers, results.

CK Tile's RMSNorm and LayerNorm are compiled from its headers, in the tiling that its example
lists for rows of 4096 (256 threads, vectors of 8, two of them a thread), by the compiler that
cklang uses. Both run on the emulated GPU on the same arrays, and each result is compared with the
same norm in float64.

python benchmarks/norms_against_upstream.py [--rows 64] [--gpu gfx942]
"""

from __future__ import annotations

import argparse
import ctypes
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cklang as ck
from cklang import emulator
from cklang.build.steps import compile_inline
from cklang.device.device import open_device
from cklang.toolchain.compilers import find_ck_tree, find_toolchain

LENGTH = 4096
THREADS = 256
EPSILON = 1e-5
M, K = ck.dims("M K")

_HEAD = """
#include <ck_tile/core.hpp>
#include <ck_tile/ops/epilogue.hpp>
#include <ck_tile/ops/{header}.hpp>
namespace ct = ck_tile;
using Half  = ct::half_t;
using Shape = ct::Generic2dBlockShape<ct::sequence<1, {length}>, ct::sequence<1, {threads}>,
    ct::sequence<1, 8>>;
using Store = ct::Default2DEpilogue<ct::Default2DEpilogueProblem<float, Half, false, true, false>>;
"""

_TAIL = """
extern "C" __global__ void __launch_bounds__({threads}) norm(Kernel::Kargs kargs)
{{
    Kernel{{}}(kargs);
}}
"""

_RMS = """
using Traits = ct::Rmsnorm2dFwdTraits<true, false, false, false, ct::Rmsnorm2dFusedAddEnum::NO_ADD,
    ct::Rmsnorm2dFusedQuantEnum::NO_SWEEP, ct::Rmsnorm2dSensitiveEnum::NO_SPECIFIC_MODEL>;
using Problem = ct::Rmsnorm2dFwdPipelineProblem<Half, Half, float, Half, Half, Half, float, float,
    Shape, Traits>;
using Kernel = ct::Rmsnorm2dFwd<ct::Rmsnorm2dFwdPipelineOnePass<Problem>, Store>;
"""

_LAYER = """
using Traits = ct::Layernorm2dFwdTraits<true, false, true, true, false,
    ct::Layernorm2dXBiasEnum::NO_BIAS, ct::Layernorm2dFusedAddEnum::NO_ADD,
    ct::Layernorm2dFusedQuantEnum::NO_SWEEP>;
using Problem = ct::Layernorm2dFwdPipelineProblem<Half, Half, Half, Half, float, Half, Half, Half,
    float, float, Shape, Traits>;
using Kernel = ct::Layernorm2dFwd<ct::Layernorm2dFwdPipelineOnePass<Problem>, Store>;
"""


@ck.op
def rms_norm(x: ck.f16[M, K], gain: ck.f16[K]) -> ck.f16[M, K]:
    """The norm of Llama."""
    return ck.rms_norm(x, gain, eps=EPSILON)


@ck.op
def layer_norm(x: ck.f16[M, K], gain: ck.f16[K], bias: ck.f16[K]) -> ck.f16[M, K]:
    """The norm of GPT-2 and BERT."""
    return ck.layer_norm(x, gain, bias, eps=EPSILON)


def compiled(header: str, text: str, gpu: str) -> tuple[bytes, float]:
    """Return the code object of one of CK Tile's kernels, and the seconds that compiling took."""
    values = {"header": header, "length": LENGTH, "threads": THREADS}
    source = _HEAD.format(**values) + text + _TAIL.format(**values)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        compile_inline(source, gpu, Path(folder), find_toolchain(), find_ck_tree())
        return Path(folder, "kernel.hsaco").read_bytes(), time.perf_counter() - start


def upstream(code: bytes, gpu: str, operands: list[Any], unused: list[int]) -> tuple[Any, Any, Any]:
    """Run CK Tile's kernel; return its result, its counts and its registers.

    Args:
        code: The code object.
        gpu: The GPU.
        operands: x, and the vectors of the norm.
        unused: How many null pointers stand in the kernel's arguments after x, after the vectors
            and after the result.
    """
    device = open_device(f"emu:{gpu}")
    x, y = operands[0], np.empty_like(operands[0])
    gaps = [[0] * count for count in unused]
    vectors = [each.ctypes.data for each in operands[1:]]
    pointers = [x.ctypes.data, *gaps[0], *vectors, *gaps[1], y.ctypes.data, *gaps[2]]
    numbers = [len(x), LENGTH, LENGTH, LENGTH, LENGTH, LENGTH]
    arguments = b"".join(ctypes.c_uint64(each) for each in pointers)
    arguments += bytes(ctypes.c_float(EPSILON)) + b"".join(map(bytes, map(ctypes.c_int32, numbers)))
    arguments += bytes(-len(arguments) % 8)
    function = device.load(code, "norm")
    device.launch(function, (len(x), 1, 1), (THREADS, 1, 1), arguments)(None)
    device.synchronize()
    return y, emulator.stats(device.index), emulator.kernel_facts(int(function.handle))


def error(y: Any, operands: list[Any], is_centred: bool) -> float:
    """Return the largest difference to the norm in float64."""
    x, gain, *rest = (each.astype(np.float64) for each in operands)
    x = x - x.mean(axis=1, keepdims=True) if is_centred else x
    want = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPSILON) * gain
    want = want + rest[0] if rest else want
    return float(np.abs(y.astype(np.float64) - want).max())


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What one kernel took."""

    instructions: int
    bytes: int
    vgprs: int
    spills: int
    error: float
    compiled: float
    """Seconds; 0 if its stencil was known."""

    def __str__(self) -> str:
        return (
            f"{self.instructions} | {self.bytes / 1e6:.2f} | {self.vgprs} | {self.spills} "
            f"| {self.error:.2g} | {self.compiled:.1f}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A norm as CK Tile computes it, and as cklang does."""

    name: str
    upstream: Kernel
    own: Kernel

    @property
    def ratio(self) -> float:
        """Our instructions over those of CK Tile's."""
        return self.own.instructions / self.upstream.instructions


def compare(op: Any, header: str, text: str, gpu: str, rows: int, unused: list[int]) -> Pair:
    """Run both kernels of a norm on the same arrays."""
    rng = np.random.default_rng(0)
    count = len(op.program.signature.tensors) - 1
    operands = [rng.standard_normal((rows, LENGTH)).astype(np.float16)]
    operands += [rng.standard_normal(LENGTH).astype(np.float16) for _ in range(count)]
    is_centred = count == 2
    code, seconds = compiled(header, text, gpu)
    y, stats, facts = upstream(code, gpu, operands, unused)
    theirs = Kernel(
        instructions=stats.instructions,
        bytes=stats.bytes_loaded + stats.bytes_stored,
        vgprs=facts.vgprs,
        spills=facts.vgpr_spills + facts.sgpr_spills,
        error=error(y, operands, is_centred),
        compiled=seconds,
    )
    own = op.using(ck.RowwiseAlgorithm(threads=THREADS, vector=8, chunks=2))
    y = own(*operands, device=f"emu:{gpu}")
    stats = emulator.stats(open_device(f"emu:{gpu}").index)
    resources = own.last.launches[0].resources
    ours = Kernel(
        instructions=stats.instructions,
        bytes=stats.bytes_loaded + stats.bytes_stored,
        vgprs=resources.vgprs,
        spills=resources.spills,
        error=error(y, operands, is_centred),
        compiled=0.0,
    )
    return Pair(name=header, upstream=theirs, own=ours)


def norms(gpu: str, rows: int) -> Iterator[Pair]:
    """Yield RMSNorm and LayerNorm."""
    yield compare(rms_norm, "rmsnorm2d", _RMS, gpu, rows, [2, 0, 4])
    yield compare(layer_norm, "layernorm2d", _LAYER, gpu, rows, [3, 0, 4])


def main() -> None:
    """Print the table and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--gpu", default="gfx942")
    asked = parser.parse_args()
    print(f"{asked.rows} rows of {LENGTH}, f16, emulated {asked.gpu}\n")
    print("| kernel | wave instructions | MB | VGPRs | spills | largest error | compiled in s |")
    print("|---|---|---|---|---|---|---|")
    for pair in norms(asked.gpu, asked.rows):
        print(f"| {pair.name}, CK Tile | {pair.upstream} |")
        print(f"| {pair.name}, cklang | {pair.own} |")
        print(f"| ours over CK Tile's | {pair.ratio:.3f} | | | | | |")


if __name__ == "__main__":
    main()
