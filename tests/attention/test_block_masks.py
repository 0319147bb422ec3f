# SPDX-License-Identifier: MIT
"""Masks of blocks: what they show, and that kernels skip the blocks that they hide."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.families.attention.masks import block_mask_of, split_mask
from cklang.frontend.program import Program
from cklang.runtime.op import Op
from cklang.types import DType, bf16, f16
from tests.support.arrays import Array, uniform
from tests.support.attention_ops import F
from tests.support.checks import check
from tests.support.coverage import Covered
from tests.support.errors import expect_error
from tests.support.typed import last

B, H, G, S, T, D, E, N = ck.dims("B H G S T D E N")
X, Y, P, R = ck.dims("X Y P R")
ARCH = "gfx942"


@ck.op
def documents(
    q: F[B, H, S, D],
    k: F[B, G, T, D],
    v: F[B, G, T, E],
    mine: ck.i32[B, S],
    theirs: ck.i32[B, T],
    blocks: ck.i32[X, Y, P, R],
) -> tuple[F[B, H, S, E], ck.f32[B, H, S]]:
    return ck.attention(
        q,
        k,
        v,
        mask=ck.block_sparse(blocks, lambda b, i, j: mine[b, i] == theirs[b, j]),
        score=lambda s, i, j: s + 0.01 * (j - i),
        return_lse=True,
    )


@ck.op
def own_documents(
    q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E], mine: ck.i32[B, S], theirs: ck.i32[B, T]
) -> F[B, H, S, E]:
    blocks = ck.block_mask(lambda b, i, j: mine[b, i] == theirs[b, j], (B, 1, S, T))
    same = ck.block_sparse(blocks, lambda b, i, j: mine[b, i] == theirs[b, j])
    return ck.attention(q, k, v, mask=same)


@ck.op
def in_documents(
    q: F[B, H, S, D],
    k: F[B, G, T, D],
    v: F[B, G, T, E],
    mine: ck.i32[B, S],
    theirs: ck.i32[B, T],
    blocks: ck.i32[X, Y, P, R],
) -> F[B, H, S, E]:
    same = ck.block_sparse(blocks, lambda b, i, j: mine[b, i] == theirs[b, j])
    return ck.attention(q, k, v, mask=same)


@ck.op
def every_document(
    q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E], mine: ck.i32[B, S], theirs: ck.i32[B, T]
) -> F[B, H, S, E]:
    return ck.attention(q, k, v, mask=lambda b, i, j: mine[b, i] == theirs[b, j])


@ck.op
def listed(
    q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E], indices: ck.i32[B, H, P, N]
) -> F[B, H, S, E]:
    blocks = ck.listed_blocks(indices, (T + 63) // 64)
    return ck.attention(q, k, v, mask=ck.causal() & ck.block_sparse(blocks, size=(64, 64)))


@ck.op
def packed(
    q: F[S, H, D],
    k: F[T, G, D],
    v: F[T, G, E],
    starts_q: ck.i32[N],
    starts_k: ck.i32[N],
    blocks: ck.i32[X, Y, P, R],
) -> F[S, H, E]:
    return ck.attention(
        q,
        k,
        v,
        mask=ck.block_sparse(blocks, size=(16, 48)) & (lambda i, j: (i + j) % 5 != 0),
        cu_seqlens_q=starts_q,
        cu_seqlens_k=starts_k,
    )


@ck.op
def cached(
    q: F[B, H, S, D],
    k: F[N, G, E, D],
    v: F[N, G, E, D],
    lengths: ck.i32[B],
    table: ck.i32[B, T],
    blocks: ck.i32[X, Y, P, R],
) -> F[B, H, S, D]:
    mask = ck.block_sparse(blocks, lambda i, j: (i + j) % 3 != 0, size=(1, 64))
    return ck.attention(q, k, v, mask=mask, seqlens_k=lengths, block_table=table)


@ck.op
def dropping(
    q: F[B, H, S, D], k: F[B, G, T, D], v: F[B, G, T, E], blocks: ck.i32[X, Y, P, R]
) -> F[B, H, S, E]:
    return ck.attention(q, k, v, mask=ck.block_sparse(blocks), dropout=0.25, seed=3)


@ck.op
def causal_blocks(doc: ck.i32[B, S]) -> ck.i32[B, 1, (S + 31) // 32, (S + 15) // 16]:
    return ck.block_mask(
        ck.causal() & (lambda b, i, j: doc[b, i] == doc[b, j]), (B, 1, S, S), size=(32, 16)
    )


def tensors(s: int, t: int, dtype: DType = f16, head: int = 64) -> list[Any]:
    """Return q with two heads that share those of k and v."""
    return [uniform(1, heads, n, head, dtype=dtype) for heads, n in ((2, s), (1, t), (1, t))]


def places(rng: np.random.Generator, *extents: int, documents: int = 8) -> list[Array]:
    """Return the document of each row of q and k: some have none of one of them."""
    ids = (np.sort(rng.integers(0, documents, (1, n))) for n in extents)
    return [numbers.astype(np.int32) for numbers in ids]


def ceil(n: int, size: int) -> int:
    return -(-n // size)


def drawn_blocks(rng: np.random.Generator, s: int, t: int, size: int = 128) -> Array:
    return rng.integers(0, 3, (1, 2, ceil(s, size), ceil(t, size))).astype(np.int32)


def brute_force(seen: Array, rows: int, keys: int) -> Array:
    """Return what a matrix of booleans shows of its blocks, one block after the other."""
    s, t = seen.shape
    parts = [
        [seen[i : i + rows, j : j + keys] for j in range(0, t, keys)] for i in range(0, s, rows)
    ]
    return np.array([[2 if part.all() else int(part.any()) for part in row] for row in parts])


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9), st.integers(1, 9), st.data())
def test_blocks_of_a_mask_are_those_of_its_matrix(
    s: int, t: int, rows: int, keys: int, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    (mine, theirs) = (ids[0] for ids in places(rng, s, t, documents=3))
    mask = ck.sliding_window(5, 9) & (lambda i, j: mine[i] == theirs[j])
    got = ck.block_mask(mask, (1, 1, s, t), size=(rows, keys))
    i, j = np.ogrid[:s, :t]
    seen = (j >= i - 5) & (j <= i + 9) & (mine[i] == theirs[j])
    np.testing.assert_array_equal(got[0, 0], brute_force(seen, rows, keys))


@given(st.integers(0, 5), st.booleans(), st.integers(0, 99))
def test_listed_blocks_are_those_that_lists_name(count: int, ends: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    indices = rng.integers(-2, 7, (2, 3, 4))
    lengths = rng.integers(0, 6, (2, 3)) if ends else None
    got = ck.listed_blocks(indices, count, lengths, shown=1)
    for place in np.ndindex(2, 3):
        some = indices[place] if lengths is None else indices[place][: lengths[place]]
        assert got[place].tolist() == [int(block in some) for block in range(count)]


def mask_regions(op: Op) -> Any:
    assert isinstance(op.program, Program)
    body = op.program.specialise({"F": f16}).body
    (operation,) = (operation for operation in body if operation.op == "attention")
    return operation.attr("mask")


@pytest.mark.parametrize(
    ("op", "size"), [(documents, (128, 128)), (listed, (64, 64)), (packed, (16, 48))]
)
def test_fusion_knows_masks_of_blocks(op: Op, size: tuple[int, int]) -> None:
    blocks = block_mask_of(split_mask(mask_regions(op))[1])
    assert blocks is not None
    assert blocks.size == size
    # Only where no other function masks, a block may be seen as a whole.
    body = blocks.region.body
    numbers = {operation.attr("value") for operation in body if operation.op == "constant"}
    assert (2 in numbers) == (op is listed)


def test_other_masks_are_none_of_blocks() -> None:
    assert block_mask_of(split_mask(mask_regions(every_document))[1]) is None
    assert block_mask_of(None) is None


def test_with_dropout_every_tile_is_computed() -> None:
    args = [*tensors(64, 64), np.ones((1, 1, 1, 1), np.int32)]
    text = str(dropping.explain(*args))
    assert "with dropout every tile is computed" in text


def test_wrong_blocks_are_refused() -> None:
    with expect_error("F096"):
        ck.block_sparse(np.ones((1, 1, 1, 1), np.int32), size=(0, 128))

    @ck.op
    def of_floats(q: ck.f16[B, H, S, D], blocks: ck.f32[X, Y, P, R]) -> ck.f16[B, H, S, D]:
        return ck.attention(q, q, q, mask=ck.block_sparse(blocks))

    mistakes = of_floats.check(ck.f16[1, 1, 64, 64], ck.f32[1, 1, 1, 1]).mistakes
    assert "F096" in str(mistakes[0])


@pytest.mark.usefixtures("compiler")
@settings(max_examples=12)
@given(st.integers(1, 400), st.integers(1, 400), st.integers(0, 999))
@example(127, 131, 0)
@example(397, 257, 1)
@example(1, 389, 2)
def test_any_blocks_and_lengths(s: int, t: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    check(documents, (*tensors(s, t), *places(rng, s, t), drawn_blocks(rng, s, t)), ARCH)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("shown", [0, 1, 2])
def test_nothing_and_everything(shown: int) -> None:
    blocks = np.full((1, 1, 2, 3), shown, np.int32)
    args = (*tensors(150, 300), *places(np.random.default_rng(0), 150, 300), blocks)
    o, lse = check(documents, args, ARCH)
    if not shown:
        assert not o.any()
        assert (lse == -np.inf).all()


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("splits", [1, 3])
def test_lists_of_blocks(splits: int) -> None:
    rng = np.random.default_rng(5)
    indices = rng.integers(-1, 7, (1, 2, 6, 3)).astype(np.int32)
    check(listed.using(splits=splits), (*tensors(370, 390), indices), ARCH)


@pytest.mark.usefixtures("compiler")
def test_packed_sequences() -> None:
    rng = np.random.default_rng(6)
    starts_q, starts_k = (np.array(n, np.int32) for n in ([0, 70, 70, 103], [0, 90, 95, 230]))
    q, k, v = (uniform(n, heads, 64, dtype=f16) for n, heads in ((103, 2), (230, 1), (230, 1)))
    blocks = rng.integers(0, 3, (3, 2, 5, 3)).astype(np.int32)
    check(packed, (q, k, v, starts_q, starts_k, blocks), ARCH)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("splits", [1, 2])
def test_keys_in_pages(splits: int) -> None:
    """Each query has blocks of its own, and pages are no multiple of them."""
    rng = np.random.default_rng(7)
    q, k, v = (uniform(*shape, 64, dtype=f16) for shape in ((2, 2, 5), (9, 1, 48), (9, 1, 48)))
    table = rng.permutation(9)[:8].reshape(2, 4).astype(np.int32)
    blocks = rng.integers(0, 3, (2, 1, 5, 3)).astype(np.int32)
    lengths = np.array([190, 101], np.int32)
    check(cached.using(splits=splits), (q, k, v, lengths, table, blocks), ARCH)


@pytest.mark.usefixtures("compiler")
def test_more_tiles_than_a_list_has_room_for() -> None:
    keys = 1_100 * 64 + 5
    blocks = np.ones((1, 1, 1, ceil(keys, 128)), np.int32)
    blocks[..., 3:9] = 0
    blocks[..., -4:-2] = 0
    blocks[..., -2] = 2
    args = (*tensors(3, keys), *places(np.random.default_rng(1), 3, keys, documents=2), blocks)
    check(documents.using(splits=1), args, ARCH)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("lengths", "most"), [([256] * 8, 1 / 8), ([131, 397, 53, 509, 0, 311, 97, 550], 3 / 8)]
)
def test_documents_cost_what_their_tiles_do(lengths: list[int], most: float) -> None:
    """Eight documents of 256 rows take an eighth of the tiles; others have tiles in common."""
    doc = np.repeat(np.arange(8, dtype=np.int32), lengths)[None]
    same = (doc[:, None, :, None] == doc[:, None, None]).reshape(1, 1, 16, 128, 16, 128)
    blocks = np.where(same.all((3, 5)), 2, same.any((3, 5))).astype(np.int32)
    args = (*tensors(2_048, 2_048), doc, doc)
    sparse, dense = in_documents.using(splits=1), every_document.using(splits=1)
    counts = []
    for op, more in ((dense, ()), (sparse, (blocks,))):
        op(*args, *more, device=f"emu:{ARCH}")
        counts.append(last(op).instructions or 0)
    assert 0 < counts[1] <= most * counts[0]


@pytest.mark.usefixtures("compiler")
def test_gradients_are_those_of_the_mask() -> None:
    rng = np.random.default_rng(8)
    q, k, v = (uniform(1, 1, 150, 64, dtype=f16) for _ in "qkv")
    mine, theirs = places(rng, 150, 150, documents=3)
    do = uniform(1, 1, 150, 64, dtype=f16)
    check(ck.vjp(own_documents), (q, k, v, mine, theirs, do), ARCH)


@pytest.mark.full
@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
@pytest.mark.parametrize("arch", ["gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201"])
def test_everywhere(arch: str, dtype: DType, covered: Covered) -> None:
    rng = np.random.default_rng(9)
    args = (*tensors(150, 300, dtype), *places(rng, 150, 300), drawn_blocks(rng, 150, 300))
    check(documents, args, arch)
    covered("attention: blocks skipped", dtype.name, arch)


@pytest.mark.full
@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_long_heads(arch: str, covered: Covered) -> None:
    rng = np.random.default_rng(9)
    blocks = drawn_blocks(rng, 40, 300)
    args = (*tensors(40, 300, bf16, head=320), *places(rng, 40, 300), blocks)
    check(documents, args, arch)
    covered("attention: blocks skipped, long heads", "bf16", arch)
