# SPDX-License-Identifier: MIT
"""Which attention kernel serves a problem: the first of its GPU's tilings that no rule rejects.

Tilings stand in the order of their head sizes, so the first is the one that pads least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cklang.arch import ArchSpec
from cklang.attention_keys import AttentionAlgorithm, AttentionKey
from cklang.errors import CkError, error
from cklang.runtime.attention.problem import AttentionCase
from cklang.runtime.attention.rules import AttentionRejection, objections
from cklang.runtime.attention_space import attention_algorithms

__all__ = ["AttentionSelection", "select_attention"]

_REASONS = 8
"""How many different reasons a refusal prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSelection:
    """The kernel chosen for a problem."""

    key: AttentionKey
    reason: str
    origin: str
    candidates: int
    rejections: tuple[AttentionRejection, ...]
    """The first objection to each candidate before it."""


def select_attention(
    case: AttentionCase, spec: ArchSpec, algorithm: AttentionAlgorithm | None = None
) -> AttentionSelection:
    """Return the kernel for ``case``: that of ``algorithm`` if it is given.

    Raises:
        CkUnsupportedError: K101, rules reject every candidate; K102, there is none.
    """
    candidates: Sequence[AttentionAlgorithm] = (algorithm,) if algorithm else _known(case, spec)
    origin = "the algorithm you named" if algorithm else f"the tilings of {spec.name}"
    rejections: list[AttentionRejection] = []
    for place, each in enumerate(candidates):
        found = next(objections(case, each, spec), None)
        if found is None:
            where = f"candidate {place + 1} of {len(candidates)}"
            return AttentionSelection(
                key=AttentionKey(case.signature, each, spec.name),
                reason=f"{where}, the first to which no rule objects",
                origin=origin,
                candidates=len(candidates),
                rejections=tuple(rejections),
            )
        rejections.append(found)
    if not candidates:
        words = f"{case}"
        raise error("K102", signature=words, arch=spec.name)
    raise _refusal(case, spec, rejections, origin if algorithm else "every tiling there is")


def _known(case: AttentionCase, spec: ArchSpec) -> tuple[AttentionAlgorithm, ...]:
    p = case.problem
    return attention_algorithms(spec, case.signature, p.hdim_q, p.hdim_v)


def _refusal(
    case: AttentionCase, spec: ArchSpec, rejections: Sequence[AttentionRejection], what: str
) -> CkError:
    counted = Counter(str(rejection) for rejection in rejections)
    notes = [reason if count == 1 else f"{count} x {reason}" for reason, count in counted.items()]
    return error("K101", notes=notes[:_REASONS], problem=case, arch=spec.name, what=what)
