# SPDX-License-Identifier: MIT
"""Other ways to share a program's values among its kernels: computed once and stored, or again.

The partition decides by rules. Some of its decisions depend on the extents of a call. For these,
families yield alternatives (:class:`cklang.fusion.passes.Fusion`): programs in which other values
are in memory (``apart``), or that a rewrite of the family makes. The runtime compares the predicted
times of both (:mod:`cklang.runtime.sharing`).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from cklang.ir.nodes import Function, Operation, Value, attr_key, make_attrs
from cklang.ir.rewrite import FreshNames
from cklang.ir.views import APART, BY_COST


def with_stored(function: Function, names: Iterable[str]) -> Function:
    """Return a program that stores some values; equal ones are stored once."""
    fresh = FreshNames(function)
    same = numbers_of_values(function)
    wanted = set(names)
    stored: dict[int, Value] = {}
    renamed: dict[str, Value] = {}
    body: list[Operation] = []
    for operation in function.body:
        operands = tuple(renamed.get(value.name, value) for value in operation.operands)
        body.append(operation.of(operands))
        value = operation.result
        if value.name not in wanted:
            continue
        if same[value.name] not in stored:
            copy = replace(value, name=fresh.new("stored"))
            stored[same[value.name]] = copy
            call = make_attrs(call=BY_COST)
            body.append(Operation(op=APART, operands=(value,), attrs=call, result=copy))
        renamed[value.name] = stored[same[value.name]]
    return replace(function, body=tuple(body))


Rewriting: TypeAlias = Callable[[Function, Collection[str]], Function]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another program that computes the same, whose plan shares values in another way."""

    value: Value
    """The value that this is about."""
    names: tuple[str, ...]
    """The names of the values that ``rewriting`` is about."""
    once: bool
    """Whether ``value`` is stored in this plan and not in that of the rules; or the other way
    round."""
    rewriting: Rewriting = with_stored
    """Makes the other program of a program and of names: stores them, equal values together."""
    order: int = 0
    """Which rewriting comes before which, where a program has several."""
    below: Value | None = None
    """Worth a plan only if the rows of ``value`` have fewer bytes than those of this."""


def alternative_program(function: Function, options: Sequence[Alternative]) -> Function:
    """Return a program whose plan has all these alternatives."""
    rewritings = dict.fromkeys(
        option.rewriting for option in sorted(options, key=lambda option: option.order)
    )
    for rewriting in rewritings:
        names = [name for own in options if own.rewriting == rewriting for name in own.names]
        function = rewriting(function, names)
    return function


def numbers_of_values(function: Function) -> dict[str, int]:
    """Return a number for each value, by name; equal values have the same number."""
    numbers: dict[str, int] = {}
    known: dict[object, int] = {}
    for value in function.params:
        numbers[value.name] = len(numbers)
    for operation in function.body:
        operands = tuple(numbers[value.name] for value in operation.operands)
        what = (operation.op, operands, attr_key(operation.attrs), str(operation.result.type))
        numbers[operation.result.name] = known.setdefault(what, len(numbers))
    return numbers
