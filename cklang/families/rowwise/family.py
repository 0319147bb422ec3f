# SPDX-License-Identifier: MIT
"""The family of rows: reductions, what is computed around them, and pointwise programs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from cklang.arch import ArchSpec, arch
from cklang.device.arrays import HOST, Array
from cklang.device.resources import Resources
from cklang.errors import error
from cklang.families.closed_source import flag
from cklang.families.function_work import instructions, vector_time
from cklang.families.index_arrays import HostIndices
from cklang.families.memory_cost import memory_time
from cklang.families.protocol import Family, Launches, Operands, Planning, Sel
from cklang.families.records import Variants
from cklang.families.rowwise.cost import RowwiseCost
from cklang.families.rowwise.extremes import with_extremes
from cklang.families.rowwise.functions import is_of_row, rowwise_fill, symbol
from cklang.families.rowwise.fuse import MAKERS, FusedRows
from cklang.families.rowwise.host import RowwiseShim
from cklang.families.rowwise.index_arrays import host_indices
from cklang.families.rowwise.key import Reduction, RowwiseAlgorithm, RowwiseKey, RowwiseSignature
from cklang.families.rowwise.long_rows import cut_kernels, is_long, shared
from cklang.families.rowwise.outline import outlined
from cklang.families.rowwise.problem import RowwiseProblem, RowwiseTensor, problem_of
from cklang.families.rowwise.rules import GRID, RULES
from cklang.families.rowwise.taken import with_taken_first
from cklang.families.rule import RuleSet
from cklang.families.stage import Stage
from cklang.families.tensor_layout import TensorLayout
from cklang.fusion.functions import Functions
from cklang.fusion.passes import Fusion, on_program
from cklang.keys import AnyKey
from cklang.lowering.render import key_json, template
from cklang.lowering.source import KernelSource

_JOINS = {Reduction.SUM: "Sum", Reduction.MAX: "Max", Reduction.MIN: "Min", Reduction.PROD: "Prod"}
"""The classes of ``include/cklang/rowwise.hpp``, after ``Row`` or ``RowInt``."""


def lower_rowwise(key: RowwiseKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel of rows."""
    s, a = key.signature, key.algorithm
    kernel = "ck_" + "_".join(key.signature.label(a))
    text = template("rowwise.hip.j2").render(
        key_json=key_json(key),
        kernel=kernel,
        words=s.words,
        threads=a.threads,
        vector=a.vector,
        chunks=a.chunks,
        kept=s.kept,
        common=s.common,
        axes=s.row_axes,
        element_count=len(s.elements),
        goes_on=flag(bool(s.common and a.chunks)),
        is_map=flag(s.is_map),
        elements=", ".join(dtype.ck for dtype in s.elements),
        rows=", ".join(dtype.ck for dtype in s.rows),
        stages=[", ".join(stage) for stage in _stages(key)],
    )
    return KernelSource(
        stencil=text,
        fill=rowwise_fill(functions, a.vector, s.row_axes),
        hole=", ".join(symbol(hole) for hole in holes_of(key)),
        kernel=kernel,
        host_headers=False,
    )


def holes_of(key: RowwiseKey) -> list[str]:
    """Return the functions that a kernel calls."""
    s = key.signature
    parts = [f"part{stage}" for stage in range(len(s.reductions))]
    named = {"common": s.common, "load": s.kept, "store": s.elements, "finish": s.rows}
    return [*parts, *(hole for hole, is_there in named.items() if is_there)]


def _stages(key: RowwiseKey) -> list[list[str]]:
    s = key.signature
    stages: list[list[str]] = []
    place = 0
    for stage in s.reductions:
        joins = []
        for reduction in stage:
            kind = "RowInt" if place in s.integers else "Row"
            joins.append(f"cklang::{kind}{_JOINS[reduction]}")
            place += 1
        stages.append(joins)
    return stages


_SHARED = "several workgroups share a row: there are fewer rows than compute units"

_SMALL = 0x3C
"""A byte that makes a small number in every floating format."""


class Rowwise(Family[FusedRows, RowwiseSignature, RowwiseAlgorithm, RowwiseProblem]):
    """Programs over rows: pointwise steps and reductions in any number."""

    name = "rowwise"
    signature = RowwiseSignature
    algorithm = RowwiseAlgorithm
    algorithm_text: ClassVar[str] = (
        "a cklang.dispatch.RowwiseAlgorithm for what is computed over rows"
    )
    fusion = Fusion(
        makers=MAKERS,
        passes={
            "taken_first": on_program(with_taken_first),
            "extremes": on_program(with_extremes),
            "rows": outlined,
        },
    )
    rules: RuleSet = RULES
    grid = GRID
    # Functions are named by how they read memory.
    variants = Variants(functions=lambda problem, functions: problem.functions(functions))

    def cost(
        self, keys: Sequence[RowwiseKey], spec: ArchSpec, built: Mapping[AnyKey, Resources]
    ) -> RowwiseCost:
        """Return the cost model, which does not ask for built kernels."""
        return RowwiseCost(keys, spec)

    def function_time(
        self, problem: RowwiseProblem, key: RowwiseKey, functions: Functions, spec: ArchSpec
    ) -> float:
        """Return how much longer the vector units compute than the memory moves the tensors."""
        count = sum(instructions(function, is_of_row) for function in functions.values())
        work = vector_time(problem.count * problem.length * count, spec)
        return max(0.0, work - memory_time(problem.bytes, spec) + memory_time(0, spec))

    lower = staticmethod(lower_rowwise)

    def problem(
        self, kernel: FusedRows, layouts: Mapping[str, TensorLayout], dims: Mapping[str, int]
    ) -> RowwiseProblem | None:
        """Return the problem of a kernel; None if no result has an element."""
        problem = problem_of(kernel, layouts, dims)
        written = problem.count if problem.signature.rows else problem.count * problem.length
        if not written:
            return None
        _expect_elements(problem)
        return problem

    def plan(self, kernel: FusedRows, planning: Planning[Sel]) -> Iterator[Launches[Sel]]:
        """Yield the one launch of a kernel."""
        problem = self.problem(kernel, planning.layouts, planning.dims)
        if problem is not None:
            problem = replace(problem, compute_units=planning.spec.compute_units)
            parts = tuple(self._shared(kernel, problem, planning)) if is_long(problem) else ()
            if parts:
                yield from parts
                return
            selection = planning.select(problem, kernel.functions)
            main = _stage(problem, selection.key, selection.functions)
            yield Launches(selection=selection, main=main)

    def _shared(
        self, kernel: FusedRows, problem: RowwiseProblem, planning: Planning[Sel]
    ) -> Iterator[Launches[Sel]]:
        """Yield the launches of a kernel whose rows workgroups share; none if they cannot."""
        pair = shared(kernel, problem)
        for part in pair or ():
            selection = planning.select(part.problem, part.functions)
            stage = _stage(part.problem, selection.key, selection.functions)
            main = replace(stage, temporaries=part.temporaries, constants=part.constants)
            yield Launches(selection=selection, main=main, note=_SHARED)
        known = {value.name for value in kernel.inputs}
        params = {value.name for value in kernel.body.params}
        signature = problem.signature
        is_one = len(signature.reductions) == 1 and not signature.elements
        if pair is not None or is_one or not known <= params:
            return
        kernels = tuple(cut_kernels(kernel))
        own = {
            value.name: TensorLayout.packed(value, planning.dims)
            for part in kernels
            for value in part.results
            if value not in kernel.results
        }
        sizes = {name: math.prod(layout.shape) * layout.dtype.bytes for name, layout in own.items()}
        inner = replace(planning, layouts={**planning.layouts, **own})
        for inner_kernel in kernels:
            for launches in self.plan(inner_kernel, inner):
                main = launches.main
                used = {name: size for name, size in sizes.items() if name in main.values}
                temporaries = {**main.temporaries, **used}
                yield replace(launches, main=replace(main, temporaries=temporaries))

    def host_check(
        self, kernel: FusedRows, arrays: Mapping[str, Array], dims: Mapping[str, int], place: str
    ) -> HostIndices | None:
        """Return the index arrays of a kernel that are in host memory."""
        return host_indices(kernel.body, arrays, dims) if place == HOST else None

    def algorithm_words(self, algorithm: RowwiseAlgorithm) -> str:
        """Return an algorithm as one line of text."""
        kept = f", {algorithm.chunks} of them kept" if algorithm.chunks else ""
        return f"{algorithm.threads} threads a row, vectors of {algorithm.vector}{kept}"

    def candidate_words(self, algorithm: RowwiseAlgorithm) -> str:
        """Return both choices."""
        return f"{algorithm.threads}x{algorithm.vector}x{algorithm.chunks}"

    def operands(self, problem: RowwiseProblem, key: RowwiseKey, functions: Functions) -> Operands:
        """Return memory of small numbers for every tensor."""
        units = arch(key.arch).compute_units
        forwards = replace(problem.forwards, compute_units=units)
        contents = {
            tensor.value: np.full(_span(forwards, tensor) * tensor.dtype.bytes, _SMALL, np.uint8)
            for tensor in forwards.tensors
        }
        return Operands(contents=contents, stages=(_stage(forwards, key, functions),))


def _expect_elements(problem: RowwiseProblem) -> None:
    """Refuse to read at indices along an axis that has no element."""
    for operand in problem.reads:
        if operand.gathered is not None and not operand.gathered[1]:
            raise error("A072", name=operand.value)


def _span(problem: RowwiseProblem, tensor: RowwiseTensor) -> int:
    """Return the elements from the first place in memory to the last one."""
    extents, strides = (*problem.rows, *problem.elements), (*tensor.rows, *tensor.elements)
    pairs = zip(extents, strides, strict=True)
    stride, extent = tensor.gathered or (0, 1)
    last = max(extent - 1, 0) * stride
    first = 1 + tensor.offset // tensor.dtype.bytes
    return first + last + sum((extent - 1) * stride for extent, stride in pairs if extent)


def _stage(problem: RowwiseProblem, key: RowwiseKey, functions: Functions) -> Stage:
    offsets = tuple(tensor.offset for tensor in problem.tensors)
    return Stage(
        key=key,
        functions=functions,
        problem=problem,
        shim=RowwiseShim,
        values=tuple(tensor.value for tensor in problem.tensors),
        offsets=offsets if any(offsets) else (),
        written=frozenset(output.value for output in problem.outputs),
        request=problem.request,
    )


ROWWISE = Rowwise()
