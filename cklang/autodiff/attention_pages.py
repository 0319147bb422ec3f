# SPDX-License-Identifier: MIT
"""An attention with keys in pages as one whose keys are gathered from them, for its gradient.

The rows that a page's keys were gathered to add their gradients to the page, in order of the block
table. Elements of the table beyond the length of a sequence may be anything: they are limited to
the pages that there are, and the rows have no gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from cklang.autodiff.attention_kernels import roles_of
from cklang.autodiff.step import Gradients, Step
from cklang.autodiff.terms import Term
from cklang.ir.attention import PAGES, STARTS
from cklang.ir.nodes import Attr, Operation, Value, make_attrs
from cklang.ir.rules import Shape

__all__ = ["Gathered", "gathered", "has_pages"]

_SIDES = (1, 2)
"""The places of k and v."""


def has_pages(operation: Operation) -> bool:
    """Tell whether an attention has keys in pages that can be gathered into whole tensors."""
    roles = roles_of(operation)
    return PAGES[0] in roles and STARTS[0] not in roles


class Gathered(NamedTuple):
    """An attention of gathered keys and values."""

    step: Step
    places: tuple[int, ...]
    """The place of each of its operands among those of the attention in pages."""
    body: tuple[Operation, ...]
    """The operations that gather."""

    def in_pages(self, gradients: Gradients, paged: Step) -> Gradients:
        """Return the gradients by the operands in pages, from those by gathered ones."""
        result: list[Term | None] = [None] * len(paged.operation.operands)
        for place, gradient in zip(self.places, gradients, strict=True):
            result[place] = gradient
        seeds: dict[str, Term] = {}
        for side in _SIDES:
            name, part = self.step.operation.operands[side].name, result[side]
            result[side] = None
            if part is not None:
                seeds[name] = part if name not in seeds else seeds[name] + part
        stored = [paged.operation.operands[side].name for side in _SIDES]
        pulled = dict(paged.pull(paged.emitter, self.body, seeds, stored))
        for side, name in zip(_SIDES, stored, strict=True):
            # Of one tensor that is k and v all is the gradient by k.
            result[side] = pulled.pop(name, None)
        return result


def gathered(step: Step) -> Gathered:
    """Return the attention of keys that are gathered from their pages."""
    operation, body = step.operation, dict[str, Operation]()
    roles = roles_of(operation)
    place = roles.index(PAGES[0])
    table = step.operands[place]
    last = step.emitter.extent(operation.operands[1], 0).broadcast(table.shape, ()) - 1
    limited = table.call("maximum", 0).call("minimum", last).value

    def appended(
        op: str, operands: tuple[Value, ...], attrs: Mapping[str, Attr], shape: Shape | None = None
    ) -> Value:
        value = step.emitter.apply(op, operands, attrs, shape)
        own = Operation(op=op, operands=operands, attrs=make_attrs(**attrs), result=value)
        body.setdefault(value.name, own)
        return value

    def whole(stored: Value) -> Value:
        """Return [batch, heads, keys, elements] of [pages, heads, rows, elements]."""
        batch, count = limited.type.shape
        _, heads, rows, size = stored.type.shape
        pages = appended("take", (stored, limited), {"axis": 0})
        turned = appended("transpose", (pages,), {"perm": (0, 2, 1, 3, 4)})
        return appended("reshape", (turned,), {}, (batch, heads, count * rows, size))

    sides = {side: whole(operation.operands[side]) for side in _SIDES}
    places = tuple(each for each in range(len(roles)) if each != place)
    own = replace(
        operation,
        operands=tuple(sides.get(each, operation.operands[each]) for each in places),
        attrs=make_attrs(
            **{**dict(operation.attrs), "roles": tuple(roles[each] for each in places)}
        ),
    )
    needed = tuple(step.needed[each] for each in places)
    inner = replace(step, operation=own, source=operation, needed=needed)
    return Gathered(inner, places, tuple(body.values()))
