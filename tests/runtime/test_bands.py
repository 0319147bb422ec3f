# SPDX-License-Identifier: MIT
"""Products whose operands span more than 2 GiB run in bands; here the limit is a few kilobytes."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.device.device_array import DeviceArray
from cklang.families.gemm import bands, stores
from cklang.families.gemm.bands import bands_of
from cklang.families.gemm.key import Algorithm, DKind, Reduction
from cklang.families.gemm.problem import Matrix, Problem, ReadAccess
from cklang.families.gemm.synthetic import problem
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from cklang.testing import assert_close
from tests.support.arrays import eighths
from tests.support.gemm_ops import linear, many_reads
from tests.support.typed import instance, last

M, N, K, G = ck.dims("M N K G")
LIMIT = 6000


@ck.op
def batch(x: ck.f16[G, M, K], w: ck.f16[G, N, K]) -> ck.f16[G, M, N]:
    return x @ w.mT


def single(operands: int = 0, **more: Any) -> Algorithm:
    """The algorithm that fits every problem, as other tests compile it."""
    return Algorithm(
        tile=(64, 64, 32),
        warps=(2, 2, 1),
        warp_tile=(16, 16, 32),
        vector_a=1,
        vector_b=1,
        vector_e=1,
        vector_d=(1,) * operands,
        **more,
    )


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands span fewer than 6000 bytes."""
    monkeypatch.setattr(bands, "MOST_BYTES", LIMIT)


def check(op: Op, *args: Any, **more: Any) -> int:
    """Check a call and its repetition, and return how many launches it took."""
    (want,), (bound,) = evaluate_with_bound(op.ir(*args), args)
    for _ in range(2):
        assert_close(op(*args, device="emu:gfx942", **more), want, bound)
    assert op.last is not None
    return len(op.last.launches)


def drawn(m: int, n: int, k: int) -> list[Any]:
    rng = np.random.default_rng(m + n + k)

    def some(*shape: int, dtype: Any = np.float16) -> Any:
        return rng.standard_normal(shape).astype(dtype)

    bf16 = ck.bf16.numpy
    args = [some(m, k), some(n, k), some(n, dtype=np.float32), some(m, dtype=bf16)]
    return [*args, np.float32(0.5), rng.random((m, n)) < 0.5, some(n, m), some(m, n, dtype=bf16)]


# --- what a band is


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    m, n, k = (draw(st.integers(1, 100)) for _ in range(3))
    layouts = draw(st.sampled_from(["rcr", "rrr", "ccr", "crr"]))
    gemm = problem(m, n, k, layouts=layouts, functions="")
    reads = []
    for sm, sn in draw(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=2)):
        d = ReadAccess(
            value="d",
            dtype=ck.f16,
            alignment=4,
            kind=DKind.STRIDED,
            stride_m=sm,
            stride_n=sn,
            span=1 + (m - 1) * sm + (n - 1) * sn,
        )
        reads.append(d)
    return replace(gemm, d=tuple(reads))


def element(matrix: Matrix, i: int, j: int) -> int:
    """Bytes from the address of a matrix to an element."""
    outer, inner = (i, j) if matrix.layout.value == "r" else (j, i)
    return (outer * matrix.stride + inner) * matrix.dtype.bytes


def read(d: ReadAccess, i: int, j: int) -> int:
    """Bytes from the address of an f16 operand of the epilogue to an element."""
    return (i * d.stride_m + j * d.stride_n) * 2


def corner(gemm: Problem, m: int, n: int, k: int) -> tuple[int, ...]:
    """Bytes from the address of each input to the element that belongs to (m, n, k)."""
    a, b = instance(Matrix, gemm.a), instance(Matrix, gemm.b)
    sides = (element(a, m, k), element(b, k, n), element(gemm.e, m, n))
    return (*sides, *(read(d, m, n) for d in gemm.d))


@given(problems(), st.integers(3000, 60_000))
def test_bands_cover_the_product_once_and_are_short(gemm: Problem, limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bands, "MOST_BYTES", limit)
        parts = list(bands_of(gemm))
    if all(each.span * each.dtype.bytes < limit for each in gemm.inputs):
        assert [part for part, _ in parts] == [gemm]
        return
    sizes: list[dict[int, int]] = [{}, {}, {}]
    for index, (part, band) in enumerate(parts):
        assert all(each.span * each.dtype.bytes < limit for each in part.inputs)
        assert (band.index, band.count) == (index, len(parts))
        for size, place, extent in zip(sizes, band.place, (part.m, part.n, part.k), strict=True):
            assert size.setdefault(place, extent) == extent
        begin = (
            sum(size[i] for i in range(at)) for size, at in zip(sizes, band.place, strict=True)
        )
        assert band.moves == corner(gemm, *begin)
    assert [sum(size.values()) for size in sizes] == [gemm.m, gemm.n, gemm.k]
    assert len(parts) == math.prod(map(len, sizes))


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 40), st.sampled_from((1, 2, 4, 8)))
def test_no_store_beyond_a_result_hits_an_element(m: int, n: int, more: int, tile: int) -> None:
    # Buffers of 64 elements of a byte, and offsets below 128.
    stride, most = n + more, 64
    span = (m - 1) * stride + n
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores, "BUFFER_BYTES", most)
        refused = stores.comes_round(m, n, (stride, 1), (tile, 4), 1)
    step = n if m == 1 else stride
    beyond = [
        (i * step + j + most * (j >= n)) % (2 * most)
        for i, j in product(range(-(-m // tile) * tile), range(-(-n // 4) * 4))
        if i >= m or j >= n
    ]
    assert refused or span > most or all(offset >= span for offset in beyond)


@pytest.mark.parametrize(
    ("extents", "rows", "columns"),
    [
        # Logits of a language model: the result spans 4 GB.
        ((16384, 128256, 4096), [8192, 8192], [128256]),
        # A weight of 4 GiB: one band of its rows would span 2 GiB exactly.
        ((64, 1 << 18, 8192), [64], [88064, 88064, 86016]),
        # The result spans 2 GiB but for 400 KB, and what is stored beyond it more.
        ((32700, 32830, 64), [11264, 11264, 10172], [32830]),
    ],
)
def test_bands_are_few_equal_and_whole_tiles(
    extents: tuple[int, int, int], rows: list[int], columns: list[int]
) -> None:
    parts = [part for part, _ in bands_of(problem(*extents, a=ck.bf16, e=ck.bf16, functions=""))]
    assert [(part.m, part.n) for part in parts] == [(m, n) for m in rows for n in columns]


# --- calls


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize(("m", "stride", "launches"), [(100, 10737418, 4), (2, 1 << 29, 2)])
def test_rows_beyond_a_far_result_hit_none_of_its_own(m: int, stride: int, launches: int) -> None:
    x, w = eighths(m, 40), eighths(40, 40)
    memory = np.zeros(1 << 30, np.float16)  # pages that nothing touches are not there
    far = DeviceArray(
        memory.ctypes.data, (m, 40), ck.f16, strides=(stride, 1), device="emu:gfx942", owner=memory
    )
    inputs = (
        DeviceArray(each.ctypes.data, each.shape, ck.f16, device="emu:gfx942", owner=each)
        for each in (x, w)
    )
    op = linear.using(single())
    op(*inputs, out=far, device="emu:gfx942")
    ck.synchronize("emu:gfx942")
    got = np.lib.stride_tricks.as_strided(memory, (m, 40), (2 * stride, 2))
    assert np.array_equal(got, linear.using(single())(x, w, device="emu:gfx942"))
    assert len(last(op).launches) == launches


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("m", "n", "k"), [(100, 90, 33), (65, 130, 8), (3, 2000, 5), (257, 1, 70)])
def test_operands_of_every_kind_move_with_their_band(m: int, n: int, k: int, short: None) -> None:
    assert check(many_reads.using(single(6)), *drawn(m, n, k)) > 1


@pytest.mark.usefixtures("stencils")
def test_explain_says_how_it_is_cut(short: None) -> None:
    x, w = (np.zeros((100, 40), np.float16) for _ in range(2))
    text = linear.using(single()).explain(x, w, device="emu:gfx942")
    assert "cut        into 14 bands of up to 16 rows and 64 columns" in text
    assert "(7 along the rows, 2 along the columns)" in text
    assert "fewer than 6000 bytes" in text
    assert text.count("kernel 0 computes") + text.count("kernel 1 computes") == 1


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("split", [{"split_k": 3}, {"stream_k": True}])
def test_bands_share_a_workspace_in_order(split: dict[str, Any], short: None) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal((rows, 300)).astype(np.float16) for rows in (20, 30))
    op = linear.using(single(reduction=Reduction.ATOMIC, **split))
    assert check(op, x, w) > 1


@pytest.mark.usefixtures("compiler")
def test_bands_of_a_batch_and_of_a_group(short: None) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 70, 40)).astype(np.float16)
    w = rng.standard_normal((3, 50, 40)).astype(np.float16)
    assert check(batch.using(single()), x, w) > 1
    op, calls = linear.using(single()), [(x[0], w[0]), (x[1, :5], w[1]), (x[2], w[2])]
    for got, args in zip(op.grouped(calls, device="emu:gfx942"), calls, strict=True):
        (want,), (bound,) = evaluate_with_bound(op.ir(*args), args)
        assert_close(got, want, bound)


@pytest.mark.usefixtures("compiler")
def test_bands_into_memory_of_the_callers_in_order_with_a_stream(
    short: None, results_on_device: None, callers_stream: int | None
) -> None:
    rng = np.random.default_rng(2)
    x, w = (rng.standard_normal((rows, 40)).astype(np.float16) for rows in (90, 70))
    from cklang.device.device import open_device
    from tests.support.streams import on_device

    device = open_device("emu:gfx942")
    there = [on_device(device, each) for each in (x, w)]
    op = linear.using(single())
    got: Any = op(*there, device="emu:gfx942")
    device.synchronize(callers_stream)
    (want,), (bound,) = evaluate_with_bound(op.ir(x, w), (x, w))
    assert_close(got.array, want, bound)


@pytest.mark.usefixtures("stencils")
def test_bands_of_torch_tensors(short: None, torch: Any) -> None:
    rng = np.random.default_rng(4)
    x, w = (rng.standard_normal((rows, 40)).astype(np.float16) for rows in (90, 70))
    got = linear.using(single())(torch.tensor(x), torch.tensor(w), device="emu:gfx942")
    (want,), (bound,) = evaluate_with_bound(linear.ir(x, w), (x, w))
    assert_close(got.numpy(), want, bound)


@pytest.mark.usefixtures("stencils")
def test_rows_that_are_64_mebibytes_apart() -> None:
    """40 rows that span 2.5 GiB, of which a few kilobytes are ever touched."""
    step = (64 << 20) // 2
    flat = np.zeros(39 * step + 64, np.float16)
    x = np.lib.stride_tricks.as_strided(flat, (40, 64), (2 * step, 2))
    rng = np.random.default_rng(3)
    w = rng.standard_normal((50, 64)).astype(np.float16)
    x[:] = rng.standard_normal(x.shape).astype(np.float16)
    op = linear.using(single())
    got = op(x, w, device="emu:gfx942")
    assert op.last is not None
    assert len(op.last.launches) == 2
    copied = np.ascontiguousarray(x)
    (want,), (bound,) = evaluate_with_bound(op.ir(copied, w), (copied, w))
    assert_close(got, want, bound)
