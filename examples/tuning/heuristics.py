# SPDX-License-Identifier: MIT
"""How the cost model chooses: predicted times of a pool, its terms, and the reason of a choice.

python examples/tuning/heuristics.py
"""

from __future__ import annotations

import cklang as ck
from cklang.families.gemm.cost.model import GemmShape, Ranker

SIZES = ((128, 128, 64), (16, 4096, 4096), (512, 4096, 4096), (4096, 4096, 4096), (8192, 64, 8192))


def main() -> None:
    """Choose among the catalogue for five sizes on two GPUs; nothing is compiled."""
    print("GPU        M     N     K  tile             pipeline  predicted us  among")
    chosen_tiles = set()
    for gpu in ("gfx942", "gfx950"):
        for m, n, k in SIZES:
            with ck.using(arch=gpu, preset="catalogue"):
                chosen = ck.dispatch.select(ck.dispatch.problem(m, n, k, a=ck.bf16))
            algorithm = chosen.key.algorithm
            assert isinstance(algorithm, ck.dispatch.Algorithm)
            keys = tuple(chosen.pool.keys)
            ranker = Ranker(keys=keys)
            best = ranker.rank(GemmShape(m=m, n=n, k=k))[0]
            tile = "x".join(map(str, algorithm.tile))
            chosen_tiles.add(tile)
            print(
                f"{gpu}  {m:5} {n:5} {k:5}  {tile:15}  {algorithm.pipeline:8}  "
                f"{best.us:12.2f}  {len(keys)}"
            )
    assert len(chosen_tiles) > 2, "sizes want different tiles"

    # Why: the terms of the model beside those of the runner-up, and the rules that rejected others.
    with ck.using(arch="gfx942", preset="catalogue"):
        chosen = ck.dispatch.select(ck.dispatch.problem(4096, 4096, 4096, a=ck.bf16))
        odd = ck.dispatch.select(ck.dispatch.problem(4095, 4095, 4095, a=ck.bf16))
    print(chosen.reason)
    print(Ranker(keys=tuple(chosen.pool.keys)).explain(GemmShape(m=4096, n=4096, k=4096)))
    print(f"odd extents: {odd.reason}; {len(odd.rejections)} rejected before it")
    assert isinstance(odd.key.algorithm, ck.dispatch.Algorithm)
    assert odd.key.algorithm.vector_a == 1


if __name__ == "__main__":
    main()
