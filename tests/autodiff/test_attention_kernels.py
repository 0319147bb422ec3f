# SPDX-License-Identifier: MIT
"""Gradients of attention within programs: by CK Tile's backward kernels, or why not."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.runtime.op import Op
from tests.support.checks import check
from tests.support.written_ops import expression_op

B, H, G, S, T = ck.dims("B H G S T")


@ck.op
def attend(
    q: ck.f16[B, S, H, 64], k: ck.f16[B, T, G, 64], v: ck.f16[B, G, 64, T]
) -> ck.f16[B, S, H, 64]:
    o = ck.attention(
        q.transpose(0, 2, 1, 3), k.transpose(0, 2, 1, 3), v.transpose(0, 1, 3, 2), mask=ck.causal()
    )
    return o.transpose(0, 2, 1, 3)


def operands(b: int, s: int, t: int) -> list[Any]:
    """Return q, k, v and dy of four heads on two."""
    rng = np.random.default_rng(s)
    shapes = (b, s, 4, 64), (b, t, 2, 64), (b, 2, 64, t), (b, s, 4, 64)
    return [rng.standard_normal(shape).astype("e") for shape in shapes]


def by_torch(q: Any, k: Any, v: Any, dy: Any) -> tuple[Any, ...]:
    """Return the gradients by torch in float64."""
    import torch

    sides = [torch.tensor(x.astype("d"), requires_grad=True) for x in (q, k, v)]
    queries, keys = (x.permute(0, 2, 1, 3) for x in sides[:2])
    keys, values = (x.repeat_interleave(2, 1) for x in (keys, sides[2].mT))
    scores = queries @ keys.mT / 8
    hidden = torch.ones(scores.shape[-2:]).tril() == 0
    o = torch.softmax(scores.masked_fill(hidden, -torch.inf), -1) @ values
    return torch.autograd.grad(o.permute(0, 2, 1, 3), sides, torch.tensor(dy.astype("d")))


@pytest.mark.usefixtures("compiler", "torch")
@pytest.mark.parametrize("sizes", [(2, 33, 70), (1, 40, 3)])
def test_gradients_of_any_layout_follow_torch(sizes: tuple[int, int, int]) -> None:
    arrays = operands(*sizes)
    for mine, theirs in zip(check(ck.vjp(attend), arrays), by_torch(*arrays), strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs.numpy(), atol=0.01)


@pytest.mark.usefixtures("compiler")
def test_gradients_without_queries_are_zero() -> None:
    dq, dk, dv = ck.vjp(attend)(*operands(1, 0, 5))
    assert (dq.size, dk.shape, dv.shape) == (0, (1, 5, 2, 64), (1, 2, 64, 5))
    assert not np.any(dk)
    assert not np.any(dv)


def test_one_kernel_gives_all_gradients_and_writes_them_in_their_own_layout() -> None:
    plan = ck.vjp(attend).fusion(*operands(2, 33, 70))
    forward, sums, gradient, copy = plan.kernels
    families = [each.family for each in plan.kernels]
    assert families == ["attention", "rowwise", "attention_backward", "rowwise"]
    assert len(forward.results) == 2, "o and the log-sum-exps"
    assert {value.type.rank for value in sums.results} == {3}
    # The keys of v lie side by side: only its gradient is copied.
    assert [str(value.type) for value in gradient.results] == [
        "f32[B, G, T, 64]",
        "f16[B, S, H, 64]",
        "f16[B, T, G, 64]",
    ]
    assert [str(value.type) for value in copy.results] == ["f16[B, G, 64, T]"]


def written(options: str = "", params: str = "", dtype: str = "f16") -> Op:
    """Return an attention of heads of some size."""
    heads = f"ck.{dtype}[B, H, S, D]"
    signature = f"q: {heads}, k: {heads}, v: {heads}{params}"
    return expression_op(signature, heads, f"ck.attention(q, k, v{options})")


BIAS = ", bias: ck.f32[H, S, S]"
REFUSED: dict[str, tuple[Op, Any, int]] = {
    "only of one element at its indices": (
        ck.vjp(written(", score=lambda s, h, i, j: s + bias[h, i, j - i]", BIAS)),
        (np.ones((2, 5, 5), "f"),),
        64,
    ),
    "at most 128 elements, not 160": (ck.vjp(written(dtype="f32")), (), 160),
}
"""What products compute, by what the reason says: gradient, more arguments, the size of a head."""


@pytest.mark.parametrize("why", REFUSED)
def test_products_compute_what_the_kernels_do_not_take(why: str) -> None:
    op, more, size = REFUSED[why]
    x = np.ones((1, 2, 5, size), "f" if "128" in why else "e")
    plan = op.fusion(x, x, x, *more, x)
    assert not [each for each in plan.kernels if each.family == "attention_backward"]
    assert why in plan.notes[0]


NO_REASONS: dict[str, Op] = {
    "a bias without a gradient": ck.vjp(
        written(", score=lambda s, h, i, j: s + bias[h, i, j]", BIAS), wrt=("q", "k", "v")
    ),
    "what the mask alone reads": ck.vjp(
        written(", mask=lambda h, i, j: bias[h, i, j] > bias[h, j, i]", BIAS)
    ),
}


@pytest.mark.parametrize("what", NO_REASONS)
def test_what_is_no_reason(what: str) -> None:
    x = np.ones((1, 2, 5, 64), "e")
    plan = NO_REASONS[what].fusion(x, x, x, np.ones((2, 5, 5), "f"), x)
    assert [each.family for each in plan.kernels].count("attention_backward") == 1


def test_gradients_of_gradients_are_made_of_products() -> None:
    op = ck.vjp(ck.vjp(written(), wrt="q"), wrt="q")
    x = np.ones((1, 2, 5, 8), "e")
    assert {each.op for each in op.ir(x, x, x, x, x).body} >= {"gemm", "attention_lse"}
