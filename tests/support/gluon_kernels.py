# SPDX-License-Identifier: MIT
"""Kernels in Gluon, Triton's language with layouts, that tests run on emulated GPUs."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def scale(x, out, n, factor, BLOCK: gl.constexpr, WAVE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([2], [WAVE], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    inside = at < n
    gl.store(out + at, gl.load(x + at, inside) * factor, inside)


@gluon.jit
def column_sums(x, out, M: gl.constexpr, N: gl.constexpr, WAVE: gl.constexpr):
    """A tile goes through LDS from a layout by rows to one by columns."""
    by_rows: gl.constexpr = gl.BlockedLayout([1, 4], [WAVE // 8, 8], [4, 1], [1, 0])
    by_columns: gl.constexpr = gl.BlockedLayout([4, 1], [8, WAVE // 8], [1, 4], [0, 1])
    swizzled: gl.constexpr = gl.SwizzledSharedLayout(4, 1, 8, [1, 0])
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, by_rows))
    columns = gl.arange(0, N, layout=gl.SliceLayout(0, by_rows))
    tile = gl.load(x + rows[:, None] * N + columns[None, :])
    buffer = gl.allocate_shared_memory(gl.float32, [M, N], swizzled, tile)
    sums = gl.sum(buffer.load(by_columns), 0)
    gl.store(out + gl.arange(0, N, layout=gl.SliceLayout(0, by_columns)), sums)


@gluon.jit
def product(
    a, b, c, K: gl.constexpr, MATRIX: gl.constexpr, WIDTH: gl.constexpr, RDNA: gl.constexpr
):
    """One tile of 64 by 64 in steps of 32 along k, by MFMA or WMMA."""
    left: gl.constexpr = gl.DotOperandLayout(0, MATRIX, WIDTH)
    right: gl.constexpr = gl.DotOperandLayout(1, MATRIX, WIDTH)
    row = gl.arange(0, 64, layout=gl.SliceLayout(1, left))
    row_k = gl.arange(0, 32, layout=gl.SliceLayout(0, left))
    column_k = gl.arange(0, 32, layout=gl.SliceLayout(1, right))
    column = gl.arange(0, 64, layout=gl.SliceLayout(0, right))
    sums = gl.zeros((64, 64), gl.float32, MATRIX)
    for k in range(0, K, 32):
        x = gl.load(a + row[:, None] * K + k + row_k[None, :])
        y = gl.load(b + (k + column_k)[:, None] * 64 + column[None, :])
        if RDNA:
            sums = gl.amd.rdna4.wmma(x, y, sums)
        else:
            sums = gl.amd.cdna3.mfma(x, y, sums)
    m = gl.arange(0, 64, layout=gl.SliceLayout(1, MATRIX))
    n = gl.arange(0, 64, layout=gl.SliceLayout(0, MATRIX))
    gl.store(c + m[:, None] * 64 + n[None, :], sums)
