# SPDX-License-Identifier: MIT
"""8-bit floats of both encodings and integers: products, epilogues and results."""

from dataclasses import replace
from typing import Any

import pytest

import cklang as ck
from cklang.runtime.op import Op
from cklang.types import DTYPES, TensorType
from tests.support.algorithms import EIGHT_BITS
from tests.support.arrays import drawn, laid_out_as, mnk
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.typed import instance

M, N, K = ck.dims("M N K")
FLOATS = (ck.fp8, ck.bf8, ck.fp8_fnuz, ck.bf8_fnuz)
X: Any = ck.dtype_var("X", *FLOATS)
W: Any = ck.dtype_var("W", *FLOATS)
SHAPES = ((64, 64, 128), (80, 48, 208), (144, 160, 64), (1, 16, 16))
"""All fit the widest loads, so that one kernel serves them."""


@ck.op
def scaled(x: X[M, K], w: W[N, K], scale: ck.f32[N], shift: ck.bf16[M, N]) -> ck.bf16[M, N]:
    return ck.relu((x @ w.T) * scale + shift)


@ck.op
def to_fp8_fnuz(x: X[M, K], w: W[N, K], gate: ck.fp8_fnuz[M, N]) -> ck.fp8_fnuz[M, N]:
    return ck.tanh(x @ w.T) * gate


@ck.op
def to_bf8(x: X[M, K], w: W[N, K], gate: ck.fp8[M, N]) -> ck.bf8[M, N]:
    return (x @ w.T) * gate


@ck.op
def requantised(x: ck.i8[M, K], w: ck.i8[N, K], bias: ck.i32[N], scale: ck.f32[M]) -> ck.i8[M, N]:
    return ((x @ w.T + bias).to(ck.f32) * scale[:, None]).to(ck.i8)


@ck.op
def counted(x: ck.i8[M, K], w: ck.i8[N, K], bias: ck.i32[N]) -> ck.i32[M, N]:
    return ck.maximum(x @ w.T + bias, 0)


def check_shapes(op: Op, arch: str, layouts: str = "rc", **dtypes: Any) -> None:
    for shape in SHAPES:
        if shape[0] == 1 and layouts != "rc":
            continue  # one row has both layouts
        x, w, *rest = drawn(op, mnk(*shape), **dtypes)
        check(op, [*laid_out_as(layouts, x, w), *rest], arch)
    assert launches(op)[0].resources.spills == 0


CASES = [
    (scaled, "gfx942", "fp8_fnuz", "fp8_fnuz"),
    # Each of the two types stands in a product with the other one, too.
    pytest.param(scaled, "gfx942", "bf8_fnuz", "bf8_fnuz", marks=pytest.mark.full),
    (to_fp8_fnuz, "gfx942", "fp8_fnuz", "bf8_fnuz"),
    pytest.param(scaled, "gfx942", "bf8_fnuz", "fp8_fnuz", marks=pytest.mark.full),
    (scaled, "gfx950", "fp8", "fp8"),
    (to_bf8, "gfx950", "bf8", "fp8"),
    *(
        pytest.param(scaled, gpu, x, w, marks=pytest.mark.full)
        for gpu, x, w in (
            ("gfx950", "bf8", "bf8"),
            ("gfx950", "fp8", "bf8"),
            ("gfx1201", "bf8", "bf8"),
            ("gfx1201", "bf8", "fp8"),
        )
    ),
]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("op", "arch", "x", "w"), CASES)
def test_8_bit_floats(op: Op, arch: str, x: str, w: str, covered: Covered) -> None:
    check_shapes(op, arch, X=DTYPES[x], W=DTYPES[w])
    result = instance(TensorType, op.program.signature.result).dtype
    covered("universal", f"{x} {w} {result}", arch)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("op", "arch"),
    [
        (requantised, "gfx942"),
        (counted, "gfx942"),
        # Integers run there in another layout.
        pytest.param(requantised, "gfx950", marks=pytest.mark.full),
    ],
)
def test_integers(op: Op, arch: str, covered: Covered) -> None:
    check_shapes(op, arch)
    result = instance(TensorType, op.program.signature.result).dtype
    covered("universal", f"i8 i8 {result}", arch)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("op", "arch", "layouts", "dtype"),
    [
        (scaled, "gfx950", "cr", "fp8"),
        (counted, "gfx950", "cr", "i8"),
        # gfx950 has instructions of its own for what lies across in LDS; gfx942 has not.
        pytest.param(scaled, "gfx942", "cr", "fp8_fnuz", marks=pytest.mark.full),
    ],
)
def test_other_layouts(op: Op, arch: str, layouts: str, dtype: str, covered: Covered) -> None:
    check_shapes(op, arch, layouts, X=DTYPES[dtype], W=DTYPES[dtype])
    covered(f"layouts {layouts}r", dtype, arch)


@pytest.mark.parametrize(("arch", "dtype"), [("gfx942", ck.fp8), ("gfx950", ck.fp8_fnuz)])
def test_the_wrong_encoding_is_refused(arch: str, dtype: Any) -> None:
    args = drawn(scaled, mnk(64, 64, 64), X=dtype, W=dtype)
    algorithm = replace(EIGHT_BITS, vector_e=8, vector_d=(4, 8))
    with expect_error("K101") as caught:
        scaled.using(algorithm).build(*args, device=f"emu:{arch}")
    assert any("encoding" in note for note in caught.value.notes)
