# SPDX-License-Identifier: MIT
"""Block scales without a compiler: problems, folding of batches, keys, rules, candidates."""

import json
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cklang as ck
from cklang.arch import arch
from cklang.families import FAMILIES, key_from_json
from cklang.families.gemm.key import GemmKey, Layout, ProductKind, Scale
from cklang.families.gemm.lower import is_mx, lower
from cklang.families.gemm.problem import Problem
from cklang.fusion.functions import Functions
from cklang.selection.rules import candidates, violations
from cklang.tune.task import tasks_of
from tests.support.algorithms import EIGHT_BITS

M, N, K, G = ck.dims("M N K G")
PLAIN = Functions.parse({"epilogue": "func @epilogue(%acc: f32[]) -> f32[] {\n  return %acc\n}"})


@ck.op
def rows(x: ck.fp8[G, M, K], w: ck.fp8[N, K], s: ck.f32[G, M, K / 128]) -> ck.f32[G, M, N]:
    return ck.gemm(x, w.T, scale_a=s)


@ck.op
def blocks(x: ck.fp8[G, M, K], w: ck.fp8[N, K], s: ck.f32[G, M / 2, K / 128]) -> ck.f32[G, M, N]:
    return ck.gemm(x, w.T, scale_a=s)


@ck.op
def columns(x: ck.fp8[M, K], w: ck.fp8[G, N, K], s: ck.f32[G, N, K / 128]) -> ck.f32[G, M, N]:
    return ck.gemm(x, w.mT, scale_b=s.mT)


@ck.op
def turned(x: ck.fp8[M, K], w: ck.fp8[N, K], s: ck.f32[M / 64, K / 128]) -> ck.f32[N, M]:
    return ck.gemm(x, w.T, scale_a=s).T


@ck.op
def exponents(
    x: ck.fp8[M, K], w: ck.fp8[N, K], s: ck.e8m0[M, K / 32], t: ck.e8m0[N, K / 32]
) -> ck.f32[M, N]:
    return ck.gemm(x, w.T, scale_a=s, scale_b=t.T)


@ck.op
def integers(x: ck.i8[M, K], w: ck.i8[N, K], s: ck.f32[M, K / 128]) -> ck.f32[M, N]:
    return ck.gemm(x, w.T, scale_a=s)


def problem(op: Any, *args: Any) -> Problem:
    (task,) = tasks_of(op, args)
    return task.problem


def matrix(*shape: int) -> Any:
    return np.zeros(shape, ml_dtypes.float8_e4m3fn)


def scale(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def test_a_batch_becomes_rows_where_every_row_has_its_own_scales() -> None:
    gemm = problem(rows, matrix(3, 16, 300), matrix(8, 300), scale(3, 16, 3))
    assert (gemm.kind, gemm.m, gemm.batch) == (ProductKind.GEMM, 48, ())
    assert gemm.scale_a is not None
    assert gemm.scale_b is None
    assert (gemm.scale_a.stride, gemm.scale_a.stride_k, gemm.scale_a.span) == (3, 1, 144)
    assert gemm.signature.scale_a == Scale(dtype=ck.f32, block=(1, 128))
    # One row each: the rows are the batch, a step of which is a step of the scale.
    gemm = problem(rows, matrix(3, 1, 300), matrix(8, 300), scale(3, 1, 3))
    assert gemm.scale_a is not None
    assert (gemm.m, gemm.scale_a.stride) == (3, 3)


def test_a_batch_stays_one_where_scales_are_shared_or_do_not_go_on() -> None:
    gemm = problem(blocks, matrix(3, 16, 300), matrix(8, 300), scale(3, 8, 3))
    assert (gemm.kind, gemm.batch, gemm.m) == (ProductKind.BATCHED, (3,), 16)
    assert gemm.scale_a is not None
    assert (gemm.scale_a.batch, gemm.scale_a.stride, gemm.scale_a.block) == ((24,), 3, (2, 128))
    gaps = scale(3, 20, 3)[:, :16]
    assert problem(rows, matrix(3, 16, 300), matrix(8, 300), gaps).batch == (3,)
    # The scales of w change along the batch: it is no batch of columns, whose result would not
    # be contiguous, and no batch of rows either.
    gemm = problem(columns, matrix(16, 300), matrix(3, 8, 300), scale(3, 8, 3))
    assert gemm.scale_b is not None
    assert (gemm.batch, gemm.scale_b.batch, gemm.scale_b.block) == ((3,), (24,), (1, 128))
    assert problem(columns, matrix(1, 300), matrix(3, 8, 300), scale(3, 8, 3)).n == 24


def test_the_transpose_exchanges_scales() -> None:
    gemm = problem(turned, matrix(100, 300), matrix(8, 300), scale(2, 3))
    assert gemm.scale_a is None
    assert gemm.scale_b is not None
    assert (gemm.m, gemm.n, gemm.scale_b.block) == (8, 100, (64, 128))
    assert (gemm.scale_b.stride, gemm.scale_b.stride_k) == (3, 1)


def test_keys_know_scales() -> None:
    gemm = problem(rows, matrix(3, 16, 300), matrix(8, 300), scale(3, 16, 3))
    chosen = candidates(gemm.signature, "gfx950")[0]
    key = GemmKey(gemm.signature, chosen, "gfx950")
    assert key_from_json(json.loads(json.dumps(key.to_json()))) == key
    other = replace(gemm.signature, scale_a=Scale(dtype=ck.f32, block=(1, 64)))
    assert GemmKey(other, chosen, "gfx950").digest != key.digest
    assert "s1x128" in key.label
    assert "A scaled by f32 for 1x128" in gemm.signature.words


def test_problems_without_arrays_have_scales() -> None:
    block, weights = Scale(dtype=ck.f32, block=(1, 128)), Scale(dtype=ck.f32, block=(128, 128))
    gemm = ck.dispatch.problem(48, 200, 300, a=ck.fp8, e=ck.f32, scale_a=block, scale_b=weights)
    assert (gemm.scale_a, gemm.scale_b) != (None, None)
    from_arrays = problem(rows, matrix(1, 48, 300), matrix(200, 300), scale(1, 48, 3))
    assert gemm.signature.scale_a == from_arrays.signature.scale_a
    assert gemm.scales[0].span == from_arrays.scales[0].span == 144
    assert (gemm.scales[1].span, gemm.scales[1].stride) == (6, 3)
    chosen = ck.dispatch.select(gemm, arch="gfx950")
    assert 128 % chosen.key.algorithm.tile[2] == 0
    assert "B scaled by f32 for 128x128" in chosen.key.signature.words


@pytest.mark.parametrize("gpu", ["gfx942", "gfx950"])
def test_candidates(gpu: str) -> None:
    arrays = [matrix(64, 64), matrix(64, 64)]
    arrays += [np.zeros((64, 2), np.uint8).view(ck.e8m0.numpy) for _ in range(2)]
    signature = problem(exponents, *arrays).signature
    if gpu == "gfx942":
        signature = replace(signature, dtype_a=ck.fp8_fnuz, dtype_b=ck.fp8_fnuz)
    algorithms = candidates(signature, gpu)
    assert algorithms
    assert {is_mx(signature, each) for each in algorithms} == (
        {True, False} if gpu == "gfx950" else {False}
    )
    assert all(is_mx(signature, each) or 32 % each.tile[2] == 0 for each in algorithms)
    plain = replace(signature, scale_a=None, scale_b=None)
    assert all(each.tile[2] >= 64 for each in candidates(plain, gpu))


@pytest.mark.parametrize("gpu", ["gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_sums_of_integers_are_i32_until_a_block_ends(gpu: str) -> None:
    x, w = (np.zeros((64, 256), np.int8) for _ in range(2))
    signature = problem(integers, x, w, np.zeros((64, 2), np.float32)).signature
    assert (signature.dtype_acc, signature.multiplied) == (ck.f32, ("i8", "i8", "i32"))
    chosen = candidates(signature, gpu)
    assert chosen
    # An epilogue that takes i32 would truncate what the scales make.
    wrong = replace(signature, dtype_acc=ck.i32)
    assert "generated" in {each.rule for each in violations(chosen[0], wrong, arch(gpu))}
    source = lower(GemmKey(signature, chosen[0], gpu), PLAIN).stencil
    assert "OfIntegers<cklang::F32Scale>, 1, 128>" in source
    assert "using AccType = float;" in source
    key = json.loads('{"dtype_a": "i8", "scale_a": {"dtype": "f32", "block": [1, 128]}}')
    assert FAMILIES["gemm"].spelling.usual(key)["dtype_acc"] == "f32"


def test_rules() -> None:
    arrays = [matrix(64, 64), matrix(64, 64)]
    arrays += [np.zeros((64, 2), np.uint8).view(ck.e8m0.numpy) for _ in range(2)]
    signature = problem(exponents, *arrays).signature
    spec = arch("gfx950")
    mx = replace(EIGHT_BITS, tile=(64, 64, 128), warp_tile=(16, 16, 128), vector_e=4)
    assert not list(violations(mx, signature, spec))
    for change, rule in (
        ({"transpose_c": True}, "scale-mx"),
        ({"pipeline": "mem"}, "generated"),
        ({"warp_tile": (16, 16, 32)}, "scale-k"),
    ):
        ids = {each.rule for each in violations(replace(mx, **change), signature, spec)}
        assert rule in ids
    other = replace(signature, layout_a=Layout.COL)
    assert "scale-mx" in {each.rule for each in violations(mx, other, spec)}
    # Scales of another block are applied to sums, whatever the instruction.
    wide = replace(signature, scale_a=Scale(dtype=ck.f32, block=(1, 128)), scale_b=None)
    assert not list(violations(mx, wide, spec))
    assert not is_mx(wide, mx)


def test_blocks_that_no_tile_divides_are_refused_by_name() -> None:
    odd = ck.dispatch.problem(64, 64, 200, a=ck.fp8, scale_a=Scale(dtype=ck.f32, block=(1, 100)))
    with pytest.raises(ck.CkError, match="K102") as refusal:
        ck.dispatch.select(odd, arch="gfx950")
    assert "scale-block: the block along K of the scales is 100" in str(refusal.value)
    assert "must be a multiple of 16" in str(refusal.value)
    for size in (16, 48, 96):
        gemm = ck.dispatch.problem(
            64, 64, 200, a=ck.fp8, scale_a=Scale(dtype=ck.f32, block=(3, size))
        )
        assert size % ck.dispatch.select(gemm, arch="gfx950").key.algorithm.tile[2] == 0


def test_a_scale_that_is_too_large_to_address_is_refused() -> None:
    gemm = problem(rows, matrix(3, 16, 300), matrix(8, 300), scale(3, 16, 3))
    assert gemm.scale_a is not None
    chosen = candidates(gemm.signature, "gfx950")[-1]
    far = replace(gemm, scale_a=replace(gemm.scale_a, span=1 << 30))
    ids = {each.rule for each in violations(chosen, far.signature, arch("gfx950"), far)}
    assert ids == {"operand-size"}
