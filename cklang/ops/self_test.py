# SPDX-License-Identifier: MIT
"""Run one kernel on small integers, whose products and sums are exact, and count wrong elements.

It asks no rule: that is how combinations are measured that rules keep out. Where the operands'
types hold the integers and the accumulator the sums, a right kernel has no wrong element.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cklang.arch import arch
from cklang.build.builder import shared_builder
from cklang.device.artifact import Artifact
from cklang.device.device import Device, open_device
from cklang.device.packed import pack
from cklang.device.staging import HostRegion, placed
from cklang.families.gemm.family import GEMM
from cklang.families.gemm.key import Algorithm, GemmKey, Layout
from cklang.families.gemm.problem import Matrix, Problem
from cklang.families.gemm.synthetic import problem
from cklang.fusion.functions import Functions
from cklang.ir.nodes import Function, Value
from cklang.runtime.standalone_launch import standalone_launch
from cklang.selection.context import device_of
from cklang.types import DType, Kind, TensorType, f32, i32


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """How many elements of a kernel's result are wrong.

    Example:
        >>> from cklang.testing import SelfTest
        >>> print(SelfTest(elements=27200, wrong=0, zero=False))
        right: all 27200 elements exact
        >>> print(SelfTest(elements=27200, wrong=27200, zero=True))
        wrong: 100.00% of the elements, all of them zero
    """

    elements: int
    wrong: int
    zero: bool
    """Whether every element is zero, as where a compiler dropped the matrix instructions."""

    def __str__(self) -> str:
        if not self.wrong:
            return f"right: all {self.elements} elements exact"
        zeros = ", all of them zero" if self.zero else ""
        return f"wrong: {self.wrong / self.elements:.2%} of the elements{zeros}"


def _accumulator(dtype: DType) -> DType:
    return i32 if dtype.kind is Kind.INT else f32


def passing(dtype: DType) -> Functions:
    """The epilogue that stores the accumulator as it is."""
    acc = Value(name="acc", type=TensorType(dtype=_accumulator(dtype)))
    return Functions(epilogue=Function(name="epilogue", params=(acc,), body=(), results=(acc,)))


def plain_problem(
    dtype: DType,
    m: int,
    n: int,
    k: int,
    layouts: str = "rcr",
    result: DType | None = None,
    b: DType | None = None,
) -> Problem:
    """Return the problem E = A B, without gaps.

    ``result`` is by default the accumulator's type, ``b`` that of A.
    """
    functions = passing(dtype).digest
    e = result or _accumulator(dtype)
    return problem(m, n, k, a=dtype, b=b, e=e, layouts=layouts, functions=functions)


def plain_key(
    algorithm: Algorithm,
    dtype: DType,
    gpu: str,
    layouts: str = "rcr",
    result: DType | None = None,
    b: DType | None = None,
) -> GemmKey:
    """Return the key of the kernel of ``algorithm`` that computes E = A B.

    Example:
        >>> algorithm = ck.dispatch.Algorithm(
        ...     tile=(128, 128, 32), warps=(2, 2, 1), warp_tile=(32, 32, 16),
        ...     vector_a=8, vector_b=8, vector_e=8,
        ... )
        >>> from cklang.testing import plain_key
        >>> plain_key(algorithm, ck.f16, "gfx942").label
        'gemm_f16_f32_rcr_d0_compv3_cshuffle_128x128x32_2x2x1_32x32x16_gfx942_...'
    """
    signature = plain_problem(dtype, 1, 1, 1, layouts, result, b).signature
    return GemmKey(signature, algorithm, gpu)


def self_test(
    key: GemmKey, shape: tuple[int, int, int] = (200, 136, 104), device: str | None = None
) -> SelfTest:
    """Build the kernel of ``key``, run it and compare.

    Args:
        key: A kernel of :func:`plain_key`.
        shape: M, N and K.
        device: Where; a device with the key's GPU if left out.

    Example:
        >>> algorithm = ck.dispatch.Algorithm(
        ...     tile=(128, 128, 32), warps=(2, 2, 1), warp_tile=(32, 32, 16),
        ...     vector_a=8, vector_b=8, vector_e=8,
        ... )
        >>> from cklang.testing import plain_key, self_test
        >>> key = plain_key(algorithm, ck.f16, "gfx942")
        >>> print(self_test(key, device="emu:gfx942"))  # doctest: +SKIP
        right: all 27200 elements exact

    Raises:
        CkBuildError: It does not compile. CkUnsupportedError: D007, CK Tile refuses the shape.
        CkDeviceError: It faults.
    """
    s = key.signature
    layouts = s.layouts
    problem = plain_problem(s.dtype_a, *shape, layouts, s.dtype_e, s.dtype_b)
    (artifact,) = shared_builder().build_all([(key, passing(s.dtype_a))])
    target = open_device(device or device_of(arch(key.arch)))
    rng = np.random.default_rng(sum(shape))
    matrices = [matrix for matrix in (problem.a, problem.b) if isinstance(matrix, Matrix)]
    a, b = (_integers(matrix, rng) for matrix in matrices)
    e = np.full((problem.m, problem.n), 99).astype(s.dtype_e.numpy)
    stored = [
        pack(array).data if matrix.dtype.packed else array
        for array, matrix in zip((a, b), matrices, strict=True)
    ]
    _launch(target, artifact, problem, [*stored, e])
    operands = [_logical(*pair).astype(np.float64) for pair in zip((a, b), matrices, strict=True)]
    reference = operands[0] @ operands[1]
    wrong = int(np.count_nonzero(e.astype(np.float64) != reference))
    return SelfTest(elements=e.size, wrong=wrong, zero=not e.any())


def _launch(
    device: Device, artifact: Artifact, problem: Problem, arrays: Sequence[npt.NDArray[Any]]
) -> None:
    last = len(arrays) - 1
    regions = [
        HostRegion(pointer=array.ctypes.data, low=0, high=array.nbytes, written=index == last)
        for index, array in enumerate(arrays)
    ]
    key = artifact.key
    stage = GEMM.stage(problem, key, passing(key.signature.dtype_a), device.spec)
    with placed(device, regions) as addresses:
        places = dict(zip(stage.values, addresses, strict=True))
        with standalone_launch(device, [stage], [artifact], places) as launch:
            launch()


def _integers(matrix: Matrix, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Integers from -3 to 3, as they lie in memory."""
    shape = (matrix.rows, matrix.columns)
    stored = shape if matrix.layout is Layout.ROW else shape[::-1]
    return rng.integers(-3, 4, stored).astype(np.float32).astype(matrix.dtype.numpy)


def _logical(stored: npt.NDArray[Any], matrix: Matrix) -> npt.NDArray[Any]:
    return stored if matrix.layout is Layout.ROW else stored.T
