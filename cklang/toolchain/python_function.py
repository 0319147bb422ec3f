# SPDX-License-Identifier: MIT
"""C functions of cklang's own libraries as functions of Python, without its headers.

A call through ctypes takes a microsecond, a call of a built-in function a tenth of that. The
functions of CPython that such a library needs, all of the stable ABI, are given to it as pointers.
"""

import ctypes
from collections.abc import Callable
from typing import Any

_FASTCALL = 0x80
"""METH_FASTCALL: arguments come as a C array and its length."""


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_methods: list[_Method] = []
"""What the functions made here point to for as long as the process lives."""


def python_function(library: ctypes.CDLL, name: str) -> Callable[..., Any]:
    """Return a C function ``PyObject* name(PyObject*, PyObject* const* args, Py_ssize_t count)``.

    The function holds the interpreter's lock, must check what it is given, and returns a new
    reference, or null with an error set.
    """
    function = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    method = _Method(name=name.encode(), function=function, flags=_FASTCALL)
    _methods.append(method)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    result: Callable[..., Any] = new(ctypes.byref(method), None, None)
    return result


def words_of_python(*names: str) -> tuple[int, ...]:
    """Return the addresses of functions of CPython's C interface."""
    return tuple(
        ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in names
    )


def words(*values: int | None) -> Any:
    """Return 64-bit words, 0 for None, that C takes as a struct of pointers and integers.

    Example:
        >>> list(words(7, None))
        [7, 0]
    """
    return (ctypes.c_uint64 * len(values))(*(value or 0 for value in values))
