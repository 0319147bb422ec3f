# SPDX-License-Identifier: MIT
"""A benchmark with options: several algorithms, cold operands, percentiles, a table as CSV.

python examples/gemm/advanced_benchmark.py --size 128 128 256 --repeat 10 --copies 4

``--copies`` rotates through so many sets of operands: with more bytes than the last-level cache
holds, each call finds its operands in memory, as a model's layers do. `cklang bench` does this for
all legal kernels of an op and keeps the results in a database.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Return relu(x @ w.T)."""
    return ck.relu(x @ w.T)


ONE = ck.dispatch.Algorithm(
    tile=(64, 64, 32), warps=(2, 2, 1), warp_tile=(16, 16, 32), vector_a=1, vector_b=1, vector_e=1
)
ALGORITHMS = {
    "loads of 2 bytes": ONE,
    "loads of 16 bytes": replace(ONE, vector_a=8, vector_b=8, vector_e=8),
}


def main() -> None:
    """Print a line of CSV for each algorithm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, nargs=3, default=(64, 64, 128), metavar=("M", "N", "K"))
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--copies", type=int, default=2)
    options = parser.parse_args()
    m, n, k = options.size
    rng = np.random.default_rng(0)
    sets = [
        [rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((m, k), (n, k))]
        for _ in range(options.copies)
    ]
    megabytes = options.copies * 2 * (m * k + n * k + m * n) / 1e6
    print(f"# {m} x {n} x {k}, {options.copies} sets of operands, {megabytes:.2f} MB")
    print("algorithm,min_ms,median_ms,p90_ms,instructions")
    for name, algorithm in ALGORITHMS.items():
        op, seconds = linear.using(algorithm), []
        for number in range(options.warmup + options.repeat):
            args = sets[number % options.copies]
            start = time.perf_counter()
            y = op(*args)
            seconds.append(time.perf_counter() - start)
            report(op, args, y).check()
        least, median, most = np.quantile(seconds[options.warmup :], (0, 0.5, 0.9)) * 1e3
        assert op.last is not None
        print(f"{name},{least:.3f},{median:.3f},{most:.3f},{op.last.instructions}")


if __name__ == "__main__":
    main()
