# SPDX-License-Identifier: MIT
"""A plan as text: kernels with what they read and compute, then each decision with its reason."""

from __future__ import annotations

from cklang.fusion.plan import (
    Decision,
    FusedConv,
    FusedGemm,
    FusionPlan,
    Kernel,
    Read,
    epilogue_hash,
)
from cklang.ir.convolution import axis_names
from cklang.ir.printer import print_attr, print_operation

__all__ = ["explain", "explain_decision", "explain_kernel"]


def explain(plan: FusionPlan) -> str:
    """Return the plan as text for a reader."""
    count = len(plan.kernels)
    kernels = "\n".join(explain_kernel(kernel) for kernel in plan.kernels)
    decisions = "\n".join(f"  {explain_decision(plan, each)}" for each in plan.decisions)
    title = f"@{plan.function.name}: {count} kernel{'s' if count != 1 else ''}"
    return f"{title}\n{kernels}\ndecisions\n{decisions}"


def explain_kernel(kernel: Kernel) -> str:
    """Return one kernel as text: its anchor, its reads and its epilogue, line by line."""
    lines = [
        f"kernel {kernel.name}: {kernel.result.type} {kernel.result}",
        *(_convolution(kernel) if isinstance(kernel, FusedConv) else _product(kernel)),
        *(f"  d{i} = {text}: {read.value.type}" for i, (text, read) in enumerate(_reads(kernel))),
        *(f"  {print_operation(operation)}" for operation in kernel.epilogue.body),
        f"  store {kernel.epilogue.results[0]} as {kernel.result.type.dtype}",
        f"  epilogue {epilogue_hash(kernel.epilogue)[:12]}",
    ]
    return "\n".join(lines)


def _reads(kernel: Kernel) -> list[tuple[str, Read]]:
    if not isinstance(kernel, FusedConv):
        return [(str(read), read) for read in kernel.reads]
    names = axis_names(kernel.operation)
    return [(read.indexed(names), read) for read in kernel.reads]


def _product(kernel: FusedGemm) -> list[str]:
    product = f"{kernel.a} @ {kernel.b}"
    turned = " (the transpose of the product in the program)" if kernel.transposed else ""
    scales = (scale for scale in (kernel.scale_a, kernel.scale_b) if scale)
    return [f"  acc = {product}{turned}", *(f"  scaled by {scale}" for scale in scales)]


def _convolution(kernel: FusedConv) -> list[str]:
    attrs = ", ".join(f"{name} {print_attr(attr)}" for name, attr in kernel.operation.attrs)
    return [f"  acc = {kernel.operation.op}({kernel.a.tensor}, {kernel.b.tensor}): {attrs}"]


def explain_decision(plan: FusionPlan, decision: Decision) -> str:
    """Return one decision as a line: edge, verdict, rule and reason."""
    edge = decision.edge
    source, target = (plan.graph.nodes[node]["node"] for node in (edge.source, edge.target))
    user = "return" if target.operation is None else f"{target.operation.op} {target.value}"
    verdict = "fused" if decision.fused else "not fused"
    return (
        f"{source.value} -> {user} [{edge.operand}]: {verdict}, {decision.rule}: {decision.reason}"
    )
