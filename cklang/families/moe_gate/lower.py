# SPDX-License-Identifier: MIT
"""Experts of tokens: a key becomes C++."""

from cklang.families.closed_source import closed_source, flag
from cklang.families.moe_gate.key import MoeGateKey
from cklang.fusion.functions import Functions
from cklang.lowering.source import KernelSource

_MOST_THREADS = 256


def lower_moe_gate(key: MoeGateKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that chooses experts."""
    s = key.signature
    return closed_source(
        key,
        "moe_gate.hip.j2",
        f"ck_moe_gate_{s.size}",
        words=s.words,
        threads=min(s.size, _MOST_THREADS),
        logits=s.logits.ck,
        bias="void" if s.bias is None else s.bias.ck,
        size=s.size,
        sigmoid=flag(s.sigmoid),
        grouped=flag(s.grouped),
        renormalised=flag(s.renormalised),
        scale=f"{s.scale!r}f",
    )
