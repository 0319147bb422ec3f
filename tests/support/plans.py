# SPDX-License-Identifier: MIT
"""The kernels of a plan as records of their families, whose fields a test reads."""

from __future__ import annotations

from cklang.families.attention.plan import FusedAttention
from cklang.fusion.plan import FusedConv, FusedGemm, Plan


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
