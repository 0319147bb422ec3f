# SPDX-License-Identifier: MIT
"""Kernels that transpose: their C++, and their host shim from Python.

The C side of the face is ``include/cklang/transpose_host.h``; the struct layouts here mirror it.
"""

import ctypes
from dataclasses import dataclass

from cklang.device.host_shim import HostShim
from cklang.families.layout_copy.key import LayoutCopyKey
from cklang.fusion.functions import Functions
from cklang.lowering.render import key_json, template
from cklang.lowering.source import KernelSource
from cklang.widths import ACCESS_BYTES, DWORD_BYTES

VERSION = 1
"""CK_TRANSPOSE_HOST_VERSION."""

MAX_BATCH = 4
"""CK_TRANSPOSE_MAX_BATCH."""

LONGEST = {1: 4096, 2: 1024, 4: 1024}
"""Rows or columns of a tile at most, by the bytes of an element."""

_TYPES = {1: "int8_t", 2: "ck_tile::fp16_t", 4: "float"}
"""A type that CK Tile loads and stores, by its bytes; nothing is computed."""

_MOST = 8
"""Elements of a vector."""


def widths(size: int) -> tuple[int, ...]:
    """Return how many elements of ``size`` bytes an access may move, the most first."""
    return tuple(sorted({min(ACCESS_BYTES // size, _MOST), DWORD_BYTES // size, 1}, reverse=True))


def lower_transpose(key: LayoutCopyKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that transposes; it calls no functions."""
    s = key.signature
    kernel = f"ck_transpose_{s.bytes}_{s.source_vector}_{s.target_vector}"
    text = template("transpose.hip.j2").render(
        key_json=key_json(key),
        kernel=kernel,
        type=_TYPES[s.bytes],
        bytes=s.bytes,
        source_vector=s.source_vector,
        target_vector=s.target_vector,
    )
    return KernelSource(stencil=text, fill="", hole="", kernel=kernel)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutCopySide:
    """One side of the copy; strides count elements, those of axes of extent 1 are ignored."""

    pointer: int = 0
    row: int
    column: int
    batch: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutCopyRequest:
    """Matrices to copy: vectors of the source run along columns, those of the target along rows."""

    rows: int
    columns: int
    batch: tuple[int, ...] = ()
    """Extents, the last one innermost."""
    source: LayoutCopySide
    target: LayoutCopySide


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("pointer", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("row", "column")),
        ("batch", ctypes.c_int64 * MAX_BATCH),
    )


class _Problem(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("rows", "columns")),
        ("batch", ctypes.c_int64 * MAX_BATCH),
        *((name, _Tensor) for name in ("source", "target")),
    )


def _to_c(request: LayoutCopyRequest) -> _Problem:
    c_problem = _Problem(rows=request.rows, columns=request.columns)
    missing = MAX_BATCH - len(request.batch)
    c_problem.batch[:] = (*(1,) * missing, *request.batch)
    for name in ("source", "target"):
        side: LayoutCopySide = getattr(request, name)
        place = getattr(c_problem, name)
        place.pointer, place.row, place.column = side.pointer, side.row, side.column
        place.batch[:] = (*(0,) * missing, *side.batch)
    return c_problem


class LayoutCopyShim(HostShim[LayoutCopyRequest]):
    """A loaded ``host.so`` of a kernel that transposes."""

    symbol = "ck_transpose_describe"
    version_symbol = "ck_transpose_host_version"
    version = VERSION
    to_c = staticmethod(_to_c)
