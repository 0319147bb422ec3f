# SPDX-License-Identifier: MIT
"""The attention kernel that the cost model chooses, beside the others by the clock.

For attentions of several lengths and heads, in bf16, each legal kernel whose tile has the heads'
own size, or which is chosen for another call here, is priced by the clock (docs/clock.md) on the
emulated GPU, with the times of the cost model beside. Prints the share of the quickest one's speed
that the chosen kernel reaches:

    python benchmarks/attention_choice.py [--gpu gfx950] [--every 2] [--all]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import cklang as ck
from cklang.errors import CkError
from cklang.families.attention.key import AttentionPipeline

_LEAST_QUERIES = 64
"""Of a tile; smaller ones are for few queries."""

B, H, G, S, T, D = ck.dims("B H G S T D")


@ck.op
def dense(
    q: ck.bf16[B, H, S, D], k: ck.bf16[B, G, T, D], v: ck.bf16[B, G, T, D]
) -> ck.bf16[B, H, S, D]:
    """Attention to all keys."""
    return ck.attention(q, k, v)


@ck.op
def causal(
    q: ck.bf16[B, H, S, D], k: ck.bf16[B, G, T, D], v: ck.bf16[B, G, T, D]
) -> ck.bf16[B, H, S, D]:
    """Attention to the keys up to the query's own."""
    return ck.attention(q, k, v, mask=ck.causal())


SHAPES = (
    (1, 32, 8, 512),
    (1, 16, 16, 2048),
    (1, 32, 8, 8192),
    (4, 16, 16, 1024),
    (4, 32, 8, 4096),
    (16, 16, 16, 2048),
)
"""Batch, heads, heads of keys, length of queries and keys."""
WIDTHS = (64, 128)


@dataclass(frozen=True, slots=True)
class Case:
    """A call."""

    op: Any
    shape: tuple[int, int, int, int]
    width: int

    @property
    def args(self) -> list[Any]:
        """Arrays for the op."""
        batch, heads, heads_kv, length = self.shape
        return [
            np.zeros((batch, each, length, self.width), ml_dtypes.bfloat16)
            for each in (heads, heads_kv, heads_kv)
        ]

    def __str__(self) -> str:
        batch, heads, heads_kv, length = self.shape
        return f"{self.op.program.name}, {batch} x {heads}/{heads_kv} x {length} x {self.width}"


def cases() -> list[Case]:
    """Return all calls."""
    return [
        Case(op, shape, width) for width in WIDTHS for op in (dense, causal) for shape in SHAPES
    ]


@dataclass(frozen=True, slots=True)
class Timed:
    """A kernel for a call."""

    algorithm: Any
    model: float
    """µs by the cost model."""
    clock: float
    """µs by the clock."""
    chosen: bool

    def __str__(self) -> str:
        tile = "x".join(map(str, self.algorithm.tile))
        return f"{self.algorithm.pipeline.value} {tile}"


def timed(case: Case, gpu: str) -> Iterator[Timed]:
    """Price the kernels that a call may choose among, the chosen one first."""
    args = case.args
    (problem,) = case.op.problems(*args)
    selection = ck.dispatch.select(problem, arch=gpu, splits=1)
    times = selection.pool.times_of(selection.problem)
    order = sorted(range(len(times)), key=lambda at: (at != selection.position, times[at]))
    for at in order:
        algorithm = selection.pool.keys[at].algorithm
        own = algorithm.tile[-1] == case.width and algorithm.tile[0] >= _LEAST_QUERIES
        if at != selection.position and not (own or algorithm.pipeline is AttentionPipeline.V3):
            continue
        try:
            op = case.op.using(algorithm, splits=1)
            predicted = ck.predict(op, *args, device=f"emu:{gpu}")
        except CkError:  # a rule refuses it for this problem
            continue
        yield Timed(algorithm, float(times[at]), predicted.us, at == selection.position)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", default="gfx942,gfx950")
    parser.add_argument("--every", type=int, default=1, help="of so many calls one")
    parser.add_argument("--all", action="store_true", help="print the time of each kernel")
    options = parser.parse_args()
    shares: dict[str, list[float]] = {}
    print("| GPU | attention | chosen | µs | quickest | µs | share |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for gpu in options.gpu.split(","):
        for case in cases()[:: options.every]:
            rows = list(timed(case, gpu))
            best, own = min(rows, key=lambda row: row.clock), rows[0]
            share = best.clock / own.clock
            shares.setdefault(gpu, []).append(share)
            cells = f"{own} | {own.clock:.0f} | {best} | {best.clock:.0f} | {share:.2f}"
            print(f"| {gpu} | {case} | {cells} |", flush=True)
            if options.all:
                words = (f"    {row}: {row.clock:.1f} (model {row.model:.1f})" for row in rows)
                print("\n".join(words), flush=True)
    print("\n| GPU | cases | mean | median | 10th percentile |")
    print("|---|---|---|---|---|")
    for gpu, each in shares.items():
        numbers = (np.mean(each), np.median(each), np.percentile(each, 10))
        print(f"| {gpu} | {len(each)} | {' | '.join(f'{number:.2f}' for number in numbers)} |")


if __name__ == "__main__":
    main()
