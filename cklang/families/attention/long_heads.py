# SPDX-License-Identifier: MIT
"""What the pipelines for heads of any size check alike, forward and backward.

Their rules are in ``long_head_rules.py`` of this family and of the one of gradients.
"""

import math
from collections.abc import Sequence

from cklang.arch import ArchSpec
from cklang.families.attention.pipelines import MOST_HEAD
from cklang.families.bounds import at_most
from cklang.families.rule import Violation
from cklang.widths import I32_MAX

_MOST_REGISTERS = 128
"""Registers of a lane that sums such as o may take: half of the 256 that an instruction addresses;
scores, weights and the tiles on their way to LDS take the others."""

_MOST_SLICES = 65535
"""Workgroups along the second axis of a grid."""


def refuse_dropout(drops: bool) -> Violation | None:
    """Return the violation of a kernel that drops weights."""
    if not drops:
        return None
    return Violation(what="dropout in long_head", value="true", bound="false")


def refuse_registers(
    what: str, elements: int, warps: Sequence[int], spec: ArchSpec
) -> Violation | None:
    """Return the violation of sums of so many elements that do not fit the registers of a lane."""
    registers = math.ceil(elements / (math.prod(warps) * spec.wave_size))
    return at_most(f"the registers of {what} in long_head", registers, _MOST_REGISTERS)


def refuse_short_heads(hdim_q: int, hdim_v: int) -> Violation | None:
    """Return the violation of heads that a tile holds."""
    longest = max(hdim_q, hdim_v)
    if longest > MOST_HEAD:
        return None
    what = "the longer of the head sizes"
    return Violation(what=what, value=str(longest), bound=f"above {MOST_HEAD}")


def refuse_slices(columns_of: str, slices: int, tiles: int) -> Violation | None:
    """Return the violation of a grid of so many slices of columns, each with so many tiles."""
    what = f"workgroups that share the columns of {columns_of}"
    violation = at_most(what, slices, _MOST_SLICES)
    return violation or at_most("the number of workgroups", slices * tiles, I32_MAX)
