# SPDX-License-Identifier: MIT
"""Gradient rules of gathers, scatters and running sums."""

from __future__ import annotations

from collections.abc import Mapping

from cklang.autodiff.step import Gradients, Rule, Step
from cklang.autodiff.terms import where
from cklang.ir.ops import OPS

__all__ = ["INDICES"]


def _axis(step: Step) -> int:
    return int(str(step.operation.attr("axis")))


def _take(step: Step) -> Gradients:
    """Add each row's gradient to the row of the table that it was read from.

    A computed index is limited to the axis as a row is read, but outside of it no row is added.
    """
    table, indices = step.operation.operands
    places = step.emitter.term(indices)
    if not step.emitter.builder.is_param(indices):
        extent = step.emitter.extent(table, _axis(step)).broadcast(places.shape, ())
        places = places.call("maximum", 0).call("minimum", extent - 1)
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


def _scatter_add(step: Step) -> Gradients:
    """Read the gradient where rows were added; what was added nowhere has none."""
    indices, rows, *base = step.operands
    axis, shape = _axis(step), rows.shape
    taken = step.emitter.append("take", step.gradient.value, indices.value, axis=axis)
    extent = step.emitter.extent(step.operation.result, axis).broadcast(indices.shape, ())
    inside = (indices >= 0).both(indices < extent)
    places = range(axis, axis + indices.type.rank)
    by_rows = where(inside.broadcast(shape, places), step.emitter.term(taken), 0.0)
    return (None, by_rows, *(step.gradient for _ in base))


def _cumsum(step: Step) -> Gradients:
    """Return the sums from each element to the last."""
    g, axis = step.gradient, _axis(step)
    kept = [place for place in range(g.type.rank) if place != axis]
    total = g.sum([axis]).broadcast(g.shape, kept)
    return (total - g.call("cumsum", axis=axis) + g,)


_RULES: Mapping[str, tuple[Rule, str]] = {
    "take": (_take, "scatter_add"),
    "scatter_add": (_scatter_add, "scatter_add"),
    "cumsum": (_cumsum, "cumsum"),
    "apart": (lambda step: (step.gradient,), "apart"),
}
"""By op: its rule, and the op that the rule needs."""

INDICES: Mapping[str, Rule] = {
    name: rule for name, (rule, needed) in _RULES.items() if {name, needed} <= set(OPS)
}
"""The rules by op, of the ops that there are."""
