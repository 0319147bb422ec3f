# SPDX-License-Identifier: MIT
"""The host face of an attention kernel from Python: how to launch it for a problem, or why not.

The C side is ``include/cklang/attention_host.h``; the struct layouts here mirror it.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields
from pathlib import Path

from cklang.errors import error
from cklang.lowering.hostface import LaunchShape, launch_shape, launch_struct

__all__ = [
    "MAX_OPERANDS",
    "MAX_RANK",
    "VERSION",
    "AttentionFace",
    "AttentionOperand",
    "AttentionProblem",
    "AttentionTensor",
]

VERSION = 1
"""CK_ATTENTION_HOST_VERSION."""

MAX_OPERANDS = 8
"""CK_ATTENTION_MAX_OPERANDS."""

MAX_RANK = 4
"""CK_ATTENTION_MAX_RANK."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionTensor:
    """An address, and strides in elements along batch, head and sequence."""

    pointer: int = 0
    stride_batch: int = 0
    stride_head: int = 0
    stride_seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionOperand:
    """A tensor that the user's functions read, of up to four axes; strides count elements."""

    pointer: int
    extents: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


_NONE = AttentionTensor()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionProblem:
    """One problem; what its kernel does not have may be left out."""

    batch: int
    heads: int
    kv_heads: int
    seqlen_q: int
    """Queries of a sequence; of packed sequences, of the longest one. So for keys."""
    seqlen_k: int
    hdim_q: int
    hdim_v: int
    q: AttentionTensor
    """[batch, heads, seqlen_q, hdim_q], the last axis contiguous; so for k, v and o."""
    k: AttentionTensor
    v: AttentionTensor
    o: AttentionTensor
    lse: AttentionTensor = _NONE
    """[batch, heads, seqlen_q] of f32."""
    bias: AttentionTensor = _NONE
    """[batch, heads, seqlen_q, seqlen_k], the last axis contiguous."""
    random: AttentionTensor = _NONE
    """[batch, heads, seqlen_q, seqlen_k] of bytes, which dropout compared; need not be given."""
    slopes: AttentionTensor = _NONE
    """[batch, heads] of f32."""
    starts_q: int = 0
    """Address of batch + 1 int32: where each packed sequence begins, and where the last ends."""
    starts_k: int = 0
    seed: int = 0
    """Address of one int32, from which dropout's random numbers come; so for ``offset``."""
    offset: int = 0
    scale: float
    """Of the product of query and key."""
    soft_cap: float = 0.0
    scale_p: float = 1.0
    """Of the weights before they are rounded to 8 bits."""
    scale_o: float = 1.0
    """Of the result of 8-bit types."""
    dropout: float = 0.0
    """The probability that a weight is dropped."""
    left: int = -1
    """Query i sees keys from i + shift - left to i + shift + right; -1 for no limit."""
    right: int = -1
    from_bottom_right: bool = False
    """Whether shift is seqlen_k - seqlen_q, not 0."""
    sink: int = 0
    """As many first keys are seen in spite of ``left``."""
    operands: tuple[AttentionOperand, ...] = ()


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("pointer", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("stride_batch", "stride_head", "stride_seq")),
    )


class _Operand(ctypes.Structure):
    _fields_ = (
        ("pointer", ctypes.c_void_p),
        ("extents", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
    )


_EXTENTS = ("batch", "heads", "kv_heads", "seqlen_q", "seqlen_k", "hdim_q", "hdim_v")
_TENSORS = ("q", "k", "v", "o", "lse", "bias", "random", "slopes")
_POINTERS = ("starts_q", "starts_k", "seed", "offset")
_NUMBERS = ("scale", "soft_cap", "scale_p", "scale_o", "dropout")
_WINDOW = ("left", "right", "from_bottom_right", "sink")


class _Problem(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in _EXTENTS),
        *((name, _Tensor) for name in _TENSORS),
        *((name, ctypes.c_void_p) for name in _POINTERS),
        *((name, ctypes.c_double) for name in _NUMBERS),
        *((name, ctypes.c_int64) for name in _WINDOW),
        ("operands", _Operand * MAX_OPERANDS),
    )


class AttentionFace:
    """A loaded ``host.so`` of an attention kernel."""

    def __init__(self, path: Path) -> None:
        """Load the library.

        Raises:
            CkBuildError: B013, it was built for another version of the struct layouts.
        """
        library = ctypes.CDLL(str(path))
        got = library.ck_attention_host_version()
        if got != VERSION:
            raise error("B013", path=path, got=got, want=VERSION)
        self._describe = library.ck_attention_describe
        self._describe.restype = None

    def describe(self, problem: AttentionProblem) -> LaunchShape | str:
        """Return how to launch the kernel for ``problem``, or the sentence that refuses it."""
        launch = launch_struct()
        self._describe(ctypes.byref(_to_c(problem)), ctypes.byref(launch))
        return launch_shape(launch)


def _to_c(problem: AttentionProblem) -> _Problem:
    given = _Problem()
    for name in (*_EXTENTS, *_POINTERS, *_NUMBERS, *_WINDOW):
        setattr(given, name, getattr(problem, name))
    for name in _TENSORS:
        tensor = getattr(problem, name)
        setattr(given, name, _Tensor(**{f.name: getattr(tensor, f.name) for f in fields(tensor)}))
    for place, operand in zip(given.operands, problem.operands, strict=False):
        rank = len(operand.extents)
        place.pointer = operand.pointer
        place.extents[:] = (*operand.extents, *(1,) * (MAX_RANK - rank))
        place.strides[:] = (*operand.strides, *(0,) * (MAX_RANK - rank))
    return given
