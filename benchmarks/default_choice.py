# SPDX-License-Identifier: MIT
"""Predicted times of the default choice beside those of the preset ``essential``.

The shapes are products of real language models: a third each with M up to 64, up to 512 and above,
drawn from the published tables (``benchmarks/data/README.md``), here with bf16 operands. Prints
Markdown: a summary for each GPU, and each shape with ``--all``. Both times are predictions.

    python benchmarks/default_choice.py --all
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from data import published

from cklang.arch import arch
from cklang.families.gemm.synthetic import problem
from cklang.selection.select import AnySelection, select
from cklang.types import bf16

GPUS = ("gfx942", "gfx950")
COUNT = 200
CLASSES = (("M ≤ 64", 0, 64), ("64 < M ≤ 512", 64, 512), ("M > 512", 512, 1 << 62))

Shape = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Pair:
    """The choices for one shape."""

    shape: Shape
    old: AnySelection
    new: AnySelection

    @property
    def us(self) -> tuple[float, float]:
        """The predicted times of the old and of the new choice."""
        old, new = (
            float(each.pool.times_of(each.problem)[each.position]) for each in (self.old, self.new)
        )
        return old, new


def shapes(gpu: str, count: int = COUNT) -> list[Shape]:
    """Return distinct shapes of the published tables of a GPU, equally many of each class.

    Products whose bf16 operands span 2 GiB or more are several launches, and left out.
    """
    spec = arch(gpu)
    table = published.read(spec, "a8w8_blockscale")
    columns = (table.m.tolist(), table.n.tolist(), table.k.tolist())
    distinct = sorted(
        (m, n, k)
        for m, n, k in set(zip(*columns, strict=True))
        if 2 * max(m * n, m * k, n * k) < 1 << 31
    )
    drawn: list[Shape] = []
    for place, (_, low, high) in enumerate(CLASSES):
        members = [shape for shape in distinct if low < shape[0] <= high]
        wanted = count // len(CLASSES) + (place < count % len(CLASSES))
        order = np.random.RandomState(place).permutation(len(members))[:wanted]
        drawn += sorted(members[i] for i in order)
    return drawn


def pairs(gpu: str, count: int = COUNT) -> list[Pair]:
    """Return both choices for each shape."""
    result = []
    for m, n, k in shapes(gpu, count):
        query = problem(m, n, k, a=bf16, alignment=16)
        old, new = (select(query, arch=gpu, preset=name) for name in ("essential", "catalogue"))
        result.append(Pair((m, n, k), old, new))
    return result


def _tile(selection: AnySelection) -> str:
    return "×".join(map(str, selection.key.algorithm.tile))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="print each shape")
    options = parser.parse_args()
    chosen = {gpu: pairs(gpu) for gpu in GPUS}
    print("| GPU | shapes | new over old: median | least | most | tiles |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for gpu, each in chosen.items():
        for name, low, high in CLASSES:
            members = [pair for pair in each if low < pair.shape[0] <= high]
            ratio = np.array([new / old for old, new in (pair.us for pair in members)])
            tiles = len({_tile(pair.new) for pair in members})
            numbers = f"{np.median(ratio):.2f} | {ratio.min():.2f} | {ratio.max():.2f} | {tiles}"
            print(f"| {gpu} | {name} ({len(members)}) | {numbers} |")
    if not options.all:
        return
    for gpu, each in chosen.items():
        print(f"\n{gpu}\n\n| M | N | K | old | µs | new | µs |")
        print("| ---: | ---: | ---: | --- | ---: | --- | ---: |")
        for pair in each:
            m, n, k = pair.shape
            old, new = pair.us
            row = f"{_tile(pair.old)} | {old:.1f} | {_tile(pair.new)} | {new:.1f}"
            print(f"| {m} | {n} | {k} | {row} |")


if __name__ == "__main__":
    main()
