# SPDX-License-Identifier: MIT
"""The rules of the pipeline for heads of any size: what it computes, and its tiles."""

import math

from cklang.arch import ArchSpec
from cklang.families.attention.key import AttentionAlgorithm, AttentionSignature, ScoreKind
from cklang.families.attention.long_heads import (
    refuse_dropout,
    refuse_registers,
    refuse_short_heads,
    refuse_slices,
)
from cklang.families.attention.pipelines import PIPELINE_FACTS
from cklang.families.attention.problem import AttentionCase
from cklang.families.attention.rules import RULES
from cklang.families.bounds import among, at_most, equal
from cklang.families.rule import Violation

_rule, _problem = RULES.algorithm, RULES.problem


def _is_long(a: AttentionAlgorithm) -> bool:
    return PIPELINE_FACTS[a.pipeline].any_head


@_rule("attention-long-drops", "long_head drops no weights", reads=("pipeline",))
def _drops(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    return refuse_dropout(bool(s.dropout) and _is_long(a))


_SCORES = (ScoreKind.NONE, ScoreKind.SOFT_CAP, ScoreKind.FUNCTION)


@_rule(
    "attention-long-scores",
    "long_head computes ALiBi and biases as score functions",
    reads=("pipeline",),
)
def _scores(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    legal = [score.value for score in _SCORES]
    return among("the score in long_head", s.score.value, legal) if _is_long(a) else None


@_rule(
    "attention-long-step",
    "long_head has one step along the head in LDS at a time",
    reads=("tile", "pipeline"),
)
def _step(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    what = "the head size of a tile in long_head"
    return equal(what, a.tile[5], a.tile[2]) if _is_long(a) else None


@_rule(
    "attention-long-registers",
    "a lane holds its part of o in registers",
    reads=("tile", "warps", "pipeline"),
)
def _registers(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    elements = a.tile[0] * a.tile[3]
    return refuse_registers("o", elements, a.warps, spec) if _is_long(a) else None


@_rule("attention-long-lds", "a step of V fits LDS", reads=("tile", "pipeline"))
def _lds(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if not _is_long(a):
        return None
    _, _, _, columns, step, _ = a.tile
    # Rows of 8 elements lie with as much between them as keeps banks apart: an eighth.
    staged = columns * step * s.dtype.bytes * 9 // 8
    return at_most("LDS bytes of V in a step", staged, spec.lds_bytes)


@_problem(
    "attention-long-head",
    "long_head is for heads that no tile holds; it reads Q again for each tile of keys",
    reads=("pipeline",),
)
def _head(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    return refuse_short_heads(c.problem.hdim_q, c.problem.hdim_v) if _is_long(a) else None


@_problem("attention-long-slices", "a grid has a limited second axis", reads=("tile", "pipeline"))
def _slices(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    if not _is_long(a):
        return None
    p = c.problem
    tiles = p.batch * p.heads * max(p.splits, 1) * math.ceil(p.seqlen_q / a.tile[0])
    return refuse_slices("v", math.ceil(p.hdim_v / a.tile[3]), tiles)
