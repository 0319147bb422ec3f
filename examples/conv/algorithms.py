# SPDX-License-Identifier: MIT
"""Pipelines, schedulers and options of a convolution's kernel: what is legal, and what each costs.

python examples/conv/algorithms.py
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import cklang as ck
from cklang.families.gemm.key import Pipeline, Reduction, Scheduler
from cklang.testing import report

N, C, K, H, W = ck.dims("N C K H W")


@ck.op
def fused(
    x: ck.f16[N, H, W, C], w: ck.f16[K, 3, 3, C], bias: ck.f16[K], res: ck.f16[N, H, W, K]
) -> ck.f16[N, H, W, K]:
    """Return relu(conv(x, w) + bias) + res."""
    return ck.relu(ck.conv(x, w, padding=1) + bias) + res


BASE = ck.dispatch.Algorithm(
    tile=(64, 64, 32), warps=(2, 2, 1), warp_tile=(16, 16, 32), vector_a=1, vector_b=1, vector_e=1
)
BASE = replace(BASE, vector_d=(1, 1))
WIDE = replace(BASE, vector_a=8, vector_b=8, vector_e=8, vector_d=(8, 8))
COMPV5 = replace(
    WIDE,
    tile=(16, 64, 128),
    warps=(1, 1, 2),
    pipeline=Pipeline.COMPV5,
    num_wave_groups=2,
    vector_e=2,
    vector_d=(2, 2),
)
OPTIONS = {
    "compv3, loads of 2 bytes": BASE,
    "compv3, loads of 16 bytes": WIDE,
    "short warp tile": replace(WIDE, warp_tile=(16, 16, 16)),
    "compv5, two wave groups": COMPV5,
    "split-K by 8": replace(WIDE, split_k=8, reduction=Reduction.WORKSPACE),
    "scheduler interwave": replace(BASE, scheduler=Scheduler.INTERWAVE),
    "compv4 with one buffer": replace(BASE, pipeline=Pipeline.COMPV4),
    "three warps": replace(BASE, warps=(3, 1, 1)),
}


def main() -> None:
    """Ask the rules about each option, and run those that are legal and built."""
    rng = np.random.default_rng(0)
    shapes = (1, 8, 8, 16), (32, 3, 3, 16), (32,), (1, 8, 8, 32)
    args = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
    (problem,) = fused.using(BASE).problems(*args)
    print("option                       verdict")
    refused = []
    for name, algorithm in OPTIONS.items():
        violations = ck.dispatch.advise(algorithm, problem.signature, "gfx942", problem)
        if violations:
            refused.append(name)
            print(f"{name:27}  {str(violations[0])[:90]}")
            continue
        op = fused.using(algorithm)
        y = op(*args)
        result = report(op, args, y)
        result.check()
        assert op.last is not None
        print(f"{name:27}  {op.last.instructions} instructions, {result.ratio:.2f} of its bound")
    assert refused, "an illegal option is named, never replaced by another"


if __name__ == "__main__":
    main()
