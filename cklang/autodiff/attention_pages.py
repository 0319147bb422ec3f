# SPDX-License-Identifier: MIT
"""An attention with keys in pages as one whose keys are gathered from them, for its gradient.

The rows that a page's keys were gathered to add their gradients to the page, in order of the block
table. Elements of the table beyond the length of a sequence may be anything: they are limited to
the pages that there are, and the rows have no gradient. With packed queries each sequence has as
many gathered rows as its pages hold, and a mask hides those beyond its length.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from cklang.autodiff.attention_kernels import roles_of
from cklang.autodiff.attention_lengths import masked_by
from cklang.autodiff.step import Gradients, Step
from cklang.autodiff.terms import Term
from cklang.ir.attention import LENGTHS, PAGE_STARTS, PAGES, STARTS
from cklang.ir.nodes import Attr, Operation, Value, make_attrs
from cklang.ir.rules import Shape
from cklang.types import DType, f32

_SIDES = (1, 2)
"""The places of k and v."""


def has_pages(operation: Operation) -> bool:
    """Tell whether an attention has keys in pages that can be gathered into whole tensors."""
    roles = roles_of(operation)
    return PAGES[0] in roles and PAGE_STARTS[0] not in roles


class Gathered(NamedTuple):
    """An attention of gathered keys and values."""

    step: Step
    places: tuple[int | None, ...]
    """The place of each of its operands among those of the attention in pages; None of another."""
    body: tuple[Operation, ...]
    """The operations that gather."""

    def in_pages(self, gradients: Gradients, paged: Step) -> Gradients:
        """Return the gradients by the operands in pages, from those by gathered ones."""
        result: list[Term | None] = [None] * len(paged.operation.operands)
        for place, gradient in zip(self.places, gradients, strict=True):
            if place is not None:
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
    body = _Body(step)
    sides = {side: body.rows(step.operation.operands[side]) for side in _SIDES}
    operation = step.operation
    is_packed = STARTS[0] in roles_of(operation)
    places: tuple[int | None, ...] = tuple(range(len(operation.operands)))
    if is_packed:
        operation, places = masked_by(operation, LENGTHS[0])
    roles = roles_of(operation)
    operands = [
        sides.get(place or 0, operand)
        for place, operand in zip(places, operation.operands, strict=True)
    ]
    own = list(zip(roles, operands, places, strict=True))
    del own[roles.index(PAGES[0])]
    if is_packed:
        own.insert(roles.index(STARTS[0]) + 1, (STARTS[1], body.starts, None))
    roles, values, places = zip(*own, strict=True)
    attrs = make_attrs(**{**dict(operation.attrs), "roles": roles})
    contiguous = replace(operation, operands=values, attrs=attrs)
    needed = tuple(place is not None and step.needed[place] for place in places)
    inner = replace(step, operation=contiguous, source=step.source or step.operation, needed=needed)
    return Gathered(inner, places, tuple(body.operations.values()))


class _Body:
    """The operations that gather the rows of pages."""

    def __init__(self, step: Step) -> None:
        self._emitter = step.emitter
        self.operations: dict[str, Operation] = {}
        """Operations by the name of their result; equal ones once."""
        roles = roles_of(step.operation)
        by_role = dict(zip(roles, step.operands, strict=True))
        self._table, self._lengths = by_role[PAGES[0]], by_role[LENGTHS[0]]
        self._starts = by_role.get(STARTS[0])
        pages = step.emitter.extent(step.operation.operands[1], 0)
        last = pages.broadcast(self._table.shape, ()) - 1
        self._limited = self._table.call("maximum", 0).call("minimum", last).value
        self._page_rows = step.emitter.extent(step.operation.operands[1], 2)

    def rows(self, stored: Value) -> Value:
        """Return whole rows of [pages, heads, rows, elements].

        [batch, heads, keys, elements]; with packed queries [keys of all sequences, heads,
        elements], with zeros beyond the length of each.
        """
        batch, count = self._limited.type.shape
        _, heads, rows, size = stored.type.shape
        pages = self._append("take", (stored, self._limited), {"axis": 0})
        if self._starts is None:
            turned = self._append("transpose", (pages,), {"perm": (0, 2, 1, 3, 4)})
            return self._append("reshape", (turned,), {}, (batch, heads, count * rows, size))
        turned = self._append("transpose", (pages,), {"perm": (0, 1, 3, 2, 4)})
        apart = self._append("reshape", (turned,), {}, (batch, count * rows, heads, size))
        emitter, shape = self._emitter, apart.type.shape
        places = emitter.arange(count * rows).broadcast(shape, (1,))
        inside = places < self._lengths.broadcast(shape, (0,))
        zeros = emitter.constant(0.0, shape)
        wide = self._cast(apart, f32)
        clean = self._append("where", (inside.value, wide, zeros.value), {})
        narrow = self._cast(clean, stored.type.dtype)
        return self._append("reshape", (narrow,), {}, (batch * count * rows, heads, size))

    @property
    def starts(self) -> Value:
        """Where the rows of each packed sequence begin, as many as there are starts of queries."""
        emitter = self._emitter
        places = emitter.arange(self._starts.shape[0] if self._starts is not None else 0)
        count = emitter.extent(self._limited, 1) * self._page_rows
        return (places * count.broadcast(places.shape, ())).value

    def _cast(self, value: Value, dtype: DType) -> Value:
        return value if value.type.dtype == dtype else self._append("cast", (value,), {"to": dtype})

    def _append(
        self,
        op: str,
        operands: tuple[Value, ...],
        attrs: Mapping[str, Attr],
        shape: Shape | None = None,
    ) -> Value:
        value = self._emitter.apply(op, operands, attrs, shape)
        own = Operation(op=op, operands=operands, attrs=make_attrs(**attrs), result=value)
        self.operations.setdefault(value.name, own)
        return value
