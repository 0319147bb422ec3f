# SPDX-License-Identifier: MIT
"""The host shim of kernels that reduce rows, from Python.

The C side is ``include/cklang/rowwise_host.h``; the struct layouts here mirror it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from cklang.device.host_shim import HostShim

__all__ = ["MAX_AXES", "MAX_OPERANDS", "VERSION", "RowwiseOperand", "RowwiseRequest", "RowwiseShim"]

VERSION = 1
"""CK_ROWWISE_HOST_VERSION."""

MAX_AXES = 4
"""CK_ROWWISE_MAX_AXES."""

MAX_OPERANDS = 8
"""CK_ROWWISE_MAX_OPERANDS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowwiseOperand:
    """A tensor that the function reads; strides count elements."""

    pointer: int = 0
    extents: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowwiseRequest:
    """What a host shim is asked; strides count elements."""

    rows: tuple[int, ...]
    """The extents of the result."""
    length: int
    x: int
    x_strides: tuple[int, ...]
    x_step: int
    y: int
    y_strides: tuple[int, ...]
    operands: tuple[RowwiseOperand, ...]


_Axes = ctypes.c_int64 * MAX_AXES


class _Operand(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("extent", _Axes), ("stride", _Axes))


class _Problem(ctypes.Structure):
    _fields_ = (
        ("rows", _Axes),
        ("length", ctypes.c_int64),
        ("x", ctypes.c_void_p),
        ("x_stride", _Axes),
        ("x_step", ctypes.c_int64),
        ("y", ctypes.c_void_p),
        ("y_stride", _Axes),
        ("operands", _Operand * MAX_OPERANDS),
    )


def _to_c(request: RowwiseRequest) -> _Problem:
    problem = _Problem(length=request.length, x=request.x, x_step=request.x_step, y=request.y)
    problem.rows = _before(request.rows, 1)
    problem.x_stride = _before(request.x_strides, 0)
    problem.y_stride = _before(request.y_strides, 0)
    for place, operand in zip(problem.operands, request.operands, strict=False):
        missing = MAX_AXES - len(operand.extents)
        place.data = operand.pointer
        place.extent[:] = (*operand.extents, *(1,) * missing)
        place.stride[:] = (*operand.strides, *(0,) * missing)
    return problem


def _before(numbers: Sequence[int], missing: int) -> ctypes.Array[ctypes.c_int64]:
    """Return the numbers of a result's axes, which are the last ones of the kernel's."""
    return _Axes(*(missing,) * (MAX_AXES - len(numbers)), *numbers)


class RowwiseShim(HostShim[RowwiseRequest]):
    """A loaded ``host.so`` of a kernel that reduces rows."""

    symbol = "ck_rowwise_describe"
    version_symbol = "ck_rowwise_host_version"
    version = VERSION
    to_c = staticmethod(_to_c)
