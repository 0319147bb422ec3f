# SPDX-License-Identifier: MIT
"""The family of sums around gradients."""

from __future__ import annotations

from typing import Any

from cklang.families.attention.lower import closed_source
from cklang.families.protocol import HelperFamily
from cklang.families.reduce.key import ReduceKey, ReduceSignature
from cklang.fusion.functions import Functions
from cklang.lowering.source import KernelSource


def lower_reduce(key: ReduceKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel around the gradient of attention; it calls no functions."""
    s = key.signature
    name = f"ck_attention_{'dot' if s.dot else 'sum'}_{s.dtype}"
    return closed_source(
        key, "attention_reduce.hip.j2", name, type=s.dtype.ck, type_parts=s.parts.ck, dot=s.dot
    )


REDUCE: HelperFamily[ReduceSignature, Any] = HelperFamily("reduce", ReduceSignature, lower_reduce)
