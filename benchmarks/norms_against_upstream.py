# SPDX-License-Identifier: MIT
"""Kernels of rows beside CK Tile's own: instructions, bytes, registers, predicted times, results.

Each op runs by one of CK Tile's own kernels (``op.using(CkTileRows(...))``) and by ours, on the
emulated GPU, on the same arrays. Norms have the tiling that CK Tile's example lists for rows of
4096 (256 threads, vectors of 8, two of them a thread), and ours the same; elsewhere ours is what
the cost model chooses. CK Tile's norm of a sum that it quantises has one wave for a row, since its
waves have no barrier between two reductions. Errors are in units of the bound that the reference
computes for each element, - where results are rounded to 8 bits, which no bound covers; times are
those of the clock (docs/clock.md). With ``--times``, the times of norms alone, for several numbers
of rows and lengths.

python benchmarks/norms_against_upstream.py [--rows 64] [--gpu gfx942] [--times]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import cklang as ck
from cklang import emulator
from cklang.device.device import open_device
from cklang.runtime.op import Op
from cklang.testing import reports

LENGTH = 4096
M, K, H, W, C, T, X = ck.dims("M K H W C T X")


@ck.op
def rms_norm(x: ck.f16[M, K], gain: ck.f16[K]) -> ck.f16[M, K]:
    """The norm of Llama."""
    return ck.rms_norm(x, gain, eps=1e-5)


@ck.op
def layer_norm(x: ck.f16[M, K], gain: ck.f16[K], bias: ck.f16[K]) -> ck.f16[M, K]:
    """The norm of GPT-2 and BERT."""
    return ck.layer_norm(x, gain, bias, eps=1e-5)


@ck.op
def row_sum(x: ck.f16[M, K]) -> ck.f32[M]:
    """The sum of each row."""
    return ck.sum(x, axis=-1)


@ck.op
def row_max(x: ck.f16[M, K]) -> ck.f32[M]:
    """The largest of each row."""
    return ck.max(x, axis=-1)


@ck.op
def transposed(x: ck.f16[M, K]) -> ck.f16[K, M]:
    """A matrix with its axes exchanged."""
    return x.T


@ck.op
def halves_apart(x: ck.f16[M, K]) -> ck.f16[2, M, K / 2]:
    """The first halves of all rows, then the second ones."""
    return x.reshape(M, 2, K // 2).transpose(1, 0, 2)


@ck.op
def added(x: ck.f16[M, K], y: ck.f16[M, K]) -> ck.f16[M, K]:
    """A sum of matrices."""
    return x + y


@ck.op
def smooth_quantised(x: ck.f16[M, K], s: ck.f32[K]) -> tuple[ck.fp8_fnuz[M, K], ck.f32[M, 1]]:
    """Rows times scales of columns, in fp8 with a scale for each row."""
    y = x * s
    scale = ck.max(ck.abs(y), axis=-1, keepdims=True) / 240.0
    return y / scale, scale


@ck.op
def added_norm_quantised(
    x: ck.f16[M, K], residual: ck.f16[M, K], gain: ck.f16[K]
) -> tuple[ck.f16[M, K], ck.fp8_fnuz[M, K], ck.f32[M, 1]]:
    """A residual added, and its norm in fp8 with a scale for each row."""
    h = x + residual
    y = ck.rms_norm(h, gain, eps=1e-5)
    scale = ck.max(ck.abs(y), axis=-1, keepdims=True) / 240.0
    return h, y / scale, scale


@ck.op
def gate(x: ck.f16[T, X]) -> tuple[ck.f32[T, 8], ck.i32[T, 8]]:
    """The weights of the eight best experts of each token, and which they are."""
    best, which = ck.topk(ck.softmax(x), 8)
    return best, which


@ck.op
def pooled(x: ck.f16[H, W, C]) -> ck.f16[H / 2, W / 2, C]:
    """The largest of windows of 2 by 2, side by side."""
    return ck.max(x.reshape(H // 2, 2, W // 2, 2, C), axis=(1, 3))


@ck.op
def patches(x: ck.f16[H, W, C]) -> ck.f16[H / 4, W / 4, 4, 4, C]:
    """Windows of 4 by 4, side by side, each contiguous."""
    return x.reshape(H // 4, 4, W // 4, 4, C).transpose(0, 2, 1, 3, 4)


OTHERS = {"H": 64, "W": 64, "C": 64, "T": 1024, "X": 64}
"""The extents of what is pooled or cut into patches, and of a gate: tokens and experts."""


def norm_algorithms(length: int) -> tuple[ck.dispatch.CkTileRows, ck.dispatch.RowwiseAlgorithm]:
    """Return CK Tile's algorithm and ours for norms of rows of a power of two."""
    threads = min(256, length // 8)
    count = length // (8 * threads)
    theirs = ck.dispatch.CkTileRows(threads=threads, vector=8, repeats=count)
    return theirs, ck.dispatch.RowwiseAlgorithm(threads=threads, vector=8, chunks=count)


NORM = norm_algorithms(LENGTH)
ALGORITHMS: dict[Op, tuple[ck.dispatch.CkTileRows, ck.dispatch.RowwiseAlgorithm | None]] = {
    rms_norm: NORM,
    layer_norm: NORM,
    row_sum: (ck.dispatch.CkTileRows(threads=256, vector=8), None),
    row_max: (ck.dispatch.CkTileRows(threads=256, vector=8), None),
    transposed: (ck.dispatch.CkTileRows(threads=256, vector=8), None),
    halves_apart: (ck.dispatch.CkTileRows(threads=256, vector=1), None),
    added: (ck.dispatch.CkTileRows(threads=256, vector=4, repeats=2), None),
    smooth_quantised: NORM,
    added_norm_quantised: (ck.dispatch.CkTileRows(threads=64, vector=8, repeats=8), NORM[1]),
    gate: (ck.dispatch.CkTileRows(threads=256, vector=1, repeats=2), None),
    pooled: (ck.dispatch.CkTileRows(threads=256, vector=1), None),
    patches: (ck.dispatch.CkTileRows(threads=256, vector=8), None),
}
"""CK Tile's algorithm, and ours; None leaves ours to the cost model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What one kernel took."""

    instructions: int
    bytes: int
    vgprs: int
    spills: int
    error: float | None
    """The largest, in units of its bound; None where results are rounded to 8 bits."""
    microseconds: float

    def __str__(self) -> str:
        error = "-" if self.error is None else f"{self.error:.2f}"
        return (
            f"{self.instructions} | {self.bytes / 1e6:.2f} | {self.vgprs} | {self.spills} "
            f"| {error} | {self.microseconds:.1f}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An op by CK Tile's kernel and by ours."""

    name: str
    upstream: Kernel
    own: Kernel

    @property
    def ratio(self) -> float:
        """Our instructions over those of CK Tile's."""
        return self.own.instructions / self.upstream.instructions


def measured(op: Op, args: Sequence[Any], gpu: str) -> Kernel:
    """Run an op and time it by the clock."""
    device = f"emu:{gpu}"
    y = op(*args, device=device)
    assert op.last is not None
    launches = op.last.launches
    stats = emulator.stats(open_device(device).index, len(launches))
    return Kernel(
        instructions=stats.instructions,
        bytes=stats.bytes_loaded + stats.bytes_stored,
        vgprs=max(each.resources.vgprs for each in launches),
        spills=sum(each.resources.spills for each in launches),
        error=None if isinstance(y, tuple) else max(each.ratio for each in reports(op, args, y)),
        microseconds=ck.predict(op, *args, device=device).us,
    )


def pairs(gpu: str, rows: int, ops: Sequence[Op] = tuple(ALGORITHMS)) -> Iterator[Pair]:
    """Yield both kernels of each op."""
    for op in ops:
        upstream, own = ALGORITHMS[op]
        args = arguments(op, {"M": rows, "K": LENGTH, **OTHERS})
        yield Pair(
            name=op.program.name,
            upstream=measured(op.using(upstream), args, gpu),
            own=measured(op if own is None else op.using(own), args, gpu),
        )


def arguments(op: Op, dims: Mapping[str, int]) -> list[Any]:
    """Return normally distributed operands."""
    rng = np.random.default_rng(0)
    params = op.program.specialise().params
    return [
        rng.standard_normal(each.type.extents(dims)).astype(each.type.dtype.numpy)
        for each in params
    ]


def norms(gpu: str, rows: int) -> Iterator[Pair]:
    """Yield RMSNorm and LayerNorm."""
    yield from pairs(gpu, rows, (rms_norm, layer_norm))


def times(gpu: str) -> Iterator[str]:
    """Yield the times of norms by CK Tile's kernels and by ours, as rows of a table."""
    for op in (rms_norm, layer_norm, smooth_quantised):
        for length in (1024, 4096, 8192):
            for rows in (1, 64, 256):
                args = arguments(op, {"M": rows, "K": length})
                theirs, ours = (
                    ck.predict(op.using(each), *args, device=f"emu:{gpu}").us
                    for each in norm_algorithms(length)
                )
                cells = (op.program.name, f"{rows} x {length}", f"{theirs:.2f}", f"{ours:.2f}")
                yield f"| {' | '.join(cells)} | {ours / theirs:.2f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--gpu", default="gfx942")
    parser.add_argument("--times", action="store_true")
    asked = parser.parse_args()
    if asked.times:
        print("| op | rows | CK Tile, µs | cklang, µs | ratio |\n|---|---|---|---|---|")
        for row in times(asked.gpu):
            print(row, flush=True)
        return
    print(f"{asked.rows} rows of {LENGTH}, f16, emulated {asked.gpu}\n")
    print("| op | kernel | wave instructions | ratio | MB | VGPRs | spills | error | µs |")
    print("|" + "---|" * 9)
    for pair in pairs(asked.gpu, asked.rows):
        count, theirs = str(pair.upstream).split(" | ", 1)
        print(f"| {pair.name} | CK Tile | {count} | | {theirs} |")
        count, ours = str(pair.own).split(" | ", 1)
        print(f"| | cklang | {count} | {pair.ratio:.3f} | {ours} |")


if __name__ == "__main__":
    main()
