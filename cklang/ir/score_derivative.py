# SPDX-License-Identifier: MIT
"""The region ``derivative`` of the gradients of attention, where it is a number."""

from collections.abc import Sequence

from cklang.ir.attention import region_params
from cklang.ir.attention_gradients import DERIVATIVE
from cklang.ir.builder import Builder
from cklang.ir.nodes import Function
from cklang.types import TensorType


def constant_derivative(number: float, reads: Sequence[TensorType]) -> Function:
    """Return a derivative that is the same for all scores.

    It is 1 of a score that adds to the product. ``reads`` are the types of what the score reads.
    """
    builder = Builder(DERIVATIVE)
    for param in region_params(DERIVATIVE, reads):
        builder.param(param.name, param.type)
    return builder.finish(builder.append("constant", value=number))


def is_one(derivative: Function) -> bool:
    """Tell whether a derivative is the number 1."""
    (operation, *more) = derivative.body or (None,)
    is_number = operation is not None and operation.op == "constant" and not more
    return is_number and operation is not None and operation.attr("value") == 1.0
