# SPDX-License-Identifier: MIT
"""The families of kernels around attention, which have one kernel for each signature."""

from dataclasses import replace
from typing import Any

from cklang.families.attention.functions import attention_fill
from cklang.families.attention.helper_keys import (
    AppendKey,
    AppendSignature,
    CombineKey,
    CombineSignature,
    ReduceKey,
    ReduceSignature,
)
from cklang.families.attention.lower import OUTPUT_HOLE
from cklang.families.closed_source import closed_source, flag
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


def lower_combine(key: CombineKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that combines what splits of the keys gave."""
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


def lower_reduce(key: ReduceKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel around the gradient of attention; it calls no functions."""
    s = key.signature
    name = f"ck_attention_{'dot' if s.dot else 'sum'}_{s.dtype}"
    return closed_source(
        key,
        "attention_reduce.hip.j2",
        name,
        type=s.dtype.ck,
        type_parts=s.parts.ck,
        dot=s.dot,
    )


APPEND: HelperFamily[Any, AppendSignature, Any] = HelperFamily(
    "append", AppendSignature, lower_append
)
COMBINE: HelperFamily[Any, CombineSignature, Any] = HelperFamily(
    "combine", CombineSignature, lower_combine
)
REDUCE: HelperFamily[Any, ReduceSignature, Any] = HelperFamily(
    "reduce", ReduceSignature, lower_reduce
)
