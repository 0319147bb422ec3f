# SPDX-License-Identifier: MIT
"""Kernels of rows beside CK Tile's own: instructions, bytes, registers, predicted times, results.

Each op runs by one of CK Tile's own kernels (``op.using(ck.CkTileRows(...))``) and by ours, on the
emulated GPU, on the same arrays. Norms have the tiling that CK Tile's example lists for rows of
4096 (256 threads, vectors of 8, two of them a thread), and ours the same; elsewhere ours is what
the cost model chooses. Errors are in units of the bound that the reference computes for each
element, times are those of the clock (docs/clock.md).

python benchmarks/norms_against_upstream.py [--rows 64] [--gpu gfx942]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import cklang as ck
from cklang import emulator
from cklang.device.device import open_device
from cklang.runtime.op import Op
from cklang.testing import reports

LENGTH = 4096
M, K = ck.dims("M K")


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


NORM = (
    ck.CkTileRows(threads=256, vector=8, repeats=2),
    ck.RowwiseAlgorithm(threads=256, vector=8, chunks=2),
)
ALGORITHMS: dict[Op, tuple[ck.CkTileRows, ck.RowwiseAlgorithm | None]] = {
    rms_norm: NORM,
    layer_norm: NORM,
    row_sum: (ck.CkTileRows(threads=256, vector=8), None),
    row_max: (ck.CkTileRows(threads=256, vector=8), None),
    transposed: (ck.CkTileRows(threads=256, vector=8), None),
    halves_apart: (ck.CkTileRows(threads=256, vector=1), None),
    added: (ck.CkTileRows(threads=256, vector=4, repeats=2), None),
}
"""CK Tile's algorithm, and ours; None leaves ours to the cost model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What one kernel took."""

    instructions: int
    bytes: int
    vgprs: int
    spills: int
    error: float
    """The largest, in units of its bound."""
    microseconds: float

    def __str__(self) -> str:
        return (
            f"{self.instructions} | {self.bytes / 1e6:.2f} | {self.vgprs} | {self.spills} "
            f"| {self.error:.2f} | {self.microseconds:.1f}"
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
        error=max(each.ratio for each in reports(op, args, y)),
        microseconds=ck.predict(op, *args, device=device).us,
    )


def pairs(gpu: str, rows: int, ops: Sequence[Op] = tuple(ALGORITHMS)) -> Iterator[Pair]:
    """Yield both kernels of each op."""
    for op in ops:
        upstream, own = ALGORITHMS[op]
        rng = np.random.default_rng(0)
        params = op.program.specialise().params
        shapes = (each.type.extents({"M": rows, "K": LENGTH}) for each in params)
        args = [rng.standard_normal(shape).astype(np.float16) for shape in shapes]
        yield Pair(
            name=op.program.name,
            upstream=measured(op.using(upstream), args, gpu),
            own=measured(op if own is None else op.using(own), args, gpu),
        )


def norms(gpu: str, rows: int) -> Iterator[Pair]:
    """Yield RMSNorm and LayerNorm."""
    yield from pairs(gpu, rows, (rms_norm, layer_norm))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--gpu", default="gfx942")
    asked = parser.parse_args()
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
