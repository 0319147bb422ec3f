# SPDX-License-Identifier: MIT
"""``ck.attention_grad``: gradients of ops, against the formula and against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.fusion.attention_plan import AttentionPlan
from cklang.fusion.partition import plan_of
from cklang.runtime.attention.backward import is_additive

B, H, G, S, T, D = ck.dims("B H G S T D")

Array = np.ndarray[Any, Any]


@ck.op
def distant(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, D],
    far: ck.f32[H],
) -> ck.f16[B, H, S, D]:
    return ck.attention(
        q,
        k,
        v,
        mask=lambda h, i, j: (j <= i + 60) | (h == 1),
        score=lambda s, h, i, j: s - far[h] * ck.abs((i - j).to(ck.f32)),
        dropout=0.25,
        seed=77,
        offset=3,
    )


@ck.op
def biased(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, D],
    bias: ck.f16[B, H, S, T],
) -> ck.f16[B, H, S, D]:
    return ck.attention(
        q,
        k,
        v,
        mask=lambda h, i, j: (j <= i + 60) | (h == 1),
        score=lambda s, b, h, i, j: s + bias[b, h, i, j],
        dropout=0.25,
        seed=77,
        offset=3,
    )


@ck.op
def capped(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, T, D], v: ck.f16[B, H, T, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, score=lambda s: 3.0 * ck.tanh(s / 3.0))


@ck.op
def product(q: ck.f16[S, D], k: ck.f16[T, D]) -> ck.f16[S, T]:
    return q @ k.T


def gradients(q: Array, k: Array, v: Array, added: Array, grad: Array) -> list[Array]:
    """Return dq, dk, dv and dbias in float64; arrays are [batch, head, row, element].

    ``added`` is what the score adds, of any shape that broadcasts.
    """
    from cklang.ir.philox import keep_mask

    q, k, v, grad = (x.astype(np.float64) for x in (q, k, v, grad))
    shared = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, shared, 1), np.repeat(v, shared, 1)
    scale = q.shape[3] ** -0.5
    s = scale * (q @ k.swapaxes(2, 3))
    _, h, i, j = np.ogrid[: s.shape[0], : s.shape[1], : s.shape[2], : s.shape[3]]
    s = np.where((j <= i + 60) | (h == 1), s + added, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    keep = keep_mask(s.shape, 0.25, 77, 3) / 0.75
    o = (p * keep) @ v
    dp = (grad @ v.swapaxes(2, 3)) * keep
    ds = p * (dp - (grad * o).sum(-1, keepdims=True))
    found = [scale * ds @ k, scale * ds.swapaxes(2, 3) @ q, (p * keep).swapaxes(2, 3) @ grad]
    for place in (1, 2):
        each = found[place]
        found[place] = each.reshape(each.shape[0], -1, shared, *each.shape[2:]).sum(2)
    return [*found, ds]


@pytest.mark.parametrize("shape", [(2, 70, 130, 4, 2), (1, 5, 9, 2, 2)])
def test_gradients_of_an_op(shape: tuple[int, ...], covered: Callable[..., None]) -> None:
    batch, rows, keys, heads, kv_heads = shape
    rng = np.random.default_rng(0)

    def made(length: int, count: int) -> Array:
        # Rows outside heads in memory: strides are strides.
        values = rng.uniform(-1, 1, (batch, length, count, 64)).astype(np.float16)
        return values.transpose(0, 2, 1, 3)

    q, grad = made(rows, heads), made(rows, heads)
    k, v = made(keys, kv_heads), made(keys, kv_heads)
    far = rng.uniform(0, 0.1, heads).astype(np.float32)
    found = ck.attention_grad(distant, q, k, v, far, grad=grad, device="emu:gfx942")
    assert found.bias is None
    distance = abs(np.arange(rows)[:, None] - np.arange(keys))
    want = gradients(q, k, v, -far.astype(np.float64)[:, None, None] * distance, grad)
    tolerance = 2.0**-10 * (2 + np.sqrt(rows) + np.sqrt(keys)) / 2
    for got, wanted in zip(found[:3], want, strict=False):
        assert got.dtype == np.float16
        np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=tolerance)
    covered("attention backward: functions, dropout", "f16", "gfx942")


def test_the_gradient_of_a_bias_and_one_order_of_summation(covered: Callable[..., None]) -> None:
    rng = np.random.default_rng(1)

    def made(*shape: int) -> Array:
        return rng.uniform(-1, 1, shape).astype(np.float16)

    # Keys of the last tile that only head 1 sees: the gradient of the others is zero there.
    rows, keys = 40, 300
    q, k, v = made(1, 2, rows, 64), made(1, 2, keys, 64), made(1, 2, keys, 64)
    grad, bias = made(1, 2, rows, 64), made(1, rows, 2, keys).swapaxes(1, 2)
    first, second = (
        ck.attention_grad(
            biased, q, k, v, bias, grad=grad, bias=True, deterministic=True, device="emu:gfx942"
        )
        for _ in range(2)
    )
    for once, twice in zip(first, second, strict=True):
        np.testing.assert_array_equal(once, twice)
    want = gradients(q, k, v, bias.astype(np.float64), grad)
    tolerance = 2.0**-10 * (2 + np.sqrt(rows) + np.sqrt(keys)) / 2
    for got, wanted in zip(first, want, strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=tolerance)
    assert not first.bias[0, 0, :, 100:].any()
    covered("attention backward: bias gradient, deterministic", "f16", "gfx942")


def test_biases_without_a_gradient() -> None:
    x, wide = np.ones((1, 2, 8, 64), np.float16), np.ones((1, 2, 8, 8), np.float16)
    far = np.ones(2, np.float32)
    given = {"grad": x, "bias": True, "device": "emu:gfx942"}
    with pytest.raises(CkError, match=r"G008.*but something else"):
        ck.attention_grad(distant, x, x, x, far, **given)
    with pytest.raises(CkError, match=r"G008.*strides \[128, 64, 1, 8\]"):
        ck.attention_grad(biased, x, x, x, wide.swapaxes(2, 3), **given)


def test_no_keys_give_zeros() -> None:
    q = np.ones((1, 2, 3, 64), np.float16)
    none = np.ones((1, 2, 0, 64), np.float16)
    grad = np.ones((1, 2, 3, 64), np.float16)
    far = np.ones(2, np.float32)
    found = ck.attention_grad(distant, q, none, none, far, grad=grad, device="emu:gfx942")
    assert not found.q.any()
    assert found.k.shape == none.shape


def test_refusals() -> None:
    x = np.ones((1, 8, 8, 64), np.float16)
    with pytest.raises(CkError, match="G006"):
        ck.attention_grad(capped, x, x, x, grad=x)
    with pytest.raises(CkError, match="G007"):
        ck.attention_grad(product, x[0, 0], x[0, 0], grad=x)
    far = np.ones(8, np.float32)
    with pytest.raises(CkError, match="grad"):
        ck.attention_grad(distant, x, x, x, far, grad=x[:, :, :2], device="emu:gfx942")


def test_what_a_sum_is() -> None:
    def additive(op: Any) -> bool:
        plan = plan_of(op.program.specialise({}, {}))
        assert isinstance(plan, AttentionPlan)
        assert plan.kernel.score is not None
        return is_additive(plan.kernel.score)

    assert additive(distant)
    assert not additive(capped)
