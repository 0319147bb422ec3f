# SPDX-License-Identifier: MIT
"""One attention kernel on memory of its own or of others, without a call around it: for timing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from cklang.lowering.attention_face import AttentionTensor
from cklang.runtime.attention.launch import loaded_attention
from cklang.runtime.attention.problem import PARTS, AttentionCase
from cklang.runtime.device import Device
from cklang.runtime.record import Artifact

__all__ = ["bare_attention", "contents_of"]

_F32 = 4
_WIDEST = 8
"""Bytes of an element that a function reads, whose type the problem does not say."""
_SMALL = 0x3C
"""A byte that makes a small number in every floating format, so that nothing is infinite."""


@contextmanager
def bare_attention(
    device: Device, artifact: Artifact, case: AttentionCase, addresses: Mapping[str, int]
) -> Iterator[Callable[[], None]]:
    """Give a function that launches ``artifact`` on the default stream, any number of times.

    Args:
        device: Where.
        artifact: The kernel.
        case: What it computes.
        addresses: Of each value of the problem on the device.

    Raises:
        CkUnsupportedError: D007, the kernel's own check refuses the problem.
    """
    loaded = loaded_attention(device, artifact)
    shape = loaded.prepare(case)
    launch = device.launch(loaded.function, shape.grid, shape.block, shape.kernarg)
    for value, words in shape.pointers.items():
        for word in words:
            launch.words[word] = addresses[value]

    def run() -> None:
        device.activate()
        launch(None)

    yield run
    device.synchronize()


def contents_of(case: AttentionCase) -> dict[str, npt.NDArray[np.uint8]]:
    """Return the bytes of each value of a problem: small numbers, whole sequences, the first page.

    Values that functions read are zeros, for they may be indices.
    """
    found = {value: _numbers(case, name) for name, value in case.values.items()}
    for value, operand in zip(case.reads, case.problem.operands, strict=True):
        pairs = zip(operand.extents, operand.strides, strict=True)
        span = 1 + sum((extent - 1) * abs(stride) for extent, stride in pairs)
        found.setdefault(value, np.zeros(span * _WIDEST, np.uint8))
    return found


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
