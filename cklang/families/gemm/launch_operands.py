# SPDX-License-Identifier: MIT
"""Operands of one launch of a product that is cut into bands, and what they must give.

The arrays of the whole product may not fit into memory, and its types say nothing of a band. So a
band's problem becomes a kernel of its own, whose operands are plain matrices [M, K], [K, N] and
[M, N] behind the problem's strides.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cklang.device.packed import pack
from cklang.families.gemm.key import Layout
from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.problem import (
    ComputedMatrix,
    GatheredMatrix,
    Matrix,
    PairProblem,
    Problem,
    ReadAccess,
    ScaleAccess,
)
from cklang.families.launch_operands import LaunchOperands, RandomValues
from cklang.fusion.plan import BlockScale, Computed, Gathered, Read, View
from cklang.ir.nodes import Value
from cklang.types import Blocks, Dim, DType, TensorType

Array = npt.NDArray[Any]

_M, _N, _K, _T = Dim("M"), Dim("N"), Dim("K"), Dim("T")
_SPREAD = 7919
"""A prime: rows at multiples of it, modulo those of a table, are spread over the table."""


def launch_operands_of(kernel: FusedGemm, problem: Problem, values: RandomValues) -> LaunchOperands:
    """Return random operands for a launch."""
    maker = _Maker(problem, values)
    a, b = maker.side("a", problem.a), maker.side("b", problem.b)
    b2 = maker.side("b2", problem.b2) if isinstance(problem, PairProblem) else None
    place = len(maker.memory)
    result = maker.operand("e", problem.e, (_M, _N), (problem.e.stride, 1))
    accesses = [
        Read(value=maker.operand(f"d{i}", d, (_M, _N), (d.stride_m, d.stride_n)), axes=maker.axes)
        for i, d in enumerate(problem.d)
    ]
    count = sum(not d.kind.written for d in problem.d)
    reads, more = tuple(accesses[:count]), tuple(accesses[count:])
    scale_a, scale_b = maker.scale("sa", problem.scale_a), maker.scale("sb", problem.scale_b)
    plain = replace(
        kernel,
        a=a,
        b=b,
        b2=b2 if isinstance(b2, View) else None,
        reads=reads,
        result=result,
        more=more,
        op="gemm" if kernel.op == "contract" else kernel.op,
        axes=maker.axes,
        depth=1,
        transposed=False,
        scale_a=scale_a,
        scale_b=scale_b,
    )
    return LaunchOperands(
        kernel=plain,
        memory=tuple(maker.memory),
        order=tuple(range(len(maker.memory))),
        inputs=tuple(maker.views[value.name] for value in plain.inputs),
        place=place,
        result=maker.views["e"],
        more=tuple(
            (place + 1 + count + index, maker.views[result.value.name])
            for index, result in enumerate(more)
        ),
    )


class _Maker:
    """Makes the memory of a problem's inputs in order, and a view of each by name."""

    def __init__(self, problem: Problem, values: RandomValues) -> None:
        self.batch = tuple(Dim(f"G{i}") for i in range(len(problem.batch)))
        self.axes = tuple(range(len(self.batch) + 2))
        self.memory: list[Array] = []
        self.views: dict[str, Array] = {}
        self._extents = dict(zip(self.batch, problem.batch, strict=True))
        self._extents |= {_M: problem.m, _N: problem.n, _K: problem.k}
        self._values = values

    def side(self, name: str, side: Matrix | ComputedMatrix) -> View | Computed:
        """Return A or B."""
        extents = (_M, _K) if name == "a" else (_K, _N)
        by_rows = side.layout is Layout.ROW
        if isinstance(side, GatheredMatrix):
            return self._gathered(name, side)
        if isinstance(side, Matrix):
            steps = (side.stride, 1) if by_rows else (1, side.stride)
            return View(value=self.operand(name, side, extents, steps), perm=self.axes)
        reads = []
        for index, read in enumerate(side.reads):
            outer, inner = read.stride_m, read.stride_n
            steps = (outer, inner) if by_rows else (inner, outer)
            value = self.operand(f"{name}{index}", read, extents, steps)
            reads.append(Read(value=value, axes=self.axes))
        computed = self._value(name, side.dtype, extents)
        return Computed(value=computed, extents=extents, reads=tuple(reads))

    def _gathered(self, name: str, side: GatheredMatrix) -> Gathered:
        """Return rows of a table, which a product without a batch reads at indices."""
        self._extents[_T] = side.table
        table = self.operand(name, side, (_T, _K), (side.stride, 1))
        own, count = side.indices, self._extents[_M]
        flat = np.zeros(own.span, own.dtype.numpy)
        view = flat[:: max(own.stride_m, 1)][:count] if own.stride_m else flat
        view[:] = np.arange(len(view)) * _SPREAD % side.table
        self.views[f"{name} rows"] = np.broadcast_to(view, (count,))
        self.memory.append(flat)
        indices = Value(name=f"{name} rows", type=TensorType(dtype=own.dtype, shape=(_M,)))
        copy = self._value(f"{name} copy", side.dtype, (_M, _K))
        return Gathered(
            value=table,
            perm=(None, 1),
            axis=0,
            indices=Read(value=indices, axes=(0, None)),
            copy=View(value=copy, perm=self.axes),
        )

    def scale(self, name: str, scale: ScaleAccess | None) -> BlockScale | None:
        """Return the scales of A (``sa``) or of B."""
        if scale is None:
            return None
        dims = (_M if name == "sa" else _N, _K)
        sizes = zip(dims, scale.block, strict=True)
        along, along_k = (dim if size == 1 else dim / size for dim, size in sizes)
        (rows, deep), (step, step_k) = scale.block, (scale.stride, scale.stride_k)
        if name == "sa":
            value = self.operand(name, scale, (along, along_k), (step, step_k))
            return BlockScale(view=View(value=value, perm=self.axes), block=(rows, deep))
        value = self.operand(name, scale, (along_k, along), (step_k, step))
        return BlockScale(view=View(value=value, perm=self.axes), block=(deep, rows))

    def operand(
        self,
        name: str,
        operand: Matrix | ReadAccess | ScaleAccess,
        extents: tuple[Dim, Dim],
        steps: tuple[int, int],
    ) -> Value:
        """Make one of the problem's inputs, and return its value in the plain kernel."""
        value = self._value(name, operand.dtype, extents)
        shape = tuple(self._extent(dim) for dim in (*self.batch, *extents))
        if isinstance(operand, Matrix) and (operand.prepared is not None or operand.dtype.packed):
            self.views[name] = self._values(operand.dtype, shape[-2] * shape[-1]).reshape(
                shape[-2:]
            )
            self.memory.append(_arranged(operand, self.views[name]))
            return value
        strides = (*operand.batch, *steps)
        last = sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True))
        flat = self._values(operand.dtype, last + 1)
        bytes_ = [stride * flat.itemsize for stride in strides]
        self.views[name] = np.lib.stride_tricks.as_strided(flat, shape, bytes_)
        self.memory.append(flat)
        return value

    def _extent(self, dim: Dim) -> int:
        if isinstance(dim, Blocks):
            return dim.count(self._extents[dim.of])
        return self._extents[dim]

    def _value(self, name: str, dtype: DType, extents: tuple[Dim, Dim]) -> Value:
        return Value(name=name, type=TensorType(dtype=dtype, shape=(*self.batch, *extents)))


def _arranged(operand: Matrix, matrix: Array) -> Array:
    """Return a prepared or packed matrix as it lies in memory, rows of bytes or elements."""
    if operand.prepared is not None:
        rows = operand.prepared.arrange(matrix)
        room = operand.stride
    else:
        rows = pack(matrix, axis=1 if operand.layout is Layout.ROW else 0).data
        room = operand.stride // 2
    stored = np.zeros((len(rows), room), rows.dtype)
    stored[:, : rows.shape[1]] = rows
    return stored
