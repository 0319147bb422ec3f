# SPDX-License-Identifier: MIT
"""The fusion graph of a plan as an SVG picture, which notebooks show of a plan and of an op."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

Use = tuple[tuple[int, int, int], bool, str]
"""A decision of an edge (source, target, operand): whether it was fused, and the reason."""

# Pixels.
_CHARACTER, _BOX, _ROW, _GAP = 7.2, 26, 62, 18
_FILLS = {"parameter": "#ffffff", "result": "#ffffff", "anchor": "#cfe3f7"}
"""Colours by the kind of a node; what is fused around an anchor has another colour."""
_OTHERS = "#eef3e2"
_DASHED = 'stroke-width="1" stroke-dasharray="4 3"'
_HEAD = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="9" '
    'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z"/>'
    "</marker></defs>"
)


def to_svg(name: str, graph: nx.MultiDiGraph, uses: Iterable[Use]) -> str:
    """Return the graph of a plan as SVG text.

    Values run downwards. A fused edge, whose value stays in registers, is a thick line; another
    one is dashed. A line says the reason when the pointer rests on it.
    """
    labels = {node: str(payload.label) for node, payload in graph.nodes(data="node")}
    boxes = _boxes(graph, labels)
    width = max((x + w for x, _, w in boxes.values()), default=0) + _GAP
    height = max((y for _, y, _ in boxes.values()), default=0) + _BOX + _GAP
    parts = [*_lines(graph, uses, boxes)]
    for node, (x, y, w) in boxes.items():
        fill = _FILLS.get(graph.nodes[node]["node"].kind, _OTHERS)
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{_BOX}" rx="4" fill="{fill}" '
            'stroke="#444"/>'
            f'<text x="{x + w / 2:g}" y="{y + 17:g}" text-anchor="middle">'
            f"{escape(labels[node])}</text>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'style="max-width: {width:g}px; background: #ffffff" role="img" '
        f'font-family="monospace" font-size="12"><title>fusion graph of {escape(name)}</title>'
        f"{_HEAD}{''.join(parts)}</svg>"
    )


def _boxes(
    graph: nx.MultiDiGraph, labels: Mapping[int, str]
) -> dict[int, tuple[float, float, float]]:
    """Return where each node is: left, top, width. A node is below all that it reads."""
    boxes: dict[int, tuple[float, float, float]] = {}
    depths: dict[int, int] = {}
    lefts: dict[int, float] = {}
    # Nodes are numbered in the order of the program, so operands come first.
    for node in sorted(graph):
        depth = max(
            (depths[predecessor] + 1 for predecessor in graph.predecessors(node)), default=0
        )
        width = round(len(labels[node]) * _CHARACTER) + _GAP
        left = lefts.get(depth, _GAP)
        depths[node], lefts[depth] = depth, left + width + _GAP
        boxes[node] = float(left), float(_GAP + depth * _ROW), float(width)
    return boxes


def _lines(
    graph: nx.MultiDiGraph, uses: Iterable[Use], boxes: Mapping[int, tuple[float, float, float]]
) -> list[str]:
    reasons: dict[tuple[int, int, int], list[tuple[bool, str]]] = {}
    for edge, fused, reason in uses:
        reasons.setdefault(edge, []).append((fused, reason))
    lines = []
    for source, target, operand in graph.edges(keys=True):
        known = reasons.get((source, target, operand), [])
        style = 'stroke-width="2.5"' if any(fused for fused, _ in known) else _DASHED
        (x, y, w), (u, v, z) = boxes[source], boxes[target]
        title = escape("; ".join(reason for _, reason in known))
        lines.append(
            f'<line x1="{x + w / 2:g}" y1="{y + _BOX:g}" x2="{u + z / 2:g}" y2="{v:g}" '
            f'stroke="#444" {style} marker-end="url(#arrow)"><title>{title}</title></line>'
        )
    return lines
