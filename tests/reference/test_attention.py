# SPDX-License-Identifier: MIT
"""Attention: its reference against torch, and its bound against kernels in float32."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.ir.attention import dropped
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from cklang.testing import assert_close
from cklang.testing.compare import largest_ratio

B, H, G, S, T, D, E = ck.dims("B H G S T D E")
NumberType: Any = ck.dtype_var("NumberType", ck.f16, ck.bf16, ck.f32, ck.fp8)


@ck.op
def plain(
    q: NumberType[B, H, S, D], k: NumberType[B, G, T, D], v: NumberType[B, G, T, E]
) -> tuple[ck.f32[B, H, S, E], ck.f32[B, H, S]]:
    return ck.attention(q, k, v, return_lse=True)


@ck.op
def windowed(
    q: ck.f32[B, H, S, D],
    k: ck.f32[B, G, T, D],
    v: ck.f32[B, G, T, E],
    left: ck.const[int],
    right: ck.const[int],
    corner: ck.const[str],
    sink: ck.const[int],
) -> tuple[ck.f32[B, H, S, E], ck.f32[B, H, S]]:
    mask = ck.sliding_window(left, right, corner=corner, sink=sink)
    return ck.attention(q, k, v, mask=mask, return_lse=True)


@ck.op
def varied(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    slopes: ck.f32[H],
    bias: ck.f16[1, H, S, T],
    doc: ck.i32[B, T],
    seed: ck.i32,
) -> tuple[ck.f32[B, H, S, E], ck.f32[B, H, S]]:
    return ck.attention(
        q,
        k,
        v,
        scale=0.2,
        score=lambda s, b, h, i, j: (
            2.0 * ck.tanh(s / 2.0) + slopes[h] * (j - i).to(ck.f32) + bias[b, h, i, j]
        ),
        mask=lambda b, i, j: doc[b, i] == doc[b, j],
        dropout=0.25,
        seed=seed,
        return_lse=True,
    )


def draw(
    rng: np.random.Generator, sizes: dict[str, int], dtype: Any = np.float32
) -> tuple[Any, Any, Any]:
    """Return q, k and v; ``sizes`` has the extents by the names of the axes."""
    q, k, v = (
        rng.uniform(-1, 1, [sizes[axis] for axis in shape]).astype(dtype)
        for shape in ("BHSD", "BGTD", "BGTE")
    )
    return q, k, v


SIZES = {"B": 2, "H": 4, "G": 2, "S": 37, "T": 50, "D": 24, "E": 16}


def torch_attention(torch: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    tensors = [torch.tensor(np.asarray(each, np.float64)) for each in (q, k, v)]
    tensors[1:] = [each.repeat_interleave(q.shape[1] // k.shape[1], 1) for each in tensors[1:]]
    attended = torch.nn.functional.scaled_dot_product_attention(*tensors, **options)
    return attended.numpy()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_the_reference_is_torchs(torch: Any, dtype: Any) -> None:
    arrays = draw(np.random.default_rng(1), SIZES, dtype)
    o, _ = evaluate(plain.ir(*arrays), arrays)
    np.testing.assert_allclose(o, torch_attention(torch, *arrays), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("corner", ["top_left", "bottom_right"])
@pytest.mark.parametrize(("left", "right", "sink"), [(7, 0, 0), (5, 3, 0), (4, 0, 2), (40, 60, 0)])
@pytest.mark.parametrize("lengths", [(37, 50), (50, 37), (1, 9)])
def test_windows_are_those_that_the_page_names(
    torch: Any, corner: str, left: int, right: int, sink: int, lengths: tuple[int, int]
) -> None:
    sizes = {**SIZES, "S": lengths[0], "T": lengths[1]}
    arrays = draw(np.random.default_rng(2), sizes)
    consts = {"left": left, "right": right, "corner": corner, "sink": sink}
    o, lse = evaluate(windowed.ir(*arrays, **consts), arrays)
    in_window = np.zeros(lengths, bool)
    for i in range(lengths[0]):
        for j in range(lengths[1]):
            at = i + (lengths[1] - lengths[0] if corner == "bottom_right" else 0)
            in_window[i, j] = j <= at + right and (j >= at - left or j < sink)
    visible = in_window.any(axis=1)
    want = torch_attention(torch, *arrays, attn_mask=torch.tensor(in_window))
    np.testing.assert_allclose(o[:, :, visible], want[:, :, visible], rtol=1e-5, atol=1e-6)
    assert (o[:, :, ~visible] == 0).all()
    assert (np.isneginf(lse) == ~visible).all()


def test_causal_is_torchs(torch: Any) -> None:
    arrays = draw(np.random.default_rng(3), SIZES)
    o = ck.attention(*arrays, mask=ck.causal())
    want = torch_attention(torch, *arrays, is_causal=True)
    np.testing.assert_allclose(o, want, rtol=1e-6, atol=1e-6)


def test_scores_masks_and_dropout_are_what_they_say() -> None:
    sizes = {**SIZES, "T": SIZES["S"]}
    rng = np.random.default_rng(4)
    q, k, v = draw(rng, sizes, np.float16)
    slopes = rng.uniform(0, 0.2, 4).astype(np.float32)
    bias = rng.uniform(-1, 1, (1, 4, 37, 37)).astype(np.float16)
    doc = rng.integers(0, 3, (2, 37), np.int32)
    arrays = [q, k, v, slopes, bias, doc, -5]
    o, lse = evaluate(varied.ir(*arrays), arrays)
    scores = 0.2 * (q.astype(np.float64) @ np.repeat(k, 2, 1).astype(np.float64).swapaxes(2, 3))
    distance = np.arange(37)[None, :] - np.arange(37)[:, None]
    scores = 2 * np.tanh(scores / 2) + slopes[:, None, None].astype(np.float64) * distance + bias
    scores = np.where((doc[:, :, None] == doc[:, None, :])[:, None], scores, -np.inf)
    weights = np.exp(scores)
    total = weights.sum(-1, keepdims=True)
    kept = weights * dropped(weights.shape, 0.25, -5, 0) / total
    np.testing.assert_allclose(
        o, kept @ np.repeat(v, 2, 1).astype(np.float64), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(lse, np.log(total)[..., 0], rtol=1e-6, atol=1e-6)


def test_the_functions_outside_of_an_op_are_the_same() -> None:
    arrays = draw(np.random.default_rng(5), SIZES, np.float16)
    o, lse = ck.attention(*arrays, scale=0.5, score=lambda h, s: s - h, return_lse=True)
    want, want_lse = ck.attention(*arrays, scale=0.5, return_lse=True)
    np.testing.assert_allclose(o, want)
    np.testing.assert_allclose(lse, want_lse - np.arange(4)[:, None])


@ck.op
def packed(
    q: ck.f16[S, H, D], k: ck.f16[T, G, D], v: ck.f16[T, G, E], mine: ck.i32[B], theirs: ck.i32[B]
) -> tuple[ck.f32[S, H, E], ck.f32[H, S]]:
    return ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=mine,
        cu_seqlens_k=theirs,
        mask=ck.causal("bottom_right"),
        score=lambda s, b, i: s + (b * i).to(ck.f32) * 0.01,
        dropout=0.25,
        seed=3,
        return_lse=True,
    )


def test_packed_sequences_are_those_of_a_batch() -> None:
    rng = np.random.default_rng(9)
    sizes = {**SIZES, "B": 3, "S": 40, "T": 50}
    q, k, v = draw(rng, sizes, np.float16)
    lengths, key_lengths = (7, 40, 0), (50, 33, 5)
    starts = [np.cumsum([2, *each]).astype(np.int32) for each in (lengths, key_lengths)]

    def together(x: Any, counts: tuple[int, ...]) -> Any:
        rows = [x[b, :, :count].swapaxes(0, 1) for b, count in enumerate(counts)]
        return np.concatenate([np.ones((2, *rows[0].shape[1:]), x.dtype), *rows])

    args = [together(q, lengths), together(k, key_lengths), together(v, key_lengths), *starts]
    (o, lse), (bound, bound_lse) = evaluate_with_bound(packed.ir(*args), args)
    again, lse_again = evaluate(packed.ir(*args), args)
    np.testing.assert_array_equal(o, again)
    np.testing.assert_array_equal(lse, lse_again)
    assert np.isinf(bound[:2]).all()  # rows of no sequence
    assert np.isinf(bound_lse[:, :2]).all()
    assert np.isfinite(bound[2:]).all()
    for b, (count, keys) in enumerate(zip(lengths, key_lengths, strict=True)):
        batch = [q[:, :, :count], k[:, :, :keys], v[:, :, :keys]]
        want, want_lse = ck.attention(
            *batch,
            mask=ck.causal("bottom_right"),
            score=lambda s, b, i: s + b * i * float(np.float32(0.01)),
            dropout=0.25,
            seed=3,
            return_lse=True,
        )
        rows = slice(starts[0][b], starts[0][b + 1])
        np.testing.assert_allclose(o[rows], want[b].swapaxes(0, 1), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(lse[:, rows], want_lse[b], rtol=1e-6, atol=1e-6)


P = ck.dims("P")[0]


@ck.op
def cached(
    q: ck.f16[B, H, S, D],
    k: ck.f16[T, G, 8, D],
    v: ck.f16[T, G, 8, E],
    lengths: ck.i32[B],
    table: ck.i32[B, P],
) -> tuple[ck.f32[B, H, S, E], ck.f32[B, H, S]]:
    return ck.attention(
        q,
        k,
        v,
        seqlens_k=lengths,
        block_table=table,
        mask=ck.causal("bottom_right"),
        score=lambda s, b, j: s - (b * j).to(ck.f32) * 0.01,
        return_lse=True,
    )


N = ck.dims("N")[0]


@ck.op
def prefill(
    q: ck.f16[S, H, D],
    k: ck.f16[T, G, 8, D],
    v: ck.f16[T, G, 8, E],
    starts: ck.i32[P],
    lengths: ck.i32[B],
    table: ck.i32[N],
    begins: ck.i32[P],
) -> tuple[ck.f32[S, H, E], ck.f32[H, S]]:
    return ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=starts,
        seqlens_k=lengths,
        block_table=table,
        page_starts=begins,
        mask=ck.causal("bottom_right"),
        return_lse=True,
    )


def test_one_list_of_pages_serves_all_sequences() -> None:
    rng = np.random.default_rng(12)
    sizes = {**SIZES, "B": 2, "S": 9, "T": 20}
    q, k, v = draw(rng, sizes, np.float16)
    # k and v [B, G, T, D] as pages of 8 rows; the last one of each sequence is not full.
    order = rng.permutation(6).astype(np.int32)
    lengths = np.array([20, 13], np.int32)
    pools = []
    for x in (k, v):
        pool = np.zeros((6, x.shape[1], 8, x.shape[3]), np.float16)
        for b, pages in enumerate((order[:3], order[3:5])):
            for place, page in enumerate(pages):
                rows = x[b, :, 8 * place : min(8 * place + 8, lengths[b])]
                pool[page, :, : rows.shape[1]] = rows
        pools.append(pool)
    starts = np.array([0, 9, 14], np.int32)
    packed_q = np.concatenate([q[0], q[1, :, :5]], 1).swapaxes(0, 1)
    begins = np.array([0, 3, 5], np.int32)
    args = [packed_q, *pools, starts, lengths, order, begins]
    (o, lse), (bound, _) = evaluate_with_bound(prefill.ir(*args), args)
    assert np.isfinite(bound).all()
    again, lse_again = ck.attention(
        *args[:3],
        cu_seqlens_q=starts,
        seqlens_k=lengths,
        block_table=order,
        page_starts=begins,
        mask=ck.causal("bottom_right"),
        return_lse=True,
    )
    np.testing.assert_allclose(o, again, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(lse, lse_again, rtol=1e-6, atol=1e-6)
    for b, rows in enumerate((slice(0, 9), slice(9, 14))):
        count = rows.stop - rows.start
        want = ck.attention(
            q[b : b + 1, :, :count],
            k[b : b + 1, :, : lengths[b]],
            v[b : b + 1, :, : lengths[b]],
            mask=ck.causal("bottom_right"),
        )
        np.testing.assert_allclose(o[rows], want[0].swapaxes(0, 1), rtol=1e-6, atol=1e-6)


def test_pages_hold_the_keys_of_a_cache() -> None:
    rng = np.random.default_rng(10)
    q, k, v = draw(rng, {**SIZES, "B": 3, "S": 4, "T": 40}, np.float16)
    lengths = np.array([17, 0, 40], np.int32)
    table = rng.permutation(15).reshape(3, 5).astype(np.int32)
    pools = [np.full((15, 2, 8, x.shape[3]), np.nan, np.float16) for x in (k, v)]
    for pool, x in zip(pools, (k, v), strict=True):
        for b, length in enumerate(lengths):
            for j in range(length):
                pool[table[b, j // 8], :, j % 8] = x[b, :, j]
    args = [q, *pools, lengths, table]
    (o, lse), (bound, bound_lse) = evaluate_with_bound(cached.ir(*args), args)
    again, lse_again = evaluate(cached.ir(*args), args)
    np.testing.assert_array_equal(o, again)
    np.testing.assert_array_equal(lse, lse_again)
    assert np.isfinite(bound).all()
    assert np.isfinite(bound_lse).all()
    contiguous, contiguous_lse = ck.attention(
        q,
        k,
        v,
        seqlens_k=lengths,
        mask=ck.causal("bottom_right"),
        score=lambda s, b, j: s - b * j * float(np.float32(0.01)),
        return_lse=True,
    )
    np.testing.assert_allclose(o, contiguous, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(lse, contiguous_lse, rtol=1e-6, atol=1e-6)

    def alone(b: int) -> Any:
        rows, keys = slice(b, b + 1), slice(lengths[b])
        return ck.attention(
            q[rows],
            k[rows, :, keys],
            v[rows, :, keys],
            mask=ck.causal("bottom_right"),
            score=lambda s, j: s - b * j * float(np.float32(0.01)),
        )

    for b in range(3):
        np.testing.assert_allclose(o[b], alone(b)[0], rtol=1e-6, atol=1e-6)


def test_no_keys_give_zeros() -> None:
    arrays = draw(np.random.default_rng(6), {**SIZES, "T": 0})
    (o, lse), (bound, _) = evaluate_with_bound(plain.ir(*arrays), arrays)
    assert (o == 0).all()
    assert np.isneginf(lse).all()
    assert (bound == 0).all()


def test_heads_that_do_not_fit_are_refused() -> None:
    arrays = draw(np.random.default_rng(7), {**SIZES, "G": 3})
    with pytest.raises(CkError, match="CK-I045 4 query heads cannot share 3 key heads") as caught:
        evaluate(plain.ir(*arrays), arrays)
    assert caught.value.at is not None
    assert "x.transpose(0, 2, 1, 3)" in str(caught.value)


def kernel(q: Any, k: Any, v: Any, tile: int, narrow: Any, rescale: bool = True) -> tuple[Any, Any]:
    """Compute attention as a kernel does: float32, tiles of keys, a running maximum.

    Weights of 8 bits are multiplied by the type's largest value before they are rounded.
    """
    step = np.float32(ml_dtypes.finfo(narrow).max if np.dtype(narrow).itemsize == 1 else 1)
    heads = q.shape[1] // k.shape[1]
    q, k, v = (np.asarray(each, np.float32) for each in (q, k, v))
    k, v = np.repeat(k, heads, 1), np.repeat(v, heads, 1)
    log2e = np.float32(1.4426950408889634)
    factor = np.float32(1 / np.sqrt(q.shape[3])) * log2e
    largest = np.full((*q.shape[:3], 1), -np.inf, np.float32)
    total = np.zeros_like(largest)
    o = np.zeros((*q.shape[:3], v.shape[3]), np.float32)
    for start in range(0, k.shape[2], tile):
        s = factor * (q @ k[:, :, start : start + tile].swapaxes(2, 3))
        now = np.maximum(largest, s.max(-1, keepdims=True))
        shrink = np.exp2(largest - now) if rescale else np.float32(1)
        p = np.exp2(s - now)
        total = total * shrink + p.sum(-1, keepdims=True)
        rounded = (p * step).astype(narrow).astype(np.float32) / step
        o = o * shrink + rounded @ v[:, :, start : start + tile]
        largest = now
    return o / total, (largest / log2e + np.log(total))[..., 0]


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from([np.float16, ml_dtypes.bfloat16, np.float32, ml_dtypes.float8_e4m3fn]),
    st.integers(1, 70),
    st.sampled_from([16, 32, 64]),
    st.floats(0.1, 12),
    st.integers(0, 1000),
)
@example(ml_dtypes.float8_e4m3fn, 2, 16, 3.0, 1)
@example(ml_dtypes.float8_e4m3fn, 32, 16, 8.0, 8)
def test_kernels_are_within_their_bound(
    dtype: Any, keys: int, tile: int, size: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    arrays = draw(rng, {**SIZES, "S": 9, "T": keys})
    arrays = tuple((each * size).astype(dtype) for each in arrays)
    wanted, bounds = evaluate_with_bound(plain.ir(*arrays), arrays)
    for got, want, bound in zip(kernel(*arrays, tile, dtype), wanted, bounds, strict=True):
        assert_close(got, want, bound)


def test_the_bound_finds_wrong_kernels() -> None:
    arrays = draw(np.random.default_rng(8), SIZES, np.float16)
    (want, want_lse), (bound, bound_lse) = evaluate_with_bound(plain.ir(*arrays), arrays)
    right, right_lse = kernel(*arrays, 32, np.float16)
    assert largest_ratio(right, want, bound) < 1
    assert largest_ratio(kernel(*arrays, 32, np.float16, rescale=False)[0], want, bound) > 10
    assert largest_ratio(kernel(*arrays, 32, ml_dtypes.bfloat16)[0], want, bound) > 1
    q, k, v = arrays
    assert largest_ratio(kernel(q, k[:, :, 1:], v[:, :, 1:], 32, np.float16)[0], want, bound) > 10
    assert largest_ratio(right_lse + np.float32(1e-4), want_lse, bound_lse) > 1
    # Half a percent of the values' range: CK Tile's own bar for f16 is of this order.
    assert bound.max() < 5e-3
