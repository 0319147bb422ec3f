# SPDX-License-Identifier: MIT
"""Which attention kernel serves a problem: the first of its GPU's tilings that no rule rejects.

Tilings stand in the order of their head sizes, so the first is the one that pads least.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cklang.arch import ArchSpec
from cklang.attention_keys import AttentionAlgorithm, AttentionKey, CombineKey
from cklang.errors import CkError, error
from cklang.runtime.attention.problem import AttentionCase
from cklang.runtime.attention.rules import AttentionRejection, objections
from cklang.runtime.attention.space import attention_algorithms

__all__ = ["AttentionSelection", "combination", "select_attention", "splits_of"]

_KEYS_OF_A_SPLIT = 512
"""Keys that are worth a workgroup of their own, which reads Q again and leaves a part."""

_MOST_SPLITS = 32

_REASONS = 8
"""How many different reasons a refusal prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSelection:
    """The kernel chosen for a problem."""

    key: AttentionKey | CombineKey
    reason: str
    origin: str
    candidates: int
    rejections: tuple[AttentionRejection, ...]
    """The first objection to each candidate before it."""


def select_attention(
    case: AttentionCase,
    spec: ArchSpec,
    algorithm: AttentionAlgorithm | None = None,
    splits: int | None = None,
) -> tuple[AttentionCase, AttentionSelection]:
    """Return the kernel for ``case``, and the case with the splits of its keys.

    Args:
        case: What is asked.
        spec: The GPU.
        algorithm: That one and no other.
        splits: Among how many workgroups the keys of a tile of queries are shared; None: see
            :func:`splits_of`.

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
            count = splits_of(case, spec, each, splits)
            case = case.split(count) if count > 1 else case
            return case, AttentionSelection(
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


def splits_of(
    case: AttentionCase, spec: ArchSpec, algorithm: AttentionAlgorithm, asked: int | None
) -> int:
    """Return among how many workgroups the keys of each tile of queries are shared.

    As many as ``asked``, but none without keys. If nobody asked, so many that the GPU is busy
    where batch, heads and queries alone leave half of it idle and each part keeps many keys.
    """
    p = case.problem
    most = max(math.ceil(p.seqlen_k / algorithm.tile[1]), 1)
    if asked is not None:
        return min(asked, most)
    if case.signature.packed or case.signature.dropout:
        return 1
    tiles = p.batch * p.heads * math.ceil(p.seqlen_q / algorithm.tile[0])
    return max(min(spec.compute_units // tiles, p.seqlen_k // _KEYS_OF_A_SPLIT, _MOST_SPLITS), 1)


def combination(case: AttentionCase, spec: ArchSpec) -> AttentionSelection:
    """Return the kernel that combines what the splits of a case gave; there is one."""
    s = case.signature
    return AttentionSelection(
        key=CombineKey(
            s.dtype_o, s.lse, spec.name, bool(case.output_function), case.output_function
        ),
        reason=f"it combines {case.problem.splits} splits of the keys",
        origin="the one that there is",
        candidates=1,
        rejections=(),
    )


def _known(case: AttentionCase, spec: ArchSpec) -> tuple[AttentionAlgorithm, ...]:
    p = case.problem
    return attention_algorithms(spec, case.signature, p.hdim_q, p.hdim_v)


def _refusal(
    case: AttentionCase, spec: ArchSpec, rejections: Sequence[AttentionRejection], what: str
) -> CkError:
    counted = Counter(str(rejection) for rejection in rejections)
    notes = [reason if count == 1 else f"{count} x {reason}" for reason, count in counted.items()]
    return error("K101", notes=notes[:_REASONS], problem=case, arch=spec.name, what=what)
