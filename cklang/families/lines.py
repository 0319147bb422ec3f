# SPDX-License-Identifier: MIT
"""Kernels whose workgroups each have one line of elements: their host shim, from Python.

The C side is ``include/cklang/lines_host.h``; the struct layouts here mirror it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from cklang.device.host_shim import HostShim

__all__ = [
    "MAX_AXES",
    "MAX_TENSORS",
    "VERSION",
    "LineTensor",
    "LinesRequest",
    "LinesShim",
    "merged",
]

VERSION = 1
"""CK_LINES_HOST_VERSION."""

MAX_AXES = 4
"""CK_LINES_AXES: of those that count lines, and of those of a line."""

MAX_TENSORS = 4
"""CK_LINES_TENSORS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTensor:
    """A tensor; strides count elements, along the axes that count lines and those of a line."""

    pointer: int = 0
    outer: tuple[int, ...] = ()
    inner: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesRequest:
    """What a host shim is asked."""

    outer: tuple[int, ...]
    """Extents of the axes that count lines, outermost first."""
    inner: tuple[int, ...]
    """Extents of the axes of a line."""
    tensors: tuple[LineTensor, ...]
    extent: int = 0
    """Numbers of the kernel's own."""
    step: int = 0


def merged(
    extents: Sequence[int], *strides: Sequence[int]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return extents and each tensor's strides of axes; those that follow each other are one.

    Example:
        >>> merged((2, 3, 4), (12, 4, 1), (24, 4, 1))
        ((2, 12), ((12, 1), (24, 1)))
    """
    axes: list[tuple[int, tuple[int, ...]]] = []
    for place, extent in enumerate(extents):
        steps = tuple(each[place] for each in strides)
        if extent == 1:
            continue
        if axes and all(a == b * extent for a, b in zip(axes[-1][1], steps, strict=True)):
            axes[-1] = (axes[-1][0] * extent, steps)
        else:
            axes.append((extent, steps))
    each = tuple(zip(*(steps for _, steps in axes), strict=True)) or ((),) * len(strides)
    return tuple(extent for extent, _ in axes), each


_Axes = ctypes.c_int64 * MAX_AXES


class _Tensor(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("outer", _Axes), ("inner", _Axes))


class _Problem(ctypes.Structure):
    _fields_ = (
        ("outer", _Axes),
        ("inner", _Axes),
        ("extent", ctypes.c_int64),
        ("step", ctypes.c_int64),
        ("tensors", _Tensor * MAX_TENSORS),
    )


def _to_c(request: LinesRequest) -> _Problem:
    problem = _Problem(extent=request.extent, step=request.step)
    problem.outer, problem.inner = _last(request.outer, 1), _last(request.inner, 1)
    for place, tensor in zip(problem.tensors, request.tensors, strict=False):
        place.data = tensor.pointer
        place.outer, place.inner = _last(tensor.outer, 0), _last(tensor.inner, 0)
    return problem


def _last(numbers: Sequence[int], missing: int) -> ctypes.Array[ctypes.c_int64]:
    """Return the numbers of axes, which are the last ones of the kernel's."""
    return _Axes(*(missing,) * (MAX_AXES - len(numbers)), *numbers)


class LinesShim(HostShim[LinesRequest]):
    """A loaded ``host.so`` of a kernel of lines."""

    symbol = "ck_lines_describe"
    version_symbol = "ck_lines_host_version"
    version = VERSION
    to_c = staticmethod(_to_c)
