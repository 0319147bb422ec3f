# SPDX-License-Identifier: MIT
"""The host shim of a GEMM kernel from Python: how to launch it for a problem, or why not.

The C side is ``include/cklang/host.h``; the struct layouts here mirror it.
"""

import ctypes
from dataclasses import dataclass

from cklang.device.host_shim import HostShim

VERSION = 5
"""CK_GEMM_HOST_VERSION."""

MAX_OPERANDS = 8
"""CK_GEMM_MAX_OPERANDS."""

MAX_BATCH = 3
"""CK_GEMM_MAX_BATCH."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmOperand:
    """An array: its address and its strides in elements; an axis it does not have counts 0."""

    pointer: int
    outer: int = 0
    """Along the axis that is not contiguous in the layout; of D and E along m."""
    inner: int = 0
    """Along the other axis; only operands of kind strided have other values than 0 and 1."""
    batch: tuple[int, ...] = ()
    """Elements from one matrix to the next along each batch axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmProblem:
    """One problem: extents and operands; A and B have several if functions compute them."""

    m: int
    n: int
    k: int
    a: tuple[GemmOperand, ...]
    b: tuple[GemmOperand, ...]
    e: GemmOperand
    d: tuple[GemmOperand, ...] = ()
    k_batch: int = 1
    batch: tuple[int, ...] = ()
    """Extents of the batch axes."""
    workspace: int = 0
    blocks: int = 1
    """Workgroups that the GPU runs at once."""
    first_tile: int = 0
    """The number of a group's first tile. With ``groups``: how many tiles they have."""
    group_count: int = 0
    groups: int = 0
    """Address of the table of a grouped kernel; 0 to ask for the row of this problem."""


class _Operand(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("outer", "inner")),
        ("batch", ctypes.c_int64 * MAX_BATCH),
    )


_EXTENTS = ("m", "n", "k", "k_batch", "blocks")
_GROUPS = ("first_tile", "group_count")


class _Problem(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in _EXTENTS),
        *((name, _Operand * MAX_OPERANDS) for name in ("a", "b", "d")),
        ("e", _Operand),
        ("workspace", ctypes.c_void_p),
        ("batch", ctypes.c_int64 * MAX_BATCH),
        *((name, ctypes.c_int64) for name in _GROUPS),
        ("groups", ctypes.c_void_p),
    )


def _to_c(problem: GemmProblem) -> _Problem:
    p = problem
    scalars = {name: getattr(p, name) for name in (*_EXTENTS, *_GROUPS, "groups", "workspace")}
    c_problem = _Problem(**scalars, e=_operand_to_c(p.e))
    for places, operands in ((c_problem.a, p.a), (c_problem.b, p.b), (c_problem.d, p.d)):
        for i, operand in enumerate(operands):
            places[i] = _operand_to_c(operand)
    c_problem.batch[:] = [1] * MAX_BATCH
    _fill(c_problem.batch, p.batch)
    return c_problem


def _operand_to_c(operand: GemmOperand) -> _Operand:
    c_operand = _Operand(data=operand.pointer, outer=operand.outer, inner=operand.inner)
    _fill(c_operand.batch, operand.batch)
    return c_operand


def _fill(field: ctypes.Array[ctypes.c_int64], values: tuple[int, ...]) -> None:
    """Write ``values`` into the last elements, so that the innermost axis is always the last."""
    for place, value in enumerate(values, start=MAX_BATCH - len(values)):
        field[place] = value


class GemmShim(HostShim[GemmProblem]):
    """A loaded ``host.so`` of a product."""

    symbol = "ck_gemm_describe"
    version_symbol = "ck_gemm_host_version"
    version = VERSION
    to_c = staticmethod(_to_c)
