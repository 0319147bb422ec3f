# SPDX-License-Identifier: MIT
"""The order in memory of the axes of new results: an operand's, where a family keeps it.

As in torch, the result of a convolution of a channels_last tensor is channels_last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cklang.families import FAMILIES
from cklang.runtime.results import Order, with_orders

if TYPE_CHECKING:
    from cklang.device.arrays import Array
    from cklang.fusion.plan import Plan
    from cklang.ir.nodes import Value
    from cklang.runtime.bind import Binding


def result_orders(plan: Plan, arguments: Mapping[str, Array]) -> dict[str, Order]:
    """Return the axes, outermost in memory first, of results that do not lie as they are shaped."""
    writers = {value.name: kernel for kernel in plan.kernels for value in kernel.results}

    def order_of(value: Value) -> Order | None:
        array = arguments.get(value.name)
        if array is not None:
            return _order(array)
        kernel = writers.get(value.name)
        return None if kernel is None else FAMILIES[kernel.family].orders.kept(kernel, order_of)

    orders = {value.name: order_of(value) for value in plan.function.results}
    return {name: order for name, order in orders.items() if order is not None}


def with_result_orders(plan: Plan, binding: Binding) -> Binding:
    """Return a bound call whose new results lie in the order that their operands have."""
    orders = result_orders(plan, binding.arrays)
    return with_orders(binding, [orders.get(value.name, ()) for value in plan.function.results])


def _order(array: Array) -> Order | None:
    """Return the axes of an array by their strides, if that is not the order of its shape."""
    axes = [axis for axis, extent in enumerate(array.shape) if extent > 1]
    order = sorted(axes, key=lambda axis: -array.strides[axis])
    return None if order == axes or len(array.shape) < 3 else tuple(order)
