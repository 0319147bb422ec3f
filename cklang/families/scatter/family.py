# SPDX-License-Identifier: MIT
"""The family of rows that are written or added at indices."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from cklang.arch import arch
from cklang.device.arrays import HOST, Array
from cklang.families import FAMILIES, plan_of
from cklang.families.closed_source import closed_source, flag
from cklang.families.index_arrays import HostIndices
from cklang.families.lines import LinesRequest, LinesShim, LineTensor, merged
from cklang.families.protocol import HelperFamily, Launches, Planning, Sel
from cklang.families.scatter.fuse import MAKERS, FusedScatter
from cklang.families.scatter.key import Scatter, ScatterKey, ScatterSignature, link_key
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout, refuse_overlap
from cklang.fusion.functions import Functions
from cklang.fusion.passes import Fusion
from cklang.fusion.plan import Read
from cklang.ir.builder import Builder
from cklang.ir.rewrite import renamed
from cklang.lowering.source import KernelSource
from cklang.types import TensorType, i8, i32

_THREADS = 256
"""``scatter_threads`` of ``include/cklang/scatter.hpp``."""

_PART = 4 * _THREADS
"""``scatter_part``."""


def lower_scatter(key: ScatterKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that writes or adds rows at indices."""
    s = key.signature
    links = s.how is Scatter.LINK
    return closed_source(
        key,
        "scatter.hip.j2",
        "ck_" + "_".join(s.label(None)),
        words=s.words,
        threads=_THREADS,
        lines=_THREADS // arch(key.arch).wave_size if links else 1,
        part=0 if links else _PART,
        result=s.result.ck,
        rows=s.rows.ck,
        index="int64_t" if s.index.name == "i64" else "int32_t",
        how=s.how.value,
        linked=flag(s.linked),
    )


_MOST_COMPARED = 1024
"""Rows up to which each workgroup looks for equal indices itself; beyond, a kernel does."""

_LINK_BYTES = 2 * 4
"""Bytes that link a row: the next row, and whether there is an earlier one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterProblem:
    """What is written, and where each tensor lies; strides in elements."""

    signature: ScatterSignature
    indices: tuple[int, ...]
    """Extents of the axes of the indices."""
    elements: tuple[int, ...]
    """Extents of the axes of a row."""
    index_strides: tuple[int, ...]
    row_strides: tuple[int, ...]
    """Strides of the rows along the axes of the indices."""
    row_elements: tuple[int, ...]
    """Elements of a row along its axes."""
    result_elements: tuple[int, ...]
    extent: int
    """The extent of the axis."""
    step: int
    """The stride of the result along the axis."""

    @property
    def count(self) -> int:
        """How many rows there are."""
        return math.prod(self.indices)

    @property
    def length(self) -> int:
        """The elements of a row."""
        return math.prod(self.elements)

    @property
    def bytes(self) -> int:
        """What the kernel moves: indices, rows, and those of the result, which sums read too."""
        s = self.signature
        touched = s.result.bytes * (2 if s.how is Scatter.ADD else 1)
        return self.count * (s.index.bytes + self.length * (s.rows.bytes + touched))

    def __str__(self) -> str:
        verb = "added" if self.signature.how is Scatter.ADD else "written"
        return f"{self.count} rows of {self.length} {verb} at indices to {self.extent}"

    def request(self, indices: int, rows: int, result: int, links: int) -> LinesRequest:
        """Return what the host shim is asked, for addresses."""
        return LinesRequest(
            outer=self.indices,
            inner=self.elements,
            extent=self.extent,
            step=self.step,
            tensors=(
                LineTensor(pointer=indices, outer=self.index_strides),
                LineTensor(pointer=rows, outer=self.row_strides, inner=self.row_elements),
                LineTensor(pointer=result, inner=self.result_elements),
                LineTensor(pointer=links),
            ),
        )


class _ScatterFamily(HelperFamily[FusedScatter, ScatterSignature, ScatterProblem]):
    """Rows written or added at indices: before the kernel, the result is what it was without."""

    fusion = Fusion(makers=MAKERS)

    def problem(
        self, kernel: FusedScatter, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> ScatterProblem | None:
        """Return the problem of a kernel; None if nothing is written.

        Raises:
            CkValueError: A045, two elements of a result are one in memory.
        """
        result = layouts[kernel.result.name]
        refuse_overlap(result)
        index_strides, shape = _strides(kernel.indices, layouts), kernel.places.extents(dims)
        row_strides = _strides(kernel.rows, layouts)
        axis, end = kernel.axis, kernel.axis + len(shape)
        elements = (*result.shape[:axis], *result.shape[axis + 1 :])
        if not math.prod((*shape, *elements)):
            return None
        outer, (ids, rows) = merged(shape, index_strides, row_strides[axis:end])
        inner, (row_elements, result_elements) = merged(
            elements,
            (*row_strides[:axis], *row_strides[end:]),
            (*result.strides[:axis], *result.strides[axis + 1 :]),
        )
        signature = ScatterSignature(
            how=Scatter.ADD if kernel.adds else Scatter.SET,
            index=kernel.indices.value.type.dtype,
            rows=kernel.rows.value.type.dtype,
            result=kernel.result.type.dtype,
            linked=math.prod(shape) > _MOST_COMPARED,
        )
        return ScatterProblem(
            signature=signature,
            indices=outer,
            elements=inner,
            index_strides=ids,
            row_strides=rows,
            row_elements=row_elements,
            result_elements=result_elements,
            extent=result.shape[axis],
            step=result.strides[axis],
        )

    def plan(self, kernel: FusedScatter, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
        """Yield the launches of a kernel: what was there before, equal indices, and the rows."""
        problem = self.problem(kernel, planning.layouts, planning.dims)
        before = () if kernel.in_place else filled(kernel, planning)
        if problem is None:
            yield from before
            return
        key = ScatterKey(problem.signature, None, planning.spec.name)
        why = "the one kernel that writes rows at indices in order"
        selection = planning.fixed(key, problem, kernel.functions, why)
        stages = [stage for launches in before for stage in launches.stages]
        links = f"{kernel.result.name} links"
        if problem.signature.linked:
            stages.append(_link(kernel, problem, links, planning.spec.name))
        main = _written(kernel, problem, key, links)
        yield Launches(selection=selection, main=main, before=tuple(stages))

    def host_check(
        self, kernel: FusedScatter, arrays: Mapping[str, Array], dims: Mapping[str, int], place: str
    ) -> HostIndices | None:
        """Return the indices of a kernel, if they are an argument in host memory."""
        name = kernel.indices.value.name
        if place != HOST or name not in arrays:
            return None
        return HostIndices.of(name, arrays, kernel.result.type.extents(dims)[kernel.axis])


def _strides(read: Read, layouts: Mapping[str, TensorLayout]) -> tuple[int, ...]:
    """Return the strides of an operand, 0 along axes that it repeats."""
    strides = layouts[read.value.name].strides
    return tuple(0 if own is None else strides[own] for own in read.axes)


def filled(kernel: FusedScatter, planning: Planning[Sel]) -> tuple[Launches[Sel], ...]:
    """Return the launches that make the result what it is without rows: a copy, or zeros."""
    layouts = dict(planning.layouts)
    result, base = kernel.result, kernel.base
    builder = Builder(f"before_{kernel.name}")
    shape = result.type.shape
    if base is not None:
        name = base.value.name
        layout = layouts[name]
        extents = result.type.extents(planning.dims)
        layouts[name] = replace(layout, shape=extents, strides=_strides(base, layouts))
        source = builder.param(name, TensorType(dtype=base.value.type.dtype, shape=shape))
        same = builder.append("transpose", source, perm=tuple(range(len(shape))))
    else:
        zero = builder.constant(0 if result.type.dtype in (i8, i32) else 0.0)
        same = builder.broadcast(zero, shape)
    last = builder.cast(same, result.type.dtype)
    function = renamed(builder.finish(last), result)
    own = replace(planning, layouts=layouts)
    return tuple(
        launches
        for kernel in plan_of(function).kernels
        for launches in FAMILIES[kernel.family].plan(kernel, own)
    )


def _link(kernel: FusedScatter, problem: ScatterProblem, links: str, gpu: str) -> Stage:
    return Stage(
        key=link_key(gpu, problem.signature.index),
        problem=f"equal ones of {problem.count} indices",
        shim=LinesShim,
        values=(kernel.indices.value.name, links),
        written=frozenset((links,)),
        request=lambda at: problem.request(at[0], 0, 0, at[1]),
        temporaries={links: _LINK_BYTES * problem.count},
        zeroed=(links,),
    )


def _written(kernel: FusedScatter, problem: ScatterProblem, key: ScatterKey, links: str) -> Stage:
    values = [read.value.name for read in (kernel.indices, kernel.rows)]
    linked = problem.signature.linked
    return Stage(
        key=key,
        problem=problem,
        shim=LinesShim,
        values=(*values, kernel.result.name, *([links] if linked else [])),
        written=frozenset((kernel.result.name,)),
        request=lambda at: problem.request(at[0], at[1], at[2], at[3] if linked else 0),
        temporaries={links: _LINK_BYTES * problem.count} if linked else {},
    )


SCATTER = _ScatterFamily("scatter", ScatterSignature, lower_scatter)
