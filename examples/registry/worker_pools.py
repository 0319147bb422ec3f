# SPDX-License-Identifier: MIT
"""Kernels built by threads, by spawned and by forked processes; ops called in forked workers.

python examples/registry/worker_pools.py
"""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Return relu(x @ w.T)."""
    return ck.relu(x @ w.T)


ALGORITHM = ck.dispatch.Algorithm(
    tile=(64, 64, 32), warps=(2, 2, 1), warp_tile=(16, 16, 32), vector_a=1, vector_b=1, vector_e=1
)


def passed(m: int) -> bool:
    """Whether a call of a size is right, in whichever process this runs."""
    rng = np.random.default_rng(m)
    args = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((m, 40), (24, 40))]
    op = linear.using(ALGORITHM)
    return report(op, args, op(*args)).passed


def main() -> None:
    """The workers meet in the kernel cache: what one has built is there for all."""
    assert passed(16)  # this process has a device from here on
    mine = ck.dispatch.Registry("mine")
    args = [np.zeros(shape, np.float16) for shape in ((16, 40), (24, 40))]
    among = ck.dispatch.pattern(
        tile=(64, 64, 32),
        warps=(2, 2, 1),
        warp_tile=(16, 16, 32),
        vector_a=1,
        vector_b=1,
        vector_e=1,
    )
    linear.declare(*args, registry=mine, device="emu:gfx942", among=among)

    fork, spawn = (multiprocessing.get_context(name) for name in ("fork", "spawn"))
    pools: dict[str, Executor] = {
        "threads": ThreadPoolExecutor(2),
        "forked processes": ProcessPoolExecutor(2, mp_context=fork),
        "spawned processes": ProcessPoolExecutor(1, mp_context=spawn),
    }
    print("workers            kernels  seconds")
    for name, pool in pools.items():
        start = time.perf_counter()
        with pool:
            summary = mine.build(executor=pool)
        assert not summary.failures
        print(f"{name:17}  {len(summary.artifacts):7}  {time.perf_counter() - start:7.2f}")

    # An emulated GPU goes on in a forked process; a real one is refused there by name (D010).
    with ProcessPoolExecutor(2, mp_context=fork) as pool:
        verdicts = list(pool.map(passed, (16, 33, 70)))
    print(f"calls in forked workers: {verdicts}")
    assert all(verdicts)


if __name__ == "__main__":
    main()
