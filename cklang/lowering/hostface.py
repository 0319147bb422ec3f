# SPDX-License-Identifier: MIT
"""The host face of a GEMM kernel from Python: how to launch it for a problem, or why not.

The C side is ``include/cklang/host.h``; the struct layouts here mirror it.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

from cklang.errors import error

__all__ = ["MAX_OPERANDS", "VERSION", "GemmOperand", "GemmProblem", "HostFace", "LaunchShape"]

VERSION = 3
"""CK_GEMM_HOST_VERSION."""

MAX_OPERANDS = 8
"""CK_GEMM_MAX_D."""

_MAX_KERNARG = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmOperand:
    """A D operand: its address and its strides in elements; an axis it does not have counts 0."""

    pointer: int
    stride_m: int = 0
    stride_n: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmProblem:
    """One problem: extents, addresses and leading strides (in elements) of A, B and E."""

    m: int
    n: int
    k: int
    a: int
    b: int
    e: int
    stride_a: int
    stride_b: int
    stride_e: int
    d: tuple[GemmOperand, ...] = ()
    k_batch: int = 1
    workspace: int = 0
    blocks: int = 1
    """Workgroups that the GPU runs at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchShape:
    """How to launch the kernel for one problem."""

    kernarg: bytes
    """The kernel's one argument."""
    grid: tuple[int, int, int]
    """Workgroups."""
    block: tuple[int, int, int]
    """Threads of a workgroup."""
    lds_bytes: int
    workspace_bytes: int
    zeroed_bytes: int
    """How many bytes of the workspace, from the first on, must be 0 before a launch."""


class _Problem(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("m", "n", "k", "k_batch", "blocks")),
        *((name, ctypes.c_void_p) for name in ("a", "b", "e", "workspace")),
        *((name, ctypes.c_int64) for name in ("stride_a", "stride_b", "stride_e")),
        ("d", ctypes.c_void_p * MAX_OPERANDS),
        ("d_stride_m", ctypes.c_int64 * MAX_OPERANDS),
        ("d_stride_n", ctypes.c_int64 * MAX_OPERANDS),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("refusal", ctypes.c_char_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("lds_bytes", ctypes.c_uint32),
        ("kernarg_bytes", ctypes.c_uint32),
        ("workspace_bytes", ctypes.c_uint64),
        ("zeroed_bytes", ctypes.c_uint64),
        ("kernarg", ctypes.c_ubyte * _MAX_KERNARG),
    )


class HostFace:
    """A loaded ``host.so``."""

    def __init__(self, path: Path) -> None:
        """Load the library.

        Raises:
            CkBuildError: B013, it was built for another version of the struct layouts.
        """
        library = ctypes.CDLL(str(path))
        got = library.ck_gemm_host_version()
        if got != VERSION:
            raise error("B013", path=path, got=got, want=VERSION)
        self._describe = library.ck_gemm_describe
        self._describe.restype = None
        self._describe.argtypes = (ctypes.POINTER(_Problem), ctypes.POINTER(_Launch))

    def describe(self, problem: GemmProblem) -> LaunchShape | str:
        """Return how to launch the kernel for ``problem``, or the sentence that refuses it."""
        launch = _Launch()
        self._describe(ctypes.byref(_to_c(problem)), ctypes.byref(launch))
        if launch.refusal is not None:
            return str(launch.refusal.decode())
        return LaunchShape(
            kernarg=bytes(launch.kernarg[: launch.kernarg_bytes]),
            grid=tuple(launch.grid),
            block=tuple(launch.block),
            lds_bytes=launch.lds_bytes,
            workspace_bytes=launch.workspace_bytes,
            zeroed_bytes=launch.zeroed_bytes,
        )


def _to_c(problem: GemmProblem) -> _Problem:
    p = problem
    given = _Problem(
        m=p.m,
        n=p.n,
        k=p.k,
        k_batch=p.k_batch,
        blocks=p.blocks,
        a=p.a,
        b=p.b,
        e=p.e,
        workspace=p.workspace,
        stride_a=p.stride_a,
        stride_b=p.stride_b,
        stride_e=p.stride_e,
    )
    for i, operand in enumerate(p.d):
        given.d[i] = operand.pointer
        given.d_stride_m[i] = operand.stride_m
        given.d_stride_n[i] = operand.stride_n
    return given
