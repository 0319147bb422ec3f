# SPDX-License-Identifier: MIT
"""An attention block with several heads as one op: products over heads, attention, the output."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.families.gemm.problem import Problem
from cklang.runtime.op import Op
from tests.support.algorithms import ATTENTION, DEEP, narrow
from tests.support.arrays import drawn
from tests.support.checks import check, launches
from tests.support.typed import instance, last

pytestmark = pytest.mark.usefixtures("stencils")

B, S, E, H, D = ck.dims("B S E H D")


@ck.op
def block(
    x: ck.f16[B, S, E],
    wq: ck.f16[H, D, E],
    wk: ck.f16[H, D, E],
    wv: ck.f16[H, D, E],
    wo: ck.f16[E, H, D],
) -> ck.f16[B, S, E]:
    q = ck.einsum("bse,hde->bhsd", x, wq).to(ck.f16)
    k = ck.einsum("bse,hde->bhsd", x, wk).to(ck.f16)
    v = ck.einsum("bse,hde->bhsd", x, wv).to(ck.f16)
    o = ck.attention(q, k, v, mask=ck.causal()).to(ck.f16)
    return ck.einsum("bhsd,ehd->bse", o, wo)


BLOCK = block.using(narrow(warp_tile=DEEP)).using(ATTENTION)


def arguments(op: Op, b: int, s: int, e: int, h: int, d: int) -> list[Any]:
    """Return numbers with which values of the block stay near 1."""
    args = drawn(op, {"B": b, "S": s, "E": e, "H": h, "D": d})
    return [args[0], *((each / 8).astype(np.float16) for each in args[1:])]


def products(op: Op, *args: Any) -> list[Problem]:
    """Return the products of a call that is planned."""
    choices = op._choices(args, {}, None, "emu:gfx942")
    problems = [choice.selection.problem for choice in choices]
    assert not any(choice.before for choice in choices)
    return [each for each in problems if isinstance(each, Problem)]


def test_every_product_is_one_without_a_copy() -> None:
    *projected, output = products(block, *arguments(block, 2, 70, 40, 3, 64))
    for each in projected:
        assert (each.batch, each.m, each.n, each.k) == ((), 140, 192, 40)
    assert (output.batch, output.m, output.n, output.k) == ((), 140, 40, 192)


@pytest.mark.parametrize("shape", [(2, 70, 40, 3, 64), (1, 33, 64, 2, 40), (3, 1, 24, 1, 64)])
def test_it_is_right(shape: tuple[int, ...]) -> None:
    check(BLOCK, arguments(BLOCK, *shape))
    assert [each.key.family for each in launches(BLOCK)] == [*["gemm"] * 3, "attention", "gemm"]


def test_it_is_the_block_by_torch(torch: Any) -> None:
    b, s, e, h, d = 2, 70, 64, 3, 40
    x, wq, wk, wv, wo = (torch.tensor(each) for each in arguments(BLOCK, b, s, e, h, d))
    y = BLOCK(x, wq, wk, wv, wo, device="emu:gfx942")
    linear, double = torch.nn.functional.linear, torch.float64

    def heads(w: Any) -> Any:
        projected = linear(x.to(double), w.to(double).reshape(h * d, e))
        return projected.half().to(double).reshape(b, s, h, d).transpose(1, 2)

    o = torch.nn.functional.scaled_dot_product_attention(
        heads(wq), heads(wk), heads(wv), is_causal=True
    )
    rows = o.half().to(double).transpose(1, 2).reshape(b, s, h * d)
    want = linear(rows, wo.to(double).reshape(e, h * d))
    assert y.dtype is torch.float16
    assert torch.allclose(y.to(double), want, rtol=2**-9, atol=2**-9)


def test_what_the_caller_takes_is_in_the_order_of_the_program() -> None:
    @ck.op
    def with_o(
        q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], wo: ck.f16[E, H, D]
    ) -> tuple[ck.f16[B, S, E], ck.f16[B, H, S, D]]:
        o = ck.attention(q, k, k, mask=ck.causal()).to(ck.f16)
        return ck.einsum("bhsd,ehd->bse", o, wo), o

    op = with_o.using(narrow(warp_tile=DEEP)).using(ATTENTION)
    args = drawn(op, {"B": 2, "S": 35, "E": 9, "H": 3, "D": 64})
    args[2] = (args[2] / 8).astype(np.float16)
    y, o = check(op, args)
    assert o.flags.c_contiguous
    # o is a result, so memory has it as the program says: a copy puts the heads into rows.
    families = [each.key.family for each in launches(op)]
    assert families == ["attention", "layout_copy", "gemm"]
    assert last(op).workspace_bytes >= o.nbytes
    assert instance(Problem, launches(op)[-1].problem).k == 3 * 64
    assert y.shape == (2, 35, 9)
