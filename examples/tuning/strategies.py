# SPDX-License-Identifier: MIT
"""Strategies that choose among legal kernels: the built-in ones, and a function of your own.

python examples/tuning/strategies.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Return relu(x @ w.T)."""
    return ck.relu(x @ w.T)


def arrays(m: int, n: int, k: int) -> list[np.ndarray]:
    """Make the operands."""
    rng = np.random.default_rng(m)
    return [rng.uniform(-1, 1, shape).astype(np.float16) for shape in ((m, k), (n, k))]


def main() -> None:
    """Call one op with each strategy, on a registry of two kernels."""
    mine, args = ck.dispatch.Registry("mine"), arrays(128, 64, 64)
    tile = {"tile": (64, 64, 32), "warps": (2, 2, 1), "warp_tile": (16, 16, 32)}
    for width in (1, 8):  # the slower one first
        among = ck.dispatch.pattern(**tile, vector_a=width, vector_b=width, vector_e=width)
        linear.declare(*args, registry=mine, device="emu:gfx942", among=among)

    def narrowest(problem: Any) -> Sequence[Any]:
        """Rank by the width of loads: keys that are not legal for a problem are passed over."""
        return sorted((each.key for each in mine), key=lambda key: key.algorithm.vector_a)

    print("strategy    128x64x64  75x31x63  reason for the first")
    widths = {}
    for strategy in ("first_fit", "heuristic", "autotune", "tiered", "tuned", narrowest):
        name = strategy if isinstance(strategy, str) else "your own"
        with ck.using(registry=mine, arch="gfx942", strategy=strategy):
            for size in ((128, 64, 64), (75, 31, 63)):
                operands = arrays(*size)
                report(linear, operands, linear(*operands)).check()
                assert linear.last is not None
                algorithm = linear.last.launches[0].key.algorithm
                assert isinstance(algorithm, ck.dispatch.Algorithm)
                widths[name, size] = algorithm.vector_a
            (problem,) = linear.problems(*args)
            reason = ck.dispatch.select(problem).reason
        even, odd = (widths[name, size] for size in ((128, 64, 64), (75, 31, 63)))
        print(f"{name:10}  {even:9}  {odd:8}  {reason[:70]}")
        assert odd == 1, "nothing else is legal there"
    assert widths["first_fit", (128, 64, 64)] == widths["your own", (128, 64, 64)] == 1
    assert widths["heuristic", (128, 64, 64)] == widths["autotune", (128, 64, 64)] == 8


if __name__ == "__main__":
    main()
