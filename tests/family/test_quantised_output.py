# SPDX-License-Identifier: MIT
"""Products whose kernel quantises the result by group of columns and stores the scales.

1x128 groups, rows that are one group (a scale for each token) and MX blocks of 32 with exponents.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkUnsupportedError
from cklang.families import alternatives_of, plan_of
from cklang.families.gemm.bands import bands_of
from cklang.families.gemm.fuse.quantised import with_group_results
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.problem import Problem
from cklang.fusion.alternatives import Alternative, alternative_program
from cklang.fusion.explain import explain
from cklang.ir.nodes import Function
from cklang.ir.parser import parse_function
from cklang.ir.round_trip import expect_round_trip
from cklang.ir.verifier import verify
from cklang.reference.evaluate import evaluate
from cklang.runtime.ir_program import IrProgram
from cklang.runtime.op import Op
from cklang.testing.strategies import arrays
from tests.support.algorithms import EIGHT_BITS, WIDE
from tests.support.arrays import drawn, mnk
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.instructions import instructions
from tests.support.typed import instance, only

B, M, N, K = ck.dims("B M N K")
TALL = replace(WIDE, tile=(64, 128, 32))
"""A tile of whole groups of 128 columns, in passes of 32."""


@ck.op
def plain(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.fp8_fnuz[M, N]:
    return ck.silu(x @ w.T + bias).to(ck.fp8_fnuz)


@ck.op
def by_group(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]
) -> tuple[ck.fp8_fnuz[M, N], ck.f32[M, N / 128]]:
    y = ck.silu(x @ w.T + bias).reshape(M, N // 128, 128)
    scale = ck.maximum(ck.max(ck.abs(y), axis=-1), 1e-6) / 240.0
    return (y / scale[..., None]).to(ck.fp8_fnuz).reshape(M, N), scale


@ck.op
def by_token(x: ck.f16[M, K], w: ck.f16[256, K]) -> tuple[ck.i8[M, 256], ck.f32[M, 1]]:
    y = x @ w.T
    scale = ck.max(ck.abs(y), axis=-1, keepdims=True) / 127.0
    return ck.round(y / (scale + 1e-6)).to(ck.i8), scale


@ck.op
def mx(x: ck.bf16[M, K], w: ck.bf16[N, K]) -> tuple[ck.fp8[M, N], ck.i8[M, N / 32]]:
    """The scale is the byte of an e8m0: 127 and the exponent, as two's complement."""
    y = (x @ w.T).reshape(M, N // 32, 32)
    exponent = ck.clamp(ck.floor(ck.log2(ck.max(ck.abs(y), axis=-1))) - 8.0, -127.0, 127.0)
    q = (y * ck.exp2(-exponent)[..., None]).to(ck.fp8).reshape(M, N)
    byte = exponent + 127.0
    return q, ck.where(byte > 127.0, byte - 256.0, byte).to(ck.i8)


@ck.op
def between(
    x: ck.fp8_fnuz[B, M, K],
    w: ck.fp8_fnuz[N, K],
    sx: ck.f32[B, M, K / 128],
    sw: ck.f32[N / 128, K / 128],
) -> tuple[ck.fp8_fnuz[B, M, N], ck.f32[B, M, N / 128]]:
    """A layer in fp8 between two others: scaled products, of which the next one is made."""
    y = ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T).reshape(B, M, N // 128, 128)
    scale = ck.max(ck.abs(y), axis=-1, keepdims=True) / 240.0
    return (y / scale).to(ck.fp8_fnuz).reshape(B, M, N), scale.reshape(B, M, N // 128)


OPS = (by_group, by_token, mx, between)


def options(function: Function) -> list[Alternative]:
    """Return the alternatives in which a product's kernel quantises."""
    known = alternatives_of(function, plan_of(function))
    return [each for each in known if each.rewriting is with_group_results]


def in_epilogue(op: Op) -> Op:
    """Return the op whose product's kernel quantises, whatever is predicted for it."""
    function = op.program.specialise()
    (option,) = options(function)
    return Op(IrProgram(ir=alternative_program(function, [option])))


def sizes(m: int, groups: int, k: int) -> dict[str, int]:
    """Return the extents of a call, N in groups of 128."""
    return {**mnk(m, 128 * groups, k), "B": 2}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.program.name)
def test_one_kernel_and_the_same_meaning(op: Op) -> None:
    own = in_epilogue(op)
    function = own.program.specialise()
    verify(function)
    expect_round_trip(function)
    plan = plan_of(function)
    (kernel,) = (instance(FusedGemm, each) for each in plan.kernels)
    assert kernel.group == {by_token: 256, mx: 32}.get(op, 128)
    assert f"of {kernel.group} columns" in explain(plan)
    args = drawn(op, sizes(3, 2, 128))
    for got, want in zip(
        evaluate(function, args), evaluate(op.program.specialise(), args), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_a_large_product_quantises_and_a_small_one_stores() -> None:
    few, many = (drawn(by_group, sizes(*each)) for each in ((70, 2, 8), (8192, 32, 8)))
    small, large = (by_group.fusion(*each) for each in (few, many))
    assert [each.family for each in small.kernels] == ["gemm", "rowwise"]
    assert [each.family for each in large.kernels] == ["gemm"]
    (note,) = [each for each in large.notes if "predicted" in each]
    assert note.endswith("it is not")
    # Neither the product in f32 nor a copy of it: operands, codes and a scale for 128 of them.
    stored = 8192 * 4096 + 4 * 8192 * 32
    least = sum(each.nbytes for each in many) + stored
    assert by_group.summary(*many, device="emu:gfx942").bytes == least


def test_what_is_no_quantisation_of_groups_is_none() -> None:
    @ck.op
    def two(x: ck.f16[M, K], w: ck.f16[N, K]) -> tuple[ck.f16[M, N], ck.f32[M, N / 128]]:
        y = (x @ w.T).reshape(M, N // 128, 128)
        spread = ck.max(y, axis=-1) - ck.min(y, axis=-1)
        return (y / spread[..., None]).to(ck.f16).reshape(M, N), spread

    @ck.op
    def odd(x: ck.f16[M, K], w: ck.f16[N, K]) -> tuple[ck.f16[M, N], ck.f32[M, N / 48]]:
        y = (x @ w.T).reshape(M, N // 48, 48)
        scale = ck.max(y, axis=-1)
        return (y / scale[..., None]).to(ck.f16).reshape(M, N), scale

    @ck.op
    def weighted(
        x: ck.f16[M, K], w: ck.f16[N, K], extra: ck.f32[M, N / 128]
    ) -> tuple[ck.f16[M, N], ck.f32[M, N / 128]]:
        y = (x @ w.T).reshape(M, N // 128, 128)
        scale = ck.max(y, axis=-1) * extra
        return (y / scale[..., None]).to(ck.f16).reshape(M, N), scale

    @ck.op
    def stored(x: ck.f32[M, N]) -> tuple[ck.f16[M, N], ck.f32[M, N / 128]]:
        y = x.reshape(M, N // 128, 128)
        scale = ck.max(y, axis=-1)
        return (y / scale[..., None]).to(ck.f16).reshape(M, N), scale

    for op in (two, odd, weighted, stored):
        function = op.program.specialise()
        assert not options(function)


def test_the_largest_of_a_group_is_stored_with_what_it_scales() -> None:
    function = parse_function("""
        func @f(%x: f16[8, 8], %w: f16[8, 32]) -> f16[8, 32] {
          %y: f32[8, 32] = gemm(%x, %w)
          %peak: f32[8, 32] = block_peak(%y) {columns = 32}
          %e: f16[8, 32] = cast(%peak) {to = f16}
          return %e
        }""")
    with expect_error("X030", kind=CkUnsupportedError):
        plan_of(function)


def test_the_rule_and_the_key() -> None:
    problem = only(Problem, in_epilogue(by_group).problems(*drawn(by_group, sizes(10, 3, 8))))
    assert [each.kind.group for each in problem.d] == [0, 128]
    assert problem.d[1].span == 30
    assert not ck.dispatch.advise(replace(TALL, vector_d=(8, 1)), problem.signature, "gfx942")
    (narrow,) = ck.dispatch.advise(replace(WIDE, vector_d=(8, 1)), problem.signature, "gfx942")
    assert narrow.rule == "groups"
    (band, _), *rest = bands_of(problem)
    assert band == problem
    assert not rest


@pytest.mark.usefixtures("compiler")
def test_every_extent_within_its_bound(covered: Covered) -> None:
    op = in_epilogue(by_group).using(replace(TALL, vector_d=(8, 1)))
    for shape in ((70, 3, 96), (1, 1, 8), (129, 2, 40), (5, 5, 64)):
        check(op, drawn(by_group, sizes(*shape)))
    (launch,) = launches(op)
    assert launch.resources.spills == 0
    covered("result quantised by group: 128 columns", "f16", "gfx942")

    @settings(max_examples=12, deadline=None)
    @given(st.data(), st.integers(1, 130), st.integers(1, 3), st.integers(1, 12))
    def drawn_values(data: st.DataObject, m: int, groups: int, k: int) -> None:
        n, k = 128 * groups, 8 * k
        args = [data.draw(arrays(ck.f16, shape)) for shape in ((m, k), (n, k), (n,))]
        # The draw has infinities and huge numbers, beside which a sum may be anything.
        check(op, args, unchecked=1)

    drawn_values()


@pytest.mark.usefixtures("compiler")
def test_places_that_the_caller_gives() -> None:
    op = in_epilogue(by_group).using(replace(TALL, vector_d=(8, 1)))
    args = drawn(by_group, sizes(70, 3, 64))
    codes = np.zeros((70, 512), ck.fp8_fnuz.numpy)[:, :384]
    scales = np.full((3, 70), -1.0, np.float32)
    check(op, args, out=(codes, scales.T))
    assert (scales > 0).all()


@pytest.mark.usefixtures("compiler")
def test_the_main_loop_is_that_of_a_plain_product() -> None:
    args = drawn(by_group, sizes(256, 4, 128))
    ops = (
        plain.using(replace(TALL, vector_d=(8,))),
        in_epilogue(by_group).using(replace(TALL, vector_d=(8, 1))),
    )
    counted = []
    for op in ops:
        check(op, args)
        (launch,) = launches(op)
        assert launch.resources.spills == 0
        counted.append((instructions(launch), launch.resources.lds_bytes))
    assert counted[0] == counted[1]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("op", "what", "gpu", "algorithm"),
    [
        (
            by_token,
            "a token",
            "gfx942",
            replace(TALL, tile=(64, 256, 32), warps=(1, 4, 1), vector_d=(1,)),
        ),
        (mx, "MX", "gfx950", replace(WIDE, vector_d=(1,))),
        (
            between,
            "scaled product",
            "gfx942",
            replace(EIGHT_BITS, tile=(64, 128, 64), vector_e=8, vector_d=(1,)),
        ),
    ],
    ids=["by_token", "mx", "between"],
)
def test_tokens_mx_and_scaled_products(
    op: Op, what: str, gpu: str, algorithm: ck.dispatch.Algorithm, covered: Covered
) -> None:
    types = quantises(op, gpu, algorithm, (70, 2, 128), (1, 1, 256), (33, 3, 384))
    covered(f"result quantised by group: {what}", types, gpu)


@ck.op
def ocp(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]
) -> tuple[ck.fp8[M, N], ck.f32[M, N / 128]]:
    y = ck.relu(x @ w.T + bias).reshape(M, N // 128, 128)
    scale = ck.maximum(ck.max(y, axis=-1), 1e-6) / 448.0
    return (y / scale[..., None]).to(ck.fp8).reshape(M, N), scale


@ck.op
def of_bytes(
    x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]
) -> tuple[ck.i8[M, N], ck.f32[M, N / 128]]:
    y = ck.relu(x @ w.T + bias).reshape(M, N // 128, 128)
    scale = ck.maximum(ck.max(y, axis=-1), 1e-6) / 127.0
    return ck.round(y / scale[..., None]).to(ck.i8).reshape(M, N), scale


@ck.op
def mx_fnuz(x: ck.bf16[M, K], w: ck.bf16[N, K]) -> tuple[ck.fp8_fnuz[M, N], ck.i8[M, N / 32]]:
    """The largest number of this encoding is 240."""
    y = (x @ w.T).reshape(M, N // 32, 32)
    exponent = ck.clamp(ck.floor(ck.log2(ck.max(ck.abs(y), axis=-1))) - 6.0, -127.0, 127.0)
    q = (y * ck.exp2(-exponent)[..., None]).to(ck.fp8_fnuz).reshape(M, N)
    byte = exponent + 127.0
    return q, ck.where(byte > 127.0, byte - 256.0, byte).to(ck.i8)


@ck.op
def between_ocp(
    x: ck.fp8[B, M, K], w: ck.fp8[N, K], sx: ck.f32[B, M, K / 128], sw: ck.f32[N / 128, K / 128]
) -> tuple[ck.fp8[B, M, N], ck.f32[B, M, N / 128]]:
    y = ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T).reshape(B, M, N // 128, 128)
    scale = ck.max(ck.abs(y), axis=-1, keepdims=True) / 448.0
    return (y / scale).to(ck.fp8).reshape(B, M, N), scale.reshape(B, M, N // 128)


def quantises(
    op: Op, gpu: str, algorithm: ck.dispatch.Algorithm, *shapes: tuple[int, int, int]
) -> str:
    """Check a kernel that quantises, and return the type that it multiplies."""
    own = in_epilogue(op).using(algorithm)
    for shape in shapes:
        check(own, drawn(op, sizes(*shape)), gpu)
    (launch,) = launches(own)
    assert launch.resources.spills == 0
    return f"{launch.key.signature.dtype_a.family}"


@pytest.mark.usefixtures("compiler")
def test_waves_of_32_lanes(covered: Covered) -> None:
    quantises(ocp, "gfx1201", GROUPS_OF_WMMA, (70, 3, 96), (1, 1, 8))
    covered("result quantised by group: 128 columns", "f16", "gfx1201")


GROUPS_OF_WMMA = replace(TALL, warps=(2, 4, 1), vector_d=(8, 1))
GROUPS = replace(TALL, vector_d=(8, 1))
TOKENS = replace(TALL, tile=(64, 256, 32), warps=(1, 4, 1), vector_d=(1,))
TOKENS_OF_WMMA = replace(TOKENS, warps=(1, 8, 1))
BYTES = replace(EIGHT_BITS, tile=(64, 128, 64), vector_e=8, vector_d=(1,))
ELSEWHERE = [
    (of_bytes, "128 columns", "gfx90a", GROUPS),
    (ocp, "128 columns", "gfx950", GROUPS),
    (of_bytes, "128 columns", "gfx1100", GROUPS_OF_WMMA),
    (by_token, "a token", "gfx90a", TOKENS),
    (by_token, "a token", "gfx950", TOKENS),
    (by_token, "a token", "gfx1100", TOKENS_OF_WMMA),
    (by_token, "a token", "gfx1201", TOKENS_OF_WMMA),
    (mx_fnuz, "MX", "gfx942", replace(WIDE, vector_d=(1,))),
    (mx, "MX", "gfx1201", replace(WIDE, warps=(4, 2, 1), vector_d=(1,))),
    (between_ocp, "scaled product", "gfx950", BYTES),
    (
        between_ocp,
        "scaled product",
        "gfx1201",
        replace(BYTES, warps=(2, 4, 1), warp_tile=(16, 16, 16), vector_a=8, vector_b=8),
    ),
]


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("op", "what", "gpu", "algorithm"), ELSEWHERE, ids=lambda each: getattr(each, "name", None)
)
def test_other_gpus(
    op: Op, what: str, gpu: str, algorithm: ck.dispatch.Algorithm, covered: Covered
) -> None:
    types = quantises(op, gpu, algorithm, (70, 2, 128), (33, 3, 384))
    covered(f"result quantised by group: {what}", types, gpu)


@pytest.mark.parametrize(("op", "what", "gpu", "algorithm"), ELSEWHERE)
def test_kernels_of_other_gpus_are_legal(
    op: Op, what: str, gpu: str, algorithm: ck.dispatch.Algorithm
) -> None:
    args = drawn(op, sizes(70, 2, 128))
    text = in_epilogue(op).using(algorithm).explain(*args, device=f"emu:{gpu}")
    assert "the algorithm you named" in text
