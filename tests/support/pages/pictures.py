# SPDX-License-Identifier: MIT
"""The pictures of ``docs/concepts.md``: lanes of matrix instructions, and tiles of a product.

Lanes come from the layouts against which ``tests/emulator/test_layouts.py`` compares the emulator.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tests.support.layouts import Instruction, instructions, layout

__all__ = ["lanes_of_mfma", "lanes_of_wmma", "rect", "svg", "tiles_of_a_product", "words"]

_GROUPS = ("#cfe3f7", "#fbe1c2")
"""Fills of the elements of the first and the second half of a wave."""
_ONE, _LINE, _TEXT = "#b3361b", "#8a9199", "#1c2126"
_CELL = 14
_WARPS = ("#cfe3f7", "#fbe1c2", "#d8efd0", "#ead6f2")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matrix:
    """An operand in a picture, with the element (row, column) that each place of a lane holds."""

    label: str
    at: np.ndarray
    """[lane, register element, 2]"""
    left: int
    top: int


def rect(x: int, y: int, width: int, height: int, fill: str, line: str = _LINE) -> str:
    """Return a rectangle."""
    box = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    return f'<rect {box} fill="{fill}" stroke="{line}" stroke-width="0.6"/>'


def words(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start") -> str:
    """Return a line of text."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}">{text}</text>'


def svg(width: int, height: int, title: str, parts: Iterator[str]) -> str:
    """Return a picture on white, whose title is its text for screen readers."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" fill="{_TEXT}">\n<title>{title}</title>\n'
        f'<rect width="{width}" height="{height}" rx="6" fill="#ffffff"/>\n'
    )
    return head + "\n".join(parts) + "\n</svg>\n"


def _draw(matrix: _Matrix, lane: int) -> Iterator[str]:
    """Draw a matrix: fills are halves of the wave, numbers the elements that one lane holds."""
    rows, columns = matrix.at.max(axis=(0, 1)) + 1
    half = np.full((rows, columns), -1)
    lanes = len(matrix.at)
    for each in reversed(range(lanes)):
        half[tuple(matrix.at[each].T)] = each * 2 // lanes
    for row in range(rows):
        starts = [0, *(np.flatnonzero(np.diff(half[row])) + 1), columns]
        for start, stop in pairwise(starts):
            x, y = matrix.left + int(start) * _CELL, matrix.top + row * _CELL
            yield rect(x, y, int(stop - start) * _CELL, _CELL, _GROUPS[half[row, start]])
    for number, (row, column) in enumerate(matrix.at[lane]):
        x, y = matrix.left + int(column) * _CELL, matrix.top + int(row) * _CELL
        yield rect(x, y, _CELL, _CELL, _ONE)
        yield (
            f'<text x="{x + _CELL / 2:g}" y="{y + 10}" font-size="9" text-anchor="middle" '
            f'fill="#ffffff">{number}</text>'
        )
    yield words(matrix.left, matrix.top - 6, matrix.label)


def _instruction(arch: str, name: str) -> Instruction:
    return next(op for op in instructions() if (op.arch, op.name) == (arch, name))


def _lanes(arch: str, name: str, lane: int) -> str:
    op = _instruction(arch, name)
    known = layout("triton", op)
    if known is None:
        raise LookupError(op.label)
    left, top = 24 + op.k * _CELL, 74 + op.k * _CELL
    matrices = (
        _Matrix(label=f"A, {op.m}×{op.k}", at=known.a[..., 1:], left=12, top=top),
        _Matrix(label=f"B, {op.k}×{op.n}", at=known.b[..., 1:], left=left, top=62),
        _Matrix(label="", at=known.d[..., 1:], left=left, top=top),
    )
    width, height = left + op.n * _CELL + 12, top + op.m * _CELL + 44
    lanes, half = len(known.a), len(known.a) // 2

    def parts() -> Iterator[str]:
        yield words(12, 22, f"{name} on {arch}: D = A B + C", size=14)
        for matrix in matrices:
            yield from _draw(matrix, lane)
        y = height - 30
        yield words(left, y, f"C and D, {op.m}×{op.n}")
        yield rect(12, y + 8, _CELL, _CELL, _GROUPS[0])
        yield words(30, y + 19, f"lanes 0-{half - 1}")
        yield rect(112, y + 8, _CELL, _CELL, _GROUPS[1])
        yield words(130, y + 19, f"lanes {half}-{lanes - 1}")
        yield rect(222, y + 8, _CELL, _CELL, _ONE)
        yield words(240, y + 19, f"lane {lane}, elements in register order")

    return svg(max(width, 480), height, f"Lanes of {name}", parts())


def lanes_of_mfma() -> str:
    """Return the picture of a 32x32x8 MFMA of CDNA3."""
    return _lanes("gfx942", "v_mfma_f32_32x32x8_f16", 5)


def lanes_of_wmma() -> str:
    """Return the picture of a 16x16x16 WMMA of RDNA4."""
    return _lanes("gfx1201", "v_wmma_f32_16x16x16_f16", 5)


def tiles_of_a_product() -> str:
    """Return the picture of a product's tiles: workgroups, warps, warp tiles, steps along K."""
    tile, warp_tile, warps, steps, unit = 128, 32, 2, 4, 2

    def parts() -> Iterator[str]:
        yield words(12, 22, "tile=(128, 128, 32), warps=(2, 2, 1), warp_tile=(32, 32, 8)", size=14)
        yield words(12, 50, "E, 384×384: 9 workgroups")
        for row in range(3):
            for column in range(3):
                fill = _ONE if (row, column) == (1, 1) else "#eef1f4"
                yield rect(12 + column * 64, 60 + row * 64, 64, 64, fill)
        yield words(232, 50, "one tile, 128×128: warps 0-3")
        count = tile // warp_tile
        size = warp_tile * unit * 3 // 4
        for row in range(count):
            for column in range(count):
                warp = row % warps * warps + column % warps
                x, y = 232 + column * size, 60 + row * size
                yield rect(x, y, size, size, _WARPS[warp])
                yield words(
                    x + size / 2, y + size / 2 + 4, f"warp {warp}", size=11, anchor="middle"
                )
        yield words(452, 50, "along K, 32 elements a step")
        for step in range(steps):
            fill = _ONE if step == 1 else "#eef1f4"
            yield rect(452 + step * 30, 60, 30, 90, fill)
            yield rect(602, 60 + step * 30, 90, 30, fill)
        yield words(452, 168, "rows of A")
        yield words(602, 198, "columns of B")

    return svg(704, 272, "Tiles of a product", parts())
