# SPDX-License-Identifier: MIT
"""Ops with a matrix product that tests of several pipelines and GPUs call."""

from __future__ import annotations

from typing import Any

import cklang as ck

__all__ = ["fused"]

M, N, K = ck.dims("M N K")
T: Any = ck.dtype_var("T", ck.f16, ck.bf16, ck.f32)


@ck.op
def fused(x: T[M, K], w: T[N, K], bias: T[N], res: T[M, N]) -> T[M, N]:
    return ck.gelu(x @ w.T + bias) + res
