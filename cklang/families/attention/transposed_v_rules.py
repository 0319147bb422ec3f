# SPDX-License-Identifier: MIT
"""The rules of a v whose keys lie side by side in memory: who reads it, and how wide."""

from cklang.arch import ArchSpec
from cklang.families.attention.key import AttentionAlgorithm, AttentionSignature
from cklang.families.attention.pipelines import PIPELINE_FACTS
from cklang.families.attention.problem import AttentionCase
from cklang.families.attention.rules import RULES
from cklang.families.bounds import multiple
from cklang.families.rule import Violation

_rule, _problem = RULES.algorithm, RULES.problem

ELEMENT_BYTES = 2
"""Bytes of f16 and bf16; kernels of other types read v by rows."""


@_rule(
    "attention-transposed-v",
    "a v whose keys are contiguous is read by pipelines that load it through registers, in f16 and "
    "bf16",
    reads=("pipeline",),
)
def _pipeline(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if not s.transposed_v:
        return None
    if s.dtype.bytes != ELEMENT_BYTES:
        what = "the element type of a v whose keys are contiguous"
        return Violation(what=what, value=s.dtype.name, bound="f16 or bf16")
    if PIPELINE_FACTS[a.pipeline].transposed_v:
        return None
    legal = ", ".join(kind.value for kind, facts in PIPELINE_FACTS.items() if facts.transposed_v)
    what = "the pipeline of a v whose keys are contiguous"
    return Violation(what=what, value=a.pipeline.value, bound=f"one of {legal}")


@_rule(
    "attention-transposed-v-lengths",
    "an access along the keys of v must not reach beyond the last one",
    reads=(),
)
def _lengths(a: AttentionAlgorithm, s: AttentionSignature, spec: ArchSpec) -> Violation | None:
    if not s.transposed_v or not (s.packed or s.paged):
        return None
    what = "packed sequences or pages of a v whose keys are contiguous"
    return Violation(what=what, value="true", bound="false")


@_problem(
    "attention-transposed-v-vector",
    "an access moves a fixed number of keys of v",
    reads=("vector",),
)
def _vector(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Violation | None:
    if not c.signature.transposed_v:
        return None
    if "lengths_k" in c.values:
        what = "lengths of the keys of a v whose keys are contiguous"
        return Violation(what=what, value="true", bound="false")
    return multiple("the number of keys of v", c.problem.seqlen_k, a.vector)
