# SPDX-License-Identifier: MIT
"""An attention as what its host shim is asked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cklang.families.attention.host import AttentionProblem
from cklang.families.attention.problem import TENSORS, AttentionCase

_SCALARS = (
    *("seed", "offset", "min_seqlen_q", "starts_q", "starts_k", "lengths_k", "pages"),
    "page_starts",
)


def values_of(case: AttentionCase) -> tuple[str, ...]:
    """Return the values whose addresses a kernel takes, each once."""
    return tuple(dict.fromkeys([*case.values.values(), *case.reads]))


def request_of(case: AttentionCase, at: Mapping[str, int]) -> AttentionProblem:
    """Return what the host shim is asked of a problem, for the addresses of its values."""
    changed: dict[str, Any] = {
        name: at[value]
        if name in _SCALARS
        else replace(getattr(case.problem, name), pointer=at[value])
        for name, value in case.values.items()
        if name in (*TENSORS, *_SCALARS)
    }
    operands = zip(case.problem.operands, case.reads, strict=True)
    changed["operands"] = tuple(replace(operand, pointer=at[value]) for operand, value in operands)
    return replace(case.problem, **changed)
