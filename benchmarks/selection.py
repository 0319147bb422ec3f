# SPDX-License-Identifier: MIT
"""What choosing a kernel costs: a new problem and a known one.

Products are chosen among 500 registered kernels, convolutions among those of the default preset.

python benchmarks/selection.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

from cklang.families.conv.problem import conv_problem
from cklang.families.gemm.key import GemmKey
from cklang.families.gemm.problem import Problem
from cklang.families.gemm.synthetic import problem
from cklang.fusion.functions import Functions
from cklang.ir.parser import parse_function
from cklang.selection.registry import Registry
from cklang.selection.select import select
from cklang.selection.space import enumerate_legal, pattern

ARCH = "gfx942"
KERNELS = 500
PROBLEMS = 400
PASS = Functions(
    epilogue=parse_function("func @epilogue(%acc: f32[]) -> f32[] {\n  return %acc\n}")
)


def made(m: int, n: int, k: int) -> Problem:
    """A problem of the registered signature."""
    return problem(m, n, k, functions=PASS.digest)


def registry() -> Registry:
    """Declare kernels spread over the legal set."""
    signature = made(1, 1, 1).signature
    wild = pattern(tile="*", warps="*", warp_tile="*", pad_k=[True, False])
    legal = enumerate_legal(signature, ARCH, wild)
    kernels = Registry("benchmark")
    for algorithm in islice(legal, 0, 40 * KERNELS, 40):
        kernels.add(GemmKey(signature, algorithm, ARCH), PASS)
    return kernels


def spent_on(queries: Sequence[Any], choose: Callable[[Any], object]) -> float:
    """Return the median time of a choice in microseconds."""
    spent = []
    for query in queries:
        start = time.perf_counter()
        choose(query)
        spent.append(time.perf_counter() - start)
    return statistics.median(spent) * 1e6


def convolutions() -> None:
    """Print the medians of convolutions."""
    sizes = ((8 + i % 37, 8 * (1 + i % 41), 64 + i) for i in range(PROBLEMS))
    problems = [
        conv_problem((2, side, side, channels), (features, 3, 3, channels))
        for side, channels, features in sizes
    ]
    choose = partial(select, arch=ARCH, preset="catalogue", strategy="heuristic")
    count = choose(conv_problem((1, 9, 9, 8), (8, 3, 3, 8))).candidates
    for name in ("new problem", "known problem"):
        median = spent_on(problems, choose)
        print(f"heuristic, {name}, convolution, {count} kernels: {median:.1f} µs")


def main() -> None:
    """Print medians in microseconds."""
    kernels = registry()
    problems = [made(64 + 8 * i, 64 + 8 * (i % 37), 64 + 8 * (i % 101)) for i in range(PROBLEMS)]
    for strategy in ("first_fit", "heuristic"):
        choose = partial(select, registry=kernels, arch=ARCH, strategy=strategy)
        choose(made(1, 1, 1))
        for name in ("new problem", "known problem"):
            median = spent_on(problems, choose)
            print(f"{strategy}, {name}, {len(kernels)} kernels: {median:.1f} µs")
    convolutions()


if __name__ == "__main__":
    main()
