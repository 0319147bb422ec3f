# SPDX-License-Identifier: MIT
"""Kernels in FlyDSL that tests run on emulated GPUs."""

import flydsl.compiler as flyc
import flydsl.expr as fx

_DEFAULT = fx.Stream(None)

THREADS = 256
TILE = 32
DEPTH = 16


@flyc.kernel
def add_kernel(x: fx.Tensor, y: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    at = fx.block_idx.x * THREADS + fx.thread_idx.x
    if at < n:
        fx.memref_store(fx.memref_load(x, at) + fx.memref_load(y, at), out, at)


@flyc.jit
def add(x: fx.Tensor, y: fx.Tensor, out: fx.Tensor, n: fx.Int32, stream: fx.Stream = _DEFAULT):
    groups = (n + THREADS - 1) // THREADS
    add_kernel(x, y, out, n).launch(grid=(groups, 1, 1), block=(THREADS, 1, 1), stream=stream)


@flyc.kernel
def copy_kernel(x: fx.Tensor, out: fx.Tensor):
    """Copy a tile of 8 by 24 with vectors of four, by a layout of threads and values."""
    tile = fx.make_tile(8, 24)
    part = fx.slice(fx.zipped_divide(x, tile), (None, fx.block_idx.x))
    target = fx.slice(fx.zipped_divide(out, tile), (None, fx.block_idx.x))
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    threads, values = fx.make_layout((8, 6), (6, 1)), fx.make_layout((1, 4), (1, 1))
    copy = fx.make_tiled_copy_tv(atom, threads, values).get_slice(fx.thread_idx.x)
    source, sink = copy.partition_S(part), copy.partition_D(target)
    registers = fx.make_fragment_like(source)
    fx.copy(atom, source, registers)
    fx.copy(atom, registers, sink)


@flyc.jit
def copy(x: fx.Tensor, out: fx.Tensor, tiles: fx.Constexpr[int], stream: fx.Stream = _DEFAULT):
    copy_kernel(x, out).launch(grid=(tiles, 1, 1), block=(48, 1, 1), stream=stream)


@flyc.kernel
def softmax_kernel(
    x: fx.Tensor, out: fx.Tensor, columns: fx.Constexpr[int], meet: fx.Constexpr[int]
):
    """One row a workgroup; sums of the threads go through LDS. Without ``meet`` they race."""
    thread = fx.thread_idx.x
    row = fx.block_idx.x * columns
    parts = fx.SharedAllocator().allocate(fx.Array[fx.Float32, THREADS]).peek()
    mine = fx.math.exp(fx.memref_load(x, row + thread))
    parts[thread] = mine
    if meet:
        fx.gpu.barrier()
    total = fx.Float32(0.0)
    for n in fx.range_constexpr(columns):
        total = total + parts[n]
    fx.memref_store(mine / total, out, row + thread)


@flyc.jit
def softmax(
    x: fx.Tensor,
    out: fx.Tensor,
    rows: fx.Constexpr[int],
    columns: fx.Constexpr[int],
    meet: fx.Constexpr[int],
    stream: fx.Stream = _DEFAULT,
):
    softmax_kernel(x, out, columns, meet).launch(
        grid=(rows, 1, 1), block=(columns, 1, 1), stream=stream
    )


@flyc.kernel
def product_kernel(
    a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, steps: fx.Constexpr[int], rdna: fx.Constexpr[int]
):
    """One tile of ``a @ b.T`` by four waves, 16 by 16 each, in steps of 16 along k."""
    thread, tile = fx.thread_idx.x, fx.make_coord(fx.block_idx.x, fx.block_idx.y)
    operation = fx.rocdl.WMMA if rdna else fx.rocdl.MFMA
    atom = fx.make_mma_atom(operation(16, 16, 16, fx.Float16))
    mma = fx.make_tiled_mma(atom, fx.make_layout((2, 2, 1), (1, 2, 0)))
    mine = mma.thr_slice(thread)
    load = fx.make_copy_atom(fx.UniversalCopy16b(), fx.Float16)
    store = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    from_a = fx.make_tiled_copy_A(load, mma).get_slice(thread)
    from_b = fx.make_tiled_copy_B(load, mma).get_slice(thread)
    to_c = fx.make_tiled_copy_C(store, mma).get_slice(thread)
    tiles_a = fx.zipped_divide(a, fx.make_tile(TILE, DEPTH))
    tiles_b = fx.zipped_divide(b, fx.make_tile(TILE, DEPTH))
    tile_c = fx.slice(fx.zipped_divide(c, fx.make_tile(TILE, TILE)), (None, tile))
    sums = mine.make_fragment_C(tile_c)
    sums.fill(0.0)
    for step in fx.range_constexpr(steps):
        tile_a = fx.slice(tiles_a, (None, (fx.block_idx.x, step)))
        tile_b = fx.slice(tiles_b, (None, (fx.block_idx.y, step)))
        left = mine.make_fragment_A(tile_a)
        right = mine.make_fragment_B(tile_b)
        fx.copy(load, from_a.partition_S(tile_a), from_a.retile(left))
        fx.copy(load, from_b.partition_S(tile_b), from_b.retile(right))
        fx.gemm(atom, sums, left, right, sums)
    fx.copy(store, to_c.retile(sums), to_c.partition_S(tile_c))


@flyc.jit
def product(
    a: fx.Tensor,
    b: fx.Tensor,
    c: fx.Tensor,
    grid: fx.Constexpr[tuple],
    steps: fx.Constexpr[int],
    rdna: fx.Constexpr[int],
    wave: fx.Constexpr[int],
    stream: fx.Stream = _DEFAULT,
):
    product_kernel(a, b, c, steps, rdna).launch(
        grid=(grid[0], grid[1], 1), block=(4 * wave, 1, 1), stream=stream
    )


@flyc.kernel
def print_kernel(x: fx.Tensor):
    thread = fx.thread_idx.x
    if thread == 3:
        fx.printf("lane {} of {} has {}", thread, "many", fx.memref_load(x, thread))


@flyc.jit
def show(x: fx.Tensor, stream: fx.Stream = _DEFAULT):
    print_kernel(x).launch(grid=(1, 1, 1), block=(64, 1, 1), stream=stream)


@flyc.kernel
def functions_kernel(x: fx.Tensor, out: fx.Tensor):
    at = fx.thread_idx.x
    value = fx.memref_load(x, at)
    total = fx.math.exp2(value) + fx.math.sin(value) + fx.math.erf(value)
    fx.memref_store(total + fx.math.powf(value, value), out, at)


@flyc.jit
def functions(x: fx.Tensor, out: fx.Tensor, stream: fx.Stream = _DEFAULT):
    functions_kernel(x, out).launch(grid=(1, 1, 1), block=(64, 1, 1), stream=stream)
