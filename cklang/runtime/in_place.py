# SPDX-License-Identifier: MIT
"""Results that are written into arguments: those of parameters annotated with ``ck.inout``."""

from collections.abc import Sequence
from dataclasses import dataclass

from cklang.device import arrays
from cklang.frontend.signature import Parameter
from cklang.ir.nodes import Function
from cklang.ir.scatter import in_place_results
from cklang.runtime.bind import Binding


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
    own = {update.result: binding.arrays[update.name] for update in updates}
    return tuple(own.get(index, target) for index, target in enumerate(targets))
