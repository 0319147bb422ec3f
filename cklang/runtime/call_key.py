# SPDX-License-Identifier: MIT
"""What a call's plan depends on, as a key, and the addresses it needs: the path of every call.

Reading a NumPy array in full takes microseconds; this reads only what decides the plan.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cklang.device import arrays
from cklang.device.arrays import Array, torch_module
from cklang.runtime.tracing import TracedArgumentError

if TYPE_CHECKING:
    from cklang.frontend.signature import Parameter
    from cklang.runtime.array_reader import ArrayComparer, ArrayReader


class CallKey:
    """What the plan of a call depends on, and where its arrays are."""

    __slots__ = ("addresses", "borrowed", "key", "numbers")

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key
        """Equal for calls of one plan."""
        self.addresses: list[int] = []
        """One for each tensor or scalar argument that is given; 0 for plain numbers."""
        self.numbers: tuple[tuple[int, Any], ...] = ()
        """(index in ``addresses``, value) of plain numbers."""
        self.borrowed: tuple[Any, ...] = ()
        """What keeps memory alive that was borrowed for this call."""


def address(array: Any) -> int:
    """Return the address of a NumPy array's or torch tensor's first element."""
    if not isinstance(array, np.ndarray):
        return int(array.data_ptr())
    addresses: list[int] = []
    # NumPy's own attribute builds an object at each access and takes ten times as long.
    if _reader is not None and _reader(array, [], addresses):
        return addresses[0]
    return array.ctypes.data


def of_call(
    parameters: Sequence[Parameter], values: Sequence[Any], out: Any, about: tuple[Hashable, ...]
) -> CallKey:
    """Return the key of a call with ``values``, one for each parameter.

    Args:
        parameters: Of the op.
        values: Of the call, in the order of the parameters.
        out: The array for the result, or a tuple of arrays; None for new ones.
        about: What else the plan depends on: the device, the registry and its version, ...
    """
    call = CallKey(about)
    key: list[Any] = [*about]
    addresses = call.addresses
    for parameter, value in zip(parameters, values, strict=True):
        if _reader is not None and _reader(value, key, addresses):
            continue
        kind = type(value)
        if kind is _Array:
            pointer = value.ctypes.data
            key += (value.dtype, value.shape, value.strides, pointer & 7)
            addresses.append(pointer)
        elif (
            (kind is _Tensor or kind is _Weight)
            and not (value.requires_grad and _is_grad_enabled())
            and value.layout is _strided
            and not value.is_nested
            and not value.is_neg()
        ):
            _add_tensor(value, key, call)
        elif parameter.is_const:
            # 1, 1.0 and True are equal in Python, and different programs.
            key += (kind, repr(value))
        elif value is None and parameter.optional:
            key.append(None)
        elif kind is float or kind is int or kind is bool:
            key.append(kind)
            call.numbers += ((len(addresses), value),)
            addresses.append(0)
        else:
            _add_other(parameter.name, value, key, call)
    if out is not None:
        for array in out if isinstance(out, tuple) else (out,):
            _add_named("out", array, key, call)
    call.key = tuple(key)
    return call


def add(call: CallKey, name: str, array: Any) -> None:
    """Add one more array to a call; its address comes last.

    Raises:
        CkTypeError, CkValueError: A001-A006, it is no readable array.
    """
    key = list(call.key)
    _add_named(name, array, key, call)
    call.key = tuple(key)


def joined(calls: Sequence[CallKey], about: tuple[Hashable, ...]) -> CallKey:
    """Return several calls as one: the addresses of the first, those of the next, ..."""
    group = CallKey((*about, *(call.key for call in calls)))
    for call in calls:
        first = len(group.addresses)
        group.numbers += tuple((first + index, value) for index, value in call.numbers)
        group.addresses += call.addresses
        group.borrowed += call.borrowed
    return group


def read_in_c() -> None:
    """Read the arrays of calls to come by a C function if there is a compiler for it.

    It says the same of an array as this module does, in a quarter of the time.
    """
    global reads_in_c, _reader, _comparer
    from cklang.runtime.array_reader import array_comparer, array_reader

    reads_in_c = True
    _reader = array_reader(None if _Tensor is None else torch_module())
    _comparer = None if _reader is None else array_comparer()


def repeated(
    key: tuple[Any, ...], about: tuple[Hashable, ...], values: Sequence[Any]
) -> CallKey | None:
    """Return a call whose key is a known one, without making a key again.

    ``key`` is that of a call without ``out``.

    Returns:
        None if its key is another one, or if only :func:`of_call` can tell.
    """
    if _comparer is None or key[: len(about)] != about:
        return None
    addresses = _comparer(key, len(about), values)
    if addresses is None:
        return None
    call = CallKey(key)
    call.addresses = addresses
    return call


def _add_named(name: str, array: Any, key: list[Any], call: CallKey) -> None:
    key.append(name)
    if _reader is not None and _reader(array, key, call.addresses):
        if type(array) is _Array:
            key.append(array.flags.writeable)
    elif type(array) is _Array:
        pointer = array.ctypes.data
        key += (array.dtype, array.shape, array.strides, pointer & 7, array.flags.writeable)
        call.addresses.append(pointer)
    else:
        _add_other(name, array, key, call)


def _add_other(name: str, value: Any, key: list[Any], call: CallKey) -> None:
    if _Tensor is None:
        _find_torch()
    if _Tensor is not None and isinstance(value, _Tensor):
        _expect_own_memory(name, value)
    if (type(value) is _Tensor or type(value) is _Weight) and _is_plain(value):
        _add_tensor(value, key, call)
        return
    if isinstance(value, np.generic):
        # Its memory is the host's, wherever that of the arrays is.
        key += ("number", value.dtype)
        call.numbers += ((len(call.addresses), arrays.plain(value)),)
        call.addresses.append(0)
        return
    array = arrays.read(name, value)
    key += face_of(array)
    call.addresses.append(array.pointer)
    call.borrowed += (array.owner,)


def _add_tensor(value: Any, key: list[Any], call: CallKey) -> None:
    pointer = value.data_ptr()
    place = True if value.is_cpu else value.device  # a device takes longer to compare
    key += (value.dtype, value.shape, value.stride(), pointer & 7, place)
    call.addresses.append(pointer)


reads_in_c = False
"""Whether :func:`read_in_c` was called."""
_reader: ArrayReader | None = None
"""Reads most arrays, once :func:`read_in_c` was asked to; None before, or without a compiler."""
_comparer: ArrayComparer | None = None
"""Compares the arrays of a call with a known key, where there is a reader."""
_Array = np.ndarray
_Tensor: Any = None
_Weight: Any = None
_strided: Any = None
_is_grad_enabled: Any = None
"""torch's ``is_grad_enabled``, set once a value may be a tensor: torch is not imported here."""


def _find_torch() -> None:
    global _Tensor, _Weight, _strided, _is_grad_enabled
    torch = torch_module()
    if torch is not None:
        _Weight, _strided = torch.nn.Parameter, torch.strided
        _is_grad_enabled, _Tensor = torch.is_grad_enabled, torch.Tensor
        if reads_in_c:
            read_in_c()


def _expect_own_memory(name: str, tensor: Any) -> None:
    """Raise an error of a tensor that torch's dispatcher is to see."""
    needs_gradient = tensor.requires_grad and _is_grad_enabled()
    if needs_gradient or not arrays.is_plain_class(tensor):
        raise TracedArgumentError(name)


def _is_plain(tensor: Any) -> bool:
    """Whether a tensor's memory can be read as it is; :func:`of_call` says the same in place."""
    return tensor.layout is _strided and not tensor.is_nested and not tensor.is_neg()


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
