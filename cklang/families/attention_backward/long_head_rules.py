# SPDX-License-Identifier: MIT
"""The rules of the backward pipeline for heads of any size: what it computes, and its tiles."""

import math

from cklang.arch import ArchSpec
from cklang.families.attention.long_heads import (
    refuse_dropout,
    refuse_registers,
    refuse_short_heads,
    refuse_slices,
)
from cklang.families.attention.pipelines import GRAD_PIPELINE_FACTS
from cklang.families.attention.problem import AttentionGradCase as Case
from cklang.families.attention_backward.key import AttentionGradAlgorithm as Algorithm
from cklang.families.attention_backward.key import AttentionGradSignature as Signature
from cklang.families.attention_backward.rules import RULES
from cklang.families.bounds import equal, multiple
from cklang.families.rule import Violation

_rule, _problem = RULES.algorithm, RULES.problem


def _is_long(a: Algorithm) -> bool:
    return GRAD_PIPELINE_FACTS[a.pipeline].any_head


@_rule("attention-grad-long-drops", "long_head drops no weights", reads=("pipeline",))
def _drops(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    return refuse_dropout(bool(s.forward.dropout) and _is_long(a))


@_rule(
    "attention-grad-long-step",
    "long_head treats q and v alike: their steps, and the columns of a workgroup, which are steps",
    reads=("tile", "pipeline"),
)
def _step(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    if not _is_long(a):
        return None
    _, _, step, _, step_v, _, _, columns, columns_v = a.tile
    return (
        equal("the step of v in long_head", step_v, step)
        or equal("the columns of v in long_head", columns_v, columns)
        or multiple("the columns of a workgroup in long_head", columns, step)
    )


@_rule(
    "attention-grad-long-registers",
    "a lane holds its part of dk and dv in registers",
    reads=("tile", "warps", "pipeline"),
)
def _registers(a: Algorithm, s: Signature, spec: ArchSpec) -> Violation | None:
    _, keys, *_, columns, columns_v = a.tile
    elements = keys * (columns + columns_v)
    return refuse_registers("dk and dv", elements, a.warps[0], spec) if _is_long(a) else None


@_problem(
    "attention-grad-long-head",
    "long_head is for heads that no tile holds; it reads keys again for each tile of queries",
    reads=("pipeline",),
)
def _head(c: Case, a: Algorithm, spec: ArchSpec) -> Violation | None:
    p = c.forward.problem
    return refuse_short_heads(p.hdim_q, p.hdim_v) if _is_long(a) else None


@_problem(
    "attention-grad-long-slices", "a grid has a limited second axis", reads=("tile", "pipeline")
)
def _slices(c: Case, a: Algorithm, spec: ArchSpec) -> Violation | None:
    if not _is_long(a):
        return None
    p = c.forward.problem
    tiles = p.batch * p.heads * math.ceil(p.seqlen_k / a.tile[1])
    slices = math.ceil(max(p.hdim_q, p.hdim_v) / a.tile[7])
    return refuse_slices("a head", slices, tiles)
