# SPDX-License-Identifier: MIT
"""The host shim of an attention kernel from Python: how to launch it for a problem, or why not.

The C side is ``include/cklang/attention_host.h``; the struct layouts here mirror it.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from cklang.device.host_shim import HostShim
from cklang.widths import I32_MAX

VERSION = 3
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

    @staticmethod
    def of(strides: Sequence[int], axes: Sequence[int | None] = (0, 1, 2)) -> "AttentionTensor":
        """Return a tensor whose axes for batch, head and row are these; None if all share one."""
        batch, head, row = (0 if axis is None else strides[axis] for axis in axes)
        return AttentionTensor(stride_batch=batch, stride_head=head, stride_seq=row)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionOperand:
    """A tensor that the user's functions read, of up to four axes; strides count elements."""

    pointer: int
    extents: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


Problem = TypeVar("Problem")

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
    lengths_k: int = 0
    """Address of batch int32, the keys of each sequence; 0: all have ``seqlen_k``."""
    pages: int = 0
    """Address of int32, the page of every ``page_size`` keys, one sequence after another. The batch
    strides of k and v are those of a page."""
    page_starts: int = 0
    """Address of batch int32: where the pages of a sequence begin there; 0: every
    ``pages_stride``."""
    pages_stride: int = 0
    page_size: int = 0
    partial_o: AttentionTensor = _NONE
    """[batch, heads, seqlen_q, hdim_v] of f32: what each split of the keys gives, and its lse."""
    partial_lse: AttentionTensor = _NONE
    stride_split_o: int = 0
    """Elements from the results of one split to those of the next."""
    stride_split_lse: int = 0
    splits: int = 1
    seed: int = 0
    """Address of one int32, from which dropout's random numbers come; so for ``offset``."""
    offset: int = 0
    min_seqlen_q: int = 0
    """Address of one int32: packed sequences of as many queries or fewer are skipped; 0: none."""
    scale: float
    """The factor of the product of query and key."""
    soft_cap: float = 0.0
    scale_p: float = 1.0
    """The factor of the weights before they are rounded to 8 bits."""
    scale_o: float = 1.0
    """The factor of an 8-bit result."""
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


_PAGES = ("pages_stride", "page_size")


class _Problem(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_int64)
            for name in ("batch", "heads", "kv_heads", "seqlen_q", "seqlen_k", "hdim_q", "hdim_v")
        ),
        *((name, _Tensor) for name in ("q", "k", "v", "o", "lse", "bias", "random", "slopes")),
        *(
            (name, ctypes.c_void_p)
            for name in ("starts_q", "starts_k", "lengths_k", "pages", "page_starts")
        ),
        *((name, ctypes.c_int64) for name in _PAGES),
        *((name, _Tensor) for name in ("partial_o", "partial_lse")),
        *((name, ctypes.c_int64) for name in ("stride_split_o", "stride_split_lse", "splits")),
        *((name, ctypes.c_void_p) for name in ("seed", "offset", "min_seqlen_q")),
        *(
            (name, ctypes.c_double)
            for name in ("scale", "soft_cap", "scale_p", "scale_o", "dropout")
        ),
        *((name, ctypes.c_int64) for name in ("left", "right", "from_bottom_right", "sink")),
        ("operands", _Operand * MAX_OPERANDS),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendProblem:
    """Rows to write behind those of a cache."""

    batch: int
    heads: int
    rows: int
    """New ones of each sequence."""
    width: int
    source: AttentionTensor
    """[batch, heads, rows, width], the last axis contiguous."""
    target: AttentionTensor
    """The same with the rows that the cache holds, or pages of rows."""
    starts: int = 0
    """Address of batch int32, how many rows the cache of each sequence holds; 0: none."""
    pages: int = 0
    """As in :class:`AttentionProblem`."""
    page_starts: int = 0
    pages_stride: int = 0
    page_size: int = 0
    cosine: int = 0
    """Address of a table [position, rotary_width / 2] of the type of the rows; so for ``sine``."""
    sine: int = 0
    rotary_width: int = 0
    """How many elements of a row its position turns."""
    advance: bool = True
    """Whether row i has position start + i, or all rows have position start."""
    behind: bool = True
    """Whether row i goes to row start + i of the target, or to row i."""
    capacity: int = I32_MAX
    """Rows that a sequence has a place for in the target; others are not written."""
    positions: int = I32_MAX
    """Rows of the tables; a position beyond takes the last one."""
    scales: int = 0
    """Address of f32: what each head is divided by; 0: all heads by ``scale``."""
    stride_scale: int = 0
    """From one head's scale to the next; 0: all heads have the first."""
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionGradProblem:
    """The gradients of q, k and v of one problem."""

    forward: AttentionProblem
    """The forward problem, with lse; its o is ignored."""
    grad_o: AttentionTensor
    """[batch, heads, seqlen_q, hdim_v]."""
    d: AttentionTensor
    """[batch, heads, seqlen_q] of f32: o times its gradient summed along the head, times the
    probability that dropout keeps a weight."""
    grad_q: AttentionTensor
    """[batch, heads, seqlen_q, hdim_q] of f32; 0 before the launch."""
    grad_k: AttentionTensor
    """[batch, heads, seqlen_k, hdim_q]: with as many heads as q; so for v."""
    grad_v: AttentionTensor
    grad_bias: AttentionTensor = _NONE
    """[batch, heads, seqlen_q, seqlen_k]; elements of tiles that no query sees are not written."""
    stride_split_q: int = 0
    """For deterministic kernels: elements between the dq of neighbouring tiles of keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceProblem:
    """Sums along rows or of parts; see :class:`.helper_keys.ReduceSignature`."""

    batch: int
    heads: int
    rows: int
    width: int
    a: AttentionTensor
    b: AttentionTensor = _NONE
    result: AttentionTensor
    factor: float = 1.0
    count: int = 1
    """Parts of ``a``."""
    stride_part: int = 0
    """Elements from one part to the next."""


class _Append(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("batch", "heads", "rows", "width", "rotary_width")),
        *((name, _Tensor) for name in ("source", "target")),
        *((name, ctypes.c_void_p) for name in ("starts", "pages", "page_starts")),
        *((name, ctypes.c_int64) for name in _PAGES),
        *((name, ctypes.c_void_p) for name in ("cosine", "sine")),
        *((name, ctypes.c_int64) for name in ("advance", "behind", "capacity", "positions")),
        ("scales", ctypes.c_void_p),
        ("stride_scale", ctypes.c_int64),
        ("scale", ctypes.c_double),
    )


class _Grad(ctypes.Structure):
    _fields_ = (
        ("forward", _Problem),
        *((name, _Tensor) for name in ("grad_o", "d", "grad_q", "grad_k", "grad_v", "grad_bias")),
        ("stride_split_q", ctypes.c_int64),
    )


class _Reduce(ctypes.Structure):
    _fields_ = (
        *((name, _Tensor) for name in ("a", "b", "result")),
        *((name, ctypes.c_int64) for name in ("stride_part", "batch", "heads", "rows", "width")),
        ("count", ctypes.c_int64),
        ("factor", ctypes.c_double),
    )


_STRUCTS: dict[type, type[ctypes.Structure]] = {
    AttentionTensor: _Tensor,
    AttentionProblem: _Problem,
    AppendProblem: _Append,
    AttentionGradProblem: _Grad,
    ReduceProblem: _Reduce,
}


def _to_c(record: Any) -> ctypes.Structure:
    """Return the C struct of a record, whose fields have the same names."""
    struct = _STRUCTS[type(record)]()
    for f in fields(record):
        value = getattr(record, f.name)
        if f.name == "operands":
            _fill(struct.operands, value)
        else:
            setattr(struct, f.name, _to_c(value) if type(value) in _STRUCTS else value)
    return struct


def _fill(places: ctypes.Array[_Operand], operands: Sequence[AttentionOperand]) -> None:
    for place, operand in zip(places, operands, strict=False):
        rank = len(operand.extents)
        place.pointer = operand.pointer
        place.extents[:] = (*operand.extents, *(1,) * (MAX_RANK - rank))
        place.strides[:] = (*operand.strides, *(0,) * (MAX_RANK - rank))


class _Shim(HostShim[Problem]):
    """What the shims here have in common: one version."""

    version_symbol = "ck_attention_host_version"
    version = VERSION
    to_c = staticmethod(_to_c)


class AttentionShim(_Shim[AttentionProblem]):
    """A loaded ``host.so`` of an attention kernel, or of one that combines splits."""

    symbol = "ck_attention_describe"


class AttentionGradShim(_Shim[AttentionGradProblem]):
    """A loaded ``host.so`` of a kernel that gives the gradients of q, k and v."""

    symbol = "ck_attention_grad_describe"


class ReduceShim(_Shim[ReduceProblem]):
    """A loaded ``host.so`` of a kernel around the gradient of attention."""

    symbol = "ck_reduce_describe"


class AppendShim(_Shim[AppendProblem]):
    """A loaded ``host.so`` of a kernel that writes rows behind those of a cache."""

    symbol = "ck_append_describe"
