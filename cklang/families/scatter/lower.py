# SPDX-License-Identifier: MIT
"""Rows written or added at indices: a key becomes C++."""

from cklang.arch import arch
from cklang.families.closed_source import closed_source, flag
from cklang.families.scatter.key import Scatter, ScatterKey
from cklang.fusion.functions import Functions
from cklang.lowering.source import KernelSource

_THREADS = 256
"""``scatter_threads`` of ``include/cklang/scatter.hpp``."""

_PART = 4 * _THREADS
"""``scatter_part``."""


def lower_scatter(key: ScatterKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that writes or adds rows at indices."""
    s = key.signature
    links = s.how is Scatter.LINK
    return closed_source(
        key,
        "scatter.hip.j2",
        "ck_" + "_".join(s.label(None)),
        words=s.words,
        threads=_THREADS,
        lines=_THREADS // arch(key.arch).wave_size if links else 1,
        part=0 if links else _PART,
        result=s.result.ck,
        rows=s.rows.ck,
        index="int64_t" if s.index.name == "i64" else "int32_t",
        how=s.how.value,
        linked=flag(s.linked),
    )
