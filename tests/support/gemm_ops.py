# SPDX-License-Identifier: MIT
"""Ops with a matrix product that tests of several pipelines and GPUs call."""

from typing import Any

import cklang as ck

M, N, K = ck.dims("M N K")
T: Any = ck.dtype_var("T", ck.f16, ck.bf16, ck.f32)


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return x @ w.T


@ck.op
def fused(x: T[M, K], w: T[N, K], bias: T[N], res: T[M, N]) -> T[M, N]:
    return ck.gelu(x @ w.T + bias) + res


@ck.op
def many_reads(
    x: ck.f16[M, K],
    w: ck.f16[N, K],
    row: ck.f32[N],
    column: ck.bf16[M],
    alpha: ck.f32,
    mask: ck.bool_[M, N],
    turned: ck.f16[N, M],
    res: ck.bf16[M, N],
) -> ck.f32[M, N]:
    z = (x @ w.T) * alpha + row + column[:, None]
    return ck.where(mask, z, ck.tanh(turned.T)) - res
