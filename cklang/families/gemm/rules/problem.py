# SPDX-License-Identifier: MIT
"""Rules about a problem: which algorithms its extents, strides and addresses allow."""

from collections.abc import Iterator

from cklang.arch import ArchSpec
from cklang.device.preshuffle import arrangement_of
from cklang.families.bounds import at_most, equal, first, multiple
from cklang.families.gemm.bands import most_bytes, why_k_is_whole
from cklang.families.gemm.key import Algorithm, DOperand, Layout
from cklang.families.gemm.lower import read_width
from cklang.families.gemm.masked import may_move, moves_masked, reached_k
from cklang.families.gemm.problem import (
    Array,
    ComputedMatrix,
    GatheredMatrix,
    Matrix,
    Operand,
    PairProblem,
    Problem,
    ScaleAccess,
)
from cklang.families.gemm.rules import RULES
from cklang.families.gemm.rules.resources import warps_of
from cklang.families.gemm.stores import stored_bytes
from cklang.families.rule import Violation
from cklang.widths import BUFFER_BYTES, DWORD_BYTES, I32_MAX

_LAST_WORK_ITEM = (1 << 32) - 1
"""HIP launches fewer than 2**32 threads along an axis (hipModuleLaunchKernel)."""
_LEAST_AREA = 256
"""Elements of the smallest tiles, of 16x16 or 4x64."""
_LONGEST_SIDE = 512
"""More than the sides of all tiles."""
_LEAST_DEPTH = 8
"""Less than K of all tiles."""
_DEEPEST = 512
"""More than K of all tiles."""


def _vector_fits(name: str, matrix: Matrix | ComputedMatrix, width: int) -> Violation | None:
    """Whether every vector of ``width`` elements ends inside its row and starts aligned."""
    axis = "rows" if matrix.layout is Layout.COL else "columns"
    return multiple(f"the number of {axis} of {name}", matrix.contiguous, width) or first(
        _aligned(stored, array, array.stride if isinstance(array, Matrix) else array.stride_m, wide)
        for stored, array, wide in arrays_of(name, matrix, width)
    )


def arrays_of(
    name: str, matrix: Matrix | ComputedMatrix, width: int
) -> Iterator[tuple[str, Array, int]]:
    """Yield what of a matrix lies in memory: its name, the array, and elements of an access."""
    if isinstance(matrix, Matrix):
        yield name, matrix, width
        if isinstance(matrix, GatheredMatrix):
            yield f"the indices of {name}", matrix.indices, 1
        return
    for index, read in enumerate(matrix.reads):
        operand = DOperand(dtype=read.dtype, kind=read.kind)
        yield f"operand {index} of {name}", read, read_width(operand, width)


def _aligned(name: str, operand: Operand, stride: int, width: int) -> Violation | None:
    """Whether accesses start at whole dwords, or at whole elements if they are narrower."""
    size = operand.dtype.bytes
    unit = min(width * size, DWORD_BYTES)
    return multiple(f"the address alignment of {name} in bytes", operand.alignment, unit) or (
        multiple(f"the leading stride of {name} in bytes", stride * size, unit)
    )


@RULES.problem("extents", "kernels count rows, columns and K in 32 bits", reads=())
def _extents(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    for name, extent, least in (("M", problem.m, 1), ("N", problem.n, 1), ("K", problem.k, 0)):
        if not least <= extent <= I32_MAX:
            return Violation(what=name, value=str(extent), bound=f"from {least} to {I32_MAX}")
    return None


@RULES.problem(
    "operand-size",
    "a buffer descriptor counts bytes in 32 bits; calls are cut into bands, where that helps",
    reads=(),
)
def _operand_size(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    sides = (("A", problem.a), ("B", problem.b), ("E", problem.e), *_second(problem))
    operands: list[tuple[str, Array | ScaleAccess]]
    operands = [(name, array) for side in sides for name, array, _ in arrays_of(*side, 1)]
    operands += [(f"D{i}", d) for i, d in enumerate(problem.d)]
    operands += [("a scale", scale) for scale in problem.scales]
    for name, operand in operands:
        bytes_ = operand.span * operand.dtype.bytes
        if bytes_ >= most_bytes():
            what = f"the span of {name} in bytes"
            why = why_k_is_whole(problem)
            bound = f"below {most_bytes()}" + (f", as K cannot be cut: {why}" if why else "")
            return Violation(what=what, value=str(bytes_), bound=bound)
    return None


def _reached_bytes(problem: Problem, tile_k: int) -> Iterator[tuple[str, int]]:
    """Yield A and B, if they are stored, and the bytes of each with what is loaded beyond K."""
    k, last = problem.k, reached_k(problem.k, tile_k)
    sides = [("A", problem.a, Layout.ROW), ("B", problem.b, Layout.COL)]
    if isinstance(problem, PairProblem):
        sides.append(("the second B", problem.b2, Layout.COL))
    for name, matrix, layout in sides:
        k_is_inner = matrix.layout is layout
        if isinstance(matrix, Matrix):
            others = problem.m if name == "A" else problem.n
            if isinstance(matrix, GatheredMatrix):
                others = matrix.table
            outer, inner = (others, last) if k_is_inner else (last, others)
            # An axis of one index takes no step: the host shim gives it the stride of packed rows.
            steps = others if k_is_inner else k
            stride = inner if steps < 2 else matrix.stride
            yield name, ((outer - 1) * stride + inner) * matrix.dtype.bytes


def _never_comes_round(problem: Problem, spec: ArchSpec) -> bool:
    return all(bytes_ <= BUFFER_BYTES for _, bytes_ in _reached_bytes(problem, _DEEPEST))


@RULES.problem(
    "masked-span",
    "loads beyond K are moved by 2 GiB, and must not come round to where the matrix begins",
    reads=("tile", "pipeline"),
    decision_key=lambda a: a.tile[2] if may_move(a) else 0,
    always_satisfied=_never_comes_round,
)
def _masked_span(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    if not moves_masked(problem.signature, algorithm):
        return None
    return first(
        at_most(f"the span of {name} in bytes, with the tiles loaded beyond K,", size, BUFFER_BYTES)
        for name, size in _reached_bytes(problem, algorithm.tile[2])
    )


def _stored(problem: Problem) -> Iterator[tuple[str, int, tuple[int, int], int]]:
    """Yield what a kernel stores in whole tiles: its name, rows, strides and bytes of an element.

    Numbers of blocks and groups of columns are not.
    """
    e = problem.e
    if not e.layout.of_blocks:
        rows = e.table if isinstance(e, GatheredMatrix) else problem.m
        yield "E", rows, (e.stride, 1), e.dtype.bytes
    for index, d in enumerate(problem.d):
        if d.kind.written and not d.kind.group:
            yield f"D{index}", problem.m, (d.stride_m, d.stride_n), d.dtype.bytes


def _too_long(problem: Problem, tile: tuple[int, int]) -> Violation | None:
    """Object to a result whose elements are overwritten by what is beyond its end."""
    for name, rows, strides, bytes_ in _stored(problem):
        # Rows that go to a table's are rows of the table.
        own = (1, tile[1]) if isinstance(problem.e, GatheredMatrix) and name == "E" else tile
        what = f"the span of {name} in bytes, in whole tiles of {own[0]}x{own[1]},"
        reached = stored_bytes(rows, problem.n, strides, own, bytes_)
        if violation := at_most(what, reached, BUFFER_BYTES):
            return violation
    return None


@RULES.problem(
    "store-span",
    "whole tiles are stored, and what is beyond a result must not come round to its start",
    reads=("tile",),
    decision_key=lambda a: a.tile[:2],
    always_satisfied=lambda p, gpu: _too_long(p, (_LONGEST_SIDE, _LONGEST_SIDE)) is None,
)
def _store_span(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    return _too_long(problem, (algorithm.tile[0], columns_of(problem, algorithm)))


def tiles_of(problem: Problem, algorithm: Algorithm) -> int:
    """Return how many tiles of E a product has: with segments at most, of all their products."""
    m = algorithm.tile[0]
    rows = -(-problem.m // m) if problem.ends is None else problem.m // m + problem.segments + 1
    if problem.has_segments_of_k:
        rows = -(-problem.m // m) * problem.segments
    return rows * -(-problem.n // columns_of(problem, algorithm))


def columns_of(problem: Problem, algorithm: Algorithm) -> int:
    """Return the columns of E that a tile has: half a tile of each product of a pair."""
    return algorithm.tile[1] // problem.sums


def launchable(tiles: int, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    """Object to so many tiles in one launch: each has a workgroup, or is counted by one."""
    if algorithm.persistent or algorithm.stream_k:
        what, count, most = "the number of tiles", tiles, I32_MAX
    else:
        threads = warps_of(algorithm) * spec.wave_size
        what, count, most = "the number of threads", tiles * threads, _LAST_WORK_ITEM
    return None if count <= most else Violation(what=what, value=str(count), bound=f"up to {most}")


def most_tiles(problem: Problem) -> int:
    """Return how many tiles a product has at most, whatever the tile."""
    columns = problem.n * problem.sums
    rows = problem.m + (problem.segments + 1) * _LONGEST_SIDE
    if problem.has_segments_of_k:
        rows = (problem.m + _LONGEST_SIDE) * problem.segments
    return rows * (columns + _LONGEST_SIDE) // _LEAST_AREA


@RULES.problem(
    "grid",
    "HIP counts the threads of a launch in 32 bits, a kernel its tiles",
    reads=("tile", "warps", "persistent", "stream_k"),
    decision_key=lambda a: (a.tile[0], a.tile[1], warps_of(a), a.persistent or a.stream_k),
    always_satisfied=lambda p, gpu: most_tiles(p) * gpu.max_threads_per_block <= I32_MAX,
)
def _grid(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    return launchable(tiles_of(problem, algorithm), algorithm, spec)


@RULES.problem(
    "stream-steps",
    "stream-K counts the steps along K of all tiles in 32 bits",
    reads=("tile", "stream_k"),
    decision_key=lambda a: a.tile if a.stream_k else None,
    always_satisfied=lambda p, gpu: most_tiles(p) * (p.k // _LEAST_DEPTH + 1) <= I32_MAX,
)
def _stream_steps(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    if not algorithm.stream_k:
        return None
    steps = tiles_of(problem, algorithm) * max(-(-problem.k // algorithm.tile[2]), 1)
    if steps <= I32_MAX:
        return None
    bound = f"up to {I32_MAX}"
    return Violation(what="the steps along K of all tiles", value=str(steps), bound=bound)


@RULES.problem(
    "pad-m",
    "without padding along M the extent must be whole tiles",
    reads=("pad_m", "tile"),
    decision_key=lambda a: a.pad_m or a.tile[0],
)
def _pad_m(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    return None if algorithm.pad_m else multiple("M", problem.m, algorithm.tile[0])


@RULES.problem(
    "pad-n",
    "without padding along N the extent must be whole tiles",
    reads=("pad_n", "tile"),
    decision_key=lambda a: a.pad_n or a.tile[1],
)
def _pad_n(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    columns = columns_of(problem, algorithm)
    return None if algorithm.pad_n else multiple("N", problem.n, columns)


@RULES.problem(
    "pad-k",
    "without padding along K the extent must be whole tiles of each K split; segments need it",
    reads=("pad_k", "tile", "split_k"),
    decision_key=lambda a: a.pad_k or a.tile[2] * a.split_k,
)
def _pad_k(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    unit = algorithm.tile[2] * algorithm.split_k
    if problem.has_segments_of_k and not algorithm.pad_k:
        return Violation(what="the K of a segment", value="any", bound=f"a multiple of {unit}")
    return None if algorithm.pad_k else multiple("K", problem.k, unit)


@RULES.problem(
    "vector-a",
    "each vector load of A is aligned and stays in its row or column",
    reads=("vector_a",),
)
def _vector_a(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    return _vector_fits("A", problem.a, algorithm.vector_a)


@RULES.problem(
    "vector-b",
    "each vector load of B is aligned and stays in its row or column",
    reads=("vector_b",),
)
def _vector_b(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    return first(
        _vector_fits(name, matrix, algorithm.vector_b)
        for name, matrix in (("B", problem.b), *_second(problem))
    )


def _second(problem: Problem) -> Iterator[tuple[str, Matrix]]:
    """Yield the second B of a pair."""
    if isinstance(problem, PairProblem):
        yield "the second B", problem.b2


@RULES.problem(
    "pair-problem", "a pair is one launch without a batch, of two B of one layout", reads=()
)
def _pair_problem(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    if not isinstance(problem, PairProblem):
        return None
    if problem.batch:
        return Violation(what="the batch of a pair", value=str(problem.batch), bound="none")
    return equal("the layout of the second B", problem.b2.layout.value, problem.b.layout.value)


@RULES.problem(
    "prepared-b",
    "a prepared B stands in the order in which the kernel's lanes take it",
    reads=("warp_tile",),
)
def _prepared_b(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    arrangement, wanted = problem.b.prepared, arrangement_of(algorithm.warp_tile, spec)
    if arrangement is None or arrangement == wanted:
        return None
    return Violation(what="the order of B", value=str(arrangement), bound=str(wanted))


@RULES.problem(
    "vector-e", "each vector store of E is aligned and stays in its row", reads=("vector_e",)
)
def _vector_e(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    if problem.e.layout.of_blocks:
        return None  # numbers are stored one by one
    return _vector_fits("E", problem.e, algorithm.vector_e)


@RULES.problem(
    "vector-d",
    "each vector load of an epilogue operand is aligned and stays in its row",
    reads=("vector_d",),
)
def _vector_d(problem: Problem, algorithm: Algorithm, spec: ArchSpec) -> Violation | None:
    return equal("the number of vector_d", len(algorithm.vector_d), len(problem.d)) or first(
        multiple("N", problem.n, width) or _aligned(f"D{index}", d, d.stride_m, width)
        for index, (d, width) in enumerate(zip(problem.d, algorithm.vector_d, strict=True))
        if d.kind.contiguous
    )
