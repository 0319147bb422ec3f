# SPDX-License-Identifier: MIT
"""Default kernels by the clock: KernelBench's first level, and products of 8-bit floats.

    python benchmarks/kernelbench.py [NAME ...] [--board MI300X]

Each row calls an op, whose kernels the catalogue chooses, and prints their time on an
MI300X (docs/clock.md), the launches, their workgroups, and what bounds the longest. ``most`` is
what the row may take: `tests/registry/test_kernelbench.py` keeps changes from making it slower.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import cklang as ck
from cklang.emulator import Prediction

B, C, G, E, H, W, M, N, K = ck.dims("B C G E H W M N K")


@ck.op
def product(x: ck.f32[M, K], w: ck.f32[K, N]) -> ck.f32[M, N]:
    """A product of matrices."""
    return x @ w


@ck.op
def batched(x: ck.f32[B, M, K], w: ck.f32[B, K, N]) -> ck.f32[B, M, N]:
    """A batch of products."""
    return x @ w


@ck.op
def scaled(x: ck.f32[M, K]) -> ck.f32[M, K]:
    """A matrix times a number."""
    return x * 3.14


@ck.op
def row_sum(x: ck.f32[M, K]) -> ck.f32[M]:
    """The sums of rows."""
    return ck.sum(x, 1)


@ck.op
def softmax(x: ck.f32[M, K]) -> ck.f32[M, K]:
    """The softmax of rows."""
    return ck.softmax(x)


@ck.op
def rms_norm(x: ck.f32[B, C, H, W]) -> ck.f32[B, C, H, W]:
    """RMSNorm along the channels of an image."""
    return x * ck.rsqrt(ck.mean(ck.square(x), axis=1, keepdims=True) + 1e-5)


@ck.op
def layer_norm(x: ck.f32[M, K], g: ck.f32[K], b: ck.f32[K]) -> ck.f32[M, K]:
    """LayerNorm of whole images."""
    return ck.layer_norm(x, g, b, eps=1e-5)


@ck.op
def group_norm(x: ck.f32[B, G, E, K], g: ck.f32[G, E], b: ck.f32[G, E]) -> ck.f32[B, G, E, K]:
    """GroupNorm of an image whose pixels are one axis."""
    centred = x - ck.mean(x, axis=(2, 3), keepdims=True)
    scale = ck.rsqrt(ck.mean(ck.square(centred), axis=(2, 3), keepdims=True) + 1e-5)
    return centred * scale * g[:, :, None] + b[:, :, None]


@ck.op
def batch_norm(x: ck.f32[B, C, H, W], g: ck.f32[C], b: ck.f32[C]) -> ck.f32[B, C, H, W]:
    """BatchNorm as in training."""
    mean = ck.mean(x, axis=(0, 2, 3))
    variance = ck.mean(ck.square(x), axis=(0, 2, 3)) - ck.square(mean)
    centred = x - mean[:, None, None]
    return centred * (ck.rsqrt(variance + 1e-5) * g)[:, None, None] + b[:, None, None]


@ck.op
def eight_bits(x: ck.fp8_fnuz[M, K], w: ck.fp8_fnuz[N, K]) -> ck.f16[M, N]:
    """A product of 8-bit floats."""
    return x @ w.T


@ck.op
def block_scaled(
    x: ck.fp8_fnuz[M, K], w: ck.fp8_fnuz[N, K], sx: ck.f32[M, K / 128], sw: ck.f32[N / 128, K / 128]
) -> ck.bf16[M, N]:
    """A product of 8-bit floats with scales of blocks."""
    return ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T)


@dataclass(frozen=True, slots=True)
class Row:
    """A call and the time that it may take."""

    op: ck.Op
    shapes: Sequence[tuple[int, ...]]
    most: float
    """Microseconds on an MI300X at its highest clock, measured when this row was last changed."""

    def predicted(self, board: str = "MI300X") -> Prediction:
        """Return the prediction of the call's kernels."""
        types = [each.type.dtype.numpy for each in self.op.program.specialise().params]
        args = [np.zeros(*each) for each in zip(self.shapes, types, strict=True)]
        with ck.using(preset="catalogue"):
            return ck.predict(self.op, *args, device="emu:gfx942", board=board)


ROWS = {
    "matrix product": Row(product, [(1024, 4096), (4096, 2048)], 144.5),
    "long K": Row(product, [(256, 131072), (131072, 256)], 145.7),
    "matrix by vector": Row(product, [(256, 131072), (131072, 1)], 29.0),
    "batch of products": Row(batched, [(128, 128, 256), (128, 256, 512)], 45.3),
    "matrix by number": Row(scaled, [(16384, 4096)], 134.7),
    "sums of rows": Row(row_sum, [(512, 131072)], 50.7),
    "softmax": Row(softmax, [(16, 16384)], 6.4),
    "RMSNorm": Row(rms_norm, [(16, 64, 256, 256)], 139.9),
    "LayerNorm": Row(layer_norm, [(16, 4194304), (4194304,), (4194304,)], 288.5),
    "GroupNorm": Row(group_norm, [(16, 8, 8, 65536), (8, 8), (8, 8)], 259.5),
    "fp8 product": Row(eight_bits, [(1024, 7168), (1536, 7168)], 30.3),
    "fp8 product of few rows": Row(eight_bits, [(16, 4096), (4096, 4096)], 3.5),
    "block-scaled product": Row(
        block_scaled, [(6144, 2048), (7168, 2048), (6144, 16), (56, 16)], 229.8
    ),
    "block-scaled, less": Row(
        block_scaled, [(1024, 7168), (1536, 7168), (1024, 56), (12, 56)], 35.8
    ),
    "BatchNorm": Row(batch_norm, [(16, 64, 256, 256), (64,), (64,)], 280.8),
}


def table(names: Sequence[str], board: str) -> Iterator[str]:
    """Yield the lines of a table."""
    yield "| problem | shapes | µs | launches: workgroups | the longest is bound by |"
    yield "|---|---|---:|---|---|"
    for name in names:
        row = ROWS[name]
        predicted = row.predicted(board)
        shapes = "; ".join(" x ".join(map(str, shape)) for shape in row.shapes[:2])
        launches = ", ".join(str(kernel.workgroups) for kernel in predicted.kernels)
        longest = max(predicted.kernels, key=lambda kernel: kernel.us)
        yield f"| {name} | {shapes} | {predicted.us:.1f} | {launches} | {longest.bound} |"


def main() -> None:
    """Print the rows that the command line names, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", choices=[*ROWS, []], metavar="NAME")
    parser.add_argument("--board", default="MI300X")
    asked = parser.parse_args()
    for line in table(asked.names or list(ROWS), asked.board):
        print(line, flush=True)


if __name__ == "__main__":
    main()
