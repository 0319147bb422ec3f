# SPDX-License-Identifier: MIT
"""What a repeated call of an op needs, and the plain numbers of a call."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cklang import knobs
from cklang.device import arrays
from cklang.device.arrays import HOST, Library
from cklang.errors import error
from cklang.runtime import call_key

if TYPE_CHECKING:
    from cklang.device.pinned_buffers import PinnedBuffer, PinnedBufferPool
    from cklang.families.protocol import HostCheck
    from cklang.runtime.bind import Binding, ResultLayout
    from cklang.runtime.call_key import CallKey
    from cklang.runtime.call_plan import CallPlan
    from cklang.runtime.in_place import InPlace

_NUMBER = 8
"""Bytes that a number has for itself."""


@dataclass(frozen=True, kw_only=True)
class Ready:
    """Everything a repeated call needs; it holds no array of the call that made it."""

    plan: CallPlan
    results: tuple[ResultLayout, ...]
    libraries: tuple[Library, ...]
    """Whose arrays the results are."""
    place: str
    number_dtypes: tuple[np.dtype[Any], ...]
    """The dtype that each address's memory has, for plain numbers."""
    lists: HostCheck | None = None
    """The index arrays that each call must check before it launches."""
    in_place: tuple[InPlace, ...] = ()
    """The results that are written into arguments."""
    names: tuple[str, ...] = ()
    """The arguments, in the order of their addresses."""
    timed: bool = False
    """Whether each call is timed: what ``CKLANG_TIMING`` said when it was made first."""

    @functools.cached_property
    def result_makers(self) -> tuple[Callable[[], Any], ...]:
        """What makes a new array for each result."""
        from cklang.device.device_array import maker

        return tuple(
            maker(layout.shape, layout.dtype, library, self.place, layout.order)
            for layout, library in zip(self.results, self.libraries, strict=True)
        )

    @functools.cached_property
    def number_buffers(self) -> PinnedBufferPool:
        """Where plain numbers stand beside arrays on a GPU."""
        from cklang.device.pinned_buffers import PinnedBufferPool

        return PinnedBufferPool(self.plan.device, bytes(_NUMBER * len(self.number_dtypes)))


def ready_of(
    plan: CallPlan,
    results: tuple[ResultLayout, ...],
    binding: Binding,
    lists: HostCheck | None,
    in_place: tuple[InPlace, ...] = (),
) -> Ready:
    """Return what calls like a bound one need, whose launches are ``plan``."""
    return Ready(
        plan=plan,
        results=results,
        libraries=(binding.library,) * len(results),
        place=binding.place,
        number_dtypes=dtypes_of(binding),
        lists=lists,
        in_place=in_place,
        names=tuple(binding.arrays),
        timed=knobs.TIMING.get(),
    )


def dtypes_of(binding: Binding) -> tuple[np.dtype[Any], ...]:
    """Return the dtype of each argument of a bound call."""
    return tuple(array.dtype.numpy for array in binding.arrays.values())


def put_numbers(ready: Ready, call: CallKey) -> PinnedBuffer | None:
    """Put the numbers of a call where its kernels read them, and note the addresses.

    Returns:
        The buffer to release when they are launched; None of a call that waits for them.
    """
    cells = tuple(np.array(number, ready.number_dtypes[index]) for index, number in call.numbers)
    buffer = None
    if ready.place == HOST:
        call.borrowed += cells
        places = [call_key.address(cell) for cell in cells]
    else:
        buffer = ready.number_buffers.acquire()
        places = [buffer.address + _NUMBER * place for place in range(len(cells))]
        for place, cell in zip(places, cells, strict=True):
            ctypes.memmove(place, call_key.address(cell), cell.nbytes)
    for (index, _), place in zip(call.numbers, places, strict=True):
        call.addresses[index] = place
    return buffer


def put_results(ready: Ready, call: CallKey, values: Sequence[Any]) -> list[Any]:
    """Return the arrays that take the results of a call, and note their addresses."""
    updates = {update.result: update for update in ready.in_place}
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
