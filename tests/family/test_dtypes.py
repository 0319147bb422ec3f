# SPDX-License-Identifier: MIT
"""8-bit floats of both encodings and integers: products, epilogues and results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.keys import Algorithm
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from cklang.testing import assert_close
from cklang.types import DTYPES, TensorType
from tests.support.typed import instance, shape_of

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


def drawn(op: Op, dtypes: dict[str, Any], shape: tuple[int, int, int]) -> list[Any]:
    sizes = dict(zip("MNK", shape, strict=True))
    rng = np.random.default_rng(sum(shape))
    made = []
    for parameter in op.program.parameters:
        dtype = dtypes.get(parameter.name) or instance(TensorType, parameter.type).dtype
        extents = [sizes[str(extent)] for extent in shape_of(parameter)]
        if dtype.kind is ck.i8.kind:
            info = np.iinfo(np.int8)
            made.append(
                rng.integers(info.min, info.max, extents, endpoint=True).astype(dtype.numpy)
            )
        else:
            made.append(rng.standard_normal(extents).astype(dtype.numpy))
    return made


def check(op: Op, arch: str, layouts: str = "rc", **dtypes: Any) -> None:
    for shape in SHAPES:
        args = drawn(op, dtypes, shape)
        if shape[0] == 1 and layouts != "rc":
            continue  # one row has both layouts
        # w is [N, K] and B its transpose: a row-major B is a column-major w.
        args[0] = np.asfortranarray(args[0]) if layouts[0] == "c" else args[0]
        args[1] = np.asfortranarray(args[1]) if layouts[1] == "r" else args[1]
        got = op(*args, device=f"emu:{arch}")
        (want,), (bound,) = evaluate_with_bound(op.ir(*args), args)
        assert_close(got, want, bound)
    assert op.last is not None
    assert op.last.launches[0].resources.spills == 0


CASES = [
    (scaled, "gfx942", "fp8_fnuz", "fp8_fnuz"),
    # Each of the two types stands in a product with the other one, too.
    pytest.param(scaled, "gfx942", "bf8_fnuz", "bf8_fnuz", marks=pytest.mark.full),
    (to_fp8_fnuz, "gfx942", "fp8_fnuz", "bf8_fnuz"),
    pytest.param(scaled, "gfx942", "bf8_fnuz", "fp8_fnuz", marks=pytest.mark.full),
    (scaled, "gfx950", "fp8", "fp8"),
    (to_bf8, "gfx950", "bf8", "fp8"),
]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("op", "arch", "x", "w"), CASES)
def test_8_bit_floats(op: Op, arch: str, x: str, w: str, covered: Callable[..., None]) -> None:
    check(op, arch, x=DTYPES[x], w=DTYPES[w])
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
def test_integers(op: Op, arch: str, covered: Callable[..., None]) -> None:
    check(op, arch)
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
def test_other_layouts(
    op: Op, arch: str, layouts: str, dtype: str, covered: Callable[..., None]
) -> None:
    check(op, arch, layouts, x=DTYPES[dtype], w=DTYPES[dtype])
    covered(f"layouts {layouts}r", dtype, arch)


@pytest.mark.parametrize(("arch", "dtype"), [("gfx942", ck.fp8), ("gfx950", ck.fp8_fnuz)])
def test_the_wrong_encoding_is_refused(arch: str, dtype: Any) -> None:
    args = drawn(scaled, {"x": dtype, "w": dtype}, (64, 64, 64))
    algorithm = Algorithm(
        tile=(64, 64, 64),
        warps=(2, 2, 1),
        warp_tile=(16, 16, 32),
        vector_a=16,
        vector_b=16,
        vector_e=8,
        vector_d=(4, 8),
    )
    with pytest.raises(CkError) as caught:
        scaled.using(algorithm).build(*args, device=f"emu:{arch}")
    assert caught.value.code == "K101"
    assert any("encoding" in note for note in caught.value.notes)
