# SPDX-License-Identifier: MIT
"""Ops that move elements, on emulated GPUs: copies, and kernels that read parts in place."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from tests.support.arrays import half
from tests.support.checks import check, check_group, launches
from tests.support.errors import expect_error

pytestmark = pytest.mark.usefixtures("compiler")

B, S, H, M, N, K, D = ck.dims("B S H M N K D")


@ck.op
def same(x: ck.f16[M, K]) -> ck.f16[M, K]:
    return x


@ck.op
def turned(x: ck.f16[M, N, K]) -> ck.f16[K, M, N]:
    return x.permute(2, 0, 1)


@ck.op
def repeated(x: ck.f16[K]) -> ck.f16[4, K]:
    return ck.broadcast_to(x, (4, K))


@ck.op
def number(x: ck.f16) -> ck.f16:
    return x


def test_copies_transposes_and_repetition_are_exact() -> None:
    for columns in (1, 7, 64):
        x = half(5, columns)
        np.testing.assert_array_equal(same(x, device="emu:gfx942"), x)
        np.testing.assert_array_equal(same(x[:, ::-1], device="emu:gfx942"), x[:, ::-1])
    x = half(3, 4, 6)
    np.testing.assert_array_equal(turned(x, device="emu:gfx942"), x.transpose(2, 0, 1))
    np.testing.assert_array_equal(repeated(x[0, 0], device="emu:gfx942"), np.stack([x[0, 0]] * 4))
    assert number(np.float16(3), device="emu:gfx942") == 3


@ck.op
def shared(q: ck.f16[B, H, S, D], cache: ck.f16[B, N, D]) -> ck.f16[B, H, S, D]:
    k = cache[:, None]
    return ck.attention(q, k, k)


def test_an_attention_reads_heads_that_none_adds() -> None:
    check(shared, (half(2, 3, 5, 64), half(2, 17, 64)))
    assert [launch.key.family for launch in launches(shared)] == ["attention"]


@ck.op
def rolled(x: ck.f16[M, K]) -> ck.f16[M, K]:
    return ck.concat([x[:, 3:], x[:, :3]], axis=1)


def test_parts_of_other_extents_are_joined() -> None:
    x = half(5, 20)
    np.testing.assert_array_equal(rolled(x, device="emu:gfx942"), np.roll(x, -3, 1))


@ck.op
def differences(x: ck.f16[M, K]) -> ck.f16[M, K - 1]:
    return x[:, 1:].to(ck.f32) - x[:, :-1]


@ck.op
def sampled(x: ck.f16[M, K]) -> ck.f16[(M + 1) // 2, (K + 2) // 3]:
    return x[::2, ::3]


@ck.op
def gated(x: ck.f16[M, K]) -> ck.f16[M, K // 2]:
    half = x.shape[-1] // 2
    return ck.silu(x[:, :half]) * x[:, half:]


@ck.op
def last_row(x: ck.f16[M, K]) -> ck.f16[K]:
    return x[-1]


@ck.op
def softmax_of_part(x: ck.f16[M, K]) -> ck.f16[M, K - 3]:
    return ck.softmax(x[:, 2:-1])


@pytest.mark.parametrize("op", [differences, sampled, gated, last_row, softmax_of_part], ids=str)
def test_kernels_of_rows_read_parts_in_place(op: ck.Op) -> None:
    for shape in ((1, 4), (5, 10), (6, 128)):
        check(op, (half(*shape),))
        assert len(launches(op)) == 1
    check(op, (half(10, 5).T,))


@ck.op
def product_of_parts(x: ck.f16[M, K], w: ck.f16[N, K // 2]) -> ck.f16[M, N // 2]:
    y = (x[:, K // 2 :] @ w.T).to(ck.f16)
    return ck.silu(y[:, : N // 2]) * y[:, N // 2 :]


@ck.op
def heads_of_one(qkv: ck.f16[B, H, S, D]) -> ck.f16[B, H, S, 64]:
    return ck.attention(qkv[..., :64], qkv[..., 64:128], qkv[..., 128:])


def test_products_and_attention_read_parts_in_place() -> None:
    check(product_of_parts, (half(5, 32), half(12, 16)))
    assert len(launches(product_of_parts)) == 1  # both parts of the columns are a pair
    text = product_of_parts.explain(half(5, 32), half(12, 16), device="emu:gfx942")
    assert "a view of what is stored" in text
    check(heads_of_one, (half(1, 2, 20, 192),))
    assert len(launches(heads_of_one)) == 1


@ck.op
def projected_part(x: ck.f16[M, K], w: ck.f16[N, K // 2]) -> ck.f16[M, N]:
    return x[:, K // 2 :] @ w.T


@ck.op
def attend_part(qkv: ck.f16[B, H, S, 192]) -> ck.f16[B, H, S, 64]:
    return ck.attention(qkv[..., :64], qkv[..., 64:128], qkv[..., 128:])


def test_groups_read_parts_and_gradients_are_of_parameters() -> None:
    check_group(projected_part, [(half(m, 32), half(24, 16)) for m in (5, 70)])
    with expect_error("G007", match="of its parameters"):
        ck.attention_grad(attend_part, half(1, 2, 20, 192), grad=half(1, 2, 20, 64))


def test_extents_that_do_not_fit_are_refused_before_a_launch() -> None:
    with expect_error("I037", match="K//2 is 3"):
        gated(half(2, 7), device="emu:gfx942")
    out: Any = np.zeros((4, 9), np.float16)
    check(differences, (half(4, 9),), out=out[:, 1:])
    assert not out[:, 0].any()


@ck.op
def every_other(x: ck.f16[M, K], w: ck.f16[N, (K + 1) // 2]) -> ck.f16[M, N]:
    return x[:, ::2] @ w.T


def test_a_product_of_a_slice_without_a_contiguous_axis_copies_it() -> None:
    args = half(5, 32), half(24, 16)
    check(every_other, args)
    assert len(launches(every_other)) == 2
    check(every_other, (half(32, 5).T, half(24, 16)))
    assert len(launches(every_other)) == 1
    with expect_error("G011", match="a group copies nothing"):
        every_other.grouped([args], device="emu:gfx942")


# --- joins and other shapes


@ck.op
def rope_half(
    x: ck.f16[B, S, H, D], cos: ck.f32[S, D // 2], sin: ck.f32[S, D // 2]
) -> ck.f16[B, S, H, D]:
    first, second = ck.split(x, 2, axis=-1)
    c, s = cos[:, None], sin[:, None]
    return ck.concat([first * c - second * s, second * c + first * s], axis=-1)


@ck.op
def rope_interleaved(
    x: ck.f16[B, S, H, D], cos: ck.f32[S, D // 2], sin: ck.f32[S, D // 2]
) -> ck.f16[B, S, H, D]:
    even, odd = x[..., ::2], x[..., 1::2]
    c, s = cos[:, None], sin[:, None]
    return ck.stack([even * c - odd * s, odd * c + even * s], axis=-1).reshape(B, S, H, D)


@pytest.mark.parametrize("op", [rope_half, rope_interleaved], ids=str)
def test_a_rotary_embedding_is_one_kernel(op: ck.Op) -> None:
    angles = np.linspace(0, 3, 24, dtype=np.float32).reshape(3, 8)
    x = half(2, 3, 4, 16)
    check(op, (x, np.cos(angles), np.sin(angles)))
    assert len(launches(op)) == 1
    check(op, (x[..., ::-1], np.cos(angles), np.sin(angles)))


@ck.op
def joined_products(
    x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[D, K]
) -> tuple[ck.f16[M, N + D], ck.f16[2, M, K]]:
    both = ck.concat([x @ w.T, ck.silu(x @ v.T)], axis=1)
    return both, ck.stack([x, x])


def test_kernels_write_parts_into_the_whole() -> None:
    args = half(6, 16), half(8, 16), half(12, 16)
    check(joined_products, args)
    assert [each.artifact.key.family for each in launches(joined_products)].count("gemm") == 2
    assert len(launches(joined_products)) == 3
    text = joined_products.explain(*args, device="emu:gfx942")
    assert "its kernel writes it to its place in the whole" in text


@ck.op
def softmax_of_both(x: ck.f16[M, K], y: ck.f16[M, N]) -> ck.f32[M, K + N]:
    return ck.softmax(ck.concat([x, ck.exp(y)], axis=-1))


def test_a_joined_temporary_is_read_as_a_whole() -> None:
    check(softmax_of_both, (half(6, 16), half(6, 5)))


@ck.op
def heads(x: ck.f16[B, S, K], w: ck.f16[N, K]) -> ck.f16[B, S, 2, N // 2]:
    return (x @ w.T).reshape(B, S, 2, -1)


def test_a_product_is_written_into_a_result_of_another_shape() -> None:
    args = half(2, 3, 16), half(8, 16)
    check(heads, args)
    assert len(launches(heads)) == 1
    wide: Any = np.zeros((2, 3, 2, 8), np.float16)
    with expect_error("A058", match="pass a contiguous array"):
        heads(*args, out=wide[..., :4], device="emu:gfx942")


# --- other shapes


@ck.op
def flattened(x: ck.f16[B, S, K]) -> ck.f16[B * S, K]:
    return x.reshape(B * S, -1) * 2.0


@pytest.mark.parametrize("is_contiguous", [True, False])
def test_a_shape_that_no_strides_give_is_copied(is_contiguous: bool) -> None:
    x = half(3, 4, 8) if is_contiguous else half(4, 3, 8).transpose(1, 0, 2)
    check(flattened, (x,))
    assert len(launches(flattened)) == (1 if is_contiguous else 2)
    text = flattened.explain(x, device="emu:gfx942")
    assert ("a copy: %x has no strides as its readers need them" in text) is not is_contiguous


@ck.op
def attention_block(
    x: ck.f16[B, S, 128],
    wq: ck.f16[128, 128],
    wk: ck.f16[128, 128],
    wv: ck.f16[128, 128],
    wo: ck.f16[128, 128],
) -> ck.f16[B, S, 128]:
    q = (x @ wq.T).reshape(B, S, 2, 64).transpose(1, 2).to(ck.f16)
    k = (x @ wk.T).to(ck.f16).reshape(B, S, 2, 64).transpose(1, 2)
    v = (x @ wv.T).to(ck.f16).reshape(B, S, -1, 64).transpose(1, 2)
    o = ck.attention(q, k, v, mask=ck.causal()).to(ck.f16)
    return o.transpose(1, 2).reshape(B, S, 128) @ wo.T


def test_a_block_as_torch_writes_it_copies_nothing() -> None:
    args = half(2, 20, 128), *(half(128, 128) * np.float16(0.1) for _ in range(4))
    check(attention_block, args)
    families = [each.artifact.key.family for each in launches(attention_block)]
    assert families == ["gemm", "gemm", "gemm", "attention", "gemm"]
    text = attention_block.explain(*args, device="emu:gfx942")
    assert "a copy: " not in text


def test_a_summary_counts_what_is_read_of_a_parameter() -> None:
    summary = gated.summary(half(4, 16), device="emu:gfx942")
    assert sum(each.bytes for each in summary.kernels) == 2 * (4 * 16 + 4 * 8)
    assert summary.least_bytes == 2 * (4 * 16 + 4 * 8)
