# SPDX-License-Identifier: MIT
"""Cumulative sums: a key becomes C++."""

from cklang.arch import arch
from cklang.families.closed_source import closed_source
from cklang.families.scan.key import ScanKey
from cklang.fusion.functions import Functions
from cklang.lowering.source import KernelSource

_THREADS = 256
"""``scan_threads`` of ``include/cklang/scan.hpp``."""


def lower_scan(key: ScanKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel of cumulative sums or products."""
    s = key.signature
    span = {"wave": arch(key.arch).wave_size, "block": _THREADS, "lane": 1}[s.who.worker]
    return closed_source(
        key,
        "scan.hip.j2",
        "ck_" + "_".join(s.label(None)),
        words=s.words,
        threads=_THREADS,
        lines=_THREADS // span,
        longest=0,
        result=s.result.ck,
        source=s.source.ck,
        who=s.who.worker,
        multiplies=s.who.multiplies,
    )
