# SPDX-License-Identifier: MIT
"""What a call's plan depends on, as a key, and the addresses it needs: the path of every call.

Reading a NumPy array in full takes microseconds; this reads only what decides the plan.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cklang.device import arrays
from cklang.device.arrays import Array, torch_module
from cklang.frontend.signature import Parameter

__all__ = ["Glance", "address", "face_of", "glance", "joined", "look_at"]

# A NumPy array object starts with Python's object header and then the address of its data; its
# public attributes for that address build an object at each access and take ten times as long.
_DATA = object.__basicsize__
_word = ctypes.c_size_t.from_address


def _layout_holds() -> bool:
    sample = np.empty(3, np.float16)
    return int(_word(id(sample) + _DATA).value) == sample.ctypes.data


if _layout_holds():

    def _numpy_address(array: np.ndarray[Any, Any]) -> int:
        return _word(id(array) + _DATA).value

else:  # pragma: no cover - another Python than CPython

    def _numpy_address(array: np.ndarray[Any, Any]) -> int:
        return array.ctypes.data


@dataclass(slots=True)
class Glance:
    """A call seen quickly."""

    key: tuple[Any, ...]
    addresses: list[int]
    """One for each tensor or scalar argument; 0 for plain numbers."""
    numbers: list[tuple[int, Any]] = field(default_factory=list)
    """(index in ``addresses``, value) of plain numbers."""
    held: list[Any] = field(default_factory=list)
    """What keeps memory alive that was borrowed for this call."""


def address(array: Any) -> int:
    """Return the address of a NumPy array's or torch tensor's first element."""
    if isinstance(array, np.ndarray):
        return _numpy_address(array)
    return int(array.data_ptr())


def glance(
    parameters: Sequence[Parameter], values: Sequence[Any], out: Any, device: str | None
) -> Glance:
    """Look at a call's values, one for each parameter.

    Two calls with equal keys have the same plan.

    Raises:
        CkTypeError, CkValueError: A001-A006, a value that is no readable array.
    """
    key: list[Any] = [device]
    seen = Glance((), [])
    for parameter, value in zip(parameters, values, strict=True):
        kind = type(value)
        if kind is np.ndarray:
            pointer = _numpy_address(value)
            key += (value.dtype, value.shape, value.strides, pointer & 7)
            seen.addresses.append(pointer)
        elif parameter.is_const:
            # 1, 1.0 and True are equal in Python, and different programs.
            key += (kind, repr(value))
        elif kind is float or kind is int or kind is bool:
            key.append(kind)
            seen.numbers.append((len(seen.addresses), value))
            seen.addresses.append(0)
        else:
            _other(parameter.name, value, key, seen)
    if out is not None:
        for each in out if isinstance(out, tuple) else (out,):
            _named("out", each, key, seen)
    seen.key = tuple(key)
    return seen


def look_at(seen: Glance, name: str, array: Any) -> None:
    """Look at one more array of a call; its address comes last.

    Raises:
        CkTypeError, CkValueError: A001-A006, it is no readable array.
    """
    key = list(seen.key)
    _named(name, array, key, seen)
    seen.key = tuple(key)


def joined(calls: Sequence[Glance]) -> Glance:
    """Return several calls seen as one: the addresses of the first, those of the next, ..."""
    whole = Glance(tuple(each.key for each in calls), [])
    for each in calls:
        first = len(whole.addresses)
        whole.numbers += [(first + index, value) for index, value in each.numbers]
        whole.addresses += each.addresses
        whole.held += each.held
    return whole


def _named(name: str, array: Any, key: list[Any], seen: Glance) -> None:
    key.append(name)
    if type(array) is np.ndarray:
        pointer = _numpy_address(array)
        key += (array.dtype, array.shape, array.strides, pointer & 7, array.flags.writeable)
        seen.addresses.append(pointer)
    else:
        _other(name, array, key, seen)


def _other(name: str, value: Any, key: list[Any], seen: Glance) -> None:
    torch = torch_module()
    if torch is not None and type(value) is torch.Tensor and _is_plain(value, torch):
        pointer = value.data_ptr()
        key += (value.dtype, value.shape, value.stride(), pointer & 7, value.device)
        seen.addresses.append(pointer)
        return
    if isinstance(value, np.generic):
        # Its memory is the host's, wherever that of the arrays is.
        key += ("number", value.dtype)
        seen.numbers.append((len(seen.addresses), arrays.plain(value)))
        seen.addresses.append(0)
        return
    array = arrays.read(name, value)
    key += face_of(array)
    seen.addresses.append(array.pointer)
    seen.held.append(array.owner)


def _is_plain(tensor: Any, torch: Any) -> bool:
    return not tensor.requires_grad and tensor.layout is torch.strided and not tensor.is_neg()


def face_of(array: Array) -> tuple[Any, ...]:
    """Return what a plan depends on of an array."""
    return (
        array.dtype,
        array.shape,
        array.strides,
        array.pointer & 7,
        array.place,
        array.library,
        array.writeable,
        array.prepared,
        array.k_axis,
    )
