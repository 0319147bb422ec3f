# SPDX-License-Identifier: MIT
"""The kernels of one attention: the one that is chosen, and the one that combines its splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cklang.arch import ArchSpec
from cklang.attention_keys import AttentionKey, CombineKey
from cklang.families.attention.plan import AttentionFunctions
from cklang.families.attention.problem import AttentionCase
from cklang.selection.rules import Rejection

if TYPE_CHECKING:
    from cklang.selection.select import Request, Selection

__all__ = ["Combination", "combination", "select_attention"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """The kernel that combines what splits gave; there is one, and nothing to choose."""

    key: CombineKey
    reason: str
    origin: str = "the one that there is"
    candidates: int = 1
    rejections: tuple[Rejection, ...] = ()


def select_attention(
    case: AttentionCase, spec: ArchSpec, request: Request, functions: AttentionFunctions
) -> Selection[AttentionKey, AttentionCase]:
    """Return the kernel for ``case``; its problem is the case with the splits of its keys.

    Raises:
        CkUnsupportedError: K101, rules reject every candidate; K102, there is none.
        CkValueError: K002, the algorithm asked for is none of attention.
    """
    from cklang.selection.select import find

    return find(case, spec, request, functions)


def combination(case: AttentionCase, spec: ArchSpec) -> Combination:
    """Return the kernel that combines what the splits of a case gave."""
    s = case.signature
    return Combination(
        key=CombineKey(
            s.dtype_o, s.lse, spec.name, bool(case.output_function), case.output_function
        ),
        reason=f"it combines {case.problem.splits} splits of the keys",
    )
