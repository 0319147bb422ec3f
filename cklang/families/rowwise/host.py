# SPDX-License-Identifier: MIT
"""The host shim of kernels of rows, from Python.

The C side is ``include/cklang/rowwise_host.h``; the struct layouts here mirror it.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from cklang.device.host_shim import HostShim

VERSION = 2
"""CK_ROWWISE_HOST_VERSION."""

MAX_AXES = 5
"""CK_ROWWISE_MAX_AXES: of rows, and of their elements."""

MAX_READS = 16
"""CK_ROWWISE_MAX_READS."""

MAX_OUTPUTS = 8
"""CK_ROWWISE_MAX_OUTPUTS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowwiseOperand:
    """A tensor; strides count elements, along the axes of rows and then of elements."""

    pointer: int = 0
    rows: tuple[int, ...]
    elements: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowwiseRequest:
    """What a host shim is asked."""

    rows: tuple[int, ...]
    elements: tuple[int, ...]
    compute_units: int
    reads: tuple[RowwiseOperand, ...]
    outputs: tuple[RowwiseOperand, ...]
    """Outputs with a row of elements first, then those with one element per row."""


_Axes = ctypes.c_int64 * MAX_AXES


class _Operand(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("row_stride", _Axes), ("stride", _Axes))


class _Problem(ctypes.Structure):
    _fields_ = (
        ("rows", _Axes),
        ("elements", _Axes),
        ("compute_units", ctypes.c_int64),
        ("reads", _Operand * MAX_READS),
        ("outputs", _Operand * MAX_OUTPUTS),
    )


def _to_c(request: RowwiseRequest) -> _Problem:
    problem = _Problem(compute_units=request.compute_units)
    problem.rows = _last(request.rows, 1)
    problem.elements = _last(request.elements, 1)
    for places, operands in ((problem.reads, request.reads), (problem.outputs, request.outputs)):
        for place, operand in zip(places, operands, strict=False):
            place.data = operand.pointer
            place.row_stride = _last(operand.rows, 0)
            place.stride = _last(operand.elements, 0)
    return problem


def _last(numbers: Sequence[int], missing: int) -> ctypes.Array[ctypes.c_int64]:
    """Return the numbers of axes, which are the last ones of the kernel's."""
    return _Axes(*(missing,) * (MAX_AXES - len(numbers)), *numbers)


class RowwiseShim(HostShim[RowwiseRequest]):
    """A loaded ``host.so`` of a kernel of rows."""

    symbol = "ck_rowwise_describe"
    version_symbol = "ck_rowwise_host_version"
    version = VERSION
    to_c = staticmethod(_to_c)
