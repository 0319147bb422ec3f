# SPDX-License-Identifier: MIT
"""RDNA3 and RDNA4: matrix products on WMMA, waves of 32 lanes, with fused epilogues."""

from typing import Any

import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.runtime.op import Op
from tests.support.arrays import drawn, mnk
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.gemm_ops import fused

M, N, K = ck.dims("M N K")
SHAPES = ((64, 64, 64), (80, 48, 208), (144, 160, 0), (1, 16, 16))
"""All fit the widest loads, so that one kernel serves them."""


@ck.op
def requantised(x: ck.i8[M, K], w: ck.i8[N, K], bias: ck.i32[N], scale: ck.f32[M]) -> ck.i8[M, N]:
    return ((x @ w.T + bias).to(ck.f32) * scale[:, None]).to(ck.i8)


@ck.op
def eight_bits(x: ck.fp8[M, K], w: ck.fp8[N, K], scale: ck.f32[N]) -> ck.fp8[M, N]:
    return (x @ w.T) * scale


@ck.op
def columns(x: ck.f16[K, M], w: ck.f16[K, N]) -> ck.f16[M, N]:
    return ck.silu(x.T @ w)


CASES = [
    ("gfx1201", fused, ck.f16),
    ("gfx1201", eight_bits, ck.fp8),
    # Integers are multiplied on gfx1100.
    pytest.param("gfx1201", requantised, ck.i8, marks=pytest.mark.full),
    ("gfx1100", fused, ck.bf16),
    ("gfx1100", requantised, ck.i8),
]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("arch", "op", "dtype"), CASES)
def test_fused_products(arch: str, op: Op, dtype: Any, covered: Covered) -> None:
    for shape in SHAPES:
        check(op, drawn(op, mnk(*shape), T=dtype), arch)
    assert launches(op)[0].resources.spills == 0
    covered("universal", " ".join([dtype.name] * 3), arch)


@pytest.mark.usefixtures("stencils")
def test_column_major_a_and_row_major_b(covered: Covered) -> None:
    for shape in SHAPES[:2]:
        check(columns, drawn(columns, mnk(*shape)), "gfx1201")
    covered("layouts crr", "f16", "gfx1201")


def test_rdna3_has_no_8_bit_floats() -> None:
    with pytest.raises(CkError) as caught:
        eight_bits.build(*drawn(eight_bits, mnk(64, 64, 64)), device="emu:gfx1100")
    assert caught.value.code in ("K101", "K102")
