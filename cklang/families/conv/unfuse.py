# SPDX-License-Identifier: MIT
"""The kernel of a convolution as a function of its own, which the reference can evaluate."""

from collections.abc import Mapping
from functools import partial

from cklang.families.conv.plan import FusedConv
from cklang.fusion.unfuse import kernel_function, matrix_of
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function, Value


def convolution_function(kernel: FusedConv) -> Function:
    """Return the function whose parameters are ``kernel.inputs``, with the kernel's result."""
    return kernel_function(kernel, partial(_sums, kernel), [kernel.axes])


def _sums(kernel: FusedConv, builder: Builder, params: Mapping[str, Value]) -> list[Value]:
    operation = kernel.operation
    attrs, shape = dict(operation.attrs), operation.result.type.shape
    views = [matrix_of(builder, params, view) for view in (kernel.a, kernel.b)]
    return [builder.apply(operation.op, views, attrs, shape=shape)]
