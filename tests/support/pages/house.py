# SPDX-License-Identifier: MIT
"""The picture of the house: the layers of the package on their floors, and what they import."""

from collections.abc import Iterator

import networkx as nx

from tests.support.layers import GROUND, LAYERS, MACHINE, UPWARDS, arrows
from tests.support.pages.pictures import rect, svg, words

__all__ = ["house"]

_WIDTH, _HEIGHT = 92, 28
_ACROSS, _UP = 108, 50
_FILLS = {"ground": "#eef1f4", "compiler": "#cfe3f7", "machine": "#fbe1c2"}


def house() -> str:
    """Return the picture: a layer imports those that its lines lead down to."""
    graph = nx.DiGraph((a, b) for a, b in arrows() - UPWARDS if a != b)
    floor = dict.fromkeys(LAYERS, 0)
    for name in reversed(list(nx.topological_sort(graph))):
        floor[name] = max([floor[below] + 1 for below in graph.successors(name)], default=0)
    columns = dict(_columns(floor))
    compiler = 1 + max(columns[name] for name in LAYERS if _wing(name) == "compiler")
    total = compiler + 1 + max(columns[name] for name in MACHINE)
    height = 44 + _UP * (1 + max(floor.values()))

    def corner(name: str) -> tuple[int, int]:
        across = columns[name] + (compiler if name in MACHINE else 0)
        return 16 + across * _ACROSS, height - _UP * (floor[name] + 1)

    def parts() -> Iterator[str]:
        yield words(16, 22, "compiler: ops to kernels", size=13)
        yield words(16 + compiler * _ACROSS, 22, "machine: the emulated GPU", size=13)
        for reader, below in sorted(nx.transitive_reduction(graph).edges):
            (x, y), (to_x, to_y) = corner(reader), corner(below)
            ends = (
                f'x1="{x + _WIDTH // 2}" y1="{y + _HEIGHT}" x2="{to_x + _WIDTH // 2}" y2="{to_y}"'
            )
            yield f'<line {ends} stroke="#8a9199" stroke-width="1"/>'
        for name in LAYERS:
            x, y = corner(name)
            yield rect(x, y, _WIDTH, _HEIGHT, _FILLS[_wing(name)])
            yield words(x + _WIDTH / 2, y + 18, name, anchor="middle")

    return svg(16 + total * _ACROSS, height, "Layers of the package and their imports", parts())


def _wing(name: str) -> str:
    if name in GROUND:
        return "ground"
    return "machine" if name in MACHINE else "compiler"


def _columns(floor: dict[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the column of each layer in its wing: those of one floor side by side."""
    used: dict[tuple[bool, int], int] = {}
    for name in LAYERS:
        key = (name in MACHINE, floor[name])
        yield name, used.setdefault(key, 0)
        used[key] += 1
