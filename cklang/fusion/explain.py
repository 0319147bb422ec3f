# SPDX-License-Identifier: MIT
"""A plan as text: kernels with what they read and compute, then each decision with its reason."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from cklang.fusion.plan import AnyKernel, Decision, Plan, Read, epilogue_hash
from cklang.ir.nodes import Function, print_operation


def explain(plan: Plan) -> str:
    """Return the plan as text for a reader."""
    count = len(plan.kernels)
    kernels = "\n".join(explain_kernel(kernel) for kernel in plan.kernels)
    lines = [*(explain_decision(plan, decision) for decision in plan.decisions), *plan.notes]
    decisions = "\n".join(f"  {line}" for line in lines)
    title = f"@{plan.function.name}: {count} kernel{'s' if count != 1 else ''}"
    return f"{title}\n{kernels}\ndecisions\n{decisions}"


def explain_kernel(kernel: AnyKernel) -> str:
    """Return one kernel as text: its anchor, its reads and its functions, line by line."""
    return "\n".join(kernel.lines())


class Anchored(AnyKernel, Protocol):
    """A kernel whose epilogue makes its results of what its anchor sums up."""

    @property
    def reads(self) -> tuple[Read, ...]:
        """What the epilogue reads."""

    @property
    def epilogue(self) -> Function:
        """The region of all its functions."""


def kernel_lines(kernel: Anchored, names: Sequence[str], sums: Iterable[str]) -> Iterator[str]:
    """Yield a kernel as lines of text.

    ``names`` are those of its axes, without those of a batch.
    """
    epilogue = kernel.functions["epilogue"]
    results = ", ".join(f"{value.type} {value}" for value in kernel.results)
    yield f"kernel {kernel.name}: {results}"
    yield from sums
    yield from function_lines("d", names, kernel.reads, epilogue)
    for value, result in zip(epilogue.results, kernel.results, strict=False):
        yield f"  store {value} as {result.type.dtype}"
    yield f"  epilogue {epilogue_hash(kernel.epilogue)[:12]}"


def function_lines(
    letter: str, names: Sequence[str], reads: Sequence[Read], function: Function
) -> Iterator[str]:
    """Yield the reads and the body of a function; ``letter`` names its parameters."""
    for index, read in enumerate(reads):
        batch = [f"b{place}" for place in range(len(read.axes) - len(names))]
        yield f"  {letter}{index} = {read.indexed([*batch, *names])}: {read.value.type}"
    for operation in function.body:
        yield f"  {print_operation(operation)}"


def explain_decision(plan: Plan, decision: Decision) -> str:
    """Return one decision as a line: edge, verdict, rule and reason."""
    edge = decision.edge
    source, target = (plan.graph.nodes[node]["node"] for node in (edge.source, edge.target))
    user = "return" if target.operation is None else f"{target.operation.op} {target.value}"
    verdict = "fused" if decision.fused else "not fused"
    return (
        f"{source.value} -> {user} [{edge.operand}]: {verdict}, {decision.rule}: {decision.reason}"
    )
