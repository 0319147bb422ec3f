# SPDX-License-Identifier: MIT
"""``ck.attention_grad``: gradients of ops, against the formula and against finite differences."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.reference.attention_grad import SharedBias
from cklang.testing import assert_close
from tests.support.arrays import Array
from tests.support.attention_ops import (
    biased,
    distant,
    measured,
    packed_rows,
    packed_rows_args,
    relative,
    within,
)
from tests.support.coverage import Covered

B, H, G, S, T, D, X, Y, N, M, P = ck.dims("B H G S T D X Y N M P")


@ck.op
def biased_and_packed(
    q: ck.f16[N, H, D], k: ck.f16[M, G, D], v: ck.f16[M, G, D], mine: ck.i32[P], bias: ck.f16[T]
) -> ck.f16[N, H, D]:
    return ck.attention(
        q, k, v, cu_seqlens_q=mine, cu_seqlens_k=mine, score=lambda s, j: s + bias[j]
    )


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
    grads = [scale * ds @ k, scale * ds.swapaxes(2, 3) @ q, (p * keep).swapaxes(2, 3) @ grad]
    for place in (1, 2):
        each = grads[place]
        grads[place] = each.reshape(each.shape[0], -1, shared, *each.shape[2:]).sum(2)
    return [*grads, ds]


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("shape", [(2, 70, 130, 4, 2), (1, 5, 9, 2, 2)])
def test_gradients_of_an_op(shape: tuple[int, ...], covered: Covered) -> None:
    batch, rows, keys, heads, kv_heads = shape
    rng = np.random.default_rng(0)

    def random_array(length: int, count: int) -> Array:
        # Rows outside heads in memory: strides are strides.
        values = rng.uniform(-1, 1, (batch, length, count, 64)).astype(np.float16)
        return values.transpose(0, 2, 1, 3)

    q, grad = random_array(rows, heads), random_array(rows, heads)
    k, v = random_array(keys, kv_heads), random_array(keys, kv_heads)
    far = rng.uniform(0, 0.1, heads).astype(np.float32)
    grads = ck.attention_grad(distant, q, k, v, far, grad=grad, device="emu:gfx942")
    assert grads.bias is None
    bounds = within(distant, [q, k, v, far], grad, grads)
    distance = abs(np.arange(rows)[:, None] - np.arange(keys))
    want = gradients(q, k, v, -far.astype(np.float64)[:, None, None] * distance, grad)
    for got, wanted, bound in zip(grads[:3], want, bounds, strict=False):
        assert_close(got, wanted.astype(np.float16), bound)
    covered("attention backward: functions, dropout", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
def test_the_gradient_of_a_bias_and_one_order_of_summation(covered: Covered) -> None:
    rng = np.random.default_rng(1)

    def random_array(*shape: int) -> Array:
        return rng.uniform(-1, 1, shape).astype(np.float16)

    # Keys of the last tile that only head 1 sees: the gradient of the others is zero there.
    rows, keys = 40, 300
    q, k, v = (
        random_array(1, 2, rows, 64),
        random_array(1, 2, keys, 64),
        random_array(1, 2, keys, 64),
    )
    grad, bias = random_array(1, 2, rows, 64), random_array(1, rows, 2, keys).swapaxes(1, 2)
    first, second = (
        ck.attention_grad(
            biased, q, k, v, bias, grad=grad, bias=True, deterministic=True, device="emu:gfx942"
        )
        for _ in range(2)
    )
    for once, twice in zip(first, second, strict=True):
        np.testing.assert_array_equal(once, twice)
    bounds = within(biased, [q, k, v, bias], grad, first, SharedBias(param=3, axes=(0, 1, 2)))
    want = gradients(q, k, v, bias.astype(np.float64), grad)
    for got, wanted, bound in zip(first, want, bounds, strict=True):
        assert_close(got, wanted.astype(np.float16), bound)
    assert not first.bias[0, 0, :, 100:].any()
    covered("attention backward: bias gradient, deterministic", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("across", "down"), [(2, 40), (1, 40), (2, 1), (1, 1)])
def test_a_bias_that_scores_share_has_the_sum_of_their_gradients(across: int, down: int) -> None:
    rng = np.random.default_rng(across + down)

    def random_array(*shape: int) -> Array:
        return rng.uniform(-1, 1, shape).astype(np.float16)

    q, k, v = random_array(3, 2, 40, 64), random_array(3, 1, 300, 64), random_array(3, 1, 300, 64)
    args = [q, k, v, random_array(across, down, 300)]
    grad = random_array(3, 2, 40, 64)
    grads = ck.attention_grad(
        relative, *args, grad=grad, bias=True, deterministic=True, device="emu:gfx942"
    )
    axes = (None, 0 if across == 2 else None, 1 if down == 40 else None)
    within(relative, args, grad, grads, SharedBias(param=3, axes=axes))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("deterministic", [False, pytest.param(True, marks=pytest.mark.full)])
def test_packed_sequences(deterministic: bool, covered: Covered) -> None:
    @given(
        st.lists(st.tuples(st.integers(0, 90), st.integers(0, 200)), min_size=1, max_size=4),
        st.integers(0, 99),
    )
    @example([(3, 0), (0, 140), (70, 150), (1, 1)], 0)
    @settings(max_examples=8)
    def check(lengths: list[tuple[int, int]], seed: int) -> None:
        args, grad = packed_rows_args(lengths, seed)
        grads = ck.attention_grad(
            packed_rows, *args, grad=grad, deterministic=deterministic, device="emu:gfx942"
        )
        within(packed_rows, args, grad, grads)

    check()
    order = ", deterministic" * deterministic
    covered(f"attention backward: packed sequences{order}", "f16", "gfx942")


@pytest.mark.usefixtures("stencils")
def test_gradients_are_for_the_gpu_of_the_context() -> None:
    x, far = np.ones((1, 2, 8, 64), np.float16), np.ones(2, np.float32)
    long = np.ones((1, 2, 8, 320), np.float16)
    with ck.using(arch="gfx1100"), pytest.raises(CkError, match="on gfx1100"):
        ck.attention_grad(distant, long, long, long, far, grad=long)
    with ck.using(arch="gfx1100"):
        grads = ck.attention_grad(distant, x, x, x, far, grad=x, device="emu:gfx942")
    within(distant, [x, x, x, far], x, grads)


@ck.op
def capped_bias(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D], bias: ck.f16[H, S, S]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, score=lambda s, b, h, i, j: 2.0 * ck.tanh(s / 2.0) + bias[h, i, j])


def capped_gradients(q: Array, k: Array, v: Array, grad: Array, bias: Array) -> tuple[Array, ...]:
    """Return dq, dk, dv and dbias of ``capped_bias`` in float64, by the formula."""
    q, k, v, grad, bias = (x.astype(np.float64) for x in (q, k, v, grad, bias))
    scale = q.shape[3] ** -0.5
    tanh = np.tanh(scale * (q @ k.swapaxes(2, 3)) / 2)
    p = np.exp(2 * tanh + bias)
    p /= p.sum(-1, keepdims=True)
    dp = grad @ v.swapaxes(2, 3)
    by_score = p * (dp - (grad * (p @ v)).sum(-1, keepdims=True))
    ds = scale * by_score * (1 - tanh**2)
    return ds @ k, ds.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ grad, by_score.sum(0)


@pytest.mark.usefixtures("compiler")
def test_the_gradient_of_a_bias_beside_a_soft_cap() -> None:
    rng = np.random.default_rng(0)
    q, k, v, grad = (rng.standard_normal((2, 2, 48, 32)).astype(np.float16) for _ in range(4))
    bias = rng.standard_normal((2, 48, 48)).astype(np.float16)
    options: dict[str, Any] = {"grad": grad, "bias": True, "device": "emu:gfx942"}
    got = ck.attention_grad(capped_bias, q, k, v, bias, **options)
    for one, exact in zip(got, capped_gradients(q, k, v, grad, bias), strict=True):
        assert one.dtype == np.float16
        np.testing.assert_allclose(one, exact, rtol=0.01, atol=0.01)
    with pytest.raises(CkError, match=r"G008.*but something else"):
        ck.attention_grad(capped_bias, q, k, v, bias, deterministic=True, **options)


@pytest.mark.usefixtures("stencils")
def test_biases_without_a_gradient() -> None:
    x, wide = np.ones((1, 2, 8, 64), np.float16), np.ones((1, 2, 8, 8), np.float16)
    far = np.ones(2, np.float32)
    options: dict[str, Any] = {"grad": x, "bias": True, "device": "emu:gfx942"}
    with pytest.raises(CkError, match=r"G008.*but something else"):
        ck.attention_grad(distant, x, x, x, far, **options)
    with pytest.raises(CkError, match=r"G008.*strides \[128, 64, 1, 8\]"):
        ck.attention_grad(biased, x, x, x, wide.swapaxes(2, 3), **options)
    starts, row = np.array([0, 8], np.int32), np.ones((8, 2, 64), np.float16)
    with pytest.raises(CkError, match=r"G008.*but one to packed sequences"):
        ck.attention_grad(
            biased_and_packed, row, row, row, starts, wide[0, 0, 0], **(options | {"grad": row})
        )


@pytest.mark.usefixtures("stencils")
def test_names_of_the_caller_are_his_own() -> None:
    """Whatever the values between the stages are called."""

    @ck.op
    def clashing(
        o: ck.f16[B, H, S, D], lse: ck.f16[B, G, T, D], dq: ck.f16[B, G, T, D], d: ck.f32[H]
    ) -> ck.f16[B, H, S, D]:
        return ck.attention(
            o,
            lse,
            dq,
            mask=lambda h, i, j: (j <= i + 60) | (h == 1),
            score=lambda s, h, i, j: s - d[h] * ck.abs((i - j).to(ck.f32)),
            dropout=0.25,
            seed=77,
            offset=3,
        )

    rng = np.random.default_rng(0)
    q, grad = (rng.uniform(-1, 1, (1, 2, 9, 64)).astype(np.float16) for _ in range(2))
    k, v = (rng.uniform(-1, 1, (1, 1, 20, 64)).astype(np.float16) for _ in range(2))
    args = [q, k, v, np.array([0.5, 0.25], np.float32)]
    grads = ck.attention_grad(clashing, *args, grad=grad, device="emu:gfx942")
    within(clashing, args, grad, grads)


@pytest.mark.usefixtures("stencils")
def test_no_keys_give_zeros() -> None:
    q = np.ones((1, 2, 3, 64), np.float16)
    none = np.ones((1, 2, 0, 64), np.float16)
    grad = np.ones((1, 2, 3, 64), np.float16)
    far = np.ones(2, np.float32)
    grads = ck.attention_grad(distant, q, none, none, far, grad=grad, device="emu:gfx942")
    assert not grads.q.any()
    assert grads.k.shape == none.shape


@pytest.mark.usefixtures("emulator")
def test_refusals() -> None:
    x = np.ones((1, 8, 8, 64), np.float16)
    with pytest.raises(CkError, match="G007"):
        ck.attention_grad(product, x[0, 0], x[0, 0], grad=x)
    with pytest.raises(CkError, match=r"(?s)G007.*a mask: lambda b, i, j"):
        ck.attention_grad(measured, x, x, x, np.ones(1, np.int32), grad=x)
    far = np.ones(8, np.float32)
    with pytest.raises(CkError, match=r"CK-A060 grad has .* shape \(1, 8, 2, 64\)"):
        ck.attention_grad(distant, x, x, x, far, grad=x[:, :, :2], device="emu:gfx942")
