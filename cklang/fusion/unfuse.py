# SPDX-License-Identifier: MIT
"""A kernel as a function of its own: what fusion took apart, put together again.

The reference can evaluate it, so the kernels of a plan can be checked one by one.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from cklang.fusion.explain import Anchored
from cklang.fusion.plan import AnyKernel, Read, View
from cklang.fusion.sites import Axes, identity
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function, Value
from cklang.ir.rules import Shape
from cklang.types import Kind, f32


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
            needed |= {operand.name for operand in operation.operands if operand.name not in inputs}
    return Function(
        name=function.name, params=kernel.inputs, body=tuple(reversed(body)), results=results
    )


class Sums(Protocol):
    """Builds what the anchor of a kernel sums up."""

    def __call__(self, builder: Builder, params: Mapping[str, Value]) -> Sequence[Value]:
        """Return the accumulators, of the kernel's parameters by name."""


def kernel_function(kernel: Anchored, sums: Sums, axes: Sequence[Axes]) -> Function:
    """Return the function whose parameters are ``kernel.inputs``, with the kernel's results.

    It obeys the rules of the IR but the one against unused values, when the epilogue does not
    use its accumulator.
    """
    builder = Builder(kernel.name)
    params = {value.name: builder.param(value.name, value.type) for value in kernel.inputs}
    accumulators = sums(builder, params)
    shape = accumulators[0].type.shape
    epilogue = kernel.functions["epilogue"]
    reads = [read_of(builder, params[read.value.name], read, shape) for read in kernel.reads]
    operands = (value.name for value in epilogue.params)
    inputs = dict(zip(operands, [*accumulators, *reads], strict=True))
    results = applied(builder, epilogue, inputs, shape)
    written = zip(results, kernel.results, axes, strict=True)
    return builder.finish(*(_written(builder, *row) for row in written))


def _written(builder: Builder, element: Value, result: Value, axes: Axes) -> Value:
    """Return a tensor of the kernel's axes as the program has it: rounded, its axes in order."""
    back = tuple(axes.index(axis) for axis in range(len(axes)))
    return _transposed(builder, builder.cast(element, result.type.dtype), back)


def applied(
    builder: Builder, function: Function, known: dict[str, Value], shape: Shape
) -> list[Value]:
    """Return what ``function`` makes of tensors of ``shape``, given by its parameters' names."""
    for operation in function.body:
        operands = [known[operand.name] for operand in operation.operands]
        result = builder.apply(operation.op, operands, dict(operation.attrs))
        known[operation.result.name] = builder.broadcast(result, shape)
    return [known[result.name] for result in function.results]


def matrix_of(builder: Builder, params: Mapping[str, Value], view: View) -> Value:
    """Return an operand that is stored, with its axes in the order of the kernel's."""
    value = params[view.value.name]
    extents = [1 if axis is None else value.type.shape[axis] for axis in view.perm]
    return spread(builder, value, view.perm, tuple(extents))


def read_of(builder: Builder, value: Value, read: Read, shape: Shape) -> Value:
    """Return what a function reads as a tensor of ``shape``; narrow floats arrive widened."""
    dtype = value.type.dtype
    if dtype.kind is Kind.FLOAT and dtype.bits < 32:
        value = builder.cast(value, f32)
    return spread(builder, value, read.axes, shape)


def spread(builder: Builder, value: Value, axes: Axes, shape: Shape) -> Value:
    """Return ``value`` as a tensor of ``shape`` whose axis i runs with its axis ``axes[i]``."""
    # An axis that runs with none has extent 1: it may stand wherever nothing else does.
    rest = iter(axis for axis in range(value.type.rank) if axis not in axes)
    source_axes = [next(rest, None) if axis is None else axis for axis in axes]
    order = tuple(axis for axis in source_axes if axis is not None)
    dims = tuple(place for place, axis in enumerate(source_axes) if axis is not None)
    return builder.broadcast(_transposed(builder, value, order), shape, dims=dims)


def _transposed(builder: Builder, value: Value, perm: tuple[int, ...]) -> Value:
    if perm == identity(len(perm)):
        return value
    return builder.append("transpose", value, perm=perm)
