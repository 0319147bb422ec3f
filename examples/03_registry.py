# SPDX-License-Identifier: MIT
"""Declare kernels, build them side by side, choose between them, and take them along as JSON.

python examples/03_registry.py
"""

from __future__ import annotations

import json

import numpy as np

import cklang as ck
from cklang.families.gemm.key import Scheduler
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    """Return silu(x @ w.T + bias)."""
    return ck.silu(x @ w.T + bias)


def arrays(m: int, n: int, k: int) -> tuple[np.ndarray, ...]:
    """Make the operands."""
    rng = np.random.default_rng(m + n + k)
    return tuple(rng.uniform(-1, 1, s).astype(np.float16) for s in ((m, k), (n, k), (n,)))


def main() -> None:
    """Go through the life of a registry."""
    args = arrays(192, 128, 64)
    gpu = "gfx942"

    # Declare: a wildcard stands for everything that is legal. Nothing is compiled yet.
    wide = ck.dispatch.Registry("everything")
    count = linear.declare(
        *args, registry=wide, device=f"emu:{gpu}", among=ck.dispatch.pattern(tile="*")
    )
    print(f"{count} legal kernels of this signature and the default choices on {gpu}")

    # A few of them, and one that moves single elements and so fits every problem.
    mine = ck.dispatch.Registry("mine")
    tile = {"tile": (64, 64, 32), "warps": (2, 2, 1), "warp_tile": (16, 16, 32)}
    for width in (8, 1):
        some = ck.dispatch.pattern(
            **tile, vector_a=width, vector_b=width, vector_e=width, vector_d=(width,)
        )
        linear.declare(*args, registry=mine, device=f"emu:{gpu}", among=some)

    # Build: compiler processes side by side, a summary at the end.
    print(mine.build())

    # Export, import, build again: everything is found, and the registries are the same.
    again = ck.dispatch.Registry.from_json(json.loads(json.dumps(mine.to_json())))
    print(f"imported: {again.same_as(mine)}, {again.build()}")

    # Select: deterministic, with a reason, and why not the ones before it.
    with ck.using(registry=mine, arch=gpu, strategy="first_fit"):
        for m, n, k in ((192, 128, 64), (75, 31, 63)):
            (problem,) = linear.problems(*arrays(m, n, k))
            chosen = ck.dispatch.select(problem)
            print(f"{problem}: {chosen}")
            for reason in chosen.rejections:
                assert isinstance(reason.algorithm, ck.dispatch.Algorithm)
                print(f"  not {reason.algorithm.vector_a} wide: {reason}")

            # Dispatch: calls in this block look in the same registry.
            operands = arrays(m, n, k)
            y = linear(*operands)
            print(report(linear, operands, y))
            assert linear.last is not None
            assert linear.last.launches[0].key == chosen.key

    # What would be wrong with another algorithm, and what is legal near it?
    signature = problem.signature
    odd = ck.dispatch.Algorithm(
        tile=(96, 64, 32),
        warps=(2, 2, 1),
        warp_tile=(32, 32, 8),
        scheduler=Scheduler.INTERWAVE,
        vector_a=8,
        vector_b=8,
        vector_e=8,
        vector_d=(8,),
    )
    for violation in ck.dispatch.advise(odd, signature, gpu):
        print(violation)
    print("a legal neighbour changes", *ck.dispatch.fix(odd, signature, gpu).changes, sep="\n  ")


if __name__ == "__main__":
    main()
