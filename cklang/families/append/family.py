# SPDX-License-Identifier: MIT
"""The family of rows appended to a KV cache."""

from __future__ import annotations

from typing import Any

from cklang.families.append.key import AppendKey, AppendSignature
from cklang.families.attention.lower import closed_source, flag
from cklang.families.protocol import HelperFamily
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


APPEND: HelperFamily[AppendSignature, Any] = HelperFamily("append", AppendSignature, lower_append)
