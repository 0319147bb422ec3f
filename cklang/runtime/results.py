# SPDX-License-Identifier: MIT
"""The results of a call: the arrays that take them, and how they are handed back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cklang.device import arrays
from cklang.errors import error
from cklang.runtime.bind import Binding, ResultLayout, check_out

Order = tuple[int, ...]
"""The axes of a result, outermost in memory first; none if they lie as it is shaped."""


def planned_results(layouts: Sequence[ResultLayout], binding: Binding) -> tuple[arrays.Array, ...]:
    """Return the new arrays that a call will make for its results, without memory for them."""
    return tuple(
        arrays.planned(layout.shape, layout.dtype, binding.library, binding.place, layout.order)
        for layout in layouts
    )


def with_orders(binding: Binding, orders: Sequence[Order]) -> Binding:
    """Return a bound call whose new results have these orders of axes."""
    results = tuple(
        replace(layout, order=order) for layout, order in zip(binding.results, orders, strict=True)
    )
    return replace(binding, results=results)


def one_or_all(results: Sequence[Any]) -> Any:
    """Return the result of a call; a tuple of several."""
    return results[0] if len(results) == 1 else tuple(results)


def targets_of(binding: Binding, out: Any) -> tuple[arrays.Array, ...]:
    """Return the arrays that take the results of a call, as kernels see them."""
    outs = out if isinstance(out, tuple) else (out,)
    if len(outs) != len(binding.results):
        raise error("A048", got=len(outs), want=len(binding.results))
    targets = tuple(arrays.read("out", result) for result in outs)
    for index, target in enumerate(targets):
        check_out(target, binding, index)
    return targets
