# SPDX-License-Identifier: MIT
"""What a mask is to a kernel: a window around the diagonal, an expression, or both.

A mask is taken apart into the conditions that it joins by "and". Comparisons of j with i that move
the diagonal by a constant are the edges of a window, which CK Tile's kernels know: they skip the
tiles outside. What is left stays an expression.

What tells a window from other masks: integer expressions as sums of a region's indices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cklang.ir.builder import Builder
from cklang.ir.nodes import Function, Operation, Value

_LARGEST = 2**30
"""Constants beyond it may wrap in i32, which sums here do not."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of index parameters times integers, and a constant."""

    terms: Mapping[str, int] = field(default_factory=dict)
    constant: int = 0

    def plus(self, other: Linear, times: int = 1) -> Linear:
        """Return the sum of this and ``times`` the other."""
        names = {**self.terms, **other.terms}
        terms = {n: self.terms.get(n, 0) + times * other.terms.get(n, 0) for n in names}
        kept = {name: factor for name, factor in terms.items() if factor}
        return Linear(kept, self.constant + times * other.constant)


@dataclass(frozen=True, slots=True)
class Bound:
    """A comparison as ``linear <= 0``."""

    linear: Linear


def linear(region: Function, value: Value) -> Linear | None:
    """Return an i32 value of a region as a sum of its parameters, or None if it is none."""
    operation = region.definitions().get(value.name)
    if operation is None:
        return Linear({value.name: 1})
    if operation.op == "constant":
        number = _constant(region, value)
        return None if number is None or abs(number) >= _LARGEST else Linear({}, number)
    if operation.op not in ("add", "sub", "neg"):
        return None
    parts = [linear(region, operand) for operand in operation.operands]
    sides = [part for part in parts if part is not None]
    if len(sides) < len(parts):
        return None
    if operation.op == "neg":
        return Linear().plus(sides[0], -1)
    return sides[0].plus(sides[1], 1 if operation.op == "add" else -1)


# Each comparison x ? y as (sign of x - y, what to add) of a sum that is at most 0.
_COMPARISONS = {"le": (1, 0), "lt": (1, 1), "ge": (-1, 0), "gt": (-1, 1)}


def bounds_of(region: Function, operation: Operation | None) -> Bound | None:
    """Return a comparison of sums of indices, or None if the operation is none."""
    if operation is None or operation.op not in _COMPARISONS:
        return None
    sides = [linear(region, operand) for operand in operation.operands]
    left, right = sides
    if left is None or right is None:
        return None
    sign, more = _COMPARISONS[operation.op]
    difference = left.plus(right, -1)
    return Bound(Linear().plus(difference, sign).plus(Linear({}, more)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMask:
    """Keys j with i + d - left <= j <= i + d + right, None being no limit.

    d is k_len - q_len from the bottom right, else 0; the first ``sink`` keys have no left limit.
    """

    left: int | None = None
    right: int | None = None
    from_bottom_right: bool = False
    sink: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it hides nothing."""
        return self.left is None and self.right is None

    @property
    def keys_left(self) -> int:
        """How many keys on the left a query sees; -1 for all, as kernels take it."""
        return -1 if self.left is None else self.left

    @property
    def keys_right(self) -> int:
        """How many keys on the right a query sees; -1 for all."""
        return -1 if self.right is None else self.right

    def __str__(self) -> str:
        if self.is_open:
            return "none"
        corner = "bottom right" if self.from_bottom_right else "top left"
        if self.left is None and self.right == 0:
            return f"causal from the {corner}"
        limits = (f"{name} {'open' if n is None else n}" for name, n in self._limits())
        sink = f", {self.sink} sink tokens" if self.sink else ""
        return f"window ({', '.join(limits)}{sink}) from the {corner}"

    def _limits(self) -> tuple[tuple[str, int | None], ...]:
        return ("left", self.left), ("right", self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edge:
    """One edge of a window."""

    is_left: bool
    distance: int
    from_bottom_right: bool
    sink: int = 0


def is_true(region: Function) -> bool:
    """Tell whether a mask shows every key."""
    operation = region.definitions().get(region.results[0].name)
    return operation is not None and operation.op == "constant" and operation.attr("value") is True


def split_mask(region: Function) -> tuple[WindowMask, Function | None]:
    """Return the window of a mask, and the mask of what else it asks, or None if there is none."""
    if is_true(region):
        return WindowMask(), None
    window, rest = WindowMask(), []
    for value in _conditions(region, region.results[0]):
        edge = _edge(region, value)
        joined = None if edge is None else _joined(window, edge)
        if joined is None:
            rest.append(value)
        else:
            window = joined
    return window, _joint(region, rest) if rest else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMask:
    """Blocks of scores that a mask hides or shows as a whole, or in part."""

    size: tuple[int, int]
    """The queries and keys of a block."""
    region: Function
    """Maps indices to what the mask shows of the block around them: 0 nothing, 2 all, else some."""
    inside: Function
    """Whether it shows a key, in a block that it shows in part."""

    def __str__(self) -> str:
        return f"blocks of {self.size[0]} queries x {self.size[1]} keys"


def block_mask_of(region: Function | None) -> BlockMask | None:
    """Return the blocks that a mask shows, if one of its conditions is of blocks.

    The condition is ``blocks[b, h, i // rows, j // keys] > 0``, or such an element is 2, or it is
    1 and something else holds.
    """
    if region is None:
        return None
    conditions = _conditions(region, region.results[0])
    for condition in conditions:
        asked = _asked_of_blocks(region, condition)
        if asked is not None:
            element, inner, size = asked
            return _block_mask(region, element, inner, size, is_alone=len(conditions) == 1)
    return None


def _block_mask(
    region: Function, element: Value, inner: Value | None, size: tuple[int, int], *, is_alone: bool
) -> BlockMask:
    builder, known = _extract(region, [element], "block")
    shown = known[element.name]
    if inner is None or not is_alone:
        # What this condition alone shows is not sure to be seen.
        all_of_it = builder.append("constant", value=2 if is_alone else 1)
        hidden = builder.append("constant", value=0)
        shown = builder.append("where", builder.append("gt", shown, hidden), all_of_it, hidden)
    asked = inner if is_alone and inner is not None else region.results[0]
    inside, values = _extract(region, [asked], "inside")
    return BlockMask(
        size=size, region=builder.finish(shown), inside=inside.finish(values[asked.name])
    )


def _asked_of_blocks(
    region: Function, condition: Value
) -> tuple[Value, Value | None, tuple[int, int]] | None:
    """Return the element that a condition of blocks reads, and the size of a block.

    Between them what it asks where the element is 1, unless it asks whether it is above 0.
    """
    operations = region.definitions()
    element, inner = _compared(region, condition, "gt", 0), None
    operation = operations.get(condition.name)
    if operation is not None and operation.op == "logical_or":
        whole, part = operation.operands
        joined = operations.get(part.name)
        if joined is not None and joined.op == "logical_and":
            is_part, inner = joined.operands
            same = _compared(region, whole, "eq", 2)
            element = same if same == _compared(region, is_part, "eq", 1) else None
    size = None if element is None else _block_size(region, element)
    return None if element is None or size is None else (element, inner, size)


def _compared(region: Function, value: Value, op: str, number: int) -> Value | None:
    """Return what a comparison compares with a number, or None if the value is no such one."""
    operation = region.definitions().get(value.name)
    if operation is None or operation.op != op:
        return None
    left, right = operation.operands
    return left if _constant(region, right) == number else None


def _block_size(region: Function, value: Value) -> tuple[int, int] | None:
    """Return the queries and keys of a block if a value is an element for each, else None."""
    element = region.definitions().get(value.name)
    if element is None or element.op != "element" or len(element.operands) != _BLOCK_OPERANDS:
        return None
    _, b, h, row, key = element.operands
    rows, keys = _divisor(region, row, "i"), _divisor(region, key, "j")
    if (b.name, h.name) != ("b", "h") or rows is None or keys is None:
        return None
    return rows, keys


def _divisor(region: Function, value: Value, index: str) -> int | None:
    """Return the constant by which a value divides an index, or None if it is no such quotient."""
    division = region.definitions().get(value.name)
    if division is None or division.op != "floor_divide" or division.operands[0].name != index:
        return None
    size = _constant(region, division.operands[1])
    return size if size is not None and size > 0 else None


def _constant(region: Function, value: Value) -> int | None:
    """Return an integer constant of a region, or None if the value is none."""
    operation = region.definitions().get(value.name)
    number = None
    if operation is not None and operation.op == "constant":
        number = operation.attr("value")
    return number if type(number) is int else None


_BLOCK_OPERANDS = 5
"""A tensor and its indices of batch, head, and blocks of queries and keys."""


def _conditions(region: Function, value: Value) -> list[Value]:
    operation = region.definitions().get(value.name)
    if operation is None or operation.op != "logical_and":
        return [value]
    left, right = operation.operands
    return [*_conditions(region, left), *_conditions(region, right)]


def _edge(region: Function, value: Value) -> _Edge | None:
    operation = region.definitions().get(value.name)
    if operation is not None and operation.op == "logical_or":
        return _left_with_sink(region, operation)
    bounds = bounds_of(region, operation)
    return None if bounds is None else _diagonal(bounds.linear)


def _left_with_sink(region: Function, operation: Operation) -> _Edge | None:
    """Return the left edge of ``near | (j < sink)``, in either order."""
    for near, first in (operation.operands, operation.operands[::-1]):
        edge = _edge(region, near)
        start = bounds_of(region, region.definitions().get(first.name))
        if edge is None or start is None or not edge.is_left or edge.sink:
            continue
        # j - sink + 1 <= 0
        sink = 1 - start.linear.constant
        if start.linear.terms == {"j": 1} and sink > 0:
            return replace(edge, sink=sink)
    return None


def _diagonal(bound: Linear) -> _Edge | None:
    """Return the edge that ``bound <= 0`` is: of j - i - d - right or of i + d - left - j."""
    terms = dict(bound.terms)
    sign = terms.get("j", 0)
    shifts = {(): False, ("k_len", "q_len"): True}
    rest = tuple(sorted(name for name in terms if name not in ("i", "j")))
    if sign not in (1, -1) or terms.get("i") != -sign or rest not in shifts:
        return None
    if shifts[rest] and (terms["k_len"] != -sign or terms["q_len"] != sign):
        return None
    distance = -bound.constant
    if distance < 0:
        return None  # a window beside the diagonal; kernels have none
    return _Edge(is_left=sign < 0, distance=distance, from_bottom_right=shifts[rest])


def _joined(window: WindowMask, edge: _Edge) -> WindowMask | None:
    """Return the window with one edge more, or None if it is none of a kernel's."""
    if not window.is_open and window.from_bottom_right != edge.from_bottom_right:
        return None
    name = "left" if edge.is_left else "right"
    if getattr(window, name) is not None:
        return None
    changed = replace(window, from_bottom_right=edge.from_bottom_right, **{name: edge.distance})
    return replace(changed, sink=edge.sink) if edge.is_left else changed


def _joint(region: Function, conditions: Sequence[Value]) -> Function:
    """Return the mask that asks for all ``conditions`` of a region."""
    builder, known = _extract(region, conditions, region.name)
    first, *others = (known[value.name] for value in conditions)
    for other in others:
        first = builder.append("logical_and", first, other)
    return builder.finish(first)


def _extract(
    region: Function, values: Sequence[Value], name: str
) -> tuple[Builder, dict[str, Value]]:
    """Return a builder of what some values of a region need, and its values by their names."""
    needed = {value.name for value in values}
    for operation in reversed(region.body):
        if operation.result.name in needed:
            needed.update(operand.name for operand in operation.operands)
    builder = Builder(name, region.span)
    known = {param.name: builder.param(param.name, param.type) for param in region.params}
    for operation in region.body:
        if operation.result.name in needed:
            operands = [known[operand.name] for operand in operation.operands]
            known[operation.result.name] = builder.apply(
                operation.op, operands, dict(operation.attrs), span=operation.span
            )
    return builder, known
