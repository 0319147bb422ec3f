# SPDX-License-Identifier: MIT
"""Gradients of attention: the reference against torch's autograd, its bound against wrong ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.reference.attention_grad import SharedBias, gradients_with_bound
from cklang.reference.distance import largest_ratio
from tests.support.arrays import Array
from tests.support.attention_ops import plain

B, H, G, S, T, D, E, X, Y, N, M, P = ck.dims("B H G S T D E X Y N M P")


@ck.op
def biased(
    q: ck.f32[B, H, S, D], k: ck.f32[B, G, T, D], v: ck.f32[B, G, T, E], bias: ck.f32[X, Y, T]
) -> ck.f32[B, H, S, E]:
    return ck.attention(
        q,
        k,
        v,
        scale=-0.3,
        mask=ck.causal("bottom_right"),
        score=lambda s, h, i, j: s + bias[h, i, j],
    )


@ck.op
def packed(
    q: ck.f16[N, H, D], k: ck.f16[M, G, D], v: ck.f16[M, G, E], mine: ck.i32[P], theirs: ck.i32[P]
) -> ck.f16[N, H, E]:
    return ck.attention(
        q, k, v, cu_seqlens_q=mine, cu_seqlens_k=theirs, dropout=0.25, seed=77, offset=3
    )


@ck.op
def product(q: ck.f16[S, D], k: ck.f16[T, D]) -> ck.f16[S, T]:
    return q @ k.T


def random_array(rng: np.random.Generator, dtype: Any, *shape: int) -> Array:
    return rng.uniform(-1, 1, shape).astype(dtype)


@pytest.mark.parametrize(("heads", "rows"), [(4, 9), (1, 9), (4, 1), (1, 1)])
def test_the_reference_is_autograds(torch: Any, heads: int, rows: int) -> None:
    rng = np.random.default_rng(heads + rows)
    q, k = random_array(rng, np.float32, 2, 4, 9, 8), random_array(rng, np.float32, 2, 2, 12, 8)
    v, grad = (
        random_array(rng, np.float32, 2, 2, 12, 16),
        random_array(rng, np.float32, 2, 4, 9, 16),
    )
    bias = random_array(rng, np.float32, heads, rows, 12)
    leaves = [torch.tensor(x.astype(np.float64), requires_grad=True) for x in (q, k, v, bias)]
    wide_k, wide_v = (x.repeat_interleave(2, 1) for x in leaves[1:3])
    visible = torch.tensor(np.tri(9, 12, 3, dtype=bool))
    mask = leaves[3].expand(4, 9, 12).masked_fill(~visible, -np.inf)
    o = torch.nn.functional.scaled_dot_product_attention(
        leaves[0], wide_k, wide_v, attn_mask=mask, scale=float(np.float32(-0.3))
    )
    o.backward(torch.tensor(grad.astype(np.float64)))
    axes = (None, 0 if heads == 4 else None, 1 if rows == 9 else None)
    gradients, bounds = gradients_with_bound(
        biased.ir(q, k, v, bias), [q, k, v, bias], grad, SharedBias(param=3, axes=axes)
    )
    for each, bound, leaf in zip(gradients, bounds, leaves, strict=True):
        want = leaf.grad.numpy()
        assert each.shape == bound.shape == want.shape
        np.testing.assert_allclose(each, want, rtol=1e-6, atol=1e-6)
        assert 0 < bound.max() < 1e-3


def test_packed_sequences_are_apart() -> None:
    rng = np.random.default_rng(1)
    # The second sequence has no queries, the third no keys; two keys belong to none.
    starts = np.array([0, 5, 5, 9], np.int32), np.array([0, 7, 10, 10], np.int32)
    q, grad = random_array(rng, np.float16, 9, 4, 8), random_array(rng, np.float16, 9, 4, 8)
    k, v = random_array(rng, np.float16, 12, 2, 8), random_array(rng, np.float16, 12, 2, 8)
    args = [q, k, v, *starts]
    (dq, dk, dv), (_, off_k, off_v) = gradients_with_bound(packed.ir(*args), args, grad)

    def one(array: Array, rows: slice) -> Array:
        return array[rows].swapaxes(0, 1)[None]

    @ck.op
    def alone(
        q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D]
    ) -> ck.f16[B, H, S, D]:
        return ck.attention(q, k, v, dropout=0.25, seed=77, offset=3)

    first = [one(q, slice(5)), one(k, slice(7)), one(v, slice(7))]
    want, _ = gradients_with_bound(alone.ir(*first), first, one(grad, slice(5)))
    np.testing.assert_array_equal(one(dq, slice(5)), want[0])
    np.testing.assert_array_equal(one(dk, slice(7)), want[1])
    np.testing.assert_array_equal(one(dv, slice(7)), want[2])
    assert not dq[5:].any()
    assert not dk[7:10].any()
    for off in (off_k, off_v):
        assert np.isfinite(off[:10]).all()
        assert np.isinf(off[10:]).all()


def rounded(x: Array) -> Array:
    return x.astype(np.float16).astype(np.float32)


def kernel(q: Array, k: Array, v: Array, g: Array, slip: str = "") -> list[Array]:
    """Compute gradients as a kernel does, in float32 and f16; ``slip`` is what it does wrong."""
    q, k, v, g = (x.astype(np.float32) for x in (q, k, v, g))
    shared = q.shape[1] // k.shape[1]
    wide_k, wide_v = np.repeat(k, shared, 1), np.repeat(v, shared, 1)
    scale = np.float32(q.shape[3] ** -0.5)
    s = scale * (q @ wide_k.swapaxes(2, 3))
    lse = np.log(np.exp(s).sum(-1, keepdims=True))
    p = np.exp(s - lse)
    o = rounded(rounded(p) @ wide_v)
    d = (o * g).sum(-1, keepdims=True) * (slip != "d")
    ds = p * (g @ wide_v.swapaxes(2, 3) - d)
    low = ds.astype(np.float16 if slip != "coarse" else ck.fp8.numpy).astype(np.float32)
    dq = scale * (low @ wide_k)
    dk, dv = scale * (low.swapaxes(2, 3) @ q), rounded(p).swapaxes(2, 3) @ g
    count = shared if slip != "heads" else 1
    batch, _, keys, width = dk.shape
    sums = [x.reshape(batch, -1, shared, keys, width)[:, :, :count].sum(2) for x in (dk, dv)]
    return [dq, *sums]


@given(st.integers(1, 40), st.integers(1, 70), st.sampled_from((1, 2)), st.integers(0, 99))
def test_kernels_are_within_their_bound(rows: int, keys: int, shared: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, k, v = (
        random_array(rng, np.float16, 1, 2 * n, m, 16)
        for n, m in ((shared, rows), (1, keys), (1, keys))
    )
    grad = random_array(rng, np.float16, 1, 2 * shared, rows, 16)
    gradients, bounds = gradients_with_bound(plain.ir(q, k, v), [q, k, v], grad)
    for got, want, bound in zip(kernel(q, k, v, grad), gradients, bounds, strict=True):
        assert largest_ratio(got.astype(np.float16), want, bound) <= 1


@pytest.mark.parametrize(("slip", "which"), [("d", 0), ("coarse", 0), ("heads", 1), ("heads", 2)])
def test_the_bound_finds_wrong_kernels(slip: str, which: int) -> None:
    rng = np.random.default_rng(3)
    shapes = ((4, 30, 16), (2, 50, 16), (2, 50, 16))
    q, k, v = (random_array(rng, np.float16, 1, *shape) for shape in shapes)
    grad = random_array(rng, np.float16, 1, 4, 30, 16)
    gradients, bounds = gradients_with_bound(plain.ir(q, k, v), [q, k, v], grad)
    got = kernel(q, k, v, grad, slip)[which]
    assert largest_ratio(got, gradients[which], bounds[which]) > 1


def test_what_has_no_attention_has_no_gradient() -> None:
    x = np.ones((4, 8), np.float16)
    with pytest.raises(CkError, match="CK-Z002"):
        gradients_with_bound(product.ir(x, x), [x, x], x)
