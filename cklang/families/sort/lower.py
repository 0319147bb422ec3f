# SPDX-License-Identifier: MIT
"""Lines in order: a key becomes C++."""

from cklang.families.closed_source import closed_source, flag
from cklang.families.sort.key import SortKey
from cklang.fusion.functions import Functions
from cklang.lowering.source import KernelSource

_THREADS = (64, 256)
"""Threads of a workgroup: at least, and at most. Each compares two items or more."""


def lower_sort(key: SortKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that puts lines in order."""
    s = key.signature
    least, most = _THREADS
    return closed_source(
        key,
        "sort.hip.j2",
        "ck_" + "_".join(s.label(None)),
        words=s.words,
        threads=min(max(s.size // 2, least), most),
        lines=1,
        longest=0,
        source=s.source.ck,
        size=s.size,
        values=flag(s.values),
        indices=flag(s.indices),
        descending=flag(s.descending),
    )
