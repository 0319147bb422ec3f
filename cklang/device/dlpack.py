# SPDX-License-Identifier: MIT
"""DLPack: memory of a device as a capsule that other libraries take over, without a copy.

The structures are those of the DLPack standard before version 1, which every library reads. What
has the memory lives until the consumer calls the deleter, or until a capsule that nobody took is
collected.
"""

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from cklang.types import DType, Kind, bf16


class DLDevice(NamedTuple):
    """A device as DLPack names it."""

    kind: int
    number: int


CPU, ROCM = 1, 10
"""Kinds of devices."""

_NAME = b"dltensor"
_BFLOAT = 4
_CODES = {Kind.INT: 0, Kind.FLOAT: 2, Kind.BOOL: 6}


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


_alive: dict[int, tuple[_Managed, object]] = {}
"""What consumers still use, by address: the structure, and who has the memory."""

_python = ctypes.pythonapi
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new = _python.PyCapsule_New
_new.argtypes, _new.restype = (ctypes.c_void_p, ctypes.c_char_p, _Destructor), ctypes.py_object
# Addresses, not objects: a destructor gets a capsule that has no reference left.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _python)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)


def _forget(address: int) -> None:
    _alive.pop(address, None)


def _collect(address: int) -> None:
    # A consumer renames the capsule that it takes, and calls the deleter itself.
    if _is_valid(address, _NAME):
        _forget(_pointer(address, _NAME))


_deleted, _collected = _Deleter(_forget), _Destructor(_collect)


def capsule(
    pointer: int,
    dtype: DType,
    shape: Sequence[int],
    strides: Sequence[int],
    device: DLDevice,
    owner: object,
) -> Any:
    """Return a DLPack capsule of an array; ``strides`` in elements.

    ``owner`` is kept alive as long as a consumer uses the memory.
    """
    extents = (ctypes.c_int64 * len(shape))(*shape)
    steps = (ctypes.c_int64 * len(shape))(*strides)
    code = _code(dtype)
    managed = _Managed(
        tensor=_Tensor(
            data=pointer,
            device=_Device(*device),
            ndim=len(shape),
            dtype=_DataType(code=code, bits=dtype.bits, lanes=1),
            shape=extents,
            strides=steps,
        ),
        deleter=_deleted,
    )
    address = ctypes.addressof(managed)
    _alive[address] = managed, owner
    return _new(address, _NAME, _collected)


def _code(dtype: DType) -> int:
    plain = dtype.kind is not Kind.FLOAT or dtype.bits > 8
    if dtype.packed or not plain or dtype.kind not in _CODES:
        raise BufferError(f"DLPack has no name for {dtype}")
    return _BFLOAT if dtype == bf16 else _CODES[dtype.kind]
