# SPDX-License-Identifier: MIT
"""The family of the gradients of attention."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from cklang.arch import ArchSpec
from cklang.device.resources import Resources
from cklang.families.attention.family import problem_facts
from cklang.families.attention.helper_keys import reduce_key
from cklang.families.attention.host import (
    AttentionGradProblem,
    AttentionGradShim,
    AttentionTensor,
    ReduceProblem,
    ReduceShim,
)
from cklang.families.attention.pipelines import parts_of_dq
from cklang.families.attention.problem import AttentionGradCase
from cklang.families.attention.profiles import profile_algorithms
from cklang.families.attention.ranking import AttentionCost
from cklang.families.attention.space import narrowed
from cklang.families.attention.standalone import contents_of
from cklang.families.attention.stored_reads import with_stored_reads
from cklang.families.attention_backward import long_head_rules
from cklang.families.attention_backward.cost import attention_grad_estimate
from cklang.families.attention_backward.fuse import MAKERS, FusedAttentionGrad
from cklang.families.attention_backward.key import (
    AttentionGradAlgorithm,
    AttentionGradKey,
    AttentionGradSignature,
)
from cklang.families.attention_backward.lower import lower_grad
from cklang.families.attention_backward.parts import gradient_at, rows_of, sizes_of, sum_at
from cklang.families.attention_backward.program import gradient_problem, launches_of
from cklang.families.attention_backward.rules import RULES
from cklang.families.attention_backward.space import GRID
from cklang.families.protocol import Family, Operands
from cklang.families.records import AxisOrders, Supply, Tuning
from cklang.families.rule import RuleSet
from cklang.families.stage import Stage
from cklang.fusion.functions import Functions
from cklang.fusion.passes import Fusion, on_program
from cklang.ir.nodes import Value
from cklang.keys import AnyKey

# Importing them fills the rule set.
_RULES_OF = (long_head_rules,)

_GRAD = "grad"


def _matrices(kernel: FusedAttentionGrad) -> tuple[Value, ...]:
    """Return what the kernel reads rows of."""
    f = kernel.forward
    views = (f.q, f.k, f.v, kernel.grad)
    return (*(view.value for view in views), kernel.lse, kernel.inner.value)


def _reader_order(kernel: FusedAttentionGrad, value: Value) -> Sequence[int] | None:
    """Return the order of the log-sum-exps and the sums along heads, which are packed."""
    if value == kernel.inner.value:
        return tuple(axis for axis in kernel.inner.perm if axis is not None)
    return tuple(range(value.type.rank)) if value == kernel.lse else None


def _facts(problem: AttentionGradCase) -> Any:
    """Return a problem as plain data, without names."""
    return {
        "forward": problem_facts(problem.forward),
        "deterministic": problem.deterministic,
        "bias_grad": problem.bias_grad,
        **({"derivative": True} if problem.derivative is not None else {}),
    }


class AttentionBackward(
    Family[FusedAttentionGrad, AttentionGradSignature, AttentionGradAlgorithm, AttentionGradCase]
):
    """Kernels that give the parts of the gradients of q, k and v."""

    name = "attention_backward"
    compile_seconds = 20.0
    signature = AttentionGradSignature
    algorithm = AttentionGradAlgorithm
    algorithm_text: ClassVar[str] = (
        "a cklang.dispatch.AttentionGradAlgorithm for the gradient of an attention"
    )
    fusion = Fusion(makers=MAKERS, passes={"stored_reads": on_program(with_stored_reads)})
    rules: RuleSet = RULES
    grid = GRID
    supply = Supply(
        narrowed=lambda candidates, signature: narrowed(candidates, signature.forward.dtype)
    )
    orders = AxisOrders(
        matrices=_matrices,
        reader=_reader_order,
        # The elements of a head stay side by side.
        can_write=lambda _kernel, value, order: order[-1] == value.type.rank - 1,
    )
    tuning = Tuning(measurable=lambda problem: problem.forward.has_scores, facts=_facts)

    def candidates(
        self, signature: AttentionGradSignature, spec: ArchSpec, preset: str
    ) -> tuple[AttentionGradAlgorithm, ...]:
        """Return the legal algorithms of a profile."""
        return profile_algorithms(preset, signature, spec)

    def cost(
        self, keys: Sequence[AttentionGradKey], spec: ArchSpec, built: Mapping[AnyKey, Resources]
    ) -> AttentionCost:
        """Return the model of the gradients, which does not ask for built kernels."""
        return AttentionCost(keys, spec, attention_grad_estimate)

    lower = staticmethod(lower_grad)
    plan = staticmethod(launches_of)
    problem = staticmethod(gradient_problem)

    def algorithm_words(self, algorithm: AttentionGradAlgorithm) -> str:
        """Return an algorithm as one line of text."""
        a = algorithm
        return f"tile {'x'.join(map(str, a.tile))}, {a.pipeline.value}, vectors of {a.vector}"

    def operands(
        self, problem: AttentionGradCase, key: AttentionGradKey, functions: Functions
    ) -> Operands:
        """Return the memory of a kernel and of the one that adds its parts of dq, and both.

        The other launches of the gradients are the same whatever kernel gives the parts.
        """
        forward = problem.forward
        p, s = forward.problem, forward.signature
        parts = parts_of_dq(key, p.seqlen_k)
        scores = _rows(p.heads, p.seqlen_q, p.seqlen_k)
        contents = contents_of(forward)
        between = sizes_of(forward, parts)
        sizes = {name: size for name, size in between.items() if name not in contents}
        sizes |= {_GRAD: between["o"], "dq": between["d"] * p.hdim_q}
        biases = ("bias", "dbias") if problem.bias_grad else ()
        sizes |= dict.fromkeys(biases, p.batch * scores.stride_batch * s.dtype.bytes)
        contents |= {name: np.zeros(max(size, 1), np.uint8) for name, size in sizes.items()}
        inputs = (*forward.values.values(), *forward.reads)
        own = ("lse", _GRAD, "d", "dq_parts", "dk_parts", "dv_parts", *biases)
        read = tuple(name for name in dict.fromkeys((*inputs, *own)) if name != "o")

        def gradient(addresses: Sequence[int]) -> AttentionGradProblem:
            at = dict(zip(read, addresses, strict=False))
            grad = replace(_rows(p.heads, p.seqlen_q, p.hdim_v), pointer=at[_GRAD])
            request = gradient_at(forward, grad, at)
            if not biases:
                return request
            bias, dbias = (replace(scores, pointer=at[name]) for name in biases)
            return replace(request, forward=replace(request.forward, bias=bias), grad_bias=dbias)

        def total(addresses: Sequence[int]) -> ReduceProblem:
            at = dict(zip(("dq_parts", "dq"), addresses, strict=False))
            dq = replace(_rows(p.heads, p.seqlen_q, p.hdim_q), pointer=at["dq"])
            return sum_at(forward, "dq", parts, dq, at)

        return Operands(
            contents=contents,
            stages=(
                Stage(
                    key=key,
                    functions=functions,
                    problem=problem,
                    shim=AttentionGradShim,
                    values=read,
                    written=frozenset(("dq_parts", "dk_parts", "dv_parts", *biases[1:])),
                    request=gradient,
                    zeroed=("dq_parts",),
                ),
                Stage(
                    key=reduce_key(key.arch, s.dtype),
                    problem=problem,
                    shim=ReduceShim,
                    values=("dq_parts", "dq"),
                    written=frozenset(("dq",)),
                    request=total,
                ),
            ),
        )


def _rows(heads: int, rows: int, width: int) -> AttentionTensor:
    """Return a packed [batch, heads, rows, width]."""
    return rows_of(heads * rows * width, rows * width, width)


ATTENTION_BACKWARD = AttentionBackward()
