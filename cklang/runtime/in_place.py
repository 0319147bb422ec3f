# SPDX-License-Identifier: MIT
"""Results that are written into arguments: those of parameters annotated with ``ck.inout``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cklang.device import arrays
from cklang.errors import error
from cklang.frontend.signature import Parameter
from cklang.ir.nodes import Function
from cklang.ir.scatter import in_place_results
from cklang.runtime import call_key
from cklang.runtime.bind import Binding
from cklang.runtime.call_key import CallKey

if TYPE_CHECKING:
    from cklang.runtime.ready import Ready

__all__ = ["InPlace", "in_place_of", "put_results", "with_updated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """A result that is in the memory of an argument."""

    result: int
    """Its place among the results."""
    name: str
    """The parameter."""
    value: int
    """The parameter's place among all."""
    slot: int
    """The place of its address among those of a call."""


def in_place_of(
    function: Function, parameters: Sequence[Parameter], binding: Binding
) -> tuple[InPlace, ...]:
    """Return the results of a bound call that are written into its arguments."""
    places = in_place_results(function)
    values = [parameter.name for parameter in parameters]
    slots = list(binding.arrays)
    return tuple(
        InPlace(
            result=index,
            name=places[result.name],
            value=values.index(places[result.name]),
            slot=slots.index(places[result.name]),
        )
        for index, result in enumerate(function.results)
        if result.name in places
    )


def with_updated(
    targets: Sequence[arrays.Array], updates: Sequence[InPlace], binding: Binding
) -> tuple[arrays.Array, ...]:
    """Return the arrays that take the results of a call, arguments among them."""
    own = {each.result: binding.arrays[each.name] for each in updates}
    return tuple(own.get(index, target) for index, target in enumerate(targets))


def put_results(ready: Ready, call: CallKey, values: Sequence[Any]) -> list[Any]:
    """Return the arrays that take the results of a call, and note their addresses.

    Raises:
        CkValueError: A075, an argument that takes one is read-only; A076, it overlaps another one.
    """
    updates = {each.result: each for each in ready.in_place}
    results = []
    for index, make in enumerate(ready.result_makers):
        update = updates.get(index)
        if update is None:
            results.append(make())
            call.addresses.append(call_key.address(results[-1]))
            continue
        array = values[update.value]
        if not arrays.read(update.name, array).writeable:
            raise error("A075", name=update.name)
        results.append(array)
        call.addresses.append(call.addresses[update.slot])
    pair = ready.plan.overlapping(call.addresses) if updates else None
    if pair is not None:
        here, there = pair
        named = updates[here - len(ready.names)].name
        raise error("A076", name=named, other=(*ready.names, *_results(ready, updates))[there])
    return results


def _results(ready: Ready, updates: dict[int, InPlace]) -> list[str]:
    return [
        updates[index].name if index in updates else "a result"
        for index in range(len(ready.results))
    ]
