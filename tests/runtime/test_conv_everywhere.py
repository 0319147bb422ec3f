# SPDX-License-Identifier: MIT
"""Kernels of convolutions on the GPUs that ``test_conv_kernels.py`` leaves out.

Their C++ does not depend on the GPU, so they are left to the tier *full*. A kernel takes ten
seconds to compile, so each stands for several of that file's cases at once, such as a pipeline and
a way to share sums.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from cklang.arch import arch
from cklang.families.conv.rules import RULES
from cklang.families.gemm.key import (
    Algorithm,
    ConvSpecial,
    GemmKey,
    Pipeline,
    ProductKind,
    Reduction,
    Scheduler,
)
from cklang.types import DType, bf16, f16, fp8, i8
from tests.runtime.test_conv_kernels import (
    BYTES,
    CASES,
    D1,
    D3,
    DEEP,
    DEPTHWISE,
    DEPTHWISE_TILE,
    DIRECT,
    FORWARD,
    GRAD_INPUT,
    GRAD_WEIGHT,
    MATRIX,
    OPERANDS,
    PADDED,
    POINTS,
    SHARES,
    SLIM_GROUPS,
    SUM,
    check,
    of_image,
)
from tests.support.algorithms import NARROW, WIDE, on_gpu, pipelined
from tests.support.conv_kernels import PLAIN, Conv, kernel, key_of
from tests.support.coverage import Covered

GPUS = ("gfx90a", "gfx950", "gfx1100", "gfx1201")
RDNA = GPUS[2:]
WORKSPACE, TREE, ATOMIC = Reduction.WORKSPACE, Reduction.TREE, Reduction.ATOMIC
SPLIT, STREAMED, LASTING = SHARES.values()


def any_extent(conv: Conv) -> tuple[Conv, ...]:
    """Return a convolution, and two of odd extents: one with strides, one with dilation too."""
    rank = len(conv.size)
    odd = replace(conv, k=conv.k + 1, c=conv.c - 1, stride=(2,) * rank)
    return conv, odd, replace(odd, n=1, g=2, dilation=(2,) * rank)


@dataclass(frozen=True)
class Case:
    """A kernel, the rows of the coverage table that it stands for, and what it computes."""

    rows: tuple[str, ...]
    kind: ProductKind
    algorithm: Algorithm
    convs: tuple[Conv, ...]
    dtype: DType = f16
    gpus: tuple[str, ...] = GPUS
    fused: bool = False
    """Whether an epilogue with operands is fused to it."""

    def __str__(self) -> str:
        return f"{'-'.join(self.rows)}-{self.dtype}".replace(" ", "-").replace(",", "")

    def key(self, gpu: str) -> GemmKey:
        return key_of(
            self.kind,
            len(self.convs[0].size),
            arch=gpu,
            dtype=self.dtype,
            algorithm=on_gpu(gpu, self.algorithm),
            d=OPERANDS if self.fused else (),
        )


FEW = (replace(DEEP, n=1, g=1, size=(3, 3)),)
MERGED = (SLIM_GROUPS,)
KERNELS = [
    Case(("conv, pipeline mem interwave, 3D", "conv 3D"), FORWARD,
         replace(NARROW, pipeline=Pipeline.MEM, scheduler=Scheduler.INTERWAVE, epilogue=DIRECT),
         any_extent(D3)),
    Case(("conv, pipeline basic_v1, 1D", "conv 1D"), FORWARD, pipelined(NARROW, Pipeline.BASIC_V1),
         any_extent(D1)),
    Case(("conv, pipeline compv6", "conv, split-K workspace"), FORWARD,
         pipelined(WIDE, Pipeline.COMPV6, **SPLIT, reduction=WORKSPACE), (PADDED,)),
    Case(("conv, pipeline compv4", "conv, windows of one tap"), FORWARD,
         pipelined(WIDE, Pipeline.COMPV4, special=ConvSpecial.POINTWISE), (POINTS,), fused=True),
    Case(("conv, pipeline compv5", "conv, groups in a tile"), FORWARD,
         pipelined(WIDE, Pipeline.COMPV5, tile=(32, 32, 32), warps=(1, 1, 2), groups_merged=4),
         MERGED),
    Case(("conv, depthwise",), FORWARD,
         replace(DEPTHWISE_TILE, tile=(64, 16, 32), warps=(4, 1, 1), vector_e=4), (DEPTHWISE,)),
    Case(("conv, a matrix product",), FORWARD,
         replace(WIDE, special=ConvSpecial.POINTWISE_PACKED, persistent=True), (MATRIX,)),
    Case(("conv_grad_input 3D", "conv_grad_input, pipeline mem"), GRAD_INPUT,
         replace(NARROW, pipeline=Pipeline.MEM, epilogue=DIRECT, persistent=True), any_extent(D3)),
    Case(("conv_grad_input 1D", "conv_grad_input, pipeline compv6"), GRAD_INPUT,
         pipelined(NARROW, Pipeline.COMPV6), any_extent(D1)),
    Case(("conv_grad_input, pipeline compv4", "conv_grad_input, windows of one tap"), GRAD_INPUT,
         pipelined(WIDE, Pipeline.COMPV4, special=ConvSpecial.POINTWISE), (POINTS,)),
    Case(("conv_grad_input, groups in a tile",), GRAD_INPUT, replace(WIDE, groups_merged=4),
         MERGED),
    Case(("conv_grad_input, a matrix product",), GRAD_INPUT,
         replace(WIDE, special=ConvSpecial.POINTWISE_PACKED), (MATRIX,)),
    Case(("conv_grad_weight, split-K workspace", "conv_grad_weight 1D"), GRAD_WEIGHT,
         replace(NARROW, **SPLIT, reduction=WORKSPACE), any_extent(D1)),
    Case(("conv_grad_weight, split-K tree", "conv_grad_weight, pipeline compv4"), GRAD_WEIGHT,
         pipelined(WIDE, Pipeline.COMPV4, **SPLIT, reduction=TREE), (DEEP, *FEW)),
    Case(("conv_grad_weight, split-K atomic", "conv_grad_weight, groups in a tile"), GRAD_WEIGHT,
         replace(WIDE, **SPLIT, reduction=ATOMIC, groups_merged=4), MERGED),
    Case(("conv_grad_weight, stream-K workspace", "conv_grad_weight, pipeline compv6"), GRAD_WEIGHT,
         pipelined(WIDE, Pipeline.COMPV6, **STREAMED, reduction=WORKSPACE), (DEEP, *FEW)),
    Case(("conv_grad_weight, stream-K tree", "conv_grad_weight, pipeline mem"), GRAD_WEIGHT,
         pipelined(WIDE, Pipeline.MEM, epilogue=DIRECT, **STREAMED, reduction=TREE), (DEEP, *FEW)),
    Case(("conv_grad_weight, stream-K atomic", "conv_grad_weight 3D"), GRAD_WEIGHT,
         replace(NARROW, **STREAMED, reduction=ATOMIC), any_extent(D3)),
    Case(("conv_grad_weight, stream-K after whole tiles workspace", "conv_grad_weight, depthwise"),
         GRAD_WEIGHT, replace(DEPTHWISE_TILE, vector_b=8, **LASTING, reduction=WORKSPACE),
         (DEPTHWISE,)),
    Case(("conv_grad_weight, stream-K after whole tiles tree",), GRAD_WEIGHT,
         replace(WIDE, **LASTING, reduction=TREE), (DEEP, *FEW)),
    Case(("conv_grad_weight, stream-K after whole tiles atomic", "conv_grad_weight 2D"),
         GRAD_WEIGHT, replace(WIDE, **LASTING, reduction=ATOMIC), (DEEP, *FEW)),
    *(
        Case(
            (f"{kind.value} 2D",), kind, BYTES if dtype.bits == 8 else WIDE, (PADDED,), dtype, gpus
        )
        for dtype, algorithm, gpus in (
            (f16, WIDE, RDNA),
            (bf16, WIDE, RDNA),
            (i8, BYTES, RDNA),
            (fp8, BYTES, RDNA[1:]),
        )
        for kind in (FORWARD, GRAD_INPUT, GRAD_WEIGHT)
        if (dtype, kind) != (f16, GRAD_WEIGHT)
    ),
]  # fmt: skip
"""CK Tile's convolutions on other GPUs, and their element types on RDNA."""


def kernels() -> Iterator[tuple[Case, str]]:
    for case in KERNELS:
        yield from ((case, gpu) for gpu in case.gpus)


@pytest.mark.full
@pytest.mark.parametrize(("case", "gpu"), list(kernels()), ids=str)
def test_a_kernel_for_each_row(case: Case, gpu: str, covered: Covered) -> None:
    key = case.key(gpu)
    compiled = kernel(
        case.kind,
        key.signature.spatial,
        arch=gpu,
        dtype=case.dtype,
        algorithm=on_gpu(gpu, case.algorithm),
        d=OPERANDS if case.fused else (),
        epilogue=SUM if case.fused else PLAIN,
    )
    for conv in case.convs:
        operands = of_image(conv) if case.fused else []
        for blocks in (1, 4, 19) if key.algorithm.stream_k else (4,):
            first = check(compiled, conv, *operands, blocks=blocks)
            if key.algorithm.reduction in (WORKSPACE, TREE):
                again = check(compiled, conv, *operands, blocks=blocks)
                np.testing.assert_array_equal(again, first)
    s = key.signature
    types = f"{s.dtype_a} {s.dtype_b} {s.dtype_e}" if case.dtype.bits == 8 else case.dtype.name
    for row in case.rows:
        covered(row, types, gpu)


@pytest.mark.parametrize(("case", "gpu"), list(kernels()), ids=str)
def test_every_kernel_is_legal(case: Case, gpu: str) -> None:
    key = case.key(gpu)
    rejections = RULES.rejections(key.algorithm, key.signature, arch(gpu), None)
    assert [str(each) for each in rejections] == []


def test_the_table_has_every_row_on_every_gpu() -> None:
    """Only what one GPU has stands for itself: loads to LDS of gfx950."""
    others = {name for name in CASES if " on " not in name}
    shares = {
        f"conv_grad_weight, {share} {reduction.value}"
        for share in SHARES
        for reduction in (WORKSPACE, TREE, ATOMIC)
    }
    rows = {(row, gpu) for case, gpu in kernels() for row in case.rows}
    alone = {name for name in others | shares if any((name, gpu) not in rows for gpu in GPUS)}
    assert alone == {"conv, pipeline comp_async"}
