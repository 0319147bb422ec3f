# SPDX-License-Identifier: MIT
"""A plan as a picture: a networkx graph with plain attributes, DOT and Mermaid text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cklang.fusion.plan import Plan

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["annotated_graph", "to_dot", "to_mermaid"]


def annotated_graph(plan: Plan) -> nx.MultiDiGraph:
    """Return a copy of the plan's graph with attributes that any networkx writer takes.

    Nodes have ``label`` and ``kind``; edges ``fused`` (whether any kernel fused the edge),
    ``rule`` and ``reason`` (of all kernels that met it, separated by "; ").
    """
    graph = plan.graph.copy()
    for node, payload in graph.nodes(data="node"):
        graph.nodes[node].clear()
        graph.nodes[node].update(label=payload.label, kind=payload.kind)
    for source, target, key in graph.edges(keys=True):
        decisions = [
            each
            for each in plan.decisions
            if (each.edge.source, each.edge.target, each.edge.operand) == (source, target, key)
        ]
        graph.edges[source, target, key].clear()
        graph.edges[source, target, key].update(
            fused=any(each.fused for each in decisions),
            rule="; ".join(dict.fromkeys(each.rule for each in decisions)),
            reason="; ".join(each.reason for each in decisions),
        )
    return graph


def to_dot(plan: Plan) -> str:
    """Return the graph in Graphviz's language; fused edges are bold, others dashed."""
    graph = annotated_graph(plan)
    lines = [f'digraph "{plan.function.name}" {{', "  node [shape=box, fontname=monospace];"]
    for node, data in graph.nodes(data=True):
        shape = ", style=filled" if data["kind"] == "anchor" else ""
        lines.append(f'  n{node} [label="{data["label"]}"{shape}];')
    for source, target, key, data in graph.edges(keys=True, data=True):
        style = "bold" if data["fused"] else "dashed"
        lines.append(
            f"  n{source} -> n{target} "
            f'[headlabel="{key}", style={style}, tooltip="{data["rule"]}"];'
        )
    return "\n".join([*lines, "}"])


def to_mermaid(plan: Plan) -> str:
    """Return the graph in Mermaid's language; fused edges are thick, others dotted."""
    graph = annotated_graph(plan)
    lines = ["flowchart TD"]
    for node, data in graph.nodes(data=True):
        left, right = ("[[", "]]") if data["kind"] == "anchor" else ("[", "]")
        lines.append(f'  n{node}{left}"{data["label"]}"{right}')
    for source, target, _, data in graph.edges(keys=True, data=True):
        arrow = "==>" if data["fused"] else "-.->"
        lines.append(f'  n{source} {arrow}|"{data["rule"]}"| n{target}')
    return "\n".join(lines)
