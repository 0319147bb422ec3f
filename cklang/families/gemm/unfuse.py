# SPDX-License-Identifier: MIT
"""The kernel of a product as a function of its own, which the reference can evaluate."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.segments import without_segments
from cklang.fusion.plan import Computed, Gathered, View
from cklang.fusion.unfuse import applied, kernel_function, matrix_of, read_of, spread
from cklang.ir.builder import Builder
from cklang.ir.indices import TAKE
from cklang.ir.nodes import Function, Value
from cklang.types import Dim

T = TypeVar("T")


def product_function(kernel: FusedGemm) -> Function:
    """Return the function whose parameters are ``kernel.inputs``, with the kernel's results."""
    attrs, kernel = _contraction(kernel), _without_missing(kernel)
    axes = [kernel.axes, *(result.axes for result in kernel.more)]
    return kernel_function(kernel, partial(_sums, kernel, attrs), axes)


def _sums(
    kernel: FusedGemm, attrs: Mapping[str, int], builder: Builder, params: Mapping[str, Value]
) -> list[Value]:
    second = [] if kernel.b2 is None else [replace(kernel, b=kernel.b2)]
    return [_product(builder, params, product, attrs) for product in (kernel, *second)]


def _contraction(kernel: FusedGemm) -> dict[str, int]:
    """Return the attributes of the op ``contract`` for a kernel as it computes its product."""
    *_, rows, columns = kernel.axes
    own = {"rows": int(rows is not None), "columns": int(columns is not None)}
    return {**own, "summed": kernel.depth}


def _without_missing(kernel: FusedGemm) -> FusedGemm:
    """Return a kernel in which rows or columns that the result does not have are no axes."""
    *_, rows, columns = kernel.axes
    kept = [place for place, axis in enumerate(kernel.axes) if axis is not None]
    return replace(
        kernel,
        a=kernel.a if rows is not None else _without(kernel.a, -1 - kernel.depth),
        b=kernel.b if columns is not None else _without(kernel.b, -1),
        reads=tuple(
            replace(read, axes=tuple(read.axes[place] for place in kept)) for read in kernel.reads
        ),
        more=tuple(
            replace(result, axes=tuple(result.axes[place] for place in kept))
            for result in kernel.more
        ),
        axes=tuple(axis for axis in kernel.axes if axis is not None),
    )


def _without(side: View | Computed, place: int) -> View | Computed:
    """Return an operand without one of its axes, counted from the end."""

    def rest(axes: Sequence[T]) -> tuple[T, ...]:
        return (*axes[: len(axes) + place], *axes[len(axes) + place + 1 :])

    if isinstance(side, View):
        return replace(side, perm=rest(side.perm))
    reads = tuple(replace(read, axes=rest(read.axes)) for read in side.reads)
    return replace(side, extents=rest(side.extents), reads=reads)


def _product(
    builder: Builder, params: Mapping[str, Value], kernel: FusedGemm, contraction: Mapping[str, int]
) -> Value:
    functions = kernel.functions
    one = without_segments(kernel) if kernel.has_segments_of_k else kernel
    matrices = [
        _stored(builder, params, side)
        if isinstance(side, View)
        else _computed(builder, params, side, functions[f"prologue_{letter}"])
        for letter, side in (("a", one.a), ("b", one.b))
    ]
    if kernel.op == "contract":
        return builder.apply(kernel.op, matrices, contraction)
    ends = () if kernel.ends is None else (params[kernel.ends.value.name],)
    if kernel.scale_a is None and kernel.scale_b is None:
        return builder.append(kernel.op, *matrices, *ends)
    operands, blocks = list(matrices), []
    for matrix, scale in zip(matrices, (kernel.scale_a, kernel.scale_b), strict=True):
        blocks.append(() if scale is None else scale.block)
        if scale is not None:
            value, perm = params[scale.view.value.name], scale.view.perm
            own = tuple(1 if axis is None else value.type.shape[axis] for axis in perm[-2:])
            operands.append(spread(builder, value, perm, (*matrix.type.shape[:-2], *own)))
    return builder.append(kernel.op, *operands, *ends, block_a=blocks[0], block_b=blocks[1])


def _stored(builder: Builder, params: Mapping[str, Value], side: View) -> Value:
    if not isinstance(side, Gathered):
        return matrix_of(builder, params, side)
    table, indices = (params[read.value.name] for read in side.reads)
    value = builder.append(TAKE, table, indices, axis=side.axis)
    return matrix_of(builder, {**params, side.copy.value.name: value}, side.copy)


def _computed(
    builder: Builder, params: Mapping[str, Value], side: Computed, function: Function
) -> Value:
    values = [params[read.value.name] for read in side.reads]
    axes = zip(values, (read.axes[: -len(side.extents)] for read in side.reads), strict=True)
    batches = zip(*([_at(value, axis) for axis in row] for value, row in axes), strict=True)
    # Reads that do not run with a batch axis have extent 1 there.
    shape = (*(max(extents, key=lambda e: e != 1) for extents in batches), *side.extents)
    reads = [read_of(builder, params[read.value.name], read, shape) for read in side.reads]
    known = dict(zip((value.name for value in function.params), reads, strict=True))
    (element,) = applied(builder, function, known, shape)
    return builder.cast(element, side.value.type.dtype)


def _at(value: Value, axis: int | None) -> Dim | int:
    return 1 if axis is None else value.type.shape[axis]
