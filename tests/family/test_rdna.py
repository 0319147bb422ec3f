# SPDX-License-Identifier: MIT
"""RDNA3 and RDNA4: matrix products on WMMA, waves of 32 lanes, with fused epilogues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from cklang.testing import assert_close
from tests.support.typed import shape_of

M, N, K = ck.dims("M N K")
T: Any = ck.dtype_var("T", ck.f16, ck.bf16)
SHAPES = ((64, 64, 64), (80, 48, 208), (144, 160, 0), (1, 16, 16))
"""All fit the widest loads, so that one kernel serves them."""


@ck.op
def fused(x: T[M, K], w: T[N, K], bias: T[N], res: T[M, N]) -> T[M, N]:
    return ck.gelu(x @ w.T + bias) + res


@ck.op
def requantised(x: ck.i8[M, K], w: ck.i8[N, K], bias: ck.i32[N], scale: ck.f32[M]) -> ck.i8[M, N]:
    return ((x @ w.T + bias).to(ck.f32) * scale[:, None]).to(ck.i8)


@ck.op
def eight_bits(x: ck.fp8[M, K], w: ck.fp8[N, K], scale: ck.f32[N]) -> ck.fp8[M, N]:
    return (x @ w.T) * scale


def drawn(op: Op, dtype: Any, shape: tuple[int, int, int]) -> list[Any]:
    sizes = dict(zip("MNK", shape, strict=True))
    rng = np.random.default_rng(sum(shape))
    made = []
    for parameter in op.program.parameters:
        held = getattr(parameter.type, "dtype", dtype)
        extents = [sizes[str(extent)] for extent in shape_of(parameter)]
        numbers: np.ndarray = rng.standard_normal(extents)
        if held.kind is ck.i8.kind:
            numbers = rng.integers(-128, 128, extents)
        made.append(numbers.astype(held.numpy))
    return made


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
def test_fused_products(arch: str, op: Op, dtype: Any, covered: Callable[..., None]) -> None:
    for shape in SHAPES:
        args = drawn(op, dtype, shape)
        got = op(*args, device=f"emu:{arch}")
        (want,), (bound,) = evaluate_with_bound(op.ir(*args), args)
        assert_close(got, want, bound)
    assert op.last is not None
    assert op.last.launches[0].resources.spills == 0
    covered("universal", " ".join([dtype.name] * 3), arch)


@pytest.mark.usefixtures("stencils")
def test_column_major_a_and_row_major_b(covered: Callable[..., None]) -> None:
    for shape in SHAPES[:2]:
        args = drawn(columns, ck.f16, shape)
        got = columns(*args, device="emu:gfx1201")
        (want,), (bound,) = evaluate_with_bound(columns.ir(*args), args)
        assert_close(got, want, bound)
    covered("layouts crr", "f16", "gfx1201")


def test_rdna3_has_no_8_bit_floats() -> None:
    with pytest.raises(CkError) as caught:
        eight_bits.build(*drawn(eight_bits, ck.fp8, (64, 64, 64)), device="emu:gfx1100")
    assert caught.value.code in ("K101", "K102")
