# SPDX-License-Identifier: MIT
"""Attention kernels on memory of their own or of others, without a call around: for timing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cklang.attention_keys import AttentionGradKey, ReduceKey
from cklang.build.record import Artifact
from cklang.device.device import Device, Effort
from cklang.errors import error
from cklang.families.attention.host import (
    AttentionGradFace,
    AttentionGradProblem,
    AttentionTensor,
    ReduceFace,
    ReduceProblem,
)
from cklang.families.attention.launch import loaded_attention
from cklang.families.attention.pipelines import parts_of_dq
from cklang.families.attention.problem import PARTS, AttentionCase, AttentionGradCase
from cklang.families.attention_backward.parts import gradient_at, sizes_of, sum_at

__all__ = ["bare_attention", "bare_gradient", "contents_of"]

_GRAD = "grad"

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


@contextmanager
def bare_gradient(
    device: Device,
    artifact: Artifact,
    summing: Artifact,
    case: AttentionGradCase,
    addresses: Mapping[str, int],
) -> Iterator[Callable[[], Effort | None]]:
    """Give a function that launches a kernel of gradients, and the one that adds its parts of dq.

    It returns what emulating the first of the two took. The other launches of the gradients are the
    same whatever kernel gives the parts.

    Args:
        device: Where.
        artifact: The kernel that gives the parts.
        summing: The kernel that adds parts.
        case: What it computes.
        addresses: Of each value of the forward problem on the device.

    Raises:
        CkUnsupportedError: D007, the kernel's own check refuses the problem.
    """
    from cklang.families.stage import Stage, Values, launch_step

    key, forward = artifact.key, case.forward
    if not isinstance(key, AttentionGradKey) or not isinstance(summing.key, ReduceKey):
        raise error("Z002", what=f"{key.label} is taken for a kernel of gradients")
    p, s = forward.problem, forward.signature
    parts = parts_of_dq(key, p.seqlen_k)
    whole = _rows(p.heads, p.seqlen_q, p.seqlen_k)
    between = sizes_of(forward, parts)
    sizes = {name: size for name, size in between.items() if name not in addresses}
    sizes |= {_GRAD: between["o"], "dq": between["d"] * p.hdim_q}
    biases = ("bias", "dbias") if case.bias_grad else ()
    sizes |= dict.fromkeys(biases, p.batch * whole.stride_batch * s.dtype.bytes)
    held = {name: device.allocate(size) for name, size in sizes.items()}
    at = {**addresses, **held}
    for name, size in sizes.items():
        device.clear(at[name], max(size, 1), None)

    def gradient(marks: Mapping[str, int]) -> AttentionGradProblem:
        grad = replace(_rows(p.heads, p.seqlen_q, p.hdim_v), pointer=marks[_GRAD])
        asked = gradient_at(forward, grad, marks)
        if not biases:
            return asked
        bias, dbias = (replace(whole, pointer=marks[name]) for name in biases)
        return replace(asked, forward=replace(asked.forward, bias=bias), grad_bias=dbias)

    def total(marks: Mapping[str, int]) -> ReduceProblem:
        dq = replace(_rows(p.heads, p.seqlen_q, p.hdim_q), pointer=marks["dq"])
        return sum_at(forward, "dq", parts, dq, marks)

    inputs = (*forward.values.values(), *forward.reads)
    own = ("lse", _GRAD, "d", "dq_parts", "dk_parts", "dv_parts", *biases)
    read = tuple(name for name in dict.fromkeys((*inputs, *own)) if name != "o")
    stages = (
        Stage(key=key, face=AttentionGradFace, values=read, question=gradient),
        Stage(key=summing.key, face=ReduceFace, values=("dq_parts", "dq"), question=total),
    )
    values = Values(slots={}, fixed=at)
    launches = [
        launch_step(stage, built, device, values, str(case)).launch
        for stage, built in zip(stages, (artifact, summing), strict=True)
    ]

    def run() -> Effort | None:
        device.activate()
        device.clear(at["dq_parts"], max(sizes["dq_parts"], 1), None)
        main, sums = launches
        main(None)
        before = None
        if device.emulated:
            device.synchronize()
            before = device.effort()
        sums(None)
        return before

    try:
        yield run
        device.synchronize()
    finally:
        for address in held.values():
            device.free(address)


def _rows(heads: int, rows: int, width: int) -> AttentionTensor:
    """Return a packed [batch, heads, rows, width]."""
    return AttentionTensor(
        stride_batch=heads * rows * width, stride_head=rows * width, stride_seq=width
    )


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
