# SPDX-License-Identifier: MIT
"""Gradient rules of gathers, scatters, running sums and products, and of what is sorted."""

import math
from collections.abc import Mapping

from cklang.autodiff.step import Gradients, Rule, Step
from cklang.autodiff.terms import Term, where
from cklang.ir.indices import TAKE_ALONG
from cklang.ir.nodes import Value
from cklang.ir.ops import OPS
from cklang.ir.order import ARGSORT
from cklang.types import i32


def _axis(step: Step) -> int:
    return int(str(step.operation.attr("axis")))


def _take(step: Step) -> Gradients:
    """Add each row's gradient to the row of the table that it was read from.

    A computed index is limited to the axis as a row is read, but outside of it no row is added.
    """
    table, _ = step.operation.operands
    places = _limited(step)
    value = step.emitter.append(
        "scatter_add",
        places.value,
        step.gradient.value,
        shape=table.type.shape,
        axis=_axis(step),
        in_place=0,
        unordered=0,
    )
    return (step.emitter.term(value), None)


def _limited(step: Step) -> Term:
    """Return the indices of a gather; those that are computed, limited to its axis."""
    table, indices = step.operation.operands
    places = step.emitter.term(indices)
    if step.emitter.builder.is_param(indices):
        return places
    extent = step.emitter.extent(table, _axis(step)).cast(places.dtype)
    last = (extent - 1).broadcast(places.shape, ())
    return places.call("maximum", 0).call("minimum", last)


def _take_along(step: Step) -> Gradients:
    """Add each gradient to the element that was read."""
    return (_added(step, _limited(step).cast(i32), unordered=0), None)


def _added(step: Step, order: Term, *, unordered: int) -> Term:
    """Return the gradient added to elements of the operand, at the indices ``order`` of an axis."""
    x, g = step.operation.operands[0], step.gradient
    places, count = _places_in_memory(order, x, _axis(step)), math.prod(g.shape)
    value = step.emitter.append(
        "scatter_add",
        places.reshape((count,)).value,
        g.reshape((count,)).value,
        shape=(math.prod(x.type.shape),),
        axis=0,
        in_place=0,
        unordered=unordered,
    )
    return step.emitter.term(value).reshape(x.type.shape)


def _scatter_add(step: Step) -> Gradients:
    """Read the gradient where rows were added; what was added nowhere has none."""
    indices, rows, *base = step.operands
    axis, shape = _axis(step), rows.shape
    taken = step.emitter.append("take", step.gradient.value, indices.value, axis=axis)
    extent = step.emitter.extent(step.operation.result, axis).cast(indices.dtype)
    extent = extent.broadcast(indices.shape, ())
    inside = (indices >= 0).both(indices < extent)
    places = range(axis, axis + indices.type.rank)
    by_rows = where(inside.broadcast(shape, places), step.emitter.term(taken), 0.0)
    return (None, by_rows, *(step.gradient for _ in base))


def _from_each(term: Term, axis: int) -> Term:
    """Return the sums from each element along an axis to the last."""
    kept = [place for place in range(term.type.rank) if place != axis]
    total = term.sum([axis]).broadcast(term.shape, kept)
    return total - term.call("cumsum", axis=axis) + term


def _cumsum(step: Step) -> Gradients:
    return (_from_each(step.gradient, _axis(step)),)


def _cumprod(step: Step) -> Gradients:
    """Multiply each gradient by the product of the other elements; one may be 0.

    From the first zero on all products are 0: it alone has a gradient there, that of the products
    without it.
    """
    g, x, axis = step.gradient, step.wide(0), _axis(step)
    is_zero = x.equals(0.0)
    zeros = is_zero.cast(i32).call("cumsum", axis=axis)
    is_first = is_zero.both(zeros.equals(1))
    others = where(is_first, 1.0, x)
    before = _from_each(g * step.result, axis) / where(is_zero, 1.0, x)
    at = _from_each(g * others.call("cumprod", axis=axis), axis)
    return (where(zeros.equals(0), before, where(is_first, at, 0.0)),)


def _sort(step: Step) -> Gradients:
    """Add each gradient to the element that it came from: at the index that sorts.

    No two indices are equal, so the order in which they are added is of no account.
    """
    value = step.emitter.apply(ARGSORT, step.operation.operands, dict(step.operation.attrs))
    return (_added(step, step.emitter.term(value), unordered=1),)


def _places_in_memory(order: Term, x: Value, axis: int) -> Term:
    """Return the places of elements among all of ``x``, from their indices along an axis."""
    emitter, shape = order.emitter, order.shape
    total, stride = emitter.constant(0, shape), emitter.constant(1)
    for place in reversed(range(len(shape))):
        along = emitter.arange(shape[place]).broadcast(shape, (place,)) if place != axis else order
        total = along * stride.broadcast(shape, ()) + total
        extent = x.type.shape[place]
        stride = stride * (extent if isinstance(extent, int) else emitter.extent(x, place))
    return total


_RULES: Mapping[str, tuple[Rule, str]] = {
    "take": (_take, "scatter_add"),
    TAKE_ALONG: (_take_along, "scatter_add"),
    "scatter_add": (_scatter_add, "scatter_add"),
    "cumsum": (_cumsum, "cumsum"),
    "cumprod": (_cumprod, "cumprod"),
    "sort": (_sort, "scatter_add"),
    "apart": (lambda step: (step.gradient,), "apart"),
}
"""The rule of each op, and the op that the rule needs."""

INDICES: Mapping[str, Rule] = {
    name: rule for name, (rule, needed) in _RULES.items() if {name, needed} <= set(OPS)
}
"""The rules by op, of the ops that there are."""
