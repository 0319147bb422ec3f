# SPDX-License-Identifier: MIT
"""Plans of ops that a test writes, and the kernels of a plan as records of their families."""

from collections.abc import Mapping

from cklang.families import FAMILIES, passes_of, plan_of
from cklang.families.attention.plan import FusedAttention
from cklang.families.conv.plan import FusedConv
from cklang.families.gemm.plan import FusedGemm
from cklang.fusion.kernel import Maker
from cklang.fusion.passes import fused
from cklang.fusion.plan import AnyKernel, Plan
from cklang.ir.nodes import Function
from tests.support.written_ops import written_op

MAKERS: Mapping[str, Maker] = {
    op: maker for name in ("gemm", "conv") for op, maker in FAMILIES[name].fusion.makers.items()
}
"""The anchors of products and convolutions."""

SHAPE = "ck.f16[B, H, S, D]"


def plan(function: Function, makers: Mapping[str, Maker] = MAKERS) -> Plan:
    """Return the plan of a function of products and convolutions alone."""
    left_out = ("halves", "extremes", "rows")
    passes = [each for each in passes_of(function) if each.name not in left_out]
    return fused(function, makers, passes)


def kernel_function(kernel: AnyKernel) -> Function:
    """Return a kernel as a function of its own."""
    return FAMILIES[kernel.family].tuning.as_function(kernel)


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
    (kernel,) = plan.kernels
    assert isinstance(kernel, FusedAttention), kernel
    return kernel
