# SPDX-License-Identifier: MIT
"""Ops whose kernels are of several families: random programs of products, convolutions, attentions.

A value is f16[N, H, W, C]: rows of a product, the pixels of images or, in attention, heads of
sequences. So each step of a program may be of any family.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.runtime.op import Op
from tests.support.algorithms import ATTENTION, DEEP, narrow
from tests.support.arrays import drawn
from tests.support.checks import check, launches
from tests.support.typed import last
from tests.support.written_ops import written_op

pytestmark = pytest.mark.usefixtures("stencils")

DIMS = "N H W C"
N, H, W, C = ck.dims(DIMS)
ALGORITHMS = {
    "gemm": narrow(2, warp_tile=DEEP),
    "conv": narrow(2, warp_tile=DEEP),
    "attention": ATTENTION,
}
HEADER = """\
@ck.op
def f(
    x: ck.f16[N, H, W, C], y: ck.f16[N, H, W, C], w0: ck.f16[C, C], w1: ck.f16[C, C],
    point: ck.f16[C, 1, 1, C], window: ck.f16[C, 3, 3, C], bias: ck.f16[C],
) -> {result}:
"""
STEPS = (
    "({0} @ {weight}.T + bias) + {1}",
    "ck.relu({0} @ {weight}.T + bias) * {1}",
    "ck.conv({0}, point) + bias + {1}",
    "ck.tanh(ck.conv({0}, window, padding=1) + bias) - {1}",
    "ck.attention({0}, {1}, {2}, mask=ck.causal())",
    "{0} - ck.attention({1}, {2}, {0}, mask=ck.causal())",
)
FAMILY = ("gemm", "gemm", "conv", "conv", "attention", "attention")
"""Of each step."""


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draw the text of an op and the families of its kernels, in their order."""
    values, lines, families = ["x", "y"], [], []
    for number in range(draw(st.integers(2, 5))):
        step = draw(st.integers(0, len(STEPS) - 1))
        # The newest value first, so that most programs are one chain with branches.
        operands = [values[-1], *(draw(st.sampled_from(values)) for _ in range(2))]
        weight = draw(st.sampled_from(["w0", "w1"]))
        lines.append(f"v{number} = ({STEPS[step].format(*operands, weight=weight)}).to(ck.f16)")
        values.append(f"v{number}")
        families.append(FAMILY[step])
    results = draw(st.lists(st.sampled_from(values[2:-1]), unique=True, max_size=1))
    results = [*results, values[-1]]
    dead = _dead(lines, results)
    body = [line for number, line in enumerate(lines) if number not in dead]
    shape = "ck.f16[N, H, W, C]"
    annotation = shape if len(results) == 1 else f"tuple[{', '.join([shape] * len(results))}]"
    text = HEADER.format(result=annotation) + "".join(f"    {line}\n" for line in body)
    text += f"    return {', '.join(results)}\n"
    return text, [each for number, each in enumerate(families) if number not in dead]


def _dead(lines: list[str], results: list[str]) -> set[int]:
    """Return the numbers of lines whose value nothing needs."""
    needed = set(results)
    for line in reversed(lines):
        name, _, value = line.partition(" = ")
        if name in needed:
            needed |= {each for each in (f"v{i}" for i in range(len(lines))) if each in value}
    return {number for number in range(len(lines)) if f"v{number}" not in needed}


def pinned(text: str, families: list[str]) -> Op:
    """Return the op, with the algorithm of each family that all programs share."""
    op = written_op(text, DIMS)
    for family in dict.fromkeys(families):
        op = op.using(ALGORITHMS[family])
    return op


def arguments(op: Op, n: int, h: int, w: int, c: int) -> list[Any]:
    """Return small numbers: weights keep the size of a value, so that chains do not overflow."""
    args = drawn(op, {"N": n, "H": h, "W": w, "C": c})
    return [(each / 8).astype(np.float16) for each in args]


@settings(max_examples=10, deadline=None)
@given(
    program=programs(),
    sizes=st.tuples(
        st.integers(1, 2), st.integers(1, 3), st.integers(1, 90), st.sampled_from([8, 40, 64])
    ),
)
def test_any_program_of_three_families(
    program: tuple[str, list[str]], sizes: tuple[int, int, int, int]
) -> None:
    text, families = program
    op = pinned(text, families)
    check(op, arguments(op, *sizes))
    assert [each.key.family for each in launches(op)] == families


@ck.op
def block(
    x: ck.f16[N, H, W, C], wq: ck.f16[C, C], wk: ck.f16[C, C], wo: ck.f16[C, C], bias: ck.f16[C]
) -> ck.f16[N, H, W, C]:
    q, k = (x @ wq.T + bias + x).to(ck.f16), (x @ wk.T + bias + x).to(ck.f16)
    o = ck.attention(q, k, k, mask=ck.causal()).to(ck.f16)
    return o @ wo.T + bias + x


def test_intermediate_results_share_a_workspace_by_their_lifetimes() -> None:
    op = block.using(ALGORITHMS["gemm"]).using(ATTENTION)
    args = arguments(op, 1, 2, 64, 64)
    check(op, args)
    assert [each.key.family for each in launches(op)] == ["gemm", "gemm", "attention", "gemm"]
    value = 2 * 64 * 64 * 2
    # q and k live until the attention, o from there to the end: three at once, and no more.
    assert last(op).workspace_bytes == 3 * value


def test_a_call_with_torch_is_the_block_by_torch(torch: Any) -> None:
    op = block.using(ALGORITHMS["gemm"]).using(ATTENTION)
    x, wq, wk, wo, bias = (torch.tensor(each) for each in arguments(op, 2, 1, 70, 64))
    y = op(x, wq, wk, wo, bias, device="emu:gfx942")
    linear, double = torch.nn.functional.linear, torch.float64

    def projected(w: Any) -> Any:
        return (linear(x.to(double), w.to(double), bias.to(double)) + x).half().to(double)

    q, k = projected(wq), projected(wk)
    o = torch.nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True)
    want = linear(o.half().to(double), wo.to(double), bias.to(double)) + x
    assert y.dtype is torch.float16
    assert torch.allclose(y.to(double), want, rtol=2**-10, atol=2**-10)


def test_calls_that_repeat_launch_the_same_kernels_in_the_same_workspace() -> None:
    op = block.using(ALGORITHMS["gemm"]).using(ATTENTION)
    args = arguments(op, 1, 1, 33, 40)
    first = op(*args, device="emu:gfx942")
    keys = [each.key for each in launches(op)]
    assert np.array_equal(op(*args, device="emu:gfx942"), first)
    assert [each.key for each in launches(op)] == keys
