# SPDX-License-Identifier: MIT
"""Arguments of Triton kernels: NumPy arrays as Triton wants tensors, and argument bytes."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

#: How an argument of a scalar type is packed; pointers are "Q".
_FORMATS = {
    "i1": "b",
    "u1": "B",
    "i8": "b",
    "u8": "B",
    "i16": "h",
    "u16": "H",
    "i32": "i",
    "u32": "I",
    "i64": "q",
    "u64": "Q",
    "fp16": "e",
    "fp32": "f",
    "f32": "f",
    "fp64": "d",
}
_POINTER = "Q"
_CONSTANT = "constexpr"
_DESCRIPTOR = "tensordesc<"


class HostArray:
    """A NumPy array that a Triton kernel takes; the kernel reads and writes it in place.

    Example::

        out = np.empty(1000, np.float32)
        add[(4,)](HostArray(x), HostArray(y), HostArray(out), 1000, BLOCK=256)
    """

    __slots__ = ("array", "dtype")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.dtype = array.dtype.name
        """The type by its name; Triton knows those of NumPy and ml_dtypes that torch has too."""

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self.array.ctypes.data)

    def ptr_range(self) -> int:
        """Return how many bytes behind the first element belong to the array."""
        return int(self.array.nbytes)


def flat(types: Iterable[Any], values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the type and value of each argument that the kernel takes.

    Tuples are opened. A descriptor of a tensor is the tensor, its shape and strides, flags that say
    how elements outside are read and, from Triton 3.7 on, that f32 is rounded; then again its shape
    and strides, which Triton's own lowering of descriptors adds.

    Example:
        >>> list(flat(("*fp32", "constexpr", ("i32", "i64")), (16, 4, (1, 2))))
        [('*fp32', 16), ('i32', 1), ('i64', 2)]
    """
    for kind, value in zip(types, values, strict=True):
        if isinstance(kind, tuple):
            yield from flat(kind, value)
        elif kind.startswith(_DESCRIPTOR):
            yield from _described(kind, value)
        elif kind != _CONSTANT:
            yield kind, value


def host_regions(types: Sequence[Any], values: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Yield the address and the bytes of the memory of each array among some arguments.

    Example:
        >>> array = np.zeros(8, np.float32)
        >>> [size for _, size in host_regions(("*fp32", "i32"), (HostArray(array), 8))]
        [32]
    """
    for kind, value in flat(types, values):
        if not kind.startswith("*"):
            continue
        if isinstance(value, HostArray):
            yield value.data_ptr(), value.ptr_range()
        elif hasattr(value, "untyped_storage"):
            storage = value.untyped_storage()
            yield storage.data_ptr(), storage.nbytes()


def _described(kind: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arguments that a descriptor of type ``tensordesc<fp16[64, 32]>`` stands for."""
    dtype, _, _ = kind.removeprefix(_DESCRIPTOR).partition("[")
    yield f"*{dtype}", value.base
    yield from (("i64", extent) for extent in (*value.shape, *value.strides))
    yield "i1", value.padding == "nan"
    if hasattr(value, "round_f32_to_tf32"):
        yield "i1", value.round_f32_to_tf32
    yield from (("i32", extent) for extent in value.shape)
    yield from (("i64", stride) for stride in value.strides)


def _address(value: Any) -> int:
    if value is None:
        return 0
    return int(value.data_ptr()) if hasattr(value, "data_ptr") else int(value)


def _packed(kind: str, value: Any) -> tuple[str, Any]:
    """The format and the number of an argument."""
    if kind.startswith("*"):
        return _POINTER, _address(value)
    if kind == "bf16":  # the upper half of an f32, which is rounded to nearest even
        bits = int(np.float32(value).view(np.uint32))
        return "H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF
    return _FORMATS[kind], value


def kernel_arguments(types: Sequence[Any], values: Sequence[Any], scratch: Sequence[Any]) -> bytes:
    """Return the argument bytes: each argument at a multiple of its size, then scratch memory.

    Example:
        >>> kernel_arguments(("i32", "*fp32"), (1, 256), ()).hex(" ", 4)
        '01000000 00000000 00010000 00000000'
    """
    packed = bytearray()
    pointers = [("*i8", value) for value in scratch]
    for kind, value in [*flat(types, values), *pointers]:
        form, number = _packed(kind, value)
        packed += bytes(-len(packed) % struct.calcsize(form)) + struct.pack(f"<{form}", number)
    return bytes(packed)
