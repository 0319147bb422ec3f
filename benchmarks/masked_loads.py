# SPDX-License-Identifier: MIT
"""Loads beyond K that are replaced by zeros, and loads that are moved out of the buffer's range.

Compiles products with each tile both ways (cklang/families/gemm/masked.py), and prints registers,
spills, the schedule that was taken, and the time by the clock (docs/clock.md):

    python benchmarks/masked_loads.py [--gpu gfx942] [--types f16 fp8] [--tiles 256x256x64 ...]
    python benchmarks/masked_loads.py --types f16 across pair --shape 16x4096x4096 --tiles default
    python benchmarks/masked_loads.py --types conv --shape 32x14x14x256 --tiles default

Of f16 are the types ``across``, with B stored as [K, N], ``pair``, the two products of SwiGLU, and
``conv``, a window of 3x3 over images BxHxWxC.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING
from unittest import mock

import cklang as ck
from cklang.arch import arch
from cklang.build.builder import shared_builder
from cklang.prebuilding.essentials import EssentialCall, linear, linear_of_8_bits
from cklang.selection.rules import candidates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cklang.families.gemm.key import Algorithm

M, N, K = ck.dims("M N K")
B, H, W, C = ck.dims("B H W C")


@ck.op
def across(x: ck.f16[M, K], w: ck.f16[K, N]) -> ck.f16[M, N]:
    """A product whose B is contiguous along N."""
    return x @ w


@ck.op
def pair(x: ck.f16[M, K], gate: ck.f16[N, K], up: ck.f16[N, K]) -> ck.f16[M, N]:
    """Two products of one A."""
    return ck.silu(x @ gate.T) * (x @ up.T)


@ck.op
def conv(x: ck.f16[B, H, W, C], w: ck.f16[C, 3, 3, C]) -> ck.f16[B, H, W, C]:
    """A convolution whose windows reach beyond the image."""
    return ck.conv(x, w, padding=1)


OF_F16 = {"across": across, "pair": pair, "conv": conv}


def call_of(dtype: str, gpu: str, shape: str) -> EssentialCall:
    """Return the call of a product of one type of elements."""
    names = "BHWC" if dtype == "conv" else "MNK"
    extents: dict[str, int] = dict(zip(names, map(int, shape.split("x")), strict=True))
    if dtype in OF_F16:
        return EssentialCall(op=OF_F16[dtype], names=extents)
    if dtype == "fp8":
        eight = {"ocp": ck.fp8, "fnuz": ck.fp8_fnuz}[arch(gpu).fp8]
        return EssentialCall(op=linear_of_8_bits, names={**extents, "F8": eight})
    return EssentialCall(op=linear, names={**extents, "X": getattr(ck, dtype)})


def algorithms(call: EssentialCall, gpu: str, tiles: list[str]) -> Iterator[tuple[str, Algorithm]]:
    """Yield the algorithms of the tiles, the default one, or all that are large."""
    ((key, _),) = call.op.kernels(**call.arguments(), device=f"emu:{gpu}")
    if tiles == ["default"]:
        yield "x".join(map(str, key.algorithm.tile)), key.algorithm
        return
    found: dict[str, Algorithm] = {}
    for each in candidates(key.signature, gpu, "catalogue"):
        found.setdefault("x".join(map(str, each.tile)), each)
    for tile, algorithm in found.items():
        if tile in tiles or (not tiles and algorithm.tile[0] * algorithm.tile[1] >= 128 * 64):
            yield tile, algorithm


def measured(call: EssentialCall, gpu: str, algorithm: Algorithm, *, moved: bool) -> str:
    """Return registers, spills, schedule and the time in µs of a kernel, as cells of a row."""
    device, op = f"emu:{gpu}", call.op.using(algorithm)
    with mock.patch("cklang.families.gemm.lower.moves_masked", return_value=moved):
        ((key, functions),) = op.kernels(**call.arguments(), device=device)
        us = ck.predict(op, **call.arguments(), device=device).us
        artifact = shared_builder().find(key, functions)
    assert artifact is not None
    used = artifact.resources
    return f"{used.vgprs} | {used.vgpr_spills} | {artifact.schedule} | {us:.1f}"


def main() -> None:
    """Print a row for each tile, type and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="gfx942")
    parser.add_argument("--types", nargs="+", default=["f16", "fp8"])
    parser.add_argument("--shape", default="4096x4096x4096")
    parser.add_argument("--tiles", nargs="+", default=[])
    asked = parser.parse_args()
    print("| type | tile | beyond K | VGPRs | spills | scheduled | µs by the clock |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for dtype in asked.types:
        call = call_of(dtype, asked.gpu, asked.shape)
        for tile, algorithm in algorithms(call, asked.gpu, asked.tiles):
            for moved, word in ((False, "zeros instead"), (True, "moved")):
                row = measured(call, asked.gpu, algorithm, moved=moved)
                print(f"| {dtype} | {tile} | {word} | {row} |", flush=True)


if __name__ == "__main__":
    main()
