# SPDX-License-Identifier: MIT
"""What became of the graphs that the backend compiled: ``cklang.torch.report()``.

Floating-point operations are counted by node. A product of [M, K] by [K, N] takes 2 M N K, a
convolution and an attention what their products take; torch's formulas count them. Any other op
that computes floats takes one for each element of its largest operand or result.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils import flop_counter

from cklang.display import ShownAsText
from cklang.torch.backend.aten import FREE
from cklang.torch.backend.extents import hint_of
from cklang.torch.backend.partition import Parts, is_computed, is_free
from cklang.torch.backend.program import Program

aten = torch.ops.aten

_UNCOUNTED = FREE | {
    aten.clone.default,
    aten._to_copy.default,
    torch.ops.prims.convert_element_type.default,
    aten.cat.default,
    aten.embedding.default,
    aten.index_select.default,
    aten.index.Tensor,
    aten.gather.default,
    aten.full.default,
    aten.full_like.default,
    aten.scalar_tensor.default,
    aten.zeros_like.default,
    aten.ones_like.default,
    aten.arange.start_step,
}
"""Ops that move or make numbers."""


_ATTENTION = {
    torch.ops.cklang_backend.attention.default: (0, 1, 1),
    torch.ops.cklang_backend.attention_gradient.default: (1, 3, 2),
}
"""The place of q among the arguments, and how many products have the heads of q, and of v."""


def flops(node: Node) -> int:
    """Return the floating-point operations of a node, for the sizes of the call that was traced."""
    if node.target in _UNCOUNTED:
        return 0
    if node.target in _ATTENTION:
        first, by_q, by_v = _ATTENTION[node.target]
        sides = node.args[first : first + 3]
        q, k, v = (_shape(side.meta["val"]) for side in sides)  # type: ignore[union-attr]
        return 2 * math.prod(q[:-1]) * k[-2] * (by_q * q[-1] + by_v * v[-1])
    formula = flop_counter.flop_registry.get(getattr(node.target, "overloadpacket", None))
    if formula is None:
        return _elements(node)
    arguments = torch.fx.map_arg((node.args, dict(node.kwargs)), _sized)
    args, kwargs = arguments
    return int(formula(*args, **kwargs, out_val=_sized(node)))


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(map(hint_of, tensor.shape))


def _sized(node: Node) -> Any:
    """Return a tensor without memory that has the size of a node's in the call that was traced."""
    return torch.utils._pytree.tree_map(_meta, node.meta["val"])


def _meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty(_shape(value), dtype=value.dtype, device="meta")
    return hint_of(value) if isinstance(value, torch.SymInt) else value


def _elements(node: Node) -> int:
    tensors = [_sized(source) for source in (node, *node.all_input_nodes)]
    leaves = torch.utils._pytree.tree_leaves(tensors)
    floats = [
        leaf.numel()
        for leaf in leaves
        if isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point
    ]
    return max(floats, default=0)


_LIMIT = 64
"""The graphs that are remembered; older ones are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """One node that computes tensors."""

    name: str
    op: str
    program: str | None
    """The program that computes it; None if it runs in eager torch."""
    reason: str
    """Why it runs in eager torch; empty if it does not."""
    flops: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphReport:
    """One graph of aten ops."""

    name: str
    nodes: tuple[NodeReport, ...]
    programs: tuple[Program, ...]
    saved: str = ""
    """For a model in training: what is saved between the graphs, and why."""

    @property
    def flops(self) -> int:
        """The floating-point operations of all nodes, for the sizes of the call that was traced."""
        return sum(node.flops for node in self.nodes)

    @property
    def share(self) -> float:
        """The share of them that kernels take, 0 to 1; 1 of none."""
        own = sum(node.flops for node in self.nodes if node.program is not None)
        return own / self.flops if self.flops else 1.0

    @property
    def kernels(self) -> int:
        """How many kernels the programs have, without copies that a layout may ask for."""
        return sum(len(program.plan.kernels) for program in self.programs)

    @property
    def eager(self) -> tuple[NodeReport, ...]:
        """The nodes that run in eager torch."""
        return tuple(node for node in self.nodes if node.program is None)

    def __str__(self) -> str:
        own = len(self.nodes) - len(self.eager)
        head = (
            f"{self.name}: {own} nodes in {len(self.programs)} programs of {self.kernels} kernels, "
            f"{len(self.eager)} nodes in eager torch; {self.share:.1%} of {self.flops:.3g} "
            "floating-point operations in kernels"
        )
        notes = [f"  {self.saved}"] if self.saved else []
        widths = [max((len(text) for text in column), default=0) for column in self._columns()]
        rows = [
            f"  {node.name:{widths[0]}}  {node.op:{widths[1]}}  {node.flops:>10.3g}  {node.reason}"
            for node in self.eager
        ]
        return "\n".join([head, *notes, *rows])

    def _columns(self) -> tuple[list[str], list[str]]:
        return [node.name for node in self.eager], [node.op for node in self.eager]


@dataclass(frozen=True, slots=True)
class Report(ShownAsText):
    """All graphs that were compiled since the last :func:`report` with ``clear``."""

    graphs: tuple[GraphReport, ...]

    @property
    def share(self) -> float:
        """The share of floating-point operations that kernels take, 0 to 1; 1 of none."""
        total = sum(graph.flops for graph in self.graphs)
        own = sum(graph.share * graph.flops for graph in self.graphs)
        return own / total if total else 1.0

    @property
    def kernels(self) -> int:
        """How many kernels there are."""
        return sum(graph.kernels for graph in self.graphs)

    def __str__(self) -> str:
        return "\n".join(map(str, self.graphs)) or "no graph was compiled"


_GRAPHS: list[GraphReport] = []


def record(graph: GraphReport) -> None:
    """Remember the report of a graph."""
    _GRAPHS.append(graph)
    del _GRAPHS[:-_LIMIT]


def report(*, clear: bool = False) -> Report:
    """Return what became of the graphs that ``backend="cklang"`` compiled in this process.

    ``str()`` of it is a table: for each graph its kernels and its share of floating-point
    operations in them, then each node that runs in eager torch, with its operations and the reason.

    Args:
        clear: Whether to forget them.

    Example:
        >>> import cklang.torch
        >>> print(cklang.torch.report(clear=True)) # doctest: +SKIP
        graph_0: 9 nodes in 1 programs of 4 kernels, 0 nodes in eager torch; 100.0% of ...
    """
    graphs = Report(tuple(_GRAPHS))
    if clear:
        _GRAPHS.clear()
    return graphs


def graph_report(
    name: str,
    graph: GraphModule,
    parts: Parts,
    programs: Sequence[Program],
    reasons: dict[Node, str],
    saved: str = "",
) -> GraphReport:
    """Return the report of a divided graph; ``reasons`` says why each eager node is one."""
    owner = {node: program.op.program.name for program in programs for node in program.part.nodes}
    nodes = tuple(
        NodeReport(
            name=node.name,
            op=str(node.target),
            program=owner.get(node),
            reason=reasons.get(node, ""),
            flops=flops(node),
        )
        for node in graph.graph.nodes
        if is_computed(node) and not is_free(node)
    )
    return GraphReport(name=name, nodes=nodes, programs=tuple(programs), saved=saved)
