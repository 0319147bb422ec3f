# SPDX-License-Identifier: MIT
"""Reductions of rows: a kernel key becomes C++ with what follows the result open."""

from __future__ import annotations

from cklang.families.attention.functions import attention_fill
from cklang.families.attention.lower import OUTPUT_HOLE, flag
from cklang.families.rowwise.key import Reduction, RowwiseKey
from cklang.fusion.functions import Functions
from cklang.lowering.render import key_json, template
from cklang.lowering.source import KernelSource

__all__ = ["lower_rowwise"]

_REDUCTIONS = {Reduction.SUM: "RowSum", Reduction.MAX: "RowMax"}
"""The classes of ``include/cklang/rowwise.hpp``."""


def lower_rowwise(key: RowwiseKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that reduces rows; its one function is ``output``."""
    s, a = key.signature, key.algorithm
    kernel = f"ck_row_{s.reduction.value}_{s.dtype}_{s.dtype_o}_{a.threads}x{a.vector}"
    text = template("rowwise.hip.j2").render(
        key_json=key_json(key),
        kernel=kernel,
        reduction=_REDUCTIONS[s.reduction],
        type=s.dtype.ck,
        type_o=s.dtype_o.ck,
        bytes=s.dtype.bytes,
        threads=a.threads,
        vector=a.vector,
        output=flag(s.output),
    )
    return KernelSource(
        stencil=text,
        fill=attention_fill(functions),
        hole=OUTPUT_HOLE if s.output else "",
        kernel=kernel,
        halves=False,
        host_headers=False,
    )
