# SPDX-License-Identifier: MIT
"""What kernels of gradients are asked, for addresses: they leave parts, and others add those."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cklang.families.attention.host import (
    AttentionGradProblem,
    AttentionOperand,
    AttentionProblem,
    AttentionTensor,
    ReduceProblem,
)
from cklang.families.attention.problem import AttentionCase
from cklang.types import f32

_F32 = f32.bytes


def rows_of(batch: int, head: int, row: int) -> AttentionTensor:
    """Return a tensor with these strides."""
    return AttentionTensor(stride_batch=batch, stride_head=head, stride_seq=row)


def forward_at(case: AttentionCase, at: Mapping[str, int]) -> AttentionProblem:
    """Return the forward problem with addresses; o is packed, in memory of the call's own."""
    p, addressed = case.problem, dict[str, Any]()
    for name, value in case.values.items():
        current, address = getattr(p, name), at.get(value, 0)
        addressed[name] = address if isinstance(current, int) else replace(current, pointer=address)
    operands: list[AttentionOperand] = [
        replace(operand, pointer=at[value])
        for operand, value in zip(p.operands, case.reads, strict=True)
    ]
    o = rows_of(p.heads * p.seqlen_q * p.hdim_v, p.seqlen_q * p.hdim_v, p.hdim_v)
    addressed["o"] = replace(o, pointer=at.get("o", 0))
    return replace(p, **addressed, operands=tuple(operands))


def gradient_at(
    case: AttentionCase, grad: AttentionTensor, at: Mapping[str, int]
) -> AttentionGradProblem:
    """Return what the kernel is asked that gives the parts, for addresses; without a bias.

    ``at`` has the address of each value, of lse, d and the parts too.
    """
    p, batch = case.problem, batch_of(case)
    return AttentionGradProblem(
        forward=forward_at(case, at),
        grad_o=grad,
        d=replace(rows_of(p.heads * p.seqlen_q, p.seqlen_q, 1), pointer=at["d"]),
        grad_q=replace(_part(p, "dq"), pointer=at["dq_parts"]),
        grad_k=replace(_part(p, "dk"), pointer=at["dk_parts"]),
        grad_v=replace(_part(p, "dv"), pointer=at["dv_parts"]),
        stride_split_q=batch * p.heads * p.seqlen_q * p.hdim_q,
    )


def sum_at(
    case: AttentionCase, name: str, parts: int, result: AttentionTensor, at: Mapping[str, int]
) -> ReduceProblem:
    """Return what the kernel is asked that adds up parts."""
    p, part = case.problem, _part(case.problem, name)
    shared = 1 if name == "dq" else p.heads // p.kv_heads
    rows, width = part.stride_head // max(part.stride_seq, 1), part.stride_seq
    apart = batch_of(case) * p.heads * rows * width if name == "dq" else part.stride_head
    return ReduceProblem(
        batch=batch_of(case),
        heads=p.heads // shared,
        rows=rows,
        width=width,
        a=replace(part, pointer=at[f"{name}_parts"], stride_head=shared * part.stride_head),
        result=result,
        count=parts,
        stride_part=apart,
    )


def sizes_of(case: AttentionCase, parts: int) -> dict[str, int]:
    """Return the bytes of what stands between the stages, ``parts`` of dq among it."""
    p, heads = case.problem, batch_of(case) * case.problem.heads
    return {
        "o": heads * p.seqlen_q * p.hdim_v * case.signature.dtype_o.bytes,
        "lse": heads * p.seqlen_q * _F32,
        "d": heads * p.seqlen_q * _F32,
        "dq_parts": parts * heads * p.seqlen_q * p.hdim_q * _F32,
        "dk_parts": heads * p.seqlen_k * p.hdim_q * _F32,
        "dv_parts": heads * p.seqlen_k * p.hdim_v * _F32,
    }


def batch_of(case: AttentionCase) -> int:
    """Return how many batches stages have that do not know where packed sequences begin."""
    return 1 if case.signature.packed else case.problem.batch


def _part(p: AttentionProblem, name: str) -> AttentionTensor:
    length = p.seqlen_q if name == "dq" else p.seqlen_k
    width = p.hdim_v if name == "dv" else p.hdim_q
    return rows_of(p.heads * length * width, length * width, width)
