# SPDX-License-Identifier: MIT
"""Kernels whose workgroups each have one line of elements: their host shim, from Python.

The C side is ``include/cklang/lines_host.h``; the struct layouts here mirror it.
"""

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cklang.device.host_shim import HostShim
from cklang.families.tensor_layout import TensorLayout, refuse_overlap
from cklang.fusion.plan import Read
from cklang.ir.nodes import Value

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


def optional_operands(
    values: Sequence[Value | None],
) -> tuple[tuple[str, ...], Callable[[Sequence[int]], tuple[int, ...]]]:
    """Return the names of the operands that there are, and what gives the addresses of all.

    It takes the addresses of those that there are; the others are at 0.
    """
    names = {place: value.name for place, value in enumerate(values) if value is not None}

    def addresses(given: Sequence[int]) -> tuple[int, ...]:
        known = dict(zip(names, given, strict=False))
        return tuple(known.get(place, 0) for place in range(len(values)))

    return tuple(names.values()), addresses


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
        steps = tuple(stride[place] for stride in strides)
        if extent == 1:
            continue
        if axes and all(a == b * extent for a, b in zip(axes[-1][1], steps, strict=True)):
            axes[-1] = (axes[-1][0] * extent, steps)
        else:
            axes.append((extent, steps))
    by_tensor = tuple(zip(*(steps for _, steps in axes), strict=True)) or ((),) * len(strides)
    return tuple(extent for extent, _ in axes), by_tensor


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The lines of tensors along one axis."""

    outer: tuple[int, ...]
    """Extents of the axes that count lines, outermost first."""
    length: int
    tensors: tuple[LineTensor, ...]
    """What is read, then what is written."""

    @property
    def count(self) -> int:
        """How many lines there are."""
        return math.prod(self.outer)

    def request(self, addresses: Sequence[int], extent: int = 0, step: int = 0) -> LinesRequest:
        """Return what the host shim is asked, for an address of each tensor."""
        pairs = zip(self.tensors, addresses, strict=False)
        return LinesRequest(
            outer=self.outer,
            inner=(self.length,),
            extent=extent,
            step=step,
            tensors=tuple(replace(tensor, pointer=address) for tensor, address in pairs),
        )


def lines_of(
    shape: Sequence[int],
    axis: int,
    source: Read,
    layouts: Mapping[str, TensorLayout],
    results: Sequence[TensorLayout],
) -> Lines:
    """Return the lines of a tensor that is read and of those that are written.

    Lines run along ``axis``, whose extent in what is written may be another.
    """
    for result in results:
        refuse_overlap(result)
    stored = layouts[source.value.name].strides
    strides = [tuple(0 if own is None else stored[own] for own in source.axes)]
    strides += [result.strides for result in results]
    # Neighbouring lines are those that are nearest in memory.
    rest = [place for place in range(len(shape)) if place != axis]
    rest.sort(key=lambda place: -abs(strides[0][place]))
    outer, steps = merged(
        [shape[place] for place in rest], *([stride[place] for place in rest] for stride in strides)
    )
    tensors = (
        LineTensor(outer=own, inner=(stride[axis],))
        for own, stride in zip(steps, strides, strict=True)
    )
    return Lines(outer=outer, length=shape[axis], tensors=tuple(tensors))
