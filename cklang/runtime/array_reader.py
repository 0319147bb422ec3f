# SPDX-License-Identifier: MIT
"""C functions that read what a call's key needs of an array, or compare arrays with a known key.

An array's attributes take Python a microsecond; ``array_reader.cpp`` reads NumPy's own struct, and
what torch exports of a tensor for DLPack. It is compiled once a machine, when a call is repeated
for the first time; without a compiler :mod:`cklang.runtime.call_key` reads the attributes.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from cklang.errors import CkBuildError
from cklang.toolchain.built_library import compiled_library
from cklang.toolchain.log import logger
from cklang.toolchain.python_function import python_function, words, words_of_python

ArrayReader = Callable[[object, list[Any], list[int]], bool]
"""Takes a value, the key so far and the addresses so far; False: Python must look at the value."""

ArrayComparer = Callable[[tuple[Any, ...], int, Sequence[object]], list[int] | None]
"""Takes a known key, the place in it where arguments begin, and the values of a call; returns their
addresses, or None if the key does not say, or not only, what they are."""

_SOURCE = Path(__file__).with_suffix(".cpp")
_FLAGS = ("-O2", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra")
_EXCHANGE = b"dlpack_exchange_api"
_EXCHANGE_VERSION = 1
_TENSOR_READ = 5
"""The word of DLPack's exchange table that holds ``dltensor_from_py_object_no_sync``."""

_PYTHON = (
    "PyObject_Type",
    "Py_IncRef",
    "Py_DecRef",
    "PyLong_FromUnsignedLongLong",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyLong_FromLongLong",
    "PyList_Append",
    "PyObject_GetAttr",
    "PyObject_CallNoArgs",
    "PyErr_Clear",
    "PyObject_Size",
    "PySequence_GetItem",
    "PyTuple_GetItem",
    "PyLong_AsLongLong",
    "PyObject_RichCompareBool",
    "PyList_New",
)
"""The functions of ``ck_python``, in its order."""
_NAMES = ("requires_grad", "is_neg", "dtype", "device")
"""The names at the end of ``ck_libraries``, in its order."""


def array_reader(torch: ModuleType | None) -> ArrayReader | None:
    """Return the C function; None if no compiler can make it.

    It reads the tensors of ``torch`` too; if that is None, NumPy's arrays alone.
    """
    library = _library()
    if library is None:
        return None
    python = words(*words_of_python(*_PYTHON), id(True), id(False), id(None))
    classes = words(object.__basicsize__, id(np.ndarray), *_words_of_torch(torch), *map(id, _NAMES))
    library.ck_learn(python, classes)
    reader = _function(library)
    return reader if _agrees(reader) else None


def array_comparer() -> ArrayComparer | None:
    """Return the C function that compares a call with a known key, once there is a reader."""
    library = _library()
    return None if library is None else _comparing_function(library)


def _words_of_torch(torch: ModuleType | None) -> tuple[int | None, ...]:
    """Return the words of ``ck_libraries`` that come from torch; zeros if it cannot export."""
    table = getattr(torch and torch.Tensor, "__dlpack_c_exchange_api__", None)
    if torch is None or table is None:
        return (0,) * 4
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    pointer = pointer_of(table, _EXCHANGE)
    if ctypes.c_uint32.from_address(pointer).value != _EXCHANGE_VERSION:
        return (0,) * 4
    read = (ctypes.c_uint64 * (_TENSOR_READ + 1)).from_address(pointer)[_TENSOR_READ]
    if not read:
        return (0,) * 4
    _kept.append(torch.is_grad_enabled)
    return id(torch.Tensor), id(torch.nn.Parameter), read, id(torch.is_grad_enabled)


@cache
def _library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(str(compiled_library(_SOURCE, _FLAGS)))
    except CkBuildError as problem:
        logger("runtime").info("arrays are read from Python: %s", problem)
        return None


@cache
def _function(library: ctypes.CDLL) -> ArrayReader:
    return python_function(library, "ck_read")


@cache
def _comparing_function(library: ctypes.CDLL) -> ArrayComparer:
    return python_function(library, "ck_compare")


_kept: list[object] = []
"""What C points to for as long as the process lives."""


def _agrees(reader: ArrayReader) -> bool:
    """Whether it reads an array as NumPy's attributes say: its struct is as expected."""
    key: list[Any] = []
    addresses: list[int] = []
    sample = np.empty((3, 4), np.float16)[1:, ::2]
    return (
        reader(sample, key, addresses)
        and key == [sample.dtype, sample.shape, sample.strides, sample.ctypes.data & 7]
        and addresses == [sample.ctypes.data]
    )
