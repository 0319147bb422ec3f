# SPDX-License-Identifier: MIT
"""What choosing a kernel costs: a new problem and a known one, among 500 registered kernels.

python benchmarks/selection.py
"""

from __future__ import annotations

import statistics
import time
from itertools import islice

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


def main() -> None:
    """Print medians in microseconds."""
    kernels = registry()
    problems = [made(64 + 8 * i, 64 + 8 * (i % 37), 64 + 8 * (i % 101)) for i in range(PROBLEMS)]
    for strategy in ("first_fit", "heuristic"):
        select(made(1, 1, 1), registry=kernels, arch=ARCH, strategy=strategy)
        for name in ("new problem", "known problem"):
            spent = []
            for query in problems:
                start = time.perf_counter()
                select(query, registry=kernels, arch=ARCH, strategy=strategy)
                spent.append(time.perf_counter() - start)
            median = statistics.median(spent) * 1e6
            print(f"{strategy}, {name}, {len(kernels)} kernels: {median:.1f} µs")


if __name__ == "__main__":
    main()
