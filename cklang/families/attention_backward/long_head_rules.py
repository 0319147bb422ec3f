# SPDX-License-Identifier: MIT
"""The rules of the backward pipeline for heads of any size: what it computes, and its tiles."""

from __future__ import annotations

import math

from cklang.arch import ArchSpec
from cklang.families.attention.long_head_rules import MOST_REGISTERS, MOST_SLICES
from cklang.families.attention.pipelines import GRAD_PIPELINE_FACTS, MOST_HEAD
from cklang.families.attention.problem import AttentionGradCase
from cklang.families.attention_backward.key import AttentionGradAlgorithm, AttentionGradSignature
from cklang.families.attention_backward.rules import RULES
from cklang.families.bounds import at_most, multiple
from cklang.families.rule import Violation
from cklang.widths import I32_MAX

__all__: list[str] = []

_rule, _problem = RULES.algorithm, RULES.problem


def _is_long(a: AttentionGradAlgorithm) -> bool:
    return GRAD_PIPELINE_FACTS[a.pipeline].any_head


@_rule("attention-grad-long-drops", "long_head drops no weights", reads=("pipeline",))
def _drops(
    a: AttentionGradAlgorithm, s: AttentionGradSignature, spec: ArchSpec
) -> Violation | None:
    if not (s.forward.dropout and _is_long(a)):
        return None
    return Violation(what="dropout in long_head", value="true", bound="false")


@_rule(
    "attention-grad-long-step",
    "long_head treats q and v alike: their steps, and the columns of a workgroup, which are steps",
    reads=("tile", "pipeline"),
)
def _step(a: AttentionGradAlgorithm, s: AttentionGradSignature, spec: ArchSpec) -> Violation | None:
    if not _is_long(a):
        return None
    _, _, step, _, step_v, _, _, columns, columns_v = a.tile
    for what, of_v, of_q in (("the step", step_v, step), ("the columns", columns_v, columns)):
        if of_v != of_q:
            return Violation(what=f"{what} of v in long_head", value=str(of_v), bound=str(of_q))
    return multiple("the columns of a workgroup in long_head", columns, step)


@_rule(
    "attention-grad-long-registers",
    "a lane holds its part of dk and dv in registers",
    reads=("tile", "warps", "pipeline"),
)
def _registers(
    a: AttentionGradAlgorithm, s: AttentionGradSignature, spec: ArchSpec
) -> Violation | None:
    if not _is_long(a):
        return None
    _, keys, *_, columns, columns_v = a.tile
    lanes = math.prod(a.warps[0]) * spec.wave_size
    registers = math.ceil(keys * (columns + columns_v) / lanes)
    return at_most("the registers of dk and dv in long_head", registers, MOST_REGISTERS)


@_problem(
    "attention-grad-long-head",
    "long_head is for heads that no tile holds; it reads keys again for each tile of queries",
    reads=("pipeline",),
)
def _head(c: AttentionGradCase, a: AttentionGradAlgorithm, spec: ArchSpec) -> Violation | None:
    longest = max(c.forward.problem.hdim_q, c.forward.problem.hdim_v)
    if not _is_long(a) or longest > MOST_HEAD:
        return None
    what = "the longer of the head sizes"
    return Violation(what=what, value=str(longest), bound=f"above {MOST_HEAD}")


@_problem(
    "attention-grad-long-slices",
    "a grid has a limited second axis",
    reads=("tile", "pipeline"),
)
def _slices(c: AttentionGradCase, a: AttentionGradAlgorithm, spec: ArchSpec) -> Violation | None:
    if not _is_long(a):
        return None
    p = c.forward.problem
    tiles = p.batch * p.heads * math.ceil(p.seqlen_k / a.tile[1])
    slices = math.ceil(max(p.hdim_q, p.hdim_v) / a.tile[7])
    violation = at_most("workgroups that share the columns of a head", slices, MOST_SLICES)
    return violation or at_most("the number of workgroups", slices * tiles, I32_MAX)
