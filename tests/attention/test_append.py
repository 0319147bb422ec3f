# SPDX-License-Identifier: MIT
"""``ck.append_kv``: rows behind a cache, turned by their positions, against the formula."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.ir.numeric import largest
from cklang.testing import assert_close
from cklang.types import DType, bf16, f16
from tests.support.arrays import Array, uniform
from tests.support.coverage import Covered

B, G, N, D, E, WIDTH = 3, 2, 5, 40, 24, 32
HELD = np.array([0, 13, 27], np.int32)


def turned(x: Array, positions: Array, rotary: str, dtype: DType = f16) -> tuple[Array, Array]:
    """Turn the first WIDTH elements of rows [..., row, D] at ``positions`` in float64.

    Also how far a kernel may be off: products and their sum in f32, rounded to ``dtype``.
    """
    cosine, sine = (each[positions].astype(np.float64) for each in tables(dtype).values())
    result = x.astype(np.float64)
    size = np.zeros_like(result)
    first = np.arange(WIDTH // 2) * (2 if rotary == "interleaved" else 1)
    second = first + (1 if rotary == "interleaved" else WIDTH // 2)
    a, b = result[..., first], result[..., second]
    result[..., first], result[..., second] = a * cosine - b * sine, b * cosine + a * sine
    size[..., first] = abs(a * cosine) + abs(b * sine)
    size[..., second] = abs(b * cosine) + abs(a * sine)
    half_ulp = 2.0**-11 if dtype == f16 else 2.0**-8
    return result, 2.0**-22 * size + half_ulp * abs(result) + 2.0**-25


def tables(dtype: DType = f16) -> dict[str, Any]:
    angles = np.outer(np.arange(40), 0.5 ** np.arange(WIDTH // 2))
    return {"cos": np.cos(angles).astype(dtype.numpy), "sin": np.sin(angles).astype(dtype.numpy)}


def check(rotary: str, paged: bool, dtype: DType, arch: str) -> None:
    """Append rows of keys and values to caches on an emulated GPU."""
    k, v = uniform(B, N, G, D, dtype=dtype).swapaxes(1, 2), uniform(B, G, N, E, dtype=dtype)
    table = np.random.default_rng(1).permutation(12).reshape(B, 4).astype(np.int32)
    shape = (12, 10) if paged else (B, 40)
    # Rows before heads in a page.
    cache_k, cache_v = (uniform(*shape, G, width, dtype=dtype).swapaxes(1, 2) for width in (D, E))
    caches = (cache_k, cache_v)
    want = [cache.astype(np.float64) for cache in caches]
    bound = np.zeros(want[0].shape)
    for b, start in enumerate(HELD):
        for i in range(N):
            page, row = (table[b, (start + i) // 10], (start + i) % 10) if paged else (b, start + i)
            want[0][page, :, row], bound[page, :, row] = turned(
                k[b, :, i], np.array([start + i]), rotary, dtype
            )
            want[1][page, :, row] = v[b, :, i]
    result = ck.append_kv(
        cache_k,
        cache_v,
        k,
        v,
        seqlens_k=HELD,
        block_table=table if paged else None,
        rotary=rotary,
        device=f"emu:{arch}",
        **tables(dtype),
    )
    assert result is None
    # The bound of what is not written is 0.
    assert_close(caches[0].astype(np.float64), want[0], bound)
    np.testing.assert_array_equal(caches[1].astype(np.float64), want[1])


KINDS = list(product(["interleaved", "half"], [False, True]))


def variant(rotary: str, paged: bool) -> str:
    return f"append KV: rotary {rotary}{', pages' if paged else ''}"


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize(("rotary", "paged"), KINDS)
def test_rows_go_behind_those_held(rotary: str, paged: bool, covered: Covered) -> None:
    check(rotary, paged, f16, "gfx942")
    covered(variant(rotary, paged), "f16", "gfx942")


@pytest.mark.full
@pytest.mark.parametrize(("rotary", "paged"), KINDS)
@pytest.mark.parametrize(
    ("arch", "dtype"),
    [
        (gpu, dtype)
        for gpu in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
        for dtype in (f16, bf16)
        if (gpu, dtype) != ("gfx942", f16)
    ],
    ids=str,
)
def test_rows_go_behind_those_held_everywhere(
    rotary: str, paged: bool, dtype: DType, arch: str, covered: Covered
) -> None:
    check(rotary, paged, dtype, arch)
    covered(variant(rotary, paged), dtype.name, arch)


@pytest.mark.usefixtures("stencils")
@pytest.mark.parametrize("causal", [True, False])
def test_queries_are_turned_beside(causal: bool) -> None:
    k, q = uniform(B, G, N, D), uniform(B, 4, 3, D)
    cache = np.zeros((B, G, 40, D), np.float16)
    before = q.copy()
    got = ck.append_kv(
        cache,
        cache.copy(),
        k,
        k,
        seqlens_k=HELD,
        q=q,
        causal=causal,
        rotary="interleaved",
        device="emu:gfx942",
        **tables(),
    )
    for b, start in enumerate(HELD):
        want, bound = turned(q[b], start + causal * np.arange(3), "interleaved")
        assert_close(got[b].astype(np.float64), want, bound)
    np.testing.assert_array_equal(q, before)


@pytest.mark.usefixtures("stencils")
def test_nothing_is_turned_without_tables() -> None:
    k, v = uniform(1, G, N, D), uniform(1, G, N, E)
    cache_k, cache_v = (np.zeros((1, G, 16, width), np.float16) for width in (D, E))
    ck.append_kv(cache_k, cache_v, k, v, seqlens_k=np.array([11], np.int32), device="emu:gfx942")
    for cache, rows in ((cache_k, k), (cache_v, v)):
        np.testing.assert_array_equal(cache[:, :, 11:], rows)
        assert not cache[:, :, :11].any()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seqlens_k": HELD + 9}, r"CK-A056 seqlens_k\[2\] is 36, but it must be from 0 to 35"),
        (
            {"k": uniform(B, G, 41, D), "v": uniform(B, G, 41, E)},
            "CK-A070 .* 41 rows, and there is room for 40: the caches have 40 rows",
        ),
        ({"seqlens_k": HELD[:2]}, r"CK-A062 seqlens_k must be i32 \[3\], not i32 \[2\]"),
        ({"v": uniform(B, G, N + 1, E)}, r"v must be f16 \[3, 2, 5, any\]"),
        ({"k": uniform(B, G, N, D).astype(np.float32)}, "v must be f32"),
        ({"k_cache": uniform(B, G, 40, D + 8)}, r"k_cache must be f16 \[3, 2, any, 40\]"),
        ({"q": uniform(B, 4, 3, D + 8)}, r"q must be f16 \[3, any, any, 40\]"),
        (
            {"cos": uniform(20, 16), "sin": uniform(20, 16)},
            r"seqlens_k\[2\] is 27, .* cos and sin have 20",
        ),
        ({"cos": uniform(40, 16)}, "CK-A066 sin is missing"),
        (
            {"cos": uniform(40, 24), "sin": uniform(40, 24)},
            r"cos and sin must be \[positions, up to 20\]",
        ),
        (
            {"block_table": np.zeros((B, 8), np.int32)[:, ::2]},
            "CK-A068 block_table is not row-major",
        ),
        ({"rotary": "halves", "cos": uniform(40, 8), "sin": uniform(40, 8)}, "CK-K001"),
    ],
)
def test_refusals(change: dict[str, Any], sentence: str) -> None:
    arguments = {
        "k_cache": uniform(B, G, 40, D),
        "v_cache": uniform(B, G, 40, E),
        "k": uniform(B, G, N, D),
        "v": uniform(B, G, N, E),
        "seqlens_k": HELD,
    }
    with pytest.raises(CkError, match=sentence):
        ck.append_kv(**(arguments | change), device="emu:gfx942")


def test_read_only_caches_are_refused() -> None:
    cache = np.zeros((1, 1, 8, 8), np.float16)
    cache.flags.writeable = False
    rows = cache[:, :, :1].copy()
    with pytest.raises(CkError, match="CK-A065 k_cache is read-only"):
        ck.append_kv(cache, cache, rows, rows, seqlens_k=np.zeros(1, np.int32))


NARROW = [("gfx942", ck.fp8_fnuz), ("gfx950", ck.bf8), ("gfx1201", ck.fp8)]


def scaled(x: Array, scale: Any, dtype: DType) -> Array:
    """Return what a cache of 8-bit floats holds of rows [..., heads, rows, width]."""
    most = largest(dtype.name)
    per_head = np.asarray(scale, np.float32).reshape(-1, 1, 1)
    quotient = x.astype(np.float32) / per_head
    return np.clip(quotient, -most, most).astype(dtype.numpy)


def check_narrow(arch: str, dtype: DType, paged: bool, width: int = D) -> None:
    """Append rows to caches of 8-bit floats: keys with a scale for each head, values with one."""
    k, v = 8 * uniform(B, G, N, width), 8 * uniform(B, G, N, E)
    v[0, 0, 0, 0] = 30000.0  # beyond what the type holds
    table = np.random.default_rng(1).permutation(12).reshape(B, 4).astype(np.int32)
    shape = (12, G, 10) if paged else (B, G, 40)
    caches = [np.zeros((*shape, size), dtype.numpy) for size in (width, E)]
    want = [cache.copy() for cache in caches]
    scales = np.array([0.5, 0.037], np.float32)
    stored = scaled(k, scales, dtype), scaled(v, 0.125, dtype)
    for b, start in enumerate(HELD):
        for i in range(N):
            page, row = (table[b, (start + i) // 10], (start + i) % 10) if paged else (b, start + i)
            for to, rows in zip(want, stored, strict=True):
                to[page, :, row] = rows[b, :, i]
    ck.append_kv(
        caches[0],
        caches[1],
        k,
        v,
        seqlens_k=HELD,
        block_table=table if paged else None,
        k_scale=scales,
        v_scale=0.125,
        device=f"emu:{arch}",
    )
    for cache, rows in zip(caches, want, strict=True):
        np.testing.assert_array_equal(cache.view(np.uint8), rows.view(np.uint8))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("arch", "dtype"), NARROW, ids=str)
def test_caches_of_8_bit_floats(arch: str, dtype: DType, covered: Covered) -> None:
    check_narrow(arch, dtype, paged=arch == "gfx950")
    covered(f"append KV: 8-bit caches{', pages' if arch == 'gfx950' else ''}", dtype.family, arch)


@pytest.mark.full
@pytest.mark.parametrize("paged", [False, True])
@pytest.mark.parametrize(
    ("arch", "dtype"),
    [
        *(("gfx942", dtype) for dtype in (ck.fp8_fnuz, ck.bf8_fnuz)),
        *((gpu, dtype) for gpu in ("gfx950", "gfx1201") for dtype in (ck.fp8, ck.bf8)),
    ],
    ids=str,
)
def test_caches_of_8_bit_floats_everywhere(
    arch: str, dtype: DType, paged: bool, covered: Covered
) -> None:
    check_narrow(arch, dtype, paged=paged)
    covered(f"append KV: 8-bit caches{', pages' if paged else ''}", dtype.family, arch)


@pytest.mark.usefixtures("compiler")
def test_widths_are_odd_too() -> None:
    check_narrow("gfx942", ck.fp8_fnuz, paged=False, width=61)


def append_narrow(cache: DType, **more: Any) -> None:
    k, v = uniform(B, G, N, D), uniform(B, G, N, E)
    keys, values = (np.zeros((B, G, 40, width), cache.numpy) for width in (D, E))
    ck.append_kv(keys, values, k, v, seqlens_k=HELD, device="emu:gfx942", **more)


@pytest.mark.parametrize(
    ("cache", "more", "text"),
    [
        (ck.fp8_fnuz, {"k_scale": 0.0}, "A092 k_scale is no scale of a cache: it is 0.0"),
        (ck.fp8_fnuz, {"v_scale": float("nan")}, "A092 v_scale is no scale of a cache: it is nan"),
        (ck.fp8_fnuz, {"k_scale": np.ones(3, np.float32)}, r"A092 k_scale .* it is f32 \[3\]"),
        (ck.fp8_fnuz, {"v_scale": np.ones(2, np.float16)}, r"A092 v_scale .* it is f16 \[2\]"),
        (f16, {"k_scale": 2.0}, "A092 k_scale .* k_cache is f16, no 8-bit float"),
        (ck.bf16, {}, "A062 k_cache must be f16"),
    ],
)
@pytest.mark.usefixtures("emulator")
def test_scales_that_are_refused(cache: DType, more: dict[str, Any], text: str) -> None:
    with pytest.raises(CkError, match=text):
        append_narrow(cache, **more)


@pytest.mark.usefixtures("emulator")
def test_a_gpu_has_one_encoding_of_8_bit_floats() -> None:
    with pytest.raises(CkError, match=r"A093 .* of k_cache on gfx942 is ocp \(fp8\), must be fnuz"):
        append_narrow(ck.fp8)
