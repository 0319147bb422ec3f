# SPDX-License-Identifier: MIT
"""Some products move the addresses of loads beyond K; others replace what they load.

Both have the same bits, whatever stands beyond the ends of the matrices in memory. What is read
beyond an end, or beside an image, must not come round to the start of a tensor of almost 2 GiB.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.arch import arch
from cklang.build.builder import shared_builder
from cklang.device.device_array import DeviceArray
from cklang.errors import CkError
from cklang.families.gemm.host import GemmOperand, GemmProblem, GemmShim
from cklang.families.gemm.key import Algorithm, Pipeline
from cklang.families.gemm.masked import moves_masked, reached_k
from cklang.families.gemm.problem import Matrix, Problem
from cklang.families.gemm.rules import RULES
from cklang.runtime.op import Op
from cklang.widths import BUFFER_BYTES
from tests.support.algorithms import NARROW, on_gpu
from tests.support.arrays import Array, eighths, normal
from tests.support.checks import compare
from tests.support.conv_ops import forward, input_gradient, weight_gradient
from tests.support.legal_kernels import source
from tests.support.typed import only

pytestmark = pytest.mark.usefixtures("compiler")

M, N, K, T = ck.dims("M N K T")
TILE_K = 32
SMALL = replace(NARROW, tile=(64, 64, TILE_K), warp_tile=(16, 16, 32), pipeline=Pipeline.MEM)
"""A pipeline that replaces what it loads, with the matrix instructions of `LARGE` in its order."""
LARGE = replace(SMALL, tile=(128, 128, TILE_K), pipeline=NARROW.pipeline)
SMALL_RDNA = replace(on_gpu("gfx1201", NARROW), vector_a=8, vector_b=8, vector_e=8)
LARGE_RDNA = replace(SMALL_RDNA, tile=(128, 128, TILE_K))


@ck.op
def rows(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return x @ w.T


@ck.op
def columns(x: ck.f16[K, M], w: ck.f16[K, N]) -> ck.f16[M, N]:
    return x.T @ w


@dataclass(frozen=True, slots=True)
class Way:
    """An op whose K axis is the inner or the outer one of both operands, and its algorithms."""

    op: Op
    gpu: str
    small: Algorithm
    large: Algorithm
    k_is_inner: bool

    def shape(self, others: int, k: int) -> tuple[int, int]:
        return (others, k) if self.k_is_inner else (k, others)

    def problem(self, *args: Any) -> Problem:
        return only(Problem, self.op.problems(*args))


WAYS = {
    "gfx942": Way(rows, "gfx942", SMALL, LARGE, k_is_inner=True),
    "gfx1201": Way(columns, "gfx1201", SMALL_RDNA, LARGE_RDNA, k_is_inner=False),
}


def within(values: Array, beyond: float) -> Array:
    """The values inside a larger array that is filled with something else."""
    outer, inner = values.shape
    whole = np.full((outer + 160, inner + 168), beyond, values.dtype)
    part = whole[:outer, :inner]
    part[...] = values
    return part


def is_moved(op: Op, gpu: str, *args: Any) -> bool:
    ((key, _),) = op.kernels(*args, device=f"emu:{gpu}")
    return "OFFSET_TRICK" in source(key).stencil


@pytest.mark.parametrize("gpu", WAYS)
@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("k", [0, 1, 33, 64, 200])
def test_both_ways_have_the_same_bits(gpu: str, beyond: float, k: int) -> None:
    way = WAYS[gpu]
    for m, n in ((128, 128), (136, 264), (8, 72)):
        x, w = (within(normal(*way.shape(each, k), seed=m + k), beyond) for each in (m, n))
        results = []
        for algorithm, moved in ((way.small, False), (way.large, True)):
            op = way.op.using(algorithm)
            assert is_moved(op, gpu, x, w) is moved
            results.append(op(x, w, device=f"emu:{gpu}"))
        assert results[0].tobytes() == results[1].tobytes()
        compare(way.op, (x, w), results[1])


def farthest(way: Way, others: int, k: int) -> int:
    """The largest even stride with which all that is loaded ends within 2 GiB."""
    elements = BUFFER_BYTES // 2
    last = reached_k(k, TILE_K)
    outer, inner = (others, last) if way.k_is_inner else (last, others)
    return (elements - inner) // (outer - 1) // 8 * 8


def placed(memory: Array, values: Array, stride: int, gpu: str) -> DeviceArray:
    """A matrix with a huge stride, of which the emulated GPU's memory holds what is touched."""
    apart = np.lib.stride_tricks.as_strided(memory, values.shape, (2 * stride, 2))
    apart[...] = values
    pointer, device = memory.ctypes.data, f"emu:{gpu}"
    return DeviceArray(
        pointer, values.shape, ck.f16, strides=(stride, 1), device=device, owner=memory
    )


@pytest.mark.parametrize("gpu", WAYS)
def test_a_matrix_may_span_almost_2_gib(gpu: str) -> None:
    way, (m, n, k) = WAYS[gpu], (8, 24, 40)
    x, w = (eighths(*way.shape(each, k), seed=each) for each in (m, n))
    memory = np.zeros(BUFFER_BYTES // 2, np.float16)  # pages that nothing touches are not there
    far = placed(memory, x, farthest(way, m, k), gpu)
    near = placed(np.zeros(w.size, np.float16), w, w.shape[1], gpu)
    got = way.op.using(way.large)(far, near, device=f"emu:{gpu}")
    assert np.array_equal(ck.to_host(got), way.op.using(way.small)(x, w, device=f"emu:{gpu}"))


def refused(way: Way, problem: Problem) -> bool:
    violations = RULES.rejections(way.large, problem.signature, arch(way.gpu), problem)
    names = [each.rule for each in violations]
    assert names in ([], ["masked-span"])
    return bool(names)


def asked_of_shim(problem: Problem, a: Matrix, b: Matrix) -> GemmProblem:
    operands = [(GemmOperand(pointer=4096, outer=each.stride, inner=1),) for each in (a, b)]
    e = GemmOperand(pointer=4096, outer=problem.n, inner=1)
    return GemmProblem(m=problem.m, n=problem.n, k=problem.k, a=operands[0], b=operands[1], e=e)


def lengthened(matrix: Matrix, k: int) -> Matrix:
    """A or B with another K, which is its inner or its outer axis."""
    return replace(matrix, columns=k) if matrix.value == "x" else replace(matrix, rows=k)


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("gpu", WAYS)
def test_rule_and_shim_refuse_what_would_come_round(gpu: str, name: str) -> None:
    way, others = WAYS[gpu], {"a": 8, "b": 24}
    x, w = (eighths(*way.shape(each, 40)) for each in others.values())
    wanted = way.op.using(way.large).kernels(x, w, device=f"emu:{gpu}")
    shim = GemmShim(shared_builder().build_all(wanted)[0].host_shim)
    base = way.problem(x, w)
    for k, more in product((1, 40, 64), (0, 8)):
        stride = farthest(way, others[name], k) + more
        sides = {each: lengthened(getattr(base, each), k) for each in others}
        sides[name] = replace(sides[name], stride=stride)
        problem = replace(base, k=k, a=sides["a"], b=sides["b"])
        # One row takes no step.
        comes_round = more > 0 and (way.k_is_inner or k > 1)
        assert refused(way, problem) is comes_round
        answer = shim.describe(asked_of_shim(problem, sides["a"], sides["b"]))
        assert isinstance(answer, str) is comes_round, answer
        if isinstance(answer, str):
            assert answer.startswith(f"{name.upper()} spans more than 2^31 bytes with")


def test_a_call_that_would_come_round_takes_another_kernel() -> None:
    way, shape_of_w = WAYS["gfx1201"], (40, 24)
    memory = np.zeros(64, np.float16)
    far, near = (
        DeviceArray(memory.ctypes.data, shape, ck.f16, strides=(stride, 1), device="emu:gfx1201")
        for shape, stride in (((40, 8), farthest(way, 8, 40) + 8), (shape_of_w, 24))
    )
    with pytest.raises(CkError, match="with the tiles loaded beyond K"):
        way.op.using(way.large).kernels(far, near, device="emu:gfx1201")
    ((key, _),) = way.op.kernels(far, near, device="emu:gfx1201")
    assert not moves_masked(key.signature, key.algorithm)


# --- operands that are not one matrix each


@ck.op
def two_weights(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[N, K]) -> ck.f16[M, N]:
    return (x @ w.T) * (x @ v.T)


@ck.op
def rows_of_table(x: ck.f16[T, K], at: ck.i32[M], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.take(x, at) @ w.T


@dataclass(frozen=True, slots=True)
class Case:
    """An op, an algorithm that moves its loads, and an axis of an operand that may be far."""

    op: Op
    algorithm: Algorithm
    shapes: tuple[tuple[int, ...], ...]
    far: int
    axis: int = 0
    share: float = 0.99
    """The part of 2 GiB that the operand may span at least; beside it the loop reads more."""

    def operands(self) -> list[Array]:
        arrays = [eighths(*shape, seed=seed) for seed, shape in enumerate(self.shapes)]
        if self.op is rows_of_table:
            arrays[1] = np.array([4, 0, 3, 4, 2, 1], np.int32)
        return arrays

    def placed(self, arrays: Sequence[Array], stride: int, memory: Array) -> list[DeviceArray]:
        """The operands, one with a huge stride in memory that only it touches."""
        operands = [ck.to_device(array, device="emu:gfx942") for array in arrays]
        near = arrays[self.far]
        strides = [step // 2 for step in near.strides]
        strides[self.axis] = stride
        view = np.lib.stride_tricks.as_strided(memory, near.shape, [2 * step for step in strides])
        view[...] = near
        operands[self.far] = DeviceArray(
            memory.ctypes.data, near.shape, ck.f16, strides=tuple(strides), device="emu:gfx942"
        )
        return operands


PIXELS, TAPS = (1, 3, 5, 8), (24, 3, 3, 8)
LARGE_16 = replace(LARGE, warp_tile=NARROW.warp_tile)
CASES = {
    "the second B": Case(two_weights, NARROW, ((8, 40), (24, 40), (24, 40)), 2),
    "a table": Case(rows_of_table, NARROW, ((5, 40), (6,), (24, 40)), 0),
    "an image": Case(forward, NARROW, (PIXELS, TAPS), 0, axis=1, share=0.15),
    "weights": Case(forward, NARROW, (PIXELS, TAPS), 1),
    "gradients": Case(input_gradient, LARGE_16, ((1, 3, 5, 24), TAPS), 0, axis=1, share=0.1),
    "images": Case(weight_gradient, LARGE_16, ((2, 3, 5, 8), (2, 3, 5, 24)), 0, share=0.1),
}


# The taps of weights have one stride, so that nothing lies between them.
@pytest.mark.parametrize("name", sorted(CASES.keys() - {"weights"}))
def test_what_lies_beyond_in_memory_does_not_matter(name: str) -> None:
    case = CASES[name]
    op, arrays = case.op.using(case.algorithm), case.operands()
    surrounded = list(arrays)
    near = arrays[case.far]
    surroundings = np.full([extent + 3 for extent in near.shape], np.nan, near.dtype)
    surrounded[case.far] = surroundings[tuple(slice(1, 1 + extent) for extent in near.shape)]
    surrounded[case.far][...] = near
    assert is_moved(op, "gfx942", *surrounded)
    got = op(*surrounded, device="emu:gfx942")
    assert np.array_equal(got, op(*arrays, device="emu:gfx942"))
    compare(case.op, arrays, got)


@pytest.mark.parametrize("name", CASES)
def test_the_farthest_operand_is_read_right(name: str) -> None:
    case = CASES[name]
    op, arrays = case.op.using(case.algorithm), case.operands()
    memory = np.zeros(BUFFER_BYTES // 2 + 4096, np.float16)  # only what is touched is there

    def is_refused(eighth: int) -> bool:
        try:
            op.kernels(*case.placed(arrays, 8 * eighth, memory), device="emu:gfx942")
        except CkError as refusal:
            return "2147" in str(refusal) or "buffer" in str(refusal)
        return False

    # Elements of an operand are within the memory, whatever its rule says.
    steps = arrays[case.far].shape[case.axis] - 1
    most = BUFFER_BYTES // 16 // steps
    eighths_of_stride = range(arrays[case.far].size // 8, most)
    farthest_one = 8 * eighths_of_stride[bisect_left(eighths_of_stride, True, key=is_refused) - 1]
    assert farthest_one * steps * 2 > case.share * BUFFER_BYTES
    got = op(*case.placed(arrays, farthest_one, memory), device="emu:gfx942")
    assert np.array_equal(ck.to_host(got), op(*arrays, device="emu:gfx942"))
