# SPDX-License-Identifier: MIT
"""Which nodes of a graph of aten ops are computed by which program, and which run in eager torch.

Nodes get stages: even ones are eager, odd ones are programs. A node's stage is the first of its
kind that is not before those of its operands, so all nodes of an odd stage can be one program, and
there are as few programs in a row as possible. Views have no stage: they are made where they are
needed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from cklang.torch.backend.aten import EMISSIONS, FREE, ITEM
from cklang.torch.backend.emitter import DTYPES
from cklang.torch.backend.weights import converted


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The nodes of one program."""

    stage: int
    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    """What they read of other parts, before any views of it."""
    outputs: tuple[Node, ...]
    """The part's nodes that others read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A graph divided."""

    programs: tuple[Part, ...]
    eager: Mapping[Node, int]
    """The stage of each node that runs in eager torch."""


def is_free(node: Node) -> bool:
    """Tell whether a node computes nothing: it is a view, or one of several results."""
    return node.op == "call_function" and node.target in FREE


def source_of(node: Node) -> Node:
    """Return what a node is a view of: the tensor that is computed, or an input."""
    while is_free(node):
        node = node.all_input_nodes[0]
    return node


def base_of(node: Node) -> Node:
    """Return the tensor that a node is a view of: one result, if its source has several."""
    while is_free(node):
        (first, *_) = node.all_input_nodes
        if node.target is ITEM and not is_free(first):
            return node
        node = first
    return node


def is_computed(node: Node) -> bool:
    """Tell whether a node computes tensors in each call.

    Sizes are numbers that Python computes, and conversions of parameters are kept.
    """
    is_call = node.op == "call_function" and node.target is not converted
    return is_call and not is_free(node) and bool(_tensors(node))


def _tensors(node: Node) -> list[Any]:
    value = node.meta.get("val")
    items = value if isinstance(value, tuple | list) else [value]
    return [item for item in items if isinstance(item, torch.Tensor)]


def objection(node: Node) -> str | None:
    """Return why no program has a node, as far as its op and its tensors say; None if one may."""
    if node.target not in EMISSIONS:
        return "no kernel computes this op"
    operands = [tensor for source_node in node.all_input_nodes for tensor in _tensors(source_node)]
    for tensor in (*operands, *_results(node)):
        reason = _objection_to(tensor)
        if reason is not None:
            return reason
    return None


def _results(node: Node) -> list[Any]:
    """Return the results of a node that something reads."""
    value = node.meta["val"]
    if not isinstance(value, tuple | list):
        return _tensors(node)
    return [tensor for user in node.users for tensor in _tensors(user)]


def _objection_to(tensor: Any) -> str | None:
    if tensor.dtype not in DTYPES:
        return f"kernels have no {str(tensor.dtype).removeprefix('torch.')}"
    if tensor.layout is not torch.strided or tensor.device.type not in ("cpu", "cuda"):
        return f"kernels read no {tensor.layout} tensor on {tensor.device}"
    if any(isinstance(size, int) and size == 0 for size in tensor.shape):
        return "a tensor has no elements"
    return None


def partition(graph: torch.fx.Graph, is_eager: Callable[[Node], bool]) -> Parts:
    """Divide a graph into programs and eager nodes.

    ``is_eager`` tells whether a node that computes runs in eager torch.
    """
    stages: dict[Node, int] = {}
    for node in graph.nodes:
        if is_computed(node):
            stages[node] = _stage(node, stages, is_eager(node))
    programs = sorted({stage for stage in stages.values() if stage % 2})
    return Parts(
        programs=tuple(
            part_of([node for node in stages if stages[node] == stage], stage) for stage in programs
        ),
        eager={node: stage for node, stage in stages.items() if stage % 2 == 0},
    )


def _stage(node: Node, stages: Mapping[Node, int], is_eager: bool) -> int:
    sources = map(source_of, node.all_input_nodes)
    latest = max((stages.get(source, 0) for source in sources), default=0)
    return latest + (latest % 2 == is_eager)


def part_of(nodes: Sequence[Node], stage: int) -> Part:
    """Return nodes as a part, with what it reads of other nodes and what they read of it."""
    own = set(nodes)
    bases = (base_of(source_node) for node in nodes for source_node in node.all_input_nodes)
    inputs = dict.fromkeys(base for base in bases if source_of(base) not in own and _tensors(base))
    outputs = [node for node in nodes if _is_read_outside(node, own)]
    return Part(stage=stage, nodes=tuple(nodes), inputs=tuple(inputs), outputs=tuple(outputs))


def _is_read_outside(node: Node, own: set[Node]) -> bool:
    """Tell whether something else than nodes of ``own`` reads a node, or a view of it."""
    pending: Sequence[Node] = tuple(node.users)
    while pending:
        pending_next: list[Node] = []
        for user in pending:
            if is_free(user):
                pending_next += user.users
            elif user not in own:
                return True
        pending = pending_next
    return False
