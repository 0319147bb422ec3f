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

B, C, D, G, E, H, L, W, M, N, K = ck.dims("B C D G E H L W M N K")
R, S = ck.dims("R S")


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
def from_columns(x: ck.f32[K, M], w: ck.f32[K, N]) -> ck.f32[M, N]:
    """A product whose first matrix is transposed in memory."""
    return x.T @ w


@ck.op
def over_last(x: ck.f32[B, M, K], w: ck.f32[K, N]) -> ck.f32[B, M, N]:
    """A product along the last axis of a tensor."""
    return x @ w


@ck.op
def by_diagonal(x: ck.f32[M], w: ck.f32[M, N]) -> ck.f32[M, N]:
    """A diagonal matrix times a matrix."""
    return x[:, None] * w


@ck.op
def instance_norm(x: ck.f32[B, C, H, W]) -> ck.f32[B, C, H, W]:
    """InstanceNorm of images."""
    centred = x - ck.mean(x, axis=(2, 3), keepdims=True)
    return centred * ck.rsqrt(ck.mean(ck.square(centred), axis=(2, 3), keepdims=True) + 1e-5)


@ck.op
def frobenius(x: ck.f32[M]) -> ck.f32[M]:
    """All elements over the root of the sum of their squares."""
    return x / ck.sqrt(ck.sum(ck.square(x), 0, keepdims=True))


@ck.op
def channel_sum(x: ck.f32[B, C, H]) -> ck.f32[B, H]:
    """The sums along an axis that is not the last."""
    return ck.sum(x, 1)


@ck.op
def mean_pool(x: ck.f32[B, C, H, W]) -> ck.f32[B, C, (H - 3) // 3 + 1, (W - 3) // 3 + 1]:
    """Means of windows of 3 x 3."""
    return ck.avg_pool(x, 3, layout="nchw")


@ck.op
def mean_volumes(
    x: ck.f32[B, C, D, H, W],
) -> ck.f32[B, C, (D - 1) // 2 + 1, (H - 1) // 2 + 1, (W - 1) // 2 + 1]:
    """Means of windows of 3 x 3 x 3."""
    return ck.avg_pool(x, 3, stride=2, padding=1, layout="ncdhw")


@ck.op
def depthwise(x: ck.f32[B, 3, H, W], w: ck.f32[3, 1, R, S]) -> ck.f32[B, 3, H - R + 1, W - S + 1]:
    """A convolution of each of three channels by itself."""
    return ck.conv(x, w, groups=3, layout="nchw")


@ck.op
def of_many(x: ck.f32[B, 64, H, W], w: ck.f32[64, 1, R, S]) -> ck.f32[B, 64, H - R + 1, W - S + 1]:
    """The same of 64 channels."""
    return ck.conv(x, w, groups=64, layout="nchw")


@ck.op
def convolution(x: ck.f32[B, C, H, W], w: ck.f32[K, C, R, S]) -> ck.f32[B, K, H - R + 1, W - S + 1]:
    """A convolution of images with channels first."""
    return ck.conv(x, w, layout="nchw")


@ck.op
def next_block(
    x: ck.f16[B, H, W, 96], w: ck.f16[96, 7, 7, 1], b: ck.f16[96]
) -> ck.f16[B, H, W, 96]:
    """The depthwise convolution of ConvNeXt, channels last."""
    return ck.conv(x, w, padding=3, groups=96) + b


@ck.op
def running(x: ck.f32[M, K]) -> ck.f32[M, K]:
    """Cumulative sums."""
    return ck.cumsum(x, 1)


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
    torch: float | None = None
    """The better of eager torch and Inductor as published, where we know it, in µs."""

    def predicted(self, board: str = "MI300X") -> Prediction:
        """Return the prediction of the call's kernels."""
        types = [each.type.dtype.numpy for each in self.op.program.specialise().params]
        args = [np.zeros(*each) for each in zip(self.shapes, types, strict=True)]
        with ck.using(preset="catalogue"):
            return ck.predict(self.op, *args, device="emu:gfx942", board=board)


ROWS = {
    "matrix product": Row(product, [(1024, 4096), (4096, 2048)], 144.5, 213),
    "long K": Row(product, [(256, 131072), (131072, 256)], 145.7, 200),
    "matrix by vector": Row(product, [(256, 131072), (131072, 1)], 27.7, 1160),
    "batch of products": Row(batched, [(128, 128, 256), (128, 256, 512)], 45.3),
    "matrix by number": Row(scaled, [(16384, 4096)], 134.7, 136),
    "sums of rows": Row(row_sum, [(512, 131072)], 50.7),
    "softmax": Row(softmax, [(16, 16384)], 6.4),
    "RMSNorm": Row(rms_norm, [(16, 64, 256, 256)], 139.9),
    "LayerNorm": Row(layer_norm, [(16, 4194304), (4194304,), (4194304,)], 288.5, 362),
    "GroupNorm": Row(group_norm, [(16, 8, 8, 65536), (8, 8), (8, 8)], 260.3, 317),
    "fp8 product": Row(eight_bits, [(1024, 7168), (1536, 7168)], 30.3),
    "fp8 product of few rows": Row(eight_bits, [(16, 4096), (4096, 4096)], 3.5),
    "block-scaled product": Row(
        block_scaled, [(6144, 2048), (7168, 2048), (6144, 16), (56, 16)], 163.3
    ),
    "block-scaled, less": Row(
        block_scaled, [(1024, 7168), (1536, 7168), (1024, 56), (12, 56)], 37.2
    ),
    "square product": Row(product, [(2048, 2048), (2048, 2048)], 144.2),
    "short K": Row(product, [(16384, 32), (32, 16384)], 330.4),
    "odd extents": Row(product, [(8205, 2949), (2949, 5921)], 2315.3),
    "tall and thin": Row(product, [(16384, 16), (16, 16384)], 269.5),
    "transposed A": Row(from_columns, [(4096, 1024), (4096, 2048)], 146.7),
    "tensor by matrix": Row(over_last, [(16, 1024, 2048), (2048, 768)], 412.3),
    "diagonal by matrix": Row(by_diagonal, [(4096,), (4096, 4096)], 32.6),
    "InstanceNorm": Row(instance_norm, [(16, 64, 256, 256)], 192.5),
    "Frobenius norm": Row(frobenius, [(67108864,)], 204.4),
    "sums of columns": Row(channel_sum, [(16, 256, 256)], 6.1),
    "average pooling": Row(mean_pool, [(16, 64, 256, 256)], 76.9, 88),
    "average pooling 3D": Row(mean_volumes, [(16, 32, 64, 64, 64)], 237.0),
    "depthwise 3 x 3": Row(depthwise, [(16, 3, 256, 256), (3, 1, 3, 3)], 4.8, 187),
    "depthwise 3 x 1": Row(depthwise, [(16, 3, 256, 128), (3, 1, 3, 1)], 2.4, 219),
    "depthwise of many": Row(of_many, [(16, 64, 256, 256), (64, 1, 3, 3)], 134.6),
    "depthwise 7 x 7, f16": Row(next_block, [(256, 56, 56, 96), (96, 7, 7, 1), (96,)], 140.1),
    "convolution 1 x 1": Row(convolution, [(16, 3, 256, 256), (64, 3, 1, 1)], 109.2),
    "convolution of images": Row(convolution, [(16, 3, 256, 256), (64, 3, 3, 3)], 117.9),
    "cumulative sums": Row(running, [(128, 4000)], 3.5),
    "BatchNorm": Row(batch_norm, [(16, 64, 256, 256), (64,), (64,)], 280.8, 350),
}


def table(names: Sequence[str], board: str) -> Iterator[str]:
    """Yield the lines of a table."""
    yield "| problem | shapes | µs | torch | launches: workgroups | the longest is bound by |"
    yield "|---|---|---:|---:|---|---|"
    for name in names:
        row = ROWS[name]
        predicted = row.predicted(board)
        shapes = "; ".join(" x ".join(map(str, shape)) for shape in row.shapes[:2])
        launches = ", ".join(str(kernel.workgroups) for kernel in predicted.kernels)
        longest = max(predicted.kernels, key=lambda kernel: kernel.us)
        torch = "" if row.torch is None else f"{row.torch:.0f}"
        times = f"{predicted.us:.1f} | {torch}"
        yield f"| {name} | {shapes} | {times} | {launches} | {longest.bound} |"


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
