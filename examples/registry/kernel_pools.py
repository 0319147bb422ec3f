# SPDX-License-Identifier: MIT
"""Pools of kernels: wildcards, lists, presets and filters; what is legal, and what is chosen.

python examples/registry/kernel_pools.py
"""

from __future__ import annotations

from collections import Counter

import numpy as np

import cklang as ck

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    """Return silu(x @ w.T + bias)."""
    return ck.silu(x @ w.T + bias)


TILE = {"tile": (128, 128, 32), "warps": (2, 2, 1), "warp_tile": (32, 32, 16)}
WIDTHS = {"vector_a": 8, "vector_b": 8, "vector_e": 8, "vector_d": (8,)}
POOLS: dict[str, ck.dispatch.Pattern | str] = {
    "one kernel": ck.dispatch.pattern(**TILE, **WIDTHS),
    "two tiles": ck.dispatch.pattern(
        **{**TILE, "tile": [(128, 128, 32), (256, 128, 32)]}, **WIDTHS
    ),
    "every pipeline": ck.dispatch.pattern(**TILE, **WIDTHS, pipeline="*", double_buffer="*"),
    "every tile and warp tile": ck.dispatch.pattern(
        tile="*", warps=(2, 2, 1), warp_tile="*", **WIDTHS
    ),
    "preset essential": "essential",
    "preset compute": "compute",
    "preset memory": "memory",
    "preset latency": "latency",
    "preset catalogue": "catalogue",
}
SIZES = ((4096, 4096, 4096), (64, 4096, 4096), (4096, 64, 8192))


def main() -> None:
    """Declare each pool (nothing is compiled) and see which tile it has for three problems."""
    args = [np.zeros(shape, np.float16) for shape in ((128, 64), (256, 64), (256,))]
    print(f"{'pool':25} kernels  pipelines", *(f"{m}x{n}x{k}".rjust(15) for m, n, k in SIZES))
    counts = {}
    for name, among in POOLS.items():
        pool = ck.dispatch.Registry(name)
        counts[name] = linear.declare(*args, registry=pool, device="emu:gfx942", among=among)
        pipelines = Counter(kernel.key.algorithm.pipeline for kernel in pool)
        with ck.using(registry=pool, arch="gfx942"):
            tiles = []
            for m, n, k in SIZES:
                large = (np.empty(shape, np.float16) for shape in ((m, k), (n, k), (n,)))
                (problem,) = linear.problems(*large)
                chosen = ck.dispatch.select(problem).key.algorithm
                assert isinstance(chosen, ck.dispatch.Algorithm)
                tiles.append("x".join(map(str, chosen.tile)).rjust(15))
        print(f"{name:25} {counts[name]:7}  {len(pipelines):9}", *tiles)
    assert counts["one kernel"] == 1
    assert counts["preset catalogue"] > counts["preset essential"]

    # A registry is filtered by any property of its keys.
    everything = ck.dispatch.Registry("everything")
    linear.declare(*args, registry=everything, device="emu:gfx942", among="catalogue")
    tall = everything.filter(lambda key: key.algorithm.tile[0] >= 256)
    print(f"{len(tall)} of {len(everything)} kernels have 256 rows or more")
    assert 0 < len(tall) < len(everything)


if __name__ == "__main__":
    main()
