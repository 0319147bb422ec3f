# SPDX-License-Identifier: MIT
"""A plan as text: kernels with what they read and compute, then each decision with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from cklang.errors import error
from cklang.fusion.plan import (
    AnyKernel,
    Computed,
    Decision,
    FusedConv,
    FusedGemm,
    Plan,
    Read,
    View,
    epilogue_hash,
)
from cklang.ir.convolution import axis_names
from cklang.ir.nodes import Function, print_attr, print_operation

__all__ = ["explain", "explain_decision", "explain_kernel"]


def explain(plan: Plan) -> str:
    """Return the plan as text for a reader."""
    count = len(plan.kernels)
    kernels = "\n".join(explain_kernel(kernel) for kernel in plan.kernels)
    lines = [*(explain_decision(plan, each) for each in plan.decisions), *plan.notes]
    decisions = "\n".join(f"  {line}" for line in lines)
    title = f"@{plan.function.name}: {count} kernel{'s' if count != 1 else ''}"
    return f"{title}\n{kernels}\ndecisions\n{decisions}"


@runtime_checkable
class Explained(Protocol):
    """A kernel that says itself what it computes."""

    def lines(self) -> Iterator[str]:
        """Yield it as lines of text."""


def explain_kernel(kernel: AnyKernel) -> str:
    """Return one kernel as text: its anchor, its reads and its functions, line by line."""
    if isinstance(kernel, Explained):
        return "\n".join(kernel.lines())
    if not isinstance(kernel, FusedGemm | FusedConv):
        raise error("Z002", what=f"{kernel.name} has no text")
    epilogue = kernel.functions["epilogue"]
    names = ["m", "n"] if isinstance(kernel, FusedGemm) else axis_names(kernel.operation)
    results = ", ".join(f"{value.type} {value}" for value in kernel.results)
    stored = zip(epilogue.results, kernel.results, strict=True)
    lines = [
        f"kernel {kernel.name}: {results}",
        *(_product(kernel) if isinstance(kernel, FusedGemm) else _convolution(kernel)),
        *_function("d", names, kernel.reads, epilogue),
        *(f"  store {value} as {result.type.dtype}" for value, result in stored),
        f"  epilogue {epilogue_hash(kernel.epilogue)[:12]}",
    ]
    return "\n".join(lines)


def _function(
    letter: str, names: Sequence[str], reads: Sequence[Read], function: Function
) -> Iterator[str]:
    for index, read in enumerate(reads):
        batch = [f"b{place}" for place in range(len(read.axes) - len(names))]
        yield f"  {letter}{index} = {read.indexed([*batch, *names])}: {read.value.type}"
    for operation in function.body:
        yield f"  {print_operation(operation)}"


def _product(kernel: FusedGemm) -> Iterator[str]:
    functions = kernel.functions
    summed = ["k"] if kernel.depth == 1 else [f"k{place}" for place in range(kernel.depth)]
    own_a, own_b = ["m", *summed], [*summed, "n"]
    yield from _side("a", own_a, kernel.a, functions)
    yield from _side("b", own_b, kernel.b, functions)
    turned = " (the transpose of the product in the program)" if kernel.transposed else ""
    if kernel.op == "contract":
        sides = f"{_operand(kernel.a, own_a)} * {_operand(kernel.b, own_b)}"
        yield f"  acc = the sum over {', '.join(summed)} of {sides}{turned}"
    else:
        yield f"  acc = {kernel.a} @ {kernel.b}{turned}"
        if kernel.b2 is not None:
            yield f"  acc1 = {kernel.a} @ {kernel.b2}"
    yield from (f"  scaled by {scale}" for scale in (kernel.scale_a, kernel.scale_b) if scale)


def _operand(side: View | Computed, names: Sequence[str]) -> str:
    if isinstance(side, Computed):
        return str(side)
    batch = [f"b{place}" for place in range(len(side.perm) - len(names))]
    return side.indexed([*batch, *names])


def _side(
    letter: str, names: Sequence[str], side: View | Computed, functions: Mapping[str, Function]
) -> Iterator[str]:
    if isinstance(side, View):
        return
    function = functions[f"prologue_{letter}"]
    yield from _function(letter, names, side.reads, function)
    yield f"  {side} = {function.results[0]} as {side.value.type.dtype}, as it is loaded"


def _convolution(kernel: FusedConv) -> list[str]:
    attrs = ", ".join(f"{name} {print_attr(attr)}" for name, attr in kernel.operation.attrs)
    return [f"  acc = {kernel.operation.op}({kernel.a.tensor}, {kernel.b.tensor}): {attrs}"]


def explain_decision(plan: Plan, decision: Decision) -> str:
    """Return one decision as a line: edge, verdict, rule and reason."""
    edge = decision.edge
    source, target = (plan.graph.nodes[node]["node"] for node in (edge.source, edge.target))
    user = "return" if target.operation is None else f"{target.operation.op} {target.value}"
    verdict = "fused" if decision.fused else "not fused"
    return (
        f"{source.value} -> {user} [{edge.operand}]: {verdict}, {decision.rule}: {decision.reason}"
    )
