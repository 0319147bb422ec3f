# SPDX-License-Identifier: MIT
"""The memory of an attention without a call around it: small numbers, legal lists, for timing."""

import numpy as np
import numpy.typing as npt

from cklang.families.attention.host import AttentionTensor
from cklang.families.attention.problem import PARTS, AttentionCase

_F32 = 4
_WIDEST = 8
"""Bytes of an element that a function reads, whose type the problem does not say."""
_SMALL = 0x3C
"""A byte that makes a small number in every floating format, so that nothing is infinite."""


def contents_of(case: AttentionCase) -> dict[str, npt.NDArray[np.uint8]]:
    """Return the bytes of each value of a problem: small numbers, whole sequences, the first page.

    Values that functions read are zeros, for they may be indices.
    """
    contents = {value: _numbers(case, name) for name, value in case.values.items()}
    for value, operand in zip(case.reads, case.problem.operands, strict=True):
        pairs = zip(operand.extents, operand.strides, strict=True)
        span = 1 + sum((extent - 1) * abs(stride) for extent, stride in pairs)
        contents.setdefault(value, np.zeros(span * _WIDEST, np.uint8))
    return contents


def _numbers(case: AttentionCase, name: str) -> npt.NDArray[np.uint8]:
    p = case.problem
    if name in ("starts_q", "starts_k"):
        length = p.seqlen_q if name == "starts_q" else p.seqlen_k
        return _bytes(np.linspace(0, length, p.batch + 1).astype(np.int32))
    if name == "lengths_k":
        return _bytes(np.full(p.batch, p.seqlen_k, np.int32))
    if name == "pages":
        longest = -(-p.seqlen_k // max(p.page_size, 1))
        return _bytes(np.zeros(max(p.batch * p.pages_stride, longest, 1), np.int32))
    if name == "page_starts":
        return _bytes(np.zeros(p.batch, np.int32))
    if name in ("seed", "offset", "min_seqlen_q"):
        return _bytes(np.zeros(1, np.int64))
    tensor: AttentionTensor = getattr(p, name)
    return np.full(_span(case, name, tensor), _SMALL, np.uint8)


def _span(case: AttentionCase, name: str, tensor: AttentionTensor) -> int:
    """Return the bytes from the first element of a tensor to the end of its last."""
    p, s = case.problem, case.signature
    if name in PARTS:
        return case.part_bytes[case.values[name]]
    of_keys = name in "kv"
    rows = (p.page_size or p.seqlen_k) if of_keys else p.seqlen_q
    width = {"q": p.hdim_q, "k": p.hdim_q, "lse": 1}.get(name, p.hdim_v)
    if name == "v" and s.transposed_v:
        rows, width = width, rows
    size = {"o": s.dtype_o.bytes, "lse": _F32}.get(name, s.dtype.bytes)
    batches = 1 if of_keys and p.page_size else p.batch
    last = (
        (batches - 1) * tensor.stride_batch
        + ((p.kv_heads if of_keys else p.heads) - 1) * tensor.stride_head
        + max(rows - 1, 0) * tensor.stride_seq
        + width
    )
    return last * size


def _bytes(numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.uint8]:
    return numbers.view(np.uint8)
