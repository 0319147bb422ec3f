# SPDX-License-Identifier: MIT
"""Plans of ops that a test writes, and the kernels of a plan as records of their families."""

from __future__ import annotations

from cklang.families import plan_of
from cklang.families.attention.plan import FusedAttention
from cklang.fusion.plan import FusedConv, FusedGemm, Plan
from tests.support.written_ops import written_op

__all__ = ["SHAPE", "attention_kernel", "plan_of_statements", "product_kernels"]

SHAPE = "ck.f16[B, H, S, D]"


def plan_of_statements(body: str, result: str = SHAPE) -> Plan:
    """Return the plan of an op with the statements of ``body``, which semicolons part.

    They read images ``x`` and ``y``, the matrix ``w``, the vectors ``bias`` and ``gain``, the
    rows' scalars ``row`` and a convolution's filter ``window``.
    """
    text = (
        "@ck.op\n"
        f"def f(x: {SHAPE}, y: {SHAPE}, w: ck.f16[D, D], bias: ck.f16[D], gain: ck.f16[D],\n"
        f"      row: ck.f32[B, H, S], window: ck.f16[D, 3, 3, D]) -> {result}:\n"
    ) + "".join(f"    {line}\n" for line in body.split("; "))
    return plan_of(written_op(text, "B H S D").program.specialise())


def product_kernels(plan: Plan) -> tuple[FusedGemm | FusedConv, ...]:
    """Return the kernels of a plan of products and convolutions alone."""
    kernels = tuple(each for each in plan.kernels if isinstance(each, FusedGemm | FusedConv))
    assert len(kernels) == len(plan.kernels), plan.kernels
    return kernels


def attention_kernel(plan: Plan) -> FusedAttention:
    """Return the one kernel of a plan of an attention."""
    (kernel,) = plan.kernels
    assert isinstance(kernel, FusedAttention), kernel
    return kernel
