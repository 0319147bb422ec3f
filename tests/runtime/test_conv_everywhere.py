# SPDX-License-Identifier: MIT
"""Kernels of convolutions on the GPUs that ``test_conv_kernels.py`` leaves out: all of its cases.

Their C++ does not depend on the GPU, so they are left to the tier *full*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from cklang.arch import arch
from cklang.families.conv.rules import RULES
from cklang.families.gemm.key import Algorithm, ConvSpecial, Pipeline, ProductKind, Reduction
from cklang.types import DType, bf16, f16, fp8, i8
from tests.runtime.test_conv_kernels import (
    BYTES,
    CASES,
    D1,
    D3,
    DEEP,
    DEPTHWISE,
    FAMILIES,
    GRAD_INPUT,
    GRAD_WEIGHT,
    OPERANDS,
    PADDED,
    SHARES,
    SUM,
    check,
    of_image,
)
from tests.support.algorithms import NARROW, WIDE, on_gpu, pipelined
from tests.support.conv_kernels import Conv, kernel, key_of

Covered = Callable[..., None]
Case = tuple[str, ProductKind, Algorithm, Conv, DType, str]

GPUS = ("gfx90a", "gfx950", "gfx1100", "gfx1201")
RDNA = GPUS[2:]


def elsewhere() -> Iterator[Case]:
    """Yield the cases of one GPU on each of the others, and the types of RDNA."""
    for name, (kind, algorithm, conv, dtype, gpu) in CASES.items():
        if " on " not in name and gpu == "gfx942":
            for other in GPUS:
                yield name, kind, on_gpu(other, algorithm), conv, dtype, other
    for kind in FAMILIES:
        name = f"{kind.value} 2D"
        for gpu in RDNA:
            yield name, kind, on_gpu(gpu, WIDE), PADDED, f16, gpu
            yield name, kind, on_gpu(gpu, WIDE), PADDED, bf16, gpu
            yield name, kind, on_gpu(gpu, BYTES), PADDED, i8, gpu
        yield name, kind, on_gpu("gfx1201", BYTES), PADDED, fp8, "gfx1201"


def name_of(case: Case) -> str:
    return f"{case[0]}-{case[4]}-{case[5]}".replace(" ", "-").replace(",", "")


@pytest.mark.full
@pytest.mark.parametrize("case", list(elsewhere()), ids=name_of)
def test_a_kernel_of_each_kind(case: Case, covered: Covered) -> None:
    name, kind, algorithm, conv, dtype, gpu = case
    compiled = kernel(kind, len(conv.size), arch=gpu, dtype=dtype, algorithm=algorithm)
    check(compiled, conv)
    types = f"{dtype} {dtype} {compiled.key.signature.dtype_e}" if dtype.bits == 8 else dtype.name
    covered(name, types, gpu)


@pytest.mark.full
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("reduction", [Reduction.WORKSPACE, Reduction.TREE, Reduction.ATOMIC])
@pytest.mark.parametrize("share", SHARES)
def test_sharing_the_sums_of_a_gradient_of_weights(
    share: str, reduction: Reduction, gpu: str, covered: Covered
) -> None:
    algorithm = replace(on_gpu(gpu, WIDE), reduction=reduction, **SHARES[share])  # type: ignore[arg-type]
    compiled = kernel(GRAD_WEIGHT, 2, arch=gpu, algorithm=algorithm)
    for blocks in (1, 4, 19):
        check(compiled, DEEP, blocks=blocks)
    check(compiled, replace(DEEP, n=1, g=1, size=(3, 3)), blocks=5)
    covered(f"conv_grad_weight, {share} {reduction.value}", "f16", gpu)


@pytest.mark.full
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("conv", [D1, D3], ids=["1D", "3D"])
@pytest.mark.parametrize("kind", FAMILIES, ids=lambda kind: kind.value)
def test_other_ranks(kind: ProductKind, conv: Conv, gpu: str, covered: Covered) -> None:
    rank = len(conv.size)
    compiled = kernel(kind, rank, arch=gpu, algorithm=on_gpu(gpu, NARROW))
    odd = replace(conv, k=conv.k + 1, c=conv.c - 1, stride=(2,) * rank)
    for each in (conv, odd, replace(odd, n=1, g=2, dilation=(2,) * rank)):
        check(compiled, each)
    covered(f"{kind.value} {rank}D", "f16", gpu)


@pytest.mark.full
@pytest.mark.parametrize("gpu", GPUS)
def test_wide_loads_at_padded_corners_with_operands(gpu: str, covered: Covered) -> None:
    algorithm = on_gpu(gpu, pipelined(WIDE, Pipeline.COMPV4))
    compiled = kernel(ProductKind.CONV, 2, arch=gpu, algorithm=algorithm, d=OPERANDS, epilogue=SUM)
    check(compiled, PADDED, *of_image(PADDED))
    covered("conv, pipeline compv4", "f16", gpu)


@pytest.mark.full
@pytest.mark.parametrize("gpu", GPUS)
def test_groups_of_a_depthwise_convolution_share_a_tile(gpu: str, covered: Covered) -> None:
    algorithm = replace(
        NARROW,
        tile=(64, 16, 32),
        warps=(4, 1, 1),
        special=ConvSpecial.DEPTHWISE,
        groups_merged=16,
        vector_a=8,
        vector_e=8,
    )
    check(kernel(ProductKind.CONV, 2, arch=gpu, algorithm=on_gpu(gpu, algorithm)), DEPTHWISE)
    covered("conv, depthwise", "f16", gpu)


@pytest.mark.full
@pytest.mark.parametrize("gpu", GPUS)
def test_stream_k_in_a_tree_after_whole_tiles(gpu: str, covered: Covered) -> None:
    tree = replace(WIDE, stream_k=True, reduction=Reduction.TREE, persistent=True)
    compiled = kernel(GRAD_WEIGHT, 2, arch=gpu, algorithm=on_gpu(gpu, tree))
    for blocks in (1, 4, 19):
        first = check(compiled, DEEP, blocks=blocks)
        np.testing.assert_array_equal(check(compiled, DEEP, blocks=blocks), first)
    covered("conv_grad_weight, stream-K tree after whole tiles", "f16", gpu)


@pytest.mark.parametrize("case", list(elsewhere()), ids=name_of)
def test_every_case_is_legal(case: Case) -> None:
    _, kind, algorithm, conv, dtype, gpu = case
    key = key_of(kind, len(conv.size), arch=gpu, dtype=dtype, algorithm=algorithm)
    rejections = RULES.rejections(key.algorithm, key.signature, arch(gpu), None)
    assert [str(each) for each in rejections] == []


def test_the_table_has_every_case_on_every_gpu() -> None:
    """Only what one GPU has stands for itself: loads to LDS of gfx950."""
    names = {name for name in CASES if " on " not in name}
    cases = {(name, gpu) for name, *_, gpu in elsewhere()}
    alone = {name for name in names if any((name, gpu) not in cases for gpu in GPUS)}
    assert alone == {"conv, pipeline comp_async"}
    assert {kind for _, kind, *_ in elsewhere()} == {*FAMILIES, GRAD_INPUT}
