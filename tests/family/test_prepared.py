# SPDX-License-Identifier: MIT
"""Weights that are prepared once: CK Tile's preshuffle pipeline with a fused epilogue."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.device.preshuffle import Arrangement
from cklang.errors import CkError
from cklang.families.gemm.key import Pipeline
from cklang.families.gemm.problem import Matrix, Problem
from cklang.testing.strategies import extents
from cklang.types import DTYPES
from tests.support.algorithms import DEEP, narrow, pipelined, wide
from tests.support.arrays import drawn, mnk
from tests.support.checks import compare, launches
from tests.support.coverage import Covered
from tests.support.typed import instance, only

M, N, K = ck.dims("M N K")
T: Any = ck.dtype_var("T", ck.f16, ck.bf16, ck.fp8, ck.bf8, ck.fp8_fnuz, ck.bf8_fnuz)


@ck.op
def linear(x: T[M, K], w: T[N, K], bias: ck.f32[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    return ck.gelu(x @ w.T + bias) + res


@ck.op
def upright(x: T[M, K], w: T[K, N]) -> ck.f32[M, N]:
    return x @ w


@ck.op
def twice(x: T[M, K], w: T[K, N], v: T[K, N]) -> ck.f32[M, N]:
    return (x @ w) * (x @ v)


CASES = [
    ("gfx942", "f16"),
    ("gfx950", "bf8"),
    # Types whose elements have the widths of these two.
    pytest.param("gfx90a", "bf16", marks=pytest.mark.full),
    pytest.param("gfx942", "fp8_fnuz", marks=pytest.mark.full),
    pytest.param("gfx1201", "f16", marks=pytest.mark.full),
    pytest.param("gfx1201", "fp8", marks=pytest.mark.full),
    *(
        pytest.param(gpu, dtype, marks=pytest.mark.full)
        for gpu, dtype in (
            ("gfx90a", "f16"),
            ("gfx942", "bf16"),
            ("gfx942", "bf8_fnuz"),
            ("gfx950", "f16"),
            ("gfx950", "bf16"),
            ("gfx950", "fp8"),
            ("gfx1201", "bf16"),
            ("gfx1201", "bf8"),
        )
    ),
]
SHAPES = ((64, 64, 64), (130, 136, 208), (72, 64, 0), (33, 264, 1040))
"""All fit the widest loads, so that one kernel serves them."""


def operands(dtype: str, m: int, n: int, k: int) -> list[Any]:
    return drawn(linear, mnk(m, n, k), T=DTYPES[dtype])


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("arch", "dtype"), CASES)
def test_products(arch: str, dtype: str, covered: Covered) -> None:
    device = f"emu:{arch}"
    for shape in SHAPES:
        x, w, *rest = args = operands(dtype, *shape)
        weight = ck.prepare(w, linear, device=device)
        got = linear(x, weight, *rest, device=device)
        compare(linear, args, got)
        np.testing.assert_array_equal(linear(x, weight, *rest, device=device), got)
    assert linear.last is not None
    assert linear.last.memoised
    (record,) = launches(linear)
    assert record.key.algorithm.pipeline is Pipeline.PRESHUFFLE_V2
    assert record.resources.spills == 0
    covered("prepared weight", dtype, arch)


SINGLE = pipelined(
    narrow(2, tile=(32, 64, 64), warps=(1, 4, 1), warp_tile=DEEP, vector_b=8),
    Pipeline.PRESHUFFLE_V2,
)


@pytest.mark.usefixtures("stencils")
@settings(max_examples=8)
@given(shape=st.tuples(extents(200), extents(200), st.integers(0, 300)))
def test_every_shape(shape: tuple[int, int, int]) -> None:
    x, w, *rest = args = operands("f16", *shape)
    weight = ck.prepare(w, linear, device="emu:gfx942")
    compare(linear, args, linear.using(SINGLE)(x, weight, *rest, device="emu:gfx942"))


@given(
    st.builds(
        Arrangement,
        n=st.sampled_from([16, 32]),
        k=st.sampled_from([8, 16, 64]),
        lanes=st.sampled_from([2, 4]),
    ),
    st.integers(1, 70),
    st.integers(0, 70),
)
def test_the_order_is_undone(order: Arrangement, n: int, k: int) -> None:
    b = np.arange(1, n * k + 1, dtype=np.int32).reshape(k, n)
    arranged = order.arrange(b)
    assert arranged.shape == order.extents(n, k)
    np.testing.assert_array_equal(order.restore(arranged, n, k), b)
    assert np.count_nonzero(arranged) == n * k, "the rest is zeros"


def test_the_order_is_that_of_lanes() -> None:
    """Element (k, n) of a warp tile: lanes along K, then columns, then neighbours along K."""
    order = Arrangement(n=16, k=32, lanes=4)
    b = np.arange(32 * 16, dtype=np.int32).reshape(32, 16)
    arranged = order.arrange(b).reshape(4, 16, 8)
    for lane, n, i in ((0, 0, 0), (0, 1, 0), (2, 3, 5), (3, 15, 7)):
        assert arranged[lane, n, i] == b[lane * 8 + i, n]


def test_a_weight_is_saved_and_loaded(tmp_path: Path) -> None:
    w = operands("fp8_fnuz", 1, 40, 72)[1]
    weight = ck.prepare(w, linear, device="emu:gfx942")
    weight.save(tmp_path / "w.npz")
    again = ck.PreparedWeight.load(tmp_path / "w.npz")
    for name in ("shape", "dtype", "k_axis", "arrangement", "arch"):
        assert getattr(again, name) == getattr(weight, name)
    np.testing.assert_array_equal(again.data.view(np.uint8), weight.data.view(np.uint8))
    np.testing.assert_array_equal(again.unpack().view(np.uint8), w.view(np.uint8))
    assert again.arch == "gfx942"


def test_both_orientations_of_a_weight_are_one_order() -> None:
    w = operands("f16", 1, 48, 72)[1]
    upright_w = ck.prepare(np.ascontiguousarray(w.T), upright, device="emu:gfx942")
    weight = ck.prepare(w, linear, device="emu:gfx942")
    np.testing.assert_array_equal(upright_w.data, weight.data)
    np.testing.assert_array_equal(upright_w.unpack(), w.T)
    assert (upright_w.k_axis, weight.k_axis) == (0, 1)


OTHER = pipelined(
    wide(tile=(64, 128, 64), warps=(1, 4, 1), warp_tile=(32, 32, 16)),
    Pipeline.PRESHUFFLE_V2,
    vector_d=(4, 8),
)


def test_what_is_refused() -> None:
    x, w, bias, res = operands("f16", 64, 64, 64)
    device = "emu:gfx942"
    weight = ck.prepare(w, linear, device=device)
    with pytest.raises(CkError, match="prepared-b") as refusal:
        linear.using(OTHER).explain(x, weight, bias, res, device=device)
    assert "16x32 over 4 lanes" in str(refusal.value)
    assert "32x16 over 2 lanes" in str(refusal.value)
    with pytest.raises(CkError, match="layout_b"):
        linear.using(OTHER).explain(x, w, bias, res, device=device)
    with pytest.raises(CkError, match="CK-A052"):  # it is A here
        upright.explain(ck.prepare(w, upright, device=device), w, device=device)
    with pytest.raises(CkError, match="CK-A052"):  # its K axis is the other one
        upright.explain(x, weight, device=device)
    with pytest.raises(CkError, match="CK-A051") as several:
        ck.prepare(w, twice, device=device)
    assert "w, v" in str(several.value)
    assert ck.prepare(w, twice, "v", device=device).k_axis == 0
    with pytest.raises(CkError, match="CK-A051"):
        ck.prepare(w, linear, "x", device=device)
    with pytest.raises(CkError, match="CK-K028"):
        ck.prepare(w, linear, device=device, warp_tile=(64, 64))
    with pytest.raises(CkError, match="CK-K102"):
        ck.prepare(w, linear, device="emu:gfx1100")
    with pytest.raises(CkError, match="CK-K102"):
        linear.explain(x, weight, bias, res, device="emu:gfx1100")
    with pytest.raises(CkError, match="CK-A020"):
        ck.prepare(w.astype(np.float32), linear, device=device)
    with pytest.raises(CkError, match="CK-A021"):
        ck.prepare(w[0], linear, device=device)


def test_it_is_told_in_explain_and_keys() -> None:
    x, w, bias, res = operands("f16", 64, 64, 64)
    weight = ck.prepare(w, linear, device="emu:gfx950")
    assert "preshuffle_v2" in linear.explain(x, weight, bias, res, device="emu:gfx950")
    problem = only(Problem, linear.problems(x, weight, bias, res))
    assert problem.signature.layouts == "rpr"
    assert instance(Matrix, problem.b).prepared == weight.arrangement
    known = ck.dispatch.problem(64, 64, 64, layouts="rpr", prepared=weight.arrangement)
    assert ck.dispatch.select(known, arch="gfx950").key.algorithm.pipeline is Pipeline.PRESHUFFLE_V2
    with pytest.raises(CkError, match="CK-K032"):
        ck.dispatch.problem(64, 64, 64, layouts="rpr")
