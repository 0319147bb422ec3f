# SPDX-License-Identifier: MIT
"""The family of sums over splits of the keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cklang.families.attention.functions import attention_fill
from cklang.families.attention.lower import OUTPUT_HOLE, closed_source, flag
from cklang.families.combine.key import CombineKey, CombineSignature
from cklang.families.protocol import HelperFamily
from cklang.fusion.functions import Functions
from cklang.lowering.source import KernelSource


def lower_combine(key: CombineKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that combines what splits of the keys gave.

    Args:
        key: Its identity.
        functions: ``output``, what is stored of o, if ``key`` says that a function makes it.
    """
    s = key.signature
    source = closed_source(
        key,
        "attention_combine.hip.j2",
        f"ck_attention_combine_{s.dtype_o}",
        type_o=s.dtype_o.ck,
        bytes_o=s.dtype_o.bytes,
        lse=flag(s.lse),
        output=flag(s.output),
    )
    hole = OUTPUT_HOLE if s.output else ""
    return replace(source, fill=attention_fill(functions), hole=hole)


COMBINE: HelperFamily[CombineSignature, Any] = HelperFamily(
    "combine", CombineSignature, lower_combine
)
