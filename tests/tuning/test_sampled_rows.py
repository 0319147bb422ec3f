# SPDX-License-Identifier: MIT
"""Which kernels are checked by some of their rows."""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.sampled_rows import sampled
from cklang.fusion.plan import Plan
from tests.support.typed import instance, only

M, N, K = ck.dims("M N K")


@ck.op
def scaled(x: ck.fp8[M, K], w: ck.fp8[N, K], s: ck.f32[M / 64, K / 128]) -> ck.f32[M, N]:
    return ck.gemm(x, w.T, scale_a=s)


def test_all_rows_are_compared_where_scales_belong_to_several() -> None:
    shapes = (128, 1024), (2048, 1024)
    args = [np.zeros(shape, ck.fp8.numpy) for shape in shapes]
    args.append(np.zeros((2, 8), np.float32))
    kernel = only(FusedGemm, instance(Plan, scaled.fusion(*args)).kernels)
    assert sampled(kernel, args, [np.zeros((128, 2048), np.float32)]) is None
