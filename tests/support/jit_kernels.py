# SPDX-License-Identifier: MIT
"""Triton kernels, one for each use that its tutorials teach; needs Triton."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 4096}, num_warps=32),  # more threads than a workgroup has on CDNA
        triton.Config({"BLOCK": 256}, num_warps=4),
        triton.Config({"BLOCK": 512}, num_warps=4),
    ],
    key=["n"],
)
@triton.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, at < n), at < n)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, inside, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + at, power / tl.sum(power, 0), inside)


@triton.autotune(
    configs=[
        triton.Config({"BM": 32, "BN": 64, "BK": 32}, num_warps=4),
        triton.Config({"BM": 64, "BN": 32, "BK": 16}, num_warps=2),
    ],
    key=["m", "n", "k"],
)
@triton.jit
def matmul(
    a, b, c, m, n, k, stride_a, stride_b, stride_c, LEAKY: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(n, BN)
    rows = (tl.program_id(0) // tiles * BM + tl.arange(0, BM)) % m
    columns = (tl.program_id(0) % tiles * BN + tl.arange(0, BN)) % n
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        depth = start + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * stride_a + depth[None, :], depth[None, :] < k, other=0.0)
        right = tl.load(
            b + depth[:, None] * stride_b + columns[None, :], depth[:, None] < k, other=0.0
        )
        total = tl.dot(left, right, total)
    if LEAKY:
        total = tl.where(total >= 0, total, 0.01 * total)
    rows = tl.program_id(0) // tiles * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % tiles * BN + tl.arange(0, BN)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(tl.float16), inside)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, tl.load(x + at, inside) / (1 - p), 0.0), inside)


@triton.jit
def column_sums(x, sums, locks, rows, columns, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """Adds row after row to one of a few sums, each behind a lock."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside, group = at < columns, row % GROUPS
    value = tl.load(x + row * columns + at, inside, other=0.0)
    while tl.atomic_cas(locks + group, 0, 1) == 1:
        pass
    place = sums + group * columns + at
    tl.store(place, tl.load(place, inside) + value, inside)
    tl.debug_barrier()
    tl.atomic_xchg(locks + group, 0)


@triton.jit
def attention(
    q, k, v, out, length, scale, CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    head, depth = tl.program_id(1) * length * D, tl.arange(0, D)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    left = tl.load(q + head + rows[:, None] * D + depth[None, :], rows[:, None] < length, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total, result = tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    last = tl.minimum(length, (tl.program_id(0) + 1) * BM) if CAUSAL else length
    for start in range(0, last, BN):
        keys = start + tl.arange(0, BN)
        right = tl.load(
            k + head + keys[None, :] * D + depth[:, None], keys[None, :] < length, other=0.0
        )
        score = tl.dot(left, right) * scale
        allowed = keys[None, :] < length
        if CAUSAL:
            allowed &= keys[None, :] <= rows[:, None]
        score = tl.where(allowed, score, -float("inf"))
        new_top = tl.maximum(top, tl.max(score, 1))
        power, factor = tl.exp(score - new_top[:, None]), tl.exp(top - new_top)
        total = total * factor + tl.sum(power, 1)
        values = tl.load(
            v + head + keys[:, None] * D + depth[None, :], keys[:, None] < length, other=0.0
        )
        result = tl.dot(power.to(tl.float16), values, result * factor[:, None])
        top = new_top
    tl.store(
        out + head + rows[:, None] * D + depth[None, :],
        (result / total[:, None]).to(tl.float16),
        rows[:, None] < length,
    )


@triton.jit
def arc_sine(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, libdevice.asin(tl.load(x + at, at < n)), at < n)


@triton.jit
def grouped(pointers, sizes, groups, programs: tl.constexpr, B: tl.constexpr):
    """Products whose addresses and sizes are in memory, by a fixed number of programs."""
    done = 0
    for group in range(groups):
        m, n, k = (
            tl.load(sizes + 3 * group),
            tl.load(sizes + 3 * group + 1),
            tl.load(sizes + 3 * group + 2),
        )
        a = tl.load(pointers + 3 * group).to(tl.pointer_type(tl.float16))
        b = tl.load(pointers + 3 * group + 1).to(tl.pointer_type(tl.float16))
        c = tl.load(pointers + 3 * group + 2).to(tl.pointer_type(tl.float16))
        columns, tiles = tl.cdiv(n, B), tl.cdiv(m, B) * tl.cdiv(n, B)
        first = (tl.program_id(0) - done % programs + programs) % programs
        for tile in range(first, tiles, programs):
            i, j = tile // columns * B + tl.arange(0, B), tile % columns * B + tl.arange(0, B)
            total = tl.zeros((B, B), tl.float32)
            for start in range(0, k, B):
                d = start + tl.arange(0, B)
                left = tl.load(
                    a + i[:, None] * k + d[None, :], (i[:, None] < m) & (d[None, :] < k), other=0.0
                )
                right = tl.load(
                    b + d[:, None] * n + j[None, :], (d[:, None] < k) & (j[None, :] < n), other=0.0
                )
                total = tl.dot(left, right, total)
            inside = (i[:, None] < m) & (j[None, :] < n)
            tl.store(c + i[:, None] * n + j[None, :], total.to(tl.float16), inside)
        done += tiles


@triton.jit
def copy_blocks(source, target, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Blocks through tensor descriptors."""
    at = [tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS]
    target.store(at, source.load(at) * 2)


@triton.jit
def scans(x, sums, order, BLOCK: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums + at, tl.cumsum(value, 0))
    tl.store(order + at, tl.sort(value))


@triton.jit
def block_scaled(a, scale_a, b, scale_b, c, N: tl.constexpr, K: tl.constexpr):
    """One tile of fp8 elements with an exponent for 32 of them along K."""
    i, k, s = tl.arange(0, N), tl.arange(0, K), tl.arange(0, K // 32)
    left, right = tl.load(a + i[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + i[None, :])
    scales = i[:, None] * (K // 32) + s[None, :]
    total = tl.dot_scaled(
        left, tl.load(scale_a + scales), "e4m3", right, tl.load(scale_b + scales), "e4m3"
    )
    tl.store(c + i[:, None] * N + i[None, :], total)
