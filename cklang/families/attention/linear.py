# SPDX-License-Identifier: MIT
"""Integer expressions of a region as sums of its indices: what tells a window from other masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
        number = operation.attr("value")
        small = type(number) is int and abs(number) < _LARGEST
        return Linear({}, number) if small and isinstance(number, int) else None
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
