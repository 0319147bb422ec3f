# SPDX-License-Identifier: MIT
"""A kernel as a function of its own: what fusion took apart, put together again.

The reference can evaluate it, so the kernels of a plan can be checked one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from cklang.fusion.plan import AnyKernel, Computed, FusedConv, FusedGemm, Kernel, Read, View
from cklang.fusion.sites import Axes, identity
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function, Value
from cklang.ir.rules import Shape
from cklang.types import Dim, Kind, f32

__all__ = ["kernel_function", "kernel_program"]

T = TypeVar("T")


def kernel_program(function: Function, kernel: AnyKernel) -> Function:
    """Return the part of a program that one of its kernels computes, as a program of its own.

    Its parameters are ``kernel.inputs``, its results the kernel's results within the program.
    """
    inputs = {value.name for value in kernel.inputs}
    written = {value.name for value in kernel.results}
    definitions = {operation.result.name: operation for operation in function.body}
    needed = {name for name in written if name in definitions}
    results = tuple(value for value in kernel.results if value.name in needed)
    body = []
    for operation in reversed(function.body):
        if operation.result.name in needed:
            body.append(operation)
            needed |= {each.name for each in operation.operands if each.name not in inputs}
    return Function(
        name=function.name, params=kernel.inputs, body=tuple(reversed(body)), results=results
    )


def kernel_function(kernel: Kernel) -> Function:
    """Return the function whose parameters are ``kernel.inputs``, with the kernel's results.

    It obeys the rules of the IR but the one against unused values, when the epilogue does not
    use its accumulator.
    """
    builder = Builder(kernel.name)
    params = {value.name: builder.param(value.name, value.type) for value in kernel.inputs}
    attrs = _contraction(kernel) if isinstance(kernel, FusedGemm) else {}
    if isinstance(kernel, FusedGemm):
        kernel = _without_missing(kernel)
    more = kernel.more if isinstance(kernel, FusedGemm) else ()
    product = _product(builder, params, kernel, attrs)
    shape = product.type.shape
    epilogue = kernel.functions["epilogue"]
    reads = [_read(builder, params[read.value.name], read, shape) for read in kernel.reads]
    sums = [product]
    if isinstance(kernel, FusedGemm) and kernel.b2 is not None:
        sums.append(_product(builder, params, replace(kernel, b=kernel.b2), attrs))
    inputs = dict(zip((value.name for value in epilogue.params), [*sums, *reads], strict=True))
    results = _applied(builder, epilogue, inputs, shape)
    maps = [kernel.axes, *(each.axes for each in more)]
    written = zip(results, kernel.results, maps, strict=True)
    return builder.finish(*(_written(builder, *each) for each in written))


def _written(builder: Builder, element: Value, result: Value, axes: Axes) -> Value:
    """Return a tensor of the kernel's axes as the program has it: rounded, its axes in order."""
    back = tuple(axes.index(axis) for axis in range(len(axes)))
    return _transpose(builder, builder.cast(element, result.type.dtype), back)


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
            replace(each, axes=tuple(each.axes[place] for place in kept)) for each in kernel.more
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
    builder: Builder, params: dict[str, Value], kernel: Kernel, contraction: Mapping[str, int]
) -> Value:
    if isinstance(kernel, FusedConv):
        operation = kernel.operation
        attrs, shape = dict(operation.attrs), operation.result.type.shape
        views = [_matrix(builder, params, view) for view in (kernel.a, kernel.b)]
        return builder.apply(operation.op, views, attrs, shape=shape)
    functions = kernel.functions
    matrices = [
        _matrix(builder, params, side)
        if isinstance(side, View)
        else _computed(builder, params, side, functions[f"prologue_{letter}"])
        for letter, side in (("a", kernel.a), ("b", kernel.b))
    ]
    if kernel.op == "contract":
        return builder.apply(kernel.op, matrices, contraction)
    if kernel.scale_a is None and kernel.scale_b is None:
        return builder.append(kernel.op, *matrices)
    operands, blocks = list(matrices), []
    for matrix, scale in zip(matrices, (kernel.scale_a, kernel.scale_b), strict=True):
        blocks.append(() if scale is None else scale.block)
        if scale is not None:
            value, perm = params[scale.view.value.name], scale.view.perm
            own = tuple(1 if axis is None else value.type.shape[axis] for axis in perm[-2:])
            operands.append(_spread(builder, value, perm, (*matrix.type.shape[:-2], *own)))
    return builder.append("scaled_gemm", *operands, block_a=blocks[0], block_b=blocks[1])


def _applied(
    builder: Builder, function: Function, known: dict[str, Value], shape: Shape
) -> list[Value]:
    """Return what ``function`` makes of tensors of ``shape``, given by its parameters' names."""
    for operation in function.body:
        operands = [known[operand.name] for operand in operation.operands]
        result = builder.apply(operation.op, operands, dict(operation.attrs))
        known[operation.result.name] = builder.broadcast(result, shape)
    return [known[result.name] for result in function.results]


def _computed(
    builder: Builder, params: dict[str, Value], side: Computed, function: Function
) -> Value:
    values = [params[read.value.name] for read in side.reads]
    axes = zip(values, (read.axes[: -len(side.extents)] for read in side.reads), strict=True)
    batches = zip(*([_at(value, axis) for axis in each] for value, each in axes), strict=True)
    # Reads that do not run with a batch axis have extent 1 there.
    shape = (*(max(extents, key=lambda e: e != 1) for extents in batches), *side.extents)
    reads = [_read(builder, params[read.value.name], read, shape) for read in side.reads]
    known = dict(zip((value.name for value in function.params), reads, strict=True))
    (element,) = _applied(builder, function, known, shape)
    return builder.cast(element, side.value.type.dtype)


def _at(value: Value, axis: int | None) -> Dim | int:
    return 1 if axis is None else value.type.shape[axis]


def _matrix(builder: Builder, params: dict[str, Value], view: View) -> Value:
    value = params[view.value.name]
    extents = [1 if axis is None else value.type.shape[axis] for axis in view.perm]
    return _spread(builder, value, view.perm, tuple(extents))


def _read(builder: Builder, value: Value, read: Read, shape: Shape) -> Value:
    dtype = value.type.dtype
    if dtype.kind is Kind.FLOAT and dtype.bits < 32:
        value = builder.cast(value, f32)
    return _spread(builder, value, read.axes, shape)


def _spread(builder: Builder, value: Value, axes: Axes, shape: Shape) -> Value:
    """Return ``value`` as a tensor of ``shape`` whose axis i runs with its axis ``axes[i]``."""
    # An axis that runs with none has extent 1: it may stand wherever nothing else does.
    rest = iter(axis for axis in range(value.type.rank) if axis not in axes)
    source_axes = [next(rest, None) if axis is None else axis for axis in axes]
    order = tuple(axis for axis in source_axes if axis is not None)
    dims = tuple(place for place, axis in enumerate(source_axes) if axis is not None)
    return builder.broadcast(_transpose(builder, value, order), shape, dims=dims)


def _transpose(builder: Builder, value: Value, perm: tuple[int, ...]) -> Value:
    if perm == identity(len(perm)):
        return value
    return builder.append("transpose", value, perm=perm)
