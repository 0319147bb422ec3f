# SPDX-License-Identifier: MIT
"""A kernel as a function of its own: what fusion took apart, put together again.

The reference can evaluate it, so the kernels of a plan can be checked one by one.
"""

from __future__ import annotations

from cklang.fusion.plan import FusedGemm, Read, View
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function, Value
from cklang.ir.rules import Shape
from cklang.types import Kind, f32

__all__ = ["kernel_function"]


def kernel_function(kernel: FusedGemm) -> Function:
    """Return the function whose parameters are ``kernel.inputs`` and whose result is the kernel's.

    It obeys the rules of the IR but the one against unused values, when the epilogue does not
    use its accumulator.
    """
    builder = Builder(kernel.name)
    params = {value.name: builder.param(value.name, value.type) for value in kernel.inputs}
    product = builder.append(
        "gemm", _matrix(builder, params, kernel.a), _matrix(builder, params, kernel.b)
    )
    shape = product.type.shape
    known = {"acc": product}
    for index, read in enumerate(kernel.reads):
        known[f"d{index}"] = _read(builder, params[read.value.name], read, shape)
    for operation in kernel.epilogue.body:
        operands = [known[operand.name] for operand in operation.operands]
        result = builder.apply(operation.op, operands, dict(operation.attrs))
        known[operation.result.name] = builder.broadcast(result, shape)
    result = known[kernel.epilogue.results[0].name]
    return builder.finish(builder.cast(result, kernel.result.type.dtype))


def _matrix(builder: Builder, params: dict[str, Value], view: View) -> Value:
    value = params[view.value.name]
    return value if view.perm == (0, 1) else builder.append("transpose", value, perm=view.perm)


def _read(builder: Builder, value: Value, read: Read, shape: Shape) -> Value:
    dtype = value.type.dtype
    if dtype.kind is Kind.FLOAT and dtype.bits < 32:
        value = builder.cast(value, f32)
    row, column = read.axes
    if row == 1 or (column == 0 and value.type.rank == 2):
        value = builder.append("transpose", value, perm=(1, 0))
    if value.type.rank == 1:
        return builder.broadcast(value, shape, dims=(0 if row == 0 else 1,))
    return builder.broadcast(value, shape)
