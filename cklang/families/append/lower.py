# SPDX-License-Identifier: MIT
"""Rows written behind those of a cache: a key becomes C++."""

from __future__ import annotations

from cklang.families.append.key import AppendKey
from cklang.families.attention.lower import closed_source, flag
from cklang.fusion.functions import Functions
from cklang.lowering.source import KernelSource


def lower_append(key: AppendKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that writes rows behind those of a cache."""
    s = key.signature
    return closed_source(
        key,
        "attention_append.hip.j2",
        f"ck_attention_append_{s.dtype}",
        type=s.dtype.ck,
        type_cache=s.dtype_cache.ck,
        rotary=s.rotary.value,
        paged=flag(s.paged),
    )
