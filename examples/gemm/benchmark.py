# SPDX-License-Identifier: MIT
"""Time an op: warm up, repeat, take the median; and check the result that was timed.

python examples/gemm/benchmark.py

On a GPU the rate is that of the GPU. On an emulated one it is that of the emulator, and the counted
instructions are what says something about the kernel.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N], res: ck.f16[M, N]) -> ck.f16[M, N]:
    """Return gelu(x @ w.T + bias) + res."""
    return ck.gelu(x @ w.T + bias) + res


WARM_UP, REPEAT = 1, 5


def main() -> None:
    """Print a row for each size."""
    rng = np.random.default_rng(0)
    print("   M    N    K  median ms  Gflop/s  instructions per Mflop")
    for m, n, k in ((64, 64, 64), (128, 128, 128), (128, 128, 512)):
        shapes = (m, k), (n, k), (n,), (m, n)
        # Arrays in the device's memory: nothing is copied while the clock runs.
        args = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
        near, out = [ck.to_device(each) for each in args], ck.empty((m, n), ck.f16)
        for _ in range(WARM_UP):
            linear(*near, out=out)
        ck.synchronize()
        seconds = []
        for _ in range(REPEAT):
            start = time.perf_counter()
            linear(*near, out=out)
            ck.synchronize()
            seconds.append(time.perf_counter() - start)
        report(linear, args, ck.to_host(out)).check()
        linear(*args)  # from host memory: such a call waits, so its instructions are known
        assert linear.last is not None
        median, flops = statistics.median(seconds), 2 * m * n * k
        counted = linear.last.instructions
        each = "-" if counted is None else f"{counted / flops * 1e6:.0f}"
        print(f"{m:4} {n:4} {k:4}  {median * 1e3:9.2f}  {flops / median / 1e9:7.2f}  {each:>22}")


if __name__ == "__main__":
    main()
