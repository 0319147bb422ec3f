# SPDX-License-Identifier: MIT
"""Which kernels compute a function: each anchor takes the pointwise ops below it.

The partition is computed on the data-flow graph of the function (:mod:`cklang.fusion.graph`):

1. A forward analysis *colours* each node by the anchor whose kernel can compute it
   (:class:`cklang.fusion.flow.Flow`).
2. Values that a kernel must write are *roots*: the function's results, and what anchors take as
   operands, if it follows a gemm. Other operands are computed by the gemm's own kernel as it loads
   them. The leaves of a root's backward slice that have other colours are its *crossings*.
3. Each colour materialises its crossings in one value if it can: the last value that dominates
   them all in the flow from the anchor, at worst the anchor's own result. Crossings that follow
   from roots of the colour need none: without these the anchor does not reach them.
4. A root becomes a kernel: its slice, ending at parameters, roots of other colours and its own
   accumulator, is the epilogue. Kernels that the function's result does not depend on are dropped.

Roots of one product are results of one kernel where they can be (:mod:`cklang.fusion.joint`); an
attention's kernel may have the log-sums beside its result. Else the anchor is computed once for
each root; the decisions say so.

What an anchor is, and what makes its kernels, families say (:class:`cklang.fusion.kernel.Maker`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from cklang.errors import CkUnsupportedError
from cklang.fusion.completeness import expect_complete
from cklang.fusion.flow import Flow
from cklang.fusion.joint import joined_roots
from cklang.fusion.kernel import KernelMaker
from cklang.fusion.passes import Draft, Pass, on_program
from cklang.fusion.placement import placed
from cklang.fusion.plan import AnyKernel, Plan, numbered
from cklang.fusion.roots import Roots
from cklang.ir.nodes import Function
from cklang.ir.ops import OPS, Kind


def partitioned(draft: Draft) -> Draft:
    """Return a draft with the kernels that compute a program and the decisions behind them.

    If a kernel would read more than was foreseen, there is no plan yet: its anchor is in ``strict``
    then, and less follows it when the passes run again.
    """
    function, makers = draft.function, draft.makers
    flow, roots = draft.flow, draft.roots
    if flow is None:
        flow = Flow(draft.outlined or function, makers, unwritten=draft.unwritten)
        roots = tuple(Roots(flow, makers).find())
    maker = KernelMaker(flow, roots, makers)
    try:
        fused = [maker.make(*root) for root in joined_roots(flow, roots, makers)]
    except CkUnsupportedError as mistake:
        if mistake.code != "X004" or maker.anchor in draft.strict:
            raise
        return replace(draft, strict=draft.strict | {maker.anchor})
    needed = _needed(function, [kernel for kernel in fused if kernel is not None])
    kernels = _in_launch_order(function, needed)
    maker.decide_views()
    maker.decide_dead()
    ordered = sorted(
        maker.decisions,
        key=lambda decision: (decision.edge.target, decision.edge.operand, decision.rule),
    )
    plan = Plan(
        function=function,
        kernels=numbered(function.name, kernels),
        decisions=tuple(ordered),
        notes=tuple(maker.notes),
        graph=flow.graph,
    )
    return replace(draft, plan=expect_complete(plan))


def _needed(function: Function, kernels: Sequence[AnyKernel]) -> list[AnyKernel]:
    """Return the kernels that a result of the function depends on."""
    import networkx as nx

    if len(kernels) == 1:
        return list(kernels)
    reads = nx.DiGraph(
        (value.name, result.name)
        for kernel in kernels
        for value in kernel.inputs
        for result in kernel.results
    )
    reads.add_edges_from(
        (operand.name, operation.result.name)
        for operation in function.body
        if OPS[operation.op].kind in (Kind.JOIN, Kind.PARTIAL, Kind.VIEW, Kind.SHAPE)
        for operand in operation.operands
    )
    needed = {value.name for value in function.results}
    reads.add_nodes_from(needed)  # constants have no edge
    needed |= {ancestor for name in needed for ancestor in nx.ancestors(reads, name)}
    return [kernel for kernel in kernels if needed.intersection(v.name for v in kernel.results)]


def _in_launch_order(function: Function, kernels: Sequence[AnyKernel]) -> list[AnyKernel]:
    """Return kernels each behind those whose results it reads; else they keep their order.

    A kernel that writes several values, as attention writes its log-sum-exp, may have its place by
    one of them and be needed before.
    """
    import networkx as nx

    views = nx.DiGraph(
        (operand.name, operation.result.name)
        for operation in function.body
        if OPS[operation.op].kind in (Kind.JOIN, Kind.VIEW, Kind.SHAPE)
        for operand in operation.operands
    )
    writer = {value.name: place for place, kernel in enumerate(kernels) for value in kernel.results}
    order = nx.DiGraph()
    order.add_nodes_from(range(len(kernels)))
    for place, kernel in enumerate(kernels):
        names = {value.name for value in kernel.inputs}
        names |= {base for name in names & set(views) for base in nx.ancestors(views, name)}
        before = {writer[name] for name in names if name in writer} - {place}
        order.add_edges_from((earlier, place) for earlier in before)
    return [kernels[place] for place in nx.lexicographical_topological_sort(order)]


COMMON: Mapping[str, Pass] = MappingProxyType(
    {
        "placement": Pass("placement", "fusion", on_program(placed)),
        "partition": Pass("partition", "fusion", partitioned),
    }
)
"""The passes that belong to no family, by name."""
