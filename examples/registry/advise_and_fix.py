# SPDX-License-Identifier: MIT
"""Illegal algorithms: every violated rule with legal values, a proposal, and nothing in silence.

python examples/registry/advise_and_fix.py
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import cklang as ck
from cklang.families.gemm.key import Pipeline, Scheduler

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Return relu(x @ w.T)."""
    return ck.relu(x @ w.T)


LEGAL = ck.dispatch.Algorithm(
    tile=(128, 128, 32),
    warps=(2, 2, 1),
    warp_tile=(32, 32, 16),
    vector_a=8,
    vector_b=8,
    vector_e=8,
)
MISTAKES = {
    "a tile that warps do not divide": replace(LEGAL, tile=(96, 128, 32), warps=(4, 1, 1)),
    "a warp tile that gfx942 lacks": replace(LEGAL, warp_tile=(8, 8, 8)),
    "compv4 with one buffer": replace(LEGAL, pipeline=Pipeline.COMPV4),
    "more LDS than there is": replace(LEGAL, tile=(256, 256, 128)),
    "a scheduler of another pipeline": replace(LEGAL, scheduler=Scheduler.INTERWAVE),
}


def main() -> None:
    """Ask for each mistake what is wrong, and what would be right."""
    problem, gpu = ck.dispatch.problem(512, 512, 512), "gfx942"
    assert not ck.dispatch.advise(LEGAL, problem.signature, gpu, problem)
    for name, algorithm in MISTAKES.items():
        violations = ck.dispatch.advise(algorithm, problem.signature, gpu, problem)
        assert violations
        print(f"== {name}")
        for violation in violations:
            print("  ", violation)
        proposal = ck.dispatch.fix(algorithm, problem.signature, gpu, problem)
        print("   proposed:", "; ".join(map(str, proposal.changes)))
        assert not ck.dispatch.advise(proposal.algorithm, problem.signature, gpu, problem)

    # A call with such an algorithm is refused with the same words; no similar kernel runs instead.
    x, w = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16)
    try:
        linear.using(MISTAKES["more LDS than there is"])(x, w, device=f"emu:{gpu}")
    except ck.CkError as error:
        print(f"== a call: {error.code}, {error.message}")
    else:
        raise AssertionError


if __name__ == "__main__":
    main()
