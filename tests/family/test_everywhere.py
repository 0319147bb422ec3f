# SPDX-License-Identifier: MIT
"""Batches, groups and shared K with element types and on GPUs that other tests of them leave out.

Their C++ depends on neither, so most of these kernels are left to ``--exhaustive``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.arch import arch
from cklang.keys import Algorithm, Family, Reduction
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from cklang.testing import assert_close
from cklang.types import DType, Kind

G, M, N, K = ck.dims("G M N K")
X = ck.dtype_var("X", ck.f16, ck.bf16, ck.fp8, ck.i8)
W = ck.dtype_var("W", ck.f16, ck.bf16, ck.fp8, ck.bf8, ck.i8)


@ck.op
def plain(x: X[M, K], w: W[N, K], bias: ck.f32[N]) -> ck.bf16[M, N]:
    return ck.relu((x @ w.T).to(ck.f32) + bias)


@ck.op
def batch(x: X[G, M, K], w: W[G, N, K], bias: ck.f32[N]) -> ck.bf16[G, M, N]:
    return ck.relu(ck.einsum("gmk,gnk->gmn", x, w).to(ck.f32) + bias)


@dataclass(frozen=True)
class Case:
    """One kernel."""

    variants: tuple[str, ...]
    """What it stands for, as the coverage table names it."""
    arch: str
    x: DType
    w: DType | None = None
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def types(self) -> tuple[DType, DType]:
        return self.x, self.w or self.x

    @property
    def algorithm(self) -> Algorithm:
        wmma = arch(self.arch).wave_size == 32
        narrow = self.x.bits == 8
        chosen = {
            "tile": (64, 64, 64 if narrow else 32),
            "warps": (4, 2, 1) if wmma else (2, 2, 1),
            "warp_tile": (16, 16, 16) if wmma else (16, 16, 32),
            "vector_a": 8,
            "vector_b": 8,
            "vector_e": 4,
            "vector_d": (4,),
        }
        return Algorithm(**(chosen | self.more))

    def __str__(self) -> str:
        return f"{self.variants[0]}-{self.x}-{self.arch}"


BATCH = ("batched", "contraction (einsum)")
GROUP = ("grouped",)
LASTING = {"persistent": True}


def shared(kind: str, reduction: str, gpu: str, dtype: DType) -> Case:
    how: dict[str, Any] = {"split_k": 3} if kind == "split-K" else {"stream_k": True}
    return Case(
        (f"{kind} {reduction}",), gpu, dtype, more=how | {"reduction": Reduction(reduction)}
    )


FEW = [
    Case(BATCH, "gfx1201", ck.fp8),
    Case((*GROUP, "grouped, persistent"), "gfx1100", ck.bf16, more=LASTING),
    shared("split-K", "workspace", "gfx1201", ck.f16),
]
REST = [
    Case(BATCH, "gfx1100", ck.i8),
    shared("split-K", "workspace", "gfx950", ck.fp8),
    Case(
        ("universal",),
        "gfx1201",
        ck.fp8,
        ck.bf8,
        {"pipeline": "compv4", "double_buffer": True},
    ),
    Case(("persistent",), "gfx1100", ck.f16, more=LASTING),
]
SHAPES = ((64, 64, 64), (80, 208, 336), (144, 48, 0), (8, 8, 1000))
"""All fit the widest loads, so that one kernel serves them."""


def drawn(case: Case, shape: tuple[int, int, int], before: tuple[int, ...] = ()) -> list[Any]:
    m, n, k = shape
    rng = np.random.default_rng(m + n + k)
    made = []
    for dtype, rows in zip(case.types, (m, n), strict=True):
        numbers = rng.standard_normal((*before, rows, k))
        made.append((numbers * 40 if dtype.kind is Kind.INT else numbers).astype(dtype.numpy))
    return [*made, rng.standard_normal(n).astype(np.float32)]


def compare(op: Op, args: list[Any], got: Any) -> None:
    (want,), (bound,) = evaluate_with_bound(op.ir(*args), args)
    assert_close(got, want, bound)


def check(case: Case, covered: Callable[..., None]) -> None:
    device = f"emu:{case.arch}"
    is_batch, is_group = "batched" in case.variants, "grouped" in case.variants
    op = (batch if is_batch else plain).using(case.algorithm)
    calls = [drawn(case, shape, (3,) if is_batch else ()) for shape in SHAPES]
    if is_group:
        results = op.grouped([tuple(args) for args in calls], device=device)
    else:
        results = [op(*args, device=device) for args in calls]
    for args, got in zip(calls, results, strict=True):
        compare(op, args, got)
    assert op.last is not None
    (launch,) = op.last.launches
    family = Family.BATCHED if is_batch else Family.GROUPED if is_group else Family.GEMM
    assert launch.key.signature.family is family
    assert launch.resources.spills == 0
    for variant in case.variants:
        covered(variant, " ".join(map(str, (*case.types, ck.bf16))), case.arch)


@pytest.mark.slow
@pytest.mark.parametrize("case", FEW, ids=str)
def test_kinds(case: Case, covered: Callable[..., None]) -> None:
    check(case, covered)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("case", REST, ids=str)
def test_further_kinds(case: Case, covered: Callable[..., None]) -> None:
    check(case, covered)


def test_all_are_legal() -> None:
    for case in (*FEW, *REST):
        is_batch = "batched" in case.variants
        op = (batch if is_batch else plain).using(case.algorithm)
        args = drawn(case, SHAPES[1], (3,) if is_batch else ())
        assert "the algorithm you named" in op.explain(*args, device=f"emu:{case.arch}")
