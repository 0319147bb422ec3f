# SPDX-License-Identifier: MIT
"""The programs that the benchmarks measure, and data for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cklang as ck

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """A GEMM and nothing else."""
    return x @ w.T


@ck.op
def linear_gelu(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]
) -> ck.f16[M, N]:
    """The example of the README."""
    return ck.gelu(x @ w.T + bias) + res


@ck.op
def with_constant(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N], *, c: ck.const[float]
) -> ck.f16[M, N]:
    """Another epilogue for each ``c`` on the stencil of :func:`linear_gelu`."""
    return ck.silu(x @ w.T * c + bias) + res


def half(rng: np.random.Generator, *shape: int) -> Any:
    """Return normally distributed f16."""
    return rng.standard_normal(shape).astype(np.float16)


def arguments(m: int, n: int, k: int, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Return x, w, bias, res of :func:`linear_gelu`."""
    rng = np.random.default_rng(seed)
    return half(rng, m, k), half(rng, n, k), half(rng, n), half(rng, m, n)


def flops(m: int, n: int, k: int) -> float:
    """Multiplications and additions of one GEMM."""
    return 2.0 * m * n * k


def best(repeat: int, run: Callable[[], float]) -> float:
    """Return the least of ``repeat`` measurements, in seconds."""
    return min(run() for _ in range(repeat))
