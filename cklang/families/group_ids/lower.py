# SPDX-License-Identifier: MIT
"""Ids in the order of their groups: a key becomes C++."""

from cklang.families.closed_source import closed_source, flag
from cklang.families.group_ids.key import GroupIdsKey
from cklang.fusion.functions import Functions
from cklang.lowering.source import KernelSource

_THREADS = 256


def lower_group_ids(key: GroupIdsKey, functions: Functions) -> KernelSource:
    """Return the source of a kernel that puts places of ids into the order of their groups."""
    s = key.signature
    return closed_source(
        key,
        "group_ids.hip.j2",
        "ck_" + "_".join(s.label(None)),
        words=s.words,
        threads=_THREADS,
        ids=s.ids.ck,
        order=flag(s.order),
        ends=flag(s.ends),
    )
