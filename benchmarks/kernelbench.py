# SPDX-License-Identifier: MIT
"""Default kernels by the clock: KernelBench's first level, and products of 8-bit floats.

    python benchmarks/kernelbench.py [NAME ...] [--board MI300X] [--over 50]

Each row calls an op (`kernelbench_ops.py`), whose kernels the catalogue chooses, and prints their
time on an MI300X (docs/clock.md), torch's, the share of ours that a copy of as many bytes as the
operands and results have would take, the launches' workgroups, and what bounds the longest. Shapes
are those of KernelBench's first version, which the published times of torch belong to. Arrays are
memory of the emulated GPU that nobody touches: a row with 9 GB takes no more memory than others.

``most`` is what the row may take: `tests/registry/test_kernelbench.py` keeps changes from making
it slower.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import kernelbench_ops as ops

import cklang as ck
from cklang.emulator import Prediction
from cklang.types import DType, TensorType

M, N, K = ck.dims("M N K")


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


@ck.op
def copied(x: ck.f32[M]) -> ck.f32[M]:
    """A copy."""
    return x


@dataclass(frozen=True, slots=True)
class Timed:
    """A prediction of a row."""

    prediction: Prediction
    bytes: int
    """What operands and result take."""

    @property
    def copy_share(self) -> float:
        """How long a copy of as many bytes would take, as a share of the row's time."""
        return _copy_us(self.bytes) / self.prediction.us


@dataclass(frozen=True, slots=True)
class Row:
    """A call and the time that it may take."""

    op: ck.Op
    shapes: Sequence[tuple[int, ...]]
    most: float
    """Microseconds on an MI300X at its highest clock, measured when this row was last changed."""
    torch: float | None = None
    """The least of eager torch and Inductor as published, with launches, in µs."""

    @property
    def dtypes(self) -> list[DType]:
        """The dtypes of the operands."""
        types = (parameter.type for parameter in self.op.program.signature.tensors)
        return [type_.dtype for type_ in types if isinstance(type_, TensorType)]

    def timed(self, board: str = "MI300X") -> Timed:
        """Return the prediction of the call's kernels."""
        pairs = zip(self.shapes, self.dtypes, strict=True)
        args = [ck.empty(shape, dtype, device=_DEVICE) for shape, dtype in pairs]
        results = list[Any]()

        def call(*args: Any, **kwargs: Any) -> None:
            results.append(self.op(*args, **kwargs))

        with ck.using(preset="catalogue"):
            predicted = ck.predict(call, *args, device=_DEVICE, board=board)
        arrays = (*args, results[0])
        return Timed(predicted, sum(math.prod(each.shape) * each.dtype.bytes for each in arrays))


_DEVICE = "emu:gfx942"


_LARGE = 1 << 30
"""Bytes from which on the time of a copy grows with them."""


@lru_cache
def _copy_us(size: int) -> float:
    """Return how long it takes to read and write so many bytes together."""
    if size > _LARGE:
        return _copy_us(_LARGE) * size / _LARGE
    row = Row(copied, [(max(size // (2 * ck.f32.bytes), 1),)], 0)
    return row.timed().prediction.us


FIRST_LEVEL = {
    "1 square product": Row(ops.product, [(2048, 2048), (2048, 2048)], 144.2, 179),
    "2 product": Row(ops.product, [(1024, 4096), (4096, 2048)], 144.5, 213),
    "3 batch of products": Row(ops.batched, [(128, 128, 256), (128, 256, 512)], 45.3, 71.5),
    "4 matrix by vector": Row(ops.product, [(256, 131072), (131072, 1)], 27.7, 1160),
    "5 matrix by number": Row(ops.pointwise(ops.scaled), [(16384, 4096)], 134.6, 136),
    "6 long K": Row(ops.product, [(256, 131072), (131072, 256)], 145.7, 200),
    "7 short K": Row(ops.product, [(16384, 32), (32, 16384)], 330.4, 327),
    "8 odd extents": Row(ops.product, [(8205, 2949), (2949, 5921)], 2315.3, 2550),
    "9 tall and thin": Row(ops.product, [(16384, 16), (16, 16384)], 269.5, 270),
    "10 tensor by matrix": Row(ops.over_last, [(16, 1024, 2048), (2048, 768)], 412.3, 448),
    "11 4D tensor by matrix": Row(
        ops.over_last_of_four, [(16, 256, 512, 256), (256, 768)], 6242.4, 8460
    ),
    "12 diagonal by matrix": Row(ops.by_diagonal, [(4096,), (4096, 4096)], 32.5, 988),
    "13 symmetric": Row(ops.product, [(4096, 4096), (4096, 4096)], 1067.0, 1160),
    "14 upper triangular": Row(ops.upper, [(4096, 4096), (4096, 4096)], 743.8, 1010),
    "15 lower triangular": Row(ops.lower, [(4096, 4096), (4096, 4096)], 745.2, 1050),
    "16 A transposed": Row(ops.left_transposed, [(4096, 1024), (4096, 2048)], 146.7, 213),
    "17 B transposed": Row(ops.right_transposed, [(1024, 4096), (2048, 4096)], 137.6, 180),
    "18 both transposed": Row(ops.both_transposed, [(4096, 1024), (2048, 4096)], 141.4, 291),
    "19 ReLU": Row(ops.pointwise(ck.relu), [(16, 16384)], 0.8, 8.42),
    "20 LeakyReLU": Row(ops.pointwise(ck.leaky_relu), [(16, 16384)], 0.8, 10.5),
    "21 sigmoid": Row(ops.pointwise(ck.sigmoid), [(16, 16384)], 1.3, 8.22),
    "22 tanh": Row(ops.pointwise(ck.tanh), [(16, 16384)], 1.1, 11.6),
    "23 softmax": Row(ops.pointwise(ck.softmax), [(16, 16384)], 6.4, 13.0),
    "24 log softmax": Row(ops.pointwise(ck.log_softmax), [(16, 16384)], 6.0, 10.1),
    "25 Swish": Row(ops.pointwise(ck.silu), [(16, 16384)], 1.3, 13.4),
    "26 GELU": Row(ops.pointwise(ck.gelu), [(16, 16384)], 1.5, 10.0),
    "27 SELU": Row(ops.pointwise(ck.selu), [(16, 16384)], 1.5, 10.3),
    "28 HardSigmoid": Row(ops.pointwise(ck.hardsigmoid), [(16, 16384)], 0.9, 8.46),
    "29 Softplus": Row(ops.pointwise(ck.softplus), [(16, 16384)], 1.9, 8.26),
    "30 Softsign": Row(ops.pointwise(ck.softsign), [(16, 16384)], 1.1, 20.2),
    "31 ELU": Row(ops.pointwise(ck.elu), [(16, 16384)], 1.5, 11.2),
    "32 HardTanh": Row(ops.pointwise(ck.hardtanh), [(16, 16384)], 0.9, 13.3),
    "33 BatchNorm": Row(ops.batch_norm, [(16, 64, 256, 256), (64,), (64,)], 205.1, 338),
    "34 InstanceNorm": Row(ops.instance_norm, [(16, 64, 256, 256)], 166.0, 267),
    "35 GroupNorm": Row(ops.group_norm, [(16, 8, 8, 65536), (8, 8), (8, 8)], 259.0, 317),
    "36 RMSNorm": Row(ops.rms_norm, [(16, 64, 256, 256)], 139.9, 241),
    "37 Frobenius norm": Row(ops.frobenius, [(67108864,)], 204.3, 220),
    "38 L1 norm": Row(ops.pointwise(ops.l1_norm), [(16, 16384)], 3.7, 21.7),
    "39 L2 norm": Row(ops.pointwise(ops.l2_norm), [(16, 16384)], 3.7, 15.5),
    "40 LayerNorm": Row(ops.layer_norm, [(16, 4194304), (4194304,), (4194304,)], 288.4, 362),
    "41 max pooling 1D": Row(ops.max_pooling(1, 4, 2, 2, 3), [(16, 64, 128)], 1.2, 17.2),
    "42 max pooling 2D": Row(ops.max_pooling(2, 2, 2, 1, 3), [(16, 32, 128, 128)], 8.5, 27.3),
    "43 max pooling 3D": Row(ops.max_pooling(3, 3, 2, 1, 3), [(16, 32, 64, 64, 64)], 205.7, 403),
    "44 average pooling 1D": Row(ops.mean_pooling(1, 4, 2, 1), [(16, 32, 128)], 1.2, 14.3),
    "45 average pooling 2D": Row(ops.mean_pooling(2, 3, 3, 0), [(16, 64, 256, 256)], 76.9, 88),
    "46 average pooling 3D": Row(ops.mean_pooling(3, 3, 2, 1), [(16, 32, 64, 64, 64)], 147.3, 357),
    "47 sum": Row(ops.reduced(ck.sum), [(16, 256, 256)], 6.1, 16.4),
    "48 mean": Row(ops.reduced(ck.mean), [(16, 256, 256)], 6.1, 13.1),
    "49 maximum": Row(ops.reduced(ck.max), [(16, 256, 256)], 8.4, 61.7),
    "50 product of elements": Row(ops.reduced(ck.prod), [(16, 256, 256)], 6.5, 29.0),
    "51 argmax": Row(ops.reduced(ck.argmax, ck.i32), [(16, 256, 256)], 3.5, 51.2),
    "52 argmin": Row(ops.reduced(ck.argmin, ck.i32), [(16, 256, 256)], 3.5, 50.1),
    "53 minimum": Row(ops.reduced(ck.min), [(16, 256, 256)], 8.4, 57.3),
    "54 3D, 3 x 3 x 3": Row(
        ops.convolution(3), [(16, 3, 64, 64, 64), (64, 3, 3, 3, 3)], 439.0, 2110
    ),
    "55 2D of wide images": Row(ops.convolution(2), [(16, 3, 128, 256), (64, 3, 3, 3)], 35.1, 116),
    "56 2D of tall images, 3 x 5": Row(
        ops.convolution(2), [(16, 3, 256, 128), (64, 3, 3, 5)], 41.1, 130
    ),
    "57 transposed 2D": Row(
        ops.transposed(2, 32), [(16, 32, 128, 128), (32, 64, 3, 3)], 130.5, 161
    ),
    "58 transposed 3D, 3 x 5 x 7": Row(
        ops.transposed(3, 32), [(16, 32, 16, 32, 64), (32, 16, 3, 5, 7)], 1142.9, 2850
    ),
    "59 3D of flat volumes": Row(
        ops.convolution(3), [(16, 3, 256, 256, 10), (64, 3, 3, 3, 3)], 1019.1, 2380
    ),
    "60 3D, 3 x 5 x 7": Row(
        ops.convolution(3), [(16, 3, 64, 64, 64), (64, 3, 3, 5, 7)], 1393.2, 4190
    ),
    "61 transposed 3D": Row(
        ops.transposed(3, 3), [(16, 3, 32, 32, 32), (3, 64, 3, 3, 3)], 77.3, 632
    ),
    "62 2D, 3 x 5": Row(ops.convolution(2), [(16, 3, 256, 256), (64, 3, 3, 5)], 75.9, 221),
    "63 2D, 3 x 3": Row(ops.convolution(2), [(16, 3, 256, 256), (64, 3, 3, 3)], 64.2, 186),
    "64 transposed 1D": Row(ops.transposed(1, 64), [(16, 64, 128), (64, 3, 3)], 10.1, 45.1),
    "65 transposed 2D, 3 x 5": Row(
        ops.transposed(2, 32), [(16, 32, 128, 128), (32, 64, 3, 5)], 184.7, 256
    ),
    "66 3D of large volumes, 3 x 5 x 7": Row(
        ops.convolution(3), [(16, 3, 16, 256, 256), (64, 3, 3, 5, 7)], 4990.8, 17200
    ),
    "67 1D": Row(ops.convolution(1), [(16, 3, 512), (64, 3, 3)], 1.8, 42.5),
    "68 transposed 3D, 3 x 5 x 5": Row(
        ops.transposed(3, 32), [(16, 32, 64, 64, 64), (32, 64, 3, 5, 5)], 11496.2, 58300
    ),
    "69 transposed 2D of small images": Row(
        ops.transposed(2, 32), [(16, 32, 16, 32), (32, 64, 3, 5)], 19.8, 50.8
    ),
    "70 transposed 3D of volumes": Row(
        ops.transposed(3, 32), [(16, 32, 16, 32, 64), (32, 16, 3, 3, 3)], 332.6, 1080
    ),
    "71 transposed 2D of wide images": Row(
        ops.transposed(2, 32), [(16, 32, 128, 256), (32, 64, 3, 3)], 251.2, 286
    ),
    "72 transposed 3D, groups, stride 2": Row(
        ops.transposed(3, 32, stride=2, padding=(1, 2, 3), output_padding=1, groups=4),
        [(16, 32, 16, 32, 64), (32, 16, 3, 5, 7)],
        2593.2,
        13900,
    ),
    "73 transposed 3D, groups, padding 3": Row(
        ops.transposed(3, 32, stride=2, padding=3, groups=4),
        [(16, 32, 16, 32, 32), (32, 16, 3, 3, 3)],
        471.9,
        2110,
    ),
    "74 transposed 1D, dilation 3": Row(
        ops.transposed(1, 3, dilation=3), [(16, 3, 256), (3, 64, 5)], 2.1, 46.5
    ),
    "75 transposed 2D, groups, strides": Row(
        ops.transposed(2, 32, stride=(2, 3), padding=(1, 2), dilation=(2, 1), groups=4),
        [(16, 32, 128, 256), (32, 16, 3, 5)],
        874.1,
        5200,
    ),
    "76 1D, stride 3, dilation 4": Row(
        ops.convolution(1, stride=3, dilation=4), [(16, 3, 256), (64, 3, 3)], 1.6, 40.5
    ),
    "77 transposed 3D, stride 2, dilation 2": Row(
        ops.transposed(3, 32, stride=2, padding=1, dilation=2),
        [(16, 32, 16, 32, 32), (32, 64, 3, 3, 3)],
        490.0,
        2760,
    ),
    "78 transposed 2D, padding": Row(
        ops.transposed(2, 32, padding=(1, 2)), [(16, 32, 128, 256), (32, 64, 3, 5)], 364.4, 447
    ),
    "79 transposed 1D, stride 2, dilation 2": Row(
        ops.transposed(1, 32, stride=2, padding=1, dilation=2),
        [(16, 32, 128), (32, 64, 3)],
        9.2,
        54.0,
    ),
    "80 2D, dilation 2 x 1": Row(
        ops.convolution(2, padding=(1, 2), dilation=(2, 1)),
        [(16, 3, 256, 256), (64, 3, 3, 5)],
        104.0,
        541,
    ),
    "81 transposed 2D, stride 5, dilation 2": Row(
        ops.transposed(2, 32, stride=5, padding=1, dilation=2),
        [(16, 32, 64, 128), (32, 64, 3, 3)],
        647.1,
        1430,
    ),
    "82 depthwise 3 x 3": Row(
        ops.convolution(2, groups=3), [(16, 3, 256, 256), (3, 1, 3, 3)], 4.8, 187
    ),
    "83 depthwise 3 x 1": Row(
        ops.convolution(2, groups=3), [(16, 3, 256, 256), (3, 1, 3, 1)], 4.4, 219
    ),
    "84 depthwise of wide images": Row(
        ops.convolution(2, groups=3), [(16, 3, 128, 256), (3, 1, 3, 3)], 3.4, 176
    ),
    "85 depthwise 3 x 5": Row(
        ops.convolution(2, groups=3), [(16, 3, 128, 256), (3, 1, 3, 5)], 4.1, 138
    ),
    "86 depthwise and pointwise": Row(
        ops.separable, [(16, 3, 256, 256), (3, 1, 3, 3), (64, 3)], 67.3, 319
    ),
    "87 pointwise": Row(ops.pointwise_convolution, [(16, 3, 256, 256), (64, 3)], 66.6, 110),
    "88 GELU by tanh": Row(ops.pointwise(ck.gelu_tanh), [(2000, 2000)], 7.1, 30.2),
    "89 cumulative sums": Row(ops.pointwise(ops.sums), [(128, 4000)], 3.5, 30.2),
    "90 cumulative products": Row(ops.pointwise(ops.products), [(128, 4000)], 3.5, 30.5),
    "91 sums from the end": Row(ops.backward_sums, [(128, 4000)], 7.4, 48.5),
    "92 sums before each": Row(ops.sums_before, [(128, 4000)], 5.3, 44.3),
    "93 sums of a mask": Row(ops.masked_sums, [(128, 4000)] * 2, 5.0, 31.4),
    "94 mean square error": Row(ops.loss(ops.mean_square), [(128, 4096)] * 2, 3.5, 38.8),
    "95 cross entropy": Row(ops.cross_entropy, [(4096, 10), (4096,)], 3.1, 59.9),
    "96 smooth L1": Row(ops.loss(ops.smooth_l1), [(128, 4096)] * 2, 3.6, 37.3),
    "97 cosine similarity": Row(ops.loss(ops.cosine), [(128, 4096)] * 2, 4.1, 60.0),
    "98 KL divergence": Row(ops.loss(ops.kl_divergence), [(128, 4096)] * 2, 3.1, 53.6),
    "99 triplet margin": Row(ops.triplet, [(128, 4096)] * 3, 2.7, 46.3),
    "100 hinge": Row(ops.loss(ops.hinge), [(128, 1)] * 2, 0.8, 30.1),
}
"""The problems of KernelBench's first level, by number and name."""

ROWS = FIRST_LEVEL | {
    "AlexNet's first convolution": Row(
        ops.convolution(2, stride=4, padding=2), [(256, 3, 224, 224), (96, 3, 11, 11)], 808.5
    ),
    "sums of rows": Row(ops.row_sum, [(512, 131072)], 50.7),
    "depthwise of many": Row(
        ops.convolution(2, groups=64), [(16, 64, 256, 256), (64, 1, 3, 3)], 135.0
    ),
    "depthwise 7 x 7, f16": Row(ops.next_block, [(256, 56, 56, 96), (96, 7, 7, 1), (96,)], 137.7),
    "fp8 product": Row(eight_bits, [(1024, 7168), (1536, 7168)], 30.3),
    "fp8 product of few rows": Row(eight_bits, [(16, 4096), (4096, 4096)], 3.5),
    "block-scaled product": Row(
        block_scaled, [(6144, 2048), (7168, 2048), (6144, 16), (56, 16)], 163.3
    ),
    "block-scaled, less": Row(
        block_scaled, [(1024, 7168), (1536, 7168), (1024, 56), (12, 56)], 37.2
    ),
}

_NUMBERS = (
    *range(1, 11), 12, 14, 16, 23, 26, *range(33, 38), 40, 43, *range(45, 48), 62, 63, 73, 82, 83,
    86, 87, 89, 91, 97,
)  # fmt: skip

GUARDED = [
    name for name in ROWS if name not in FIRST_LEVEL or name.split()[0] in map(str, _NUMBERS)
]
"""Rows of different kernels, which a test keeps from becoming slower; all would take it long."""


def table(names: Sequence[str], board: str) -> Iterator[str]:
    """Yield the lines of a table."""
    yield "| problem | shapes | µs | torch | copy | workgroups | the longest is bound by |"
    yield "|---|---|---:|---:|---:|---|---|"
    for name in names:
        row = ROWS[name]
        timed = row.timed(board)
        predicted = timed.prediction
        shapes = "; ".join(" x ".join(map(str, shape)) for shape in row.shapes[:2])
        launches = ", ".join(str(kernel.workgroups) for kernel in predicted.kernels)
        longest = max(predicted.kernels, key=lambda kernel: kernel.us)
        torch = "" if row.torch is None else f"{row.torch:.4g}"
        times = f"{predicted.us:.1f} | {torch} | {timed.copy_share:.0%}"
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
