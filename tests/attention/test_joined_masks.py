# SPDX-License-Identifier: MIT
"""Masks joined by & and |: the windows among them stay windows of the kernel."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.families.attention.masks import WindowMask, split_mask
from cklang.frontend.ops.masks import Joined
from cklang.frontend.program import Program
from cklang.ir.nodes import Function
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from tests.support.checks import check
from tests.support.errors import expect_error

B, H, G, S, T, D = ck.dims("B H G S T D")


@ck.fn
def even_blocks(i: Any, j: Any) -> Any:
    """Whether two positions lie in blocks of one parity."""
    return (i // 7) % 2 == (j // 7) % 2


EVEN_AND_CAUSAL = ck.causal("bottom_right") & even_blocks


@ck.op
def documents(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, D],
    mine: ck.i32[B, S],
    theirs: ck.i32[B, T],
) -> tuple[ck.f16[B, H, S, D], ck.f32[B, H, S]]:
    return ck.attention(
        q,
        k,
        v,
        mask=ck.causal() & (lambda b, i, j: mine[b, i] == theirs[b, j]),
        score=lambda s, i, j: s - (i - j) * 0.0625,
        return_lse=True,
    )


@ck.op
def near_documents(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, mask=even_blocks & ck.sliding_window(40) & ck.causal())


@ck.op
def from_outside(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, mask=EVEN_AND_CAUSAL)


@ck.op
def prefix(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D], lengths: ck.i32[B]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, mask=ck.causal() | (lambda b, j: j < lengths[b]))


def program_of(op: Op) -> Program:
    assert isinstance(op.program, Program)
    return op.program


def mask_of(op: Op) -> Function:
    body = program_of(op).specialise().body
    (operation,) = (each for each in body if each.op == "attention")
    mask = operation.attr("mask")
    assert isinstance(mask, Function)
    return mask


def arguments(s: int, t: int) -> list[Any]:
    rng = np.random.default_rng(s)
    q = rng.uniform(-1, 1, (2, 2, s, 64)).astype(np.float16)
    k, v = (rng.uniform(-1, 1, (2, 1, t, 64)).astype(np.float16) for _ in "kv")
    return [q, k, v]


@pytest.mark.parametrize(
    ("op", "window"),
    [(documents, WindowMask(right=0)), (from_outside, WindowMask(right=0, from_bottom_right=True))],
)
def test_the_window_is_the_kernels_and_the_function_is_the_rest(op: Op, window: WindowMask) -> None:
    kept, rest = split_mask(mask_of(op))
    assert kept == window
    assert rest is not None
    assert {each.op for each in rest.body} & {"le", "ge", "logical_and"} == set()


def test_a_second_edge_of_one_side_is_a_condition() -> None:
    kept, rest = split_mask(mask_of(near_documents))
    assert kept == WindowMask(left=40, right=0)
    assert rest is not None
    assert [each.op for each in rest.body].count("logical_and") == 1


def test_what_is_joined_by_or_is_no_window() -> None:
    kept, rest = split_mask(mask_of(prefix))
    assert kept.is_open
    assert rest == mask_of(prefix)


@pytest.mark.parametrize("op", [documents, near_documents, from_outside, prefix])
def test_numpy_and_the_reference_agree(op: Op) -> None:
    args = arguments(30, 30)
    if op is documents:
        args += [np.sort(np.arange(60).reshape(2, 30) % 3).astype(np.int32)] * 2
    if op is prefix:
        args.append(np.array([4, 17], np.int32))
    want = program_of(op).function(*args)
    got = evaluate(program_of(op).specialise(), args)
    for one, other in zip(want if isinstance(want, tuple) else (want,), got, strict=True):
        np.testing.assert_allclose(np.asarray(other, np.float64), one, atol=2e-3)


@pytest.mark.usefixtures("stencils")
def test_documents_on_an_emulated_gpu() -> None:
    rng = np.random.default_rng(3)
    ids = [np.sort(rng.integers(0, 4, (2, n))).astype(np.int32) for n in (150, 170)]
    check(documents, (*arguments(150, 170), *ids))


def test_masks_join_with_masks_and_functions_alone() -> None:
    assert isinstance(ck.causal() | ck.sliding_window(3, 3), Joined)
    with expect_error("F096"):
        ck.causal() & 3
